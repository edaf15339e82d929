// Tests, leaves and cells in words.

import { full, percent, short, wholePercent } from "./numbers.js";
import { Rule, pathTo } from "../../libraries/javascript/machine.js";
import { condition } from "./conditions.js";
import { outputName } from "../../libraries/javascript/decisions.js";

const LEAF_VALUES = 4;

export const plural = (n, word, words = `${word}s`) => `${n.toLocaleString("en").replaceAll(",", " ")} ${n === 1 ? word : words}`;

export const sign = (answer) => (answer < 0 ? "−1" : answer > 0 ? "+1" : "0");
export const sideName = (answer) => (answer < 0 ? "left" : "right");

/** What a reader would call a column. */
export function columnName(machine, column) {
  const name = machine.names[machine.columns.feature[column]];
  const which = machine.columns.setOf[column];
  return which < 0 ? name : `${name} in set ${which}`;
}

/** A feature's value: its label, or the number. */
export function valueName(machine, feature, value) {
  if (Number.isNaN(value)) return "missing";
  const labels = machine.labels.get(feature);
  if (!labels) return full(value, machine.single && Math.fround(value) === value);
  return labels[Math.trunc(value)] ?? "another label";
}

/** The number as the machine's dtype has it. */
const digitsOf = (machine, value) => full(value, machine.single);

/** What one test did with the present x. */
export function testSentence(machine, scene, test) {
  const { shape, q, h } = scene;
  const at = shape.test + test;
  const asked = condition(machine, at);
  const goes = `answers ${sign(h[test])}, ${sideName(h[test])}`;
  if (Number.isNaN(q[test])) return `Test ${test}: ${asked}? What it reads is missing; then it ${goes}.`;
  const read = machine.selection && machine.columns.rule[machine.selection[at]] === Rule.MEMBER
    ? valueName(machine, machine.columns.feature[machine.selection[at]], scene.x[machine.columns.feature[machine.selection[at]]])
    : full(q[test], machine.single);
  return `Test ${test}: ${asked}? It reads ${read} and ${goes}.`;
}

/** A leaf's value, short, for the tree. */
export function leafName(machine, scene, leaf) {
  const values = scene.values(leaf);
  if (scene.holdsShares) {
    const best = values.reduce((top, v, i) => (v > values[top] ? i : top), 0);
    const total = values.reduce((a, b) => a + b, 0);
    return `${machine.output.classes[0][best]} (${wholePercent(values[best] / total)})`;
  }
  if (values.length > LEAF_VALUES) return `${short(values[0])}, … ${values.length} values`;
  return Array.from(values, short).join(", ");
}

/** The sentence for a cell of the matrices. */
export function cellSentence(machine, scene, cell) {
  const { shape, h, p, agree, weights, tau } = scene;
  const { test, leaf } = cell;
  switch (cell.part) {
    case "S": {
      const name = columnName(machine, cell.column);
      if (cell.value === 0) return `S = 0: test ${test} does not read ${name}.`;
      if (machine.selection) return `S = 1: test ${test} reads ${name}.`;
      return `S = ${digitsOf(machine, cell.value)}: the weight of ${name} in test ${test}.`;
    }
    case "t":
      return `t = ${digitsOf(machine, machine.t[shape.test + test])}: test ${test} answers −1 (left) where ${condition(machine, shape.test + test)}, else +1 (right); where it reads NaN, ${sign(machine.missing[shape.test + test])}.`;
    case "q":
      return `S z = ${digitsOf(machine, scene.q[test])}: what test ${test} reads in the present x.`;
    case "h":
      return `h = ${sign(h[test])}. ${testSentence(machine, scene, test)}`;
    case "B": {
      if (cell.value === 0) return `B = 0: leaf ${leaf} does not care for test ${test}; it is not on its path.`;
      const agrees = cell.value === h[test];
      return `B = ${sign(cell.value)}: leaf ${leaf} is to the ${sideName(cell.value)} of test ${test} (${condition(machine, shape.test + test, cell.value)}). x answers ${sign(h[test])}: it ${agrees ? "agrees" : "disagrees"}.`;
    }
    case "p": {
      const depth = shape.leafDepth[leaf];
      if (!depth) return "p = 1: the only leaf.";
      const yes = (depth + agree[leaf]) / 2;
      const all = yes === depth ? ": every test agrees, so x leaves here" : "";
      return `p = (${yes} − ${depth - yes}) / ${depth} = ${full(p[leaf], false)}: of the ${plural(depth, "test")} on the path of leaf ${leaf}, x agrees with ${yes} and disagrees with ${depth - yes}${all}.`;
    }
    case "w": {
      if (tau === 0) return `Weight ${weights[leaf]} of leaf ${leaf}: hard attention gives all of it to the one leaf with p = 1.`;
      const gates = pathTo(shape, leaf).map(({ test: j, answer }) => short(answer > 0 ? scene.gate(j) : 1 - scene.gate(j)));
      return `Weight ${full(weights[leaf], false)} of leaf ${leaf} at τ = ${short(tau)}: the product of its gates, ${gates.join(" × ") || "1"}.`;
    }
    case "V": {
      const value = full(scene.values(leaf)[cell.index], machine.linear ? machine.linear.single : machine.valueSingle);
      const what = scene.outputOf(cell.index);
      const linear = machine.linear ? " (its linear function at the present x)" : "";
      return `V = ${value}: what leaf ${leaf} gives to ${outputName(machine.output, what)}${linear}; times its weight, ${short(scene.values(leaf)[cell.index] * weights[leaf])}.`;
    }
    case "fold":
      return `${plural(cell.count, "leaf", "leaves")} folded into one row: leaves ${cell.first} to ${cell.first + cell.count - 1}. Press Enter or click to open them. Together they weigh ${percent(cell.weight)}.`;
    default:
      return "";
  }
}

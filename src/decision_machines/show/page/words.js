// Tests, leaves and cells in words.

import { full, percent, short } from "./numbers.js";
import { Rule, pathTo } from "./machine.js";
import { outputName } from "./decisions.js";

const MOST_LABELS = 6;
const MOST_TERMS = 4;

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

/** The condition under which a test answers as given: ["petal width", "≤ 0.8"]. */
export function conditionParts(machine, test, answer = -1, write = short) {
  const bound = `${answer > 0 ? ">" : "≤"} ${write(machine.t[test])}`;
  if (!machine.selection) return [weighted(machine, test), bound];
  const column = machine.selection[test];
  if (machine.columns.rule[column] === Rule.MEMBER) return membership(machine, column, answer);
  return [columnName(machine, column), bound];
}

export const condition = (machine, test, answer = -1, write = short) =>
  conditionParts(machine, test, answer, write).join(" ");

function membership(machine, column, answer) {
  const { start, members, answer: answers, outside } = machine.sets;
  const which = machine.columns.setOf[column];
  const feature = machine.columns.feature[column];
  const isOutside = outside[which] === answer;
  const named = [];
  for (let i = start[which]; i < start[which + 1]; i += 1) {
    if ((answers[i] === answer) !== isOutside) named.push(valueName(machine, feature, members[i]));
  }
  const more = named.length > MOST_LABELS ? `, … ${named.length} in all` : "";
  const set = `{${named.slice(0, MOST_LABELS).join(", ")}${more}}`;
  return [machine.names[feature], `${isOutside ? "not in" : "in"} ${set}`];
}

function weighted(machine, test) {
  const { start, column, weight } = machine.S;
  const terms = [];
  for (let i = start[test]; i < start[test + 1]; i += 1) terms.push([weight[i], column[i]]);
  terms.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
  const shown = terms.slice(0, MOST_TERMS).map(([w, c]) => `${short(w)}·${columnName(machine, c)}`);
  const more = terms.length > MOST_TERMS ? ` + … ${terms.length} terms` : "";
  return (shown.join(" + ") || "0").replaceAll("+ −", "− ") + more;
}

const digits = (machine) => (value) => full(value, machine.single);

/** What one test did with the present x. */
export function testSentence(machine, scene, test) {
  const { shape, q, h } = scene;
  const at = shape.test + test;
  const asked = condition(machine, at, -1, digits(machine));
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
    return `${machine.output.classes[0][best]} ${Math.round((100 * values[best]) / total)} %`;
  }
  if (values.length > 3) return `${short(values[0])}, … ${values.length} values`;
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
      return `S = ${digits(machine)(cell.value)}: the weight of ${name} in test ${test}.`;
    }
    case "t":
      return `t = ${digits(machine)(machine.t[shape.test + test])}: test ${test} answers −1 (left) where ${condition(machine, shape.test + test, -1, digits(machine))}, else +1 (right); where it reads NaN, ${sign(machine.missing[shape.test + test])}.`;
    case "q":
      return `S z = ${digits(machine)(scene.q[test])}: what test ${test} reads in the present x.`;
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

// What would change the tree's answer: the nearest x in another leaf's box.
//
// A leaf's box is an interval (or a set of categories) for each feature on its path. The nearest
// value in it is x itself, a threshold, the number just above one, or a category, so trying these
// is exact. Every change is tried on the machine itself before it is shown.

import { nextDown, nextUp, rounding } from "./numbers.js";
import { Rule, pathTo, shapeOf } from "./machine.js";
import { ZERO, castFeatures, columnValue, readColumns } from "./columns.js";
import { exitLeaf, leafValue, margins } from "./evaluate.js";
import { decide } from "./decisions.js";
import { respond } from "./links.js";

/** Whether the shown tree answers with labels (else with values). */
export function answersLabels(machine) {
  const { output } = machine;
  if (!output.classes) return false;
  const zero = new Array(output.k).fill(0);
  return (machine.nTrees === 1 || machine.width > 1) && "labels" in decide(output, zero, respond(output, zero));
}

/** What the tree answers in a leaf: the index of each label as text, or its values. */
export function treeAnswer(machine, tree, cast, leaf) {
  const at = shapeOf(machine, tree).leaf + leaf;
  if (!answersLabels(machine)) return Array.from({ length: machine.width }, (_, c) => leafValue(machine, cast, at, c));
  const { output } = machine;
  const margin =
    machine.nTrees === 1
      ? margins(machine, cast, [leaf])
      : Array.from({ length: output.k }, (_, c) => rounding(output.single)(leafValue(machine, cast, at, c)));
  return decide(output, margin, respond(output, margin)).labels.join(",");
}

function isWanted(wanted, now, then) {
  if (typeof now === "string") return then !== now && (wanted === "any" || then === wanted);
  // Of several values, the first one is to rise or fall.
  return { any: then.some((value, c) => value !== now[c]), higher: then[0] > now[0], lower: then[0] < now[0] }[wanted];
}

/**
 * The change of fewest features, and the smallest change.
 *
 * @param scales a length and a middle of each feature, and which are named: a change of category
 *     counts as a whole length, as does one from missing to a number
 * @param wanted "any", "higher", "lower", or the label wanted
 * @returns {{fewest, smallest, oneFeature: boolean}} null where no leaf can be reached
 */
export function nearestChange(machine, x, tree, scales, wanted = "any") {
  const cast = castFeatures(machine, x);
  const z = readColumns(machine, cast);
  const here = exitLeaf(machine, z, tree);
  const now = treeAnswer(machine, tree, cast, here);
  const moves = machine.selection ? boxMoves : oneFeatureMoves;
  let [fewest, smallest] = [null, null];
  for (const move of moves(machine, x, tree, here, scales)) {
    const better = [
      !fewest || before([move.count, move.size, move.sum], [fewest.count, fewest.size, fewest.sum]),
      !smallest || before([move.size, move.count, move.sum], [smallest.size, smallest.count, smallest.sum]),
    ];
    if (!better.includes(true)) continue;
    const then = tried(machine, x, tree, move);
    if (then === null || !isWanted(wanted, now, then)) continue;
    const found = { ...move, answer: then };
    if (better[0]) fewest = found;
    if (better[1]) smallest = found;
  }
  return { now, fewest, smallest, oneFeature: !machine.selection };
}

const before = (a, b) => {
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return a[i] < b[i];
  return false;
};

/** x with a move made. */
export function moved(x, move) {
  const found = Float64Array.from(x);
  for (const { feature, to } of move.changes) found[feature] = to;
  return found;
}

/** The tree's answer after a move, or null where the move does not end in its leaf. */
function tried(machine, x, tree, move) {
  const cast = castFeatures(machine, moved(x, move));
  if (exitLeaf(machine, readColumns(machine, cast), tree) !== move.leaf) return null;
  return treeAnswer(machine, tree, cast, move.leaf);
}

function asMove(x, leaf, changes, scales) {
  const sizes = changes.map(({ feature, to }) =>
    scales.named.has(feature) || Number.isNaN(x[feature]) ? 1 : Math.abs(to - x[feature]) / scales.length[feature],
  );
  const size = sizes.reduce((a, b) => Math.max(a, b), 0);
  return { leaf, changes, count: changes.length, size, sum: sizes.reduce((a, b) => a + b, 0) };
}

function* boxMoves(machine, x, tree, here, scales) {
  const shape = shapeOf(machine, tree);
  const nearest = valueFinder(machine, x, shape, scales);
  for (let leaf = 0; leaf < shape.nLeaves; leaf += 1) {
    if (leaf === here) continue;
    const asked = new Map();
    for (const { test, answer } of pathTo(shape, leaf)) {
      const feature = machine.columns.feature[machine.selection[shape.test + test]];
      if (!asked.has(feature)) asked.set(feature, []);
      asked.get(feature).push({ test: shape.test + test, answer });
    }
    const changes = [];
    let isReachable = true;
    for (const [feature, tests] of asked) {
      const to = nearest(feature, tests);
      if (to === null) {
        isReachable = false;
        break;
      }
      if (!Object.is(to, x[feature])) changes.push({ feature, from: x[feature], to });
    }
    if (isReachable) yield asMove(x, leaf, changes, scales);
  }
}

/** A function to the nearest value of a feature for which some tests answer as asked, or null. */
function valueFinder(machine, x, shape, scales) {
  const { rule, setOf } = machine.columns;
  const cast = new Float64Array(1);
  const one = { ...machine, nFeatures: 1 };
  const answers = (value, { test, answer }) => {
    castFeatures(one, [value], cast);
    const read = columnValue(machine, machine.selection[test], cast[0]);
    const given = Number.isNaN(read) ? machine.missing[test] : read <= machine.t[test] ? -1 : 1;
    return given === answer;
  };
  return (feature, tests) => {
    const fits = (value) => tests.every((asked) => answers(value, asked));
    if (fits(x[feature])) return x[feature];
    const middle = scales.middle[feature];
    const from = Number.isNaN(x[feature]) ? middle : x[feature];
    const tries = new Set([middle]);
    for (const { test } of tests) {
      const column = machine.selection[test];
      if (rule[column] === Rule.MEMBER) {
        for (const category of categories(machine, feature, setOf[column])) tries.add(category);
      } else {
        tries.add(machine.t[test]).add(nextUp(machine.t[test], machine.single));
        if (rule[column] === Rule.ZERO_AS_NAN) {
          const beyond = nextUp(ZERO, machine.single);
          tries.add(0).add(ZERO).add(-ZERO).add(beyond).add(-beyond);
        }
      }
    }
    let best = null;
    for (const value of tries) {
      const isNearer = best === null || Math.abs(value - from) < Math.abs(best - from);
      if (isNearer && fits(value)) best = value;
    }
    // A label that the model does not know, where none that it knows will do.
    return best === null && machine.labels.has(feature) && fits(-1) ? -1 : best;
  };
}

/** Categories to try: the feature's labels, or those that the set names and one that it does not. */
function categories(machine, feature, which) {
  const labels = machine.labels.get(feature);
  if (labels) return labels.keys();
  const { start, members } = machine.sets;
  const own = Array.from(members.subarray(start[which], start[which + 1]));
  return [...own, (own.at(-1) ?? -1) + 1];
}

/** Of oblique tests: where moving one feature alone crosses a test, and the numbers around it. */
function* oneFeatureMoves(machine, x, tree, here, scales) {
  const shape = shapeOf(machine, tree);
  const { start, column, weight } = machine.S;
  const { feature, rule, setOf } = machine.columns;
  const cast = castFeatures(machine, x);
  const z = readColumns(machine, cast);
  const tries = new Map();
  for (let j = shape.test; j < shape.test + shape.nTests; j += 1) {
    for (let i = start[j]; i < start[j + 1]; i += 1) {
      const moving = feature[column[i]];
      if (!tries.has(moving)) tries.set(moving, new Set());
      if (rule[column[i]] === Rule.MEMBER) {
        for (const c of categories(machine, moving, setOf[column[i]])) tries.get(moving).add(c);
        continue;
      }
      let [rest, factor] = [0, 0];
      for (let o = start[j]; o < start[j + 1]; o += 1) {
        if (feature[column[o]] === moving && rule[column[o]] !== Rule.MEMBER) factor += weight[o];
        else rest += z[column[o]] * weight[o];
      }
      for (const cut of around((machine.t[j] - rest) / factor, machine.single)) tries.get(moving).add(cut);
    }
  }
  for (const [moving, values] of tries) {
    for (const value of values) {
      const changed = Float64Array.from(x);
      changed[moving] = value;
      const leaf = exitLeaf(machine, readColumns(machine, castFeatures(machine, changed)), tree);
      if (leaf === here) continue;
      yield asMove(x, leaf, [{ feature: moving, from: x[moving], to: value }], scales);
    }
  }
}

/** Numbers next to where a test turns: rounding may move that by a few last places. */
function around(cut, single) {
  if (!Number.isFinite(cut)) return [];
  const found = [rounding(single)(cut)];
  let [up, down] = [found[0], found[0]];
  for (let i = 0; i < 4; i += 1) {
    up = nextUp(up, single);
    down = nextDown(down, single);
    found.push(up, down);
  }
  const step = Math.abs(cut) * (single ? 1e-6 : 1e-14);
  return [...found, cut - step, cut + step].map(rounding(single));
}

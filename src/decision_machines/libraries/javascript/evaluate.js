// The machine's arithmetic: h = sgn(S z − t), exit leaves, p = B̄ h, and the sum in its own dtype.

import { rounding } from "./rounding.js";
import { shapeOf } from "./machine.js";
import { castFeatures, readColumns } from "./columns.js";
import { exitLeaves } from "./walk.js";

/** (S z)_j: the column that a test reads, or the weighted sum of an oblique test, term by term. */
export function selected(machine, z, test) {
  if (machine.selection) return z[machine.selection[test]];
  const { start, column, weight } = machine.S;
  const round = rounding(machine.single);
  let total = 0;
  for (let i = start[test]; i < start[test + 1]; i += 1) {
    total = round(total + round(z[column[i]] * weight[i]));
  }
  return total;
}

/** h_j: −1 (left) where (S z)_j ≤ t_j, else +1; the test's missing answer where it is NaN. */
export function answerOf(machine, z, test) {
  const q = selected(machine, z, test);
  if (Number.isNaN(q)) return machine.missing[test];
  return q <= machine.t[test] ? -1 : 1;
}

/** The leaf where z leaves a tree, counted from 0 within the tree. */
export function exitLeaf(machine, z, tree) {
  const { selection, t, missing, children, testStart } = machine;
  const start = testStart[tree];
  if (testStart[tree + 1] === start) return 0;
  let node = 0;
  while (node >= 0) {
    const test = start + node;
    const q = selection ? z[selection[test]] : selected(machine, z, test);
    const isLeft = q <= t[test] || (Number.isNaN(q) && missing[test] < 0);
    node = children[2 * test + (isLeft ? 0 : 1)];
  }
  return ~node;
}

/** h of one tree. */
export function testResults(machine, z, tree) {
  const { test, nTests } = shapeOf(machine, tree);
  return Int8Array.from({ length: nTests }, (_, j) => answerOf(machine, z, test + j));
}

/** B h of one tree in whole numbers: agreements less disagreements on each leaf's path. */
export function agreements(machine, h, tree) {
  const shape = shapeOf(machine, tree);
  const above = new Int32Array(shape.nTests);
  const found = new Int32Array(shape.nLeaves);
  for (let j = 0; j < shape.nTests; j += 1) {
    const up = shape.parent[j];
    if (up >= 0) above[j] = above[up] + shape.side[j] * h[up];
  }
  for (let i = 0; i < shape.nLeaves; i += 1) {
    const up = shape.leafParent[i];
    if (up >= 0) found[i] = above[up] + shape.leafSide[i] * h[up];
  }
  return found;
}

/** p = B̄ h: whole numbers first, divided once. The one leaf of a tree without tests has 1. */
export function similarities(machine, h, tree) {
  const { leafDepth } = shapeOf(machine, tree);
  return Float64Array.from(agreements(machine, h, tree), (n, i) => (leafDepth[i] ? n / leafDepth[i] : 1));
}

/** One value of a leaf (counted over all trees): a constant, or its linear function of x. */
export function leafValue(machine, cast, leaf, column) {
  const at = leaf * machine.width + column;
  const { linear } = machine;
  if (!linear) return machine.V[at];
  const round = rounding(linear.single);
  let total = linear.intercept[at];
  for (let i = linear.start[leaf]; i < linear.start[leaf + 1]; i += 1) {
    const value = cast[linear.feature[i]];
    if (Number.isNaN(value)) return round(machine.V[at]);
    total = round(total + round(linear.coefficient[i * machine.width + column] * round(value)));
  }
  return total;
}

/** What follows the sum over trees: division, scale, base. */
export function finish(output, total) {
  const round = rounding(output.single);
  const baseLast = !(output.aggregate === "sum" && output.base_first);
  return total.map((value, o) => {
    let found = value;
    if (output.divisor !== 1) found = round(found / round(output.divisor));
    if (output.scale !== 1) found = round(found * round(output.scale));
    return baseLast ? round(found + output.base[o]) : found;
  });
}

/** The k margins of a row whose exit leaves are known, added tree after tree. */
export function margins(machine, cast, exits) {
  const { output, nTrees } = machine;
  if (output.aggregate === "median") return [weightedMedian(machine, cast, exits)];
  const isSum = output.aggregate === "sum";
  const start = { sum: 0, min: Infinity, max: -Infinity }[nTrees ? output.aggregate : "sum"];
  const total = new Float64Array(output.k).fill(start);
  if (isSum && output.base_first) total.set(output.base);
  if (!isSum || machine.linear) return finish(output, joinLeaves(machine, cast, exits, Array.from(total)));
  // Of float32 sums, an array of that type does the rounding.
  const kept = output.single ? new Float32Array(total) : total;
  addLeaves(machine, exits, kept);
  return finish(output, Array.from(kept));
}

/** Add the values of the exit leaves, tree after tree. */
function addLeaves({ V, testStart, feeds, width, nTrees, output }, exits, total) {
  if (output.k === 1 && width === 1) {
    total[0] = addedLeaves(V, testStart, exits, nTrees, total[0], output.single);
    return;
  }
  const round = rounding(output.single);
  for (let tree = 0; tree < nTrees; tree += 1) {
    const at = (testStart[tree] + tree + exits[tree]) * width;
    if (feeds[tree] >= 0) total[feeds[tree]] += round(V[at]);
    else for (let c = 0; c < width; c += 1) total[c] += round(V[at + c]);
  }
}

/** The sum of a single output: in a variable, an addition does not wait for memory. */
function addedLeaves(V, testStart, exits, nTrees, first, single) {
  let total = first;
  if (single) {
    for (let tree = 0; tree < nTrees; tree += 1) {
      total = Math.fround(total + Math.fround(V[testStart[tree] + tree + exits[tree]]));
    }
  } else {
    for (let tree = 0; tree < nTrees; tree += 1) total += V[testStart[tree] + tree + exits[tree]];
  }
  return total;
}

/** The same for leaves that are functions, and for the least or the largest value. */
function joinLeaves(machine, cast, exits, total) {
  const { output, width, feeds, nTrees } = machine;
  const round = rounding(output.single);
  const join = { sum: (a, b) => a + b, min: Math.min, max: Math.max }[output.aggregate];
  for (let tree = 0; tree < nTrees; tree += 1) {
    const leaf = machine.testStart[tree] + tree + exits[tree];
    for (let c = 0; c < width; c += 1) {
      const o = feeds[tree] < 0 ? c : feeds[tree];
      total[o] = round(join(total[o], round(leafValue(machine, cast, leaf, c))));
    }
  }
  return total;
}

/** The lowest value that half of the weight does not exceed. */
function weightedMedian(machine, cast, exits) {
  if (!machine.nTrees) return 0;
  const values = Array.from(exits, (leaf, tree) =>
    leafValue(machine, cast, machine.testStart[tree] + tree + leaf, 0),
  );
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b] || a - b);
  const shares = [];
  let share = 0;
  for (const i of order) shares.push((share += machine.output.weights ? machine.output.weights[i] : 1));
  const found = values[order[Math.max(0, shares.findIndex((s) => s >= 0.5 * share))]];
  return rounding(machine.output.single)(found);
}

/** Everything of one row: x as cast, z, the exit leaf of every tree, and the margins. */
export function evaluate(machine, x) {
  const cast = castFeatures(machine, x);
  const z = readColumns(machine, cast);
  const exits = machine.selection
    ? exitLeaves(machine, z)
    : Int32Array.from({ length: machine.nTrees }, (_, tree) => exitLeaf(machine, z, tree));
  return { cast, z, exits, margin: margins(machine, cast, exits) };
}

// The soft tree: a leaf's weight is the product of the gates σ(±q/τ) along its path (Eq. soft).

import { shapeOf } from "../../libraries/javascript/machine.js";
import { finish, leafValue, selected } from "../../libraries/javascript/evaluate.js";

const BOUND = Number.MAX_VALUE / 4;
const FAR = 1e30;

/** (S z − t)_j; far to one side where the test reads NaN. */
function query(machine, z, test) {
  const read = selected(machine, z, test);
  if (Number.isNaN(read)) return machine.missing[test] * FAR;
  const t = Math.min(Math.max(machine.t[test], -2 * BOUND), 2 * BOUND);
  return Math.min(Math.max(read, -BOUND), BOUND) - t;
}

const sigmoid = (q) => 1 / (1 + Math.exp(-q));

/** The share that each test sends right, and the weight that reaches every test and every leaf. */
export function softTree(machine, z, tree, tau) {
  const shape = shapeOf(machine, tree);
  const right = new Float64Array(shape.nTests);
  const reach = new Float64Array(shape.nTests);
  const weights = new Float64Array(shape.nLeaves).fill(shape.nTests ? 0 : 1);
  if (shape.nTests) reach[0] = 1;
  for (let j = 0; j < shape.nTests; j += 1) {
    const q = query(machine, z, shape.test + j) / tau;
    right[j] = sigmoid(q);
    const shares = [reach[j] * sigmoid(-q), reach[j] * right[j]];
    for (let s = 0; s < 2; s += 1) {
      const child = shape.children[2 * j + s];
      if (child >= 0) reach[child] = shares[s];
      else weights[~child] = shares[s];
    }
  }
  return { right, reach, weights };
}

/** Add what one tree answers, its leaves weighed, to the outputs that it feeds. */
function addSoftTree(machine, cast, z, tree, tau, total) {
  const { width, children } = machine;
  const start = machine.testStart[tree];
  const nTests = machine.testStart[tree + 1] - start;
  const feeds = machine.feeds[tree];
  const add = (leaf, weight) => {
    for (let c = 0; c < width; c += 1) {
      total[feeds < 0 ? c : feeds] += weight * leafValue(machine, cast, start + tree + leaf, c);
    }
  };
  if (nTests === 0) add(0, 1);
  const reach = new Float64Array(nTests).fill(1, 0, 1);
  for (let j = 0; j < nTests; j += 1) {
    const q = query(machine, z, start + j) / tau;
    for (let s = 0; s < 2; s += 1) {
      const child = children[2 * (start + j) + s];
      const share = reach[j] * sigmoid(s ? q : -q);
      if (child >= 0) reach[child] = share;
      else add(~child, share);
    }
  }
}

/** The soft margins of the whole machine, or null where it takes no sum of its trees. */
export function softMargins(machine, cast, z, tau) {
  const { output } = machine;
  if (output.aggregate !== "sum") return null;
  const total = Array.from({ length: output.k }, (_, o) => (output.base_first ? output.base[o] : 0));
  for (let tree = 0; tree < machine.nTrees; tree += 1) addSoftTree(machine, cast, z, tree, tau, total);
  return finish({ ...output, single: false }, total);
}

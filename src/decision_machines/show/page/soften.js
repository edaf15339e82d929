// The soft tree: a leaf's weight is the product of the gates σ(±q/τ) along its path (Eq. soft).

import { shapeOf } from "./machine.js";
import { finish, leafValue, selected } from "./evaluate.js";

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

/** What one tree answers for each of its columns of V, its leaves weighed. */
export function softValues(machine, cast, tree, weights) {
  const { leaf } = shapeOf(machine, tree);
  const values = new Array(machine.width).fill(0);
  for (let i = 0; i < weights.length; i += 1) {
    for (let c = 0; c < machine.width; c += 1) {
      values[c] += weights[i] * leafValue(machine, cast, leaf + i, c);
    }
  }
  return values;
}

/** The soft margins of the whole machine, or null where it takes no sum of its trees. */
export function softMargins(machine, cast, z, tau) {
  const { output } = machine;
  if (output.aggregate !== "sum") return null;
  const total = Array.from({ length: output.k }, (_, o) => (output.base_first ? output.base[o] : 0));
  for (let tree = 0; tree < machine.nTrees; tree += 1) {
    const values = softValues(machine, cast, tree, softTree(machine, z, tree, tau).weights);
    values.forEach((value, c) => {
      total[machine.feeds[tree] < 0 ? c : machine.feeds[tree]] += value;
    });
  }
  return finish({ ...output, single: false }, total);
}

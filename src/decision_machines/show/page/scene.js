// Everything that follows from the state, computed once and then only drawn.

import { pathTo, shapeOf } from "../../libraries/javascript/machine.js";
import { agreements, evaluate, leafValue, selected, similarities, testResults } from "../../libraries/javascript/evaluate.js";
import { softMargins, softTree } from "./soften.js";
import { answerFor, focusOutput } from "./answer.js";

/** The tree shown, at the present x and temperature, and the answer of the whole machine. */
export function makeScene(machine, { x, tree, tau }) {
  const { cast, z, exits, margin } = evaluate(machine, x);
  const shape = shapeOf(machine, tree);
  const h = testResults(machine, z, tree);
  const exit = exits[tree];
  const path = pathTo(shape, exit);
  const onPath = new Set(path.map(({ test }) => test));
  const soft = tau > 0 ? softTree(machine, z, tree, tau) : null;
  const answer = answerFor(machine, margin);
  return {
    x, cast, z, exits, margin, shape, h, exit, path, onPath, tau, answer,
    q: Float64Array.from({ length: shape.nTests }, (_, j) => selected(machine, z, shape.test + j)),
    agree: agreements(machine, h, tree),
    p: similarities(machine, h, tree),
    weights: soft ? soft.weights : Float64Array.from({ length: shape.nLeaves }, (_, i) => (i === exit ? 1 : 0)),
    /** The weight that comes to each test. */
    reach: soft ? soft.reach : Float64Array.from({ length: shape.nTests }, (_, j) => (onPath.has(j) ? 1 : 0)),
    /** The share of it that a test sends right. */
    gate: (j) => (soft ? soft.right[j] : h[j] > 0 ? 1 : 0),
    softMargin: soft ? softMargins(machine, cast, z, tau) : null,
    focusOutput: focusOutput(machine, answer),
    holdsShares: holdsShares(machine),
    values: (leaf) => Array.from({ length: machine.width }, (_, c) => leafValue(machine, cast, shape.leaf + leaf, c)),
    outputOf: (c) => (machine.feeds[tree] < 0 ? c : machine.feeds[tree]),
  };
}

const sharing = new WeakMap();

/** Whether leaves hold a share for each class, as the trees of a classifying forest do. */
function holdsShares(machine) {
  if (!sharing.has(machine)) {
    const { classes } = machine.output;
    const isWide = classes?.length === 1 && machine.width > 1 && classes[0].length === machine.width;
    sharing.set(machine, isWide && !machine.linear && machine.V.every((value) => value >= 0));
  }
  return sharing.get(machine);
}

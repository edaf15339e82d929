// What would change the answer of the whole machine: which search can tell, and what it may claim.
//
// One tree: every leaf is tried, exact. A forest that sums its trees: the best found, with a bound
// that is proven. Everything else: one feature at a time. A search is a generator, so that the page
// stays alive; every change that it gives was tried on the machine itself.

import { evaluate } from "../../libraries/javascript/evaluate.js";
import { cellsOf } from "./cells.js";
import { movesFrom } from "./moves.js";
import { functionsOf, goalOf } from "./goals.js";
import { changeInTree } from "./tree_change.js";
import { ForestChange } from "./forest_change.js";
import { changeOfOneFeature, valuesToTry } from "./one_feature.js";

export const MOST_BOXES = 4000;

/**
 * @param limits {boxes, isOver}: how many boxes each question may look at, and whether a share of the time is spent
 * @returns {method, fewest, smallest, isProvenNone, …}, a change with `isFewest` or `isSmallest`
 *     where that is proven, else with `countAtLeast` or `sizeAtLeast`, which are
 */
export function* searchChange(machine, x, scales, wanted, limits) {
  const goal = goalOf(machine, evaluate(machine, x).margin, wanted);
  const cells = machine.selection ? yield* cellsOf(machine) : null;
  const moves = cells ? movesFrom(machine, cells, x, scales) : { x };
  if (cells && machine.nTrees === 1) {
    const { fewest, smallest } = yield* changeInTree(machine, cells, moves, goal);
    const isExact = !machine.linear;
    return {
      method: "tree", isProvenNone: isExact && !fewest,
      fewest: fewest && { ...fewest, isFewest: isExact, countAtLeast: 1 },
      smallest: smallest && { ...smallest, isSmallest: isExact, sizeAtLeast: 0 },
    };
  }
  const functions = cells && functionsOf(machine, goal);
  if (functions) return { method: "forest", ...(yield* new ForestChange(machine, cells, moves, goal, functions, limits).search()) };
  const tries = yield* valuesToTry(machine, cells, moves, scales);
  const { change, tried, of } = yield* changeOfOneFeature(machine, x, tries, goal, limits.isOver);
  const isFewest = change !== null;
  return {
    method: "one feature", isProvenNone: false, tried, of,
    fewest: change && { ...change, isFewest, countAtLeast: 1 },
    smallest: change && { ...change, isSmallest: false, sizeAtLeast: 0 },
  };
}

// What would change the answer of one tree: the nearest x in every leaf's box, all leaves tried.
//
// Within a leaf the answer is one, and each feature can be moved into the leaf's box without regard
// to the others. So the nearest point of every box is all that has to be looked at: exact.

import { margins } from "../../libraries/javascript/evaluate.js";
import { treeSpan } from "../../libraries/javascript/machine.js";
import { castFeatures } from "../../libraries/javascript/columns.js";
import { goesLeft } from "./cells.js";
import { asChange } from "./moves.js";

const LEAVES_AT_ONCE = 256;

/** {fewest, smallest}, each null where no leaf that can be reached meets the goal. */
export function* changeInTree(machine, cells, moves, goal) {
  const { nTests } = treeSpan(machine, 0);
  let [fewest, smallest] = [null, null];
  if (!nTests) return { fewest, smallest };
  const boxes = new Map();
  const box = (feature) => {
    if (!boxes.has(feature)) boxes.set(feature, new Box(cells, moves, feature));
    return boxes.get(feature);
  };
  // Depth first; an entry with `undo` takes back what the test above it asked for.
  const stack = [{ node: 0, asks: null }];
  let seen = 0;
  while (stack.length) {
    const { node, asks, undo } = stack.pop();
    if (undo) {
      undo.back();
      continue;
    }
    if (asks) {
      stack.push({ undo: box(asks.feature) });
      if (!box(asks.feature).ask(asks.test, asks.isLeft)) continue;
    }
    if (node >= 0) {
      const feature = cells.featureOf(node);
      for (const side of [1, 0]) stack.push({ node: machine.children[2 * node + side], asks: { feature, test: node, isLeft: side === 0 } });
      continue;
    }
    seen += 1;
    if (seen % LEAVES_AT_ONCE === 0) yield;
    const place = moves.own.slice();
    for (const [feature, own] of boxes) place[feature] = own.nearest();
    const move = asChange(moves, place);
    const isFewer = !fewest || before([move.count, move.size, move.sum], [fewest.count, fewest.size, fewest.sum]);
    const isSmaller = !smallest || before([move.size, move.count, move.sum], [smallest.size, smallest.count, smallest.sum]);
    if (!isFewer && !isSmaller) continue;
    if (!goal.isMet(margins(machine, castFeatures(machine, move.x), [~node]))) continue;
    move.leaf = ~node;
    if (isFewer) fewest = move;
    if (isSmaller) smallest = move;
  }
  return { fewest, smallest };
}

const before = (a, b) => {
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return a[i] < b[i];
  return false;
};

/** The cells of one feature that the tests on a path leave, and the way back up. */
class Box {
  constructor(cells, moves, feature) {
    Object.assign(this, { cells, moves, past: [] });
    [this.first, this.end] = [cells.start[feature], cells.start[feature + 1] - 1];
    this.state = { low: this.first, high: this.end, hasNan: moves.own[feature] === this.end, mask: null };
    [this.own, this.home] = [moves.own[feature], moves.home[feature]];
  }

  /** Keep the cells that answer so; false where none is left that x may move to. */
  ask(test, isLeft) {
    const { cells, first, end } = this;
    this.past.push(this.state);
    let { low, high, hasNan, mask } = this.state;
    if (cells.odd.has(test)) {
      mask = mask?.slice() ?? new Uint8Array(end - first).fill(1);
      for (let c = low; c < high; c += 1) mask[c - first] &= goesLeft(cells, test, c) === isLeft;
    } else if (isLeft) high = Math.min(high, cells.cut[test]);
    else low = Math.max(low, cells.cut[test]);
    hasNan &&= goesLeft(cells, test, end) === isLeft;
    this.state = { low, high, hasNan, mask };
    return this.nearest() >= 0;
  }

  back() {
    this.state = this.past.pop();
  }

  /** The nearest cell to x, or -1. Away from x, distances of the cells of one feature only grow. */
  nearest() {
    const { first, end, home, own, moves } = this;
    const { low, high, hasNan, mask } = this.state;
    if (own === end && hasNan) return end;
    const isOpen = (c) => (!mask || mask[c - first]) && moves.distance[c] < Infinity;
    let [below, above] = [Math.min(home, high - 1), Math.max(home, low)];
    while (below >= low && !isOpen(below)) below -= 1;
    while (above < high && !isOpen(above)) above += 1;
    if (below < low) return above < high ? above : -1;
    if (above >= high) return below;
    return moves.distance[above] < moves.distance[below] ? above : below;
  }
}

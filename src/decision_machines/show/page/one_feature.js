// Where boxes of inputs cannot be bounded: one feature moved at a time, the whole machine asked.

import { rounding } from "../../libraries/javascript/rounding.js";
import { nextDown, nextUp } from "./numbers.js";
import { Rule } from "../../libraries/javascript/machine.js";
import { castFeatures, readColumns } from "../../libraries/javascript/columns.js";
import { evaluate } from "../../libraries/javascript/evaluate.js";

/** Values of one feature at which some test may turn, and their distances: [{feature, to, size}]. */
export function* valuesToTry(machine, cells, moves, scales) {
  if (cells) return cellValues(cells, moves);
  return yield* crossings(machine, moves.x, scales);
}

function cellValues(cells, { value, distance, own }) {
  const found = [];
  own.forEach((_, feature) => {
    for (let c = cells.start[feature]; c < cells.start[feature + 1]; c += 1) {
      if (distance[c] > 0 && distance[c] < Infinity) found.push({ feature, to: value[c], size: distance[c] });
    }
  });
  return found;
}

/** Of oblique tests: where moving one feature alone crosses a test, and the numbers around it. */
function* crossings(machine, x, scales) {
  const { start, column, weight } = machine.S;
  const { feature, rule, setOf } = machine.columns;
  const z = readColumns(machine, castFeatures(machine, x));
  const tries = new Map();
  for (let j = 0; j < machine.nTests; j += 1) {
    for (let i = start[j]; i < start[j + 1]; i += 1) {
      const moving = feature[column[i]];
      if (!tries.has(moving)) tries.set(moving, new Set());
      if (rule[column[i]] === Rule.MEMBER) {
        for (const category of categories(machine, moving, setOf[column[i]])) tries.get(moving).add(category);
        continue;
      }
      let [rest, factor] = [0, 0];
      for (let o = start[j]; o < start[j + 1]; o += 1) {
        if (feature[column[o]] === moving && rule[column[o]] !== Rule.MEMBER) factor += weight[o];
        else rest += z[column[o]] * weight[o];
      }
      for (const turn of around((machine.t[j] - rest) / factor, machine.single)) tries.get(moving).add(turn);
    }
    if (j % 256 === 255) yield;
  }
  const found = [];
  for (const [moving, values] of tries) {
    const isWhole = scales.named.has(moving) || Number.isNaN(x[moving]);
    for (const to of values) {
      if (!Object.is(to, x[moving])) found.push({ feature: moving, to, size: isWhole ? 1 : Math.abs(to - x[moving]) / scales.length[moving] });
    }
  }
  return found;
}

/** The smallest of these changes after which the goal is met, or null; and how many were tried. */
export function* changeOfOneFeature(machine, x, tries, goal, isOver) {
  tries.sort((a, b) => a.size - b.size);
  for (const [tried, { feature, to, size }] of tries.entries()) {
    if (isOver(1)) return { change: null, tried, of: tries.length };
    const moved = Float64Array.from(x);
    moved[feature] = to;
    if (goal.isMet(evaluate(machine, moved).margin)) {
      const changes = [{ feature, from: x[feature], to }];
      return { change: { x: moved, changes, count: 1, size, sum: size }, tried: tries.length, of: tries.length };
    }
    yield;
  }
  return { change: null, tried: tries.length, of: tries.length };
}

/** Categories to try: the feature's labels, or those that the set names and one that it does not. */
function categories(machine, feature, which) {
  const labels = machine.labels.get(feature);
  if (labels) return labels.keys();
  const { start, members } = machine.sets;
  const own = Array.from(members.subarray(start[which], start[which + 1]));
  return [...own, (own.at(-1) ?? -1) + 1];
}

/** Numbers next to where a test turns: rounding may move that by a few last places. */
function around(turn, single) {
  if (!Number.isFinite(turn)) return [];
  const found = [rounding(single)(turn)];
  let [up, down] = [found[0], found[0]];
  for (let i = 0; i < 4; i += 1) {
    up = nextUp(up, single);
    down = nextDown(down, single);
    found.push(up, down);
  }
  const step = Math.abs(turn) * (single ? 1e-6 : 1e-14);
  return [...found, turn - step, turn + step].map(rounding(single));
}

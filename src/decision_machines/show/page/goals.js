// What is wanted of the machine, asked of its margins; and linear functions that bound it.
//
// Where even the most that the trees can add up to stays below what a goal needs, a box of inputs
// holds none that meets it. Every way to decide that is bounded here is one of two: a margin that
// must reach a number, or a margin that must reach another.

import { nextDown } from "./numbers.js";
import { decide } from "../../libraries/javascript/decisions.js";
import { respond } from "../../libraries/javascript/links.js";

const answerTo = ({ output }, margin) => decide(output, margin, respond(output, margin));

const textOf = ({ labels, values }) => (labels ?? values).join(",");

/**
 * A question that margins answer.
 *
 * @param wanted {kind: "other"}, {kind: "label", index}, or {kind: "atLeast" | "atMost", output, value}
 */
export function goalOf(machine, margin, wanted) {
  const before = answerTo(machine, margin);
  const isMet = {
    other: (found) => textOf(found) !== textOf(before),
    label: ({ labels }) => labels[0] === wanted.index,
    atLeast: ({ values }) => values[wanted.output] >= wanted.value,
    atMost: ({ values }) => values[wanted.output] <= wanted.value,
  }[wanted.kind];
  return { wanted, before, isMet: (found) => isMet(answerTo(machine, found)) };
}

/** The functions of a goal, each the sum over trees of one output less another; null where there are none. */
export function functionsOf(machine, goal) {
  const { bound } = machine.output;
  if (machine.linear || bound === null) return null;
  if (bound === "classes") return betweenClasses(machine, goal);
  if (bound === "values") return oneValue(machine, goal.wanted);
  return oneMargin(machine, goal, bound === "second_margin" ? 1 : 0);
}

/** One class must reach another: any of them the present one, or the wanted one all others. */
function betweenClasses(machine, { wanted, before }) {
  const { output } = machine;
  const pairs = [];
  let ways;
  if (wanted.kind === "label") {
    for (let c = 0; c < output.k; c += 1) if (c !== wanted.index) pairs.push({ plus: wanted.index, minus: c });
    ways = [pairs.map((_, q) => q)];
  } else {
    before.labels.forEach((label, g) => {
      const own = output.groups[g] + label;
      for (let c = output.groups[g]; c < output.groups[g + 1]; c += 1) if (c !== own) pairs.push({ plus: c, minus: own });
    });
    ways = pairs.map((_, q) => [q]);
  }
  // A softmax rounds responses that differ by less than this to equals, and the first one wins.
  const least = 8 * epsilon(output.single);
  return withSlack(machine, pairs.map((pair) => ({ ...pair, need: 0, least })), ways);
}

function oneValue(machine, wanted) {
  if (wanted.kind === "atLeast") return withSlack(machine, [{ plus: wanted.output, minus: -1, need: wanted.value }], [[0]]);
  if (wanted.kind === "atMost") return withSlack(machine, [{ plus: -1, minus: wanted.output, need: -wanted.value }], [[0]]);
  return null;
}

/** A goal on one margin: where it must reach at least, or at most, found by bisection. */
function oneMargin(machine, goal, which) {
  const terms = [];
  const ways = [];
  for (const [low, high] of metRanges(machine, goal, which)) {
    const way = [];
    for (const [plus, minus, end] of [[which, -1, low], [-1, which, high]]) {
      if (!Number.isFinite(end)) continue;
      way.push(terms.length);
      terms.push({ plus, minus, need: plus < 0 ? -end : end });
    }
    ways.push(way);
  }
  // A browser's exponential may not rise at every last place: no bound rests on one.
  const isValue = goal.wanted.kind.startsWith("at") && machine.output.link !== "identity";
  const least = isValue ? (machine.output.single ? 1e-4 : 1e-9) : 0;
  return withSlack(machine, terms.map((term) => ({ ...term, least: least * (1 + Math.abs(term.need)) })), ways);
}

/** The margins that meet a goal, as at most two ranges: answers rise with the margin. */
function metRanges(machine, { wanted, before, isMet }, which) {
  const { single, k } = machine.output;
  const most = single ? 2 ** 128 - 2 ** 104 : Number.MAX_VALUE;
  const margins = (m) => Array.from({ length: k }, (_, o) => (o === which ? m : 0));
  const meets = (m) => isMet(margins(m));
  const [atBottom, atTop] = [meets(-most), meets(most)];
  if (atBottom && atTop && wanted.kind === "other") {
    const value = (m) => answerTo(machine, margins(m)).values[0];
    const above = leastNumber((m) => value(m) > before.values[0], single);
    const below = leastNumber((m) => value(m) >= before.values[0], single);
    return [...(above === null ? [] : [[above, Infinity]]), ...(below === null || below <= -most ? [] : [[-Infinity, nextDown(below, single)]])];
  }
  if (atBottom && atTop) return [[-Infinity, Infinity]];
  if (atTop) return [[leastNumber(meets, single), Infinity]];
  if (atBottom) return [[-Infinity, nextDown(leastNumber((m) => !meets(m), single), single)]];
  return [];
}

/** The least finite number for which something holds that, once true, stays true; by bisection over all of them. */
export function leastNumber(holds, single) {
  const half = single ? 0x7f7fffffn : 0x7fefffffffffffffn;
  const at = (place) => {
    const size = single ? floatOf(Number(place < 0n ? -place : place)) : doubleOf(place < 0n ? -place : place);
    return place < 0n ? -size : size;
  };
  if (!holds(at(half))) return null;
  let [low, high] = [-half, half];
  while (low < high) {
    const middle = (low + high) >> 1n;
    if (holds(at(middle))) high = middle;
    else low = middle + 1n;
  }
  return at(low);
}

const doubles = new Float64Array(1);
const doublePlaces = new BigInt64Array(doubles.buffer);
const singles = new Float32Array(1);
const singlePlaces = new Int32Array(singles.buffer);
const doubleOf = (place) => ((doublePlaces[0] = place), doubles[0]);
const floatOf = (place) => ((singlePlaces[0] = place), singles[0]);

const epsilon = (single) => (single ? 2 ** -23 : 2 ** -52);

/** The functions with their constants, and by how much rounding may move the machine's own sums. */
function withSlack(machine, terms, ways) {
  const { output } = machine;
  const factor = output.scale / output.divisor;
  const constants = Array.from(output.base, (base) => (output.aggregate === "sum" && output.base_first ? base * factor : base));
  const largest = largestSums(machine);
  const slack = constants.map((c, o) => (machine.nTrees + 8) * epsilon(output.single) * (largest[o] + Math.abs(c)));
  const of = (values, o) => (o < 0 ? 0 : values[o]);
  return {
    factor,
    ways,
    terms: terms.map((term) => ({
      ...term,
      // What is compared with 0: the sum over trees, with this added.
      offset: of(constants, term.plus) - of(constants, term.minus) - term.need,
      slack: of(slack, term.plus) + of(slack, term.minus) + (term.least ?? 0) + 4 * epsilon(false) * Math.abs(term.need),
    })),
  };
}

const sums = new WeakMap();

/** For each output the sum over trees of the largest value that any leaf gives. */
function largestSums(machine) {
  if (sums.has(machine)) return sums.get(machine);
  const { V, width, feeds, testStart, nTrees, output } = machine;
  const factor = Math.abs(output.scale / output.divisor);
  const found = new Float64Array(output.k);
  for (let tree = 0; tree < nTrees; tree += 1) {
    const [first, end] = [testStart[tree] + tree, testStart[tree + 1] + tree + 1];
    for (let c = 0; c < width; c += 1) {
      let most = 0;
      for (let leaf = first; leaf < end; leaf += 1) most = Math.max(most, Math.abs(V[leaf * width + c]));
      found[feeds[tree] < 0 ? c : feeds[tree]] += most * factor;
    }
  }
  sums.set(machine, found);
  return found;
}

/** The margins that the trees could give to an output, if they did not hinder each other. */
export function outputRange(machine, o) {
  const { V, width, feeds, testStart, nTrees, output } = machine;
  const factor = output.scale / output.divisor;
  let [low, high] = [0, 0];
  for (let tree = 0; tree < nTrees; tree += 1) {
    if (feeds[tree] >= 0 && feeds[tree] !== o) continue;
    const column = feeds[tree] < 0 ? o : 0;
    let [least, most] = [Infinity, -Infinity];
    for (let leaf = testStart[tree] + tree; leaf <= testStart[tree + 1] + tree; leaf += 1) {
      const value = V[leaf * width + column] * factor;
      [least, most] = [Math.min(least, value), Math.max(most, value)];
    }
    [low, high] = [low + least, high + most];
  }
  return [low, high];
}

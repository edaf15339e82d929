// Every feature's values cut into cells that no test tells apart.
//
// Cells of a feature are intervals in ascending order, open below and closed above in the columns'
// own dtype, and then one cell for NaN. A test answers the same throughout a cell, so questions
// about all inputs become questions about cells.

import { rounding } from "../../libraries/javascript/rounding.js";
import { nextDown, nextUp } from "./numbers.js";
import { Rule } from "../../libraries/javascript/machine.js";
import { ZERO, columnValue } from "../../libraries/javascript/columns.js";

const BEYOND_CATEGORIES = 2 ** 31;
const known = new WeakMap();

/** The cells of a machine; a generator, so that a large machine is cut in several slices of time. */
export function* cellsOf(machine) {
  if (!known.has(machine)) known.set(machine, yield* cutFeatures(machine));
  return known.get(machine);
}

function* cutFeatures(machine) {
  const { columns, selection, nTests, nFeatures } = machine;
  const { start: testStart, order } = byFeature(machine);
  const start = new Int32Array(nFeatures + 1);
  const ends = [];
  const cells = {
    /** Where each feature's cells start among all cells; its NaN cell is the last of them. */
    start,
    /** The upper end of every cell of numbers, feature by feature. */
    ends,
    /** The tests of each feature. */
    tests: (feature) => order.subarray(testStart[feature], testStart[feature + 1]),
    /** Of tests whose left side is a run of cells from the lowest one on: the first cell that is not. */
    cut: new Int32Array(nTests),
    /** Where a test sends NaN, its column's rule applied. */
    nanLeft: new Uint8Array(nTests),
    /** The cells that other tests send left, counted from the feature's first. */
    odd: new Map(),
    featureOf: (test) => columns.feature[selection[test]],
  };
  const missing = rounding(machine.single)(machine.missingValue);
  for (let feature = 0; feature < nFeatures; feature += 1) {
    const own = cells.tests(feature);
    ends.push(own.length ? endsOf(machine, own, missing) : Float64Array.of(Infinity));
    start[feature + 1] = start[feature] + ends[feature].length + 1;
    const masks = new Map();
    for (const test of own) {
      const rule = columns.rule[selection[test]];
      if (Number.isNaN(missing) && (rule === Rule.VALUE || rule === Rule.NAN_AS_ZERO)) {
        cells.cut[test] = start[feature] + countUpTo(ends[feature], machine.t[test]);
        cells.nanLeft[test] = rule === Rule.NAN_AS_ZERO ? 0 <= machine.t[test] : machine.missing[test] < 0;
      } else cells.odd.set(test, maskOf(machine, test, ends[feature], missing, masks));
    }
    yield;
  }
  return cells;
}

/** Tests in the order of their features. */
function byFeature({ columns, selection, nTests, nFeatures }) {
  const start = new Int32Array(nFeatures + 1);
  for (let j = 0; j < nTests; j += 1) start[columns.feature[selection[j]] + 1] += 1;
  for (let i = 0; i < nFeatures; i += 1) start[i + 1] += start[i];
  const next = start.slice();
  const order = new Int32Array(nTests);
  for (let j = 0; j < nTests; j += 1) order[next[columns.feature[selection[j]]]++] = j;
  return { start, order };
}

/** Upper ends of the cells of one feature, infinity last, from all that its tests can tell apart. */
function endsOf(machine, tests, missing) {
  const { columns, selection, t, single } = machine;
  const found = [Infinity];
  const asked = new Set();
  for (const test of tests) {
    const column = selection[test];
    const rule = columns.rule[column];
    if (rule !== Rule.MEMBER) found.push(t[test]);
    if (asked.has(column)) continue;
    asked.add(column);
    if (rule === Rule.ZERO_AS_NAN) found.push(nextDown(-ZERO, single), ZERO);
    if (rule === Rule.MEMBER) categoryEnds(machine, columns.setOf[column], found);
  }
  if (!Number.isNaN(missing)) found.push(nextDown(missing, single), missing);
  const sorted = Float64Array.from(found).sort();
  return sorted.filter((end, i) => i === 0 || end !== sorted[i - 1]);
}

/** Ends that set every member of a set apart from its neighbours. */
function categoryEnds({ sets, single }, which, found) {
  const below = (value) => {
    const rounded = rounding(single)(value);
    return rounded >= value ? nextDown(rounded, single) : rounded;
  };
  found.push(below(0), below(BEYOND_CATEGORIES));
  if (sets.lowest < 0) found.push(-1);
  for (let i = sets.start[which]; i < sets.start[which + 1]; i += 1) {
    const member = sets.members[i];
    if (member >= BEYOND_CATEGORIES) continue;
    found.push(member === 0 && sets.lowest < 0 ? -1 : below(member), below(member + 1));
    if (sets.whole) found.push(below(member), nextUp(below(member), single));
  }
}

/** Which cells a test sends left, read as the machine reads them; NaN is the last cell. */
function maskOf(machine, test, ends, missing, masks) {
  const column = machine.selection[test];
  const [t, isMissingLeft] = [machine.t[test], machine.missing[test] < 0];
  const key = `${column} ${t} ${isMissingLeft}`;
  if (!masks.has(key)) {
    const mask = new Uint8Array(ends.length + 1);
    for (let c = 0; c <= ends.length; c += 1) {
      const value = c < ends.length && ends[c] !== missing ? ends[c] : NaN;
      const z = columnValue(machine, column, value);
      mask[c] = Number.isNaN(z) ? isMissingLeft : z <= t;
    }
    masks.set(key, mask);
  }
  return masks.get(key);
}

/** How many of these ascending numbers are at most a value. */
function countUpTo(ends, value) {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The cell, among all cells, in which a value lies that was already cast. */
export function cellOf(cells, feature, value) {
  const ends = cells.ends[feature];
  if (Number.isNaN(value)) return cells.start[feature] + ends.length;
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] < value) low = middle + 1;
    else high = middle;
  }
  return cells.start[feature] + low;
}

/** Whether a test sends a cell left. */
export function goesLeft(cells, test, cell) {
  const feature = cells.featureOf(test);
  const odd = cells.odd.get(test);
  if (odd) return odd[cell - cells.start[feature]] === 1;
  return cell === cells.start[feature + 1] - 1 ? cells.nanLeft[test] === 1 : cell < cells.cut[test];
}

// What may be changed in x, and how far each change takes it.
//
// A feature may move to any number, one without fractions (a category, or a feature whose rows hold
// whole numbers only) to any whole number, one with labels to any of them whose text is known. None
// becomes missing.

import { nextUp } from "./numbers.js";
import { Rule } from "../../libraries/javascript/machine.js";
import { castFeatures } from "../../libraries/javascript/columns.js";
import { cellOf } from "./cells.js";

/**
 * For every cell the nearest value to x in it and its distance, infinite where x may not move to.
 *
 * @param scales a length and a middle of each feature; the features `named` whose changes all count
 *     as a whole length, as does one from missing to a number; those that are `whole`; and
 *     the codes of those whose labels are `unnamed`, known by a hash alone
 */
export function movesFrom(machine, cells, x, scales) {
  const cast = castFeatures(machine, x);
  const nCells = cells.start.at(-1);
  const value = new Float64Array(nCells).fill(NaN);
  const distance = new Float64Array(nCells).fill(Infinity);
  const own = Int32Array.from(cast, (read, feature) => cellOf(cells, feature, read));
  // Where the search for the nearest cell begins: of what is missing, in the middle of the slider.
  const home = own.map((cell, feature) => (Number.isNaN(cast[feature]) ? cellOf(cells, feature, scales.middle[feature]) : cell));
  for (let feature = 0; feature < machine.nFeatures; feature += 1) {
    if (cells.tests(feature).length) fill(machine, cells, feature, cast[feature], scales, value, distance);
    value[own[feature]] = x[feature];
    distance[own[feature]] = 0;
  }
  return { x, own, home, value, distance };
}

function fill(machine, cells, feature, read, scales, value, distance) {
  const ends = cells.ends[feature];
  const first = cells.start[feature];
  const labels = machine.labels.get(feature);
  const isCategory = Boolean(labels) || cells.tests(feature).every((j) => machine.columns.rule[machine.selection[j]] === Rule.MEMBER);
  const isWhole = isCategory || scales.whole.has(feature);
  const [least, most] = [isCategory ? 0 : -Infinity, labels ? labels.length - 1 : Infinity];
  const from = Number.isNaN(read) ? scales.middle[feature] : read;
  const countsWhole = Number.isNaN(read) || scales.named.has(feature);
  const unnamed = scales.unnamed.get(feature);
  const missing = machine.single ? Math.fround(machine.missingValue) : machine.missingValue;
  for (let c = 0; c < ends.length; c += 1) {
    let low = Math.max(c ? nextUp(ends[c - 1], machine.single) : -Infinity, least);
    let high = Math.min(ends[c], most);
    if (isWhole) [low, high] = [Math.ceil(low), Math.floor(high)];
    if (low > high) continue;
    let nearest = Math.min(Math.max(from, low), high);
    // The middle of a slider need not be whole, nor a number of the dtype.
    if (isWhole && !Number.isInteger(nearest)) nearest = Math.round(nearest) <= high ? Math.round(nearest) : Math.floor(nearest);
    if (machine.single && Math.fround(nearest) !== nearest) nearest = inside(nearest, low, high);
    if (unnamed) nearest = named(unnamed, nearest, low, high);
    if (!Number.isFinite(nearest) || nearest === missing) continue;
    value[first + c] = nearest;
    // A move so small that its distance rounds to 0 is still a move.
    distance[first + c] = countsWhole ? 1 : Math.abs(nearest - read) / scales.length[feature] || Number.MIN_VALUE;
  }
}

/** The code nearest to one, between two of them, whose label has a known text; NaN where none has. */
function named(unnamed, code, low, high) {
  const known = Array.from({ length: high - low + 1 }, (_, i) => low + i).filter((one) => !unnamed.has(one));
  return known.reduce((best, one) => (Math.abs(one - code) < Math.abs(best - code) ? one : best), known[0] ?? NaN);
}

/** A float32 near a number, between two of them. */
function inside(value, low, high) {
  return Math.min(Math.max(Math.fround(value), low), high);
}

/** x with the features of these cells changed. */
export function rowAt({ x, own, value }, place) {
  const row = Float64Array.from(x);
  place.forEach((cell, feature) => {
    if (cell !== own[feature]) row[feature] = value[cell];
  });
  return row;
}

/** What a change is: the features that it moves, how many, and how far the furthest of them goes. */
export function asChange(moves, place) {
  const changes = [];
  let [size, sum] = [0, 0];
  place.forEach((cell, feature) => {
    if (cell === moves.own[feature]) return;
    changes.push({ feature, from: moves.x[feature], to: moves.value[cell] });
    size = Math.max(size, moves.distance[cell]);
    sum += moves.distance[cell];
  });
  return { x: rowAt(moves, place), changes, count: changes.length, size, sum };
}

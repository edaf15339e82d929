// How raw features x become the columns z that tests read.

import { rounding } from "./rounding.js";
import { Rule } from "./machine.js";

export const ZERO = Math.fround(1e-35);

/** x as the machine reads it: in its dtype, its own mark for nothing as NaN. */
export function castFeatures(machine, x, cast = new Float64Array(machine.nFeatures)) {
  const round = rounding(machine.single);
  const missing = round(machine.missingValue);
  for (let i = 0; i < cast.length; i += 1) {
    const value = round(x[i]);
    cast[i] = value === missing ? NaN : value;
  }
  return cast;
}

/** z of one column for a feature already cast. */
export function columnValue(machine, column, value) {
  switch (machine.columns.rule[column]) {
    case Rule.NAN_AS_ZERO:
      return Number.isNaN(value) ? 0 : value;
    case Rule.ZERO_AS_NAN:
      return Math.abs(value) <= ZERO ? NaN : value;
    case Rule.MEMBER:
      return memberValue(machine.sets, machine.columns.setOf[column], value);
    default:
      return value;
  }
}

/** The columns z of features already cast. */
export function readColumns(machine, cast, z = new Float64Array(machine.columns.rule.length)) {
  const { feature, rule } = machine.columns;
  for (let c = 0; c < z.length; c += 1) {
    const value = cast[feature[c]];
    z[c] = rule[c] === Rule.VALUE ? value : columnValue(machine, c, value);
  }
  return z;
}

/** 0 (left), 1 (right) or NaN (the test's missing answer) for a category. */
function memberValue(sets, which, value) {
  if (Number.isNaN(value)) return NaN;
  const answer = memberAnswer(sets, which, value);
  return answer === 0 ? NaN : answer > 0 ? 1 : 0;
}

/** The category that a number stands for; null where it is none. */
export function categoryOf(sets, value) {
  const isCategory = (value > sets.lowest || value === 0) && value < 2 ** 31;
  return isCategory && !(sets.whole && value !== Math.trunc(value)) ? Math.trunc(value) : null;
}

function memberAnswer(sets, which, value) {
  const category = categoryOf(sets, value);
  if (category === null) return sets.outside[which];
  let [low, high] = [sets.start[which], sets.start[which + 1]];
  const end = high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sets.members[middle] < category) low = middle + 1;
    else high = middle;
  }
  return low < end && sets.members[low] === category ? sets.answer[low] : sets.outside[which];
}

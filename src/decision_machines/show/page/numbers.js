// Numbers: reading what people type, writing what the machine holds, and their neighbours.

import { rounding } from "../../libraries/javascript/rounding.js";

/** Rounded to so many digits, as mantissa and exponent. */
const ofDigits = (value, n) => value.toExponential(n - 1);

/** The whole number and the power of ten of such a text; seventeen digits are more than a float64 holds. */
function textParts(text) {
  const [mantissa, exponent] = text.split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}

/** As people write it: 30, 0.25, 1e-35. */
function plainNumber(text) {
  const [mantissa, power] = textParts(text);
  if (mantissa === 0n) return "0";
  const sign = mantissa < 0n ? "-" : "";
  const figures = String(mantissa).replace("-", "");
  const digits = figures.replace(/0+$/, "");
  const rest = power + figures.length - digits.length;
  const exponent = rest + digits.length - 1;
  if (exponent <= -5 || exponent >= 16) {
    return `${sign}${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ""}e${exponent}`;
  }
  if (rest >= 0) return sign + digits + "0".repeat(rest);
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

const infinite = (value) => (value > 0 ? "inf" : "-inf");

/** All digits of a number: the fewest that read back as the same float32 or float64. */
export function full(value, single) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return infinite(value);
  if (Object.is(value, -0)) return "-0";
  const round = rounding(single);
  for (let n = 1; n <= 17; n += 1) {
    const text = ofDigits(value, n);
    if (round(Number(text)) === value) return plainNumber(text);
  }
  return full(value, false); // a number that is no float32 has all its digits
}

/**
 * The shortest number that splits a dtype's values where x ≤ t does.
 *
 * Where `whole`, x is known to be a whole number. {number, isLeft}: where isLeft the number itself goes left ("≤" and ">"), else right ("<", "≥").
 * As `boundary` in machine/digits.py; the tests hold both to the same texts.
 */
export function boundary(t, single, whole = false) {
  if (!Number.isFinite(t)) return { number: infinite(t), isLeft: true };
  // Beyond these numbers neighbours are a whole number or more apart.
  if (whole && Math.abs(t) < (single ? 2 ** 24 : 2 ** 53)) {
    const low = Math.floor(t);
    return shortest(low, low + 1, false);
  }
  return shortest(t, nextUp(t, single), single);
}

/** The shortest number at t, at `high`, or, where `single`, between these neighbours. */
function shortest(t, high, single) {
  if (high === Infinity) return { number: "inf", isLeft: false };
  for (let n = 1; n <= 17; n += 1) {
    let text = ofDigits(t, n);
    const above = ofDigits(high, n);
    const exact = [];
    if (Number(text) === t) exact.push({ number: plainNumber(text), isLeft: true });
    if (Number(above) === high) exact.push({ number: plainNumber(above), isLeft: false });
    if (exact.length) return exact.reduce((a, b) => (b.number.length < a.number.length ? b : a));
    if (single) {
      if (Number(text) < t) {
        const [mantissa, power] = textParts(text);
        text = `${mantissa + 1n}e${power}`;
      }
      const found = Number(text);
      // Between two float32 numbers either sign is true; the one that is true of the text as a
      // float32 as well.
      if (t < found && found < high) return { number: plainNumber(text), isLeft: Math.fround(found) === t };
    }
  }
  throw new Error("seventeen digits tell all float64 numbers apart");
}

/** Four digits (all of a whole number below a million), and whether that is all there is. */
export function fewDigits(value) {
  if (!Number.isFinite(value)) return [full(value, false), true];
  if (value === Math.trunc(value) && Math.abs(value) < 1e6) return [String(value || 0), true];
  const text = ofDigits(value, 4);
  return [plainNumber(text), Number(text) === value];
}

/** Four digits, marked with ≈ where there are more: for cells that are small. */
export function short(value) {
  const [text, isExact] = fewDigits(value);
  return isExact ? text : `≈${text}`;
}

/** A share in whole percent, marked where it is rounded; never 0 or 100 unless it is. */
export function wholePercent(share) {
  const value = 100 * share;
  const nearest = Math.round(value);
  if (nearest === 100 && value < 100) return ">99%";
  if (nearest === 0 && value > 0) return "<1%";
  return `${nearest === value ? "" : "≈"}${nearest}%`;
}

/** A share as a percentage that never rounds to 0 or 100 unless it is. */
export function percent(share) {
  const value = 100 * share;
  if (value === 0 || value === 100) return `${value} %`;
  if (value < 0.1) return "< 0.1 %";
  if (value > 99.9) return "> 99.9 %";
  return `${value.toFixed(1)} %`;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const INFINITY = /^([+-]?)(inf|infinity|∞)$/i;

/** What a person typed: {value}, or {error} in words. NaN means missing. */
export function parse(text) {
  const typed = text.trim().replace("−", "-");
  if (typed === "") return { error: "Empty. Type a number, or tick “missing”." };
  if (/^nan$/i.test(typed)) return { value: NaN };
  const infinite = INFINITY.exec(typed);
  if (infinite) return { value: infinite[1] === "-" ? -Infinity : Infinity };
  if (!NUMBER.test(typed)) {
    const comma = typed.includes(",") && NUMBER.test(typed.replace(",", "."));
    return { error: comma ? "Use a point for decimals, not a comma." : `“${typed}” is not a number.` };
  }
  const value = Number(typed);
  if (!Number.isFinite(value)) return { error: "Too large for a float64. Type inf for infinity." };
  return { value };
}

const double = new Float64Array(1);
const doubleBits = new BigInt64Array(double.buffer);
const float = new Float32Array(1);
const floatBits = new Int32Array(float.buffer);

/** The next number above, in float32 or float64. */
export function nextUp(value, single) {
  if (Number.isNaN(value) || value === Infinity) return value;
  if (value === 0) return single ? 2 ** -149 : Number.MIN_VALUE;
  if (single) {
    float[0] = value;
    floatBits[0] += value > 0 ? 1 : -1;
    return float[0];
  }
  double[0] = value;
  doubleBits[0] += value > 0 ? 1n : -1n;
  return double[0];
}

/** The next number below. */
export const nextDown = (value, single) => -nextUp(-value, single);

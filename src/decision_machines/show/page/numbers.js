// Numbers: reading what people type, writing what the machine holds, and their neighbours.

/** Rounding to the dtype: to float32, or not at all. */
export const rounding = (single) => (single ? Math.fround : (value) => value);

/** All digits of a number: the fewest that read back as the same float32 or float64. */
export function full(value, single) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Object.is(value, -0)) return "−0";
  let text = String(value);
  if (single) {
    for (let digits = 1; digits <= 9; digits += 1) {
      const tried = Number(value.toPrecision(digits));
      if (Math.fround(tried) === Math.fround(value)) {
        text = String(tried);
        break;
      }
    }
  }
  return text.replace("-", "−");
}

/** Four digits, whole numbers whole: for cells that are small. */
export function short(value) {
  if (!Number.isFinite(value)) return full(value, false);
  if (value === Math.trunc(value) && Math.abs(value) < 1e6) return String(value || 0).replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("e+", "e").replaceAll("-", "−");
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

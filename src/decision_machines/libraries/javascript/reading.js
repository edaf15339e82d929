// Rows as people have them: arrays, or objects by feature name; labels, gaps, numbers in ranges.

import { unpack, number } from "./machine.js";
import { labelHash } from "./city_hash.js";

/** How rows of this machine are read: a function from a row to numbers, NaN where missing. */
export function rowReader(names, reading) {
  const place = new Map(names.map((name, i) => [name, i]));
  const labels = new Map(
    Object.entries(reading.labels).map(([f, known]) => [Number(f), new Map(known.map((v, i) => [v, i]))]),
  );
  const edges = new Map(
    Object.entries(reading.edges).map(([f, bounds]) => [Number(f), bounds.map(number)]),
  );
  const accepted = reading.accepted && {
    low: unpack(reading.accepted.low),
    high: unpack(reading.accepted.high),
    missing: unpack(reading.accepted.missing),
    refused: new Map(Object.entries(reading.accepted.refused).map(([f, codes]) => [Number(f), codes])),
  };
  const refuse = (f, found, remedy) => {
    throw new RangeError(`While reading a row: ${JSON.stringify(names[f])} is ${found}. What to do: ${remedy}.`);
  };

  function codeOf(f, value) {
    const known = labels.get(f);
    if (value === null || value === undefined || (typeof value === "number" && Number.isNaN(value))) {
      if (reading.hashes) refuse(f, String(value), "give its categories as text or whole numbers");
      return known.get(null) ?? NaN;
    }
    if (reading.hashes) {
      const isWhole = typeof value === "bigint" || Number.isInteger(value);
      if (typeof value !== "string" && !isWhole) {
        refuse(f, String(value), "give its categories as text or whole numbers");
      }
      return known.get(labelHash(String(value))) ?? -1;
    }
    const found = known.get(value);
    if (found !== undefined) return found;
    if (reading.refusesNew) refuse(f, JSON.stringify(value), "give a label that the model was trained with");
    return reading.unknownIsMissing ? NaN : -1;
  }

  function numberOf(f, value) {
    if (value === null || value === undefined) return NaN;
    if (typeof value === "boolean") return Number(value);
    if (typeof value !== "number") refuse(f, JSON.stringify(value) ?? typeof value, "give a number, or null where it is missing");
    return value;
  }

  function check(f, value, code) {
    if (Number.isNaN(value)) {
      if (!accepted.missing[f]) refuse(f, "missing", "give it a value");
      return;
    }
    if (accepted.refused.get(f)?.includes(code)) refuse(f, "not what the model was fitted to", "give one of its values");
    if (!labels.has(f) && (value < accepted.low[f] || value > accepted.high[f])) {
      refuse(f, String(value), `give a number from ${accepted.low[f]} to ${accepted.high[f]}`);
    }
  }

  /** How many bounds lie below a number. */
  function rangeOf(bounds, value) {
    if (Number.isNaN(value)) return NaN;
    let [low, high] = [0, bounds.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bounds[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function values(row) {
    if (Array.isArray(row) || ArrayBuffer.isView(row)) {
      if (row.length !== names.length) {
        throw new RangeError(
          `While reading a row: it has ${row.length} values; the model reads ${names.length}. ` +
            "What to do: give them in the order of `features`.",
        );
      }
      return row;
    }
    if (row === null || typeof row !== "object") {
      throw new TypeError("While reading a row: it is neither an array nor an object. What to do: give either.");
    }
    for (const name of names) {
      if (!Object.hasOwn(row, name)) {
        throw new RangeError(
          `While reading a row: it has no ${JSON.stringify(name)}. What to do: give it, or null where it is missing.`,
        );
      }
    }
    const found = new Array(names.length);
    for (const [name, i] of place) found[i] = row[name];
    return found;
  }

  const isPlain = !labels.size && !edges.size && !accepted;
  return (row) => {
    const given = values(row);
    const isNamed = given !== row;
    if (isPlain && given instanceof Float64Array) return given;
    const x = new Float64Array(names.length);
    if (isPlain) {
      for (let f = 0; f < x.length; f += 1) x[f] = numberOf(f, given[f]);
      return x;
    }
    for (let f = 0; f < x.length; f += 1) {
      const value = given[f];
      // A number in an array is a code already, unless the model's arrays hold labels.
      const isLabel = labels.has(f) && (isNamed || reading.encodesArrays || typeof value === "string");
      let code = isLabel ? codeOf(f, value) : numberOf(f, value);
      const raw = code;
      if (edges.has(f)) code = rangeOf(edges.get(f), code);
      if (accepted) check(f, raw, code);
      x[f] = code;
    }
    return x;
  };
}

// What a test asks for, in words that are true of every value that its column's dtype can hold. As
// machine/conditions.py writes them; the tests hold both to the same texts.

import { boundary, fewDigits, full, nextDown } from "./numbers.js";
import { Rule } from "../../libraries/javascript/machine.js";
import { ZERO, categoryOf } from "../../libraries/javascript/columns.js";

const FEW_LABELS = 6;
const FEW_TERMS = 4;
const QUOTED = /^\s|\s$|[,{}"\\\n\r\t]|^$/;

/** One label, in quotes where it could not be told apart from what stands around it. */
export const labelText = (text) => (QUOTED.test(text) ? JSON.stringify(text) : text);

/** The condition under which a test answers as given: "petal width ≤ 0.8". */
export function condition(machine, test, answer = -1) {
  if (!machine.selection) return weightedSum(machine, test, answer);
  const column = machine.selection[test];
  if (machine.columns.rule[column] === Rule.MEMBER) return membershipText(machine, test, column, answer);
  return comparisonText(machine, test, column, answer);
}

/** The same in two parts: ["petal width", "≤ 0.8"]. */
export function conditionParts(machine, test, answer = -1) {
  const text = condition(machine, test, answer);
  const name = machine.selection
    ? machine.names[machine.columns.feature[machine.selection[test]]]
    : text.slice(0, text.lastIndexOf(answer < 0 ? " ≤ " : " > "));
  return [name, text.slice(name.length + 1)];
}

/** A test that compares a column with its threshold. */
function comparisonText(machine, test, column, answer) {
  const name = machine.names[machine.columns.feature[column]];
  const rule = machine.columns.rule[column];
  const t = machine.t[test];
  let [lower, upper] = answer > 0 ? [t, null] : [null, t];
  const holds = (value) => (lower === null || value > lower) && (upper === null || value <= upper);
  const missing = rule === Rule.NAN_AS_ZERO ? holds(0) : machine.missing[test] === answer;
  const ways = [];
  const refused = [];
  if (rule === Rule.ZERO_AS_NAN) {
    let isNamed;
    [lower, upper, isNamed] = aroundZero(lower, upper, missing, machine.single);
    if (isNamed && missing) ways.push("zero");
    if (isNamed && !missing) refused.push(`${name} is not zero`);
  }
  const mark = machine.single ? Math.fround(machine.missingValue) : machine.missingValue;
  if (!Number.isNaN(mark) && holds(mark) !== missing) {
    if (missing) ways.push(full(mark, false));
    else refused.push(`${name} ≠ ${full(mark, false)}`);
  }
  if (missing) ways.push("missing");
  if (lower === Infinity) return ways.length ? `${name} is ${ways.join(" or ")}` : `${name} > inf (never)`;
  const isFree = lower === null && (upper === null || upper === Infinity);
  if (isFree && ways.length === 1 && ways[0] === "missing") return `${name} is anything`;
  const isWhole = machine.integers.has(machine.columns.feature[column]);
  const said = [intervalText(name, lower, upper, machine.single, isWhole), ...refused].join(" and ");
  return [said, ...ways.map((way) => namedWay(name, way))].join(" or ");
}

const namedWay = (name, way) => (way === "zero" || way === "missing" ? way : `${name} = ${way}`);

/** The numbers above `lower` and not above `upper`, of which one is null. */
function intervalText(name, lower, upper, single, isWhole) {
  if (lower !== null) {
    const { number, isLeft } = boundary(lower, single, isWhole);
    return `${name} ${isLeft ? ">" : "≥"} ${number}`;
  }
  if (upper === null || upper === Infinity) return `${name} is present`;
  const { number, isLeft } = boundary(upper, single, isWhole);
  return `${name} ${isLeft ? "≤" : "<"} ${number}`;
}

/** The bounds where numbers near zero are missing, and whether zero must be named besides. */
function aroundZero(lower, upper, missing, single) {
  const below = nextDown(-ZERO, single); // the last before zero
  const hasBelow = lower === null || lower < below;
  const hasAbove = upper === null || upper > ZERO;
  if (missing) {
    const touches = (lower === null || lower <= ZERO) && (upper === null || upper >= below);
    if (!touches) return [lower, upper, true];
    return [hasBelow ? lower : below, hasAbove ? upper : ZERO, false];
  }
  const overlaps = (lower === null || lower < ZERO) && (upper === null || upper > below);
  if (!overlaps) return [lower, upper, false];
  if (hasBelow && hasAbove) return [lower, upper, true];
  return hasBelow ? [lower, below, false] : [ZERO, upper, false];
}

/** A test that looks a category up. */
function membershipText(machine, test, column, answer) {
  const { start, members, answer: answers, outside } = machine.sets;
  const which = machine.columns.setOf[column];
  // z is 0, 1 or NaN; a test stands between 0 and 1, or sends both one way.
  const side = (code) => (code === 0 ? machine.missing[test] : (code < 0 ? 0 : 1) <= machine.t[test] ? -1 : 1);
  const excludes = side(outside[which]) === answer;
  const codes = [];
  for (let i = start[which]; i < start[which + 1]; i += 1) {
    if (members[i] < 2 ** 31 && (side(answers[i]) === answer) !== excludes) codes.push(members[i]);
  }
  const missing = machine.missing[test] === answer;
  return categoriesText(machine, machine.columns.feature[column], codes, excludes, missing);
}

function categoriesText(machine, feature, codes, excludes, missing) {
  const name = machine.names[feature];
  const mark = machine.single ? Math.fround(machine.missingValue) : machine.missingValue;
  const ways = [];
  let refused = "";
  if (!Number.isNaN(mark) && (codes.includes(categoryOf(machine.sets, mark)) !== excludes) !== missing) {
    if (missing) ways.push(full(mark, false));
    else refused = ` and ${name} ≠ ${full(mark, false)}`;
  }
  if (missing) ways.push("missing");
  if (!codes.length && !excludes) return ways.length ? `${name} is ${ways.join(" or ")}` : `${name} in {} (never)`;
  if (!codes.length && ways.length === 1 && ways[0] === "missing") return `${name} is anything`;
  const said = codes.length ? `${name} ${excludes ? "not in" : "in"} ${setOfLabels(machine, feature, codes)}` : `${name} is present`;
  return [said + refused, ...ways.map((way) => namedWay(name, way))].join(" or ");
}

function setOfLabels(machine, feature, codes) {
  const labels = machine.labels.get(feature);
  const shown = codes.slice(0, FEW_LABELS).map((code) => labelText(labels?.[code] ?? String(code)));
  const more = codes.length > FEW_LABELS ? `, … ${codes.length} in all` : "";
  return `{${shown.join(", ")}${more}}`;
}

/** A test of a weighted sum: its largest terms in few digits, marked where that is not all. */
function weightedSum(machine, test, answer) {
  const { start, column, weight } = machine.S;
  const terms = [];
  for (let i = start[test]; i < start[test + 1]; i += 1) terms.push([weight[i], column[i]]);
  const size = terms.length;
  terms.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).splice(FEW_TERMS);
  const few = terms.map(([w]) => fewDigits(Math.abs(w)));
  const [bound, isExact] = fewDigits(machine.t[test]);
  let said = "";
  terms.forEach(([w, c], i) => {
    const sign = w < 0 ? "-" : "+";
    said += (said ? ` ${sign} ` : sign.replace("+", "")) + `${few[i][0]}·${termName(machine, c)}`;
  });
  const more = size > FEW_TERMS ? ` + … ${size} terms` : "";
  const mark = isExact && few.every(([, exact]) => exact) ? "" : "≈ ";
  const missing = machine.missing[test] === answer ? " or missing" : "";
  return `${mark}${said || "0"}${more} ${answer < 0 ? "≤" : ">"} ${bound}${missing}`;
}

/** What a weight multiplies: a feature, or 1 for some of its categories. */
function termName(machine, column) {
  const feature = machine.columns.feature[column];
  const name = machine.names[feature];
  switch (machine.columns.rule[column]) {
    case Rule.MEMBER: {
      const { start, members, answer, outside } = machine.sets;
      const which = machine.columns.setOf[column];
      const excludes = outside[which] > 0;
      const codes = [];
      for (let i = start[which]; i < start[which + 1]; i += 1) {
        if ((answer[i] > 0) !== excludes) codes.push(members[i]);
      }
      return `[${categoriesText(machine, feature, codes, excludes, false)}]`;
    }
    case Rule.NAN_AS_ZERO:
      return `(${name}, missing as 0)`;
    case Rule.ZERO_AS_NAN:
      return `(${name}, zero as missing)`;
    default:
      return name;
  }
}

// What each feature adds to the margin of this x: Shapley values by paths, as in explain/shapley.

import { answerOf } from "../../libraries/javascript/evaluate.js";
import { short } from "./numbers.js";
import { html } from "./svg.js";

const MOST_TESTS_ATTRIBUTED = 100000;
const MOST_FEATURES_SHOWN = 8;

const gaussRules = new Map();

/** n points and weights on 0..1, exact for polynomials of degree 2 n − 1. */
export function gaussLegendre(n) {
  if (gaussRules.has(n)) return gaussRules.get(n);
  const y = new Float64Array(n);
  const weight = new Float64Array(n);
  for (let i = 0; i < n; i += 1) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (n + 0.5));
    let slope = 1;
    for (let step = 0; step < 50; step += 1) {
      let [value, before] = [1, 0];
      for (let k = 1; k <= n; k += 1) [value, before] = [((2 * k - 1) * x * value - (k - 1) * before) / k, value];
      slope = (n * (x * value - before)) / (x * x - 1);
      const move = value / slope;
      x -= move;
      if (Math.abs(move) < 1e-16) break;
    }
    y[i] = (1 - x) / 2;
    weight[i] = 1 / ((1 - x * x) * slope * slope);
  }
  gaussRules.set(n, { y, weight });
  return gaussRules.get(n);
}

/** The most distinct features on a path of a tree. */
function mostFeatures(machine, start) {
  const seen = new Map();
  const below = (node) => {
    if (node < 0) return seen.size;
    const feature = machine.columns.feature[machine.selection[start + node]];
    seen.set(feature, (seen.get(feature) ?? 0) + 1);
    const found = Math.max(below(machine.children[2 * (start + node)]), below(machine.children[2 * (start + node) + 1]));
    if (seen.get(feature) === 1) seen.delete(feature);
    else seen.set(feature, seen.get(feature) - 1);
    return found;
  };
  return below(0);
}

/** Add one tree's values to phi; its mean over the covers comes back. */
function attributeTree(machine, z, tree, column, phi) {
  const start = machine.testStart[tree];
  const leaf = start + tree;
  const value = (node) => machine.V[(leaf + ~node) * machine.width + column];
  if (machine.testStart[tree + 1] === start) return value(~0);
  const { y, weight } = gaussLegendre(Math.max(1, Math.ceil(mostFeatures(machine, start) / 2)));
  const state = new Map(); // feature → share of cover that its tests leave, and whether x takes them
  const visit = (node, P) => {
    if (node < 0) return { H: P.map(() => value(node)), mean: value(node) };
    const test = start + node;
    const feature = machine.columns.feature[machine.selection[test]];
    const before = state.get(feature);
    const [share, takes] = before ?? [1, true];
    const isLeft = answerOf(machine, z, test) < 0;
    const c = machine.share[test];
    const delta = takes ? (isLeft ? 1 : 0) - c : 0;
    const g = y.map((point) => share * (1 - point) + point);
    const a = y.map((point, q) => c + delta * (before ? point / g[q] : point));
    state.set(feature, [share * c, takes && isLeft]);
    const left = visit(machine.children[2 * test], P.map((p, q) => a[q] * p));
    state.set(feature, [share * (1 - c), takes && !isLeft]);
    const right = visit(machine.children[2 * test + 1], P.map((p, q) => p - a[q] * p));
    if (before) state.set(feature, before);
    else state.delete(feature);
    let sum = 0;
    const H = P.map((p, q) => {
      const D = left.H[q] - right.H[q];
      sum += (before ? (p * share) / (g[q] * g[q]) : p) * D;
      return right.H[q] + a[q] * D;
    });
    phi[feature] += delta * sum;
    return { H, mean: right.mean + c * (left.mean - right.mean) };
  };
  return visit(0, weight).mean;
}

/** Values of all features for one output, and the base that they add to; null where there are none. */
export function attribute(machine, z, wanted) {
  if (!machine.share || machine.nTests > MOST_TESTS_ATTRIBUTED) return null;
  const { output, width, feeds } = machine;
  const phi = new Float64Array(machine.nFeatures);
  let base = output.base_first ? output.base[wanted] : 0;
  for (let tree = 0; tree < machine.nTrees; tree += 1) {
    if (feeds[tree] >= 0 && feeds[tree] !== wanted) continue;
    base += attributeTree(machine, z, tree, width > 1 ? wanted : 0, phi);
  }
  const factor = output.scale / output.divisor;
  return { phi: phi.map((v) => v * factor), base: base * factor + (output.base_first ? 0 : output.base[wanted]) };
}

/** The values as bars to both sides of a middle, largest first, from the base to the margin. */
export function attributionBars(machine, found) {
  const { phi, base } = found;
  const order = Array.from(phi, (_, f) => f).filter((f) => phi[f] !== 0).sort((p, q) => Math.abs(phi[q]) - Math.abs(phi[p]) || p - q);
  const shown = order.slice(0, MOST_FEATURES_SHOWN).map((f) => [machine.names[f], phi[f]]);
  const rest = order.slice(MOST_FEATURES_SHOWN);
  if (rest.length) shown.push([`${rest.length} more`, rest.reduce((sum, f) => sum + phi[f], 0)]);
  const most = Math.max(...shown.map(([, v]) => Math.abs(v)), Number.MIN_VALUE);
  const signed = (v) => (v < 0 ? "−" : "+") + Number(Math.abs(v).toPrecision(4));
  const item = ([name, v]) => {
    const bar = html("span", { class: `added-bar ${v < 0 ? "less" : "more"}` });
    bar.style.width = `${(50 * Math.abs(v)) / most}%`;
    return html("li", { "data-added": v }, html("span", { class: "share-name" }, name), html("span", { class: "share-track added" }, bar), html("span", { class: "share-number" }, signed(v)));
  };
  const total = phi.reduce((sum, v) => sum + v, base);
  return html("div", { class: "added-block", id: "attribution", "data-base": base, "data-total": total },
    html("h3", {}, "What each feature adds"),
    html("p", { class: "muted small" }, `From ${short(base)}, with no feature known, to the margin ${short(total)}: exact Shapley values by the training weights of the leaves.`),
    html("ul", { class: "shares", "aria-label": "What each feature adds to the margin" }, ...shown.map(item)));
}

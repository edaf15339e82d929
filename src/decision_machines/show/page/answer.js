// The answer of the whole machine: prediction, responses, margins.

import { full, percent } from "./numbers.js";
import { decide, knowsDecision, outputName, probabilities } from "../../libraries/javascript/decisions.js";
import { knowsLink, respond } from "../../libraries/javascript/links.js";
import { attribute, attributionBars } from "./attribution.js";
import { byId, html } from "./svg.js";

const MOST_ROWS_SHOWN = 8;

/** A response in the digits in which every exponential agrees. */
export const approximate = (value, single) => full(Number(value.toPrecision(single ? 6 : 12)), false);

/** Margin, response and prediction of a row; null for what the page cannot compute. */
export function answerFor(machine, margin) {
  const { output } = machine;
  const response = knowsLink(output.link) ? respond(output, margin) : null;
  const decided = response && knowsDecision(output.decision) ? decide(output, margin, response) : null;
  return { margin, response, decided, shares: response && probabilities(output, response) };
}

/** The prediction in words. */
export function predictionText(machine, { decided }) {
  if (!decided) return "–";
  if (decided.labels) return decided.labels.map((label, g) => machine.output.classes[g][label]).join(", ");
  const { link, decision, single } = machine.output;
  const isExact = link === "identity" || decision !== "response";
  return decided.values.map((v) => (isExact ? full(v, single) : approximate(v, single))).join(", ");
}

/** The output of most interest: that of the predicted class, else the first. */
export function focusOutput(machine, { decided }) {
  const { output } = machine;
  return decided?.labels && output.k > 1 ? output.groups[0] + decided.labels[0] : 0;
}

export function showAnswer(machine, answer, scene, actual) {
  const { output } = machine;
  const parts = [html("p", { class: "prediction", id: "prediction" }, predictionText(machine, answer))];
  if (actual !== null) {
    parts.push(html("p", { class: "actual" }, "Given for this row: ", html("b", {}, actual)));
  }
  if (answer.shares) parts.push(bars(output.classes[0], answer.shares, answer.decided?.labels?.[0]));
  parts.push(table(machine, answer, scene));
  if (!answer.response) {
    parts.push(html("p", { class: "notice" }, `The link “${output.link}” is not computed in this page: margins only.`));
  }
  const added = attribute(machine, scene.z, scene.focusOutput ?? 0);
  if (added) parts.push(attributionBars(machine, added));
  byId("answer").replaceChildren(...parts);
}

function bars(classes, shares, chosen) {
  const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a] || a - b);
  const shown = order.slice(0, MOST_ROWS_SHOWN).sort((a, b) => a - b);
  const list = html("ul", { class: "shares", "aria-label": "Probabilities" });
  for (const i of shown) {
    const bar = html("span", { class: "share-bar" });
    bar.style.width = `${100 * Math.min(1, Math.max(0, shares[i])) || 0}%`;
    list.append(
      html("li", { class: i === chosen ? "chosen" : null },
        html("span", { class: "share-name" }, (i === chosen ? "▸ " : "") + classes[i]),
        html("span", { class: "share-track" }, bar),
        html("span", { class: "share-number" }, percent(shares[i]))),
    );
  }
  const holder = html("div", {}, list);
  if (order.length > shown.length) {
    holder.append(html("p", { class: "muted small" }, `The ${shown.length} most probable of ${order.length} classes.`));
  }
  return holder;
}

/** Margin, response and soft margin of one output, a line for each. */
function lines(machine, { margin, response }, scene, isLinked) {
  const { output } = machine;
  const line = (name, text, attributes = {}) => html("tr", {}, html("th", { scope: "row" }, name), html("td", attributes, text));
  const body = html("tbody", {}, line("margin", full(margin[0], output.single), { "data-margin": 0 }));
  if (isLinked) body.append(line("response", approximate(response[0], output.single)));
  if (scene.softMargin) body.append(line(`soft, τ = ${full(scene.tau, false)}`, approximate(scene.softMargin[0], true)));
  return html("table", {}, body);
}

function table(machine, { margin, response }, scene) {
  const { output } = machine;
  const isLinked = response && output.link !== "identity" && response.length === margin.length;
  if (margin.length === 1) return html("div", { class: "table-holder" }, lines(machine, { margin, response }, scene, isLinked), unsummed(output, scene));
  const heads = ["", "margin", ...(isLinked ? ["response"] : []), ...(scene.softMargin ? [`soft, τ = ${full(scene.tau, false)}`] : [])];
  const body = html("tbody");
  const focus = scene.focusOutput;
  const order = margin.map((_, o) => o);
  const shown = order.length <= MOST_ROWS_SHOWN ? order : [...order].sort((a, b) => margin[b] - margin[a]).slice(0, MOST_ROWS_SHOWN).sort((a, b) => a - b);
  for (const o of shown) {
    const row = html("tr", { class: o === focus && margin.length > 1 ? "chosen" : null },
      html("th", { scope: "row" }, outputName(output, o)),
      html("td", { "data-margin": o }, full(margin[o], output.single)));
    if (isLinked) row.append(html("td", {}, approximate(response[o], output.single)));
    if (scene.softMargin) row.append(html("td", {}, approximate(scene.softMargin[o], true)));
    body.append(row);
  }
  const holder = html("div", { class: "table-holder" },
    html("table", {}, html("thead", {}, html("tr", {}, heads.map((text) => html("th", { scope: "col" }, text)))), body));
  if (order.length > shown.length) holder.append(html("p", { class: "muted small" }, `The ${shown.length} largest of ${order.length} margins.`));
  holder.append(...unsummed(output, scene));
  return holder;
}

const unsummed = (output, scene) =>
  scene.tau > 0 && !scene.softMargin ? [html("p", { class: "notice" }, `The machine takes the ${output.aggregate} of its trees, which has no soft sum.`)] : [];

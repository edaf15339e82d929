// What would change the answer of the whole machine: what is wanted, and what was found and proven.

import { full, nextDown, parse } from "./numbers.js";
import { evaluate } from "../../libraries/javascript/evaluate.js";
import { decide, knowsDecision, outputName } from "../../libraries/javascript/decisions.js";
import { knowsLink, respond } from "../../libraries/javascript/links.js";
import { answerFor, predictionText } from "./answer.js";
import { outputRange } from "./goals.js";
import { MOST_BOXES, searchChange } from "./change_search.js";
import { plural, valueName } from "./words.js";
import { byId, html } from "./svg.js";

const PATIENCE = 150;
/** Milliseconds that one search may compute, and that it may compute before the page is drawn again. */
const MOST_TIME = 4000;
const SLICE = 12;
const MOST_OUTPUTS = 50;

/** The features that tests ask for by category. */
const categorical = (machine) => Array.from(machine.columns.feature).filter((_, c) => machine.columns.setOf[c] >= 0);

/** How far a change of each feature counts: by its slider, or as a whole where it names something. */
export function changeScales(machine, spans, { whole, unnamed }) {
  return {
    length: Float64Array.from({ length: machine.nFeatures }, (_, i) => spans[2 * i + 1] - spans[2 * i] || 1),
    middle: Float64Array.from({ length: machine.nFeatures }, (_, i) => (spans[2 * i] + spans[2 * i + 1]) / 2),
    named: new Set([...machine.labels.keys(), ...categorical(machine)]),
    whole: new Set(whole),
    unnamed: new Map(unnamed.map(([feature, codes]) => [feature, new Set(codes)])),
  };
}

export class Change {
  constructor(machine, scales, { onTry }) {
    Object.assign(this, { machine, scales, onTry });
    this.found = html("div", { class: "changes", "aria-live": "polite" });
    const { output } = machine;
    if (!machine.nTrees || !knowsLink(output.link) || !knowsDecision(output.decision)) {
      byId("change").append(html("p", { class: "muted" }, "This page cannot compute the answer, so it cannot search for another."));
      return;
    }
    this.list = html("select", { id: "wanted" });
    this.field = html("input", { type: "text", inputmode: "decimal", class: "number-field", id: "wanted-value", "aria-label": "The value wanted", autocomplete: "off", hidden: "" });
    this.error = html("p", { class: "field-error", role: "alert" });
    this.list.append(...this.#options().map(([value, text]) => html("option", { value }, text)));
    this.list.addEventListener("change", () => {
      this.#offer();
      this.#find();
    });
    this.field.addEventListener("input", () => this.#find());
    byId("change").append(html("p", { class: "want" }, html("label", { for: "wanted" }, "To get"), this.list, this.field, this.error), this.found);
  }

  /** What can be asked for: another class or one of them, or a value of an output. */
  #options() {
    const { output, nTrees } = this.machine;
    const zero = new Array(output.k).fill(0);
    const { labels } = decide(output, zero, respond(output, zero));
    if (labels) return [["other", "another class"], ...(output.classes.length === 1 ? output.classes[0].map((label, i) => [`label ${i}`, label]) : [])];
    if (!["response", "margin"].includes(output.decision)) return [["other", "another answer"]];
    const values = Array.from({ length: Math.min(output.k, MOST_OUTPUTS) }, (_, o) => o).flatMap((o) => {
      const name = output.k > 1 ? `${outputName(output, o)} ` : "";
      return [[`atLeast ${o}`, `${name}at least`], [`atMost ${o}`, `${name}at most`]];
    });
    return nTrees === 1 ? [["other", "another value"], ...values] : values;
  }

  /** A value to begin with: a tenth of what the trees can add up to away from the present one. */
  #offer() {
    const [kind, output] = this.list.value.split(" ");
    this.field.hidden = !kind.startsWith("at");
    if (this.field.hidden) return;
    const { machine } = this;
    const [low, high] = outputRange(machine, Number(output));
    const step = (kind === "atLeast" ? 0.1 : -0.1) * (high - low);
    const margin = evaluate(machine, this.x).margin.map((m, o) => (o === Number(output) ? m + step : m));
    const value = answerFor(machine, margin).decided.values[Number(output)];
    this.field.value = String(Number(value.toPrecision(3)));
  }

  /** Look again soon, when x has come to rest. */
  update(x) {
    const isFirst = !this.x;
    this.x = x;
    if (!this.list) return;
    if (isFirst) this.#offer();
    this.#stop();
    this.found.dataset.state = "searching";
    this.waiting = setTimeout(() => this.#find(), PATIENCE);
  }

  #stop() {
    clearTimeout(this.waiting);
  }

  /** What is asked for now, or null where the value is not a number. */
  #wanted() {
    const [kind, which] = this.list.value.split(" ");
    if (kind === "label") return { kind, index: Number(which) };
    if (!kind.startsWith("at")) return { kind };
    const { value, error } = parse(this.field.value);
    const isGood = !error && Number.isFinite(value);
    this.field.setAttribute("aria-invalid", isGood ? "false" : "true");
    this.error.textContent = isGood ? "" : error ?? "A finite number is needed.";
    return isGood ? { kind, output: Number(which), value } : null;
  }

  #find() {
    this.#stop();
    const wanted = this.#wanted();
    if (!wanted) return;
    let spent = 0;
    const search = searchChange(this.machine, this.x, this.scales, wanted, { boxes: MOST_BOXES, isOver: (share) => spent > share * MOST_TIME });
    this.found.dataset.state = "searching";
    const go = () => {
      const start = performance.now();
      let step;
      do {
        step = search.next();
      } while (!step.done && performance.now() - start < SLICE);
      spent += performance.now() - start;
      if (step.done) this.#show(step.value);
      else {
        if (spent > 20 * SLICE && this.found.dataset.said !== "searching") this.#say("Searching…");
        this.waiting = setTimeout(go);
      }
    };
    go();
  }

  #say(text) {
    this.found.dataset.said = "searching";
    this.found.replaceChildren(html("p", { class: "muted" }, text));
  }

  #show(result) {
    const { fewest, smallest } = result;
    const isOne = fewest && smallest && fewest.x.every((value, i) => Object.is(value, smallest.x[i]));
    const cards = [];
    if (isOne) cards.push(this.#card(result.method === "one feature" ? "Smallest change of one feature" : "Fewest features, and smallest change", { ...smallest, ...fewest }, proofOf(result, true, true)));
    else {
      if (fewest) cards.push(this.#card("Fewest features", fewest, proofOf(result, true, false)));
      if (smallest) cards.push(this.#card("Smallest change", smallest, proofOf(result, false, true)));
    }
    if (!cards.length) cards.push(html("p", { class: "muted" }, noneFound(this.machine, result)));
    else if (this.machine.linear) {
      cards.push(html("p", { class: "muted small" }, "Leaves hold linear functions: other leaves are tried, not other answers within one."));
    }
    this.found.replaceChildren(...cards);
    this.found.dataset.state = "done";
    delete this.found.dataset.said;
  }

  #card(title, change, proof) {
    const { machine, scales } = this;
    const list = html("ul", {}, change.changes.map(({ feature, from, to }) =>
      html("li", {}, html("b", {}, machine.names[feature]), ": ", valueName(machine, feature, from), " → ", html("b", {}, this.#target(feature, to)))));
    const button = html("button", { type: "button", class: "try" }, "Try it");
    button.addEventListener("click", () => this.onTry(change.x));
    const isNamed = change.size === 1 && change.changes.some(({ feature }) => scales.named.has(feature));
    const size = isNamed ? "" : `, each by at most ${slider(change.size, Math.ceil)}`;
    return html("div", { class: "change-card" },
      html("div", { class: "change-head" }, html("h3", {}, title), button),
      list,
      html("p", { class: "muted small" }, "Prediction: ", html("b", { class: "promised" }, predictionText(machine, answerFor(machine, evaluate(machine, change.x).margin))),
        ` · ${plural(change.count, "feature")}${size}. `, html("span", { class: "proof" }, proof)));
  }

  /** A number in all its digits, because its neighbour may be on the other side; said simply, too. */
  #target(feature, value) {
    const { machine } = this;
    const all = valueName(machine, feature, value);
    const below = nextDown(value, machine.single);
    const isJustAbove = !machine.labels.has(feature) && valueName(machine, feature, below).length + 3 < all.length;
    return isJustAbove ? `just above ${valueName(machine, feature, below)} (${all})` : all;
  }
}

/** A part of a slider in per cent, three digits, rounded to the side on which what is said stays true. */
function slider(size, round) {
  const value = 100 * size;
  const step = 10 ** (Math.floor(Math.log10(value)) - 2);
  const rounded = Number((round(value / step) * step).toPrecision(3));
  return `${full(rounded, false)} % of its slider`;
}

/** What is proven of a change: that none is better, or how good any other could be at most. */
function proofOf({ method, fewest, smallest }, isOfCount, isOfSize) {
  if (method === "one feature") return "One feature was moved at a time; changes of several are not searched for such a machine.";
  const proven = [];
  const open = [];
  if (isOfCount) (fewest.isFewest ? proven : open).push(fewest.isFewest ? "fewest" : `at least ${plural(fewest.countAtLeast, "feature")} must change`);
  if (isOfSize) (smallest.isSmallest ? proven : open).push(smallest.isSmallest ? "smallest" : `some feature must move by at least ${slider(smallest.sizeAtLeast, Math.floor)}`);
  const said = [];
  if (proven.length) said.push(`Proven ${proven.join(" and ")}.`);
  if (open.length) said.push(`Best found. Proven: ${open.join(", and ")}.`);
  return said.join(" ");
}

function noneFound(machine, { method, isProvenNone, sizeAtLeast, tried, of }) {
  if (isProvenNone) return "No change gives this answer: proven for every value and known label, nothing made missing.";
  if (method === "forest") return `None was found. Proven: some feature must move by at least ${slider(sizeAtLeast, Math.floor)}.`;
  if (method === "tree") return "No leaf that can be reached gives this answer at its nearest point.";
  const some = tried < of ? ` (${tried} of ${of} values tried)` : "";
  return `No change of one feature alone gives this answer${some}. Changes of several are not searched for such a machine.`;
}

// The counterfactual of the present x, for the tree shown.

import { full, nextDown } from "./numbers.js";
import { answersLabels, moved, nearestChange } from "./nearest.js";
import { outputName } from "./decisions.js";
import { plural, valueName } from "./words.js";
import { byId, html } from "./svg.js";

const PATIENCE = 120;

/** The features that tests ask for by category. */
const categorical = (machine) => Array.from(machine.columns.feature).filter((_, c) => machine.columns.setOf[c] >= 0);

export class Change {
  constructor(machine, spans, { onTry }) {
    this.machine = machine;
    this.onTry = onTry;
    this.scales = {
      length: Float64Array.from({ length: machine.nFeatures }, (_, i) => spans[2 * i + 1] - spans[2 * i] || 1),
      middle: Float64Array.from({ length: machine.nFeatures }, (_, i) => (spans[2 * i] + spans[2 * i + 1]) / 2),
      named: new Set([...machine.labels.keys(), ...categorical(machine)]),
    };
    this.list = html("select", { id: "wanted" });
    const first = machine.width > 1 ? outputName(machine.output, 0) : "value";
    const options = answersLabels(machine) ? this.#classes() : [["any", "another value"], ["higher", `a higher ${first}`], ["lower", `a lower ${first}`]];
    this.list.append(...options.map(([value, text]) => html("option", { value }, text)));
    this.list.addEventListener("change", () => this.#find());
    this.found = html("div", { class: "changes", "aria-live": "polite" });
    const what = machine.nTrees > 1 ? "For this tree to answer " : "To get ";
    byId("change").append(html("p", { class: "want" }, html("label", { for: "wanted" }, what), this.list), this.found);
  }

  #classes() {
    const { classes } = this.machine.output;
    const options = [["any", "another class"]];
    if (classes.length === 1) classes[0].forEach((label, i) => options.push([String(i), label]));
    return options;
  }

  /** Look again soon, when x has come to rest. */
  update(x, tree) {
    Object.assign(this, { x, tree });
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.#find(), PATIENCE);
  }

  #find() {
    clearTimeout(this.waiting);
    const { machine, x, tree } = this;
    const { fewest, smallest, oneFeature } = nearestChange(machine, x, tree, this.scales, this.list.value);
    const parts = [];
    if (!fewest) {
      parts.push(html("p", { class: "muted" }, oneFeature
        ? "No change of one feature alone reaches such a leaf. Tests weigh several features; changes of several are not searched here."
        : "No leaf of this tree can be reached that answers so."));
    } else if (fewest.leaf === smallest.leaf) {
      parts.push(this.#card(oneFeature ? "Smallest change of one feature" : "Fewest features, and smallest change", fewest));
    } else {
      parts.push(this.#card("Fewest features", fewest), this.#card("Smallest change", smallest));
    }
    if (fewest && machine.linear) {
      parts.push(html("p", { class: "muted small" }, "Leaves hold linear functions: other leaves are tried, not other answers within this one."));
    }
    this.found.replaceChildren(...parts);
  }

  #card(title, move) {
    const { machine, x } = this;
    const list = html("ul", {}, move.changes.map(({ feature, from, to }) =>
      html("li", {}, html("b", {}, machine.names[feature]), ": ", valueName(machine, feature, from), " → ", html("b", {}, this.#target(feature, to)))));
    const button = html("button", { type: "button", class: "try" }, "Try it");
    button.addEventListener("click", () => this.onTry(moved(x, move)));
    const size = move.size === 1 && move.changes.some(({ feature }) => this.scales.named.has(feature))
      ? "" : `, at most ${Number((100 * move.size).toPrecision(3))} % of a slider`;
    return html("div", { class: "change-card" },
      html("h3", {}, title),
      html("p", { class: "muted small" }, `leaf ${move.leaf}: ${this.#answer(move.answer)} · ${plural(move.count, "feature")}${size}`),
      list, button);
  }

  /** A number in all its digits, for its neighbour may be on the other side; said simply, too. */
  #target(feature, value) {
    const { machine } = this;
    const all = valueName(machine, feature, value);
    const below = nextDown(value, machine.single);
    const isJustAbove = !machine.labels.has(feature) && valueName(machine, feature, below).length + 3 < all.length;
    return isJustAbove ? `just above ${valueName(machine, feature, below)} (${all})` : all;
  }

  #answer(answer) {
    const { machine } = this;
    if (typeof answer !== "string") return answer.map((value) => full(value, machine.valueSingle)).join(", ");
    return answer.split(",").map((label, g) => machine.output.classes[g][Number(label)]).join(", ");
  }
}

// The row picker: x as one of the rows that came with the page.

import { parse } from "./numbers.js";
import { unpack } from "../../libraries/javascript/machine.js";
import { byId, html } from "./svg.js";

export class Rows {
  /** `onPick(x, at)` gets a row and its place among those in the page. */
  constructor(machine, data, { onPick }) {
    this.width = machine.nFeatures;
    this.x = unpack(data.x);
    this.number = unpack(data.number);
    this.of = data.of;
    this.y = data.y;
    this.onPick = onPick;
    this.at = 0;
    this.field = html("input", { type: "text", inputmode: "numeric", id: "row", class: "number-field", "aria-describedby": "row-error", autocomplete: "off" });
    this.error = html("p", { class: "field-error", id: "row-error", role: "alert" });
    this.note = html("span", { class: "muted small" });
    const button = (text, name, by) => {
      const made = html("button", { type: "button", class: "quiet", "aria-label": name }, text);
      made.addEventListener("click", () => this.#step(by));
      return made;
    };
    this.field.addEventListener("input", () => this.#typed());
    this.field.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.#step(by);
    });
    const n = this.number.length;
    const cutNote = n < this.of ? `${n} of the ${this.of} rows are in this page, evenly spread.` : "";
    byId("rows").hidden = false;
    byId("rows").append(
      html("label", { for: "row" }, "Row"),
      html("div", { class: "with-buttons" }, button("‹", "Previous row", -1), this.field, button("›", "Next row", 1)),
      this.note, this.error, html("p", { class: "muted small" }, cutNote),
    );
  }

  row(at) {
    return this.x.subarray(at * this.width, (at + 1) * this.width);
  }

  /** What is known of a row, or null. */
  known(at) {
    return at >= 0 && this.y ? this.y[at] : null;
  }

  #step(by) {
    const n = this.number.length;
    this.at = (this.at + by + n) % n;
    this.onPick(this.row(this.at), this.at);
  }

  #typed() {
    const { value } = parse(this.field.value);
    const at = this.number.indexOf(value);
    const isElsewhere = Number.isInteger(value) && value >= 0 && value < this.of;
    this.field.setAttribute("aria-invalid", at < 0 ? "true" : "false");
    this.error.textContent = at >= 0 ? "" : isElsewhere ? "This row is not in the page." : `Rows are 0 to ${this.of - 1}.`;
    if (at < 0) return;
    this.at = at;
    this.onPick(this.row(at), at);
  }

  /** Show the row that x is, or that x is none of them any more (-1). */
  show(at) {
    this.note.textContent = at >= 0 ? `of ${this.of}` : "changed by hand";
    if (at < 0) return;
    this.field.value = this.number[at];
    this.field.setAttribute("aria-invalid", "false");
    this.error.textContent = "";
  }
}

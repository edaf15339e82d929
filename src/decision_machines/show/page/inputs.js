// The controls of x: a slider, a number field and "missing" for each feature; labels in a list.

import { rounding } from "../../libraries/javascript/rounding.js";
import { full, parse } from "./numbers.js";
import { Rule } from "../../libraries/javascript/machine.js";
import { byId, html, svg } from "./svg.js";

const MOST_SHOWN = 40;
const OTHER = "other";

export class Inputs {
  constructor(machine, spans, { onChange }) {
    this.machine = machine;
    this.onChange = onChange;
    this.spans = spans;
    this.controls = new Map();
    this.list = byId("features");
    const member = (i) => machine.columns.rule[i] === Rule.MEMBER;
    this.whole = new Set([...Array.from(machine.columns.feature).filter((_, c) => member(c)), ...machine.integers]);
    if (machine.nFeatures > 8) {
      byId("feature-filter").hidden = false;
      byId("feature-search").addEventListener("input", () => this.arrange(this.x, this.used, this.cuts));
    }
  }

  /** Show the features that the tree reads first, then the others, as far as they are asked for. */
  arrange(x, used, cuts) {
    Object.assign(this, { x, used, cuts });
    const asked = byId("feature-search").value.trim().toLowerCase();
    const all = this.machine.names.map((_, i) => i).filter((i) => this.machine.names[i].toLowerCase().includes(asked));
    const order = [...all.filter((i) => used.has(i)), ...all.filter((i) => !used.has(i))];
    const shown = order.slice(0, MOST_SHOWN);
    const wanted = shown.map((i) => this.#control(i).group);
    for (const i of shown) this.#control(i).group.classList.toggle("unused", !used.has(i));
    const current = [...this.list.children];
    if (wanted.length !== current.length || wanted.some((group, i) => group !== current[i])) {
      const held = document.activeElement;
      this.list.replaceChildren(...wanted);
      if (held && this.list.contains(held)) held.focus();
    }
    byId("features-cut").textContent =
      order.length > shown.length
        ? `${shown.length} of ${order.length} features are shown, those that this tree reads first. Find others by name.`
        : order.length ? "" : "No feature has this name.";
    this.show(x);
    for (const i of shown) this.#rug(i);
  }

  #control(i) {
    if (!this.controls.has(i)) this.controls.set(i, this.machine.labels.has(i) ? this.#list(i) : this.#slider(i));
    return this.controls.get(i);
  }

  #group(i, ...children) {
    const name = html("span", { class: "feature-name", id: `feature-${i}` }, this.machine.names[i]);
    const hint = html("span", { class: "unused-hint" }, " · not read");
    return html("div", { class: "feature", role: "group", "aria-labelledby": `feature-${i}`, "data-feature": i },
      html("div", { class: "feature-head" }, html("span", {}, name, hint)), children);
  }

  #slider(i) {
    const isWhole = this.whole.has(i);
    const [low, high] = isWhole ? [Math.floor(this.spans[2 * i]), Math.ceil(this.spans[2 * i + 1])] : [this.spans[2 * i], this.spans[2 * i + 1]];
    const slider = html("input", {
      type: "range", min: low, max: high, step: isWhole ? 1 : "any", "aria-labelledby": `feature-${i}`, id: `slider-${i}`,
    });
    const field = html("input", {
      type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false", class: "number-field",
      "aria-label": `${this.machine.names[i]}, exact value`, "aria-describedby": `error-${i}`, id: `field-${i}`,
    });
    const missing = html("input", { type: "checkbox", id: `missing-${i}` });
    const error = html("p", { class: "field-error", id: `error-${i}`, role: "alert" });
    const rug = svg("svg", { class: "rug", viewBox: "0 0 1000 8", preserveAspectRatio: "none", "aria-hidden": "true" });
    const group = this.#group(
      i,
      html("div", { class: "slide" }, html("div", {}, slider, rug), field),
      error,
    );
    group.firstChild.append(html("label", { class: "missing", for: `missing-${i}` }, missing, "missing"));
    const control = { group, slider, field, missing, error, rug, low, high };
    slider.addEventListener("input", () => this.#set(i, tidy(Number(slider.value), low, high)));
    for (const event of ["input", "change"]) field.addEventListener(event, () => this.#typed(i, control));
    field.addEventListener("blur", () => {
      if (field.getAttribute("aria-invalid") !== "true") this.show(this.x);
    });
    missing.addEventListener("change", () => this.#set(i, missing.checked ? NaN : tidy(Number(slider.value), low, high)));
    return control;
  }

  #list(i) {
    const labels = this.machine.labels.get(i);
    const list = html("select", { "aria-labelledby": `feature-${i}`, id: `list-${i}` });
    labels.forEach((label, code) => list.append(html("option", { value: code }, label)));
    list.append(html("option", { value: OTHER }, "(another label)"), html("option", { value: "nan" }, "(missing)"));
    list.addEventListener("change", () => {
      this.#set(i, list.value === "nan" ? NaN : list.value === OTHER ? -1 : Number(list.value));
    });
    return { group: this.#group(i, list), list, labels };
  }

  #typed(i, control) {
    const found = parse(control.field.value);
    if (this.machine.integers.has(i) && Number.isFinite(found.value) && !Number.isInteger(found.value)) {
      found.error = "All rows have whole numbers here.";
    }
    if (found.error) {
      control.field.setAttribute("aria-invalid", "true");
      control.error.textContent = `${found.error} Kept: ${this.#text(i)}.`;
      return;
    }
    clear(control);
    this.#set(i, found.value, control.field);
  }

  #text(i) {
    return Number.isNaN(this.x[i]) ? "missing" : plain(this.x[i]);
  }

  #set(i, value, typing = null) {
    this.x[i] = value;
    if (!typing) clear(this.#control(i));
    this.onChange(typing);
  }

  /** Write x into the controls; not into the field that is being typed in, or that is in error. */
  show(x, typing = null) {
    this.x = x;
    for (const [i, control] of this.controls) {
      if (!control.group.isConnected) continue;
      const value = x[i];
      if (control.list) {
        const code = Math.trunc(value);
        control.list.value = Number.isNaN(value) ? "nan" : code >= 0 && code < control.labels.length ? String(code) : OTHER;
        continue;
      }
      const isMissing = Number.isNaN(value);
      control.missing.checked = isMissing;
      control.slider.classList.toggle("is-missing", isMissing);
      if (!isMissing) control.slider.value = value;
      control.slider.setAttribute("aria-valuetext", isMissing ? "missing" : plain(value));
      if (control.field !== typing && control.field.getAttribute("aria-invalid") !== "true") {
        control.field.value = isMissing ? "NaN" : plain(value);
      }
      this.#note(i, control, value);
    }
  }

  /** Say where the machine reads something else than was typed. */
  #note(i, control, value) {
    if (control.field.getAttribute("aria-invalid") === "true") return;
    const read = rounding(this.machine.single)(value);
    const said = Number.isFinite(value) && !Number.isFinite(read) ? "Read as infinity: too large for a float32." : "";
    if (control.error.textContent !== said) control.error.textContent = said;
  }

  /** Forget what was typed wrongly, when x is set as a whole. */
  forgive() {
    for (const control of this.controls.values()) clear(control);
  }

  /** A tick under the slider at each threshold of the shown tree. */
  #rug(i) {
    const control = this.controls.get(i);
    if (!control.rug) return;
    const { low, high } = control;
    const ticks = (this.cuts.get(i) ?? []).filter((t) => t >= low && t <= high);
    control.rug.replaceChildren(
      ...ticks.map((t) => {
        const x = (1000 * (t - low)) / (high - low);
        return svg("line", { x1: x, x2: x, y1: 0, y2: 8, "vector-effect": "non-scaling-stroke" });
      }),
    );
  }
}

function clear(control) {
  control.field?.removeAttribute("aria-invalid");
  if (control.error) control.error.textContent = "";
}

const plain = (value) => full(value, Math.fround(value) === value && !Number.isInteger(value)).replace("−", "-").replace("∞", "inf");

/** A slider's position in no more digits than its length needs. */
function tidy(value, low, high) {
  const step = 10 ** (Math.floor(Math.log10(high - low)) - 3);
  return Number.isFinite(1 / step) ? Number((Math.round(value / step) * step).toPrecision(12)) : value;
}

/** The first x where there are no rows: the middles of the sliders. */
export function firstInput(machine, spans) {
  return Float64Array.from({ length: machine.nFeatures }, (_, i) => {
    const [low, high] = [spans[2 * i], spans[2 * i + 1]];
    if (machine.labels.has(i)) return 0;
    return tidy(low + (high - low) / 2, low, high);
  });
}

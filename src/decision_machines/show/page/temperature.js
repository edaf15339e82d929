// The temperature: hard on the far left, then τ from small to large, by powers of ten.

import { full, parse, short } from "./numbers.js";
import { byId, html } from "./svg.js";

const STEPS = 1000;

/** Build the slider and its field; `onChange(tau)` gets 0 for hard. */
export function makeTemperature(machine, spans, onChange) {
  const lengths = Array.from({ length: machine.nFeatures }, (_, i) => spans[2 * i + 1] - spans[2 * i]).sort((a, b) => a - b);
  // From a few thousandths of a typical slider, where all is hard, to where all leaves weigh alike.
  const unit = Math.log10(lengths[lengths.length >> 1] || 1);
  const [low, high] = [unit - 3.5, unit + 1.5];
  const slider = html("input", { type: "range", id: "tau-slider", min: 0, max: STEPS, step: 1, value: 0 });
  const field = html("input", {
    type: "text", inputmode: "decimal", id: "tau", class: "number-field", autocomplete: "off",
    "aria-label": "Temperature, exact value; 0 is hard", "aria-describedby": "tau-error",
  });
  const error = html("p", { class: "field-error", id: "tau-error", role: "alert" });
  const words = html("span", { id: "tau-text", class: "muted small" });
  let now = 0;
  const show = (tau) => {
    now = tau;
    slider.setAttribute("aria-valuetext", tau === 0 ? "hard" : `τ = ${short(tau)}`);
    words.textContent = tau === 0 ? "hard: all weight on one leaf" : "soft: weight flows to every leaf";
  };
  slider.addEventListener("input", () => {
    const at = Number(slider.value) / STEPS;
    show(at === 0 ? 0 : Number((10 ** (low + (high - low) * at)).toPrecision(3)));
    field.value = full(now, false);
    field.removeAttribute("aria-invalid");
    error.textContent = "";
    onChange(now);
  });
  field.addEventListener("input", () => {
    const found = parse(field.value);
    const isGood = !found.error && found.value >= 0 && Number.isFinite(found.value);
    field.setAttribute("aria-invalid", isGood ? "false" : "true");
    error.textContent = isGood ? "" : `${found.error ?? "A temperature is 0 (hard) or a positive number."} Kept: ${full(now, false)}.`;
    if (!isGood) return;
    show(found.value);
    const at = (Math.log10(now) - low) / (high - low);
    slider.value = now === 0 ? 0 : Math.max(1, Math.min(STEPS, STEPS * at));
    onChange(now);
  });
  byId("temperature").append(
    html("label", { for: "tau-slider" }, "Temperature ", html("i", { class: "letter" }, "τ")),
    slider, field, words, error,
  );
  field.value = "0";
  show(0);
}

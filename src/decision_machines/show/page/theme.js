// Light or dark: as the system has it, until the button says otherwise.

import { byId } from "./svg.js";

export function makeTheme() {
  const button = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const show = () => {
    const other = now() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to ${other} colours`);
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = now() === "dark" ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  show();
}

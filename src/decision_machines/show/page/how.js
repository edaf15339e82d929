// "How to read this": open until somebody closes it; a browser that keeps notes for pages remembers.

import { byId } from "./svg.js";

const NOTE = "decision-machines: how to read this";

/** What was noted, or null; a page opened from a file may not be allowed to keep anything. */
function noted() {
  try {
    return localStorage.getItem(NOTE);
  } catch {
    return null;
  }
}

function note(text) {
  try {
    localStorage.setItem(NOTE, text);
  } catch {
    // Without a place for it, the page opens as it did the first time.
  }
}

export function makeHow(machine) {
  const [panel, toggle] = [byId("how"), byId("how-toggle")];
  if (machine.nTrees > 1) byId("how-sum").textContent = `Every tree has such matrices. The page shows one tree; the prediction is made of all ${machine.nTrees}.`;
  const show = (isOpen) => {
    panel.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", isOpen ? "true" : "false");
  };
  const choose = (isOpen) => {
    show(isOpen);
    note(isOpen ? "open" : "closed");
  };
  toggle.addEventListener("click", () => choose(panel.hidden));
  byId("how-close").addEventListener("click", () => {
    choose(false);
    toggle.focus();
  });
  show(noted() !== "closed");
}

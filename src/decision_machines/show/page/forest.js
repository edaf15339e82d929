// Which tree is shown: a list with a filter, and a strip with what every tree gives to the answer.

import { leafValue } from "../../libraries/javascript/evaluate.js";
import { outputName } from "../../libraries/javascript/decisions.js";
import { plural } from "./words.js";
import { byId, html, svg } from "./svg.js";

const HEIGHT = 36;
const MOST_OPTIONS = 2000;

export class Forest {
  constructor(machine, { onPick }) {
    this.machine = machine;
    this.onPick = onPick;
    if (machine.nTrees < 2) {
      byId("forest").hidden = true;
      byId("tree-picker").hidden = true;
      return;
    }
    this.names = new Map();
    this.search = html("input", { type: "search", id: "tree-search", autocomplete: "off", spellcheck: "false", placeholder: "feature or number" });
    this.list = html("select", { id: "tree-list" });
    const step = (by, text, name) => {
      const button = html("button", { type: "button", class: "quiet", "aria-label": name }, text);
      button.addEventListener("click", () => this.#step(by));
      return button;
    };
    this.found = html("span", { class: "muted small", role: "status" });
    this.strip = svg("svg", { class: "strip", "aria-hidden": "true", preserveAspectRatio: "none", viewBox: `0 0 ${machine.nTrees} ${HEIGHT}` });
    this.up = svg("path", { class: "up" });
    this.down = svg("path", { class: "down" });
    this.here = svg("rect", { class: "here", y: 0, width: 1, height: HEIGHT });
    this.strip.append(this.here, this.up, this.down, svg("line", { class: "axis", x1: 0, x2: machine.nTrees, y1: HEIGHT / 2, y2: HEIGHT / 2, "vector-effect": "non-scaling-stroke" }));
    this.caption = html("p", { class: "muted small strip-caption" });
    byId("tree-picker").append(
      this.found,
      html("div", { class: "field" }, html("label", { for: "tree-list" }, "Tree"),
        html("div", { class: "with-buttons" }, step(-1, "‹", "Previous tree"), this.list, step(1, "›", "Next tree"))),
      html("div", { class: "field" }, html("label", { for: "tree-search" }, "Trees that read"), this.search),
    );
    byId("forest").append(this.strip, this.caption);
    this.search.addEventListener("input", () => this.#filter());
    this.list.addEventListener("change", () => onPick(Number(this.list.value)));
    this.strip.addEventListener("click", (event) => {
      const box = this.strip.getBoundingClientRect();
      onPick(Math.min(machine.nTrees - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * machine.nTrees))));
    });
    this.#filter();
  }

  /** The features that a tree reads, as text. */
  #reads(tree) {
    if (!this.names.has(tree)) {
      const { machine } = this;
      const columns = new Set();
      for (let j = machine.testStart[tree]; j < machine.testStart[tree + 1]; j += 1) {
        if (machine.selection) columns.add(machine.selection[j]);
        else machine.S.column.subarray(machine.S.start[j], machine.S.start[j + 1]).forEach((c) => columns.add(c));
      }
      this.names.set(tree, [...new Set(Array.from(columns, (c) => machine.names[machine.columns.feature[c]]))]);
    }
    return this.names.get(tree);
  }

  #filter() {
    const asked = this.search.value.trim().toLowerCase();
    const { machine } = this;
    const matches = [];
    for (let tree = 0; tree < machine.nTrees; tree += 1) {
      const isAsked = !asked || String(tree) === asked || this.#reads(tree).some((name) => name.toLowerCase().includes(asked));
      if (isAsked) matches.push(tree);
    }
    this.matches = matches;
    const shown = matches.slice(0, MOST_OPTIONS);
    if (this.tree !== undefined && !shown.includes(this.tree)) shown.unshift(this.tree);
    this.list.replaceChildren(...shown.map((tree) => html("option", { value: tree }, this.#title(tree))));
    if (this.tree !== undefined) this.list.value = this.tree;
    const cutNote = matches.length > MOST_OPTIONS ? `; the first ${MOST_OPTIONS} are listed` : "";
    this.found.textContent = asked ? `${plural(matches.length, "tree")} of ${machine.nTrees}${cutNote}` : cutNote.slice(2);
  }

  #title(tree) {
    const n = this.machine.testStart[tree + 1] - this.machine.testStart[tree] + 1;
    const feeds = this.machine.feeds[tree];
    const what = feeds >= 0 && this.machine.output.k > 1 ? ` · ${outputName(this.machine.output, feeds)}` : "";
    return `${tree} · ${plural(n, "leaf", "leaves")}${what}`;
  }

  #step(by) {
    if (!this.matches.length) return;
    const at = this.matches.indexOf(this.tree);
    const next = at < 0 ? 0 : (at + by + this.matches.length) % this.matches.length;
    this.onPick(this.matches[next]);
  }

  /** Mark the tree that is shown. */
  show(tree) {
    this.tree = tree;
    if (!this.list) return;
    if (![...this.list.options].some((option) => Number(option.value) === tree)) this.#filter();
    this.list.value = tree;
    this.here.setAttribute("x", tree);
  }

  /** What every tree gives to one output at the present x. */
  update(scene) {
    if (!this.list) return;
    const { machine } = this;
    const o = scene.focusOutput;
    const gives = Array.from(scene.exits, (leaf, tree) => {
      if (machine.feeds[tree] >= 0 && machine.feeds[tree] !== o) return 0;
      return leafValue(machine, scene.cast, machine.testStart[tree] + tree + leaf, machine.feeds[tree] < 0 ? o : 0);
    });
    const most = gives.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
    const lines = { up: "", down: "" };
    gives.forEach((value, tree) => {
      if (!value) return;
      const y = HEIGHT / 2 - (value / most) * (HEIGHT / 2 - 2);
      lines[value > 0 ? "up" : "down"] += `M${tree + 0.1} ${HEIGHT / 2}V${y}H${tree + 0.9}V${HEIGHT / 2}Z`;
    });
    this.up.setAttribute("d", lines.up);
    this.down.setAttribute("d", lines.down);
    this.caption.textContent = `What each of the ${machine.nTrees} trees gives to ${outputName(machine.output, o)} for this x, first tree on the left. Click to see one.`;
  }
}

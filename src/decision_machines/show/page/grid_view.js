// Cells that can be pointed at, and walked over with the arrow keys. A view says where they are.

import { cellSentence } from "./words.js";
import { svg } from "./svg.js";

export class GridView {
  constructor(element, name, { onPoint, onOpen }) {
    Object.assign(this, { element, onPoint, onOpen, cursor: { row: 0, column: 0 } });
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "application");
    element.setAttribute("aria-roledescription", name);
    element.addEventListener("pointermove", (event) => this.#pointer(event, false));
    element.addEventListener("pointerdown", (event) => this.#pointer(event, true));
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => this.#moveTo(this.cursor));
    element.addEventListener("blur", () => this.box?.setAttribute("visibility", "hidden"));
  }

  /** Set the size, and put children under a frame for the cell that the keyboard is on. */
  place(width, height, label, children) {
    const { element } = this;
    this.width = width;
    element.setAttribute("width", width);
    element.setAttribute("height", height);
    element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    element.setAttribute("aria-label", `${label} Arrow keys move over the cells.`);
    this.box = svg("rect", { class: "cursor", rx: 3, visibility: "hidden" });
    element.replaceChildren(...children, this.box);
    if (!this.cellAt(this.cursor)) this.cursor = { row: 0, column: 0 };
  }

  explain(cell) {
    this.onPoint({ test: cell.test, leaf: cell.leaf < 0 ? undefined : cell.leaf }, cellSentence(this.machine, this.scene, cell));
  }

  #pointer(event, isPress) {
    const box = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    for (let row = 0; row < this.nRows; row += 1) {
      const { y: low, height } = this.boxOf({ row, column: 0 });
      if (y < low || y >= low + height) continue;
      for (let column = 0; column < this.nColumns; column += 1) {
        const { x: start, width } = this.boxOf({ row, column });
        if (x < start || x >= start + width) continue;
        const cell = this.cellAt({ row, column });
        if (!cell) return;
        this.explain(cell);
        if (isPress) this.cursor = { row, column };
        if (isPress && cell.part === "fold") this.onOpen(cell.node);
        return;
      }
    }
  }

  #moveTo(place) {
    const cell = this.cellAt(place);
    if (!cell) return;
    this.cursor = place;
    const box = this.boxOf(place);
    for (const name of ["x", "y", "width", "height"]) this.box.setAttribute(name, box[name]);
    this.box.setAttribute("visibility", "visible");
    this.box.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.explain(cell);
  }

  #key(event) {
    const { row, column } = this.cursor;
    const to = {
      ArrowRight: { row, column: column + 1 },
      ArrowLeft: { row, column: column - 1 },
      ArrowDown: { row: row + 1, column },
      ArrowUp: { row: row - 1, column },
      Home: { row: 0, column: 0 },
      End: { row: this.exitRow(), column: 0 },
    }[event.key];
    if (to) {
      event.preventDefault();
      this.#moveTo(to);
    } else if (event.key === "Enter" || event.key === " ") {
      const cell = this.cellAt(this.cursor);
      if (cell?.part !== "fold") return;
      event.preventDefault();
      this.onOpen(cell.node);
    }
  }
}

/** The weight of a row: of its leaf, or of all leaves folded into it. */
export function rowWeight(row, scene) {
  let weight = 0;
  for (let i = row.first; i < row.first + row.count; i += 1) weight += scene.weights[i];
  return weight;
}

export const letter = (text, x, y, anchor = "end") => svg("text", { class: `letter ${anchor}`, x, y }, text);

// What becomes of each leaf: its score p, its weight, and its row of V.

import { short } from "./numbers.js";
import { outputName } from "../../libraries/javascript/decisions.js";
import { plural } from "./words.js";
import { GridView, letter, rowWeight } from "./grid_view.js";
import { cut, setAttribute, setText, svg, textWidth } from "./svg.js";

export const MOST_VALUES = 4;
const INDEX = 30;
const SCORE = 52;
const BAR = 32;
const WEIGHT = 96;
const VALUE = { least: 60, most: 130 };
const HEAD_FONT = 11;

/** The columns of V that are drawn: all, or the few with the largest values in this tree. */
export function valueColumns(machine, shape) {
  const all = Array.from({ length: machine.width }, (_, c) => c);
  if (all.length <= MOST_VALUES) return all;
  const size = all.map((c) => {
    let total = 0;
    for (let i = 0; i < shape.nLeaves; i += 1) total += Math.abs(machine.V[(shape.leaf + i) * machine.width + c]);
    return total;
  });
  return all.sort((a, b) => size[b] - size[a]).slice(0, MOST_VALUES).sort((a, b) => a - b);
}

/** A weight in three digits. */
function briefly(weight) {
  if (weight !== 0 && weight < 1e-4) return weight.toExponential(1).replace("-", "−");
  return String(Number(weight.toPrecision(3)));
}

/** How wide the columns of V are: their names are not cut before they are quite long. */
const valueWidth = (machine, columns) =>
  machine.width < 2 ? VALUE.least : columns.reduce((most, index) => Math.max(most, Math.min(VALUE.most, textWidth(outputName(machine.output, index), HEAD_FONT) + 12)), VALUE.least);

export const valuesWidth = (machine, columns) => INDEX + SCORE + WEIGHT + columns.length * valueWidth(machine, columns) + 6;

export class ValuesView extends GridView {
  constructor(element, handlers) {
    super(element, "scores, weights and values", handlers);
  }

  draw(machine, scene, part, columns, top, row) {
    Object.assign(this, { machine, scene, part, columns, top, row });
    this.nRows = part.rows.length;
    this.nColumns = 2 + columns.length;
    const width = valuesWidth(machine, columns);
    this.value = valueWidth(machine, columns);
    this.band = svg("rect", { class: "band", x: 0, width, height: row });
    this.rowMark = svg("rect", { class: "cross", x: 0, width, height: row, visibility: "hidden" });
    const head = [
      letter("p", INDEX + SCORE - 8, top - 6),
      letter("weight", INDEX + SCORE + 6, top - 6, "start"),
      ...columns.map((index, v) => this.#head(index, v)),
    ];
    this.place(width, top + part.rows.length * row + 3, `p, weight and V of ${plural(part.rows.length, "row")}.`,
      [this.band, this.rowMark, ...head, this.#cells()]);
    this.update(scene);
  }

  #head(index, v) {
    const { machine, top } = this;
    const x = INDEX + SCORE + WEIGHT + (v + 1) * this.value - 6;
    const group = svg("g", {});
    if (v === 0 || machine.width > 1) group.append(letter("V", x, top - (machine.width > 1 ? 21 : 6)));
    if (machine.width > 1) group.append(svg("text", { class: "head", x, y: top - 7 }, cut(outputName(machine.output, index), this.value - 8, HEAD_FONT)));
    return group;
  }

  #cells() {
    const { part, top, row: height } = this;
    const group = svg("g");
    const start = INDEX + SCORE;
    this.drawn = part.rows.map((row, r) => {
      const y = top + (r + 0.5) * height;
      const number = (x) => svg("text", { class: "number p", x, y: y + 4 });
      const cell = {
        p: number(start - 8),
        bar: svg("rect", { class: "bar", x: start + 6, y: y - 6, height: 12, rx: 2 }),
        weight: number(start + WEIGHT - 6),
        values: this.columns.map((_, v) => number(start + WEIGHT + (v + 1) * this.value - 6)),
      };
      cell.group = svg("g", {},
        svg("text", { class: "index", x: INDEX / 2, y: y + 4 }, row.leaf < 0 ? "▸" : String(row.leaf)),
        svg("rect", { class: "trough", x: start + 6, y: y - 6, width: BAR, height: 12, rx: 2 }),
        cell.p, cell.bar, cell.weight, ...cell.values,
      );
      group.append(cell.group);
      return cell;
    });
    return group;
  }

  update(scene) {
    const { part, top, row: height } = this;
    this.scene = scene;
    const exit = part.rowOfLeaf[scene.exit];
    this.band.setAttribute("y", top + exit * height);
    part.rows.forEach((row, r) => {
      const cell = this.drawn[r];
      const weight = rowWeight(row, scene);
      const values = row.leaf < 0 ? null : scene.values(row.leaf);
      setText(cell.p, values ? short(scene.p[row.leaf]) : "…");
      setAttribute(cell.bar, "width", BAR * Math.min(1, weight));
      setText(cell.weight, briefly(weight));
      cell.values.forEach((text, v) => setText(text, values ? short(values[this.columns[v]]) : "…"));
      setAttribute(cell.group, "class", r === exit ? "strong" : "");
    });
  }

  mark(target) {
    const row = target?.leaf === undefined ? -1 : this.part.rowOfLeaf[target.leaf];
    this.rowMark.setAttribute("visibility", row < 0 ? "hidden" : "visible");
    if (row >= 0) this.rowMark.setAttribute("y", this.top + row * this.row);
  }

  exitRow() {
    return this.part.rowOfLeaf[this.scene.exit];
  }

  cellAt({ row, column }) {
    if (row < 0 || column < 0 || row >= this.nRows || column >= this.nColumns) return null;
    const drawn = this.part.rows[row];
    if (drawn.leaf < 0) return { part: "fold", ...drawn, weight: rowWeight(drawn, this.scene) };
    const { leaf } = drawn;
    return column < 2 ? { part: "pw"[column], leaf } : { part: "V", leaf, index: this.columns[column - 2] };
  }

  boxOf({ row, column }) {
    const [x, width] = [
      [INDEX, SCORE], [INDEX + SCORE, WEIGHT],
    ][column] ?? [INDEX + SCORE + WEIGHT + (column - 2) * this.value, this.value];
    return { x, y: this.top + row * this.row, width, height: this.row };
  }
}

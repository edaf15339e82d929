// S, t, S z and h, a column for each test; below them B, a row for each leaf.

import { short } from "./numbers.js";
import { pathTo } from "./machine.js";
import { columnName, plural, sideName } from "./words.js";
import { GridView, letter, rowWeight } from "./grid_view.js";
import { cut, setAttribute, setText, svg } from "./svg.js";

const TITLE = 24;
const RESULT = 28;
const MOST_READ = 40;
const MOST_LETTERS = 14;

/** Which columns S shows, and how much room everything needs with cells of this width. */
export function measureMatrix(machine, scene, part, cell) {
  const { shape } = scene;
  const read = [...new Set(part.tests.flatMap((j) => columnsOf(machine, shape.test + j)))].sort((a, b) => a - b);
  const columns = read.slice(0, MOST_READ);
  const texts = part.tests.map((j) => short(machine.t[shape.test + j]));
  const isTurned = texts.some((text) => text.length * 7 > cell - 4);
  const number = isTurned ? 58 : 22;
  const sRow = columns.length <= 6 ? 20 : 15;
  const strip = TITLE + columns.length * sRow + 4 + 2 * number + RESULT + TITLE;
  const names = [...columns.map((c) => columnName(machine, c)), ...part.rows.map(rowName)];
  const longest = names.reduce((most, name) => Math.max(most, name.length), 7);
  const gutter = 14 + 6.8 * Math.min(longest, MOST_LETTERS);
  return {
    columns, cell, gutter, isTurned, number, sRow,
    nRead: read.length,
    strip: part.tests.length ? strip : TITLE,
    width: gutter + part.tests.length * cell + 4,
  };
}

const rowName = (row) => (row.leaf < 0 ? `▸ ${row.count} leaves` : `leaf ${row.leaf}`);

const columnsOf = (machine, test) =>
  machine.selection
    ? [machine.selection[test]]
    : Array.from(machine.S.column.subarray(machine.S.start[test], machine.S.start[test + 1]));

function weightOf(machine, test, column) {
  if (machine.selection) return machine.selection[test] === column ? 1 : 0;
  for (let i = machine.S.start[test]; i < machine.S.start[test + 1]; i += 1) {
    if (machine.S.column[i] === column) return machine.S.weight[i];
  }
  return 0;
}

export class MatrixView extends GridView {
  constructor(element, handlers) {
    super(element, "matrices", handlers);
  }

  draw(machine, scene, part, size, top, row) {
    Object.assign(this, { machine, scene, part, size, top, row });
    const J = part.tests.length;
    this.head = J ? size.columns.length + 3 : 0;
    this.nRows = this.head + part.rows.length;
    this.nColumns = J;
    const dots = svg("pattern", { id: "dots", width: size.cell, height: row, patternUnits: "userSpaceOnUse", x: this.size.gutter, y: top },
      svg("circle", { cx: size.cell / 2, cy: row / 2, r: 1.3, class: "zero" }));
    const small = svg("pattern", { id: "zeros", width: size.cell, height: size.sRow, patternUnits: "userSpaceOnUse", x: size.gutter, y: top - size.strip + TITLE },
      svg("circle", { cx: size.cell / 2, cy: size.sRow / 2, r: 1.2, class: "zero" }));
    this.band = svg("rect", { class: "band", x: 0, width: size.width, height: row });
    this.rowMark = svg("rect", { class: "cross", x: 0, width: size.width, height: row, visibility: "hidden" });
    this.columnMark = svg("rect", { class: "cross", width: size.cell, visibility: "hidden" });
    this.place(
      size.width, top + part.rows.length * row + 3,
      `S, t, h and B of the tree: ${plural(J, "test")}, ${plural(part.rows.length, "row")}.`,
      [svg("defs", {}, dots, small), this.band, this.rowMark, this.columnMark, ...(J ? this.#strip(scene.shape) : []), this.#templates(scene.shape)],
    );
    this.update(scene);
  }

  /** S, t, S z, h. */
  #strip(shape) {
    const { machine, part, size, top } = this;
    const { cell, columns, sRow, number } = size;
    const y = (this.tops = { S: top - size.strip + TITLE });
    y.t = y.S + columns.length * sRow + 4;
    y.q = y.t + number;
    y.h = y.q + number;
    const middle = (c) => this.size.gutter + (c + 0.5) * cell;
    const parts = [
      letter("S", this.size.gutter - 8, y.S - 7),
      svg("rect", { class: "frame zeros", x: this.size.gutter, y: y.S, width: part.tests.length * cell, height: columns.length * sRow, rx: 3 }),
    ];
    columns.forEach((column, r) => {
      const at = y.S + (r + 0.5) * sRow;
      parts.push(svg("text", { class: "row-name", x: this.size.gutter - 8, y: at + 4 }, cut(columnName(machine, column), MOST_LETTERS)));
      part.tests.forEach((j, c) => {
        const drawn = this.#selects(weightOf(machine, shape.test + j, column), middle(c), at);
        if (drawn) parts.push(drawn);
      });
    });
    parts.push(letter("t", this.size.gutter - 8, y.t + number / 2 + 5), letter("S z", this.size.gutter - 8, y.q + number / 2 + 5));
    parts.push(letter("h", this.size.gutter - 8, y.h + RESULT / 2 + 5), letter("B", this.size.gutter - 8, top - 6));
    this.read = [];
    this.results = [];
    part.tests.forEach((j, c) => {
      const read = this.#number("", middle(c), y.q + number / 2, "read");
      const result = signCell(middle(c), y.h + RESULT / 2, Math.min(cell, 26) - 6);
      this.read.push(read);
      this.results.push(result);
      parts.push(this.#number(short(machine.t[shape.test + j]), middle(c), y.t + number / 2), read, result.group);
      parts.push(svg("text", { class: String(j).length * 8 > cell ? "index tiny" : "index", x: middle(c), y: top - 7 }, String(j)));
    });
    return parts;
  }

  #selects(weight, x, y) {
    const { cell, sRow } = this.size;
    if (weight === 0) return null;
    if (this.machine.selection) return svg("circle", { class: "one", cx: x, cy: y, r: Math.min(5.5, sRow / 2 - 2) });
    const width = Math.min(cell - 6, 6 + 4 * Math.log1p(Math.abs(weight)));
    const side = weight < 0 ? "negative" : "positive";
    return svg("rect", { class: `weight ${side}`, x: x - width / 2, y: y - sRow / 2 + 3, width, height: sRow - 6, rx: 2 });
  }

  #number(text, x, y, kind = "") {
    const turn = this.size.isTurned ? `rotate(-90 ${x} ${y})` : null;
    return svg("text", { class: `number ${kind}`, x, y: y + 4, transform: turn }, text);
  }

  #templates(shape) {
    const { part, size, top, row: height } = this;
    const column = new Map(part.tests.map((j, c) => [j, c]));
    const group = svg("g");
    if (part.tests.length) {
      group.append(svg("rect", { class: "frame dotted", x: this.size.gutter, y: top, width: part.tests.length * size.cell, height: part.rows.length * height, rx: 3 }));
    }
    this.templates = [];
    this.names = part.rows.map((row, r) => {
      const y = top + (r + 0.5) * height;
      const name = svg("text", { class: "row-name", x: this.size.gutter - 8, y: y + 4 }, rowName(row));
      group.append(name);
      row.template = new Map();
      for (const { test, answer } of row.leaf < 0 ? pathAbove(shape, row.node) : pathTo(shape, row.leaf)) {
        if (!column.has(test)) continue;
        const drawn = signCell(this.size.gutter + (column.get(test) + 0.5) * size.cell, y, Math.min(size.cell, height) - 5);
        row.template.set(test, answer);
        this.templates.push(Object.assign(drawn, { test, answer }));
        group.append(drawn.group);
      }
      return name;
    });
    return group;
  }

  update(scene) {
    const { part, top, row } = this;
    this.scene = scene;
    part.tests.forEach((j, c) => {
      setText(this.read[c], short(scene.q[j]));
      setSign(this.results[c], scene.h[j], true, scene.onPath.has(j) ? " on-path" : "");
    });
    for (const cell of this.templates) setSign(cell, cell.answer, scene.h[cell.test] === cell.answer);
    const exit = part.rowOfLeaf[scene.exit];
    setAttribute(this.band, "y", top + exit * row);
    this.names.forEach((name, r) => setAttribute(name, "class", r === exit ? "row-name strong" : "row-name"));
  }

  mark(target) {
    const { part, size, top, row: height } = this;
    const column = target?.test === undefined ? -1 : part.tests.indexOf(target.test);
    const row = target?.leaf === undefined ? -1 : part.rowOfLeaf[target.leaf];
    this.rowMark.setAttribute("visibility", row < 0 ? "hidden" : "visible");
    this.columnMark.setAttribute("visibility", column < 0 ? "hidden" : "visible");
    if (row >= 0) this.rowMark.setAttribute("y", top + row * height);
    if (column < 0) return;
    this.columnMark.setAttribute("x", this.size.gutter + column * size.cell);
    this.columnMark.setAttribute("y", this.tops.S);
    this.columnMark.setAttribute("height", top - this.tops.S + part.rows.length * height);
  }

  exitRow() {
    return this.head + this.part.rowOfLeaf[this.scene.exit];
  }

  cellAt({ row, column }) {
    const { part, size, machine, scene } = this;
    if (row < 0 || column < 0 || row >= this.nRows || column >= this.nColumns) return null;
    const test = part.tests[column];
    const nS = size.columns.length;
    if (row < nS) {
      return { part: "S", test, column: size.columns[row], value: weightOf(machine, scene.shape.test + test, size.columns[row]) };
    }
    if (row < this.head) return { part: ["t", "q", "h"][row - nS], test };
    const drawn = part.rows[row - this.head];
    if (drawn.leaf < 0) return { part: "fold", ...drawn, weight: rowWeight(drawn, scene) };
    return { part: "B", test, leaf: drawn.leaf, value: drawn.template.get(test) ?? 0 };
  }

  boxOf({ row, column }) {
    const { size, top, tops } = this;
    const [x, width] = [this.size.gutter + column * size.cell, size.cell];
    const nS = size.columns.length;
    if (row >= this.head) return { x, y: top + (row - this.head) * this.row, width, height: this.row };
    if (row < nS) return { x, y: tops.S + row * size.sRow, width, height: size.sRow };
    const name = ["t", "q", "h"][row - nS];
    return { x, y: tops[name], width, height: name === "h" ? RESULT : size.number };
  }
}

function* pathAbove(shape, node) {
  for (let j = node; shape.parent[j] >= 0; j = shape.parent[j]) yield { test: shape.parent[j], answer: shape.side[j] };
}

function signCell(x, y, side) {
  const group = svg("g", { class: "sign" },
    svg("rect", { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 4 }),
    svg("text", { x, y: y + 4.5 }));
  return { group, glyph: group.lastChild, look: "" };
}

function setSign(drawn, answer, agrees, extra = "") {
  const look = `sign ${sideName(answer)} ${agrees ? "solid" : "hollow"}${extra}`;
  if (drawn.look === look) return;
  drawn.look = look;
  drawn.group.setAttribute("class", look);
  drawn.glyph.textContent = answer < 0 ? "−" : "+";
}

// h, a column for each test; below it B, a row for each leaf; at the foot what makes h: S z, t and S.

import { short } from "./numbers.js";
import { pathTo } from "../../libraries/javascript/machine.js";
import { columnName, plural, sideName } from "./words.js";
import { GridView, letter, rowWeight } from "./grid_view.js";
import { cut, setAttribute, setText, svg, textWidth } from "./svg.js";

const TITLE = 24;
const RESULT = 28;
const MOST_READ = 40;
const NAME_FONT = 12;

/** Which columns S shows, and how much room everything needs with cells and names of this width. */
export function measureMatrix(machine, scene, part, cell, names) {
  const { shape } = scene;
  const read = [...new Set(part.tests.flatMap((j) => columnsOf(machine, shape.test + j)))].sort((a, b) => a - b);
  const columns = read.slice(0, MOST_READ);
  const texts = part.tests.map((j) => short(machine.t[shape.test + j]));
  const isTurned = texts.some((text) => text.length * 7 > cell - 4);
  const number = isTurned ? 58 : 22;
  const sRow = columns.length <= 6 ? 20 : 15;
  const longest = columns.reduce((most, c) => Math.max(most, textWidth(columnName(machine, c), NAME_FONT)), 48);
  const rows = part.rows.reduce((most, row) => Math.max(most, textWidth(rowName(row), NAME_FONT)), 0);
  const gutter = 14 + Math.max(Math.min(longest, names), rows);
  return {
    columns, cell, gutter, isTurned, number, sRow,
    isCut: longest > names,
    nRead: read.length,
    head: part.tests.length ? RESULT + TITLE : TITLE,
    foot: part.tests.length ? 8 + 2 * number + TITLE + columns.length * sRow + 4 : 0,
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
    // Rows of cells, from the top: h, B, S z, t, S.
    this.foot = J ? 1 + part.rows.length : part.rows.length;
    this.nRows = this.foot + (J ? 2 + size.columns.length : 0);
    this.nColumns = J;
    const y = (this.tops = { h: top - size.head, q: top + part.rows.length * row + 8 });
    y.t = y.q + size.number;
    y.S = y.t + size.number + TITLE;
    const dots = svg("pattern", { id: "dots", width: size.cell, height: row, patternUnits: "userSpaceOnUse", x: this.size.gutter, y: top },
      svg("circle", { cx: size.cell / 2, cy: row / 2, r: 1.3, class: "zero" }));
    const small = svg("pattern", { id: "zeros", width: size.cell, height: size.sRow, patternUnits: "userSpaceOnUse", x: size.gutter, y: y.S },
      svg("circle", { cx: size.cell / 2, cy: size.sRow / 2, r: 1.2, class: "zero" }));
    this.band = svg("rect", { class: "band", x: 0, width: size.width, height: row });
    this.rowMark = svg("rect", { class: "cross", x: 0, width: size.width, height: row, visibility: "hidden" });
    this.columnMark = svg("rect", { class: "cross", width: size.cell, visibility: "hidden" });
    this.place(
      size.width, top + part.rows.length * row + 3 + size.foot,
      `h, B, t and S of the tree: ${plural(J, "test")}, ${plural(part.rows.length, "row")}.`,
      [svg("defs", {}, dots, small), this.band, this.rowMark, this.columnMark, ...(J ? this.#ends(scene.shape) : []), this.#templates(scene.shape)],
    );
    this.update(scene);
  }

  /** h above B; S z, t and S below it. */
  #ends(shape) {
    const { machine, part, size, top, tops: y } = this;
    const { cell, columns, sRow, number } = size;
    const middle = (c) => this.size.gutter + (c + 0.5) * cell;
    const parts = [
      letter("S", this.size.gutter - 8, y.S - 6),
      svg("rect", { class: "frame zeros", x: this.size.gutter, y: y.S, width: part.tests.length * cell, height: columns.length * sRow, rx: 3 }),
    ];
    columns.forEach((column, r) => {
      const at = y.S + (r + 0.5) * sRow;
      parts.push(svg("text", { class: "row-name", x: this.size.gutter - 8, y: at + 4 }, cut(columnName(machine, column), this.size.gutter - 14, NAME_FONT)));
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
    this.columnMark.setAttribute("y", this.tops.h);
    this.columnMark.setAttribute("height", this.tops.S + size.columns.length * size.sRow - this.tops.h);
  }

  exitRow() {
    return this.foot - this.part.rows.length + this.part.rowOfLeaf[this.scene.exit];
  }

  cellAt({ row, column }) {
    const { part, size, machine, scene, foot } = this;
    if (row < 0 || column < 0 || row >= this.nRows || column >= this.nColumns) return null;
    const test = part.tests[column];
    if (row === 0) return { part: "h", test };
    if (row >= foot + 2) {
      const read = size.columns[row - foot - 2];
      return { part: "S", test, column: read, value: weightOf(machine, scene.shape.test + test, read) };
    }
    if (row >= foot) return { part: "qt"[row - foot], test };
    const drawn = part.rows[row - 1];
    if (drawn.leaf < 0) return { part: "fold", ...drawn, weight: rowWeight(drawn, scene) };
    return { part: "B", test, leaf: drawn.leaf, value: drawn.template.get(test) ?? 0 };
  }

  boxOf({ row, column }) {
    const { size, top, tops, foot } = this;
    const [x, width] = [this.size.gutter + column * size.cell, size.cell];
    if (row === 0) return { x, y: tops.h, width, height: RESULT };
    if (row < foot) return { x, y: top + (row - 1) * this.row, width, height: this.row };
    if (row < foot + 2) return { x, y: tops["qt"[row - foot]], width, height: size.number };
    return { x, y: tops.S + (row - foot - 2) * size.sRow, width, height: size.sRow };
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

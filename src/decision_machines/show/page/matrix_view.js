// The tree as matrices. Above: S (a column for each test), t, S z and h. Below, on the rows of the
// leaves: B, p, the weights and V.

import { short } from "./numbers.js";
import { pathTo } from "./machine.js";
import { outputName } from "./decisions.js";
import { cellSentence, columnName, plural, sideName } from "./words.js";
import { ROW } from "./tree_view.js";
import { cut, svg } from "./svg.js";

const GUTTER = 116;
const TITLE = 26;
const MOST_VALUES = 4;
const MOST_READ = 40;

/** Which columns S shows, and how much room everything needs. */
export function measureMatrix(machine, scene, part) {
  const { shape } = scene;
  const read = [...new Set(part.tests.flatMap((j) => columnsOf(machine, shape.test + j)))].sort((a, b) => a - b);
  const columns = read.slice(0, MOST_READ);
  const J = part.tests.length;
  const cell = J <= 8 ? 40 : J <= 16 ? 34 : 26;
  const texts = part.tests.map((j) => short(machine.t[shape.test + j]));
  const isTurned = texts.some((text) => text.length * 7 > cell - 4) || cell < 34;
  const number = isTurned ? 54 : 24;
  const sRow = columns.length <= 10 ? 22 : 16;
  const strip = TITLE + columns.length * sRow + 2 * number + 30 + TITLE;
  return { columns, nRead: read.length, cell, isTurned, number, sRow, strip: J ? strip : TITLE };
}

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

export class MatrixView {
  constructor(element, { onPoint, onOpen }) {
    this.element = element;
    this.onPoint = onPoint;
    this.onOpen = onOpen;
    this.cursor = { row: 0, column: 0 };
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "application");
    element.setAttribute("aria-roledescription", "matrices");
    element.addEventListener("pointermove", (event) => this.#pointer(event));
    element.addEventListener("pointerdown", (event) => this.#pointer(event, true));
    element.addEventListener("pointerleave", () => this.mark(null));
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => this.#moveTo(this.cursor));
    element.addEventListener("blur", () => this.box?.setAttribute("visibility", "hidden"));
  }

  draw(machine, scene, part, size, top) {
    Object.assign(this, { machine, part, size, top });
    const { shape } = scene;
    const J = part.tests.length;
    this.values = valueColumns(machine, scene);
    this.left = { B: GUTTER };
    this.left.p = GUTTER + J * size.cell + (J ? 26 : 0);
    this.left.w = this.left.p + 78;
    this.left.V = this.left.w + 122;
    const width = this.left.V + this.values.length * 92 + 6;
    const height = top + part.rows.length * ROW + 4;
    this.width = width;
    const { element } = this;
    element.setAttribute("width", width);
    element.setAttribute("height", height);
    element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    element.setAttribute(
      "aria-label",
      `S, t, h, B, p, weights and V of the tree: ${plural(J, "test")}, ${plural(part.rows.length, "row")}. Arrow keys move over the cells.`,
    );
    const dots = svg("pattern", { id: "dots", width: size.cell, height: ROW, patternUnits: "userSpaceOnUse", x: GUTTER, y: top },
      svg("circle", { cx: size.cell / 2, cy: ROW / 2, r: 1.4, class: "zero" }));
    this.band = svg("rect", { class: "band", x: 0, width, height: ROW });
    this.rowMark = svg("rect", { class: "cross", x: 0, width, height: ROW, visibility: "hidden" });
    this.columnMark = svg("rect", { class: "cross", y: TITLE, width: size.cell, visibility: "hidden" });
    this.box = svg("rect", { class: "cursor", rx: 3, visibility: "hidden" });
    element.replaceChildren(
      svg("defs", {}, dots), this.band, this.rowMark, this.columnMark,
      ...(J ? this.#strip(shape) : []), this.#templates(shape), this.#leaves(shape), this.box,
    );
    this.update(scene);
  }

  /** S, t, S z, h: one column for each test. */
  #strip(shape) {
    const { machine, part, size, top } = this;
    const { cell, columns, sRow, number } = size;
    const y = (this.tops = { S: top - size.strip + TITLE });
    y.t = y.S + columns.length * sRow + 4;
    y.q = y.t + number;
    y.h = y.q + number;
    const parts = [letter("S", GUTTER - 8, y.S - 8, "selects a column")];
    const middle = (c) => GUTTER + (c + 0.5) * cell;
    parts.push(svg("rect", { class: "frame", x: GUTTER, y: y.S, width: part.tests.length * cell, height: columns.length * sRow, rx: 3 }));
    columns.forEach((column, r) => {
      const at = y.S + (r + 0.5) * sRow;
      parts.push(svg("text", { class: "row-name", x: GUTTER - 8, y: at + 4 }, cut(columnName(machine, column), 16)));
      part.tests.forEach((j, c) => {
        const weight = weightOf(machine, shape.test + j, column);
        if (weight === 0) parts.push(svg("circle", { class: "zero", cx: middle(c), cy: at, r: 1.2 }));
        else if (machine.selection) parts.push(svg("circle", { class: "one", cx: middle(c), cy: at, r: Math.min(6, sRow / 2 - 3) }));
        else {
          const w = Math.min(cell - 6, 8 + 3 * Math.log1p(Math.abs(weight)));
          parts.push(svg("rect", { class: `weight ${weight < 0 ? "negative" : "positive"}`, x: middle(c) - w / 2, y: at - sRow / 2 + 3, width: w, height: sRow - 6, rx: 2 }));
        }
      });
    });
    parts.push(letter("t", GUTTER - 8, y.t + number / 2 + 5), letter("S z", GUTTER - 8, y.q + number / 2 + 5), letter("h", GUTTER - 8, y.h + 18));
    this.read = [];
    this.results = [];
    part.tests.forEach((j, c) => {
      parts.push(this.#number(short(machine.t[shape.test + j]), middle(c), y.t + number / 2));
      const read = this.#number("", middle(c), y.q + number / 2, "read");
      const result = signCell(middle(c), y.h + 13, cell);
      this.read.push(read);
      this.results.push(result);
      parts.push(read, result.group);
      parts.push(svg("text", { class: "index", x: middle(c), y: top - 6 }, String(j)));
    });
    parts.push(letter("B", GUTTER - 8, top - 6, "test"));
    return parts;
  }

  #number(text, x, y, kind = "") {
    const turn = this.size.isTurned ? `rotate(-90 ${x} ${y})` : null;
    return svg("text", { class: `number ${kind}`, x, y: y + 4, transform: turn }, text);
  }

  #templates(shape) {
    const { part, size, top } = this;
    const column = new Map(part.tests.map((j, c) => [j, c]));
    const group = svg("g");
    if (part.tests.length) {
      group.append(svg("rect", { class: "frame dotted", x: GUTTER, y: top, width: part.tests.length * size.cell, height: part.rows.length * ROW, rx: 3 }));
    }
    this.templates = [];
    part.rows.forEach((row, r) => {
      const y = top + (r + 0.5) * ROW;
      group.append(svg("text", { class: "row-name", x: GUTTER - 8, y: y + 4 }, row.leaf < 0 ? `▸ ${row.count} leaves` : `leaf ${row.leaf}`));
      row.template = new Map();
      const path = row.leaf < 0
        ? [...pathAbove(shape, row.node)]
        : pathTo(shape, row.leaf);
      for (const { test, answer } of path) {
        const drawn = signCell(GUTTER + (column.get(test) + 0.5) * size.cell, y, size.cell, answer);
        row.template.set(test, answer);
        this.templates.push({ ...drawn, test, answer });
        group.append(drawn.group);
      }
    });
    return group;
  }

  #leaves(shape) {
    const { machine, part, top, left } = this;
    const group = svg("g");
    group.append(letter("p", left.p + 60, top - 6), letter("weight", left.w, top - 6, "", "start"));
    this.values.forEach((index, v) => {
      const name = machine.width === 1 ? "V" : `V ${outputName(machine.output, index)}`;
      group.append(svg("text", { class: "letter", x: left.V + v * 92 + 84, y: top - 6 }, cut(name, 11)));
    });
    this.rows = part.rows.map((row, r) => {
      const y = top + r * ROW;
      const drawn = {
        p: svg("text", { class: "number p", x: left.p + 60, y: y + 17 }),
        trough: svg("rect", { class: "trough", x: left.w, y: y + 7, width: 54, height: 12, rx: 2 }),
        bar: svg("rect", { class: "bar", x: left.w, y: y + 7, height: 12, rx: 2 }),
        weight: svg("text", { class: "number p", x: left.w + 106, y: y + 17 }),
        values: this.values.map((_, v) => svg("text", { class: "number p", x: left.V + v * 92 + 84, y: y + 17 })),
      };
      group.append(drawn.p, drawn.trough, drawn.bar, drawn.weight, ...drawn.values);
      return drawn;
    });
    return group;
  }

  update(scene) {
    const { machine, part, top } = this;
    this.scene = scene;
    part.tests.forEach((j, c) => {
      this.read[c].textContent = Number.isNaN(scene.q[j]) ? "NaN" : short(scene.q[j]);
      setSign(this.results[c], scene.h[j], true);
      this.results[c].group.classList.toggle("on-path", scene.onPath.has(j));
    });
    for (const cell of this.templates) setSign(cell, cell.answer, scene.h[cell.test] === cell.answer);
    this.band.setAttribute("y", top + part.rowOfLeaf[scene.exit] * ROW);
    part.rows.forEach((row, r) => {
      const drawn = this.rows[r];
      const weight = rowWeight(row, scene);
      drawn.p.textContent = row.leaf < 0 ? "…" : short(scene.p[row.leaf]);
      drawn.bar.setAttribute("width", 54 * weight);
      drawn.weight.textContent = weight !== 0 && weight < 1e-4 ? weight.toExponential(0).replace("-", "−") : String(Number(weight.toFixed(4)));
      drawn.values.forEach((text, v) => {
        text.textContent = row.leaf < 0 ? "…" : short(scene.values(row.leaf)[this.values[v]]);
      });
      const isExit = r === part.rowOfLeaf[scene.exit];
      for (const text of [drawn.p, drawn.weight, ...drawn.values]) text.classList.toggle("strong", isExit);
    });
  }

  mark(target) {
    const { part, size, top } = this;
    const column = target?.test === undefined ? -1 : part.tests.indexOf(target.test);
    const row = target?.leaf === undefined ? -1 : part.rowOfLeaf[target.leaf];
    this.rowMark.setAttribute("visibility", row < 0 ? "hidden" : "visible");
    this.columnMark.setAttribute("visibility", column < 0 ? "hidden" : "visible");
    if (row >= 0) this.rowMark.setAttribute("y", top + row * ROW);
    if (column < 0) return;
    this.columnMark.setAttribute("x", GUTTER + column * size.cell);
    this.columnMark.setAttribute("y", this.tops.S);
    this.columnMark.setAttribute("height", top - this.tops.S + part.rows.length * ROW);
  }

  // The cells as one grid: rows of S, then t, q, h, then the leaves; columns are tests, p, w, V.

  #cellAt({ row, column }) {
    const { part, size, machine, scene } = this;
    const nS = size.columns.length;
    const J = part.tests.length;
    const head = J ? nS + 3 : 0;
    if (row < 0 || column < 0 || row >= head + part.rows.length || column >= J + 2 + this.values.length) return null;
    const test = part.tests[column];
    if (row < head) {
      if (column >= J) return null;
      if (row >= nS) return { part: ["t", "q", "h"][row - nS], test };
      const value = weightOf(machine, scene.shape.test + test, size.columns[row]);
      return { part: "S", test, column: size.columns[row], value };
    }
    const drawn = part.rows[row - head];
    if (drawn.leaf < 0) {
      return { part: "fold", ...drawn, weight: rowWeight(drawn, scene) };
    }
    const { leaf } = drawn;
    if (column < J) return { part: "B", test, leaf, value: drawn.template.get(test) ?? 0 };
    if (column === J) return { part: "p", leaf };
    if (column === J + 1) return { part: "w", leaf };
    return { part: "V", leaf, index: this.values[column - J - 2] };
  }

  #boxOf({ row, column }) {
    const { part, size, left, top, tops } = this;
    const J = part.tests.length;
    const head = J ? size.columns.length + 3 : 0;
    let [x, width] = [GUTTER + column * size.cell, size.cell];
    if (column === J) [x, width] = [left.p + 2, 64];
    else if (column === J + 1) [x, width] = [left.w - 4, 114];
    else if (column > J) [x, width] = [left.V + (column - J - 2) * 92 + 4, 86];
    if (row >= head) return { x, y: top + (row - head) * ROW, width, height: ROW };
    const nS = size.columns.length;
    if (row < nS) return { x, y: tops.S + row * size.sRow, width, height: size.sRow };
    return [{ x, y: tops.t, width, height: size.number }, { x, y: tops.q, width, height: size.number }, { x, y: tops.h, width, height: 26 }][row - nS];
  }

  #pointer(event, isPress = false) {
    const box = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const J = this.part.tests.length;
    const rows = (J ? this.size.columns.length + 3 : 0) + this.part.rows.length;
    for (let row = 0; row < rows; row += 1) {
      const { y: low, height } = this.#boxOf({ row, column: 0 });
      if (y < low || y >= low + height) continue;
      for (let column = 0; column < J + 2 + this.values.length; column += 1) {
        const { x: start, width } = this.#boxOf({ row, column });
        if (x < start || x >= start + width) continue;
        const cell = this.#cellAt({ row, column });
        if (!cell) return;
        this.#explain(cell);
        if (isPress) this.cursor = { row, column };
        if (isPress && cell.part === "fold") this.onOpen(cell.node);
        return;
      }
    }
  }

  #explain(cell) {
    this.onPoint({ test: cell.test, leaf: cell.leaf < 0 ? undefined : cell.leaf }, cellSentence(this.machine, this.scene, cell));
  }

  #moveTo(place) {
    const cell = this.#cellAt(place);
    if (!cell) return;
    this.cursor = place;
    const box = this.#boxOf(place);
    for (const name of ["x", "y", "width", "height"]) this.box.setAttribute(name, box[name]);
    this.box.setAttribute("visibility", "visible");
    this.box.scrollIntoView?.({ block: "nearest", inline: "nearest" });
    this.#explain(cell);
  }

  #key(event) {
    const { row, column } = this.cursor;
    const J = this.part.tests.length;
    const exit = (J ? this.size.columns.length + 3 : 0) + this.part.rowOfLeaf[this.scene.exit];
    const to = {
      ArrowRight: { row, column: column + 1 },
      ArrowLeft: { row, column: column - 1 },
      ArrowDown: { row: row + 1, column },
      ArrowUp: { row: row - 1, column },
      Home: { row: 0, column: 0 },
      End: { row: exit, column: J },
    }[event.key];
    if (to) {
      event.preventDefault();
      this.#moveTo(to);
    } else if (event.key === "Enter" || event.key === " ") {
      const cell = this.#cellAt(this.cursor);
      if (cell?.part === "fold") {
        event.preventDefault();
        this.onOpen(cell.node);
      }
    }
  }
}

function rowWeight(row, scene) {
  let weight = 0;
  for (let i = row.first; i < row.first + row.count; i += 1) weight += scene.weights[i];
  return row.count === 1 ? scene.weights[row.first] : weight;
}

function* pathAbove(shape, node) {
  for (let j = node; shape.parent[j] >= 0; j = shape.parent[j]) yield { test: shape.parent[j], answer: shape.side[j] };
}

/** The columns of V that are drawn: all, or the few with the largest values in this tree. */
function valueColumns(machine, scene) {
  const all = Array.from({ length: machine.width }, (_, c) => c);
  if (all.length <= MOST_VALUES) return all;
  const { shape } = scene;
  const size = all.map((c) => {
    let total = 0;
    for (let i = 0; i < shape.nLeaves; i += 1) total += Math.abs(machine.V[(shape.leaf + i) * machine.width + c]);
    return total;
  });
  return all.sort((a, b) => size[b] - size[a]).slice(0, MOST_VALUES).sort((a, b) => a - b);
}

/** What of the matrices is not drawn, in words. */
export function leftOut(machine, size) {
  const said = [];
  if (size.nRead > size.columns.length) said.push(`${size.columns.length} of the ${size.nRead} columns that this tree reads are drawn in S`);
  if (machine.width > MOST_VALUES) said.push(`${MOST_VALUES} of the ${machine.width} columns of V are drawn, those with the largest values`);
  return said;
}

function letter(text, x, y, under = "", anchor = "end") {
  const found = svg("text", { class: "letter", x, y, "text-anchor": anchor }, text);
  if (under) found.append(svg("tspan", { class: "under" }, ` ${under}`));
  return found;
}

function signCell(x, y, cell, answer = 0) {
  const side = Math.min(cell, ROW) - 7;
  const group = svg("g", { class: "sign" },
    svg("rect", { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 4 }),
    svg("text", { x, y: y + 4.5 }));
  const drawn = { group, glyph: group.lastChild };
  if (answer) drawn.glyph.textContent = answer < 0 ? "−" : "+";
  return drawn;
}

function setSign(drawn, answer, agrees) {
  const look = `sign ${sideName(answer)} ${agrees ? "solid" : "hollow"}`;
  if (drawn.look === look) return;
  drawn.look = look;
  drawn.group.setAttribute("class", look);
  drawn.glyph.textContent = answer < 0 ? "−" : "+";
}

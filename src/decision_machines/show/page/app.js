// The page: its state (x, the tree, the temperature, what is unfolded) and what follows from it.

import { full, short, parse } from "./numbers.js";
import { bytesOf, pathTo, readMachine, shapeOf, unpack } from "./machine.js";
import { agreements, evaluate, leafValue, selected, similarities, testResults } from "./evaluate.js";
import { softMargins, softTree } from "./soften.js";
import { nearestChange, moved } from "./nearest.js";
import { condition, leafName, plural, sideName, testSentence } from "./words.js";
import { drawnPart } from "./drawn.js";
import { LEAF_WIDTHS, TreeView, treeWidth } from "./tree_view.js";
import { MatrixView, measureMatrix } from "./matrix_view.js";
import { MOST_VALUES, ValuesView, valueColumns, valuesWidth } from "./values_view.js";
import { Inputs, firstInput } from "./inputs.js";
import { Forest } from "./forest.js";
import { respond } from "./links.js";
import { answerFor, focusOutput, predictionText, showAnswer } from "./answer.js";
import { Change } from "./change.js";
import { byId, html } from "./svg.js";

const data = JSON.parse(byId("data").textContent);
const machine = readMachine(data.machine);
const spans = unpack(data.spans);
const rows = data.rows && { ...data.rows, x: unpack(data.rows.x), number: unpack(data.rows.number) };

const state = { x: firstInput(machine, spans, rows), tree: 0, tau: 0, row: rows ? 0 : -1, opened: new Set() };
let scene = null;
let part = null;
let lastWidth = 0;

// ------------------------------------------------------------------ what follows from the state

function makeScene() {
  const { x, tree, tau } = state;
  const { cast, z, exits, margin } = evaluate(machine, x);
  const shape = shapeOf(machine, tree);
  const h = testResults(machine, z, tree);
  const exit = exits[tree];
  const path = pathTo(shape, exit);
  const onPath = new Set(path.map(({ test }) => test));
  const soft = tau > 0 ? softTree(machine, z, tree, tau) : null;
  const answer = answerFor(machine, margin);
  return {
    x, cast, z, exits, margin, shape, h, exit, path, onPath, tau, answer,
    q: Float64Array.from({ length: shape.nTests }, (_, j) => selected(machine, z, shape.test + j)),
    agree: agreements(machine, h, tree),
    p: similarities(machine, h, tree),
    weights: soft ? soft.weights : Float64Array.from({ length: shape.nLeaves }, (_, i) => (i === exit ? 1 : 0)),
    reach: soft ? soft.reach : Float64Array.from({ length: shape.nTests }, (_, j) => (onPath.has(j) ? 1 : 0)),
    right: soft ? soft.right : null,
    gate: (j) => (soft ? soft.right[j] : h[j] > 0 ? 1 : 0),
    softMargin: tau > 0 ? softMargins(machine, cast, z, tau) : null,
    focusOutput: focusOutput(machine, answer),
    holdsShares,
    values: (leaf) => Array.from({ length: machine.width }, (_, c) => leafValue(machine, cast, shape.leaf + leaf, c)),
    outputOf: (c) => (machine.feeds[tree] < 0 ? c : machine.feeds[tree]),
  };
}

const holdsShares = (() => {
  const { classes } = machine.output;
  if (!classes || classes.length !== 1 || machine.linear || machine.width < 2 || classes[0].length !== machine.width) return false;
  return machine.V.every((value) => value >= 0);
})();

// ------------------------------------------------------------------ the views

let pointed = null;
const mark = (target) => {
  pointed = target;
  for (const view of [treeView, matrixView, valuesView]) view.mark(target);
};
const point = (target, sentence) => {
  byId("explain-text").textContent = sentence;
  mark(target);
};
const open = (node) => {
  state.opened.add(node);
  drawTree();
};
const treeView = new TreeView(byId("tree"), { onPoint: point, onOpen: open });
const matrixView = new MatrixView(byId("matrix"), { onPoint: point, onOpen: open });
const valuesView = new ValuesView(byId("values"), { onPoint: point, onOpen: open });
const inputs = new Inputs(machine, spans, {
  onChange(typing) {
    state.row = -1;
    refresh(typing);
  },
});
const forest = new Forest(machine, { onPick: pickTree });
const change = new Change(machine, spans, { onTry: setInput });

function pickTree(tree) {
  state.tree = tree;
  state.opened = new Set();
  pointed = null;
  forest.show(tree);
  scene = makeScene();
  drawTree();
  arrangeInputs();
  showScene();
}

const LOOKS = [
  ...[180, 160, 140, 124].map((step) => ({ step, leaf: LEAF_WIDTHS.wide })),
  ...[140, 124, 110].map((step) => ({ step, leaf: LEAF_WIDTHS.narrow })),
  ...[124, 110, 94].map((step) => ({ step, leaf: LEAF_WIDTHS.bare })),
];
const CELLS = [40, 34, 30, 24];

const isBelow = (width) => matchMedia(`(max-width: ${width})`).matches;

/** The roomiest drawing that fits beside itself; else the smallest, whose parts scroll. */
function fit(columns) {
  // Asked for once: each answer makes the browser lay out everything.
  lastWidth ||= byId("views").clientWidth;
  const all = lastWidth;
  const room = isBelow("50rem") ? all : all - valuesWidth(columns.length) - 4;
  const isStacked = isBelow("70rem");
  for (const look of LOOKS) {
    for (const cell of CELLS) {
      const size = measureMatrix(machine, scene, part, cell);
      const tree = treeWidth(part.depth, look);
      const fits = isStacked ? tree <= all && size.width <= room : tree + size.width <= room;
      if (fits) return { look, size, tree };
    }
  }
  if (isStacked) {
    const look = LOOKS.find((tried) => treeWidth(part.depth, tried) <= all) ?? LOOKS.at(-1);
    return { look, size: measureMatrix(machine, scene, part, CELLS.at(-1)), tree: all };
  }
  const size = measureMatrix(machine, scene, part, CELLS.at(-1));
  const tree = Math.min(treeWidth(part.depth, LOOKS.at(-1)), Math.max(0.45 * room, room - size.width));
  return { look: LOOKS.at(-1), size, tree };
}

function drawTree() {
  const { shape } = scene;
  const held = document.activeElement?.item?.node;
  part = drawnPart(shape, scene.path.map(({ test }) => test), state.opened);
  const columns = valueColumns(machine, shape);
  const { look, size, tree } = fit(columns);
  const row = part.rows.length <= 24 ? 26 : 20;
  const words = 40 + 25 * Math.min(Math.max(scene.path.length + 1, 5), 10);
  const top = Math.max(size.strip, words) + 4;
  byId("views").style.setProperty("--strip", `${top}px`);
  byId("views").style.setProperty("--tree", `${tree}px`);
  treeView.draw(machine, scene, part, look, row);
  const matrixTop = isBelow("70rem") ? size.strip + 4 : top;
  matrixView.draw(machine, scene, part, size, matrixTop, row);
  valuesView.draw(machine, scene, part, columns, isBelow("50rem") ? 40 : matrixTop, row);
  if (held !== undefined) treeView.focusNode(held);
  mark(pointed);
  const said = [];
  if (!part.isWhole) {
    said.push(`${part.rows.length} rows are drawn of a tree with ${plural(shape.nLeaves, "leaf", "leaves")}: the rest is folded (▸) and opens with a click or Enter; the path of x is always drawn`);
  }
  if (size.nRead > size.columns.length) said.push(`${size.columns.length} of the ${size.nRead} columns that these tests read are drawn in S`);
  if (machine.width > MOST_VALUES) said.push(`${MOST_VALUES} of the ${machine.width} columns of V are drawn, those with the largest values`);
  byId("cut").hidden = !said.length;
  byId("cut").textContent = said.length ? `${said.join("; ")}.` : "";
}

let resizing = 0;
new ResizeObserver(() => {
  const width = byId("views").clientWidth;
  if (!scene || width === lastWidth) return;
  lastWidth = width;
  clearTimeout(resizing);
  resizing = setTimeout(drawTree, 100);
}).observe(byId("views"));

function arrangeInputs() {
  const { shape } = scene;
  const used = new Set();
  const cuts = new Map();
  for (let j = shape.test; j < shape.test + shape.nTests; j += 1) {
    const columns = machine.selection ? [machine.selection[j]] : machine.S.column.subarray(machine.S.start[j], machine.S.start[j + 1]);
    for (const column of columns) {
      const feature = machine.columns.feature[column];
      used.add(feature);
      if (!machine.selection || machine.columns.setOf[column] >= 0) continue;
      if (!cuts.has(feature)) cuts.set(feature, []);
      cuts.get(feature).push(machine.t[j]);
    }
  }
  inputs.arrange(state.x, used, cuts);
}

function showScene() {
  forest.update(scene);
  showAnswer(machine, scene.answer, scene, state.row >= 0 && rows?.y ? rows.y[state.row] : null);
  showPath();
  change.update(state.x, state.tree);
  announce();
}

let waitsForFrame = false;
function refresh(typing = null) {
  inputs.show(state.x, typing);
  showRow();
  if (waitsForFrame) return;
  waitsForFrame = true;
  requestAnimationFrame(() => {
    waitsForFrame = false;
    redraw();
  });
}

function redraw() {
  scene = makeScene();
  if (part.rows[part.rowOfLeaf[scene.exit]].leaf < 0) drawTree();
  else {
    treeView.update(scene);
    matrixView.update(scene);
    valuesView.update(scene);
  }
  showScene();
}

function setInput(x, row = -1) {
  state.x = Float64Array.from(x);
  state.row = row;
  inputs.forgive();
  refresh();
}

function showPath() {
  const items = scene.path.map(({ test, answer }) => {
    const chip = html("span", { class: `chip ${sideName(answer)} solid`, "aria-label": sideName(answer) }, answer < 0 ? "−" : "+");
    const read = Number.isNaN(scene.q[test]) ? " (missing)" : "";
    const item = html("li", {}, chip, html("span", {}, condition(machine, scene.shape.test + test, answer) + read));
    item.addEventListener("pointerenter", () => point({ test }, testSentence(machine, scene, test)));
    return item;
  });
  const leaf = html("li", { class: "leaf-line" }, html("b", { id: "exit-leaf" }, `leaf ${scene.exit}`), html("span", {}, ` of ${scene.shape.nLeaves}: ${leafName(machine, scene, scene.exit)}`));
  byId("path").replaceChildren(...items, leaf);
}

let talking = 0;
function announce() {
  clearTimeout(talking);
  const text = `Leaf ${scene.exit}. Prediction ${predictionText(machine, scene.answer)}.`;
  talking = setTimeout(() => {
    byId("live").textContent = text;
  }, 500);
}

// ------------------------------------------------------------------ rows, temperature, theme

function makeRows() {
  if (!rows) return;
  const n = rows.number.length;
  const field = html("input", { type: "text", inputmode: "numeric", id: "row", class: "number-field", "aria-describedby": "row-error" });
  const error = html("p", { class: "field-error", id: "row-error", role: "alert" });
  const go = (row) => setInput(rows.x.subarray(row * machine.nFeatures, (row + 1) * machine.nFeatures), row);
  const step = (by) => () => go(((state.row < 0 ? (by > 0 ? -1 : 0) : state.row) + by + n) % n);
  const button = (text, name, by) => {
    const made = html("button", { type: "button", class: "quiet", "aria-label": name }, text);
    made.addEventListener("click", step(by));
    return made;
  };
  field.addEventListener("input", () => {
    const { value } = parse(field.value);
    const at = rows.number.indexOf(value);
    field.setAttribute("aria-invalid", at < 0 ? "true" : "false");
    error.textContent = at >= 0 ? "" : n < rows.of && Number.isInteger(value) && value >= 0 && value < rows.of
      ? "This row is not in the page." : `Rows are 0 to ${rows.of - 1}.`;
    if (at >= 0 && at !== state.row) go(at);
  });
  field.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by) {
      event.preventDefault();
      step(by)();
    }
  });
  const cutNote = n < rows.of ? `${n} of the ${rows.of} rows are in this page, evenly spread.` : "";
  byId("rows").hidden = false;
  byId("rows").append(
    html("label", { for: "row" }, "Row"),
    html("div", { class: "with-buttons" }, button("‹", "Previous row", -1), field, button("›", "Next row", 1)),
    html("span", { class: "muted small", id: "row-note" }), error,
    html("p", { class: "muted small" }, cutNote),
  );
}

function showRow() {
  if (!rows) return;
  const field = byId("row");
  if (state.row >= 0) {
    if (document.activeElement !== field || field.getAttribute("aria-invalid") !== "true") field.value = rows.number[state.row];
    field.setAttribute("aria-invalid", "false");
    byId("row-error").textContent = "";
  }
  byId("row-note").textContent = state.row >= 0 ? `of ${rows.of}` : "changed by hand";
}

/** The slider's stations: hard, then τ from a thousandth of a typical slider to a hundred times it. */
function makeTemperature() {
  const lengths = Array.from({ length: machine.nFeatures }, (_, i) => spans[2 * i + 1] - spans[2 * i]).sort((a, b) => a - b);
  const unit = Math.log10(lengths[lengths.length >> 1] || 1);
  const [low, high] = [unit - 3.5, unit + 1.5];
  const slider = html("input", { type: "range", id: "tau-slider", min: 0, max: 1000, step: 1, value: 0 });
  const field = html("input", { type: "text", inputmode: "decimal", id: "tau", class: "number-field", "aria-label": "Temperature, exact value; 0 is hard", "aria-describedby": "tau-error", autocomplete: "off" });
  const error = html("p", { class: "field-error", id: "tau-error", role: "alert" });
  const set = (tau, typing) => {
    state.tau = tau;
    const text = tau === 0 ? "hard" : `τ = ${short(tau)}`;
    slider.setAttribute("aria-valuetext", text);
    byId("tau-text").textContent = tau === 0 ? "hard: all weight on one leaf" : "soft: weight flows to every leaf";
    if (!typing) {
      field.value = tau === 0 ? "0" : full(tau, false);
      field.removeAttribute("aria-invalid");
      error.textContent = "";
    } else slider.value = tau === 0 ? 0 : Math.max(1, Math.min(1000, (1000 * (Math.log10(tau) - low)) / (high - low)));
    if (scene) refresh();
  };
  slider.addEventListener("input", () => {
    const at = Number(slider.value);
    set(at === 0 ? 0 : Number((10 ** (low + ((high - low) * at) / 1000)).toPrecision(3)), false);
  });
  field.addEventListener("input", () => {
    const found = parse(field.value);
    const isGood = !found.error && found.value >= 0 && Number.isFinite(found.value);
    field.setAttribute("aria-invalid", isGood ? "false" : "true");
    error.textContent = isGood ? "" : `${found.error ?? "A temperature is 0 (hard) or a positive number."} Kept: ${full(state.tau, false)}.`;
    if (isGood) set(found.value, true);
  });
  byId("temperature").append(
    html("label", { for: "tau-slider" }, "Temperature ", html("i", { class: "letter" }, "τ")),
    slider, field, html("span", { id: "tau-text", class: "muted small" }), error,
  );
  set(0, false);
}

function makeTheme() {
  const button = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
    button.textContent = now === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${now === "dark" ? "light" : "dark"} colours`);
    return now;
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = show() === "dark" ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  show();
}

// ------------------------------------------------------------------ the page checks itself

/** Whether leaves and margins of the rows that Python answered are the same here, to the bit. */
function checkItself() {
  const [x, leaves, margin, response] = ["x", "leaves", "margin", "response"].map((name) => unpack(data.check[name]));
  const n = data.check.x.shape[0];
  const width = data.check.response.shape[1];
  let wrong = 0;
  let far = 0;
  for (let row = 0; row < n; row += 1) {
    const found = evaluate(machine, x.subarray(row * machine.nFeatures, (row + 1) * machine.nFeatures));
    const isSame =
      found.exits.every((leaf, tree) => leaf === leaves[row * machine.nTrees + tree]) &&
      found.margin.every((m, o) => Object.is(m, margin[row * machine.output.k + o]));
    if (!isSame) wrong += 1;
    const answer = answerFor(machine, found.margin).response;
    const limit = machine.output.single ? 1e-6 : 1e-12;
    if (answer && !answer.every((v, o) => near(v, response[row * width + o], limit))) far += 1;
  }
  const badge = byId("check");
  const isGood = wrong === 0 && far === 0;
  badge.classList.add(isGood ? "good" : "bad");
  badge.textContent = isGood
    ? `✓ ${n} rows × ${plural(machine.nTrees, "tree")} checked here: equal to Python`
    : `✗ ${wrong || far} of ${n} rows differ from Python in this browser`;
}

const near = (a, b, limit) => Object.is(a, b) || a === b || Math.abs(a - b) <= limit * Math.max(1, Math.abs(b));

// ------------------------------------------------------------------ opening

function begin() {
  byId("title").textContent = data.title;
  const counts = [plural(machine.nTrees, "tree"), plural(machine.nLeaves, "leaf", "leaves"), plural(machine.nFeatures, "feature")];
  if (machine.output.k > 1) counts.push(plural(machine.output.k, "output"));
  if (!machine.selection) counts.push("oblique tests");
  if (machine.linear) counts.push("linear leaves");
  counts.push(`${machine.single ? "float32" : "float64"} columns`, `sums in ${machine.output.dtype}`);
  byId("summary").textContent = (data.title !== machine.source && machine.source ? `${machine.source} · ` : "") + counts.join(" · ");
  makeTheme();
  makeRows();
  makeTemperature();
  if (!machine.nTrees) {
    byId("figure").hidden = true;
    byId("notices").append(html("p", { class: "notice" }, "This machine has no trees."));
    return;
  }
  pickTree(0);
  showRow();
  checkItself();
}

/** Numbers as the decimal text of their 64 bits: JSON would lose NaN and the sign of zero. */
const bits = (values) => Array.from(new BigUint64Array(Float64Array.from(values).buffer), String);

/** For scripts and tests: rows as base64 of float64 in, answers as plain arrays out. */
globalThis.explorer = {
  machine,
  state,
  scene: () => scene,
  rows(base64) {
    const x = new Float64Array(bytesOf(base64).buffer);
    const n = x.length / machine.nFeatures;
    return Array.from({ length: n }, (_, row) => x.subarray(row * machine.nFeatures, (row + 1) * machine.nFeatures));
  },
  evaluate(base64) {
    return this.rows(base64).map((x) => {
      const { exits, margin } = evaluate(machine, x);
      const answer = answerFor(machine, margin);
      return { exits: Array.from(exits), margin: bits(margin), response: answer.response && bits(answer.response), prediction: predictionText(machine, answer) };
    });
  },
  /** Responses of margins for any output, given as in the page's data. */
  respond(output, margins) {
    const given = { ...output, linkParams: output.link_params, single: output.dtype === "float32" };
    return margins.map((margin) => bits(respond(given, margin)));
  },
  soft(base64, tree, tau) {
    return this.rows(base64).map((x) => {
      const { cast, z } = evaluate(machine, x);
      return { weights: Array.from(softTree(machine, z, tree, tau).weights), margin: softMargins(machine, cast, z, tau) };
    });
  },
  nearest(base64, tree, wanted) {
    return this.rows(base64).map((x) => {
      const { fewest, smallest } = nearestChange(machine, x, tree, change.scales, wanted);
      const told = (move) => move && { x: bits(moved(x, move)), leaf: move.leaf, count: move.count, size: move.size, answer: move.answer };
      return { fewest: told(fewest), smallest: told(smallest) };
    });
  },
  setInput,
  pickTree,
};

begin();
document.documentElement.dataset.ready = "true";
performance.mark("ready");

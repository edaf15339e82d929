// The page: its state (x, the tree, the temperature, what is unfolded) and what follows from it.

import { bytesOf, readMachine, unpack } from "../../libraries/javascript/machine.js";
import { evaluate } from "../../libraries/javascript/evaluate.js";
import { respond } from "../../libraries/javascript/links.js";
import { softMargins, softTree } from "./soften.js";
import { searchChange } from "./change_search.js";
import { condition } from "./conditions.js";
import { leafName, plural, sideName, testSentence } from "./words.js";
import { drawnPart } from "./drawn.js";
import { TreeView, cutLook, treeLooks } from "./tree_view.js";
import { MatrixView, measureMatrix } from "./matrix_view.js";
import { MOST_VALUES, ValuesView, valueColumns, valuesWidth } from "./values_view.js";
import { Inputs, firstInput } from "./inputs.js";
import { Forest } from "./forest.js";
import { answerFor, predictionText, showAnswer } from "./answer.js";
import { makeScene } from "./scene.js";
import { Change, changeScales } from "./change.js";
import { Rows } from "./rows.js";
import { makeTemperature } from "./temperature.js";
import { makeTheme } from "./theme.js";
import { makeHow } from "./how.js";
import { checkItself } from "./check.js";
import { byId, html } from "./svg.js";

const data = JSON.parse(byId("data").textContent);
const machine = readMachine(data.machine);
const spans = unpack(data.spans);
const rows = data.rows && new Rows(machine, data.rows, { onPick: setInput });

const state = {
  x: rows ? Float64Array.from(rows.row(0)) : firstInput(machine, spans),
  tree: 0,
  tau: 0,
  row: rows ? 0 : -1,
  opened: new Set(),
  onlyPath: false,
};
let scene = null;
let part = null;
let lastWidth = 0;

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
const scales = changeScales(machine, spans, data);
const change = new Change(machine, scales, { onTry: setInput });

function pickTree(tree) {
  state.tree = tree;
  state.opened = new Set();
  pointed = null;
  forest.show(tree);
  scene = makeScene(machine, state);
  drawTree();
  arrangeInputs();
  showScene();
}

const CELLS = [40, 34, 30, 24];
/** How much of the names beside S is shown, in CSS pixels, where there is less and less room. */
const NAMES = [280, 170, 100];
/** So many tests of the matrices are seen at least, where they do not fit and scroll. */
const LEAST_TESTS = 6;

const isBelow = (width) => matchMedia(`(max-width: ${width})`).matches;

/** What the matrices draw: every test that the tree draws, or those on the path of x. */
const columnsPart = () => (state.onlyPath ? { ...part, tests: part.tests.filter((j) => scene.onPath.has(j)) } : part);

/** The roomiest drawing that fits beside itself; else the tree gets what it needs, and the matrices scroll. */
function fit(columns, row) {
  // Asked for once: each answer makes the browser lay out everything.
  lastWidth ||= byId("views").clientWidth;
  const isStacked = isBelow("70rem");
  const room = isBelow("50rem") ? lastWidth : lastWidth - valuesWidth(machine, columns) - 4;
  const sizes = NAMES.flatMap((names) => CELLS.map((cell) => measureMatrix(machine, scene, columnsPart(), cell, names)));
  const looks = treeLooks(machine, scene, part, row);
  for (const isCut of [false, true]) {
    for (const look of looks) {
      for (const size of sizes) {
        if (size.isCut !== isCut) continue;
        const fits = isStacked ? look.width <= lastWidth && size.width <= room : look.width + size.width <= room;
        if (fits) return { look, size, tree: look.width, fits };
      }
    }
  }
  const narrow = sizes.filter((size) => size.cell === CELLS.at(-1));
  const size = narrow.find((tried) => tried.gutter < 0.4 * room) ?? narrow.at(-1);
  const most = isStacked ? lastWidth : Math.max(0.5 * room, room - Math.min(size.width, size.gutter + LEAST_TESTS * size.cell));
  const look = looks.find((tried) => tried.width <= most) ?? cutLook(part, most);
  return { look, size, tree: isStacked ? lastWidth : Math.min(look.width, most) };
}

function drawTree() {
  const { shape } = scene;
  const held = document.activeElement?.item?.node;
  part = drawnPart(shape, scene.path.map(({ test }) => test), state.opened);
  const columns = valueColumns(machine, shape);
  const row = part.rows.length <= 16 ? 26 : 20;
  const { look, size, tree, fits } = fit(columns, row);
  byId("only-path-label").hidden = Boolean(fits) && !state.onlyPath;
  const top = Math.max(size.head, machine.width > 1 ? 40 : 0) + 4;
  byId("views").style.setProperty("--head", `${top}px`);
  byId("views").style.setProperty("--tree", `${tree}px`);
  // Many things that glide at once would make a slider stutter.
  byId("views").classList.toggle("still", part.rows.length > 24);
  treeView.draw(machine, scene, part, look, row);
  matrixView.draw(machine, scene, columnsPart(), size, top, row);
  valuesView.draw(machine, scene, part, columns, isBelow("50rem") ? 40 : top, row);
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
  showAnswer(machine, scene.answer, scene, rows?.known(state.row) ?? null);
  showPath();
  change.update(state.x);
  announce();
}

let waitsForFrame = false;
function refresh(typing = null) {
  inputs.show(state.x, typing);
  rows?.show(state.row);
  if (waitsForFrame) return;
  waitsForFrame = true;
  requestAnimationFrame(() => {
    waitsForFrame = false;
    redraw();
  });
}

function redraw() {
  const before = scene?.exit;
  scene = makeScene(machine, state);
  const isFolded = part.rows[part.rowOfLeaf[scene.exit]].leaf < 0;
  if (isFolded || (state.onlyPath && scene.exit !== before)) drawTree();
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
  makeHow(machine);
  byId("only-path").addEventListener("change", (event) => {
    state.onlyPath = event.target.checked;
    drawTree();
  });
  makeTemperature(machine, spans, (tau) => {
    state.tau = tau;
    refresh();
  });
  for (const notice of data.notices) byId("notices").append(html("p", { class: "notice" }, notice));
  if (!machine.nTrees) {
    byId("figure").hidden = true;
    byId("notices").append(html("p", { class: "notice" }, "This machine has no trees."));
    return;
  }
  pickTree(0);
  rows?.show(0);
  checkItself(machine, data.check);
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
  /** What would change the answers; `boxes` bounds the search as time does in the page. */
  change(base64, wanted, boxes) {
    return this.rows(base64).map((x) => {
      const search = searchChange(machine, x, scales, wanted, { boxes, isOver: () => false });
      let step = search.next();
      while (!step.done) step = search.next();
      const told = (found) => found && { ...found, x: bits(found.x), changes: found.changes.length, prediction: predictionText(machine, answerFor(machine, evaluate(machine, found.x).margin)) };
      return { ...step.value, fewest: told(step.value.fewest), smallest: told(step.value.smallest) };
    });
  },
  setInput,
  pickTree,
};

begin();
document.documentElement.dataset.ready = "true";
performance.mark("ready");

// The tree as a tree: root on the left, leaves on the right, one on each row of B.
//
// A small tree has boxes, a test between the rows of its two children. A deep one is indented: each
// test stands on the line between the last leaf of its left side and the first of its right side.
// No two tests share such a line, so a test can be written out whatever its depth, and no branch
// crosses it.

import { short } from "./numbers.js";
import { conditionParts } from "./conditions.js";
import { leafName, plural, sideName, testSentence } from "./words.js";
import { cut, setAttribute, svg, textWidth, widthFor, wrap } from "./svg.js";

const LINE = 13;
const GAP = 28;
const NODE_FONT = 11.5;
const MARGIN = 14;
const TRUNK = 8;
const SPEAK_AFTER = 150;
const INDENTS = [34, 28, 22, 18, 14];
const NODE = { least: 66, most: 260 };
const BEFORE_LEAF = 6;
const ROOM_FOR_TEXT = 170;
/** A leaf with its value, with its number alone, and as a dot before the row's name in B. */
export const LEAF_WIDTHS = { wide: 128, narrow: 36, bare: 12 };

const nameLines = (row) => (row > 22 ? 2 : 1);

/** The ways to draw a tree without cutting a text, the best first: {step, leaf, body, width, isIndented}. */
export function treeLooks(machine, scene, part, row) {
  const texts = part.tests.map((j) => ({ level: scene.shape.depth[j], parts: conditionParts(machine, scene.shape.test + j) }));
  const box = texts.reduce((most, { parts: [name, rest] }) => Math.max(most, widthFor(name, nameLines(row), NODE_FONT), textWidth(rest, NODE_FONT)), NODE.least) + MARGIN;
  const leaves = [LEAF_WIDTHS.wide, LEAF_WIDTHS.narrow, LEAF_WIDTHS.bare];
  const indented = (leaf) => (step) => {
    // A line of an indented tree may reach over the levels below it, up to the leaves.
    const reach = texts.reduce((most, { level, parts }) => Math.max(most, level * step + textWidth(parts.join(" "), NODE_FONT) + MARGIN), 0);
    return asLook(step, leaf, Math.max(reach + BEFORE_LEAF, part.depth * step), true);
  };
  const boxes = box <= NODE.most ? leaves.map((leaf) => asLook(box + GAP, leaf, part.depth * (box + GAP), false)) : [];
  return [...boxes, ...leaves.flatMap((leaf) => INDENTS.map(indented(leaf)))];
}

const asLook = (step, leaf, body, isIndented) => ({ step, leaf, body, isIndented, width: 4 + body + leaf + 2 });

/** For a tree that would be too wide: indented, its longest texts cut where the leaves begin. */
export function cutLook(part, width) {
  const body = Math.max(width - LEAF_WIDTHS.bare - 6, 60);
  const step = Math.max(INDENTS.at(-1), Math.min(INDENTS[0], (body - ROOM_FOR_TEXT) / Math.max(1, part.depth)));
  return asLook(step, LEAF_WIDTHS.bare, Math.max(body, part.depth * step + NODE.least), true);
}

export class TreeView {
  constructor(element, { onPoint, onOpen }) {
    this.element = element;
    this.onPoint = onPoint;
    this.onOpen = onOpen;
    element.setAttribute("role", "tree");
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("pointerover", (event) => this.#pointed(event.target));
    element.addEventListener("focusin", (event) => this.#pointed(event.target));
    element.addEventListener("click", (event) => this.#clicked(event.target));
  }

  /** Draw a tree anew, in one of its looks, rows so high. */
  draw(machine, scene, part, look, row) {
    Object.assign(this, { machine, part, row, look, shape: scene.shape, leafWidth: look.leaf });
    this.items = new Map();
    this.order = [];
    this.leafHeight = Math.min(row - 4, Math.max(look.leaf, 12));
    this.labels = new Map(part.tests.map((j) => {
      const [name, rest] = conditionParts(machine, scene.shape.test + j);
      if (look.isIndented) return [j, [cut(`${name} ${rest}`, look.body - BEFORE_LEAF - scene.shape.depth[j] * look.step - MARGIN + 0.5, NODE_FONT)]];
      const room = look.step - GAP - MARGIN;
      return [j, [...wrap(name, room, nameLines(row), NODE_FONT), cut(rest, room, NODE_FONT)]];
    }));
    const nLines = Math.max(1, ...[...this.labels.values()].map((lines) => lines.length));
    this.nodeHeight = look.isIndented ? Math.min(row - 3, 20) : 10 + LINE * nLines;
    const { width } = look;
    // One test with two leaves is a little higher than its rows.
    const room = Math.max(0, this.nodeHeight - part.rows.length * row) + 3;
    const height = part.rows.length * row + room;
    this.element.setAttribute("width", width);
    this.element.setAttribute("height", height);
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.setAttribute("aria-label", `Tree with ${plural(scene.shape.nLeaves, "leaf", "leaves")}`);
    const [edges, flows] = [svg("g", { "aria-hidden": "true" }), svg("g", { "aria-hidden": "true" })];
    const nodes = svg("g", { role: "presentation" });
    const stack = [{ node: scene.shape.nTests ? 0 : -1, parent: null, answer: 0, level: 0 }];
    while (stack.length) {
      const { node, parent, answer, level } = stack.pop();
      const isLeaf = node < 0;
      const isFold = !isLeaf && !part.isOpen(node);
      const item = { node, parent, answer, level, kind: isLeaf ? "leaf" : isFold ? "fold" : "test" };
      item.y = item.kind === "test" && look.isIndented ? this.#border(node) : (part.middleOf(node) + 0.5) * row;
      item.x = item.kind === "test" ? 4 + level * look.step : 4 + look.body;
      item.width = item.kind === "test" ? this.#nodeWidth(node) : look.leaf;
      if (parent !== null) this.#edge(item, this.items.get(parent), edges, flows);
      this.#node(item, nodes, scene);
      this.items.set(node, item);
      this.order.push(item);
      if (item.kind === "test") {
        const { children } = scene.shape;
        stack.push({ node: children[2 * node + 1], parent: node, answer: 1, level: level + 1 });
        stack.push({ node: children[2 * node], parent: node, answer: -1, level: level + 1 });
      }
    }
    this.element.replaceChildren(edges, flows, nodes);
    this.order[0].group.setAttribute("tabindex", "0");
    this.update(scene);
    this.#speak();
  }

  /** Between the last row of a test's left side and the first of its right side. */
  #border(test) {
    const { shape, part, row } = this;
    const left = shape.children[2 * test];
    const last = shape.first[test] + (left >= 0 ? shape.count[left] : 1) - 1;
    return (part.rowOfLeaf[last] + 1) * row;
  }

  #nodeWidth(test) {
    const { look } = this;
    return look.isIndented ? textWidth(this.labels.get(test)[0], NODE_FONT) + MARGIN : look.step - GAP;
  }

  #edge(item, above, edges, flows) {
    const { isIndented } = this.look;
    const [x0, gap] = [above.x + above.width, GAP];
    const bend = Math.min(6, Math.abs(item.y - above.y) / 2) * Math.sign(item.y - above.y);
    const x = above.x + TRUNK;
    const line = isIndented
      ? `M${x} ${above.y}V${item.y - bend}Q${x} ${item.y} ${x + Math.abs(bend)} ${item.y}H${item.x}`
      : `M${x0} ${above.y}C${x0 + 0.64 * gap} ${above.y} ${x0 + 0.36 * gap} ${item.y} ${x0 + gap} ${item.y}H${item.x}`;
    edges.append(svg("path", { d: line, class: "edge" }));
    item.flow = svg("path", { d: line, class: `flow ${sideName(item.answer)}` });
    flows.append(item.flow);
  }

  #node(item, nodes, scene) {
    const isTest = item.kind === "test";
    const [width, height] = [item.width, isTest ? this.nodeHeight : this.leafHeight];
    const group = svg("g", {
      role: "treeitem",
      tabindex: "-1",
      class: `node ${item.kind}`,
      "aria-level": item.level + 1,
      "aria-expanded": isTest ? "true" : item.kind === "fold" ? "false" : null,
      transform: `translate(${item.x} ${item.y - height / 2})`,
    });
    group.append(svg("rect", { class: "shape", width, height, rx: isTest ? 6 : height / 2 }));
    if (isTest) {
      const lines = this.labels.get(item.node);
      item.leftGate = svg("rect", { class: "gate left", x: 4, y: height - 5, height: 3 });
      item.rightGate = svg("rect", { class: "gate right", y: height - 5, height: 3 });
      group.append(item.leftGate, item.rightGate);
      const first = (height - 4 - LINE * lines.length) / 2 + 10.5;
      lines.forEach((line, n) => group.append(svg("text", { x: 7, y: first + LINE * n }, line)));
    } else {
      item.fill = svg("rect", { class: "fill", height, rx: height / 2 });
      item.text = svg("text", { x: 10, y: height / 2 + 4 });
      group.append(item.fill, item.text);
      if (item.kind === "fold") {
        const isWide = this.leafWidth === LEAF_WIDTHS.wide;
        item.text.textContent = isWide ? `▸ ${plural(this.shape.count[item.node], "leaf", "leaves")}` : this.leafWidth > LEAF_WIDTHS.bare ? "▸" : "";
      } else this.#nameLeaf(item, scene);
    }
    item.group = group;
    group.item = item;
    nodes.append(group);
  }

  #nameLeaf(item, scene) {
    const leaf = ~item.node;
    item.name = leafName(this.machine, scene, leaf);
    item.text.textContent = this.leafWidth === LEAF_WIDTHS.wide ? cut(`${leaf}: ${item.name}`, this.leafWidth - 18, NODE_FONT) : this.leafWidth > LEAF_WIDTHS.bare ? String(leaf) : "";
  }

  /** Light the path and let the weights flow, for another x or temperature. */
  update(scene) {
    this.scene = scene;
    for (const item of this.order) {
      const weight = this.#weight(item);
      const isLit = item.node < 0 ? ~item.node === scene.exit : scene.onPath.has(item.node);
      if (item.flow && item.shownWeight !== weight) {
        item.shownWeight = weight;
        item.flow.style.strokeWidth = weight < 5e-4 ? "0" : `${0.75 + 5.25 * weight}px`;
        item.flow.style.opacity = Math.min(1, 0.4 + weight);
      }
      if (item.isLit !== isLit) {
        item.isLit = isLit;
        item.group.classList.toggle("lit", isLit);
        if (isLit) item.group.setAttribute("aria-current", "true");
        else item.group.removeAttribute("aria-current");
      }
      if (item.kind === "test") {
        const room = item.width - 8;
        const right = scene.gate(item.node) * room;
        setAttribute(item.leftGate, "width", room - right);
        setAttribute(item.rightGate, "width", right);
        setAttribute(item.rightGate, "x", 4 + room - right);
      } else {
        setAttribute(item.fill, "width", weight < 0.02 ? 0 : Math.max(this.leafHeight, weight * this.leafWidth));
        if (item.kind === "leaf" && this.machine.linear) this.#nameLeaf(item, scene);
      }
    }
    // Words for those who listen are put into place when x has come to rest.
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => this.#speak(), SPEAK_AFTER);
  }

  #speak() {
    for (const item of this.order) setAttribute(item.group, "aria-label", this.#sentence(item));
  }

  #weight(item) {
    const { scene } = this;
    return item.node < 0 ? scene.weights[~item.node] : scene.reach[item.node];
  }

  #sentence(item) {
    const { scene, shape } = this;
    if (item.kind === "test") {
      return testSentence(this.machine, scene, item.node) + (scene.onPath.has(item.node) ? " On the path of x." : " Not on the path of x.");
    }
    const weight = `weight ${short(this.#weight(item))}`;
    if (item.kind === "fold") {
      return `${plural(shape.count[item.node], "leaf", "leaves")} folded, ${weight}. Enter or a click opens them.`;
    }
    const leaf = ~item.node;
    const name = this.machine.leafIds ? ` (${this.machine.leafIds[shape.leaf + leaf]} in the source)` : "";
    const exit = leaf === scene.exit ? " x leaves here." : "";
    return `Leaf ${leaf}${name}: ${item.name}. Score p = ${short(scene.p[leaf])}, ${weight}.${exit}`;
  }

  /** Show what stands for the row or column that another view points at. */
  mark(target) {
    for (const item of this.order) {
      const is = target !== null && (item.node >= 0 ? item.node === target.test && item.kind === "test" : ~item.node === target.leaf);
      item.group.classList.toggle("marked", is);
    }
  }

  #pointed(target) {
    const item = target.closest?.("g.node")?.item;
    if (!item) return;
    this.onPoint(
      item.kind === "test" ? { test: item.node } : item.kind === "leaf" ? { leaf: ~item.node } : { fold: item.node },
      this.#sentence(item),
    );
  }

  #clicked(target) {
    const item = target.closest?.("g.node")?.item;
    if (!item) return;
    this.#focus(item);
    if (item.kind === "fold") this.onOpen(item.node);
  }

  #focus(item) {
    setAttribute(item.group, "aria-label", this.#sentence(item));
    for (const other of this.order) other.group.setAttribute("tabindex", other === item ? "0" : "-1");
    item.group.focus({ preventScroll: false });
  }

  #key(event) {
    const item = event.target.closest?.("g.node")?.item;
    if (!item) return;
    const { children } = this.shape;
    const at = this.order.indexOf(item);
    const to = {
      ArrowDown: () => this.order[at + 1],
      ArrowUp: () => this.order[at - 1],
      ArrowLeft: () => (item.parent === null ? null : this.items.get(item.parent)),
      ArrowRight: () =>
        item.kind === "test" ? this.items.get(children[2 * item.node + (this.scene.h[item.node] > 0 ? 1 : 0)]) : null,
      Home: () => this.order[0],
      End: () => this.items.get(~this.scene.exit),
    }[event.key];
    if (to) {
      event.preventDefault();
      const next = to();
      if (next) this.#focus(next);
    } else if ((event.key === "Enter" || event.key === " ") && item.kind === "fold") {
      event.preventDefault();
      this.onOpen(item.node);
    }
  }

  /** Put the keyboard back on a node after a drawing of it anew. */
  focusNode(node) {
    const item = this.items.get(node);
    if (item) this.#focus(item);
  }
}

// The tree as a tree: root on the left, leaves on the right, one on each row of B.

import { short } from "./numbers.js";
import { condition, leafName, plural, sideName, testSentence } from "./words.js";
import { cut, svg } from "./svg.js";

export const ROW = 26;
const LEAF_WIDTH = 140;
const LETTER = 6.7;

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

  /** Draw a tree anew; `top` is the empty space above the first row. */
  draw(machine, scene, part, top) {
    Object.assign(this, { machine, part, top, shape: scene.shape });
    this.items = new Map();
    this.order = [];
    const { depth } = part;
    const step = depth <= 3 ? 190 : depth <= 5 ? 160 : depth <= 8 ? 132 : 112;
    this.step = step;
    this.nodeWidth = step - 36;
    const width = 6 + depth * step + LEAF_WIDTH + 6;
    const height = top + part.rows.length * ROW + 4;
    this.element.setAttribute("width", width);
    this.element.setAttribute("height", height);
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.setAttribute("aria-label", `Tree with ${plural(scene.shape.nLeaves, "leaf", "leaves")}`);
    const [edges, flows, nodes] = [svg("g"), svg("g"), svg("g", { role: "presentation" })];
    const stack = [{ node: scene.shape.nTests ? 0 : -1, parent: null, answer: 0, level: 0 }];
    while (stack.length) {
      const { node, parent, answer, level } = stack.pop();
      const isLeaf = node < 0;
      const isFold = !isLeaf && !part.isOpen(node);
      const item = { node, parent, answer, level, kind: isLeaf ? "leaf" : isFold ? "fold" : "test" };
      item.y = top + (part.middleOf(node) + 0.5) * ROW;
      item.x = item.kind === "test" ? 6 + level * step : 6 + depth * step;
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
  }

  #edge(item, above, edges, flows) {
    const x0 = above.x + this.nodeWidth;
    const line = `M${x0} ${above.y}C${x0 + 20} ${above.y} ${x0 + 14} ${item.y} ${x0 + 36} ${item.y}H${item.x}`;
    edges.append(svg("path", { d: line, class: "edge" }));
    item.flow = svg("path", { d: line, class: `flow ${sideName(item.answer)}` });
    flows.append(item.flow);
  }

  #node(item, nodes, scene) {
    const isTest = item.kind === "test";
    const width = isTest ? this.nodeWidth : LEAF_WIDTH;
    const group = svg("g", {
      role: "treeitem",
      tabindex: "-1",
      class: `node ${item.kind}`,
      "aria-level": item.level + 1,
      "aria-expanded": isTest ? "true" : item.kind === "fold" ? "false" : null,
      transform: `translate(${item.x} ${item.y - 11})`,
    });
    group.append(svg("rect", { class: "shape", width, height: 22, rx: isTest ? 5 : 11 }));
    const most = Math.floor((width - 14) / LETTER);
    if (isTest) {
      item.name = condition(this.machine, this.shape.test + item.node);
      item.leftGate = svg("rect", { class: "gate left", x: 3, y: 18.5, height: 3 });
      item.rightGate = svg("rect", { class: "gate right", y: 18.5, height: 3 });
      group.append(item.leftGate, item.rightGate);
      group.append(svg("text", { x: 8, y: 14.5 }, cut(item.name, most)));
    } else {
      item.fill = svg("rect", { class: "fill", height: 22, rx: 11 });
      item.text = svg("text", { x: 11, y: 15 });
      group.append(item.fill, item.text);
      if (item.kind === "fold") {
        item.text.textContent = `▸ ${plural(this.shape.count[item.node], "leaf", "leaves")}`;
      } else this.#nameLeaf(item, scene);
    }
    item.group = group;
    group.item = item;
    nodes.append(group);
  }

  #nameLeaf(item, scene) {
    const leaf = ~item.node;
    const most = Math.floor((LEAF_WIDTH - 26) / LETTER);
    item.name = leafName(this.machine, scene, leaf);
    item.text.textContent = cut(`${leaf}: ${item.name}`, most);
  }

  /** Light the path and let the weights flow, for another x or temperature. */
  update(scene) {
    this.scene = scene;
    for (const item of this.order) {
      const weight = this.#weight(item);
      const isLit = item.node < 0 ? ~item.node === scene.exit : scene.onPath.has(item.node);
      if (item.flow) {
        item.flow.style.strokeWidth = weight < 5e-4 ? "0" : `${0.75 + 4.75 * weight}px`;
        item.flow.style.opacity = isLit ? 1 : Math.min(1, 0.35 + weight);
      }
      item.group.classList.toggle("lit", isLit);
      if (isLit) item.group.setAttribute("aria-current", "true");
      else item.group.removeAttribute("aria-current");
      if (item.kind === "test") {
        const room = this.nodeWidth - 6;
        const right = scene.gate(item.node) * room;
        item.leftGate.setAttribute("width", room - right);
        item.rightGate.setAttribute("width", right);
        item.rightGate.setAttribute("x", 3 + room - right);
      } else {
        item.fill.setAttribute("width", weight < 0.02 ? 0 : Math.max(22, weight * LEAF_WIDTH));
        if (item.kind === "leaf" && this.machine.linear) this.#nameLeaf(item, scene);
      }
      item.group.setAttribute("aria-label", this.#sentence(item));
    }
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

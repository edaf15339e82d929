// Which leaves a box of inputs can reach in every tree, and what the trees can add up to there.
//
// A box is one mask over all cells of all features. Leaves may be kept that no input of the box
// reaches, none is lost: what is bounded by them is certified.

import { goesLeft } from "./cells.js";

export class Reach {
  constructor(machine, cells, functions) {
    Object.assign(this, { machine, cells, functions });
    this.count = new Int32Array(cells.start.at(-1) + 1);
    const nTerms = functions.terms.length;
    this.tops = new Float64Array(machine.nTrees * nTerms);
    this.bottoms = new Float64Array(machine.nTrees * nTerms);
    this.splits = new Int32Array(machine.nTrees);
    this.stack = [];
  }

  /** What one leaf adds to one function. */
  worthOf(tree, leaf, { plus, minus }) {
    const { V, width, feeds } = this.machine;
    const { factor } = this.functions;
    if (feeds[tree] >= 0) {
      return feeds[tree] === plus ? V[leaf] * factor : feeds[tree] === minus ? -(V[leaf] * factor) : 0;
    }
    return (plus < 0 ? 0 : V[leaf * width + plus] * factor) - (minus < 0 ? 0 : V[leaf * width + minus] * factor);
  }

  /**
   * The most that the goal's best way can reach in a box, less what it needs; and the test that
   * splits the box best. Below 0 no input of the box meets the goal.
   */
  bound(box) {
    const { count, functions, machine } = this;
    for (let c = 0; c < box.length; c += 1) count[c + 1] = count[c] + box[c];
    const { terms, ways } = functions;
    const upper = terms.map(() => 0);
    for (let tree = 0; tree < machine.nTrees; tree += 1) {
      this.splits[tree] = this.#walk(tree, box);
      for (let q = 0; q < terms.length; q += 1) upper[q] += this.tops[tree * terms.length + q];
    }
    let [worth, best] = [-Infinity, null];
    for (const way of ways) {
      // What is not a number (of infinite leaves) rules nothing out.
      const most = way.map((q) => upper[q] + terms[q].offset + terms[q].slack).map((u) => (Number.isNaN(u) ? Infinity : u));
      const least = most.reduce((low, u) => Math.min(low, u), Infinity);
      if (least > worth) [worth, best] = [least, way];
    }
    return { worth, way: best };
  }

  /** Walk one tree; the first test on the way that the box leaves on both sides, or -1. */
  #walk(tree, box) {
    const { machine, stack, tops, bottoms } = this;
    const { terms } = this.functions;
    const nTerms = terms.length;
    const [first, nTests] = [machine.testStart[tree], machine.testStart[tree + 1] - machine.testStart[tree]];
    tops.fill(-Infinity, tree * nTerms, (tree + 1) * nTerms);
    bottoms.fill(Infinity, tree * nTerms, (tree + 1) * nTerms);
    let split = -1;
    stack.length = 0;
    stack.push(nTests ? 0 : -1);
    while (stack.length) {
      const node = stack.pop();
      if (node < 0) {
        const leaf = first + tree + ~node;
        for (let q = 0, at = tree * nTerms; q < nTerms; q += 1, at += 1) {
          const worth = this.worthOf(tree, leaf, terms[q]);
          if (worth > tops[at]) tops[at] = worth;
          if (worth < bottoms[at]) bottoms[at] = worth;
        }
        continue;
      }
      const test = first + node;
      const sides = this.#sides(test, box);
      if (sides === 3 && split < 0) split = test;
      if (sides & 2) stack.push(machine.children[2 * test + 1]);
      if (sides & 1) stack.push(machine.children[2 * test]);
    }
    return split;
  }

  /** 1 where some cell of the box goes left, 2 where some goes right, 3 for both. */
  #sides(test, box) {
    const { cells, count } = this;
    const feature = cells.featureOf(test);
    const [start, nan] = [cells.start[feature], cells.start[feature + 1] - 1];
    const odd = cells.odd.get(test);
    let sides = 0;
    if (odd) {
      for (let c = start; c <= nan && sides < 3; c += 1) if (box[c]) sides |= odd[c - start] ? 1 : 2;
      return sides;
    }
    const cut = cells.cut[test];
    if (count[cut] > count[start]) sides |= 1;
    if (count[nan] > count[cut]) sides |= 2;
    if (box[nan]) sides |= cells.nanLeft[test] ? 1 : 2;
    return sides;
  }

  /** The question that the trees which leave most open ask first; -1 where nothing is open. */
  branch(way) {
    const { machine, splits, tops, bottoms } = this;
    const nTerms = this.functions.terms.length;
    const worth = new Map();
    for (let tree = 0; tree < machine.nTrees; tree += 1) {
      const test = splits[tree];
      if (test < 0) continue;
      const gap = way.reduce((sum, q) => sum + tops[tree * nTerms + q] - bottoms[tree * nTerms + q], 0);
      const question = `${machine.selection[test]} ${machine.t[test]} ${machine.missing[test]}`;
      const known = worth.get(question) ?? { test, gap: 0 };
      known.gap += gap + 1e-300;
      worth.set(question, known);
    }
    let best = null;
    for (const asked of worth.values()) if (!best || asked.gap > best.gap) best = asked;
    return best ? best.test : -1;
  }

  /** The parts of a box left and right of a test. */
  split(box, test) {
    const { cells } = this;
    const feature = cells.featureOf(test);
    const [left, right] = [box.slice(), box.slice()];
    for (let c = cells.start[feature]; c < cells.start[feature + 1]; c += 1) {
      if (goesLeft(cells, test, c)) right[c] = 0;
      else left[c] = 0;
    }
    return [left, right];
  }

  /** The worth of the goal at some cells of one feature, in ascending order, the others as they are. */
  sweep(place, feature, asked) {
    const { terms, ways } = this.functions;
    const { cells, machine } = this;
    const nan = cells.start[feature + 1] - 1;
    const isRun = asked.at(-1) !== nan && !cells.tests(feature).some((test) => cells.odd.has(test));
    // What is added from one of the cells on; or, where a test may send any of them left, to each.
    const steps = new Float64Array((asked.length + 1) * terms.length);
    for (let tree = 0; tree < machine.nTrees; tree += 1) {
      if (isRun) this.#followRun(tree, place, feature, asked, steps);
      else asked.forEach((cell, i) => this.#followOne(tree, place, feature, cell, i, steps));
    }
    const total = terms.map(({ offset }) => offset);
    return asked.map((_, i) => {
      terms.forEach(({ offset }, q) => {
        total[q] = (isRun ? total[q] : offset) + steps[i * terms.length + q];
      });
      return ways.reduce((most, way) => Math.max(most, way.reduce((low, q) => Math.min(low, total[q]), Infinity)), -Infinity);
    });
  }

  #followRun(tree, place, feature, asked, steps) {
    const { machine, cells } = this;
    const { terms } = this.functions;
    const first = machine.testStart[tree];
    const stack = [[machine.testStart[tree + 1] > first ? 0 : -1, 0, asked.length]];
    while (stack.length) {
      const [node, from, to] = stack.pop();
      if (node < 0) {
        for (let q = 0; q < terms.length; q += 1) {
          const worth = this.worthOf(tree, first + tree + ~node, terms[q]);
          steps[from * terms.length + q] += worth;
          steps[to * terms.length + q] -= worth;
        }
        continue;
      }
      const test = first + node;
      const reads = cells.featureOf(test);
      const [left, right] = [machine.children[2 * test], machine.children[2 * test + 1]];
      if (reads !== feature) {
        stack.push([goesLeft(cells, test, place[reads]) ? left : right, from, to]);
        continue;
      }
      let [low, high] = [from, to];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (asked[middle] < cells.cut[test]) low = middle + 1;
        else high = middle;
      }
      if (low < to) stack.push([right, low, to]);
      if (low > from) stack.push([left, from, low]);
    }
  }

  #followOne(tree, place, feature, cell, at, steps) {
    const { machine, cells } = this;
    const { terms } = this.functions;
    const first = machine.testStart[tree];
    let node = machine.testStart[tree + 1] > first ? 0 : -1;
    while (node >= 0) {
      const test = first + node;
      const reads = cells.featureOf(test);
      node = machine.children[2 * test + (goesLeft(cells, test, reads === feature ? cell : place[reads]) ? 0 : 1)];
    }
    for (let q = 0; q < terms.length; q += 1) {
      steps[at * terms.length + q] += this.worthOf(tree, first + tree + ~node, terms[q]);
    }
  }
}

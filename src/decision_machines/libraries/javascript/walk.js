// The exit leaves of all trees at once, for tests that read one column each.
//
// Only comparisons with the machine's own thresholds matter, so a column becomes its rank among
// them, and a test is a subtraction whose sign is its answer: no branch that a processor could
// guess wrongly. Two children lie side by side, and a leaf is a node that leads to itself. All
// trees take a few steps, those that have not reached a leaf take a few more, and so on: steps of
// different trees do not wait for each other, and few are wasted at leaves.

import { rankOf, thresholdGrids } from "./ranks.js";

// A node of small trees is one number: rank of the threshold, slot, way to the left child. A
// leaf has its own number in place of the slot.
const RANK_SHIFT = 20;
const SLOT_SHIFT = 10;
const FIELD = 1023;
const PACKED = { shift: RANK_SHIFT, never: 0x7fe << RANK_SHIFT, leaf: 0x7ff << RANK_SHIFT, ranks: 0x7fd };
// Of other trees it is three: rank (of a leaf: `leaf` and its own number), slot, left child.
const WIDE = { shift: 0, never: 1 << 29, leaf: 1 << 30 };

const walks = new WeakMap();

/** The exit leaf of every tree, counted from 0 within the tree, for the columns z of a row. */
export function exitLeaves(machine, z) {
  let walk = walks.get(machine);
  if (walk === undefined) walks.set(machine, (walk = prepared(machine)));
  return walk(z);
}

function prepared(machine) {
  const found = thresholdGrids(machine);
  const { columns, grids } = found;
  const isPacked =
    2 * columns.length <= FIELD + 1 &&
    grids.every(({ keys }) => keys.length <= PACKED.ranks) &&
    machine.testStart.every((start, tree) => tree === 0 || 2 * (start - machine.testStart[tree - 1]) <= FIELD);
  const layout = isPacked ? PACKED : WIDE;
  const codes = new Int32Array(Math.max(FIELD + 1, 2 * columns.length));
  const coded = coder(columns, grids, codes, layout);
  const state = { codes, coded, at: new Int32Array(machine.nTrees), open: new Int32Array(machine.nTrees + 1) };
  return isPacked ? packedWalk(packedNodes(machine, found), state) : wideWalk(wideNodes(machine, found), state);
}

/** Writes two codes for each column: what NaN goes right with, and what it goes left with. */
const coder = (columns, grids, codes, { shift, never }) => (z) => {
  for (let s = 0; s < grids.length; s += 1) {
    const value = z[columns[s]];
    if (Number.isNaN(value)) {
      codes[2 * s] = never;
      codes[2 * s + 1] = 0;
    } else {
      codes[2 * s] = codes[2 * s + 1] = rankOf(grids[s], value) << shift;
    }
  }
};

// Functions of z that have their tables as constants: engines compile those to faster code. The
// steps are written out, because as a function of its own a step would be called, and cost double.

const packedWalk = ({ nodes, roots }, { codes, coded, at, open }) => (z) => {
  coded(z);
  const n = roots.length;
  let count = 0;
  let w = 0;
  for (let tree = 0; tree < n; tree += 1) {
    let a = roots[tree];
    w = nodes[a];
    a = (a + (w & FIELD) + ((w - codes[(w >>> SLOT_SHIFT) & FIELD]) >>> 31)) | 0;
    w = nodes[a];
    a = (a + (w & FIELD) + ((w - codes[(w >>> SLOT_SHIFT) & FIELD]) >>> 31)) | 0;
    w = nodes[a];
    a = (a + (w & FIELD) + ((w - codes[(w >>> SLOT_SHIFT) & FIELD]) >>> 31)) | 0;
    w = nodes[a];
    a = (a + (w & FIELD) + ((w - codes[(w >>> SLOT_SHIFT) & FIELD]) >>> 31)) | 0;
    at[tree] = a;
    open[count] = tree;
    count = (count + ((nodes[a] - PACKED.leaf) >>> 31)) | 0;
  }
  while (count > 0) {
    const last = count;
    count = 0;
    for (let i = 0; i < last; i += 1) {
      const tree = open[i];
      let a = at[tree];
      w = nodes[a];
      a = (a + (w & FIELD) + ((w - codes[(w >>> SLOT_SHIFT) & FIELD]) >>> 31)) | 0;
      w = nodes[a];
      a = (a + (w & FIELD) + ((w - codes[(w >>> SLOT_SHIFT) & FIELD]) >>> 31)) | 0;
      at[tree] = a;
      open[count] = tree;
      count = (count + ((nodes[a] - PACKED.leaf) >>> 31)) | 0;
    }
  }
  const exits = new Int32Array(n);
  for (let tree = 0; tree < n; tree += 1) exits[tree] = (nodes[at[tree]] >>> SLOT_SHIFT) & FIELD;
  return exits;
};

const wideWalk = ({ nodes, roots }, { codes, coded, at, open }) => (z) => {
  coded(z);
  const n = roots.length;
  let count = n;
  for (let tree = 0; tree < n; tree += 1) {
    at[tree] = roots[tree];
    open[tree] = tree;
  }
  while (count > 0) {
    const last = count;
    count = 0;
    for (let i = 0; i < last; i += 1) {
      const tree = open[i];
      let a = at[tree];
      a = nodes[a + 2] + (((nodes[a] - codes[nodes[a + 1]]) >> 31) & 3);
      a = nodes[a + 2] + (((nodes[a] - codes[nodes[a + 1]]) >> 31) & 3);
      a = nodes[a + 2] + (((nodes[a] - codes[nodes[a + 1]]) >> 31) & 3);
      at[tree] = a;
      open[count] = tree;
      count = (count + ((nodes[a] - WIDE.leaf) >>> 31)) | 0;
    }
  }
  const exits = new Int32Array(n);
  for (let tree = 0; tree < n; tree += 1) exits[tree] = nodes[at[tree]] - WIDE.leaf;
  return exits;
};

function packedNodes(machine, found) {
  const nodes = new Int32Array(machine.nTests + machine.nLeaves);
  const roots = placed(
    machine,
    found,
    (at, rank, slot, child) => (nodes[at] = (rank << RANK_SHIFT) | (slot << SLOT_SHIFT) | (child - at)),
    (at, leaf) => (nodes[at] = PACKED.leaf | (leaf << SLOT_SHIFT)),
  );
  return { nodes, roots };
}

function wideNodes(machine, found) {
  const nodes = new Int32Array(3 * (machine.nTests + machine.nLeaves));
  const roots = placed(
    machine,
    found,
    (at, rank, slot, child) => nodes.set([rank, slot, 3 * child], 3 * at),
    (at, leaf) => nodes.set([WIDE.leaf + leaf, 0, 3 * at], 3 * at),
  );
  return { nodes, roots: roots.map((at) => 3 * at) };
}

/** Gives every test and leaf its place, tree after tree and children in pairs; returns the roots. */
function placed({ selection, missing, t, children, testStart, nTests, nTrees }, { slotOf, grids }, putTest, putLeaf) {
  const place = new Int32Array(nTests);
  const roots = new Int32Array(nTrees);
  for (let tree = 0; tree < nTrees; tree += 1) {
    const first = testStart[tree];
    let next = (roots[tree] = 2 * first + tree);
    const put = (child) => {
      if (child < 0) putLeaf(next, ~child);
      else place[first + child] = next;
      next += 1;
    };
    put(testStart[tree + 1] > first ? 0 : ~0);
    // A test comes after the one above it, so its own place is known.
    for (let j = first; j < testStart[tree + 1]; j += 1) {
      const slot = slotOf[selection[j]];
      putTest(place[j], rankOf(grids[slot], t[j]), 2 * slot + (missing[j] < 0 ? 1 : 0), next);
      put(children[2 * j]);
      put(children[2 * j + 1]);
    }
  }
  return roots;
}

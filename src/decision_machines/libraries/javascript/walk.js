// The exit leaves of all trees at once, for tests that read one column each.
//
// Only comparisons with the machine's own thresholds matter, so a column becomes the number of its
// thresholds below it, and a test is a subtraction whose sign is its answer: no branch that a
// processor could guess wrongly. A leaf is a node that leads to itself, and four trees are walked
// together, so that no step waits for the one before it.

const NODE_SIZE = 4; // slot, rank of the threshold, left, right
const NEVER = 1 << 29; // above every rank: NaN goes right

const walks = new WeakMap();

/** The exit leaf of every tree, counted from 0 within the tree, for the columns z of a row. */
export function exitLeaves(machine, z) {
  let walk = walks.get(machine);
  if (walk === undefined) walks.set(machine, (walk = walkOf(prepared(machine))));
  return walk(z);
}

/** A function of z that has its tables as constants: engines compile that to faster code. */
const walkOf = ({ nodes, roots, end, leafStart, codes, columns, isLeft, keys }) => (z) => {
  for (let s = 0; s < columns.length; s += 1) {
    const value = z[columns[s]];
    if (Number.isNaN(value)) codes[s] = isLeft[s] ? 0 : NEVER;
    else codes[s] = below(keys[s], value);
  }
  const n = roots.length;
  const exits = new Int32Array(n);
  // The same step five times over: as a function of its own it would be called, and cost double.
  let tree = 0;
  for (; tree + 4 <= n; tree += 4) {
    let a = roots[tree];
    let b = roots[tree + 1];
    let c = roots[tree + 2];
    let d = roots[tree + 3];
    while (a < end || b < end || c < end || d < end) {
      a = nodes[a + 2 + ((nodes[a + 1] - codes[nodes[a]]) >>> 31)];
      b = nodes[b + 2 + ((nodes[b + 1] - codes[nodes[b]]) >>> 31)];
      c = nodes[c + 2 + ((nodes[c + 1] - codes[nodes[c]]) >>> 31)];
      d = nodes[d + 2 + ((nodes[d + 1] - codes[nodes[d]]) >>> 31)];
    }
    exits[tree] = ((a - end) >> 2) - leafStart[tree];
    exits[tree + 1] = ((b - end) >> 2) - leafStart[tree + 1];
    exits[tree + 2] = ((c - end) >> 2) - leafStart[tree + 2];
    exits[tree + 3] = ((d - end) >> 2) - leafStart[tree + 3];
  }
  for (; tree < n; tree += 1) {
    let at = roots[tree];
    while (at < end) at = nodes[at + 2 + ((nodes[at + 1] - codes[nodes[at]]) >>> 31)];
    exits[tree] = ((at - end) >> 2) - leafStart[tree];
  }
  return exits;
};

/** How many of the ascending keys lie below a value. */
function below(keys, value) {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function prepared(machine) {
  const { selection, missing, t, children, testStart, nTests, nLeaves, nTrees } = machine;
  const slotOf = new Map();
  const slots = new Int32Array(nTests);
  const thresholds = [];
  for (let j = 0; j < nTests; j += 1) {
    const key = 2 * selection[j] + (missing[j] < 0 ? 1 : 0);
    if (!slotOf.has(key)) {
      slotOf.set(key, slotOf.size);
      thresholds.push(new Set());
    }
    slots[j] = slotOf.get(key);
    thresholds[slots[j]].add(t[j]);
  }
  const keys = thresholds.map((found) => Float64Array.from(found).sort());
  // The tests of all trees, then all leaves: one number tells leaves from tests.
  const end = NODE_SIZE * nTests;
  const nodes = new Int32Array(NODE_SIZE * (nTests + nLeaves));
  const leafStart = new Int32Array(nTrees);
  const roots = new Int32Array(nTrees);
  for (let tree = 0; tree < nTrees; tree += 1) {
    const first = testStart[tree];
    leafStart[tree] = first + tree;
    const place = (child) => (child >= 0 ? NODE_SIZE * (first + child) : end + NODE_SIZE * (first + tree + ~child));
    roots[tree] = place(testStart[tree + 1] > first ? 0 : ~0);
    for (let j = first; j < testStart[tree + 1]; j += 1) {
      nodes[NODE_SIZE * j] = slots[j];
      nodes[NODE_SIZE * j + 1] = below(keys[slots[j]], t[j]);
      nodes[NODE_SIZE * j + 2] = place(children[2 * j]);
      nodes[NODE_SIZE * j + 3] = place(children[2 * j + 1]);
    }
  }
  for (let at = end; at < nodes.length; at += NODE_SIZE) nodes[at + 2] = nodes[at + 3] = at;
  const known = [...slotOf.keys()];
  return {
    nodes,
    roots,
    end,
    leafStart,
    keys,
    columns: Int32Array.from(known, (key) => key >> 1),
    isLeft: Uint8Array.from(known, (key) => key & 1),
    codes: new Int32Array(Math.max(1, known.length)),
  };
}

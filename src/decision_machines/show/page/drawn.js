// Which part of a tree is drawn: all of it, or, of a large tree, so many rows with the rest folded.

export const MOST_ROWS = 64;

/**
 * Rows (leaves, or folded subtrees), top to bottom, and the tests above them.
 *
 * The path of the present x and what was opened by hand are always drawn; then the tests with the
 * most leaves below them, until there are enough rows.
 */
export function drawnPart(shape, path, opened, mostRows = MOST_ROWS) {
  const open = new Set(path);
  const { children, count, first } = shape;
  if (shape.nLeaves <= mostRows) {
    for (let j = 0; j < shape.nTests; j += 1) open.add(j);
  } else {
    for (const j of opened) {
      for (let up = j; up >= 0; up = shape.parent[up]) open.add(up);
    }
    openLargest(shape, open, mostRows + 8 * opened.size);
  }
  const rows = [];
  const rowOfLeaf = new Int32Array(shape.nLeaves).fill(-1);
  const middle = new Map();
  // Children before parents: a test stands between the middles of its two children.
  const stack = shape.nTests ? [{ node: 0, done: false }] : [{ node: -1, done: false }];
  const middleOf = (node) => (node < 0 ? rowOfLeaf[~node] : middle.get(node));
  while (stack.length) {
    const { node, done } = stack.pop();
    if (node < 0) {
      rowOfLeaf[~node] = rows.length;
      rows.push({ leaf: ~node, first: ~node, count: 1 });
    } else if (!open.has(node)) {
      middle.set(node, rows.length);
      rowOfLeaf.fill(rows.length, first[node], first[node] + count[node]);
      rows.push({ leaf: -1, node, first: first[node], count: count[node] });
    } else if (done) {
      middle.set(node, (middleOf(children[2 * node]) + middleOf(children[2 * node + 1])) / 2);
    } else {
      stack.push({ node, done: true }, { node: children[2 * node + 1], done: false });
      stack.push({ node: children[2 * node], done: false });
    }
  }
  const tests = [...open].sort((a, b) => a - b);
  const depth = rows.reduce(
    (most, row) => Math.max(most, row.leaf < 0 ? shape.depth[row.node] : shape.leafDepth[row.leaf]), 0,
  );
  return { rows, rowOfLeaf, tests, isOpen: (j) => open.has(j), middleOf, depth, isWhole: tests.length === shape.nTests };
}

function openLargest(shape, open, mostRows) {
  const { children, count } = shape;
  let nRows = 1;
  const closed = [];
  for (const j of open) nRows += 1;
  const consider = (node) => {
    if (node >= 0 && !open.has(node)) closed.push(node);
  };
  if (!open.size) {
    open.add(0);
    nRows += 1;
  }
  for (const j of open) [children[2 * j], children[2 * j + 1]].forEach(consider);
  while (closed.length && nRows < mostRows) {
    let at = 0;
    for (let i = 1; i < closed.length; i += 1) if (count[closed[i]] > count[closed[at]]) at = i;
    const [node] = closed.splice(at, 1);
    open.add(node);
    nRows += 1;
    [children[2 * node], children[2 * node + 1]].forEach(consider);
  }
}

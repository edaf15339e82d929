// The machine as it lies in the page: base64 to typed arrays, once, when the page opens.

const TYPES = {
  i1: Int8Array, u1: Uint8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array,
};
const SPECIAL = { nan: NaN, inf: Infinity, "-inf": -Infinity };

export const number = (value) => (typeof value === "string" ? SPECIAL[value] : value);

export function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function unpack(packed) {
  return packed == null ? null : new TYPES[packed.type](bytesOf(packed.base64).buffer);
}

export const Rule = Object.freeze({ VALUE: 0, NAN_AS_ZERO: 1, ZERO_AS_NAN: 2, MEMBER: 3 });

export function readMachine(data) {
  const { columns, sets, S, linear, output } = data;
  const rule = unpack(columns.rule);
  const setOf = new Int32Array(rule.length);
  for (let c = 0, n = 0; c < rule.length; c += 1) setOf[c] = rule[c] === Rule.MEMBER ? n++ : -1;
  const testStart = unpack(data.test_start);
  return {
    source: data.source,
    names: data.names,
    labels: new Map(Object.entries(data.labels).map(([feature, texts]) => [Number(feature), texts])),
    integers: new Set(data.integers),
    nFeatures: data.names.length,
    nTrees: testStart.length - 1,
    nTests: testStart.at(-1),
    nLeaves: testStart.at(-1) + testStart.length - 1,
    single: columns.dtype === "float32",
    missingValue: number(columns.missing_value),
    columns: { feature: unpack(columns.feature), rule, setOf },
    sets: sets && {
      start: unpack(sets.start),
      members: unpack(sets.members),
      answer: unpack(sets.answer),
      outside: unpack(sets.outside),
      lowest: sets.negative_fractions ? -1 : 0,
      whole: sets.whole,
    },
    selection: unpack(data.selection),
    S: S && { start: unpack(S.start), column: unpack(S.column), weight: unpack(S.weight) },
    t: unpack(data.t),
    missing: unpack(data.missing),
    children: unpack(data.children),
    testStart,
    feeds: unpack(data.feeds),
    leafIds: unpack(data.leaf_ids),
    V: unpack(data.V),
    share: unpack(data.share),
    width: data.V.shape[1],
    valueSingle: data.V.type === "f4",
    linear: linear && {
      intercept: unpack(linear.intercept),
      start: unpack(linear.start),
      feature: unpack(linear.feature),
      coefficient: unpack(linear.coefficient),
      single: linear.intercept.type === "f4" && linear.coefficient.type === "f4",
    },
    output: {
      ...output,
      base: unpack(output.base),
      weights: unpack(output.weights),
      single: output.dtype === "float32",
      linkParams: output.link_params.map(number),
      decisionParams: output.decision_params.map(number),
      k: output.base.shape[0],
    },
  };
}

/** Where a tree's tests and leaves start, and how many they are. */
export function treeSpan(machine, tree) {
  const test = machine.testStart[tree];
  const nTests = machine.testStart[tree + 1] - test;
  return { test, nTests, leaf: test + tree, nLeaves: nTests + 1 };
}

const shapes = new WeakMap();

/** Parents, depths and leaf spans of one tree, its tests and leaves counted from 0. */
export function shapeOf(machine, tree) {
  if (!shapes.has(machine)) shapes.set(machine, new Map());
  const known = shapes.get(machine);
  if (!known.has(tree)) known.set(tree, measure(machine, tree));
  return known.get(tree);
}

function measure(machine, tree) {
  const span = treeSpan(machine, tree);
  const { test, nTests, nLeaves } = span;
  const children = machine.children.subarray(2 * test, 2 * (test + nTests));
  const parent = new Int32Array(nTests).fill(-1);
  const side = new Int8Array(nTests);
  const depth = new Int32Array(nTests);
  const first = new Int32Array(nTests);
  const count = new Int32Array(nTests);
  const leafParent = new Int32Array(nLeaves).fill(-1);
  const leafSide = new Int8Array(nLeaves);
  const leafDepth = new Int32Array(nLeaves);
  for (let j = 0; j < nTests; j += 1) {
    for (let s = 0; s < 2; s += 1) {
      const child = children[2 * j + s];
      if (child >= 0) {
        parent[child] = j;
        side[child] = s ? 1 : -1;
        depth[child] = depth[j] + 1;
      } else {
        leafParent[~child] = j;
        leafSide[~child] = s ? 1 : -1;
        leafDepth[~child] = depth[j] + 1;
      }
    }
  }
  for (let j = nTests - 1; j >= 0; j -= 1) {
    const [left, right] = [children[2 * j], children[2 * j + 1]];
    first[j] = left >= 0 ? first[left] : ~left;
    count[j] = (left >= 0 ? count[left] : 1) + (right >= 0 ? count[right] : 1);
  }
  return { ...span, children, parent, side, depth, first, count, leafParent, leafSide, leafDepth };
}

/** The tests above a leaf, root first, each with the answer that the leaf's template asks for. */
export function pathTo(shape, leaf) {
  const path = [];
  let [test, answer] = [shape.leafParent[leaf], shape.leafSide[leaf]];
  while (test >= 0) {
    path.push({ test, answer });
    [test, answer] = [shape.parent[test], shape.side[test]];
  }
  return path.reverse();
}

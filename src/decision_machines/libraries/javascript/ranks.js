// A column as the number of its thresholds that lie below it: all that its tests can tell.
//
// A grid over the thresholds says where to look. A number's cell never falls as the number grows,
// however the arithmetic rounds, so thresholds of earlier cells lie below it and those of later
// cells do not: only the few of its own cell are compared.

const CELLS_PER_KEY = 4;

/** The columns that tests read, each with its thresholds in ascending order and a grid over them. */
export function thresholdGrids({ selection, t, nTests, columns: { rule } }) {
  const counts = new Int32Array(rule.length);
  for (let j = 0; j < nTests; j += 1) counts[selection[j]] += 1;
  const columns = Int32Array.from(counts.keys()).filter((c) => counts[c] > 0);
  const slotOf = new Int32Array(rule.length);
  const found = Array.from(columns, (c, s) => {
    slotOf[c] = s;
    return new Float64Array(counts[c]);
  });
  for (let j = 0; j < nTests; j += 1) found[slotOf[selection[j]]][--counts[selection[j]]] = t[j];
  const grids = found.map((keys) => gridOf(keys.sort().filter((key, i) => i === 0 || key !== keys[i - 1])));
  return { columns, slotOf, grids };
}

function gridOf(keys) {
  const finite = keys.filter(Number.isFinite);
  const first = finite.length ? finite[0] : 0;
  const last = finite.length ? finite[finite.length - 1] : 0;
  const top = CELLS_PER_KEY * keys.length;
  const scale = (top - 1) / (last - first);
  const grid = { keys, first, last, top, scale: Number.isFinite(scale) ? scale : 0, cells: new Int32Array(top + 2) };
  for (const key of keys) grid.cells[gridCell(grid, key) + 1] += 1;
  for (let cell = 0; cell <= top; cell += 1) grid.cells[cell + 1] += grid.cells[cell];
  return grid;
}

function gridCell({ first, last, top, scale }, value) {
  if (!(value > first)) return 0;
  return value > last ? top : ((value - first) * scale) | 0;
}

/** How many thresholds lie below a number. */
export function rankOf(grid, value) {
  const { keys, cells } = grid;
  const cell = gridCell(grid, value);
  let low = cells[cell];
  let high = cells[cell + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

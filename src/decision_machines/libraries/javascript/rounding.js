// Rounding to the dtype that the machine computes in.

/** To float32, or not at all. */
export const rounding = (single) => (single ? Math.fround : (value) => value);

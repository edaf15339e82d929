// The low 32 bits of CityHash64 (version 1) of a text: how CatBoost knows its labels.
// As Python's machine/label_hash.py; the tests hold both to the same numbers.

const WORD = (1n << 64n) - 1n;
const K0 = 0xc3a5c85c97cb3127n;
const K1 = 0xb492b66fbe98f273n;
const K2 = 0x9ae16a3b2f90404fn;
const K3 = 0xc949d7c7509e6557n;
const MIX = 0x9ddfea08eb382d69n;

function turn(x, by) {
  const w = x & WORD;
  return by ? ((w >> by) | (w << (64n - by))) & WORD : w;
}

function fold(x) {
  const w = x & WORD;
  return w ^ (w >> 47n);
}

function pair(u, v) {
  const a = fold(((u ^ v) & WORD) * MIX);
  return (fold(((v & WORD) ^ a) * MIX) * MIX) & WORD;
}

function half(a, first, second, z) {
  const b = turn(a + z, 52n);
  let c = turn(a, 37n);
  let sum = a + first;
  c += turn(sum, 7n);
  sum += second;
  return [(sum + z) & WORD, (b + turn(sum, 31n) + c) & WORD];
}

function cityLong(n, word) {
  const size = BigInt(n);
  const block = (at, a, b) => {
    let sum = a + word(at);
    const turned = turn(b + sum + word(at + 24), 21n);
    const first = sum;
    sum += word(at + 8) + word(at + 16);
    return [(sum + word(at + 24)) & WORD, (turned + turn(sum, 44n) + first) & WORD];
  };
  let x = word(0);
  let y = word(n - 16) ^ K1;
  let z = word(n - 56) ^ K0;
  let v = block(n - 64, size, y);
  let w = block(n - 32, size * K1, K0);
  z = (z + fold(v[1]) * K1) & WORD;
  [x, y] = [turn(z + x, 39n) * K1, turn(y, 33n) * K1];
  for (let at = 0; at < Math.floor((n - 1) / 64) * 64; at += 64) {
    x = (turn(x + y + v[0] + word(at + 16), 37n) * K1) & WORD;
    y = (turn(y + v[1] + word(at + 48), 42n) * K1) & WORD;
    [x, y, z] = [x ^ w[1], y ^ v[0], turn(z ^ w[0], 33n)];
    v = block(at, v[1] * K1, x + w[0]);
    w = block(at + 32, z + w[1], y);
    [z, x] = [x, z];
  }
  return pair(pair(v[0], w[0]) + fold(y) * K1 + z, pair(v[1], w[1]) + x);
}

function city(bytes) {
  const n = bytes.length;
  const size = BigInt(n);
  const word = (at, length = 8) => {
    let found = 0n;
    for (let i = length - 1; i >= 0; i -= 1) found = (found << 8n) | BigInt(bytes[at + i]);
    return found;
  };
  if (n > 64) return cityLong(n, word);
  if (n > 32) {
    const [v, v2] = half(word(0) + (size + word(n - 16)) * K0, word(8), word(16), word(24));
    const [w, w2] = half(word(16) + word(n - 32), word(n - 24), word(n - 16), word(n - 8));
    return (fold(fold((v + w2) * K2 + (w + v2) * K0) * K0 + v2) * K2) & WORD;
  }
  if (n > 16) {
    const [a, b, c, d] = [word(0) * K1, word(8), word(n - 8) * K2, word(n - 16) * K0];
    return pair(turn(a - b, 43n) + turn(c, 30n) + d, a + turn(b ^ K3, 20n) - c + size);
  }
  if (n > 8) {
    const last = word(n - 8);
    return pair(word(0), turn(last + size, size)) ^ last;
  }
  if (n >= 4) return pair(size + (word(0, 4) << 3n), word(n - 4, 4));
  if (n) {
    const [first, middle, last] = [bytes[0], bytes[n >> 1], bytes[n - 1]].map(BigInt);
    return (fold(((first + (middle << 8n)) * K2) ^ ((size + (last << 2n)) * K3)) * K2) & WORD;
  }
  return K2;
}

/** The hash of a label's text, as a signed number of 32 bits. */
export const labelHash = (text) => Number(BigInt.asIntN(32, city(new TextEncoder().encode(text))));

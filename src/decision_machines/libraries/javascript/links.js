// From margins to responses: every link of Python's machine/links.py. The exponential is the browser's
// own, so responses may differ from Python's in the last place; margins never do.

import { number } from "./machine.js";
import { rounding } from "./rounding.js";

const sum = (values, round = (v) => v) => values.reduce((a, b) => round(a + b), 0);
const largest = (values) => values.reduce((a, b) => (a > b || Number.isNaN(a) ? a : b), -Infinity);

function softmaxOf(margin, single) {
  const round = rounding(single);
  const top = largest(margin);
  const e = margin.map((m) => round(Math.exp(round(m - top))));
  const total = sum(e, round);
  return e.map((v) => round(v / total));
}

const sigmoidOf = (m, single, slope = 1) => {
  const round = rounding(single);
  return round(1 / round(1 + round(Math.exp(round(-round(slope) * m)))));
};

const LINKS = {
  identity: (margin) => margin,
  sigmoid: (margin, single, slope) => margin.map((m) => sigmoidOf(m, single, slope)),
  expit: (margin, single, slope) => margin.map((m) => sigmoidOf(m, single, slope)),
  softmax: (margin, single) => softmaxOf(margin, single),
  exp: (margin, single) => margin.map((m) => rounding(single)(Math.exp(m))),
  samme(margin, single) {
    const round = rounding(single);
    if (margin.length === 1) return softmaxOf([round(-margin[0] / 2), round(margin[0] / 2)], single);
    return softmaxOf(margin.map((m) => round(m / (margin.length - 1))), single);
  },
  isolation: (margin, single) => margin.map((m) => -rounding(single)(2 ** -m)),
  xgboost_sigmoid: (margin, single) =>
    margin.map((m) => sigmoidOf(Math.max(m, Math.fround(-88.7)), single)),
  xgboost_exp: (margin, single) => margin.map((m) => rounding(single)(Math.exp(m))),
  xgboost_rounded_exp: (margin) => margin.map((m) => Math.fround(Math.exp(m))),
  xgboost_softmax(margin, single) {
    const round = rounding(single);
    const top = largest(margin);
    const e = margin.map((m) => round(Math.exp(round(m - top))));
    const total = Math.fround(sum(e));
    return e.map((v) => round(v / total));
  },
  xgboost_step: (margin) => margin.map((m) => (m > 0 ? 1 : 0)),
  xgboost_sorted: (margin) => [...margin].sort((a, b) => a - b),
  xgboost_increments(margin, single) {
    const round = rounding(single);
    const found = [margin[0]];
    for (const m of margin.slice(1)) {
      const softplus = round(Math.max(m, 0) + round(Math.log1p(round(Math.exp(-Math.abs(m))))));
      found.push(round(found[found.length - 1] + round(softplus + round(1e-6))));
    }
    return found;
  },
  catboost_exp: (margin) => margin.map(catboostExp),
  catboost_softmax(margin) {
    const top = largest(margin);
    const tail = margin.length - (margin.length % 4);
    const e = margin.map((m, i) => (i >= tail && m - top <= -708.39641853226408 ? 0 : catboostExp(m - top)));
    const total = sum(e);
    return e.map((v) => v / total);
  },
  catboost_mean_and_variance: ([mean, spread]) => [mean, catboostExp(2 * spread)],
  lightgbm_exp: (margin) => margin.map(Math.exp),
  lightgbm_softmax: (margin) => softmaxOf(margin, false),
  lightgbm_softplus: (margin) => margin.map((m) => Math.log1p(Math.exp(m))),
  signed_square: (margin, single) => {
    const round = rounding(single);
    return margin.map((m) => round(round(Math.sign(m) * m) * m));
  },
  ydf_sigmoid: (margin, single) => margin.map((m) => Math.fround(sigmoidOf(m, single))),
  ydf_softmax(margin) {
    const e = margin.map((m) => Math.fround(Math.exp(m)));
    const share = Math.fround(1 / sum(e, Math.fround));
    return e.map((v) => Math.fround(v * share));
  },
  ydf_exp: (margin) => margin.map((m) => Math.fround(Math.exp(Math.min(Math.max(m, -19), 19)))),
  ydf_clamped: (margin) => margin.map((m) => Math.min(Math.max(m, 0), 1)),
  ydf_anomaly: (margin, single, divisor = 1) =>
    margin.map((m) => Math.fround(2 ** Math.fround(-m / Math.fround(divisor)))),
  treelite_sigmoid: (margin, single, slope) => margin.map((m) => sigmoidOf(m, single, slope)),
  treelite_softmax(margin, single) {
    const top = Math.fround(largest(margin));
    const e = margin.map((m) => Math.fround(Math.exp(rounding(single)(m - top))));
    const total = Math.fround(sum(e));
    return e.map((v) => rounding(single)(v / total));
  },
  treelite_anomaly: (margin, single, divisor = 1) =>
    margin.map((m) => rounding(single)(2 ** rounding(single)(-m / Math.fround(divisor)))),
  interpret_sigmoid: (margin) =>
    margin.map((m) => (Math.exp(m) === Infinity ? 1 : Math.exp(m) / (Math.exp(m) + 1))),
  interpret_softmax: (margin) => softmaxOf(margin, false),
  interpret_exp: (margin) => margin.map(Math.exp),
  spark_sigmoid(margin, single, slope) {
    const first = sigmoidOf(margin[0], single, slope);
    return [first, rounding(single)(1 - first)];
  },
  onnx: (margin, single, ...steps) => onnxSteps(margin, single, steps),
};

const catboostExp = (x) => Math.exp(Math.min(Math.max(x, -708.39641853226408), 709.78271289338397));

const AVERAGED = "averaged ";

/** Whether the page can compute this link. */
export const knowsLink = (name) => Object.hasOwn(LINKS, name.replace(AVERAGED, ""));

/** The responses of all groups of outputs. */
export function respond(output, margin) {
  const found = [];
  for (let g = 0; g + 1 < output.groups.length; g += 1) {
    const part = margin.slice(output.groups[g], output.groups[g + 1]);
    found.push(...linked(output.link, part, output.single, output.linkParams));
  }
  return found;
}

function linked(name, margin, single, params) {
  if (!name.startsWith(AVERAGED)) return LINKS[name](margin, single, ...params);
  const round = rounding(single);
  const average = margin.map((m) => round(m / round(params[0])));
  return linked(name.slice(AVERAGED.length), average, single, params.slice(1));
}

// ONNX: steps by name, each with its constants.

function onnxSteps(margin, single, steps) {
  let state = { x: margin, single };
  for (const { step, constants } of steps) state = ONNX_STEPS[step](state, constants.map(number));
  return state.x;
}

const f = Math.fround;
const inSingle = (apply) => (state) => ({ x: apply(state.x.map(f)), single: true });
const each = (operate) => (state, constants) => {
  const round = rounding(state.single);
  const at = (i) => round(constants[constants.length === 1 ? 0 : i]);
  const n = Math.max(state.x.length, constants.length);
  return {
    x: Array.from({ length: n }, (_, i) => round(operate(state.x[state.x.length === 1 ? 0 : i], at(i)))),
    single: state.single,
  };
};
const spread = (apply) => (state) => ({ x: apply(state.x, rounding(state.single)), single: state.single });

function onnxLogistic(value) {
  const v = f(1 / f(1 + f(Math.exp(-Math.abs(value)))));
  return value < 0 ? f(1 - v) : v;
}

function onnxSoftmaxZero(x) {
  const top = largest(x);
  const counts = x.map((v) => v > f(1e-7) || v < -f(1e-7));
  const e = x.map((v) => f(Math.exp(f(v - top))));
  const kept = x.map((v, i) => (counts[i] ? e[i] : f(v * f(Math.exp(-top)))));
  const total = sum(e.map((v, i) => (counts[i] ? v : 0)), f);
  return kept.map((v) => f(v / total));
}

function onnxProbit(value) {
  const p = f(f(2 * value) - 1);
  const logarithm = f(Math.log(f(f(1 - p) * f(1 + p))));
  const v = f(f(2 / f(f(Math.PI) * f(0.147))) + f(0.5 * logarithm));
  const inner = f(f(v * v) - f(f(1 / f(0.147)) * logarithm));
  const root = f(Math.sqrt(f(-v + f(Math.sqrt(inner)))));
  return f(f(Math.SQRT2) * (p < 0 ? -root : root));
}

const SIGMOID_P = [4.37031012579801e-11, 1.15627324459942e-7, 6.08574864600143e-5, 8.51377133304701e-3,
  2.48287947061529e-1].map(f);
const SIGMOID_Q = [6.10247389755681e-13, 5.76102136993427e-9, 6.2910678501704e-6, 1.70198817374094e-3,
  1.16817656904453e-1, 9.9315192102318e-1].map(f);
const horner = (x, coefficients) => coefficients.reduce((total, c, i) => (i ? f(total * x + c) : c), 0);

function onnxSigmoid(value) {
  const x = Math.min(Math.max(value, -18), 18);
  const square = f(x * x);
  const share = f(f(horner(square, SIGMOID_P) * x) / horner(square, SIGMOID_Q));
  return Math.max(f(share + 0.5), 0);
}

/** Every step of Python's machine/steps.py. */
const ONNX_STEPS = {
  single: (state) => ({ x: state.x.map(f), single: true }),
  double: (state) => ({ x: state.x, single: false }),
  logistic: inSingle((x) => x.map(onnxLogistic)),
  softmax: inSingle((x) => softmaxOf(x, true)),
  softmax_zero: inSingle(onnxSoftmaxZero),
  probit: inSingle((x) => x.map(onnxProbit)),
  complement: spread((x, round) => [...x.map((v) => round(1 - v)), ...x]),
  opposite: spread((x) => [...x.map((v) => -v), ...x]),
  beside_zero: spread((x) => [...x.map(() => 0), ...x]),
  normalize: spread((x, round) => {
    const total = sum(x.map(Math.abs), round);
    return x.map((v) => (total !== 0 ? round(v / total) : v));
  }),
  add: each((x, c) => x + c),
  subtract: each((x, c) => x - c),
  subtract_from: each((x, c) => c - x),
  multiply: each((x, c) => x * c),
  divide: each((x, c) => x / c),
  divide_into: each((x, c) => c / x),
  negate: spread((x) => x.map((v) => -v)),
  exp: spread((x, round) => x.map((v) => round(Math.exp(v)))),
  sigmoid: (state) => ({ x: state.x.map(onnxSigmoid), single: state.single }),
  libm_exp: spread((x, round) => x.map((v) => round(Math.exp(v)))),
  libm_log1p: spread((x, round) => x.map((v) => round(Math.log1p(v)))),
};

// From margins and responses to the answer: a label for each group, or numbers.

const firstLargest = (values) => values.reduce((best, v, i) => (v > values[best] ? i : best), 0);

/** {labels: [index for each group]}, or {values: numbers}. */
const DECISIONS = {
  response: (output, margin, answer) => ({ values: answer }),
  margin: (output, margin) => ({ values: margin }),
  argmax: (output, margin, answer) => ({
    labels: output.classes.map((_, g) =>
      firstLargest(answer.slice(output.groups[g], output.groups[g + 1])),
    ),
  }),
  argmax_margin: (output, margin) => ({ labels: [firstLargest(margin)] }),
  above: (output, margin, answer, threshold = 0.5) => ({ labels: [answer[0] > threshold ? 1 : 0] }),
  margin_above: (output, margin, answer, threshold = 0) => ({
    labels: [margin[0] > threshold ? 1 : 0],
  }),
  margin_at_least: (output, margin, answer, threshold = 0) => ({
    labels: [margin[0] >= threshold ? 1 : 0],
  }),
  second_margin_above: (output, margin, answer, threshold = 0, plain = 0) => {
    const index = margin[1] > threshold ? 1 : 0;
    return plain ? { values: [index] } : { labels: [index] };
  },
  inlier: (output, margin, answer, offset = 0) => ({ values: [answer[0] - offset < 0 ? -1 : 1] }),
  above_each: (output, margin, answer, threshold = 0.5) => ({
    values: answer.map((v) => (v > threshold ? 1 : 0)),
  }),
  each_margin_above: (output, margin, answer, threshold = 0) => ({
    values: margin.map((v) => (v > threshold ? 1 : 0)),
  }),
};

export const knowsDecision = (name) => Object.hasOwn(DECISIONS, name);

export const decide = (output, margin, answer) =>
  DECISIONS[output.decision](output, margin, answer, ...output.decisionParams);

/** The probability of every class of the first group, or null where there are none. */
export function probabilities(output, answer) {
  const classes = output.classes?.[0];
  if (!classes) return null;
  if (answer.length === 1 && classes.length === 2) return [1 - answer[0], answer[0]];
  return answer.length >= classes.length ? answer.slice(0, classes.length) : null;
}

/** What a response or margin is called. */
export function outputName(output, index, length = output.k) {
  const classes = output.classes ?? [];
  const total = classes.reduce((n, labels) => n + labels.length, 0);
  if (classes.length && total === length) {
    let at = index;
    for (const labels of classes) {
      if (at < labels.length) return labels[at];
      at -= labels.length;
    }
  }
  if (length === 1) return classes[0]?.length === 2 ? classes[0][1] : "value";
  return `output ${index}`;
}

const MACHINE = readMachine(DATA);
const read = rowReader(DATA.names, DATA.reading);
const { output: OUTPUT } = MACHINE;

/** The names of the features, in the order of an array. */
export const features = Object.freeze([...DATA.names]);
/** The labels of every group of outputs, or null. */
export const classes = DATA.classes;

/** The exit leaf of every tree, counted from 0, left to right. */
export const apply = (row) => Array.from(evaluate(MACHINE, read(row)).exits);

/** The margins (raw scores): an array with a number for each output. */
export const margin = (row) => evaluate(MACHINE, read(row)).margin;

/** What the link makes of the margins. */
export const response = (row) => respond(OUTPUT, margin(row));

/** The probability of every class; of several targets, an array for each. */
export function predictProba(row) {
  if (!classes) {
    throw new TypeError("While predicting probabilities: the model has no classes. What to do: use predict or margin.");
  }
  const answer = response(row);
  if (classes.length > 1) {
    return classes.map((_, g) => answer.slice(OUTPUT.groups[g], OUTPUT.groups[g + 1]));
  }
  const one = rounding(OUTPUT.single)(1 - answer[0]);
  return answer.length === 1 && classes[0].length === 2 ? [one, answer[0]] : answer;
}

/** The label, or the number, that the model predicts; an array where it predicts several. */
export function predict(row) {
  const found = margin(row);
  const decided = decide(OUTPUT, found, respond(OUTPUT, found));
  if (decided.values) return DATA.squeeze && decided.values.length === 1 ? decided.values[0] : decided.values;
  const labels = decided.labels.map((label, g) => classes[g][label]);
  return labels.length === 1 && DATA.squeeze ? labels[0] : labels;
}

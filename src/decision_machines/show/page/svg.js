// Elements, made one by one: text only ever enters the page as text.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** An SVG element. */
export const svg = (name, attributes = {}, ...children) =>
  build(document.createElementNS(SVG, name), attributes, children);

/** An HTML element. */
export const html = (name, attributes = {}, ...children) =>
  build(document.createElement(name), attributes, children);

/** Change a text, or an attribute, only where it is another one: the browser lays out anew for each. */
export function setText(element, text) {
  if (element.shownText === text) return;
  element.shownText = text;
  element.textContent = text;
}

export function setAttribute(element, name, value) {
  const shown = (element.shown ??= {});
  if (shown[name] === value) return;
  shown[name] = value;
  element.setAttribute(name, value);
}

export const byId = (id) => document.getElementById(id);

const segmenter = Intl.Segmenter ? new Intl.Segmenter() : null;
const lettersOf = (text) => (segmenter ? Array.from(segmenter.segment(text), (part) => part.segment) : Array.from(text));

const pen = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily;
const widths = new Map();

/** How wide a text is, bold as it may become, in CSS pixels. */
export function textWidth(text, size = 12) {
  const key = `${size} ${text}`;
  if (!widths.has(key)) {
    pen.font = `700 ${size}px ${family}`;
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

/** Text cut to a width, not inside an emoji or a letter with its accents. */
export function cut(text, width, size = 12) {
  if (textWidth(text, size) <= width) return text;
  const letters = lettersOf(text);
  let [low, high] = [1, Math.max(1, letters.length - 1)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${letters.slice(0, middle).join("")}…`, size) <= width) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("")}…`;
}

/** Text broken between words into at most so many lines, those cut that are still too long. */
export function wrap(text, width, mostLines, size = 12) {
  const lines = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    const isFull = last === undefined || (textWidth(`${last} ${word}`, size) > width && lines.length < mostLines);
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => cut(line, width, size));
}

/** The least width in which a text stands in so many lines without being cut. */
export function widthFor(text, mostLines, size = 12) {
  if (mostLines < 2) return textWidth(text, size);
  const words = text.split(" ");
  let least = textWidth(text, size);
  for (let n = 1; n < words.length; n += 1) {
    least = Math.min(least, Math.max(textWidth(words.slice(0, n).join(" "), size), textWidth(words.slice(n).join(" "), size)));
  }
  return least;
}

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

/** Text cut to a number of characters, not inside an emoji or a letter with its accents. */
export function cut(text, most) {
  if (text.length <= most) return text;
  const letters = segmenter ? Array.from(segmenter.segment(text), (part) => part.segment) : Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, Math.max(1, most - 1)).join("")}…`;
}

/** Text broken between words into at most so many lines, the last one cut where it is too long. */
export function wrap(text, most, mostLines) {
  const lines = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    const isFull = last === undefined || (`${last} ${word}`.length > most && lines.length < mostLines);
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => cut(line, most));
}

// Elements. A text becomes a text node, so nothing that comes from documents or queries is ever read as markup.

export const at = id => document.getElementById(id);

/** An element with attributes (`onclick` and the like are listeners, false leaves one out) and what is inside. */
export function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside.flat().filter(part => part !== null && part !== undefined));
  return element;
}

/** A text of unknown direction, kept apart from what is around it. */
export const apart = (text, attributes = {}) => make("bdi", { dir: "auto", ...attributes }, String(text));

export const button = (text, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text);

/** A link to a place of this page, which `go` opens without loading it anew. */
export function link(href, go, attributes, ...inside) {
  return make("a", { href, ...attributes, onclick: event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go();
  } }, ...inside);
}

/** Places counted in code points, ascending, as places in a JavaScript string. */
export function places(text, points) {
  if (!/[\ud800-\udbff]/.test(text)) return points;
  const units = [];
  let unit = 0, point = 0;
  for (const wanted of points) {
    while (point < wanted && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      point += 1;
    }
    units.push(unit);
  }
  return units;
}

/** The pieces of text between `from` and `to`, with marks where `matches` (start and end, in units of the string) are. */
export function marked(text, matches, from = 0, to = text.length, weigh = null) {
  const parts = [];
  let last = from;
  for (const [start, end] of matches) {
    if (end <= last || start >= to) continue;
    const [first, after] = [Math.max(start, last), Math.min(end, to)];
    if (first > last) parts.push(text.slice(last, first));
    const mark = make("mark", {}, text.slice(first, after));
    if (weigh) weighed(mark, weigh(mark.textContent));
    parts.push(mark);
    last = after;
  }
  if (last < to) parts.push(text.slice(last, to));
  return parts;
}

/** Matches in code points as matches in units. */
export function units(text, matches) {
  const flat = places(text, matches.flat());
  return matches.map((_, i) => [flat[2 * i], flat[2 * i + 1]]);
}

/** Colours an element by a weight from 0 to 1. */
export function weighed(element, weight) {
  element.classList.add("weighed");
  element.style.setProperty("--weight", String(Math.max(0, Math.min(1, weight || 0))));
  return element;
}

export const count = (n, one, more = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : more}`;

/** A value of metadata that says something. */
export const filled = value => value !== null && value !== "" && !(Array.isArray(value) && !value.length);

/** Whether a value is an http(s) address. */
export const isAddress = own => typeof own === "string" && /^https?:\/\/\S+$/i.test(own) && URL.canParse(own);

/** One metadata value as text. */
export const shown = value => typeof value === "string" ? value : typeof value === "boolean" ? (value ? "yes" : "no")
  : Array.isArray(value) ? value.map(shown).join(", ") : value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);

/** A value of metadata: an http(s) address is a link, anything else a text of at most so many characters. */
export function value(own, most = Infinity) {
  const text = short(shown(own), most);
  if (!isAddress(own)) return apart(text);
  return make("a", { href: own, rel: "noopener noreferrer nofollow", target: "_blank" }, apart(text));
}

/** A text of at most so many characters. */
export const short = (text, most) => text.length > most ? `${text.slice(0, most - (/[\udc00-\udfff]/.test(text[most - 1]) ? 2 : 1))}…` : text;

export const figure = value => Number.isInteger(value) ? String(value) : Math.abs(value) >= 1000 ? value.toFixed(0)
  : Math.abs(value) >= 0.01 ? value.toFixed(4) : value.toExponential(2);

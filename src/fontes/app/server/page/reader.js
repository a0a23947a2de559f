// A document beside the results: its metadata, and its text in pieces, however long it is.

import { app, go, index } from "./app.js";
import { ask, overtaken } from "./api.js";
import { apart, at, button, count, filled, make, marked, shown, units, value } from "./dom.js";
import { column, toggled } from "./filter.js";

const PIECE = 8000, FIRST = 3;  // characters of a piece, and pieces that are made at once
let opened = "", last = "", from = null;  // what is open, the document that was read last, and what had the focus before

/** Opens the document of the state, or closes what is open. */
export async function read(query, evidence = []) {
  const { doc } = app.state, reader = at("reader"), key = JSON.stringify([index().name, doc, query]);
  if (!doc) return close();
  if (key === opened) return;
  if (reader.hidden) from = document.activeElement;
  opened = key;
  last = doc;
  reader.hidden = false;
  document.body.classList.add("reading");
  narrow();
  if (!reader.childElementCount) reader.replaceChildren(bar(doc), make("p", { class: "notes" }, "…"));
  if (!reader.contains(document.activeElement)) reader.focus({ preventScroll: true });
  try {
    const values = await ask("document", "documents", { id: doc, q: query, index: index().name });
    reader.replaceChildren(bar(doc), ...content(values, evidence));
  } catch (error) {
    if (overtaken(error)) return;
    opened = "";
    reader.replaceChildren(bar(doc), make("p", { class: "problem", role: "alert" }, error.message));
  }
  reader.scrollTop = 0;
}

export function close() {
  const reader = at("reader");
  if (reader.hidden) return;
  opened = "";
  const inside = reader.contains(document.activeElement) || document.activeElement === document.body;
  reader.hidden = true;
  reader.replaceChildren();
  document.body.classList.remove("reading");
  narrow();
  const own = [...document.querySelectorAll(".hit[data-id]")].filter(hit => hit.dataset.id === last).map(hit => hit.querySelector(".title a"));
  const back = !from?.isConnected ? own[0] ?? document.querySelector(".hit .title a") : own.length && from.closest(".title") && !own.includes(from) ? own[0] : from;
  if (inside) back?.focus();
}

/** Makes the page inert while the document covers it. */
export function narrow() {
  at("frame").inert = !at("reader").hidden && matchMedia("(max-width: 68rem)").matches;
}

/** The documents of the results in their order, each once. */
const order = () => [...new Set([...document.querySelectorAll(".hit[data-id]")].filter(hit => !hit.hidden).map(hit => hit.dataset.id))];

/** Goes to the previous, "p", or next match, "n". */
export const match = key => at("reader").querySelector(`.jumps [aria-keyshortcuts=${key}]`)?.click();

/** Goes to the document that is `by` places further in the results. */
export function step(by) {
  const ids = order(), to = ids[ids.indexOf(app.state.doc) + by];
  if (to !== undefined && ids.includes(app.state.doc)) go({ doc: to }, { replace: true });
}

function bar(doc) {
  const ids = order(), place = ids.indexOf(doc);
  const steps = place < 0 ? [] : [
    button("←", () => step(-1), { class: "plain", "aria-label": "Previous document", disabled: place === 0 }),
    button("→", () => step(1), { class: "plain", "aria-label": "Next document", disabled: place === ids.length - 1 })];
  return make("div", { class: "bar" }, make("span", { class: "notes" }, apart(doc, { class: "id" })), make("span", { class: "buttons" }, steps,
    button("Close", () => go({ doc: "" }), { class: "plain", "aria-label": "Close the document" })));
}

function content(values, evidence) {
  const title = make("h2", { dir: "auto" }, values.title_matches ? marked(values.title, units(values.title, values.title_matches)) : values.title);
  const { text } = values;
  return [...values.title.trim() ? [title] : [], ...metadata(values.metadata), ...body(text, units(text, values.matches ?? []), sentences(text, evidence))];
}

/** Start and end of evidence sentences in the text. */
function sentences(text, evidence) {
  return evidence.map(sentence => [text.indexOf(sentence), sentence.length]).filter(([place]) => place >= 0).map(([place, length]) => [place, place + length]);
}

function metadata(values) {
  const types = index().columns, rows = Object.entries(values).filter(([, value]) => filled(value)).map(([key, value]) => [make("dt", {}, apart(key)), make("dd", {}, ...parts(key, value, types[key]))]);
  return rows.length ? [make("dl", { class: "metadata" }, ...rows)] : [];
}

/** A metadata value; as buttons if it can be a filter. */
function parts(key, own, type) {
  const values = Array.isArray(own) ? own : [own];
  if (index().links.includes(key) || type === undefined) return values.flatMap((each, i) => [i ? ", " : "", value(each)]);
  const buttons = app.state.view === "search" && (type === "keyword" || type === "keywords" || type === "boolean") && values.every(v => typeof v !== "object");
  if (!buttons) return [apart(shown(own))];
  return values.map(v => button(apart(shown(v)), () => go({ where: toggled(app.state.where, key, type, v) }),
    { class: "value", title: `Filter by ${column(key)}` }));
}

/** Offsets at which the pieces of a text begin. */
function cut(text) {
  const cuts = [0];
  while (text.length - cuts[cuts.length - 1] > PIECE * 1.2) {
    const near = cuts[cuts.length - 1] + PIECE, space = text.slice(near, near + 1000).search(/\s/);
    const place = space >= 0 ? near + space + 1 : near;
    cuts.push(/[\udc00-\udfff]/.test(text[place]) ? place + 1 : place);
  }
  return cuts;
}

/** Matches in their order, those that overlap as one, and none over a cut: one for each mark. */
function apiece(matches, cuts) {
  const merged = [];
  for (const [start, end] of [...matches].sort((a, b) => a[0] - b[0])) {
    const last = merged[merged.length - 1];
    if (last && start < last[1]) last[1] = Math.max(last[1], end);
    else if (end > start) merged.push([start, end]);
  }
  return merged.flatMap(([start, end]) => {
    const inside = [start, ...cuts.filter(place => place > start && place < end), end];
    return inside.slice(1).map((place, i) => [inside[i], place]);
  });
}

/** Brings a mark into view; the pieces before it get their heights only when they are drawn, so more than once. */
function center(mark, times = 4) {
  mark.scrollIntoView({ block: "center" });
  if (times) requestAnimationFrame(() => center(mark, times - 1));
}

/** A piece of a text: its words marked, and the evidence sentences with the words in them. */
function written(text, words, picked, start, end) {
  const within = all => all.filter(([first, after]) => after > start && first < end), own = within(words), parts = [];
  let last = start;
  for (const [first, after] of within(picked)) {
    parts.push(...marked(text, own, last, first), make("mark", { class: "sentence" }, marked(text, own, first, after)));
    last = after;
  }
  return [...parts, ...marked(text, own, last, end)];
}

function body(text, all, evidence) {
  const cuts = cut(text), words = apiece(all, cuts), picked = apiece(evidence, cuts), matches = picked.length ? picked : words;
  const number = picked.length ? count(picked.length, "evidence sentence") : count(words.length, "match", "matches");
  const place = make("div", { class: "words" }), rest = make("div", { class: "rest" });
  let made = 0, here = -1;
  const upTo = number => {
    for (; made < Math.min(number, cuts.length); made++) {
      const [start, end] = [cuts[made], cuts[made + 1] ?? text.length];
      place.append(make("div", { class: "piece", dir: "auto" }, written(text, words, picked, start, end)));
    }
    const left = text.length - (cuts[made] ?? text.length);
    rest.replaceChildren(...left ? [button(`Show the rest (${count(left, "character")})`, () => upTo(cuts.length))] : []);
  };
  upTo(FIRST);
  new IntersectionObserver((entries, observer) => {
    if (!place.isConnected || made >= cuts.length) observer.disconnect();
    else if (entries.some(entry => entry.isIntersecting)) {
      upTo(made + FIRST);
      observer.unobserve(rest);
      observer.observe(rest);
    }
  }, { root: at("reader"), rootMargin: "600px" }).observe(rest);
  const jump = by => {
    here = (here + by + matches.length) % matches.length;
    upTo(cuts.filter(cut => cut <= matches[here][0]).length);
    const mark = place.querySelectorAll(picked.length ? ".sentence" : "mark")[here];
    place.querySelector("mark.here")?.classList.remove("here");
    mark?.classList.add("here");
    if (mark) center(mark);
    said.textContent = `${(here + 1).toLocaleString("en")} of ${number}`;
  };
  const said = make("span", { role: "status" }, number);
  const jumps = matches.length ? [make("div", { class: "jumps notes" }, said,
    button("↑", () => jump(here < 0 ? 0 : -1), { class: "plain", "aria-label": "Previous match", "aria-keyshortcuts": "p" }), button("↓", () => jump(1), { class: "plain", "aria-label": "Next match", "aria-keyshortcuts": "n" }))] : [];
  return text ? [...jumps, place, rest] : [make("p", { class: "notes" }, "This document has no text.")];
}

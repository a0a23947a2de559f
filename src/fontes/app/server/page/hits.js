// A list of hits: ranks, titles, metadata, the best passage of each text, and explanations.

import { app, go, href, index } from "./app.js";
import { overtaken, sentence } from "./api.js";
import { apart, at, button, filled, isAddress, link, make, marked, short, units, value, weighed } from "./dom.js";
import { explained, termsOf, weigher } from "./tree.js";

const TITLE = 300, FIRST = 50, PIECE = 100;  // hits that are made at once, and at a time after that
let generation = 0;

/**
 * The list. `side` is 0 or 1; `explain(hit)` gives a promise of the explanation of a hit; `edge(hit)` more for its right end;
 * `level` that of the titles' headings.
 */
export function listed(hits, { side = 0, explain, edge = null, level = 2, label }) {
  const list = make("ol", { class: "hits", "aria-label": label }), mine = ++generation;
  const rest = [...hits];
  const next = size => list.append(...rest.splice(0, size).map(hit => item(hit, { side, explain, edge, level })));
  next(FIRST);
  const later = () => {
    if (!rest.length || (generation > mine + 1 && !list.isConnected)) return;
    next(PIECE);
    requestAnimationFrame(later);
  };
  if (rest.length) requestAnimationFrame(later);
  return list;
}

function item(hit, { side, explain, edge, level }) {
  const title = hit.title.trim() ? hit.title : hit.id;
  const own = link(href({ doc: hit.id }), () => go({ doc: hit.id }), { "aria-current": app.state.doc === hit.id && "true" }, apart(short(title, TITLE)));
  const { links = [], pictures = [] } = index(), picture = pictures.map(name => hit.metadata[name]).find(isAddress);
  const page = links.filter(name => !pictures.includes(name)).map(name => hit.metadata[name]).find(isAddress);
  const about = make("p", { class: "about" }, page && leading(page), apart(short(hit.id, TITLE), { class: "id" }),
    Object.entries(hit.metadata).filter(([key, own]) => filled(own) && own !== page && !pictures.includes(key)).slice(0, 6).map(([key, own]) => make("span", {}, apart(short(key, TITLE), { class: "key" }), " ", value(own, 80))));
  const text = make("div", { class: "text" }), why = make("div", { class: "reason", hidden: true });
  const more = explain && button("Why", () => ask(), { class: "plain why", "aria-expanded": "false", "aria-label": `Why ${short(title, 60)}` });
  const element = make("li", { class: "hit", "data-id": hit.id, "data-side": side },
    make("span", { class: "rank" }, String(hit.rank)),
    make("div", { class: picture ? "body pictured" : "body" }, picture && pictured(picture), make(`h${level}`, { class: "title" }, own), about, text),
    make("div", { class: "edge" }, make("span", { class: "score researcher" }, hit.score.toFixed(4)), edge?.(hit), more), why);
  words(text, hit, null);
  element.why = ask;
  const key = side ? "why2" : "why";
  if (explain && app.state[key].includes(hit.id)) unfold();
  return element;

  function ask() {
    if (!explain) return;
    const open = why.hidden;
    go({ [key]: open ? [...app.state[key], hit.id] : app.state[key].filter(id => id !== hit.id) }, { replace: true });
    if (open) unfold();
    else {
      why.hidden = true;
      more.setAttribute("aria-expanded", "false");
      words(text, hit, null);
    }
  }

  async function unfold() {
    why.hidden = false;
    more.setAttribute("aria-expanded", "true");
    if (why.childElementCount && !why.querySelector(".problem")) return words(text, hit, element.terms);
    why.replaceChildren(make("p", { class: "notes" }, "…"));
    try {
      const explanation = await explain(hit);
      element.terms = weigher(termsOf(explanation));
      why.replaceChildren(explained(explanation));
      if (!why.hidden) words(text, hit, element.terms);
    } catch (error) {
      if (!overtaken(error)) why.replaceChildren(make("p", { class: "problem", role: "alert" }, error.message));
    }
  }
}

/** The picture of a document, loaded when it comes into view; without one that loads, the text takes its place. */
function pictured(address) {
  const image = make("img", { class: "picture", alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer", width: "120", height: "90", src: address, onerror: () => {
    image.parentElement?.classList.remove("pictured");
    image.remove();
  } });
  return image;
}

/** A link to the page of a document, which shows its host. */
const leading = address => make("a", { href: address, class: "page", rel: "noopener noreferrer nofollow", target: "_blank", title: address }, apart(new URL(address).host.replace(/^www\./, "")), make("span", { "aria-hidden": "true" }, " ↗"));

/** The evidence sentences, or the best passage of the text. */
function words(place, hit, weigh) {
  if (hit.rationales?.length) {
    const most = Math.max(...hit.rationales.map(({ score }) => score));
    place.replaceChildren(make("p", { class: "kind" }, "Evidence sentences, with number and score"), make("ol", { class: "picked" }, hit.rationales.map(({ number, score, text }) =>
      make("li", {}, make("span", { class: "number", title: "sentence number, from 0" }, String(number)),
        weighed(make("p", { dir: "auto" }, text), most > 0 ? score / most : 0), make("span", { class: "score", title: "sentence score" }, score.toFixed(4))))));
  } else if (hit.snippet.text) {
    place.replaceChildren(make("p", { class: "snippet", dir: "auto" }, marked(hit.snippet.text, units(hit.snippet.text, hit.snippet.matches), 0, undefined, weigh)));
  }
}

/** An answer, each sentence followed by its sources, which open the document; the quoted words are the tooltip and below. */
export function answered({ text, sentences }) {
  const sources = [];
  const number = ({ document, quote }) => {
    if (!sources.some(one => one.document === document && one.quote === quote)) sources.push({ document, quote });
    return sources.findIndex(one => one.document === document && one.quote === quote) + 1;
  };
  const open = ({ document }, ...inside) => link(href({ doc: document }), () => go({ doc: document }), {}, ...inside);
  const said = sentences.map(each => make("span", { dir: "auto" }, each.text,
    each.citations.flatMap(one => [" ", make("sup", { title: one.quote }, open(one, `[${number(one)}]`))]), " "));
  return make("section", { class: "answer", "aria-label": "Answer" }, make("p", {}, sentences.length ? said : sentence(text)),
    sources.length ? make("ol", { class: "sources", "aria-label": "Sources of the answer" }, sources.map(one => make("li", {}, open(one, apart(short(one.document, TITLE))), ": ", make("q", { dir: "auto" }, one.quote)))) : null);
}

/** Shows results in place of others. The focus stays on its hit, or moves to the one in its place. */
export function redrawn(...nodes) {
  const before = document.activeElement?.closest("#content .hit"), { id, side } = before?.dataset ?? {};
  const place = before ? [...before.parentElement.children].indexOf(before) : -1;
  at("content").replaceChildren(...nodes);
  if (!before) return;
  const hits = [...document.querySelectorAll(`#content .hit[data-side="${side}"]`)];
  const hit = hits.find(each => each.dataset.id === id) ?? hits[Math.min(place, hits.length - 1)];
  (hit?.querySelector(".title a") ?? at("results")).focus();
}

/** Marks the hits whose document is open. */
export function current(id) {
  for (const anchor of document.querySelectorAll(".hit .title a, .source a")) {
    if (id && anchor.closest("[data-id]").dataset.id === id) anchor.setAttribute("aria-current", "true");
    else anchor.removeAttribute("aria-current");
  }
}

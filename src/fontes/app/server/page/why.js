// The causes of an event, as a tree with the sentences that state them.

import { app, go, href, index, pipeline } from "./app.js";
import { ask } from "./api.js";
import { apart, at, count, link, make, weighed } from "./dom.js";

let shown = "", sentences = new Map();  // those that say so, by document

export const forget = () => { shown = ""; };

/** The sentences of a document that state causes. */
export const evidence = id => sentences.get(id) ?? [];

export async function why(say) {
  const { q, depth, breadth, weak, leads } = app.state;
  const key = JSON.stringify([q, depth, breadth, weak, leads, index().name, pipeline()]);
  if (shown === key && at("content").childElementCount) return;
  shown = "";
  if (!q.trim()) {
    say("What happened?", true);
    at("content").replaceChildren(make("p", { class: "notes" }, "Enter an event in a few words, such as “tide flap jammed open”. Fontes finds the causes that documents state, and the causes of these. English only."));
    return;
  }
  const chain = await ask("list 0", "why", { event: q, depth, breadth, weak: weak ? "true" : "", leads: leads || "", pipeline: pipeline(), index: index().name });
  shown = key;
  sentences = new Map();
  gather(chain.causes);
  const number = total(chain.causes);
  say(number ? count(number, "cause") : "No document states a cause");
  at("content").replaceChildren(number ? make("ul", { class: "causes" }, make("li", {}, make("p", { class: "event", dir: "auto" }, chain.event), branches(chain.causes)))
    : make("p", { class: "notes" }, "Try other words, accept weak signals (after, following, amid), or show related documents in which no cause is stated."));
}

const total = causes => causes.reduce((sum, cause) => sum + 1 + total(cause.causes), 0);

function gather(causes) {
  for (const { sources, causes: further } of causes) {
    for (const { doc_id: id, sentence } of sources) sentences.set(id, [...evidence(id), sentence]);
    gather(further);
  }
}

const branches = causes => make("ul", {}, causes.map(cause => make("li", {}, make("details", { open: true, class: cause.lead ? "lead" : "stated" },
  make("summary", {}, make("span", { class: "cause", dir: "auto" }, cause.cause), ...cause.lead ? [" ", make("span", { class: "other" }, "related, not stated as a cause")] : []),
  make("ol", { class: "sources" }, cause.sources.map(source)), ...cause.causes.length ? [branches(cause.causes)] : []))));

function source({ doc_id: id, title, date, sentence, score }) {
  const own = link(href({ doc: id }), () => go({ doc: id }), { "aria-current": app.state.doc === id && "true" }, apart(title || id));
  return make("li", { class: "source hit", "data-id": id }, weighed(make("span", { class: "value", title: "score" }, score.toFixed(2)), score),
    make("div", {}, make("p", { class: "title" }, own, make("span", { class: "about" }, apart(id, { class: "id" }), ...date ? [make("span", {}, date)] : [])), make("p", { class: "snippet", dir: "auto" }, sentence)));
}

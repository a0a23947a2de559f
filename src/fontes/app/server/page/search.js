// Searching: one list of results, or those of two pipelines side by side.

import { app, go, href, index, pipeline } from "./app.js";
import { ask, sentence } from "./api.js";
import { apart, at, button, count, link, make } from "./dom.js";
import { drawFilter, facetColumns } from "./facets.js";
import { answered, listed } from "./hits.js";
import { meant } from "./suggest.js";

let shown = "", lists = [], words = "";

/** Shows the results of the state, unless they are shown already. */
export async function search(say) {
  const { q, syntax, against, k, where, only } = app.state, of = { q, index: index().name, syntax, where };
  const names = [pipeline(), ...against && against !== pipeline() ? [against] : []];
  const key = JSON.stringify([of, names, k]);
  if (shown === key && at("content").childElementCount) return differing(only);
  shown = "";
  if (!q.trim()) return welcome(say);
  drawFilter(null, of);
  const columns = facetColumns();
  const [correction, ...answers] = await Promise.all([syntax ? null : meant(q), ...names.map((name, i) => answer(`list ${i}`, { ...of, pipeline: name, k }, i ? {} : columns))]);
  shown = key;
  lists = answers.map(({ hits }) => hits);
  words = answers[0].understood ? answers[0].query : q;
  drawFilter(answers[0], { ...of, pipeline: names[0] });
  if (names.length > 1) beside(names, say);
  else single(names[0], say);
  if (names.length === 1 && answers[0].answer) at("content").prepend(answered(answers[0].answer));
  if (correction) at("content").prepend(correction);
  at("content").prepend(...reading(answers[0]));
}

/** How the text was read in the query language; of a plain text with operators, the offer to do so. */
function reading({ understood, operators }) {
  if (operators) return [make("p", { class: "notes reading" }, "Operators are plain text here. ", link(href({ syntax: "query" }), () => go({ syntax: "query", why: [], why2: [] }), {}, "Read as a query"))];
  if (!understood) return [];
  return [make("p", { class: "notes reading" }, "Understood as ", make("code", { dir: "auto" }, understood.query || "nothing")),
    ...understood.remarks.map(remark => make("p", { class: "notes reading remark" }, sentence(remark.replace(/^query, /, ""))))];
}

/** The words that are searched for, without operators. */
export const query = () => words;

/** The answer with facets, or without them if this pipeline cannot count them. */
async function answer(place, query, facets) {
  try {
    return await ask(place, "search", { ...query, ...facets });
  } catch (error) {
    if (!facets.facets && !facets.histograms || error.status !== 422) throw error;
    return ask(place, "search", query);
  }
}

export const forget = () => { shown = ""; };

/** The evidence sentences of a document. */
export const evidence = id => lists.flatMap(hits => hits.find(hit => hit.id === id)?.rationales ?? []).map(({ text }) => text);

const explainer = name => async hit => {
  const { q, syntax } = app.state;
  return ask(`why ${name} ${hit.id}`, "explain", { q, syntax, id: hit.id, pipeline: name, index: index().name });
};

function single(name, say) {
  const { k, where } = app.state, [hits] = lists;
  if (!hits.length) {
    say("No document matches");
    at("content").replaceChildren(make("p", { class: "notes" }, where ? "No document that passes the filter has a word of the query. " : "No document has a word of the query.",
      where ? button("Search without the filter", () => go({ where: "" })) : ""));
    return;
  }
  const limit = Math.min(app.limits.k, 1000), further = k < 100 ? 100 : limit;
  say(hits.length < k ? count(hits.length, "result") : `The first ${count(hits.length, "result")}`);
  at("content").replaceChildren(listed(hits, { explain: explainer(name), label: "Results" }),
    ...hits.length === k && k < limit ? [make("p", { class: "further" }, button(`Show ${Math.min(further, limit).toLocaleString("en")}`, () => go({ k: Math.min(further, limit) })))] : []);
}

function beside(names, say) {
  const ranks = lists.map(hits => new Map(hits.map(({ id, rank }) => [id, rank])));
  const both = lists[0].filter(({ id }) => ranks[1].has(id)).length, alone = lists.map(hits => hits.length - both);
  say(`${count(both, "document")} in both, ${alone[0].toLocaleString("en")} only in ${names[0]}, ${alone[1].toLocaleString("en")} only in ${names[1]}`);
  const box = make("input", { type: "checkbox", id: "only", onchange: () => go({ only: box.checked ? "1" : "" }, { replace: true }) });
  const columns = lists.map((hits, side) => {
    const edge = hit => {
      const there = ranks[1 - side].get(hit.id), gap = there - hit.rank, other = names[1 - side];
      const where = `rank ${there} in ${other}, ${gap > 0 ? `${gap} further down` : gap < 0 ? `${-gap} further up` : "as here"}`;
      if (there === undefined) return make("span", { class: "other alone", title: `not among the first ${lists[1 - side].length} of ${other}` }, "only here");
      return button(`${there} ${gap > 0 ? `▲${gap}` : gap < 0 ? `▼${-gap}` : "="}`, () => reach(1 - side, hit.id), { class: "plain other", title: where, "aria-label": where });
    };
    const list = hits.length ? listed(hits, { side, explain: explainer(names[side]), edge, level: 3, label: `Results of ${names[side]}` }) : make("p", { class: "notes" }, "No document matches.");
    const text = index().pipelines.find(({ name }) => name === names[side])?.text ?? "";
    return make("section", { "aria-label": names[side], class: "side" }, make("h2", { tabindex: "-1" }, apart(names[side])), ...text && text !== names[side] ? [make("p", { class: "notes" }, make("code", {}, text))] : [], list);
  });
  at("content").replaceChildren(make("p", { class: "line notes" }, make("label", { class: "check" }, box, "Differences only"), make("span", { class: "kind" }, "Rank in the other list: ▲ higher here, ▼ lower here"),
    button(`Go to ${names[1]}`, () => columns[1].querySelector("h2").focus(), { class: "plain stacked" }), button("Swap", () => go({ pipeline: names[1], against: names[0], why: [], why2: [] }), { class: "plain" })),
    make("div", { class: "pair", onmouseover: together, onfocusin: together, onmouseleave: together }, columns));
  for (const [side, column] of columns.entries()) column.ranks = ranks[1 - side];
  differing(app.state.only);
}

/** Hides the documents that both lists have, or shows them again. */
function differing(only) {
  const box = at("only");
  if (!box) return;
  box.checked = Boolean(only);
  at("content").querySelector(".pair").classList.toggle("differing", Boolean(only));
}

function reach(side, id) {
  const hit = [...document.querySelectorAll(`.hit[data-side="${side}"]`)].find(each => each.dataset.id === id);
  hit?.scrollIntoView({ block: "center" });
  hit?.querySelector(".title a").focus({ preventScroll: true });
}

/** Marks a document in both lists. */
function together(event) {
  const id = event.type === "mouseleave" ? undefined : event.target.closest(".hit")?.dataset.id;
  for (const hit of document.querySelectorAll(".pair .hit")) hit.classList.toggle("same", id !== undefined && hit.dataset.id === id);
}

function welcome(say) {
  lists = [];
  at("side").hidden = true;
  say(`${count(index().documents, "document")} in ${index().name}`, true);
  const rows = index().pipelines.map(({ name, text }) => [make("dt", {}, link(href({ pipeline: name }), () => { go({ pipeline: name }); at("q").focus(); }, {}, apart(name))), make("dd", {}, make("code", {}, text))]);
  const columns = Object.entries(index().columns);
  at("content").replaceChildren(make("h2", {}, "Pipelines"), make("dl", { class: "facts" }, ...rows),
    ...columns.length ? [make("h2", {}, "Columns to filter by"), make("dl", { class: "facts" }, ...columns.map(([name, type]) => [make("dt", {}, apart(name)), make("dd", {}, type)]))] : []);
}

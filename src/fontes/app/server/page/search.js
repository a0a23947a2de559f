// Searching: a page of results, or those of two pipelines side by side.

import { app, go, href, index, isTyped, pipeline } from "./app.js";
import { ask, giveUpAll, sentence } from "./api.js";
import { drawChips } from "./chips.js";
import { apart, at, button, count, link, make } from "./dom.js";
import { drawFilter, facetColumns } from "./facets.js";
import { answered, listed, redrawn } from "./hits.js";
import { timed } from "./live.js";
import { drawOrder } from "./order.js";
import { beyond, pager, place } from "./paging.js";
import { meant } from "./suggest.js";
import { forgiven, neighbours, tolerance } from "./tolerance.js";
import { welcome } from "./welcome.js";

let shown = "", lists = [], asked = {}, words = "", counts = { of: "", total: null };  // what was counted last, for all pages of a search

/** Shows the results of the state, unless they are shown already. */
export async function search(say) {
  const { q, syntax, against, k, offset, sort, descending, where, only } = app.state, of = { q, index: index().name, syntax, where, tolerance: tolerance() };
  const names = [pipeline(), ...against && against !== pipeline() ? [against] : []], isSingle = names.length === 1;
  const page = { k, offset: offset || "", ...isSingle ? { sort, descending } : {} };
  const key = JSON.stringify([of, names, page]), counted = JSON.stringify([of, names[0]]);
  drawChips();
  if (shown === key && at("content").childElementCount) return differing(only);
  shown = "";
  giveUpAll("list ");
  drawOrder(isSingle && q.trim());
  if (!q.trim()) {
    lists = [];
    at("side").hidden = true;
    return welcome(say);
  }
  drawFilter(null, of);
  const isCounted = counts.of === counted, begun = performance.now();
  const columns = isCounted ? {} : facetColumns(), typed = isTyped();
  const isExact = of.tolerance === "off";
  const [correction, ...answers] = await Promise.all([syntax || typed || !isExact ? null : meant(q), ...names.map((name, i) => answer(`list ${i}`, { ...of, pipeline: name, ...page }, i ? {} : columns))]);
  const took = performance.now() - begun;
  timed(took);
  shown = key;
  asked = of;
  lists = answers.map(({ hits }) => hits);
  words = answers[0].understood ? answers[0].query : [q, ...neighbours(answers[0])].join(" ");
  if (!isCounted) {
    counts = { of: counted, total: answers[0].total };
    drawFilter(answers[0], { ...of, pipeline: names[0] });
  }
  if (isSingle) single(names[0], answers[0].no_hits, say);
  else beside(names, say);
  at("took").textContent = `in ${took < 1000 ? `${Math.max(1, Math.round(took))} ms` : `${(took / 1000).toFixed(1)} s`}`;
  if (isSingle && answers[0].answer) at("content").prepend(answered(answers[0].answer));
  at("content").prepend(...reading(answers[0]), ...forgiven(answers[0]));
  const offer = correction ?? (!syntax && isUnknown(answers[0]) ? await meant(q, true) : null);
  if (offer && shown === key) at("content").prepend(offer);
}

/** How the text was read in the query language; of a plain text with operators, the offer to do so. */
function reading({ understood, operators }) {
  if (operators) return [make("p", { class: "notes reading" }, "Operators are plain text here. ", link(href({ syntax: "query" }), () => go({ syntax: "query" }), {}, "Read as a query"))];
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

export const forget = () => {
  shown = "";
  counts.of = "";
};

/** The evidence sentences of a document. */
export const evidence = id => lists.flatMap(hits => hits.find(hit => hit.id === id)?.rationales ?? []).map(({ text }) => text);

const explainer = name => async hit => {
  const { q, syntax, tolerance, index } = asked;
  return ask(`why ${name} ${hit.id}`, "explain", { q, syntax, tolerance, id: hit.id, pipeline: name, index });
};

/** Whether no document holds any word of the query, so that other words may find some. */
const isUnknown = ({ no_hits }) => no_hits?.cause === "words" || no_hits?.cause === "pipeline";

function single(name, none, say) {
  const { offset, where } = app.state, [hits] = lists, { total } = counts;
  if (hits.length) {
    say(place(hits, total));
    const pages = pager(hits, total);
    return redrawn(listed(hits, { explain: explainer(name), label: "Results" }), ...pages ? [pages] : []);
  }
  say(offset ? "No more results" : none.nearest ? "Nothing here answers this" : "No document matches");
  drawOrder(Boolean(offset));
  redrawn(...offset ? beyond() : [make("p", { class: "notes" }, none.sentence, none.nearest ? " Nearest documents:" : "",
    ...where ? [" ", button("Search without the filter", () => go({ where: "" }))] : []),
  ...none.nearest ? [listed(none.nearest, { label: "Nearest documents" })] : []]);
}

function beside(names, say) {
  const { offset } = app.state, longer = lists[lists[0].length < lists[1].length ? 1 : 0], pages = pager(longer, null);
  const ranks = lists.map(hits => new Map(hits.map(({ id, rank }) => [id, rank])));
  const both = lists[0].filter(({ id }) => ranks[1].has(id)).length, alone = lists.map(hits => hits.length - both);
  const part = offset ? `Ranks ${offset + 1}–${offset + longer.length}: ` : "";
  say(`${part}${count(both, "document")} in both, ${alone[0].toLocaleString("en")} only in ${names[0]}, ${alone[1].toLocaleString("en")} only in ${names[1]}`);
  const box = make("input", { type: "checkbox", id: "only", onchange: () => go({ only: box.checked ? "1" : "" }, { replace: true }) });
  const columns = lists.map((hits, side) => {
    const edge = hit => {
      const there = ranks[1 - side].get(hit.id), gap = there - hit.rank, other = names[1 - side];
      const where = `rank ${there} in ${other}, ${gap > 0 ? `${gap} further down` : gap < 0 ? `${-gap} further up` : "as here"}`;
      if (there === undefined) return make("span", { class: "other alone", title: offset ? `not at ranks ${offset + 1} to ${offset + lists[1 - side].length} of ${other}` : `not among the first ${lists[1 - side].length} of ${other}` }, "only here");
      return button(`${there} ${gap > 0 ? `▲${gap}` : gap < 0 ? `▼${-gap}` : "="}`, () => reach(1 - side, hit.id), { class: "plain other", title: where, "aria-label": where });
    };
    const list = hits.length ? listed(hits, { side, explain: explainer(names[side]), edge, level: 3, label: `Results of ${names[side]}` }) : make("p", { class: "notes" }, offset ? "No more results." : "No document matches.");
    const text = index().pipelines.find(({ name }) => name === names[side])?.text ?? "";
    return make("section", { "aria-label": names[side], class: "side" }, make("h2", { tabindex: "-1" }, apart(names[side])), ...text && text !== names[side] ? [make("p", { class: "notes" }, make("code", {}, text))] : [], list);
  });
  redrawn(make("p", { class: "line notes" }, make("label", { class: "check" }, box, "Differences only"), make("span", { class: "kind" }, "Rank in the other list: ▲ higher here, ▼ lower here"),
    button(`Go to ${names[1]}`, () => columns[1].querySelector("h2").focus(), { class: "plain stacked" }), button("Swap", () => go({ pipeline: names[1], against: names[0] }), { class: "plain" })),
    make("div", { class: "pair", onmouseover: together, onfocusin: together, onmouseleave: together }, columns), ...pages ? [pages] : []);
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

// A conversation: turns, the newest first, each with the query that was searched; that of the last one can be edited.

import { app, go, index, pipeline } from "./app.js";
import { ask, Problem } from "./api.js";
import { apart, at, button, count, make, weighed } from "./dom.js";
import { answered, listed } from "./hits.js";

let talk = "", turns = [];  // each { text, query, rewrites, hits, answer, edited, said }; said is the turn as the server reads it

export const forget = () => { talk = ""; };

/** The query that was searched last, whose words are marked in documents. */
export const query = () => turns[turns.length - 1]?.query ?? "";

/** Shows the conversation of the state, whose turns this tab of the browser keeps. */
export async function converse(say) {
  const { talk: wanted } = app.state;
  if (wanted === talk && at("content").childElementCount) return;
  if (!wanted) {
    [talk, turns] = ["", []];
    say("Ask a question", true);
    at("content").replaceChildren(make("p", { class: "notes" }, index().rewriters.length
      ? "Each question is searched in the context of the earlier ones. You can see and edit the query that was searched."
      : "This server has no rewriter: each question is searched by itself."));
    return;
  }
  const kept = loaded(wanted);
  if (!kept) throw new Problem("There is no such conversation in this tab.", 404);
  turns = kept.map(said => ({ text: said.text, query: said.automatic || said.text, rewrites: [{ text: said.text }, { text: said.automatic || said.text }], hits: null, edited: said.manual !== "", said }));
  talk = wanted;
  const last = turns.pop();
  turns.push(await asked(last.text, last.edited ? last.query : undefined, turns));
  draw(say);
}

/** Asks a turn; begins a conversation if there is none. */
export async function turn(text, say) {
  if (!app.state.talk) {
    turns = [await asked(text, undefined, [])];
    talk = String(Date.now());
    keep();
    go({ talk, why: [], doc: "" });
  } else {
    turns.push(await asked(text, undefined, turns));
    keep();
    go({ why: [], doc: "" }, { replace: true });
  }
  draw(say);
}

async function asked(text, rewritten, earlier) {
  const values = await ask("list 0", "conversations", {}, { text, rewritten, turns: earlier.map(({ said }) => said), index: index().name, pipeline: pipeline(), rewriter: app.state.rewriter || undefined, k: Math.min(app.state.k, 100) });
  return { text, query: values.query, rewrites: values.rewrites, hits: values.hits, none: values.no_hits, answer: values.answer, edited: rewritten !== undefined, said: values.turns[values.turns.length - 1] };
}

function loaded(id) {
  try { return JSON.parse(sessionStorage[`talk ${id}`] ?? "null"); } catch { return null; }
}

function keep() {
  try { sessionStorage[`talk ${talk}`] = JSON.stringify(turns.map(({ said }) => said)); } catch { /* there is no storage */ }
}

async function change(text, say, done) {
  const last = turns[turns.length - 1];
  turns[turns.length - 1] = await done(() => asked(last.text, text ?? undefined, turns.slice(0, -1))) ?? last;
  keep();
  go({ why: [], doc: "" }, { replace: true });
  draw(say);
  at("rewritten")?.focus();
}

let busy = async work => work();

export const setBusy = run => { busy = run; };

function draw(say) {
  say(turns.length > 1 ? `${turns.length} turns, the newest first` : count(turns.length, "turn"));
  const items = [...turns.entries()].reverse().map(([i, each]) => drawn(each, i, i === turns.length - 1, say));
  at("content").replaceChildren(make("p", { class: "anew" }, button("New conversation", () => { go({ talk: "", why: [], doc: "" }); at("q").focus(); }, { class: "plain" })),
    make("ol", { class: "turns", reversed: true }, items));
}

function drawn(each, i, last, say) {
  const head = make("h2", { dir: "auto" }, each.text);
  const hits = each.hits && (each.hits.length ? listed(each.hits, { explain: last ? explainer(each) : null, level: 3, label: `Results of turn ${i + 1}` }) : [make("p", { class: "notes" }, each.none?.sentence ?? "No document matches."), ...each.none?.nearest ? [listed(each.none.nearest, { level: 3, label: `Nearest documents of turn ${i + 1}` })] : []]);
  if (last) return make("li", { class: "turn" }, head, rewritten(each, say), each.answer ? answered(each.answer) : null, hits);
  const best = each.said.answer_id || each.hits?.[0]?.id;
  const answer = best ? [make("p", { class: "notes" }, "Best document: ", button(apart(best), () => go({ doc: best }), { class: "plain" }))] : [];
  return make("li", { class: "turn past" }, head, each.answer ? answered(each.answer) : null, make("p", { class: "searched" }, make("span", { class: "kind" }, each.edited ? "Searched (edited)" : "Searched"), " ", apart(each.query)),
    hits ? make("details", {}, make("summary", {}, count(each.hits.length, "result")), hits) : answer);
}

function rewritten(each, say) {
  const field = make("textarea", { id: "rewritten", rows: "2", dir: "auto", spellcheck: "false", oninput: changed, onkeydown: event => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    if (!send.hidden) send.click();
  } });
  field.value = each.query;
  const send = button("Search again", () => change(field.value.trim(), say, busy), { hidden: true });
  const undo = button("Undo the edit", () => change(null, say, busy), { class: "plain", hidden: !each.edited });
  function changed() {
    send.hidden = !field.value.trim() || field.value.trim() === each.query;
  }
  const weights = each.rewrites[each.rewrites.length - 1]?.weights, most = Math.max(0, ...Object.values(weights ?? {}));
  const terms = weights && most > 0 && !each.edited ? [make("ul", { class: "terms", "aria-label": "Terms and their weights" },
    Object.entries(weights).sort((a, b) => b[1] - a[1]).slice(0, 60).map(([term, weight]) => make("li", {}, weighed(apart(term), weight / most), " ", make("span", { class: "count" }, String(Number(weight.toFixed(2)))))))] : [];
  const steps = each.rewrites.slice(1, -1).map(({ text }) => make("li", {}, apart(text)));
  return make("div", { class: "rewritten" }, make("label", { for: "rewritten" }, each.edited ? "Searched (edited)" : "Searched (you can edit it)"), field,
    make("p", { class: "line" }, send, undo), ...steps.length ? [make("details", {}, make("summary", {}, "Intermediate steps"), make("ol", {}, steps))] : [], terms);
}

/** Explains hits of a turn with the weights of its terms. */
function explainer({ query: text, rewrites, hits }) {
  let answer = null;
  return async hit => {
    const weights = rewrites[rewrites.length - 1]?.weights;
    answer ??= ask("why turn", "search", {}, { topics: [{ id: "1", text, ...weights ? { weights } : {} }], index: index().name, pipeline: pipeline(), k: Math.max(1, hits.length), explain: true });
    const { results } = await answer.catch(error => { answer = null; throw error; });
    const own = results[0].hits.find(({ id }) => id === hit.id)?.explanation;
    if (!own) throw new Problem("The results have changed since; ask again.");
    return own;
  };
}

// The search page: one query field, three views, and an address that holds the state.

import { app, go, index, settle } from "./app.js";
import { ask, giveUpAll, headers, overtaken, Problem } from "./api.js";
import { listen as audience } from "./audience.js";
import { at, button, make } from "./dom.js";
import { listen as filtering } from "./facets.js";
import { current } from "./hits.js";
import { help, listen } from "./keys.js";
import { listen as live } from "./live.js";
import { close, narrow, read } from "./reader.js";
import { read as address } from "./state.js";
import * as searching from "./search.js";
import { listen as suggestions } from "./suggest.js";
import * as talking from "./talk.js";
import * as asking from "./why.js";

const VIEWS = {
  search: { label: "Query", send: "Search", placeholder: "Search", part: searching },
  talk: { label: "Question", send: "Ask", placeholder: "Ask a question", part: talking },
  why: { label: "Event", send: "Find causes", placeholder: "What happened?", part: asking },
};
let latest = 0;

function say(text, quiet = false) {
  at("status").textContent = text;
  at("status").classList.toggle("quiet", quiet);
  at("took").textContent = "";
}

/** Does work that waits for the server: shows progress and errors. Gives undefined after an error. */
async function waited(work, again) {
  const own = ++latest, line = at("progress"), later = setTimeout(() => { line.hidden = false; }, 150);
  at("results").setAttribute("aria-busy", "true");
  try {
    return await work();
  } catch (error) {
    if (!overtaken(error) && own === latest) refused(error, again);
  } finally {
    clearTimeout(later);
    if (own === latest) {
      line.hidden = true;
      at("results").removeAttribute("aria-busy");
    }
  }
}

function refused(error, again) {
  if (error.status === 401) return unlock(headers.authorization ? "This key is not valid for this server." : "", again);
  if (!(error.status || error.message.startsWith("The server"))) console.error(error);
  for (const { part } of Object.values(VIEWS)) part.forget();
  say("The request failed");
  at("content").replaceChildren(make("p", { class: "problem", role: "alert" }, error.message),
    make("p", {}, button("Try again", again)), ...app.state.talk ? [make("p", {}, button("New conversation", () => go({ talk: "", doc: "" }), { class: "plain" }))] : []);
}

/** Asks for the key of the server, and then repeats the request. */
function unlock(why, again) {
  const key = make("input", { id: "key", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  keep("");
  say("This server needs a key");
  at("content").replaceChildren(make("form", { class: "asked", onsubmit: event => { event.preventDefault(); keep(key.value.trim()); again(); } },
    ...why ? [make("p", { class: "problem", role: "alert" }, why)] : [], make("label", { for: "key" }, "Key (ask the operator of this server)"), key,
    make("p", {}, make("button", { type: "submit", class: "main" }, "Continue"))));
  key.focus();
}

/** Stores the key for this tab. */
function keep(key) {
  if (/^[\x20-\x7e]+$/.test(key)) headers.authorization = `Bearer ${key}`;
  else delete headers.authorization;
  try { sessionStorage.secret = key; } catch { /* it holds for this page */ }
}

/** Shows the state; `before` is the previous one. */
async function show(before) {
  const { state } = app, view = VIEWS[state.view];
  if (before && before.view !== state.view) {
    for (const { part } of Object.values(VIEWS)) part.forget();
    giveUpAll("list ");
    at("content").replaceChildren();
  }
  document.body.dataset.view = state.view;
  controls(before);
  document.title = `${state.view === "talk" ? "Conversation" : state.q || index().name} · Fontes`;
  if (state.view !== "search") {
    at("side").hidden = at("chips").hidden = true;
    at("order").replaceChildren();
  }
  const missing = state.index && state.index !== index().name;
  const work = missing ? absent : { search: searching.search, talk: talking.converse, why: asking.why }[state.view];
  const listing = waited(() => work(say), () => show(before));
  current(state.doc);
  const key = ["view", "index", "q", "pipeline", "against", "k", "offset", "sort", "descending", "syntax", "where", "tolerance", "talk"];
  if (before && key.some(name => before[name] !== state[name])) scrollTo(0, 0);
  if (!state.doc) close();
  await listing;
  if (state.doc && !missing && state === app.state) {
    read({ search: searching, talk: talking }[state.view]?.query() ?? state.q, { search: searching, why: asking }[state.view]?.evidence(state.doc) ?? []);
    current(state.doc);
  }
  return view;
}

/** Shows that the server does not have the index. */
function absent() {
  at("side").hidden = true;
  throw new Problem(`There is no index '${app.state.index}'; there are ${app.indexes.map(({ name }) => name).join(", ")}.`, 404);
}

function controls(before) {
  const { state } = app, view = VIEWS[state.view], own = index();
  for (const each of document.querySelectorAll("nav [data-view]")) {
    if (each.dataset.view === state.view) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  at("q-label").textContent = view.label;
  at("send").textContent = view.send;
  at("q").placeholder = view.placeholder;
  const isNew = !before || before.q !== state.q || before.view !== state.view, text = state.view === "talk" ? "" : state.q;
  if (isNew && at("q").value.trim() !== text) at("q").value = text;  // a blank after a word that is being typed stays
  const fields = [];
  if (app.indexes.length > 1 || state.index && state.index !== own.name) fields.push(choice("index", "Index", app.indexes.map(({ name }) => [name, name]), state.index || own.name, name => moved({ index: name })));
  const names = own.pipelines.map(({ name }) => [name, name]), taken = state.pipeline || names[0][0];
  if (names.length > 1 || app.anyPipeline) fields.push(expression("pipeline", "Pipeline", names, taken, name => moved({ pipeline: name === names[0][0] ? "" : name })));
  if (state.view === "search" && (names.length > 1 || app.anyPipeline))
    fields.push(expression("against", "Compare with", [["", "nothing"], ...names.filter(([name]) => name !== taken)], state.against === taken ? "" : state.against, name => moved({ against: name, only: "" })));
  if (state.view === "search") fields.push(choice("k", "Results", sizes().map(k => [String(k), k.toLocaleString("en")]), String(state.k), k => moved({ k: Number(k) })));
  if (state.view === "search") {
    const syntax = make("input", { type: "checkbox", id: "syntax", checked: state.syntax === "query", onchange: () => moved({ syntax: syntax.checked ? "query" : "" }) });
    fields.push(make("label", { class: "check", title: '+must -not "a phrase" title:word year:>=2020 pre* word~1 AND OR NOT ( )' }, syntax, "Query language"));
    const tolerance = make("input", { type: "checkbox", id: "tolerance", checked: !state.tolerance, onchange: () => moved({ tolerance: tolerance.checked ? "" : "off" }) });
    if (!state.syntax) fields.push(make("label", { class: "check", title: "Search misspelt and unfinished words with their neighbours" }, tolerance, "Forgive typos"));
  }
  if (state.view === "talk" && own.rewriters.length)
    fields.push(choice("rewriter", "Rewriter", own.rewriters.map(({ name }) => [name, name]), state.rewriter || own.rewriters[0].name, name => moved({ rewriter: name === own.rewriters[0].name ? "" : name })));
  if (state.view === "why") {
    const upTo = (name, label, most, from = 1) => fields.push(choice(name, label, Array.from({ length: most - from + 1 }, (_, i) => [String(i + from), String(i + from)]), String(state[name]), value => go({ [name]: Number(value) })));
    upTo("depth", "Levels of causes", 5);
    upTo("breadth", "Causes per event", 10);
    upTo("leads", "Related documents", 5, 0);
    const weak = make("input", { type: "checkbox", id: "weak", checked: Boolean(state.weak), onchange: () => go({ weak: weak.checked ? "1" : "" }) });
    fields.push(make("label", { class: "check" }, weak, "Accept weak signals"));
  }
  const focused = document.activeElement?.id;
  at("choice").replaceChildren(...fields);
  for (const id of ["pipeline", "against"]) fields.find(field => field.querySelector(`#${id}`))?.classList.add("researcher");
  at("settings").querySelector("summary").replaceChildren(make("span", {}, app.indexes.length > 1 ? `Settings: ${own.name}` : "Settings"), make("span", { class: "researcher" }, `, ${taken}`));
  if (focused && at("choice").contains(at(focused))) at(focused).focus();
}

/** Changes pipeline or index: closes explanations, and begins a new conversation. */
function moved(changes) {
  const { state } = app, more = {};
  if ("index" in changes) Object.assign(more, { where: "", sort: "", descending: "", doc: "", pipeline: "", against: "" });
  if (state.view === "talk") Object.assign(more, { talk: "", doc: "" });
  go({ ...changes, ...more });
}

const sizes = () => [...new Set([10, 20, 50, 100, 1000, app.state.k].filter(k => k <= app.limits.k))].sort((a, b) => a - b);

function choice(id, label, known, value, onchange) {
  const options = known.some(([own]) => own === value) ? known : [...known, [value, value]];
  const select = make("select", { id, onchange: () => onchange(select.value) }, options.map(([own, text]) => make("option", { value: own, selected: own === value }, text)));
  return make("label", {}, make("span", {}, label), select);
}

/** A list of pipelines, or a text field if the server accepts expressions. */
function expression(id, label, names, value, onchange) {
  if (!app.anyPipeline) return choice(id, label, names, value, onchange);
  const input = make("input", { id, list: `${id}-names`, spellcheck: "false", onchange: () => onchange(input.value.trim()) });
  input.value = value;
  return make("label", { class: "wide" }, make("span", {}, label), input, make("datalist", { id: `${id}-names` }, names.filter(([name]) => name).map(([name]) => make("option", { value: name }))));
}

/** Searches once more for what was searched, such as what was typed until now. */
function again() {
  settle();
  VIEWS[app.state.view].part.forget();
  show(app.state);
}

function submit(event) {
  event.preventDefault();
  const text = at("q").value.trim(), { view } = app.state;
  if (matchMedia("(pointer: coarse)").matches) at("q").blur();  // what is typed with covers the results
  if (view !== "talk") return text === app.state.q ? again() : go({ q: text, doc: "" });
  if (!text) return;
  waited(async () => {
    await talking.turn(text, say);
    at("q").value = "";
  }, () => at("ask").requestSubmit());
}

async function begin() {
  const values = await ask("indexes", "indexes");
  Object.assign(app, { indexes: values.indexes, limits: values.limits, anyPipeline: values.any_pipeline, show });
  at("judge").hidden = !values.judging;
  at("q").maxLength = values.limits.query;
  for (const each of document.querySelectorAll("nav [data-view]")) {
    const view = each.dataset.view === "search" ? "" : each.dataset.view;
    each.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      go({ view: view || "search", doc: "", where: "", sort: "", descending: "", only: "", against: "", talk: view === "talk" ? app.state.talk : "" });
      at("q").focus();
    });
  }
  show();
  if (!app.state.q && !app.state.doc) at("q").focus();
}

const start = () => waited(begin, start);
talking.setBusy(work => waited(work, () => show()));
at("ask").addEventListener("submit", submit);
at("help").addEventListener("click", help);
addEventListener("popstate", () => {
  const before = app.state;
  app.state = address();
  app.show(before);
});
addEventListener("resize", narrow);
const wide = matchMedia("(min-width: 60.01rem)");
const unfold = () => { at("filters").open = at("settings").open = wide.matches; };
wide.addEventListener("change", unfold);
unfold();
document.querySelector(".name a").addEventListener("click", event => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const before = app.state;
  app.state = address("");
  history.pushState(null, "", ".");
  app.show(before);
  at("q").focus();
});
listen();
audience();
filtering();
suggestions();
live();
try { keep(sessionStorage.secret ?? ""); } catch { /* there is no storage */ }
start();

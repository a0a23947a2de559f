// The judging page: signing in, and the views. The address holds the view, the tab holds the token.

import { ask, headers, overtaken } from "./api.js";
import { at, button, make } from "./dom.js";
import * as compare from "./judge-compare.js";
import * as bench from "./judge-document.js";
import * as evidence from "./judge-evidence.js";
import * as topics from "./judge-topics.js";

const VIEWS = { topics, judge: bench, document: bench, evidence, compare };
const KEYS = [
  ["0  1  2  3", "grade the document; in Agreement, settle its grade"], ["u", "undo the last grade"], ["l", "leave the document for later"], ["n", "write a note; Escape leaves it"],
  ["e", "judged documents and evidence"], ["t", "topics"], ["j  k", "in Agreement and Evidence: next, previous item"], ["g", "in Evidence: group the checked documents"], ["?", "show this list"],
];
export const judge = { name: "", judges: [], exports: [], view: "", args: [] };
let topic;  // that was shown last
let shows = 0, placed = 0;  // views that were asked for, and the last one that came

export const say = text => { at("status").textContent = text; };

export const path = (view, ...args) => `#/${[view, ...args].map(encodeURIComponent).join("/")}`;

export function go(view, ...args) {
  if (location.hash === path(view, ...args)) show();
  else location.hash = path(view, ...args);
}

/** Does work that waits for the server, and shows errors. */
export async function doing(work) {
  try {
    at("trouble").replaceChildren();
    return await work();
  } catch (error) {
    if (overtaken(error)) return undefined;
    if (error.status === 401) return signIn("Unknown token.");
    if (!error.status && !error.message.startsWith("The server")) console.error(error);
    at("trouble").replaceChildren(make("p", { class: "problem", role: "alert" }, error.message));
    at("trouble").scrollIntoView({ block: "nearest" });
    return undefined;
  }
}

/** Shows elements in place of the view. */
export function place(...inside) {
  placed = shows;
  at("content").replaceChildren(...inside);
}

async function show() {
  if (!judge.name) return;
  const [view, ...args] = location.hash.slice(2).split("/").map(part => { try { return decodeURIComponent(part); } catch { return ""; } });
  judge.view = Object.hasOwn(VIEWS, view) ? view : "topics";
  judge.args = args;
  const own = ++shows;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    link.hidden = false;
    if (link.dataset.view === judge.view) link.setAttribute("aria-current", "page");
    else if (link.dataset.view === "topics" && judge.view !== "compare") link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  at("content").setAttribute("aria-busy", "true");
  await doing(() => VIEWS[judge.view].show(args, () => own === shows));
  if (own !== shows) return;
  document.title = [{ topics: "Topics", compare: "Agreement" }[judge.view] ?? `Topic ${args[0]}`, "Judge", "Fontes"].join(" · ");
  if (placed !== own && judge.name) {
    say("");
    place(make("p", {}, make("a", { href: path("topics") }, "Topics")));
  }
  at("content").removeAttribute("aria-busy");
  scrollTo(0, 0);
  const to = judge.view === "topics" && topic !== undefined && [...document.querySelectorAll(".topics li")].find(row => row.dataset.topic === topic)?.querySelector("a");
  if (to) to.focus();
  else if (document.activeElement === document.body) at("content").focus({ preventScroll: true });
  topic = judge.view === "topics" || judge.view === "compare" ? topic : args[0];
}

const stored = () => { try { return sessionStorage.token ?? ""; } catch { return ""; } };
function store(token) {
  try { sessionStorage.token = token; } catch { /* it holds for this page */ }
}

function signIn(why = "") {
  judge.name = "";
  store("");
  delete headers.authorization;
  at("who").textContent = "";
  at("leave").hidden = true;
  document.querySelectorAll("nav [data-view]").forEach(link => { link.hidden = true; });
  say("");
  const token = make("input", { id: "token", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  place(make("form", { class: "asked", onsubmit: event => { event.preventDefault(); enter(token.value.trim()); } }, make("h1", {}, "Judge"),
    ...why ? [make("p", { class: "problem", role: "alert" }, why)] : [],
    make("label", { for: "token" }, "Your token (fontes judge printed it)"), token, make("p", {}, make("button", { type: "submit", class: "main" }, "Sign in"))));
  at("content").removeAttribute("aria-busy");
  token.focus();
}

async function enter(token) {
  if (!/^[\x21-\x7e]+$/.test(token)) return signIn("A token has no spaces or letters with accents.");
  headers.authorization = `Bearer ${token}`;
  const own = await doing(() => ask("me", "judging/me"));
  if (!own) return;
  store(token);
  Object.assign(judge, own);
  at("who").textContent = own.name;
  at("leave").hidden = false;
  show();
}

function help() {
  const dialog = at("keys");
  dialog.replaceChildren(make("h2", { id: "keys-title" }, "Keyboard shortcuts"), make("dl", { class: "facts" }, ...KEYS.map(([keys, what]) => [make("dt", {}, keys.split("  ").map(key => [make("kbd", {}, key), " "]).flat()), make("dd", {}, what)]).flat()),
    button("Close", () => dialog.close()));
  dialog.showModal();
}

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat || at("keys").open) return;
  const on = event.target;
  if (on.matches?.("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") { on.blur(); at("content").focus(); }
    return;
  }
  if (event.key === "?") help();
  else if (!judge.name) return;
  else if (event.key === "t") go("topics");
  else if (!VIEWS[judge.view].key?.(event.key)) return;
  event.preventDefault();
});
addEventListener("hashchange", show);
at("help").addEventListener("click", help);
at("leave").addEventListener("click", () => signIn());
if (stored()) enter(stored());
else signIn();

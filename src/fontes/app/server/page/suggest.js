// Typing help: completions below the query, and corrections above the results.

import { app, go, href, index } from "./app.js";
import { ask, giveUp, overtaken } from "./api.js";
import { apart, at, link, make } from "./dom.js";

const PAUSE = 80;  // milliseconds without a key before the server is asked
const COMPLETIONS = 5;
const PATIENCE = 150;  // that results wait for a correction

let later = 0, active = -1;
const options = () => [...at("completions").children];
const isOpen = () => !at("completions").hidden;

/** Closes the list, and gives up what it waits for. */
export function close() {
  clearTimeout(later);
  giveUp("completions");
  at("completions").hidden = true;
  at("completions").replaceChildren();
  at("q").setAttribute("aria-expanded", "false");
  choose(-1);
}

/** Marks an option; -1 marks none. */
function choose(number) {
  active = number;
  for (const [i, option] of options().entries()) option.setAttribute("aria-selected", String(i === active));
  if (active < 0) at("q").removeAttribute("aria-activedescendant");
  else {
    at("q").setAttribute("aria-activedescendant", options()[active].id);
    options()[active].scrollIntoView({ block: "nearest" });
  }
}

function take(text) {
  at("q").value = text;
  close();
  at("ask").requestSubmit();
}

function draw(completions, typed) {
  if (at("q").value !== typed || document.activeElement !== at("q") || !completions.length) return close();
  const common = text => text.toLowerCase().startsWith(typed.toLowerCase()) ? typed.length : 0;
  at("completions").replaceChildren(...completions.map((text, i) => make("li", { role: "option", id: `completion-${i}`, "aria-selected": "false", dir: "auto",
    onmousedown: event => event.preventDefault(), onclick: () => take(text) }, text.slice(0, common(text)), make("b", {}, text.slice(common(text))))));
  at("completions").hidden = false;
  at("q").setAttribute("aria-expanded", "true");
  choose(-1);
}

function typed() {
  clearTimeout(later);
  const text = at("q").value;
  if (app.state.view !== "search" || !text.trim() || /\s$/.test(text)) return close();
  later = setTimeout(async () => {
    try {
      draw((await ask("completions", "suggest", { q: text, k: COMPLETIONS, where: app.state.where, index: index().name })).completions, text);
    } catch (error) { if (!overtaken(error)) close(); }  // typing goes on without help
  }, PAUSE);
}

/** Arrows go through the completions while they are shown; Enter takes one, Escape closes them. */
function pressed(event) {
  if (!isOpen() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const last = options().length - 1;
  if (event.key === "ArrowDown") choose(active < last ? active + 1 : -1);
  else if (event.key === "ArrowUp") choose(active < 0 ? last : active - 1);
  else if (event.key === "Escape") close();
  else if (event.key === "Enter" && active >= 0) take(options()[active].textContent);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** What the server suggests for a text; null if it fails or takes long. */
function suggested(q) {
  const waiting = new Promise(done => setTimeout(done, PATIENCE, null));
  return Promise.race([ask("correction", "suggest", { q, k: 1, where: app.state.where, index: index().name }).catch(() => null), waiting]);
}

/** The line that offers the corrected query, or for one without results its completion; null if there is none. */
export async function meant(q, isEmpty = false) {
  const { correction, completions } = await suggested(q) ?? {}, better = correction ?? (isEmpty ? completions?.[0] : null);
  return better && make("p", { class: "meant" }, "Did you mean ", link(href({ q: better, doc: "" }), () => go({ q: better, doc: "" }), {}, apart(better)), "?");
}

export function listen() {
  const field = at("q");
  field.addEventListener("input", typed);
  field.addEventListener("keydown", pressed);
  field.addEventListener("blur", close);
  at("ask").addEventListener("submit", close);
}

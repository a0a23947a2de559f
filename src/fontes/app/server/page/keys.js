// Keyboard shortcuts and their list.

import { app, go } from "./app.js";
import { at, button, make } from "./dom.js";
import { match, step } from "./reader.js";

const KEYS = [
  ["/", "go to the query"], ["↓  ↑", "in the query: next, previous completion"], ["j  ↓", "next result"], ["k  ↑", "previous result"], ["Enter", "open the document"],
  ["Home  End", "first, last result"], ["n  p", "next, previous page of results"], ["w", "show or hide the explanation of the score"], ["←  →", "in a document: previous, next document"], ["n  p", "in a document: next, previous match"], ["Escape", "close the document, or go to the query"], ["?", "show this list"],
];
const titles = () => [...document.querySelectorAll(".hit .title a")].filter(a => a.offsetParent);

export function help() {
  const dialog = at("keys");
  dialog.replaceChildren(make("h2", { id: "keys-title" }, "Keyboard shortcuts"), make("dl", { class: "facts" }, ...KEYS.map(([keys, what]) => [make("dt", {}, keys.split("  ").map(key => [make("kbd", {}, key), " "]).flat()), make("dd", {}, what)])),
    button("Close", () => dialog.close()));
  dialog.showModal();
}

function move(by) {
  const all = titles(), here = all.indexOf(document.activeElement?.closest?.(".hit")?.querySelector(".title a"));
  const to = all[here < 0 ? (by > 0 ? 0 : -1) : here + by];
  if (!to) return here === 0 && by < 0 && at("q").focus();
  to.focus({ preventScroll: true });
  to.closest(".hit").scrollIntoView({ block: "nearest" });
}

function ends(place) {
  titles().at(place).focus({ preventScroll: true });
  titles().at(place).closest(".hit").scrollIntoView({ block: "nearest" });
}

/** The link to the next or previous page of results, if there is one. */
const turns = key => document.querySelector(`.pager a[rel=${key === "n" ? "next" : "prev"}]`);

export function listen() {
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || at("keys").open) return;
    const on = event.target, field = on.matches?.("input:not([type=checkbox]), textarea, select"), reading = at("reader").contains(on);
    if (event.key === "Escape") escape(on, field);
    else if (field) {
      if (on.id !== "q" || event.key !== "ArrowDown") return;
      move(1);
    } else if (event.key === "/") { at("q").focus(); at("q").select(); }
    else if (event.key === "?") help();
    else if (reading && (event.key === "ArrowLeft" || event.key === "ArrowRight")) step(event.key === "ArrowLeft" ? -1 : 1);
    else if (reading && (event.key === "j" || event.key === "k")) step(event.key === "k" ? -1 : 1);
    else if (reading && (event.key === "n" || event.key === "p")) match(event.key);
    else if (event.key === "j" || event.key === "ArrowDown" && !reading && listening(on)) move(1);
    else if (event.key === "k" || event.key === "ArrowUp" && !reading && listening(on)) move(-1);
    else if ((event.key === "Home" || event.key === "End") && on.closest?.(".hit")) ends(event.key === "Home" ? 0 : -1);
    else if (!reading && (event.key === "n" || event.key === "p") && turns(event.key)) turns(event.key).click();
    else if (event.key === "w") on.closest?.(".hit")?.why?.();
    else return;
    event.preventDefault();
  });
}

/** Whether arrow keys are for the results: nothing else has the focus. */
const listening = on => on === document.body || on.closest?.(".hit, #results") || on.id === "send";

function escape(on, field) {
  if (app.state.doc) go({ doc: "" });
  else if (field && on.id !== "q") on.blur();
  else at("q").focus();
}

// Results as a query is typed: after a pause, one request at a time, and only for pipelines that run no model.

import { app, go, index, pipeline } from "./app.js";
import { at } from "./dom.js";

const PAUSE = 200, LONGEST = 1000;  // milliseconds without a key before the server is asked; more where its answers take longer
let later = 0, took = 0;

/** Tells how long the last answer took. */
export const timed = milliseconds => { took = milliseconds; };

const isQuick = () => index()?.pipelines.find(({ name }) => name === pipeline())?.model === false && !app.state.against;

function typed(event) {
  clearTimeout(later);
  if (app.state.view !== "search" || event.isComposing || !isQuick()) return;
  later = setTimeout(() => {
    const q = at("q").value.trim();
    if (q !== app.state.q) go({ q, doc: "" }, { step: "q" });
  }, Math.min(LONGEST, Math.max(PAUSE, took)));
}

export function listen() {
  for (const kind of ["input", "compositionend"]) at("q").addEventListener(kind, typed);
  at("ask").addEventListener("submit", () => clearTimeout(later));
}

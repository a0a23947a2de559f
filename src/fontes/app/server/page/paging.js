// Pages of results: which of how many are shown, and the way to the others.

import { app, go, href } from "./app.js";
import { at, button, count, link, make } from "./dom.js";

/** The number of all results; null where it is not known, or beyond what is counted at once, and a page is full. */
function all(hits, total) {
  const { k, offset } = app.state;
  return total?.relation === "eq" ? total.value : hits.length < k ? offset + hits.length : null;
}

/** Which results are shown, as "11–20 of 143 results". */
export function place(hits, total) {
  const { offset } = app.state, number = all(hits, total), last = offset + hits.length, part = `${(offset + 1).toLocaleString("en")}–${last.toLocaleString("en")} of`;
  if (number === null && total?.relation === "gt" && last <= total.value) return `${part} more than ${count(total.value, "result")}`;
  if (number === null) return `${part} ${last.toLocaleString("en")} or more results`;
  return offset || number > hits.length ? `${part} ${count(number, "result")}` : count(number, "result");
}

function turn(offset, text, attributes) {
  return link(href({ offset, why: [] }), () => {
    go({ offset, why: [], doc: "" });
    at("results").focus({ preventScroll: true });
  }, attributes, text);
}

/** Links to the pages before and after this one; null if there are none. */
export function pager(hits, total) {
  const { k, offset } = app.state, number = all(hits, total), last = offset + hits.length;
  const more = hits.length === k && (number === null || last < number), within = last + k <= app.limits.k;
  if (!offset && !more) return null;
  return make("nav", { class: "pager", "aria-label": "Pages of results" },
    offset ? turn(Math.max(0, offset - k), "← Previous", { rel: "prev" }) : make("span", { class: "notes" }, "← Previous"),
    make("span", { class: "notes" }, place(hits, total)),
    more && within ? turn(last, "Next →", { rel: "next" }) : make("span", { class: "notes" }, "Next →"),
    more && !within ? make("p", { class: "notes" }, `This server shows the best ${app.limits.k.toLocaleString("en")} results; a filter or more words find others.`) : null);
}

/** What is shown for a page after the last one. */
export function beyond() {
  return [make("p", { class: "notes" }, `The results end before number ${(app.state.offset + 1).toLocaleString("en")}. `, button("First page", () => go({ offset: 0 })))];
}

// What is chosen besides the query, each with a button that takes it back.

import { app, go, index } from "./app.js";
import { apart, at, button, make, short } from "./dom.js";
import { pieces } from "./filter.js";
import { ordered } from "./order.js";

const NONE = { where: "", sort: "", descending: "", syntax: "", pipeline: "", against: "", only: "", tolerance: "" };

/** The name, the value, and the changes that take it back, of each. */
function chosen() {
  const { where, sort, descending, syntax, pipeline, against, tolerance } = app.state;
  return [
    ...pieces(where, index().columns).map(({ name, text, rest }) => [name, text, { where: rest }]),
    ...sort && !against ? [["Sorted by", ordered(sort, descending), { sort: "", descending: "" }]] : [],
    ...syntax ? [["", "Query language", { syntax: "" }]] : [],
    ...tolerance ? [["", "Exactly as typed", { tolerance: "" }]] : [],
    ...pipeline && pipeline !== index().pipelines[0].name ? [["Ranked by", pipeline, { pipeline: "" }]] : [],
    ...against ? [["Compared with", against, { against: "", only: "" }]] : [],
  ];
}

export function drawChips() {
  const list = at("chips"), before = [...list.querySelectorAll("button")].indexOf(document.activeElement), all = chosen();
  const items = all.map(([name, value, changes]) => make("li", {}, button("", () => go(changes), { class: "chip", "aria-label": `Remove ${name}${name && ": "}${value}` })));
  items.forEach((item, i) => item.firstChild.append(...all[i][0] ? [apart(short(all[i][0], 60), { class: "key" }), " "] : [], apart(short(all[i][1], 100)), make("span", { class: "cross", "aria-hidden": "true" }, "×")));
  list.replaceChildren(...items, ...all.length > 1 ? [make("li", {}, button("Clear all", () => go(NONE), { class: "plain" }))] : []);
  list.hidden = !all.length;
  if (before >= 0) ([...list.querySelectorAll("button")].slice(0, before + 1).pop() ?? at("results")).focus({ preventScroll: true });
}

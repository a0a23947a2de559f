// The first screen: what there is to search, and queries to begin with.

import { app, go, href, index } from "./app.js";
import { ask, overtaken } from "./api.js";
import { apart, at, count, link, make } from "./dom.js";

const asked = new Map();  // examples by index

export async function welcome(say) {
  const { name, documents, pipelines, columns } = index(), examples = make("div", { class: "examples" });
  say(`${count(documents, "document")} in ${name}`, true);
  const rows = pipelines.map(({ name, text }) => [make("dt", {}, link(href({ pipeline: name }), () => { go({ pipeline: name }); at("q").focus(); }, {}, apart(name))), make("dd", {}, make("code", {}, text))]);
  const typed = Object.entries(columns);
  at("content").replaceChildren(examples, make("div", { class: "researcher" }, make("h2", {}, "Pipelines"), make("dl", { class: "facts" }, ...rows),
    ...typed.length ? [make("h2", {}, "Columns to filter by"), make("dl", { class: "facts" }, ...typed.map(([name, type]) => [make("dt", {}, apart(name)), make("dd", {}, type)]))] : []));
  try {
    if (!asked.has(name)) asked.set(name, (await ask("examples", "examples", { index: name })).examples);
  } catch (error) {
    if (!overtaken(error)) console.warn(error);  // the page is as useful without them
    return;
  }
  const queries = asked.get(name);
  if (queries.length) examples.replaceChildren(make("h2", {}, "For example"), make("ul", {}, queries.map(q => make("li", {}, link(href({ q }), () => { go({ q }); at("q").focus(); }, {}, apart(q))))));
}

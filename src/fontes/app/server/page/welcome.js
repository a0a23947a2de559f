// The first screen: what the collection is, its newest documents, and queries to begin with.

import { app, go, href, index } from "./app.js";
import { ask, overtaken } from "./api.js";
import { apart, at, count, link, make, short } from "./dom.js";

const TITLE = 120;
const asked = new Map();  // what the server says about an index, by its name and its state

export async function welcome(say) {
  const { name, documents, generation, pipelines, columns } = index(), examples = make("div", { class: "examples" }), about = make("div", { class: "about-index" });
  say(`${count(documents, "document")} in ${name}`, true);
  const rows = pipelines.map(({ name, text }) => [make("dt", {}, link(href({ pipeline: name }), () => { go({ pipeline: name }); at("q").focus(); }, {}, apart(name))), make("dd", {}, make("code", {}, text))]);
  const typed = Object.entries(columns);
  at("content").replaceChildren(make("div", { class: "first" }, examples, about), make("div", { class: "researcher" }, make("h2", {}, "Pipelines"), make("dl", { class: "facts" }, ...rows),
    ...typed.length ? [make("h2", {}, "Columns to filter by"), make("dl", { class: "facts" }, ...typed.map(([name, type]) => [make("dt", {}, apart(name)), make("dd", {}, type)]))] : []));
  const key = `${name} ${generation}`;
  try {
    if (!asked.has(key)) asked.set(key, await ask("examples", "examples", { index: name }));
  } catch (error) {
    if (!overtaken(error)) console.warn(error);  // the page is as useful without them
    return;
  }
  const { examples: queries, newest, columns: described } = asked.get(key);
  if (queries.length) examples.replaceChildren(make("h2", {}, "For example"), make("ul", {}, queries.map(q => make("li", {}, link(href({ q }), () => { go({ q }); at("q").focus(); }, {}, apart(q))))));
  about.replaceChildren(...newest.length ? [section("Newest", newest.map(document))] : [], ...described.length ? [section("Columns", described.map(column), "columns-of")] : []);
}

const section = (title, items, kind = "newest") => make("section", { class: kind }, make("h2", {}, title), make("ul", {}, items));

const document = ({ id, title, value }) => make("li", {}, link(href({ doc: id }), () => go({ doc: id }), {}, apart(short(title, TITLE))), " ", make("span", { class: "when" }, day(value)));

/** A column with its first and last, or its most frequent values. */
const column = own => make("li", {}, apart(own.name, { class: "key" }), " ", own.values ? own.values.flatMap((value, i) => [i ? ", " : "", apart(short(String(value), 40))])
  : apart(own.from === own.to ? day(own.from) : `${day(own.from)} – ${day(own.to)}`));

/** A date without a time of day of zero; a number as it is, so that a year has no comma. */
const day = value => String(value).replace(/T00:00(:00)?(Z|\+00:00)?$/, "");

// The topics and their progress, a form for a new topic, and the files to export.

import { ask, headers, Problem, sentence } from "./api.js";
import { apart, button, count, make, short } from "./dom.js";
import { doing, go, judge, path, place, say } from "./judge.js";

export const minutes = seconds => seconds < 60 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60).toLocaleString("en")} min`;

/** The progress of a topic in words. */
export const far = topic => [`${topic.judged} of ${count(topic.pool, "document")} judged`, ...topic.judged ? [`${topic.relevant} relevant`, minutes(topic.seconds)] : [],
  ...topic.missing ? [`${topic.missing} not in this index`] : []].join(", ");

export const bar = topic => make("progress", { value: topic.judged, max: Math.max(topic.pool, 1), "aria-label": "Judged" });

export async function show(args, present) {
  const { topics } = await ask("view", "judging/topics");
  if (!present()) return;
  const done = topics.filter(topic => !topic.left).length;
  say(topics.length ? `${done} of ${count(topics.length, "topic")} finished` : "No topics yet. Write the first one.");
  const add = button("New topic", () => document.getElementById("text").focus(), { class: "plain" });
  place(make("div", { class: "line" }, make("h1", {}, "Topics"), topics.length > 5 ? add : null), ...topics.length ? [make("ul", { class: "topics" }, ...topics.map(row))] : [], form(), files());
}

function row(topic) {
  const others = Object.entries(topic.others).flatMap(([name, judged], i) => [i ? ", " : "", apart(name), ` judged ${judged}`]);
  return make("li", { "data-topic": topic.id },
    make("div", {}, make("p", { class: "title" }, apart(topic.id, { class: "id" }), make("a", { href: path("judge", topic.id) }, apart(short(topic.text, 300)))), topic.description ? make("p", { class: "about" }, apart(short(topic.description, 300))) : null,
      make("p", { class: "figures" }, make("a", { href: path("evidence", topic.id) }, "Judged documents and evidence", make("span", { class: "hidden" }, ` of topic ${topic.id}`)))),
    make("div", {}, bar(topic), make("p", { class: "figures" }, far(topic)), others.length ? make("p", { class: "figures" }, others) : null));
}

function form() {
  const text = make("input", { id: "text", required: true, dir: "auto" }), narrative = make("textarea", { id: "narrative", rows: 3, dir: "auto" });
  const send = make("button", { type: "submit" }, "Add topic");
  return make("form", { class: "asked", onsubmit: event => {
    event.preventDefault();
    send.disabled = true;
    say("Searching…");
    doing(async () => {
      const topic = await ask("topic", "judging/topics", {}, { text: text.value, narrative: narrative.value });
      go("judge", topic.id);
    }).finally(() => { send.disabled = false; });
  } }, make("h2", {}, "New topic"), make("label", { for: "text" }, "Query"), text, make("label", { for: "narrative" }, "What is relevant and what is not (optional)"), narrative, make("p", {}, send));
}

const says = name => name === "queries.jsonl" ? "topics" : name.replace(/\.qrels$/, " (TREC)").replace(/\.tsv$/, " (BEIR)");

function files() {
  return make("section", {}, make("h2", {}, "Export"),
    make("p", { class: "notes" }, "Settled: the settled grade, or the grade that all judges of the document gave. Agreed: documents that two or more judges graded alike. The TREC files contain the groups of evidence."), make("p", { class: "files" }, ...judge.exports.map(name => button(says(name), () => doing(() => taken(name)), { "data-file": name }))));
}

async function taken(name) {
  const answer = await fetch(`judging/export/${encodeURIComponent(name)}`, { headers });
  if (!answer.ok) throw new Problem(sentence((await answer.json().catch(() => ({}))).detail ?? ""), answer.status);
  const address = URL.createObjectURL(await answer.blob());
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// One document at a time: read it, grade it. The next one comes when the server has the grade on disk.

import { ask } from "./api.js";
import { apart, at, button, filled, make, marked, short, shown as text, units } from "./dom.js";
import { doing, go, judge, path, place, say } from "./judge.js";
import { bar, far } from "./judge-topics.js";

export const GRADES = ["Not relevant", "Partly relevant", "Relevant", "Highly relevant"];
const PIECE = 8000, LONG = 1200;  // characters of a piece of a text, and of a narrative that folds
let shown = null, busy = false, looked = 0, since = 0, pending = Promise.resolve();

export async function show([topic, id], present) {
  shown = null;
  const values = judge.view === "document" ? await ask("view", "judging/document", { topic, id }) : await ask("view", "judging/next", { topic });
  if (present()) draw(values);
}

/** A text in pieces, with marks. */
export function words(doc) {
  const matches = units(doc.text, doc.matches), pieces = [];
  for (let start = 0; start < doc.text.length;) {
    let end = Math.min(start + PIECE, doc.text.length);
    if (end < doc.text.length && /[\udc00-\udfff]/.test(doc.text[end])) end += 1;
    pieces.push(make("div", { class: "piece", dir: "auto" }, marked(doc.text, matches.filter(([first, after]) => after > start && first < end), start, end)));
    start = end;
  }
  return pieces.length ? pieces : [make("p", { class: "notes" }, "This document has no text.")];
}

function draw({ topic, document: doc }) {
  shown = { topic, doc };
  looked = 0;
  since = performance.now();
  say(far(topic));
  const need = make("section", { class: "need", "aria-label": "Topic" }, make("h1", { dir: "auto" }, topic.text),
    ...[topic.description, topic.narrative].filter(Boolean).map(more => more.length > LONG ? make("details", {}, make("summary", { dir: "auto" }, short(more, LONG / 4)), make("p", { dir: "auto" }, more)) : make("p", { dir: "auto" }, more)), bar(topic),
    make("p", { class: "line" }, button("Undo", undo, { class: "plain", id: "undo", disabled: !topic.judged }), ...doc ? [button("Later", later, { class: "plain", id: "later" })] : [],
      button("Evidence", () => go("evidence", topic.id), { class: "plain" }), button("Topics", () => go("topics"), { class: "plain" })));
  if (!doc) {
    place(make("div", { class: "bench" }, need, make("section", { class: "document", id: "document", tabindex: "-1" }, make("h2", {}, topic.pool ? "This topic is finished" : "The pool is empty"),
      make("p", {}, topic.pool ? `${far(topic)}.` : "No pipeline found a document for this topic."), make("p", {}, make("a", { href: path("topics") }, "Topics"), " · ", make("a", { href: path("evidence", topic.id) }, "Judged documents and evidence"), " · ", make("a", { href: path("compare") }, "Agreement")))));
    at("document").focus({ preventScroll: true });
    doing(() => further(topic.id));
    return;
  }
  const note = make("textarea", { id: "note", rows: 3, maxlength: 10000, dir: "auto", onchange: () => save(topic.id, doc.id, note.value) });
  note.value = doc.note;
  need.append(make("div", {}, make("label", { for: "note" }, "Note"), note));
  const facts = Object.entries(doc.metadata).filter(([, it]) => filled(it)).map(([key, it]) => [make("dt", {}, apart(key)), make("dd", {}, apart(text(it)))]).flat();
  const article = make("section", { class: "document", id: "document", tabindex: "-1", "aria-labelledby": "title" },
    make("h2", { id: "title", dir: "auto" }, doc.title.trim() ? marked(doc.title, units(doc.title, doc.title_matches)) : doc.id), ...facts.length ? [make("dl", { class: "metadata" }, ...facts)] : [],
    make("div", { class: "words" }, ...words(doc)),
    make("div", { class: "grades", role: "group", "aria-label": "Grade" }, ...GRADES.map((name, grade) => button("", () => graded(grade), { "data-grade": grade, "aria-keyshortcuts": grade, "aria-pressed": String(doc.grade === grade) }))));
  article.querySelectorAll(".grades button").forEach((one, grade) => one.append(make("kbd", {}, String(grade)), GRADES[grade]));
  place(make("div", { class: "bench" }, need, article));
  scrollTo({ top: 0 });
  article.focus({ preventScroll: true });
}

/** A link to the next topic that is not finished. */
async function further(from) {
  const { topics } = await ask("topics", "judging/topics"), here = topics.findIndex(({ id }) => id === from);
  const next = [...topics.slice(here + 1), ...topics.slice(0, here)].find(topic => topic.left), place = at("document");
  if (!place || shown?.doc || shown?.topic.id !== from) return;
  place.append(make("p", {}, next ? [make("a", { href: path("judge", next.id), id: "further" }, "Next topic"), ": ", apart(next.text)] : "All topics are finished."));
  at("further")?.focus({ preventScroll: true });
}

/** Seconds for which the document was visible. */
const seconds = () => Math.min(86_400, (looked + (document.hidden ? 0 : performance.now() - since)) / 1000);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) looked += performance.now() - since;
  else since = performance.now();
});

function save(topic, id, note) {
  pending = doing(async () => {
    await ask(`note ${topic} ${id}`, "judging/notes", {}, { topic, document: id, note });
    say(note.trim() ? "The note is saved." : "The note is deleted.");
  });
}

/** One thing after the other: a key that is pressed twice grades one document. */
async function alone(work) {
  if (busy || !shown) return;
  busy = true;
  try {
    const note = at("note");
    if (note && note.value.trim() !== shown.doc.note) save(shown.topic.id, shown.doc.id, note.value);
    await pending;
    const view = location.hash, values = await doing(work);
    if (values && location.hash === view) draw(values);
    return values;
  } finally {
    busy = false;
  }
}

async function graded(grade) {
  if (!shown?.doc) return;
  const { topic, doc } = shown, again = judge.view === "document";
  const values = await alone(() => ask("grade", "judging/grades", {}, { topic: topic.id, document: doc.id, grade, seconds: Math.round(seconds() * 10) / 10 }));
  if (!values) return;
  if (again) go("evidence", topic.id);
  else say(`Graded ${grade}. ${far(values.topic)}`);
}

async function undo() {
  const values = await alone(() => ask("undo", "judging/undo", {}, {}));
  if (!values) return;
  if (values.topic.id !== judge.args[0]) history.replaceState(null, "", path("judge", values.topic.id));
  Object.assign(judge, { view: "judge", args: [values.topic.id] });
  say(`Undone. ${far(values.topic)}`);
}

async function later() {
  if (!shown?.doc) return;
  const { doc } = shown, values = await alone(() => ask("view", "judging/next", { topic: shown.topic.id, after: doc.id }));
  if (values) say(`${values.document?.id === doc.id ? "This is the only document left." : "Left for later."} ${far(values.topic)}`);
}

export function key(pressed) {
  if (!shown) return false;
  if (/^[0-3]$/.test(pressed) && shown.doc) graded(Number(pressed));
  else if (pressed === "u") undo();
  else if (pressed === "l" && shown.doc) later();
  else if (pressed === "n" && at("note")) at("note").focus();
  else if (pressed === "e") go("evidence", shown.topic.id);
  else return false;
  return true;
}

// The judged documents of a topic, and the groups of documents that are evidence together.

import { ask } from "./api.js";
import { apart, button, make, short } from "./dom.js";
import { doing, go, judge, path, place, say } from "./judge.js";

export async function show([topic], present) {
  const values = await ask("view", "judging/judged", { topic });
  if (!present()) return;
  const titles = new Map(values.documents.map(({ id, title }) => [id, short(title.trim() || id, 300)])), checked = new Set();
  const grades = new Map(values.documents.map(({ id, grade }) => [id, grade]));
  const keep = groups => doing(async () => {
    await ask("evidence", "judging/evidence", {}, { topic, groups });
    go("evidence", topic);
  });
  const group = button("Group the checked documents", () => keep([...values.groups, [...checked]]), { id: "group", disabled: true, "aria-keyshortcuts": "g" });
  const check = (id, on) => {
    if (on) checked.add(id);
    else checked.delete(id);
    group.disabled = !checked.size;
  };
  say(`${values.documents.length} judged, ${values.groups.length} of evidence`.replace("of evidence", values.groups.length === 1 ? "group of evidence" : "groups of evidence"));
  place(make("p", { class: "kind" }, "Judged documents of topic ", apart(topic)), make("h1", { dir: "auto" }, short(values.topic.text, 300)), make("p", {}, make("a", { href: path("judge", topic) }, "Continue judging")),
    make("section", {}, make("h2", {}, "Evidence"),
      make("p", { class: "notes" }, "A group has documents that are evidence only together. A relevant document in no group is evidence by itself."),
      make("ol", { class: "groups" }, ...values.groups.map((ids, number) => make("li", { class: "line" }, together(ids, titles, id => grades.get(id) ? "" : " (not relevant: the group does not count)"),
        button("Remove", () => keep(values.groups.filter((_, other) => other !== number)), { class: "plain", "aria-label": `Remove group ${number + 1}` }))))),
    make("section", {}, make("h2", {}, "Documents, the latest first"), ...grades.size ? [make("p", { class: "line make" }, group)] : [make("p", { class: "notes" }, "No documents are judged yet.")], make("ul", { class: "judged" }, ...values.documents.map(doc => make("li", { "data-id": doc.id },
      doc.grade ? make("input", { type: "checkbox", "aria-label": `Check ${titles.get(doc.id)}`, onchange: event => check(doc.id, event.target.checked) }) : make("span"),
      make("span", { class: "grade" }, make("span", { class: "hidden" }, "Grade "), String(doc.grade)),
      make("div", {}, doc.missing ? apart(titles.get(doc.id)) : make("a", { href: path("document", topic, doc.id) }, apart(titles.get(doc.id))), ...doc.note ? [make("p", { class: "notes" }, apart(doc.note))] : []))))));
}

/** The documents of a group, each in a line. */
export const together = (ids, titles, more = () => "") => make("ul", { class: "together" }, ...ids.map(id => {
  const title = short(titles.get(id) || id, 300), name = short(id, 300);
  return make("li", {}, apart(title), ...title === name ? [] : [" ", make("span", { class: "kind" }, apart(name))], more(id));
}));

export function key(pressed) {
  if (pressed === "e") go("judge", judge.args[0]);
  else if (pressed === "g") document.getElementById("group")?.click();
  else if (pressed === "j" || pressed === "k") {
    const all = [...document.querySelectorAll(".judged input")], here = all.indexOf(document.activeElement);
    all[here < 0 ? 0 : here + (pressed === "j" ? 1 : -1)]?.focus();
  } else return false;
  return true;
}

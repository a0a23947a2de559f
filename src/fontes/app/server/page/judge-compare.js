// Agreement of judges, and their disagreements side by side, to be settled.

import { ask } from "./api.js";
import { apart, button, count, make, short } from "./dom.js";
import { doing, place, say } from "./judge.js";
import { words } from "./judge-document.js";
import { together } from "./judge-evidence.js";

const figure = value => value === null ? "undefined" : value.toFixed(3);

export async function show(args, present) {
  const values = await ask("view", "judging/agreement");
  if (!present()) return;
  const open = () => values.disagreements.filter(one => one.settled === null).length;
  const told = () => say(values.disagreements.length ? `${count(values.disagreements.length, "disagreement")}, ${open()} not settled` : "");
  told();
  const none = values.finished.length && values.agreement.length && !values.disagreements.length ? [make("p", {}, "None: in these topics all judges gave the same grades so far.")] : [];
  place(make("h1", {}, "Agreement"),
    make("div", { class: "pairs" }, ...values.agreement.map(pair)), ...values.agreement.length ? [] : [make("p", {}, "No two judges have graded the same document yet.")],
    make("section", { class: "differing" }, make("h2", {}, "Disagreements"),
      make("p", { class: "notes" }, values.finished.length ? "In the topics that you have finished. A settled grade replaces the grades of the judges in the settled judgments; their own are kept." : "Shown once you have finished a topic."),
      ...none, make("ul", {}, ...values.disagreements.map(one => difference(one, told)))),
    ...values.evidence.length ? [make("section", { class: "differing" }, make("h2", {}, "Evidence"),
      make("p", { class: "notes" }, "Topics that you and another judge have finished with different groups of documents. All groups of relevant documents are exported."),
      make("ul", {}, ...values.evidence.map(one => evidence(one, new Map(Object.entries(values.titles))))))] : []);
}

/** The groups of a topic, a column for each judge. */
function evidence(of, titles) {
  return make("li", { class: "one", tabindex: "-1", "data-evidence": of.topic }, make("p", { class: "kind" }, "Topic ", apart(of.topic), ": ", apart(short(of.query, 300))),
    make("p", {}, `${of.alike} of ${count(of.groups, "group")} in common`),
    make("ul", { class: "beside" }, ...of.judges.map(({ judge, groups }) => make("li", {}, apart(judge), ...groups.length ? [] : [make("p", { class: "notes" }, "No group.")],
      make("ol", { class: "groups" }, ...groups.map(({ documents, others }) => make("li", { class: others.length ? "" : "only" }, together(documents, titles),
        make("p", { class: "notes" }, ...others.length ? ["also named by ", ...others.flatMap((name, i) => [i ? ", " : "", apart(name)])] : ["only this judge"]))))))));
}

function pair(of) {
  const [first, second] = of.judges;
  const facts = [["Both graded", count(of.documents, "document")], ["Same grade", `${of.same} (${Math.round(100 * of.same / of.documents)} %)`], ["Kappa", figure(of.kappa)],
    ["Kappa, linear weights", figure(of.linear)], ["Kappa, quadratic weights", figure(of.quadratic)], ["Kappa, 0 against 1 to 3", figure(of.relevant)]];
  return make("section", {}, make("h2", {}, apart(first), " and ", apart(second)),
    make("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    make("p", { class: "kind" }, "Rows: ", apart(first), "; columns: ", apart(second)),
    make("table", { "aria-label": `Grades of ${first} in rows, of ${second} in columns` },
      make("tr", {}, make("td"), ...of.table.map((_, grade) => make("th", { scope: "col" }, String(grade)))),
      ...of.table.map((row, grade) => make("tr", {}, make("th", { scope: "row" }, String(grade)), ...row.map((number, other) => make("td", { class: grade === other && "same" }, String(number)))))),
    make("details", { class: "topics" }, make("summary", {}, "By topic"), make("table", { "aria-label": `Agreement of ${first} and ${second} by topic` },
      make("tr", {}, ...["Topic", "Both graded", "Same grade"].map(name => make("th", { scope: "col" }, name))),
      ...Object.entries(of.topics).map(([topic, [documents, same]]) => make("tr", {}, make("th", { scope: "row" }, apart(topic)), make("td", {}, String(documents)), make("td", {}, String(same)))))));
}

function difference(one, told) {
  const buttons = [0, 1, 2, 3].map(grade => button(String(grade), () => settle(grade), { "data-grade": grade, "aria-label": `Settle as ${grade}` }));
  const by = make("span", { class: "notes" });
  const undo = button("Reopen", () => settle(null), { class: "plain" });
  const mark = () => {
    buttons.forEach((each, grade) => each.setAttribute("aria-pressed", String(one.settled === grade)));
    by.replaceChildren(...one.by ? ["settled by ", apart(one.by)] : []);
    undo.hidden = one.settled === null;
  };
  const settle = grade => doing(async () => {
    await ask(`settle ${one.topic} ${one.document}`, "judging/settled", {}, { topic: one.topic, document: one.document, grade });
    Object.assign(one, { settled: grade, by: grade === null ? null : "you" });
    mark();
    told();
  });
  mark();
  const text = make("details", { ontoggle: () => {
    if (text.open && text.childElementCount === 1) doing(async () => {
      const { document: doc } = await ask(`text ${one.topic} ${one.document}`, "judging/document", { topic: one.topic, id: one.document });
      text.append(make("div", { class: "words", tabindex: "0", role: "region", "aria-label": "Text" }, ...words(doc)));
    });
  } }, make("summary", {}, "Show text"));
  const item = make("li", { class: "one", tabindex: "-1", "data-topic": one.topic, "data-document": one.document }, make("p", { class: "kind" }, "Topic ", apart(one.topic), ": ", apart(short(one.query, 300))), make("h3", { class: "title", dir: "auto" }, short(one.title.trim() || one.document, 300)), text,
    make("ul", { class: "beside" }, ...one.grades.map(({ judge, grade, note }) => make("li", {}, apart(judge), ": ", make("span", { class: "grade" }, String(grade)), ...note ? [make("p", { class: "notes" }, apart(note))] : []))),
    make("div", { class: "settle", role: "group", "aria-label": "Settled grade" }, make("span", {}, "Settle"), ...buttons, undo, by));
  item.settle = settle;
  return item;
}

export function key(pressed) {
  const all = [...document.querySelectorAll(".differing li.one")], here = all.indexOf(document.activeElement?.closest("li.one"));
  if (/^[0-3]$/.test(pressed) && all[here]?.settle) all[here].settle(Number(pressed));
  else if (pressed === "j" || pressed === "k") {
    const to = all[here < 0 ? 0 : here + (pressed === "j" ? 1 : -1)];
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  } else return false;
  return true;
}

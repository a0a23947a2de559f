"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const SVG = document.querySelector("svg").namespaceURI;
const DASHES = ["", "8 4", "2 3", "10 3 2 3", "5 2"];
const COLOURS = 7;
const now = { measure: 0, system: D.pair[0], against: D.pair[1], topic: 0, order: [] };

// Elements. A text becomes a text node, so nothing in the data is ever read as markup.

function make(tag, attributes = {}, ...inside) {
  return fill(document.createElement(tag), attributes, inside);
}

function draw(tag, attributes = {}, ...inside) {
  return fill(document.createElementNS(SVG, tag), attributes, inside);
}

function fill(element, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside);
  return element;
}

const name = system => D.systems[system][1];
const topicCount = n => `${n.toLocaleString("en")} topic${n === 1 ? "" : "s"}`;
const fixed = value => value.toFixed(D.measures[now.measure][1]);
const value = (system, topic, measure = now.measure) => D.values[measure][system][topic];
const difference = topic => Number((value(now.system, topic) - value(now.against, topic)).toFixed(6));

function signed(number, decimals = D.measures[now.measure][1]) {
  return (number > 0 ? "+" : number < 0 ? "−" : "") + Math.abs(number).toFixed(decimals);
}

function change(number, decimals) {
  return make("span", { class: `value ${number > 0 ? "up" : number < 0 ? "down" : ""}` }, signed(number, decimals));
}

// Tables that sort.

function cellKey(row, header) {
  if (header.cellIndex === 0) return row.place;
  const text = row.cells[header.cellIndex].firstChild.textContent;
  return header.classList.contains("text") ? text : parseFloat(text.replace("<", "").replaceAll("−", "-"));
}

function sortBy(table, header) {
  const before = header.getAttribute("aria-sort");
  const text = header.classList.contains("text");
  const up = before === "none" ? text : before === "descending";
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map(row => [cellKey(row, header), row]);
  rows.sort(([a], [b]) => {
    if (typeof a === "string") return (up ? 1 : -1) * a.localeCompare(b, "en", { numeric: true });
    return isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) : (up ? 1 : -1) * (a - b);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function filterTests() {
  for (const row of at("tests-table").tBodies[0].rows)
    row.hidden = at("tested").value !== "" && row.cells[0].textContent !== at("tested").value;
}

// Charts: axes, and a box of figures that follows the pointer or the arrow keys.

function niceStep(range, count) {
  const rough = range / count, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].find(step => step * power >= rough) * power;
}

function frame(box, height, low, high, label) {
  const svg = box.querySelector("svg"), width = Math.max(box.clientWidth, 240);
  const area = { left: 44, right: width - 14, top: 10, bottom: height - 40, width, height };
  svg.replaceChildren();
  for (const [key, text] of Object.entries({ viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: 0, "aria-label": label }))
    svg.setAttribute(key, text);
  const step = niceStep(high - low || 1, 5), y = v => area.bottom - (v - low) / (high - low || 1) * (area.bottom - area.top);
  const decimals = (String(Number(step.toPrecision(3))).split(".")[1] ?? "").length;
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6; tick += step) {
    const zero = Math.abs(tick) < step / 2, text = (tick < 0 && !zero ? "−" : "") + Math.abs(tick).toFixed(decimals);
    svg.append(draw("line", { class: zero ? "zero" : "grid", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }));
    svg.append(draw("text", { x: area.left - 8, y: y(tick) + 4, "text-anchor": "end" }, text));
  }
  return { svg, area, y };
}

function tipOf(box) {
  return box.querySelector(".tip") ?? box.appendChild(make("div", { class: "tip", role: "status", hidden: true }));
}

function showTip(box, x, width, ...inside) {
  const tip = tipOf(box);
  tip.replaceChildren(...inside);
  tip.hidden = false;
  const left = x + 14 + tip.offsetWidth > width ? x - 14 - tip.offsetWidth : x + 14;
  tip.style.left = `${Math.max(0, Math.min(left, width - tip.offsetWidth))}px`;
}

/** Calls point(i) for the place under the pointer or reached by the arrow keys, leave() at the end, pick(i) for a choice. */
function follow(box, area, places, point, leave, pick) {
  const svg = box.querySelector("svg");
  let here = -1;
  const nearest = x => places.reduce((best, place, i) => Math.abs(place - x) < Math.abs(places[best] - x) ? i : best, 0);
  const move = i => point(here = Math.max(0, Math.min(i, places.length - 1)));
  const under = event => nearest((event.clientX - svg.getBoundingClientRect().left) * area.width / svg.clientWidth);
  svg.onpointermove = svg.onpointerdown = event => move(under(event));
  svg.onpointerleave = svg.onblur = leave;
  svg.onclick = event => pick?.(under(event));
  svg.onkeydown = event => {
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: places.length - 1 }[event.key];
    if (to !== undefined) { move(to); event.preventDefault(); }
    if (event.key === "Enter" && here >= 0) pick?.(here);
    if (event.key === "Escape") leave();
  };
}

// Curves.

const lineOf = system => ({ class: `line s${system % COLOURS}`, "data-system": system, "stroke-dasharray": DASHES[system % DASHES.length] });

function curve(id, xs, series, { log, label, unit }) {
  const box = at(id), top = Math.min(1, Math.max(0.1, ...series.flat()) * 1.05);
  const { svg, area, y } = frame(box, 300, 0, top, `${label}; arrow keys show the values, which are also in the table below`);
  const scale = log ? Math.log : v => v, first = scale(xs[0]), last = scale(xs[xs.length - 1]);
  const x = v => area.left + (scale(v) - first) / (last - first || 1) * (area.right - area.left);
  let free = -1;
  for (const tick of log ? xs.filter(k => /^[125]0*$/.test(k) || k === xs[xs.length - 1]).reverse() : [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    if (log && free >= 0 && free - x(tick) < 36) continue;
    free = x(tick);
    svg.append(draw("text", { x: free, y: area.bottom + 18, "text-anchor": "middle" }, tick.toLocaleString("en")));
  }
  svg.append(draw("text", { x: (area.left + area.right) / 2, y: area.bottom + 36, "text-anchor": "middle" }, unit));
  series.forEach((values, system) =>
    svg.append(draw("path", { ...lineOf(system), d: values.map((v, i) => `${i ? "L" : "M"}${x(xs[i]).toFixed(1)} ${y(v).toFixed(1)}`).join("") })));
  const cross = svg.appendChild(draw("line", { class: "cross", y1: area.top, y2: area.bottom, visibility: "hidden" }));
  follow(box, area, xs.map(x), i => {
    for (const end of ["x1", "x2"]) cross.setAttribute(end, x(xs[i]));
    cross.setAttribute("visibility", "visible");
    const order = series.map((_, system) => system).sort((a, b) => series[b][i] - series[a][i]);
    const lines = order.map(s => make("p", {}, make("span", {}, name(s)), make("span", {}, series[s][i].toFixed(4))));
    showTip(box, x(xs[i]), area.width, make("p", {}, make("b", {}, `${unit} ${xs[i]}`)), ...lines);
  }, () => {
    cross.setAttribute("visibility", "hidden");
    tipOf(box).hidden = true;
  });
}

function valuesTable(id, unit, xs, series) {
  const head = make("tr", {}, make("th", { class: "text" }, unit), ...xs.map(x => make("th", {}, String(x))));
  const rows = series.map((values, s) => make("tr", {}, make("td", { class: "text" }, name(s)), ...values.map(v => make("td", {}, v.toFixed(4)))));
  at(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

function curves() {
  curve("precision", D.curves.recalls, D.curves.precision, { label: "Precision over recall", unit: "recall" });
  curveByK();
}

function curveByK() {
  const [measure, series] = D.curves.at[Number(at("at-k").value)];
  curve("by-k", D.curves.ks, series, { log: true, label: `${measure} over k`, unit: "k" });
  valuesTable("by-k-values", `${measure}, k`, D.curves.ks, series);
}

function legend() {
  const emphasise = system => {
    for (const box of [at("precision"), at("by-k")]) {
      box.classList.toggle("faded", system !== null);
      for (const line of box.querySelectorAll(".line")) line.classList.toggle("lit", Number(line.dataset.system) === system);
    }
  };
  at("legend").append(...D.systems.map(([, text], system) =>
    make("li", { onpointerenter: () => emphasise(system), onpointerleave: () => emphasise(null) },
      draw("svg", { viewBox: "0 0 36 12", "aria-hidden": true }, draw("line", { ...lineOf(system), x1: 0, x2: 36, y1: 6, y2: 6 })), text)));
}

// Differences by topic.

function differences() {
  const box = at("differences"), values = now.order.map(difference), count = values.length;
  const { svg, area, y } = frame(box, 260, Math.min(0, ...values), Math.max(0, ...values) || (Math.min(0, ...values) ? 0 : 1),
    `Differences of ${topicCount(count)}, largest gain first; arrow keys show them, Enter opens a topic`);
  const step = (area.right - area.left) / count, width = Math.max(step > 4 ? step - Math.min(2, step / 5) : step, 0.6);
  const x = i => area.left + step * (i + 0.5);
  const mark = svg.appendChild(draw("rect", { class: "here", y: area.top, width: Math.max(width, 6), height: area.bottom - area.top }));
  const place = i => mark.setAttribute("x", x(i) - Math.max(width, 6) / 2);
  values.forEach((v, i) => {
    if (v) svg.append(draw("rect", { class: v > 0 ? "gain" : "loss", "data-topic": now.order[i], x: (x(i) - width / 2).toFixed(2), width: width.toFixed(2), y: Math.min(y(v), y(0)).toFixed(1), height: Math.max(Math.abs(y(v) - y(0)), 1).toFixed(1) }));
  });
  svg.append(draw("text", { x: (area.left + area.right) / 2, y: area.height - 6, "text-anchor": "middle" }, "topics, by difference"));
  box.mark = () => place(now.order.indexOf(now.topic));
  box.mark();
  follow(box, area, values.map((_, i) => x(i)), i => {
    place(i);
    const topic = now.order[i], [id, text] = D.topics[topic];
    const lines = [now.system, now.against].map(s => make("p", {}, make("span", {}, name(s)), make("span", {}, fixed(value(s, topic)))));
    showTip(box, x(i), area.width, make("p", {}, make("b", {}, id), change(values[i])), make("p", { class: "words" }, short(text, 120)), ...lines);
  }, () => {
    box.mark();
    tipOf(box).hidden = true;
  }, i => open(now.order[i], true));
}

const short = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

function pick(topic) {
  const [id, text] = D.topics[topic];
  return make("li", {}, make("button", { type: "button", "data-topic": topic, "aria-current": topic === now.topic && "true", onclick: () => open(topic, true) },
    make("span", {}, id || "(no id)"), change(difference(topic)), ...text ? [make("span", { class: "words" }, short(text, 200))] : []));
}

function extremes() {
  const gains = now.order.filter(t => difference(t) > 0), losses = now.order.filter(t => difference(t) < 0).reverse();
  const ties = now.order.length - gains.length - losses.length;
  const sum = now.order.reduce((total, topic) => total + difference(topic), 0);
  const whole = D.measures[now.measure][1] ? sum / now.order.length : sum;
  at("summary").replaceChildren(`${name(now.system)} minus ${name(now.against)}, ${D.measures[now.measure][0]}: `, change(whole),
    `. Better in ${topicCount(gains.length)}, worse in ${losses.length.toLocaleString("en")}, equal in ${ties.toLocaleString("en")}.`);
  for (const [id, topics] of [["gains", gains], ["losses", losses]])
    at(id).replaceChildren(...topics.length ? topics.slice(0, 5).map(pick) : [make("li", { class: "notes" }, "none")]);
}

// Topics, and the two rankings of one.

const LISTED = 200;

function list() {
  const words = at("find").value.toLocaleLowerCase().split(/\s+/).filter(Boolean), show = at("show").value;
  const order = show === "all" ? D.topics.map((_, i) => i) : show === "loss" ? [...now.order].reverse() : now.order;
  const found = order.filter(topic => {
    const sign = Math.sign(difference(topic)), text = D.topics[topic].join(" ").toLocaleLowerCase();
    return (show === "all" || sign === { gain: 1, loss: -1, tie: 0 }[show]) && words.every(word => text.includes(word));
  });
  at("found").textContent = topicCount(found.length) + (found.length > LISTED ? `; the first ${LISTED} are listed` : "");
  at("list").replaceChildren(...found.slice(0, LISTED).map(pick));
  now.found = found;
}

function open(topic, go) {
  now.topic = topic;
  for (const button of document.querySelectorAll(".picks button"))
    if (Number(button.dataset.topic) === topic) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  at("differences").mark?.();
  panel();
  if (go) {
    at("topic").focus({ preventScroll: true });
    at("topic").scrollIntoView({ block: "start" });
  }
}

function panel() {
  const [id, text] = D.topics[now.topic], ranking = D.rankings[now.topic];
  const step = by => open(now.found[now.found.indexOf(now.topic) + by] ?? now.topic);
  const steps = make("div", { class: "steps" }, make("button", { type: "button", "aria-label": "Topic before", onclick: () => step(-1) }, "←"),
    make("button", { type: "button", "aria-label": "Topic after", onclick: () => step(1) }, "→"));
  at("topic").replaceChildren(steps, make("h4", {}, id || "(no id)"), make("p", { class: "topic" }, text || "The text of this topic is not known."), measuresTable(),
    ...D.reasons?.[now.topic] ? [make("ul", { class: "reasons" }, ...D.reasons[now.topic].map(line => make("li", {}, line)))] : []);
  if (!ranking) return at("topic").append(make("p", { class: "notes" }, "The rankings of this topic are not in this page."));
  const grades = new Map(ranking.grades), ranks = new Map(ranking.relevant.map(([doc, grade, ...of]) => [doc, of]));
  for (const [doc, grade] of ranking.relevant) grades.set(doc, grade);
  at("topic").append(make("div", { class: "lists" }, listing(0, ranking, grades, ranks), listing(1, ranking, grades, ranks)),
    missing(ranking, grades), make("p", { class: "notes" }, "✓ relevant (grade 1 or more), ✗ judged not relevant, ? not judged. Right: the rank in the other list, ▲ if this list has it higher."));
}

function measuresTable() {
  const head = make("tr", {}, make("th", { class: "text" }, "system"), ...D.measures.map(([text]) => make("th", {}, text)));
  const row = system => make("tr", {}, make("td", { class: "text name" }, make("span", {}, name(system))), ...D.measures.map(([, decimals], m) => make("td", {}, value(system, now.topic, m).toFixed(decimals))));
  const last = make("tr", {}, make("td", { class: "text" }, "difference"), ...D.measures.map(([, decimals], m) => make("td", {}, change(value(now.system, now.topic, m) - value(now.against, now.topic, m), decimals))));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Values of this topic" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, row(now.system), row(now.against), last)));
}

function judgment(doc, grades) {
  const grade = grades.get(doc);
  if (grade === undefined) return ["unjudged", "?", "not judged"];
  return grade > 0 ? ["relevant", "✓", `grade ${grade}`] : ["wrong", "✗", `grade ${grade}`];
}

function words(doc, picked) {
  const [title, text] = D.texts[doc] || ["", ""];
  if (picked) return [make("div", { class: "text" }, ...title ? [make("b", {}, title)] : [],
    make("div", { class: "picked" }, ...picked.map(([number, sentence]) => make("p", {}, make("span", { title: "number of the sentence" }, String(number)), sentence))))];
  return title || text ? [make("div", { class: "text" }, ...title ? [make("b", {}, title), " "] : [], text)] : [];
}

function entry(doc, grades, before, after, attributes, picked) {
  const [kind, sign, said] = judgment(doc, grades);
  return make("li", { class: kind, "data-doc": doc, onpointerenter: () => together(doc), onpointerleave: () => together(null), ...attributes }, ...before,
    make("span", { class: "sign", "aria-label": { relevant: "relevant", wrong: "not relevant", unjudged: "not judged" }[kind], role: "img" }, sign),
    make("span", {}, make("span", { class: "id" }, D.docs[doc]), make("span", { class: "grade" }, said)), after, ...words(doc, picked));
}

function together(doc) {
  for (const item of document.querySelectorAll(".docs li")) item.classList.toggle("same", doc !== null && Number(item.dataset.doc) === doc);
}

/** The ranking of the one side, 0 or 1, with the ranks of its documents on the other. */
function listing(side, ranking, grades, ranks) {
  const [system, other] = side ? [now.against, now.system] : [now.system, now.against];
  const own = ranking.lists[system], theirs = ranking.lists[other];
  const items = own.map((doc, i) => {
    const there = theirs.indexOf(doc) + 1 || ranks.get(doc)?.[other] || 0;
    const gap = there - i - 1, arrow = !there ? "" : gap > 0 ? ` ▲${gap}` : gap < 0 ? ` ▼${-gap}` : " =";
    const reach = () => { together(doc); at(`doc-${1 - side}-${doc}`).focus(); };
    const link = theirs.includes(doc) ? make("button", { type: "button", "aria-label": `rank ${there} of ${name(other)}`, onclick: reach }, String(there))
      : make("span", { title: there ? `rank ${there} of ${name(other)}` : `not among the first ${D.depth} of ${name(other)}` }, there || "–");
    return entry(doc, grades, [make("span", { class: "rank" }, String(i + 1))], make("span", { class: "other" }, link, arrow),
      { id: `doc-${side}-${doc}`, tabindex: -1, onfocus: () => together(doc) }, ranking.picked?.[system][doc]);
  });
  return make("section", {}, make("h5", {}, name(system)), items.length ? make("ol", { class: "docs" }, ...items) : make("p", { class: "notes" }, "no results"));
}

function missing(ranking, grades) {
  const shown = new Set([...ranking.lists[now.system], ...ranking.lists[now.against]]);
  const listed = ranking.relevant.filter(([doc]) => !shown.has(doc));
  const found = [...shown].filter(doc => grades.get(doc) > 0).length, more = ranking.count - found - listed.length;
  const rank = (system, of) => make("span", {}, `${name(system)}: ${of[system] || "not found"}`);
  const items = listed.map(([doc, , ...of]) => entry(doc, grades, [], make("div", { class: "text ranks" }, rank(now.system, of), " ", rank(now.against, of))));
  const title = listed.length + more ? `Relevant documents in neither list: ${listed.length + more} of ${ranking.count}`
    : ranking.count ? "No relevant document is missing from both lists" : "This topic has no relevant documents";
  return make("section", { class: "missing" }, make("h5", {}, title), ...items.length ? [make("ul", { class: "docs" }, ...items)] : [],
    ...more > 0 && items.length ? [make("p", { class: "notes" }, `and ${more} more`)] : []);
}

// What the reader chooses.

function choose() {
  [now.measure, now.system, now.against] = ["measure", "system", "against"].map(id => Number(at(id).value));
  now.order = D.topics.map((_, i) => i).sort((a, b) => difference(b) - difference(a) || a - b);
  extremes();
  differences();
  list();
  panel();
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tBodies[0].rows].forEach((row, place) => { row.place = place; });
  for (const header of table.tHead.rows[0].cells) header.querySelector("button").addEventListener("click", () => sortBy(table, header));
}
at("tested")?.addEventListener("change", filterTests);
at("measure").append(...D.measures.map(([text], i) => make("option", { value: i }, text)));
for (const id of ["system", "against"]) {
  at(id).append(...D.systems.map(([, text], i) => make("option", { value: i, selected: i === now[id] }, text)));
}
for (const id of ["measure", "system", "against"]) at(id).addEventListener("change", choose);
at("swap").addEventListener("click", () => {
  [at("system").value, at("against").value] = [at("against").value, at("system").value];
  choose();
});
for (const id of ["find", "show"]) at(id).addEventListener("input", list);
valuesTable("precision-values", "recall", D.curves.recalls, D.curves.precision);
at("at-k").append(...D.curves.at.map(([text], i) => make("option", { value: i }, text)));
at("at-k").addEventListener("change", curveByK);
legend();
choose();
now.topic = D.opened ?? now.order[0];
open(now.topic);
curves();
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  curves();
  differences();
});

// The filter: charts and bounds of dates and numbers, values to click with their counts, and the condition as text.

import { app, go, index } from "./app.js";
import { ask, giveUpAll, overtaken } from "./api.js";
import { chart } from "./chart.js";
import { apart, at, button, make, short, shown } from "./dom.js";
import { chosen, column, conditions, ORDERED, ranged, range, toggled, without } from "./filter.js";
import { slider } from "./slider.js";

const COUNTED = ["keyword", "keywords", "boolean"], COLUMNS = 6, VALUES = 8, MOST = 200, FOUND = 20;
const COUNTED_VALUES = 100;  // that the server sends of a column
const open = new Set();  // columns all of whose values are shown
const finding = new Map();  // what is typed to find a value of a column
let asked = {};  // the search whose values are counted
let latest = {}, of = "";  // the counts that are shown until others come, and their index
let isHeld = false, adjusted = 0, waiting = null;  // whether a finger or the mouse is down in the filter, a change that will hold soon, and what is drawn after them

/** The columns of some types that are worth a facet, and those that the filter tests. */
function facets(types, tested) {
  const { columns, facets: worth } = index(), own = Object.entries(columns).filter(([, type]) => types.includes(type));
  const first = worth.filter(name => types.includes(columns[name])).slice(0, COLUMNS);
  return [...first.map(name => [name, columns[name]]), ...own.filter(([name, type]) => !first.includes(name) && tested(app.state.where, name, type).some(value => value !== ""))];
}

/** The columns whose values are counted, and those that have a histogram with bounds. */
const counted = () => facets(COUNTED, chosen);
const bounded = () => facets(ORDERED, range).sort(([, a], [, b]) => (b === "date") - (a === "date"));

/** What a search asks for so that the filter can be drawn. */
export const facetColumns = () => ({ facets: counted().map(([name]) => name).join(","), histograms: bounded().map(([name]) => name).join(",") });

const filter = (where, step = "") => go({ where }, { step });

/** Draws the filter beside the results; `answer` has facets and histograms, or is null until they come. */
export async function drawFilter(answer, search) {
  const side = at("side"), { where } = app.state;
  side.hidden = !Object.keys(index().columns).length;
  if (side.hidden) return;
  giveUpAll("facet ");
  if (of !== index().name) {
    [latest, of] = [{}, index().name];
    finding.clear();
  }
  asked = search;
  const number = conditions(where).length;
  at("filters").querySelector("summary").textContent = number ? `Filter (${number})` : "Filter";
  const others = [...counted().filter(([name, type]) => chosen(where, name, type).length).map(([name, type]) => [name, { facets: name, where: without(where, name, type) }]),
    ...bounded().filter(([name]) => range(where, name).some(Boolean)).map(([name, type]) => [name, { histograms: name, where: ranged(where, name, type, ["", ""]) }])];
  const facets = answer && { ...answer.facets, ...answer.histograms };
  draw({ ...facets ?? latest, ...Object.fromEntries(others.filter(([name]) => latest[name]).map(([name]) => [name, latest[name]])) });
  if (!facets || !others.length) return;
  try {  // of a column with a chosen value or range, the others are counted as if none were
    const more = await Promise.all(others.map(([name, asked]) => ask(`facet ${name}`, "search", { ...search, ...asked, k: 1, snippets: "false" })));
    draw(Object.assign({}, facets, ...more.map(own => ({ ...own.facets, ...own.histograms }))));
  } catch (error) {
    if (!overtaken(error)) draw(facets);
  }
}

function draw(facets) {
  latest = facets;
  if (isHeld || adjusted) return void (waiting = facets);
  waiting = null;
  const focused = document.activeElement?.dataset?.facet, field = document.activeElement?.id;
  at("filter-body").replaceChildren(make("p", { class: "head" }, "Filter"), ...bounded().map(([name, type]) => bounds(name, type, facets[name] ?? [])),
    ...counted().map(([name, type]) => values(name, type, facets[name] ?? [])).filter(Boolean), text());
  const back = focused ? [...document.querySelectorAll("[data-facet]")].find(b => b.dataset.facet === focused) : at("filter-body").contains(at(field ?? "")) && at(field);
  if (back && !document.activeElement?.closest?.("main")) back.focus({ preventScroll: true });
}

/** Filters by bounds, after a pause in which more changes may come. */
function bound(name, type, bounds, pause = 0) {
  const apply = () => {
    adjusted = 0;
    filter(ranged(app.state.where, name, type, bounds), `range ${name}`);
  };
  clearTimeout(adjusted);
  if (pause) adjusted = setTimeout(apply, pause);
  else apply();
}

/** Keeps what is dragged in the filter from being drawn anew under the mouse. */
export function listen() {
  addEventListener("pointerdown", event => { isHeld = at("filter-body").contains(event.target); }, true);
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => {
    isHeld = false;
    if (waiting) setTimeout(() => waiting && draw(waiting));
  }, true);
}

const heading = (name, type) => make("h2", {}, apart(short(name, 200)), make("span", { class: "researcher type" }, ` ${type}`));

function text() {
  const { where } = app.state;
  const name = bounded()[0]?.[0] ?? Object.keys(index().columns)[0], type = index().columns[name], c = column(name);
  const example = `such as ${type === "date" ? `${c} >= '2015-01-01'` : type === "integer" || type === "float" ? `${c} >= 2000` : `${c} is not None`}`;
  const input = make("textarea", { id: "where", rows: "2", spellcheck: "false", placeholder: example, oninput: changed, onkeydown: event => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    filter(input.value.trim());
  } });
  input.value = where;
  const apply = button("Apply", () => filter(input.value.trim()), { class: "plain", hidden: true });
  function changed() {
    apply.hidden = input.value.trim() === where;
  }
  return make("div", { class: "written facet researcher" }, make("label", { for: "where" }, "Condition"), input, make("p", {}, apply));
}

function values(name, type, facet) {
  const own = chosen(app.state.where, name, type);
  const all = [...facet.filter(({ value }) => value !== null), ...own.filter(v => !facet.some(({ value }) => value === v)).map(value => ({ value, count: 0 }))];
  if (!all.length) return null;
  const list = make("ul"), more = button("", () => {
    if (!open.delete(name)) open.add(name);
    paint();
  }, { class: "plain more" });
  const find = make("input", { type: "search", class: "find", id: `find-${name}`, placeholder: "Find", "aria-label": `Find a value of ${name}`, oninput: () => {
    finding.set(name, find.value);
    paint();
  } });
  find.value = finding.get(name) ?? "";
  function item({ value, count }) {
    const choice = button("", () => filter(toggled(app.state.where, name, type, value)), { "aria-pressed": String(own.includes(value)), "data-facet": JSON.stringify([name, value]) });
    choice.append(apart(short(shown(value), 200)), " ", make("span", { class: "count" }, count.toLocaleString("en")));
    return make("li", {}, choice);
  }
  function paint(others = null) {
    const text = plain(find.value.trim()), those = text ? (others ?? all).filter(({ value }) => plain(shown(value)).includes(text)) : all;
    const first = those.filter(({ value }, i) => text ? i < FOUND : open.has(name) ? i < MOST : i < VALUES || own.includes(value));
    list.replaceChildren(...first.map(item), ...first.length ? [] : [make("li", { class: "kind" }, "No value")]);
    more.textContent = open.has(name) ? "show fewer" : `show all ${Math.min(all.length, MOST).toLocaleString("en")}`;
    more.setAttribute("aria-expanded", String(open.has(name)));
    more.hidden = Boolean(text);
    if (text && !others && facet.length >= COUNTED_VALUES) found(name, type, find.value.trim()).then(paint, () => {});
  }
  paint();
  return make("section", { class: "facet", "aria-label": name }, heading(name, type), ...all.length > VALUES ? [find, list, more] : [list]);
}

/** The values of a column that contain a text, with their counts, from the server: it sends the most frequent ones otherwise. */
async function found(name, type, text) {
  const where = without(app.state.where, name, type);
  return (await ask(`find ${name}`, "search", { ...asked, where, facets: name, facet_query: text, k: 1, snippets: "false" })).facets[name];
}

/** A text without capitals and accents. */
const plain = text => text.normalize("NFD").replace(/\p{M}/gu, "").toLocaleLowerCase("en");

/** A chart, a slider for numbers, and fields for exact values; the three say and set the same. */
function bounds(name, type, bins) {
  const own = range(app.state.where, name), choose = (bounds, pause) => bound(name, type, bounds, pause);
  const kind = type === "date" ? { type: "text", placeholder: "YYYY-MM-DD" } : { type: "number", step: type === "integer" ? "1" : "any", placeholder: "any" };
  const fields = own.map((value, i) => {
    const input = make("input", { ...kind, id: `bound-${i}-${name}`, "aria-label": `${name} ${i ? "to" : "from"}`, onchange: apply });
    input.value = value;
    return input;
  });
  function apply() {
    if (!fields.every(input => input.checkValidity())) return fields.find(input => !input.checkValidity()).reportValidity();
    const bounds = fields.map(input => input.value.trim());
    setTimeout(() => filter(ranged(app.state.where, name, type, bounds)));  // once the focus is where it goes, as the fields are drawn anew
  }
  const bars = chart({ name, type, bins, own, choose });
  const moved = bounds => {
    fields.forEach((field, i) => { field.value = bounds[i]; });
    bars.paint(bounds);
  };
  return make("section", { class: "facet", "aria-label": name }, heading(name, type), bars, type === "date" ? null : slider({ name, type, bins, own, moved, choose }),
    make("div", { class: "bounds" }, fields[0], make("span", { "aria-hidden": "true" }, "–"), fields[1]));
}

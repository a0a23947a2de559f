// A histogram whose bars choose a range: by a click, by dragging over several, or by keys.

import { count, figure, make } from "./dom.js";

const PAUSE = 400;  // milliseconds after a key with Shift before the range is applied
const anchors = new Map(), stops = new Map();  // by column: where a range that grows by keys began, and the bar that Tab reaches
let charts = 0;

/** What a bin holds, as short as it can be said: a year, months, days, or values. */
export function span({ from, to }, type) {
  if (type !== "date") return from === to ? figure(from) : `${figure(from)} to ${figure(to)}`;
  const [first, last] = [from.slice(0, 10), to.slice(0, 10)], next = new Date(`${last}T00:00:00Z`);
  next.setUTCDate(next.getUTCDate() + 1);
  const cut = /-01-01$/.test(first) && /-12-31$/.test(last) ? -6 : /-01$/.test(first) && next.getUTCDate() === 1 ? -3 : undefined;
  const [begin, end] = [first.slice(0, cut), last.slice(0, cut)];
  return begin === end ? begin : `${begin} to ${end}`;
}

const ends = (bins, type) => [bins[0], bins[bins.length - 1]].map((bin, i) => span(bin, type).split(" to ").at(i ? -1 : 0));

/** Whether a bin has values within bounds; no bounds have none. */
function isWithin({ from, to }, [low, high], type) {
  if (low === "" && high === "") return false;
  const [least, most] = type === "date" ? [low, high] : [low, high].map(bound => bound === "" ? "" : Number(bound));
  return (least === "" || (type === "float" && from !== to ? to > least : to >= least)) && (most === "" || (type === "float" && from !== to ? from < most : from <= most));
}

/**
 * The chart of a column, or null for a single bin. `own` are the bounds that hold, `choose(bounds, pause)` sets others; its `paint(bounds)`
 * marks the bars within bounds.
 */
export function chart({ name, type, bins, own, choose }) {
  if (bins.length < 2) return null;
  const most = Math.max(...bins.map(bin => bin.count)), total = bins.reduce((sum, bin) => sum + bin.count, 0), id = `chart-${++charts}`;
  const [first, last] = ends(bins, type), highest = bins.find(bin => bin.count === most);
  const axis = make("p", { class: "axis", "aria-hidden": "true" });
  const about = make("p", { id, class: "hidden" }, `${count(total, "document")} from ${first} to ${last}; the most, ${most.toLocaleString("en")}, in ${span(highest, type)}. `
    + "Arrow keys go from bar to bar, Enter filters by one, Shift with an arrow key by several.");
  const bars = bins.map((bin, i) => {
    const bar = make("button", { type: "button", tabindex: "-1", title: `${bin.from === bin.to ? bin.from : `${bin.from} to ${bin.to}`}: ${bin.count.toLocaleString("en")}`,
      "aria-label": `${span(bin, type)}: ${count(bin.count, "document")}`, "data-facet": JSON.stringify([name, bin.from]),
      onclick: event => { if (!event.detail) apply(i, i); }, onfocus: () => tell(bin), onpointerenter: () => tell(bin), onblur: () => tell(null) }, make("span"));
    bar.firstChild.style.setProperty("--share", String(bin.count / most));
    return bar;
  });
  const group = make("div", { class: "bars", role: "group", "aria-label": `${name}: documents by value`, "aria-describedby": id,
    onpointerdown: begin, onpointermove: move, onpointerup: end, onpointercancel: () => { from = null; paint(own); }, onpointerleave: () => tell(null), onkeydown: pressed }, bars);
  const element = make("div", { class: "chart" }, group, axis, about);
  let from = null, to = null;

  function tell(bin) {
    axis.replaceChildren(...bin ? [make("span", {}, `${span(bin, type)}: ${bin.count.toLocaleString("en")}`)] : [make("span", {}, first), make("span", {}, last)]);
  }

  function paint(bounds) {
    bars.forEach((bar, i) => {
      const within = isWithin(bins[i], bounds, type);
      bar.classList.toggle("pressed", within);
      bar.setAttribute("aria-pressed", String(within));
    });
  }

  const bounds = (a, b) => [bins[Math.min(a, b)].from, bins[Math.max(a, b)].to].map(String);

  function apply(a, b) {
    const wanted = bounds(a, b);
    choose(a === b && wanted.every((bound, i) => bound === own[i]) ? ["", ""] : wanted);
  }

  function under(event) {
    const { left, width } = group.getBoundingClientRect();
    return Math.max(0, Math.min(bins.length - 1, Math.floor((event.clientX - left) / width * bins.length)));
  }

  function begin(event) {
    if (event.button) return;
    from = to = under(event);
    group.setPointerCapture(event.pointerId);
    paint(bounds(from, to));
  }

  function move(event) {
    if (from === null) return;
    to = under(event);
    paint(bounds(from, to));
    const [low] = bounds(from, to), high = bounds(from, to)[1];
    tell({ from: type === "date" ? low : Number(low), to: type === "date" ? high : Number(high), count: bins.slice(Math.min(from, to), Math.max(from, to) + 1).reduce((sum, bin) => sum + bin.count, 0) });
  }

  function end() {
    if (from === null) return;
    const [a, b] = [from, to];
    from = null;
    stop(b);
    apply(a, b);
  }

  function pressed(event) {
    const here = bars.indexOf(document.activeElement), there = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: bins.length - 1 }[event.key];
    if (there === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (!bars[there]) return;
    stop(there);
    bars[there].focus();
    if (!event.shiftKey) return anchors.delete(name);
    if (!anchors.has(name)) anchors.set(name, bins[here].from);
    const anchor = Math.max(0, bins.findIndex(bin => bin.from === anchors.get(name)));
    paint(bounds(anchor, there));
    choose(bounds(anchor, there), PAUSE);
  }

  function stop(i) {
    stops.set(name, bins[i].from);
    bars.forEach((bar, other) => { bar.tabIndex = other === i ? 0 : -1; });
  }

  stop(Math.max(0, bins.findIndex(bin => bin.from === stops.get(name))));
  paint(own);
  tell(null);
  element.paint = paint;
  return element;
}

// A line with two handles: the least and the greatest number.

import { make } from "./dom.js";

const PAUSE = 300, STEPS = 10;  // milliseconds after a change before it holds; steps in a bin

/** How far a handle goes at a time: a whole number for whole numbers. */
function step(bins, type) {
  const width = bins[0].to - bins[0].from + (type === "integer" ? 1 : 0);
  if (type === "integer") return Math.max(1, Math.round(width / STEPS));
  return Number((width / STEPS || (bins.at(-1).to - bins[0].from) / 100).toPrecision(6));
}

/**
 * The slider of a column of numbers, or null for a single bin. `own` are the bounds that hold, `moved(bounds)` is called with others
 * as a handle moves, and `choose(bounds, pause)` when it rests. A handle at its end is no bound.
 */
export function slider({ name, type, bins, own, moved, choose }) {
  if (bins.length < 2) return null;
  const by = step(bins, type), low = bins[0].from, high = low + Math.ceil((bins.at(-1).to - low) / by - 1e-6) * by;
  const digits = Math.min(12, Math.max(0, Math.ceil(-Math.log10(by)) + 1)), written = value => String(Number(value.toFixed(digits)));
  const handles = own.map((bound, i) => {
    const handle = make("input", { type: "range", min: low, max: high, step: by, id: `handle-${i}-${name}`, "aria-label": `${name}, ${i ? "greatest" : "least"}`, oninput: move, onchange: () => choose(bounds(), PAUSE) });
    handle.value = bound === "" ? (i ? high : low) : bound;
    return handle;
  });
  const element = make("div", { class: "slider" }, handles), values = () => handles.map(handle => Number(handle.value));
  const bounds = () => values().map((value, i) => i ? value >= high ? "" : written(value) : value <= low ? "" : written(value));

  function draw() {
    const shares = values().map(value => (value - low) / (high - low));
    shares.forEach((share, i) => element.style.setProperty(i ? "--to" : "--from", String(share)));
    handles.forEach((handle, i) => {
      handle.setAttribute("aria-valuetext", written(values()[i]));
      handle.classList.toggle("above", !i && shares[0] > .5);  // the handle that can still move is on top
    });
  }

  function move(event) {
    const [least, greatest] = values();
    if (least > greatest) event.target.value = event.target === handles[0] ? greatest : least;
    draw();
    moved(bounds());
  }

  draw();
  return element;
}

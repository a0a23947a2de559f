// In what order results are: by their scores, or by a column of dates or numbers.

import { app, go, index } from "./app.js";
import { at, make, short } from "./dom.js";
import { ORDERED } from "./filter.js";

const COLUMNS = 6;

const sortable = () => index().facets.filter(name => ORDERED.includes(index().columns[name])).slice(0, COLUMNS);

/** An order in words. */
export function ordered(name, descending) {
  const [up, down] = index().columns[name] === "date" ? ["oldest", "newest"] : ["lowest", "highest"];
  return `${short(name, 60)}, ${descending ? down : up} first`;
}

/** Draws the choice above the results, or nothing. */
export function drawOrder(isShown) {
  const { sort, descending } = app.state, names = [...new Set([...sortable(), ...sort ? [sort] : []])];
  const orders = names.flatMap(name => ["true", ""].map(down => ({ sort: name, descending: down })));
  const select = make("select", { id: "sort", onchange: () => go(orders[select.selectedIndex - 1] ?? { sort: "", descending: "" }) },
    make("option", { selected: !sort }, "Best match"), orders.map(one => make("option", { selected: one.sort === sort && one.descending === descending }, ordered(one.sort, one.descending))));
  const focused = document.activeElement?.id === "sort";
  at("order").replaceChildren(...isShown && names.length ? [make("label", {}, make("span", {}, "Sort by"), select)] : []);
  if (focused) at("sort")?.focus();
}

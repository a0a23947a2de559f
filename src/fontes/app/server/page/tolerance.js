// Tolerance: misspelt and unfinished words are searched with their neighbours, which is said, and switched off by a click.

import { app, go, href, isTyped } from "./app.js";
import { apart, link, make } from "./dom.js";

const SHOWN = 3;  // neighbours of a word

/** How the server shall read the words: the last one is a beginning while one types. */
export const tolerance = () => app.state.tolerance || app.state.syntax ? "off" : isTyped() ? "typing" : "auto";

/** The words that were searched besides those of the query. */
export const neighbours = ({ tolerated = [] }) => tolerated.flatMap(({ also }) => also.slice(0, SHOWN).map(({ word }) => word));

/** The line that says which words were searched besides, with the way to the query as it was typed. */
export function forgiven({ tolerated = [] }) {
  if (!tolerated.length) return [];
  const words = tolerated.map(({ word, also }, i) => [i ? "; " : "", also.slice(0, SHOWN).map((own, j) => [j ? ", " : "", make("b", {}, apart(own.word))]).flat(),
    also.length > SHOWN ? " …" : "", " for ", apart(word, { class: "typed" })]).flat(2);
  const exact = link(href({ tolerance: "off" }), () => go({ tolerance: "off" }), { class: "exact" }, "Search exactly as typed");
  return [make("p", { class: "meant forgiven" }, make("span", {}, "Also searched: ", ...words), exact)];
}

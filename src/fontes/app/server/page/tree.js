// Explanations as trees that fold, and the colours of their terms.

import { apart, figure, make, weighed } from "./dom.js";

const TERM = /^(['"])(.*)\1$/s;

/** An explanation: `value`, `label` and `parts`, the first two levels open. */
export function explained(explanation) {
  const terms = termsOf(explanation), most = Math.max(...terms.values(), 0);
  const node = (part, depth) => {
    const term = TERM.exec(part.label)?.[2];
    const label = apart(term ?? part.label, { class: term === undefined ? "label" : "label term" });
    if (term !== undefined && most > 0) weighed(label, part.value / most);
    const line = [make("span", { class: "value" }, figure(part.value)), " ", label];
    if (!part.parts?.length) return make("li", {}, make("div", { class: "leaf" }, line));
    return make("li", {}, make("details", { open: depth < 1 }, make("summary", {}, line), make("ul", {}, part.parts.map(p => node(p, depth + 1)))));
  };
  return make("ul", { class: "tree", "aria-label": "Explanation of the score" }, node(explanation, 0));
}

/** The terms of an explanation, each with the largest value that it has there. */
export function termsOf(explanation, terms = new Map()) {
  const term = TERM.exec(explanation.label)?.[2];
  if (term !== undefined) terms.set(term, Math.max(terms.get(term) ?? 0, explanation.value));
  for (const part of explanation.parts ?? []) termsOf(part, terms);
  return terms;
}

/** The weight, from 0 to 1, of a word: that of the term with which it begins in common the longest. */
export function weigher(terms) {
  const most = Math.max(...terms.values(), 0);
  return word => {
    const text = word.toLocaleLowerCase("en");
    let best = 0, weight = 0;
    for (const [term, value] of terms) {
      let same = 0;
      while (same < term.length && same < text.length && term[same] === text[same]) same++;
      if (same > best) [best, weight] = [same, value];
    }
    return best >= Math.min(2, text.length) && most > 0 ? weight / most : 0;
  };
}

// What the parts of the page share: the state, what there is to search, and the way to another state.

import { address, read } from "./state.js";

const SEARCHED = ["view", "index", "q", "pipeline", "against", "k", "syntax", "where", "sort", "descending", "tolerance"];

export const app = { state: read(), indexes: [], limits: { k: 1000, explained: 100 }, anyPipeline: false, show: () => {} };

/** The index that is searched, as the server describes it. */
export const index = () => app.indexes.find(({ name }) => name === app.state.index) ?? app.indexes[0];

export const pipeline = () => app.state.pipeline || index().pipelines[0].name;

/** The state after changes; another search begins with its first page, and without explanations. */
function changed(changes) {
  const next = { ...app.state, ...changes };
  return SEARCHED.some(name => next[name] !== app.state[name]) ? { ...next, offset: 0, why: [], why2: [] } : next;
}

export const href = changes => address(changed(changes));

/**
 * Goes to another state: a new entry of the history, or in place of this one. Changes of the same `step`, such as a text as it is
 * typed, share an entry while nothing comes between them.
 */
export function go(changes, { replace = false, step = "" } = {}) {
  const before = app.state;
  app.state = changed(changes);
  const to = address(app.state);
  if (to !== address(before)) history[replace || step && history.state?.step === step ? "replaceState" : "pushState"](step ? { step } : null, "", to);
  app.show(before);
}

/** Ends a step: the next change is a new entry of the history. */
export const settle = () => history.replaceState(null, "", location.href);

/** Whether the query is still being typed. */
export const isTyped = () => history.state?.step === "q";

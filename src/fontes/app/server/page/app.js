// What the parts of the page share: the state, what there is to search, and the way to another state.

import { address, read } from "./state.js";

export const app = { state: read(), indexes: [], limits: { k: 1000, explained: 100 }, anyPipeline: false, show: () => {} };

/** The index that is searched, as the server describes it. */
export const index = () => app.indexes.find(({ name }) => name === app.state.index) ?? app.indexes[0];

export const pipeline = () => app.state.pipeline || index().pipelines[0].name;

export const href = changes => address({ ...app.state, ...changes });

/** Goes to another state: a new entry of the history, or in place of this one. */
export function go(changes, { replace = false } = {}) {
  const before = app.state;
  app.state = { ...before, ...changes };
  const to = address(app.state);
  if (to !== address(before)) history[replace ? "replaceState" : "pushState"](null, "", to);
  app.show(before);
}

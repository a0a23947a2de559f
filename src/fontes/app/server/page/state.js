// What is shown, as the address has it.

const DEFAULTS = {
  view: "search", index: "", q: "", pipeline: "", against: "", k: 10, offset: 0, sort: "", descending: "", syntax: "", where: "", only: "", tolerance: "",
  doc: "", why: [], why2: [],
  talk: "", rewriter: "", depth: 3, breadth: 3, weak: "", leads: 0,
};

export function read(search = location.search) {
  const params = new URLSearchParams(search), state = {};
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const own = params.get(name);
    if (Array.isArray(value)) state[name] = params.getAll(name);
    else if (typeof value === "number") state[name] = /^\d{1,6}$/.test(own ?? "") ? Number(own) : value;
    else state[name] = own ?? value;
  }
  if (!["search", "talk", "why"].includes(state.view)) state.view = "search";
  if (!state.sort || state.descending !== "true") state.descending = "";
  if (state.tolerance !== "off") state.tolerance = "";
  return state;
}

export function address(state) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (Array.isArray(value)) for (const each of state[name]) params.append(name, each);
    else if (state[name] !== value && state[name] !== "") params.set(name, state[name]);
  }
  const text = params.toString();
  return text ? `?${text}` : ".";
}

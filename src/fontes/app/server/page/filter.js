// The filter as text, and its conditions as something to click. The text is what holds; what is not understood here is left as it is.

import { shown } from "./dom.js";

/** Types of columns that have bounds. */
export const ORDERED = ["date", "float", "integer"];

const NAME = /^[A-Za-z_]\w*$/;
const KEYWORDS = new Set("and or not in is None True False if else for lambda while def class return metadata".split(" "));

export const column = name => NAME.test(name) && !KEYWORDS.has(name) ? name : `metadata[${literal(name)}]`;

export function literal(value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  const escaped = value.replace(/[\\']/g, "\\$&").replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `'${escaped}'`;
}

/** The conditions that are joined by "and" at the top; a text with an "or" there is one condition. */
export function conditions(where) {
  const parts = [];
  let depth = 0, quote = "", start = 0;
  for (let i = 0; i < where.length; i++) {
    const c = where[i];
    if (quote) {
      if (c === "\\") i++;
      else if (c === quote) quote = "";
    } else if (c === "'" || c === '"') quote = c;
    else if ("([{".includes(c)) depth++;
    else if (")]}".includes(c)) depth--;
    else if (depth === 0) {
      const word = /^(and|or)(?![\w])/.exec(where.slice(i, i + 4))?.[1];
      if (word && (i === 0 || !/\w/.test(where[i - 1]))) {
        if (word === "or") return [where.trim()];
        parts.push(where.slice(start, i).trim());
        start = i + 3;
        i += 2;
      }
    }
  }
  parts.push(where.slice(start).trim());
  return parts.filter(Boolean);
}

const joined = parts => parts.length === 1 ? parts[0] : parts.map(part => hasOr(part) ? `(${part})` : part).join(" and ");

function hasOr(part) {
  let depth = 0;
  const bare = part.replace(/'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"/g, "''");
  for (let i = 0; i < bare.length; i++) {
    if ("([{".includes(bare[i])) depth++;
    else if (")]}".includes(bare[i])) depth--;
    else if (!depth && /^or\b/.test(bare.slice(i, i + 3)) && !/\w/.test(bare[i - 1] ?? " ")) return true;
  }
  return false;
}

/** Conditions on one column of a type, as this file writes them. */
function own(name, type, part) {
  const c = column(name);
  if (type === "boolean") return part === c ? [true] : part === `not ${c}` ? [false] : null;
  if (type === "keywords") return part.endsWith(` in ${c}`) && part.startsWith("'") ? strings(part.slice(0, -` in ${c}`.length)) : null;
  if (part.startsWith(`${c} == '`)) return strings(part.slice(c.length + 4));
  return part.startsWith(`${c} in ('`) && part.endsWith(")") ? strings(part.slice(c.length + 5, -1)) : null;
}

function strings(text) {
  const values = [], one = /\s*'((?:\\.|[^'\\])*)'\s*(?:,|$)/y;
  while (one.lastIndex < text.length) {
    const match = one.exec(text);
    if (!match) return null;
    values.push(match[1].replace(/\\u([0-9a-f]{4})|\\(.)/g, (_, hex, c) => hex ? String.fromCharCode(parseInt(hex, 16)) : c));
  }
  return values;
}

/** The values of a column that are chosen. */
export const chosen = (where, name, type) => conditions(where).flatMap(part => own(name, type, part) ?? []);

/** The filter without the conditions on a column that were clicked. */
export const without = (where, name, type) => joined(conditions(where).filter(part => own(name, type, part) === null));

/** The filter with a value chosen, or no more. */
export function toggled(where, name, type, value) {
  const before = chosen(where, name, type), c = column(name);
  const values = before.includes(value) ? before.filter(v => v !== value) : type === "boolean" ? [value] : [...before, value];
  const rest = conditions(where).filter(part => own(name, type, part) === null);
  const written = !values.length ? [] : type === "boolean" ? [values[0] ? c : `not ${c}`]
    : type === "keywords" ? values.map(v => `${literal(v)} in ${c}`)
    : [values.length === 1 ? `${c} == ${literal(values[0])}` : `${c} in (${values.map(literal).join(", ")})`];
  return joined([...rest, ...written]);
}

/** What a filter asks for, one by one: the column, or "", what is asked of it, and the filter without that. */
export function pieces(where, columns) {
  const all = conditions(where), bounded = new Set();
  return all.flatMap(part => {
    for (const [name, type] of Object.entries(columns)) {
      const values = own(name, type, part);
      if (values) return values.map(value => ({ name, text: shown(value), rest: toggled(where, name, type, value) }));
      if (!ORDERED.includes(type) || ![">=", "<="].some(sign => bound(name, sign).test(part))) continue;
      const [low, high] = range(where, name), text = low && high ? `${low} to ${high}` : low ? `from ${low}` : `to ${high}`;
      return bounded.has(name) ? [] : [bounded.add(name) && { name, text, rest: ranged(where, name, type, ["", ""]) }];
    }
    return [{ name: "", text: part, rest: joined(all.filter(one => one !== part)) }];
  });
}

const bound = (name, sign) => new RegExp(`^${column(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")} ${sign} (.+)$`, "s");

/** The least and the largest value of a column, as they were typed. */
export function range(where, name) {
  return [">=", "<="].map(sign => {
    const value = conditions(where).map(part => bound(name, sign).exec(part)?.[1]).find(Boolean) ?? "";
    return value.startsWith("'") ? strings(value)?.[0] ?? "" : value;
  });
}

/** The filter with these bounds; an empty one is none. */
export function ranged(where, name, type, bounds) {
  const rest = conditions(where).filter(part => !bound(name, ">=").test(part) && !bound(name, "<=").test(part));
  const written = bounds.flatMap((value, i) => value === "" ? [] : [`${column(name)} ${i ? "<=" : ">="} ${type === "date" ? literal(value) : value}`]);
  return joined([...rest, ...written]);
}

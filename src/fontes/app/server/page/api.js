// Requests. One that is overtaken by another for the same place is given up.

const running = new Map();

/** What every request says besides, such as a token. */
export const headers = {};

/** What the server, or the way to it, refuses; the message is a sentence. */
export class Problem extends Error {
  constructor(detail, status = 0) {
    super(detail);
    this.status = status;
  }
}

export const overtaken = error => error instanceof DOMException && error.name === "AbortError";

/** The answer from `path`, as JSON; `place` is what is waiting for it. */
export async function ask(place, path, query = {}, body = undefined) {
  running.get(place)?.abort();
  const controller = new AbortController();
  running.set(place, controller);
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
  const options = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(text ? `${path}?${text}` : path, { ...options, signal: controller.signal });
    const values = answer.status === 204 ? null : await answer.json().catch(error => {
      if (overtaken(error)) throw error;
      throw new Problem("The server's answer cannot be read.", answer.status);
    });
    if (!answer.ok) throw new Problem(sentence(values.detail ?? answer.statusText), answer.status);
    return values;
  } catch (error) {
    if (error instanceof TypeError) throw new Problem("The server does not answer.");
    throw error;
  } finally {
    if (running.get(place) === controller) running.delete(place);
  }
}

/** Gives up what a place waits for. */
export const giveUp = place => running.get(place)?.abort();

/** Gives up what all places wait for whose names begin so. */
export const giveUpAll = prefix => [...running].filter(([place]) => place.startsWith(prefix)).forEach(([, controller]) => controller.abort());

/** What the server refuses, as a sentence. */
export function sentence(detail) {
  const text = String(detail).trim();
  return text ? text[0].toLocaleUpperCase("en") + text.slice(1) + (/[.!?)]$/.test(text) ? "" : ".") : "The server refuses this.";
}

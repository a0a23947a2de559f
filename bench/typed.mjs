// MiniSearch and Orama behind lines of JSON, for typed.py: node typed.mjs minisearch|orama CORPUS.jsonl
// A line {"queries": [...], "k": 10} is answered by {"hits": [[[id, score], ...], ...], "seconds": seconds of processor time}.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const [kind, corpus] = process.argv.slice(2);
const documents = [];
for await (const line of createInterface({ input: createReadStream(corpus) })) {
  const { _id, title, text } = JSON.parse(line);
  documents.push({ id: _id, text: `${title ?? ""} ${text}` });
}
let search;
if (kind === "minisearch") {
  const { default: MiniSearch } = await import(`${process.env.FOLDER}/node_modules/minisearch/dist/es/index.js`);
  const index = new MiniSearch({ fields: ["text"], searchOptions: { fuzzy: 0.2, prefix: true } });
  index.addAll(documents);
  search = async (query, k) => index.search(query).slice(0, k).map(hit => [hit.id, hit.score]);
} else {
  const orama = await import(`${process.env.FOLDER}/node_modules/@orama/orama/dist/esm/index.js`);
  const index = await orama.create({ schema: { text: "string" } });
  for (let i = 0; i < documents.length; i += 1000) await orama.insertMultiple(index, documents.slice(i, i + 1000), 1000);
  search = async (query, k) => (await orama.search(index, { term: query, tolerance: 1, limit: k })).hits.map(hit => [hit.id, hit.score]);
}
console.log("=" + JSON.stringify({ documents: documents.length }));
for await (const line of createInterface({ input: process.stdin })) {
  const { queries, k } = JSON.parse(line), hits = [], start = process.cpuUsage();
  for (const query of queries) hits.push(await search(query, k));
  const { user, system } = process.cpuUsage(start);
  console.log("=" + JSON.stringify({ hits, seconds: (user + system) / 1e6 }));
}

// node site_search.js SITE QUERY...: a line of JSON for each query, the addresses that the site's search lists, best first.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, ...queries] = process.argv.slice(2);
const workers = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(workers).find((name) => name.endsWith(".min.js"));
const listeners = [], waiting = [];
const scope = {
  URL, performance, setTimeout, clearTimeout, console: { ...console, warn() {} }, location: { href: "" }, importScripts() {},
  addEventListener: (_, listener) => listeners.push(listener),
  postMessage: (message) => waiting.shift()(message),
};
scope.self = scope.window = scope.globalThis = scope;
vm.createContext(scope);
vm.runInContext(fs.readFileSync(path.join(workers, worker), "utf8"), scope);

function answer(message) {
  return new Promise((resolve) => {
    waiting.push(resolve);
    listeners.forEach((listener) => listener({ data: message }));
  });
}

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await answer({ type: 0, data: { ...index, options: { suggest: false } } });
  for (const query of queries) {
    const { data } = await answer({ type: 2, data: query });
    console.log(JSON.stringify(data.items.map((sections) => sections[0].location)));
  }
  process.exit(0);
})();

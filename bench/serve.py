"""Loads Fontes' server and peers behind HTTP, in turns: requests a second, latencies, errors, memory.

    python bench/serve.py RESULTS.json DATA --work DIR --peers DIR [--seconds 60] [--only "fontes|tantivy"]

DATA has corpus.jsonl.gz and queries.jsonl: passages of Wikipedia, and their titles, which are asked one after the other. wrk
(Debian's package of that name) asks over 50 connections on the loopback with one thread, and so takes a part of one core. The
servers and it share the machine. BM25, k = 10, with titles and snippets; see serve_peers.py. Fontes is loaded once more without
snippets, which bm25s does not make either, and once while another process adds 1,000 documents a second. The indexes are kept
in DIR.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import peers
from harness import machine

HERE = Path(__file__).parent
ENGINES = ("fontes", "fontes, without snippets", "fontes, adding", "tantivy", "bm25s", "pyserini")
PORT = 8947
CONNECTIONS = 50
ADDED = 1000  # documents a second

SCRIPT = """
local requests, n = {}, 0
for line in io.lines("%s") do requests[#requests + 1] = line end
function request()
  n = n %% #requests + 1
  if "%s" == "POST" then
    return wrk.format("POST", "/v1/indexes/passages/search", {["Content-Type"] = "application/json"}, requests[n])
  end
  return wrk.format("GET", requests[n])
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("=[%%d,%%d,%%d,%%d,%%d,%%d,%%d,%%d]\\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), latency.max, e.status, e.connect + e.read + e.write, e.timeout))
end
"""


def build(engine: str, arguments: argparse.Namespace) -> Path:
    """The engine's index, made where it is not there."""
    folder, corpus = arguments.work / f"{engine}.index", arguments.data / "corpus.jsonl.gz"
    if not folder.exists():
        print(f"building {folder}", flush=True)
        if engine == "fontes":
            command = [sys.executable, "-m", "fontes", "index", corpus, "-o", folder, "--quiet"]
            subprocess.run(command, check=True)
        else:
            command = [peers.python(arguments.peers), HERE / "serve_peers.py", "build", engine, corpus, folder]
            subprocess.run(command, check=True, env=peers.environment(arguments.peers))
    return folder


@contextmanager
def server(engine: str, index: Path, arguments: argparse.Namespace) -> Iterator[subprocess.Popen[bytes]]:
    if engine == "fontes":
        command = [sys.executable, "-m", "fontes", "serve", index, "--port", PORT, "--quiet"]
        environment = None
    else:
        command = [peers.python(arguments.peers), HERE / "serve_peers.py", "serve", engine, index, PORT]
        environment = peers.environment(arguments.peers)
    running = subprocess.Popen([str(part) for part in command], env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urlopen(f"http://127.0.0.1:{PORT}/{'ready' if engine == 'fontes' else 'openapi.json'}", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield running
    finally:
        running.terminate()
        running.wait(60)


def memory(process: subprocess.Popen[bytes]) -> list[float]:
    """Resident MB of a process, and those among them that are of no file."""
    status = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
    return [int(status.split(f"\n{name}:")[1].split()[0]) / 1024 for name in ("Rss", "Anonymous")]


def processor(process: subprocess.Popen[bytes]) -> float:
    """Seconds of the processor that a process has had."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def first(engine: str, query: str) -> None:
    """One query, for which bm25s compiles what it runs."""
    if engine != "pyserini":
        urlopen(f"http://127.0.0.1:{PORT}/search?k=10&q={quote(query)}", timeout=300).close()


def load(name: str, seconds: float, queries: list[str], work: Path) -> dict[str, Any]:
    """What wrk measures."""
    method = "POST" if name == "pyserini" else "GET"
    more = "&snippets=false" if name.endswith("without snippets") else ""
    lines = [json.dumps({"query": q, "hits": 10}) if method == "POST" else f"/search?k=10&q={quote(q)}{more}" for q in queries]
    (work / "requests.txt").write_text("\n".join(lines), encoding="utf-8")
    (work / "load.lua").write_text(SCRIPT % (work / "requests.txt", method), encoding="utf-8")
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "--timeout", "30s", "-s", str(work / "load.lua")]
    out = subprocess.run([*command, f"http://127.0.0.1:{PORT}"], check=True, capture_output=True, text=True).stdout
    requests, microseconds, p50, p99, most, *errors = json.loads(next(x for x in out.splitlines() if x.startswith("="))[1:])
    return {
        "rate": requests / microseconds * 1e6,
        "p50": p50 / 1e3,
        "p99": p99 / 1e3,
        "most": most / 1e3,
        "errors": sum(errors),
    }


def adding(index: Path, corpus: Path, ends: threading.Event) -> None:
    """Adds documents in a process of its own, 1,000 a second, until it is to end."""
    program = (
        "import itertools, sys, time; from fontes import Index, read_corpus; index = Index.open(sys.argv[1]);"
        "docs = iter(read_corpus(sys.argv[2])); start = time.time()\n"
        "for turn in itertools.count(1):\n"
        f"  some = [(f'new-{{turn}}-{{doc.id}}', doc.text) for doc in itertools.islice(docs, {ADDED})]\n"
        "  index.add(some, threads=1); print(len(index), flush=True); time.sleep(max(0, start + turn - time.time()))"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(index), str(corpus)], stdout=subprocess.DEVNULL)
    ends.wait()
    process.kill()
    process.wait()


def measure(name: str, arguments: argparse.Namespace, queries: list[str]) -> dict[str, Any]:
    engine = name.partition(",")[0]
    index, ends = build(engine, arguments), threading.Event()
    before = None
    if name.endswith("adding"):
        copy = arguments.work / "living.index"
        shutil.rmtree(copy, ignore_errors=True)
        index, before = Path(shutil.copytree(index, copy)), True
    with server(engine, index, arguments) as running:
        first(engine, queries[0])
        load(name, min(10, arguments.seconds), queries, arguments.work)  # warm
        adder = threading.Thread(target=adding, args=(index, arguments.data / "corpus.jsonl.gz", ends))
        if before:
            adder.start()
        start, worked = memory(running), processor(running)
        result = load(name, arguments.seconds, queries, arguments.work)
        result |= {"start": start, "end": memory(running), "processor": processor(running) - worked}
        if before:
            ends.set()
            adder.join()
            with urlopen(f"http://127.0.0.1:{PORT}/indexes") as answer:
                of_index = json.load(answer)["indexes"][0]
            result |= {"documents": of_index["documents"], "generation": of_index["generation"]}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--peers", type=Path, default=peers.DEFAULT)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="|".join(ENGINES), help="engines, with | between")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    peers.make(arguments.peers)
    with (arguments.data / "queries.jsonl").open(encoding="utf-8") as file:
        queries = [json.loads(line)["text"] for line in file]
    results: dict[str, Any] = {"machine": machine(), "seconds": arguments.seconds, "engines": {}}
    for name in arguments.only.split("|"):
        result = results["engines"][name] = measure(name, arguments, queries)
        print(
            f"{name:24} {result['rate']:8.0f} requests/s  p50 {result['p50']:7.1f} ms  p99 {result['p99']:7.1f} ms  "
            f"{result['errors']} errors  {result['start'][0]:.0f} to {result['end'][0]:.0f} MB, "
            f"{result['start'][1]:.0f} to {result['end'][1]:.0f} of no file  "
            f"{1000 * result['processor'] / max(1, result['rate'] * arguments.seconds):.2f} ms of processor a request",
            flush=True,
        )
    arguments.results.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

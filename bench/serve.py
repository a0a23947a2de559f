"""Loads Fontes' server and peers behind HTTP, in turns: requests a second, latencies, errors, memory.

    FONTES_DATA=DIR python bench/serve.py RESULTS.json [--work DIR] [--seconds 60] [--only "fontes|tantivy"]

The collection is wikipedia_passages; its titles are asked one after the other. load.py asks over 32 connections on the loopback
with one thread, and so takes a part of one core. The servers and it share the machine. BM25, k = 10, with titles, snippets and
the number of matches; see serve_peers.py. Fontes is loaded once more without snippets, which bm25s does not make either, and
once while another process adds 1,000 documents a second. "fontes, writing" also sends one document after the other, half by PUT
and half by a process that adds it, and asks until it is found: seconds from the request, or from the end of the addition. The
indexes are kept in the folder --work.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import peers
from build import COLLECTION
from harness import data_option, machine, table

from fontes import Index

HERE = Path(__file__).parent
ENGINES = ("fontes", "fontes, without snippets", "fontes, adding", "fontes, writing", "tantivy", "bm25s")
PORTS = {"fontes": 8947, "tantivy": 8948, "bm25s": 8949}
CONNECTIONS = 32
ADDED = 1000  # documents a second
TOKEN = "0123456789abcdef"


def build(engine: str, arguments: argparse.Namespace) -> Path:
    """The engine's index, made where it is not there."""
    folder, corpus = arguments.work / f"{engine}.index", arguments.data / COLLECTION / "corpus.jsonl.gz"
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
    """A server that has answered a query, for which bm25s compiles what it runs."""
    port = PORTS[engine]
    if engine == "fontes":
        command = [sys.executable, "-m", "fontes", "serve", index, "--port", port, "--quiet", "--writable"]
        environment = os.environ | {"FONTES_TOKEN": TOKEN}
    else:
        command = [peers.python(arguments.peers), HERE / "serve_peers.py", "serve", engine, index, port]
        environment = peers.environment(arguments.peers)
    running = subprocess.Popen([str(part) for part in command], env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if running.poll() is not None:
                raise SystemExit(f"the server of {engine} ended with {running.returncode}")
            try:
                urlopen(f"http://127.0.0.1:{port}/search?k=10&q=railway", timeout=300).close()
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


def load(name: str, seconds: float, queries: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    """What load.py measures."""
    more = "&snippets=false" if name.endswith("without snippets") else ""
    targets = "\n".join(f"/search?k=10&q={quote(query)}{more}" for query in queries)
    return peers.call(arguments.peers, "load.py", PORTS[name.partition(",")[0]], CONNECTIONS, f"{seconds:g}", stdin=targets)


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


def writing(index: Path, ends: threading.Event, seconds: dict[str, list[float]]) -> None:
    """Write one document after the other, and ask the server for each until it is found."""
    living, address = Index.open(index), f"http://127.0.0.1:{PORTS['fontes']}"
    for number in itertools.count():
        if ends.wait(0.2):
            return
        word, put = f"zq{number:06d}zq", number % 2 == 0
        start = time.time()
        if put:
            body = json.dumps({"text": f"the word {word} and the railway"}).encode()
            headers = {"Authorization": f"Bearer {TOKEN}"}
            urlopen(Request(f"{address}/documents/{word}", body, headers, method="PUT"), timeout=60).close()
        else:
            living.add([(word, f"the word {word} and the railway")], threads=1)
            start = time.time()
        while True:
            with urlopen(f"{address}/search?k=1&q={word}", timeout=60) as answer:
                if json.load(answer)["hits"]:
                    break
        seconds["put" if put else "added"].append(time.time() - start)


def measure(name: str, arguments: argparse.Namespace, queries: list[str]) -> dict[str, Any]:
    engine = name.partition(",")[0]
    index, ends = build(engine, arguments), threading.Event()
    before = None
    if name.endswith("ing"):
        copy = arguments.work / "living.index"
        shutil.rmtree(copy, ignore_errors=True)
        index, before = Path(shutil.copytree(index, copy)), True
    with server(engine, index, arguments) as running:
        load(name, min(10, arguments.seconds), queries, arguments)  # warm
        written: dict[str, list[float]] = {"put": [], "added": []}
        corpus = arguments.data / COLLECTION / "corpus.jsonl.gz"
        change, more = (writing, (ends, written)) if name.endswith("writing") else (adding, (corpus, ends))
        adder = threading.Thread(target=change, args=(index, *more))
        if before:
            adder.start()
        start, worked = memory(running), processor(running)
        result: dict[str, Any] = load(name, arguments.seconds, queries, arguments)
        result |= {"start": start, "end": memory(running), "processor": processor(running) - worked}
        if before:
            ends.set()
            adder.join()
            with urlopen(f"http://127.0.0.1:{PORTS[engine]}/indexes") as answer:
                of_index = json.load(answer)["indexes"][0]
            result |= {"documents": of_index["documents"], "generation": of_index["generation"]}
        for way, some in written.items():
            if some:
                result[f"{way}, s until found: p50, p99, most"] = [
                    statistics.median(some),
                    sorted(some)[int(0.99 * len(some))],
                    max(some),
                ]
                result[f"{way}, documents"] = len(some)
    return result


def titles(data: Path) -> list[str]:
    with (data / COLLECTION / "queries.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--work", type=Path, default=peers.DEFAULT / "serve", help="for the indexes (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="|".join(ENGINES), help="engines, with | between")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(arguments.work / "fontes.index", ignore_errors=True)  # of another version
    arguments.peers = peers.make_other("quick")
    queries = titles(arguments.data)
    rows = []
    results: dict[str, Any] = {"machine": machine(), "seconds": arguments.seconds, "engines": {}}
    for name in arguments.only.split("|"):
        result = results["engines"][name] = measure(name, arguments, queries)
        print(name, result, flush=True)
        cells = [f"{result['rate']:,.0f}", *(f"{result[value]:.0f}" for value in ("p50", "p99", "errors"))]
        processor = 1000 * result["processor"] / (result["rate"] * arguments.seconds)
        rows.append([name.replace("fontes", "Fontes"), *cells, f"{result['end'][0]:.0f}", f"{processor:.2f}"])
    header = ["requests a second", "p50, ms", "p99, ms", "errors", "memory at the end, MB", "CPU time a request, ms"]
    table(results["machine"], ["", *header], rows)
    arguments.results.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measures speed beside tantivy and bm25s in two minutes, and compares the ratios with those of docs/benchmarks.md.

    python bench/quick.py [--write] [--data DIR] [--work DIR]

Prints Fontes' figures, and its figure divided by each peer's, beside the same ratio on the page; names the ratios that are off
by more than a fifth, and then ends with 1. A part with such a row is measured a second time first, as other work on the machine
may be the cause. --write puts the figures into the page's table instead: on an idle machine.

Figures are the best of some turns, in which engines follow one another. Of searches they are processor time, of the others
time of the wall. Engines of searches get the same terms, and their matches and scores are compared before (queries.py).
The collection is DIR/wikipedia_passages; DIR is ../shared/data or what FONTES_SHARED names. The peers' environment and indexes
are made once, in bench/.peers/quick.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import peers
import queries
import serve
from build import COLLECTION, build
from harness import HERE, machine, process, table

PAGE = HERE.parent / "docs" / "benchmarks.md"
TABLE = re.compile(r"\| in turns \|.*?\n\nOn [^\n]*", re.DOTALL)  # with the line that names the machine
PEERS = ("tantivy", "bm25s")
KINDS = {
    "term": "one word",
    "union-long": "a sentence",
    "phrase": "a title as a phrase",
    "must": "`+a b c`",
    "filter": "a title, in a tenth of the documents",
}
WAYS = {"top": "k = 10", "top1000": "k = 1,000"}
MORE = "requests a second"  # the row of which more is better
QUERY = "the history of the railway"
BUILT = 50_000
OFF = 1.2
Row = dict[str, float]  # the figure of each engine
Rows = dict[str, Row]


def searches(given: argparse.Namespace) -> Rows:
    """Microseconds of the processor a query."""
    times = queries.measured(given, given.folder)
    return {
        f"{KINDS[kind]}, {WAYS[way]}, µs": {engine: 1e3 * min(some) for engine, some in own.items()}
        for name, own in times.items()
        for kind, way in [name.split()]
    }


def builds(given: argparse.Namespace) -> Rows:
    """Seconds of the first passages with stored texts (bm25s: without), from the file or from memory."""
    row: dict[str, list[float]] = {"tantivy": [], "bm25s": [], "fontes": []}
    for _ in range(2):
        for engine, seconds in row.items():
            name = "fontes-file" if engine == "fontes" else engine
            threads = 1 if engine == "bm25s" else 2
            report = build(name, given.peers, given.corpus, threads, engine == "tantivy", most=1, patience=0).report
            seconds.append(report["seconds"]["build"])
    return {f"build of {BUILT:,} passages, two threads, s": best(row)}


def serving(given: argparse.Namespace) -> Rows:
    """Both servers run, and are loaded in turns."""
    titles = serve.titles(given.data)
    rates: dict[str, list[float]] = {"fontes": [], "tantivy": []}
    slowest: dict[str, list[float]] = {"fontes": [], "tantivy": []}
    ours, theirs = (serve.server(engine, serve.build(engine, given), given) for engine in rates)
    with ours, theirs:
        for turn in range(4):
            for engine in rates:
                load = serve.load(engine, 4 if turn else 2, titles, given)
                if load["errors"]:
                    raise SystemExit(f"{load['errors']} requests to the server of {engine} failed")
                if turn:
                    rates[engine].append(load["rate"])
                    slowest[engine].append(load["p99"])
    return {MORE: {engine: max(some) for engine, some in rates.items()}, "p99 of these, ms": best(slowest)}


def starts(given: argparse.Namespace) -> Rows:
    """`fontes search`, and a program that opens an index and prints the same."""
    commands = {
        "fontes": [sys.executable, "-m", "fontes", "search", serve.build("fontes", given), QUERY],
        "tantivy": [
            peers.python(given.peers),
            HERE / "serve_peers.py",
            "search",
            "tantivy",
            serve.build("tantivy", given),
            QUERY,
        ],
    }
    row: dict[str, list[float]] = {engine: [] for engine in commands}
    for _ in range(6):
        for engine, command in commands.items():
            row[engine].append(1e3 * process(command, most=1, patience=0).wall)
    return {"`fontes search` as a process, ms": best(row)}


def commits(given: argparse.Namespace) -> Rows:
    """Commits of one document to copies of the indexes, and the first query after each."""
    copy = given.work / "living"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    (copy / "queries.jsonl").symlink_to(given.folder / "queries.jsonl")
    workers = {}
    for engine in ("fontes", "tantivy"):
        shutil.copytree(given.folder / engine, copy / engine)
        workers[engine] = queries.worker(given, engine, "serve", copy)
        workers[engine].answer()
    seconds: dict[str, list[list[float]]] = {engine: [] for engine in workers}
    sentences = list(KINDS).index("union-long") * given.each * queries.turns(given)
    for query in range(sentences, sentences + 8):
        for engine, worker in workers.items():
            seconds[engine] += worker.answer(way="commit", first=query, last=query + 1)
    for worker in workers.values():
        worker.end()
    commit, first = ({engine: 1e3 * min(x[step] for x in some) for engine, some in seconds.items()} for step in (0, 1))
    return {"a commit of one document, ms": commit, "the first query after it, ms": first}


PARTS: tuple[Callable[[argparse.Namespace], Rows], ...] = (builds, searches, serving, starts, commits)


def best(row: dict[str, list[float]]) -> Row:
    return {engine: min(some) for engine, some in row.items()}


def better(row: str, one: Row, other: Row) -> Row:
    return {engine: (max if row == MORE else min)(one[engine], other[engine]) for engine in one}


def ratios(row: Row) -> Row:
    return {peer: row["fontes"] / row[peer] for peer in PEERS if peer in row}


def kept(page: str) -> Rows:
    """The ratios in the page's table."""
    found: Rows = {}
    for line in TABLE.search(page)[0].splitlines()[2:]:  # type: ignore[index]
        if line.startswith("|"):
            name, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found[name] = {peer: float(cell) for peer, cell in zip(PEERS, cells, strict=True) if cell}
    return found


def written(rows: Rows, page: str, where: str) -> str:
    """The page with these figures in its table."""
    lines = ["| in turns | Fontes | / tantivy | / bm25s |", "|---|---:|---:|---:|"]
    for name, row in rows.items():
        cells = [figure(ratios(row)[peer]) if peer in row else "" for peer in PEERS]
        lines.append(f"| {name} | {figure(row['fontes'])} | {' | '.join(cells)} |")
    block = "\n".join(lines) + f"\n\nOn {where}."
    return TABLE.sub(lambda _: block, page, count=1)


def figure(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def off(name: str, row: Row, before: Rows) -> list[str]:
    """What is to be said of the ratios that differ from the page's by more than a fifth."""
    said = []
    for peer, ratio in ratios(row).items():
        if (old := before.get(name, {}).get(peer)) is None:
            said.append(f"{name}: the page has no ratio to {peer}")
        elif not 1 / OFF <= ratio / old <= OFF:
            word = "better" if (ratio > old) == (name == MORE) else "worse"
            said.append(f"{name}: {figure(ratio)} of {peer}'s, {figure(old)} on the page: {word}")
    return said


def main() -> None:
    shared = os.environ.get("FONTES_SHARED") or HERE.parent.parent / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page's table")
    parser.add_argument("--data", type=Path, default=shared, help="the folder of collections (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=peers.DEFAULT / "quick" / "work", help="for the indexes")
    parser.set_defaults(engines=("fontes", *PEERS), kinds=KINDS, ways=WAYS, again=False)
    parser.set_defaults(each=80, runs=3, warm=1, phrase_counts=True, disagree=False)
    given = parser.parse_args()
    if not (given.data / COLLECTION).is_dir():
        raise SystemExit(f"there is no {COLLECTION} in {given.data}; FONTES_SHARED names the folder of collections")
    start = time.time()
    where = machine()
    print(where, flush=True)
    prepare(given)
    page = PAGE.read_text(encoding="utf-8")
    rows, before = {}, kept(page)
    for part in PARTS:
        began = time.time()
        measured = part(given)
        print(f"{part.__name__}: {time.time() - began:.0f} s", flush=True)
        if not given.write and any(off(name, row, before) for name, row in measured.items()):
            again = part(given)
            measured = {name: better(name, row, again[name]) for name, row in measured.items()}
        rows |= measured
    report(rows, before)
    print(f"\n{time.time() - start:.0f} s")
    if given.write:
        PAGE.write_text(written(rows, page, where), encoding="utf-8")
        return
    said = [sentence for name, row in rows.items() for sentence in off(name, row, before)]
    if said:
        raise SystemExit("\noff by more than a fifth:\n  " + "\n  ".join(said))


def prepare(given: argparse.Namespace) -> None:
    """The peers' environment and indexes, the terms and queries, where they are not there; Fontes' indexes anew."""
    given.peers = peers.make_other("quick")
    given.work.mkdir(parents=True, exist_ok=True)
    for name in (f"{COLLECTION}/fontes", f"{COLLECTION}/fontes.built", "fontes.index"):
        shutil.rmtree(given.work / name, ignore_errors=True)
        (given.work / name).unlink(missing_ok=True)
    corpus = given.data / COLLECTION / "corpus.jsonl.gz"
    given.corpus = given.work / "corpus.jsonl"
    with gzip.open(corpus, "rt", encoding="utf-8") as file:
        given.corpus.write_text("".join(islice(file, BUILT)), encoding="utf-8")
    given.collections = [str(corpus)]
    given.folder = queries.prepared(given, str(corpus))


def report(rows: Rows, before: Rows) -> None:
    lines = []
    for name, row in rows.items():
        line = [name, *(figure(row[engine]) if engine in row else "" for engine in ("fontes", *PEERS))]
        for peer in PEERS:
            old = before.get(name, {}).get(peer)
            line += [figure(ratios(row)[peer]) if peer in row else "", figure(old) if old is not None else ""]
        lines.append(line)
    header = ["", "Fontes", *PEERS, *(head for peer in PEERS for head in (f"Fontes / {peer}", "page"))]
    table("Best of some turns", header, lines)


if __name__ == "__main__":
    main()

"""Times searches in collections of several sizes with Fontes, PISA, bm25s, tantivy and Pyserini, side by side and in turns.

    python bench/lexical.py RESULTS.json --work DIR --topics queries.jsonl passages.jsonl.gz big.jsonl:10000 big.jsonl
    python bench/search_report.py RESULTS.json docs/assets

FILE:N is the first N documents. All engines get the same terms, made beforehand by Fontes' English analyzer: their own stems
and stop words are off. Topics are titles (--topics) and sentences of about 30 words drawn from the first collection. An index
is built by a process that may use one core, and searched by another, which waits while the other engines have their turn.
Nothing is timed before the top 1,000 agree with Fontes' scores by the engine's own formula. DIR is kept; what is there already
is not made again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import peers
from harness import Worker, amount, machine
from search_report import DEPTHS, ENGINES
from searchers import K1, B, read

HERE = Path(__file__).parent
FORMULAS: dict[str, dict[str, Any]] = {  # of Fontes, for the check
    "pisa": {"variant": "robertson"},
    "bm25s": {},
    "tantivy": {"k1": 1.2, "b": 0.75, "lengths": "lucene"},
    "pyserini": {"lengths": "lucene"},
}
CHECKED = amount(100, 5)  # topics of each kind
LENGTH = range(27, 34)  # of sentences, in words
RUNS = 5


def started(name: str, peer: Path, verb: str, folder: Path) -> Worker:
    """A process with one engine."""
    ours = name == "fontes"
    command = [sys.executable if ours else peers.python(peer), HERE / "searchers.py", verb, name, folder]
    return Worker(command, dict(os.environ) if ours else peers.environment(peer))


def folder_of(given: str, work: Path) -> tuple[Path, int | None, Path]:
    """File, number of documents, and the folder for both."""
    name, _, count = given.partition(":")
    path = Path(name)
    stem = path.name.split(".")[0]
    stem = path.parent.name if stem == "corpus" else stem
    return path, int(count) if count else None, work / (f"{stem}-{count}" if count else stem)


def records(path: Path, count: int | None) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, islice(file, count))


def documents(path: Path, count: int | None) -> Iterator[tuple[str, str]]:
    for doc in records(path, count):
        yield doc["_id"], " ".join(filter(None, (doc.get("title"), doc["text"])))


def write_terms(path: Path, docs: Iterator[tuple[str, str]]) -> int:
    from fontes import Analyzer

    analyzer, written = Analyzer.of("english"), 0
    with path.open("w", encoding="utf-8") as file:
        while some := list(islice(docs, 20_000)):
            for (doc_id, _), terms in zip(some, analyzer.many([text for _, text in some]), strict=True):
                # A term may hold a space that is no blank; every engine must see one term.
                text = " ".join("_".join(term.split()) for term in terms)
                file.write(json.dumps({"_id": doc_id, "text": text}, ensure_ascii=False) + "\n")
            written += len(some)
    return written


def prepare(given: argparse.Namespace) -> dict[str, Path]:
    """Folders with corpus.terms.jsonl and queries.terms.jsonl."""
    folders = {}
    topics = given.work / "queries.terms.jsonl"
    given.work.mkdir(parents=True, exist_ok=True)
    if not topics.exists():
        path, count, _ = folder_of(given.collections[0], given.work)
        texts = [text for _, text in documents(path, count)]
        sentences = [s for text in texts for s in re.split(r"(?<=[.!?]) +", text) if s.count(" ") + 1 in LENGTH]
        titles = [text for _, text in documents(given.topics, None)]
        draw = random.Random(1)
        asked = draw.sample(titles, min(given.titles, len(titles))) + draw.sample(sentences, given.sentences)
        write_terms(topics, ((str(i), text) for i, text in enumerate(asked)))
    for name in given.collections:
        path, count, folder = folder_of(name, given.work)
        folder.mkdir(exist_ok=True)
        shutil.copy(topics, folder)
        if not (folder / "corpus.terms.jsonl").exists():
            written = write_terms(folder / "part", documents(path, count))
            (folder / "count").write_text(str(written))
            (folder / "part").rename(folder / "corpus.terms.jsonl")
        folders[name] = folder
    return folders


def run(given: argparse.Namespace) -> None:
    results: dict[str, Any] = {"collections": {}}
    if given.results.exists():  # of other collections
        results = json.loads(given.results.read_text())
    results |= {"machine": machine(), "runs": given.runs}
    wanted = given.only.split(",")
    for name, folder in prepare(given).items():
        built = folder / "built.json"
        builds = json.loads(built.read_text()) if built.exists() else {}
        for engine_name in wanted:
            if engine_name not in builds:
                building = started(engine_name, given.peers, "build", folder)
                builds[engine_name] = building.answer()
                building.end()
                built.write_text(json.dumps(builds))
                print(name, engine_name, builds[engine_name], flush=True)
        if not given.build_only:
            results["collections"][name] = {"documents": int((folder / "count").read_text()), "builds": builds}
            results["collections"][name] |= compare(given, folder, wanted)
            given.results.write_text(json.dumps(results))


def compare(given: argparse.Namespace, folder: Path, wanted: Sequence[str]) -> dict[str, Any]:
    texts = read(folder / "queries.terms.jsonl")[1]
    titles = len(texts) - given.sentences
    parts = {"titles": (0, titles), "sentences": (titles, len(texts))}
    workers = {name: started(name, given.peers, "serve", folder) for name in wanted}
    opened = {name: worker.answer() for name, worker in workers.items()}
    checked = {}
    for name in wanted:
        if name != "fontes":
            some = [(first, min(first + CHECKED, last)) for first, last in parts.values()]
            theirs = [h for first, last in some for h in workers[name].answer(way="hits", k=1000, first=first, last=last)]
            checked[name] = check(folder, name, [text for first, last in some for text in texts[first:last]], theirs)
            print(folder.name, name, checked[name], flush=True)
    found: dict[str, Any] = {}
    ways: list[tuple[str, int]] = [("one", 1), ("batch", 1), ("batch", 2)]
    for part, (first, last) in parts.items():
        for k in DEPTHS:
            for way, threads in ways if given.batches else ways[:1]:
                values: dict[str, list[Any]] = {name: [] for name in wanted}
                for turn in range(given.runs + 1):
                    for name in wanted:
                        got = workers[name].answer(way=way, k=k, threads=threads, first=first, last=last)
                        if turn:
                            values[name].append(got)
                        elif k == DEPTHS[0] and way == "one":  # no topic was asked before, but those of the check
                            found.setdefault(f"{part} once", {})[name] = got[CHECKED:]
                found[f"{part} {k} {way} {threads}"] = {
                    name: [statistics.median(column) for column in zip(*some, strict=True)]
                    if way == "one"
                    else statistics.median(some) / (last - first)
                    for name, some in values.items()
                }
        print(folder.name, part, time.ctime(), flush=True)
    held = {name: worker.answer(way="memory", k=0) for name, worker in workers.items()}
    for worker in workers.values():
        worker.end()
    return {
        "open": opened,
        "memory": held,
        "checked": checked,
        "terms": [len(set(text.split())) for text in texts],
        "titles": titles,
        "times": found,
    }


def check(folder: Path, name: str, texts: Sequence[str], theirs: Sequence[Sequence[tuple[str, float]]]) -> dict[str, Any]:
    """Compares the top 1,000 with Fontes' by the same formula.

    documents: of theirs, the share that Fontes ranks too, or ties with the last (within 1e-4); scores: the largest relative
    difference of a score, after the factor that the median of all pairs gives.
    """
    from fontes import Index, Topic, Topics

    index = Index.open(folder / "fontes")
    ranked = index.bm25(**{"k1": K1, "b": B, **FORMULAS[name]}, k=2000)(Topics(Topic(str(i), t) for i, t in enumerate(texts)))
    pairs, same, total = [], 0, 0
    for ours, some in zip(ranked.to_dict().values(), theirs, strict=True):
        least = sorted(ours.values(), reverse=True)[:1000][-1] * (1 - 1e-4) if ours else 0
        both = [(ours[doc], score) for doc, score in some if doc in ours]
        pairs += both
        same += sum(score >= least for score, _ in both)
        total += max(len(some), min(1000, len(ours)))
    factor = statistics.median(b / a for a, b in pairs)
    return {"documents": same / total, "scores": max(abs(b / a / factor - 1) for a, b in pairs), "factor": factor}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--topics", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--peers", type=Path, default=peers.DEFAULT)
    parser.add_argument("--only", default=",".join(ENGINES))
    parser.add_argument("--titles", type=int, default=600)
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--batches", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--build-only", action="store_true")
    run(parser.parse_args())


if __name__ == "__main__":
    main()

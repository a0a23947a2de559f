"""Times unions, conjunctions and phrases with Fontes, tantivy and Lucene: the query kinds of the public search-benchmark-game.

    python bench/queries.py --work DIR --lucene anserini-fatjar.jar passages.jsonl.gz big.jsonl[:N]

For each collection FILE (its first N documents): all engines get the same terms, made beforehand by Fontes' English analyzer,
and keep positions. Queries are made by a fixed seed from titles and sentences of the first collection. They are asked one at a
time, in one thread, for the 10 best documents, for the number of documents that match, or for both. Those of the kinds "text"
are analysed while the clock runs, by Fontes and Lucene. Nothing is timed before all engines count the same matches, and Fontes
and Lucene give the same scores. Times are of the processor: in a turn each engine is asked the same queries, which none was
asked before, except in the rows "asked again"; some turns come first that are not counted. DIR is kept; what is there already
is not made again. The jar has Lucene 10.5, Anserini and Jackson; --java is the folder of a Java 25 with javac.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import peers
from harness import HERE, Worker, machine, spread, table
from lexical import documents, folder_of, records

ENGINES = ("fontes", "tantivy", "lucene")
KINDS = {  # of all engines
    "term": "one term of a title",
    "union": "union of 2 to 5 terms of a title",
    "union-long": "union of the terms of a sentence",
    "and": "all of 2 to 5 terms of a title",
    "and-pair": "both of 2 terms of a sentence",
    "phrase": "a title of 2 to 4 terms as a phrase",
    "phrase-text": "2 or 3 terms of a sentence as a phrase",
    "text": "a title of 2 to 5 terms, as text",
    "text-long": "a sentence, as text",
}
MORE = {  # of Fontes and tantivy, for quick.py
    "must": "`+a b c` of a sentence",
    "filter": "2 to 5 terms of a title, in a tenth of the documents",
}
WAYS = {"top": "top 10", "count": "count", "both": "top 10 and count"}
AGAIN = "again"  # the queries of "top", a second time
BATCH = 20_000  # documents analysed together
CLOSE = 1e-5  # relative difference of equal scores


def write_terms(path: Path, docs: Iterator[tuple[str, str]]) -> int:
    from fontes import Analyzer

    analyzer, written = Analyzer.of("english"), 0
    with path.open("w", encoding="utf-8") as file:
        while some := list(islice(docs, BATCH)):
            for terms in analyzer.many([text for _, text in some]):
                file.write(" ".join(re.sub(r"\s", "_", term) for term in terms) + "\n")
            written += len(some)
    return written


def write_queries(path: Path, source: Path, kinds: Iterable[str], each: int) -> None:
    """Writes `each` queries of every kind, one kind after the other, none twice."""
    from fontes import Analyzer

    draw, analyzer = random.Random(1), Analyzer.of("english")
    titles: dict[str, None] = {}
    sentences: list[str] = []
    for doc in records(source, None):
        titles.setdefault(doc["title"])
        sentences += [s for s in re.split(r"(?<=[.!?]) +", doc["text"]) if s.count(" ") > 7]
    of_titles = analyzer.many(draw.sample(list(titles), min(len(titles), 8 * each)))
    few = [terms for terms in of_titles if 2 <= len(set(terms)) == len(terms) <= 5]
    of_sentences = iter(analyzer.many(draw.sample(sentences, min(len(sentences), 12 * each))))

    def pieces(size: int) -> Iterator[list[str]]:
        for terms in of_sentences:
            if len(set(terms)) == len(terms) > 5:
                start = draw.randrange(len(terms) - size)
                yield terms[start : start + size]

    made: dict[str, Iterator[list[str]]] = {
        "term": ([draw.choice(terms)] for terms in few),
        "union": iter(few),
        "union-long": (terms for terms in of_sentences if 8 <= len(set(terms)) == len(terms) <= 20),
        "and": iter(few),
        "and-pair": (draw.sample(terms, 2) for terms in pieces(5)),
        "phrase": (terms for terms in few if len(terms) < 5),
        "phrase-text": (terms[: draw.choice((2, 3))] for terms in pieces(3)),
        "must": pieces(3),
        "filter": iter(few),
    }
    with path.open("w", encoding="utf-8") as file:
        for kind, queries in made.items():
            if kind not in kinds:
                continue
            distinct: dict[tuple[str, ...], None] = {}
            while len(distinct) < each and (terms := next(queries, None)) is not None:
                distinct.setdefault(tuple(terms))
            if len(distinct) < each:
                raise SystemExit(f"{source} has {len(distinct)} queries of the kind {kind}, not {each}; ask for fewer (--each)")
            some = list(distinct)
            draw.shuffle(some)
            file.writelines(json.dumps({"kind": kind, "terms": terms}, ensure_ascii=False) + "\n" for terms in some)
        for kind, texts in (("text", list(titles)), ("text-long", sentences)):
            if kind not in kinds:
                continue
            least, most = (2, 5) if kind == "text" else (8, 20)
            drawn = draw.sample(texts, min(len(texts), 12 * each))
            fit = [text for text, terms in zip(drawn, analyzer.many(drawn), strict=True) if least <= len(terms) <= most]
            if len(fit := list(dict.fromkeys(fit))[:each]) < each:
                raise SystemExit(f"{source} has {len(fit)} texts of the kind {kind}, not {each}; ask for fewer (--each)")
            file.writelines(json.dumps({"kind": kind, "text": text}, ensure_ascii=False) + "\n" for text in fit)


def prepared(given: argparse.Namespace, name: str) -> Path:
    """The folder of a collection, with its terms, the queries, and the indexes of all engines."""
    path, count, folder = folder_of(name, given.work)
    folder.mkdir(parents=True, exist_ok=True)
    asked = folder / "asked"  # of each kind: the queries of other numbers of turns would be taken for other kinds
    if not asked.exists() or asked.read_text() != str(given.each * turns(given)):
        source = folder_of(given.collections[0], given.work)[0]
        write_queries(folder / "queries.jsonl", source, given.kinds, given.each * turns(given))
        asked.write_text(str(given.each * turns(given)))
    if not (folder / "count").exists():
        (folder / "count").write_text(str(write_terms(folder / "terms.txt", documents(path, count))))
    if any(kind.startswith("text") for kind in given.kinds) and not (folder / "texts").exists():
        from fontes import Doc, Index

        Index.build((Doc(str(n), text) for n, (_, text) in enumerate(documents(path, count))), folder / "texts", threads=1)
    for engine in given.engines:
        if not (folder / f"{engine}.built").exists():
            shutil.rmtree(folder / engine, ignore_errors=True)  # of a build that was interrupted
            builder = worker(given, engine, "build", folder)
            builder.answer()
            builder.end()
            (folder / f"{engine}.built").touch()
    return folder


def worker(given: argparse.Namespace, engine: str, verb: str, folder: Path) -> Worker:
    if engine == "lucene":
        classes = given.work / "classes"
        if not classes.exists():
            compiler = [given.java / "javac", "-cp", given.lucene, "-d", classes, HERE / "QueryServer.java"]
            subprocess.run([str(part) for part in compiler], check=True)
        java = [given.java / "java", "-Xms1g", "-Xmx2g", "-XX:+UseSerialGC", "--add-modules", "jdk.incubator.vector"]
        files = (folder / "terms.txt", folder / engine) if verb == "build" else (folder / engine, folder / "queries.jsonl")
        return Worker([*java, "-cp", f"{classes}:{given.lucene}", "QueryServer", verb, *files], dict(os.environ))
    python = sys.executable if engine == "fontes" else peers.python(given.peers)
    return Worker([python, HERE / "query_engines.py", verb, engine, folder], dict(os.environ))


def agreement(ours: list[Any], theirs: list[Any], with_scores: bool) -> str:
    """What differs first between the answers of two engines, or ""."""
    for i, ((count, hits), (other_count, others)) in enumerate(zip(ours, theirs, strict=True)):
        if count != other_count:
            return f"query {i}: {count:,} matches, {other_count:,} in the other"
        scores = [(score, other) for (_, score), (_, other) in zip(hits, others, strict=True)]
        if with_scores and any(abs(score - other) > CLOSE * abs(other) for score, other in scores):
            return f"query {i}: scores {scores}"
    return ""


def engines_of(given: argparse.Namespace, kind: str) -> list[str]:
    """Engines that are asked queries of a kind: those that have it, and analyse a text in the same way."""
    lacks = {"tantivy": kind.startswith("text"), "bm25s": kind != "term" and not kind.startswith("union")}
    return [engine for engine in given.engines if not lacks.get(engine)]


def turns(given: argparse.Namespace) -> int:
    """How often queries of a kind are asked: a turn has its own, and so has the check."""
    return 1 + len(given.ways) * (given.warm + given.runs)


def measured(given: argparse.Namespace, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Milliseconds a query of each turn, by kind and way, and engine."""
    workers = {engine: worker(given, engine, "serve", folder) for engine in given.engines}
    for one in workers.values():
        one.answer()
    asked = given.each * turns(given)
    for i, kind in enumerate(given.kinds):
        first, last = i * asked, i * asked + given.each
        for engine in engines_of(given, kind)[1:]:
            order = {"way": "hits", "formula": engine, "first": first, "last": last}
            ours, theirs = workers["fontes"].answer(**order), workers[engine].answer(**order)
            scores = not kind.startswith("phrase") or (engine == "lucene" and not given.phrase_counts)
            difference = agreement(ours, theirs, scores)
            matches = sum(count for count, _ in ours) / given.each
            print(f"{folder.name} {kind} ({matches:,.0f} matches), {engine}: {difference or 'agrees'}", flush=True)
            if difference and not given.disagree:
                raise SystemExit(1)
    times: dict[str, dict[str, list[float]]] = {}
    for i, kind in enumerate(given.kinds):
        for j, way in enumerate([*given.ways, *([AGAIN] if given.again else [])]):
            own: dict[str, list[float]] = {engine: [] for engine in engines_of(given, kind)}
            order, number = (way, j) if way in given.ways else ("top", 0)
            for turn in range(given.warm + given.runs):
                first = i * asked + (number * (given.warm + given.runs) + turn + 1) * given.each
                for engine in own:
                    seconds = workers[engine].answer(way=order, first=first, last=first + given.each)["seconds"]
                    if turn >= given.warm:
                        own[engine].append(1e3 * seconds / given.each)
            times[f"{kind} {way}"] = own
            print(kind, way, {engine: f"{statistics.median(some):.3f}" for engine, some in own.items()}, flush=True)
    for one in workers.values():
        one.end()
    return times


def report(title: str, times: dict[str, dict[str, list[float]]]) -> None:
    rows = []
    for name, own in times.items():
        kind, way = name.split()
        ratios = {e: [a / b for a, b in zip(own["fontes"], own[e], strict=True)] for e in own if e != "fontes"}
        rows.append(
            [f"{KINDS[kind]}, {WAYS.get(way, 'top 10, asked again')}"]
            + [f"{statistics.median(own[engine]):.3f}" if engine in own else "" for engine in ENGINES]
            + [spread(ratios[engine]) if engine in ratios else "" for engine in ENGINES[1:]]
        )
    header = ["ms of processor a query", *ENGINES, "fontes / tantivy", "fontes / lucene"]
    table(title, header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--lucene", type=Path, required=True, help="a jar with Lucene and Jackson")
    parser.add_argument(
        "--java", type=Path, default=Path("/usr/bin"), help="the folder of java and javac (default: %(default)s)"
    )
    parser.add_argument("--peers", type=Path, default=peers.DEFAULT, help="an environment with tantivy (default: %(default)s)")
    parser.add_argument("--each", type=int, default=100, help="queries of a kind in a turn (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="turns that count (default: %(default)s)")
    parser.add_argument("--warm", type=int, default=3, help="turns before these (default: %(default)s)")
    parser.add_argument("--build-only", action="store_true", help="make the indexes alone")
    parser.add_argument("--phrase-counts", action="store_true", help="compare the matches of phrases, not their scores")
    parser.add_argument("--disagree", action="store_true", help="go on where engines differ")
    parser.set_defaults(engines=ENGINES, kinds=KINDS, ways=WAYS, again=True)
    given = parser.parse_args()
    print(machine(), flush=True)
    for name in given.collections:
        folder = prepared(given, name)
        if not given.build_only:
            title = (
                f"{int((folder / 'count').read_text()):,} documents, {given.runs} turns of {given.each} queries of each kind"
            )
            report(title, measured(given, folder))


if __name__ == "__main__":
    main()

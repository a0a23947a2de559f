"""CIFF between Fontes and others: scores of an imported index, postings of an exported one, round trips, and speed.

    FONTES_DATA=DIR python bench/ciff.py [--collections cranfield,scifact] [--work DIR]

Lucene's index is read through Pyserini as Anserini's exporter reads it, and written by ciff-toolkit; PISA writes and reads CIFF
by pyciff, whose last wheel is for Python 3.10 and loads in 3.11. Both are put into DIR, beside the indexes, and stay there.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import peers
from agreement import lines, unpacked
from harness import machine, options, table

from fontes import Index, Run, Topics, read_topics

COLLECTIONS, SPEED = "cranfield,scifact", "wikipedia_passages"
STAGES = ("bm25", "tfidf", "ql")
HITS = 1000


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collections", default=COLLECTIONS, help="names, separated by commas (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("ciff-bench"), help="where all goes (default: %(default)s)")
    given = parser.parse_args()
    toolkit, pyciff = environments(given.work)
    variables = {**peers.environment(given.peers), "PYTHONPATH": str(pyciff)}
    imported, exported, round_trips = [], [], []
    for name in given.collections.split(","):
        source, work = given.data / name, given.work / name
        index, topics = prepared(source, work, given.peers)
        index.export(work / "fontes.ciff")
        for mode in ("pisa-reads", "pisa-writes"):
            file = work / ("fontes.ciff" if mode == "pisa-reads" else "pisa.ciff")
            call(peers.python(given.peers), mode, file, work, variables)
        call(toolkit, "write", work, work / "lucene.ciff")
        lucene = Index.build(work / "lucene.ciff", work / "of-lucene", overwrite=True)
        raw = scores_of(work / "raw.tsv")
        imported.append(["Lucene, by Anserini's rules", *row(name, lucene, compared(lucene.bm25(k1=0.9, b=0.4), topics, raw))])
        pisa = Index.build(work / "pisa.ciff", work / "of-pisa", overwrite=True)
        imported.append(["PISA", *row(name, pisa, compared(as_pisa(pisa), topics, scores_of(work / "pisa-writes.tsv")))])
        read = work / "read"
        read.mkdir(exist_ok=True)
        call(toolkit, "read", work / "fontes.ciff", read)
        equal = "all equal" if read_alike(index, read) else "not equal"
        exported.append([name, equal, *compared(as_pisa(index), topics, scores_of(work / "pisa-reads.tsv"))])
        round_trips.append([name, *round_trip(index, topics, work)])
    table("An index of a CIFF file, its scores beside those of the engine that the file came of", IMPORTED, imported)
    table("What others read in Fontes' file", EXPORTED, exported)
    name = SPEED
    index, topics = prepared(given.data / name, given.work / name, None)
    round_trips.append([name, *round_trip(index, topics, given.work / name)])
    table("To CIFF and back: runs of 1,000", ["collection", *STAGES, "lengths='lucene'"], round_trips)
    sys.stdout.write(f"\n{machine()}\n")
    table("Speed, seconds of processor time, of which the best counts", TIMES, [speed(index, given.work / name, given.runs)])


IMPORTED = ["engine", "collection", "documents", "postings", "results", "largest difference", "relative", "missing"]
EXPORTED = ["collection", "ciff-toolkit: postings, lengths, ids", "PISA: results", "largest difference", "relative", "missing"]
TIMES = ["collection", "MB", "export s", "MB/s", "import s", "MB/s", "import of .gz s", "build from text s"]


def environments(work: Path) -> tuple[Path, Path]:
    """The interpreter that has ciff-toolkit, and a folder with pyciff, made where they are not there."""
    toolkit, pyciff = work / "toolkit", work / "pyciff"
    if not (toolkit / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(toolkit)], check=True)
        subprocess.run([str(peers.python(toolkit)), "-m", "pip", "install", "--quiet", "ciff-toolkit==0.2.2"], check=True)
        (toolkit / "done").touch()
    if not pyciff.exists():
        wanted = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.10", "pyciff==0.2.0"]
        command = [str(peers.python(toolkit)), "-m", "pip", "download", "--quiet", *wanted, "-d", str(work / "wheel")]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next((work / "wheel").glob("*.whl"))) as wheel:
            wheel.extractall(pyciff)
        [built] = (pyciff / "pyciff").glob("*.so")
        built.rename(built.with_name(built.name.replace("310", "311")))
        module = pyciff / "pyciff" / "__init__.py"  # pyterrier-pisa 0.4.9 calls it as 0.1 was called
        module.write_text(module.read_text().replace("write_lexicons)", "write_lexicons=False)", 1))
    return peers.python(toolkit), pyciff


def prepared(source: Path, work: Path, peer: Path | None) -> tuple[Index, Topics]:
    """An index of a collection, its topics, their tokens, and Lucene's index and scores; what is there is used again."""
    topics = read_topics(source / "queries.jsonl")
    if not (work / "done").exists():
        shutil.rmtree(work, ignore_errors=True)
        corpus = unpacked(source, work)
        index = Index.build(corpus, work / "fontes")
        work.mkdir(exist_ok=True)
        write_tokens(work / "topics.tokens.jsonl", ((topic.id, index.analyzer(topic.text)) for topic in topics.values()))
        if peer is not None:
            write_tokens(work / "docs.tokens.jsonl", zip(index.ids, index.analyzed(index.ids), strict=True))
            peers.call(peer, "lucene.py", "collection", "english", corpus, source / "queries.jsonl", work)
            call(peers.python(peer), "lucene", work / "lucene", work, peers.environment(peer))
        (work / "done").touch()
    return Index.open(work / "fontes"), topics


def write_tokens(path: Path, rows: Iterable[tuple[str, list[str]]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def call(python: Path, mode: str, first: Path, second: Path, variables: dict[str, str] | None = None) -> None:
    """Runs ciff_engines.py."""
    command = [str(python), str(Path(__file__).parent / "ciff_engines.py"), mode, str(first), str(second)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")


def scores_of(path: Path) -> dict[str, dict[str, float]]:
    """A table of topic, document and score."""
    scores: dict[str, dict[str, float]] = {}
    for line in lines(path):
        topic, doc, score = line.split("\t")
        scores.setdefault(topic, {})[doc] = float(score)
    return scores


def as_pisa(index: Index) -> Any:
    """PISA's BM25: Robertson's formula, with 1e-6 in place of an idf below 0."""
    df, n = index.df.astype(float), len(index)
    mean = float(np.mean(np.log((n - df + 0.5) / (df + 0.5))))
    return index.bm25(variant="okapi", k1=0.9, b=0.4, epsilon=1e-6 / mean, k=HITS)


def compared(stage: Any, topics: Topics, theirs: dict[str, dict[str, float]]) -> list[str]:
    """Results of both, the largest difference of a score, absolute and relative, and results above the last that they lack."""
    run: Run = (stage % HITS)(topics)
    results, missing, largest, relative = 0, 0, 0.0, 0.0
    for topic, ranking in run.to_dict().items():
        other = theirs.get(topic, {})
        last = min(other.values()) if len(other) >= HITS else -math.inf
        for doc, score in ranking.items():
            if doc in other:
                results += 1
                largest = max(largest, abs(score - other[doc]))
                relative = max(relative, abs(score - other[doc]) / max(abs(score), 1e-3))
            else:
                missing += score > last + 1e-4
    return [f"{results:,}", f"{largest:.1e}", f"{relative:.1e}", f"{missing}"]


def row(name: str, index: Index, cells: list[str]) -> list[str]:
    return [name, f"{len(index):,}", f"{index.info()['postings']:,}", *cells]


def read_alike(index: Index, folder: Path) -> bool:
    """Whether ciff-toolkit read the terms, postings, ids, lengths and sums of an index."""
    terms = []
    for number, (term, df, cf, gaps, tfs) in enumerate(map(json.loads, lines(folder / "lists.jsonl"))):
        docs, ours = index.postings(np.array([number]))
        if (df, cf) != (len(docs), ours.sum()) or np.cumsum(gaps).tolist() != docs.tolist() or tfs != ours.tolist():
            return False
        terms.append(term)
    records = [tuple(record) for record in map(json.loads, lines(folder / "docs.jsonl"))]
    header = json.loads((folder / "header.json").read_text())
    fit = header["total_terms_in_collection"] == index.tokens and header["total_docs"] == header["num_docs"] == len(index)
    return fit and terms == index.terms.tolist() and records == list(zip(index.ids, index.lengths.tolist(), strict=True))


def round_trip(index: Index, topics: Topics, work: Path) -> list[str]:
    """For each stage whether the run of the index that came back has the same bytes."""
    index.export(work / "fontes.ciff")
    again = Index.build(work / "fontes.ciff", work / "again", overwrite=True)
    stages: list[Callable[[Index], Any]] = [lambda i, name=name: getattr(i, name)() for name in STAGES]  # type: ignore[misc]
    stages.append(lambda i: i.bm25(lengths="lucene"))
    cells = []
    for stage in stages:
        one, other = ((stage(each) % HITS)(topics) for each in (index, again))
        same = one.scores.tobytes() == other.scores.tobytes() and one.codes.tobytes() == other.codes.tobytes()
        cells.append(f"{one.rows:,} equal" if same else "not equal")
    return cells


def speed(index: Index, work: Path, runs: int) -> list[str]:
    """Export and import, one thread."""
    plain, gzip = work / "fontes.ciff", work / "fontes.ciff.gz"
    index.export(gzip)
    corpus = work / "corpus.jsonl"

    def imports(source: Path) -> Callable[[], Any]:
        return lambda: Index.build(source, work / "again", overwrite=True, threads=1)

    def best(what: Callable[[], Any]) -> float:
        times = []
        for _ in range(runs):
            start = time.process_time()
            what()
            times.append(time.process_time() - start)
        return min(times)

    exported, imported = best(lambda: index.export(plain)), best(imports(plain))
    size = plain.stat().st_size / 1e6
    rates = [f"{exported:.2f}", f"{size / exported:.0f}", f"{imported:.2f}", f"{size / imported:.0f}"]
    return [work.name, f"{size:.1f}", *rates, f"{best(imports(gzip)):.2f}", f"{best(imports(corpus)):.2f}"]


if __name__ == "__main__":
    main()

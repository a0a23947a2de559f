"""Times searches in collections of several sizes with Fontes, PISA and bm25s, side by side and in turns, and draws the times.

    python bench/lexical.py run RESULTS.json --work DIR --topics queries.jsonl passages.jsonl.gz big.jsonl:10000 big.jsonl
    python bench/lexical.py alone FONTES.json --work DIR --topics queries.jsonl big.jsonl big.jsonl:500000
    python bench/lexical.py report RESULTS.json
    python bench/lexical.py plot RESULTS.json docs/assets    (where matplotlib is)

FILE:N is the first N documents. All engines get the same terms, made beforehand by Fontes' English analyzer: their own stems
and stop words are off. Topics are titles (--topics) and sentences of about 30 words drawn from the first collection. An index
is built by a process that may use one core, and searched by another, which waits while the other engines have their turn.
Nothing is timed before the top 1,000 agree with Fontes' scores by the engine's own formula. "alone" measures what there is to
know of Fontes itself, and what each part of its search gives. DIR is kept; what is there already is not made again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from searchers import K1, SEARCHERS, B, Searcher, read

HERE = Path(__file__).parent
ENGINES = {"fontes": "Fontes", "pisa": "PISA", "bm25s": "bm25s"}
FORMULAS = {"pisa": {"variant": "robertson"}, "bm25s": {}}  # of Fontes, for the check
DEPTHS = (10, 100, 1000)
CHECKED = 100  # topics of each kind
LENGTH = range(27, 34)  # of sentences, in words
RUNS = 5


# ---- the engines, each in processes of its own


def fontes(folder: Path) -> Searcher:
    """Takes terms with blanks between; gives a Ranking, or a Run."""
    from fontes import Index, Topic, Topics

    path = folder / "fontes"
    if not path.exists():
        Index.build(folder / "corpus.terms.jsonl", path, analyzer="whitespace", threads=1)
    index = Index.open(path)

    def search(queries: list[str], k: int, threads: int) -> Any:
        stage = index.bm25(k1=K1, b=B, k=k, threads=threads)
        if len(queries) == 1:
            return stage.search(queries[0], k)
        return stage(Topics(Topic(str(i), text) for i, text in enumerate(queries)))

    def hits(queries: list[str], k: int) -> Any:
        return (list(ranking.items()) for ranking in search(queries, k, 2).to_dict().values())

    return Searcher(read(folder / "queries.terms.jsonl")[1], search, hits)


def pisa(folder: Path) -> Searcher:
    """Takes bags of terms; gives arrays, without the tables that PyTerrier makes of them."""
    import numpy as np
    from pyterrier_pisa import PisaIndex, _pisathon

    made = SEARCHERS["pisa"](folder)
    index = PisaIndex(str(folder / "pisa"), text_field="terms", stemmer="none", stops="none")
    context = index.bm25(k1=K1, b=B, query_algorithm="maxscore", query_weighted=True, toks_scale=1.0)._ctxt

    def search(queries: list[dict[str, float]], k: int, threads: int) -> Any:
        types = (np.int32, object, np.int32, np.float32)
        names = ("result_qidxs", "result_docnos", "result_ranks", "result_scores")
        found = {name: np.empty(len(queries) * k, dtype=kind) for name, kind in zip(names, types, strict=True)}
        given = list(enumerate(queries))
        _pisathon.retrieve(context, "maxscore", given, k=k, threads=threads, query_weighted=1, pretokenised=True, **found)
        return found

    queries = [
        {term: float(n) for term, n in Counter(text.split()).items()} for text in read(folder / "queries.terms.jsonl")[1]
    ]
    return Searcher(queries, search, made.hits)


def bm25s(folder: Path) -> Searcher:
    """Built from numbers of terms, as its own tokenizer makes them: lists of strings take four times the memory."""
    import bm25s as library

    if not (folder / "bm25s").exists():
        vocabulary: dict[str, int] = {}
        docs = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in text.split()]
            for _, text in documents(folder / "corpus.terms.jsonl", None)
        ]
        made = library.BM25(k1=K1, b=B, backend="numba")
        made.index(library.tokenization.Tokenized(ids=docs, vocab=vocabulary), show_progress=False)
        made.save(folder / "bm25s")
    return SEARCHERS["bm25s"](folder)


def engine(name: str, folder: Path) -> Searcher:
    return {"fontes": fontes, "pisa": pisa, "bm25s": bm25s}[name](folder)


def build(name: str, folder: Path) -> None:
    """Builds an index on one core, up to the first result; everything is compiled and imported before."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as small:
        for file in ("corpus.terms.jsonl", "queries.terms.jsonl"):
            with (folder / file).open(encoding="utf-8") as source:
                (Path(small) / file).write_text("".join(islice(source, 3000)), encoding="utf-8")
        searcher = engine(name, Path(small))
        searcher.search(searcher.queries[:1], 10, 1)
        del searcher
    shutil.rmtree(folder / name, ignore_errors=True)
    start, worked = time.perf_counter(), time.process_time()
    searcher = engine(name, folder)
    searcher.search(searcher.queries[:1], 10, 1)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(file.stat().st_size for file in (folder / name).rglob("*") if file.is_file())
    say({"seconds": seconds, "processor": worked, "peak": peak, "size": size / 1e6})


def serve(name: str, folder: Path) -> None:
    """Opens an index and answers orders, a line of JSON each."""
    start = time.perf_counter()
    searcher = engine(name, folder)
    say({"open": time.perf_counter() - start})
    for line in sys.stdin:
        order = json.loads(line)
        if order["way"] == "memory":
            say(memory())
            continue
        k, queries = order["k"], searcher.queries[order["first"] : order["last"]]
        if order["way"] == "hits":
            say([list(found) for found in searcher.hits(queries, k)])
        elif order["way"] == "one":
            seconds = []
            for query in queries:
                start = time.perf_counter()
                searcher.search([query], k, 1)
                seconds.append(time.perf_counter() - start)
            say(seconds)
        else:
            start = time.perf_counter()
            searcher.search(queries, k, order["threads"])
            say(time.perf_counter() - start)


def memory() -> dict[str, float]:
    """MiB that this process holds: anonymous, and of files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(status[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile")}


def say(value: Any) -> None:
    sys.stdout.write("\n=" + json.dumps(value) + "\n")
    sys.stdout.flush()


class Worker:
    """A process with one engine."""

    def __init__(self, name: str, peer: Path, verb: str, folder: Path) -> None:
        import peers

        ours = name == "fontes"
        command = [sys.executable if ours else peers.python(peer), HERE / "lexical.py", verb, name, folder]
        environment = dict(os.environ) if ours else peers.environment(peer)
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def answer(self, **order: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        if order:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("="):
                return json.loads(line[1:])
        self._log.seek(0)
        raise SystemExit(f"an engine ended:\n{self._log.read()[-3000:]}")

    def end(self) -> None:
        self._process.communicate()


# ---- collections and topics


def folder_of(given: str, work: Path) -> tuple[Path, int | None, Path]:
    """File, number of documents, and the folder for both."""
    name, _, count = given.partition(":")
    path = Path(name)
    stem = path.name.split(".")[0]
    stem = path.parent.name if stem == "corpus" else stem
    return path, int(count) if count else None, work / (f"{stem}-{count}" if count else stem)


def documents(path: Path, count: int | None) -> Iterator[tuple[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in islice(file, count):
            doc = json.loads(line)
            yield doc["_id"], " ".join(filter(None, (doc.get("title"), doc["text"])))


def write_terms(path: Path, docs: Iterator[tuple[str, str]]) -> int:
    from fontes import Analyzer

    analyzer, written = Analyzer.of("english"), 0
    with path.open("w", encoding="utf-8") as file:
        while some := list(islice(docs, 20_000)):
            for (doc_id, _), terms in zip(some, analyzer.many([text for _, text in some]), strict=True):
                file.write(json.dumps({"_id": doc_id, "text": " ".join(terms)}, ensure_ascii=False) + "\n")
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


# ---- the comparison


def run(given: argparse.Namespace) -> None:
    from harness import machine

    results: dict[str, Any] = {"machine": machine(), "runs": given.runs, "collections": {}}
    wanted = given.only.split(",")
    for name, folder in prepare(given).items():
        built = folder / "built.json"
        builds = json.loads(built.read_text()) if built.exists() else {}
        for engine_name in wanted:
            if engine_name not in builds:
                worker = Worker(engine_name, given.peers, "build", folder)
                builds[engine_name] = worker.answer()
                worker.end()
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
    workers = {name: Worker(name, given.peers, "serve", folder) for name in wanted}
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
    ranked = index.bm25(k1=K1, b=B, k=2000, **FORMULAS.get(name, {}))(Topics(Topic(str(i), t) for i, t in enumerate(texts)))
    pairs, same, total = [], 0, 0
    for ours, some in zip(ranked.to_dict().values(), theirs, strict=True):
        least = sorted(ours.values(), reverse=True)[:1000][-1] * (1 - 1e-4) if ours else 0
        both = [(ours[doc], score) for doc, score in some if doc in ours]
        pairs += both
        same += sum(score >= least for score, _ in both)
        total += max(len(some), min(1000, len(ours)))
    factor = statistics.median(b / a for a, b in pairs)
    return {"documents": same / total, "scores": max(abs(b / a / factor - 1) for a, b in pairs), "factor": factor}


# ---- Fontes alone


def alone(given: argparse.Namespace) -> None:
    from harness import machine

    folders = prepare(given)
    folder, tuned = folders[given.collections[0]], folders[given.collections[-1]]
    results: dict[str, Any] = {"machine": machine(), "first": starts(folder), "tuning": tuning(tuned)}
    given.results.write_text(json.dumps(results))
    print(results, flush=True)
    from fontes import Index

    index = Index.open(folder / "fontes")
    texts = read(folder / "queries.terms.jsonl")[1]
    titles = len(texts) - given.sentences
    parts = {"titles": texts[: min(200, titles)], "sentences": texts[titles : titles + 50]}
    results["overhead"] = {name: overhead(index, some, given.runs) for name, some in parts.items()}
    given.results.write_text(json.dumps(results))
    print(results["overhead"], flush=True)
    results["parts"] = ablations(index, parts, given.runs)
    given.results.write_text(json.dumps(results))
    report_alone(results)


def report_alone(results: dict[str, Any]) -> None:
    from harness import spread, table

    rows = [
        [way, *(spread([1000 * one[x] for one in some], 1) for x in ("open", "first", "second"))]
        for way, some in results["first"].items()
    ]
    table("A process's first query", ["impacts", "open, ms", "first query, ms", "second, ms"], rows)
    columns = zip(*results["tuning"], strict=True)
    table("A setting of k1 and b", ["impacts, s", "300 topics, s"], [[spread(column) for column in columns]])
    rows = [
        [part, k, *(f"{value:.3f}" for value in three)] for part, of in results["overhead"].items() for k, three in of.items()
    ]
    table("One call, ms", ["topics", "k", "search()", "kernel", "difference"], rows)
    cases = list(results["parts"])
    rows = [[name, *(f"{results['parts'][case][name]:.2f}" for case in cases)] for name in results["parts"][cases[0]]]
    table("Variants of the kernel, ms a query", ["", *cases], rows)


FIRST = """
import json, sys, time
from fontes import Index
start = time.perf_counter()
stage = Index.open(sys.argv[1]).bm25(threads=1)
opened = time.perf_counter()
stage.search("histori railwai", 10)
first = time.perf_counter()
stage.search("battl second world war", 10)
second = time.perf_counter()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
anonymous = int(status["RssAnon"].split()[0]) / 1024
print(json.dumps({"open": opened - start, "first": first - opened, "second": second - first, "anonymous": anonymous}))
"""


def starts(folder: Path) -> dict[str, list[Any]]:
    """The first query of a process with impacts in the cache, and without."""
    found: dict[str, list[Any]] = {"cached": [], "not cached": []}
    for way, runs in (("warm up", 1), ("cached", 5), ("not cached", 3)):
        for _ in range(runs):
            if way == "not cached":
                shutil.rmtree(folder / "fontes" / "cache", ignore_errors=True)
            command = [sys.executable, "-c", FIRST, str(folder / "fontes")]
            report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            found.setdefault(way, []).append(report)
    return found


def tuning(folder: Path) -> list[list[float]]:
    """For settings of k1 and b the seconds for impacts alone, and for 300 topics after that."""
    from fontes import Index, Topic, Topics
    from fontes.lexical.impacts import impacts_of

    index = Index.open(folder / "fontes")
    shutil.rmtree(folder / "fontes" / "cache", ignore_errors=True)
    topics = Topics(Topic(str(i), text) for i, text in enumerate(read(folder / "queries.terms.jsonl")[1][:300]))
    index.bm25()(topics)
    seconds = []
    for k1 in (0.6, 0.8, 1.0, 1.2, 1.4, 1.6):
        stage, start = index.bm25(k1=k1, b=0.3 + k1 / 4), time.perf_counter()
        impacts_of(index, stage.weighting)
        worked_out = time.perf_counter()
        stage(topics)
        seconds.append([worked_out - start, time.perf_counter() - worked_out])
    return seconds


def prepared(index: Any, texts: Sequence[str]) -> tuple[Any, Any, Any]:
    """Topics as the kernel takes them."""
    import numpy as np

    bags = [sorted((index.place(term), n) for term, n in Counter(text.split()).items()) for text in texts]
    bags = [[(place, n) for place, n in bag if place >= 0] for bag in bags]
    bounds = np.zeros(len(bags) + 1, dtype=np.int64)
    np.cumsum([len(bag) for bag in bags], out=bounds[1:])
    terms = np.array([place for bag in bags for place, _ in bag], dtype=np.int32)
    return bounds, terms, np.array([n for bag in bags for _, n in bag], dtype=np.float64)


def arguments(impacts: Any) -> tuple[Any, Any]:
    lists = impacts.lists
    bounds_of = (impacts.best, impacts.kth, impacts.positive, lists.row_of, impacts.rows, lists.starts)
    return (lists.bounds, lists.docs, impacts.weights), bounds_of


def overhead(index: Any, texts: Sequence[str], runs: int) -> dict[str, list[float]]:
    """Milliseconds that a call of search(text, k) takes, the kernel alone, and the difference: medians over the topics."""
    import numpy as np

    from fontes.lexical.impacts import impacts_of
    from fontes.lexical.kernel import search

    stage = index.bm25(threads=1)
    topics, (lists, bounds_of) = prepared(index, texts), arguments(impacts_of(index, stage.weighting))
    found = {}
    for depth, k in enumerate(DEPTHS):
        keys, counts = np.zeros((1, k), dtype=np.uint64), np.zeros(1, dtype=np.int64)
        rows = []
        for i, text in enumerate(texts):
            calls, kernel = [], []
            for turn in range(2 * runs):
                start = time.perf_counter()
                if turn % 2:
                    stage.search(text, k)
                else:
                    search(i, i + 1, topics, lists, bounds_of, index.ids.rank, k, depth, (keys, counts))
                (calls if turn % 2 else kernel).append(time.perf_counter() - start)
            both = statistics.median(calls[1:]), statistics.median(kernel[1:])
            rows.append((*both, both[0] - both[1]))
        found[str(k)] = [1000 * statistics.median(column) for column in zip(*rows, strict=True)]
    return found


VARIANTS: dict[str, dict[str, str]] = {  # what is replaced in the kernel
    "as it is": {},
    "no first threshold": {"least = max(least, np.float32(query_weights[i] * kth[term, depth]))": "least = np.float32(0)"},
    "no bounds of blocks": {"            size = _pruned(": "            ceilings[:] = np.inf\n            size = _pruned("},
    "neither": {
        "least = max(least, np.float32(query_weights[i] * kth[term, depth]))": "least = np.float32(0)",
        "            size = _pruned(": "            ceilings[:] = np.inf\n            size = _pruned(",
    },
    "blocks of 32, windows of 256": {"BLOCK = 64": "BLOCK = 32", "WINDOW = 512": "WINDOW = 256"},
    "blocks of 128, windows of 1024": {"BLOCK = 64": "BLOCK = 128", "WINDOW = 512": "WINDOW = 1024"},
    "blocks of 64, windows of 2048": {"WINDOW = 512": "WINDOW = 2048"},
    "blocks of 64, windows of 4096": {"WINDOW = 512": "WINDOW = 4096"},
    "blocks of 64, windows of 8192": {"WINDOW = 512": "WINDOW = 8192"},
    "blocks of 64, windows of 64": {"WINDOW = 512": "WINDOW = 64"},
}


def ablations(index: Any, parts: dict[str, list[str]], runs: int) -> dict[str, Any]:
    """Milliseconds a query of variants of the kernel, one thread, in turns; all find the same."""
    import numpy as np

    from fontes.lexical import impacts, kernel

    source = Path(kernel.__file__).read_text(encoding="utf-8")
    weighting, variants = index.bm25(k1=K1, b=B).weighting, {}
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for number, (name, changes) in enumerate(VARIANTS.items()):
            text = source
            for old, new in changes.items():
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            (Path(folder) / f"kernel{number}.py").write_text(text.replace("cache=True, ", ""), encoding="utf-8")
            module = __import__(f"kernel{number}")
            made = impacts.impacts_of(index, weighting)
            if "WINDOW = 512" in changes:
                impacts.BLOCK, impacts.WINDOW, impacts.summarize = module.BLOCK, module.WINDOW, module.summarize
                lists = impacts.Lists(made.lists.bounds, **impacts._decoded(index))
                made = impacts.Impacts(lists, **impacts._weighted(index, weighting, lists))
                impacts.BLOCK, impacts.WINDOW, impacts.summarize = kernel.BLOCK, kernel.WINDOW, kernel.summarize
            variants[name] = module.search, *arguments(made)
            if number == 0:
                none = (*variants[name][2][:2], np.zeros_like(made.positive), *variants[name][2][3:])
                every = module.search, variants[name][1], none
        variants["every document, one after the other"] = every
        found: dict[str, Any] = {}
        for part, texts in parts.items():
            topics = prepared(index, texts)
            for depth, k in enumerate(DEPTHS):
                seconds: dict[str, list[float]] = {name: [] for name in variants}
                results = {}
                for _ in range(runs + 1):
                    for name, (search, lists, bounds_of) in variants.items():
                        keys, counts = np.zeros((len(texts), k), dtype=np.uint64), np.zeros(len(texts), dtype=np.int64)
                        start = time.perf_counter()
                        search(0, len(texts), topics, lists, bounds_of, index.ids.rank, k, depth, (keys, counts))
                        seconds[name].append((time.perf_counter() - start) / len(texts))
                        results[name] = np.sort(keys, axis=1)
                assert all(np.array_equal(results["as it is"], one) for one in results.values())
                found[f"{part} {k}"] = {name: 1000 * statistics.median(some[1:]) for name, some in seconds.items()}
            print(found, flush=True)
    return found


# ---- tables and plots


def report(given: argparse.Namespace) -> None:
    from harness import table

    results = json.loads(given.results.read_text())
    print(results["machine"], "runs:", results["runs"])
    rows = []
    for one in results["collections"].values():
        for name in one["checked"]:
            c = one["checked"][name]
            rows.append([f"{one['documents']:,}", ENGINES[name], f"{c['documents']:.4%}", f"{c['scores']:.1e}"])
    table("Agreement", ["documents", "", "top 1,000 in common or tied", "largest relative difference of a score"], rows)
    rows = []
    for one in results["collections"].values():
        for name, built in one["builds"].items():
            held = one["memory"][name]
            cells = [f"{built['seconds']:.1f}", f"{built['peak']:,.0f}", f"{built['size']:,.0f}"]
            cells += [f"{held['RssAnon']:,.0f}", f"{held['RssFile']:,.0f}"]
            rows.append([f"{one['documents']:,}", ENGINES[name], *cells])
    header = ["documents", "", "build, s", "peak, MiB", "on disk, MB", "searching: own memory, MiB", "pages of files, MiB"]
    table("Builds on one core, and memory", header, rows)
    for collection in results["collections"].values():
        for part in ("titles", "sentences"):
            rows = []
            for k in DEPTHS:
                some = {way: collection["times"].get(f"{part} {k} {way}") for way in ("one 1", "batch 1", "batch 2")}
                ours = statistics.mean(some["one 1"]["fontes"])
                for name, seconds in some["one 1"].items():
                    values = sorted(1000 * s for s in seconds)
                    at = [values[min(len(values) - 1, int(share * len(values)))] for share in (0.5, 0.95, 0.99)]
                    cells = [statistics.mean(values), *at]
                    row = [str(k), ENGINES[name], *(f"{c:.2f}" for c in cells), f"{ours * 1000 / cells[0]:.2f}"]
                    for way in ("batch 1", "batch 2"):
                        if some[way]:
                            t = some[way]
                            row += [f"{1000 * t[name]:.2f}", f"{t['fontes'] / t[name]:.2f}"]
                    rows.append(row)
            header = ["k", "", "one: mean", "p50", "p95", "p99", "Fontes / it", "batch, 1 thread", "Fontes / it"]
            header += ["batch, 2 threads", "Fontes / it"]
            width = len(rows[0])
            table(f"{collection['documents']:,} documents, {part}: ms a query", header[:width], rows)


STYLES = {"fontes": ("#0072B2", "o", "-"), "pisa": ("#D55E00", "s", "--"), "bm25s": ("#009E73", "^", ":")}  # Okabe and Ito


def plot(given: argparse.Namespace) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot, ticker

    mpl.rcParams.update({"svg.hashsalt": "fontes", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
    collections = list(json.loads(given.results.read_text())["collections"].items())
    last = collections[-1][0].partition(":")[0]
    slices = sorted((one["documents"], one) for name, one in collections if name.partition(":")[0] == last)
    largest = slices[-1][1]

    def draw(file: str, label: str, panels: dict[str, Any], ticks: Any = None, log: bool = True) -> None:
        figure, axes = pyplot.subplots(1, len(panels), figsize=(8, 3), sharex=True, squeeze=False)
        for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
            for name, (x, y) in lines.items():
                color, marker, line = STYLES[name]
                axis.plot(x, y, color=color, marker=marker, linestyle=line, label=ENGINES[name], markersize=5)
            axis.set_title(title)
            axis.set_xlabel(label)
            axis.set_ylabel("ms a query")
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_locator(ticker.NullLocator())
            if log:
                axis.set_xscale("log")
            if ticks:
                axis.set_xticks(ticks, [str(t) for t in ticks])
                axis.xaxis.set_minor_locator(ticker.NullLocator())
        axes[0][0].legend()
        figure.tight_layout()
        figure.savefig(given.folder / file, metadata={"Date": None})
        pyplot.close(figure)

    def mean(one: Any, part: str, k: int, name: str) -> float:
        return 1000 * statistics.mean(one["times"][f"{part} {k} one 1"][name])

    parts = {"titles": "titles", "sentences": "sentences of about 30 words"}
    by_size = {part: {name: [mean(one, part, 10, name) for _, one in slices] for name in ENGINES} for part in parts}
    sizes = [documents for documents, _ in slices]
    panels = {f"{parts[part]}, k = 10": {name: (sizes, y) for name, y in lines.items()} for part, lines in by_size.items()}
    draw("search-size.svg", "documents", panels)
    by_depth = {part: {name: [mean(largest, part, k, name) for k in DEPTHS] for name in ENGINES} for part in parts}
    panels = {parts[part]: {name: (DEPTHS, y) for name, y in lines.items()} for part, lines in by_depth.items()}
    draw("search-k.svg", "k", panels, DEPTHS)
    edges = pairwise((1, 2, 3, 4, 6, 9, 12, 15, 18, 40))
    groups = [[i for i, n in enumerate(largest["terms"]) if low <= n < high] for low, high in edges]
    groups = [group for group in groups if len(group) >= 5]
    terms = [statistics.mean(largest["terms"][i] for i in group) for group in groups]
    panels = {}
    for k in (10, 1000):
        seconds = {name: [s for part in parts for s in largest["times"][f"{part} {k} one 1"][name]] for name in ENGINES}
        panels[f"k = {k}"] = {
            name: (terms, [1000 * statistics.mean(some[i] for i in group) for group in groups])
            for name, some in seconds.items()
        }
    draw("search-terms.svg", "distinct terms of the topic", panels, log=False)


# ---- the command line


def main() -> None:
    if sys.argv[1:2] in (["build"], ["serve"]):
        {"build": build, "serve": serve}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
        return
    import peers

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, call in (("run", run), ("alone", alone)):
        measures = verbs.add_parser(verb)
        measures.add_argument("results", type=Path)
        measures.add_argument("collections", nargs="+")
        measures.add_argument("--topics", type=Path, required=True)
        measures.add_argument("--work", type=Path, required=True)
        measures.add_argument("--peers", type=Path, default=peers.DEFAULT)
        measures.add_argument("--only", default=",".join(ENGINES))
        measures.add_argument("--titles", type=int, default=600)
        measures.add_argument("--sentences", type=int, default=150)
        measures.add_argument("--runs", type=int, default=RUNS)
        measures.add_argument("--batches", action=argparse.BooleanOptionalAction, default=True)
        measures.add_argument("--build-only", action="store_true")
        measures.set_defaults(call=call)
    reports = verbs.add_parser("report")
    reports.add_argument("results", type=Path)
    reports.set_defaults(call=report)
    draws = verbs.add_parser("plot")
    draws.add_argument("results", type=Path)
    draws.add_argument("folder", type=Path)
    draws.set_defaults(call=plot)
    given = parser.parse_args()
    given.call(given)


if __name__ == "__main__":
    main()

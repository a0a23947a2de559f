"""Rerankers and encoders trained on real collections, chosen on topics of training and validation, measured once on test.

    FONTES_DATA=DIR python bench/training_recipes.py --work DIR [--recipe NAME ...] [--test NAME ...]

Trains each recipe, measures it on the topics to choose with (the 197 dev tweets of CheckThat! 2020; a quarter of SciFact's
training claims), and keeps the result; what is there is not done again, and a training that was interrupted goes on. `--test`
measures recipes on test, with the weights chosen before, and compares them with their candidates. `--list` names the recipes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from training import SHARES, Collection, Results, ceiling, collections, mixed, options, room

import fontes as ft
from fontes.core.progress import Progress
from fontes.train import CrossEncoderSettings, Examples, document_examples, mine_negatives, train_cross_encoder
from fontes.train.bi_encoder import BiEncoderSettings, train_bi_encoder

CLAIMS, SCIFACT, CZECH = "checkthat20_task2", "scifact", "ctkfacts_cs"
DEPTHS = {CLAIMS: 20, SCIFACT: 100, CZECH: 20}  # of the candidates that are reranked
QUICK: dict[str, Any] = {"dropout": 0.0, "precision": "bfloat16"}
Settings = CrossEncoderSettings | BiEncoderSettings


@dataclass(frozen=True)
class Recipe:
    """A training: on which examples of which collection, how, and from which start ("": the collection's; else a recipe)."""

    examples: Callable[[Collection], Examples]
    settings: Settings
    of: str = CLAIMS
    on: str = CLAIMS  # where it is measured
    start: str = ""
    systems: tuple[str, ...] = ("bm25", "hybrid")


def mined(run: str, preset: str | None = None, **how: Any) -> Callable[[Collection], Examples]:
    """Examples of the training topics with negatives out of one of the candidates' runs."""

    def examples(one: Collection) -> Examples:
        topics, qrels = one.topics(one.training), one.qrels(one.training)
        return mine_negatives(one.run(one.training, run), topics, qrels, preset=preset, **how).examples

    return examples


def titles(limit: int) -> Callable[[Collection], Examples]:
    """Examples out of the documents: the title looks for the text, with negatives of BM25."""
    return lambda one: document_examples(one.index, form="title", negatives=one.index.bm25(), limit=limit).examples


def pairs(**changes: Any) -> CrossEncoderSettings:
    return CrossEncoderSettings(**{"lr": 1e-4, **QUICK, **changes})


def towers(**changes: Any) -> BiEncoderSettings:
    return BiEncoderSettings(**{"mini_batch": None, "lr": 5e-5, **QUICK, **changes})


HARD = mined("hybrid", per_positive=4, ranks=(1, 30), sampling="random")
ONE_HARD = mined("hybrid", per_positive=1, ranks=(1, 20), sampling="random")
RECIPES = {
    "air2025": Recipe(mined("bm25", preset="air2025"), CrossEncoderSettings(precision="bfloat16")),
    "bce, hybrid": Recipe(HARD, pairs()),
    "listwise, hybrid": Recipe(HARD, pairs(loss="lambda", batch=4)),
    "margin, hybrid": Recipe(HARD, pairs(loss="margin", batch=4)),
    "titles": Recipe(titles(1600), pairs(loss="lambda", batch=4, epochs=1)),
    "titles, then listwise": Recipe(HARD, pairs(loss="lambda", batch=4), start="titles"),
    "scifact, then listwise": Recipe(HARD, pairs(loss="lambda", batch=4), start="scifact listwise"),
    "scifact, zero-shot": Recipe(HARD, pairs(loss="lambda", batch=4, max_length=256), of=SCIFACT, start="scifact listwise"),
    "bi-encoder": Recipe(ONE_HARD, towers(batch=32, epochs=3)),
    "scifact bi-encoder": Recipe(ONE_HARD, towers(batch=16, epochs=2, max_length=256), SCIFACT, SCIFACT, systems=("bm25",)),
    "scifact listwise": Recipe(
        mined("hybrid", per_positive=3, ranks=(1, 50), sampling="random"),
        pairs(loss="lambda", batch=4, max_length=256),
        SCIFACT,
        SCIFACT,
        systems=("hybrid",),
    ),
    "czech bi-encoder": Recipe(
        ONE_HARD, towers(batch=32, epochs=1, lr=2e-5, max_length=256, evaluations=1), CZECH, CZECH, systems=("bm25", "dense")
    ),
    "czech listwise": Recipe(
        HARD, pairs(loss="lambda", batch=4, epochs=1, max_length=256, evaluations=1), CZECH, CZECH, systems=("hybrid",)
    ),
}


@dataclass(frozen=True)
class Bench:
    """The collections and where models and results are kept."""

    data: Path
    work: Path

    @cached_property
    def group(self) -> dict[str, Collection]:
        return collections(self.data, self.work)

    @cached_property
    def results(self) -> Results:
        return Results(self.work / "recipes.jsonl")

    def trained(self, name: str) -> Path:
        """The folder of a recipe's model, which is trained where it is not there."""
        recipe, folder = RECIPES[name], self.work / "models" / name.replace(", ", "-").replace(" ", "-")
        folder.parent.mkdir(exist_ok=True)
        if not folder.exists():
            start = str(self.trained(recipe.start)) if recipe.start else self.group[recipe.of].start
            self.results.once(f"train {name}", lambda: self._train(recipe, start, folder))
        return folder

    def _train(self, recipe: Recipe, start: str, folder: Path) -> dict[str, Any]:
        examples = recipe.examples(self.group[recipe.of])
        train: Any = train_bi_encoder if isinstance(recipe.settings, BiEncoderSettings) else train_cross_encoder
        training = train(examples, folder, start, recipe.settings, progress=show)
        facts = {"examples": len(examples), "rows": training.rows, "steps": training.steps, "best": training.best}
        return {**facts, "seconds": training.seconds, "settings": training.settings, "figures": training.figures}

    def measured(self, name: str, split: str = "") -> None:
        """The model over each of its candidates, alone and mixed with them, on a split or the topics to choose with."""
        folder, recipe = self.trained(name), RECIPES[name]
        one = self.group[recipe.on]
        split = split or one.choosing
        for system in recipe.systems:
            row = f"{recipe.on} {split}: {name} over {system}"
            self.results.once(row, lambda system=system: mixing(recipe, folder, one, split, system))

    def tested(self, name: str) -> None:
        """The model on test, mixed with its candidates as was best on the topics to choose with; and its statistics."""
        self.measured(name)
        folder, recipe = self.trained(name), RECIPES[name]
        one = self.group[recipe.on]
        for system in recipe.systems:
            share = self.results.rows[f"{recipe.on} {one.choosing}: {name} over {system}"]["share"]
            row = f"{recipe.on} {one.testing}: {name} over {system}"
            self.results.once(row, lambda system=system, share=share: final(recipe, folder, one, system, share))


def show(at: Progress) -> None:
    if at.done % 20 == 0:
        print(f"{at.done} of {at.total}, {at.elapsed:.0f} s, {at.note}", file=sys.stderr, flush=True)


def both(recipe: Recipe, folder: Path, one: Collection, split: str, system: str) -> tuple[ft.Run, ft.Run, float]:
    """The candidates and the run of the model, and the best value that it could have."""
    candidates = one.run(split, system)
    if isinstance(recipe.settings, BiEncoderSettings):
        encoder = ft.SentenceEncoder(str(folder))
        one.index.encode(encoder)
        return candidates, one.index.dense(encoder)(one.topics(split)), 1.0
    depth = DEPTHS[one.name]
    begun = candidates.top(depth)
    reranker = ft.CrossEncoder(str(folder), cache=folder.parent / "scores.sqlite", precision="bfloat16")
    return begun, reranker(begun), ceiling(candidates, one.qrels(split), depth, one.measure)


def mixing(recipe: Recipe, folder: Path, one: Collection, split: str, system: str) -> dict[str, Any]:
    """The measure for each share of the candidates' scores in the sum, from 0 on, and the best share."""
    qrels = one.qrels(split)
    begun, new, top = both(recipe, folder, one, split, system)
    values = {share: round(value(mixed(begun, new, share), qrels, one.measure), 4) for share in SHARES}
    best = max(SHARES, key=lambda share: values[share])
    facts = {"share": best, "values": {str(share): number for share, number in values.items()}}
    return {**facts, **gain(value(one.run(split, system), qrels, one.measure), values[0.0], values[best], top)}


def gain(before: float, alone: float, after: float, top: float) -> dict[str, float]:
    figures = {"before": before, "alone": alone, "after": after, "ceiling": top}
    figures |= {"room to 1": room(before, after, 1.0), "room to the ceiling": room(before, after, top)}
    return {name: round(number, 4) for name, number in figures.items()}


def final(recipe: Recipe, folder: Path, one: Collection, system: str, share: float) -> dict[str, Any]:
    """Figures of the test topics, with the report of `compare` against the candidates."""
    qrels, before = one.qrels(one.testing), one.run(one.testing, system)
    begun, new, top = both(recipe, folder, one, one.testing, system)
    after = mixed(begun, new, share)
    name = f"{folder.name}-over-{system}"
    ft.write_run(after, folder.parent / f"{one.name}-{one.testing}-{name}.run")
    systems = {system: before, "alone": new, "mixed": after}
    measures = [one.measure, "nDCG@10", "AP", "R@100"] if one.measure != "nDCG@10" else ["nDCG@10", "RR@5", "AP", "R@100"]
    report = ft.compare(systems, None, qrels, measures, baseline=system)
    report.save(folder.parent / f"{one.name}-{one.testing}-{name}.json")
    values = [report.mean(which, one.measure) for which in systems]
    return {"share": share, **gain(*values, top), "report": report.to_markdown()}


def value(run: ft.Run, qrels: ft.Qrels, measure: str) -> float:
    return float(ft.evaluate(run, qrels, [measure])[measure])


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--recipe", action="append", default=[], help="what to train and choose with")
    parser.add_argument("--test", action="append", default=[], help="what to measure on test as well")
    parser.add_argument("--list", action="store_true", help="only name the recipes")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(RECIPES))
    bench = Bench(chosen.data, chosen.work)
    for name in chosen.recipe:
        bench.measured(name)
    for name in chosen.test:
        bench.tested(name)


if __name__ == "__main__":
    main()

"""Tweets to verified claims (CheckThat! 2020, task 2): rerankers and encoders trained on 800 tweets, chosen on dev, measured on test.

    FONTES_DATA=DIR python bench/training_claims.py --work DIR [--recipe NAME ...] [--test NAME ...]

Trains each recipe from all-MiniLM-L6-v2, measures it on the 197 dev tweets and keeps the result; what is there is not done again,
and a training that was interrupted goes on. `--test` measures recipes on the 199 test tweets, with the weights chosen on dev: once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training import SHARES, Collection, Results, ceiling, collections, minilm, mixed, options, room

import fontes as ft
from fontes.core.progress import Progress
from fontes.train import CrossEncoderSettings, Examples, document_examples, train_cross_encoder
from fontes.train.bi_encoder import BiEncoderSettings, train_bi_encoder

MEASURE = "RR@5"
DEPTH = 20  # of the candidates that are reranked
QUICK = {"dropout": 0.0, "precision": "bfloat16"}


@dataclass(frozen=True)
class Recipe:
    """A training: on which examples, with which settings, from which start ("" is all-MiniLM-L6-v2, else a recipe)."""

    examples: Callable[[Collection], Examples]
    settings: CrossEncoderSettings | BiEncoderSettings
    start: str = ""
    of: str = "checkthat20_task2"  # the collection that is learned from
    more: Mapping[str, Any] = field(default_factory=dict)


def mined(run: str, preset: str | None = None, **how: Any) -> Callable[[Collection], Examples]:
    """Examples of the training topics with negatives out of one of the candidates' runs."""

    def examples(one: Collection) -> Examples:
        topics, qrels = one.topics(one.training), one.qrels(one.training)
        return ft.train.mine_negatives(one.run(one.training, run), topics, qrels, preset=preset, **how).examples

    return examples


def titles(limit: int) -> Callable[[Collection], Examples]:
    """Examples out of the documents: the title looks for the text, with negatives of BM25."""
    return lambda one: document_examples(one.index, form="title", negatives=one.index.bm25(), limit=limit).examples


HYBRID = mined("hybrid", per_positive=7, ranks=(1, 30), sampling="random")
RECIPES = {
    "air2025": Recipe(mined("bm25", preset="air2025"), CrossEncoderSettings(precision="bfloat16")),
    "listwise, hybrid": Recipe(HYBRID, CrossEncoderSettings(loss="lambda", batch=4, lr=1e-4, **QUICK)),
    "margin, hybrid": Recipe(HYBRID, CrossEncoderSettings(loss="margin", batch=4, lr=1e-4, **QUICK)),
    "bce, hybrid": Recipe(HYBRID, CrossEncoderSettings(batch=32, lr=1e-4, **QUICK)),
    "titles": Recipe(titles(1600), CrossEncoderSettings(loss="lambda", batch=4, lr=1e-4, epochs=1, **QUICK)),
    "bi-encoder": Recipe(
        mined("hybrid", per_positive=1, ranks=(1, 20), sampling="random"),
        BiEncoderSettings(batch=32, mini_batch=None, epochs=3, lr=5e-5, **QUICK),
    ),
}


def trained(name: str, group: Mapping[str, Collection], work: Path, results: Results) -> Path:
    """The folder of a recipe's model, which is trained where it is not there."""
    recipe, folder = RECIPES[name], work / "models" / name.replace(", ", "-").replace(" ", "-")
    start = str(trained(recipe.start, group, work, results)) if recipe.start else minilm()
    folder.parent.mkdir(exist_ok=True)

    def train() -> dict[str, Any]:
        examples = recipe.examples(group[recipe.of])
        work_of = train_bi_encoder if isinstance(recipe.settings, BiEncoderSettings) else train_cross_encoder
        training = work_of(examples, folder, start, recipe.settings, progress=show)
        facts = {"examples": len(examples), "rows": training.rows, "steps": training.steps, "best": training.best}
        return {**facts, "seconds": training.seconds, "settings": training.settings, "figures": training.figures}

    if not (folder / "config_sentence_transformers.json").exists():
        results.rows.pop(f"train {name}", None)
    results.once(f"train {name}", train)
    return folder


def show(at: Progress) -> None:
    if at.done % 20 == 0:
        print(f"{at.done} of {at.total}, {at.note}", file=sys.stderr, flush=True)


def measured(name: str, group: Mapping[str, Collection], work: Path, results: Results, split: str) -> None:
    """The recipe's model over the candidates of a split, alone and mixed with them."""
    folder = trained(name, group, work, results)
    one = group["checkthat20_task2"]
    qrels = one.qrels(split)
    for system in ("bm25", "hybrid"):
        results.once(f"{split} {name} over {system}", lambda system=system: mixing(name, folder, one, split, system, qrels))


def mixing(name: str, folder: Path, one: Collection, split: str, system: str, qrels: ft.Qrels) -> dict[str, Any]:
    candidates = one.run(split, system)
    if isinstance(RECIPES[name].settings, BiEncoderSettings):
        encoder = ft.SentenceEncoder(str(folder))
        one.index.encode(encoder)
        begun, other = candidates, one.index.dense(encoder)(one.topics(split))
        top = 1.0
    else:
        begun = candidates.top(DEPTH)
        other = ft.CrossEncoder(str(folder), cache=folder.parent / "scores.sqlite")(begun)
        top = ceiling(candidates, qrels, DEPTH)
    values = {f"{share}": round(measure(mixed(begun, other, share), qrels), 4) for share in SHARES}
    before = measure(candidates, qrels)
    best = max(values, key=lambda share: values[share])
    return {
        "before": round(before, 4),
        "alone": values["0.0"],
        "values": values,
        "best share of the candidates": best,
        "best": values[best],
        "ceiling": round(top, 4),
        "room to 1": round(room(before, values[best], 1.0), 3),
        "room to the ceiling": round(room(before, values[best], top), 3),
    }


def measure(run: ft.Run, qrels: ft.Qrels) -> float:
    return float(ft.evaluate(run, qrels, [MEASURE])[MEASURE])


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--recipe", action="append", default=[], help="what to train and measure on dev")
    parser.add_argument("--test", action="append", default=[], help="what to measure on test as well")
    chosen = parser.parse_args()
    group, results = collections(chosen.data, chosen.work), Results(chosen.work / "claims.jsonl")
    for name in chosen.recipe:
        measured(name, group, chosen.work, results, "dev")
    for name in chosen.test:
        measured(name, group, chosen.work, results, "test")


if __name__ == "__main__":
    main()

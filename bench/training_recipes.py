"""Rerankers and encoders trained on real collections, chosen on topics of training and validation, measured once on test.

    FONTES_DATA=DIR python bench/training_recipes.py --work DIR [--recipe NAME ...] [--test NAME ...] [--seeds N] [--depth K]

Trains each recipe, measures it on the topics to choose with (the 197 dev tweets of CheckThat! 2020; a quarter of SciFact's
training claims), and keeps the result; what is there is not done again, and a training that was interrupted goes on. `--test`
measures recipes on test, with the weights chosen before, and compares them with their candidates. `--list` names the recipes.
`--seeds` does so for as many seeds of each recipe, and prints mean, standard deviation and range. With `--depth`, the depth of
the candidates that a tested reranker reads is chosen, with the weight, on the topics to choose with.
Learned sparse encoders start from the folder splade-tiny of the work folder.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from training import SHARES, Collection, Results, ceiling, collections, mean, mixed, options, room

import fontes as ft
from fontes.core.work import Progress
from fontes.neural import Reranker
from fontes.passages import Sentences, TextScorer
from fontes.train import (
    BiEncoderSettings,
    ColBERTSettings,
    CrossEncoderSettings,
    Examples,
    SpladeSettings,
    document_examples,
    mine_negatives,
    train_bi_encoder,
    train_colbert,
    train_cross_encoder,
    train_splade,
)

CLAIMS, SCIFACT, CZECH = "checkthat20_task2", "scifact", "ctkfacts_cs"
UNSEEN = ("cranfield", "med", "cisi", "npl")  # all judged topics are the test
DEPTHS = {CLAIMS: 20, SCIFACT: 100, CZECH: 20}  # of the candidates that are reranked
QUICK: dict[str, Any] = {"dropout": 0.0, "precision": "bfloat16"}
Settings = CrossEncoderSettings | BiEncoderSettings | SpladeSettings | ColBERTSettings
TRAIN: dict[type, Callable[..., Any]] = {
    BiEncoderSettings: train_bi_encoder,
    ColBERTSettings: train_colbert,
    CrossEncoderSettings: train_cross_encoder,
    SpladeSettings: train_splade,
}


@dataclass(frozen=True)
class Recipe:
    """A training: on which examples of which collection, how, and from which start ("": the collection's; else a recipe).

    Without examples nothing is trained; without settings the token vectors of the start rerank by late interaction.
    """

    examples: Callable[[Collection], Examples] | None
    settings: Settings | None
    of: str | tuple[str, ...] = CLAIMS
    on: str = CLAIMS  # where it is measured
    start: str = ""
    base: str = ""  # a folder of the work folder, in place of the collection's start
    systems: tuple[str, ...] = ("bm25", "hybrid")  # the candidates: runs, or recipes, mixed with their first candidates
    depth: int = 0  # of the candidates that are reranked; 0 for the collection's
    sentences: int = 0  # how many of each document a reranker reads and learns from, beside the first; 0 for all

    @property
    def collections(self) -> tuple[str, ...]:
        """Those that it learns from; the first names the start."""
        return (self.of,) if isinstance(self.of, str) else self.of

    def scorer(self, folder: Path, scores: Path, one: Collection) -> Reranker:
        """What reranks with the trained model in a folder."""
        reranker: Reranker
        if self.settings is None or isinstance(self.settings, ColBERTSettings):
            colbert = ft.ColBERT(str(folder), document_length=300, precision="bfloat16")
            reranker = ft.neural.LateReranker(colbert, nbits=0, cache=scores)
        else:
            reranker = ft.CrossEncoder(str(folder), cache=scores, precision="bfloat16")
        return Trimmed(reranker, TextScorer(one.index.bm25()), self.sentences) if self.sentences else reranker


@dataclass(frozen=True)
class Trimmed(Reranker):
    """A reranker that reads a document's first sentence, which begins with its title, and the `n` others best for the query."""

    reranker: Reranker
    picker: Reranker
    n: int

    @property
    def fingerprint(self) -> str:
        return f"{self.n} sentences by {self.picker.fingerprint} for {self.reranker.fingerprint}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        texts = self.texts(pairs)
        return self.reranker.pair_scores([(query, text) for (query, _), text in zip(pairs, texts, strict=True)])

    def texts(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Each document's first sentence and the best others, in the order of the text."""
        spans = Sentences().splitter()([text for _, text in pairs])
        parts = [[text[start:end] for start, end in each] for (_, text), each in zip(pairs, spans, strict=True)]
        queries = [(query, part) for (query, _), each in zip(pairs, parts, strict=True) for part in each[1:]]
        scores = iter(self.picker.pair_scores(queries).tolist())
        texts = []
        for each in parts:
            of_parts = {number: next(scores) for number in range(1, len(each))}
            best = sorted(of_parts, key=lambda number: (-of_parts[number], number))[: self.n]
            texts.append(" ".join([*each[:1], *(each[number] for number in sorted(best))]))
        return texts

    def examples(self, examples: Examples) -> Examples:
        """Examples of the texts that the reranker reads."""
        listed = [(one, text) for one in examples for text in (one.positive, *one.negatives)]
        read = iter(self.texts([(one.query, text.text) for one, text in listed]))
        return Examples(
            replace(
                one,
                positive=replace(one.positive, text=next(read)),
                negatives=tuple(replace(text, text=next(read)) for text in one.negatives),
            )
            for one in examples
        )


def mined(run: str, preset: str | None = None, **how: Any) -> Callable[[Collection], Examples]:
    """Examples of the training topics with negatives out of one of the candidates' runs."""

    def examples(one: Collection) -> Examples:
        topics, qrels = one.topics(one.training), one.qrels(one.training)
        return mine_negatives(one.run(one.training, run), topics, qrels, preset=preset, **how).examples

    return examples


def apart(run: str, share: float, **how: Any) -> Callable[[Collection], Examples]:
    """Examples as from `mined`, without candidates that late interaction scores above a share of the relevant document's."""

    def examples(one: Collection) -> Examples:
        colbert = ft.ColBERT(one.start, document_length=300, precision="bfloat16")
        return mined(run, teacher=ft.neural.LateReranker(colbert, nbits=0), relative_margin=share, **how)(one)

    return examples


def titles(limit: int) -> Callable[[Collection], Examples]:
    """Examples out of the documents: the title looks for the text, with negatives of BM25."""
    return lambda one: document_examples(one.index, form="title", negatives=one.index.bm25(), limit=limit).examples


def taught(examples: Callable[[Collection], Examples], share: float = 0.5) -> Callable[[Collection], Examples]:
    """The examples with the scores of BM25 and the collection's untrained encoder, in a sum."""
    return lambda one: examples(one).scored(hybrid(one, share))


def hybrid(one: Collection, share: float = 0.5) -> Any:
    one.index.encode(one.encoder)
    return ft.fuse(one.index.bm25(), one.index.dense(one.encoder, k=1000), method="wsum", weights=(share, 1 - share))


def pairs(**changes: Any) -> CrossEncoderSettings:
    return CrossEncoderSettings(**{"lr": 1e-4, **QUICK, **changes})


def towers(**changes: Any) -> BiEncoderSettings:
    return BiEncoderSettings(**{"mini_batch": None, "lr": 5e-5, **QUICK, **changes})


def sparse(**changes: Any) -> SpladeSettings:
    return SpladeSettings(**{"lr": 2e-4, **QUICK, **changes})


def late(**changes: Any) -> ColBERTSettings:
    return ColBERTSettings(**{"mini_batch": None, "lr": 5e-5, **QUICK, **changes})


HARD = mined("hybrid", per_positive=4, ranks=(1, 30), sampling="random")
ONE_HARD = mined("hybrid", per_positive=1, ranks=(1, 20), sampling="random")
LISTWISE = Recipe(
    mined("hybrid", per_positive=3, ranks=(1, 50), sampling="random"),
    pairs(loss="lambda", batch=4, max_length=256),
    SCIFACT,
    SCIFACT,
    systems=("hybrid",),
)
RECIPES = {
    "air2025": Recipe(mined("bm25", preset="air2025"), CrossEncoderSettings(precision="bfloat16")),
    "bce, hybrid": Recipe(HARD, pairs()),
    "listwise, hybrid": Recipe(
        HARD, pairs(loss="lambda", batch=4, epochs=1, evaluations=1), systems=("bm25", "hybrid", "bi-encoder")
    ),
    "margin, hybrid": Recipe(HARD, pairs(loss="margin", batch=4)),
    "titles": Recipe(titles(1600), pairs(loss="lambda", batch=4, epochs=1)),
    "titles, then listwise": Recipe(HARD, pairs(loss="lambda", batch=4), start="titles"),
    "scifact, then listwise": Recipe(HARD, pairs(loss="lambda", batch=4), start="scifact listwise"),
    "scifact, zero-shot": Recipe(None, pairs(), start="scifact listwise"),
    "scifact bi-encoder, zero-shot": Recipe(None, towers(), start="scifact bi-encoder", systems=("bm25",)),
    "claims bi-encoder, zero-shot": Recipe(None, towers(), SCIFACT, SCIFACT, "bi-encoder", systems=("bm25",)),
    "bi-encoder": Recipe(ONE_HARD, towers(batch=32, epochs=3)),
    "bi-encoder, relative margin": Recipe(
        apart("hybrid", 0.95, per_positive=1, ranks=(1, 20), sampling="random"), towers(batch=32, epochs=3)
    ),
    "bi-encoder, tokens": Recipe(None, None, start="bi-encoder", systems=("hybrid", "bi-encoder")),
    "scifact bi-encoder": Recipe(ONE_HARD, towers(batch=16, epochs=2, max_length=256), SCIFACT, SCIFACT, systems=("bm25",)),
    "scifact listwise": replace(LISTWISE, systems=("hybrid", "scifact bi-encoder")),
    "scifact listwise, best 20": replace(LISTWISE, depth=20),
    "scifact listwise, trimmed": replace(LISTWISE, depth=20, sentences=3),
    "scifact listwise, reads trimmed": Recipe(
        None, pairs(), SCIFACT, SCIFACT, "scifact listwise", systems=("hybrid",), depth=20, sentences=3
    ),
    "both, listwise": Recipe(HARD, pairs(loss="lambda", batch=4, epochs=1, max_length=256), (CLAIMS, SCIFACT)),
    "both, taught": Recipe(
        taught(HARD), pairs(loss="kl", teacher_scale=10.0, batch=4, epochs=1, max_length=256), (CLAIMS, SCIFACT)
    ),
    "both, late": Recipe(ONE_HARD, late(batch=16, max_length=256), (CLAIMS, SCIFACT), systems=("bm25",)),
    "tokens": Recipe(None, None, systems=("bm25",)),
    "late": Recipe(ONE_HARD, late(epochs=3), systems=("bm25",)),
    "scifact tokens": Recipe(None, None, SCIFACT, SCIFACT, systems=("bm25", "scifact bi-encoder")),
    "scifact late": Recipe(ONE_HARD, late(batch=16, max_length=256), SCIFACT, SCIFACT, systems=("bm25",)),
    "splade": Recipe(None, sparse(), base="splade-tiny", systems=("bm25",)),
    "splade, trained": Recipe(ONE_HARD, sparse(epochs=3), base="splade-tiny", systems=("bm25",)),
    "scifact splade": Recipe(None, sparse(), SCIFACT, SCIFACT, base="splade-tiny", systems=("bm25",)),
    "scifact splade, trained": Recipe(
        ONE_HARD, sparse(batch=16, max_length=256), SCIFACT, SCIFACT, base="splade-tiny", systems=("bm25",)
    ),
    "scifact splade, static queries": Recipe(
        ONE_HARD, sparse(batch=16, max_length=256, static_queries=True), SCIFACT, SCIFACT, base="splade-tiny", systems=("bm25",)
    ),
    "scifact tokens, trimmed": Recipe(None, None, SCIFACT, SCIFACT, systems=("bm25",), sentences=3),
    "scifact bi-encoder, tokens": Recipe(None, None, SCIFACT, SCIFACT, "scifact bi-encoder", systems=("scifact bi-encoder",)),
    "czech bi-encoder": Recipe(
        ONE_HARD, towers(batch=32, epochs=1, lr=2e-5, max_length=256, evaluations=1), CZECH, CZECH, systems=("bm25", "dense")
    ),
    "czech listwise": Recipe(
        HARD, pairs(loss="lambda", batch=4, epochs=1, max_length=256, evaluations=1), CZECH, CZECH, systems=("hybrid",)
    ),
    "czech tokens": Recipe(None, None, CZECH, CZECH, systems=("bm25",)),
    "czech late": Recipe(
        ONE_HARD, late(batch=16, lr=2e-5, max_length=256, evaluations=1), CZECH, CZECH, systems=("bm25", "czech bi-encoder")
    ),
    "czech splade": Recipe(None, sparse(), CZECH, CZECH, base="splade-tiny", systems=("bm25",)),
    "czech splade, trained": Recipe(
        ONE_HARD, sparse(batch=16, epochs=3, max_length=256), CZECH, CZECH, base="splade-tiny", systems=("bm25",)
    ),
}


@dataclass(frozen=True)
class Bench:
    """The collections and where models and results are kept."""

    data: Path
    work: Path

    @cached_property
    def group(self) -> dict[str, Collection]:
        unseen = {name: Collection(name, self.data, self.work, "nDCG@10") for name in UNSEEN}
        return collections(self.data, self.work) | unseen

    @cached_property
    def results(self) -> Results:
        return Results(self.work / "recipes.jsonl")

    def trained(self, name: str) -> Path:
        """The folder of a recipe's model, which is trained where it is not there."""
        recipe, folder = RECIPES[name], self.work / "models" / name.replace(", ", "-").replace(" ", "-")
        folder.parent.mkdir(exist_ok=True)
        start = self.work / recipe.base if recipe.base else Path(self.group[recipe.collections[0]].start)
        start = self.trained(recipe.start) if recipe.start else start
        if recipe.examples is None:
            return start
        if not folder.exists():
            self.results.once(f"train {name}", lambda: self._train(recipe, start, folder))
        return folder

    def _train(self, recipe: Recipe, start: Path, folder: Path) -> dict[str, Any]:
        assert recipe.examples is not None
        examples = Examples([one for name in recipe.collections for one in self._examples(recipe, self.group[name])])
        training = TRAIN[type(recipe.settings)](examples, folder, start, recipe.settings, progress=show)
        facts = {"examples": len(examples), "rows": training.rows, "steps": training.steps, "best": training.best}
        return {**facts, "seconds": training.seconds, "settings": training.settings, "figures": training.figures}

    def _examples(self, recipe: Recipe, one: Collection) -> Examples:
        assert recipe.examples is not None
        examples = recipe.examples(one)
        if not recipe.sentences:
            return examples
        picker = TextScorer(one.index.bm25())
        return Trimmed(picker, picker, recipe.sentences).examples(examples)

    def candidates(self, one: Collection, split: str, system: str) -> ft.Run:
        """A run of the collection; or that of a recipe, mixed with its first candidates."""
        if system not in RECIPES:
            return one.run(split, system)
        first = RECIPES[system].systems[0]
        begun, new, _ = self.both(system, one, split, first)
        return mixed(begun, new, self.share(system, one, first))

    def share(self, name: str, one: Collection, system: str) -> float:
        """The share of the candidates that was best on the topics to choose with."""
        self.measured(name)
        return float(self.results.rows[row(one, one.choosing, name, system)]["share"])

    def both(
        self, name: str, one: Collection, split: str, system: str, depth: int | None = None
    ) -> tuple[ft.Run, ft.Run, float]:
        """The candidates and the run of the model, and the best value that it could have."""
        recipe, folder = RECIPES[name], self.trained(name)
        candidates = self.candidates(one, split, system)
        if isinstance(recipe.settings, BiEncoderSettings):
            encoder = ft.SentenceEncoder(str(folder), precision="bfloat16")
            one.index.encode(encoder)
            return candidates, one.index.dense(encoder)(one.topics(split)), 1.0
        if isinstance(recipe.settings, SpladeSettings):
            weights = ft.Splade(str(folder), max_length=256, precision="bfloat16")
            one.index.encode(weights)
            return candidates, one.index.splade(weights)(one.topics(split)), 1.0
        depth = depth or recipe.depth or DEPTHS.get(one.name, 20)
        begun = candidates.top(depth)
        new = recipe.scorer(folder, self.work / "models" / "scores.sqlite", one)(begun)
        return begun, new, ceiling(candidates, one.qrels(split), depth, one.measure)

    def measured(self, name: str) -> None:
        """The model over each of its candidates on the topics to choose with, alone and mixed with them."""
        one = self.group[RECIPES[name].on]
        for system in RECIPES[name].systems:
            self.results.once(row(one, one.choosing, name, system), lambda system=system: self._mixing(name, one, system))

    def _mixing(self, name: str, one: Collection, system: str) -> dict[str, Any]:
        """The measure for each share of the candidates' scores in the sum, from 0 on, and the best share.

        That is chosen on the topics whose relevant documents have no twin: else what tells twins apart would be learned.
        """
        qrels, plain = one.qrels(one.choosing), one.plain(one.choosing)
        begun, new, top = self.both(name, one, one.choosing, system)
        runs = {share: mixed(begun, new, share) for share in SHARES}
        values = {share: mean(run, qrels, one.measure) for share, run in runs.items()}
        without = {share: mean(run, plain, one.measure) for share, run in runs.items()}
        best = max(SHARES, key=lambda share: without[share])
        facts: dict[str, Any] = {"share": best, "topics": len(qrels), "topics without twins": len(plain)}
        facts["values"] = {str(share): round(number, 4) for share, number in values.items()}
        facts["values without twins"] = {str(share): round(number, 4) for share, number in without.items()}
        return {**facts, **gain(values[1.0], values[0.0], values[best], top)}

    def tested(self, name: str) -> None:
        """The model on test, mixed with its candidates as was best on the topics to choose with; and its statistics."""
        one = self.group[RECIPES[name].on]
        for system in RECIPES[name].systems:
            self.results.once(row(one, one.testing, name, system), lambda system=system: self._final(name, one, system))

    def _final(self, name: str, one: Collection, system: str) -> dict[str, Any]:
        share = self.share(name, one, system)
        begun, new, top = self.both(name, one, one.testing, system)
        systems = {"candidates": self.candidates(one, one.testing, system), "alone": new, "mixed": mixed(begun, new, share)}
        runs = self.work / "runs"
        runs.mkdir(exist_ok=True)
        ft.write_run(systems["mixed"], runs / f"{one.name}, {name} over {system}.run")
        measures = list(dict.fromkeys([one.measure, "nDCG@10", "RR@5", "R@100"]))
        report = ft.compare(systems, None, one.qrels(one.testing), measures, baseline="candidates", allow_empty=True)
        values = [report.mean(which, one.measure) for which in systems]
        means = {which: {measure: round(report.mean(which, measure), 4) for measure in measures} for which in systems}
        tests = {which: tested_against(report.comparison(which, "candidates", one.measure)) for which in ("alone", "mixed")}
        return {"share": share, **gain(*values, top), "means": means, "tests": tests}

    def print_spread(self, names: Sequence[str]) -> None:
        """What seeds of a recipe had on test, alone and mixed, over each of its candidates."""
        one = self.group[RECIPES[names[0]].on]
        for system in RECIPES[names[0]].systems:
            rows = [self.results.rows[row(one, one.testing, name, system)] for name in names]
            for which in ("alone", "after"):
                print(f"{names[0]} over {system}, {which}, {len(names)} seeds:", spread([each[which] for each in rows]))

    def depth_chosen(self, name: str, depths: Sequence[int]) -> None:
        """A reranker on test, over the depth and with the share that are best together on the topics to choose with."""
        one = self.group[RECIPES[name].on]
        for system in RECIPES[name].systems:
            title = row(one, one.testing, name, f"{system}, depth of {', '.join(map(str, depths))}")
            self.results.once(title, lambda system=system: self._depth(name, one, system, depths))

    def _depth(self, name: str, one: Collection, system: str, depths: Sequence[int]) -> dict[str, Any]:
        plain, values = one.plain(one.choosing), {}
        for depth in depths:
            begun, new, _ = self.both(name, one, one.choosing, system, depth)
            values |= {(depth, share): mean(mixed(begun, new, share), plain, one.measure) for share in SHARES}
        depth, share = max(values, key=lambda choice: values[choice])
        runs = {"candidates": self.candidates(one, one.testing, system)}
        for other in depths:
            best = max(SHARES, key=lambda share, other=other: values[other, share])
            runs[str(other)] = mixed(*self.both(name, one, one.testing, system, other)[:2], best)
        report = ft.compare(runs, None, one.qrels(one.testing), [one.measure], baseline="candidates", allow_empty=True)
        facts = {"depth": depth, "share": share, "test": {which: round(report.mean(which, one.measure), 4) for which in runs}}
        facts["choosing"] = {each: round(max(values[each, share] for share in SHARES), 4) for each in depths}
        return facts | tested_against(report.comparison(str(depth), "candidates", one.measure))


def seeded(name: str, seeds: int) -> list[str]:
    """The recipe and copies of it with the seeds 1 and up, which become recipes too."""
    copies = {f"{name}, seed {seed}": seed for seed in range(1, seeds)}
    for copy, seed in copies.items():
        settings = RECIPES[name].settings
        if settings is None or RECIPES[name].examples is None:
            raise SystemExit(f"{name} trains nothing, so seeds change nothing")
        RECIPES[copy] = replace(RECIPES[name], settings=settings.with_(seed=seed))
    return [name, *copies]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, standard deviation and range of the seeds' values."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    figures = {"mean": statistics.fmean(values), "deviation": deviation, "least": min(values), "most": max(values)}
    return {which: round(value, 4) for which, value in figures.items()}


def tested_against(test: Any) -> dict[str, float]:
    return {name: round(getattr(test, name), 4) for name in ("difference", "low", "high", "corrected")}


def row(one: Collection, split: str, name: str, system: str) -> str:
    return f"{one.name} {split}: {name} over {system}"


def show(at: Progress) -> None:
    if at.done % 20 == 0:
        print(f"{at.done} of {at.total}, {at.seconds:.0f} s, {at.note}", file=sys.stderr, flush=True)


def gain(before: float, alone: float, after: float, top: float) -> dict[str, float]:
    figures = {"before": before, "alone": alone, "after": after, "ceiling": top}
    figures |= {"room to 1": room(before, after, 1.0), "room to the ceiling": room(before, after, top)}
    return {name: round(number, 4) for name, number in figures.items()}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--recipe", action="append", default=[], help="what to train and choose with")
    parser.add_argument("--test", action="append", default=[], help="what to measure on test as well")
    parser.add_argument("--list", action="store_true", help="only name the recipes")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds of each (default: %(default)s)")
    parser.add_argument("--depth", type=int, action="append", default=[], help="a depth to choose from, for --test")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(RECIPES))
    bench = Bench(chosen.data, chosen.work)
    for name in chosen.recipe:
        for each in seeded(name, chosen.seeds):
            bench.measured(each)
    for name in chosen.test:
        names = seeded(name, chosen.seeds)
        for each in names:
            bench.tested(each)
            if chosen.depth:
                bench.depth_chosen(each, chosen.depth)
        if chosen.seeds > 1:
            bench.print_spread(names)


if __name__ == "__main__":
    main()

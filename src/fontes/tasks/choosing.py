"""Choices of `run_task`: parameters of BM25, a trained reranker, and weights of fusion, each with held-out runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..core.expression import part
from ..measures import evaluate
from ..neural.models.listing import packaged_encoder
from ..recipes.claims import RERANKER
from ..recipes.learning import NO_SIDE, RecipeTraining, cached_run
from ..recipes.sides import drop_leaked
from ..train import Side
from ..tuning import LearnedWeights, fit_weights, tune
from ..tuning.result import Tuning
from .base import relative

if TYPE_CHECKING:
    from ..index import Index

K1 = (0.6, 0.9, 1.2, 1.5, 2.0, 3.0, 4.5)  # values of BM25's k1 to try
B = (0.2, 0.4, 0.6, 0.75, 0.9)  # values of BM25's b to try
FOLDS = 5
MIN_TOPICS = 4  # two for each part of two folds
DEPTH = 100  # documents reranked
BASELINE = "bm25"
PLAIN = "plain_posts() >> "
OWN_DOCUMENTS = " >> not_itself()"  # of all systems, if the baseline has it
POSTS = re.compile(r"(?<!\w)[@#]\w|https?://|pic\.twitter\.com/")  # handles, hashtags and links
POSTS_SHARE = 0.1  # least share of topics that have one, for plain_posts() to be tried
HELD_OUT = 0.2  # share of the training topics on which weights are chosen, if there is no dev side


@dataclass(frozen=True)
class TaskOptions:
    """Models and settings of a run.

    Args:
        dense: Encoder of a dense row; "": the one of an installed package.
        sparse: Learned sparse model of a sparse row.
        rerank: Cross-encoder that reranks BM25's best documents.
        train: Model from which a cross-encoder is trained, on the training side.
        submit: System to submit; None for the best on held-out topics.
        depth: Number of documents that are reranked.
        seed: Seed of folds and training.
    """

    dense: str | None = None
    sparse: str | None = None
    rerank: str | None = None
    train: str | None = None
    submit: str | None = None
    depth: int = DEPTH
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rerank and self.train:
            raise ParameterError("--rerank is a cross-encoder and --train makes one; give one of them")
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 1:
            raise ParameterError(f"depth must be a whole number from 1 up, not {self.depth!r}")


@dataclass(frozen=True)
class Choices:
    """Result of `choose`.

    Args:
        systems: The expression of each system, with parameters and weights chosen on all topics.
        held_out: Runs of the tuned systems, in which the parameters and weights for a topic were chosen without this topic.
        values: Mean of each system over the topics, on its held-out run if it has one.
        topics: The topics used for choosing.
        notes: Sentences on the choices and on topics left out.
    """

    systems: dict[str, str]
    held_out: dict[str, Run]
    values: dict[str, float]
    topics: Side
    notes: list[str] = field(default_factory=list)

    @property
    def best(self) -> str:
        """The system with the highest value; in case of ties the baseline, then tuned BM25, then the first."""
        return max(self.values, key=lambda name: (round(self.values[name], 12), name == BASELINE, name == "tuned"))


class Chooser:
    """Chooses systems on a side.

    Args:
        index: Index of the documents.
        systems: Expressions of the base systems, by name.
        stages: The base systems over the index, by name.
        side: Topics and judgments to choose on.
        measure: The measure to choose by.
        folder: The project, for models and cached runs.
        options: Models and settings.
    """

    def __init__(
        self,
        index: Index,
        systems: Mapping[str, str],
        stages: Mapping[str, Stage[Topics, Run]],
        side: Side,
        measure: str,
        folder: Path,
        options: TaskOptions,
    ) -> None:
        self._index, self._measure, self._folder = index, measure, folder
        self._side, self._options = side, options
        self._systems, self._stages = dict(systems), dict(stages)
        self._ending = OWN_DOCUMENTS if "not_itself(" in systems[BASELINE] else ""
        self._notes: list[str] = []
        self._runs: dict[str, Run] = {}

    def choose(self, train: Side | None, measured: Topics) -> Choices:
        """Train, tune and fuse, and return the choices.

        Args:
            train: Topics to train on, if training is wanted; topics whose text also occurs in the other sides are left out.
            measured: Topics of all other sides.

        Raises:
            InputError: There are too few topics.
        """
        count = len(self._side.qrels)
        if count < MIN_TOPICS:
            raise InputError(f"parameters and weights are chosen on {MIN_TOPICS} topics or more, and there are {count}")
        self._add_models(train, measured)
        tuning = self._tune()
        fixed = [name for name in self._systems if name != BASELINE]
        texts = [self._tuned_text(fold.choice) for fold in tuning.folds]
        final = self._tuned_text(tuning.params)
        learned = self._fit_weights([*fixed, "tuned"], final, self._side.qrels)
        held_out = self._held_out_runs(fixed, tuning, texts)
        weights = ", ".join(f"{weight:g}" for weight in learned.weights)
        systems = {**self._systems, "tuned": final}
        systems["fused"] = f"fuse({', '.join([*fixed, 'tuned'])}, method='wsum', weights=({weights}))"
        runs = {**{name: self._run(name) for name in self._systems}, **held_out}
        values = {name: float(evaluate(runs[name], self._side.qrels, self._measure)[self._measure]) for name in systems}
        return Choices(systems, held_out, values, self._side, self._notes)

    def _add_models(self, train: Side | None, measured: Topics) -> None:
        options = self._options
        reranker = options.rerank if options.train is None else self._train_reranker(options.train, train, measured)
        dense = packaged_encoder() if options.dense == "" else options.dense
        rows = {
            "dense": (f"dense({{}}){self._ending}", dense),
            "sparse": (f"splade({{}}){self._ending}", options.sparse),
            "reranked": (f"{BASELINE} % {options.depth} >> cross_encoder({{}})", reranker),
        }
        for name, (text, model) in rows.items():
            if model is None:
                continue
            if name in self._systems:
                raise ParameterError(f"the experiment has a system '{name}' already; rename it, or leave the option out")
            local = Path(model).expanduser()
            # Files have the path relative to the project, so that a lock does not depend on the machine.
            self._systems[name] = text.format(repr(relative(local, self._folder) if local.is_dir() else model))
            self._stages[name] = part(
                text.format(repr(str(local) if local.is_dir() else model)), self._index, systems=self._stages
            )

    def _train_reranker(self, start: str, train: Side | None, measured: Topics) -> str:
        if train is None:
            raise InputError("there is no judged training side; leave --train out, or name it as 'train' in task.toml")
        learning = RecipeTraining(train, self._side if train is not self._side else NO_SIDE)
        if train is self._side:  # there is no other side to choose on, so a part is held out for choosing
            learning = RecipeTraining(*train.split(HELD_OUT, self._options.seed))
            self._side = learning.dev
            self._notes.append(
                f"there is no dev side: the model learns from {len(learning.train.qrels):,} training topics, and the other "
                f"{len(learning.dev.qrels):,} choose"
            )
        learning = drop_leaked(learning, measured, lambda topics: topics, drop=True)
        self._notes += [f"topics {note['role']}: {note['without']}" for note in learning.notes if "without" in note]
        if len(learning.dev.topics) < len(self._side.topics):
            self._side = self._side.only(learning.dev.topics)
        training = RecipeTraining(learning.train, learning.dev, folder=self._folder)
        sampling: dict[str, Any] = {"per_positive": 4, "ranks": (1, 30), "sampling": "random", "seed": self._options.seed}
        settings = RERANKER.with_(seed=self._options.seed)
        candidates = self._stages[BASELINE] % DEPTH
        return training.model("reranker", start, candidates, settings, **sampling)

    def _tune(self) -> Tuning:
        texts = [topic.text for topic in self._side.topics.values()]
        posts = sum(POSTS.search(text) is not None for text in texts)
        tries_plain = posts >= POSTS_SHARE * len(texts)
        # In this order, ties go to posts as they are.
        space = {"posts": ["", PLAIN] if tries_plain else [""], "k1": list(K1), "b": list(B)}

        def stage(posts: str, k1: float, b: float) -> Stage[Topics, Run]:
            bm25: Stage[Topics, Run] = part(self._tuned_text({"posts": posts, "k1": k1, "b": b}), self._index)
            return bm25

        folds = min(FOLDS, len(self._side.qrels))
        tuning = tune(stage, space, *self._side, self._measure, folds, seed=self._options.seed)
        self._notes += [f"tuned: {warning}" for warning in tuning.warnings]
        if tries_plain:
            chosen = "with" if tuning.params["posts"] else "without"
            facts = f"{posts:,} of {len(texts):,} topics have a handle, hashtag or link"
            self._notes.append(f"tuned: {facts}, so plain_posts() was tried; chosen: {chosen} it")
        return tuning

    def _tuned_text(self, setting: Mapping[str, object]) -> str:
        """Return the expression of a setting of `_tune`."""
        return f"{setting['posts']}bm25(k1={setting['k1']:g}, b={setting['b']:g}){self._ending}"

    def _fit_weights(self, names: Iterable[str], tuned: str, qrels: Qrels) -> LearnedWeights:
        runs = [self._run(tuned if name == "tuned" else name) for name in names]
        return fit_weights(runs, qrels, self._measure, folds=min(FOLDS, len(qrels)), seed=self._options.seed)

    def _held_out_runs(self, fixed: list[str], tuning: Tuning, texts: list[str]) -> dict[str, Run]:
        """Return runs of `tuned` and `fused` in which the parameters and weights for each topic come from the other folds."""
        rankings: dict[str, dict[str, dict[str, float]]] = {"tuned": {}, "fused": {}}
        for fold, text in zip(tuning.folds, texts, strict=True):
            fold_topics = {tuning.topic_ids[i] for i in fold.topics.tolist()}
            other_qrels = Qrels(row for row in self._side.qrels.rows() if row[0] not in fold_topics)
            fused = self._fit_weights([*fixed, "tuned"], text, other_qrels).run
            for name, run in (("tuned", self._run(text)), ("fused", fused)):
                for topic in fold_topics:
                    rankings[name][topic] = dict(zip(run[topic].ids, run[topic].scores.tolist(), strict=True))
        return {name: Run.of(system_rankings, self._side.topics) for name, system_rankings in rankings.items()}

    def _run(self, name: str) -> Run:
        """Return the run of a system, by its name, or of an expression."""
        if name not in self._runs:
            stage = self._stages[name] if name in self._stages else part(name, self._index)
            self._runs[name] = cached_run(name, stage, self._side.topics, self._folder)
        return self._runs[name]

"""`LearningRecipe`: a recipe whose models learn from judged topics, and the division of these topics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..experiments import Collection
from ..train import Side
from .base import Division, Recipe
from .learning import MIN_TOPICS, RecipeTraining, distinct, parted, side_of

Systems = dict[str, Stage[Topics, Run]]


@dataclass(frozen=True, repr=False)
class LearningRecipe(Recipe):
    """A recipe that learns from given judgments, or from part of those it is run on.

    Args:
        test: Share of the judged topics that is measured, if the recipe divides them.
        held_out: Share of the training topics used to choose weights and validate, if no others are given; 0: none.
        seed: Random seed.
    """

    chooses: ClassVar[bool] = False
    """Whether it cannot do without topics to choose with."""

    test: float = 0.2
    held_out: float = 0.1
    seed: int = 0

    @abstractmethod
    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems:
        """Return the systems by name, as `systems` of other recipes.

        First called with a `learning` without topics and folder, which gives the starting models.
        """

    def systems(self, collection: Collection) -> Systems:
        raise ParameterError(f"recipe {self.name} learns: give topics and judgments to learn from")

    def systems_with(self, learning: RecipeTraining | None) -> Callable[[Collection], Systems]:
        return partial(self.learned_systems, learning=learning or RecipeTraining())

    def divided(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        measured: tuple[Topics, Qrels | None]
        if train is None:
            if dev is not None:
                raise ParameterError(f"recipe {self.name}: dev goes with train; give both, or neither")
            if qrels is None:
                raise InputError(
                    f"recipe {self.name} learns from judgments: give train, or qrels, to learn from a part of them"
                )
            whole, measured = self.halves(topics, qrels)
        else:
            whole, measured = side_of(topics, train, train), measured_apart(topics, qrels, {*train, *(dev or ())})
            check_apart({"measure with": measured[1] or (), "learn from": train, "choose with": dev or ()})
        if not whole.topics:
            raise InputError("none of the topics has judgments to learn from; do topics and judgments belong together?")
        if dev is None:
            learned, chosen = parted(*whole, self.held_out, self.seed)
        else:
            learned, chosen = whole, side_of(topics, dev, dev)
        return *measured, RecipeTraining(learned, chosen)

    def check_sides(self, learning: RecipeTraining) -> None:
        chosen = len(learning.dev.qrels)
        if 0 < chosen < MIN_TOPICS or (self.chooses and not chosen):
            more = "give more topics, more as dev, or a greater held_out"
            raise InputError(f"weights are chosen on {MIN_TOPICS} topics or more, and there are {chosen}; {more}")

    def halves(self, topics: Topics, qrels: Qrels) -> tuple[Side, tuple[Topics, Qrels]]:
        """Return the judged topics to learn from and those to measure with: by default a share, without duplicates."""
        whole, measured = parted(*distinct(topics, qrels), self.test, self.seed)
        if not measured.topics or not whole.topics:
            raise InputError(f"{len(qrels)} judged topics are too few to learn from some and measure with others")
        return whole, measured

    def check(self) -> None:
        if not 0 < self.test < 1:
            raise ParameterError(f"recipe {self.name}: test must be a share between 0 and 1, not {self.test!r}")
        if not 0 <= self.held_out < 1:
            raise ParameterError(f"recipe {self.name}: held_out must be a share from 0 to below 1, not {self.held_out!r}")
        super().check()


def measured_apart(topics: Topics, qrels: Qrels | None, others: set[str]) -> tuple[Topics, Qrels | None]:
    """Return the topics to search: the measured ones; without judgments, those that nothing is learned from."""
    if qrels is not None:
        return topics.judged(qrels), qrels
    return Topics(topic for topic in topics.values() if topic.id not in others), None


def check_apart(sides: dict[str, object]) -> None:
    """Raise InputError for a topic that is on two sides."""
    uses: dict[str, str] = {}
    for use, ids in sides.items():
        for topic_id in ids:  # type: ignore[attr-defined]
            if topic_id in uses:
                raise InputError(f"topic '{topic_id}' is one to {uses[topic_id]} and to {use}; a topic has one use")
            uses[topic_id] = use

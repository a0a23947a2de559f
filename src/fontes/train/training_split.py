"""Examples to learn from and to validate on, all of one query on one side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from ..core.errors import InputError
from ..core.qrels import Qrels
from ..core.run import Run
from .examples import Example, TrainingSet
from .runner.settings import FitSettings

T = TypeVar("T", bound=TrainingSet[Any])


@dataclass(frozen=True)
class TrainingSplit(Generic[T]):
    """Sides of a training.

    Args:
        learned: Training data.
        validation: Data for the validation loss; None: nothing.
        hashes: Hashes of the data.
    """

    learned: T
    validation: T | None
    hashes: dict[str, str]

    @property
    def queries(self) -> set[str]:
        """Return the training queries."""
        return queries(self.learned)


def training_split(data: T, validation: T | None, settings: FitSettings) -> TrainingSplit[T]:
    """Return the sides of a training: the given validation data, or the share of queries the settings hold out.

    Raises:
        InputError: A query on both sides, or too few queries.
    """
    if validation is not None:
        if both := sorted(queries(data) & queries(validation)):
            item = next(item for item in validation if type(validation)._query(item).strip() == both[0])
            shared = ", ".join(f"'{query}'" for query in both)
            said = f"the query {shared} is" if len(both) == 1 else f"{len(both):,} queries are"
            which = "take it out of one of the two" if len(both) == 1 else f"take them out of one of the two: {shared}"
            raise InputError(f"{item.source or 'validation'}: {said} learned from too; {which}")
        return TrainingSplit(data, validation, {"examples": data.hash, "validation": validation.hash})
    hashes = {"examples": data.hash}
    if not settings.held_out:
        return TrainingSplit(data, None, hashes)
    return TrainingSplit(*data.held_out(settings.held_out, settings.seed), hashes)


def queries(data: TrainingSet[Any]) -> set[str]:
    """Return the queries of examples or pairs."""
    return {type(data)._query(item).strip() for item in data}


def unlearned(run: Run, qrels: Qrels, learned: Iterable[Example]) -> tuple[Run, Qrels]:
    """Return a validation run and its judgments, without training topics and unjudged topics.

    Raises:
        InputError: None are left.
    """
    examples = list(learned)
    texts = {example.query.strip() for example in examples}
    without = {topic.id for topic in run.topics.values() if topic.text.strip() in texts}
    without |= {example.topic for example in examples if example.topic not in run.topics}
    rows = [row for row in qrels.rows() if row[0] not in without]
    left = np.array([topic in qrels and topic not in without for topic in run.topics], dtype=bool)
    if not rows or not left.any():
        left_out = "all are learned from; hold some out, or give a run of others"
        raise InputError(f"no judged topic of the run to validate on is left: {left_out}")
    return run.keep(left[run.topic_numbers]), Qrels(rows)


def check_teacher(*sides: Iterable[Example] | None) -> None:
    """Raise InputError if a document has no teacher score."""
    for example in (example for side in sides for example in side or ()):
        for passage in (example.positive, *example.negatives):
            if passage.score is None:
                raise InputError(
                    f"{example.source or f'topic {example.topic}'}: the document '{passage.id}' has no score of a teacher; "
                    "the loss 'teacher' needs one for each, see Examples.scored"
                )

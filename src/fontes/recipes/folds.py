"""`OutOfFold`: a retriever whose parameters are tuned for each topic on the other folds of the judged topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from ..core import Run, Stage, Topics
from ..core.part import FrozenDict
from ..train import Side
from ..tuning import Tuning, tune
from ..tuning.folds import units_of

FOLDS = 5


@dataclass(frozen=True)
class OutOfFold(Stage[Topics, Run]):
    """Searches for each judged topic with the parameters that are best on the other folds, and for any other with the last.

    Args:
        stages: The retriever of each fold, then the one that is best on all judged topics.
        fold_of: The fold of each judged topic.
    """

    stages: tuple[Stage[Topics, Run], ...]
    fold_of: Mapping[str, int] = field(default=FrozenDict({}), repr=False)

    @classmethod
    def tuned(cls, tuning: Tuning, stage: Stage[Topics, Run]) -> Self:
        """Return the stage with the parameters of a tuning."""
        fold_of = {
            tuning.topic_ids[position]: number for number, fold in enumerate(tuning.folds) for position in fold.topics.tolist()
        }
        return cls((*(stage.with_(**fold.choice) for fold in tuning.folds), tuning.stage), FrozenDict(fold_of))

    def apply(self, topics: Topics, /) -> Run:
        last = len(self.stages) - 1
        runs: dict[int, Run] = {}
        for number, stage in enumerate(self.stages):
            fold_topics = Topics(topic for topic in topics.values() if self.fold_of.get(topic.id, last) == number)
            if fold_topics or number == last:
                runs[number] = stage(fold_topics)
        rankings = {topic_id: runs[self.fold_of.get(topic_id, last)][topic_id] for topic_id in topics}
        rows = {topic_id: zip(ranking.ids, ranking.scores.tolist(), strict=True) for topic_id, ranking in rankings.items()}
        return Run.of(rows, topics).with_(documents=runs[last].documents)


def tune_by_folds(
    stage: Stage[Topics, Run], space: Mapping[str, object], side: Side, measure: str
) -> tuple[OutOfFold, str] | None:
    """Tune a retriever by folds of topics none of which shares a relevant document with another fold.

    Returns:
        The retriever and what was chosen, in a sentence; None if there are fewer than two groups of topics.
    """
    folds = min(FOLDS, len(units_of(side.topics, side.qrels, "document")))
    if folds < 2:
        return None
    tuning = tune(stage, space, side.topics, side.qrels, measure, folds=folds, groups="document")
    choices = Counter(", ".join(f"{name} = {value}" for name, value in fold.choice.items()) for fold in tuning.folds)
    counts = "; ".join(f"{choice} ({count} of {folds} folds)" for choice, count in choices.most_common())
    return OutOfFold.tuned(tuning, stage), (
        f"{counts}: for each of {len(side.qrels):,} topics the values with which {measure} was best on the other folds, whose "
        "topics share no relevant document with it"
    )

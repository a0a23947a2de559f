"""`evaluate`: a run, its qrels and some measures make an `Evaluation`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import InputError, ParameterError, Qrels, Run
from .measure import Measure
from .names import parse
from .ranks import Ranks


def evaluate(run: object, qrels: object, measures: str | Measure | Iterable[str | Measure]) -> Evaluation:
    """How good a run is.

    `run` and `qrels` are what `Run.of` and `Qrels.of` accept, or paths of files. `measures` are objects such as `nDCG @ 10` or
    their names, in a list, or a single one. Means are over all judged topics, as with trec_eval's option -c: one without
    results counts 0, and so does one without relevant documents. Topics of the run without judgments are left out.

    Raises InputError for qrels without judgments and for files that cannot be read, ParameterError for an unknown measure.
    """
    wanted = [parse(m) for m in ([measures] if isinstance(measures, (str, Measure)) else measures)]
    if not wanted:
        raise ParameterError("there is no measure to evaluate; give at least one, such as nDCG@10")
    judged = _qrels(qrels)
    if not judged:
        raise InputError("the qrels hold no judgments")
    given = _run(run)
    ranks = Ranks.of(given, judged)
    return Evaluation(
        tuple(judged),
        {measure: np.asarray(measure.values(ranks), dtype=np.float64) for measure in dict.fromkeys(wanted)},
        missing=int(np.count_nonzero(ranks.retrieved == 0)),
        unjudged=sum(topic_id not in judged for topic_id in given),
        irrelevant=int(np.count_nonzero(ranks.count(ranks.relevant(1)) == 0)),
    )


class Evaluation(Mapping[Measure, float]):
    """What `evaluate` gives: a mapping from measure to its mean over the judged topics.

    A measure is looked up as an object or by name. Counts (NumRet, NumRel, NumRelRet) are sums, not means.

    `topics` is the number of judged topics; `missing` of them have no results, `irrelevant` of them no document of grade 1 or
    more, and both kinds are part of the mean. `unjudged` topics of the run have no judgments and are left out.
    """

    def __init__(
        self,
        topic_ids: tuple[str, ...],
        values: Mapping[Measure, NDArray[np.float64]],
        *,
        missing: int = 0,
        unjudged: int = 0,
        irrelevant: int = 0,
    ) -> None:
        """For each measure the values of the topics, in the order of `topic_ids`."""
        self.topic_ids = topic_ids
        self.topics = len(topic_ids)
        self.missing = missing
        self.unjudged = unjudged
        self.irrelevant = irrelevant
        self._values = dict(values)
        for array in self._values.values():
            array.setflags(write=False)

    def per_topic(self, measure: str | Measure) -> dict[str, float]:
        """Topic id to the value of the measure, in the order of the qrels. Raises KeyError for one not evaluated."""
        return dict(zip(self.topic_ids, self.array(measure).tolist(), strict=True))

    def array(self, measure: str | Measure) -> NDArray[np.float64]:
        """The values of the measure, float64, one a topic in the order of `topic_ids`; read-only."""
        return self._values[parse(measure)]

    def to_dict(self, per_topic: bool = False) -> dict[str, Any]:
        """Plain dicts, for JSON: topics, missing, unjudged, irrelevant, measures, and, if asked, measure to topic to value."""
        plain: dict[str, Any] = {
            "topics": self.topics,
            "missing": self.missing,
            "unjudged": self.unjudged,
            "irrelevant": self.irrelevant,
            "measures": {str(measure): value for measure, value in self.items()},
        }
        if per_topic:
            plain["per_topic"] = {str(measure): self.per_topic(measure) for measure in self}
        return plain

    def __getitem__(self, measure: str | Measure) -> float:
        values = self.array(measure)
        return float(values.sum() if parse(measure).summed else values.mean())

    def __contains__(self, measure: object) -> bool:
        try:
            return isinstance(measure, (str, Measure)) and parse(measure) in self._values
        except ParameterError:
            return False

    def __iter__(self) -> Iterator[Measure]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        shown = {str(m): f"{value:.0f}" if m.summed else f"{value:.4f}" for m, value in self.items()}
        left, right = max(map(len, shown)), max(map(len, shown.values()))
        lines = [f"{name:<{left}}  {value:>{right}}" for name, value in shown.items()]
        return "\n".join([*lines, self._note()])

    def _note(self) -> str:
        """How many topics there are, and what is unusual about them."""
        parts = [_topics(self.topics)]
        if self.missing:
            parts.append(f"{self.missing} without results count 0")
        if self.irrelevant:
            parts.append(f"{self.irrelevant} without a relevant document count 0")
        if self.unjudged:
            parts.append(f"{_topics(self.unjudged)} of the run without judgments left out")
        return "; ".join(parts)

    def __repr__(self) -> str:
        means = ", ".join(f"{measure} {value:.4g}" for measure, value in self.items())
        return f"Evaluation({_topics(self.topics)}: {means})"


def _topics(count: int) -> str:
    return f"{count} topic" + ("" if count == 1 else "s")


def _run(given: object) -> Run:
    if isinstance(given, (str, os.PathLike)):
        from ..formats import read_run

        return read_run(os.fspath(given))
    return Run.of(given)


def _qrels(given: object) -> Qrels:
    if isinstance(given, (str, os.PathLike)):
        from ..formats import read_qrels

        return read_qrels(os.fspath(given))
    return Qrels.of(given)

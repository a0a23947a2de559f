"""Reranking: a model reads each topic with each of its documents, and its scores make the new order."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core import Doc, InputError, ParameterError, Run, Stage
from ...core.checks import check_whole
from ...core.progress import Report
from ..encoders.base import text_of
from ..models.compute import batch_tokens
from .scores import ScoreFile, default_file, pair_keys

if TYPE_CHECKING:
    from ...core.progress import Progress

TOGETHER = 20_000  # pairs whose texts are in memory at once, and which are sorted by length together
CPU_TOKENS = 2048  # of a batch; more is slower, since pairs are long


@dataclass(frozen=True)
class Reranker(Stage[Run, Run]):
    """Gives every document of a run a new score; the base of all rerankers.

    All documents of the run are scored, so put `% 100` before: `bm25 % 100 >> reranker`. The query is the topic's `text` as it
    is in the run: after a rewriting stage the rewritten one. The document is title, a space and text, from the run's
    `documents`.

    A subclass says in `scores` what a model makes of pairs of texts, and in `fingerprint` which model that is. Where it has a
    field `cache` that is true, scores are kept on disk: True for a file in the user's cache folder, or a path.

    Raises InputError where the run does not know its documents or a topic has no text.
    """

    @abstractmethod
    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report | None = None) -> NDArray[np.float32]:
        """The scores of (query, document) pairs, float32, one each, in their order."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A string that changes with all that changes scores: weights, tokenizer, lengths, form; not the precision."""

    @property
    def chosen_precision(self) -> str:
        """The precision that the model runs in."""
        return "float32"

    def text(self, doc: Doc) -> str:
        """What is read of a document: title, a space and text."""
        return text_of(doc)

    def key(self) -> str | None:
        """The class, the model and its settings: see `Stage.key`."""
        cls = type(self)
        return f"{cls.__module__}.{cls.__qualname__}({self.fingerprint}, {getattr(self, 'precision', None)})"

    def apply(self, given: Run, progress: Report, /) -> Run:
        return self.rerank(given)

    def rerank(self, run: Run, progress: Report | None = None) -> Run:
        """The run with new scores; `progress` is called with a `Progress` of its pairs after each batch."""
        scores, facts = self.rescored(run, progress)
        return _with_scores(run, scores, {**run.provenance, "reranked": facts})

    def rescored(self, run: Run, progress: Report | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """The new score of each row of the run, float32, in the run's order; and how they came about."""
        documents = run.documents_for(type(self).__name__)
        topics = list(run.topics.values())
        for topic, size in zip(topics, np.diff(run.bounds).tolist(), strict=True):
            if size and not topic.text.strip():
                raise InputError(
                    f"topic '{topic.id}' has documents to rerank but no text; a run that was read from a file gets its topics "
                    "with read_run(path, topics)"
                )
        found = np.empty(run.rows, dtype=np.float32)
        kept, start = 0, time.perf_counter()
        for first, last in _groups(run.bounds):
            rows = slice(int(run.bounds[first]), int(run.bounds[last]))
            used, places = np.unique(run.codes[rows], return_inverse=True)
            texts = [self.text(doc) for doc in documents.docs(run.ids.take(used))]
            numbers = np.repeat(np.arange(first, last), np.diff(run.bounds[first : last + 1]))
            pairs = [(topics[n].text, texts[p]) for n, p in zip(numbers.tolist(), places.tolist(), strict=True)]
            found[rows], known = self._scored(pairs, _part(progress, rows.start, len(pairs), run.rows, start))
            kept += known
        facts = {"fingerprint": self.fingerprint, "pairs": run.rows, "from_cache": kept}
        return found, {**facts, "precision": self.chosen_precision} if kept < run.rows else facts

    def interpolate(self, weight: float) -> Interpolated:
        """A stage whose scores are `weight` times this reranker's and 1 - `weight` times those of the run that it is given.

        Both are brought to 0 to 1 before, for each topic by itself: (score - least) / (best - least), and 1 where all are
        equal. So a weight of 1 keeps the reranker's order, and 0 that of the run.
        """
        return Interpolated(self, weight)

    def _scored(self, pairs: list[tuple[str, str]], progress: Report | None) -> tuple[NDArray[np.float32], int]:
        """The scores of pairs, and how many of them had been kept."""
        cache = getattr(self, "cache", False)
        if not cache:
            return self.scores(pairs, progress), 0
        file = ScoreFile(default_file() if cache is True else Path(cache))
        keys = pair_keys(f"{self.fingerprint} {self.chosen_precision.partition(' ')[0]}", pairs)
        found = file.read(keys)
        new = np.flatnonzero(np.isnan(found))
        if len(new):
            found[new] = self.scores([pairs[i] for i in new.tolist()], progress)
            file.write([keys[i] for i in new.tolist()], found[new])
        return found, len(pairs) - len(new)


@dataclass(frozen=True)
class Interpolated(Stage[Run, Run], name="interpolate"):
    """A reranker's scores mixed with those of the run that it is given: what `reranker.interpolate(weight)` makes."""

    reranker: Reranker
    weight: float

    def apply(self, given: Run, progress: Report, /) -> Run:
        return self.rerank(given)

    def rerank(self, run: Run, progress: Report | None = None) -> Run:
        """The run with new scores; `progress` is called with a `Progress` of its pairs after each batch."""
        if isinstance(self.weight, bool) or not isinstance(self.weight, (int, float)) or not 0 <= self.weight <= 1:
            raise ParameterError(f"interpolate takes a weight between 0 and 1, not {self.weight!r}")
        scores, facts = self.reranker.rescored(run, progress)
        new, old = min_max(run, scores), min_max(run, run.scores)
        mixed = (self.weight * new + (1 - self.weight) * old).astype(np.float32)
        return _with_scores(run, mixed, {**run.provenance, "reranked": {**facts, "weight": self.weight}})


def min_max(run: Run, scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """A run's scores, each topic's brought to 0 to 1; 1 where all are equal. Raises InputError for infinite ones."""
    sizes = np.diff(run.bounds)
    starts = run.bounds[:-1][sizes > 0]
    values = scores.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        topic = list(run.topics)[int(np.searchsorted(run.bounds, row, side="right")) - 1]
        raise InputError(
            f"topic '{topic}', document '{run.ids[int(run.codes[row])]}': a score of {values[row]} has no place in 0 to 1"
        )
    if not len(values):
        return values
    least = np.repeat(np.minimum.reduceat(values, starts), sizes[sizes > 0])
    best = np.repeat(np.maximum.reduceat(values, starts), sizes[sizes > 0])
    return np.where(best > least, (values - least) / np.where(best > least, best - least, 1.0), 1.0)


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + exp(-x)), worked out in float64."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


def tokens_of(batch_size: int | None, lengths: Sequence[int], device: str) -> int:
    """The tokens of a batch: `batch_size` pairs of the greatest length, or what is quick on the device."""
    given = batch_size and batch_size * max(lengths)
    return batch_tokens(given or (CPU_TOKENS if device == "cpu" else None), device)


def check_sizes(stage: Reranker, *names: str) -> None:
    """Raises ParameterError where one of these parameters is neither None nor a whole number from 1 up."""
    for name in names:
        value = getattr(stage, name)
        if value is not None:
            check_whole(name, value)


def _with_scores(run: Run, scores: NDArray[np.float32], provenance: dict[str, Any]) -> Run:
    numbers = np.repeat(np.arange(len(run.topics)), np.diff(run.bounds))
    return Run.from_columns(run.topics, run.ids, numbers, run.codes, scores, documents=run.documents, provenance=provenance)


def _groups(bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Topics first to last (exclusive) with some TOGETHER rows each; none without rows."""
    first = 0
    while first < len(bounds) - 1:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + TOGETHER, side="right")) - 1)
        if bounds[last] > bounds[first]:
            yield first, last
        first = last


def _part(progress: Report | None, before: int, pairs: int, rows: int, start: float) -> Report | None:
    """Reports the progress of one group as that of the whole run."""
    if progress is None:
        return None
    from ...core.progress import Progress

    def report(part: Progress) -> None:
        done = before + (part.fraction or 0.0) * pairs
        progress(Progress("reranking", before + part.done, rows, time.perf_counter() - start, "pairs", part=done / rows))

    return report

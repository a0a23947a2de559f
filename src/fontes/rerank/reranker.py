"""Base class of rerankers, which score each topic with each of its documents."""

from __future__ import annotations

import hashlib
import struct
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core.arrays import Float32s, Float64s, Int64s
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Explanation, text_of
from ..core.work import Progress, reported_as
from ..storage.caches import cache_folder
from ..storage.keyed import KeyedFile

MAX_FILE_SIZE = 256 * 2**20  # bytes, about five million scores
GROUP_SIZE = 20_000  # pairs sorted by length and scored together


@dataclass(frozen=True)
class ScoreFile(KeyedFile):
    """A file of scores; see `KeyedFile`."""

    limit: int | None = MAX_FILE_SIZE

    def read(self, keys: Sequence[bytes]) -> Float32s:
        """Return the scores stored under these keys, float32; NaN for a missing or damaged score."""
        stored = self.values(keys)
        scores = (stored.get(key, b"") for key in keys)
        return np.array([struct.unpack("<f", score)[0] if len(score) == 4 else np.nan for score in scores], dtype=np.float32)

    def write(self, keys: Sequence[bytes], scores: Float32s) -> None:
        """Store scores, except NaN and infinite scores."""
        self.store(
            {key: struct.pack("<f", score) for key, score in zip(keys, scores.tolist(), strict=True) if np.isfinite(score)}
        )


def default_file() -> Path:
    """Return the path of `scores.sqlite` in the user's cache folder."""
    return cache_folder() / "scores.sqlite"


def pair_keys(model: str, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
    """Return a 16-byte key (BLAKE2b) of model, query and document for each pair."""
    hashes: dict[str, bytes] = {}
    keys = []
    for query, document in pairs:
        for text in (query, document):
            if text not in hashes:
                hashes[text] = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        keys.append(hashlib.blake2b(hashes[query] + hashes[document] + model.encode(), digest_size=16).digest())
    return keys


@dataclass(frozen=True)
class Reranker(Stage[Run, Run]):
    """Base class of rerankers, which give every document of a run a new score.

    All documents of the run are scored; limit them by `% 100`, as in `bm25 % 100 >> reranker`. The query is the topic's `text`
    in the run, as rewritten by earlier stages. The document is its title, a space and its text, from the run's `documents`.

    A subclass implements `scores`, which returns the model's scores of text pairs, and `fingerprint`, which identifies the
    model.

    Args:
        cache: True keeps scores on disk, in the user's cache folder; a path keeps them in that file.

    Raises:
        InputError: When called: the run has no documents, or a topic has no text.
    """

    returns_subset: ClassVar[bool] = True

    cache: bool | str | Path = field(default=False, repr=False, kw_only=True)

    @abstractmethod
    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        """Return the scores of (query, document) pairs, float32, in order; report progress after each batch."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """String that identifies everything that affects scores (weights, tokenizer, lengths, form) except the precision."""

    @property
    def chosen_precision(self) -> str:
        """Precision in which the model runs."""
        return "float32"

    def document_text(self, doc: Doc) -> str:
        """Return the text by which a document is scored: title, a space and text."""
        return text_of(doc)

    def key(self) -> str | None:
        """Return the cache key of the class, fingerprint and precision."""
        cls = type(self)
        return f"{cls.__module__}.{cls.__qualname__}({self.fingerprint}, {getattr(self, 'precision', None)})"

    def apply(self, run: Run, /) -> Run:
        scores, facts = self.rescored(run)
        return run.with_scores(scores, {**run.provenance, "reranked": facts})

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the score of a document of the run as `explain` does, with the document's text."""
        [doc] = run.documents_for(type(self).__name__).docs([doc_id])
        return self.explain(run.topics[topic_id], doc)  # type: ignore[arg-type]  # rerankers explain documents

    def rescored(self, run: Run) -> tuple[Float32s, dict[str, Any]]:
        """Return the new score of each row, float32, in the run's order; and facts for the provenance of the new run."""
        documents = run.documents_for(type(self).__name__)
        topics = list(run.topics.values())
        for topic, size in zip(topics, np.diff(run.bounds).tolist(), strict=True):
            if size and not topic.text.strip():
                remedy = "pass topics to a run that is read from a file: read_run(path, topics)"
                raise InputError(f"topic '{topic.id}' has documents to rerank but no text; {remedy}")
        topic_numbers = run.topic_numbers
        scores = np.empty(run.rows, dtype=np.float32)
        from_cache, start_time = 0, time.perf_counter()
        for start, end in _groups(run.bounds):
            codes, row_documents = np.unique(run.codes[start:end], return_inverse=True)
            texts = [self.document_text(doc) for doc in documents.docs(run.ids.take(codes))]
            numbers = zip(topic_numbers[start:end].tolist(), row_documents.tolist(), strict=True)
            pairs = [(topics[topic].text, texts[document]) for topic, document in numbers]
            with reported_as(partial(_of_all, start, len(pairs), run.rows, start_time)):
                scores[start:end], cached = self._scored(pairs)
            from_cache += cached
        facts = {"fingerprint": self.fingerprint, "pairs": run.rows, "from_cache": from_cache}
        return scores, {**facts, "precision": self.chosen_precision} if from_cache < run.rows else facts

    def interpolate(self, weight: float) -> Interpolated:
        """Return a stage that adds `weight` times this reranker's scores and 1 - `weight` times the run's scores."""
        return Interpolated(self, weight)

    def pair_scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        """Return the scores of pairs as `scores` does, using the cache."""
        scores, start_time = np.empty(len(pairs), dtype=np.float32), time.perf_counter()
        for start in range(0, len(pairs), GROUP_SIZE):
            group = list(pairs[start : start + GROUP_SIZE])
            with reported_as(partial(_of_all, start, len(group), len(pairs), start_time)):
                scores[start : start + len(group)], _ = self._scored(group)
        return scores

    def _scored(self, pairs: list[tuple[str, str]]) -> tuple[Float32s, int]:
        """Return the scores of pairs, and the number of scores read from the cache."""
        if not self.cache:
            return self.scores(pairs), 0
        file = ScoreFile(default_file() if self.cache is True else Path(self.cache))
        keys = pair_keys(f"{self.fingerprint} {self.chosen_precision.partition(' ')[0]}", pairs)
        scores = file.read(keys)
        missing = np.flatnonzero(np.isnan(scores))
        if len(missing):
            scores[missing] = self.scores([pairs[i] for i in missing.tolist()])
            file.write([keys[i] for i in missing.tolist()], scores[missing])
        return scores, len(pairs) - len(missing)


@dataclass(frozen=True)
class Interpolated(Stage[Run, Run], name="interpolate"):
    """Mixes a reranker's scores with the scores of its input run.

    Both are first scaled to 0 to 1 for each topic: (score - min) / (max - min), and 1 if all are equal.

    Args:
        reranker: Computes the new scores.
        weight: Weight of the new scores, 0 to 1; the run's scores have the weight 1 - `weight`.
    """

    returns_subset: ClassVar[bool] = True

    reranker: Reranker
    weight: float

    def apply(self, run: Run, /) -> Run:
        self.check()
        scores, facts = self.reranker.rescored(run)
        new, old = min_max(run, scores), min_max(run, run.scores)
        mixed = (self.weight * new + (1 - self.weight) * old).astype(np.float32)
        return run.with_scores(mixed, {**run.provenance, "reranked": {**facts, "weight": self.weight}})

    def check(self) -> None:
        if not isinstance(self.reranker, Reranker):
            raise ParameterError(f"interpolate needs a reranker, such as cross_encoder, not {self.reranker!r}")
        if isinstance(self.weight, bool) or not isinstance(self.weight, (int, float)) or not 0 <= self.weight <= 1:
            raise ParameterError(f"interpolate needs a weight between 0 and 1, not {self.weight!r}")
        super().check()


def min_max(run: Run, scores: Float32s) -> Float64s:
    """Scale a run's scores to 0 to 1 for each topic (1 if all are equal); InputError for an infinite score."""
    sizes = np.diff(run.bounds)
    starts = run.bounds[:-1][sizes > 0]
    values = scores.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        topic = list(run.topics)[int(np.searchsorted(run.bounds, row, side="right")) - 1]
        document = f"topic '{topic}', document '{run.ids[int(run.codes[row])]}'"
        raise InputError(f"{document}: a score of {values[row]} cannot be scaled to 0 to 1")
    if not len(values):
        return values
    minima = np.repeat(np.minimum.reduceat(values, starts), sizes[sizes > 0])
    maxima = np.repeat(np.maximum.reduceat(values, starts), sizes[sizes > 0])
    return np.where(maxima > minima, (values - minima) / np.where(maxima > minima, maxima - minima, 1.0), 1.0)


def _groups(bounds: Int64s) -> Iterator[tuple[int, int]]:
    """Yield the row ranges of groups of whole topics: up to GROUP_SIZE rows each, or one topic with more rows."""
    topic = 0
    while topic < len(bounds) - 1:
        next_topic = max(topic + 1, int(np.searchsorted(bounds, bounds[topic] + GROUP_SIZE, side="right")) - 1)
        if bounds[next_topic] > bounds[topic]:
            yield int(bounds[topic]), int(bounds[next_topic])
        topic = next_topic


def _of_all(start: int, size: int, rows: int, start_time: float, group: Progress) -> Progress:
    """Return the progress of one group, of `size` rows from `start` on, as progress of all rows."""
    share = (start + (group.fraction or 0.0) * size) / rows
    return Progress("reranking", start + group.done, rows, time.perf_counter() - start_time, "pairs", part=share)

"""Runs: a ranking of documents for each topic, in numpy columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import real, string_of
from .edge import read, write
from .errors import InputError, ParameterError
from .html import of_run
from .ranking import Ranking as Ranking, order_keys as order_keys
from .strings import Strings
from .table import Table
from .tabular import Tabular, is_frame
from .values import Documents, Topic, Topics

LINES = 25  # a run of more topics and documents is printed by its head


class Run(Tabular, Mapping[str, "Ranking"]):
    """Results of a system: a mapping from topic id to a `Ranking`. Immutable.

    A ranking is ordered by score, descending, then by document id, descending as strings: the order of trec_eval. A topic
    without results has an empty ranking. A row takes 8 bytes.

    Attributes:
        topics: The topics, in order.
        documents: Source of the documents' text, or None.
        provenance: Origin: "system", the text of the stage; "indexes", index fingerprints by their names in the text;
            "seconds"; and entries of stages.
    """

    __slots__ = ("_bounds", "_codes", "_ids", "_matches", "_position", "_scores", "documents", "provenance", "topics")

    def __init__(
        self,
        topics: Topics,
        ids: Strings,
        bounds: NDArray[np.int64],
        codes: NDArray[np.int32],
        scores: NDArray[np.float32],
        *,
        documents: Documents | None = None,
        provenance: Mapping[str, Any] | None = None,
        matches: Callable[[str], NDArray[np.integer[Any]]] | None = None,
    ) -> None:
        """Make a run from sorted columns; use `Run.of` and `Run.from_columns` for others.

        `matches` maps a topic id to the ordinals of all matching documents in the index; it is not pickled.
        """
        for name, array, dtype in (("_bounds", bounds, np.int64), ("_codes", codes, np.int32), ("_scores", scores, np.float32)):
            fixed = np.asarray(array, dtype=dtype)
            if fixed.flags.writeable:
                fixed = fixed.view()
                fixed.flags.writeable = False
            object.__setattr__(self, name, fixed)
        object.__setattr__(self, "topics", topics)
        object.__setattr__(self, "_ids", ids)
        object.__setattr__(self, "_position", {t: i for i, t in enumerate(topics)})
        object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "provenance", MappingProxyType(dict(provenance or {})))
        object.__setattr__(self, "_matches", matches)

    _bounds: NDArray[np.int64]
    _codes: NDArray[np.int32]
    _scores: NDArray[np.float32]
    _ids: Strings
    _position: dict[str, int]
    topics: Topics
    documents: Documents | None
    provenance: Mapping[str, Any]
    _matches: Callable[[str], NDArray[np.integer[Any]]] | None

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.topics, self._ids, self._bounds, self._codes, self._scores)
        return _unpickled, (*columns, self.documents, dict(self.provenance))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Run does not change; run.with_({name}=…) makes a new one")

    @classmethod
    def of(cls, value: object, topics: Topics | None = None) -> Run:
        """Convert a value to a Run.

        Args:
            value: A Run, a mapping from topic id to a mapping from document id to score (or to a list of (id, score) pairs), a
                DataFrame, Arrow table or the like (columns such as query_id, doc_id and score), an iterable of (topic id,
                document id, score), or the path of a file. A whole number as an id stands for its digits.
            topics: The run's topics, if known; else a topic has its id alone.

        Raises:
            InputError: The type is unsupported, an id is neither string nor whole number, a score is NaN, or a document is
                listed twice for one topic.
        """
        if isinstance(value, Run):
            return value
        if isinstance(value, (str, os.PathLike)):
            run: Run = read("run", value)
            return run
        rows: Iterable[tuple[Any, Any, Any]]
        if is_frame(value):
            rows = Table.of_frame(value).results()
        elif isinstance(value, Mapping):
            rows = (
                (t, d, s)
                for t, ranking in value.items()
                for d, s in (ranking.items() if isinstance(ranking, Mapping) else ranking)
            )
            topics = topics or Topics(Topic(string_of(t, "topic id", "the run"), "") for t in value)
        elif isinstance(value, Iterable):
            rows = value
        else:
            raise InputError(f"a run cannot be made from {type(value).__name__}; give a mapping, a DataFrame or triples")
        topic_ids: dict[str, int] = {t: i for i, t in enumerate(topics or ())}
        doc_ids: dict[str, int] = {}
        numbers: list[int] = []
        codes: list[int] = []
        scores: list[float] = []
        try:
            for topic_id, doc_id, score in rows:
                if not (type(topic_id) is type(doc_id) is str):
                    where = f"row {len(scores) + 1} of the run"
                    topic_id, doc_id = string_of(topic_id, "topic id", where), string_of(doc_id, "document id", where)
                numbers.append(topic_ids.setdefault(topic_id, len(topic_ids)))
                codes.append(doc_ids.setdefault(doc_id, len(doc_ids)))
                scores.append(real(score))
        except InputError:
            raise
        except (TypeError, ValueError, AttributeError) as e:
            raise InputError(f"row {len(scores) + 1} of the run is not topic id, document id and a number ({e})") from e
        if topics is None or len(topic_ids) > len(topics):
            known = topics or Topics()
            topics = Topics(known[t] if t in known else Topic(t, "") for t in topic_ids)
        return cls.from_columns(
            topics,
            Strings.of(doc_ids),
            np.array(numbers, dtype=np.int64),
            np.array(codes, dtype=np.int32),
            _as_float32(scores),
        )

    @classmethod
    def from_columns(
        cls,
        topics: Topics,
        ids: Strings,
        numbers: NDArray[np.int64],
        codes: NDArray[np.int32],
        scores: NDArray[np.float32],
        *,
        documents: Documents | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Run:
        """Make a run from rows in any order.

        Args:
            topics: The topics.
            ids: A table of document ids.
            numbers: int64, (rows,): topic of each row, as a position in `topics`.
            codes: int32, (rows,): document of each row, as a position in `ids`.
            scores: float32, (rows,).
            documents: Source of the documents' text.
            provenance: Origin of the run.

        Raises:
            InputError: A score is NaN, or a document is listed twice for one topic.
        """
        codes, scores = np.asarray(codes, dtype=np.int32), np.asarray(scores, dtype=np.float32)
        counts = np.bincount(numbers, minlength=len(topics)) if len(numbers) else np.zeros(len(topics), dtype=np.int64)
        bounds = np.zeros(len(topics) + 1, dtype=np.int64)
        np.cumsum(counts, out=bounds[1:])
        if np.any(np.diff(numbers) < 0):
            by_topic = np.argsort(numbers, kind="stable")
            codes, scores = codes[by_topic], scores[by_topic]
        keys = order_keys(scores, ids.rank[codes])
        sorted_codes, sorted_scores = np.empty_like(codes), np.empty_like(scores)
        seen = np.full(len(ids), -1, dtype=np.int32)
        names = list(topics)
        for i, (a, b) in enumerate(zip(bounds.tolist(), bounds[1:].tolist(), strict=False)):
            if a == b:
                continue
            if np.isnan(scores[a:b]).any():
                bad = codes[a + int(np.argmax(np.isnan(scores[a:b])))]
                raise InputError(f"topic '{names[i]}', document '{ids[int(bad)]}': the score is not a number (NaN)")
            here = codes[a:b]
            seen[here] = np.arange(b - a, dtype=np.int32)
            twice = seen[here] != np.arange(b - a)
            if twice.any():
                doc_id = ids[int(here[int(np.argmax(twice))])]
                raise InputError(f"topic '{names[i]}', document '{doc_id}': the document is listed twice for this topic")
            place = np.argsort(keys[a:b])[::-1]
            sorted_codes[a:b] = here[place]
            sorted_scores[a:b] = scores[a:b][place]
        return cls(topics, ids, bounds, sorted_codes, sorted_scores, documents=documents, provenance=provenance)

    @property
    def ids(self) -> Strings:
        """Table of document ids that `codes` indexes; it may hold further ids."""
        return self._ids

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Start of each topic's rows, in the order of `topics`, and the end of the last."""
        return self._bounds

    @property
    def codes(self) -> NDArray[np.int32]:
        """Document of each row, as a position in `ids`."""
        return self._codes

    @property
    def scores(self) -> NDArray[np.float32]:
        """Score of each row."""
        return self._scores

    @property
    def rows(self) -> int:
        """Number of (topic, document) pairs."""
        return len(self._codes)

    def with_(self, **changes: Any) -> Run:
        """Return a copy with other `topics` (the same ids in the same order), `documents`, `provenance` or `matches`.

        Raises:
            ParameterError: Another name is given.
            InputError: The topics have other ids, or another order.
        """
        unknown = set(changes) - {"topics", "documents", "provenance", "matches"}
        if unknown:
            raise ParameterError(f"a run has no {', '.join(sorted(unknown))} to change; it has topics, documents, provenance")
        topics = changes.get("topics", self.topics)
        if topics is not self.topics and list(topics) != list(self.topics):
            raise InputError("the new topics must have the ids of the run, in the same order")
        return Run(
            topics,
            self._ids,
            self._bounds,
            self._codes,
            self._scores,
            documents=changes.get("documents", self.documents),
            provenance=changes.get("provenance", self.provenance),
            matches=changes.get("matches", self._matches),
        )

    def documents_for(self, user: str) -> Documents:
        """Return the source of the documents' text.

        Args:
            user: Name of the caller for the error, such as a stage.

        Raises:
            InputError: The run does not know its documents, or these have no text.
        """
        if self.documents is None:
            raise InputError(
                f"{user} needs the documents' text, which this run does not know; run.with_(documents=index) tells it"
            )
        if not getattr(self.documents, "has_texts", True):
            place = getattr(self.documents, "path", "the index")
            raise InputError(f"{user} needs the documents' text, and {place} holds none; index the documents for it")
        return self.documents

    @property
    def topic_numbers(self) -> NDArray[np.int64]:
        """Topic of each row, int64, as a position in `topics`."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self._bounds))

    def keep(self, mask: NDArray[np.bool_]) -> Run:
        """Return the run with only the rows where the boolean `mask` is true."""
        bounds = np.zeros(len(self._bounds), dtype=np.int64)
        np.cumsum(np.bincount(self.topic_numbers[mask], minlength=len(self.topics)), out=bounds[1:])
        return self._with_rows(bounds, self._codes[mask], self._scores[mask])

    def with_scores(self, scores: NDArray[np.float32], provenance: Mapping[str, Any] | None = None) -> Run:
        """Return the run with other scores, one per row, re-sorted.

        Args:
            scores: float32, (rows,).
            provenance: Replaces the run's own.

        Raises:
            InputError: A score is NaN; the message names topic and document.
        """
        return Run.from_columns(
            self.topics,
            self._ids,
            self.topic_numbers,
            self._codes,
            scores,
            documents=self.documents,
            provenance=self.provenance if provenance is None else provenance,
        )

    def top(self, k: int) -> Run:
        """Return the best `k` documents of each topic.

        Raises:
            ParameterError: `k` is below 0.
        """
        if k < 0:
            raise ParameterError(f"the best k documents: k must be 0 or more, not {k}")
        sizes = np.minimum(np.diff(self._bounds), min(k, self.rows))
        bounds = np.zeros(len(self._bounds), dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        rows = np.arange(bounds[-1]) + np.repeat(self._bounds[:-1] - bounds[:-1], sizes)
        return self._with_rows(bounds, self._codes[rows], self._scores[rows], self._matches)

    def head(self, n: int = 5, k: int = 3) -> Run:
        """Return the best `k` documents of the first `n` topics, to look at; `print` shows those of a longer run too.

        Raises:
            ParameterError: `n` or `k` is below 0.
        """
        if n < 0:
            raise ParameterError(f"the first n topics: n must be 0 or more, not {n}")
        best, topics = self.top(k), Topics(list(self.topics.values())[:n])
        rows = slice(0, int(best._bounds[len(topics)]))
        return Run(
            topics,
            self._ids,
            best._bounds[: len(topics) + 1],
            best._codes[rows],
            best._scores[rows],
            documents=self.documents,
            provenance=self.provenance,
            matches=self._matches,
        )

    def facets(self, *columns: str) -> dict[str, dict[str, dict[Any, int]]]:
        """Return the document counts of each topic by column and value; see `Ranking.facets`."""
        return {topic_id: ranking.facets(*columns) for topic_id, ranking in self.items()}

    def _with_rows(
        self, bounds: NDArray[np.int64], codes: NDArray[np.int32], scores: NDArray[np.float32], matches: Any = None
    ) -> Run:
        known: dict[str, Any] = {"documents": self.documents, "provenance": self.provenance, "matches": matches}
        return Run(self.topics, self._ids, bounds, codes, scores, **known)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return scores by topic id and document id, each ranking in order."""
        names = self._ids.take(self._codes)
        values = self._scores.tolist()
        bounds = self._bounds.tolist()
        return {
            t: dict(zip(names[a:b], values[a:b], strict=True)) for t, a, b in zip(self.topics, bounds, bounds[1:], strict=False)
        }

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a Parquet file with the columns of `to_columns`, which `Run.of(path)` reads back.

        Raises:
            MissingExtraError: pyarrow is not installed.
            InputError: The file cannot be written.
        """
        write("run", self, path, format="parquet")

    def to_columns(self) -> dict[str, Any]:
        """Return the columns query_id, doc_id, score, rank (counted from 1)."""
        sizes = np.diff(self._bounds)
        return {
            "query_id": np.repeat(np.array(list(self.topics), dtype=object), sizes),
            "doc_id": self._ids.take(self._codes),
            "score": self._scores,
            "rank": np.arange(self.rows) - np.repeat(self._bounds[:-1], sizes) + 1,
        }

    def __getitem__(self, topic_id: str) -> Ranking:
        i = self._position[topic_id]
        rows = slice(int(self._bounds[i]), int(self._bounds[i + 1]))
        matches = None if self._matches is None else partial(self._matches, topic_id)
        return Ranking(self.topics[topic_id], self._ids, self._codes[rows], self._scores[rows], self.documents, matches)

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)

    def __eq__(self, other: object) -> bool:
        """Compare topic ids, documents and scores."""
        if not isinstance(other, Run):
            return NotImplemented
        return (
            list(self.topics) == list(other.topics)
            and np.array_equal(self._bounds, other._bounds)
            and np.array_equal(self._scores, other._scores)
            and self._ids.take(self._codes) == other._ids.take(other._codes)
        )

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        return of_run(self)

    def __str__(self) -> str:
        shown = self if len(self) + self.rows <= LINES else self.head()
        lines = [repr(self)]
        for ranking in shown.values():
            lines += [f"{ranking.topic.id}  {ranking.topic.text}".rstrip(), *filter(None, [str(ranking)])]
        return "\n".join([*lines, "…"] if shown.rows < self.rows or len(shown) < len(self) else lines)

    def __repr__(self) -> str:
        return f"Run({len(self)} topics, {self.rows} documents)"


def _unpickled(
    topics: Topics,
    ids: Strings,
    bounds: NDArray[np.int64],
    codes: NDArray[np.int32],
    scores: NDArray[np.float32],
    documents: Documents | None,
    provenance: Mapping[str, Any],
) -> Run:
    return Run(topics, ids, bounds, codes, scores, documents=documents, provenance=provenance)


def _as_float32(scores: list[float]) -> NDArray[np.float32]:
    """Convert to float32; scores out of range become infinite."""
    with np.errstate(over="ignore"):
        return np.array(scores, dtype=np.float64).astype(np.float32)

"""Runs: a ranking of documents for each topic, in numpy columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from .arrays import Bools, Float32s, Floats, Int32s, Int64s, Ints
from .checks import real, string_of
from .errors import InputError, ParameterError
from .html import of_run
from .ranking import Ranking as Ranking, order_keys as order_keys, with_documents
from .registry import read, write
from .strings import Strings, encodable, offsets_of
from .table import Table
from .tabular import Tabular, is_frame, records_of
from .values import Doc, Documents, Hit, Topic, Topics

Kind: TypeAlias = "type[Topics] | type[Run]"
"""Class of the values that a stage takes or gives."""
MAX_SCORE = float(np.finfo(np.float32).max)
LINES = 25  # a run of more topics and documents is printed by its head


class Run(Tabular, Mapping[str, "Ranking"]):
    """Results of a system: a mapping from topic id to a `Ranking`. Immutable.

    A ranking is ordered by score, descending, then by document id, descending as strings: the order of trec_eval. A topic
    without results has an empty ranking. A row takes 8 bytes.

    Attributes:
        topics: The topics, in order.
        ids: Table of document ids that `codes` indexes; it may hold further ids.
        bounds: int64, (topics + 1,): start of each topic's rows, in the order of `topics`, and the end of the last.
        codes: int32, (rows,): document of each row, as a position in `ids`.
        scores: float32, (rows,).
        documents: Source of the documents' text, or None.
        provenance: Origin: "system", the text of the stage; "indexes", index fingerprints by their names in the text;
            "seconds"; and entries of stages.
    """

    __slots__ = ("_matches", "_position", "bounds", "codes", "documents", "ids", "provenance", "scores", "topics")
    topics: Topics
    ids: Strings
    bounds: Int64s
    codes: Int32s
    scores: Float32s
    documents: Documents | None
    provenance: Mapping[str, Any]
    _matches: Callable[[str], Ints] | None
    _position: dict[str, int]

    def __init__(
        self,
        topics: Topics,
        ids: Strings,
        bounds: Int64s,
        codes: Int32s,
        scores: Float32s,
        *,
        documents: Documents | None = None,
        provenance: Mapping[str, object] | None = None,
        matches: Callable[[str], Ints] | None = None,
    ) -> None:
        """Make a run from sorted columns; use `Run.of` and `Run.from_columns` for others.

        `matches` maps a topic id to the ordinals of all matching documents in the index; it is not pickled.
        """
        values: dict[str, Any] = {"topics": topics, "ids": ids, "documents": documents, "_matches": matches}
        values["provenance"] = MappingProxyType(dict(provenance or {}))
        values["_position"] = {t: i for i, t in enumerate(topics)}
        for name, array, dtype in (("bounds", bounds, np.int64), ("codes", codes, np.int32), ("scores", scores, np.float32)):
            values[name] = np.asarray(array, dtype=dtype)
            if values[name].flags.writeable:
                values[name] = values[name].view()
                values[name].flags.writeable = False
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(Run, documents=self.documents, provenance=dict(self.provenance))
        return make, (self.topics, self.ids, self.bounds, self.codes, self.scores)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Run does not change; run.with_({name}=…) makes a new one")

    @classmethod
    def of(cls, value: object, topics: Topics | None = None) -> Run:
        """Convert a value to a Run.

        Args:
            value: A Run, a mapping from topic id to a mapping from document id to score (or to a ranking, or to a list of (id,
                score) pairs), a DataFrame, Arrow table, list of dicts or the like (columns such as query_id, doc_id and score),
                an iterable of (topic id, document id, score), or the path of a file. A whole number as an id stands for its
                digits.
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
        elif records := records_of(value):
            rows = Table.of_records(records, "the run").results()
        elif isinstance(value, Mapping):
            rows = (
                (t, d, s)
                for t, ranking in value.items()
                for d, s in (ranking.items() if isinstance(ranking, Mapping) else _with_scores(t, ranking))
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
            topics_by_id = topics or Topics()
            topics = Topics(topics_by_id[t] if t in topics_by_id else Topic(t, "") for t in topic_ids)
        with np.errstate(over="ignore"):  # a score out of range becomes infinite
            rounded = np.array(scores, dtype=np.float64).astype(np.float32)
        return cls.from_columns(
            topics, Strings.of(doc_ids), np.array(numbers, dtype=np.int64), np.array(codes, dtype=np.int32), rounded
        )

    @classmethod
    def from_columns(
        cls,
        topics: Topics,
        ids: Strings,
        numbers: Int64s,
        codes: Int32s,
        scores: Float32s,
        *,
        documents: Documents | None = None,
        provenance: Mapping[str, object] | None = None,
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
        bounds = offsets_of(counts)
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
            topic_codes = codes[a:b]
            seen[topic_codes] = np.arange(b - a, dtype=np.int32)
            twice = seen[topic_codes] != np.arange(b - a)
            if twice.any():
                doc_id = ids[int(topic_codes[int(np.argmax(twice))])]
                raise InputError(f"topic '{names[i]}', document '{doc_id}': the document is listed twice for this topic")
            order = np.argsort(keys[a:b])[::-1]
            sorted_codes[a:b] = topic_codes[order]
            sorted_scores[a:b] = scores[a:b][order]
        return cls(topics, ids, bounds, sorted_codes, sorted_scores, documents=documents, provenance=provenance)

    @property
    def rows(self) -> int:
        """Number of (topic, document) pairs."""
        return len(self.codes)

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
        facts = {"topics": topics, "documents": self.documents, "provenance": self.provenance, "matches": self._matches}
        return Run(ids=self.ids, bounds=self.bounds, codes=self.codes, scores=self.scores, **(facts | changes))

    def documents_for(self, user: str) -> Documents:
        """Return the source of the documents' text.

        Args:
            user: Name of the caller for the error, such as a stage.

        Raises:
            InputError: The run has no `documents`, or these have no text.
        """
        if self.documents is None:
            raise InputError(
                f"{user} needs the documents' text, and the run has no documents; set them with run.with_(documents=index)"
            )
        if not getattr(self.documents, "has_texts", True):
            source = getattr(self.documents, "path", "the index")
            raise InputError(f"{user} needs the documents' text, and {source} holds none; index the documents for it")
        return self.documents

    @property
    def topic_numbers(self) -> Int64s:
        """Topic of each row, int64, as a position in `topics`."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.bounds))

    def keep(self, mask: Bools) -> Run:
        """Return the run with only the rows where the boolean `mask` is true."""
        bounds = offsets_of(np.bincount(self.topic_numbers[mask], minlength=len(self.topics)))
        return self._with_rows(bounds, self.codes[mask], self.scores[mask])

    def with_scores(self, scores: Floats, provenance: Mapping[str, object] | None = None) -> Run:
        """Return the run with other scores, one per row, re-sorted.

        Args:
            scores: Numbers, (rows,), stored as float32.
            provenance: Replaces the run's own.

        Raises:
            InputError: A score is NaN or beyond float32; the message names topic and document.
        """
        scores = finite_scores(scores, self.topics, self.topic_numbers, self.ids, self.codes)
        facts: dict[str, Any] = {
            "documents": self.documents,
            "provenance": self.provenance if provenance is None else provenance,
        }
        return Run.from_columns(self.topics, self.ids, self.topic_numbers, self.codes, scores, **facts)

    def top(self, k: int) -> Run:
        """Return the best `k` documents of each topic.

        Raises:
            ParameterError: `k` is below 0.
        """
        if k < 0:
            raise ParameterError(f"the best k documents: k must be 0 or more, not {k}")
        sizes = np.minimum(np.diff(self.bounds), min(k, self.rows))
        bounds = offsets_of(sizes)
        rows = np.arange(bounds[-1]) + np.repeat(self.bounds[:-1] - bounds[:-1], sizes)
        best = self._with_rows(bounds, self.codes[rows], self.scores[rows], self._matches)
        if not (promises := self.provenance.get("promises")):
            return best
        note = f"; but its lists were cut to the best {k:,} after it"
        shortened = [promise | {"statement": promise["statement"] + note} for promise in promises]
        return best.with_(provenance={**self.provenance, "promises": shortened})

    def head(self, n: int = 5, k: int = 3) -> Run:
        """Return the best `k` documents of the first `n` topics, to look at; `print` shows those of a longer run too.

        Raises:
            ParameterError: `n` or `k` is below 0.
        """
        if n < 0:
            raise ParameterError(f"the first n topics: n must be 0 or more, not {n}")
        best, topics = self.top(k), Topics(list(self.topics.values())[:n])
        bounds = best.bounds[: len(topics) + 1]
        return best._with_rows(bounds, best.codes[: bounds[-1]], best.scores[: bounds[-1]], self._matches, topics)

    def facets(self, *columns: str) -> dict[str, dict[str, dict[Any, int]]]:
        """Return the document counts of each topic by column and value; see `Ranking.facets`."""
        return {topic_id: ranking.facets(*columns) for topic_id, ranking in self.items()}

    def _with_rows(
        self,
        bounds: Int64s,
        codes: Int32s,
        scores: Float32s,
        matches: Callable[[str], Ints] | None = None,
        topics: Topics | None = None,
    ) -> Run:
        facts: dict[str, Any] = {"documents": self.documents, "provenance": self.provenance, "matches": matches}
        return Run(self.topics if topics is None else topics, self.ids, bounds, codes, scores, **facts)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return scores by topic id and document id, each ranking in order."""
        names = self.ids.take(self.codes)
        values = self.scores.tolist()
        bounds = self.bounds.tolist()
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

    def to_columns(self, *, text: bool = False, columns: Sequence[str] = ()) -> dict[str, Any]:
        """Return the columns query_id, doc_id, score, rank (counted from 1), and others of the documents.

        See `Ranking.to_columns` for the arguments and errors.
        """
        sizes = np.diff(self.bounds)
        rows = {
            "query_id": np.repeat(np.array(list(self.topics), dtype=object), sizes),
            "doc_id": self.ids.take(self.codes),
            "score": self.scores,
            "rank": np.arange(self.rows) - np.repeat(self.bounds[:-1], sizes) + 1,
        }
        return with_documents(rows, self._docs, text, columns)

    def _docs(self) -> list[Doc]:
        """The document of each row; one that several topics have is read once."""
        used, numbers = np.unique(self.codes, return_inverse=True)
        docs = self.documents_for("a column of the documents").docs(self.ids.take(used))
        return [docs[number] for number in numbers.tolist()]

    def __getitem__(self, topic_id: str) -> Ranking:
        i = self._position[topic_id]
        rows = slice(int(self.bounds[i]), int(self.bounds[i + 1]))
        matches = None if self._matches is None else partial(self._matches, topic_id)
        return Ranking(self.topics[topic_id], self.ids, self.codes[rows], self.scores[rows], self.documents, matches)

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return (
            list(self.topics) == list(other.topics)
            and np.array_equal(self.bounds, other.bounds)
            and np.array_equal(self.scores, other.scores)
            and self.ids.take(self.codes) == other.ids.take(other.codes)
        )

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        return of_run(self)

    def __str__(self) -> str:
        shown = self if len(self) + self.rows <= LINES else self.head()
        lines = [repr(self)]
        for ranking in shown.values():
            lines += [f"{ranking.topic.id}  {encodable(ranking.topic.text)}".rstrip(), *filter(None, [str(ranking)])]
        return "\n".join([*lines, "…"] if shown.rows < self.rows or len(shown) < len(self) else lines)

    def __repr__(self) -> str:
        return f"Run({len(self)} topics, {self.rows} documents)"


def _with_scores(topic_id: object, ranking: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the ids and scores of a topic's pairs or hits; InputError for an id without a score, which may look like a pair."""
    for pair in ranking:
        if isinstance(pair, str):
            raise InputError(f"the run, topic '{topic_id}': '{pair}' has no score; give pairs (document id, score)")
        yield (pair.id, pair.score) if isinstance(pair, Hit) else pair


def finite_scores(
    scores: Floats,
    topics: Topics,
    numbers: Int64s,
    ids: Strings,
    codes: Int32s,
) -> Float32s:
    """Return computed scores as float32.

    A run that was read may have infinite scores, but what is computed from numbers of the data must not be infinite.

    Args:
        scores: Numbers, (rows,).
        topics: Topics of the run.
        numbers: int64, (rows,): topic of each row, as a position in `topics`.
        ids: A table of document ids.
        codes: int32, (rows,): document of each row, as a position in `ids`.

    Raises:
        InputError: A score is NaN or beyond float32; the message names topic and document.
    """
    scores = np.asarray(scores)
    invalid = ~(np.abs(scores) <= MAX_SCORE)
    if invalid.any():
        row = int(np.argmax(invalid))
        problem = "is not a number (NaN)" if np.isnan(scores[row]) else f"is {scores[row]:g}, beyond {MAX_SCORE:g}"
        raise InputError(f"topic '{list(topics)[int(numbers[row])]}', document '{ids[int(codes[row])]}': the score {problem}")
    return scores.astype(np.float32, copy=False)

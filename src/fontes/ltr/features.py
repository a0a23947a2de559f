"""Features of candidates, one number for each topic and document: stages as scorers, columns, lengths, covered terms."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, ParameterError
from ..core.expression import part
from ..core.part import Part, fields, walk
from ..core.progress import Progress, ProgressCallback, silent
from ..core.run import Run
from ..core.stage import Cut, Pipeline, Stage, is_retriever, steps
from ..core.values import Topics
from ..index.columns import column_type, column_values
from ..lexical.fields import check_names, chosen_fields
from ..lexical.impacts import documents_of

if TYPE_CHECKING:
    from ..index import Index

Floats: TypeAlias = NDArray[np.float64]

NUMERIC = ("integer", "float", "date", "boolean")  # types of columns that are features
DAY = 86_400_000_000  # microseconds


class Feature(Part):
    """A feature that is no stage: a part with a value for each row of a run."""

    @abstractmethod
    def values(self, run: Run) -> Floats:
        """Return the value of each row, float64 (rows,); NaN for a missing one."""


@dataclass(frozen=True)
class Column(Feature, name="column"):
    """A number, date or truth value of the document: `column("date")`.

    Dates are days since 1970-01-01 UTC, with fractions; truth values 0 and 1. Missing values are missing in the feature too.

    Args:
        index: The index whose column is read.
        column: A column of numbers, dates or truth values.
    """

    index: Index = field(repr=False)
    column: str

    def check(self) -> None:
        column_type(self.index, self.column, "the feature column", NUMERIC)

    def values(self, run: Run) -> Floats:
        stored = column_values(self.index, self.column, self.index.ordinals_in(run, self.name))
        numbers = stored.values.astype(np.float64)
        if stored.kind == "date":
            numbers /= DAY
        elif stored.kind == "boolean":
            numbers -= 1
        return np.where(stored.present, numbers, np.nan)


@dataclass(frozen=True)
class _OfField(Feature):
    index: Index = field(repr=False)
    field: str | None = None

    def check(self) -> None:
        _searched(self.index, self.field)


@dataclass(frozen=True)
class Length(_OfField, name="length"):
    """The number of terms of the document, or of one of its fields.

    Args:
        index: The index.
        field: A field that the index keeps apart. None: all fields.
    """

    def values(self, run: Run) -> Floats:
        lengths = np.asarray(_searched(self.index, self.field).lengths, dtype=np.float64)
        return np.asarray(lengths[self.index.ordinals_in(run, self.name)])


@dataclass(frozen=True)
class QueryLength(Feature, name="query_length"):
    """The number of terms of the topic's text, repeated ones too. It is equal for all candidates of a topic.

    Args:
        index: The index whose analyzer makes the terms.
    """

    index: Index = field(repr=False)

    def values(self, run: Run) -> Floats:
        lengths = [len(terms) for terms in _terms(self.index, run.topics)]
        return np.repeat(np.array(lengths, dtype=np.float64), np.diff(run.bounds))


@dataclass(frozen=True)
class Coverage(_OfField, name="coverage"):
    """The share of the topic's different terms that the document holds, 0 to 1; missing for a topic without terms.

    Args:
        index: The index.
        field: A field that the index keeps apart. None: all fields.
    """

    def values(self, run: Run) -> Floats:
        searched, docs = _searched(self.index, self.field), self.index.ordinals_in(run, self.name).astype(np.int32)
        values = np.full(run.rows, np.nan)
        for number, terms in enumerate(_terms(self.index, run.topics)):
            rows = slice(run.bounds[number], run.bounds[number + 1])
            different = set(terms)
            if different and rows.start < rows.stop:
                covered = np.zeros(rows.stop - rows.start)
                for term in map(searched.term_number, different):
                    covered += np.isin(docs[rows], documents_of(searched, term), assume_unique=True) if term >= 0 else 0
                values[rows] = covered / len(different)
        return values


@dataclass(frozen=True)
class Score(Feature, name="score"):
    """The score of the candidate, from the stage before."""

    def values(self, run: Run) -> Floats:
        return run.scores.astype(np.float64)


def _searched(index: Any, field: str | None) -> Any:
    if field is None:
        return index
    check_names([field], index.field_statistics.names, f"{index.path} has no field")
    return chosen_fields(index.state, [field])


def _terms(index: Index, topics: Topics) -> list[list[str]]:
    return list(index.analyzer.many([topic.text for topic in topics.values()]))


def features_of(values: object, index: Any) -> tuple[Part, ...]:
    """Return features, each a stage, a `Feature` or its text, in order; or those of one text, with commas between.

    Args:
        values: The features.
        index: The index of features in texts.

    Raises:
        ParameterError: There is none, one is no feature, or two are equal.
    """
    if isinstance(values, str):
        parsed = part(values, index)
        values = parsed if isinstance(parsed, tuple) else (parsed,)
    if isinstance(values, Part) or not isinstance(values, Iterable):
        raise ParameterError(f"features are a list, such as [bm25(), column('date')], not {values!r}")
    features: list[Part] = []
    for value in values:
        component = part(value, index) if isinstance(value, str) else value
        if not isinstance(component, (Stage, Feature)) or (isinstance(component, Stage) and component.gives is not Run):
            raise ParameterError(
                f"{value!r} is no feature; features are retrievers such as bm25(), rerankers, column('date'), length(), "
                "query_length(), coverage() and score()"
            )
        features.append(component)
    names = feature_names(features)
    if not names:
        raise ParameterError("there are no features; give some, such as [bm25(), column('date')]")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f"the feature {twice} is given twice")
    return tuple(features)


def feature_names(features: Iterable[Part]) -> list[str]:
    """Return the text of each feature without what does not change it: filters, and the limit of the retriever that scores."""
    return [_plain(feature).text for feature in features]


def _plain(feature: Part) -> Part:
    unfiltered = feature.map(lambda component: component.with_(where=None) if is_retriever(component) else component)
    if not isinstance(unfiltered, Stage):
        return unfiltered
    *before, last = (step for step in steps(unfiltered) if not isinstance(step, Cut))
    if last.takes is Topics and last.depth_field:
        last = last.with_(**{field.name: field.default for field in fields(type(last)) if field.name == last.depth_field})
    return Pipeline((*before, last)) if before else last


def check_features(features: Sequence[Part], index: Any) -> None:
    """Raise FontesError if a feature is over another index, or its parameters, model or vectors are unusable."""
    for feature, name in zip(features, feature_names(features), strict=True):
        for component in walk(feature):
            feature_index = getattr(component, "index", None)
            if feature_index is not None and getattr(feature_index, "fingerprint", None) != index.fingerprint:
                raise ParameterError(
                    f"the feature {name} is over the index {feature_index.path}, not over {index.path}; take one index"
                )
            component.check()
        for component in walk(feature):
            component.check_needs()


def feature_matrix(run: Run, features: Sequence[Part], progress: ProgressCallback = silent) -> Floats:
    """Return the features of the candidates in a run.

    Scores of stages are those of their own runs, bit for bit, as float64. A lexical model gives 0 where no term matches.

    Args:
        run: The candidates, with their topics.
        features: Stages and `Feature`s.
        progress: Called with the progress of each.

    Returns:
        float64, (rows, features), in the run's order; NaN for a missing value.

    Raises:
        InputError: A value is infinite; the message names topic, document and feature.
        PipelineError: A stage scores no single documents.
    """
    matrix, start = np.empty((run.rows, len(features))), time.perf_counter()
    for number, feature in enumerate(features):
        if isinstance(feature, Feature):
            matrix[:, number] = feature.values(run)
        elif isinstance(feature, Stage):
            matrix[:, number] = feature.candidate_scores(run, partial(_of_feature, progress, number, len(features), start))
        progress(Progress("features", number + 1, len(features), time.perf_counter() - start, "features"))
    if np.isinf(matrix).any():
        row, number = (int(place) for place in np.argwhere(np.isinf(matrix))[0])
        topic = list(run.topics)[int(run.topic_numbers[row])]
        raise InputError(
            f"topic '{topic}', document '{run.ids[int(run.codes[row])]}': the feature {features[number]!r} is "
            f"{matrix[row, number]}; features are finite numbers"
        )
    return matrix


def _of_feature(report: ProgressCallback, number: int, features: int, start: float, progress: Progress) -> None:
    part = (number + (progress.fraction or 0.0)) / features
    report(Progress("features", number, features, time.perf_counter() - start, "features", part=part))

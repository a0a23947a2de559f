"""Features of candidates, one number per topic and document: scores of stages, columns, lengths, shares of matched terms."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Float64s
from ..core.errors import InputError, ParameterError
from ..core.expression import part
from ..core.part import Part, fields, walk
from ..core.run import Run
from ..core.searches import is_retriever
from ..core.stage import Cut, Pipeline, Stage, steps
from ..core.values import Topics
from ..core.work import Progress, reported_as, reporter
from ..index.columns import column_type, column_values
from ..lexical.fields import check_names, chosen_fields
from ..lexical.parts import documents_of_terms, numbers_in

if TYPE_CHECKING:
    from ..index import Index
    from ..index.parts import Searchable


COLUMN_TYPES = ("integer", "float", "date", "boolean")
MICROSECONDS_PER_DAY = 86_400_000_000


class Feature(Part):
    """A feature other than a stage: a part with a value for each row of a run."""

    @abstractmethod
    def values(self, run: Run) -> Float64s:
        """Return the value of each row, float64 (rows,); NaN for a missing one."""


@dataclass(frozen=True)
class Column(Feature, name="column"):
    """A number, date or truth value of the document: `column("date")`.

    Dates become days since 1970-01-01 UTC, with fractions; truth values become 0 and 1. A missing value stays missing.

    Args:
        index: The index whose column is read.
        column: A column of numbers, dates or truth values.
    """

    index: Index = field(repr=False)
    column: str

    def check(self) -> None:
        column_type(self.index, self.column, "the feature column", COLUMN_TYPES)

    def values(self, run: Run) -> Float64s:
        column = column_values(self.index, self.column, self.index.ordinals_in(run, self.name))
        numbers = column.values.astype(np.float64)
        if column.kind == "date":
            numbers /= MICROSECONDS_PER_DAY
        elif column.kind == "boolean":
            numbers -= 1  # stored as 1 and 2
        return np.where(column.present, numbers, np.nan)


@dataclass(frozen=True)
class _FieldFeature(Feature):
    """A feature of the whole document, or of one field.

    Args:
        index: The index.
        field: A field that the index keeps apart. None: all fields.
    """

    index: Index = field(repr=False)
    field: str | None = None

    def check(self) -> None:
        _index_of_field(self.index, self.field)


@dataclass(frozen=True)
class Length(_FieldFeature, name="length"):
    """The number of terms of the document, or of one of its fields.

    Args:
        index: The index.
        field: A field that the index keeps apart. None: all fields.
    """

    def values(self, run: Run) -> Float64s:
        lengths = np.asarray(_index_of_field(self.index, self.field).lengths, dtype=np.float64)
        return np.asarray(lengths[self.index.ordinals_in(run, self.name)])


@dataclass(frozen=True)
class QueryLength(Feature, name="query_length"):
    """The number of terms of the topic's text, repeated ones too. All candidates of a topic have the same value.

    Args:
        index: The index whose analyzer makes the terms.
    """

    index: Index = field(repr=False)

    def values(self, run: Run) -> Float64s:
        lengths = [len(terms) for terms in _terms(self.index, run.topics)]
        return np.repeat(np.array(lengths, dtype=np.float64), np.diff(run.bounds))


@dataclass(frozen=True)
class Coverage(_FieldFeature, name="coverage"):
    """The share of the topic's different terms that the document holds, 0 to 1; missing for a topic without terms.

    Args:
        index: The index.
        field: A field that the index keeps apart. None: all fields.
    """

    def values(self, run: Run) -> Float64s:
        index = _index_of_field(self.index, self.field)
        docs = self.index.ordinals_in(run, self.name).astype(np.int32)
        values = np.full(run.rows, np.nan)
        for i, tokens in enumerate(_terms(self.index, run.topics)):
            start, end = run.bounds[i], run.bounds[i + 1]
            terms = set(tokens)
            if not terms or start == end:
                continue
            matched = np.zeros(end - start)
            for term in terms:
                numbers = numbers_in(index.parts, [term])
                matched += np.isin(docs[start:end], documents_of_terms(index.parts, numbers, None), assume_unique=True)
            values[start:end] = matched / len(terms)
        return values


@dataclass(frozen=True)
class Score(Feature, name="score"):
    """The score of the candidate, from the stage before."""

    def values(self, run: Run) -> Float64s:
        return run.scores.astype(np.float64)


def _index_of_field(index: Index, field: str | None) -> Searchable:
    """Return the index, or one of its fields as an index; raise FontesError for an unknown field."""
    if field is None:
        return index.state
    index.state.require_fields()
    check_names([field], index.state.separate or [field], f"{index.path} has no field")
    return chosen_fields(index.state, [field])


def _terms(index: Index, topics: Topics) -> list[list[str]]:
    """Return the analyzed terms of each topic's text."""
    return list(index.analyzer.many([topic.text for topic in topics.values()]))


def features_of(values: object, index: Index) -> tuple[Part, ...]:
    """Return the features in their order.

    Args:
        values: Features, each a stage, a `Feature` or its expression; or one expression of all, separated by commas.
        index: The index that expressions are over.

    Raises:
        ParameterError: There are no features, a value is no feature, or a feature occurs twice.
    """
    if isinstance(values, str):
        parsed = part(values, index)
        values = parsed if isinstance(parsed, tuple) else (parsed,)
    if isinstance(values, Part) or not isinstance(values, Iterable):
        raise ParameterError(f"features are a list, such as [bm25(), column('date')], not {values!r}")
    features: list[Part] = []
    for value in values:
        feature = part(value, index) if isinstance(value, str) else value
        if not isinstance(feature, (Stage, Feature)) or (isinstance(feature, Stage) and feature.gives is not Run):
            raise ParameterError(
                f"{value!r} is no feature; features are retrievers such as bm25(), rerankers, column('date'), length(), "
                "query_length(), coverage() and score()"
            )
        features.append(feature)
    names = feature_names(features)
    if not names:
        raise ParameterError("there are no features; give some, such as [bm25(), column('date')]")
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"the feature {name} is given twice")
    return tuple(features)


def feature_names(features: Iterable[Part]) -> list[str]:
    """Return the text of each feature, without the filters and cuts, which do not change its values."""
    return [_canonical(feature).text for feature in features]


def _canonical(feature: Part) -> Part:
    """Return the feature without filters, without cuts, and with the default depth of a retriever that scores."""
    unfiltered = feature.map(lambda component: component.with_(where=None) if is_retriever(component) else component)
    if not isinstance(unfiltered, Stage):
        return unfiltered
    *earlier, last = (step for step in steps(unfiltered) if not isinstance(step, Cut))
    if last.takes is Topics and last.depth_field:
        last = last.with_(**{field.name: field.default for field in fields(type(last)) if field.name == last.depth_field})
    return Pipeline((*earlier, last)) if earlier else last


def check_features(features: Sequence[Part], index: Index) -> None:
    """Check the features.

    Raises:
        FontesError: A feature is over another index, or its parameters, model or vectors are unusable.
    """
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


def feature_matrix(run: Run, features: Sequence[Part]) -> Float64s:
    """Return the values of the features for the candidates in a run.

    The value of a stage is the score that it gives in its own run, bit for bit, as float64. A lexical model gives 0 where no
    term matches.

    Args:
        run: The candidates, with their topics.
        features: Stages and `Feature`s.

    Returns:
        float64, (rows, features), in the run's order; NaN for a missing value.

    Raises:
        InputError: A value is infinite; the message names topic, document and feature.
        PipelineError: A stage cannot score single documents.
    """
    report = reporter()
    matrix = np.empty((run.rows, len(features)))
    start = time.perf_counter()
    for i, feature in enumerate(features):
        if isinstance(feature, Feature):
            matrix[:, i] = feature.values(run)
        elif isinstance(feature, Stage):
            with reported_as(partial(_of_all, i, len(features), start)):
                matrix[:, i] = feature.candidate_scores(run)
        report(Progress("features", i + 1, len(features), time.perf_counter() - start, "features"))
    if np.isinf(matrix).any():
        row, i = np.argwhere(np.isinf(matrix))[0].tolist()
        topic = list(run.topics)[int(run.topic_numbers[row])]
        raise InputError(
            f"topic '{topic}', document '{run.ids[int(run.codes[row])]}': the feature {features[i]!r} is "
            f"{matrix[row, i]}; features are finite numbers"
        )
    return matrix


def _of_all(done: int, features: int, start: float, within: Progress) -> Progress:
    """Return the progress within a feature as a part of all features.

    Args:
        done: Number of complete features.
        features: Number of all features.
        start: When the work began, in seconds of `time.perf_counter`.
        within: Progress of the stage that scores the feature.
    """
    part = (done + (within.fraction or 0.0)) / features
    return Progress("features", done, features, time.perf_counter() - start, "features", part=part)

"""Stages and their operators `>>`, `%`, `*`, `+`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Generic, Never, TypeAlias, TypeVar, cast, get_args, get_origin

from .answers import NAME, answers_of
from .arrays import Float32s, Ints
from .errors import ParameterError, PipelineError
from .html import boxes
from .pairs import aligned, summed
from .part import Names, Part, fields, indexes_of, walk
from .run import Kind, Ranking, Run
from .searches import at_most, check_depth, check_page, check_reach, matches_of_any, narrowed, refuse_unknown
from .values import Explanation, Topic, Topics
from .work import ProgressCallback, work

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Stage(Part, ABC, Generic[A, B]):
    """A step from `Topics` or `Run` to `Topics` or `Run`.

    A subclass is a frozen dataclass whose fields are its parameters and whose constructor only stores them. Its base declares
    input and output: `class Reverse(Stage[Run, Run])`. `apply` does the work.
    """

    depth_field: ClassVar[str] = ""
    """Field that `% k` lowers, if the stage can limit itself to the best k documents; empty for others."""
    preserves_order: ClassVar[bool] = False
    """Whether a stage from run to run changes no ranking, so that `% k` after it may run before it."""
    needs_full_ranking: ClassVar[bool] = False
    """Whether a stage from run to run removes the default limit of the stage before it, unless `% k` precedes it."""
    returns_subset: ClassVar[bool] = False
    """Whether a stage from run to run gives only documents of the run that it takes, so that `count` is that of this run."""
    starts_from_scores: ClassVar[bool] = False
    """Whether the first part of its explanation is the document's score in the input run, which earlier stages explain."""
    reads_system: ClassVar[bool] = False
    """Whether a stage from run to run reads the text of all stages before it from the run's provenance."""
    _types: ClassVar[tuple[object, object]] = (Any, Any)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Stage:
                cls._types = get_args(base)

    @property
    def takes(self) -> Kind:
        """Input type: Topics or Run."""
        return cast("Kind", self._types[0])

    @property
    def gives(self) -> Kind:
        """Output type: Topics or Run."""
        return cast("Kind", self._types[1])

    @abstractmethod
    def apply(self, value: A, /) -> B:
        """Do the work of the stage; callers call the stage itself. Long work is reported to `reporter()`.

        Args:
            value: The input.
        """

    def __call__(self, value: object, *, progress: ProgressCallback | None = None) -> B:
        """Run the stage.

        Args:
            value: The input, or anything that `Topics.of` or `Run.of` accepts.
            progress: Called with the progress of long work; None: as `work` says.

        Returns:
            The output. A run's `provenance` has the text of the stage under "system", the fingerprints of its indexes, by their
            names in the text, under "indexes", the duration under "seconds", and the answers of language models under "llm".

        Raises:
            FontesError: A parameter of an inner part is invalid, or a model, library or file that it needs is missing; this is
                checked before any work.
        """
        if progress is not None:
            with work(progress=progress):
                return self(value)
        argument: Any = (Topics if self.takes is Topics else Run).of(value)
        start = time.perf_counter()
        self._checked  # noqa: B018
        result: Any = self.apply(argument)
        if isinstance(result, Run):
            result = result.with_(
                provenance={
                    **result.provenance,
                    **self._provenance,
                    "seconds": time.perf_counter() - start,
                    **({NAME: answers} if (answers := answers_of(result.topics)) else {}),
                }
            )
        return result  # type: ignore[no-any-return]

    @cached_property
    def _provenance(self) -> dict[str, object]:
        indexes = {name: index.fingerprint for name, index in indexes_of(self).items()}
        return {"system": repr(self), "indexes": indexes}

    def one(self, value: Any, k: int, /) -> Any:
        """Return what the stage makes of one topic, or of a ranking if it takes a run, as of `Topics` or a `Run` with it alone.

        Stages that need no run define it. `k` is the greatest number of documents of a ranking that it returns.
        """
        raise NotImplementedError

    @property
    def docs_read(self) -> int:
        """Number of the best documents of a ranking that `one` reads."""
        return 0

    def search(
        self,
        query: str | Topic,
        k: int = 10,
        offset: int = 0,
        *,
        where: str | None = None,
        sort: str | None = None,
        descending: bool = False,
        facets: Sequence[str] = (),
        **unknown: Never,
    ) -> Ranking:
        """Return the best `k` documents for one query, after the best `offset`.

        A retriever goes beyond its default limit of 1,000 documents if these are more. An offset beyond the last document
        gives an empty ranking. `ranking.total` counts all documents that match.

        Args:
            query: The query.
            k: Maximum number of documents.
            offset: Number of documents before the first.
            where: A condition on the documents' metadata, beside those of the retrievers.
            sort: A column of dates or numbers that orders the documents, as the stage `sort`.
            descending: With `sort`, whether the greatest value, or the newest date, is first.
            facets: Columns whose values are counted in all documents that match; `ranking.facets()` returns the counts.
            **unknown: None.

        Raises:
            PipelineError: The stage does not go from topics to a run.
            ParameterError: `query` is no single query, `k` or `offset` is out of range, or a column or parameter is unknown.
        """
        if unknown:
            refuse_unknown(unknown)
        stage = self if where is None and sort is None else narrowed(self, where, sort, descending)
        ranking: Ranking = stage.best(query, k, offset)
        return ranking.with_facets(facets, partial(stage.matches, topic_of(query))) if facets else ranking

    def best(self, query: str | Topic, k: int = 10, offset: int = 0) -> Ranking:
        """Return what `search` returns without further options; retrievers that need no run for it override it."""
        self.require(Topics, Run, "search")
        topic, depth = topic_of(query), check_page(k, offset)
        cut = self._cuts.get((k, offset))
        if cut is None:
            cut = self._limited(depth)
            check_reach(cut, k)
            self._cuts.clear()
            self._cuts[k, offset] = cut
        run: Any = cut(topic)  # of a local name: another thread may search with another k
        ranking: Ranking = run[topic.id]
        return ranking.page(offset, partial(self.count, topic))

    @cached_property
    def _cuts(self) -> dict[tuple[int, int], AnyStage]:
        """Last stage cut by `best`, by k and offset, whose cached values serve the next query."""
        return {}

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        """Return the number of all documents that match the query and pass the filters, beyond any k.

        Of a pipeline it is the number for its last retriever, whatever later stages leave out; of fused stages, that of the
        documents that match one of them.

        Args:
            query: The query.
            up_to: Greatest number that is counted, which may save time: `up_to` + 1 stands for any greater one. None: no limit.

        Raises:
            PipelineError: There is no such number: a retriever such as `dense` ranks every document, or stages make others.
        """
        self.require(Topics, Run, "count")
        return at_most(len(self.matches(topic_of(query))), up_to)

    def matches(self, topic: Topic) -> Ints:
        """Return the ordinals of all documents that match, ascending; raises as `count`."""
        raise PipelineError(f"{self._label} has no number of matches: it ranks documents whether they match or not")

    @cached_property
    def _checked(self) -> None:
        """Check inner parts once, so that a long first step does not precede an error of the second."""
        if inner := list(walk(self))[1:]:
            self.check()
        for part in inner:
            part.check()
        for part in inner:
            part.check_needs()

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """Explain the score of the document.

        Raises:
            PipelineError: The stage has no explanation.
        """
        raise PipelineError(f"{self._label} cannot explain its scores")

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the score of a document for a stage that takes the run; by default `explain` of its topic."""
        return self.explain(run.topics[topic_id], doc_id)

    def candidate_scores(self, run: Run) -> Float32s:
        """Score the documents of a run, each with its topic, as this stage scores those that it returns itself.

        A retriever's limit of documents and filter do not matter: no document is left out.

        Args:
            run: The candidates, with their topics.

        Returns:
            float32, (rows,): the score of each row, equal to that in the stage's own run; NaN where the stage has none.

        Raises:
            PipelineError: The stage does not score single documents.
        """
        if self.takes is Run and self.gives is Run:
            return aligned(run, cast(Run, self(run)), self._label)
        raise PipelineError(f"{self._label} cannot score the documents of a run; retrievers and rerankers can")

    def cut(self, k: int) -> Stage[A, B] | None:
        """Return this stage limited to `k` documents per topic, or None if it cannot limit itself; called by `stage % k`.

        The default limit may be raised, but not one that the user has set.
        """
        if not self.depth_field:
            return None
        depth = getattr(self, self.depth_field)
        return self if k == depth or (k > depth and not self.has_default_depth) else self.with_(**{self.depth_field: k})

    def check_after(self, earlier: Sequence[AnyStage]) -> None:
        """Raise FontesError, before any work, if the stage cannot follow these stages of its pipeline."""

    def without_limit(self) -> Stage[A, B]:
        """Return this stage without its default limit of documents per topic, if it can; called by `stage >> sort(…)`."""
        return self

    def require(self, takes: Kind, gives: Kind, doing: str) -> None:
        """Raise PipelineError, naming `doing`, unless the stage goes from `takes` to `gives`."""
        if self.takes is not takes or self.gives is not gives:
            raise PipelineError(
                f"{self._label} takes {self.takes.__name__} and gives {self.gives.__name__}; "
                f"{doing} needs a stage from {takes.__name__} to {gives.__name__}"
            )

    def shown(self) -> dict[str, Any]:
        shown = super().shown()
        if self._is_cut:
            shown.pop(self.depth_field)
        return shown

    def written(self, names: Names, *, strict: bool) -> str:
        text = super().written(names, strict=strict)
        return f"{text} % {getattr(self, self.depth_field)}" if self._is_cut else text

    @property
    def _is_cut(self) -> bool:
        """Whether the text shows the depth as `% k`, which can only lower it."""
        return bool(self.depth_field) and getattr(self, self.depth_field) < self._default_depth

    @cached_property
    def has_default_depth(self) -> bool:
        """Whether the stage limits its documents per topic by the default."""
        return bool(self.depth_field) and getattr(self, self.depth_field) == self._default_depth

    @property
    def _default_depth(self) -> Any:
        return next(field.default for field in fields(type(self)) if field.name == self.depth_field)

    def __rshift__(self, after: Stage[B, C]) -> Stage[A, C]:
        if not isinstance(after, Stage):
            return NotImplemented
        if self.gives is not after.takes:
            raise PipelineError(
                f"{self._label} gives {self.gives.__name__}, but {after._label} takes {after.takes.__name__}; "
                f"{self._label} >> {after._label} does not fit"
            )
        if isinstance(after, Cut):
            return self % after.k  # type: ignore[return-value]
        first, *_ = steps(after)
        return Pipeline(steps(self.without_limit() if first.needs_full_ranking else self) + steps(after))

    def __mod__(self, k: int) -> Stage[A, B]:
        k = check_depth(k)
        if self.gives is not Run:
            raise PipelineError(f"{self._label} gives Topics; % k cuts a Run")
        best = self._limited(k)
        check_reach(best, k)
        return best

    def _limited(self, k: int) -> Stage[A, B]:
        return self.cut(k) or Pipeline((*steps(self), Cut(k)))

    def __mul__(self: Stage[A, Run], weight: float) -> Stage[A, Run]:
        if not isinstance(weight, (int, float)) or isinstance(weight, bool):
            return NotImplemented
        if self.gives is not Run:
            raise PipelineError(f"{self._label} gives Topics; * weights the scores of a Run")
        return Scaled(self, float(weight))

    __rmul__ = __mul__

    def __add__(self: Stage[A, Run], other: Stage[A, Run]) -> Stage[A, Run]:
        if not isinstance(other, Stage):
            return NotImplemented
        if self.gives is not Run or other.gives is not Run or self.takes is not other.takes:
            raise PipelineError(
                f"+ sums the scores of two stages that take the same and give Run; {self._label} goes from "
                f"{self.takes.__name__} to {self.gives.__name__}, "
                f"{other._label} from {other.takes.__name__} to {other.gives.__name__}"
            )
        return Sum((*_terms(self), *_terms(other)))

    def _repr_html_(self) -> str:
        return boxes(self)


AnyStage: TypeAlias = Stage[Any, Any]
"""A stage of any kind."""
Ranker: TypeAlias = Stage[Any, Run]
"""A stage that gives a run: a retriever or a reranker."""


@dataclass(frozen=True)
class Cut(Stage[Run, Run]):
    """Keeps the best documents of each topic: `% k` where the stage before cannot limit itself; alone `cut(k)`.

    Args:
        k: Documents kept per topic.
    """

    returns_subset: ClassVar[bool] = True
    k: int

    def apply(self, run: Run, /) -> Run:
        return run.top(self.k)

    def cut(self, k: int) -> Cut:
        return Cut(min(k, self.k))


Cut.name = "cut"  # not registered: the stage of that name makes it, besides other cuts


@dataclass(frozen=True, repr=False)
class Pipeline(Stage[Any, Any]):
    """Consecutive stages: `a >> b`."""

    stages: tuple[AnyStage, ...]

    @property
    def takes(self) -> Kind:
        return self.stages[0].takes

    @property
    def gives(self) -> Kind:
        return self.stages[-1].gives

    def check(self) -> None:
        for number, stage in enumerate(self.stages):
            stage.check_after(self.stages[:number])

    def apply(self, value: Any, /) -> Any:
        for number, stage in enumerate(self.stages):
            if stage.reads_system and number > 1:  # else the value has the text of the last stage alone
                value = value.with_(provenance={**value.provenance, **Pipeline(self.stages[:number])._provenance})
            value = stage(value)
        return value

    def cut(self, k: int) -> AnyStage | None:
        *earlier, last = self.stages
        if last.preserves_order:
            return Pipeline((*steps(Pipeline(tuple(earlier)) % k if earlier[1:] else earlier[0] % k), last))
        cut = last.cut(k)
        return None if cut is None else Pipeline((*earlier, *steps(cut)))

    def without_limit(self) -> AnyStage:
        *earlier, last = self.stages
        return Pipeline((*earlier, last.without_limit()))

    def best(self, query: str | Topic, k: int = 10, offset: int = 0) -> Ranking:
        """Return the best `k` documents for one query; see `Stage.search`. A retriever at the end builds no run."""
        if not self._ends_in_search:
            return super().best(query, k, offset)
        return self.stages[-1].best(self.rewritten(topic_of(query)), k, offset)

    @cached_property
    def _ends_in_search(self) -> bool:
        """Whether the last stage is a retriever with a search of its own."""
        last = self.stages[-1]
        return (self.takes, last.takes, last.gives) == (Topics, Topics, Run) and type(last).best is not Stage.best

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        self.require(Topics, Run, "count")
        retriever, topic = self._last_retriever(topic_of(query))
        return retriever.count(topic, up_to)

    def matches(self, topic: Topic) -> Ints:
        """Return the matches of the last retriever, for the topic that the stages before it make."""
        retriever, rewritten = self._last_retriever(topic)
        return retriever.matches(rewritten)

    @cached_property
    def before_retriever(self) -> tuple[AnyStage, ...]:
        """The stages before the last retriever, which `count` repeats."""
        positions = (i for i, stage in enumerate(self.stages) if stage.takes is Topics and stage.gives is Run)
        return self.stages[: max(positions, default=0)]

    def _last_retriever(self, topic: Topic) -> tuple[AnyStage, Topic]:
        """The last retriever, and the topic that the earlier stages make of a topic."""
        position = len(self.before_retriever)
        for stage in self.stages[position + 1 :]:
            if not (stage.returns_subset or stage.preserves_order):
                raise PipelineError(f"{self._label} has no number of matches: {stage._label} makes other documents of a run")
        return self.stages[position], self.rewritten(topic)

    def rewritten(self, topic: Topic) -> Topic:
        """Return the topic that the stages before the last retriever make of a topic."""
        self._checked  # noqa: B018
        earlier, value = self.before_retriever, cast(Any, topic)
        if Stage.one not in [type(stage).one for stage in earlier]:
            for stage, after in pairwise(self.stages[: len(earlier) + 1]):
                value = stage.one(value, after.docs_read)
            return cast(Topic, value)
        value = Topics.of(topic)
        for stage in earlier:
            value = stage(value)
        return cast(Topic, (value if isinstance(value, Topics) else value.topics)[topic.id])

    def candidate_scores(self, run: Run) -> Float32s:
        """Score as the last stage does, for the topics that the earlier stages make."""
        *earlier, last = (stage for stage in self.stages if not isinstance(stage, Cut))
        if self.takes is not Topics or last.takes is not Topics:
            return super().candidate_scores(run)
        topics = (Pipeline(tuple(earlier)) if earlier[1:] else earlier[0])(run.topics)
        return last.candidate_scores(run.with_(topics=topics))

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """Explain the last stage's score for the topic that the earlier stages make of the query."""
        self.require(Topics, Run, "explain")
        topic = topic_of(query)
        *earlier, last = (stage for stage in self.stages if not isinstance(stage, Cut))
        if earlier:
            first = Pipeline(tuple(earlier)) if earlier[1:] else earlier[0]
            output = first(topic)
            if isinstance(output, Run):
                explanation = last.explain_in(output, topic.id, doc_id)
                if last.starts_from_scores and explanation.parts:
                    with suppress(PipelineError):
                        return replace(explanation, parts=(first.explain(topic, doc_id), *explanation.parts[1:]))
                return explanation
            topic = output[topic.id]
        return last.explain(topic, doc_id)

    def written(self, names: Names, *, strict: bool) -> str:
        texts: list[str] = []
        for stage, after in zip(self.stages, (*self.stages[1:], None), strict=True):
            if texts and isinstance(stage, Cut):
                texts[-1] += f" % {stage.k}"
                continue
            text = stage.written(names, strict=strict)
            inside = isinstance(stage, Pipeline) or (isinstance(stage, Sum) and isinstance(after, Cut))
            texts.append(f"({text})" if inside else text)
        return " >> ".join(texts)

    @property
    def _label(self) -> str:
        return repr(self)


@dataclass(frozen=True, repr=False)
class Scaled(Stage[Any, Run]):
    """A stage whose scores are multiplied by a weight: `weight * stage`.

    It does not pass `% k` on, as multiplied float32 scores may become equal.
    """

    stage: Ranker
    weight: float

    @property
    def takes(self) -> Kind:
        return self.stage.takes

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        return self.stage.count(query, up_to)

    def matches(self, topic: Topic) -> Ints:
        return self.stage.matches(topic)

    def apply(self, value: object, /) -> Run:
        return summed([self.stage(value)], [self.weight])

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        part = self.stage.explain(query, doc_id)
        return Explanation(self.weight * part.value, f"{self.weight:g} times", (part,))

    def written(self, names: Names, *, strict: bool) -> str:
        text = self.stage.written(names, strict=strict)
        return f"{_number(self.weight)} * {f'({text})' if _binds_loosely(self.stage) else text}"

    @property
    def _label(self) -> str:
        return repr(self)


@dataclass(frozen=True, repr=False)
class Sum(Stage[Any, Run]):
    """The sum of the scores of several stages: `a + b`.

    A document that a stage does not return gets 0 from it.
    """

    stages: tuple[Ranker, ...]

    @property
    def takes(self) -> Kind:
        return self.stages[0].takes

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        return count_of_any(self, self.stages, query, up_to)

    def matches(self, topic: Topic) -> Ints:
        return matches_of_any(self, self.stages, topic)

    def apply(self, value: object, /) -> Run:
        weighted = [(stage.stage, stage.weight) if isinstance(stage, Scaled) else (stage, 1.0) for stage in self.stages]
        return summed([stage(value) for stage, _ in weighted], [weight for _, weight in weighted])

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        parts = tuple(stage.explain(query, doc_id) for stage in self.stages)
        return Explanation(sum(p.value for p in parts), "sum of the stages", parts)

    def written(self, names: Names, *, strict: bool) -> str:
        texts = [stage.written(names, strict=strict) for stage in self.stages]
        loose = [isinstance(stage, (Sum, Pipeline)) for stage in self.stages]
        return " + ".join(f"({text})" if inside else text for text, inside in zip(texts, loose, strict=True))

    @property
    def _label(self) -> str:
        return repr(self)


def topic_of(query: object) -> Topic:
    """Return the topic of one query; raise ParameterError unless it is a text or a Topic."""
    if isinstance(query, (str, Topic)):
        return query if isinstance(query, Topic) else Topic("1", query)
    raise ParameterError(
        f"this takes one query, a text or a Topic, not a {type(query).__name__}; a stage itself takes many: stage(queries)"
    )


def count_of_any(fusion: Ranker, stages: Sequence[Ranker], query: str | Topic, up_to: int | None) -> int:
    """Return the number of documents that match one of some stages, as `Stage.count`; raises as `matches_of_any`."""
    fusion.require(Topics, Run, "count")
    topic = topic_of(query)
    if up_to is not None and len(indexes_of(fusion)) <= 1 and max([stage.count(topic, up_to) for stage in stages]) > up_to:
        return up_to + 1
    return at_most(len(matches_of_any(fusion, stages, topic)), up_to)


def steps(stage: AnyStage) -> tuple[AnyStage, ...]:
    """Return the steps of a pipeline; any other stage is its own single step."""
    return stage.stages if isinstance(stage, Pipeline) else (stage,)


def _terms(stage: Ranker) -> tuple[Ranker, ...]:
    return stage.stages if isinstance(stage, Sum) else (stage,)


def _binds_loosely(stage: AnyStage) -> bool:
    """Whether the stage's text needs parentheses after a weight."""
    return isinstance(stage, (Sum, Scaled, Pipeline)) or stage._is_cut


def _number(value: float) -> str:
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)

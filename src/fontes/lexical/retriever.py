"""`Lexical`: base class of lexical retrievers, stages from topics to runs over one index."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..core.arrays import Float32s, Float64s, Ints
from ..core.checks import check_whole
from ..core.errors import InputError, PipelineError
from ..core.ranking import Counter
from ..core.run import Ranking, Run
from ..core.searches import at_most, check_page
from ..core.stage import AnyStage, Pipeline, Stage, topic_of
from ..core.strings import offsets_of
from ..core.values import Explanation, Topic, Topics, notes_of
from ..core.work import check_threads, work
from ..index.columns import Filter, explain_exclusion, filter_of
from ..index.packing import chunks
from ..index.parts import Searchable
from ..index.tables import find_positions
from ..storage.caches import LazyAttribute, weak_proxy
from ..storage.compiled import load, when_loaded
from ..storage.threads import in_threads
from ..text.analyzer import MAX_CACHED_WORDS, Analyzer
from .direct import Bags, Direct
from .impacts import weighted_postings
from .parts import count_of_terms, documents_of_terms, located_in
from .searching import bags_of, scores_of, search_bags
from .structured import MAX_TERM_WEIGHT, PlanRow, SearchPlan, StructuredQuery
from .weighting import Postings, Statistics, Weighting, posting_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..index.state import State

UNLIMITED = 1_000_000_000  # documents per topic: more than an index holds


class Lexical(Stage[Topics, Run]):
    """A retriever whose model is a weighting. A document matches if it has a term of the topic, even with a score of 0 or less.

    A topic with a structured query is searched by the query, not by its text or weights.

    Attributes:
        index: The index to search.
        k: Maximum documents per topic.
        threads: Search threads, which do not change the run; None: one per processor.
        where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
            collection. None: no filter.
    """

    depth_field = "k"
    reads_queries: ClassVar[bool] = True  # whether structured queries have terms of the searched vocabulary
    index: State
    k: int
    threads: int | None
    where: str | None

    @property
    @abstractmethod
    def weighting(self) -> Weighting:
        """Model with its parameters.

        Raises:
            ParameterError: A parameter is out of range.
        """

    def without_limit(self) -> Self:
        return self.with_(k=UNLIMITED) if self.has_default_depth else self

    @property
    def searched(self) -> Searchable:
        """Source of the postings: the index, or other lists of its documents."""
        return self.index

    def check(self) -> None:
        self.weighting  # noqa: B018  # raises ParameterError
        check_whole("k", self.k)
        if self.threads is not None:
            check_threads(self.threads)
        self._filter  # noqa: B018  # raises ParameterError

    @property
    def _filter(self) -> Filter | None:
        return filter_of(self.index, self.where)

    @cached_property
    def _ready(self) -> tuple[Weighting, Filter | None]:
        self.check()
        return self.weighting, self._filter

    @property
    def _direct(self) -> Direct | None:
        """Searches in one compiled call; None if the model or the index has none."""
        direct: Direct | None = vars(self).get("_direct_search")
        if direct is None and self.index.actors is None:
            direct = vars(self)["_direct_search"] = Direct.of(self.searched, self._ready[0])
            if direct is None:
                when_loaded(self._prepare)
        return direct

    def _prepare(self) -> None:
        """Make ready what a search needs, in another thread."""
        with work(threads=1):
            direct = Direct.of(self.searched, self._ready[0], wait=True)
        if direct is not None:
            direct.text("a", 1)

    def _bags(self, topics: Sequence[Topic]) -> Bags:
        """Return the query weights of topics, in all parts of the index."""
        return bags_of(self.searched.parts, self._ready[0], self._counts(topics))

    def _search_directly(self, query: str | Topic, k: int) -> tuple[Any, ...] | None:
        """Return the best documents, their scores and perhaps the number of all, from one compiled call; None if it cannot."""
        direct, passed = self._direct, self._ready[1]
        if (
            direct is None
            or self.searched is not self.index
            or not (isinstance(query, str) or (isinstance(query, Topic) and query.weights is None))
        ):
            return None
        if isinstance(query, Topic) and query.query is not None:
            return direct.search(query.query, k, passed) if passed is None or passed.count else None
        text = query if isinstance(query, str) else query.text
        if passed is None:
            return direct.text(text, k)
        return direct.text(text, min(k, passed.count), passed) if passed.count else None

    def apply(self, topics: Topics, /) -> Run:
        self.check()
        if self.reads_queries and any(topic.query is not None for topic in topics.values()):
            return self._with_queries(topics)
        if (actors := self.index.actors) is not None:
            run = actors.run(self, "apply", (topics,))
            return self._with_matches(run, topics)
        with work(threads=self.threads):
            bags = self._bags(list(topics.values()))
            results = search_bags(self.searched, self.weighting, bags, self.k, self._filter)
        run = Run(topics, self.index.ids, offsets_of(results[0]), *results[1:], documents=self.index)
        return self._with_matches(run.with_(provenance=self.index.provenance), topics)

    def _with_queries(self, topics: Topics) -> Run:
        """Search topics of which some have structured queries; this process searches them even if actors hold shards."""
        plain_topics = Topics(topic for topic in topics.values() if topic.query is None)
        plain_run = self.apply(plain_topics) if plain_topics else Run.of({}).with_(provenance=self.index.provenance)
        queries = [self._structured(topic) for topic in topics.values() if topic.query is not None]
        passed, direct = self._ready[1], self._direct
        with work(threads=self.threads):
            results = in_threads(lambda query: query.search(self.k, passed, direct), queries)
        edges = plain_run.bounds.tolist()
        plain_rankings = ((plain_run.codes[a:b], plain_run.scores[a:b]) for a, b in itertools.pairwise(edges))
        query_rankings = iter(results)
        rankings = [next(plain_rankings if topic.query is None else query_rankings)[:2] for topic in topics.values()]
        bounds = np.array([0, *itertools.accumulate(len(docs) for docs, _ in rankings)], dtype=np.int64)
        docs, scores = (np.concatenate(columns) for columns in zip(*rankings, strict=True))
        run = Run(topics, self.index.ids, bounds, docs, scores, documents=self.index, provenance=plain_run.provenance)
        return self._with_matches(run, topics)

    def _with_matches(self, run: Run, topics: Topics) -> Run:
        """Return the run with a function to all matching documents of a topic."""
        return run.with_(matches=lambda topic_id: self.matches(topics[topic_id]))

    def _structured(self, topic: Topic) -> StructuredQuery:
        last: StructuredQuery | None = vars(self).get("_last_query")  # matches are often counted after a search
        if last is None or last.query is not topic.query:
            last = vars(self)["_last_query"] = StructuredQuery(self.searched, self._ready[0], topic)
        return last

    def matches(self, query: str | Topic) -> Ints:
        """Return the ordinals of all documents that match the query and pass the filter, ascending."""
        topic = topic_of(query)
        if topic.query is not None and self.reads_queries:
            return self._structured(topic).matches(self._filter)
        return documents_of_terms(self.searched.parts, self._bags([topic]).numbers, self._filter)

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        """Return the number of documents that match the query and pass the filter; see `Stage.count`."""
        topic = topic_of(query)
        if topic.query is not None and self.reads_queries:
            direct = self._direct if self.searched is self.index else None
            if direct is not None and (union := direct.terms_of_union(topic.query)) is not None:
                return count_of_terms(self.searched.parts, union, self._filter, up_to)
            if direct is not None and self.where is None and (hits := direct.search(topic.query, 0)) and hits[2] is not None:
                return at_most(hits[2], up_to)
            return self._structured(topic).count(self._filter, up_to)
        direct = self._direct if topic.weights is None and self.searched is self.index else None
        numbers = None if direct is None else direct.terms(topic.text)
        numbers = self._bags([topic]).numbers if numbers is None else numbers
        return count_of_terms(self.searched.parts, numbers, self._filter, up_to)

    def best(self, query: str | Topic, k: int = 10, offset: int = 0) -> Ranking:
        return self.search(query, k, offset)

    def search(self, query: str | Topic, k: int = 10, offset: int = 0, **options: Any) -> Ranking:
        if options:
            return super().search(query, k, offset, **options)
        depth = check_page(k, offset)
        if depth > self.k:
            depth = min(depth, UNLIMITED) if self.has_default_depth else self.k
        total: int | Counter | None = None
        hits = self._search_directly(query, depth)
        if hits is not None:
            docs, scores, *counted = hits
            total = counted[0] if counted else None
        else:
            topic, (weighting, passed) = topic_of(query), self._ready
            if topic.query is not None and self.reads_queries:
                docs, scores, total = self._structured(topic).search(depth, passed, self._direct)
            elif self.index.actors is not None:
                return super().best(query, k, offset)
            else:
                docs, scores = search_bags(self.searched, weighting, self._bags([topic]), depth, passed)[1:]
        if offset:
            docs, scores = docs[offset:], scores[offset:]
        if total is None:
            total = partial(self.count, query)
        return Ranking(query, self.index.ids, docs, scores, self.index, partial(self.matches, query), total, offset)

    def one(self, topic: Topic, k: int, /) -> Ranking:
        return self.best(topic, min(k, self.k))

    def candidate_scores(self, run: Run) -> Float32s:
        """Return the scores of the documents of a run; 0 for a document that does not match."""
        docs, weighting, topics = self.index.ordinals_in(run, self._label), self.weighting, list(run.topics.values())
        structured = [self.reads_queries and topic.query is not None for topic in topics]
        plain = [topic for topic, is_structured in zip(topics, structured, strict=True) if not is_structured]
        bags, places, scores = self._bags(plain), itertools.count(), np.zeros(run.rows, dtype=np.float32)
        topic_rows = itertools.starmap(slice, itertools.pairwise(run.bounds.tolist()))
        for topic, is_structured, rows in zip(topics, structured, topic_rows, strict=True):
            if is_structured:
                scores[rows] = self._structured(topic).scores(docs[rows])
            else:
                scores[rows] = scores_of(self.searched, weighting, bags, next(places), docs[rows])
        return scores

    def matrix(self) -> csr_array:
        """Return the weights of all postings as a sparse matrix; `matrix() @ vector(query)` gives the scores.

        Returns:
            float32, documents x terms: a row for each of `index.ids`, a column for each of `index.terms`, or of
            `searched.terms` for a model with terms of its own. It takes 8 bytes a posting, and twice that during
            construction. Filters are not applied.
        """
        from scipy.sparse import csc_array, csr_array, vstack

        weighting, terms, matrices = self.weighting, self._numbered.terms, {}
        for part in self.searched.parts:
            bounds = offsets_of(part.df)
            rows, weights = np.empty(bounds[-1], dtype=np.int32), np.empty(bounds[-1], dtype=np.float32)
            for first, last in chunks(bounds):
                postings = slice(bounds[first], bounds[last])
                rows[postings], weights[postings] = weighted_postings(part, weighting, np.arange(first, last))
            matrix = csc_array((weights, rows, bounds), shape=(len(part), len(part.df))).tocsr()[part.leaf.live]
            columns = find_positions(part.terms, terms)[matrix.indices]
            matrices[part.leaf.first] = csr_array((matrix.data, columns, matrix.indptr), shape=(matrix.shape[0], len(terms)))
        return vstack([matrices[first] for first in sorted(matrices)], "csr") if matrices else csr_array((0, len(terms)))

    @property
    def _numbered(self) -> Searchable:
        """Whose terms have the columns of `matrix`."""
        return self.index if self.reads_queries else self.searched

    def vector(self, query: str | Topic) -> Float64s:
        """Return the weights of a query's terms, a float64 for each column of `matrix`."""
        (counts,), vector = self._counts([topic_of(query)]), np.zeros(len(self._numbered.terms))
        terms = sorted(term for term in counts if self.searched.df_of(term))
        weights = self.weighting.query(np.array([counts[term] for term in terms]))
        vector[[self._numbered.term_number(term) for term in terms]] = weights
        return vector

    def plan(self, query: str | Topic) -> SearchPlan:
        """Return how a query is searched once compiled code is loaded, which this does."""
        load()
        topic, passed, parts, rows = topic_of(query), self._ready[1], self.searched.parts, list[PlanRow]()
        structured = self._structured(topic) if topic.query is not None and self.reads_queries else None
        if structured is None:
            df_of_terms = ((term, self.searched.df_of(term)) for term in sorted(self._counts([topic])[0]))
            rows += [PlanRow("optional", f"'{term}'", df) for term, df in df_of_terms if df]
        else:
            rows += structured.rows()
        if passed is not None:
            rows.append(PlanRow("filter", passed.text, passed.count))
        if self.index.actors is not None and structured is None:
            code = "actors of Ray"
        elif self._search_directly(topic, 10) is not None:
            code = "one compiled call"
        else:
            code = f"compiled loops over {'terms' if structured is None else 'clauses'}"
        rows += [PlanRow("segment", f"{n} of {len(parts)}", len(part)) for n, part in enumerate(parts, 1)]
        return SearchPlan(repr(self), code, tuple(rows))

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """Explain the document's score in the run, term by term."""
        topic = topic_of(query)
        weighting, ordinal = self.weighting, self.index.ordinal(doc_id)
        if (absence := explain_exclusion(self.index, self.where, ordinal)) is not None:
            return absence
        if topic.query is not None and self.reads_queries:
            return self._structured(topic).explain(ordinal, repr(self))
        counts = self._counts([topic])
        bag, parts, notes = bags_of(self.searched.parts, weighting, counts), list[Explanation](), notes_of(topic)
        part, row, doc = located_in(self.searched.parts, ordinal)
        for term, weight in zip(bag.numbers[row].tolist(), bag.weights.tolist(), strict=True):
            posting = posting_of(Postings.of(part, weighting, np.array([term])), doc) if term >= 0 else None
            if posting is not None:
                posting_part, name = weighting.explain(Statistics.of(part), posting), part.terms[term]
                query_part = Explanation(weight, self._query_label(counts[0][name]))
                value = weight * float(np.float32(posting_part.value))
                parts.append(Explanation(value, f"'{name}'{notes.get(name, '')}", (posting_part, query_part)))
        total = float(np.float32(sum(part.value for part in parts)))
        label = f"{self!r}: sum over terms" if parts else "no term of the topic is in the document"
        return Explanation(total, label, tuple(parts))

    def _query_label(self, count: float) -> str:
        return f"query part: qtf={count:g}"

    def _counts(self, topics: Sequence[Topic]) -> list[dict[str, float]]:
        """Return the term counts, or weights, of each topic."""
        counts = iter(WORD_CACHES.of(self.index.analyzer).counts([topic.text for topic in topics if topic.weights is None]))
        return [next(counts) if topic.weights is None else checked_weights(topic, topic.weights) for topic in topics]


def plan_of(stage: AnyStage, query: str | Topic) -> SearchPlan:
    """Return how the last retriever of a stage searches for a query; see `Lexical.plan`.

    Raises:
        PipelineError: It is no lexical retriever.
    """
    retriever, topic = stage, topic_of(query)
    if isinstance(stage, Pipeline):
        stage.require(Topics, Run, "a plan")
        retriever, topic = stage.stages[len(stage.before_retriever)], stage.rewritten(topic)
    if not isinstance(retriever, Lexical):
        raise PipelineError(f"{retriever!r} has no plan; lexical retrievers such as bm25() have one")
    return retriever.plan(topic)


class Words:
    """Cache of analysed words and their terms; thread-safe.

    Args:
        analyzer: Makes the terms.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer, self._plain = analyzer, analyzer.plain_words
        self._terms: dict[str, list[str]] = {}

    def counts(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Return the counts of the terms of each text."""
        cache, plain_words = self._terms, [self._plain(text) for text in texts]
        try:
            if None not in plain_words:
                return [_count(map(cache.__getitem__, words or ())) for words in plain_words]
        except KeyError:
            pass  # a word is new
        return self._analyze(texts, plain_words)

    def _analyze(self, texts: Sequence[str], plain_words: Sequence[list[str] | None]) -> list[dict[str, float]]:
        """Return the same as `counts`; new words, and texts that are not plain, are analysed."""
        cache = self._terms if len(self._terms) <= MAX_CACHED_WORDS else {}
        new: list[str] = list({word: None for words in plain_words for word in words or () if word not in cache})
        other_texts: list[str] = [text for text, words in zip(texts, plain_words, strict=True) if words is None]
        terms = iter(self._analyzer.many([*new, *other_texts]))
        self._terms = cache
        cache.update((word, next(terms)) for word in new)
        return [_count([next(terms)] if words is None else [cache[word] for word in words]) for words in plain_words]


WORD_CACHES: LazyAttribute[Analyzer, Words] = LazyAttribute("words", lambda analyzer: Words(weak_proxy(analyzer)))


def _count(words: Iterable[list[str]]) -> dict[str, float]:
    """Count each term in lists of terms."""
    bag: dict[str, float] = {}
    for terms in words:
        for term in terms:
            bag[term] = bag.get(term, 0.0) + 1.0
    return bag


def checked_weights(topic: Topic, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of a topic's terms that are not 0.

    Raises:
        InputError: A weight is not a number, or too great.
    """
    bag: dict[str, float] = {}
    for term, weight in weights.items():
        if not isinstance(weight, Real) or not math.isfinite(weight):
            raise InputError(f"topic '{topic.id}', term '{term}': the weight {weight!r} is not a finite number")
        if not abs(weight) <= MAX_TERM_WEIGHT:
            raise InputError(f"topic '{topic.id}', term '{term}': the weight {weight!r} is beyond {MAX_TERM_WEIGHT:g}")
        if weight != 0:
            bag[term] = float(weight)
    return bag

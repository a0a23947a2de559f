"""Search by structured queries: the matching documents, and the sums of the clauses that they match.

A score is the float64 sum over the clauses of query weight times float32 weight, rounded to float32. The order of the sum is
fixed: first the terms of the index in ascending order, as for a bag of words, then the other clauses in the order of the query.
Equal clauses count as one clause with the sum of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import accumulate
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.query import AnyOf, Clause, Condition, Group, Leaf, Phrase, Term, Window
from ..core.ranking import order_keys
from ..core.stage import at_most
from ..core.values import Explanation, Topic
from ..index.columns import Filter, filter_of
from ..storage.arrays import fixed
from ..storage.compiled import affordable, is_loaded
from .conjunctions import meet, search_all
from .impacts import count_of_any, decoded_lists, documents_of, documents_of_any, impacts_of, weighted_postings
from .kernel import search_any
from .plans import Plan, PlanRow, is_union
from .proximity import meeting
from .pseudo_terms import (
    ClauseImpacts,
    Counts,
    clause_text,
    counts_of,
    postings_of,
    search_clause,
    spans_of,
    state_of,
    weights_of,
)
from .searching import (
    CALL_STEPS,
    NO_WORDS,
    POSTINGS_PER_STEP,
    SUMS_PER_STEP,
    Bags,
    depth_of,
    scores_of,
    search_clauses,
    search_kernel,
    search_matches,
    search_topic,
)
from .weighting import Postings, Statistics, Weighting, posting_of

if TYPE_CHECKING:
    from ..index.postings import Searchable

MAX_DEPTH = 100  # of nested groups
MAX_TERM_WEIGHT = 1e30  # keeps scores within float32
MAX_SPANS = 10  # spans listed in an explanation
ALLOW_ALL = fixed(np.zeros(0, dtype=np.bool_))  # a mask that lets all documents pass
Mask = NDArray[np.bool_]
List: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]  # documents and weights of a clause
Collected: TypeAlias = "dict[Hashable, tuple[Leaf, tuple[Group, ...], float]]"  # clause, guards, and sum of weights, by key


class Part(NamedTuple):
    """A clause that scores.

    Args:
        clause: The clause, with weight 1.
        weight: Sum of the weights of its occurrences.
        guards: Groups that a document must also match to get this score.
        number: Number of a term of the index; -1 for other clauses.
    """

    clause: Leaf
    weight: float
    guards: tuple[Group, ...]
    number: int


class SearchResult(NamedTuple):
    """The best documents for a query.

    Args:
        docs: int32; ordinals of the documents, best first.
        scores: float32; scores of the documents.
        total: Number of all matching documents; None if the search did not visit all of them.
    """

    docs: NDArray[np.int32]
    scores: NDArray[np.float32]
    total: int | None = None


class StructuredQuery:
    """The structured query of a topic over an index.

    Args:
        index: The index, or some of its fields.
        topic: The topic.

    Raises:
        InputError: A clause or a weight is invalid, or groups are nested too deeply.
    """

    def __init__(self, index: Searchable, topic: Topic) -> None:
        assert topic.query is not None
        self._index, self.query = index, topic.query
        collected: Collected = {}
        try:
            _collect(topic.query, 1.0, (), collected, 0)
        except _QueryError as problem:
            raise InputError(f"topic '{topic.id}': {problem}") from None
        terms: list[Part] = []
        other_parts: list[Part] = []
        for clause, guards, weight in collected.values():
            number = self.number(clause)
            if guards or number is None:
                other_parts.append(Part(clause, weight, guards, -1 if number is None else number))
            elif number >= 0:
                terms.append(Part(clause, weight, (), number))
        if len(terms) > 1:
            terms.sort(key=lambda part: part.number)
        self.parts = [*terms, *other_parts] if other_parts else terms
        self._are_terms = not other_parts or min(part.number for part in other_parts) >= 0
        self._has_unknown = len(self.parts) < len(collected)  # whether it has terms that no document has

    def number(self, clause: Leaf) -> int | None:
        """Return the number of a term of the index, -1 for a term that no document has; None for other clauses."""
        if type(clause) is not Term or clause.field:
            return None
        number = self._index.term_number(clause.term)
        return number if number >= 0 and self._index.df[number] else -1

    @cached_property
    def matching_parts(self) -> list[Part]:
        """The parts that at least one document matches."""
        if self._are_terms:
            return self.parts
        return [part for part, counts in zip(self.parts, self._counts, strict=True) if counts is None or counts.df]

    @cached_property
    def _counts(self) -> list[Counts | None]:
        """Counts of the `parts`; None for terms of the index."""
        return [None if part.number >= 0 else counts_of(self._index, part.clause) for part in self.parts]

    @cached_property
    def is_bag(self) -> bool:
        """Whether the query is a bag of terms: a document matches if it has at least one of them."""
        return self._are_terms and is_union(self.query)

    def weights(self, weighting: Weighting) -> NDArray[np.float64]:
        """Return the query weights of the `matching_parts`."""
        return weighting.query(np.array([part.weight for part in self.matching_parts], dtype=np.float64))

    def matches(self, where: Filter | None) -> NDArray[np.int32]:
        """Return the ordinals of all matching documents, ascending."""
        if leaves := self._required():
            docs = meeting([self.docs(clause) for clause in leaves])[0]
            passed = self._filter_mask(docs, where)
            return docs if passed is None else docs[passed]
        if self.is_bag:
            docs = documents_of_any(self._index, np.array([part.number for part in self.parts], dtype=np.int64))
            return docs if where is None else docs[where.mask[docs]]
        mask = self.mask(self.query)
        return np.flatnonzero(mask if where is None else mask & where.mask).astype(np.int32)

    def count(self, where: Filter | None, up_to: int | None = None) -> int:
        """Return the number of all matching documents; see `Stage.count`."""
        if self.is_bag:
            terms = np.array([part.number for part in self.parts], dtype=np.int64)
            return count_of_any(self._index, terms, None if where is None else where.mask, up_to)
        return at_most(self._count(where), up_to)

    def _count(self, where: Filter | None) -> int:
        """Return the number of all matching documents of a query that is not a bag of terms."""
        if where is None and self._is_conjunction and is_loaded():
            if self._has_unknown:
                return 0
            if self._are_terms:
                return len(meet(*decoded_lists(self._index, np.array([part.number for part in self.parts])))[0])
            if len(self.parts) == 1:
                return counts_of(self._index, self.parts[0].clause).df
        return len(self.matches(where))

    def search(self, weighting: Weighting, k: int, where: Filter | None) -> SearchResult:
        """Return the best `k` documents and their scores."""
        if is_loaded() and self._is_conjunction:
            if where is None and len(self.parts) == 1 and self.parts[0].number < 0:
                (part,) = self.parts
                result = search_clause(self._index, weighting, part.clause, part.weight, k)
                if result is not None:
                    return SearchResult(*result)
            if self._has_unknown or len(self.matching_parts) < len(self.parts):
                return self._no_result()
            return self._search_all(range(len(self.matching_parts)), (), where, weighting, k)
        if self.is_bag:
            return SearchResult(*search_topic(self._index, weighting, self._bag(weighting), k, where))
        if (is_loaded() or not affordable(self._steps)) and self._plan is not None:
            return self._search_plan(self._plan, weighting, k, where)
        return self._best_of(*self._sum_clauses(weighting, where), k)

    @cached_property
    def _plan(self) -> Plan | None:
        return None if any(part.guards for part in self.parts) else Plan.of(self.query)

    @property
    def is_compiled(self) -> bool:
        """Whether compiled loops search for the query once they are loaded."""
        return self._is_conjunction or self.is_bag or self._plan is not None

    def rows(self) -> Iterator[PlanRow]:
        """Yield the clauses with the number of documents that match each."""
        query = self.query
        for kind, clauses in (("required", query.must), ("optional", query.should), ("excluded", query.must_not)):
            for clause in clauses:
                yield PlanRow(kind, _description(clause), int(np.count_nonzero(self.mask(clause))))

    def scores(self, weighting: Weighting, docs: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Return the scores of some documents; 0 for a document that does not match."""
        if self.is_bag:
            return scores_of(self._index, weighting, self._bag(weighting), docs)
        mask, scores = np.zeros(len(self._index), dtype=np.bool_), np.zeros(len(self._index), dtype=np.float32)
        mask[docs] = True
        best = self.search(weighting, max(1, len(docs)), Filter("candidates", mask))
        scores[best.docs] = best.scores
        return np.asarray(scores[docs])

    def _bag(self, weighting: Weighting) -> Bags:
        """Return the terms and query weights of a bag of terms, as one topic."""
        terms = np.array([part.number for part in self.matching_parts], dtype=np.int32)
        return np.array((0, len(terms)), dtype=np.int64), terms, self.weights(weighting)

    def _no_result(self) -> SearchResult:
        return SearchResult(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)

    def _best_of(self, matching: NDArray[np.int32], sums: NDArray[np.float64], k: int) -> SearchResult:
        """Return the best of the matching documents by the sums of their clauses."""
        scores = sums.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
        keys = order_keys(scores, self._index.ids.rank[matching])
        best = keys.argsort()[::-1][:k]
        return SearchResult(matching[best], scores[best], len(matching))

    @cached_property
    def _is_conjunction(self) -> bool:
        """Whether the query is a conjunction of clauses that score: a document matches if it has all of them."""
        query = self.query
        if len(query.should) != (not query.must) or query.must_not:
            return False
        return {Group, Condition}.isdisjoint(map(type, query.must or query.should))

    def _search_all(
        self, required: Sequence[int], excluded: Sequence[Leaf], allowed: Filter | None, weighting: Weighting, k: int
    ) -> SearchResult:
        """Search for the documents that have all of some clauses.

        Args:
            required: Indices of these clauses in `matching_parts`; the other parts may score.
            excluded: Clauses that the documents must not have.
            allowed: The documents that may be returned; None: all.
            weighting: The model.
            k: Greatest number of documents.
        """
        index, numbers, clause_lists, excluded_numbers = self._index, list[int](), list[List](), list[int]()
        for part in self.matching_parts:
            numbers.append(part.number if part.number >= 0 else ~len(clause_lists))
            if part.number < 0:
                clause_lists.append(self._list(weighting, part))
        for clause in excluded:
            number = self.number(clause)
            if number is None:
                docs = counts_of(index, clause).docs
                excluded_numbers.append(~len(clause_lists))
                clause_lists.append((docs, np.zeros(len(docs), dtype=np.float32)))
            elif number >= 0:
                excluded_numbers.append(number)
        part_numbers, other_numbers = np.array(numbers), np.array(excluded_numbers, dtype=np.int64)
        term_lists = other = _concatenate(clause_lists) if clause_lists else ()
        terms = np.concatenate([part_numbers, other_numbers])
        if len(clause_lists) < len(terms):
            terms = terms[terms >= 0]
            term_lists = impacts_of(index, weighting, terms).unpacked(terms)
        lists = np.array(required), other_numbers, term_lists, other or term_lists
        mask = ALLOW_ALL if allowed is None else fixed(allowed.mask)
        arguments = part_numbers, self.weights(weighting), *lists, mask

        def max_matches() -> int:
            numbered = [numbers[i] for i in required]
            return min(len(clause_lists[~number][0]) if number < 0 else int(index.df[number]) for number in numbered)

        return SearchResult(*search_matches(search_all, arguments, index, k, max_matches))

    @cached_property
    def _steps(self) -> int:
        """Steps of Python that take as long as numpy takes to sum all clauses."""
        terms = [part.number for part in self.matching_parts if part.number >= 0]
        postings = int(self._index.df[terms].sum(dtype=np.int64))
        return postings // POSTINGS_PER_STEP + len(self._index) // SUMS_PER_STEP + CALL_STEPS

    def _search_plan(self, plan: Plan, weighting: Weighting, k: int, where: Filter | None) -> SearchResult:
        """Search a plan by a compiled kernel."""
        index, index_of = self._index, {part.clause: i for i, part in enumerate(self.matching_parts)}
        required = list({_unweighted(clause): None for clause in plan.required})
        if not index_of or any(clause not in index_of for clause in required):
            return self._no_result()
        allowed, excluded = self._allowed(plan, where), [_unweighted(clause) for clause in plan.excluded]
        excluded_numbers = [self.number(clause) for clause in excluded]
        if self._are_terms and None not in excluded_numbers:
            numbers = np.array([number for number in excluded_numbers if number != -1], dtype=np.int64)
            words = NO_WORDS if allowed is None else allowed.words
            bag = self._bag(weighting)
            required_terms = bag[1][[index_of[clause] for clause in required]].astype(np.int64)
            return SearchResult(*search_clauses(index, weighting, bag, required_terms, numbers, words, k))
        if required:
            return self._search_all([index_of[clause] for clause in required], excluded, allowed, weighting, k)
        terms = [part.number for part in self.matching_parts if part.number >= 0]
        other_clauses = [part.clause for part in self.matching_parts if part.number < 0]
        impacts = impacts_of(index, weighting, np.array(terms, dtype=np.int32))
        lists, weights = ClauseImpacts.of(index, weighting).lists(other_clauses), self.weights(weighting)
        if excluded:
            mask = np.ones(len(index), dtype=np.bool_) if allowed is None else allowed.mask.copy()
            for clause in excluded:
                mask[self.docs(clause)] = False
            allowed = Filter("", mask)
        numbers = np.array(terms, dtype=np.int32)
        term_bag = numbers, weights[: len(terms)], impacts.idfs(numbers), impacts.postings, impacts.limits
        other = lists.numbers, weights[len(terms) :], np.ones(len(other_clauses)), lists.postings, lists.limits
        depth = depth_of(min(k, len(index))) if allowed is None else -1
        words = NO_WORDS if allowed is None else allowed.words
        docs, scores, _ = search_kernel(search_any, (term_bag, other, words, depth), index, k)
        return SearchResult(docs, scores)

    def _allowed(self, plan: Plan, where: Filter | None) -> Filter | None:
        """Return the documents that may be returned; None for all."""
        if not (plan.within or plan.without):
            return where
        masks = [] if where is None else [where.mask]
        masks += [self.mask(clause) for clause in plan.within]
        masks += [~self.mask(clause) for clause in plan.without]
        return Filter("", reduce(np.logical_and, masks))

    def docs(self, clause: Leaf) -> NDArray[np.int32]:
        """Return the ordinals of the documents that match a clause, ascending."""
        number = self.number(clause)
        if number is None:
            return counts_of(self._index, _unweighted(clause)).docs
        return documents_of(self._index, number) if number >= 0 else np.zeros(0, np.int32)

    def _required(self) -> list[Leaf]:
        """Return leaves that every matching document has."""
        alone = self.query.should if len(self.query.should) == 1 else ()
        return [clause for clause in self.query.must or alone if not isinstance(clause, (Condition, Group))]

    def _filter_mask(self, docs: NDArray[np.int32], where: Filter | None) -> Mask | None:
        """Return which of the documents that have all `_required` leaves match the query and pass the filter; None for all."""
        passed = None if where is None else where.mask[docs]
        for clause in self.query.must:
            if isinstance(clause, (Condition, Group)):
                inside = self.mask(clause)[docs]
                passed = inside if passed is None else passed & inside
        for clause in self.query.must_not:
            if passed is None:
                passed = np.ones(len(docs), dtype=np.bool_)
            if isinstance(clause, (Condition, Group)):
                passed &= ~self.mask(clause)[docs]
            else:
                passed[meeting([docs, self.docs(clause)])[1][0]] = False
        return passed

    def _sum_clauses(self, weighting: Weighting, where: Filter | None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the matching documents, ascending, and the sum of the clauses of each."""
        lists, weights = self._lists(weighting), self.weights(weighting)
        index_of = {part.clause: i for i, part in enumerate(self.matching_parts) if not part.guards}
        if not (leaves := self._required()):
            return self._sum_clauses_of_all(lists, weights, where)
        required = list(dict.fromkeys(index_of.get(_unweighted(clause), -1) for clause in leaves))
        if -1 in required:  # a clause that no document matches
            return np.zeros(0, np.int32), np.zeros(0, np.float64)
        docs, rows_by_list = meeting([lists[i][0] for i in required])
        rows_of = dict(zip(required, rows_by_list, strict=True))
        if (passed := self._filter_mask(docs, where)) is not None:
            docs, rows_of = docs[passed], {i: rows[passed] for i, rows in rows_of.items()}
        sums = np.zeros(len(docs), dtype=np.float64)
        for i, (part, weight) in enumerate(zip(self.matching_parts, weights, strict=True)):
            if i in rows_of:
                sums += weight * lists[i][1][rows_of[i]]
                continue
            _, (inside, of_list) = meeting([docs, lists[i][0]])
            for guard in part.guards:
                met = self.mask(guard)[docs[inside]]
                inside, of_list = inside[met], of_list[met]
            sums[inside] += weight * lists[i][1][of_list]
        return docs, sums

    def _sum_clauses_of_all(
        self, lists: list[List], weights: NDArray[np.float64], where: Filter | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the same as `_sum_clauses`, by an array of sums for all documents of the index."""
        matching, sums = self.matches(where), np.zeros(len(self._index), dtype=np.float64)
        for part, weight, (docs, doc_weights) in zip(self.matching_parts, weights, lists, strict=True):
            for guard in part.guards:
                inside = self.mask(guard)[docs]
                docs, doc_weights = docs[inside], doc_weights[inside]
            sums[docs] += weight * doc_weights
        return matching, sums[matching]

    def _lists(self, weighting: Weighting) -> list[List]:
        """Return the documents and weights of each of the `matching_parts`."""
        index, terms = self._index, np.array([part.number for part in self.matching_parts if part.number >= 0], dtype=np.int32)
        impacts = impacts_of(index, weighting, terms) if is_loaded() and len(terms) else None
        lists: list[List] = []
        for part in self.matching_parts:
            if part.number < 0:
                lists.append(self._list(weighting, part))
            elif impacts is None:
                lists.append(weighted_postings(index, weighting, np.array([part.number])))
            else:
                bounds, docs, doc_weights = impacts.unpacked(np.array([part.number]))
                rows = slice(*bounds[part.number : part.number + 2].tolist())
                lists.append((docs[rows], doc_weights[rows]))
        return lists

    def _list(self, weighting: Weighting, part: Part) -> List:
        """Return the documents and weights of a clause that is not a term of the index."""
        counts = self._counts[self.parts.index(part)]
        assert counts is not None
        return counts.docs, weights_of(self._index, weighting, part.clause, counts)

    def mask(self, clause: Clause) -> Mask:
        """Return whether each document matches a clause.

        Raises:
            ParameterError: A condition does not fit the columns, or the index lacks positions or fields for a clause.
        """
        index = self._index
        if isinstance(clause, Condition):
            passed = filter_of(state_of(index), clause.where)
            assert passed is not None
            return passed.mask
        mask = np.zeros(len(index), dtype=np.bool_)
        if not isinstance(clause, Group):
            mask[self.docs(clause)] = True
            return mask
        if clause.must:
            mask[:] = True
            for member in clause.must:
                mask &= self.mask(member)
        else:
            for member in clause.should:
                if isinstance(member, (Condition, Group)):
                    mask |= self.mask(member)
                else:
                    mask[self.docs(member)] = True
        for member in clause.must_not:
            mask &= ~self.mask(member)
        return mask

    def explain(self, weighting: Weighting, doc: int, title: str) -> Explanation:
        """Explain the score of a document, clause by clause.

        Args:
            weighting: The model.
            doc: Ordinal of the document.
            title: Label of the explanation.
        """
        if not self.mask(self.query)[doc]:
            return Explanation(0.0, f"the document does not match: {self._mismatch(self.query, doc)}")
        parts = []
        for part, weight in zip(self.matching_parts, self.weights(weighting).tolist(), strict=True):
            fails_guard = any(not self.mask(guard)[doc] for guard in part.guards)
            explained = None if fails_guard else self._explain_part(weighting, part, doc)
            if explained is not None:
                value = weight * float(np.float32(explained.value))
                query_part = Explanation(weight, f"query part: weight={part.weight:g}")
                label = clause_text(part.clause) + self._span_text(part.clause, doc)
                parts.append(Explanation(value, label, (explained, query_part)))
        return Explanation(float(np.float32(sum(part.value for part in parts))), f"{title}: sum over clauses", tuple(parts))

    def _span_text(self, clause: Leaf, doc: int) -> str:
        """Describe the matches of a phrase or window in a document: fields, and positions counted from their start."""
        if not isinstance(clause, (Phrase, Window)):
            return ""
        state = state_of(self._index)
        starts, ranges = state.positions.field_starts[doc, :-1], []
        for first, last in spans_of(self._index, clause, doc).tolist():
            field = int(np.searchsorted(starts, first, side="right")) - 1
            name = f"{state.fields[field]} " if len(starts) > 1 else ""
            ranges.append(f"{name}{first - starts[field]}-{last - starts[field]}")
        more = f" and {len(ranges) - MAX_SPANS} more" if len(ranges) > MAX_SPANS else ""
        return f" at {', '.join(ranges[:MAX_SPANS])}{more}"

    def _explain_part(self, weighting: Weighting, part: Part, doc: int) -> Explanation | None:
        """Explain the weight of a clause in a document; None where the document does not match it."""
        index = self._index
        statistics: Statistics
        if part.number >= 0:
            postings = Postings.of(index, weighting, np.array([part.number]))
            statistics = Statistics.of(index)
        else:
            statistics, weighting, postings = postings_of(index, weighting, part.clause, counts_of(index, part.clause))
        posting = posting_of(postings, doc)
        return None if posting is None else weighting.explain(statistics, posting)

    def _mismatch(self, group: Group, doc: int) -> str:
        """Describe why a document does not match a group."""
        for clause in group.must:
            if not self.mask(clause)[doc]:
                inner = isinstance(clause, Group) and clause.must
                return self._mismatch(clause, doc) if inner else f"it lacks {_description(clause)}"  # type: ignore[arg-type]
        for clause in group.must_not:
            if self.mask(clause)[doc]:
                return f"it has {_description(clause)}, which it must not"
        return "it has none of the clauses of which one should match"


class _QueryError(Exception):
    """A problem of a query; the message becomes part of an InputError."""


def _collect(group: Group, factor: float, guards: tuple[Group, ...], into: Collected, depth: int) -> None:
    """Add the weights of the clauses that score in a group, at any depth, to `into`.

    A document that matches a group also matches the groups in its `must`, and a document that matches a clause of a group of
    `should` clauses only also matches that group. Other groups become guards of the scores of their clauses.
    """
    if depth > MAX_DEPTH:
        raise _QueryError(f"groups of its query are nested more than {MAX_DEPTH} deep")
    factor *= _weight(group)
    for clauses, is_must in ((group.must, True), (group.should, False)):
        for clause in clauses:
            if isinstance(clause, Group):
                implied = is_must or not (clause.must or clause.must_not)
                _collect(clause, factor, guards if implied else (*guards, clause), into, depth + 1)
            elif not isinstance(clause, Condition):
                plain = type(clause) is Term and not (clause.field or guards)
                weight = factor * _weight(clause)
                alone = _unweighted(clause)
                key: Hashable = clause.term if plain else (alone, guards)  # type: ignore[union-attr]
                if key in into:
                    weight += into[key][2]
                if not abs(weight) <= MAX_TERM_WEIGHT:
                    raise _QueryError(f"the weight of {clause_text(clause)} in its query is beyond {MAX_TERM_WEIGHT:g}")
                into[key] = alone, guards, weight
    for clause in group.must_not:  # which do not score, and are only checked
        if isinstance(clause, Group):
            _collect(clause, 1.0, (), {}, depth + 1)
        elif not isinstance(clause, Condition):
            _weight(clause)


def _concatenate(lists: Sequence[List]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the bounds, documents and weights of several lists end to end."""
    docs, weights = lists[0] if len(lists) == 1 else map(np.concatenate, zip(*lists, strict=True))
    return np.array([0, *accumulate([len(docs) for docs, _ in lists])]), fixed(docs), fixed(weights)


def _weight(clause: Leaf | Group) -> float:
    """Return the weight of a clause, checked; raises _QueryError."""
    if (type(clause) is Term or type(clause) is Group) and type(clause.weight) is float and math.isfinite(clause.weight):
        return clause.weight
    if not isinstance(clause, (Term, AnyOf, Phrase, Window, Group)):
        raise _QueryError(f"{clause!r} is no clause of a query")
    if not (type(clause.weight) is float or isinstance(clause.weight, Real)) or not math.isfinite(clause.weight):
        raise _QueryError(f"the weight {clause.weight!r} in its query is not a finite number")
    return float(clause.weight)


def _unweighted(clause: Leaf) -> Leaf:
    return clause if clause.weight == 1.0 else replace(clause, weight=1.0)


def _description(clause: Clause) -> str:
    if isinstance(clause, Condition):
        return f"what holds where {clause.where}"
    if isinstance(clause, Group):
        clauses: Sequence[Any] = clause.must or clause.should
        without = f" but none of {', '.join(map(_description, clause.must_not))}" if clause.must_not else ""
        return "all of " * bool(clause.must) + "one of " * (not clause.must) + ", ".join(map(_description, clauses)) + without
    return clause_text(clause)

"""Search by structured queries: which documents match, and the sum of the clauses that they match.

A score is the float64 sum over the clauses of query weight times float32 weight, in a fixed order, rounded to float32: first
the terms of the index in ascending order, as for a bag of words, then other clauses as they come. Equal clauses are one
clause with the sum of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
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
from .plans import Plan, is_union
from .proximity import meeting
from .pseudo_terms import ClauseImpacts, Counts, counts_of, postings_of, search_clause, shown, spans_of, weights_of, whole_of
from .searching import CALLS, LOOKS, QUICK, depth_of, scores_of, search_kernel, search_matches, search_topic
from .weighting import Postings, Statistics, Weighting

if TYPE_CHECKING:
    from ..index.postings import Searchable

DEEPEST = 100  # greatest nesting of groups
MAX_TERM_WEIGHT = 1e30  # keeps scores within float32
SPANS = 10  # greatest number of places that an explanation lists
ALL = fixed(np.zeros(0, dtype=np.bool_))  # a mask that lets all documents pass
NONE = np.zeros(0, dtype=np.int64)
Mask = NDArray[np.bool_]
List: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]  # documents and weights of a clause
Collected: TypeAlias = "dict[Hashable, tuple[Leaf, tuple[Group, ...], float]]"  # clauses, guards, and sums of weights


class Part(NamedTuple):
    """A clause that scores.

    Args:
        clause: The clause, with weight 1.
        weight: Sum of the weights of its occurrences.
        guards: Groups that a document must match, too, for this score.
        number: Number of a term of the index, -1 of other clauses.
    """

    clause: Leaf
    weight: float
    guards: tuple[Group, ...]
    number: int


class Found(NamedTuple):
    """The best documents of a query.

    Args:
        docs: Their ordinals, best first, int32.
        scores: Their scores, float32.
        total: Number of all documents that match; None where the search did not visit them all.
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
        others: list[Part] = []
        for clause, guards, weight in collected.values():
            number = self.number(clause)
            if guards or number is None:
                others.append(Part(clause, weight, guards, -1 if number is None else number))
            elif number >= 0:
                terms.append(Part(clause, weight, (), number))
        if len(terms) > 1:
            terms.sort(key=_number_of)
        self.parts = [*terms, *others] if others else terms
        self._are_terms = not others or all(part.number >= 0 for part in others)
        self._has_unknown = len(self.parts) < len(collected)  # terms that no document has

    def number(self, clause: Leaf) -> int | None:
        """Number of a term of the index, -1 for one that no document has; None for other clauses."""
        if type(clause) is not Term or clause.field:
            return None
        number = self._index.term_number(clause.term)
        return number if number >= 0 and self._index.df[number] else -1

    @property
    def known(self) -> list[Part]:
        """The parts that any document matches."""
        return self.parts if self._are_terms else self._known

    @cached_property
    def _known(self) -> list[Part]:
        return [part for part, counts in zip(self.parts, self._counts, strict=True) if counts is None or counts.df]

    @cached_property
    def _counts(self) -> list[Counts | None]:
        """Counts of the `parts` that are no terms of the index."""
        return [None if part.number >= 0 else counts_of(self._index, part.clause) for part in self.parts]

    @cached_property
    def is_bag(self) -> bool:
        """Whether it is a bag of terms: a document matches if it has one of them."""
        return self._are_terms and is_union(self.query)

    def weights(self, weighting: Weighting) -> NDArray[np.float64]:
        """Query weights of the `known` parts."""
        return weighting.query(np.array([part.weight for part in self.known], dtype=np.float64))

    def matches(self, where: Filter | None) -> NDArray[np.int32]:
        """Ordinals of all documents that match, ascending."""
        if leaves := self._required():
            docs = meeting([self.docs(clause) for clause in leaves])[0]
            kept = self._kept(docs, where)
            return docs if kept is None else docs[kept]
        if self.is_bag:
            docs = documents_of_any(self._index, np.array([part.number for part in self.parts], dtype=np.int64))
            return docs if where is None else docs[where.mask[docs]]
        mask = self.mask(self.query)
        return np.flatnonzero(mask if where is None else mask & where.mask).astype(np.int32)

    def count(self, where: Filter | None, up_to: int | None = None) -> int:
        """Number of all documents that match, as `Stage.count`."""
        if self.is_bag:
            terms = np.array([part.number for part in self.parts], dtype=np.int64)
            return count_of_any(self._index, terms, None if where is None else where.mask, up_to)
        return at_most(self._counted(where), up_to)

    def _counted(self, where: Filter | None) -> int:
        if where is None and self._is_conjunction and is_loaded():
            if self._has_unknown:
                return 0
            if self._are_terms:
                return len(meet(*decoded_lists(self._index, np.array([part.number for part in self.parts])))[0])
            if len(self.parts) == 1:
                return counts_of(self._index, self.parts[0].clause).df
        return len(self.matches(where))

    def search(self, weighting: Weighting, k: int, where: Filter | None) -> Found:
        """Return the best `k` documents and their scores."""
        if is_loaded() and self._is_conjunction:
            if where is None and len(self.parts) == 1 and self.parts[0].number < 0:
                (part,) = self.parts
                result = search_clause(self._index, weighting, part.clause, part.weight, k)
                if result is not None:
                    return Found(*result)
            if self._has_unknown or len(self.known) < len(self.parts):
                return self._nothing()
            return self._search_all(range(len(self.known)), (), ALL if where is None else fixed(where.mask), weighting, k)
        if self.is_bag:
            terms = np.array([part.number for part in self.known], dtype=np.int32)
            bag = np.array((0, len(terms)), dtype=np.int64), terms, self.weights(weighting)
            return Found(*search_topic(self._index, weighting, bag, k, where))
        if is_loaded() or not affordable(self._steps):
            plan = None if any(part.guards for part in self.parts) else Plan.of(self.query)
            if plan is not None:
                return self._planned(plan, weighting, k, where)
        return self._best(*self._summed(weighting, where), k)

    def scores(self, weighting: Weighting, docs: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Return the scores of some documents; 0 for one that does not match."""
        if self.is_bag:
            terms = np.array([part.number for part in self.known], dtype=np.int32)
            bag = np.array((0, len(terms)), dtype=np.int64), terms, self.weights(weighting)
            return scores_of(self._index, weighting, bag, docs)
        mask, scores = np.zeros(len(self._index), dtype=np.bool_), np.zeros(len(self._index), dtype=np.float32)
        mask[docs] = True
        best = self.search(weighting, max(1, len(docs)), Filter("candidates", mask))
        scores[best.docs] = best.scores
        return np.asarray(scores[docs])

    def _nothing(self) -> Found:
        return Found(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)

    def _best(self, matching: NDArray[np.int32], sums: NDArray[np.float64], k: int) -> Found:
        """The best documents of those that match, by the sums of their clauses."""
        scores = sums.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
        keys = order_keys(scores, self._index.ids.rank[matching])
        best = keys.argsort()[::-1][:k]
        return Found(matching[best], scores[best], len(matching))

    @property
    def _is_conjunction(self) -> bool:
        """Whether a document matches if it has all of some clauses, each of which scores."""
        query = self.query
        if len(query.should) != (not query.must) or query.must_not:
            return False
        return all(type(clause) is Term or not isinstance(clause, (Group, Condition)) for clause in query.must or query.should)

    def _search_all(
        self, required: Sequence[int], excluded: Sequence[Leaf], allowed: Mask, weighting: Weighting, k: int
    ) -> Found:
        """Search for the documents that have all of some clauses.

        Args:
            required: Places of these clauses among those that are `known`, which may score.
            excluded: Clauses that the documents must not have.
            allowed: Whether each document may be returned; none: all.
            weighting: The model.
            k: Greatest number of documents.
        """
        index, of_clauses, outside = self._index, list[List](), list[int]()
        numbers = [part.number for part in self.known]
        if not self._are_terms:
            for place, part in enumerate(self.known):
                if part.number < 0:
                    numbers[place] = ~len(of_clauses)
                    of_clauses.append(self._list(weighting, part))
        for clause in excluded:
            number = self.number(clause)
            if number is None:
                docs = counts_of(index, clause).docs
                outside.append(~len(of_clauses))
                of_clauses.append((docs, np.zeros(len(docs), dtype=np.float32)))
            elif number >= 0:
                outside.append(number)
        of_parts = np.array(numbers)
        term_lists = other = _joined(of_clauses) if of_clauses else ()
        if len(of_clauses) < len(numbers) + len(outside):
            terms = of_parts if not (of_clauses or outside) else np.array([n for n in (*numbers, *outside) if n >= 0])
            term_lists = impacts_of(index, weighting, terms).unpacked(terms)
        lists = np.array(required), np.array(outside) if outside else NONE, term_lists, other or term_lists
        arguments = of_parts, self.weights(weighting), *lists, allowed

        def most() -> int:
            numbered = [numbers[place] for place in required]
            return min(len(of_clauses[~number][0]) if number < 0 else int(index.df[number]) for number in numbered)

        return Found(*search_matches(search_all, arguments, index, k, most))

    @cached_property
    def _steps(self) -> int:
        """Steps of Python in whose time numpy adds up all clauses."""
        terms = [part.number for part in self.known if part.number >= 0]
        return int(self._index.df[terms].sum(dtype=np.int64)) // QUICK + len(self._index) // LOOKS + CALLS

    def _planned(self, plan: Plan, weighting: Weighting, k: int, where: Filter | None) -> Found:
        """Search by a compiled kernel."""
        index, places = self._index, {part.clause: place for place, part in enumerate(self.known)}
        required = list({_unweighted(clause): None for clause in plan.required})
        if not places or any(clause not in places for clause in required):
            return self._nothing()
        allowed, excluded = self._allowed(plan, where), [_unweighted(clause) for clause in plan.excluded]
        if required:
            return self._search_all([places[clause] for clause in required], excluded, allowed, weighting, k)
        terms = [part.number for part in self.known if part.number >= 0]
        others = [part.clause for part in self.known if part.number < 0]
        impacts = impacts_of(index, weighting, np.array(terms, dtype=np.int32))
        lists, weights = ClauseImpacts.of(index, weighting).lists(others), self.weights(weighting)
        if excluded:
            allowed = allowed.copy() if len(allowed) else np.ones(len(index), dtype=np.bool_)
            for clause in excluded:
                allowed[self.docs(clause)] = False
        term_bag = np.array(terms, dtype=np.int32), weights[: len(terms)], impacts.postings, impacts.limits
        numbers = np.array(lists.numbers, dtype=np.int32)
        other = numbers, weights[len(terms) :], lists.postings, lists.limits
        depth = -1 if len(allowed) else depth_of(min(k, len(index)))
        docs, scores, _ = search_kernel(search_any, (term_bag, other, fixed(allowed), depth), index, k)
        return Found(docs, scores)

    def _allowed(self, plan: Plan, where: Filter | None) -> Mask:
        """Whether each document may be returned; an empty mask where all may."""
        masks = [] if where is None else [where.mask]
        masks += [self.mask(clause) for clause in plan.within]
        masks += [~self.mask(clause) for clause in plan.without]
        return fixed(reduce(np.logical_and, masks)) if masks else ALL

    def docs(self, clause: Leaf) -> NDArray[np.int32]:
        """Ordinals of the documents that match a clause, ascending."""
        number = self.number(clause)
        if number is None:
            return counts_of(self._index, _unweighted(clause)).docs
        return documents_of(self._index, number) if number >= 0 else np.zeros(0, np.int32)

    def _required(self) -> list[Leaf]:
        """The leaves that every document which matches has."""
        alone = self.query.should if len(self.query.should) == 1 else ()
        return [clause for clause in self.query.must or alone if not isinstance(clause, (Condition, Group))]

    def _kept(self, docs: NDArray[np.int32], where: Filter | None) -> Mask | None:
        """Which documents that match the leaves of `must` match the query, too, and pass the filter; None for all."""
        kept = None if where is None else where.mask[docs]
        for clause in self.query.must:
            if isinstance(clause, (Condition, Group)):
                inside = self.mask(clause)[docs]
                kept = inside if kept is None else kept & inside
        for clause in self.query.must_not:
            if kept is None:
                kept = np.ones(len(docs), dtype=np.bool_)
            if isinstance(clause, (Condition, Group)):
                kept &= ~self.mask(clause)[docs]
            else:
                kept[meeting([docs, self.docs(clause)])[1][0]] = False
        return kept

    def _summed(self, weighting: Weighting, where: Filter | None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The documents that match, ascending, and the sum of their clauses."""
        lists, weights = self._lists(weighting), self.weights(weighting)
        places = {part.clause: i for i, part in enumerate(self.known) if not part.guards}
        if not (leaves := self._required()):
            return self._summed_in_all(lists, weights, where)
        required = list(dict.fromkeys(places.get(_unweighted(clause), -1) for clause in leaves))
        if -1 in required:  # a clause that no document matches
            return np.zeros(0, np.int32), np.zeros(0, np.float64)
        docs, of_lists = meeting([lists[i][0] for i in required])
        at = dict(zip(required, of_lists, strict=True))
        if (kept := self._kept(docs, where)) is not None:
            docs, at = docs[kept], {i: rows[kept] for i, rows in at.items()}
        sums = np.zeros(len(docs), dtype=np.float64)
        for i, (part, weight) in enumerate(zip(self.known, weights, strict=True)):
            if i in at:
                sums += weight * lists[i][1][at[i]]
                continue
            _, (inside, of_list) = meeting([docs, lists[i][0]])
            for guard in part.guards:
                met = self.mask(guard)[docs[inside]]
                inside, of_list = inside[met], of_list[met]
            sums[inside] += weight * lists[i][1][of_list]
        return docs, sums

    def _summed_in_all(
        self, lists: list[List], weights: NDArray[np.float64], where: Filter | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """`_summed` by a sum for each document of the index."""
        matching, sums = self.matches(where), np.zeros(len(self._index), dtype=np.float64)
        for part, weight, (docs, of_docs) in zip(self.known, weights, lists, strict=True):
            for guard in part.guards:
                inside = self.mask(guard)[docs]
                docs, of_docs = docs[inside], of_docs[inside]
            sums[docs] += weight * of_docs
        return matching, sums[matching]

    def _lists(self, weighting: Weighting) -> list[List]:
        """Documents and weights of each of the `known` parts."""
        index, terms = self._index, np.array([part.number for part in self.known if part.number >= 0], dtype=np.int32)
        impacts = impacts_of(index, weighting, terms) if is_loaded() and len(terms) else None
        lists: list[List] = []
        for part in self.known:
            if part.number < 0:
                lists.append(self._list(weighting, part))
            elif impacts is None:
                lists.append(weighted_postings(index, weighting, np.array([part.number])))
            else:
                bounds, docs, of_docs = impacts.unpacked(np.array([part.number]))
                rows = slice(*bounds[part.number : part.number + 2].tolist())
                lists.append((docs[rows], of_docs[rows]))
        return lists

    def _list(self, weighting: Weighting, part: Part) -> List:
        """Documents and weights of a clause that is no term of the index."""
        counts = self._counts[self.parts.index(part)]
        assert counts is not None
        return counts.docs, weights_of(self._index, weighting, part.clause, counts)

    def mask(self, clause: Clause) -> Mask:
        """Whether each document matches a clause.

        Raises:
            ParameterError: A condition does not fit the columns, or the index lacks positions or fields that a clause needs.
        """
        index = self._index
        if isinstance(clause, Condition):
            passed = filter_of(whole_of(index), clause.where)
            assert passed is not None
            return passed.mask
        mask = np.zeros(len(index), dtype=np.bool_)
        if not isinstance(clause, Group):
            mask[self.docs(clause)] = True
            return mask
        if clause.must:
            mask[:] = True
            for one in clause.must:
                mask &= self.mask(one)
        else:
            for one in clause.should:
                if isinstance(one, (Condition, Group)):
                    mask |= self.mask(one)
                else:
                    mask[self.docs(one)] = True
        for one in clause.must_not:
            mask &= ~self.mask(one)
        return mask

    def explain(self, weighting: Weighting, doc: int, title: str) -> Explanation:
        """Explain the score of a document, clause by clause.

        Args:
            weighting: The model.
            doc: Ordinal of the document.
            title: Label of the whole.
        """
        if not self.mask(self.query)[doc]:
            return Explanation(0.0, f"the document does not match: {self._absence(self.query, doc)}")
        parts = []
        for part, weight in zip(self.known, self.weights(weighting).tolist(), strict=True):
            explained = None if any(not self.mask(guard)[doc] for guard in part.guards) else self._of_part(weighting, part, doc)
            if explained is not None:
                value = weight * float(np.float32(explained.value))
                of_query = Explanation(weight, f"query part: weight={part.weight:g}")
                parts.append(Explanation(value, shown(part.clause) + self._places(part.clause, doc), (explained, of_query)))
        return Explanation(float(np.float32(sum(part.value for part in parts))), f"{title}: sum over clauses", tuple(parts))

    def _places(self, clause: Leaf, doc: int) -> str:
        """Where a phrase or window stands in a document, as text: fields, and positions counted from their start."""
        if not isinstance(clause, (Phrase, Window)):
            return ""
        whole = whole_of(self._index)
        starts, places = whole.positions.field_starts[doc, :-1], []
        for first, last in spans_of(self._index, clause, doc).tolist():
            field = int(np.searchsorted(starts, first, side="right")) - 1
            name = f"{whole.fields[field]} " if len(starts) > 1 else ""
            places.append(f"{name}{first - starts[field]}-{last - starts[field]}")
        more = f" and {len(places) - SPANS} more" if len(places) > SPANS else ""
        return f" at {', '.join(places[:SPANS])}{more}"

    def _of_part(self, weighting: Weighting, part: Part, doc: int) -> Explanation | None:
        """Explain the weight of a clause in a document; None where the document does not match it."""
        index = self._index
        statistics: Statistics
        if part.number >= 0:
            postings = Postings.of(index, weighting, np.array([part.number]))
            statistics = Statistics.of(index)
        else:
            statistics, weighting, postings = postings_of(index, weighting, part.clause, counts_of(index, part.clause))
        at = int(np.searchsorted(postings.docs, doc))
        if at == len(postings.docs) or postings.docs[at] != doc:
            return None
        return weighting.explain(statistics, postings.at(at))

    def _absence(self, group: Group, doc: int) -> str:
        """Say which clause keeps a document out."""
        for clause in group.must:
            if not self.mask(clause)[doc]:
                inner = isinstance(clause, Group) and clause.must
                return self._absence(clause, doc) if inner else f"it lacks {_described(clause)}"  # type: ignore[arg-type]
        for clause in group.must_not:
            if self.mask(clause)[doc]:
                return f"it has {_described(clause)}, which it must not"
        return "it has none of the clauses of which one should match"


class _QueryError(Exception):
    """Problem of a query, for errors."""


def _collect(group: Group, factor: float, guards: tuple[Group, ...], into: Collected, depth: int) -> None:
    """Add the weights of the clauses that score below a group.

    A document that matches a group matches its must; and a group of should alone is matched by whatever matches a clause of it.
    Other groups guard the scores of their clauses.
    """
    if depth > DEEPEST:
        raise _QueryError(f"groups of its query are nested more than {DEEPEST} deep")
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
                    raise _QueryError(f"the weight of {shown(clause)} in its query is beyond {MAX_TERM_WEIGHT:g}")
                into[key] = alone, guards, weight
    for clause in group.must_not:  # which are checked alone
        if isinstance(clause, Group):
            _collect(clause, 1.0, (), {}, depth + 1)
        elif not isinstance(clause, Condition):
            _weight(clause)


def _number_of(part: Part) -> int:
    return part.number


def _joined(lists: Sequence[List]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Bounds, documents and weights of several lists end to end."""
    docs, weights = lists[0] if len(lists) == 1 else map(np.concatenate, zip(*lists, strict=True))
    return np.array([0, *accumulate([len(docs) for docs, _ in lists])]), fixed(docs), fixed(weights)


def _weight(clause: Leaf | Group) -> float:
    if (type(clause) is Term or type(clause) is Group) and type(clause.weight) is float and math.isfinite(clause.weight):
        return clause.weight
    if not isinstance(clause, (Term, AnyOf, Phrase, Window, Group)):
        raise _QueryError(f"{clause!r} is no clause of a query")
    if not (type(clause.weight) is float or isinstance(clause.weight, Real)) or not math.isfinite(clause.weight):
        raise _QueryError(f"the weight {clause.weight!r} in its query is not a finite number")
    return float(clause.weight)


def _unweighted(clause: Leaf) -> Leaf:
    return clause if clause.weight == 1.0 else replace(clause, weight=1.0)


def _described(clause: Clause) -> str:
    if isinstance(clause, Condition):
        return f"what holds where {clause.where}"
    if isinstance(clause, Group):
        clauses: Sequence[Any] = clause.must or clause.should
        return "all of " * bool(clause.must) + "one of " * (not clause.must) + ", ".join(map(_described, clauses))
    return shown(clause)

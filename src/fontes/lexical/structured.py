"""Search by structured queries: the matching documents, and the sums of the clauses that they match.

A score is the float64 sum over the clauses of query weight times float32 weight, rounded to float32. The order of the sum is
fixed: first the terms of the index in ascending order, as for a bag of words, then the other clauses in the order of the query.
Equal clauses count as one clause with the sum of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from numbers import Real
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from ..core.arrays import Bools, Float32s, Float64s, Int32s, Int64s, Ints, UInt64s
from ..core.errors import InputError
from ..core.query import AnyOf, Clause, Condition, Group, Leaf, Phrase, Term, Window
from ..core.searches import at_most
from ..core.values import Explanation, Topic, notes_of
from ..index.columns import Filter, filter_of
from ..index.packed import NO_WEIGHTS
from ..index.parts import Searchable
from ..storage.arrays import fixed
from ..storage.compiled import affordable, is_loaded, load
from .direct import NO_SCORES, Bags, Direct, Lists
from .impacts import documents_of
from .parts import (
    NO_DOCS,
    NO_WORDS,
    count_of_terms,
    documents_of_terms,
    living_df,
    located_in,
    numbers_in,
    part_filter,
)
from .proximity import meeting
from .pseudo_terms import ClauseLists, all_fields, clause_text, spans_of, state_of
from .searching import CALL_STEPS, POSTINGS_PER_STEP, SUMS_PER_STEP, best_of_sums, search_bags, term_lists
from .weighting import Postings, Statistics, Weighting, posting_of

MAX_DEPTH = 100  # of nested groups
MAX_TERM_WEIGHT = 1e30  # keeps scores within float32
MAX_SPANS = 10  # spans listed in an explanation
Mask = Bools
List: TypeAlias = tuple[Int32s, Float32s]  # documents and weights of a clause
Collected: TypeAlias = "dict[Hashable, tuple[Leaf, tuple[Group, ...], float]]"  # clause, guards, and sum of weights, by key


class Scoring(NamedTuple):
    """A clause that scores, and is not a plain term.

    Args:
        clause: The clause, with weight 1.
        guards: Groups that a document must also match to get this score.
        weight: Sum of the weights of its occurrences.
    """

    clause: Leaf
    guards: tuple[Group, ...]
    weight: float


class SearchResult(NamedTuple):
    """The best documents for a query.

    Args:
        docs: int32; ordinals of the documents, best first.
        scores: float32; scores of the documents.
        total: Number of all matching documents; None if the search did not visit all of them.
    """

    docs: Int32s
    scores: Float32s
    total: int | None = None


class StructuredQuery:
    """The structured query of a topic over an index, under one model.

    Args:
        searched: The index, or some of its fields.
        weighting: The model.
        topic: The topic.

    Raises:
        InputError: A clause or a weight is invalid, or groups are nested too deeply.
    """

    def __init__(self, searched: Searchable, weighting: Weighting, topic: Topic) -> None:
        assert topic.query is not None
        self._searched, self._weighting, self.query = searched, weighting, topic.query
        self._parts = searched.parts
        self._lists_of: dict[Leaf, ClauseLists] = {}
        self._notes = notes_of(topic)
        collected: Collected = {}
        try:
            _collect(topic.query, 1.0, (), collected, 0)
        except _QueryError as problem:
            raise InputError(f"topic '{topic.id}': {problem}") from None
        terms: dict[str, float] = {}
        self._others: list[tuple[Scoring, ClauseLists]] = []  # those that a document has
        for clause, guards, weight in collected.values():
            if is_plain(clause) and not guards:
                terms[clause.term] = weight
            elif (lists := self._lists(clause)).df:
                self._others.append((Scoring(clause, guards, weight), lists))
        names = sorted(terms)
        numbers = numbers_in(self._parts, names)
        df = living_df(self._parts, names, numbers)
        present = np.flatnonzero(df)
        self._terms = {names[row]: terms[names[row]] for row in present.tolist()}
        self._numbers, self._df = np.ascontiguousarray(numbers[:, present]), df[present]

    def _lists(self, clause: Leaf) -> ClauseLists:
        """Return the documents and weights of a clause."""
        if clause not in self._lists_of:
            self._lists_of[clause] = ClauseLists(self._parts, self._weighting, clause)
        return self._lists_of[clause]

    @cached_property
    def is_bag(self) -> bool:
        """Whether the query is a bag of terms: a document matches if it has at least one of them."""
        return is_union(self.query) and all(map(is_plain, _leaves(self.query)))

    @cached_property
    def _plan(self) -> Plan | None:
        """The clauses that a document must have, or must not have; None if masks alone tell what matches."""
        query = self.query
        if len(query.should) == 1 and not query.must and not isinstance(query.should[0], (Group, Condition)):
            query = replace(query, must=query.should, should=())
        return None if any(scoring.guards for scoring, _ in self._others) and not query.must else Plan.of(query)

    @cached_property
    def weights(self) -> Float64s:
        """Query weights of the terms, then of the other clauses that a document has."""
        weights = [*self._terms.values(), *(scoring.weight for scoring, _ in self._others)]
        return self._weighting.query(np.array(weights, dtype=np.float64))

    def matches(self, where: Filter | None) -> Int32s:
        """Return the ordinals of all matching documents, ascending."""
        if self.is_bag:
            return documents_of_terms(self._parts, self._numbers, where)
        ordinals = [part.ordinals(self._docs(number, where)) for number, part in enumerate(self._parts)]
        return ordinals[0] if len(ordinals) == 1 else np.sort(np.concatenate([NO_DOCS, *ordinals]))

    def count(self, where: Filter | None, up_to: int | None = None) -> int:
        """Return the number of all matching documents; see `Stage.count`."""
        if self.is_bag:
            return count_of_terms(self._parts, self._numbers, where, up_to)
        return at_most(sum(len(self._docs(number, where)) for number in range(len(self._parts))), up_to)

    def search(self, k: int, where: Filter | None, direct: Direct | None) -> SearchResult:
        """Return the best `k` documents and their scores, by compiled loops if there are any for the model."""
        if self.is_bag:
            bags = Bags(np.array((0, len(self._terms))), self._numbers, self._df, self.weights)
            return SearchResult(*search_bags(self._searched, self._weighting, bags, k, where)[1:])
        if not k or self._lacks_clause or (self._is_union and not len(self.weights)):
            return SearchResult(NO_DOCS, NO_SCORES, 0 if k else None)
        parts = range(len(self._parts))
        if direct is None and (is_loaded() or not affordable(self._steps)):
            if not is_loaded():
                load()
            direct = Direct.of(self._searched, self._weighting)
        if direct is None:
            docs = [self._docs(number, where) for number in parts]
            return SearchResult(*best_of_sums(self._parts, map(self._sums, parts, docs), k), sum(map(len, docs)))
        if self._plan is None:
            docs, allowed = [self._docs(number, where) for number in parts], [NO_WORDS for _ in parts]
        else:
            docs, allowed = [], [self._allowed(number, where) for number in parts]
        clauses = [self._clause_lists(number) for number in parts]
        return SearchResult(*direct.lists(self._numbers, self._df, self.weights, clauses, self._rows, allowed, docs, k))

    @cached_property
    def _rows(self) -> tuple[Int64s, Int64s]:
        """Which of the terms, and which of the other clauses, a document must have."""
        row_of = {term: row for row, term in enumerate(self._terms)}
        terms = [row_of[clause.term] for clause in self._required if is_plain(clause)]
        clauses = [None if scoring.guards else scoring.clause for scoring, _ in self._others]
        others = [clauses.index(clause) for clause in self._required if not is_plain(clause)]
        return np.array(terms, dtype=np.int64), np.array(others, dtype=np.int64)

    @cached_property
    def _lacks_clause(self) -> bool:
        """Whether no document has a clause that all must have."""
        others = [scoring.clause for scoring, _ in self._others]
        present = [clause.term in self._terms if is_plain(clause) else clause in others for clause in self._required]
        return not all(present)

    def rows(self) -> Iterator[PlanRow]:
        """Yield the clauses with the number of documents that match each."""
        query = self.query
        for kind, clauses in (("required", query.must), ("optional", query.should), ("excluded", query.must_not)):
            for clause in clauses:
                count = sum(int(np.count_nonzero(self.mask(number, clause))) for number in range(len(self._parts)))
                yield PlanRow(kind, _description(clause), count)

    def scores(self, ordinals: Ints) -> Float32s:
        """Return the scores of some documents, given as ordinals; 0 for a document that does not match."""
        scores = np.zeros(len(ordinals), dtype=np.float32)
        for number, part in enumerate(self._parts):
            rows, docs = part.located(ordinals)
            matching = np.isin(docs, self._docs(number, None))
            scores[rows[matching]] = self._sums(number, docs[matching])[1].astype(np.float32) + np.float32(0)
        return scores

    @cached_property
    def _is_union(self) -> bool:
        """Whether a document matches if it has a clause that scores, within and without some documents."""
        return self._plan is not None and not self._plan.required

    @cached_property
    def _steps(self) -> int:
        """Steps of Python that take as long as numpy takes to sum all clauses."""
        postings = int(self._df.sum()) + sum(lists.df for _, lists in self._others)
        return postings // POSTINGS_PER_STEP + len(self._searched) // SUMS_PER_STEP + CALL_STEPS * len(self._parts)

    def _docs(self, number: int, where: Filter | None) -> Int32s:
        """Return the documents of a part that match the query and pass the filter, ascending."""
        if self._plan is None or not self._plan.required:
            mask = self.mask(number, self.query)
            return np.flatnonzero(
                mask if where is None else mask & part_filter(self._parts, where).filters[number].mask
            ).astype(np.int32)
        docs = meeting([self.docs(number, clause) for clause in self._required])[0]
        plan = self._plan
        if where is None and not (plan.within or plan.without or plan.excluded):
            return docs
        passed = np.ones(len(docs), dtype=np.bool_)
        if where is not None:
            passed &= part_filter(self._parts, where).filters[number].mask[docs]
        for clause in plan.within:
            passed &= self.mask(number, clause)[docs]
        for clause in plan.without:
            passed &= ~self.mask(number, clause)[docs]
        for excluded in plan.excluded:
            passed[meeting([docs, self.docs(number, excluded)])[1][0]] = False
        return docs[passed]

    @cached_property
    def _required(self) -> list[Leaf]:
        """Clauses that a document must have, each once and with weight 1."""
        return [] if self._plan is None else list(dict.fromkeys(map(_unweighted, self._plan.required)))

    def _allowed(self, number: int, where: Filter | None) -> UInt64s:
        """Return which documents of a part may have the clauses of the plan, as words; empty for all that live."""
        plan = self._plan
        assert plan is not None
        passed = None if where is None else part_filter(self._parts, where).filters[number]
        if not (plan.within or plan.without or plan.excluded):
            return NO_WORDS if passed is None else passed.words
        dead = self._parts[number].dead
        masks = [self.mask(number, clause) for clause in plan.within] + ([] if passed is None else [passed.mask])
        masks += [] if dead is None else [~dead]
        allowed = np.logical_and.reduce(masks) if masks else np.ones(len(self._parts[number]), dtype=np.bool_)
        for clause in plan.without:
            allowed &= ~self.mask(number, clause)
        for excluded in plan.excluded:
            allowed[self.docs(number, excluded)] = False
        return Filter("", allowed).words

    def _clause_lists(self, number: int) -> Lists:
        """Return the clauses of a part that are not plain terms: bounds, documents, weights."""
        lists = [self._list(number, scoring, lists) for scoring, lists in self._others]
        if not lists:
            return np.zeros(1, np.int64), NO_DOCS, NO_WEIGHTS
        if len(lists) == 1:
            return np.array((0, len(lists[0][0]))), *lists[0]
        docs, weights = map(np.concatenate, zip(*lists, strict=True))
        return np.array([0, *accumulate([len(docs) for docs, _ in lists])]), fixed(docs), fixed(weights)

    def _list(self, number: int, scoring: Scoring, lists: ClauseLists) -> List:
        """Return the documents of a part that match a clause and its guards, and their weights."""
        docs, weights = lists.list(number)
        for guard in scoring.guards:
            inside = self.mask(number, guard)[docs]
            docs, weights = fixed(docs[inside]), fixed(weights[inside])
        return docs, weights

    def _sums(self, number: int, docs: Int32s) -> tuple[Int32s, Float64s]:
        """Return some documents of a part, and the sum of the clauses of each."""
        lists = [*term_lists(self._searched, self._parts[number], self._weighting, self._numbers[number], self._df)]
        lists += (self._list(number, scoring, lists) for scoring, lists in self._others)
        sums = np.zeros(len(self._parts[number]), dtype=np.float64)
        for weight, (of_list, weights) in zip(self.weights, lists, strict=True):
            sums[of_list] += weight * weights
        return docs, sums[docs]

    def docs(self, number: int, clause: Leaf) -> Int32s:
        """Return the living documents of a part that match a clause, ascending."""
        if not is_plain(clause):
            return self._lists(_unweighted(clause)).counts[number].docs
        part = self._parts[number]
        term, dead = part.term_number(clause.term), part.dead
        docs = documents_of(part, term) if term >= 0 else NO_DOCS
        return docs if dead is None else docs[~dead[docs]]

    def mask(self, number: int, clause: Clause) -> Mask:
        """Return whether each document of a part lives and matches a clause.

        Raises:
            ParameterError: A condition does not fit the columns, or the index lacks positions or fields for a clause.
        """
        part = self._parts[number]
        if isinstance(clause, Condition):
            passed = filter_of(state_of(part), clause.where)
            assert passed is not None
            return part_filter(self._parts, passed).filters[number].mask
        mask = np.zeros(len(part), dtype=np.bool_)
        if not isinstance(clause, Group):
            mask[self.docs(number, clause)] = True
            return mask
        if clause.must:
            mask[:] = True
            for member in clause.must:
                mask &= self.mask(number, member)
        else:
            for member in clause.should:
                if isinstance(member, (Condition, Group)):
                    mask |= self.mask(number, member)
                else:
                    mask[self.docs(number, member)] = True
        for member in clause.must_not:
            mask &= ~self.mask(number, member)
        return mask

    def explain(self, ordinal: int, title: str) -> Explanation:
        """Explain the score of a document, clause by clause.

        Args:
            ordinal: Ordinal of the document.
            title: Label of the explanation.
        """
        _, number, doc = located_in(self._parts, ordinal)
        if not self.mask(number, self.query)[doc]:
            return Explanation(0.0, f"the document does not match: {self._mismatch(number, self.query, doc)}")
        clauses = [Scoring(Term(term), (), weight) for term, weight in self._terms.items()]
        clauses += (scoring for scoring, _ in self._others)
        parts = []
        for scoring, weight in zip(clauses, self.weights.tolist(), strict=True):
            fails_guard = any(not self.mask(number, guard)[doc] for guard in scoring.guards)
            explained = None if fails_guard else self._explain_clause(number, scoring, doc)
            if explained is not None:
                value = weight * float(np.float32(explained.value))
                query_part = Explanation(weight, f"query part: weight={scoring.weight:g}")
                label = clause_text(scoring.clause) + self._span_text(number, scoring.clause, doc)
                if isinstance(scoring.clause, Term):
                    label += self._notes.get(scoring.clause.term, "")
                parts.append(Explanation(value, label, (explained, query_part)))
        return Explanation(float(np.float32(sum(part.value for part in parts))), f"{title}: sum over clauses", tuple(parts))

    def _span_text(self, number: int, clause: Leaf, doc: int) -> str:
        """Describe the matches of a phrase or window in a document: fields, and positions counted from their start."""
        if not isinstance(clause, (Phrase, Window)):
            return ""
        part, fields = self._parts[number], state_of(self._parts[number]).fields
        starts, ranges = all_fields(part).positions.field_starts[doc, :-1], []
        for first, last in spans_of(part, clause, doc).tolist():
            field = int(np.searchsorted(starts, first, side="right")) - 1
            name = f"{fields[field]} " if len(starts) > 1 else ""
            ranges.append(f"{name}{first - starts[field]}-{last - starts[field]}")
        more = f" and {len(ranges) - MAX_SPANS} more" if len(ranges) > MAX_SPANS else ""
        return f" at {', '.join(ranges[:MAX_SPANS])}{more}"

    def _explain_clause(self, number: int, scoring: Scoring, doc: int) -> Explanation | None:
        """Explain the weight of a clause in a document of a part; None where the document does not match it."""
        part, statistics, weighting = self._parts[number], Statistics.of(self._parts[number]), self._weighting
        if is_plain(scoring.clause):
            term = part.term_number(scoring.clause.term)
            postings = Postings.of(part, weighting, np.array([term] if term >= 0 else [], dtype=np.int64))
        else:
            statistics, weighting, postings = self._lists(scoring.clause).postings(number)
        posting = posting_of(postings, doc)
        return None if posting is None else weighting.explain(statistics, posting)

    def _mismatch(self, number: int, group: Group, doc: int) -> str:
        """Describe why a document does not match a group."""
        for clause in group.must:
            if not self.mask(number, clause)[doc]:
                if isinstance(clause, Group) and clause.must:
                    return self._mismatch(number, clause, doc)
                return f"it lacks {_description(clause)}"
        for clause in group.must_not:
            if self.mask(number, clause)[doc]:
                return f"it has {_description(clause)}, which it must not"
        return "it has none of the clauses of which one should match"


def is_plain(clause: Clause) -> TypeGuard[Term]:
    """Whether a clause is a term in any field."""
    return type(clause) is Term and not clause.field


def _leaves(group: Group) -> Iterator[Leaf]:
    """Yield the clauses of a union."""
    for clause in group.should:
        if isinstance(clause, Group):
            yield from _leaves(clause)
        else:
            yield clause  # type: ignore[misc]


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
        clauses: Sequence[Clause] = clause.must or clause.should
        without = f" but none of {', '.join(map(_description, clause.must_not))}" if clause.must_not else ""
        return "all of " * bool(clause.must) + "one of " * (not clause.must) + ", ".join(map(_description, clauses)) + without
    return clause_text(clause)


@dataclass
class Plan:
    """Clauses that a document must match, or must not match. Its score is the sum of all clauses that it has.

    Args:
        required: Leaves that a document must have; if empty, it must have at least one of the clauses that score.
        excluded: Leaves that it must not have.
        within: Conditions and groups that it must match.
        without: Conditions and groups that it must not match.
    """

    required: list[Leaf] = field(default_factory=list)
    excluded: list[Leaf] = field(default_factory=list)
    within: list[Clause] = field(default_factory=list)
    without: list[Clause] = field(default_factory=list)

    @classmethod
    def of(cls, query: Group) -> Plan | None:
        """Return the plan of a query without guarded clauses (see `structured.Scoring`); None if the query has no plan."""
        plan = cls()
        plan._add(query)
        if plan.required:
            return plan
        if query.must:
            return plan if any(isinstance(clause, Group) and is_union(clause) for clause in plan.within) else None
        return plan if is_union(Group(should=query.should)) else None

    def _add(self, group: Group) -> None:
        for clause in group.must:
            if isinstance(clause, Group) and clause.must:
                self._add(clause)
            elif isinstance(clause, (Condition, Group)):
                self.within.append(clause)
            else:
                self.required.append(clause)
        for clause in group.must_not:
            if isinstance(clause, (Condition, Group)):
                self.without.append(clause)
            else:
                self.excluded.append(clause)


def is_union(group: Group) -> bool:
    """Whether a document matches a group if it has at least one of the clauses in it that score."""
    return not (group.must or group.must_not) and all(
        is_union(clause) if isinstance(clause, Group) else not isinstance(clause, Condition) for clause in group.should
    )


class PlanRow(NamedTuple):
    """A clause or a segment in a plan.

    Args:
        kind: "required", "optional", "excluded" or "filter"; "segment", or "segments" that are searched as one.
        text: The clause, or which segment.
        documents: Number of documents that match the clause, or that the segment has.
    """

    kind: str
    text: str
    documents: int


@dataclass(frozen=True)
class SearchPlan:
    """How a query is searched.

    Args:
        stage: The text of the retriever.
        code: The code that runs.
        rows: The clauses, then the segments in the order of the search.
    """

    stage: str
    code: str
    rows: tuple[PlanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return asdict(self) | {"rows": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        width = max(len(row.text) for row in self.rows)
        rows = [f"{row.kind:<9} {row.text:<{width}} {row.documents:>9,}" for row in self.rows]
        return "\n".join([f"{self.stage}: {self.code}", *rows])

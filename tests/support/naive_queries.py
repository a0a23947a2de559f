"""Structured queries evaluated by scanning the terms of each document, and made-up queries to compare with."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np

from fontes.core.query import AnyOf, Clause, Condition, Group, Leaf, Phrase, Term, Window

Text = Sequence[str | None]
"""The terms of a document by position; None is a dropped word."""


def phrase_spans(text: Text, clause: Phrase) -> list[tuple[int, int]]:
    """Adjusted first and last positions of all choices of positions, without those that hold an inner one."""
    places = [[at for at, term in enumerate(text) if term == word] for word in clause.terms]
    spans = set()
    for chosen in itertools.product(*places):
        if len(set(chosen)) == len(chosen):
            moved = [at - offset for at, offset in zip(chosen, clause.offsets, strict=True)]
            spans.add((min(moved), max(moved)))
    inner = [a for a in spans if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    return [span for span in inner if span[1] - span[0] <= clause.slop]


def windows(text: Text, clause: Window) -> list[int]:
    """Positions of the clause's terms from which on all its terms stand within the width."""
    starts = [at for at, term in enumerate(text) if term in clause.terms]
    within = [(at, list(text[at : at + clause.width])) for at in starts]
    return [at for at, terms in within if all(terms.count(term) >= clause.terms.count(term) for term in clause.terms)]


def frequency(text: Text, clause: Leaf) -> int:
    """How often a text has a clause."""
    match clause:
        case Term():
            return list(text).count(clause.term)
        case AnyOf():
            return sum(frequency(text, one) for one in set(clause.clauses))
        case Phrase():
            return len(phrase_spans(text, clause))
    return len(windows(text, clause))


class NaiveIndex:
    """BM25 in float64 over the terms of documents, with years as metadata."""

    def __init__(self, texts: Sequence[Text], years: Sequence[int]) -> None:
        self.texts, self.years = texts, years
        self.lengths = [sum(term is not None for term in text) for text in texts]

    def matches(self, clause: Clause, doc: int) -> bool:
        match clause:
            case Condition():
                return bool(eval(clause.where, {"year": self.years[doc]}))
            case Group():
                if any(self.matches(one, doc) for one in clause.must_not):
                    return False
                every = [self.matches(one, doc) for one in clause.must]
                return all(every) if every else any(self.matches(one, doc) for one in clause.should)
        return frequency(self.texts[doc], clause) > 0

    def score(self, clause: Clause, doc: int) -> float:
        if isinstance(clause, Condition) or not self.matches(clause, doc):
            return 0.0
        if isinstance(clause, Group):
            return clause.weight * sum(self.score(one, doc) for one in (*clause.must, *clause.should))
        counts = [frequency(text, clause) for text in self.texts]
        df, n = sum(count > 0 for count in counts), len(self.texts)
        length = 1 - 0.4 + 0.4 * self.lengths[doc] / (sum(self.lengths) / n)
        idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
        return float(clause.weight * idf * counts[doc] / (counts[doc] + 0.9 * length))

    def ranking(self, query: Group) -> dict[int, float]:
        """Scores of the documents that match."""
        return {doc: self.score(query, doc) for doc in range(len(self.texts)) if self.matches(query, doc)}


def random_query(draw: random.Random, words: Sequence[str], positions: bool, depth: int = 2) -> Group:
    """A group of random clauses."""

    def clause(depth: int) -> Clause:
        kind = draw.randrange(10)
        weight = draw.choice([1.0, 1.0, 2.0, 0.5])
        if kind == 0 and depth:
            return random_query(draw, words, positions, depth - 1)
        if kind == 1:
            pair = draw.choices(words, k=2 * positions)
            phrases = (Phrase((*pair,), (0, 1)),) * draw.randrange(2) if positions else ()
            return AnyOf(tuple(sorted(draw.sample(words, 2))), weight=weight, phrases=phrases)
        if kind == 2:
            return Condition(f"year >= {draw.randrange(2000, 2010)}")
        if kind in (3, 4) and positions:
            terms = tuple(draw.choices(words, k=draw.choice([2, 2, 3])))
            offsets = tuple(itertools.accumulate([0, *(draw.choice([1, 1, 1, 2]) for _ in terms[1:])]))
            return Phrase(terms, offsets, draw.choice([0, 0, 1, 2, 4]), weight=weight)
        if kind == 5 and positions:
            return Window(tuple(draw.choices(words, k=draw.choice([2, 2, 3]))), draw.randrange(2, 7), weight=weight)
        return Term(draw.choice([*words, "unknown"]), weight=weight)

    def clauses(most: int) -> tuple[Clause, ...]:
        return tuple(clause(depth) for _ in range(draw.randrange(most + 1)))

    return Group(clauses(2), clauses(3), clauses(1), draw.choice([1.0, 1.0, 3.0]))

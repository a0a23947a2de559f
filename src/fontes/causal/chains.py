"""Chains of causes: what a collection says caused an event, what caused that, and so on."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Topic, Topics
from .pairs import CausalPair, causal_pairs
from .pairs_cues import CUES
from .sentences import sentence_spans

if TYPE_CHECKING:
    from ..index import Index

Terms = frozenset[str]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a cause is said.

    sentence    the sentence, or of a lead the one that is nearest to the event
    cue         the name of the cue in `fontes.causal.CUES`; empty for a lead
    date        the document's metadata `date`, where it has one
    score       how well what the sentence says of effects matches the event, 0 to 1
    """

    doc_id: str
    title: str
    date: str
    sentence: str
    cue: str
    score: float


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause, its sources, best first, and its own causes.

    score   1 less the product of 1 - score of its sources: above 0, at most 1
    lead    no sentence says that it is a cause: only an earlier document that was found for the event
    """

    text: str
    score: float
    sources: tuple[Source, ...]
    causes: tuple[Cause, ...] = ()
    lead: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The cause with what is below it as plain dicts, for JSON."""
        sources = [{name: getattr(source, name) for name in Source.__dataclass_fields__} for source in self.sources]
        causes = [cause.to_dict() for cause in self.causes]
        return {"cause": self.text, "score": self.score, "lead": self.lead, "sources": sources, "causes": causes}


@dataclass(frozen=True, slots=True)
class Chain:
    """An event and the tree of its causes; false where none was found."""

    event: str
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        """How many causes the tree has."""
        return sum(1 for _ in self.all())

    def all(self) -> Iterator[Cause]:
        """Every cause of the tree, each before those below it."""
        waiting = list(reversed(self.causes))
        while waiting:
            cause = waiting.pop()
            yield cause
            waiting.extend(reversed(cause.causes))

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain dicts, for JSON."""
        return {"event": self.event, "causes": [cause.to_dict() for cause in self.causes]}


def causes(
    stage: Stage[Topics, Run] | Index,
    event: str,
    depth: int = 3,
    breadth: int = 3,
    *,
    k: int = 20,
    overlap: float = 0.3,
    weak: bool = False,
    leads: int = 0,
    before: str | None = None,
) -> Chain:
    """The causes of an event, and theirs, as the documents of a collection state them.

    Documents are searched for the event and their `causal_pairs` read. The cause of a pair whose effect matches the event is a
    cause of it, and becomes the next question, down to `depth`. The task is that of Datta, Greene, Ganguly, Roy and Mitra,
    "Where's the Why? In Search of Chains of Causes for Query Events" (AICS 2020); the method is not.

    stage       a retriever, or an index, for its `bm25()`
    depth       how many causes are in a row
    breadth     how many causes an event has at most, the best first
    k           how many documents are read for each event
    overlap     how much of the event the effect must have: the share of the event's terms, weighted by idf, two of them at
                least. What the sentence, the one before it and the document's title have counts half
    weak        read weak cues (after, following, amid) as well, whose scores count half
    leads       how many documents to add to an event for which fewer causes than `breadth` are stated: the best of those found,
                with the sentence that is nearest to it. Nobody says that they are causes; only stated ones follow below them
    before      leads only from documents whose metadata `date` is earlier, in the form of the documents' own dates
                (YYYY-MM-DD), and earlier than that of the document that they are below. Statements may come later: an inquiry

    Causes that say the same, because they share most of their terms, are one with several sources; one that says the same as
    what is above it, or beside that, is left out, so that there are no cycles. The terms are those of the index's analyzer; of
    a stage whose documents are in no index, English words, all of weight 1.

    Raises ParameterError for a number that cannot be, InputError for an event without words and for a stage that does not know
    its documents.
    """
    for name, number in (("depth", depth), ("breadth", breadth), ("k", k), ("leads", leads)):
        check_whole(name, number, 0 if name == "leads" else 1, DEEPEST if name == "depth" else MOST)
    if not 0 < overlap <= 1:
        raise ParameterError(f"overlap must be above 0, at most 1, not {overlap}")
    retriever = stage if isinstance(stage, Stage) else stage.bm25()
    retriever.require(Topics, Run, "a chain of causes")
    asker = _Asker(retriever % k, depth, breadth, overlap, weak, leads)
    return Chain(event, asker.causes(_Question(event, event, before)))


MOST = 1000
DEEPEST = 100  # one call is inside the other, and so are the branches of what is printed
SAME = 0.5  # the share of the terms of two causes, weighted by idf, that both have where they say the same
WEAK = 0.5  # what a weak cue counts
LONGEST = 5_000  # characters of two sentences, beyond which nothing around a pair counts
NOT = re.compile(r"\b(?:not|never|no longer)\b|n['’]t\b", re.IGNORECASE)
PRONOUN = re.compile(r"\b(?:it|its|they|their|them|he|his|him|she|her|this|that|these|those)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Question:
    """An event to ask about: what it is, what to search for, how deep it is, and what is above it and beside that."""

    event: str
    query: str
    before: str | None
    depth: int = 1
    above: tuple[Terms, ...] = ()
    documents: frozenset[str] = frozenset()
    leads: bool = True  # below a lead there are no leads


@dataclass(frozen=True)
class _Statement:
    """A pair in a document, with its sentence and the terms of its parts; `around` are those beside the cause."""

    pair: CausalPair
    sentence: str
    cause: Terms
    effect: Terms
    around: Terms
    weak: bool
    denied: bool  # that the effect came about


@dataclass(frozen=True)
class _Found:
    """A cause that was found, with the question that it becomes."""

    cause: Cause
    terms: Terms
    query: str


@dataclass
class _Asker:
    """Answers questions from a retriever, whose documents it reads once."""

    retriever: Stage[Topics, Run]
    depth: int
    breadth: int
    overlap: float
    weak: bool
    leads: int
    words: _Words | None = None
    statements: dict[str, list[_Statement]] = field(default_factory=dict)

    def causes(self, question: _Question) -> tuple[Cause, ...]:
        """The causes of an event, best first, each with its own."""
        run = self.retriever(Topic("1", question.query))
        if run.documents is None:
            raise InputError("this stage does not know its documents; a chain of causes needs a retriever over an index")
        words = self.words = self.words or _Words.of(run.documents)
        event = words.terms(question.event)
        if not event:
            if question.above:
                return ()
            raise InputError(f"the event '{question.event}' has no words to search for")
        docs = run["1"].docs()
        above = (*question.above, event)
        found = self._stated(words, question.event, docs, above)[: self.breadth]
        if len(found) < self.breadth and self.leads and question.leads:
            found += self._leads(words, event, docs, question)[: min(self.leads, self.breadth - len(found))]
        if question.depth == self.depth:
            return tuple(each.cause for each in found)
        known = (*above, *(each.terms for each in found))
        documents = question.documents.union(source.doc_id for each in found for source in each.cause.sources)
        return tuple(self._followed(each, question, known, documents) for each in found)

    def _followed(self, found: _Found, question: _Question, known: tuple[Terms, ...], documents: frozenset[str]) -> Cause:
        first = found.cause.sources[0]
        before = min(question.before, first.date or question.before) if question.before is not None else None
        below = _Question(found.cause.text, found.query, before, question.depth + 1, known, documents, not found.cause.lead)
        return replace(found.cause, causes=self.causes(below))

    def _stated(self, words: _Words, text: str, docs: Sequence[Doc], above: tuple[Terms, ...]) -> list[_Found]:
        """The causes of pairs whose effect matches the event, those that say the same as one, best first."""
        event, denied = words.terms(text), NOT.search(text) is not None
        answers: list[tuple[float, Doc, _Statement]] = []
        least = min(2, len(event))  # of several words, a single one in common may be any
        for doc in docs:
            for said in self._read(words, doc):
                match = (words.share(event, said.effect) + words.share(event, said.around)) / 2
                matches = match >= self.overlap and len(event & said.around) >= least and said.denied == denied
                if matches and not any(words.same(said.cause, terms) for terms in above):
                    answers.append((match * (WEAK if said.weak else 1), doc, said))
        answers.sort(key=lambda answer: -answer[0])
        del answers[MOST:]
        groups: list[list[tuple[float, Doc, _Statement]]] = []
        for answer in answers:
            same = (group for group in groups if words.same(group[0][2].cause, answer[2].cause))
            group = next(same, None)
            if group is None:
                groups.append([answer])
            elif answer[1].id not in {doc.id for _, doc, _ in group}:
                group.append(answer)
        found = [_merged(group) for group in groups]
        return sorted(found, key=lambda each: -each.cause.score)

    def _read(self, words: _Words, doc: Doc) -> list[_Statement]:
        if doc.id not in self.statements:
            self.statements[doc.id] = list(_statements(words, doc, self.weak))
        return self.statements[doc.id]

    def _leads(self, words: _Words, event: Terms, docs: Sequence[Doc], question: _Question) -> list[_Found]:
        """The documents found for the event that are earlier and not in the tree above it, as causes that nobody states."""
        found = []
        for doc in docs:
            if doc.id in question.documents or (question.before is not None and not "" < _date(doc) < question.before):
                continue
            sentence, score = _nearest(words, event, doc)
            if score >= self.overlap:
                source = Source(doc.id, doc.title, _date(doc), sentence, "", score)
                query = f"{doc.title} {sentence}".strip()
                found.append(_Found(Cause(doc.title or sentence, score, (source,), lead=True), words.terms(query), query))
        return found


@dataclass(frozen=True)
class _Words:
    """The terms of texts and their weights: by the index's analyzer and idf; else English stems, all of weight 1."""

    terms: Callable[[str], Terms]
    weights: Callable[[str], float]

    @classmethod
    def of(cls, documents: object) -> _Words:
        from ..index import Index
        from ..text import Analyzer

        if not isinstance(documents, Index):
            english = Analyzer.of("english")
            return cls(lambda text: frozenset(english(text)), lambda term: 1.0)
        index = documents

        def weight(term: str) -> float:
            number = index.term_number(term)
            df = int(index.df[number]) if number >= 0 else 0
            return math.log(1 + (len(index) - df + 0.5) / (df + 0.5)) if df else 0.0

        return cls(lambda text: frozenset(index.analyzer(text)), cache(weight))

    def share(self, event: Terms, terms: Terms) -> float:
        """The weight of the event's terms that are in `terms`, of the weight of all, 0 to 1."""
        whole = self.weight(event)
        return self.weight(event & terms) / whole if whole else 0.0

    def same(self, a: Terms, b: Terms) -> bool:
        """Whether two texts say the same: half of the weight of the one is in the other, and of the other's in the one."""
        return min(self.share(a, b), self.share(b, a)) >= SAME

    def weight(self, terms: Terms) -> float:
        """The sum of the terms' weights, in a fixed order."""
        return sum(map(self.weights, sorted(terms)))


def _statements(words: _Words, doc: Doc, weak: bool) -> Iterator[_Statement]:
    """What a document states, by its title and by its text."""
    for text in (doc.title, doc.text):
        pairs = [pair for pair in causal_pairs(text, weak=weak) if not pair.negated]
        if not pairs:
            continue
        starts = [start for start, _ in sentence_spans(text)]
        place, sentence, near = -1, "", frozenset[str]()
        for pair in pairs:
            if bisect(starts, pair.start) - 1 != place:
                place = bisect(starts, pair.start) - 1
                sentence = " ".join(text[pair.start : pair.end].split())
                start = starts[max(place - 1, 0)]
                near = words.terms(f"{doc.title} {text[start : pair.end] if pair.end - start <= LONGEST else ''}")
            cause, effect = words.terms(pair.cause), words.terms(pair.effect)
            weak_cue = pair.cue in WEAK_CUES
            if len(cause) > weak_cue:  # "after one" says too little
                denied = NOT.search(pair.effect) is not None
                yield _Statement(pair, sentence, cause, effect, (near - cause) | effect, weak_cue, denied)


WEAK_CUES = frozenset(cue.name for cue in CUES if cue.weak)


def _merged(answers: Sequence[tuple[float, Doc, _Statement]]) -> _Found:
    """One cause of the answers that say the same, the best first."""
    said = answers[0][2]
    sources = tuple(Source(doc.id, doc.title, _date(doc), each.sentence, each.pair.cue, score) for score, doc, each in answers)
    cause = " ".join(said.pair.cause.split())
    # "it was rusted": what "it" is stands in the effect, if anywhere near.
    query = f"{cause} {said.pair.effect}" if PRONOUN.search(cause) else cause
    return _Found(Cause(cause, 1 - math.prod(1 - source.score for source in sources), sources), said.cause, query)


def _nearest(words: _Words, event: Terms, doc: Doc) -> tuple[str, float]:
    """The sentence of a document with the largest share of the event, and how much of it the document has."""
    sentences = [" ".join(doc.text[a:b].split()) for a, b in sentence_spans(doc.text)] or [doc.title]
    best = max(sentences, key=lambda sentence: words.share(event, words.terms(sentence)))
    return best, words.share(event, words.terms(f"{doc.title} {doc.text}"))


def _date(doc: Doc) -> str:
    date = doc.metadata.get("date")
    return "" if date is None else str(date)

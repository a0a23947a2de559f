"""Chains of causes of an event, as documents of a collection state them."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cache, cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Topic, Topics
from ..core.work import ProgressCallback, work
from ..index import Index, State
from ..lexical import BM25
from ..text import Analyzer
from ..text.sentences import sentence_spans
from .cues import CUES, HAPPENINGS, literal
from .dates import is_before, period_of, stated_periods
from .pairs import CausalPair, causal_pairs
from .topicrank import FUNCTION_WORDS

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a cause.

    Args:
        doc_id: Id of the document.
        title: Title of the document.
        date: Metadata `date` of the document, or empty.
        sentence: The sentence; of a lead, the one nearest to the event.
        cue: Name of the cue in `fontes.causal.CUES`; empty for a lead.
        score: Match of the stated effect with the event, 0 to 1.
    """

    doc_id: str
    title: str
    date: str
    sentence: str
    cue: str
    score: float


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause, its sources and its own causes.

    Args:
        text: The cause, in the words of its best source.
        score: 1 less the product of 1 - score of its sources: above 0, at most 1.
        sources: Its sources, best first.
        causes: Its own causes, best first.
        lead: Whether it is only an earlier document retrieved for the event, and not a stated cause.
    """

    text: str
    score: float
    sources: tuple[Source, ...]
    causes: tuple[Cause, ...] = ()
    lead: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The cause and its causes as plain dicts, for JSON."""
        return {
            "cause": self.text,
            "score": self.score,
            "lead": self.lead,
            "sources": [asdict(source) for source in self.sources],
            "causes": [cause.to_dict() for cause in self.causes],
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """An event and the tree of its causes; false if it has none.

    Args:
        event: The event.
        causes: Its causes, best first.
    """

    event: str
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        """Number of causes in the tree."""
        return sum(1 for _ in self.all())

    def all(self) -> Iterator[Cause]:
        """Yield all causes, parents first."""
        waiting = list(reversed(self.causes))
        while waiting:
            cause = waiting.pop()
            yield cause
            waiting.extend(reversed(cause.causes))

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain dicts, for JSON."""
        return {"event": self.event, "causes": [cause.to_dict() for cause in self.causes]}

    def _repr_html_(self) -> str:
        """Collapsible tree for notebooks: causes with scores, sources and their own causes."""
        if not self.causes:
            return f"<div><b>{escape(self.event)}</b>: no causes</div>"
        causes = "".join(_html(cause, open_=True) for cause in self.causes)
        return f"<details open><summary><b>{escape(self.event)}</b></summary>{causes}</details>"


def _html(cause: Cause, *, open_: bool = False) -> str:
    """A cause with its sources and causes, as a collapsible element."""
    sources = "".join(f"<li>{_source_html(source)}</li>" for source in cause.sources)
    causes = "".join(_html(below) for below in cause.causes)
    lead = " (a lead, not a stated cause)" if cause.lead else ""
    return (
        f'<details style="margin-left:1em"{" open" if open_ else ""}>'
        f"<summary><b>{cause.score:.3f}</b> {escape(cause.text)}{lead}</summary><ul>{sources}</ul>{causes}</details>"
    )


def _source_html(source: Source) -> str:
    title = " ".join(escape(text) for text in (source.title, source.date and f"({source.date})") if text)
    cue = f" [{escape(source.cue)}]" if source.cue else ""
    return f"<code>{escape(source.doc_id)}</code> {title}: <i>{escape(source.sentence)}</i>{cue}"


Terms = frozenset[str]

MAX_EVENTS = 1000
MAX_DEPTH = 100  # recursion limit of the search and of printing
MIN_OVERLAP = 0.5  # minimum idf-weighted share of common terms of two causes that count as equal
WEAK = 0.5  # factor of a weak cue's score
MAX_CACHED = 50_000  # texts, or documents, whose terms or statements are kept
MAX_PAIR_LENGTH = 5_000  # maximum characters of a pair's sentences whose surrounding terms count
NOT = re.compile(r"\b(?:not|never|no longer)\b|n['’]t\b", re.IGNORECASE)
PRONOUN = re.compile(r"\b(?:it|its|they|their|them|he|his|him|she|her|this|that|these|those)\b", re.IGNORECASE)
# Starts of adverbials of time and of the subjects of statements.
BACKGROUND = re.compile(r"\b(?:during|about|regarding|concerning|since|before|despite)\b", re.IGNORECASE)
ABOUT = re.compile(r"\s*(?:about|regarding|concerning)\b", re.IGNORECASE)
PLACE = re.compile(
    r"\b(?:of|at|in|on|by|to|from|near|for|with|between|during|across|along|against|over|about|after|before)\b", re.IGNORECASE
)
PARTICIPLE = re.compile(r"\b\w+ed\W*$")
WEAK_CUES = frozenset(cue.name for cue in CUES if cue.weak)


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
    progress: ProgressCallback | None = None,
) -> Chain:
    """Return the stated causes of an event, and their causes, as a tree.

    Searches for the event and reads the `causal_pairs` of the retrieved documents. The cause of a pair whose effect matches the
    event becomes a node and the next query, down to `depth`. A document must mention the happening; figures of speech ("a flood
    of applications") and sentences about consequences of the event are ignored. The task is that of Datta, Greene, Ganguly, Roy
    and Mitra, "Where's the Why? In Search of Chains of Causes for Query Events" (AICS 2020); the method is not.

    Causes that share most of their terms are merged into one with several sources. A cause that repeats a node above it, or a
    sibling of such a node, is left out, so the tree has no cycles. Terms come from the index's analyzer; without an index, they
    are English stems of weight 1.

    Args:
        stage: A retriever; or an index, for its `bm25()`.
        event: Description of the event.
        depth: Maximum length of a chain.
        breadth: Maximum causes of an event, best first.
        k: Number of documents read for each event.
        overlap: Minimum idf-weighted share of the event's terms in the effect, and at least two terms. Terms in the rest of the
            sentence, the sentence before or the document's title count half.
        weak: Also use weak cues (after, following, amid), at half the score.
        leads: Number of documents to add to an event with fewer stated causes than `breadth`: the best retrieved, with their
            sentence nearest to the event. Leads are not stated causes; below a lead there are only stated causes.
        before: Day of the event, such as "2017-01-13": causes are dated before it. A stated cause whose words state a later
            day, month or year is left out; its document may be later, such as the report of an inquiry. Leads are only taken
            from documents whose metadata `date` is earlier. The causes of a cause are dated before the day that its words
            state, or else before its document if that is earlier.
        progress: Called by the retriever.

    Raises:
        ParameterError: A number is out of its range, or `before` is no date.
        InputError: The event has no words, or the stage's run has no documents.
    """
    for name, number in (("depth", depth), ("breadth", breadth), ("k", k), ("leads", leads)):
        check_whole(name, number, 0 if name == "leads" else 1, MAX_DEPTH if name == "depth" else MAX_EVENTS)
    if not 0 < overlap <= 1:
        raise ParameterError(f"overlap must be above 0, at most 1, not {overlap}")
    event_period = period_of(before)
    if before is not None and event_period is None:
        raise ParameterError(f"before is a date such as '2017-01-13', not {before!r}")
    retriever = stage if isinstance(stage, Stage) else BM25(stage)
    retriever.require(Topics, Run, "a chain of causes")
    search = ChainSearch(retriever % k, depth, breadth, overlap, weak, leads)
    with work(progress=progress):
        return search.chain(event, None if event_period is None else event_period.limit)


@dataclass(frozen=True)
class _Question:
    """An event with its query and depth, the terms of the causes above it and their siblings, and their documents' ids."""

    event: str
    query: str
    before: date | None
    depth: int = 1
    above: tuple[Terms, ...] = ()
    documents: frozenset[str] = frozenset()
    leads: bool = True  # leads have no leads below them


@dataclass(frozen=True)
class _StatementTexts:
    """A pair in a document with the texts whose terms its statement needs."""

    pair: CausalPair
    sentence: str
    around: str  # title, sentence before, and sentence
    effect: str  # effect without adverbials of time and reported speech
    sides: tuple[str, str]  # text on the sides of cause and effect

    def all(self) -> tuple[str, ...]:
        return self.pair.cause, self.pair.effect, self.around, self.effect, *self.sides


@dataclass(frozen=True)
class _Statement:
    """A pair in a document, with the terms of its parts; `around` are terms of the effect and of the surrounding text."""

    pair: CausalPair
    sentence: str
    cause: Terms
    effect: Terms
    around: Terms
    sides: tuple[Terms, Terms]  # terms on the sides of cause and effect
    weak: bool
    denied: bool  # whether the effect is negated

    def has_cause_in(self, event: Terms, words: _EventTerms) -> bool:
        """Whether the event is on the side of the cause: then the sentence states a consequence of the event."""
        cause, effect = self.sides
        return words.share(event, cause) > words.share(event, effect)

    def states_effect_of(self, event: Terms, words: _EventTerms) -> bool:
        """Whether the sentence states an effect of the event."""
        return words.share(event, self.cause) >= MIN_OVERLAP and self.has_cause_in(event, words)


class _Match(NamedTuple):
    """A statement whose effect matches an event."""

    score: float
    doc: Doc
    statement: _Statement


@dataclass(frozen=True)
class _CauseCandidate:
    """A cause with its terms, and the query for its own causes."""

    cause: Cause
    terms: Terms
    query: str


@dataclass
class ChainSearch:
    """Searches for the causes of events, with the arguments of `causes`; caches terms and statements of documents."""

    retriever: Stage[Topics, Run]
    depth: int
    breadth: int
    overlap: float
    weak: bool
    leads: int
    words: _EventTerms | None = None
    statements: dict[tuple[str, bool, bool], list[_Statement]] = field(default_factory=dict)

    def chain(self, event: str, before: date | None = None) -> Chain:
        """Return the tree of the causes of an event, dated before a day."""
        return Chain(event, self.causes(_Question(event, event, before)))

    def has_words(self, event: str, documents: object) -> bool:
        """Whether an event has words that documents can be searched for; if not, `chain` raises an error."""
        self.words = self.words or _EventTerms.of(documents)
        return bool(self.words.event(event))

    def causes(self, question: _Question) -> tuple[Cause, ...]:
        """Causes of an event, with their own causes down to `depth`."""
        run = self.retriever(Topic("1", question.query))
        if run.documents is None:
            raise InputError("this stage's run has no documents; a chain of causes needs a retriever over an index")
        words = self.words = self.words or _EventTerms.of(run.documents)
        event = words.event(question.event)
        if not event:
            if question.above:
                return ()
            raise InputError(f"the event '{question.event}' has no words to search for")
        reader = _EventReader.of(words, question.event)
        docs = run["1"].docs()
        above = (*question.above, event)
        candidates = self._stated_causes(reader, question, docs, above)[: self.breadth]
        if len(candidates) < self.breadth and self.leads and question.leads:
            stated = {source.doc_id for candidate in candidates for source in candidate.cause.sources}
            unread = [doc for doc in docs if doc.id not in stated]
            candidates += self._leads(reader, event, unread, question)[: min(self.leads, self.breadth - len(candidates))]
        if question.depth == self.depth:
            return tuple(candidate.cause for candidate in candidates)
        above = (*above, *(candidate.terms for candidate in candidates))
        sources = (source for candidate in candidates for source in candidate.cause.sources)
        documents = question.documents.union(source.doc_id for source in sources)
        return tuple(self._with_causes(candidate, question, above, documents) for candidate in candidates)

    def _with_causes(
        self, candidate: _CauseCandidate, question: _Question, above: tuple[Terms, ...], documents: frozenset[str]
    ) -> Cause:
        """The cause of a candidate with its own causes."""
        cause = candidate.cause
        before = question.before
        if before is not None:
            stated = next(stated_periods(cause.text), None)
            dated = stated or period_of(cause.sources[0].date)
            before = min(before, dated.limit if dated else before)
        below = _Question(cause.text, candidate.query, before, question.depth + 1, above, documents, not cause.lead)
        return replace(cause, causes=self.causes(below))

    def _stated_causes(
        self, reader: _EventReader, question: _Question, docs: Sequence[Doc], above: tuple[Terms, ...]
    ) -> list[_CauseCandidate]:
        """Causes of the event that the documents state, without causes above it and later ones, best first."""
        words, text = reader.words, question.event
        event, denied = words.event(text), NOT.search(text) is not None
        matches: list[_Match] = []
        min_terms = min(2, len(event))  # one common word of several may be accidental
        happening = words.happening(text)
        reader.read(f"{doc.title} {doc.text}" for doc in docs)
        about = [doc for doc in docs if reader.terms(f"{doc.title} {doc.text}") & happening]
        for doc, statements in self._statements_of(reader, about, self.weak):
            for statement in statements:
                share = (words.share(event, statement.effect) + words.share(event, statement.around)) / 2
                if share < self.overlap or len(event & statement.around) < min_terms or statement.denied != denied:
                    continue
                if statement.has_cause_in(event, words) or any(words.same(statement.cause, terms) for terms in above):
                    continue
                if question.before and any(period.first >= question.before for period in stated_periods(statement.pair.cause)):
                    continue
                matches.append(_Match(share * (WEAK if statement.weak else 1), doc, statement))
        matches.sort(key=lambda match: -match.score)
        del matches[MAX_EVENTS:]
        groups: list[list[_Match]] = []
        for match in matches:
            cause = match.statement.cause
            group = next((group for group in groups if words.same(group[0].statement.cause, cause)), None)
            if group is None:
                groups.append([match])
            elif match.doc.id not in {earlier.doc.id for earlier in group}:
                group.append(match)
        return sorted(map(_merge, groups), key=lambda candidate: -candidate.cause.score)

    def _statements_of(self, reader: _EventReader, docs: Sequence[Doc], weak: bool) -> Iterator[tuple[Doc, list[_Statement]]]:
        """Documents with their statements, from the cache if they were read before."""
        keys = [(doc.id, weak, reader.figures) for doc in docs]
        if len(self.statements) > MAX_CACHED:
            self.statements.clear()
        texts = {key: list(_texts(doc, weak)) for key, doc in zip(keys, docs, strict=True) if key not in self.statements}
        reader.read(text for parts in texts.values() for part in parts for text in part.all())
        self.statements |= {key: [s for part in parts if (s := _statement(reader, part))] for key, parts in texts.items()}
        return ((doc, self.statements[key]) for key, doc in zip(keys, docs, strict=True))

    def _leads(self, reader: _EventReader, event: Terms, docs: Sequence[Doc], question: _Question) -> list[_CauseCandidate]:
        """Retrieved documents that are earlier than the event, no source in the tree, and state no effect of the event."""
        candidates = []
        earlier = [doc for doc in docs if question.before is None or is_before(doc, question.before, "date")]
        unused = [doc for doc in earlier if doc.id not in question.documents]
        reader.read(sentence for doc in unused for sentence in _sentences(doc))
        for doc, statements in self._statements_of(reader, unused, True):
            sentence, score = _nearest(reader, event, doc)
            states_effect = any(statement.states_effect_of(event, reader.words) for statement in statements)
            if score >= self.overlap and not states_effect:
                source = Source(doc.id, doc.title, _date(doc), sentence, "", score)
                query = f"{doc.title} {sentence}".strip()
                cause = Cause(doc.title or sentence, score, (source,), lead=True)
                candidates.append(_CauseCandidate(cause, reader.words.terms(query), query))
        return candidates


@dataclass(frozen=True)
class _EventTerms:
    """Analysis and weights of terms: the index's analyzer and idf, or English stems of weight 1."""

    analyzer: Analyzer
    weights: Callable[[str], float]
    terms_by_text: dict[str, Terms] = field(default_factory=dict)  # by text: chains meet documents again and again

    @classmethod
    def of(cls, documents: object) -> _EventTerms:
        """Terms as in an index, if the documents are one."""
        if not isinstance(documents, Index | State):
            return cls(Analyzer.of("english"), lambda term: 1.0)
        index = documents

        def weight(term: str) -> float:
            df = index.df_of(term)
            return math.log(1 + (len(index) - df + 0.5) / (df + 0.5)) if df else 0.0

        return cls(index.analyzer, cache(weight))

    def read(self, texts: Iterable[str]) -> None:
        """Analyze texts at once, which takes a spaCy model a fraction of the time of one after the other."""
        new = [text for text in dict.fromkeys(texts) if text not in self.terms_by_text]
        if len(self.terms_by_text) > MAX_CACHED:
            self.terms_by_text.clear()
        if new:
            self.terms_by_text.update(zip(new, map(frozenset, self.analyzer.many(new)), strict=True))

    def terms(self, text: str) -> Terms:
        """Terms of a text."""
        if text not in self.terms_by_text:
            self.read([text])
        return self.terms_by_text[text]

    @cached_property
    def function(self) -> Terms:
        """Terms of function words."""
        return frozenset(self.analyzer(" ".join(FUNCTION_WORDS)))

    @cached_property
    def happenings(self) -> list[Terms]:
        """Terms of each group of synonyms for happenings."""
        return list(map(frozenset, self.analyzer.many(HAPPENINGS)))

    def event(self, text: str) -> Terms:
        """Content terms of the event, or all of its terms if it has none."""
        terms = self.terms(text)
        return terms - self.function or terms

    def happening(self, text: str) -> Terms:
        """Terms that name the happening; a document about the event must contain at least one of them.

        They are the terms before the first preposition ("fire" in "fire at the cannery"), or only the last of these if it is a
        participle ("closed" in "herring season closed"), and their synonyms ("blaze"); without any, all terms of the event.
        """
        head = PLACE.split(text.strip(), maxsplit=1)[0]
        participle = PARTICIPLE.search(head)
        for part in (participle[0] if participle else "", head, text):
            if terms := self.terms(part) - self.function:
                return terms.union(*(group for group in self.happenings if group & terms))
        return self.terms(text)

    def share(self, event: Terms, terms: Terms) -> float:
        """Share of the event's weight that the terms have in common with it, 0 to 1."""
        total = self.weight(event)
        return self.weight(event & terms) / total if total else 0.0

    def same(self, a: Terms, b: Terms) -> bool:
        """Whether the common terms have at least half of the weight of either set."""
        return min(self.share(a, b), self.share(b, a)) >= MIN_OVERLAP

    def weight(self, terms: Terms) -> float:
        """Sum of the terms' weights."""
        return sum(map(self.weights, sorted(terms)))


@dataclass(frozen=True)
class _EventReader:
    """Reads documents for an event; ignores figures of speech unless the event is one."""

    words: _EventTerms
    figures: bool

    @classmethod
    def of(cls, words: _EventTerms, event: str) -> _EventReader:
        return cls(words, literal(event) != event)

    def read(self, texts: Iterable[str]) -> None:
        """Analyze texts at once, before their terms are needed."""
        self.words.read(map(self._literal, texts))

    def terms(self, text: str) -> Terms:
        """Terms of a text."""
        return self.words.terms(self._literal(text))

    def _literal(self, text: str) -> str:
        return text if self.figures else literal(text)


def _texts(doc: Doc, weak: bool) -> Iterator[_StatementTexts]:
    """Pairs of a document's title and text that are not negated, with the texts that their statements need."""
    for text in (doc.title, doc.text):
        pairs = [pair for pair in causal_pairs(text, weak=weak) if not pair.negated]
        if not pairs:
            continue
        starts = [start for start, _ in sentence_spans(text)]
        for pair in pairs:
            number = bisect(starts, pair.start) - 1
            sentence = " ".join(text[pair.start : pair.end].split())
            start = starts[max(number - 1, 0)]
            around = f"{doc.title} {text[start : pair.end] if pair.end - start <= MAX_PAIR_LENGTH else ''}"
            effect = BACKGROUND.split(pair.effect, maxsplit=1)[0]
            yield _StatementTexts(pair, sentence, around, effect, _sides(text[pair.start : pair.end], pair))


def _statement(reader: _EventReader, texts: _StatementTexts) -> _Statement | None:
    """The statement of a pair; None if its cause is too vague."""
    pair = texts.pair
    cause, effect, whole = reader.terms(pair.cause), reader.terms(texts.effect), reader.terms(pair.effect)
    weak = pair.cue in WEAK_CUES
    if len(cause) <= weak:  # a weak cue needs two terms: "after one" is too vague
        return None
    effect = effect if effect or ABOUT.match(pair.effect) else whole
    around = (reader.terms(texts.around) - cause - whole) | effect
    first, second = texts.sides
    sides = reader.terms(first), reader.terms(second)
    return _Statement(pair, texts.sentence, cause, effect, around, sides, weak, NOT.search(pair.effect) is not None)


def _sides(sentence: str, pair: CausalPair) -> tuple[str, str]:
    """The sentence on the side of the cause, and on the side of the effect."""
    cause, effect = sentence.find(pair.cause), sentence.find(pair.effect)
    if min(cause, effect) < 0 or len(sentence) > MAX_PAIR_LENGTH:
        return pair.cause, pair.effect
    second = max(cause, effect)
    sides = sentence[:second], sentence[second:]
    return sides if cause < effect else sides[::-1]


def _merge(matches: Sequence[_Match]) -> _CauseCandidate:
    """One cause with all matches as its sources, in the words of the best match, which is the first."""
    best = matches[0].statement
    sources = tuple(
        Source(doc.id, doc.title, _date(doc), statement.sentence, statement.pair.cue, score)
        for score, doc, statement in matches
    )
    cause = " ".join(best.pair.cause.split())
    # "it was rusted": "it" most likely refers to the effect.
    query = f"{cause} {best.pair.effect}" if PRONOUN.search(cause) else cause
    return _CauseCandidate(Cause(cause, 1 - math.prod(1 - source.score for source in sources), sources), best.cause, query)


def _nearest(reader: _EventReader, event: Terms, doc: Doc) -> tuple[str, float]:
    """The sentence with the largest share of the event's terms, and the share of the whole document."""
    best = max(_sentences(doc), key=lambda sentence: reader.words.share(event, reader.terms(sentence)))
    return best, reader.words.share(event, reader.terms(f"{doc.title} {doc.text}"))


def _sentences(doc: Doc) -> list[str]:
    return [" ".join(doc.text[a:b].split()) for a, b in sentence_spans(doc.text)] or [doc.title]


def _date(doc: Doc) -> str:
    date = doc.metadata.get("date")
    return "" if date is None else str(date)

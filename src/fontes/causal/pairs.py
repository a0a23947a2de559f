"""Causal pairs of an English text, found by connectives and patterns."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from ..core.arrays import Bools, Float32s
from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Topics
from ..core.work import Progress, reporter
from ..rewrite.turns import original
from ..text import Analyzer
from ..text.external import version_of
from ..text.sentences import Span, check_sentence_finder, sentence_spans, sentences
from .cues import CUES, Cue
from .dates import check_before, check_column, check_event_key, is_before, limit_of
from .narratives import CausalKeywords
from .topicrank import TopicRank

Side = list[Span]  # a cause or an effect, in one or two pieces
Pieces = list[Span | None]  # a cause or an effect, with None for a missing piece


class CausalPair(NamedTuple):
    """A cause and its effect, as a sentence states them.

    Attributes:
        cause: The cause, verbatim, without the cue.
        effect: The effect, verbatim, without the cue.
        cue: Name of the cue in `CUES`.
        start: Start of the sentence with the cue, in characters of the text.
        end: End of the sentence.
        negated: Whether the sentence denies that the cause has this effect: "not because of", "did not cause", "no link
            between".
    """

    cause: str
    effect: str
    cue: str
    start: int
    end: int
    negated: bool


def causal_pairs(text: str, sentences: str = "rules", weak: bool = False) -> list[CausalPair]:
    """Return the causal pairs that a text states by one of `CUES`, in the order of the cues.

    Cause and effect extend from the cue to the next cue or the end of the clause; in "The pump failed. This led to a flood" the
    cause is the whole sentence before. Clause boundaries are found by punctuation and conjunctions, without a parser or a
    model. The cues are English; texts in other languages have no pairs. Linear time in the length of the text.

    Args:
        text: The text.
        sentences: Sentence splitter: "rules" (a full stop, and a capital after it), "nupunkt" or "spacy:MODEL".
        weak: Also use cues that are as often temporal as causal: after, following, amid.

    Raises:
        ParameterError: Another splitter.
        MissingExtraError: The splitter's library is missing.
    """
    plain = text.translate(PLAIN)
    pattern, cues = _cues(weak)
    pairs: list[CausalPair] = []
    earlier: Span | None = None
    for sentence in sentence_spans(text, sentences):
        matches = [match for match in pattern.finditer(plain, *sentence) if _is_cue(plain, match, cues)]
        shared: Side = []
        for n, match in enumerate(matches):
            last = n + 1 == len(matches)
            left = matches[n - 1].end() if n else sentence[0]
            right = sentence[1] if last else matches[n + 1].start()
            bounds = (left, match.start(), match.end(), right)
            context = _CueContext(plain, _matched_cue(match, cues), bounds, None if n else earlier, shared, last)
            sides = context.sides()
            if sides:
                cause, effect = (" ".join(text[a:b] for a, b in side) for side in sides)
                pairs.append(CausalPair(cause, effect, context.cue.name, *sentence, context.negated()))
            shared = sides[1] if sides and context.cue.cause == "after" and len(effect) <= MAX_SHARED_EFFECT else []
        earlier = _trim(plain, *sentence)
    return pairs


PLAIN: dict[int, int | str] = {
    **{n: n + 32 for n in range(65, 91)},
    **dict.fromkeys(map(ord, "\t\n\r\f\v\u00a0"), " "),
    ord("’"): "'",
}  # all replacements have one character, so that offsets stay valid

# Clause boundaries before and after a cue.
PUNCTUATION = r"[;:?!]|\s[-–—]+\s|—|\.(?=\s)|[\"“”()]"
JOINT = r",\s(?:and|but|yet|while|whereas|although|though|however)\b|\bbut\b"
SAYING = (
    r"\b(?:said|says?|saying|added|believed?s?|claim(?:s|ed)?|told \w+|denie[sd]|deny|found|shows?|showed|evidence|proof|sign|"
    r"suggestion)"
)
LEFT = re.compile(rf"{PUNCTUATION}|{JOINT}|{SAYING}\b(?: that\b)?")
RIGHT = re.compile(
    rf"{PUNCTUATION}|{JOINT}|,\s(?:which|who|said|says|according|with|where|when|was|were|is|are|has|had|have)\b|"
    r",\s\w+\s(?:said|says|added|told)\b"
)
JOINED = re.compile(r"\b(?:and|or|but)(?: also| partly| mainly| not)? $")
COMMA = re.compile(r",\s")
WORD = re.compile(r"[^\W_]+")
SAID = re.compile(rf"{SAYING}$")

EDGES = " ,.;:!?-–—'\"‘“”()[]*"
# Joining words at the edges of a cause or effect, which are part of the cue.
TAIL = frozenset(
    """
    which that who is are was were be been being has have had having may might can could will would shall should must do does
    did not never also only just mainly partly largely mostly chiefly primarily perhaps probably possibly apparently allegedly
    reportedly directly indirectly simply eventually ultimately finally often usually sometimes thus then therefore so even to
    's hadn't didn't doesn't wasn't weren't isn't aren't can't couldn't won't wouldn't cannot itself believed thought
    """.split()  # noqa: SIM905
)
JOINTS = frozenset("and or but".split())  # noqa: SIM905
HEAD = frozenset(
    """
    and or but that which so then also only just mainly partly even however although though moreover furthermore thus therefore
    hence indeed meanwhile nevertheless finally
    """.split()  # noqa: SIM905
)
PRONOUNS = frozenset("this that it these those which all".split())  # noqa: SIM905

NEGATED = re.compile(
    r"(?:\bnot|n't|\bnever|\bcannot|\bnor|\bneither|\bno longer|\brather than|\bhardly|\bwithout|\bno|\bfailed to|\byet to|"
    r"\bunlikely to)\s(?:(?:be|been|being|have|has|to|in|any|way|a|the|as|itself|either|causal|direct|clear|\w+ly)\s){0,4}$"
)
NOT_ONLY = re.compile(r"\bnot (?:only|just|merely|least)\s\w*\s?$")
DENIED = re.compile(
    r"\b(?:no|little|not any|without) (?:evidence|proof|sign|indication|suggestion)\b|"
    r"\b(?:den(?:y|ied|ies)|ruled out|disput\w+) that\b|\bnot (?:true|the case|believe|think) that\b"
)
NOTHING = re.compile(r"\s*(?:no|nothing|neither|little)\b")
CLAUSAL = ("that", "why", "so")  # "so that nothing moved" does not negate the cause
MAX_SHARED_EFFECT = 1_000  # maximum characters of an effect that has several causes
NEGATION_REACH = 80  # characters before a cue that are searched for a negation


@dataclass(frozen=True)
class _CueContext:
    """A cue in a sentence, between the neighbouring cues.

    Args:
        plain: The text in lower case.
        cue: The cue.
        bounds: End of the previous cue, start and end of this one, start of the next.
        earlier: The sentence before, if the cue is the first of its sentence.
        shared: Effect of the previous cue, if the cause of that cue follows it.
        last: Whether no other cue follows.
    """

    plain: str
    cue: Cue
    bounds: tuple[int, int, int, int]
    earlier: Span | None
    shared: Side
    last: bool

    def sides(self) -> tuple[Side, Side] | None:
        """Spans of cause and effect, each in one or two pieces; None if cause or effect is missing."""
        if self.cue.between:
            cause, effect = self._two_parts()
        elif self.cue.apart:
            cause, effect = self._apart()
        else:
            cause, effect = self._cause_after() if self.cue.cause == "after" else self._cause_before()
        sides = [part for part in cause if part], [part for part in effect if part]
        return sides if all(sides) else None

    def negated(self) -> bool:
        """Whether the words before the cue, or "no" and "nothing" after it, negate the pair."""
        left, start, end, right = self.bounds
        preceding = self.plain[max(left, start - NEGATION_REACH) : start]
        if self.cue.cause == "before" and not self.cue.name.endswith(CLAUSAL) and NOTHING.match(self.plain, end, right):
            return True
        if DENIED.search(preceding):
            return True
        return NEGATED.search(preceding) is not None and NOT_ONLY.search(preceding) is None

    def _cause_after(self) -> tuple[Pieces, Pieces]:
        """Cause and effect of a cue that the cause follows, such as "because of"."""
        left, start, end, right = self.bounds
        effect, previous_end = self._clause_before(left, start, TAIL)
        if effect and JOINED.search(self.plain, max(left, start - NEGATION_REACH), start) is None:
            # "the flood, caused by rain, …": a cause between commas ends with the second.
            inserted = self.plain[left:start].rstrip().endswith(",")
            return [self._clause_after(end, right, COMMA if inserted else RIGHT)], [effect]
        comma = COMMA.search(self.plain, end, right)
        if comma is not None:  # "Because of rain, …"
            return [_trim(self.plain, end, comma.start())], [self._clause_after(comma.end(), right, RIGHT)]
        cause = self._clause_after(end, right, RIGHT)
        if self.shared:  # "not because of rust, but because of cost"
            return [cause], [*self.shared]
        return [cause], [self.earlier if self.last and not previous_end else None]  # "Why was it shut? Because of rust."

    def _cause_before(self) -> tuple[Pieces, Pieces]:
        """Cause and effect of a cue between them, such as "led to"."""
        left, start, end, right = self.bounds
        return [self._subject(left, start)], [self._clause_after(end, right, RIGHT)]

    def _apart(self) -> tuple[Pieces, Pieces]:
        """Cause and effect of a cue whose cause may be the sentence before, such as "therefore"."""
        left, start, end, right = self.bounds
        clause, previous_end = self._clause_before(left, start, TAIL | JOINTS)
        clause_after = self._clause_after(end, right, RIGHT)
        preceding = self.plain[left:start].rstrip()
        if clause and (preceding.endswith((",", ";", "and")) and self.plain.count(" ", *clause) > 1):
            return [clause], [clause_after]
        if previous_end:  # "It rained, and the match was therefore off"
            return [_trim(self.plain, left, previous_end)], [clause, clause_after]
        return [self.earlier], [clause, clause_after]

    def _two_parts(self) -> tuple[Pieces, Pieces]:
        """Cause and effect of a cue that both follow, such as "blame … for"."""
        _, _, end, right = self.bounds
        between = re.compile(rf"\b{self.cue.between}\b").search(self.plain, end, right)
        if between is None:
            return [], []
        first = [_trim(self.plain, end, between.start())]
        second = [self._clause_after(between.end(), right, RIGHT)]
        return (first, second) if self.cue.cause == "first" else (second, first)

    def _subject(self, left: int, start: int) -> Span | None:
        """The clause before a cue; if the clause is a pronoun, the clause or sentence before it."""
        clause, previous_end = self._clause_before(left, start, TAIL | JOINTS)
        if clause and self.plain[slice(*clause)] not in PRONOUNS:
            return clause
        return _trim(self.plain, left, previous_end) if previous_end and previous_end > left else self.earlier

    def _clause_before(self, left: int, start: int, tail: frozenset[str]) -> tuple[Span | None, int]:
        """The clause that ends at the cue, and the end of the clause before, or 0."""
        end = _without_tail(self.plain, left, start, tail)
        begin = previous_end = 0
        for boundary in LEFT.finditer(self.plain, left, end):
            begin, previous_end = boundary.end(), boundary.start()
        return _trim(self.plain, max(begin, left), end), previous_end

    def _clause_after(self, end: int, right: int, boundary: re.Pattern[str]) -> Span | None:
        """The clause that begins at `end`, up to a boundary."""
        begin = _without_head(self.plain, end, right)
        ending = boundary.search(self.plain, begin, right)
        return _trim(self.plain, begin, ending.start() if ending else right)


def _trim(text: str, start: int, end: int) -> Span | None:
    """The span without punctuation and joining words at its edges; None if no word is left."""
    start = _without_head(text, start, end)
    end = _without_tail(text, start, end, JOINTS)
    return (start, end) if end > start else None


def _without_head(text: str, start: int, end: int) -> int:
    """Start of the first word that is not a joining word."""
    while start < end:
        if text[start] in EDGES:
            start += 1
            continue
        word = WORD.match(text, start, end)
        if word is None or word[0] not in HEAD:
            return start
        start = word.end()
    return end


def _without_tail(text: str, start: int, end: int, tail: frozenset[str]) -> int:
    """End of the last word that is not in `tail`."""
    while end > start:
        if text[end - 1] in EDGES:
            end -= 1
            continue
        gap = text.rfind(" ", start, end)
        word = text[max(gap + 1, start) : end]
        if word not in tail or (word == "that" and SAID.search(text, max(start, gap - 12), max(start, gap))):
            return end
        end = max(gap + 1, start)
    return start


@cache
def _cues(weak: bool) -> tuple[re.Pattern[str], tuple[Cue, ...]]:
    """One pattern for all cues, and the cues; group n of the pattern matches if cue n - 1 does."""
    cues = tuple(cue for cue in CUES if weak or not cue.weak)
    groups = []
    for cue in cues:
        parts = LOOKBEHIND.split(cue.pattern)  # lookbehinds need a fixed length, so their blanks are kept
        parts[::2] = [part.replace(" ", " +") for part in parts[::2]]
        groups.append(f"(?:{''.join(parts)})()")  # empty group last, so that a mismatch fails on the first letter
    return re.compile(rf"\b(?:{'|'.join(groups)})\b"), cues


def _matched_cue(match: re.Match[str], cues: tuple[Cue, ...]) -> Cue:
    """The cue that a match of the common pattern is."""
    return cues[(match.lastindex or 1) - 1]


def _is_cue(plain: str, match: re.Match[str], cues: tuple[Cue, ...]) -> bool:
    """Whether the words before a match allow it to be a cue."""
    start = match.start()
    return not (_matched_cue(match, cues).active and NO_SUBJECT.search(plain, max(0, start - 12), start))


NO_SUBJECT = re.compile(r"(?:-|\b(?:what|was|were|been|be|is|are|being|the|an?|of|get|gets|got)(?: \w+ly)? )$")
LOOKBEHIND = re.compile(r"(\(\?<[!=][^)]*\))")


Terms = frozenset[str]

ROLES = ("published", "swapped", "either", "any")
FAILING = ("drop", "below")


@dataclass(frozen=True)
class CausalFilter(Stage[Run, Run], name="causal_filter"):
    """Keeps documents with a causal pair related to the topic: a filter that Dalal, Gupta and Binaei (CAIR 2021)
    tried and dropped.

    A document passes if one of the `causal_pairs` of its title and text is not negated, shares at least `overlap` terms with
    the topic's title on one side, and as many with the keyphrases of the narrative on the other. With `before` it must also be
    dated before the topic's event, since a cause precedes its effect: the published filter has no time.

    Title and narrative are those of the topic before rewriting (`origin`). If the narrative is missing or has no keyphrase, the
    title stands for the keyphrases, as in `CausalKeywords`. A run without documents raises InputError.

    Args:
        roles: "published": cause with title, effect with keyphrases; "swapped": the other way round; "either"; "any": no pair
            is necessary, with `before` alone.
        overlap: Minimum different terms on either side.
        failing: "drop" removes failing documents; "below" ranks them after those that pass.
        weak: Whether pairs by weak cues count as well; see `causal_pairs`.
        sentences: Sentence splitter for documents and narratives: "rules", "nupunkt" or "spacy:MODEL".
        topicrank: Extractor of keyphrases from the narrative; a string is the tagger of a `TopicRank`.
        analyzer: Makes the terms of titles, keyphrases, causes and effects; English stems without stop words.
        before: Day of the event, such as "2017-01-13", for all topics; or the key of the topics' metadata that has it, such as
            "date". For a topic without the key, and with "stated" for all, it is the first date that the description, title or
            narrative states; documents until the end of a stated month or year pass. All documents of a topic without any date
            pass. A key that topics with metadata lack is an error. None: any date.
        column: Metadata of the documents with their dates; with `before`, a document without a date fails.
    """

    returns_subset: ClassVar[bool] = True

    roles: str = "published"
    overlap: int = 1
    failing: str = "drop"
    weak: bool = False
    sentences: str = "rules"
    topicrank: TopicRank | str = field(default=TopicRank(), metadata={"string": "topicrank"})
    analyzer: str = "english"
    before: str | None = None
    column: str = "date"

    def apply(self, run: Run, /) -> Run:
        report = reporter()
        self.check()
        if run.documents is None:
            raise InputError("CausalFilter needs the documents of the run; run.with_(documents=index) adds them")
        analyze = Analyzer.of(self.analyzer)
        originals = Topics(map(original, run.topics.values()))
        needs_pair = self.roles != "any"
        keywords = CausalKeywords(self.topicrank, sentences=self.sentences)(originals) if needs_pair else originals
        check_event_key("causal_filter", self.before, originals.values())
        start = time.perf_counter()
        docs: dict[str, Doc] = {}
        dated = False
        terms: dict[str, list[tuple[Terms, Terms]]] = {}
        passing: list[bool] = []
        for topic_id, ranking in run.items():
            new_ids = [doc_id for doc_id in ranking.ids if doc_id not in docs]
            docs |= zip(new_ids, run.documents.docs(new_ids), strict=True)
            terms |= {doc_id: self._terms(docs[doc_id], analyze) for doc_id in new_ids if needs_pair}
            title = frozenset(analyze(originals[topic_id].text))
            words = frozenset(analyze(keywords[topic_id].text))
            limit = None if self.before is None else limit_of(originals[topic_id], self.before)
            dated = dated or limit is not None
            passing += [
                (limit is None or is_before(docs[doc_id], limit, self.column))
                and (not needs_pair or any(self._passes(pair, title, words) for pair in terms[doc_id]))
                for doc_id in ranking.ids
            ]
            report(Progress("filtering", len(passing), run.rows, time.perf_counter() - start))
        if dated:
            check_column("causal_filter", self.column, docs.values(), getattr(run.documents, "columns", ()))
        mask = np.array(passing, dtype=bool)
        return run.keep(mask) if self.failing == "drop" else run.with_scores(_ranked_below(run, mask))

    def check(self) -> None:
        if self.roles not in ROLES:
            raise ParameterError(f"roles is one of {', '.join(ROLES)}, not {self.roles!r}")
        if self.failing not in FAILING:
            raise ParameterError(f"failing is {' or '.join(FAILING)}, not {self.failing!r}")
        if self.roles == "any" and self.before is None:
            raise ParameterError("roles='any' keeps all documents; give before, the date of the event")
        check_before(self.before)
        check_whole("overlap", self.overlap)
        check_sentence_finder(self.sentences)
        Analyzer.of(self.analyzer)

    def check_needs(self) -> None:
        sentences(self.sentences)
        Analyzer.of(self.analyzer)("a")  # raises if its library or model is missing
        super().check_needs()

    def key(self) -> str | None:
        """Cache key: class, parameters and version of the sentence model; see `Part.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.sentences)}"

    def _terms(self, doc: Doc, analyze: Analyzer) -> list[tuple[Terms, Terms]]:
        """Terms of cause and effect of each pair of a document that is not negated."""
        text = f"{doc.title}\n\n{doc.text}" if doc.title else doc.text
        pairs = causal_pairs(text, self.sentences, self.weak)
        return [(frozenset(analyze(p.cause)), frozenset(analyze(p.effect))) for p in pairs if not p.negated]

    def _passes(self, pair: tuple[Terms, Terms], title: Terms, words: Terms) -> bool:
        """Whether a pair relates to the title and to the keyphrases of a topic, by `roles`."""
        cause, effect = pair
        published = len(cause & title) >= self.overlap and len(effect & words) >= self.overlap
        swapped = len(effect & title) >= self.overlap and len(cause & words) >= self.overlap
        return published if self.roles == "published" else swapped if self.roles == "swapped" else published or swapped


def _ranked_below(run: Run, passing: Bools) -> Float32s:
    """Scores that rank the failing documents of each topic below the passing ones, in their order."""
    scores = run.scores.astype(np.float64)
    for a, b in pairwise(run.bounds.tolist()):
        best, failing = scores[a:b][passing[a:b]], ~passing[a:b]
        if len(best) and failing.any():
            step = max(1.0, abs(float(best.min())) * 2**-22)  # above the precision of float32
            scores[a:b][failing] = best.min() - step * np.arange(1, failing.sum() + 1)
    return scores.astype(np.float32)

"""The relevant part of narratives, and queries from narratives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from ..core.checks import check_whole
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..rewrite.turns import with_texts
from ..text.external import version_of
from ..text.sentences import MAX_ABBREVIATION, check_sentence_finder, gaps, is_abbreviated, sentence_spans, sentences
from .topicrank import Phrases, TopicRank


class Irrelevance(NamedTuple):
    """A phrase that declares something irrelevant.

    Attributes:
        pattern: Pattern, matched in any case.
        example: A clause with the phrase.
    """

    pattern: str
    example: str


# Words allowed between "not" and the negated word, unlike in "documents that do not mention it are relevant".
BETWEEN = (
    r"(?:(?:be|been|being|as|to|of|any|at|all|in|itself|themselves|alone|really|directly|strictly|necessarily|usually|generally|"
    r"automatically|sufficiently|considered|deemed|judged|regarded|counted|treated|seen|taken) ){0,4}"
)
NOT = rf"(?:\bnot|n't|\bcannot|\bnever|\bno longer) {BETWEEN}"
# "not irrelevant" and "must not be excluded" say the opposite.
UNDENIED = r"(?<!not )(?<!never )(?<!not be )(?<!never be )(?<!nor )(?<!not been )"
DOCUMENTS = r"(?:documents?|articles?|reports?|stories|story|texts?|passages?|items?|ones?|news)"

# Subjects that state the topic: "the user is not interested in", unlike "voters not interested in".
ASKS = r"(?:I|we|user|searcher|requester|reader|author|search|topic|query|question|request)s?"
DENIES = r"(?:do|does|did|will|would|should|can)(?: not|n't)"

ANY = r".{0,1000}"  # bounded, so that time is linear

IRRELEVANT = (
    Irrelevance(rf"{NOT}(?:relevant|pertinent|germane)\b", "Articles about sport are not considered to be relevant"),
    Irrelevance(
        rf"{NOT}(?:considered|counted|accepted|acceptable|retrieved|included|wanted|sought|desired)\b(?! only)",
        "Rumours will not be considered",
    ),
    Irrelevance(r"\bnot be (?:returned|reported|rewarded|credited)\b", "Advertisements should not be returned"),
    Irrelevance(rf"\b{DENIES} (?:count|qualify|suffice|matter)\b", "An obituary does not qualify"),
    Irrelevance(
        rf"{NOT}(?:interest|interesting|use|useful|importance|relevance|enough|sufficient|eligible)\b",
        "A mere mention is not sufficient",
    ),
    Irrelevance(r"\bnot of (?:any |great |much )?concern\b", "The price is not of concern"),
    Irrelevance(
        rf"(?:^|\b{ASKS} )(?:(?:is|am|are)(?: not|n't)|not) (?:really |at all )?"
        r"(?:interested in|concerned (?:with|about)|looking for|asking (?:for|about)|(?:a )?part of)\b",
        "The user is not interested in cures",
    ),
    Irrelevance(
        rf"\b{ASKS} (?:{DENIES} (?:want|wish|care|seek|need)|ha(?:s|ve) no interest)\b", "We do not want advertisements"
    ),
    Irrelevance(
        rf"\b{DENIES} (?:constitute|establish|imply|indicate|mean|make|render)\b{ANY}\brelevan(?:t|ce)\b",
        "The name alone does not constitute relevance",
    ),
    Irrelevance(
        rf"\b{DENIES} (?:satisfy|meet|fulfill?|fall (?:with)?in(?:to)?|belong to)\b{ANY}\b(?:topic|criteri(?:a|on)|query)\b",
        "Reviews of books do not meet these criteria",
    ),
    Irrelevance(
        rf"^(?:\w+ )?(?:information|details?|discussions?|lists?|{DOCUMENTS})\b.*{NOT}(?:required|needed|necessary)\W*$",
        "Information on prices is not required",
    ),
    Irrelevance(
        r"\b(?:is|are)(?: not|n't) (?:the|our|my|this) (?:\w+ )?(?:topic|subject|focus|point|purpose|intent)\b",
        "Tourism is not the main focus",
    ),
    Irrelevance(
        rf"\b{DOCUMENTS} (?:need not|needn't|(?:do|does)(?: not|n't) (?:need|have) to)\b",
        "An article need not show how many died",
    ),
    Irrelevance(
        rf"{UNDENIED}\b(?:irrelevant|non-?relevant|immaterial|inadmissible|unacceptable|insufficient)\b",
        "Weather reports are irrelevant",
    ),
    Irrelevance(
        r"\b(?:of|have|has|had|hold|holds) (?:no|little|(?:only )?(?:minor|marginal|limited|peripheral|secondary)) "
        r"(?:relevance|interest|importance|use|value|concern|bearing)\b",
        "The election is of no interest",
    ),
    Irrelevance(r"\bbeside the point\b", "What it cost is beside the point"),
    Irrelevance(
        rf"\b(?:is|are|be|been|being|were) (?:therefore |thus |also |to be |all |explicitly |always )*{UNDENIED}"
        r"(?:ignored|excluded|disregarded|discarded|dismissed|rejected|omitted|neglected|skipped|left (?:out|aside)|ruled "
        r"out)\b",
        "Sponsored texts should be ignored",
    ),
    Irrelevance(
        r"\b(?:out of|outside(?: of)?|beyond) (?:the |our |this )?(?:scope|topic|interest)\b", "Later strikes are out of scope"
    ),
    Irrelevance(r"\b(?:off-topic|without (?:any )?relevance)\b", "Letters of readers are off-topic"),
    Irrelevance(
        r"^(?:please )?(?:ignore|exclude|disregard|discard|omit|skip|avoid|reject|leave (?:out|aside))\b",
        "Ignore reports of other ports",
    ),
    Irrelevance(
        r"^(?:please )?(?:do|did)(?: not|n't) (?:return|retrieve|include|consider|accept|count|want|report)\b",
        "Do not include summaries of plays",
    ),
    Irrelevance(
        r"^(?:no|none of|neither)\b.*\b(?:is|are|be|were) (?:considered |deemed |judged )?(?:relevant|of interest)\b",
        "No article about the weather is relevant",
    ),
    Irrelevance(r"^nor (?:is|are|was|were|will|would|should|do|does|can)\b", "Nor are sermons about it"),
    Irrelevance(
        rf"\brelevant {DOCUMENTS} (?:(?:must|should|will|would|do|does|may|can|shall) not|cannot|don't|doesn't|won't)\b",
        "A relevant document must not deal with wages alone",
    ),
)

SAYS_IRRELEVANT = re.compile("|".join(f"(?:{phrase.pattern})" for phrase in IRRELEVANT), re.IGNORECASE)

# Boundaries of clauses that can be judged alone.
CLAUSE = re.compile(
    r"\s*[;:]\s+|,?\s+(?:but|whereas|while|however|yet|"
    r"(?<!even )(?:although|though)(?=[^;]{0,1000}\b(?:relevant|of interest)\b))\s+|,\s+and\s+|\s+[-–—]\s+|"
    r",\s+(?=(?:those|articles|documents|reports|stories|ones)\b)",
    re.IGNORECASE,
)
# A clause can stand alone if it has a verb, outside of "that" and "which", and does not begin with it. "those about sport"
# cannot; it joins the clause before or after it. A concession with "though" stays with the irrelevant documents.
VERB = re.compile(
    r"\b(?:is|are|was|were|be|must|should|shall|will|would|may|might|can|could|has|have|does|do|include|includes|count|counts|"
    r"describe|describes|discuss|discusses|mention|mentions|report|explain|explains|identify|tell|tells|find|look|concern|concerns)\b",
    re.IGNORECASE,
)
RELATIVE = re.compile(r"\b(?:that|which|who)\s+(?:only |also |merely |just |simply )?\w+", re.IGNORECASE)
# "not relevant unless X" makes X relevant, and "relevant unless X" the part before it.
EXCEPTION = re.compile(
    r"(?:,?\s*\b(?:unless|except(?: for| that| when| if| where)?|other than|apart from|aside from|excluding|"
    r"with the exception of|but not|rather than)|,\s+not(?=\s+(?:the|those|their|its|an?)\b))\s+",
    re.IGNORECASE,
)
RESUMES = re.compile(r"\s+(?=(?:is|are|was|were|will|should|must|may|can|do|does)\b)|[,;]")

# First words of sentences: "in the U.S. Documents about …", unlike "the U.S. Navy".
OPENS = re.compile(
    r"(?:an?|the|any|all|also|to|it|they|these|those|this|such|if|only|not|no|however|relevant|information|discussions?|mentions?|"
    rf"references|descriptions?|{DOCUMENTS})\b",
    re.IGNORECASE,
)


def relevant_part(narrative: str, sentences: str = "rules") -> str:
    """Return a narrative without its description of irrelevant documents; may be empty.

    Sentences without a match of `IRRELEVANT` stay, without their exceptions. Of the others, the clauses without a match stay if
    they can stand alone: "Causes are relevant; wages are not relevant" becomes "Causes are relevant." Exceptions are inverted:
    "not relevant unless X" leaves X; "X is relevant unless Y" and "X other than Y is relevant" leave X. The patterns are
    English.

    Args:
        narrative: Narrative of a topic.
        sentences: Sentence splitter: "rules" (a full stop, and a capital after it), "nupunkt" or "spacy:MODEL".

    Raises:
        ParameterError: Another splitter.
        MissingExtraError: The splitter's library is missing.
    """
    parts = [_relevant_clauses(sentence) for sentence in _sentences(narrative, sentences)]
    return " ".join(part for part in parts if part)


def says_irrelevant(clause: str) -> bool:
    """Whether a clause declares something irrelevant."""
    return SAYS_IRRELEVANT.search(clause.strip().replace("’", "'")) is not None


def _sentences(text: str, splitter: str) -> list[str]:
    """Sentences of a narrative, each on one line."""
    if splitter != "rules":
        return [" ".join(text[a:b].split()) for a, b in sentence_spans(text, splitter)]
    # Unlike other texts, narratives have hard line breaks and typical first words of sentences.
    merged: list[list[str]] = []
    edges = [0, *chain.from_iterable(gaps(text)), len(text)]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        piece, last = " ".join(text[start:end].split()), merged[-1][-1] if merged else ""
        if is_abbreviated(last[-MAX_ABBREVIATION:], piece) and not (last[-2].isupper() and OPENS.match(piece)):
            merged[-1].append(piece)
        elif piece:
            merged.append([piece])
    return [" ".join(pieces).rstrip() for pieces in merged]


def _relevant_clauses(sentence: str) -> str:
    """The relevant clauses of a sentence, as a sentence; may be empty."""
    if not says_irrelevant(sentence):
        return sentence if EXCEPTION.search(sentence) is None else _as_sentence(_without_exception(sentence))
    parts = []
    for clause in _clauses(sentence):
        if not says_irrelevant(clause):
            parts.append(_without_exception(clause))
            continue
        exception = EXCEPTION.search(clause)
        if exception is not None and not says_irrelevant(clause[: exception.start()]):
            # "anything other than X is not relevant"
            parts.append(RESUMES.split(clause[exception.end() :], maxsplit=1)[0])
        elif exception is not None:
            parts.append(clause[exception.end() :])
    return _as_sentence("; ".join(part.strip(" .,;") for part in parts if part.strip(" .,;")))


def _without_exception(clause: str) -> str:
    """The clause without an exception such as "unless X"."""
    exception = EXCEPTION.search(clause)
    if exception is None:
        return clause
    resumed = RESUMES.search(clause, exception.end())
    remainder = clause[resumed.start() :] if resumed and not exception[0].strip(" ,").lower().startswith("unless") else ""
    return clause[: exception.start()] + remainder


def _clauses(sentence: str) -> list[str]:
    """Clauses of a sentence; a part without a verb joins the clause before it or, if it is the first, the next."""
    clauses: list[str] = []
    pending = ""
    for part in CLAUSE.split(sentence):
        part = f"{pending}, {part}" if pending else part
        pending = ""
        if VERB.search(RELATIVE.sub("", part)) and not VERB.match(part):
            clauses.append(part)
        elif clauses:
            clauses[-1] = f"{clauses[-1]}, {part}"
        else:
            pending = part
    return [*clauses, *([pending] if pending else [])]


def _as_sentence(text: str) -> str:
    """The text with a capital and a final period."""
    text = text.strip(" ,;") if "(" in text else text.strip(" ,;()")
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?' else '.'}" if text else ""


# Words of narratives about documents, not their content.
# fmt: off
META = (
    "document", "documents", "article", "articles", "report", "reports", "story", "stories", "item", "items", "text", "texts",
    "passage", "passages", "page", "pages", "news", "relevant", "irrelevant", "relevance", "pertinent", "information",
    "mention", "mentions", "discussion", "discussions", "searcher",
)
# fmt: on


@dataclass(frozen=True)
class CausalKeywords(Stage[Topics, Topics], name="causal_keywords"):
    """Queries with the keyphrases of the relevant part of the narrative, as Dalal, Gupta and Binaei (CAIR 2021) make
    them for their lexical index.

    A topic without a narrative or keyphrases keeps its text, the title. The new topic's `origin` is the old one.

    Args:
        topicrank: Extractor of keyphrases; a string is the tagger of a `TopicRank`.
        n: Keyphrases, best first; None: all.
        sentences: Sentence splitter of `relevant_part`: "rules", "nupunkt" or "spacy:MODEL".
        without: Lower-case words to remove from keyphrases; `fontes.causal.META` has those about documents ("relevant
            articles").
    """

    topicrank: TopicRank | str = field(default=TopicRank(), metadata={"string": "topicrank"})
    n: int | None = None
    sentences: str = "rules"
    without: tuple[str, ...] = ()

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        parts = [relevant_part(topic.narrative, self.sentences) for topic in topics.values()]
        topicrank: TopicRank = self.params()["topicrank"]
        phrases = topicrank.batch(parts, None if self.without else self.n)
        return _rewrite(topics, map(self._query, phrases))

    def check(self) -> None:
        check_sentence_finder(self.sentences)
        if self.n is not None:
            check_whole("n", self.n)

    def check_needs(self) -> None:
        sentences(self.sentences)
        super().check_needs()

    def key(self) -> str | None:
        """Cache key: class, parameters and version of the sentence model; see `Part.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.sentences)}"

    def _query(self, phrases: Phrases) -> str:
        shortened = (" ".join(word for word in phrase.split() if word not in self.without) for phrase, _ in phrases)
        return " ".join([phrase for phrase in shortened if phrase][: self.n])


@dataclass(frozen=True)
class Narrative(Stage[Topics, Topics], name="narrative"):
    """Searches with the narrative of each topic; a topic without one keeps its text.

    Args:
        relevant: Whether to omit what the narrative calls irrelevant.
    """

    relevant: bool = False

    def apply(self, topics: Topics, /) -> Topics:
        return _rewrite(topics, (_narrative(topic, self.relevant) for topic in topics.values()))


@dataclass(frozen=True)
class TitleAndNarrative(Stage[Topics, Topics], name="title_and_narrative"):
    """Searches with each topic's text, the title, followed by its narrative.

    Args:
        relevant: Whether to omit what the narrative calls irrelevant.
    """

    relevant: bool = False

    def apply(self, topics: Topics, /) -> Topics:
        texts = (f"{topic.text} {_narrative(topic, self.relevant)}".strip() for topic in topics.values())
        return _rewrite(topics, texts)


def _narrative(topic: Topic, relevant: bool) -> str:
    return relevant_part(topic.narrative) if relevant else topic.narrative.strip()


def _rewrite(topics: Topics, texts: Iterable[str]) -> Topics:
    """Rewrite each topic to its text; a topic with an empty text keeps its own."""
    by_id = dict(zip(topics, texts, strict=True))
    return with_texts(topics, lambda topic: by_id[topic.id] or topic.text)

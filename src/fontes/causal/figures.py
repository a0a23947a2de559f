"""Figures of speech that name an event which did not happen: a flood of applications, a manager under fire."""

from __future__ import annotations

import re
from typing import NamedTuple


class Figure(NamedTuple):
    """A figure of speech.

    Attributes:
        pattern: Pattern, matched in any case; its group "word" is the figurative word.
        example: A text with the figure.
        literal: A text with the word in its literal sense, which the pattern does not match.
    """

    pattern: str
    example: str
    literal: str


# Nouns after "a flood of" other than water.
THINGS = (
    r"(?:\w+ ){0,2}(?:(?!(?:waters?|rains?|tides?|waves?|rivers?|years?|\w+ss)\b)[a-z]+s|interest|support|criticism|mail|"
    r"praise|money|news|information|abuse|anger|protest|applause|laughter|emotion)\b"
)
TARGETS = r"(?:on|upon|tear|into|rubber|shots?|live|at (?:the )?(?:crowd|police|people|protest|ships?|\w+(?:ers|ors|ants|men)))"
PEOPLE = r"(?:manager|coach|director|boss|chef|captain|officer|minister|employee|worker|reporter|teacher|he|she|who)s?"

FIGURES = (
    Figure(
        rf"\b(?P<word>flood|floods|deluge|torrent|avalanche|tsunami|storm|tide|hail|shower|explosion|eruption|landslide) of "
        rf"(?=(?-i:{THINGS}))",
        "There has been a flood of applications.",
        "The flood of the winter, the flood of 1953 and a storm of the century.",
    ),
    Figure(
        rf"\b(?P<word>flooded|inundated|swamped|deluged|showered|bombarded) (?:with|by) (?=(?-i:{THINGS}))",
        "The office was flooded with letters.",
        "The cellar was flooded with sea water and by the tide.",
    ),
    Figure(r"\b(?P<word>flood(?:s|ed|ing)?) the market\b", "Cheap tins flood the market.", "The market was flooded."),
    Figure(
        r"\b(?P<word>landslide|avalanche) (?:victory|win|majority|vote|defeat)\b",
        "She won by a landslide victory.",
        "A landslide buried the road.",
    ),
    Figure(
        r"\b(?:under|line of|hold|held|hang|hung) (?P<word>fire)\b",
        "The mayor came under fire.",
        "The ship caught fire at sea, and a fire broke out.",
    ),
    Figure(
        rf"\b{PEOPLE} (?:(?:was|were|is|are|been|being|got|to be) )?(?P<word>fired)\b(?! {TARGETS})",
        "The works manager was fired.",
        "He fired at the crowd, and the officer fired tear gas.",
    ),
    Figure(
        r"\b(?P<word>str(?:ike|ikes|uck|iking)) (?:an? )?(?:deal|bargain|balance|chord|pose|note|agreement|match|gold|oil)\b",
        "They strike a deal.",
        "They strike for a week.",
    ),
    Figure(
        r"\b(?:late|early|low|winning|stunning|opening|equalising|first-half|second-half|long-range|left-foot|right-foot) "
        r"(?P<word>strike)\b(?! (?:at|by|of|over|for)\b)",
        "A late strike won the match.",
        "The early strike at the docks ended.",
    ),
    Figure(
        r"\b(?:storm|firestorm) in a teacup\b|\b(?:brain|political|perfect|fire)(?P<word>storm)\b|\b(?:took?|taken?) \S+ by "
        r"(?P<other>storm)\b",
        "It took London by storm.",
        "The storm took the roof.",
    ),
    Figure(
        r"\b(?P<word>drown(?:s|ed|ing)?|s[iau]nk(?:s|ing)?) in (?:debts?|paper(?:work)?|work|bills|red tape|letters)\b",
        "The yard is drowning in paperwork.",
        "Two men drowned in the harbour.",
    ),
    Figure(
        r"\b(?P<word>fires?) (?:the|his|her|their|your) imagination\b|\b(?:baptism|trial) (?:of|by) (?P<other>fire)\b",
        "It was a baptism of fire.",
        "The fire in the mill.",
    ),
)

# Synonyms of happenings.
HAPPENINGS = (
    "flood floods flooded flooding inundated submerged water waters sea tide deluge",
    "fire fires blaze burn burns burned burning burnt flames ablaze smoke gutted arson",
    "strike strikes walkout stoppage picket pickets tools work",
    "protest protests demonstration march marched rally protesters demonstrators rallied",
    "riot riots unrest violence violent clash clashes rampage mob",
    "close closes closed closing closure shut shuts shutting shutdown end ends",
    "bankrupt bankruptcy insolvent insolvency receiver receivers creditors liquidation liquidated ruin",
    "ground grounded grounding aground ashore stranded wreck wrecked",
    "crash crashed collision collided accident derailed struck",
    "collapse collapses collapsed fell fall falls",
    "explosion explosions exploded blast blew bomb",
    "sick sickness ill illness disease outbreak epidemic fever infection infected poisoning",
    "election elections elected vote votes voters poll polls ballot",
    "leave leaves left leaving quit quits withdraw withdrew withdrawal depart departed gone",
    "die dies died death deaths dead kill killed killing murder",
    "arrest arrests arrested detained detention custody",
    "suspend suspended suspends suspension disrupted disruption disrupt halted stopped cancelled",
)

FIGURE = [re.compile(figure.pattern, re.IGNORECASE) for figure in FIGURES]


def literal(text: str) -> str:
    """Blank out figurative words; the length of the text stays."""
    for pattern in FIGURE:
        text = pattern.sub(_blanked, text)
    return text


def _blanked(match: re.Match[str]) -> str:
    """The match without its named groups, or blanks alone if it has none."""
    named = [name for name, value in match.groupdict().items() if value is not None]
    whole, start = match[0], match.start()
    for name in named:
        a, b = match.start(name) - start, match.end(name) - start
        whole = whole[:a] + " " * (b - a) + whole[b:]
    return whole if named else " " * len(whole)

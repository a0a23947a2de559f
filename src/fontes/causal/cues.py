"""English causal cues: words and phrases, and the positions of cause and effect."""

from __future__ import annotations

import re
from typing import NamedTuple


class Cue(NamedTuple):
    """A phrase that states causation.

    Attributes:
        name: Name, as in `CausalPair.cue`.
        pattern: Pattern in lower case, matched in any case; a blank stands for white space.
        cause: Position of the cause: "before" or "after" the cue, or "first" or "second" of two parts after it, which `between`
            separates.
        example: A text with the cue.
        gives: Cause and effect in the example.
        between: Pattern that separates cause and effect if both follow the cue.
        apart: Whether the cause is the sentence before if no clause precedes the cue ("consequently").
        active: Whether the cue is a participle that is no cue after an article or a form of "to be": "the forced sale", "they
            were forced".
        weak: Whether the cue is as often temporal as causal.
    """

    name: str
    pattern: str
    cause: str
    example: str
    gives: tuple[str, str]
    between: str = ""
    apart: bool = False
    active: bool = False
    weak: bool = False


CLAUSE = (
    r"(?:it|they|he|she|we|you|i|there|this|these|those|that|nobody|many|most|all|both|neither|the|his|her|its|their|our|an?|"
    r"no)"
)
POINT = (
    r"(?:start|beginning|end|turn|time|day|days|night|year|war|early|late|last|first|previous|mid\S*|\d\S*|\w+ of|\w+ in|"
    r"\w+ing)"
)
DEGREE = (
    r"(?:(?:main|major|leading|common|primary|principal|chief|root|underlying|direct|likely|real|most|biggest|sole|only|probable|"
    r"key) ){0,3}"
)
# "He locks the gate so that nobody can enter" states a purpose.
NO_MODAL = r"(?!(?: \S+){1,6} (?:may|might|can|could|should|would|will)\b)"
# "After two years" and "after dark" are temporal.
UNIT = r"(?:second|minute|hour|day|night|week|month|year|decade|season)s?"
TIME = (
    r"(?:all|dark|sunset|sunrise|noon|midnight|midday|breakfast|lunch|dinner|christmas|easter|school|work|\d\S*|"
    rf"(?:(?:an?|the|this|last|that|one) |(?:\S+ ){{1,3}}){UNIT}|(?:the )?(?:spring|summer|autumn|winter|war|break)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|"
    r"december)"
)
# "The ship is due to sail" states no cause.
PLANNED = (
    r"(?:be|begin|start|leave|arrive|open|close|take|hold|meet|go|come|retire|return|appear|expire|end|vote|play|sail|face)"
)
PARTLY = r"(?:(?:in )?(?:part|large part|largely|mainly|partly|mostly|chiefly|primarily|directly|simply|solely) )?"

# The cause is after the cue.
CAUSE_AFTER = (
    Cue("because of", "because of", "after", "Trains stopped because of the snow.", ("the snow", "Trains stopped")),
    Cue("because", "because", "after", "Because it rained, the match was off.", ("it rained", "the match was off")),
    Cue(
        "since",
        rf"(?:^|(?<=, )|(?<=[.!?:;] )|(?<=  )|(?<=and )|(?<=but ))since (?={CLAUSE} )(?!\w+ {POINT}\b)",
        "after",
        "Since they had not paid, the yard kept the boat.",
        ("they had not paid", "the yard kept the boat"),
    ),
    Cue("due to", rf"due {PARTLY}to(?! {PLANNED}\b)", "after", "The delay was due to fog.", ("fog", "The delay")),
    Cue("owing to", "owing to", "after", "Owing to the fog, ships waited.", ("the fog", "ships waited")),
    Cue("thanks to", "thanks to", "after", "They won thanks to a late goal.", ("a late goal", "They won")),
    Cue("on account of", "on account of", "after", "He stayed on account of the ice.", ("the ice", "He stayed")),
    Cue(
        "as a result of",
        "(?:as an? (?:direct )?|in )(?:result|consequence) of",
        "after",
        "Prices rose as a result of the drought.",
        ("the drought", "Prices rose"),
    ),
    Cue(
        "on the grounds that",
        "on the grounds? (?:that|of)",
        "after",
        "It was shut on the grounds of cost.",
        ("cost", "It was shut"),
    ),
    Cue("given that", "given (?:that|how)", "after", "It held, given that oak is hard.", ("oak is hard", "It held")),
    Cue(
        "in view of", "in (?:view|light|consideration) of", "after", "It closed in view of the risk.", ("the risk", "It closed")
    ),
    Cue(
        "for lack of",
        "for (?:lack|want|fear) (?:of|that)",
        "after",
        "The mill shut for want of coal.",
        ("coal", "The mill shut"),
    ),
    Cue(
        "in response to",
        "in (?:response to|reaction to|retaliation (?:for|against)|revenge for|protest (?:against|at|over|of))",
        "after",
        "Dockers stopped work in protest at the cuts.",
        ("the cuts", "Dockers stopped work"),
    ),
    Cue(
        "to protest",
        "(?:to protest|protesting) (?:against |over |at |about )?|anger(?:ed)? (?:at|over|by)",
        "after",
        "Thousands marched to protest against the tax.",
        ("the tax", "Thousands marched"),
    ),
    Cue(
        "caused by",
        rf"(?:caused|triggered|sparked|prompted|provoked|precipitated|induced|ignited|fuell?ed|spurred|necessitated|instigated|"
        rf"exacerbated|aggravated|worsened|occasioned|brought (?:about|on)|touched off) {PARTLY}by",
        "after",
        "The fire was caused by a spark.",
        ("a spark", "The fire"),
    ),
    Cue(
        "stems from",
        rf"(?:stem(?:s|med|ming)?|result(?:s|ed|ing)?|ar(?:ise|ises|ose|ising|isen)) {PARTLY}(?:from|out of)",
        "after",
        "The dispute stems from a change of shifts.",
        ("a change of shifts", "The dispute"),
    ),
    Cue(
        "blamed on",
        r"(?:blamed on|attribut(?:ed|able) to|put down to|ascribed to|traced (?:back )?to|chalked up to)",
        "after",
        "The leak has been blamed on rust.",
        ("rust", "The leak"),
    ),
    Cue(
        "result of",
        "(?:the|an?) (?:direct |likely |natural |inevitable )?(?:result|consequence|outcome|product) of",
        "after",
        "Defeat was the result of bad advice.",
        ("bad advice", "Defeat"),
    ),
    Cue(
        "blamed for",
        r"blam(?:e|es|ed|ing)(?! (?:for|on|by)\b)",
        "first",
        "Farmers blame the dam for the flood.",
        ("the dam", "the flood"),
        between="for",
    ),
    Cue(
        "cause of",
        rf"the {DEGREE}(?:cause|reason)s? (?:of|for|behind)",
        "second",
        "The main cause of the fire was a spark.",
        ("a spark", "the fire"),
        between="(?:is|are|was|were|has been|had been)",
    ),
)

# The cause is before the cue.
CAUSE_BEFORE = (
    Cue(
        "is the cause of",
        rf"(?:is|are|was|were|be|been|being|as|becom(?:e|es|ing)|became) (?:the |an? |one of the |another |also )?{DEGREE}"
        r"(?:causes?|reasons?|culprits?) (?:of|for|why|behind)",
        "before",
        "Ice is a common cause of accidents.",
        ("Ice", "accidents"),
    ),
    Cue(
        "caused",
        r"(?:caused|causes|causing)(?! by\b)",
        "before",
        "The storm caused floods.",
        ("The storm", "floods"),
        active=True,
    ),
    Cue(
        "cause",
        r"(?:(?<=\bto )|(?<=\bcan )|(?<=\bmay )|(?<=\bwill )|(?<=\bcould )|(?<=\bmight )|(?<=\bwould )|(?<=\bnot )|(?<=n't )|"
        r"(?<=\bthat )|(?<=\bwhich )|(?<=s ))cause(?! (?:of|for|is|was|and|has)\b)",
        "before",
        "Leaks may cause fires.",
        ("Leaks", "fires"),
    ),
    Cue("led to", "(?:lead|leads|led|leading) (?:\\w+ly )?to", "before", "Drought led to famine.", ("Drought", "famine")),
    Cue(
        "resulted in",
        r"(?:(?:result|results|resulted|resulting|culminat(?:e|es|ed|ing)) in|end(?:s|ed|ing)? in(?= an? ))",
        "before",
        "The talks resulted in a truce.",
        ("The talks", "a truce"),
    ),
    Cue(
        "gave rise to",
        "(?:give|gives|gave|given|giving) (?:rise|birth) to",
        "before",
        "Damp gave rise to mould.",
        ("Damp", "mould"),
    ),
    Cue(
        "contributed to",
        "contribut(?:e|es|ed|ing) (?:\\w+ly )?to(?:wards)?",
        "before",
        "Speed contributed to the crash.",
        ("Speed", "the crash"),
    ),
    Cue(
        "brought about",
        "(?:bring|brings|brought|bringing) (?:about|on)(?! by\\b)",
        "before",
        "The reform brought about a revolt.",
        ("The reform", "a revolt"),
    ),
    Cue(
        "sparked",
        r"(?:(?:trigger|spark|prompt|provok|precipitat|ignit|spur|necessitat|induc|occasion|aggravat|exacerbat|worsen|"
        r"fuell?|unleash|spawn|hasten|instigat)(?:ed|ing)|(?:trigger|spark|prompt|provoke|precipitate|ignite|necessitate|induce|aggravate|"
        r"exacerbate|worsen)s|(?:set|sets|setting|touch(?:ed|es|ing)) off)(?! by\b)",
        "before",
        "The verdict sparked riots.",
        ("The verdict", "riots"),
        active=True,
    ),
    Cue(
        "forced",
        r"(?:forc|compell|oblig)(?:ed|es|ing)(?! (?:by|to)\b)(?= (?:\S+ ){1,6}(?:to|into|out|off|from)\b)",
        "before",
        "Ice forced the ships to turn back.",
        ("Ice", "the ships to turn back"),
        active=True,
    ),
    Cue(
        "to blame for",
        "(?:to blame|(?:held|found|partly|largely|mainly|chiefly|jointly|directly) responsible) for|(?:was|were) behind",
        "before",
        "A worn cable was to blame for the crash.",
        ("A worn cable", "the crash"),
    ),
    Cue(
        "meant that",
        "(?:mean|means|meant|meaning) (?:that|it|they|he|she|we|the|there|no)(?= )",
        "before",
        "Cuts meant that nobody watched the pumps.",
        ("Cuts", "nobody watched the pumps"),
    ),
    Cue(
        "which is why",
        "(?:which|that|this) (?:is|was) (?:the reason )?why|that's why",
        "before",
        "The lock froze, which is why boats waited.",
        ("The lock froze", "boats waited"),
    ),
    Cue(
        "so that",
        rf"so that(?!'){NO_MODAL}",
        "before",
        "Sand choked the gate, so that it jammed.",
        ("Sand choked the gate", "it jammed"),
    ),
    Cue("so", rf"(?<=, )(?:and )?so (?={CLAUSE} )", "before", "It rained, so we stayed.", ("It rained", "we stayed")),
    Cue(
        "with the result that",
        "with the (?:result|consequence|effect) (?:that|of)",
        "before",
        "It leaked, with the result that the hold filled.",
        ("It leaked", "the hold filled"),
    ),
    Cue(
        "thereby",
        "(?:thereby|thus) (?=\\w+ing\\b)",
        "before",
        "It sank, thereby blocking the port.",
        ("It sank", "blocking the port"),
    ),
    Cue(
        "no link between",
        r"(?<=\bno )(?:\w+ )?(?:link|connection|relation|relationship) between",
        "first",
        "There is no link between tides and strikes.",
        ("tides", "strikes"),
        between="and",
    ),
)

# The cause is in the sentence before, or in a clause before.
CAUSE_APART = tuple(
    Cue(name, pattern, "before", f"The mill shut. {example}", ("The mill shut", gives), apart=True)
    for name, pattern, example, gives in (
        ("therefore", "therefore", "Wages therefore fell.", "Wages fell"),
        ("consequently", "consequently|in consequence(?! of)", "Consequently, wages fell.", "wages fell"),
        ("as a result", "as an? (?:direct )?(?:result|consequence)(?! of)", "As a result, wages fell.", "wages fell"),
        ("hence", "hence(?!forth)|accordingly|for (?:this|that|these) reasons?", "Hence wages fell.", "wages fell"),
        ("thus", "(?<!, )thus(?! far)", "Thus wages fell.", "wages fell"),
    )
)

# Temporal cues: the earlier event may be the cause.
WEAK = (
    Cue(
        "after",
        rf"after(?! {TIME}\b)",
        "after",
        "The ward shut after two midwives left.",
        ("two midwives left", "The ward shut"),
        weak=True,
    ),
    Cue(
        "following",
        "following",
        "after",
        "The ward shut following a fire.",
        ("a fire", "The ward shut"),
        active=True,
        weak=True,
    ),
    Cue("in the wake of", "in the wake of|amid(?:st)?", "after", "He went amid protests.", ("protests", "He went"), weak=True),
)

CUES = (*CAUSE_AFTER, *CAUSE_BEFORE, *CAUSE_APART, *WEAK)


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

FIGURE_PATTERNS = [re.compile(figure.pattern, re.IGNORECASE) for figure in FIGURES]


def literal(text: str) -> str:
    """Blank out figurative words; the length of the text is unchanged."""
    for pattern in FIGURE_PATTERNS:
        text = pattern.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    """The match with its named groups blanked out; without named groups, blanks of its length."""
    named = [name for name, value in match.groupdict().items() if value is not None]
    text, start = match[0], match.start()
    for name in named:
        a, b = match.start(name) - start, match.end(name) - start
        text = text[:a] + " " * (b - a) + text[b:]
    return text if named else " " * len(text)

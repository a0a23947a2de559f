"""Part-of-speech tagging and sentences: spaCy, a function, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from ..core.errors import ParameterError
from ..core.strings import encodable
from ..text.external import spacy_pipeline

Token = tuple[str, str, int]  # the word, its universal part of speech, the number of its sentence
Tagger = Callable[[str], Iterable[Token]]

WORDS = re.compile(r"\w+(?:-\w+)*|['’]\w+|[^\w\s]")  # "yard's" is "yard" and "'s", as spaCy has it
HYPHENATED = re.compile(r"\w+(?:-\w+)+")
SENTENCE_END = re.compile(r"[.!?]")
UNUSED = ("parser", "ner", "lemmatizer", "textcat", "entity_linker")

FUNCTION_WORDS = frozenset(
    """
    a about above across after again against ain all almost along already also although always am among an and another any
    anyone anything are aren around as at away back be became because become becomes been before behind being below between both
    but by can cannot could couldn did didn do does doesn doing don done down during each either else enough etc even ever every
    everyone everything few for former from further gave get gets give given gives go goes going got had hadn has hasn have
    haven having he hence her here hers herself him himself his how however i if in indeed instead into is isn it its itself
    just keep largely last least less let made make makes making many may me might mine more moreover most mostly much must my
    myself namely near neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once one only
    onto or other others otherwise our ours ourselves out over own part per perhaps put rather really regarding said same say
    says see seem seemed seems several shall she should shouldn show shown shows since so some someone something sometimes still
    such take taken than that the their theirs them themselves then thence there thereby therefore these they this those though
    through throughout thus to together too toward towards under unless until up upon us use used uses using various very via
    was wasn we well went were weren what whatever when whenever where whereas whether which while who whoever whole whom whose
    why will with within without won would wouldn yet you your yours yourself yourselves
    """.split()  # noqa: SIM905
)


def tagged(tagger: str | Tagger, texts: Iterable[str]) -> Iterator[list[Token]]:
    """Yield the tokens of each text, from a function, a spaCy model or, for "stopwords", all tagged "X".

    Raises:
        ParameterError: There is no such model.
        MissingExtraError: spaCy is not installed.
    """
    if callable(tagger):
        return (list(tagger(text)) for text in texts)
    if tagger == "stopwords":
        return (_untagged(text) for text in texts)
    pipeline = spacy_tagger(tagger)
    docs = pipeline.pipe(map(encodable, texts), batch_size=64)
    return (
        [(t.text, t.pos_, n) for n, sentence in enumerate(doc.sents) for t in sentence if not t.is_space] if len(doc) else []
        for doc in docs
    )


@cache
def spacy_tagger(model: str) -> Any:
    """The tagging and sentence-splitting parts of a spaCy pipeline. Hyphenated words stay whole, as in pke."""
    advice = ", or take tagger='stopwords', which needs no model"
    pipeline = spacy_pipeline(model, f"the tagger '{model}'", UNUSED, advice)
    if not {"tagger", "morphologizer"} & set(pipeline.pipe_names):
        raise ParameterError(f"spaCy's model '{model}' tags no parts of speech; take one with a tagger or a morphologizer")
    if "senter" in pipeline.component_names:
        if "senter" not in pipeline.pipe_names:
            pipeline.enable_pipe("senter")
    elif "sentencizer" not in pipeline.pipe_names:
        pipeline.add_pipe("sentencizer", first=True)
    tokenizer: Any = pipeline.tokenizer
    before = tokenizer.token_match
    tokenizer.token_match = lambda word: HYPHENATED.fullmatch(word) or (before(word) if before else None)
    return pipeline


def _untagged(text: str) -> list[Token]:
    tokens: list[Token] = []
    sentence = 0
    for word in WORDS.findall(text):
        tokens.append((word, "X" if word[0].isalnum() else "PUNCT", sentence))
        sentence += SENTENCE_END.fullmatch(word) is not None
    return tokens

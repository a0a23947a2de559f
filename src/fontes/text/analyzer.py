"""Analyzers: declared pipelines from text to index terms, stored in the index they build."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import ParameterError
from ..core.hints import meant, nearest
from . import external
from .composition import composed
from .languages import prepared
from .tokenizers import lowercase
from .vocabulary import Vocabulary

TOKENIZERS = ("standard", "cjk", "letters", "whitespace", "nltk")
MAX_NGRAM = 32
NORMALIZATIONS = ("", "width", "nfkc", "ascii")
VERSION = 2  # version 1 neither composed letters nor knew languages
MAX_CACHE_BYTES = 1 << 26  # size of the cached vocabulary
MAX_CACHED_WORDS = 1 << 18  # words of plain texts whose terms are cached
KINDS = (external.SPACY, external.PLAIN, "simplemma", "snowball")  # analyzers named KIND:DETAIL
MAX_WORD_LENGTH = 255  # characters; tokenizers cut longer words
MAX_PLAIN_LENGTH = 1000  # characters of the longest text whose words are looked up one by one
_LETTER = "A-Za-zÀ-ÖØ-öø-ɏΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ϿЀ-ҁҊ-ԯḀ-ỿ"  # Latin, Greek, Cyrillic
_MIDDLE = rf"(?<=[{_LETTER}])['.:](?=[{_LETTER}])|(?<=[0-9])['.,;](?=[0-9])"  # punctuation inside words in UAX 29
PLAIN = {  # by tokenizer: texts split at blanks alone, other plain texts, and the words of these
    "standard": (
        f"[{_LETTER}0-9 ]*",
        rf"[\t\n\r -^`-~{_LETTER}]*",
        f"[{_LETTER}0-9]+(?:(?:{_MIDDLE})[{_LETTER}0-9]+)*",
    ),
    "letters": (f"[{_LETTER} ]*", rf"[\t\n\r -~{_LETTER}]*", f"[{_LETTER}]+"),
    "whitespace": (r"[\t\n\r -~¡-ᙿᚁ-῿]*", "", ""),
}
Tokenize = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Analyzer:
    """A pipeline from text to terms: tokenizer, normalisation, stop words, stemmer or lemmatizer, n-grams.

    All steps except the tokenizer and word n-grams run once per distinct token. `Analyzer.of` makes the presets.

    Args:
        tokenizer: "standard" (UAX 29 words, as in Lucene), "cjk" (the same, with Chinese, Japanese and Korean as character
            pairs), "letters", "whitespace", "nltk" (word_tokenize), "spacy:MODEL" (lemmas of words and numbers),
            "spacy-plain:MODEL" (the same after lowercasing and replacing all but letters and digits by spaces), or a callable
            from text to tokens.
        possessive: Whether to strip a final 's.
        normalize: "", "width" (full-width and half-width forms replaced), "nfkc" (all compatibility forms replaced), or "ascii"
            ("nfkc" without accents).
        lowercase: Whether to map each character to its simple lower-case form.
        stopwords: Words to drop, in their form at this step; "english" and "czech" name Lucene's lists.
        stemmer: "", "porter" (as in Lucene), a Snowball language such as "german", or "simplemma:LANG" (lemmas).
        words: Least and greatest size of word n-grams: (1, 2) keeps words and adds adjacent pairs, joined by a space.
        chars: None, or least and greatest size of character n-grams, which replace each term; shorter terms stay whole.
        language: "", or the language whose apostrophes and capitals are respected: a stemmer's name, or simplemma's code. All
            apostrophes become '. Elided words (l'homme) are stripped in Catalan, Esperanto, French, Irish and Italian. In
            Turkish, endings after an apostrophe are stripped, and I and İ become ı and i.
        version: 2 composes letters and their marks (Unicode NFC) before tokens are found, except for a callable. Indexes of
            earlier releases keep version 1, which does not, and has no languages.

    Raises:
        ParameterError: A name is unknown, or sizes are invalid.
    """

    tokenizer: str | Tokenize = "standard"
    possessive: bool = False
    normalize: str = ""
    lowercase: bool = True
    stopwords: tuple[str, ...] | str = ()
    stemmer: str = ""
    words: tuple[int, int] = (1, 1)
    chars: tuple[int, int] | None = None
    language: str = ""
    version: int = VERSION

    def __post_init__(self) -> None:
        if isinstance(self.stopwords, str):
            object.__setattr__(self, "stopwords", stopwords(self.stopwords))
        object.__setattr__(self, "stopwords", tuple(sorted(self.stopwords)))
        if isinstance(self.tokenizer, str) and self.tokenizer not in TOKENIZERS and not _of_spacy(self.tokenizer):
            raise ParameterError(f"unknown tokenizer '{self.tokenizer}'; there are {', '.join(TOKENIZERS)} and spacy:MODEL")
        if self.normalize not in NORMALIZATIONS:
            raise ParameterError(f"unknown normalisation '{self.normalize}'; there are width, nfkc and ascii")
        if self.stemmer and self.stemmer not in stemmers() and not self.stemmer.startswith("simplemma:"):
            raise ParameterError(f"unknown stemmer '{self.stemmer}'; there are {', '.join(stemmers())} and simplemma:LANG")
        if self.language and self.language not in stemmers() and not re.fullmatch("[a-z]{2,3}", self.language):
            raise ParameterError(f"unknown language '{self.language}'; there are {', '.join(stemmers())} and codes, such as fr")
        if not 1 <= self.version <= VERSION:
            raise ParameterError(f"unknown version {self.version} of analyzers; there are 1 to {VERSION}, or update Fontes")
        for sizes in (self.words, self.chars):
            if sizes is not None and not 1 <= sizes[0] <= sizes[1] <= MAX_NGRAM:
                bounds = f"1 <= least <= most <= {MAX_NGRAM}"
                raise ParameterError(f"n-grams of sizes {sizes[0]} to {sizes[1]} are invalid; give {bounds}")

    @classmethod
    def of(cls, value: str | Analyzer | Tokenize | Mapping[str, object]) -> Analyzer:
        """Make an analyzer from a name, a callable from text to tokens, or the result of `to_dict`.

        Names are "english" (Anserini's default: standard tokens without 's, lower case, 33 stop words, Porter), a Snowball
        language such as "czech" or "german" (standard tokens, lower case, Snowball's stemmer; "czech" with Lucene's stop
        words; "snowball:english" for Snowball's English), "standard" (no stop words, no stems), "simple" (runs of letters in
        lower case), "whitespace", "cjk", "nltk" (word_tokenize unchanged), "spacy:MODEL", "spacy-plain:MODEL" and
        "simplemma:LANG". Any may be followed by "+lower" for lower case, and by "+words:1-2" and "+chars:3-5" for n-grams.

        Args:
            value: A name, a callable, the result of `to_dict`, or an Analyzer, returned unchanged.

        Raises:
            ParameterError: The value describes no analyzer.
        """
        if isinstance(value, Analyzer):
            return value
        if isinstance(value, Mapping):
            return cls.from_dict(value)
        if callable(value):
            return cls(tokenizer=value, lowercase=False)
        if not isinstance(value, str):
            raise ParameterError(f"an analyzer is a name, an Analyzer or a callable, not {value!r}")
        return _with_additions(value, _preset)

    def __reduce__(self) -> tuple[object, ...]:
        return Analyzer, tuple(getattr(self, f.name) for f in dataclasses.fields(self))

    def __call__(self, text: str) -> list[str]:
        """Return the terms of `text` in order, word n-grams last."""
        words, cache = self.plain_words(text), self._terms_of_words
        if words is None:
            return self.many([text])[0]
        if len(cache) > MAX_CACHED_WORDS:
            cache = vars(self)["_terms_of_words"] = {}
        if new := [word for word in dict.fromkeys(words) if word not in cache]:
            cache.update(zip(new, self.many(new), strict=True))
        return [term for word in words for term in cache[word]]

    def plain_words(self, text: str) -> list[str] | None:
        """Split a plain text into words whose concatenated terms are the terms of the text.

        Returns:
            The words; None if only the tokenizer can find them.
        """
        patterns = self._plain_patterns
        if patterns is None or len(text) > MAX_PLAIN_LENGTH:
            return None
        splits_at_blanks, is_plain, find_words = patterns
        words = text.split() if splits_at_blanks(text) else find_words(text) if is_plain(text) else None
        if words is None or len(text) <= MAX_WORD_LENGTH or all(len(word) <= MAX_WORD_LENGTH for word in words):
            return words
        return None

    def many(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the terms of each text."""
        vocabulary = self._cached_vocabulary()
        numbers, bounds = vocabulary.encode(texts)
        table = vocabulary.terms
        terms = [table[n] for n in numbers.tolist()]
        edges = bounds.tolist()
        return [terms[a:b] for a, b in pairwise(edges)]

    def spans(self, text: str) -> list[tuple[int, int, tuple[str, ...]]]:
        """Return each token of `text` as (first character, end, its terms), without word n-grams."""
        return (self._cached_vocabulary() if self.words == (1, 1) else Vocabulary(replace(self, words=(1, 1)))).spans(text)

    def composed(self, text: str) -> str:
        """Return the text in the form in which tokens are found: in Unicode's NFC, if letters are composed."""
        return composed(text) if self.composes else text

    @property
    def composes(self) -> bool:
        """Whether letters and their marks are composed before tokens are found."""
        return self.version > 1 and isinstance(self.tokenizer, str)

    def as_version(self, version: int) -> Analyzer:
        """Return the analyzer as it was in a version; see `version`."""
        return replace(self, language=self.language if version > 1 else "", version=version)

    def vocabulary(self) -> Vocabulary:
        """Return an empty vocabulary for this analyzer."""
        return Vocabulary(self)

    @cached_property
    def _plain_patterns(self) -> tuple[Callable[[str], object], Callable[[str], object], Callable[[str], list[str]]] | None:
        """Three functions: whether a text splits at blanks alone, whether it is plain, and its words."""
        if not isinstance(self.tokenizer, str) or self.tokenizer not in PLAIN or self.words != (1, 1):
            return None
        blank_separated, plain, word = map(re.compile, PLAIN[self.tokenizer])
        return blank_separated.fullmatch, plain.fullmatch, word.findall

    @cached_property
    def _terms_of_words(self) -> dict[str, list[str]]:
        """Cache of the terms of words in plain texts; a lookup takes a tenth of the time of an analysis."""
        return {}

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return self.vocabulary()

    def _cached_vocabulary(self) -> Vocabulary:
        """Return the vocabulary of earlier texts, or an empty one in place of a large one; two threads may create two."""
        vocabulary = self._vocabulary
        if vocabulary.nbytes > MAX_CACHE_BYTES:
            vocabulary = vars(self)["_vocabulary"] = self.vocabulary()
        return vocabulary

    def terms(self, tokens: list[str]) -> list[str]:
        """Return the term of each token before n-grams, "" for a dropped token."""
        if self.possessive:
            tokens = [t[:-2] if len(t) > 1 and t[-1] in "sS" and t[-2] in "'’＇" else t for t in tokens]
        if self.language:
            tokens = [prepared(t, self.language, self.lowercase) for t in tokens]
        if self.normalize:
            tokens = [t if t.isascii() else _normalized(t, self.normalize) for t in tokens]
        if self.lowercase:
            simple = lowercase()
            tokens = [t.lower() if t.isascii() else t.translate(simple) for t in tokens]
        if self.stopwords:
            dropped = frozenset(self.stopwords)
            tokens = ["" if t in dropped else t for t in tokens]
        if self.stemmer:
            stem = external.stemmer(self.stemmer)
            stems = iter(stem([t for t in tokens if t]))
            tokens = [next(stems) if t else "" for t in tokens]
        return tokens

    def to_dict(self) -> dict[str, object]:
        """Return the pipeline as JSON values, with library versions; a callable is stored by name."""
        pipeline = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if callable(self.tokenizer):
            pipeline["tokenizer"] = external.describe_tokenizer(self.tokenizer)
        pipeline["stopwords"] = list(self.stopwords)
        pipeline["words"] = list(self.words)
        pipeline["chars"] = list(self.chars) if self.chars else None
        if self.version == 1:
            del pipeline["language"], pipeline["version"]
        from importlib.metadata import version

        return {**pipeline, "libraries": {name: version(name) for name in self._libraries()}}

    @classmethod
    def from_dict(cls, pipeline: Mapping[str, Any]) -> Analyzer:
        """Restore an analyzer from `to_dict`, with built-in tokenizers and those of extras.

        Nothing named by the description is imported. If the tokenizer was a callable, or a model that is not installed, the
        analyzer can be inspected, compared and stored, but raises ParameterError with advice when used.

        Raises:
            ParameterError: The description is malformed.
        """
        values = {"language": "", "version": 1, **{key: value for key, value in pipeline.items() if key != "libraries"}}
        _check_description(values)
        for key in ("stopwords", "words", "chars"):
            values[key] = tuple(values[key]) if values[key] is not None else None
        values["tokenizer"] = external.restore_tokenizer(values["tokenizer"])
        return cls(**values)

    def with_tokenizer(self, tokenizer: Tokenize) -> Analyzer:
        """Return this analyzer with the callable that its description names; ParameterError if it names another."""
        if not (
            callable(self.tokenizer) and external.describe_tokenizer(tokenizer) == external.describe_tokenizer(self.tokenizer)
        ):
            raise ParameterError(f"it was not made with {external.name_of(tokenizer)}")
        return replace(self, tokenizer=tokenizer)

    def _libraries(self) -> list[str]:
        names = []
        tokenizer = self.tokenizer if isinstance(self.tokenizer, str) else ""
        if tokenizer == "nltk":
            names.append(tokenizer)
        elif _of_spacy(tokenizer):
            names.append("spacy")
        if self.stemmer.startswith("simplemma:"):
            names.append("simplemma")
        elif self.stemmer not in ("", "porter"):
            names.append("PyStemmer")
        return names


def _check_description(values: Mapping[str, object]) -> None:
    """Raise ParameterError unless a description has the fields of an analyzer, each with a value of its type."""
    names = [field.name for field in dataclasses.fields(Analyzer)]
    for name, value in values.items():
        if name not in names:
            raise ParameterError(f"the description of an analyzer has an unknown field {name!r}; {nearest(str(name), names)}")
        form = _FORMS[name]
        if not form.accepts(value):
            raise ParameterError(f"the description of an analyzer is damaged: {name!r} is {form.words}, not {value!r:.100}")
    for name in names:
        if name not in values:
            raise ParameterError(f"the description of an analyzer has no field {name!r}; {name!r} is {_FORMS[name].words}")


class _Form(NamedTuple):
    """The values that a field of a description takes."""

    words: str
    accepts: Callable[[object], bool]


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and [type(number) for number in value] == [int, int]


_FLAG = _Form("true or false", lambda value: type(value) is bool)
_TEXT = _Form("a string", lambda value: type(value) is str)
_FORMS = {
    "tokenizer": _Form(
        'a name or {"callable": name}',
        lambda value: isinstance(value.get("callable") if isinstance(value, Mapping) else value, str),
    ),
    "possessive": _FLAG,
    "normalize": _TEXT,
    "lowercase": _FLAG,
    "stopwords": _Form(
        "a list of words", lambda value: isinstance(value, list | tuple) and all(type(word) is str for word in value)
    ),
    "stemmer": _TEXT,
    "words": _Form("two whole numbers", _is_pair),
    "chars": _Form("two whole numbers or null", lambda value: value is None or _is_pair(value)),
    "language": _TEXT,
    "version": _Form("a whole number", lambda value: type(value) is int),
}


def stopwords(name: str) -> tuple[str, ...]:
    """Return Lucene's stop word list "english" (33 words) or "czech" (171).

    Raises:
        ParameterError: The name is unknown.
    """
    path = Path(__file__).with_name("stopwords") / f"{name}.txt"
    if not path.is_file():
        raise ParameterError(f"there is no stop word list '{name}'; there are english and czech, or give the words")
    return tuple(path.read_text(encoding="utf-8").split())


def stemmers() -> list[str]:
    """Names of the stemmers: Porter's as in Lucene, and Snowball's."""
    return external.stemmers()


def typed_analyzer(value: str) -> Analyzer | Tokenize:
    """Make an analyzer from a name or the user's function, "module:function".

    The function maps a text to tokens. Its module is imported from Python's path or the current folder. `Analyzer.of` refuses
    such names, so that no file can name code to run.

    Args:
        value: A name as for `Analyzer.of`, or "module:function"; either may end in "+words:1-2" and "+chars:3-5".

    Raises:
        ParameterError: The value describes no analyzer, or the function cannot be imported.
    """
    if _is_function(value):
        return external.import_typed(value)
    return _with_additions(
        value, lambda name: Analyzer.of(external.import_typed(name)) if _is_function(name) else _preset(name)
    )


def _with_additions(value: str, make: Callable[[str], Analyzer]) -> Analyzer:
    """Make the analyzer named before the first "+", with the additions after it (+lower, n-grams)."""
    name, *additions = value.split("+")
    analyzer = make(name)
    for addition in additions:
        if addition == "lower":
            analyzer = replace(analyzer, lowercase=True)
            continue
        match = re.fullmatch(r"(words|chars):([0-9]{1,9})-([0-9]{1,9})", addition)
        if not match:
            raise ParameterError(f"analyzer '{value}': '+{addition}' is none of +lower, +words:1-2 and +chars:3-5")
        sizes = int(match[2]), int(match[3])
        analyzer = replace(analyzer, words=sizes) if match[1] == "words" else replace(analyzer, chars=sizes)
    return analyzer


def _is_function(name: str) -> bool:
    """Whether a name is module:function, and not an analyzer's name such as "spacy:MODEL"."""
    return re.fullmatch(r"[\w.]+:[\w.]+", name) is not None and name.partition(":")[0] not in KINDS


def _preset(name: str) -> Analyzer:
    kind, _, detail = name.partition(":")
    match kind:
        case "english":
            return Analyzer(possessive=True, stopwords="english", stemmer="porter")
        case "czech":
            return Analyzer(stopwords="czech", stemmer="czech", language="czech")
        case "standard":
            return Analyzer()
        case "simple":
            return Analyzer(tokenizer="letters")
        case "whitespace":
            return Analyzer(tokenizer="whitespace", lowercase=False)
        case "cjk":
            return Analyzer(tokenizer="cjk", normalize="width")
        case "nltk":
            return Analyzer(tokenizer="nltk", lowercase=False)
        case external.SPACY | external.PLAIN if detail:
            return Analyzer(tokenizer=name)
        case "simplemma" if detail:
            return Analyzer(stemmer=name, language=detail)
        case "snowball" if detail in stemmers():
            return Analyzer(stemmer=detail, language="" if detail == "porter" else detail)
    if name in stemmers() and name != "porter":
        return Analyzer(stemmer=name, language=name)
    languages = [language for language in stemmers() if language != "porter"]
    names = ("english", "standard", "simple", "whitespace", "cjk", "nltk", "spacy:MODEL", "simplemma:LANG")
    close = meant(name, (*names, *languages))
    raise ParameterError(
        f"unknown analyzer '{name}'; {f'did you mean {close[0]}? There' if close else 'there'} are {', '.join(names)} and the "
        f"Snowball languages {', '.join(languages)}"
        + ("; a function of your own is passed from Python, or by --analyzer" if _is_function(name) else "")
    )


def _of_spacy(tokenizer: str) -> bool:
    return tokenizer.partition(":")[0] in (external.SPACY, external.PLAIN) and ":" in tokenizer


def _normalized(token: str, form: str) -> str:
    if form == "width":
        return re.sub("[\uff00-\uffef]+", lambda wide: unicodedata.normalize("NFKC", wide[0]), token)
    if form == "nfkc":
        return unicodedata.normalize("NFKC", token)
    return "".join(c for c in unicodedata.normalize("NFKD", token) if not unicodedata.combining(c))

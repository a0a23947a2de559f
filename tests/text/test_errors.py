"""What errors of analyzers say: the name, part or value at fault, and what there is."""

import builtins
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.each import each
from support.errors import check_error

from fontes.core import MissingExtraError, ParameterError
from fontes.text import Analyzer, external, stopwords


def split_at_commas(text: str) -> list[str]:
    return text.split(",")


def described(name: object = "english", **changes: Any) -> dict[str, Any]:
    """The description of an analyzer, as it is read from a file."""
    return json.loads(json.dumps({**Analyzer.of(name).to_dict(), **changes}))  # type: ignore[arg-type]


@each(
    ("call", "names", "remedy"),
    [
        (lambda: Analyzer.of("klingon"), "analyzer 'klingon'", "english"),
        (lambda: Analyzer.of(""), "analyzer ''", ""),
        (lambda: Analyzer.of("porter"), "analyzer 'porter'", ""),
        (lambda: Analyzer.of("spacy:"), "analyzer 'spacy:'", ""),
        (lambda: Analyzer.of("spacy-plain"), "analyzer 'spacy-plain'", ""),
        (lambda: Analyzer.of("simplemma"), "analyzer 'simplemma'", ""),
        (lambda: Analyzer.of("snowball:klingon"), "analyzer 'snowball:klingon'", ""),
        (lambda: Analyzer.of("English"), "analyzer 'English'", ""),
        (lambda: Analyzer.of("english+words"), "'+words'", ""),
        (lambda: Analyzer.of("english+words:2"), "'+words:2'", ""),
        (lambda: Analyzer.of("english+letters:1-2"), "'+letters:1-2'", ""),
        (lambda: Analyzer.of("english+"), "'+'", ""),
        (lambda: Analyzer.of("english+words:2-1"), "2 to 1", ""),
        (lambda: Analyzer.of("english+chars:0-2"), "0 to 2", ""),
        (lambda: Analyzer(tokenizer="klingon"), "tokenizer 'klingon'", "standard"),
        (lambda: Analyzer(stemmer="klingon"), "stemmer 'klingon'", "there are"),
        (lambda: Analyzer(normalize="nfd"), "normalisation 'nfd'", "there are"),
        (lambda: Analyzer(stopwords="klingon"), "stop word list 'klingon'", ""),
        (lambda: Analyzer(words=(0, 1)), "0 to 1", ""),
        (lambda: Analyzer(chars=(3, 2)), "3 to 2", ""),
        (lambda: Analyzer(language="klingon"), "language 'klingon'", ""),
        (lambda: stopwords("latin"), "stop word list 'latin'", ""),
        (lambda: Analyzer.of(None), "None", ""),
        (lambda: Analyzer.of(5), "5", ""),
        (lambda: Analyzer.of({}), "no field 'tokenizer'", ""),
        (lambda: Analyzer.of({"tokenizer": "standard"}), "no field 'possessive'", "true or false"),
        (lambda: Analyzer.of(described(colour="red")), "unknown field 'colour'", "tokenizer, possessive"),
        (lambda: Analyzer.of(described(stopword=["a"])), "unknown field 'stopword'", "did you mean 'stopwords'?"),
        (lambda: Analyzer.of(described() | {5: ""}), "unknown field 5", "tokenizer, possessive"),
        (lambda: Analyzer.of(described("french", version=3)), "version 3", ""),
        *(
            (
                lambda name=name, value=value: Analyzer.from_dict(described(**{name: value})),
                f"'{name}' is … not {value!r}",
                form,
            )
            for values, form in (
                ({"tokenizer": ["a"]}, 'a name or {"callable": name}'),
                ({"tokenizer": {}}, 'a name or {"callable": name}'),
                ({"possessive": 1, "lowercase": None}, "true or false"),
                ({"normalize": False, "stemmer": 1, "language": None}, "a string"),
                ({"stopwords": "the"}, "a list of words"),
                ({"stopwords": ["the", 1]}, "a list of words"),
                ({"stopwords": None}, "a list of words"),
                ({"words": [1]}, "two whole numbers"),
                ({"words": None}, "two whole numbers"),
                ({"words": [True, 2]}, "two whole numbers"),
                ({"chars": 3}, "two whole numbers or null"),
                ({"version": 2.0}, "a whole number"),
            )
            for name, value in values.items()
        ),
        (
            lambda: Analyzer.from_dict(described(split_at_commas))("a,b"),
            "split_at_commas",
            "analyzer=FUNCTION … --analyzer MOD",
        ),
        (lambda: Analyzer.from_dict(described(split_at_commas)).with_tokenizer(str.split), "str.split", "made with"),
        (lambda: Analyzer.of(lambda text: None)("a b"), "None", ""),  # type: ignore[arg-type,return-value]
        (lambda: Analyzer.of(lambda text: [1, 2])("a b"), "1", ""),  # type: ignore[arg-type,list-item,return-value]
        (lambda: Analyzer.of(lambda text: [None])("a b"), "None", ""),  # type: ignore[arg-type,list-item,return-value]
    ],
)
def test_an_analyzer_names_what_is_at_fault(call: Callable[[], object], names: str, remedy: str) -> None:
    check_error(call, ParameterError, names, remedy)


def test_a_language_that_simplemma_does_not_have_is_named() -> None:
    pytest.importorskip("simplemma")
    check_error(lambda: Analyzer.of("simplemma:xx")("a"), ParameterError, "simplemma … 'xx'")


@each(("analyzer", "library"), [("spacy:en_core_web_sm", "spacy"), ("nltk", "nltk"), ("simplemma:cs", "simplemma")])
def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, analyzer: str, library: str) -> None:
    importing = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(f"No module named '{name}'")
        return importing(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    external.tokenizer.cache_clear()
    external.stemmer.cache_clear()
    remedy = f"{library}, which is not installed: pip install 'fontes[{library}]'"
    check_error(lambda: Analyzer.of(analyzer)("a word"), MissingExtraError, analyzer, remedy)

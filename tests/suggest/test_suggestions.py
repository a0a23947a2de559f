"""Completions and corrections: words of the documents, of any analyzer, and of an index that lives."""

from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import ParameterError
from fontes.suggest import surface_forms
from fontes.suggest.suggestions import Suggestions

TEXTS = [
    "The hot springs of Iceland, and a spring that never freezes",
    "Geysers are springs: a geyser is a spring that throws water",
    "A desert is dry; its springs are rare",
    "Limestone dissolves, and karst forms; Karst has caves",
    "Sprinters sprint in spring",
]


def built(path: Path, texts: list[str] = TEXTS, analyzer: str = "english") -> ft.Index:
    docs = [{"id": f"d{i}", "title": "", "text": text} for i, text in enumerate(texts)]
    return ft.Index.build(docs, path / "springs.index", analyzer=analyzer)


@pytest.fixture(scope="module")
def springs(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return built(tmp_path_factory.mktemp("springs"))


def test_completions_are_whole_words_the_most_frequent_first_and_one_of_each_term(springs: ft.Index) -> None:
    assert springs.suggest("spr").completions == ("spring", "sprint", "sprinters")


def test_the_words_before_the_last_one_stay_as_they_were_typed(springs: ft.Index) -> None:
    assert springs.suggest("Hot  sprin", k=1).completions == ("Hot  spring",)


def test_a_completion_has_the_case_that_was_typed(springs: ft.Index) -> None:
    assert springs.suggest("Gey").completions == ("Geyser",)
    assert springs.suggest("GEY").completions == ("GEYSER",)


def test_a_finished_word_is_not_completed(springs: ft.Index) -> None:
    assert springs.suggest("spr ").completions == ()
    assert springs.suggest("").completions == ()
    assert springs.suggest("karst").completions == ()


def test_a_beginning_with_an_edit_is_completed_where_no_word_begins_so(springs: ft.Index) -> None:
    assert "limestone" in springs.suggest("liemst").completions


def test_unknown_words_are_corrected_where_they_stand(springs: ft.Index) -> None:
    suggestions = springs.suggest("the Geysre, of limestoen caves")
    assert suggestions.correction == "the Geyser, of limestone caves"


def test_known_words_and_stop_words_are_not_corrected(springs: ft.Index) -> None:
    assert springs.suggest("the spring in the deserts").correction is None
    assert springs.suggest("a 1234 xyzzyx").correction is None


def test_a_word_is_known_by_its_stem(springs: ft.Index) -> None:
    assert springs.suggest("freezing").correction is None


def test_a_beginning_is_no_misspelling_while_it_is_typed(springs: ft.Index) -> None:
    assert springs.suggest("spri").correction is None
    assert springs.suggest("kasrt").correction == "karst"


def test_a_rare_word_yields_to_a_neighbour_that_is_far_more_frequent(tmp_path: Path) -> None:
    texts = ["limestone " * 600, "limestoen"]
    assert built(tmp_path, texts).suggest("limestoen").correction == "limestone"
    assert built(tmp_path / "2", ["limestone " * 400, "limestoen"]).suggest("limestoen").correction is None


@each("analyzer", ["standard", "simple", "whitespace", "english+words:1-2", "english+chars:3-4", "cjk", "german"])
def test_every_analyzer_has_words_to_suggest(tmp_path: Path, analyzer: str) -> None:
    beginning, word = ("Limest", "Limestone") if analyzer == "whitespace" else ("limest", "limestone")
    assert built(tmp_path, analyzer=analyzer).suggest(beginning).completions == (word,)
    assert built(tmp_path / "2", analyzer=analyzer).suggest("kasrt").correction == "karst"


def test_additions_are_suggested_and_what_was_deleted_is_not(tmp_path: Path) -> None:
    index = built(tmp_path)
    assert index.suggest("vol").completions == ()
    index.add([{"id": "v", "text": "volcanoes and a volcano"}])
    assert index.suggest("vol").completions == ("volcano",)
    assert index.suggest("vlocano").correction == "volcano"
    index.delete("v")
    assert index.suggest("vol").completions == ()
    assert index.suggest("vlocano").correction is None


def test_any_history_suggests_the_same(tmp_path: Path) -> None:
    whole, parts = built(tmp_path), built(tmp_path / "parts", TEXTS[:2])
    parts.add([{"id": f"d{i}", "text": text} for i, text in enumerate(TEXTS) if i > 1])
    for query in ("s", "spr", "gesyer and limestoen"):
        assert parts.suggest(query) == whole.suggest(query)


def test_fields_of_metadata_are_read_where_they_are_indexed(tmp_path: Path) -> None:
    docs = [{"id": "d", "text": "water", "place": "Haukadalur valleys"}]
    index = ft.Index.build(docs, tmp_path / "x.index", fields=["text", "place"])
    assert index.suggest("hauk").completions == ("haukadalur",)
    assert ft.Index.build(docs, tmp_path / "y.index", fields=["text"]).suggest("hauk").completions == ()


def test_an_index_without_texts_suggests_its_terms(springs: ft.Index, tmp_path: Path) -> None:
    springs.export(tmp_path / "springs.ciff")
    index = ft.Index.build(tmp_path / "springs.ciff", tmp_path / "ciff.index", analyzer="english")
    assert index.suggest("limest").completions == ("limeston",)


def test_words_of_a_large_segment_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surface_forms, "MIN_CACHED_BYTES", 1)
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    expected = built(tmp_path).suggest("spr")
    (entry,) = (tmp_path / "cache" / "words").iterdir()

    def refused(*arguments: object) -> None:
        raise AssertionError("texts are read again")

    with monkeypatch.context() as patch:
        patch.setattr(surface_forms, "_count_forms", refused)
        assert ft.Index.open(tmp_path / "springs.index").suggest("spr") == expected
    (entry / "counts.npy").write_bytes(b"damaged")
    assert ft.Index.open(tmp_path / "springs.index").suggest("spr") == expected


def test_of_long_texts_every_second_block_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"limestone and karst {i} " + "water " * 400 for i in range(200)]
    index = built(tmp_path, texts)
    monkeypatch.setattr(surface_forms, "SAMPLE", index.state.leaves[0].segment.texts.size // 2)
    assert index.suggest("limest").completions == ("limestone",)


def test_k_must_be_a_number_of_completions(springs: ft.Index) -> None:
    assert len(springs.suggest("s", k=2).completions) == 2
    with pytest.raises(ParameterError, match="k must be a whole number"):
        springs.suggest("s", k=0)


def test_any_text_can_be_typed(springs: ft.Index) -> None:
    for query in ("\ud800", "spr\ud800", "x" * 10_000, "😀", '"title:', "+-", "a " * 3000 + "kasrt"):
        springs.suggest(query)


def test_a_word_is_completed_by_what_stands_in_documents_with_the_others(tmp_path: Path) -> None:
    texts = ["coach of uruguay", "coach of uruguay", "urus and lamborghini", "urus", "urus", "uruk and a caoch"]
    index = built(tmp_path, texts)
    assert index.suggest("uru").completions == ("urus", "uruguay", "uruk")
    assert index.suggest("coach uru").completions == ("coach uruguay",)
    assert index.suggest("lamborgini uru").completions == ("lamborghini urus",), "the words before it are corrected"
    assert index.suggest("coach lamborghini uru").completions == ("coach lamborghini urus",), "with the rarest of the others"
    assert index.suggest("unheard uru").completions == ("unheard urus", "unheard uruguay", "unheard uruk")
    index.delete("d2")
    assert index.suggest("lamborghini uru").completions == ("lamborghini urus", "lamborghini uruguay", "lamborghini uruk")
    index.add([{"id": "new", "text": "coach of uruk"}])
    assert index.suggest("coach uru").completions == ("coach uruguay", "coach uruk")


def test_completions_find_documents_that_pass_a_filter(tmp_path: Path) -> None:
    docs = [{"id": f"d{i}", "text": text, "year": 2000 + i} for i, text in enumerate(["urus", "urus", "uruguay", "coach uruk"])]
    index = ft.Index.build(docs, tmp_path / "x.index")
    assert index.suggest("uru", where="year > 2001").completions == ("uruguay", "uruk")
    assert index.suggest("coach uru", where="year < 2001").completions == ("coach urus",)
    assert index.suggest("uru", where="year > 2100").completions == ()
    index.delete("d2")
    assert index.suggest("uru", where="year > 2001").completions == ("uruk",)
    with pytest.raises(ParameterError, match="colour"):
        index.suggest("uru", where="colour == 1")


@pytest.mark.parametrize("analyzer", ["english", "english+chars:2-4"])
def test_a_completion_finds_a_document_also_with_n_grams(tmp_path: Path, analyzer: str) -> None:
    docs = [{"id": "a", "text": "hydrothermal vents", "year": 1}, {"id": "b", "text": "hydrology of water", "year": 2}]
    index = ft.Index.build(docs, tmp_path / "x.index", analyzer=analyzer)
    assert index.suggest("ve").completions == ("vents",)
    assert set(index.suggest("hyd").completions) == {"hydrology", "hydrothermal"}
    assert index.suggest("hyd", where="year == 2").completions == ("hydrology",)
    assert index.suggest("ve", where="year == 2").completions == ()
    index.delete("a")
    assert index.suggest("hyd").completions == ("hydrology",)
    assert index.suggest("vent") == index.suggest("vnets of") == Suggestions((), None)

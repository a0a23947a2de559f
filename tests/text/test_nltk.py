"""The analyzer nltk is NLTK's own word_tokenize."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import json
from itertools import islice
from pathlib import Path

import pytest
from conftest import Fontes
from support.punkt import forget, punkt

import fontes as ft
from fontes.core import ParameterError
from fontes.text import Analyzer

TEXT = "Dr. Hall studied the spread. Masks weren't worn, e.g. in \"Ward 3\". It's the U.S. rule."


def test_sentences_are_found_first_so_that_their_full_stops_are_tokens(punkt: Path) -> None:
    assert Analyzer.of("nltk")("It stops the spread. Masks help.") == [
        "It",
        "stops",
        "the",
        "spread",
        ".",
        "Masks",
        "help",
        ".",
    ]


def test_its_tokens_are_those_of_word_tokenize_case_and_all(punkt: Path) -> None:
    tokens = Analyzer.of("nltk")(TEXT)
    assert tokens[:8] == ["Dr.", "Hall", "studied", "the", "spread", ".", "Masks", "were"]
    from nltk.tokenize import word_tokenize

    assert tokens == word_tokenize(TEXT)


def test_lower_case_is_an_option(punkt: Path) -> None:
    lowered = [token.lower() for token in Analyzer.of("nltk")(TEXT)]
    assert Analyzer.of("nltk+lower")(TEXT) == Analyzer(tokenizer="nltk", lowercase=True)(TEXT) == lowered
    assert Analyzer.of("nltk+lower+words:1-2")("Masks help") == ["masks", "help", "masks help"]
    assert Analyzer.of("whitespace+lower")("The SPREAD") == ["the", "spread"]


def test_what_the_punkt_data_say_counts(punkt: Path) -> None:
    assert Analyzer.of("nltk")("They met Lt. Brown.") == ["They", "met", "Lt", ".", "Brown", "."]
    abbreviations = punkt / "tokenizers" / "punkt_tab" / "english" / "abbrev_types.txt"
    abbreviations.write_text(abbreviations.read_text() + "\nlt")
    forget()
    assert Analyzer.of("nltk")("They met Lt. Brown.") == ["They", "met", "Lt.", "Brown", "."]


@pytest.mark.parametrize("collection", ["scifact", "checkthat20_task2", "cranfield"])
def test_real_texts_have_the_tokens_of_word_tokenize(punkt: Path, shared: Path, collection: str) -> None:
    from nltk.tokenize import word_tokenize

    texts = [doc.text for doc in islice(ft.read_corpus(shared / collection / "corpus.jsonl"), 150)]
    texts += [topic.text for topic in ft.read_topics(shared / collection / "queries.jsonl").values()][:100]
    analyzer = Analyzer.of("nltk")
    expected = list(map(word_tokenize, texts))
    assert analyzer.many(texts) == expected


def test_without_the_punkt_data_the_error_names_the_download(punkt: Path, tmp_path: Path, fontes: Fontes) -> None:
    (punkt / "tokenizers").rename(tmp_path / "elsewhere")
    forget()
    with pytest.raises(ParameterError, match=r"needs NLTK's Punkt data, .*: python -m nltk\.downloader punkt_tab$"):
        Analyzer.of("nltk")("a word")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"_id": "1", "text": "The spread. Masks help."}) + "\n")
    code, _, err = fontes("index", corpus, "-o", tmp_path / "x", "--analyzer", "nltk")
    assert (code, err.count("\n"), "python -m nltk.downloader punkt_tab" in err) == (1, 1, True), err
    assert not (tmp_path / "x").exists()


def test_an_index_stores_the_analyzer_and_marks_whole_tokens(punkt: Path, tmp_path: Path) -> None:
    ft.Index.build([("1", "It stops the spread. Masks help.")], tmp_path / "x", analyzer="nltk+lower")
    index = ft.Index.open(tmp_path / "x")
    assert index.analyzer == Analyzer(tokenizer="nltk")
    assert index.bm25().search("Spread", k=1).ids == ["1"]
    spans = index.analyzer.spans("the spread. Masks")
    assert [(start, end) for start, end, _ in spans] == [(0, 3), (4, 10), (10, 11), (12, 17)]

"""Tokens and stems are those of Lucene and Snowball: expected values that other programs gave, with letters composed."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from fontes.text import Analyzer, stopwords
from fontes.text.composition import composed

HERE = Path(__file__).parent / "data"
CASES = json.loads((HERE / "lucene_cases.json").read_text(encoding="utf-8"))


def unequal(analyzer: Analyzer, key: str) -> list[str]:
    terms = analyzer.many([case["text"] for case in CASES])
    return [
        f"{case['text']!a}: {found!a} instead of {case[key]!a}"
        for case, found in zip(CASES, terms, strict=True)
        if found != [composed(term) for term in case[key]]
    ]


def test_the_excerpts_of_lucenes_output_are_there():
    assert len(CASES) > 150
    assert len((HERE / "porter.tsv").read_text(encoding="utf-8").splitlines()) > 250


def test_standard_finds_the_tokens_of_lucenes_standard_tokenizer():
    analyzer = Analyzer(lowercase=False)
    wrong = []
    for case in CASES:
        found = [[*terms, start, end] for start, end, terms in analyzer.spans(case["text"])]
        if found != [[composed(term), start, end] for term, start, end in case["standard"]]:
            wrong.append(f"{case['text']!a}: {found!a} instead of {case['standard']!a}")
    assert wrong == []


def test_english_gives_the_terms_of_lucenes_english_analyzer():
    assert unequal(Analyzer.of("english"), "english") == []


def test_porter_gives_the_stems_of_lucene():
    pairs = [line.split("\t") for line in (HERE / "porter.tsv").read_text(encoding="utf-8").splitlines()]
    stems = Analyzer(stemmer="porter").terms([word for word, _ in pairs])
    assert [(word, stem) for (word, _), stem in zip(pairs, stems, strict=True)] == [(word, stem) for word, stem in pairs]


def test_porter_leaves_short_words_and_other_scripts_alone():
    for word in ["a", "is", "s", "ed", "by", "", "'s", "žluťoučký", "日本", "ab\ncies", "\n", "a\n"]:
        assert Analyzer(stemmer="porter").terms([word]) == [word]


def test_a_token_is_cut_after_255_utf16_units():
    for text, sizes in [
        ("a" * 255, [255]),
        ("a" * 256, [255, 1]),
        ("a" * 511, [255, 255, 1]),
        ("a" * 254 + "'s", [254, 1]),
        ("𝒜" * 128, [127, 1]),  # one character of two UTF-16 units does not fit into the 255th
        ("a" + "𝒜" * 127, [128]),
        ("1" * 300, [255, 45]),
        ("カ" * 300, [255, 45]),
        ("_" * 300, []),
    ]:
        assert [end - start for start, end, _ in Analyzer.of("standard").spans(text)] == sizes


def test_the_marks_after_a_chinese_character_stay_with_it_in_cjk():
    assert Analyzer.of("cjk")("中\u0301文") == ["中\u0301文"]
    assert Analyzer.of("cjk")("か\u309aき") == ["か\u309aき"]


@pytest.mark.parametrize(("name", "count"), [("english", 33), ("czech", 171)])
def test_the_stop_word_lists_are_as_long_as_lucenes(name, count):
    words = stopwords(name)
    assert len(words) == len(set(words)) == count


@pytest.mark.parametrize("language", ["czech", "english"])
def test_snowball_stems_are_those_of_its_own_vocabulary(shared, language):
    folder = shared / "stemmer_vocab" / language
    words = (folder / "voc.txt").read_text(encoding="utf-8").split("\n")[:-1]
    expected = (folder / "output.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(words) > 40_000
    stems = Analyzer(stemmer=language).terms(words)
    different = [(w, s, e) for w, s, e in zip(words, stems, expected, strict=True) if s != e]
    assert different == []


def test_pairs_of_czech_words_and_lucene_stop_words_go_together():
    analyzer = Analyzer.of("czech")
    terms = analyzer("Příliš žluťoučký kůň a pes nebo kočka, který byl doma")
    assert "a" not in terms
    assert "nebo" not in terms
    assert terms[:3] == Analyzer(stemmer="czech").terms(["příliš", "žluťoučký", "kůň"])


def test_tokens_follow_each_other_without_overlap():
    analyzer = Analyzer.of("standard")
    for case in CASES:
        places = analyzer.spans(case["text"])
        assert all(a_end <= b_start for (_, a_end, _), (b_start, _, _) in pairwise(places))

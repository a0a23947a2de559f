"""Synonyms and one-way rewrites from a file."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.each import each
from support.small_collections import PROPERTY

from fontes.core import InputError, Topic, Topics
from fontes.core.expression import pipeline
from fontes.core.query import AnyOf, Clause, Group, Phrase, Term
from fontes.index import Index

DOCS = [
    ("a", "tv and radio"),
    ("b", "television, a tv, the television"),
    ("c", "telly on the wall in new york"),
    ("d", "york is new to radio"),
    ("e", "big apple radio"),
    ("f", "wall clock"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(
        DOCS, tmp_path_factory.mktemp("synonyms") / "x.index", analyzer="standard", positions=True, separate=True
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "synonyms.txt"
    path.write_text(
        "# of sets\ntv, television\n\ntelly => tv\nnew york, big apple, nyc\nnew york city => nyc\n", encoding="utf-8"
    )
    return path


def clauses(index: Index, file: Path, text: str, **parameters: Any) -> tuple[Clause, ...] | None:
    topic = index.synonyms(file, **parameters)([text])["1"]
    assert topic.text == text
    if topic.query is None:
        return None
    assert not topic.query.must
    return topic.query.should


def test_equivalent_words_are_one_clause_and_others_stay(index: Index, file: Path) -> None:
    tv = AnyOf(("television", "tv"))
    assert clauses(index, file, "TV radio") == (tv, Term("radio"))
    assert clauses(index, file, "radio television tv") == (Term("radio"), tv, tv)
    assert clauses(index, file, "telly") == (Term("tv"),), "what a rewrite gives is not looked up again"
    assert clauses(index, file, "radio wall") is None


def test_entries_of_several_words_are_phrases_beside_the_typed_words(index: Index, file: Path) -> None:
    york, apple = Phrase(("new", "york"), (0, 1)), Phrase(("big", "apple"), (0, 1))
    any_of = AnyOf(("nyc",), phrases=(york, apple))
    assert clauses(index, file, "nyc") == (any_of,)
    assert clauses(index, file, "new york tv") == (Term("new"), Term("york"), any_of, AnyOf(("television", "tv")))
    assert clauses(index, file, "new york city tv")[:1] == (Term("nyc"),), "the longest entry is taken"  # type: ignore[index]
    assert clauses(index, file, "new wall york") is None


def test_added_synonyms_of_another_weight_are_a_clause_of_their_own(index: Index, file: Path) -> None:
    assert clauses(index, file, "tv", weight=0.5) == (Group(should=(Term("tv"), Term("television", weight=0.5))),)
    assert clauses(index, file, "tv radio", weight=0) is None
    assert clauses(index, file, "telly", weight=0.5) == (Term("tv"),)


def test_synonyms_score_as_one_term(index: Index, file: Path) -> None:
    """BM25 with tf of both words together and the df of documents with one of them, by hand."""
    ranking = (index.synonyms(file) >> index.bm25()).search("tv")
    lengths = {doc: len(index.analyzer(text)) for doc, text in DOCS}
    mean = sum(lengths.values()) / len(DOCS)
    idf = math.log(1 + (6 - 2 + 0.5) / (2 + 0.5))  # documents a and b
    expected = {doc: idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * lengths[doc] / mean)) for doc, tf in (("a", 1), ("b", 3))}
    assert {hit.id: pytest.approx(hit.score) for hit in ranking} == expected
    assert ranking.total == 2


def test_a_phrase_counts_with_the_words(index: Index, file: Path) -> None:
    stage = index.synonyms(file) >> index.bm25()
    assert sorted(stage.search("nyc").ids) == ["c", "e"]
    one = stage.explain("nyc", "e").parts[0]
    assert one.label == 'any of \'nyc\', "new york", "big apple"'
    assert one.parts[0].parts[0].label.endswith("N=6, df=2")
    assert stage.search("new york").ids[0] == "c"
    assert sorted(stage.search("new york").ids) == ["c", "d", "e"]
    assert stage.search("nyc")[0].snippet in ("telly on the wall in **new** **york**", "**big** **apple** radio")


def test_without_positions_a_phrase_asks_for_all_of_its_words(tmp_path: Path, file: Path) -> None:
    index = Index.build(DOCS, tmp_path / "plain.index", analyzer="standard")
    both = tuple(Group(must=(Term(a), Term(b))) for a, b in (("new", "york"), ("big", "apple")))
    assert clauses(index, file, "nyc") == (Group(should=(Term("nyc"), *both)),)
    assert sorted((index.synonyms(file) >> index.bm25()).search("nyc").ids) == ["c", "d", "e"]


def test_the_words_of_structured_queries_have_synonyms_too(index: Index, file: Path) -> None:
    stage = index.query() >> index.synonyms(file)
    query = stage(["+tv -wall title:tv"])["1"].query
    assert query == Group((AnyOf(("television", "tv")),), (AnyOf(("television", "tv"), "title"),), (Term("wall"),))
    query = stage(["+new +york (nyc^2 OR radio*)"])["1"].query
    assert query is not None
    assert query.must[0] == AnyOf(("nyc",), phrases=(Phrase(("new", "york"), (0, 1)), Phrase(("big", "apple"), (0, 1))))
    weighed = Topic("1", "tv", weights={"tv": 1.0})
    assert index.synonyms(file)([weighed])["1"] is weighed


def test_the_format_is_that_of_solr(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("\ufeffa\\,b, c,,\r\n  # not a comment, d\r\nx=y => z\\=>w , q\r\nlone\r\nc, e\r\n".encode())
    ab = Phrase(("a", "b"), (0, 1))
    assert clauses(index, path, "c") == (AnyOf(("c", "e"), phrases=(ab,)),), "lines with one entry add up"
    assert clauses(index, path, "d") == (AnyOf(("d",), phrases=(Phrase(("not", "a", "comment"), (0, 1, 2)),)),)
    assert clauses(index, path, "x y") == (AnyOf(("q",), phrases=(Phrase(("z", "w"), (0, 1)),)),)
    assert clauses(index, path, "lone") is None


@each(
    ("line", "problem"),
    [
        ("a => b => c", "there are two arrows (=>); write one rule a line"),
        ("=> b", "there is no entry left of =>; write 'a, b' or 'a, b => c'"),
        ("a => ,", "there is no entry right of =>; write 'a, b' or 'a, b => c'"),
        (",", "there is no entry; write 'a, b' or 'a, b => c'"),
        ("tv, ?!", "the analyzer of the index leaves nothing of '?!'; take this entry out"),
    ],
)
def test_a_bad_line_is_named_by_its_number(index: Index, tmp_path: Path, line: str, problem: str, fontes: Any) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(f"# synonyms\n\na, b\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        index.synonyms(path)(["tv"])
    assert str(error.value) == f"{path}, line 4: {problem}"
    code, _, err = fontes("search", index.path, "tv", "--pipeline", f"synonyms({str(path)!r}) >> bm25()")
    assert (code, err) == (1, f"fontes: pipeline, column 1: {path}, line 4: {problem}\n")


def test_texts_make_the_stage_again_and_a_changed_file_another_one(index: Index, file: Path) -> None:
    stage = pipeline(f"synonyms({str(file)!r}, weight=0.5) >> bm25()", index)
    assert pipeline(repr(stage), index) == stage
    of_file = index.synonyms(file)
    before = of_file.key()
    assert before == index.synonyms(file).key()
    file.write_text("tv, radio, wall\n", encoding="utf-8")
    assert of_file.key() != before
    assert clauses(index, file, "tv") == (AnyOf(("radio", "tv", "wall")),)


WORDS = ["tv", "radio", "wall", "new", "york", "clock", "on"]
ENTRY = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(tuple)


@PROPERTY
@given(st.lists(st.lists(ENTRY, min_size=1, max_size=3), max_size=4), st.lists(st.sampled_from(WORDS), max_size=8))
def test_a_scan_for_the_longest_entry_gives_the_same_clauses(
    index: Index, tmp_path_factory: pytest.TempPathFactory, lines: list[list[tuple[str, ...]]], words: list[str]
) -> None:
    path = tmp_path_factory.mktemp("s") / "s.txt"
    path.write_text("".join(", ".join(" ".join(entry) for entry in line) + "\n" for line in lines), encoding="utf-8")
    expected: list[Clause] = []
    left = tuple(words)
    while left:
        size = max((len(entry) for line in lines for entry in line if left[: len(entry)] == entry), default=0)
        typed = left[:size]
        same = dict.fromkeys(entry for line in lines if typed in line for entry in line)
        if size != 1:
            expected += map(Term, left[: max(size, 1)])
        terms = tuple(sorted(entry[0] for entry in same if len(entry) == 1))
        phrases = tuple(Phrase(entry, tuple(range(len(entry)))) for entry in same if len(entry) > 1)
        if len(same) == 1:
            expected += [*map(Term, terms), *phrases]
        elif same:
            expected.append(AnyOf(terms, phrases=phrases))
        left = left[max(size, 1) :]
    query = Group(should=tuple(expected))
    found = index.synonyms(path)([" ".join(words)] if words else Topics([Topic("1", "")]))["1"].query
    assert (found or Group(should=tuple(map(Term, words)))) == query
    ranking = (index.synonyms(path) >> index.bm25()).search(" ".join(random.Random(1).sample(WORDS, 3)))
    assert ranking.total == len(ranking)

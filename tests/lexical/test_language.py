"""The stage of the query language: from typed texts to queries over the terms of an index."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from support.each import each
from support.small_collections import PROPERTY
from support.typed_queries import TYPED

from fontes.core import Doc, ParameterError, Topic, Topics
from fontes.core.expression import pipeline
from fontes.core.query import AnyOf, Clause, Condition, Group, Phrase, Term, Window
from fontes.index import Index
from fontes.lexical.hints import has_operators
from fontes.lexical.language import most_frequent

DOCS = [
    Doc("d1", "The hot springs of the karst", "Hot springs", {"year": 2020, "lang": "cs"}),
    Doc("d2", "Geysers and hydrothermal vents, a hydrologist said", "", {"year": 2022, "lang": "en"}),
    Doc("d3", "Hot water is hot in a desert geyser", "", {"year": 2024}),
]
HOT, SPRING, WI, FI = Term("hot"), Term("spring"), Term("wi"), Term("fi")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("language") / "x", analyzer="english")


@pytest.fixture(scope="module")
def positions(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("positions") / "x", analyzer="english", positions=True)


def parsed(index: Index, text: str, **parameters: object) -> Group:
    query = index.query(**parameters).parse(text).query
    assert query is not None
    return query


def should(*clauses: Clause) -> Group:
    return Group(should=clauses)


def test_words_are_analysed_and_stop_words_left_out(index: Index) -> None:
    assert parsed(index, "+Springs the -Deserts") == Group((SPRING,), (), (Term("desert"),))
    assert parsed(index, "+the spring") == should(SPRING)


def test_a_word_of_several_terms_matches_by_one_of_them_or_by_all(index: Index) -> None:
    assert parsed(index, "+wi-fi hot") == Group((should(WI, FI),), (HOT,))
    assert parsed(index, "wi-fi^2 -hot") == Group((), (Term("wi", "", 2.0), Term("fi", "", 2.0)), (HOT,))
    assert parsed(index, "wi-fi hot", operator="and") == Group((Group((WI, FI)), HOT))


def test_stop_words_leave_gaps_in_a_phrase(positions: Index) -> None:
    assert parsed(positions, '"the hot, the springs"~2') == should(Phrase(("hot", "spring"), (0, 2), 2))
    assert parsed(positions, '"hot wi-fi springs"^3') == should(Phrase(("hot", "wi", "fi", "spring"), (0, 1, 2, 3), 0, "", 3.0))
    assert parsed(positions, '"hot the springs"~uw8') == should(Window(("hot", "spring"), 8))
    assert parsed(positions, '+"the springs" hot') == Group((SPRING,), (HOT,))
    assert parsed(positions, '"the of" +hot') == Group((HOT,))


def test_without_positions_a_phrase_asks_for_all_of_its_words(index: Index) -> None:
    language = index.query()
    read = language.parse('"hot springs"')
    assert read.query == should(Group((HOT, SPRING)))
    assert read.canonical == '"hot springs"'
    assert read.remarks == (
        'the index keeps no positions, so that "hot springs" asks for all of its words in any order; '
        "fontes merge INDEX --positions (index.merge(positions=True)) adds them",
    )


def test_phrases_without_positions_are_warned_of_once(index: Index) -> None:
    topics = {"1": '"hot springs"', "2": "hot", "3": '"the geysers" "hot springs"'}
    with warnings.catch_warnings(record=True) as warned:
        (index.query() >> index.bm25())(topics)
    [warning] = warned
    assert str(warning.message) == (
        f"{index.path} keeps no positions: phrases ask for all of their words in any order; "
        f"fontes merge {index.path} --positions (index.merge(positions=True)) adds them"
    )


def test_prefixes_and_similar_words_are_terms_of_the_index(index: Index) -> None:
    assert parsed(index, "Hydro*") == should(AnyOf(("hydrologist", "hydrotherm")))
    assert parsed(index, "hydrothermal*") == should(Term("hydrotherm"))  # its stem is shorter than the prefix
    assert parsed(index, "+zebra*") == Group((AnyOf(()),))
    assert parsed(index, "sprng~1 geyzers~1^2") == should(SPRING, Term("geyser", "", 2.0))
    assert parsed(index, "hto~") == should(HOT)
    assert parsed(index, "tho~1") == should(AnyOf(()))  # "hot" is two letters away
    assert parsed(index, "pot~1", fixed=1) == should(AnyOf(()))
    assert parsed(index, "pot~1") == should(HOT)


def test_a_prefix_is_stemmed_only_where_no_term_begins_so(tmp_path: Path) -> None:
    index = Index.build([("1", "discuss dissent"), ("2", "Lady Di"), ("3", "relations")], tmp_path / "x", analyzer="english")
    assert parsed(index, "dis*") == should(AnyOf(("discuss", "dissent")))  # not the stem of "dis", which is "di"
    assert parsed(index, "relations*") == should(Term("relat"))


def test_expansions_are_bounded_and_say_so(index: Index) -> None:
    read = index.query(max_expansions=1).parse("h*")
    assert read.query == should(HOT)
    assert read.remarks == ("h* stands for the 1 most frequent of 3 terms; max_expansions sets how many",)


def test_the_most_frequent_terms_are_taken_of_equal_ones_the_first() -> None:
    df = np.array([9, 1, 5, 5, 7, 5])
    assert most_frequent(df, 3).tolist() == [0, 2, 4]
    assert most_frequent(df[[1, 3, 5]], 1).tolist() == [1]
    assert most_frequent(df[[1, 3]], 2).tolist() == [0, 1]


def test_a_comparison_of_a_column_is_a_condition(index: Index) -> None:
    year = Condition("year >= 2021")
    assert parsed(index, "hot year:>=2021") == Group((year, HOT))
    assert parsed(index, "hot OR year:>=2021") == should(HOT, year)
    assert parsed(index, "hot -year:>=2021") == Group((), (HOT,), (year,))


def test_a_plain_text_stays_as_it_is(index: Index) -> None:
    topics = Topics([Topic("1", "hot springs - C++?"), Topic("2", "desert", "a narrative")])
    assert list(index.query()(topics).values()) == list(topics.values())
    bm25 = index.bm25()
    plain, asked = bm25(topics), (index.query() >> bm25)(topics)
    for one in topics:
        assert list(asked[one]) == list(plain[one])


def test_a_topic_gets_a_query_the_words_to_be_found_and_its_origin(index: Index) -> None:
    topic = Topic("1", '+hot "springs of"~2 -desert geyser* year:2020', "n", metadata={"x": 1})
    (new,) = index.query()([topic]).values()
    assert (new.text, new.origin, new.narrative, new.metadata) == ("hot springs of geyser", topic, "n", {"x": 1})
    assert new.query == index.query().parse(topic.text).query
    (escaped,) = index.query()([Topic("1", r"\+hot")]).values()
    assert (escaped.text, escaped.query) == ("+hot", None)


def test_topics_with_weights_or_a_query_stay_as_they_are(index: Index) -> None:
    topics = [Topic("1", "+hot", weights={"hot": 1.0}), Topic("2", "+hot", query=should(HOT))]
    assert list(index.query()(Topics(topics)).values()) == topics


def test_nothing_left_to_be_found_is_said(index: Index) -> None:
    for text in ("-hot", "+the", "-the", "()", '""'):
        assert index.query().parse(text).remarks == ("nothing is left to be found",)


def test_brackets_are_no_text_of_any_analyzer(tmp_path: Path) -> None:
    docs = [Doc("d1", "hot spring"), Doc("d2", "hot vent"), Doc("d3", "cold")]
    for analyzer in ("whitespace", "english", str.split):
        index = Index.build(docs, tmp_path / "x", analyzer=analyzer, overwrite=True)
        for operator, ids in (("or", ["d1", "d2"]), ("and", ["d1"])):
            language = index.query(operator=operator)
            for text in ("(hot spring)", "(hot) (spring)", "((hot spring))", "(hot spring", "hot spring )"):
                assert sorted((language >> index.bm25()).search(text).ids) == ids, (analyzer, operator, text)
    assert index.query().parse("(hot spring)").words == "hot spring"
    assert index.query().parse("f(x) see").words == "f(x) see"


def test_words_that_stand_for_no_term_are_said(index: Index) -> None:
    assert index.query().parse("qqq*").remarks == ("the index has no term for qqq*",)
    assert index.query().parse("qqqqq~1").remarks == ("the index has no term for qqqqq~1",)


def test_similar_words_of_a_long_word_are_a_remark(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x", analyzer="whitespace")
    for text in ("h" * 100_000 + "~2", "é" * 256 + "~"):
        (remark,) = index.query().parse(text).remarks
        assert remark.startswith("similar words are found for words of at most 255 letters; ")
        with pytest.raises(ParameterError, match="words of at most 255 letters"):
            index.query(strict=True).parse(text)
    assert index.query().parse("h" * 255 + "~2").remarks


def test_weights_within_each_other_are_bounded(index: Index) -> None:
    text = "(hot spring)^1000000"
    for _ in range(8):
        text = f"({text} desert)^1000000"
    read = index.query().parse(text)
    assert any("weights within each other multiply to 1e+30 at most" in remark for remark in read.remarks)


def test_parameters_are_written(index: Index) -> None:
    stage = pipeline('query(operator="and", fixed=1) >> bm25()', index)
    assert repr(stage) == 'query(operator="and", fixed=1) >> bm25(k1=0.9, b=0.4)'


@each("text", ['"hot springs"', "+hot -cold", "hot AND cold", "year:2020", "hydro*", "sprng~", "hot NOT cold"])
def test_a_text_with_operators_is_recognised(index: Index, text: str) -> None:
    assert has_operators(text, index.state)


@each(
    "text",
    [
        "hot springs",
        "C++?",
        "12:30",
        "HOT AND COLD",
        "wi-fi (802.11)",
        "a - b",
        'a 5" pipe',
        "a: b",
        "re:x",
        "AND",
        "2 * 3 ^ 4",
    ],
)
def test_a_plain_text_is_not_taken_for_a_query(index: Index, text: str) -> None:
    assert not has_operators(text, index.state)


@PROPERTY
@given(TYPED)
def test_any_text_is_read_over_an_index(index: Index, text: str) -> None:
    for operator in ("or", "and"):
        language = index.query(operator=operator)
        read = language.parse(text)
        assert (read.query is None) <= (read.text == text)
        if read.query is not None:
            assert Group.from_dict(read.query.to_dict()) == read.query
        assert index.query().parse(read.canonical).canonical == read.canonical


def test_a_query_of_an_index_of_other_analyzers(tmp_path: Path) -> None:
    docs = [Doc("d1", "Žluťoučký kůň"), Doc("d2", "ŽLUTÝ")]
    czech = Index.build(docs, tmp_path / "czech", analyzer="czech")
    assert isinstance(parsed(czech, "žlu*").should[0], AnyOf)
    kept = Index.build(docs, tmp_path / "kept", analyzer="whitespace")
    assert parsed(kept, "ŽL*") == should(Term("ŽLUTÝ"))
    own = Index.build(docs, tmp_path / "own", analyzer=str.split)
    assert parsed(own, "Žlu* +kůň") == Group((Term("kůň"),), (Term("Žluťoučký"),))

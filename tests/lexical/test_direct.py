"""Searches in one compiled call find what the others find, byte for byte, and leave other queries to them."""

import unicodedata
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.each import each
from support.examples import up_to

from fontes import Index, Topic
from fontes.core.query import Condition, Group, Phrase, Term, Window
from fontes.index.packed import CHAMPIONS
from fontes.lexical import impacts
from fontes.lexical.direct import MAX_TERMS, MAX_TEXT_LENGTH, Direct
from fontes.storage import compiled

WORDS_OF = [
    "Hot",
    "springs",
    "spring",
    "o'Neill's",
    "the",
    "of",
    "karst",
    "KARSTS",
    "limestone",
    "relational",
    "x9",
    "3.14",
    "a.b",
]
RARE = [f"rare{i}" for i in range(40)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    compiled.load()
    draw = np.random.default_rng(3)
    docs = []
    for i in range(1500):  # lists longer than the chunks of the loops
        words = list(draw.choice(WORDS_OF, int(draw.integers(0, 30))))
        docs.append((f"d{i * 7919 % 1500}", " ".join([*words, *draw.choice(RARE, int(draw.integers(0, 3)))])))
    return Index.build(docs, tmp_path_factory.mktemp("direct") / "x", analyzer="english", positions=True)


def results(stage: Any, query: Any, k: int, offset: int = 0) -> tuple[Any, ...]:
    ranking = stage.search(query, k, offset)
    return ranking.ids, ranking.scores.tobytes(), ranking.total, stage.count(query), ranking.topic


def otherwise(monkeypatch: pytest.MonkeyPatch, stage: Any, query: Any, k: int, offset: int = 0) -> tuple[Any, ...]:
    with monkeypatch.context() as patch:
        patch.setattr(Direct, "text", lambda *_: None)
        patch.setattr(Direct, "search", lambda *_: None)
        patch.setattr(Direct, "terms", lambda *_: None)
        return results(stage, query, k, offset)


def group(kind: str, terms: list[str]) -> Group:
    clauses = tuple(map(Term, terms))
    return Group(must=clauses) if kind == "all" else Group(should=clauses)


TEXTS = [
    "hot springs",
    "The HOT o'neill's spring's, of karst; karst! 3.14 a.b x9",
    "relational " * 70 + "springs",  # more often than counts are kept
    "nowhere",
    "",
    " \t\n",
    "the of",
    "Zürich karst",
    "karst\x00limestone hot\ud800",
    "rare1 rare2 rare3 " * 3,
    "x" * 300 + " spring",
    "*️⃣ # * spring_water",
]


MODELS: list[tuple[str, dict[str, Any]]] = [
    ("bm25", {}),
    ("bm25", {"variant": "plus", "k1": 1.2, "b": 0.75, "lengths": "lucene", "k3": 2.0}),
    ("bm25", {"variant": "robertson"}),  # whose weights may be below 0
    ("tfidf", {}),
    ("tfidf", {"norm": None}),
    ("ql", {}),
]


@each(("name", "parameters"), MODELS)
def test_texts_are_analysed_and_searched_as_before(index, monkeypatch, name: str, parameters: dict[str, Any]) -> None:
    stage = getattr(index, name)(**parameters)
    for text in TEXTS:
        for k, offset in ((1, 0), (10, 0), (33, 0), (1000, 0), (10, 5)):
            expected = otherwise(monkeypatch, stage, text, k, offset)
            assert results(stage, text, k, offset) == expected
            assert results(stage, Topic("7", text), k, offset)[:4] == expected[:4]


@each("analyzer", ["whitespace", "simple", "standard", "cjk", "german", "english+chars:2-3", "english+words:1-2"])
def test_every_analyzer_gives_the_terms_that_it_gives_elsewhere(tmp_path, monkeypatch, analyzer: str) -> None:
    docs = [(f"d{i}", text.encode(errors="replace").decode()) for i, text in enumerate(TEXTS)]
    stage = Index.build(docs, tmp_path / "x", analyzer=analyzer).bm25()
    for text in TEXTS:
        assert results(stage, text, 10) == otherwise(monkeypatch, stage, text, 10)


@each(("name", "parameters"), MODELS)
def test_conjunctions_unions_and_phrases_are_those_of_other_loops(index, monkeypatch, name, parameters) -> None:
    stage, draw, terms = getattr(index, name)(**parameters), np.random.default_rng(8), index.terms.tolist()
    for number in range(24):
        some = [str(term) for term in draw.choice(terms, int(draw.integers(1, 5)), replace=False)]
        wanted = [str(term) for term in draw.choice(["hot", "spring", "karst", "limeston", "relat"], 2 + number % 2)]
        queries = [group("all", some), group("any", some), Group(should=(Phrase(tuple(wanted), tuple(range(len(wanted)))),))]
        queries.append(Group(must=(Phrase(tuple(wanted), (0, *(np.cumsum(draw.integers(1, 4, len(wanted) - 1)).tolist()))),)))
        halves = tuple(map(Term, some[: number % 3])), tuple(map(Term, some[number % 3 :]))
        queries += [Group(must=halves[0], should=halves[1]), Group(should=halves[0], must_not=halves[1])]
        queries.append(Group(must=halves[0], must_not=(*halves[1], Term("unknown"))))
        queries += [Group(must=halves[0], should=(*halves[1], Term("unknown"))), group("any", [*some, "unknown"])]
        for query in queries:
            for k in (1, 10, 40):
                topic = Topic("1", "text", query=query)
                assert results(stage, topic, k) == otherwise(monkeypatch, stage, topic, k)


@pytest.mark.parametrize("model", ["bm25", "ql", "tfidf"])
def test_one_term_is_answered_by_its_champion_list_as_by_all_its_postings(index, monkeypatch, model: str) -> None:
    stage = getattr(index, model)(k=1500)
    whole = impacts.impacts_of(index.state.parts[0], stage.weighting)
    sizes = (whole.bounds.champions >= 0).sum(axis=1)
    assert 0 < sizes.min() <= sizes.max() < CHAMPIONS
    for term in ("spring", "karst", "limeston"):
        for k in (1, 10, 32, 33, *sizes.tolist(), 256, 1500):
            for query in (term, f"{term} {term}", Topic("1", term, query=group("should", [term]))):
                assert results(stage, query, k) == otherwise(monkeypatch, stage, query, k), (query, k)


def test_these_forms_are_searched_in_one_call(index: Index) -> None:
    direct = Direct.of(index.state, index.bm25().weighting)
    assert direct is not None
    assert direct.text("hot springs", 10) is not None
    hot, karst, unknown = Term("hot"), Term("karst"), Term("unknown")
    for query in (
        group("all", ["hot", "karst"]),
        group("any", ["hot", "karst"]),
        group("any", ["unknown"]),
        Group(must=(hot,), should=(karst, unknown)),
        Group(should=(hot,), must_not=(karst, unknown)),
        Group(must=(hot, unknown), must_not=(karst,)),
    ):
        assert direct.search(query, 10) is not None
    phrase = direct.search(Group(should=(Phrase(("hot", "spring"), (0, 2)),)), 10)
    assert phrase is not None
    assert phrase[2] is not None
    assert phrase[2] > 10


@each(
    "query",
    [
        Group(),
        Group(must=(Term("hot"),), should=(Term("hot"),)),
        Group(must_not=(Term("hot"),)),
        Group(must=(Term("hot"),), must_not=(Phrase(("hot", "spring"), (0, 1)),)),
        Group(must=(Term("hot", weight=2.0), Term("karst"))),
        Group(must=(Term("hot"), Term("hot"))),
        Group(must=(Term("hot\0karst"),)),
        Group(must=(Term("\0hot"), Term("karst"))),
        Group(must=(Term("hot\ud800"),)),
        Group(must=(Term("hot"), Condition("id = 'd1'"))),
        Group(must=(Term("hot"),), weight=2.0),
        Group(must=(Term(""), Term("hot"))),
        Group(should=(Phrase(("hot", "spring"), (0, 1), slop=1),)),
        Group(should=(Phrase(("hot", "spring"), (0, 0)),)),
        Group(should=(Phrase(("hot", "spring"), (1, 2)),)),
        Group(should=(Phrase(("hot\0", "spring"), (0, 1)),)),
        Group(should=(Phrase(("hot", "spring"), (0, 1), weight=3.0),)),
        Group(should=(Window(("hot", "spring"), 4),)),
        Group(must=tuple(Term(f"t{i}") for i in range(MAX_TERMS + 1))),
    ],
)
def test_other_forms_are_left_to_other_loops(index: Index, query: Group) -> None:
    direct = Direct.of(index.state, index.bm25().weighting)
    assert direct is not None
    assert direct.search(query, 10) is None


WORDS_OF_TEXTS = [
    "Hôtel", "hôtels", "HÔTEL's", "l’hôtel’s", "Ⱥbc", "ȺȺs", "K", "\u212aelvins", "Žluťoučký", "ÉTÉS", "été＇S", "ſs",
    "naïveness", "the", "The's", "спутники", "Σίσυφος", "東京タワー", "İstanbul", "ﬁnalities", "x" * 300, "é" * 300,
    "’s", "ß's", "a\u0301s",
]  # fmt: skip


@each("analyzer", ["english", "standard", "whitespace+lower", "simple", "cjk"])
def test_words_that_are_not_ascii_have_the_terms_of_the_analyzer(tmp_path: Path, analyzer: str) -> None:
    compiled.load()
    stage = Index.build([(str(i), word) for i, word in enumerate(WORDS_OF_TEXTS)], tmp_path / "x", analyzer=analyzer).bm25()
    direct = Direct.of(stage.index, stage.weighting)
    assert direct is not None
    draw = np.random.default_rng(5)
    texts = [*WORDS_OF_TEXTS, *(" ".join(draw.choice(WORDS_OF_TEXTS, 4).tolist()) for _ in range(40))]
    for text in texts:
        if (terms := direct.terms(text)) is None:
            assert analyzer == "cjk"  # which normalizes
        else:
            assert stage.index.terms.take(terms[0]) == known_terms(stage, text)


def known_terms(stage: Any, text: str) -> list[str]:
    """Terms of a text that the index has, ascending."""
    return sorted(term for term in set(stage.index.analyzer(text)) if stage.index.df_of(term))


@pytest.fixture(scope="module")
def of_every_character(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """BM25 over a document for each character of the basic plane."""
    compiled.load()
    codes = [code for code in range(32, 0x10000) if not 0xD800 <= code < 0xE000]
    docs = [(str(code), f"{chr(code)}s {chr(code)}") for code in codes]
    return Index.build(docs, tmp_path_factory.mktemp("characters") / "x", analyzer="english").bm25()


def test_any_character_has_the_term_of_the_analyzer(of_every_character: Any) -> None:
    direct = Direct.of(of_every_character.index, of_every_character.weighting)
    assert direct is not None
    for first in (*range(0x20, 0xD7C0, 64), *range(0xE000, 0x10000, 64)):
        text = " ".join(f"{chr(code)}s {chr(code)}" for code in range(first, first + 64))
        terms = direct.terms(text)
        if terms is None:
            assert max(unicodedata.normalize("NFC", text)) > "\uffff"  # some ideographs are composed to rare ones
            continue
        assert of_every_character.index.terms.take(terms[0]) == known_terms(of_every_character, text)


@settings(max_examples=up_to(200))
@given(text=st.text(max_size=30))
def test_any_text_has_the_terms_of_the_analyzer(of_every_character: Any, text: str) -> None:
    direct = Direct.of(of_every_character.index, of_every_character.weighting)
    assert direct is not None
    if (terms := direct.terms(text)) is not None:
        assert of_every_character.index.terms.take(terms[0]) == known_terms(of_every_character, text)
        assert of_every_character.count(text) == len(of_every_character.matches(Topic("1", text)))


def test_texts_that_are_long_or_have_other_characters_are_analysed_elsewhere(index: Index) -> None:
    direct = Direct.of(index.state, index.bm25().weighting)
    assert direct is not None
    assert direct.text("é", 10) is not None
    assert direct.text("\U00010400", 10) is None
    assert direct.text("\ud800", 10) is None
    assert direct.text("x" * (MAX_TEXT_LENGTH + 1), 10) is None
    assert direct.text("x" * MAX_TEXT_LENGTH, 10) is not None


def test_fields_and_an_index_without_documents_are_searched_too(tmp_path) -> None:
    docs = [{"id": f"d{i}", "title": "hot", "text": "spring", "metadata": {"year": i}} for i in range(9)]
    index = Index.build(docs, tmp_path / "x", fields=["title", "text"], separate=True)
    assert len(index.bm25(fields={"title": 2.0}).search("hot", 3)) == 3
    assert len(index.bm25(fields={"title": 2.0}).search("hot spring")) == 9
    assert len(index.bm25(fields={"title": 2.0}).search("spring")) == 0
    assert list(Index.build([], tmp_path / "empty").bm25().search("hot")) == []


def test_a_phrase_of_words_that_are_in_all_of_many_documents(tmp_path) -> None:
    compiled.load()
    docs = [(f"d{i}", "hot spring" if i % 3 else "spring hot") for i in range((1 << 15) + 1)]
    index = Index.build(docs, tmp_path / "x", analyzer="standard", positions=True)
    direct = Direct.of(index.state, index.bm25().weighting)
    assert direct is not None
    ranking = direct.search(Group(should=(Phrase(("hot", "spring"), (0, 1)),)), 10)
    assert ranking is not None
    assert ranking[2] == sum(text == "hot spring" for _, text in docs)
    assert {docs[doc][1] for doc in ranking[0]} == {"hot spring"}


def test_a_phrase_over_damaged_positions_is_left_to_other_loops(index: Index) -> None:
    direct = Direct.of(index.state, index.bm25().weighting)
    assert direct is not None
    assert direct._has_phrases
    (arrays,) = direct._parts
    positions = np.full(len(arrays["positions"]), 255, np.uint8)
    damaged = copy(direct)
    damaged._pin([arrays | {"positions": positions}])
    assert damaged.search(Group(should=(Phrase(("hot", "spring"), (0, 1)),)), 10) is None


@each("documents", [1, 20, 40])
def test_k_may_be_beyond_the_documents_of_a_small_index(tmp_path, monkeypatch, documents: int) -> None:
    docs = [(f"d{i}", f"hot springs {'karst ' * (i % 5)}") for i in range(documents)]
    stage = Index.build(docs, tmp_path / "x", positions=True).bm25()
    for k in (10, 33, 1000):
        for query in ("hot karst springs", Topic("1", "", query=group("any", ["hot", "karst"]))):
            for _ in range(3):  # what is written beyond an array shows later
                assert results(stage, query, k) == otherwise(monkeypatch, stage, query, k)
        assert len(stage.search("hot", k)) == min(k, documents)


def test_the_code_for_several_segments_is_loaded_when_an_index_begins_to_change(index: Index, monkeypatch) -> None:
    monkeypatch.setattr(compiled, "_next_code", None)
    direct = Direct.of(index.state, index.bm25(k1=1.7, b=0.31).weighting, wait=True)
    assert direct is not None
    called = []
    monkeypatch.setattr(direct, "_call", lambda *query: called.append(query[0]))
    compiled.prepare_for_change()
    compiled.prepare_for_change()
    assert compiled._preparer is not None
    compiled._preparer.join()
    assert called == [direct._loops.find_text]

"""Pages of a ranking, and the number of all documents that match."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hashed_encoder import Hashed
from support.reordered import candidates

from fontes.app.results import least_total_of, total_of
from fontes.core import PipelineError
from fontes.core.expression import pipeline
from fontes.index import Index

WORDS = ["tea", "coffee", "milk", "sugar", "lemon", "mint", "ginger"]
TEXTS = [
    "bm25()",
    "ql() % 30",
    'bm25(where="sold >= 40")',
    "query() >> bm25()",
    "bm25() >> rm3() >> bm25()",
    'bm25() >> boost("sold", log=True)',
    'bm25() % 20 >> sort("sold") >> collapse("maker", keep=2)',
    "fuse(bm25(), ql())",
    "0.5 * bm25() + tfidf()",
    "bm25() % 40 >> mmr()",
]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Index:
    chosen = random.Random(7)
    docs = [
        {
            "_id": f"d{n}",
            "text": " ".join(chosen.choices(WORDS, range(7, 0, -1), k=chosen.randint(1, 6))),
            "metadata": {"sold": chosen.randrange(100), "maker": chosen.choice("xyz")},
        }
        for n in range(120)
    ]
    return Index.build(docs, tmp_path_factory.mktemp("market") / "market.index")


@each("text", TEXTS)
def test_pages_are_parts_of_the_whole_ranking(market: Index, text: str) -> None:
    stage = pipeline(text, market)
    whole = stage.search("mint ginger lemon", 1000)
    for offset, k in ((0, 7), (1, 1), (4, 40), (30, 10), (130, 5)):
        page = stage.search("mint ginger lemon", k, offset)
        assert list(page) == list(whole[offset : offset + k])
        assert page.total == whole.total == stage.count("mint ginger lemon") >= len(whole)
        assert page.to_columns()["rank"].tolist() == [hit.rank for hit in page]


def matching(index: Index, condition: Callable[[Any], bool], *words: str) -> int:
    docs = (index.doc(doc_id) for doc_id in index.ids[:])
    return sum(condition(doc) and any(word in doc.text for word in words) for doc in docs)


def test_the_number_of_matches_is_that_of_documents_with_a_word_that_pass_the_filter(market: Index) -> None:
    def count(text: str, query: str) -> int:
        return pipeline(text, market).count(query)

    every = matching(market, lambda doc: True, "mint", "ginger")
    assert 10 < every < 120
    for text in ("bm25() % 5", "bm25() % 5 >> mmr()", "fuse(bm25() % 3, ql())", 'bm25() >> collapse("maker")', "2 * bm25()"):
        assert count(text, "mint ginger") == every
    filtered = matching(market, lambda doc: doc.metadata["sold"] > 50, "mint", "ginger")
    assert count('bm25(where="sold > 50") >> sort("sold")', "mint ginger") == filtered < every
    both = sum("mint" in doc.text and "ginger" in doc.text for doc in market.docs(market.ids[:]))
    assert count("query() >> bm25()", "+mint +ginger") == both
    fused = count('fuse(bm25(where="sold > 50"), bm25(where="sold <= 50"))', "mint ginger")
    assert fused == every, "documents that match one of the stages"
    assert count("bm25()", "quantum") == 0


def test_an_offset_goes_beyond_the_default_limit_of_a_retriever(tmp_path: Path) -> None:
    index = Index.build([{"_id": f"d{n:04}", "text": "tea"} for n in range(1_100)], tmp_path / "many.index")
    assert index.bm25().search("tea", 2, 1_050).ids == index.search("tea", 2, 1_050).ids == ["d0049", "d0048"]
    assert [hit.rank for hit in (index.query() >> index.bm25()).search("tea", 2, offset=1_098)] == [1_099, 1_100]
    assert len((index.bm25() % 500).search("tea", 10, offset=495)) == 5


@each("text", TEXTS)
def test_counting_up_to_a_number_says_that_more_match_and_never_another_number(market: Index, text: str) -> None:
    market.delete([doc_id for doc_id in ("d3", "d40", "d41") if doc_id in market])
    stage = pipeline(text, market)
    for query in ("mint", "mint ginger lemon", "tea", "quantum", "tea quantum"):
        every = stage.count(query)
        for most in (1, 10, every - 1, every, every + 1, 1_000):
            if most > 0:
                expected = min(every, most + 1)
                assert stage.count(query, up_to=most) == expected, (query, most)
                assert stage.search(query, 1).total_up_to(most) == expected
        known = stage.search(query, 3)
        assert (known.total, known.total_up_to(1)) == (every, min(every, 2))


def test_what_matches_at_least_is_told_without_another_search_or_a_model(market: Index, fontes: Any, tmp_path: Path) -> None:
    many = Index.build([(f"d{n:04}", f"tea {'mint' * (n % 2)}") for n in range(2_400)], tmp_path / "many.index")
    for text, query, expected in (
        ("bm25()", "tea", {"value": 1_000, "relation": "gt"}),
        ("bm25()", "tea mint", {"value": 1_000, "relation": "gt"}),
        ("bm25()", "mint", {"value": 1_000, "relation": "gt"}),
        ("query() >> bm25()", "+tea +mint", {"value": 1_000, "relation": "gt"}),
        ("query() >> bm25()", "+tea +quantum", {"value": 0, "relation": "eq"}),
        ("fuse(bm25(), ql())", "tea", {"value": 1_000, "relation": "gt"}),
        ("bm25() >> rm3() >> bm25()", "tea", {"value": 7, "relation": "gte"}),
    ):
        stage = pipeline(text, many)
        assert least_total_of(stage.search(query, 3, offset=4 * (expected["value"] > 0)), stage) == expected, text
    every = market.bm25().count("mint")
    stage = market.bm25()
    assert least_total_of(stage.search("mint", 3), stage) == {"value": every, "relation": "eq"}
    assert fontes("search", many.path, "tea", "-k", "1")[1].endswith("\nMore than 1,000 documents match.\n")
    assert fontes("search", market.path, "mint", "-k", "1")[1].endswith(f"\n{every} documents match.\n")
    assert "match" not in fontes("search", market.path, "mint", "-k", "500")[1]
    assert "match" not in fontes("search", many.path, "tea", "-k", "1", "--pipeline", "bm25() >> rm3() >> bm25()")[1]
    assert json.loads(fontes("search", many.path, "tea", "-k", "1", "--json")[1])["total"] == {"value": 1_000, "relation": "gt"}
    counted = json.loads(fontes("search", many.path, "tea", "-k", "1", "--json", "--count")[1])["total"]
    assert counted == {"value": 2_400, "relation": "eq"}


def test_an_offset_beyond_the_end_gives_an_empty_page_that_knows_the_total(market: Index) -> None:
    page = market.bm25().search("mint", 10, offset=10**12)
    assert (len(page), page.offset) == (0, 10**12)
    assert page.total == market.bm25().count("mint")


def test_what_has_no_number_of_matches_says_why(market: Index, tmp_path: Path) -> None:
    market.encode(Hashed())
    dense = market.dense(Hashed())
    for stage in (dense, market.bm25() + dense, dense >> market.mmr()):
        assert [hit.rank for hit in stage.search("mint", 3, offset=4)] == [5, 6, 7]
        with pytest.raises(PipelineError, match="no number of matches: it ranks documents whether they match or not"):
            stage.count("mint")
        with pytest.raises(PipelineError, match="no number of matches"):
            stage.search("mint", 3).total  # noqa: B018
        total = total_of(stage.search("mint", 3, offset=4))
        assert (total["value"], total["relation"]) == (7, "gte")
        assert "no number of matches" in total["reason"]
    other = Index.build([("o", "mint")], tmp_path / "other.index")
    with pytest.raises(PipelineError, match="its stages search several indexes"):
        (market.bm25() + other.bm25()).count("mint")
    with pytest.raises(PipelineError, match=r"bm25.* gives Run|takes Run"):
        market.sort("sold").count("mint")


def test_a_run_alone_counts_its_own_documents(shop: Index) -> None:
    assert candidates(shop)["q"].total == 4


def test_the_command_line_shows_pages_and_counts(market: Index, fontes: Any) -> None:
    path, every = market.path, market.bm25().count("mint")
    code, out, _ = fontes("search", path, "mint", "--offset", "2", "-k", "1", "--count")
    assert (code, out.split()[0]) == (0, "3")
    assert out.endswith(f"{every} documents match.\n")
    code, out, _ = fontes("search", path, "mint", "--offset", "4000", "--count")
    assert (code, out) == (0, f"Offset 4,000 is beyond the last of {every} documents.\n")
    code, out, _ = fontes("search", path, "mint", "--offset", "3", "--pipeline", "bm25() % 2 >> mmr()")
    assert (code, out) == (0, "Offset 3 is beyond the last document that the pipeline ranks.\n")
    code, _, err = fontes("search", path, "--topics", "x.tsv", "--count")
    assert code == 2
    assert "--offset, --count and --facets go with a query" in err

"""Sorting by a column, and collapsing of groups."""

from pathlib import Path

from support.reordered import candidates

from fontes.core import Run
from fontes.core.expression import pipeline
from fontes.formats import read_run, write_run
from fontes.index import Index


def ranking(run: Run) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in run["q"]]


def test_documents_are_sorted_with_negative_ranks_and_missing_values_last(shop: Index) -> None:
    assert ranking(shop.sort("sold")(candidates(shop))) == [("b", -1), ("a", -2), ("c", -3), ("d", -4)]
    assert ranking(shop.sort("date", descending=True)(candidates(shop))) == [("b", -1), ("a", -2), ("c", -3), ("d", -4)]
    assert ranking(shop.sort("date")(candidates(shop))) == [("c", -1), ("a", -2), ("b", -3), ("d", -4)]


def test_equal_values_are_in_the_one_order(tmp_path: Path) -> None:
    docs = [{"_id": name, "text": "tea", "metadata": {"sold": n // 2}} for n, name in enumerate("abcdef")]
    index = Index.build(docs, tmp_path / "x.index")
    assert [hit.id for hit in (index.bm25() >> index.sort("sold")).search("tea")] == list("badcfe")
    assert [hit.id for hit in (index.bm25() >> index.sort("sold", descending=True)).search("tea")] == list("fedcba")


def test_all_matches_are_sorted_or_the_best_k_where_told(tmp_path: Path) -> None:
    docs = [{"_id": f"d{n:04}", "text": "tea " * (1 + n % 7), "metadata": {"sold": n}} for n in range(1_200)]
    index = Index.build(docs, tmp_path / "many.index", analyzer="whitespace")
    whole = index.bm25() >> index.sort("sold")
    assert [hit.id for hit in whole.search("tea", 2)] == ["d0000", "d0001"]
    assert whole("tea").rows == 1_200
    assert (index.query() >> index.bm25() >> index.sort("sold"))("tea").rows == 1_200
    cut = index.bm25() % 9 >> index.sort("sold")
    assert sorted(cut("tea")["1"].ids) == sorted((index.bm25() % 9)("tea")["1"].ids)
    assert (index.bm25() >> index.boost("sold") >> index.sort("sold"))("tea").rows == 1_000


def test_the_text_of_a_sorted_search_makes_it_again(shop: Index) -> None:
    for text in ('bm25() >> sort("date", descending=True) % 5', 'bm25() % 100 >> sort("sold") >> collapse("maker", keep=2)'):
        stage = pipeline(text, shop)
        assert pipeline(repr(stage), shop).search("tea").ids == stage.search("tea").ids
        assert repr(pipeline(repr(stage), shop)) == repr(stage)
    assert repr(stage) == 'bm25(k1=0.9, b=0.4) % 100 >> sort("sold") >> collapse("maker", keep=2)'


def test_a_written_run_keeps_the_order(shop: Index, tmp_path: Path) -> None:
    run = shop.sort("date")(candidates(shop))
    write_run(run, tmp_path / "sorted.run")
    assert read_run(tmp_path / "sorted.run")["q"].ids == run["q"].ids


def test_the_best_of_each_group_stay_with_their_scores(shop: Index) -> None:
    assert ranking(shop.collapse("maker")(candidates(shop))) == [("a", 5), ("d", 3), ("c", 2)]
    assert ranking(shop.collapse("maker", keep=2)(candidates(shop))) == ranking(candidates(shop))
    assert ranking(shop.collapse("lang")(candidates(shop))) == [("a", 5), ("b", 4)]


def test_groups_are_of_a_topic(shop: Index) -> None:
    run = Run.of({"p": {"a": 1.0, "b": 2.0}, "q": {"a": 2.0, "b": 1.0}, "r": {}})
    assert {topic: found.ids for topic, found in shop.collapse("maker")(run).items()} == {"p": ["b"], "q": ["a"], "r": []}
    assert {topic: found.ids for topic, found in shop.sort("sold")(run).items()} == {"p": ["b", "a"], "q": ["b", "a"], "r": []}


def test_explanations_say_the_place(shop: Index) -> None:
    explained = (shop.bm25() >> shop.sort("date")).explain("tea", "c")
    assert (explained.value, explained.label) == (-1.0, 'sort("date"): rank 1 of 4, date 2024-01-11')
    assert "rank 4 of 4, no date: last" in (shop.bm25() >> shop.sort("date")).explain("tea", "d").label
    collapsed = shop.bm25() >> shop.collapse("maker")
    kept, out = (doc for doc in shop.bm25().search("tea").ids if doc in "ab")
    assert collapsed.explain("tea", kept).parts == (shop.bm25().explain("tea", kept),)
    assert "left out: rank 2 of the documents with its maker, of which" in collapsed.explain("tea", out).label
    assert "the document has no maker" in collapsed.explain("tea", "d").label


def test_an_index_without_documents_has_nothing_to_sort(tmp_path: Path) -> None:
    index = Index.build([], tmp_path / "x.index")
    assert list(index.search("tea", sort="sold")) == []
    assert list((index.bm25() >> index.boost("sold") >> index.collapse("maker")).search("tea")) == []

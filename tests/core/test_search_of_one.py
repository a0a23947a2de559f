"""`search` takes one query, of a stage and of an index."""

import pytest
from support.each import each

import fontes as ft


@pytest.fixture
def index(tmp_path):
    return ft.Index.build([("a", "red apples"), ("b", "blue plums"), ("c", "red red plums")], tmp_path / "some.index")


def test_an_index_searches_by_bm25(index):
    assert list(index.search("red plums", 2)) == list(index.bm25().search("red plums", 2))
    assert [hit.id for hit in index.search("red")] == ["c", "a"]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    docs = ((f"d{number}", f"red {number % 7}") for number in range(1_200))
    return ft.Index.build(docs, tmp_path_factory.mktemp("many") / "many.index", threads=1)


@each("name", ["bm25", "tfidf", "ql"])
@each("k", [1_001, 1_200, 10**9, 10**30])
def test_a_retriever_goes_beyond_its_default_limit_up_to_all_documents(many, name, k):
    stage, found = getattr(many, name)(), min(k, 1_200)
    assert stage(ft.Topics.of({"1": "red"})).rows == 1_000
    every = stage.search("red", k).ids
    assert len(every) == found
    assert (stage % k)(ft.Topics.of({"1": "red"}))["1"].ids == every
    assert (stage % k).search("red", 5).ids == every[:5]
    assert (many.query() >> stage).search("red", k).ids == every
    assert len((stage % 10 >> many.rm3() >> stage).search("red", k)) == found
    assert len((stage % 700).search("red", k)) == len(((stage % 700) % k).search("red", k)) == 700


def test_a_pipeline_says_which_retriever_limits_it(many, index):
    bm25, ql = many.bm25(), many.ql()
    for stage in (0.5 * bm25, bm25 >> many.mmr()):
        for use in (lambda stage: stage.search("red", 1_100), lambda stage: stage % 1_100):
            with pytest.raises(
                ft.core.ParameterError, match=r"k is 1,100, and bm25 gives 1,000 documents at most; set its k=1100$"
            ):
                use(stage)
    assert len((0.5 * many.bm25(k=1100)).search("red", 1_100)) == 1_100
    assert len(ft.fuse(bm25, ql).search("red", 2_000)) == 1_000
    with pytest.raises(ft.core.ParameterError, match="k is 2,001, and bm25 gives 1,000"):
        ft.fuse(bm25, ql).search("red", 2_001)
    assert len(ft.fuse(bm25 % 7, ql % 9).search("red", 10**9)) == 9
    assert list((bm25 >> many.mmr(k=3)).search("red", 10, offset=5_000)) == []
    assert len((0.5 * index.bm25()).search("red", 10**9)) == 2


@pytest.fixture(scope="module", params=[1, 2])
def fruit(request, tmp_path_factory):
    docs = [{"id": f"d{n}", "text": f"red {n % 7} plum{n % 3} cherry{n % 5}", "year": n % 4} for n in range(60)]
    path = tmp_path_factory.mktemp("fruit") / "some.index"
    index = ft.Index.build(docs[request.param - 1 :], path, positions=True, threads=1)
    if request.param == 2:
        index.add(docs[:1])
    return index


@each(
    "pipeline",
    [
        "query() >> bm25()",
        "query() >> bm25() % 3",
        'query(operator="and") >> ql(where="year >= 2")',
        "bm25() >> rm3(fb_docs=3, fb_terms=2) >> bm25()",
        "bm25() % 2 >> rm3(fb_docs=5, fb_terms=3) >> ql()",
        "query() >> bm25() >> rm3(fb_docs=3) >> bm25() >> causal_feedback(fb_docs=4) >> bm25() % 7",
        "bm25() >> sort('year') >> rm3(fb_docs=3) >> bm25()",
    ],
)
def test_a_pipeline_finds_for_one_query_what_its_run_has(fruit, pipeline):
    stage = ft.pipeline(pipeline, fruit)
    for query in ("plum1 cherry2", "+plum1 -cherry2", '+"plum1 cherry2" red', "nowhere", ""):
        run = stage(ft.Topics.of({"1": query}))["1"]
        ranking = stage.search(query, 1_000)
        assert list(ranking) == list(run)
        assert ranking.topic == run.topic
        assert (ranking.total, list(ranking.facets("year"))) == (run.total, list(run.facets("year")))
        assert list(stage.search(query, 4, 2)) == list(run)[2:6]
        assert stage.count(query) == run.total


@pytest.fixture(scope="module")
def boats(tmp_path_factory):
    docs = [{"id": f"d{n}", "text": f"red boat {'boat ' * (n % 3)}", "year": 2000 + n, "kind": "ab"[n % 2]} for n in range(9)]
    return ft.Index.build(docs, tmp_path_factory.mktemp("boats") / "boats.index")


@each("text", ["bm25()", "bm25() >> rm3() >> bm25()", "0.5 * bm25()", "fuse(bm25(), ql())"])
def test_a_search_filters_sorts_and_counts(boats, text):
    stage = ft.pipeline(text, boats)
    found = stage.search("red boat", k=2, where="year >= 2003", sort="year", descending=True, facets=["kind"])
    assert found.ids == ["d8", "d7"]
    assert found.facets() == {"kind": {"a": 3, "b": 3}}
    assert stage.search("red boat", 3, sort="year").ids == ["d0", "d1", "d2"]
    assert stage.search("red boat", 3).facets() == {}
    assert stage.search("red boat", 9, where="year < 2001").ids == ["d0"]


def test_an_index_searches_with_the_same_options(boats):
    found = boats.search("boat", 1, 1, where="kind == 'a'", sort="year", facets=["year"])
    assert found.ids == ["d2"]
    assert list(found.facets()["year"]) == [2000, 2002, 2004, 2006, 2008]


@each(
    ("options", "problem"),
    [
        ({"limit": 3}, "search has no parameter 'limit'; did you mean 'k'?"),
        ({"size": 3}, "search has no parameter 'size'; did you mean 'k'?"),
        ({"filter": "year > 1"}, "search has no parameter 'filter'; did you mean 'where'?"),
        ({"sort_by": "year"}, "search has no parameter 'sort_by'; did you mean 'sort'?"),
        ({"zzz": 1}, "search has no parameter 'zzz'; there are query, k, offset, where, sort, descending, facets"),
        ({"sort": "-year"}, "sort: there is no column '-year'; did you mean 'year', with descending?"),
        ({"sort": "year:asc"}, "sort: there is no column 'year:asc'; did you mean 'year'?"),
        ({"sort": "kind"}, "sort: the column 'kind' holds text"),
        ({"facets": "kind"}, "facets is a list of columns: facets=['kind']"),
        ({"facets": "kind, year"}, "facets is a list of columns: facets=['kind', 'year']"),
        ({"facets": ["knd"]}, "there is no column 'knd'; did you mean 'kind'?"),
    ],
)
def test_an_unknown_option_of_a_search_is_answered_with_the_one_that_is_meant(boats, options, problem):
    for searched in (boats, boats.bm25(), boats.bm25() >> boats.rm3() >> boats.bm25()):
        with pytest.raises(ft.core.ParameterError) as error:
            searched.search("red", **options)
        assert str(error.value).startswith(problem)

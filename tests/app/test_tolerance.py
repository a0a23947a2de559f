"""Misspelt words on the command line, in requests to the server and in calls of agents' tools."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.serving import Running, serving

import fontes as ft

DOCS = [
    {"id": "a", "text": "a basketball coach of Uruguay", "year": 2019},
    {"id": "b", "text": "a football coach of Argentina", "year": 2021},
    {"id": "c", "text": "coaching in Uruk, a town of old", "year": 2022},
]
PIPELINES = {"bm25": "bm25()", "language": "query() >> bm25()", "own": 'tolerance("auto") >> bm25()'}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tolerance") / "x.index"
    ft.Index.build(DOCS, path, analyzer="english")
    return path


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Running]:
    with serving(path, pipelines=PIPELINES) as running:
        yield running


def ids(answer: Any) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


def test_a_search_says_which_words_it_searched_with_others(path: Path, fontes: Any) -> None:
    code, out, err = fontes("search", path, "basketbll", "--tolerance", "auto", "--json")
    assert (code, err) == (0, "fontes: 'basketbll' is searched with basketball\n")
    answer = json.loads(out)
    assert ids(answer) == ["a"]
    assert answer["tolerated"][0]["also"] == [{"word": "basketball", "term": "basketbal", "edits": 1, "weight": 0.8}]
    assert "**basketball**" in fontes("search", path, "basketbll", "--tolerance", "auto")[1]
    assert ids(json.loads(fontes("search", path, "basketbll", "--json")[1])) == []


def test_the_query_language_and_files_of_topics_are_tolerant_too(path: Path, fontes: Any, tmp_path: Path) -> None:
    out = fontes("search", path, "+basketbll coach", "--tolerance", "auto", "--query", "--json")[1]
    assert ids(json.loads(out)) == ["a"]
    (tmp_path / "topics.tsv").write_text("1\tbasketbll\n2\t+argentna\n")
    options = ("--topics", tmp_path / "topics.tsv", "--tolerance", "auto")
    assert [line.split()[2] for line in fontes("search", path, *options, "--query")[1].splitlines()] == ["a", "b"]


def test_a_pipeline_that_reads_the_query_language_keeps_what_it_excludes(path: Path, fontes: Any) -> None:
    options = ("--tolerance", "auto", "--json", "--pipeline")
    answer = json.loads(fontes("search", path, "coahc -uruk", *options, "query() >> bm25()")[1])
    assert sorted(ids(answer)) == ["a", "b"]
    assert [word["word"] for word in answer["tolerated"]] == ["coahc"]


def test_a_pipeline_that_rewrites_queries_searches_no_neighbours_and_names_none(path: Path, fontes: Any) -> None:
    options = ("--tolerance", "auto", "--pipeline", "weighted_turns() >> bm25()")
    assert "is searched with" not in fontes("search", path, "basketbll", *options)[2]


def test_an_unknown_tolerance_is_an_error_of_one_sentence(path: Path, fontes: Any, server: Running) -> None:
    code, _, err = fontes("search", path, "basketbll", "--tolerance", "fuzzy")
    assert (code, err) == (1, "fontes: tolerance: there is no 'fuzzy'; there are off, auto, typing\n")
    code, _, err = fontes("serve", path, "--tolerance", "fuzzy")
    assert (code, err) == (1, "fontes: --tolerance: there is no 'fuzzy'; there are off, auto, typing\n")
    response = httpx.get(f"{server.address}/search?q=x&tolerance=fuzzy")
    assert response.status_code == 422
    assert "tolerance" in response.json()["detail"]


@pytest.mark.parametrize("pipeline", ["bm25", "language", "own"])
def test_a_request_is_answered_with_what_was_searched(server: Running, pipeline: str) -> None:
    query = {"q": "basketbll co", "pipeline": pipeline, "explain": True}
    answer = server.get("/search", params={**query, "tolerance": "typing" if pipeline != "own" else "off"})
    assert ids(answer)[0] == "a"
    if pipeline != "own":
        assert [word["word"] for word in answer["tolerated"]] == ["basketbll", "co"]
        assert answer["hits"][0]["snippet"]["matches"] == [[2, 12], [13, 18]]
    assert "for 'basketbll', 1 edit" in json.dumps(answer["hits"][0]["explanation"])


def test_a_request_without_tolerance_searches_what_was_typed(server: Running) -> None:
    assert ids(server.get("/search?q=basketbll")) == []
    answer = server.get("/search?q=basketball&tolerance=auto")
    assert "tolerated" not in answer
    assert server.get("/search?q=basketball") == answer


def test_explanations_and_bodies_take_the_tolerance(server: Running) -> None:
    explanation = server.get("/explain?q=basketbll&id=a&tolerance=auto")
    assert "for 'basketbll', 1 edit" in explanation["parts"][0]["label"]
    body = {"topics": [{"id": "1", "text": "basketbll"}, {"id": "2", "text": "coach"}], "tolerance": "auto"}
    first, second = httpx.post(f"{server.address}/search", json=body).json()["results"]
    assert (ids(first), "tolerated" in second) == (["a"], False)
    odd = {"id": "1", "text": "coach", "metadata": {"tolerance": [1]}}
    assert "tolerated" not in httpx.post(f"{server.address}/search", json={"topics": [odd]}).json()["results"][0]


def test_the_default_of_requests_is_that_of_the_server(path: Path) -> None:
    with serving(path, tolerance="auto") as running:
        assert ids(running.get("/search?q=basketbll")) == ["a"]
        assert ids(running.get("/search?q=basketbll&tolerance=off")) == []


def test_suggestions_find_documents_that_pass_the_filter(server: Running) -> None:
    assert server.get("/suggest", params={"q": "coach uru"})["completions"] == ["coach uruguay", "coach uruk"]
    assert server.get("/suggest", params={"q": "basketbll uru"})["completions"] == ["basketball uruguay"]
    assert server.get("/suggest", params={"q": "coach uru", "where": "year > 2020"})["completions"] == ["coach uruk"]
    assert httpx.get(f"{server.address}/suggest?q=a&where=colour%3D1").status_code == 422

"""The addresses that search, of a real server."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support.each import each
from support.serving import DOCS, Running, serving

from fontes import Doc, Index, Topic
from fontes.app.server.application import application
from fontes.app.server.guard import Guard
from fontes.app.server.health import Metrics
from fontes.app.server.served import example_queries, overview_of
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings
from fontes.core import expression
from fontes.index.columns import facet_columns

PIPELINES = {
    "bm25": "bm25()",
    "rm3": "bm25() >> rm3() >> bm25()",
    "two words": "0.5 * bm25() + 0.5 * tfidf()",
    "language": "query() >> bm25()",
}


@pytest.fixture(scope="module")
def server(path: Path):
    with serving(path, pipelines=PIPELINES, rewriters={"last": "last_turns(2)", "raw": "raw()"}) as running:
        yield running


@pytest.fixture(scope="module")
def index(path: Path) -> Index:
    return Index.open(path)


def test_a_search_gives_what_the_command_line_gives(server: Running, path: Path, fontes) -> None:
    answer = server.get("/search", params={"q": "hot water", "k": 3, "text": "true"})
    code, out, _ = fontes("search", path, "hot water", "-k", "3", "--json")
    assert code == 0
    assert answer == {"index": "springs", "pipeline": "bm25", **json.loads(out)}
    assert "text" not in server.get("/search", params={"q": "hot water"})["hits"][0]


def test_a_query_in_the_language_says_what_was_understood(server: Running, index: Index) -> None:
    typed = '+water -geyser hot "unclosed'
    answer = server.get("/search", params={"q": typed, "syntax": "query"})
    ranking = (index.query() >> index.bm25()).search(typed, 10)
    assert [hit["id"] for hit in answer["hits"]] == ranking.ids
    assert answer["query"] == "water hot unclosed"
    remark = "query, character 20: the quotation mark is not closed"
    assert answer["understood"] == {"query": "+water hot unclosed -geyser", "remarks": [remark]}
    assert "operators" not in answer
    of = {"q": typed, "id": ranking.ids[0], "syntax": "query"}
    assert server.get("/explain", params=of)["value"] == pytest.approx(ranking[0].score)


def test_a_plain_query_says_whether_it_has_operators(server: Running) -> None:
    assert server.get("/search", params={"q": "+water -geyser"})["operators"] is True
    assert "operators" not in server.get("/search", params={"q": "+water -geyser", "pipeline": "language"})
    assert "operators" not in server.get("/search", params={"q": "water (geyser) C++?"})
    assert "understood" not in server.get("/search", params={"q": "+water -geyser"})


def test_topics_are_read_in_the_language_or_have_queries_of_their_own(server: Running, index: Index) -> None:
    own = {"id": "b", "text": "water", "query": {"must": [{"term": "water"}], "must_not": [{"term": "hot"}]}}
    body = {"topics": [{"id": "a", "text": "water -hot"}, own], "syntax": "query"}
    first, second = server.post("/search", body)["results"]
    assert first["understood"] == {"query": "water -hot", "remarks": []}
    assert "understood" not in second
    assert [hit["id"] for hit in first["hits"]] == [hit["id"] for hit in second["hits"]] != []


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"must": [{"trem": "water"}]}, "query.must[0]: a Group has no 'trem'"),
        ({"term": "water", "weight": "high"}, "query.weight: a weight is a number from 0 to 1,000,000, not 'high'"),
    ],
)
def test_a_structured_query_of_a_request_is_checked(server: Running, query: object, detail: str) -> None:
    answer = server.client.post("/search", json={"topics": [{"id": "a", "text": "water", "query": query}]})
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]


def test_an_unknown_syntax_is_refused(server: Running) -> None:
    answer = server.client.get("/search", params={"q": "water", "syntax": "lucene"})
    assert answer.status_code == 422
    assert "the parameter 'syntax': input should be 'plain' or 'query'" in answer.json()["detail"]


def test_snippets_are_left_out_where_nobody_wants_them(server: Running) -> None:
    with_snippets = server.get("/search?q=hot+water")
    for hit in with_snippets["hits"]:
        assert hit.pop("snippet")["matches"]
    assert server.get("/search?q=hot+water&snippets=false") == with_snippets
    asked = {"topics": [{"id": "1", "text": "hot water"}], "snippets": False}
    assert server.post("/search", asked)["results"][0]["hits"] == with_snippets["hits"]


def test_a_list_without_hits_says_why_as_the_command_line_does(server: Running) -> None:
    def reason(parameters: str) -> dict[str, str]:
        answer = server.get(f"/search?{parameters}")
        assert answer["hits"] == []
        reason: dict[str, str] = answer["no_hits"]
        return reason

    stop_words = "All words of the query are stop words, which are not searched."
    assert reason("q=the") == {"cause": "stop words", "sentence": stop_words}
    assert reason("q=%3F!") == {"cause": "no words", "sentence": "The query has no words."}
    assert reason("q=xyzzy") == {"cause": "words", "sentence": "No document holds any of these words."}
    assert reason("q=%2Bxyzzy&syntax=query")["cause"] == "pipeline"
    assert reason("q=water&offset=900")["cause"] == "offset"
    assert "no_hits" not in server.get("/search?q=water")


def test_suggestions_are_those_of_the_index(server: Running, index: Index) -> None:
    answer = server.get("/suggest", params={"q": "limstone  spr", "k": 1})
    assert answer == {
        "index": "springs",
        "query": "limstone  spr",
        "completions": ["limestone  spring"],
        "correction": "limestone  spr",
    }
    assert tuple(answer["completions"]) == index.suggest("limstone  spr", 1).completions
    assert server.get("/suggest?q=water")["correction"] is None


@each("pipeline", PIPELINES)
def test_each_pipeline_gives_its_own_scores(server: Running, index: Index, pipeline: str) -> None:
    answer = server.get("/search", params={"q": "hot water", "pipeline": pipeline, "k": 4})
    ranking = expression.pipeline(PIPELINES[pipeline], index).search("hot water", 4)
    assert [(hit["id"], hit["score"]) for hit in answer["hits"]] == [(hit.id, hit.score) for hit in ranking]
    assert answer["pipeline"] == pipeline
    assert server.get("/search", params={"q": "hot water", "pipeline": pipeline.upper(), "k": 4}) == answer


def test_histograms_come_with_the_hits_and_indexes_say_which_columns_are_facets(server: Running, index: Index) -> None:
    answer = server.get("/search", params={"q": "water spring", "histograms": "year", "facets": "kind"})
    counts = index.bm25().search("water spring").facets("year", bins=20)["year"]
    assert answer["histograms"] == {"year": [{"from": low, "to": high, "count": n} for (low, high), n in counts.items()]}
    assert list(answer["facets"]) == ["kind"]
    body = {"topics": [{"id": "1", "text": "water spring"}], "histograms": ["year"]}
    assert server.post("/search", body)["results"][0]["histograms"] == answer["histograms"]
    assert server.problem("GET", "/search?q=x&histograms=kind") == (
        422,
        "column 'kind' holds keyword values, which have no histogram; ask for its facets",
    )
    assert server.problem("GET", "/search?q=x&histograms=colour")[1].startswith("there is no column 'colour'")
    described = server.get("/indexes")["indexes"][0]
    assert (described["facets"], described["links"]) == (["year", "kind"], [])


def test_facets_may_be_those_values_that_contain_a_text(server: Running) -> None:
    answer = server.get("/search", params={"q": "water spring", "facets": "kind,year", "facet_query": "CÓ"})
    assert [entry["value"] for entry in answer["facets"]["kind"]] == ["cold"]
    assert answer["facets"]["year"] == []


def test_the_page_may_load_pictures_of_others_only_if_a_column_has_their_addresses(tmp_path: Path) -> None:
    def policy(**metadata: str) -> str:
        Index.build([Doc("1", "x", "", metadata)], tmp_path / "i.index", overwrite=True, threads=1)
        with serving(tmp_path / "i.index") as running:
            assert "img-src 'self' data:;" in running.client.get("/judge").headers["content-security-policy"]
            return str(running.client.get("/").headers.get_list("content-security-policy"))

    for column in ("image", "thumbnail_url", "photos", "coverImage"):
        assert "img-src https: http: 'self' data:;" in policy(**{column: "https://x/1"}), column
    assert "img-src 'self' data:;" in policy(image="javascript:alert(1)", page="https://x/1")


def test_filters_facets_and_explanations_come_with_the_hits(server: Running, index: Index) -> None:
    answer = server.get("/search", params={"q": "water spring", "where": "year >= 2020", "facets": "kind,year", "explain": "1"})
    assert sorted(hit["id"] for hit in answer["hits"]) == ["s2", "s3"]
    counts = index.bm25(where="year >= 2020").search("water spring").facets("kind", "year")
    assert answer["facets"] == {c: [{"value": v, "count": n} for v, n in of_c.items()] for c, of_c in counts.items()}
    for hit in answer["hits"]:
        assert hit["explanation"]["value"] == pytest.approx(hit["score"], rel=1e-6)
        assert hit["explanation"]["parts"]


def test_topics_are_searched_together_and_may_have_turns(server: Running, index: Index) -> None:
    topics = [
        {"id": "t2", "text": "geyser"},
        {"id": "t1", "text": "why?", "turns": [{"text": "karst water"}, {"text": "why?"}]},
    ]
    answer = server.post("/search", {"topics": topics, "k": 2})
    assert [result["topic"] for result in answer["results"]] == ["t2", "t1"]
    assert answer["results"][0]["hits"][0]["id"] == "s1"
    rewritten = server.post("/rewrite", {"topics": topics})
    assert rewritten["rewriter"] == "last"
    assert rewritten["topics"][1]["text"] == "karst water why?"
    assert [form["text"] for form in rewritten["topics"][1]["rewrites"]] == ["why?", "karst water why?"]
    assert server.post("/rewrite", {"topics": topics, "rewriter": "raw"})["topics"][1]["text"] == "why?"


def test_requests_that_are_searched_together_get_the_bytes_that_they_get_alone(server: Running) -> None:
    queries = ["hot water", "geyser", "karst limestone caves", "oasis desert", "café", "nothing of it"] * 20
    alone = {query: server.client.get("/search", params={"q": query}).content for query in set(queries)}
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda query: server.client.get("/search", params={"q": query}).content, queries))
    assert answers == [alone[query] for query in queries]
    sizes = server.client.get("/metrics").text
    count, total = (
        float(sizes.split(f'fontes_batch_topics_{name}{{queue="lexical"}} ')[1].split()[0]) for name in ("count", "sum")
    )
    assert total > count, "some were searched together"


@each("doc", DOCS)
def test_a_document_is_shown_whole_whatever_its_id(server: Running, doc) -> None:
    from urllib.parse import quote

    shown = server.get(f"/documents/{quote(doc.id, safe='')}", params={"q": "water spring"})
    assert (shown["id"], shown["text"], shown["title"], shown["metadata"]) == (doc.id, doc.text, doc.title, doc.metadata)
    words = [shown["text"][a:b].lower() for a, b in shown["matches"]]
    assert words == [
        word for word in doc.text.lower().replace(",", " ").replace(".", " ").split() if word in ("water", "spring", "springs")
    ]


def test_ids_that_are_places_in_paths_are_asked_for_in_the_query(tmp_path: Path) -> None:
    docs = [Doc(doc_id, f"the text of {doc_id}") for doc_id in (".", "..", "a/../b")]
    Index.build(docs, tmp_path / "dots.index", threads=1)
    with serving(tmp_path / "dots.index") as running:
        for doc in docs:
            shown = running.get("/documents", params={"id": doc.id, "q": "text"})
            assert (shown["id"], shown["text"], shown["matches"]) == (doc.id, doc.text, [[4, 8]])
        assert running.problem("GET", "/documents", params={"id": "..."})[0] == 404
        assert running.problem("GET", "/documents")[0] == 422


def test_an_explanation_is_that_of_the_command_line(server: Running, index: Index) -> None:
    assert server.get("/explain", params={"q": "hot water", "id": "s2"}) == index.bm25().explain("hot water", "s2").to_dict()


def test_causes_come_as_a_tree(server: Running, index: Index) -> None:
    from fontes.causal import causes

    tree = server.get("/why", params={"event": "springs lose their water", "depth": 1})
    assert tree == causes(index.bm25(), "springs lose their water", 1).to_dict()
    assert tree["causes"][0]["sources"][0]["doc_id"] == "s3"


def test_what_there_is_is_listed(server: Running, index: Index) -> None:
    listed = server.get("/indexes")
    (of_index,) = listed["indexes"]
    assert (of_index["name"], of_index["documents"], of_index["columns"]) == (
        "springs",
        5,
        {"kind": "keyword", "year": "integer"},
    )
    assert [pipeline["name"] for pipeline in of_index["pipelines"]] == list(PIPELINES)
    assert [rewriter["name"] for rewriter in of_index["rewriters"]] == ["last", "raw"]
    assert of_index["fingerprint"] == index.fingerprint
    assert (listed["any_pipeline"], listed["writable"]) == (False, False)


def test_a_conversation_goes_on_from_turn_to_turn(server: Running) -> None:
    first = server.post("/conversations", {"k": 2, "text": "karst water"})
    assert (len(first["turns"]), first["query"], first["hits"][0]["id"]) == (1, "karst water", "s3")
    assert first["turns"][0]["answer_id"] == "s3"
    second = server.post("/conversations", {"text": "and geysers?", "turns": first["turns"]})
    assert second["query"] == "karst water and geysers?"
    assert [form["text"] for form in second["rewrites"]] == ["and geysers?", "karst water and geysers?"]
    edited = server.post("/conversations", {"text": "and geysers?", "rewritten": "geysers", "turns": first["turns"]})
    assert (edited["query"], edited["hits"][0]["id"]) == ("geysers", "s1")
    assert [turn["automatic"] for turn in edited["turns"]] == ["karst water", "geysers"]


def test_the_weights_of_a_rewritten_turn_are_shown(path: Path) -> None:
    with serving(path) as running:
        turns = running.post("/conversations", {"text": "karst"})["turns"]
        weights = running.post("/conversations", {"text": "why water", "turns": turns})["rewrites"][-1]["weights"]
        assert weights == {"karst": 0.3, "why": 1.0, "water": 1.0}


def test_several_indexes_are_named_by_their_folders(path: Path, tmp_path: Path) -> None:
    Index.build({"x": "a geyser of another kind"}, tmp_path / "other.index", threads=1)
    with serving(path, tmp_path / "other.index") as running:
        assert running.get("/search", params={"q": "geyser"})["hits"][0]["id"] == "s1"
        assert running.get("/search", params={"q": "geyser", "index": "other"})["hits"][0]["id"] == "x"
        assert running.problem("GET", "/search?q=x&index=third") == (404, "there is no index 'third'; there are springs, other")


def test_expressions_of_requests_have_the_parts_of_the_server_alone(path: Path) -> None:
    with serving(path, pipelines={"last": "last_turns(1) >> bm25()"}, any_pipeline=True) as running:
        answer = running.get("/search", params={"q": "hot water", "pipeline": "tfidf() % 2"})
        assert len(answer["hits"]) == 2
        status, sentence = running.problem("GET", "/search", params={"q": "x", "pipeline": 'bm25() >> boost("price")'})
        assert (status, "boost: there is no column 'price'" in sentence) == (422, True), sentence
        # What sorts all matches, or compares many documents, is for the server's own pipelines.
        costly = ('bm25() >> sort("price")', "bm25() >> mmr()")
        for text in ('bm25() >> cross_encoder("owner/model")', 'bm25() >> text_scorer("/etc/passwd")', 'dense("x")', *costly):
            status, sentence = running.problem("GET", "/search", params={"q": "x", "pipeline": text})
            assert (status, sentence.endswith("is not among what this server has loaded")) == (403, True), sentence
        status, sentence = running.problem("GET", "/search", params={"q": "x", "pipeline": "bm25(k=100000000)"})
        assert (status, sentence) == (422, "a number in a pipeline may be 1,000 at most here")
        assert running.problem("GET", "/search", params={"q": "x", "pipeline": "bm25() >>"})[0] == 422
        assert running.problem("GET", "/search", params={"q": "x", "pipeline": "raw()"})[0] == 422
        deep = "bm25(" * 3000
        assert running.problem("GET", "/search", params={"q": "x", "pipeline": deep})[0] in (400, 422)


def test_topics_with_weights_are_searched_with_them(server: Running, index: Index) -> None:
    weights = {"geyser": 2.0, "water": 0.5}
    answer = server.post("/search", {"topics": [{"id": "1", "text": "x", "weights": weights}], "k": 5})
    ranking = index.bm25().search(Topic("1", "x", weights=weights), 5)
    assert [(hit["id"], hit["score"]) for hit in answer["results"][0]["hits"]] == [(hit.id, hit.score) for hit in ranking]


def test_one_topic_that_is_wrong_does_not_spoil_those_that_wait_with_it(server: Running) -> None:
    wrong = {"topics": [{"id": "1", "text": "x", "weights": {"water": 1e300}}]}
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(
                lambda i: (
                    server.client.post(
                        "/search", json=wrong if i % 5 == 0 else {"topics": [{"id": "1", "text": "water"}]}
                    ).status_code
                ),
                range(60),
            )
        )
    assert answers == [422 if i % 5 == 0 else 200 for i in range(60)]


def test_the_page_and_the_description_of_the_api_fetch_nothing_from_elsewhere(server: Running) -> None:
    for path in ("/", "/docs", "/page/docs.css"):
        response = server.client.get(path)
        assert response.status_code == 200
        assert "http://" not in response.text.replace("http://www.w3.org", "").replace(server.address, "")
        assert "https://" not in response.text
        assert "default-src 'none'" in response.headers["content-security-policy"]
    assert server.problem("GET", "/page/..%2fsettings.py")[0] == 404
    assert server.problem("GET", "/page/nothing.js")[0] == 404
    documented = server.get("/openapi.json")["paths"]
    page = server.client.get("/docs").text
    assert all(path in page for path in documented)
    assert "string<td>Name of the index; the first one if omitted." in page
    assert "boolean, false if omitted" in page


def test_metrics_tell_requests_queues_and_the_generation_of_the_index(server: Running) -> None:
    server.get("/search?q=water")
    text = server.client.get("/metrics").text
    for line in (
        'fontes_requests_total{method="GET",path="/search",status="200"}',
        'fontes_request_seconds_bucket{le="0.1",path="/search"}',
        'fontes_queue_requests{queue="lexical"} 0.0',
        'fontes_queue_requests{queue="models"} 0.0',
        'fontes_index_generation{index="springs"} 0.0',
        'fontes_index_documents{index="springs"} 5.0',
        "fontes_requests_at_once 1.0",
    ):
        assert line in text, line
    assert server.get("/health") == {"status": "ok"}
    assert server.get("/ready")["indexes"]["springs"]["generation"] == 0


@each(
    "question",
    ["q=hot+water", "q=", "", "q=x&k=0", "q=x&what=y", "q=%ED%A0%80", "q=spring&facets=kind&explain=1", "q=x&where=nothing"],
)
def test_a_search_is_answered_as_it_is_by_the_application_that_describes_it(path: Path, question: str) -> None:
    service = Service([path], ServerSettings())

    async def answers() -> list[tuple[int, bytes, str | None, str | None]]:
        guard = application(service)
        found = []
        for app in (guard, Guard(guard._app._app, service.settings, Metrics(), service.names)):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
                response = await client.get(f"/search?{question}")
                assert response.headers["x-frame-options"] == "DENY"
                of_headers = response.headers.get("content-type"), response.headers.get("cache-control")
                found.append((response.status_code, response.content, *of_headers))
        return found

    with ThreadPoolExecutor(1) as apart:  # a browser's loop may run in this thread
        direct, described = apart.submit(asyncio.run, answers()).result()
    service.close()
    assert direct == described


def test_work_with_a_model_is_done_in_the_thread_of_the_models(path: Path) -> None:
    service = Service([path], ServerSettings())
    try:
        for model, pool in ((True, "models"), (False, "others")):
            with ThreadPoolExecutor(1) as executor:  # a loop of its own, whatever runs in this thread
                work = service.work(lambda: threading.current_thread().name, model=model)
                assert executor.submit(asyncio.run, work).result().startswith(pool)
    finally:
        service.close()


def test_a_page_has_the_ranks_after_its_offset_and_the_number_of_matches_on_request(server: Running, index: Index) -> None:
    whole = server.get("/search", params={"q": "hot water", "k": 100})
    every = index.bm25().count("hot water")
    assert whole["total"] == {"value": every, "relation": "eq"}
    of_feedback = server.get("/search", params={"q": "hot water", "k": 2, "offset": 1, "pipeline": "rm3"})
    assert of_feedback["total"] == {"value": 3, "relation": "gte"}, "it would be searched twice"
    faceted = server.get("/search", params={"q": "hot water", "k": 2, "pipeline": "rm3", "facets": "kind"})
    assert faceted["total"]["relation"] == "eq", "facets count all documents that match"
    for pipeline in ("bm25", "rm3", "two words"):
        first, second = (
            server.get("/search", params={"q": "hot water", "k": 2, "offset": n, "count": "true", "pipeline": pipeline})
            for n in (0, 2)
        )
        assert [hit["rank"] for hit in first["hits"] + second["hits"]] == [1, 2, 3, 4]
        assert (
            first["total"]
            == second["total"]
            == {"value": expression.pipeline(PIPELINES[pipeline], index).count("hot water"), "relation": "eq"}
        )
    several = server.post("/search", {"topics": [{"id": "7", "text": "hot water"}], "offset": 2, "count": True, "k": 2})
    assert several["results"][0]["hits"] == server.get("/search", params={"q": "hot water", "k": 2, "offset": 2})["hits"]
    assert several["results"][0]["total"]["value"] == every
    beyond = server.get("/search", params={"q": "hot water", "offset": every, "count": "true"})
    assert (beyond["hits"], beyond["total"]) == ([], {"value": every, "relation": "eq"})
    understood = server.get("/search", params={"q": "+hot +water", "syntax": "query", "count": "true"})
    assert understood["total"]["value"] == (index.query() >> index.bm25()).count("+hot +water")


def test_an_offset_that_is_none_or_beyond_the_limit_is_refused(server: Running) -> None:
    status, detail = server.problem("GET", "/search", params={"q": "hot", "offset": 995, "k": 6})
    assert (status, detail) == (422, "offset 995 with k 6 goes beyond the best 1,000 hits, this server's limit (--k)")
    status, detail = server.problem("GET", "/search", params={"q": "hot", "offset": -1})
    assert (status, detail) == (422, "the parameter 'offset': input should be greater than or equal to 0")


def test_hits_are_sorted_by_a_column_and_all_matches_are_counted(server: Running, index: Index) -> None:
    for descending in (False, True):
        asked = {"q": "water", "sort": "year", "descending": str(descending).lower(), "k": 3, "facets": "kind", "count": "1"}
        for pipeline in ("bm25", "two words"):
            answer = server.get("/search", params={**asked, "pipeline": pipeline})
            stage = expression.pipeline(PIPELINES[pipeline], index) >> index.sort("year", descending=descending)
            assert [hit["id"] for hit in answer["hits"]] == stage.search("water", 3).ids
            counts = index.bm25().search("water").facets("kind")["kind"]
            assert {count["value"]: count["count"] for count in answer["facets"]["kind"]} == counts
            assert answer["total"]["value"] == index.bm25().count("water")
    body = {"topics": [{"id": "1", "text": "water"}], "sort": "year", "descending": True, "k": 3}
    assert server.post("/search", body)["results"][0]["hits"] == answer["hits"]
    for column, detail in (
        ("kind", "sort: the column 'kind' holds text; give one of dates or numbers"),
        ("yaer", "sort: there is no column 'yaer'; did you mean 'year'?"),
    ):
        assert server.problem("GET", "/search", params={"q": "water", "sort": column}) == (422, detail)


def test_examples_are_drawn_from_the_documents(server: Running) -> None:
    answer = server.get("/examples")
    assert (answer["index"], answer["examples"]) == ("springs", ["Geysers", "<i>Oasis</i>", "Déjà vu"])
    assert [(doc["value"], doc["title"]) for doc in answer["newest"]] == [
        (2020, "Karst"),
        (2020, "Hot springs"),
        (2019, "Geysers"),
    ]
    assert answer["columns"] == [
        {"name": "year", "type": "integer", "from": 2019, "to": 2020},
        {"name": "kind", "type": "keyword", "values": ["cold", "hot"]},
    ]
    assert all(server.get("/search", params={"q": text})["hits"] for text in answer["examples"])
    assert server.problem("GET", "/examples?index=x") == (404, "there is no index 'x'; there are springs")


@each(
    ("texts", "queries"),
    [
        ([], []),
        (["", " \n"], []),
        (["one two three. Four five."], ["one two three"]),
        (["same words here"] * 3, ["same words here"]),
        ([f"{'long ' * 30}{n}" for n in range(2)] + ["short enough to ask"], ["long " * 15 + "long", "short enough to ask"]),
        (
            ["It is hot. Why does a geyser erupt? Steam.", "Where does water come from?", "Water."],
            ["Why does a geyser erupt?", "Where does water come from?", "Water"],
        ),
        (["مرحبا بالعالم؟ نعم", "東京は日本の首都です。" * 9], ["مرحبا بالعالم؟", "東京は日本の首都です。"]),
    ],
)
def test_examples_and_the_overview_suit_any_text(texts: list[str], queries: list[str], tmp_path: Path) -> None:
    index = Index.build([Doc(str(n), text) for n, text in enumerate(texts)], tmp_path / "i.index", threads=1)
    assert example_queries(index) == queries
    assert overview_of(index, facet_columns(index.state)) == {"newest": [], "columns": []}
    assert all(index.bm25().search(query) for query in queries)


def test_an_index_without_texts_has_its_frequent_terms_as_examples(index: Index, tmp_path: Path) -> None:
    index.export(tmp_path / "springs.ciff")
    bare = Index.build(tmp_path / "springs.ciff", tmp_path / "bare.index")
    assert len(example_queries(bare)) == 3
    assert all(bare.bm25().search(query) for query in example_queries(bare))

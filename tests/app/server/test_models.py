"""Pipelines with models: a queue of their own, in which topics go through the model together."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.serving import serving, springs
from support.tiny_cross_encoder import pairs, save_cross_encoder

from fontes import Index
from fontes.core import expression

pytest.importorskip("torch")


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    return f'bm25() % 8 >> cross_encoder("{save_cross_encoder(tmp_path / "model")}", precision="float32")'


def test_topics_in_one_batch_get_the_scores_that_they_get_alone(tmp_path: Path, pipeline: str) -> None:
    texts = pairs(40)
    index = Index.build({f"d{n}": text for n, (_, text) in enumerate(texts)}, tmp_path / "x.index", threads=1)
    stage = expression.pipeline(pipeline, index)
    queries = [query for query, _ in texts[:12]]
    alone = [{hit.id: hit.score for hit in stage.search(query, 8)} for query in queries]
    with serving(tmp_path / "x.index", pipelines={"fast": "bm25()", "best": pipeline}) as running:
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda query: running.get("/search", params={"q": query, "pipeline": "best"}), queries))
        calls = running.client.get("/metrics").text
    for scores, answer in zip(alone, answers, strict=True):
        assert {hit["id"]: hit["score"] for hit in answer["hits"]} == pytest.approx(scores, abs=1e-5)
    called = float(calls.split('fontes_model_calls_total{pipeline="best"} ')[1].split()[0])
    assert 1 <= called < len(queries)


def test_a_request_may_use_the_models_of_the_server_and_no_others(tmp_path: Path, pipeline: str) -> None:
    Index.build({f"d{n}": text for n, (_, text) in enumerate(pairs(10))}, tmp_path / "x.index", threads=1)
    with serving(tmp_path / "x.index", pipelines={"best": pipeline}, any_pipeline=True) as running:
        query = pairs(1)[0][0]
        own = pipeline.replace("% 8", "% 3")
        assert running.get("/search", params={"q": query, "pipeline": own})
        for other in (own.replace("model", "other"), own.replace("float32", "bfloat16")):
            assert running.problem("GET", "/search", params={"q": query, "pipeline": other})[0] == 403


def test_a_language_model_that_the_server_was_not_given_is_refused(tmp_path: Path) -> None:
    with serving(springs(tmp_path), any_pipeline=True) as running:
        for text, stage in {
            'bm25() % 8 >> llm_listwise("m")': "llm_listwise",
            'bm25() % 8 >> llm_pointwise(llm("m", service="vllm"))': "llm_pointwise",
            'hyde("m") >> bm25()': "hyde",
            'bm25() % 5 >> answer("m")': "answer",
        }.items():
            problem = running.problem("GET", "/search", params={"q": "springs", "pipeline": text})
            assert problem == (403, f"{stage} with these parameters is not among what this server has loaded")

"""Search by actors that each hold some shards: the runs of one index, from whichever state, and what is missing is said."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.counting_terms import CountingTerms
from support.hashed_encoder import Hashed
from support.histories import COLUMNS, MODELS, OF_WEIGHTS, TOPICS, answer, some_docs

from fontes.core import FontesError, ParameterError, Topic, Topics
from fontes.index import Index
from fontes.neural.late.encode import encode_late

DOCS = some_docs(3, [f"{n * 7919 % 1009}é" for n in range(90)])
SOME = ("bm25 okapi", "bm25 in bytes", "tfidf", "jelinek-mercer", "rm3", "bm25 of some years")
QUERIES = Topics([Topic("1", '"w1 w2" +w0 -title:w3'), Topic("2", "w1 w2"), Topic("3", 'w2* "w0 w1"~uw4 lang:cs')])
SAYING_MORE: dict[str, Any] = {
    "fields": lambda index: index.bm25(fields={"title": 3, "text": 1}, b={"title": 0.2}),
    "one field": lambda index: index.ql(fields={"title": 1}),
    "language": lambda index: index.query() >> index.bm25(fields={"title": 3, "text": 1}, combine="sum"),
    "pairs": lambda index: index.sdm() >> index.ql(),
}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory, ray: str) -> tuple[Index, Index]:
    """One index, and one of three shards that two actors search; both live."""
    folder = tmp_path_factory.mktemp("actors")
    kept = {"separate": True, "positions": True}
    parameters: dict[str, Any] = {"analyzer": "whitespace", "columns": COLUMNS, "threads": 1, **kept}
    one = Index.build(DOCS, folder / "one", **parameters)
    Index.build(DOCS, folder / "shards", shards=3, **parameters)
    return one, Index.open(folder / "shards", ray=ray)


def test_actors_find_what_one_index_finds_after_additions_and_deletions_too(indexes: tuple[Index, Index]) -> None:
    one, index = indexes
    for step in range(2):
        for name in SOME:
            assert answer(MODELS[name](index)(TOPICS)) == answer(MODELS[name](one)(TOPICS)), (step, name)
        for name, model in SAYING_MORE.items():
            assert answer(model(index)(QUERIES)) == answer(model(one)(QUERIES)), (step, name)
        if step == 0:
            for each in indexes:
                each.delete([doc.id for doc in DOCS[::7]])
                each.add(some_docs(8, ["new1", "new2"]))
    assert index.bm25().search("w1 w2", 5).ids == one.bm25().search("w1 w2", 5).ids
    ranking = index.bm25(k=3)(TOPICS)["1"]
    assert len(ranking) == 3
    assert ranking.facets("year") == one.bm25(k=3)(TOPICS)["1"].facets("year")


@pytest.mark.slow
def test_actors_search_vectors_that_this_process_made_of_the_queries(indexes: tuple[Index, Index]) -> None:
    encoder = Hashed()
    for each in indexes:
        each.encode(encoder)
    runs = [each.dense(encoder, k=7)(TOPICS) for each in indexes]
    assert answer(runs[0]) == answer(runs[1])
    assert runs[1].provenance["exact"]
    with pytest.raises(ParameterError, match="actors search shards only by 'flat'"):
        indexes[1].dense(encoder, algorithm="hnsw")(TOPICS)


@pytest.mark.slow
def test_token_vectors_are_made_by_actors_and_searched_over_shards_as_in_one_index(tmp_path: Path, ray: str) -> None:
    pytest.importorskip("torch")
    from support.tiny_colbert import documents, tiny_colbert

    colbert = tiny_colbert(tmp_path / "colbert")
    docs, topics = documents(24), [doc["text"] for doc in documents(4)]
    one = Index.build(docs, tmp_path / "one", threads=1)
    Index.build(docs, tmp_path / "shards", shards=2, threads=1)
    index = Index.open(tmp_path / "shards", ray=ray)
    for each, where in ((one, None), (index, ray)):
        encode_late(each, colbert, nbits=32, centroids=4, ray=where)
    runs = [each.late(colbert, algorithm="exhaustive", k=7)(topics).to_dict() for each in (index, one)]
    assert runs[0].keys() == runs[1].keys()
    for topic, ranking in runs[1].items():
        assert list(runs[0][topic]) == list(ranking)
        assert list(runs[0][topic].values()) == pytest.approx(list(ranking.values()), abs=1e-5)
    with pytest.raises(ParameterError, match="actors search only by 'exhaustive'"):
        index.late(colbert, algorithm="centroids")(topics)


@pytest.mark.slow
def test_sparse_weights_are_searched_over_shards_as_in_one_index(tmp_path: Path, ray: str) -> None:
    parameters: dict[str, Any] = {"analyzer": "whitespace", "columns": COLUMNS, "vectors": "vector", "threads": 1}
    terms = CountingTerms()
    one = Index.build(DOCS, tmp_path / "one", **parameters)
    Index.build(DOCS, tmp_path / "shards", shards=3, **parameters)
    index = Index.open(tmp_path / "shards", ray=ray)
    for each, where in ((one, None), (index, ray)):
        each.encode(terms, ray=where)
    for model in OF_WEIGHTS.values():
        assert answer(model(index)(TOPICS)) == answer(model(one)(TOPICS))
    texts = [topic for topic in TOPICS.values() if topic.weights is None]
    assert answer(index.splade(terms, k=7)(texts)) == answer(one.splade(terms, k=7)(texts))


def test_batches_of_several_threads_are_searched_at_a_time(indexes: tuple[Index, Index]) -> None:
    one, index = indexes
    stage, batches = index.bm25(), [Topics([topic]) for topic in TOPICS.values()] * 4
    with ThreadPoolExecutor(8) as threads:
        runs = list(threads.map(stage, batches))
    assert [answer(run) for run in runs] == [answer(one.bm25()(batch)) for batch in batches]


def test_an_error_of_a_stage_is_its_own(indexes: tuple[Index, Index]) -> None:
    with pytest.raises(ParameterError, match="k1"):
        indexes[1].bm25(k1=-1)(TOPICS)


@pytest.mark.slow
def test_an_actor_that_is_killed_is_started_again(indexes: tuple[Index, Index]) -> None:
    one, index = indexes
    actors: Any = index.state.actors
    (first, *_) = actors._actors.answers(_process, None)
    os.kill(first, signal.SIGKILL)
    assert answer(index.bm25()(TOPICS)) == answer(one.bm25()(TOPICS))


@pytest.mark.slow
def test_a_shard_lost_during_a_search_is_an_error_or_reported_missing(indexes: tuple[Index, Index]) -> None:
    import ray

    path = indexes[1].path
    for partial in (False, True):
        index = Index.open(path, ray=True, partial=partial)
        actors: Any = index.state.actors
        ray.kill(actors._actors._actors[0])  # which does not start it again
        if not partial:
            with pytest.raises(FontesError, match=r"shard .* cannot be searched"):
                index.bm25()(TOPICS)
            continue
        run = index.bm25()(TOPICS)
        missing = [shard["shard"] for shard in run.provenance["missing"]]
        assert missing == actors._groups[0]
        assert 0 < run.rows < indexes[0].bm25()(TOPICS).rows
        whole = indexes[0].bm25()(TOPICS).to_dict()
        assert all(whole[topic][doc] == score for topic, docs in run.to_dict().items() for doc, score in docs.items())


@pytest.mark.slow
def test_a_shard_that_cannot_be_read_is_named_by_its_actors_and_can_be_left_out(
    indexes: tuple[Index, Index], tmp_path: Path, ray: str
) -> None:
    shutil.copytree(indexes[1].path, tmp_path / "x")
    entries = Index.open(tmp_path / "x").state.manifest["segments"]
    (lost,) = {entry["name"] for entry in entries if entry["shard"] == 2} & {entries[-1]["name"]}
    shutil.rmtree(tmp_path / "x" / lost)
    index = Index.open(tmp_path / "x", ray=ray, partial=True)
    alone = Index.open(tmp_path / "x", partial=True)
    runs = [each.tfidf()(TOPICS) for each in (index, alone)]
    assert answer(runs[0]) == answer(runs[1])
    assert [[shard["shard"] for shard in run.provenance["missing"]] for run in runs] == [[2], [2]]


def _process(holds: Any, part: Any) -> int:
    return os.getpid()

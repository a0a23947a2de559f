"""Stages over the topics of a run, and experiments, on a cluster: the runs of one machine."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from support.hashed_encoder import Hashed, made_docs, queries
from support.ray_parts import NotHere
from support.tiny_cross_encoder import save_cross_encoder

from fontes.cluster import apply
from fontes.cluster.actors import BASE, memory_of
from fontes.core import Run, Topics
from fontes.core.errors import FontesError, InputError
from fontes.core.part import fix_precision
from fontes.core.work import work
from fontes.experiments.systems import Searches
from fontes.index import Index
from fontes.neural import CrossEncoder


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    index = Index.build(made_docs(300), tmp_path_factory.mktemp("stages") / "x", analyzer="whitespace")
    index.encode(Hashed())
    return index


def columns(run: Run) -> tuple[dict[str, dict[str, float]], list[str]]:
    return run.to_dict(), list(run.topics)


def test_a_stage_that_was_called_can_travel(index: Index) -> None:
    topics = Topics.of(queries(3))
    stage = index.bm25() % 5 + 0.5 * (index.dense(Hashed()) % 5)
    here = stage(topics)
    assert columns(pickle.loads(pickle.dumps(stage))(topics)) == columns(here)


def test_runs_of_a_cluster_are_those_of_one_machine(index: Index, ray: str) -> None:
    topics = Topics.of(queries(37))
    for stage in (index.bm25() % 20, index.dense(Hashed()) % 10):
        here, there = stage(topics), apply(stage, topics, ray)
        assert columns(there) == columns(here)
        assert there.documents.fingerprint == index.fingerprint


@pytest.mark.slow
def test_a_reranker_scores_on_a_cluster_as_on_one_machine(index: Index, ray: str, tmp_path: Path) -> None:
    reranker = fix_precision(CrossEncoder(str(save_cross_encoder(tmp_path / "model"))))
    assert reranker.precision != "auto"
    candidates = (index.bm25() % 5)(Topics.of(queries(9)))
    here, there = reranker(candidates), apply(reranker, candidates, ray)
    assert {t: set(r) for t, r in there.to_dict().items()} == {t: set(r) for t, r in here.to_dict().items()}
    for topic, ranking in here.to_dict().items():
        ours = [there.to_dict()[topic][doc] for doc in ranking]
        np.testing.assert_allclose(ours, list(ranking.values()), atol=1e-5, rtol=0)
    assert there.provenance["reranked"]["pairs"] == candidates.rows


@pytest.mark.slow
def test_an_experiment_spreads_the_topics_of_each_step(index: Index, ray: str) -> None:
    topics = Topics.of(queries(12))
    system = index.bm25() % 10 + 0.5 * (index.dense(Hashed()) % 10)
    here = Searches(topics, None).of("both", system).run
    with work(ray=ray):
        there = Searches(topics, None).of("both", system).run
    assert columns(there) == columns(here)


@pytest.mark.slow
def test_the_vectors_that_an_experiment_lacks_are_made_on_the_cluster(ray: str, tmp_path: Path) -> None:
    index, encoder = Index.build(made_docs(40), tmp_path / "x"), NotHere(process=os.getpid())
    with work(ray=ray):
        (index.bm25() % 10 + 0.5 * (index.dense(encoder) % 10)).prepare()
    expected = Hashed().encode_queries([text for _, text in made_docs(40)])
    np.testing.assert_array_equal(index.embeddings(encoder).decoded(slice(None)), expected)


def test_an_index_that_has_changed_meanwhile_is_refused(tmp_path: Path, ray: str) -> None:
    index = Index.build(made_docs(30), tmp_path / "x", analyzer="whitespace")
    stage = index.bm25() % 5
    Index.open(tmp_path / "x").add([("new", "w1 w2")])
    with pytest.raises(FontesError, match=r"the index .+ differs on .+; install the same"):
        apply(stage, Topics.of(queries(3)), ray)


def test_an_error_of_a_stage_is_its_own_sentence(ray: str, tmp_path: Path) -> None:
    reranker = CrossEncoder(str(save_cross_encoder(tmp_path / "model")), precision="float32")
    with pytest.raises(InputError, match="needs the documents' text"):
        apply(reranker, Run.of({"q": {"d1": 1.0}}), ray)


def test_the_memory_of_a_stage_is_that_of_its_models(index: Index, tmp_path: Path) -> None:
    model = save_cross_encoder(tmp_path / "model")
    size = sum(file.stat().st_size for file in model.iterdir())
    stage = index.bm25() % 5 >> CrossEncoder(str(model), precision="float32")
    assert memory_of(stage) == BASE + 2 * size
    assert memory_of(index.bm25()) == memory_of(Hashed()) == 0

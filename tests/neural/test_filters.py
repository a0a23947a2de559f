"""Search in vectors under a filter: the documents that pass, as many as there are, with the scores that they have without."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.counting_terms import CountingTerms
from support.described import TYPES, described, same
from support.each import each
from support.hashed_encoder import Hashed, Parts

from fontes.core import Doc, Topics
from fontes.index import Index
from fontes.index.columns import filter_of
from fontes.lexical import RM3

WHERES = [
    "open",
    "year >= 2020 and lang in ('cs', 'en') and not open",
    "year == 1995",
    "year == 1995 and lang == 'cs' and score > 2.5",
    "year < 0",
    "year > 0 or year is None",
]
TOPICS = Topics.of({f"q{n}": f"w{n} w{n * 3 % 200} w{n * 17 % 200}" for n in range(12)} | {"empty": ""})
ALL = 1_000_000


def living(path: Path, docs: list[Doc], encode: Callable[[Index], None]) -> Index:
    """An index of two segments with deletions."""
    middle = 2 * len(docs) // 3
    index = Index.build(docs[:middle], path, analyzer="whitespace", columns=TYPES)
    encode(index)
    index.delete([doc.id for doc in docs[:middle:10]])
    index.add(docs[middle:])
    encode(index)
    assert len(index.state.leaves) == 2
    return index


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    def encode(index: Index) -> None:
        for encoder in (Hashed(), Parts(dim=24)):
            for dtype in ("float32", "int8", "rabitq2"):
                index.encode(encoder, dtype=dtype)
        index.encode(CountingTerms())

    return living(tmp_path_factory.mktemp("filters") / "x", described(800, words=9), encode)


@each("encoder", [Hashed(), Parts(dim=24)])
@each("dtype", ["float32", "int8", "rabitq2"])
def test_exact_dense_search_gives_the_best_k_that_pass(index, encoder, dtype):
    every = index.dense(encoder, dtype=dtype, k=ALL)(TOPICS)
    for where in WHERES:
        for k in (1, 20, ALL):
            assert same(index.dense(encoder, dtype=dtype, k=k, where=where)(TOPICS), every, index, where, k), (where, k)
        assert (
            index.dense(encoder, dtype=dtype, where=where).search("w1 w3", 5).ids
            == (index.dense(encoder, dtype=dtype, where=where)("w1 w3")["1"].ids[:5])
        )


@pytest.mark.parametrize(("algorithm", "name"), [("hnsw", "ef_search"), ("IVF16,Flat", "nprobe"), ("annoy:5", "search_k")])
@pytest.mark.parametrize("visits", [None, 1])
def test_approximate_search_asks_on_until_it_has_k_or_says_that_it_has_not(index, algorithm, name, visits):
    pytest.importorskip("annoy" if algorithm.startswith("annoy") else "faiss")
    every = index.dense(Hashed(), k=ALL)(TOPICS).to_dict()
    for where in (WHERES[0], WHERES[2], WHERES[4]):
        passed = filter_of(index.state, where)
        run = index.dense(Hashed(), algorithm=algorithm, k=10, **{name: visits}, where=where)(TOPICS)
        short = [topic for topic in TOPICS if topic != "empty" and len(run[topic]) < min(10, len(passed.docs))]
        assert run.provenance["exhausted"] == short
        assert passed.mask[run.codes].all()
        assert not short or where != "open"
        for topic, ranking in run.items():
            assert all(every[topic][hit.id] == hit.score for hit in ranking)
            expected = {t: s for t, s in every[topic].items() if passed.mask[index.ordinal(t)]}
            assert topic in short or len(ranking) == (0 if topic == "empty" else min(10, len(expected)))


def test_an_approximate_search_scores_all_documents_of_a_filter_that_few_pass(index):
    pytest.importorskip("faiss")
    every = index.dense(Hashed(), k=ALL)(TOPICS)
    run = index.dense(Hashed(), algorithm="hnsw", k=20, where=WHERES[2])(TOPICS)
    assert len(filter_of(index.state, WHERES[2]).docs) < 100
    assert same(run, every, index, WHERES[2], 20)


def test_learned_sparse_search_gives_the_best_k_that_pass(index):
    every = index.splade(CountingTerms(), k=ALL)(TOPICS)
    for where in WHERES:
        assert same(index.splade(CountingTerms(), k=20, where=where)(TOPICS), every, index, where, 20), where


@pytest.mark.parametrize("stage", ["dense", "splade"])
def test_a_document_that_is_left_out_is_explained_as_such(index, stage):
    encoder = Hashed() if stage == "dense" else CountingTerms()
    hit = getattr(index, stage)(encoder, where="open").search("w1 w3", 1)[0]
    assert np.float32(getattr(index, stage)(encoder, where="open").explain("w1 w3", hit.id).value) == np.float32(hit.score)
    left_out = getattr(index, stage)(encoder, where="not open").explain("w1 w3", hit.id)
    assert (left_out.value, left_out.label) == (0.0, "excluded by the filter not open")


def test_feedback_is_of_the_documents_that_passed(index):
    stage = index.dense(Hashed(), k=5, where="open") >> RM3(index=index) >> index.bm25(where="not open")
    (ranking,) = stage("w1 w3").values()
    assert len(ranking)
    assert not any(doc.metadata["open"] for doc in ranking.docs())


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from support.tiny_colbert import TEXT_WORDS, tiny_colbert

    from fontes.neural.late.encode import encode_late

    model = tiny_colbert(tmp_path_factory.mktemp("models") / "colbert")
    draw = np.random.default_rng(4)
    docs = [
        Doc(doc.id, " ".join(draw.choice(TEXT_WORDS, draw.integers(3, 12))), metadata=doc.metadata) for doc in described(150)
    ]
    return living(tmp_path_factory.mktemp("late") / "x", docs, lambda index: encode_late(index, model, nbits=2)), model


def test_late_interaction_gives_the_best_k_that_pass(late):
    index, model = late
    topics = {"q1": "old well", "q2": "deep spring water", "q3": "town"}
    every = index.late(model, algorithm="exhaustive", k=ALL)(topics)
    for where in WHERES:
        assert same(index.late(model, algorithm="exhaustive", k=20, where=where)(topics), every, index, where, 20), where
        passed = filter_of(index.state, where)
        for options in ({}, {"nprobe": 1, "candidates": 80}):
            run = index.late(model, k=20, where=where, **options)(topics)
            assert passed.mask[run.codes].all()
            scores = every.to_dict()
            for topic, ranking in run.items():
                assert len(ranking) == min(20, len(passed.docs)), (where, options)
                assert all(scores[topic][hit.id] == hit.score for hit in ranking)

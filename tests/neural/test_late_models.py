"""ColBERT's checkpoints: each form gives the vectors and scores that its own code gives, recomputed here step by step."""

import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from support.tiny_colbert import backbone, colbert_checkpoint, pylate_checkpoint, write_tokenizer  # noqa: E402

from fontes.core.values import Doc  # noqa: E402
from fontes.neural.late.colbert import ColBERT  # noqa: E402
from fontes.neural.late.maxsim import maxsim  # noqa: E402

DOCS = [
    Doc("d1", "The old well, deep in rock.", "Water"),
    Doc("d2", "A spring rises: sand & rock! " * 6),
    Doc("d3", "", "Pumps"),
    Doc("d4", "zebra zebra (unknown words) ..."),
]
QUERIES = ["the old spring", "pump", "water " * 40, ""]


def unit(model: Any, linear: Any, ids: Any, mask: Any) -> Any:
    with torch.inference_mode():
        return torch.nn.functional.normalize(linear(model(input_ids=ids, attention_mask=mask)[0]), p=2, dim=2)


def colberts_query(parts: Any, text: str, length: int, attend: bool) -> Any:
    """QueryTokenizer.tensorize and ColBERT.query of ColBERT's code."""
    model, linear, tok = parts
    given = tok([f". {text}"], padding="max_length", truncation=True, return_tensors="pt", max_length=length)
    ids, mask = given["input_ids"], given["attention_mask"]
    ids[:, 1] = tok.convert_tokens_to_ids("[unused0]")
    ids[ids == tok.pad_token_id] = tok.mask_token_id
    if attend:
        mask[ids == tok.mask_token_id] = 1
    return unit(model, linear, ids, mask)[0]


def colberts_document(parts: Any, text: str, length: int, punctuation: bool) -> Any:
    """DocTokenizer.tensorize and ColBERT.doc of ColBERT's code."""
    model, linear, tok = parts
    given = tok([f". {text}"], padding="longest", truncation="longest_first", return_tensors="pt", max_length=length)
    ids, mask = given["input_ids"], given["attention_mask"]
    ids[:, 1] = tok.convert_tokens_to_ids("[unused1]")
    skipped = {tok.encode(symbol, add_special_tokens=False)[0] for symbol in string.punctuation} if punctuation else set()
    keep = [x not in skipped and x != tok.pad_token_id for x in ids[0].tolist()]
    return unit(model, linear, ids, mask)[0][keep]


def pylates(parts: Any, text: str, is_query: bool, settings: dict[str, Any]) -> Any:
    """ColBERT.preprocess and ColBERT.encode of PyLate's code."""
    model, linear, tok = parts
    length = settings["query_length" if is_query else "document_length"]
    prefix = tok.convert_tokens_to_ids("[Q] " if is_query else "[D] ")
    expand = is_query and settings["do_query_expansion"]
    padding: dict[str, Any] = {"padding": "max_length"} if expand else {}
    before, tok.pad_token = tok.pad_token, tok.mask_token
    given = tok([text], truncation=True, max_length=length - 1, return_tensors="pt", **padding)
    tok.pad_token = before
    ids, mask = (
        torch.cat([values[:, :1], torch.full((1, 1), new), values[:, 1:]], dim=1)
        for values, new in ((given["input_ids"], prefix), (given["attention_mask"], 1))
    )
    if is_query and settings["attend_to_expansion_tokens"]:
        mask.fill_(1)
    vectors = unit(model, linear, ids, mask)[0]
    if not is_query:
        skipped = tok.convert_tokens_to_ids(settings["skiplist_words"])
        return vectors[[x not in skipped for x in ids[0].tolist()]]
    return vectors if expand else vectors[mask[0].bool()]


def check(model: ColBERT, queries: list[Any], documents: list[Any]) -> None:
    """The model's vectors are these, and its scores their MaxSim."""
    vectors, bounds = model.encode_documents(DOCS)
    assert np.diff(bounds).tolist() == [len(one) for one in documents]
    np.testing.assert_allclose(vectors, torch.cat(documents).numpy(), atol=1e-5)
    for found, expected in zip(model.encode_queries(QUERIES), queries, strict=True):
        assert found.shape == tuple(expected.shape)
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
        scores = [(expected @ one.T).max(dim=1).values.sum().item() for one in documents]
        np.testing.assert_allclose(maxsim(found, vectors, bounds), scores, atol=1e-4)


def texts() -> list[str]:
    return [f"{doc.title} {doc.text}".strip() for doc in DOCS]


@each("binary", [False, True])
@each("attend", [False, True])
@each("punctuation", [False, True])
def test_a_checkpoint_of_colbert_gives_the_vectors_and_scores_of_its_code(
    tmp_path: Path, binary: bool, attend: bool, punctuation: bool
) -> None:
    metadata = {
        "query_maxlen": 12,
        "doc_maxlen": 20,
        "dim": 16,
        "mask_punctuation": punctuation,
        "attend_to_mask_tokens": attend,
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "similarity": "cosine",
    }
    parts = colbert_checkpoint(tmp_path / "model", metadata, binary)
    check(
        ColBERT(str(tmp_path / "model"), precision="float32", device="cpu"),
        [colberts_query(parts, text, 12, attend) for text in QUERIES],
        [colberts_document(parts, text, 20, punctuation) for text in texts()],
    )


@each("binary", [False, True])
@each("attend", [False, True])
@each("expand", [False, True])
def test_a_checkpoint_of_pylate_gives_the_vectors_and_scores_of_its_code(
    tmp_path: Path, binary: bool, attend: bool, expand: bool
) -> None:
    settings = {
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": 12,
        "document_length": 20,
        "attend_to_expansion_tokens": attend and expand,
        "do_query_expansion": expand,
        "skiplist_words": [*string.punctuation, "the"],
    }
    parts = pylate_checkpoint(tmp_path / "model", settings, binary)
    check(
        ColBERT(str(tmp_path / "model"), precision="float32", device="cpu"),
        [pylates(parts, text, True, settings) for text in QUERIES],
        [pylates(parts, text, False, settings) for text in texts()],
    )


def test_parameters_take_the_place_of_the_settings_of_the_checkpoint(tmp_path: Path) -> None:
    parts = colbert_checkpoint(tmp_path / "model", {"query_maxlen": 12, "doc_maxlen": 20})
    model = ColBERT(
        str(tmp_path / "model"),
        dim=16,
        query_length=9,
        document_length=7,
        attend=True,
        skip=(),
        precision="float32",
        device="cpu",
    )
    queries = [colberts_query(parts, text, 9, True) for text in QUERIES]
    check(model, queries, [colberts_document(parts, text, 7, False) for text in texts()])


def test_a_checkpoint_without_settings_has_the_lengths_of_the_code_it_comes_from(tmp_path: Path) -> None:
    colbert_checkpoint(tmp_path / "colbert")
    pylate_checkpoint(tmp_path / "pylate", {})
    assert ColBERT(str(tmp_path / "colbert")).settings.document_length == 220
    assert ColBERT(str(tmp_path / "pylate")).settings.document_length == 180


def test_a_plain_encoder_has_no_markers_and_keeps_its_dimensions(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "model")
    backbone().save_pretrained(tmp_path / "model")
    model = ColBERT(str(tmp_path / "model"), precision="float32", device="cpu")
    (query,) = model.encode_queries(["old pump"])
    assert query.shape == (4, 32)
    assert model.query_tokens("old pump") == ["[CLS]", "old", "pump", "[SEP]"]
    assert model.document_tokens(Doc("d", "old, pump!")) == ["[CLS]", "old", "pump", "[SEP]"]


def test_a_plain_encoder_with_a_dim_gets_the_same_orthonormal_projection_each_time(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "model")
    backbone().save_pretrained(tmp_path / "model")
    small = ColBERT(str(tmp_path / "model"), dim=8, precision="float32", device="cpu")
    whole = ColBERT(str(tmp_path / "model"), precision="float32", device="cpu")
    weight = small._model.prepared.module.projection[0].weight.detach().numpy()
    np.testing.assert_allclose(weight @ weight.T, np.eye(8), atol=1e-6)
    projected = whole.encode_queries(["old pump"])[0] @ weight.T
    projected /= np.linalg.norm(projected, axis=1, keepdims=True)
    np.testing.assert_allclose(small.encode_queries(["old pump"])[0], projected, atol=1e-5)


def test_the_vectors_of_a_query_do_not_depend_on_the_queries_beside_it(tmp_path: Path) -> None:
    colbert_checkpoint(tmp_path / "model", {"query_maxlen": 12, "doc_maxlen": 20})
    model = ColBERT(str(tmp_path / "model"), precision="float32", device="cpu")
    together = model.encode_queries(QUERIES)
    for text, vectors in zip(QUERIES, together, strict=True):
        np.testing.assert_array_equal(model.encode_queries([text])[0], vectors)


def test_the_fingerprint_names_weights_and_settings_but_not_the_precision(tmp_path: Path) -> None:
    colbert_checkpoint(tmp_path / "a", {"doc_maxlen": 20})
    model = ColBERT(str(tmp_path / "a"), precision="float32")
    (tmp_path / "a").rename(tmp_path / "b")
    assert ColBERT(tmp_path / "b", precision="bfloat16").fingerprint == (same := ColBERT(str(tmp_path / "b")).fingerprint)
    assert ColBERT(str(tmp_path / "b"), document_length=21).fingerprint != same
    assert repr(model) == f'colbert("{tmp_path / "a"}", precision="float32")'

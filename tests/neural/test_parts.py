"""Models as parts of pipelines: written as text, named by a string, prepared before a run; and what their base checks."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.hashed_encoder import Hashed
from support.tiny_colbert import documents, tiny_colbert
from support.tiny_models import tiny

import fontes as ft
from fontes.core import ParameterError, expression
from fontes.core.part import Part
from fontes.core.work import Progress
from fontes.neural.models import hub
from fontes.neural.models.base import Pretrained, check_fields
from fontes.neural.stored import encoder_from, settings_of


@pytest.fixture
def index(tmp_path: Path) -> ft.Index:
    return ft.Index.build(documents(20), tmp_path / "x")


@pytest.mark.parametrize(
    "text",
    [
        'dense("all-MiniLM-L6-v2") % 100',
        'dense(transformer_encoder("folder", pooling="cls"), algorithm="hnsw", ef_search=64)',
        'dense(chunked_encoder("all-MiniLM-L6-v2", window=100))',
        'dense(sentence_encoder("all-MiniLM-L6-v2", max_length=64, precision="float32"))',
        'late("colbert-ir/colbertv2.0")',
        'late(colbert("folder", skip=(".",)), k=10)',
        'late("folder", algorithm="exhaustive") % 10',
        'bm25(k1=0.9, b=0.4) % 100 >> late_reranker("colbert-ir/colbertv2.0", nbits=0)',
        'bm25(k1=0.9, b=0.4) % 100 >> cross_encoder("owner/model", max_length=256, score="sigmoid")',
        'bm25(k1=0.9, b=0.4) % 100 >> interpolate(cross_encoder("owner/model"), 0.3)',
        'bm25(k1=0.9, b=0.4) % 100 >> mono_t5("owner/model", tokens=("yes", "no"))',
    ],
)
def test_a_pipeline_with_models_is_the_text_that_makes_it(index: ft.Index, text: str) -> None:
    stage = expression.pipeline(text, index)
    assert stage.text == repr(stage) == text
    assert expression.pipeline(repr(stage), index) == stage


def test_what_changes_no_result_is_not_in_the_text() -> None:
    encoder = ft.SentenceEncoder("folder", batch_size=3, device="cpu")
    assert encoder.text == 'sentence_encoder("folder")'
    reranker = ft.CrossEncoder("folder", batch_size=3, device="cpu", cache=True)
    assert reranker.text == 'cross_encoder("folder")'
    assert expression.part('cross_encoder("folder", batch_size=3, device="cpu", cache=True)') == reranker


def test_a_string_stands_for_a_model(index: ft.Index) -> None:
    dense = index.dense("all-MiniLM-L6-v2")
    assert dense.text == 'dense("all-MiniLM-L6-v2")'
    assert dense.parts() == (ft.SentenceEncoder("all-MiniLM-L6-v2"),)
    assert dense.with_(encoder__max_length=64).encoder == ft.SentenceEncoder("all-MiniLM-L6-v2", max_length=64)
    exact = dense.map(lambda part: part.with_(precision="float32") if isinstance(part, Pretrained) else part)
    assert exact.text == 'dense(sentence_encoder("all-MiniLM-L6-v2", precision="float32"))'
    assert index.late("model").parts() == (ft.neural.ColBERT("model"),)
    assert ft.ChunkedEncoder("model").parts() == (ft.SentenceEncoder("model"),)
    assert ft.neural.LateReranker("model").parts() == (ft.neural.ColBERT("model"),)


def test_a_string_is_used_as_the_model_that_it_stands_for(index: ft.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = ft.TransformerEncoder(tiny("bert"), precision="float32", device="cpu")
    chunked = ft.ChunkedEncoder(encoder, window=4, stride=2)
    index.encode(chunked)
    monkeypatch.setattr("fontes.neural.encoders.sentence.SentenceEncoder._encode", None)
    text = index.dense(chunked).text
    assert expression.pipeline(text, index)("old well") == index.dense(chunked)("old well")


def test_encode_takes_an_encoder_or_the_name_of_a_sentence_encoder(index: ft.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr("fontes.neural.encode.SentenceEncoder", lambda name: taken.append(name) or Hashed())
    index.encode("some-model")
    assert taken == ["some-model"]
    assert index.dense(Hashed()).search("old well")


def test_preparing_dense_retrieval_encodes_the_documents_once(index: ft.Index) -> None:
    dense = index.dense(ft.TransformerEncoder(tiny("bert"), precision="float32", device="cpu"))
    with pytest.raises(ParameterError, match="holds no vectors"):
        dense("old well")
    seen: list[Progress] = []
    with ft.work(progress=seen.append):
        (dense % 3 >> ft.core.Cut(2)).prepare()
    assert (seen[-1].done, seen[-1].total) == (20, 20)
    assert len(dense("old well")) == 1
    with ft.work(progress=lambda progress: pytest.fail("encoded again")):
        dense.prepare()


def test_preparing_an_approximate_search_builds_its_index(index: ft.Index) -> None:
    dense = index.dense(ft.TransformerEncoder(tiny("bert"), precision="float32", device="cpu"), algorithm="hnsw")
    dense.prepare()
    assert [facts["algorithm"] for facts in index.info()["vectors"][0]["approximate"]] == ["hnsw"]


def test_preparing_late_interaction_encodes_the_tokens_of_the_documents_once(index: ft.Index, tmp_path: Path) -> None:
    late = index.late(tiny_colbert(tmp_path / "model"))
    with pytest.raises(ParameterError, match="holds no token vectors"):
        late("old well")
    seen: list[Progress] = []
    with ft.work(progress=seen.append):
        late.prepare()
    assert seen[-1].done == 20
    assert len(late("old well")) == 1
    with ft.work(progress=lambda progress: pytest.fail("encoded again")):
        late.prepare()


def test_an_encoder_is_stored_by_its_text_without_the_precision() -> None:
    encoder = ft.ChunkedEncoder(ft.TransformerEncoder("m", "cls", precision="bfloat16"), window=5, stride=5)
    text = settings_of(encoder)
    assert text == 'chunked_encoder(transformer_encoder("m", pooling="cls"), window=5, stride=5)'
    assert encoder_from(text) == ft.ChunkedEncoder(ft.TransformerEncoder("m", "cls"), window=5, stride=5)


@dataclass(frozen=True)
class Checked(Part):
    """A part whose fields say what they may be."""

    depth: int | None = field(default=None, metadata={"least": 2})
    kind: str = field(default="a", metadata={"choices": ("a", "b")})


def test_parameters_are_checked_by_what_their_fields_say() -> None:
    check_fields(Checked())
    check_fields(Checked(2, "b"))


def test_a_key_names_the_models_content_and_all_that_changes_results(tmp_path: Path) -> None:
    encoder = ft.TransformerEncoder(tiny("bert"), device="cpu")
    assert encoder.key() == encoder.with_(batch_size=3, device=None).key()
    keys = {
        encoder.with_(**change).key() for change in ({}, {"query_prompt": "q: "}, {"precision": "float32"}, {"pooling": "max"})
    }
    assert len(keys) == 4
    assert len({encoder.with_(**change).fingerprint for change in ({}, {"query_prompt": "q: "}, {"precision": "float32"})}) == 1


def test_a_mistake_of_a_program_is_not_taken_for_a_damaged_model() -> None:
    from fontes.neural.models.hub import model_errors

    for error in (KeyError("name"), AttributeError("no such thing"), TypeError("not callable")):
        with pytest.raises(type(error)), model_errors("the model cannot be read"):
            raise error
    with pytest.raises(ft.core.InputError, match="the model cannot be read: no file"), model_errors("the model cannot be read"):
        raise OSError("no file\nand more")


def test_a_model_is_kept_as_long_as_a_part_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.neural.models.hub.CACHE_BYTES", 0)  # of those that no part uses, the last one alone

    def used(features: int) -> tuple[ft.TransformerEncoder, weakref.ref[Any]]:
        encoder = ft.TransformerEncoder(tiny("bert"), attention="favor+", features=features, precision="float32")
        encoder.encode_queries(["fox"])
        return encoder, weakref.ref(encoder._model)

    kept, model = used(8)
    others = [used(features)[1] for features in range(9, 19)]
    gc.collect()
    assert [other() is not None for other in others] == [False] * 9 + [True]
    again, shared = used(8)
    assert shared() is model() is not None
    assert "_loaded_model" in vars(kept)
    assert "_loaded_model" not in vars(pickle.loads(pickle.dumps(kept)))  # another process loads it anew
    del kept, again
    used(9)
    gc.collect()
    assert model() is None


def test_recent_models_that_fit_are_not_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []

    class Weights:
        def __init__(self, number: int) -> None:
            loads.append(number)
            weights = {"weight": SimpleNamespace(nbytes=3 * hub.MIN_BYTES)}
            self.prepared = SimpleNamespace(module=SimpleNamespace(state_dict=lambda: weights))

    monkeypatch.setattr(hub, "CACHE_BYTES", 9 * hub.MIN_BYTES)
    monkeypatch.setattr(hub, "_recent", OrderedDict())
    for number in (1, 2, 3, 1, 4, 1, 2):  # 4 drives out 2, which was used before 1, and then 2 drives out 3
        hub.load_once(("test", number), partial(Weights, number))
    assert loads == [1, 2, 3, 4, 2]
    assert [number for _, number in hub._recent] == [4, 1, 2]

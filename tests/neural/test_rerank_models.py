"""Cross-encoders and MonoT5 give the scores that the libraries give on the same weights. The models are tiny and random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny_cross_encoder import pairs, save_cross_encoder
from support.tiny_t5 import WORDS, save_t5

import fontes as ft

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("ce"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"))


def ours(path: Path, **parameters: Any) -> ft.CrossEncoder:
    return ft.CrossEncoder(str(path), precision="float32", device="cpu", **parameters)


def predicted(path: Path, given: list[tuple[str, str]], **parameters: Any) -> Any:
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(path), device="cpu", max_length=parameters.pop("max_length", None)).predict(
        given, show_progress_bar=False, **parameters
    )


def close(found: Any, expected: Any) -> None:
    assert len(set(np.round(np.asarray(expected, dtype=float), 3).tolist())) > 5  # the model tells the pairs apart
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_cross_encoder_scores_are_those_of_sentence_transformers(cross_encoder: Path) -> None:
    given = [*pairs(60), ("water", ""), (" hot  spring ", "  rock \n\t rain ")]
    logits = predicted(cross_encoder, given, activation_fn=torch.nn.Identity())
    close(ours(cross_encoder).scores(given), logits)
    close(ours(cross_encoder, score="sigmoid").scores(given), predicted(cross_encoder, given, activation_fn=torch.nn.Sigmoid()))


def test_a_greatest_length_cuts_as_the_library_cuts(cross_encoder: Path) -> None:
    given = pairs(40)
    expected = predicted(cross_encoder, given, activation_fn=torch.nn.Identity(), max_length=20)
    close(ours(cross_encoder, max_length=20).scores(given), expected)
    assert np.abs(ours(cross_encoder).scores(given) - expected).max() > 0.01


def test_two_labels_give_the_logit_and_the_probability_of_the_second(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path, labels=2)
    given = pairs(30)
    close(ours(folder, score="sigmoid").scores(given), predicted(folder, given, apply_softmax=True)[:, 1])
    both = predicted(folder, given, activation_fn=torch.nn.Identity())
    close(ours(folder).scores(given), both[:, 1] - both[:, 0])


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_cross_encoder_scores_do_not_depend_on_batch_and_order(cross_encoder: Path, batch_size: int) -> None:
    given = pairs(50)
    expected = ours(cross_encoder).scores(given)
    close(ours(cross_encoder, batch_size=batch_size).scores(given[::-1])[::-1], expected)


def test_monot5_scores_are_those_of_a_plain_computation(t5: Path) -> None:
    given = [*pairs(40), ("hot water", ""), ("Cave: (what?)", "Steam - and  rock.")]
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    model = transformers.T5ForConditionalGeneration.from_pretrained(t5).eval()
    words = [tokenizer.convert_tokens_to_ids("▁true"), tokenizer.convert_tokens_to_ids("▁false")]
    expected = []
    with torch.no_grad():
        for query, document in given:
            text = f"Query: {query} Document: {document} Relevant:" if document else f"Query: {query} Document: Relevant:"
            inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            logits = model(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
            expected.append(torch.log_softmax(logits[words], dim=0)[0].item())
    found = ft.MonoT5(str(t5), precision="float32", device="cpu").scores(given)
    close(found, expected)
    assert (found <= 0).all()


@pytest.mark.parametrize("batch_size", [1, 4, 1000])
def test_monot5_scores_do_not_depend_on_batch_and_order(t5: Path, batch_size: int) -> None:
    given = pairs(50)
    reranker = ft.MonoT5(str(t5), precision="float32", device="cpu")
    close(reranker.with_(batch_size=batch_size).scores(given[::-1])[::-1], reranker.scores(given))


def test_monot5_cuts_the_document_and_nothing_else(t5: Path) -> None:
    model = ft.MonoT5(str(t5), device="cpu")._model
    query = " ".join(WORDS[:10])
    for words, length in ((500, 100), (500, 20), (3, 100)):
        (ids,) = model.inputs([(query, " ".join(["rain"] * words))], length)
        tokens = model.tokenizer.convert_ids_to_tokens(ids)
        rains = tokens.count("▁rain") - query.split().count("rain")
        assert tokens[:11] == ["▁Query:", *(f"▁{word}" for word in WORDS[:10])]
        assert tokens[-2:] == ["▁Relevant:", "</s>"]
        assert rains == min(words, max(32, length - 14))
        assert len(tokens) == 14 + rains


def test_monot5_takes_other_words(t5: Path) -> None:
    given = pairs(20)
    first = ft.MonoT5(str(t5), precision="float32", device="cpu")
    other = first.with_(tokens=("false", "true"))
    np.testing.assert_allclose(np.exp(first.scores(given)) + np.exp(other.scores(given)), 1, atol=1e-5)
    assert first.fingerprint != other.fingerprint


def test_sixteen_bits_are_close(cross_encoder: Path, t5: Path) -> None:
    for reranker in (ours(cross_encoder), ft.MonoT5(str(t5), device="cpu", precision="float32")):
        full, half = reranker.scores(pairs(30)), reranker.with_(precision="bfloat16").scores(pairs(30))
        assert 0 < np.abs(full - half).max() < 0.1 * np.ptp(full)


@pytest.mark.parametrize(
    ("saved", "problem"),
    [
        ({"architecture": "BertModel"}, "no cross-encoder: its architecture is BertModel, which has no layer for scores"),
        ({"labels": 3}, "has 3 labels"),
    ],
)
def test_a_model_that_cannot_rerank_is_told_before_anything_is_searched(
    tmp_path: Path, saved: dict[str, Any], problem: str
) -> None:
    searches: list[str] = []

    @dataclass(frozen=True)
    class Search(ft.Stage[ft.Topics, ft.Run]):
        def apply(self, topics: ft.Topics, /) -> ft.Run:
            searches.extend(topics)
            return ft.Run.of({topic: {"d1": 1.0} for topic in topics}, topics)

    reranker = ours(save_cross_encoder(tmp_path, **saved))
    for pipeline in (Search() >> reranker, Search() + 2 * (Search() >> reranker.interpolate(0.5)), Search() % 3 >> reranker):
        with pytest.raises(ft.core.InputError, match=problem):
            pipeline({"1": "a word"})
        with pytest.raises(ft.core.InputError, match=problem):
            pipeline.search("a word")
    assert not searches


def test_the_fingerprint_tells_models_and_settings_apart(cross_encoder: Path, tmp_path: Path) -> None:
    other = save_cross_encoder(tmp_path, labels=2)
    first = ours(cross_encoder)
    prints = {
        first.fingerprint,
        first.with_(max_length=9).fingerprint,
        first.with_(score="sigmoid").fingerprint,
        ours(other).fingerprint,
    }
    assert len(prints) == 4
    assert first.with_(batch_size=3).fingerprint == first.fingerprint
    assert first.key() != first.with_(precision="bfloat16").key()

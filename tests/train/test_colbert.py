"""Training a late-interaction model: its vectors and loss, what comes out, and how it goes on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.dual_encoders import batch_of, found, goes_on_to_the_same_weights, index_of, trains_encodes_searches_and_evaluates
from support.each import each
from support.paired_words import ASKED, MEANT, examples, one_thread, start  # noqa: F401
from support.tiny_colbert import colbert_checkpoint, pylate_checkpoint
from support.tiny_models import tiny
from support.tiny_training import no_curves  # noqa: F401

from fontes import Doc
from fontes.neural import ColBERT, encode_late
from fontes.train import ColBERTSettings, Example, Examples, Passage, train_colbert

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytest.importorskip("datasets")

from fontes.neural.late.trainable import trainable  # noqa: E402
from fontes.train.losses import ColBERTLoss, maxsims  # noqa: E402

SETTINGS = ColBERTSettings(
    epochs=6, batch=16, mini_batch=32, lr=1e-2, warm_up=0.05, dropout=0.0, precision="float32", evaluations=1
)
QUICK = SETTINGS.with_(epochs=1, held_out=0.0)
TEXTS = ["old well water.", "spring, in rock", "the town", "a deep well of the old town rises in sand and rock"]


def model_in(folder: Path | str, **settings: Any) -> ColBERT:
    return ColBERT(folder, precision="float32", device="cpu", **settings)


def dense_start() -> ColBERT:
    return model_in(start("bert").folder, document_length=24, query_length=8)


def plain(query: np.ndarray, document: np.ndarray) -> float:
    return float((query @ document.T).max(axis=1).sum())


# The model and its loss


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ColBERT]:
    folder = tmp_path_factory.mktemp("starts")
    colbert_checkpoint(folder / "colbert", {"query_maxlen": 8, "doc_maxlen": 12})
    pylate_checkpoint(folder / "pylate", {"query_length": 9, "document_length": 11, "skiplist_words": [".", ","]})
    plain_one = {"document_length": 10, "query_length": 7}
    colbert_checkpoint(folder / "attending", {"query_maxlen": 8, "doc_maxlen": 12, "attend_to_mask_tokens": True})
    return {
        "colbert": model_in(folder / "colbert"),
        "attending": model_in(folder / "attending"),
        "pylate": model_in(folder / "pylate", query_length=7),
        "encoder": model_in(tiny("bert"), **plain_one),
        "projected": model_in(tiny("bert"), dim=8, expand=True, **plain_one),
        "other words": model_in(tiny("roberta"), **plain_one),
    }


@each("kind", ["colbert", "attending", "pylate", "encoder", "projected", "other words"])
def test_the_trainable_model_gives_the_models_vectors_before_and_after_saving(
    kind: str, starts: dict[str, ColBERT], tmp_path: Path
) -> None:
    before = starts[kind]
    model = trainable(before, markers=False)
    model.save_pretrained(str(tmp_path / "m"), create_model_card=False)
    for one in (before, model_in(tmp_path / "m")):
        queries = model.encode_query(TEXTS, convert_to_numpy=True)
        for own, theirs in zip(one.encode_queries(TEXTS), queries, strict=True):
            np.testing.assert_allclose(own, theirs, atol=1e-5)
        vectors, bounds = one.encode_documents([Doc("", text) for text in TEXTS])
        documents = model.encode_document(TEXTS, convert_to_numpy=True)
        for own, theirs in zip(np.split(vectors, bounds[1:-1]), documents, strict=True):
            np.testing.assert_allclose(own, theirs, atol=1e-5)


@pytest.mark.parametrize("unused", [True, False])
def test_a_start_without_markers_gets_them(unused: bool, tmp_path: Path) -> None:
    folder = tmp_path / "c" if unused else Path(tiny("bert"))
    if unused:  # its vocabulary has [unused0] and [unused1]
        pylate_checkpoint(folder, {})
        (folder / "modules.json").unlink()
    model = trainable(model_in(folder, document_length=12, query_length=8))
    markers = ["[unused0]", "[unused1]"] if unused else ["[Q] ", "[D] "]
    for task, marker in zip(("query", "document"), markers, strict=True):
        ids = model.preprocess(["spring"], prompt=model.prompts[task], task=task)["input_ids"][0].tolist()
        assert model.tokenizer.convert_ids_to_tokens(ids)[1:3] == [marker, "spring"]
    model.save_pretrained(str(tmp_path / "m"), create_model_card=False)
    after = model_in(tmp_path / "m")
    assert after.query_tokens("spring")[1:3] == [markers[0], "spring"]
    assert after.document_tokens(Doc("", "spring"))[1:3] == [markers[1], "spring"]
    np.testing.assert_allclose(after.encode_queries(["spring"])[0], model.encode_query("spring"), atol=1e-5)


def test_the_loss_is_that_of_the_sums_of_best_similarities() -> None:
    model = trainable(dense_start().with_(expand=True), dropout=0.0)
    rows = Examples(
        [
            Example(
                "1", "brook beck", Passage("a", "oak ash the of", 3.0), (Passage("b", "elm", 1.0), Passage("c", "lime", 4.0))
            ),
            Example("2", "burn", Passage("b", "elm", 2.0), (Passage("a", "oak ash the of", 0.5),)),
        ]
    )
    texts = ["oak ash the of", "elm", "lime"]
    documents = model.encode_document(texts, convert_to_numpy=True)
    s = np.array([[plain(q, d) for d in documents] for q in model.encode_query(["brook beck", "burn"], convert_to_numpy=True)])
    np.testing.assert_allclose(maxsims(model)(["brook beck", "burn"], texts), s, rtol=1e-5)
    softmax = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    own = np.array([[3.0, 1.0, 4.0], [0.5, 2.0, -np.inf]])
    right = np.exp(own) / np.exp(own).sum(axis=1, keepdims=True)
    mine = np.where(np.isinf(own), 0.0, np.exp(s))
    mine /= mine.sum(axis=1, keepdims=True)
    logs = np.log(np.where(right > 0, right, 1.0)) - np.log(np.where(right > 0, mine, 1.0))
    distances = [s[0, 0] - s[0, 1] - 2, s[0, 0] - s[0, 2] + 1, s[1, 1] - s[1, 0] - 1.5]
    expected = {
        "mnrl": -np.mean(np.log([softmax[0, 0], softmax[1, 1]])),
        "teacher": np.mean(np.square(distances)),
        "kl": (right * logs).sum(axis=1).mean(),
    }
    for mini_batch in (None, 1):
        for kind, number in expected.items():
            loss = ColBERTLoss(model, SETTINGS.with_(loss=kind, mini_batch=mini_batch))
            found = float(loss(*batch_of(model, rows, teacher=kind != "mnrl")).detach())
            assert found == pytest.approx(number, rel=1e-4), (kind, mini_batch)


@pytest.mark.parametrize("expand", [True, False])
def test_cached_gradients_are_those_of_the_whole_batch(expand: bool) -> None:
    gradients = []
    for mini_batch in (None, 2):
        model = trainable(dense_start().with_(expand=expand, dim=8), dropout=0.0).train()
        ColBERTLoss(model, SETTINGS.with_(mini_batch=mini_batch))(*batch_of(model, examples(6, 3))).backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert bool(torch.isfinite(gradient).all())
        np.testing.assert_allclose(gradients[1][name], gradient, atol=1e-5, err_msg=name)


# What comes out


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("trained") / "model"
    settings = SETTINGS.with_(best="RR@10")
    return folder, train_colbert(examples(96, 1, longest=12), folder, dense_start().with_(dim=16), settings)


def test_an_index_is_encoded_with_the_trained_model_and_searched(trained: tuple[Path, Any], tmp_path: Path) -> None:
    folder, training = trained
    unseen = examples(40, 9, longest=12)
    index = index_of(unseen, tmp_path / "index")
    before, after = dense_start().with_(dim=16), model_in(folder)
    assert after.width == 16
    for one in (before, after):
        encode_late(index, one, nbits=32)
    searched, begun = (index.late(one, algorithm="exhaustive") for one in (after, before))
    assert found(searched, unseen) > found(begun, unseen) + 0.2
    assert np.mean(training.losses[-4:]) < 0.7 * np.mean(training.losses[:2])


def test_the_folder_says_how_it_was_trained(trained: tuple[Path, Any]) -> None:
    folder, training = trained
    said = json.loads((folder / "training.json").read_text())
    assert (said["kind"], said["facts"]["dimensions"], said["facts"]["markers"]) == ("ColBERT model", 16, "[Q] , [D] ")
    assert training.figures["RR@10"] == max(row["RR@10"] for row in training.evaluations)
    assert 'encode_late(index, colbert("model"))' in (folder / "README.md").read_text()


def test_a_trained_model_is_a_start_that_keeps_its_form(trained: tuple[Path, Any], tmp_path: Path) -> None:
    training = train_colbert(examples(12, 2, longest=6), tmp_path / "m", model_in(trained[0]), QUICK.with_(max_length=10))
    first, second = model_in(trained[0]).settings, model_in(tmp_path / "m").settings
    assert second == first.with_(document_length=10)
    assert training.base_fingerprint == trained[1].fingerprint


@pytest.mark.slow  # a quick test of SPLADE's training takes the same way
def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, settings = dense_start().with_(dim=8, expand=True), QUICK.with_(dropout=0.1, epochs=2, batch=12)
    goes_on_to_the_same_weights(
        lambda data, place, **more: train_colbert(data, place, base, settings, **more), tmp_path, monkeypatch
    )


def test_the_command_trains_and_its_model_is_encoded_searched_and_evaluated(tmp_path: Path, fontes: Any) -> None:
    options = ("--encoder", f"colbert('{start('bert').folder}', dim=8, query_length=8)", "--max-length", 20)
    command = trains_encodes_searches_and_evaluates(fontes, tmp_path, "late", "late", *options)
    out = fontes(*command, "--overwrite", "--json", "--no-markers")[1]
    assert (json.loads(out)["settings"]["mini_batch"], json.loads(out)["facts"]["markers"]) == (None, "none")
    assert model_in(tmp_path / "m").length == 20
    assert set(ASKED + MEANT) & set(model_in(tmp_path / "m").query_tokens(ASKED[0]))

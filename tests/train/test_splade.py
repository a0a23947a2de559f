"""Training a learned sparse encoder: the penalty, what comes out, and how it goes on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.dual_encoders import batch_of, found, goes_on_to_the_same_weights, index_of, trains_encodes_searches_and_evaluates
from support.paired_words import ASKED, MEANT, examples, masked_start, one_thread, start  # noqa: F401
from support.tiny_splade import dense
from support.tiny_training import no_curves  # noqa: F401

from fontes import Doc
from fontes.neural import Splade
from fontes.train import Example, Examples, Passage, SpladeSettings, train_splade

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytest.importorskip("datasets")

from fontes.neural.sparse.trainable import trainable  # noqa: E402
from fontes.train.losses import SpladeLoss, products  # noqa: E402

SETTINGS = SpladeSettings(
    epochs=8,
    batch=16,
    mini_batch=32,
    lr=1e-2,
    warm_up=0.05,
    dropout=0.0,
    precision="float32",
    evaluations=1,
    document_flops=1e-3,
    query_flops=1e-3,
)
QUICK = SETTINGS.with_(epochs=1, held_out=0.0)
TEXTS = ["oak ash the of", "elm", "lime the"]


def encoder(folder: Path) -> Splade:
    return Splade(folder, precision="float32", device="cpu")


def matrix(vectors: Any) -> np.ndarray:
    return dense(vectors, len(vectors.vocabulary))


# The model and its loss


def test_the_trainable_model_gives_the_encoders_weights_before_and_after_saving(tmp_path: Path) -> None:
    splade = encoder(masked_start()).with_(query_prompt="of ", document_prompt="the in ", max_length=12)
    model = trainable(splade)
    model.save_pretrained(str(tmp_path / "m"), create_model_card=False)
    longer = [*TEXTS, " ".join(MEANT * 2)]
    for one in (splade, encoder(tmp_path / "m")):
        np.testing.assert_allclose(model.encode_query(longer).to_dense(), matrix(one.encode_queries(longer)), atol=1e-5)
        docs = [Doc("", text) for text in longer]
        np.testing.assert_allclose(model.encode_document(longer).to_dense(), matrix(one.encode_documents(docs)), atol=1e-5)


def test_the_penalty_is_the_flops_of_queries_and_documents_and_rises_by_the_square() -> None:
    model = trainable(encoder(masked_start()), dropout=0.0).train()
    rows = Examples([Example(str(n), ASKED[n], Passage(str(n), text)) for n, text in enumerate(TEXTS)])
    columns, labels = batch_of(model, rows)
    queries = np.asarray(model.encode_query(ASKED[:3]).to_dense(), np.float64)
    documents = np.asarray(model.encode_document(TEXTS).to_dense(), np.float64)
    penalty = 0.5 * np.square(queries.mean(axis=0)).sum() + 0.25 * np.square(documents.mean(axis=0)).sum()
    settings = SETTINGS.with_(mini_batch=None, query_flops=0.5, document_flops=0.25, flops_warm_up=0.5)
    loss = SpladeLoss(model, settings)
    model.train()
    plain = float(loss(columns, labels).detach())
    scores = queries @ documents.T
    assert plain == pytest.approx(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores.diagonal()), rel=1e-4)
    for part, share in ((0.25, 0.25), (0.5, 1.0), (0.9, 1.0)):
        loss.warm_up(part)
        assert float(loss(columns, labels).detach()) == pytest.approx(plain + share * penalty, rel=1e-4)
    loss.warm_up(0.1)
    model.eval()
    assert float(loss(columns, labels).detach()) == pytest.approx(plain + penalty, rel=1e-4)  # as on validation examples


def test_without_a_penalty_the_losses_are_those_of_sentence_transformers() -> None:
    from sentence_transformers.sparse_encoder import losses

    model = trainable(encoder(masked_start()), dropout=0.0)
    settings = SETTINGS.with_(mini_batch=None, query_flops=0.0, document_flops=0.0)
    scores = [(3.0, 1.0), (2.0, 2.5)]
    rows = Examples(
        Example(str(n), ASKED[n], Passage(f"p{n}", MEANT[n], a), (Passage(f"n{n}", MEANT[n + 5], b),))
        for n, (a, b) in enumerate(scores)
    )
    texts = [[one.query for one in rows], [one.positive.text for one in rows], [one.negatives[0].text for one in rows]]
    embeddings = [model(model.preprocess(column))["sentence_embedding"] for column in texts]
    distances = torch.tensor([a - b for a, b in scores])
    theirs = {
        "mnrl": (losses.SparseMultipleNegativesRankingLoss(model), None),
        "teacher": (losses.SparseMarginMSELoss(model), distances),
        "kl": (losses.SparseDistillKLDivLoss(model, temperature=1.0), torch.tensor(scores)),
    }
    for kind, (loss, labels) in theirs.items():
        own = SpladeLoss(model, settings.with_(loss=kind))(*batch_of(model, rows, teacher=kind != "mnrl"))
        expected = float(loss.compute_loss_from_embeddings(embeddings, labels).detach())
        assert float(own.detach()) == pytest.approx(expected, rel=1e-4), kind


def test_cached_gradients_are_those_of_the_whole_batch() -> None:
    gradients = []
    for mini_batch in (None, 2):
        model = trainable(encoder(masked_start()), dropout=0.0).train()
        loss = SpladeLoss(model, SETTINGS.with_(mini_batch=mini_batch, flops_warm_up=0.0))
        loss(*batch_of(model, examples(6, 3))).backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, atol=1e-5, err_msg=name)


# What comes out


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("trained") / "model"
    return folder, train_splade(examples(96, 1, longest=4), folder, encoder(masked_start()), SETTINGS)


def test_an_index_is_encoded_with_the_trained_model_and_searched(trained: tuple[Path, Any], tmp_path: Path) -> None:
    folder, training = trained
    unseen = examples(40, 9, longest=4)
    index = index_of(unseen, tmp_path / "index")
    before, after = encoder(masked_start()), encoder(folder)
    for one in (before, after):
        index.encode(one)
    assert found(index.splade(after), unseen) > found(index.splade(before), unseen) + 0.15
    assert np.mean(training.losses[-4:]) < 0.7 * np.mean(training.losses[:2])
    texts = [one.query for one in unseen[:5]], [one.positive.text for one in unseen[:5]]
    scores = matrix(after.encode_queries(texts[0])) @ matrix(after.encode_documents([Doc("", text) for text in texts[1]])).T
    np.testing.assert_allclose(products(trainable(after))(*texts), scores, rtol=1e-4, atol=1e-4)


def test_the_folder_says_how_it_was_trained(trained: tuple[Path, Any]) -> None:
    folder, training = trained
    said = json.loads((folder / "training.json").read_text())
    assert (said["kind"], said["settings"]["document_flops"], said["facts"]["new_head"]) == ("SPLADE model", 1e-3, False)
    assert training.figures["loss"] == min(row["loss"] for row in training.evaluations)
    assert 'index.encode(splade_encoder("model"))' in (folder / "README.md").read_text()


@pytest.mark.slow
def test_a_heavy_penalty_leaves_fewer_terms(trained: tuple[Path, Any], tmp_path: Path) -> None:
    data = examples(96, 1, longest=4)
    train_splade(
        data, tmp_path / "m", encoder(masked_start()), SETTINGS.with_(document_flops=0.5, query_flops=0.5, best="last")
    )
    docs = [Doc("", one.positive.text) for one in data[:20]]
    few, many = (len(encoder(folder).encode_documents(docs).terms) for folder in (tmp_path / "m", trained[0]))
    assert few < 0.7 * many


def test_static_queries_have_their_own_tokens_alone_and_need_no_model(tmp_path: Path) -> None:
    data = examples(48, 1, longest=8)
    settings = SETTINGS.with_(static_queries=True, epochs=2, best="RR@10")
    training = train_splade(data, tmp_path / "m", encoder(masked_start()), settings)
    assert training.facts["static_queries"]
    after = encoder(tmp_path / "m")
    (weights,) = after.encode_queries([f"{ASKED[0]} {ASKED[1]}"])
    assert set(weights) == {ASKED[0], ASKED[1]}
    again = train_splade(data, tmp_path / "n", after, QUICK)  # a model with static queries keeps them
    assert again.facts["static_queries"]
    (later,) = encoder(tmp_path / "n").encode_queries([f"{ASKED[0]} {ASKED[1]}"])
    assert set(later) == set(weights)
    assert later != weights


@pytest.mark.parametrize("static", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_training_goes_on_to_the_same_weights(
    static: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = QUICK.with_(dropout=0.1, epochs=2, batch=12, flops_warm_up=0.8, document_flops=0.1, static_queries=static)
    goes_on_to_the_same_weights(
        lambda data, place, **more: train_splade(data, place, encoder(masked_start()), settings, **more), tmp_path, monkeypatch
    )


def test_a_dense_encoder_is_a_start_with_a_new_head(tmp_path: Path) -> None:
    data = examples(16, 1, longest=6)
    train = train_splade(data, tmp_path / "m", start("bert").folder, QUICK.with_(max_length=9))
    assert train.facts["new_head"]
    assert encoder(tmp_path / "m").length == 9
    assert len(encoder(tmp_path / "m").encode_queries(["brook"]).terms)


def test_a_teachers_scores_are_learned(tmp_path: Path) -> None:
    data = examples(32, 2, longest=6)
    scored = Examples(
        Example(
            one.topic,
            one.query,
            Passage(one.positive.id, one.positive.text, 5.0),
            tuple(Passage(passage.id, passage.text, 1.0) for passage in one.negatives),
        )
        for one in data
    )
    for loss in ("teacher", "kl"):
        training = train_splade(scored, tmp_path / loss, encoder(masked_start()), SETTINGS.with_(loss=loss, epochs=4))
        assert np.mean(training.losses[-3:]) < 0.7 * np.mean(training.losses[:2])


def test_the_command_trains_and_its_model_is_encoded_searched_and_evaluated(tmp_path: Path, fontes: Any) -> None:
    options = ("--encoder", f"splade_encoder('{masked_start()}', max_length=20)", "--document-flops", 0.001)
    command = trains_encodes_searches_and_evaluates(fontes, tmp_path, "sparse", "splade", *options)
    code, out, _ = fontes(*command, "--overwrite", "--json", "--static-queries")
    assert (json.loads(out)["settings"]["mini_batch"], json.loads(out)["facts"]["static_queries"]) == (None, True)
    code, _, err = fontes(*command)
    assert (code, "exists already" in err) == (1, True)

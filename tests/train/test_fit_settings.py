"""Settings that all trainings share: warm-up, weight decay, the order of rows, the loss validated on, and the state kept."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny_training import SETTINGS, base, examples, no_curves, one_thread

from fontes.core import ParameterError
from fontes.neural import CrossEncoder
from fontes.train import BiEncoderSettings, CrossEncoderSettings, train_bi_encoder, train_cross_encoder
from fontes.train.cross_encoder import PRESETS
from fontes.train.runner.settings import FitSettings

torch = pytest.importorskip("torch")
for library in ("transformers", "sentence_transformers", "accelerate", "datasets"):
    pytest.importorskip(library)

from fontes.train.pair_model import PairModel  # noqa: E402 (imports torch)
from fontes.train.runner.fitting import LengthGroupedSampler, best_step  # noqa: E402

DATA = examples()
UNDECAYED = ("bias", "LayerNorm.weight")


def test_the_steps_of_the_notebooks_preset_are_those_of_plain_adamw(base: Path, tmp_path: Path) -> None:
    """A warm-up that is longer than the training, weight decay of all but biases and norms, and rows in any order."""
    settings = SETTINGS.with_(held_out=0.0, warm_up=30, weight_decay=0.3, order="shuffled")
    losses = train_cross_encoder(DATA, tmp_path / "m", base, settings).losses
    pairs = [(e.query, p.text, float(p is e.positive)) for e in DATA for p in (e.positive, *e.negatives)]
    model = PairModel(base, settings)
    network = model.network.transformers_model.train()
    named = list(network.named_parameters())
    groups = [
        {"params": [p for name, p in named if name.endswith(UNDECAYED) == without], "weight_decay": 0.3 * (not without)}
        for without in (False, True)
    ]
    optimizer = torch.optim.AdamW(groups)
    batches = LengthGroupedSampler([1] * len(pairs), 8, 0)
    expected = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        for batch in batches:
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * len(expected) / 30
            texts = [pairs[n][:2] for n in batch]
            tokens = model.network.tokenizer(*map(list, zip(*texts, strict=True)), padding=True, return_tensors="pt")
            labels = torch.tensor([pairs[n][2] for n in batch])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network(**tokens).logits[:, 0], labels)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            expected.append(float(loss.detach()))
    assert len(losses) == 20
    assert losses == pytest.approx(expected, rel=2e-3)
    words = PairModel(tmp_path / "m", settings).network.transformers_model.get_input_embeddings().weight
    assert torch.allclose(words, network.get_input_embeddings().weight, atol=1e-4)  # those of words that do not occur, too


def test_the_warm_up_is_a_share_of_the_steps_or_a_number_of_them() -> None:
    steps = {share: FitSettings(warm_up=share).warm_up_steps(7120) for share in (0, 0.1, 0.00001, 1, 100, 10_000)}
    assert steps == {0: 0, 0.1: 712, 0.00001: 1, 1: 1, 100: 100, 10_000: 10_000}


def test_the_preset_of_the_notebook_rises_to_the_last_step() -> None:
    preset = PRESETS["air2025-run"]
    assert (preset.held_out, preset.best, preset.order, preset.weight_decay) == (0.0, "last", "shuffled", 0.01)
    steps = preset.epochs * 11_392 * 5 // preset.batch
    assert steps == 7_120
    assert preset.lr * (steps - 1) / preset.warm_up_steps(steps) == pytest.approx(1.42e-5, rel=5e-3)


def test_weight_decay_makes_weights_of_a_bi_encoder_smaller(base: Path, tmp_path: Path) -> None:
    settings = BiEncoderSettings(epochs=2, batch=8, lr=1e-2, held_out=0.0, dropout=0.0, precision="float32", mini_batch=None)
    norms = []
    for decay in (0.0, 0.9):
        train_bi_encoder(DATA, tmp_path / str(decay), base, settings.with_(weight_decay=decay))
        norms.append(np.linalg.norm(embedding(tmp_path / str(decay))))
    assert norms[1] < 0.98 * norms[0]


def embedding(folder: Path) -> Any:
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]


def test_the_validation_loss_is_the_mean_over_rows_where_the_last_batch_is_smaller(base: Path, tmp_path: Path) -> None:
    made = train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS.with_(batch=7, epochs=1))
    _, held_out = DATA.held_out(0.2, 0)
    rows = [(e.query, p.text, float(p is e.positive)) for e in held_out for p in (e.positive, *e.negatives)]
    assert len(rows) % 7 not in (0, 6)  # or weights make little difference
    logits = CrossEncoder(tmp_path / "m", precision="float32").scores([row[:2] for row in rows]).astype(float)
    labels = np.array([label for _, _, label in rows])
    expected = np.mean(np.log1p(np.exp(-logits)) * labels + np.log1p(np.exp(logits)) * (1 - labels))
    assert made.figures["loss"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("best", "name", "values"), [("loss", "eval_loss", [3, 1, 2, 1]), ("RR@5", "eval_measure", [0, 9, 8, 9])]
)
def test_of_equal_states_the_first_is_the_best(best: str, name: str, values: list[float]) -> None:
    history = [{"step": 10 * n, name: value} for n, value in enumerate(values, 1)]
    assert best_step([{"step": 5, "loss": 0.0}, *history], FitSettings(best=best)) == 20
    assert best_step(history, FitSettings(best="last")) == 0
    assert best_step([], FitSettings(best=best)) == 0


@pytest.mark.slow
def test_the_last_state_is_kept_where_an_earlier_one_has_less_loss(base: Path, tmp_path: Path) -> None:
    settings = SETTINGS.with_(lr=0.1, epochs=4)
    best = train_cross_encoder(DATA, tmp_path / "best", base, settings)
    last = train_cross_encoder(DATA, tmp_path / "last", base, settings.with_(best="last"))
    assert best.best < last.best == last.steps
    assert last.evaluations == best.evaluations
    assert last.figures["loss"] == last.evaluations[-1]["loss"] > best.figures["loss"]

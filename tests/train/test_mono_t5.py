"""Training a MonoT5: what it reads and learns, that the stage scores as transformers does, and that it resumes."""

# ruff: noqa: F401 (fixtures are imported, and named as parameters)
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny_models import weights
from support.tiny_training import WORDS, candidates, examples, no_curves, one_thread
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.core import InputError
from fontes.core.work import Progress
from fontes.measures import evaluate
from fontes.train import Examples, MonoT5Settings, Validation, train_mono_t5

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
for library in ("sentence_transformers", "accelerate", "datasets"):
    pytest.importorskip(library)

from support.small import frequent_checkpoints  # noqa: E402
from support.tiny_t5 import save_t5  # noqa: E402 (needs torch)

from fontes.train.mono_t5 import TrainableMonoT5  # noqa: E402
from fontes.train.runner import fitting  # noqa: E402
from fontes.train.runner.fitting import LengthGroupedSampler  # noqa: E402

DATA = examples()
SETTINGS = MonoT5Settings(epochs=2, batch=8, lr=1e-2, dropout=0.0, held_out=0.2, evaluations=1, precision="float32")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"))


def texts() -> list[tuple[str, str, bool]]:
    return [(e.query, p.text, p is e.positive) for e in DATA for p in (e.positive, *e.negatives)]


def test_a_row_is_the_prompt_of_the_stage_with_the_word_and_the_end_as_labels(start: Path) -> None:
    model = TrainableMonoT5(start, SETTINGS.with_(max_length=16))
    tokenizer = model.tokenizer
    stage = ft.MonoT5(str(start), max_length=16)._model
    for row, (query, text, relevant) in zip(model.rows(DATA).rows, texts(), strict=True):
        assert row["input_ids"] == stage.inputs([(query, text)], 16)[0]
        assert tokenizer.convert_ids_to_tokens(row["labels"]) == ["▁true" if relevant else "▁false", "</s>"]
    whole = [f"Query: {query} Document: {text} Relevant:" for query, text, _ in texts()]
    cut = np.mean([len(ids) > 16 for ids in tokenizer(whole)["input_ids"]])
    assert 0 < cut < 1
    assert model.cut_of(DATA) == {"tokens_read": 16, "pairs_cut": round(float(cut), 6)}


def test_the_steps_are_those_of_adamw_on_the_cross_entropy_of_the_words(start: Path, tmp_path: Path) -> None:
    """The same training in plain torch, pair by pair."""
    settings = SETTINGS.with_(held_out=0.0, warm_up=0.2)
    losses = train_mono_t5(DATA, tmp_path / "m", start, settings).losses
    network = TrainableMonoT5(start, settings).network.train()
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    words = tokenizer.convert_tokens_to_ids(["▁true", "▁false", "</s>"])
    pairs = texts()
    batches = LengthGroupedSampler(TrainableMonoT5(start, settings).rows(DATA).lengths, 8, 0)
    steps = 2 * len(batches)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.0)
    expected: list[float] = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        for batch in batches:
            step, rising = len(expected), math.ceil(0.2 * steps)
            rate = step / rising if step < rising else (steps - step) / (steps - rising)
            optimizer.param_groups[0]["lr"] = settings.lr * rate
            terms = []
            for query, text, relevant in (pairs[n] for n in batch):
                inputs = tokenizer(
                    f"Query: {query} Document: {text} Relevant:", return_tensors="pt", return_token_type_ids=False
                )
                labels = [words[0] if relevant else words[1], words[2]]
                logits = network(**inputs, decoder_input_ids=torch.tensor([[0, labels[0]]])).logits[0]
                terms += [-torch.log_softmax(logits[i], 0)[label] for i, label in enumerate(labels)]
            loss = torch.stack(terms).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            expected.append(float(loss.detach()))
    assert len(expected) == 20
    assert losses == pytest.approx(expected, rel=5e-3)


def test_the_trained_folder_scores_as_transformers_does(start: Path, tmp_path: Path) -> None:
    run, qrels = candidates(DATA)
    settings = SETTINGS.with_(best="RR@5", lr=3e-3)
    training = train_mono_t5(DATA, tmp_path / "m", start, settings, Validation(run=run, qrels=qrels))
    assert training.kind == "T5 reranker"
    assert training.facts["queries_validated"] == training.facts["topics_measured"] == 4
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    model = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path / "m").eval()
    words = tokenizer.convert_tokens_to_ids(["▁true", "▁false"])
    expected = []
    with torch.no_grad():
        for query, text, _ in texts():
            inputs = tokenizer(f"Query: {query} Document: {text} Relevant:", return_tensors="pt", return_token_type_ids=False)
            logits = model(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
            expected.append(torch.log_softmax(logits[words], 0)[0].item())
    stage = ft.MonoT5(str(tmp_path / "m"), precision="float32", device="cpu")
    assert stage.scores([(query, text) for query, text, _ in texts()]) == pytest.approx(expected, abs=1e-5)
    assert any(not torch.equal(weights(start)[name], value) for name, value in weights(tmp_path / "m").items())
    _, held_out = DATA.held_out(0.2, 0)
    of_held_out = {topic: qrels[topic] for topic in held_out.topics}
    assert training.figures["RR@5"] == pytest.approx(evaluate(stage(run), of_held_out, "RR@5")["RR@5"])


@pytest.mark.slow
def test_it_learns_to_put_relevant_documents_first(start: Path, tmp_path: Path) -> None:
    everything = list(examples(180))
    learned, (run, qrels) = Examples(everything[:150]), candidates(Examples(everything[150:]))
    train_mono_t5(learned, tmp_path / "m", start, SETTINGS.with_(held_out=0.0, epochs=20, lr=2e-3, batch=32))
    before, after = (
        evaluate(ft.MonoT5(str(model), precision="float32")(run), qrels, "RR@5")["RR@5"] for model in (start, tmp_path / "m")
    )
    assert after > before + 0.1  # .41 to .62


class StoppedError(Exception):
    """Stands for a process that is killed."""


def test_an_interrupted_training_resumes_to_the_same_weights(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent_checkpoints(monkeypatch)

    def stop(at: Progress) -> None:
        if at.task == "training" and at.done == 5:
            raise StoppedError

    with pytest.raises(StoppedError):
        train_mono_t5(DATA, tmp_path / "m", start, SETTINGS, progress=stop)
    assert not (tmp_path / "m").exists()
    resumed = train_mono_t5(DATA, tmp_path / "m", start, SETTINGS)
    whole = train_mono_t5(DATA, tmp_path / "whole", start, SETTINGS)
    assert resumed.fingerprint == whole.fingerprint
    assert resumed.losses == whole.losses


def test_the_command_trains_with_other_words_and_names_the_stage(start: Path, tmp_path: Path) -> None:
    DATA.write(tmp_path / "examples.jsonl")
    options = "--true hot --false cold --epochs 1 --precision float32 --base".split()
    typed = ["train", "mono-t5", str(tmp_path / "examples.jsonl"), "-o", str(tmp_path / "m"), *options, str(start)]
    result = CliRunner().invoke(cli.app, typed)
    assert result.exit_code == 0, result.output
    expression = f"mono_t5('{tmp_path / 'm'}', tokens=('hot', 'cold'))"
    assert result.output.splitlines()[-1].replace('"', "'") == f"use it as {expression}"
    assert json.loads((tmp_path / "m" / "training.json").read_text())["settings"]["true"] == "hot"
    assert 'mono_t5("m")' in (tmp_path / "m" / "README.md").read_text()
    run, _ = candidates(DATA)
    assert len(ft.core.expression.pipeline(expression)(run)) == 20

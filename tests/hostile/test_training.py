"""Trainings that are killed, run out of disk or lose their numbers: what is left is whole, and the same command goes on."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import json
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import in_a_child, small_disk, stopped_before
from support.small import frequent_reports
from support.tiny_training import SETTINGS, base, examples, no_curves, one_thread

from fontes.core import FontesError, InputError, ParameterError
from fontes.core.work import Progress
from fontes.neural import CrossEncoder
from fontes.train import Training, train_cross_encoder

torch = pytest.importorskip("torch")
for library in ("sentence_transformers", "accelerate", "datasets"):
    pytest.importorskip(library)

DATA = examples()
RESUMED = SETTINGS.with_(dropout=0.1, epochs=3, batch=16, evaluations=2)
SOME = 3  # operations of a training before which `make test` kills it


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """The training that nobody interrupts."""
    return train_cross_encoder(DATA, tmp_path_factory.mktemp("whole") / "m", base, RESUMED)


def killed_at(step: int) -> Callable[[Progress], None]:
    def report(progress: Progress) -> None:
        if progress.done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return report


@pytest.mark.slow
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights(
    base: Path, whole: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent_reports(monkeypatch)
    monkeypatch.setattr(
        "fontes.train.runner.fitting.CHECKPOINT_INTERVAL", 0.0
    )  # so that there are checkpoints between two evaluations
    assert whole.steps == 12
    for step in (1, 5, 11):
        done = in_a_child(lambda at=step: train_cross_encoder(DATA, tmp_path / "m", base, RESUMED, progress=killed_at(at)))
        assert done == -signal.SIGKILL
        assert not (tmp_path / "m").exists()
    told: list[Progress] = []
    made = train_cross_encoder(DATA, tmp_path / "m", base, RESUMED, progress=told.append)
    assert told[0].before == 10
    assert (made.fingerprint, made.best, made.losses) == (whole.fingerprint, whole.best, whole.losses)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.slow
def test_a_training_killed_before_any_operation_ends_with_the_same_weights(
    base: Path, whole: Training, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def work() -> Training:
        return train_cross_encoder(DATA, tmp_path / "m", base, RESUMED)

    _, _, count = stopped_before(0, signal.SIGKILL, tmp_path, work)
    shutil.rmtree(tmp_path / "m")
    every = "slow" in str(request.config.option.markexpr) and "not slow" not in str(request.config.option.markexpr)
    numbers = range(2, count + 1) if every else np.linspace(2, count, SOME).astype(int).tolist()
    for number in numbers:
        status, _, _ = stopped_before(number, signal.SIGKILL, tmp_path, work)
        assert status == -signal.SIGKILL, number
        if not (tmp_path / "m").exists():
            work()
        made = json.loads((tmp_path / "m" / "training.json").read_text())
        assert (made["fingerprint"], made["losses"]) == (whole.fingerprint, list(whole.losses)), number
        for path in tmp_path.iterdir():
            shutil.rmtree(path)


def test_an_interrupt_leaves_the_checkpoints_and_the_model_that_was_there(base: Path, tmp_path: Path) -> None:
    first = train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS)

    def interrupt(progress: Progress) -> None:
        if progress.done > 1:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fontes.train.runner.fitting.REPORT_INTERVAL", 0.0)
        with pytest.raises(KeyboardInterrupt):
            train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS.with_(seed=1), overwrite=True, progress=interrupt)
    assert json.loads((tmp_path / "m" / "training.json").read_text())["fingerprint"] == first.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.training"]


def nan_from(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From this step on the loss is no number."""
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    forward, count = BinaryCrossEntropyLoss.forward, 0

    def broken(self: Any, inputs: Any, labels: Any, **named: Any) -> Any:
        nonlocal count
        count += torch.is_grad_enabled()
        loss = forward(self, inputs, labels, **named)
        return loss * float("nan") if count >= step else loss

    monkeypatch.setattr(BinaryCrossEntropyLoss, "forward", broken)


def test_a_loss_of_nan_stops_the_training_and_keeps_the_last_checkpoint(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nan_from(7, monkeypatch)
    message = r"at step 7 the loss is no longer a number with lr=0\.003: .*the checkpoint of step 4 is in .*/checkpoint-4$"
    with pytest.raises(ParameterError, match=message):
        train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS.with_(evaluations=2))
    assert [path.name for path in tmp_path.iterdir()] == ["m.training"]
    checkpoint = CrossEncoder(tmp_path / "m.training" / "checkpoint-4", precision="float32")
    assert np.isfinite(checkpoint.scores([("water", "hot spring")])).all()


@pytest.mark.slow
def test_a_learning_rate_that_overflows_is_one_sentence(base: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"at step \d the loss is no longer a number with lr=1e\+30: use smaller values; there is no"
    ):
        train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS.with_(lr=1e30))
    assert not (tmp_path / "m").exists()


def test_a_full_disk_is_one_sentence_and_the_training_goes_on_where_there_is_room(
    base: Path, whole: Training, tmp_path: Path
) -> None:
    weights = (base / "model.safetensors").stat().st_size
    with small_disk(tmp_path / "disk", str(6 * weights)) as disk:
        with pytest.raises(InputError, match=r"m\.training.* stopped: .*(No space left|file write failed|unexpected pos)"):
            train_cross_encoder(DATA, disk / "m", base, RESUMED)
        assert [path.name for path in disk.iterdir()] == ["m.training"]
        left = json.loads((disk / "m.training" / "training.json").read_text())
        shutil.copytree(disk / "m.training", tmp_path / "m.training")
        assert left["identity"]["kind"] == "cross-encoder"
    made = train_cross_encoder(DATA, tmp_path / "m", base, RESUMED)
    assert made.fingerprint == whole.fingerprint


@pytest.mark.slow
def test_a_full_disk_at_the_end_is_one_sentence_and_nothing_is_retrained(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("fontes.train.runner.running.describe", full)
        with pytest.raises(InputError, match="m cannot be written: No space left on device"):
            train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["m.training"]
    told: list[Progress] = []
    train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS, progress=told.append)
    assert not told


def test_another_training_in_the_working_folder_is_refused_and_dropped_when_asked(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        nan_from(6, patch)
        with pytest.raises(ParameterError):
            train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS.with_(evaluations=2))
    changed = SETTINGS.with_(evaluations=2, lr=1e-3)
    with pytest.raises(InputError, match=r"m\.training contains another training, with another lr; give another output, or"):
        train_cross_encoder(DATA, tmp_path / "m", base, changed)
    with pytest.raises(InputError, match="with another examples; "):
        train_cross_encoder(examples(30), tmp_path / "m", base, SETTINGS.with_(evaluations=2))
    assert train_cross_encoder(DATA, tmp_path / "m", base, changed, overwrite=True).settings["lr"] == 1e-3


@pytest.mark.parametrize("overwrite", [False, True])
def test_foreign_files_in_the_working_folder_stay(overwrite: bool, base: Path, tmp_path: Path) -> None:
    (tmp_path / "m.training").mkdir()
    (tmp_path / "m.training" / "letter.txt").write_text("Dear Ada")
    with pytest.raises(InputError, match=r"m\.training contains other files \(letter\.txt\) and no training"):
        train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS, overwrite=overwrite)
    assert (tmp_path / "m.training" / "letter.txt").read_text() == "Dear Ada"


def test_only_a_trained_model_is_ever_overwritten(base: Path, tmp_path: Path) -> None:
    for name, content in (("letter.txt", "Dear Ada"), ("training.json", '{"identity": 1}'), ("training.json", "{")):
        folder = tmp_path / "letters"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(content)
        with pytest.raises(InputError, match="letters exists already; give another folder, or overwrite it"):
            train_cross_encoder(DATA, folder, base, SETTINGS)
        with pytest.raises(InputError, match=r"is not a model trained by Fontes .*, so it is not overwritten"):
            train_cross_encoder(DATA, folder, base, SETTINGS, overwrite=True)
    assert (tmp_path / "letters" / "letter.txt").read_text() == "Dear Ada"


def test_two_trainings_do_not_share_a_working_folder(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frequent_reports(monkeypatch)
    errors: list[str] = []

    def second(progress: Progress) -> None:
        if progress.done == 1:
            with pytest.raises(FontesError) as caught:
                train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS)
            errors.append(str(caught.value))

    train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS, progress=second)
    assert errors == [f"another process trains in {tmp_path / 'm.training'}; wait until it is done"]


def test_a_damaged_working_folder_is_one_sentence(base: Path, tmp_path: Path) -> None:
    (tmp_path / "m.training").mkdir()
    (tmp_path / "m.training" / "training.json").write_text("{")
    with pytest.raises(InputError, match=r"training\.json is damaged: .*; remove .*m\.training to begin anew"):
        train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS)

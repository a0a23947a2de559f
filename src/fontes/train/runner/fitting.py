"""Training loop, by the trainers of sentence-transformers and transformers.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
import transformers
from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_pt_utils import get_length_grouped_indices

from ...core.errors import ParameterError
from ...core.work import Progress, reporter, silent, work
from ...neural.models.compute import candidates, fastest_of
from ...neural.models.hub import device, model_errors, quiet, without_warnings
from .checkpoint_folder import CheckpointFolder
from .settings import LOSS, FitSettings
from .used_embeddings import UsedEmbeddings

if TYPE_CHECKING:
    from .running import Fit, Rows

CHECKPOINT_INTERVAL = 300.0  # seconds from one checkpoint to the next
REPORT_INTERVAL = 1.0  # seconds from one report to the next
CALIBRATED_FROM = 30  # least number of steps that is worth a calibration
CLIPPED = 1.0  # gradient clipping norm


@dataclass(frozen=True)
class TrainingHistory:
    """History of a training.

    Args:
        losses: Loss of each step.
        evaluations: Evaluations.
        best: Step of the best state, in which the model is left.
        precision: Precision of matrix products, and the result of the calibration.
        device: Device used.
        seconds: Duration, without interruptions.
    """

    losses: tuple[float, ...]
    evaluations: tuple[dict[str, float], ...]
    best: int
    precision: str
    device: str
    seconds: float


def fit_model(fit: Fit, settings: FitSettings, checkpoints: CheckpointFolder) -> TrainingHistory:
    """Train a model from the last checkpoint in its working folder, and leave it in its best state."""
    start = time.perf_counter()
    device_name = device()
    with without_warnings(), quiet():
        # Weight decay changes all rows, so all are trained.
        embeddings = UsedEmbeddings(fit.model, () if settings.weight_decay else fit.tokens or ())
        fit = _with_whole_embeddings(fit, embeddings)
        precision = checkpoints.facts.get("precision") or _training_precision(fit, settings, checkpoints, device_name)
        checkpoints.record(precision=precision)
        is_bfloat16 = precision.startswith("bfloat16")
        trainer = _make_trainer(fit, settings, checkpoints.folder, device_name, is_bfloat16)
        monitor = _Monitor(fit, settings, checkpoints, start)
        trainer.add_callback(monitor)
        if fit.rate is not None:
            optimizer = trainer.create_optimizer()
            trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: monitor.rate(step))
        last_step = monitor.previous_steps
        transformers.set_seed(settings.seed)
        with monitor.stopping(), work(progress=silent):
            trainer.train(resume_from_checkpoint=str(checkpoints.checkpoint(last_step)) if last_step else None)
        best = best_step(trainer.state.log_history, settings)
        if best not in (0, trainer.state.global_step):
            with model_errors(f"the best checkpoint, {checkpoints.checkpoint(best)}, cannot be read"):
                fit.restore(checkpoints.checkpoint(best))
        embeddings.restore()
    fit.model.eval()
    history = trainer.state.log_history
    return TrainingHistory(
        losses=tuple(row["loss"] for row in history if "loss" in row),
        evaluations=tuple(evaluations(history, settings)),
        best=best or trainer.state.global_step,
        precision=precision,
        device=device_name,
        seconds=time.perf_counter() - start + monitor.previous_seconds,
    )


def _with_whole_embeddings(fit: Fit, embeddings: UsedEmbeddings) -> Fit:
    """Return `fit` with functions that save and restore whole embeddings."""

    def within(work: Callable[[Path], None]) -> Callable[[Path], None]:
        def run_with_whole(folder: Path) -> None:
            with embeddings.whole():
                work(folder)

        return run_with_whole

    return replace(fit, save=within(fit.save), restore=within(fit.restore))


def evaluations(history: list[dict[str, float]], settings: FitSettings) -> list[dict[str, float]]:
    """Return the evaluations in the trainer's history."""
    names = {"eval_loss": LOSS, "eval_measure": str(settings.measure)}
    rows = [row for row in history if names.keys() & row.keys()]
    return [{"step": row["step"], **{names[key]: row[key] for key in names if key in row}} for row in rows]


def best_step(history: list[dict[str, float]], settings: FitSettings) -> int:
    """Return the first step with the best value; 0 without evaluations or if the last state is kept."""
    criterion = settings.criterion
    figures = {int(row["step"]): row[criterion] for row in evaluations(history, settings) if criterion in row}
    better = min if criterion == LOSS else max
    return better(figures, key=figures.__getitem__, default=0)


def _make_trainer(fit: Fit, settings: FitSettings, folder: Path, device_name: str, is_bfloat16: bool) -> Any:
    is_transformers, extra_arguments = hasattr(transformers, fit.trainer), {}
    if is_transformers:
        base = getattr(transformers, fit.trainer)
        arguments_class = getattr(transformers, fit.trainer.replace("Trainer", "TrainingArguments"))
        inputs = {"train_dataset": list(fit.train.rows), "compute_loss_func": fit.loss}
    else:
        import datasets
        import sentence_transformers

        base = getattr(sentence_transformers, fit.trainer)
        arguments_class = base.training_args_class
        extra_arguments = {"learning_rate_mapping": dict(fit.rates)}
        inputs = {"train_dataset": datasets.Dataset.from_list(list(fit.train.rows)), "loss": fit.loss}
    steps = _steps(fit, settings)
    arguments = arguments_class(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.lr,
        warmup_steps=settings.warm_up_steps(steps),
        weight_decay=settings.weight_decay,
        optim="adamw_torch_fused",
        max_grad_norm=CLIPPED,
        bf16=is_bfloat16,
        use_cpu=device_name == "cpu",
        seed=settings.seed,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",  # _Monitor decides when
        report_to=[],
        disable_tqdm=True,
        **extra_arguments,
    )
    overrides = _TransformersFitting if is_transformers else _Fitting
    cls = type("FontesTrainer", (overrides, base), {"fit": fit, "fit_settings": settings})
    trainer = cls(model=fit.model, args=arguments, data_collator=fit.collator, **inputs)
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def _steps(fit: Fit, settings: FitSettings) -> int:
    return settings.epochs * -(-len(fit.train) // settings.batch)


class _Fitting:
    """Overrides for the trainers of sentence-transformers: order of rows, evaluation, and content of a checkpoint."""

    fit: Fit
    fit_settings: FitSettings

    def add_model_card_callback(self, default_args_dict: object) -> None:
        """Do nothing: Fontes writes the card, while theirs would look up the base on the hub."""

    def get_batch_sampler(self, dataset: object, batch_size: int, *args: object, **kwargs: object) -> LengthGroupedSampler:
        lengths = self.fit.train.lengths
        if self.fit_settings.order == "shuffled":
            lengths = [1] * len(lengths)  # rows of equal length come in random order
        return LengthGroupedSampler(lengths, batch_size, self.fit_settings.seed)

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        metrics = {}
        model: torch.nn.Module = cast(Any, self).model
        model.eval()
        if len(self.fit.validation):
            metrics["eval_loss"] = self._validation_loss(self.fit.validation)
        if self.fit.measure is not None:
            metrics["eval_measure"] = self.fit.measure()
        model.train()
        trainer = cast(Any, self)
        trainer.log(metrics)
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, metrics)
        return metrics

    def _validation_loss(self, rows: Rows) -> float:
        """Return the mean loss over batches of similar length, weighted by item count; uses no random numbers."""
        trainer = cast(Any, self)
        order = np.argsort(np.asarray(rows.lengths), kind="stable").tolist()
        total, count, size = 0.0, 0, self.fit_settings.batch
        with torch.no_grad(), trainer.compute_loss_context_manager():
            for start in range(0, len(order), size):
                batch = [dict(rows.rows[n]) for n in order[start : start + size]]
                inputs = trainer._prepare_inputs(trainer.data_collator(batch))
                items = len(batch) if self.fit.counted is None else self.fit.counted(inputs)
                total += float(trainer.compute_loss(trainer.model, inputs)) * items
                count += items
        return total / count

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        self.fit.save(Path(str(output_dir)))

    def _load_from_checkpoint(self, checkpoint_path: str, model: object = None) -> None:
        self.fit.restore(Path(checkpoint_path))


class _TransformersFitting(_Fitting):
    """Further overrides for the trainers of transformers alone."""

    def get_train_dataloader(self) -> object:
        trainer = cast(Any, self)
        order = self.get_batch_sampler(trainer.train_dataset, trainer._train_batch_size)
        batches = torch.utils.data.DataLoader(trainer.train_dataset, batch_sampler=order, collate_fn=trainer.data_collator)
        return trainer.accelerator.prepare(batches)


class _Monitor(transformers.TrainerCallback):
    """Callback that checks at each step that the loss is a number, and decides when to evaluate, save and report."""

    def __init__(self, fit: Fit, settings: FitSettings, checkpoints: CheckpointFolder, start: float) -> None:
        self._settings, self._checkpoints, self._report = settings, checkpoints, reporter()
        self._start, self._saved, self._reported = start, time.perf_counter(), 0.0
        self.previous_seconds = float(checkpoints.facts.get("seconds", 0.0))  # seconds before the interruption
        self.previous_steps = checkpoints.last()  # steps before the interruption
        self._steps = _steps(fit, settings)
        parts = settings.epochs * settings.evaluations
        evaluated = len(fit.validation) or fit.measure
        self._fit = fit
        self._evaluated_at = {round(self._steps * (n + 1) / parts) for n in range(parts)} if evaluated else set()

    def rate(self, step: int) -> float:
        assert self._fit.rate is not None
        return self._fit.rate(self._finished_share(step), self._steps)

    def _finished_share(self, step: int) -> float:
        seconds = time.perf_counter() - self._start + self.previous_seconds
        return max(step / self._steps, seconds / (60 * self._fit.minutes) if self._fit.minutes else 0.0)

    def stopping(self) -> AbstractContextManager[None]:
        """Return a context that turns library errors on writing or reading a checkpoint into one sentence."""
        return model_errors(f"the training in {self._checkpoints.folder} stopped")

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        if self._fit.scheduled is not None:
            self._fit.scheduled(self._finished_share(state.global_step))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> TrainerControl:
        control.should_evaluate = state.global_step in self._evaluated_at
        late = time.perf_counter() - self._saved > CHECKPOINT_INTERVAL
        control.should_save = control.should_evaluate or late
        if self._finished_share(state.global_step) >= 1:
            control.should_training_stop = True
        return control

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Mapping[str, float] = {}, **_: object
    ) -> None:
        numbers = [value for key, value in logs.items() if key in ("loss", "grad_norm", "eval_loss", "eval_measure")]
        if not np.isfinite(numbers).all():
            raise ParameterError(self._overflow_message(state.global_step))
        now = time.perf_counter()
        step = state.global_step
        if "loss" in logs and (now - self._reported > REPORT_INTERVAL or step == self._steps):
            self._reported = now
            part = min(self._finished_share(step), 1.0) if self._fit.minutes else None
            note = self._report_note(state)
            self._report(Progress("training", step, self._steps, now - self._start, "steps", part, self.previous_steps, note))

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        now = self._saved = time.perf_counter()
        self._checkpoints.record(seconds=now - self._start + self.previous_seconds)
        self._checkpoints.keep((state.global_step, best_step(state.log_history, self._settings)))

    def _report_note(self, state: TrainerState) -> str:
        losses = [row["loss"] for row in state.log_history[-50:] if "loss" in row]
        parts = [f"loss {np.mean(losses):.4f}"] if losses else []
        validated = evaluations(state.log_history, self._settings)[-1:]
        parts += [f"validation {name} {value:.4f}" for row in validated for name, value in row.items() if name != "step"]
        return ", ".join(parts)

    def _overflow_message(self, step: int) -> str:
        last = self._checkpoints.last()
        folder = self._checkpoints.checkpoint(last)
        checkpoint = f"the checkpoint of step {last} is in {folder}" if last else "there is no checkpoint yet"
        values = {"lr": self._settings.lr, **self._fit.factors}
        named = " and ".join(f"{name}={value:g}" for name, value in values.items())
        return f"at step {step} the loss is no longer a number with {named}: use smaller values; {checkpoint}"


def _training_precision(fit: Fit, settings: FitSettings, checkpoints: CheckpointFolder, device_name: str) -> str:
    """Return the training precision; "auto" is calibrated by a few training steps in each on rows of median length."""
    if settings.precision != "auto":
        return settings.precision
    names = ["float32", *(name for name in candidates(device_name) if name == "bfloat16")]
    if len(names) == 1 or _steps(fit, settings) < CALIBRATED_FROM:
        return "float32"
    trainer = _make_trainer(fit, settings, checkpoints.folder, device_name, is_bfloat16=False)
    order = np.argsort(np.asarray(fit.train.lengths), kind="stable")
    start_row = max(0, (len(order) - settings.batch) // 2)
    batch = [dict(fit.train.rows[n]) for n in order[start_row : start_row + settings.batch].tolist()]

    def step(name: str) -> float:
        start = time.perf_counter()
        with torch.autocast(torch.device(device_name).type, torch.bfloat16, enabled=name == "bfloat16"):
            loss = trainer.compute_loss(trainer.model, trainer._prepare_inputs(trainer.data_collator(batch)))
            loss.backward()  # inside autocast: cached gradients recompute the outputs in the backward pass
        # A sum of the gradients waits for the device.
        float(sum(parameter.grad.sum() for parameter in trainer.model.parameters() if parameter.grad is not None))
        trainer.model.zero_grad()
        return time.perf_counter() - start

    trainer.model.train()
    for name in names:  # warms up
        step(name)
    best, seconds = fastest_of(names, step)
    steps = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in seconds.items())
    return f"{best} (calibration: {steps} a step)"


class LengthGroupedSampler(torch.utils.data.Sampler[list[int]]):
    """Batches of rows of similar length, in a random order that depends only on the seed and the epoch.

    `lengths` are numbers of tokens, one per row; the last batch of an epoch may be smaller.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        super().__init__()
        self._lengths, self._batch, self._seed, self._epoch = list(lengths), batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the order."""
        self._epoch = epoch

    def __len__(self) -> int:
        return -(-len(self._lengths) // self._batch)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator()
        generator.manual_seed(self._seed + self._epoch)
        # The library sorts parts from longest to shortest; training in that order is worse than in a random one.
        grouped: list[int] = get_length_grouped_indices(  # type: ignore[no-untyped-call]
            self._lengths, self._batch, generator=generator
        )
        full_batches = len(grouped) // self._batch
        for i in [*torch.randperm(full_batches, generator=generator).tolist(), full_batches]:
            if batch := grouped[i * self._batch : (i + 1) * self._batch]:
                yield batch

"""Training loop, by the trainers of sentence-transformers and transformers.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
import transformers
from transformers.trainer_pt_utils import get_length_grouped_indices

from ...core.errors import ParameterError
from ...core.progress import Progress, ProgressCallback
from ...neural.models.compute import candidates, quickest
from ...neural.models.hub import device, quiet, readable, without_warnings
from .checkpoint_folder import CheckpointFolder
from .settings import LOSS, FitSettings
from .used_embeddings import UsedEmbeddings

if TYPE_CHECKING:
    from .running import Fit, Rows

SAVED_EVERY = 300.0  # seconds from one checkpoint to the next
EVERY = 1.0  # seconds from one report to the next
CALIBRATED_FROM = 30  # steps of a training that is worth a calibration
CLIPPED = 1.0  # gradient clipping norm


@dataclass(frozen=True)
class TrainingHistory:
    """History of a training.

    Args:
        losses: Loss of each step.
        evaluations: Evaluations.
        best: Step of the best state, which the model is in.
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


def fitted(fit: Fit, settings: FitSettings, place: CheckpointFolder, progress: ProgressCallback) -> TrainingHistory:
    """Train a model from the last checkpoint of its working folder, and leave it in its best state."""
    start = time.perf_counter()
    where = device()
    with without_warnings(), quiet():
        # Weight decay changes all rows.
        vocabulary = UsedEmbeddings(fit.model, () if settings.weight_decay else fit.tokens or ())
        fit = _with_whole_embeddings(fit, vocabulary)
        precision = place.facts.get("precision") or _precision(fit, settings, place, where)
        place.note(precision=precision)
        half = precision.startswith("bfloat16")
        trainer = _trainer(fit, settings, place.folder, where, half)
        watch = _Watch(fit, settings, place, progress, start)
        trainer.add_callback(watch)
        if fit.rate is not None:
            trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(trainer.create_optimizer(), lambda step: watch.rate(step))
        last = watch.before
        transformers.set_seed(settings.seed)
        with watch.stopping():
            trainer.train(resume_from_checkpoint=str(place.checkpoint(last)) if last else None)
        best = best_step(trainer.state.log_history, settings)
        if best not in (0, trainer.state.global_step):
            with readable(f"the best checkpoint, {place.checkpoint(best)}, cannot be read"):
                fit.restore(place.checkpoint(best))
        vocabulary.put_back()
    fit.model.eval()
    history = trainer.state.log_history
    return TrainingHistory(
        losses=tuple(row["loss"] for row in history if "loss" in row),
        evaluations=tuple(evaluations(history, settings)),
        best=best or trainer.state.global_step,
        precision=precision,
        device=where,
        seconds=time.perf_counter() - start + watch.earlier,
    )


def _with_whole_embeddings(fit: Fit, vocabulary: UsedEmbeddings) -> Fit:
    """Make `fit` save and restore whole embeddings."""

    def within(work: Callable[[Path], None]) -> Callable[[Path], None]:
        def whole(folder: Path) -> None:
            with vocabulary.whole():
                work(folder)

        return whole

    return replace(fit, save=within(fit.save), restore=within(fit.restore))


def evaluations(history: list[dict[str, Any]], settings: FitSettings) -> list[dict[str, float]]:
    """Return the evaluations in the trainer's history."""
    names = {"eval_loss": LOSS, "eval_measure": str(settings.measure)}
    rows = [row for row in history if names.keys() & row.keys()]
    return [{"step": row["step"], **{names[key]: row[key] for key in names if key in row}} for row in rows]


def best_step(history: list[dict[str, Any]], settings: FitSettings) -> int:
    """Return the first step with the best value; 0 without evaluations or if the last state is kept."""
    criterion = settings.criterion
    figures = {int(row["step"]): row[criterion] for row in evaluations(history, settings) if criterion in row}
    better = min if criterion == LOSS else max
    return better(figures, key=figures.__getitem__, default=0)


def _trainer(fit: Fit, settings: FitSettings, folder: Path, where: str, half: bool) -> Any:
    plain, more = hasattr(transformers, fit.trainer), {}
    if plain:
        base = getattr(transformers, fit.trainer)
        arguments_class = getattr(transformers, fit.trainer.replace("Trainer", "TrainingArguments"))
        inputs = {"train_dataset": list(fit.train.rows), "compute_loss_func": fit.loss}
    else:
        import datasets
        import sentence_transformers

        base = getattr(sentence_transformers, fit.trainer)
        arguments_class = base.training_args_class
        more = {"learning_rate_mapping": dict(fit.rates)}
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
        bf16=half,
        use_cpu=where == "cpu",
        seed=settings.seed,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",  # _Watch decides when
        report_to=[],
        disable_tqdm=True,
        **more,
    )
    cls = type("FontesTrainer", (_PlainFitting if plain else _Fitting, base), {"fit": fit, "fit_settings": settings})
    trainer = cls(model=fit.model, args=arguments, data_collator=fit.collator, **inputs)
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def _steps(fit: Fit, settings: FitSettings) -> int:
    return settings.epochs * -(-len(fit.train) // settings.batch)


class _Fitting:
    """Overrides of transformers' trainers: order of rows, evaluation, and content of a checkpoint."""

    fit: Fit
    fit_settings: FitSettings

    def add_model_card_callback(self, default_args_dict: Any) -> None:
        """Do nothing: Fontes writes the card, and theirs looks the base up on the hub."""

    def get_batch_sampler(self, dataset: Any, batch_size: int, *args: Any, **kwargs: Any) -> Any:
        lengths = self.fit.train.lengths
        if self.fit_settings.order == "shuffled":
            lengths = [1] * len(lengths)  # rows of equal length in any order
        return LikeLength(lengths, batch_size, self.fit_settings.seed)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        metrics = {}
        model: Any = cast(Any, self).model
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
        """Mean loss over batches of similar length, weighted by item count; uses no random numbers."""
        trainer = cast(Any, self)
        order = np.argsort(np.asarray(rows.lengths), kind="stable").tolist()
        total, count, size = 0.0, 0, self.fit_settings.batch
        with torch.no_grad(), trainer.compute_loss_context_manager():
            for at in range(0, len(order), size):
                batch = [dict(rows.rows[n]) for n in order[at : at + size]]
                inputs = trainer._prepare_inputs(trainer.data_collator(batch))
                items = len(batch) if self.fit.counted is None else self.fit.counted(inputs)
                total += float(trainer.compute_loss(trainer.model, inputs)) * items
                count += items
        return total / count

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        self.fit.save(Path(str(output_dir)))

    def _load_from_checkpoint(self, checkpoint_path: str, model: Any = None) -> None:
        self.fit.restore(Path(checkpoint_path))


class _PlainFitting(_Fitting):
    """Further overrides for the trainers of transformers alone."""

    def get_train_dataloader(self) -> Any:
        trainer = cast(Any, self)
        order = self.get_batch_sampler(trainer.train_dataset, trainer._train_batch_size)
        batches = torch.utils.data.DataLoader(trainer.train_dataset, batch_sampler=order, collate_fn=trainer.data_collator)
        return trainer.accelerator.prepare(batches)


class _Watch(transformers.TrainerCallback):
    """Checks at each step that the loss is a number, and when to evaluate, save and report."""

    def __init__(
        self, fit: Fit, settings: FitSettings, place: CheckpointFolder, progress: ProgressCallback, start: float
    ) -> None:
        self._settings, self._place, self._progress = settings, place, progress
        self._start, self._saved, self._reported = start, time.perf_counter(), 0.0
        self.earlier = float(place.facts.get("seconds", 0.0))  # seconds before the interruption
        self.before = place.last()  # steps before the interruption
        self._steps = _steps(fit, settings)
        parts = settings.epochs * settings.evaluations
        evaluated = len(fit.validation) or fit.measure
        self._fit = fit
        self._evaluated_at = {round(self._steps * (n + 1) / parts) for n in range(parts)} if evaluated else set()

    def rate(self, step: int) -> float:
        assert self._fit.rate is not None
        return self._fit.rate(self._part(step), self._steps)

    def _part(self, step: int) -> float:
        seconds = time.perf_counter() - self._start
        return max(step / self._steps, seconds / (60 * self._fit.minutes) if self._fit.minutes else 0.0)

    def stopping(self) -> Any:
        """Turn library errors on writing or reading a checkpoint into one sentence."""
        return readable(f"the training in {self._place.folder} stopped")

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._fit.scheduled is not None:
            self._fit.scheduled(self._part(state.global_step))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        control.should_evaluate = state.global_step in self._evaluated_at
        late = time.perf_counter() - self._saved > SAVED_EVERY
        control.should_save = self._place.kept and (control.should_evaluate or late)
        if self._part(state.global_step) >= 1:
            control.should_training_stop = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        numbers = [value for key, value in logs.items() if key in ("loss", "grad_norm", "eval_loss", "eval_measure")]
        if not np.isfinite(numbers).all():
            raise ParameterError(self._overflow(state.global_step))
        now = time.perf_counter()
        done = state.global_step
        if "loss" in logs and (now - self._reported > EVERY or done == self._steps):
            self._reported = now
            part = min(self._part(done), 1.0) if self._fit.minutes else None
            self._progress(
                Progress("training", done, self._steps, now - self._start, "steps", part, self.before, self._note(state))
            )

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        now = self._saved = time.perf_counter()
        self._place.note(seconds=now - self._start + self.earlier)
        self._place.keep((state.global_step, best_step(state.log_history, self._settings)))

    def _note(self, state: Any) -> str:
        losses = [row["loss"] for row in state.log_history[-50:] if "loss" in row]
        parts = [f"loss {np.mean(losses):.4f}"] if losses else []
        validated = evaluations(state.log_history, self._settings)[-1:]
        parts += [f"validation {name} {value:.4f}" for row in validated for name, value in row.items() if name != "step"]
        return ", ".join(parts)

    def _overflow(self, step: int) -> str:
        last = self._place.last()
        checkpoint = (
            f"the checkpoint of step {last} is in {self._place.checkpoint(last)}" if last else "there is no checkpoint yet"
        )
        values = {"lr": self._settings.lr, **self._fit.factors}
        named = " and ".join(f"{name}={value:g}" for name, value in values.items())
        return f"at step {step} the loss is no longer a number with {named}: use smaller values; {checkpoint}"


def _precision(fit: Fit, settings: FitSettings, place: CheckpointFolder, where: str) -> str:
    """Training precision, calibrated by a few training steps in each on rows of median length."""
    if settings.precision != "auto":
        return settings.precision
    names = ["float32", *(name for name in candidates(where) if name == "bfloat16")]
    if len(names) == 1 or _steps(fit, settings) < CALIBRATED_FROM:
        return "float32"
    trainer = _trainer(fit, settings, place.folder, where, half=False)
    order = np.argsort(np.asarray(fit.train.lengths), kind="stable")
    first = max(0, (len(order) - settings.batch) // 2)
    batch = [dict(fit.train.rows[n]) for n in order[first : first + settings.batch].tolist()]

    def step(name: str) -> float:
        start = time.perf_counter()
        with torch.autocast(torch.device(where).type, torch.bfloat16, enabled=name == "bfloat16"):
            loss = trainer.compute_loss(trainer.model, trainer._prepare_inputs(trainer.data_collator(batch)))
            loss.backward()  # inside autocast: cached gradients recompute the outputs in the backward pass
        float(sum(parameter.grad.sum() for parameter in trainer.model.parameters() if parameter.grad is not None))  # waits
        trainer.model.zero_grad()
        return time.perf_counter() - start

    trainer.model.train()
    for name in names:  # warms up
        step(name)
    best, seconds = quickest(names, step)
    steps = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in seconds.items())
    return f"{best} (calibration: {steps} a step)"


class LikeLength(torch.utils.data.Sampler[list[int]]):
    """Batches of rows of similar length, in random order that depends on the seed and the epoch only.

    `lengths` are tokens of each row; the last batch of an epoch may be smaller.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        super().__init__()
        self._lengths, self._batch, self._seed, self._epoch = list(lengths), batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the order to that of an epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return -(-len(self._lengths) // self._batch)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator()
        generator.manual_seed(self._seed + self._epoch)
        # Each part is sorted from longest to shortest; training in such an order is worse than in a random one.
        grouped: list[int] = get_length_grouped_indices(  # type: ignore[no-untyped-call]
            self._lengths, self._batch, generator=generator
        )
        whole = len(grouped) // self._batch
        for at in [*torch.randperm(whole, generator=generator).tolist(), whole]:
            if batch := grouped[at * self._batch : (at + 1) * self._batch]:
                yield batch

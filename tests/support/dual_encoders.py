"""What tests of ColBERT and SPLADE training share: batches of the loss, indexes, interruption, and the commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.paired_words import examples
from support.small import frequent_checkpoints

import fontes as ft
from fontes import Doc
from fontes.core.work import Progress
from fontes.train import Examples, LabelledPairs, dual_encoder


def batch_of(model: Any, rows: Examples | LabelledPairs, **more: Any) -> tuple[list[dict[str, Any]], Any]:
    """The features of queries and documents, and the labels, as the trainer hands them to the loss."""
    collator = dual_encoder.Collator(
        model.preprocess, prompts=dict(model.prompts), relevant=dual_encoder.relevant_texts([rows])
    )
    batch = collator(list(dual_encoder.rows_of(rows, **{"negatives": None, **more}).rows))
    columns = [
        {key[len(name) :]: value for key, value in batch.items() if key.startswith(name)} for name in ("query_", "document_")
    ]
    return columns, batch["label"]


def index_of(on: Examples, folder: Path) -> ft.Index:
    """An index of the passages of examples."""
    passages = [passage for one in on for passage in (one.positive, *one.negatives)]
    return ft.Index.build([Doc(passage.id, passage.text) for passage in passages], folder)


def found(stage: Any, on: Examples) -> float:
    """RR@10 of a search for the queries of examples."""
    run = stage([ft.Topic(one.topic, one.query) for one in on])
    return float(ft.evaluate(run, {one.topic: {one.positive.id: 1} for one in on}, ft.RR @ 10)[ft.RR @ 10])


def goes_on_to_the_same_weights(train: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training, `train(data, place, **progress)`, that is interrupted and begun again ends as one that was not."""
    import torch
    from safetensors.torch import load_file

    frequent_checkpoints(monkeypatch)
    data = examples(48, 4, longest=8)

    def stop(progress: Progress) -> None:
        if progress.done >= 3:
            raise KeyboardInterrupt

    whole = train(data, folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(data, folder / "m", progress=stop)
    assert not (folder / "m").exists()
    seen: list[int] = []
    later = train(data, folder / "m", progress=lambda one: seen.append(one.done))
    assert seen[0] > 1
    assert later.losses == whole.losses
    for file in (folder / "whole").rglob("model.safetensors"):
        first, second = load_file(file), load_file(folder / "m" / file.relative_to(folder / "whole"))
        assert all(torch.equal(first[name], second[name]) for name in first)


def trains_encodes_searches_and_evaluates(fontes: Any, folder: Path, kind: str, stage: str, *options: object) -> list[Any]:
    """The commands run from examples to a measure; gives the words of the one that trains.

    Args:
        fontes: The fixture that runs commands.
        folder: Where all files go; the model is `m`.
        kind: Of the model, as `fontes train` names it and `fontes encode` has an option.
        stage: The stage that searches.
        options: Further words of the training.
    """
    data = examples(24, 1, longest=6)
    data.write(folder / "examples.jsonl")
    index_of(data, folder / "index")
    ft.write_topics(ft.Topics(ft.Topic(one.topic, one.query) for one in data), folder / "topics.tsv")
    ft.write_qrels(ft.Qrels.of([(one.topic, one.positive.id, 1) for one in data]), folder / "qrels")
    command: list[Any] = ["train", kind, folder / "examples.jsonl", "-o", folder / "m", "--epochs", 1, "--batch", 8]
    command += ["--mini-batch", 0, "--lr", 0.01, "--dropout", 0, "--precision", "float32", *options]
    code, out, err = fontes(*command)
    assert (code, " model from" in out, f'use it as {stage}("{folder / "m"}")' in out) == (0, True, True), err
    assert fontes("encode", folder / "index", folder / "m", f"--{kind}")[0] == 0
    search = ["search", folder / "index", "--topics", folder / "topics.tsv", "-o", folder / "run"]
    assert fontes(*search, "--pipeline", f'{stage}("{folder / "m"}")')[0] == 0
    code, out, err = fontes("eval", folder / "qrels", folder / "run", "-m", "RR@10")
    assert (code, "RR@10" in out) == (0, True), err
    return command

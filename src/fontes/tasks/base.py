"""`Task`, the base class of shared tasks: the organisers' files, the measures, and the form of a submission."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..core import Doc, InputError, Qrels, Run, Topics
from ..core.registry import Registry
from ..datasets import Dataset, dataset
from ..formats import write_corpus
from .release import ReleasedFiles

DEV = ("dev", "validation", "valid", "val")
ORDER = ("train", *DEV, "test")


@dataclass(frozen=True)
class TaskSide:
    """Topics of a split or a snapshot.

    Args:
        name: "train", "dev", "test", "2025-01", …
        topics: The topics.
        qrels: Their judgments; None if the organisers withhold them.
        corpus: The side's own documents, if it has some: a path, or a collection by name.
    """

    name: str
    topics: Topics
    qrels: Qrels | None = None
    corpus: Path | str | None = None


@dataclass(frozen=True)
class TaskData:
    """Topics, judgments and documents of a task.

    Args:
        sides: Splits in the order train, dev, test, or snapshots in order of time.
        corpus: The documents: a path, or a collection by name; None if there are none, or if each side has its own.
    """

    sides: tuple[TaskSide, ...]
    corpus: Path | str | None = None


@dataclass(frozen=True)
class Roles:
    """Use of each side, by name.

    Args:
        choose: The side on which parameters and weights are chosen; None if no side is judged.
        measure: Judged sides to measure on, in addition to the held-out topics of `choose`.
        submit: Sides to submit runs for.
        train: The side on which a model is trained, if any.
    """

    choose: str | None
    measure: tuple[str, ...] = ()
    submit: tuple[str, ...] = ()
    train: str | None = None


class Task(ABC):
    """Base class of shared tasks. `class Claims(Task, name="claims")` registers a task under a name.

    Attributes:
        name: Name of the task.
        title: Full name of the task.
        organisers: The files that the organisers give.
        submits: The form of a submission.
        measures: The measures of the report.
        measure: The measure by which systems are chosen.
        counts: Published numbers of documents (under "documents") and of topics (under the name of each side).
        rows: Expressions of further systems of the experiment, by name.
        depth: Maximum number of documents per topic in a submission.
        over_time: Whether the sides are snapshots, in order of time.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str]
    organisers: ClassVar[str]
    submits: ClassVar[str]
    measures: ClassVar[tuple[str, ...]] = ("nDCG@10", "AP", "R@100")
    measure: ClassVar[str] = "nDCG@10"
    counts: ClassVar[Mapping[str, int]] = {}
    rows: ClassVar[Mapping[str, str]] = {}
    depth: ClassVar[int] = 1000
    over_time: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            cls.name = name
            registry.add(name, cls)

    def read(self, release: ReleasedFiles, folder: Path) -> TaskData:
        """Read the files, which have BEIR's form or the organisers' own form.

        Args:
            release: The files.
            folder: Folder for documents that must be converted.

        Raises:
            InputError: A file is missing or cannot be read.
        """
        beir = release.beir()
        return self.read_release(release, folder) if beir is None else data_of(dataset(beir), beir)

    @abstractmethod
    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        """Read files in the organisers' own form."""

    def roles(self, sides: Iterable[TaskSide]) -> Roles:
        """Return the use of each side: by default, choose on dev, measure on the other judged sides, and submit test."""
        by_name = {side.name: side for side in sides}
        judged = [name for name, side in by_name.items() if side.qrels is not None]
        train = "train" if "train" in judged else None
        if not judged:
            return Roles(None, (), tuple(by_name))
        if self.over_time or not set(by_name) <= {"train", "test", *DEV}:
            choose = judged[0]
            later = tuple(name for name in judged if name != choose)
            hidden = tuple(name for name in by_name if name not in judged)
            return Roles(choose, later, hidden or later or (choose,), train)
        dev = next((name for name in DEV if name in judged), None)
        choose = dev or train or judged[0]
        measure = tuple(name for name in judged if name not in (choose, train))
        return Roles(choose, measure, ("test",) if "test" in by_name else measure or (choose,), train)

    @abstractmethod
    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        """Write a submission in the organisers' form.

        Args:
            runs: The run of each side to submit.
            folder: An empty folder to write to.
            tag: Name of the system.
            system: The system as an expression.

        Returns:
            The files to hand in.
        """

    @abstractmethod
    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        """Check a submission.

        Args:
            path: One of the files to hand in.
            topics: Topics of the submitted sides, by name of the side.
            documents: Ids of all documents; None if unknown.

        Returns:
            Remarks on unusual but valid contents.

        Raises:
            InputError: The submission is invalid; the message has a sentence for each fault, with line and remedy.
        """


registry: Registry[type[Task]] = Registry("fontes.tasks", "task")
"""All tasks by name."""


def data_of(collection: Dataset, corpus: Path | str) -> TaskData:
    """Return a collection as the data of a task.

    Args:
        collection: The collection.
        corpus: Folder of the collection, or its name with the prefix.
    """
    splits = sorted(collection.splits, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    if not splits:
        raise InputError(f"{corpus}: no judgments (qrels/SPLIT.tsv); a task needs at least one judged split")
    sides = tuple(TaskSide(split, collection.topics(split), collection.qrels(split)) for split in splits)
    if not isinstance(corpus, Path):
        return TaskData(sides, corpus)
    files = [corpus / name for name in ("corpus.jsonl", "corpus.jsonl.gz") if (corpus / name).is_file()]
    return TaskData(sides, files[0] if files else None)


def write_documents(docs: Iterable[Doc], folder: Path) -> Path:
    """Write documents to `folder`/corpus.jsonl, and return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "corpus.jsonl"
    write_corpus(docs, path)
    return path


def relative(path: Path | str, folder: Path) -> str:
    """Return a path relative to a folder; the name of a collection stays unchanged."""
    return path if isinstance(path, str) else Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()

"""`Experiment`: a file that says what is compared on which data, run into a folder that says what came out, and checked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import Report
from ..core import Qrels, Topics
from ..core.progress import Report as Listener, silent
from ..datasets import Dataset, named
from .collection import Collection
from .folder import LOCK
from .hashes import hash_of, hash_of_dataset
from .lock import Check, read_lock
from .runner import Plan, System, run

if TYPE_CHECKING:
    from .settings import Sources


class Experiment:
    """An experiment as a file of TOML: a collection, an index, systems as expressions, and a report.

    `run` writes into the folder `output`: runs/NAME.run, report.md, .json and .html, and experiment.lock with the versions,
    seeds, hashes of the data, hardware and all numbers. `check` runs it again elsewhere and says which number differs.

    Args:
        path: The file.
        output: The folder of results, in place of the one that the file names.

    Raises:
        InputError: The file cannot be used; the message names file, table and key.
    """

    def __init__(self, path: str | Path, output: str | Path | None = None) -> None:
        from .expressions import Expressions
        from .settings import problem_in, read_file

        self._file = read_file(path)
        self._systems = Expressions(self._file)
        self.output = self._file.output if output is None else Path(output)
        sources, problem = self._file.sources, ""
        if self._systems.searching and sources.topics is None:
            problem = "there is no key 'topics', and some systems search"
        elif self._systems.searching and sources.corpus is None and self._file.index.path is None:
            problem = "there is no key 'corpus' (or no corpus.jsonl), and [index] has no 'path': there is nothing to search"
        if problem:
            raise problem_in(self._file.path, "collection", problem)

    def run(self, progress: Listener = silent) -> Report:
        """Runs all systems, measures and compares them, and writes what `output` holds; the lock is the last file.

        A folder with a lock is complete. What was done before a run was interrupted is not done again.

        Args:
            progress: Is called with how far each step is.

        Raises:
            InputError: Something that is read cannot be used.
            ParameterError: A parameter makes no sense.
        """
        report = run(self._plan(), self.output, progress).report
        assert report is not None
        return report

    def check(self, progress: Listener = silent) -> Check:
        """Runs the experiment again in a temporary folder, index included, and compares it with the lock in `output`.

        Raises:
            InputError: There is no lock; or as `run` does.
        """
        locked = read_lock(self.output / LOCK)
        with tempfile.TemporaryDirectory(prefix="fontes-check-") as folder:
            plan = self._plan(indexes=Path(folder) / "indexes", forms=())
            return Check.of(locked, run(plan, Path(folder), progress).lock)

    def _plan(self, **others: Any) -> Plan:
        file, searching = self._file, self._systems.searching
        data = self._data()
        qrels = _qrels(file.sources)
        topics = _judged(file.sources, qrels) if file.sources.topics is not None else None
        settings: dict[str, Any] = {
            "forms": file.forms,
            "indexes": None if file.index.folder is None else file.path.parent / Path(file.index.folder).expanduser(),
            **others,
        }
        return Plan(
            title=str(file.path),
            systems=self._made,
            documents=_documents(file.sources, self.output) if searching and file.index.path is None else None,
            topics=topics,
            qrels=qrels,
            measures=file.measures,
            baseline=file.baseline,
            testing=file.testing,
            settings=_of_numbers(file.raw),
            data=data,
            **settings,
        )

    def _made(self, collection: Collection) -> Mapping[str, System]:
        """The systems over an index of the collection, or over the one that the file names."""
        table, index = self._file.index, None
        if self._systems.searching and table.path is not None:
            from ..index import Index

            index = Index.open(self._file.path.parent / Path(table.path).expanduser())
        elif self._systems.searching:
            index = collection.index(table.analyzer, table.fields, table.vectors)
        return self._systems.made(index)

    def _data(self) -> dict[str, dict[str, str]]:
        """The SHA-256 of each file, by what it is used for; of a collection by name that of its contents."""
        sources = self._file.sources
        used: dict[str, Path | str | None] = {
            "corpus": None if self._file.index.path else sources.corpus,
            "topics": sources.topics,
            "qrels": sources.qrels,
            **{f"run of {name}": path for name, path in self._file.runs.items()},
        }
        return {use: self._facts(source, use) for use, source in used.items() if source is not None}

    def _facts(self, source: Path | str, use: str) -> dict[str, str]:
        if isinstance(source, str):
            return {"file": source, "sha256": hash_of_dataset(_collection(source), use)}
        # A path as seen from the experiment's file, so that a lock says nothing of the machine.
        return {"file": os.path.relpath(source, self._file.path.parent), "sha256": hash_of(source, use)}


def _collection(name: str) -> Dataset:
    collection = named(name)
    assert collection is not None
    return collection


def _documents(sources: Sources, folder: Path) -> Collection:
    documents = _collection(sources.corpus) if isinstance(sources.corpus, str) else sources.corpus
    return Collection(documents, folder, format=sources.format)


def _qrels(sources: Sources) -> Qrels:
    return _collection(sources.qrels).qrels() if isinstance(sources.qrels, str) else Qrels.of(sources.qrels)


def _judged(sources: Sources, qrels: Qrels) -> Topics:
    """The topics that have judgments: a system need not run on others."""
    source = sources.topics
    topics = _collection(source).topics() if isinstance(source, str) else Topics.read(source)
    return topics.judged(qrels)


def _of_numbers(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The file without what changes no number: where results and indexes go, and in which forms."""
    places = {"index": "folder", "report": "forms"}
    tables = {table: values for table, values in raw.items() if table != "output"}
    shorter = {table: {k: v for k, v in values.items() if k != places.get(table)} for table, values in tables.items()}
    return {table: values for table, values in shorter.items() if values}

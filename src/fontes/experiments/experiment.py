"""`Experiment`: a comparison described in a file, run into a folder of results and checked against its lock."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import Report
from ..core import Qrels, Topics
from ..core.progress import Report as Listener, silent
from ..core.work import work
from ..datasets import Dataset, named
from ..formats.decoding import reading_as
from .collection import Collection
from .lock import Check, read_lock
from .problems import Problems, System
from .provenance import hash_of, hash_of_dataset
from .runner import LOCK, Plan, run

if TYPE_CHECKING:
    from ..index import Index
    from .file import Sources

RUN = "run of "  # and a system's name: the use of a file that is a run


class Experiment:
    """An experiment as a TOML file: a collection, an index, systems as expressions, and a report.

    `run` writes into the folder `output`: runs/NAME.run, report.md, .json and .html, and experiment.lock with the versions,
    seeds, hashes of the data, hardware and all numbers. `check` runs it again and reports every number that differs.

    Args:
        path: The file.
        output: The folder of results, in place of the file's.

    Raises:
        InputError: The file is invalid; the message names file, table and key.
    """

    def __init__(self, path: str | Path, output: str | Path | None = None) -> None:
        from .file import ExperimentFile, Expressions, problem_in

        self._file = ExperimentFile(path)
        self._systems = Expressions(self._file)
        self.output = self._file.output if output is None else Path(output)
        sources, problem = self._file.sources, ""
        if self._systems.searching and sources.topics is None:
            problem = "there is no key 'topics', and some systems search"
        elif self._systems.searching and sources.corpus is None and self._file.index.path is None:
            problem = "there is no key 'corpus' (or no corpus.jsonl), and [index] has no 'path': there is nothing to search"
        if problem:
            raise problem_in(self._file.path, "collection", problem)

    def run(self, progress: Listener = silent, ray: bool | str | None = None) -> Report:
        """Run, measure and compare all systems, and write the results to `output`, the lock last.

        A folder with a lock is complete. An interrupted run resumes.

        Args:
            progress: Called with the progress of each step.
            ray: A cluster that shares the topics: True for a local Ray, or an address.

        Raises:
            FontesError: A file, model or library is missing or unusable. All are checked before anything is built, and
                reported together.
        """
        with reading_as(self._file.reading), work(ray=ray):
            report = run(self._plan(Problems()), self.output, progress).report
        assert report is not None
        return report

    def check(self, progress: Listener = silent) -> Check:
        """Run the experiment again in a temporary folder, index included, and compare it with the lock in `output`.

        Raises:
            InputError: There is no lock, or `run` raises it.
        """
        problems = Problems()
        locked: dict[str, Any] = {}
        with problems.collected():
            locked = read_lock(self.output / LOCK)
        with reading_as(self._file.reading), tempfile.TemporaryDirectory(prefix="fontes-check-") as folder:
            plan = replace(self._plan(problems), indexes=Path(folder) / "indexes", forms=())
            return Check.of(locked, run(plan, Path(folder), progress).lock)

    def _plan(self, problems: Problems) -> Plan:
        """Plan of a run. Raises all problems at once, including those already known."""
        file, sources, title = self._file, self._file.sources, str(self._file.path)
        for system in self._systems.stages.values():
            problems.look_at(system)
        data = self._data(problems)
        documents, topics, qrels = None, None, None
        with problems.collected():
            qrels = _qrels(sources) if "qrels" in data else None
            topics = _judged(sources, qrels) if qrels is not None and "topics" in data else None
        with problems.collected():
            documents = _documents(sources, self.output) if self._systems.searching and "corpus" in data else None
        runs_here = all(f"{RUN}{name}" in data for name in file.runs)
        problems.look_at_systems(title, self._made if runs_here else self._searching)
        problems.raise_all(title)
        assert qrels is not None
        return Plan(
            title=title,
            systems=self._made,
            documents=documents,
            topics=topics,
            qrels=qrels,
            measures=file.measures,
            baseline=file.baseline,
            testing=file.testing,
            settings=_of_numbers(file.raw),
            data=data,
            indexes=None if file.index.folder is None else file.path.parent / Path(file.index.folder).expanduser(),
            forms=file.forms,
        )

    def _made(self, collection: Collection) -> Mapping[str, System]:
        return self._systems.made(self._index(collection))

    def _searching(self, collection: Collection) -> Mapping[str, System]:
        self._index(collection)
        return self._systems.stages

    def _index(self, collection: Collection) -> Index | None:
        from ..index import Index

        if not self._systems.searching:
            return None
        table = self._file.index
        if table.path is not None:
            return Index.open(self._file.path.parent / Path(table.path).expanduser())
        return collection.index(table.analyzer, table.fields, table.vectors)

    def _data(self, problems: Problems) -> dict[str, dict[str, str]]:
        """SHA-256 of each readable file by its use; of a named collection, that of its contents."""
        sources = self._file.sources
        used: dict[str, Path | str | None] = {
            "corpus": None if self._file.index.path else sources.corpus,
            "topics": sources.topics,
            "qrels": sources.qrels,
            **{f"{RUN}{name}": path for name, path in self._file.runs.items()},
        }
        facts = {}
        for use, source in used.items():
            with problems.collected():
                if source is not None:
                    facts[use] = self._facts(source, use)
        return facts

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
    source = sources.topics
    topics = _collection(source).topics() if isinstance(source, str) else Topics.read(source)
    return topics.judged(qrels)


def _of_numbers(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The file without keys that affect no number: folders and report formats."""
    places = {"index": "folder", "report": "forms"}
    tables = {table: values for table, values in raw.items() if table != "output"}
    shorter = {table: {k: v for k, v in values.items() if k != places.get(table)} for table, values in tables.items()}
    return {table: values for table, values in shorter.items() if values}

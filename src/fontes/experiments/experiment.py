"""`Experiment`: a file that says what is compared on which data, run into a folder that says what came out, and checked."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison.report import Report
from ..core import InputError, Qrels, Topics
from ..datasets import dataset
from ..formats import read_corpus, read_qrels, read_topics, write_run
from ..storage.hashes import hash_json
from .compare import compare
from .indexes import Tell, built_once
from .lock import (
    Difference,
    differences,
    numbers,
    of_data,
    of_machine,
    of_report,
    of_stages,
    of_versions,
    read_lock,
    write_lock,
)
from .settings import FORMS, IRDS, Settings, read_settings
from .stages import Systems, models_of

if TYPE_CHECKING:
    from ..index import Index

LOCK = "experiment.lock"


@dataclass(frozen=True)
class Check:
    """What `Experiment.check` found.

    differences  data, settings, runs and numbers that are not as in the lock; none where the experiment was reproduced
    notes        libraries and hardware that are not as in the lock, which alone is no difference
    numbers      how many numbers were compared
    """

    differences: tuple[Difference, ...]
    notes: tuple[Difference, ...]
    numbers: int

    def __bool__(self) -> bool:
        """Whether the experiment was reproduced."""
        return not self.differences


class Experiment:
    """An experiment as a file of TOML: a collection, an index, systems by name and parameters, and a report.

    `run` writes into the folder `output`: runs/NAME.run, report.md, .json and .html, and experiment.lock with the versions,
    seeds, hashes of the data, hardware and all numbers. `check` runs it again elsewhere and says which number differs.
    """

    def __init__(self, path: str | Path, output: str | Path | None = None) -> None:
        """Reads and checks the file at `path`; `output` replaces the folder that it names.

        Raises InputError that names file, table and key.
        """
        self.settings: Settings = read_settings(path)
        self.output = self.settings.output if output is None else Path(output)
        self._systems = Systems(self.settings.systems)
        self._check_sources()

    def run(self, tell: Tell | None = None) -> Report:
        """Runs all systems, measures and compares them, and writes what `output` holds; the lock is the last file.

        A lock that is there goes before the first file is written: a folder with a lock is complete. What was found before a
        run was interrupted is found again. `tell` is called with a line about each step. Raises InputError and ParameterError
        for what cannot be used.
        """
        say = tell or (lambda line: None)
        data = self._data(say)
        with self._kept_runs() as cache:
            report, made, index = self._made(self.settings.index.folder or self.output / "indexes", data, cache, say)
        lock = self._lock(report, made, index, data)
        self._write(report, made, lock)
        say(f"{self.output}: {', '.join(self.written)}")
        return report

    def check(self, tell: Tell | None = None) -> Check:
        """Runs the experiment again in a temporary folder, index included, and compares it with the lock in `output`.

        Raises InputError where there is no lock, and as `run` does.
        """
        say = tell or (lambda line: None)
        locked = read_lock(self.output / LOCK)
        data = self._data(say)
        with tempfile.TemporaryDirectory(prefix="fontes-check-") as folder:
            report, made, index = self._made(Path(folder), data, False, say)
            found = self._lock(report, made, index, data)
        order = ("data", "index", "settings", "systems", "tests", "topics")
        names = {"data": "data", "index": "index", "settings": "file", "systems": "system", "tests": "test", "topics": "topics"}
        different = [d for key in order for d in differences(locked.get(key, {}), found[key], names[key])]
        versions = locked.get("versions", {})  # other libraries may be loaded now that the experiment does not use
        notes = [
            *differences(versions, {name: found["versions"].get(name) for name in versions}, "versions"),
            *differences(locked.get("hardware", {}), found["hardware"], "hardware"),
        ]
        return Check(tuple(different), tuple(notes), sum(numbers(found[key]) for key in ("systems", "tests", "topics")))

    @property
    def written(self) -> list[str]:
        """The files that `run` writes, as paths in `output`."""
        runs = [f"runs/{name}.run" for name in self.settings.systems]
        return [*runs, *(f"report.{form}" for form in self.settings.forms), LOCK]

    def _check_sources(self) -> None:
        collection = self.settings.collection
        problem = None
        if self._systems.searching and collection.topics is None:
            problem = "there is no key 'topics', and some systems search"
        elif self._systems.searching and collection.corpus is None and self.settings.index.path is None:
            problem = "there is no key 'corpus', and [index] has no 'path': there is nothing to search"
        if problem:
            raise InputError(f"{self.settings.file}, [collection]: {problem}")

    def _data(self, say: Tell) -> dict[str, dict[str, str]]:
        data = of_data(self.settings, self._systems.runs)
        say(f"data: {', '.join(facts['file'] for facts in data.values())}")
        return data

    def _made(
        self, folder: Path, data: dict[str, dict[str, str]], cache: bool | Path, say: Tell
    ) -> tuple[Report, dict[str, bytes], dict[str, Any]]:
        """The report, the bytes of each run, and what there is to say about the index."""
        index = self._index(folder, data, say) if self._systems.searching else None
        collection = self.settings.collection
        systems = self._systems.made(index)
        report = compare(
            systems,
            None if collection.topics is None else _topics(collection.topics),
            _qrels(collection.qrels),
            self.settings.measures,
            cache=cache,
            **self.settings.comparing,
        )
        for name, system in report.systems.items():
            seconds = "" if system.seconds is None else f", {system.seconds:.4f} s a topic"
            say(f"{name}: {system.run.rows:,} documents for {len(system.run):,} topics{seconds}")
        facts = index.info() if index is not None else {}
        about: dict[str, Any] = {key: facts[key] for key in ("fingerprint", "documents", "terms", "tokens") if key in facts}
        about["models"] = {name: models for name, system in systems.items() if (models := models_of(system))}
        return report, _runs_of(report), about

    def _index(self, folder: Path, data: dict[str, dict[str, str]], say: Tell) -> Index:
        """The index of the file, or the one in `folder` of these documents by this analyzer, which is built where it is not."""
        from ..index import Index

        asked = self.settings.index
        if asked.path is not None:
            return Index.open(asked.path)
        form = self.settings.collection.format
        source = self.settings.collection.corpus
        assert source is not None
        documents = read_corpus(source, form) if isinstance(source, Path) else dataset(source.removeprefix(IRDS)).corpus
        return built_once(folder, documents, [data["corpus"]["sha256"], form], asked.analyzer, asked.fields, asked.vectors, say)

    @contextlib.contextmanager
    def _kept_runs(self) -> Any:
        """A folder for runs until the experiment is complete; those of other versions of libraries are not taken up."""
        folder = self.output / f".unfinished-{hash_json([of_versions(), of_machine()])[:16]}"
        yield folder
        shutil.rmtree(folder, ignore_errors=True)

    def _lock(
        self, report: Report, made: dict[str, bytes], index: dict[str, Any], data: dict[str, dict[str, str]]
    ) -> dict[str, Any]:
        method = report.testing
        return {
            "settings": _of_numbers(self.settings.raw),
            "data": data,
            "index": index,
            "stages": of_stages(report),
            "seed": method.seed,
            "versions": of_versions(),
            "hardware": of_machine(),
            **of_report(report, made),
        }

    def _write(self, report: Report, made: dict[str, bytes], lock: dict[str, Any]) -> None:
        from ..storage.files import write

        runs = self.output / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        old = self.output / LOCK
        left = {f"{name}.run" for name in _systems_of(old)} - {f"{name}.run" for name in made}
        old.unlink(missing_ok=True)
        for path in [*(runs / name for name in left), *(self.output / f"report.{form}" for form in FORMS)]:
            path.unlink(missing_ok=True)
        for name, run in made.items():
            write(runs / f"{name}.run", [run])
        for form in self.settings.forms:
            report.save(self.output / f"report.{form}")
        write_lock(old, lock)


def _of_numbers(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The file without what changes no number: where results and indexes go, and in which forms."""
    places = {"index": "folder", "report": "forms"}
    tables = {table: values for table, values in raw.items() if table != "output"}
    kept = {table: {k: v for k, v in values.items() if k != places.get(table)} for table, values in tables.items()}
    return {table: values for table, values in kept.items() if values}


def _systems_of(lock: Path) -> list[str]:
    """The systems of a lock; none where it cannot be read."""
    try:
        return list(read_lock(lock)["systems"])
    except (InputError, KeyError, TypeError):
        return []


def _runs_of(report: Report) -> dict[str, bytes]:
    """Each run as the bytes of its file."""
    with tempfile.TemporaryDirectory(prefix="fontes-runs-") as folder:
        made = {}
        for name, system in report.systems.items():
            path = Path(folder) / "run"
            write_run(system.run, path, tag=name)
            made[name] = path.read_bytes()
    return made


def _topics(source: Path | str) -> Topics:
    return read_topics(source) if isinstance(source, Path) else dataset(source.removeprefix(IRDS)).topics()


def _qrels(source: Path | str) -> Qrels:
    return read_qrels(source) if isinstance(source, Path) else dataset(source.removeprefix(IRDS)).qrels()

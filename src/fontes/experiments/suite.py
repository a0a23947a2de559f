"""`Suite`: the same systems on several collections, as a TOML file describes them, in one report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..comparison import Published, SuiteReport
from ..core import FontesError, InputError
from ..core.hints import nearest
from ..core.work import ProgressCallback, reported_as, work
from ..formats.folder import CORPUS, QUERIES, present, qrels_files
from ..measures import parse
from ..storage.files import write
from .experiment import (
    NAME,
    CollectionTable,
    Experiment,
    ExperimentFile,
    ReportTable,
    RunTable,
    Text,
    TomlTable,
    beside,
    problem_in,
    read_toml,
    wrong_value,
)
from .provenance import Check
from .runner import exclusive

TEST = "test"  # the split of a collection with several
REPORT = "suite"  # stem of the files of the report


class SuiteCollection(CollectionTable):
    """A collection of a suite, and the settings of its index that differ from those of the suite."""

    index: dict[str, object] = Field(default={})


class PublishedTable(TomlTable):
    """Published figures of another system."""

    measure: str = Field(min_length=1)
    source: str = ""
    values: dict[str, float] = Field(min_length=1)


class SuiteTable(TomlTable):
    """The whole file: collections, and the tables of an experiment that all of them share."""

    output: str | None = Text
    measurements: bool = False
    folder: str | None = Text
    skip: list[str] = Field(default=[])
    collections: dict[str, str | SuiteCollection] = Field(default={})
    index: dict[str, object] = Field(default={})
    systems: dict[str, str | RunTable] = Field(default={})
    report: ReportTable = ReportTable()
    published: dict[str, PublishedTable] = Field(default={})


class Suite:
    """Experiments of the same systems on several collections, as a TOML file, and one report over all.

    `run` writes the results of each `Experiment` into a folder in `output`, named after the collection, and suite.md, .json
    and .html beside these folders.

    Args:
        path: The file.
        output: The folder of results, in place of the file's.

    Raises:
        InputError: The file is invalid; the message names file, table and key.
    """

    def __init__(self, path: str | Path, output: str | Path | None = None) -> None:
        self.path = Path(path)
        raw = read_toml(self.path)
        try:
            table = SuiteTable.model_validate(raw)
        except ValidationError as error:
            raise wrong_value(self.path, raw, error, SuiteTable) from None
        folder = output if output is not None else table.output and beside(self.path, table.output)
        self.output = Path(folder or self.path.with_name(f"{self.path.stem}.results"))
        collections = self._collections(table)
        self.forms = tuple(table.report.forms)
        shared: dict[str, object] = {name: raw[name] for name in ("measurements", "systems", "report") if name in raw}
        self.experiments: dict[str, Experiment] = {}
        """The experiment of each collection, by its name."""
        for name, collection in collections.items():
            tables: dict[str, object] = {**shared, "collection": collection}
            if index := {**table.index, **collection.pop("index", {})}:
                tables["index"] = index
            file = ExperimentFile(self.path, tables, f"collections.{name}")
            self.experiments[name] = Experiment(file, self.output / name)
        self.published = tuple(self._published(name, figures) for name, figures in table.published.items())

    def run(self, progress: ProgressCallback | None = None, ray: bool | str | None = None) -> SuiteReport:
        """Run the experiments one after the other, and write the report over all.

        An interrupted run resumes; after systems or collections were added, finished runs and indexes are reused.

        Args:
            progress: Called with the progress of each step; its task begins with the name of the collection.
            ray: A cluster that shares the topics: True for a local Ray, or an address.

        Raises:
            InputError: A file, model or library is missing or unusable; the message names the collection. All collections
                are checked before the first is run.
        """
        needs: dict[str, FontesError | None] = {}
        for name, experiment in self.experiments.items():
            with _errors_of(name):
                experiment.preflight(needs)
        reports = {}
        with work(ray=ray, progress=progress):
            for name, experiment in self.experiments.items():
                with _errors_of(name), _reported_by(name):
                    reports[name] = experiment.run()
        report = SuiteReport(reports, self.published)
        with exclusive(self.output):
            pages = {name: f"{name}/report.html" for name in self.experiments}
            for form in self.forms:
                if form == "html":
                    write(self.output / f"{REPORT}.html", [report.to_html(pages).encode()])
                else:
                    report.save(self.output / f"{REPORT}.{form}")
        return report

    def check(self, progress: ProgressCallback | None = None) -> dict[str, Check]:
        """Run each experiment again and compare it with its lock, as `Experiment.check`.

        Returns:
            The result of each collection.

        Raises:
            InputError: A collection has no lock, or `run` raises it.
        """
        checks = {}
        with work(progress=progress):
            for name, experiment in self.experiments.items():
                with _errors_of(name), _reported_by(name):
                    checks[name] = experiment.check()
        return checks

    def _collections(self, table: SuiteTable) -> dict[str, dict[str, Any]]:
        """Return the tables of the collections by name: those of the folder, then those of the file."""
        by_name: dict[str, dict[str, Any]] = {}
        if table.folder is not None:
            folder = beside(self.path, table.folder)
            if not folder.is_dir():
                raise problem_in(self.path, "", f"folder: there is no folder {folder}")
            for path in sorted(folder.iterdir()):
                if present(path, CORPUS) and present(path, QUERIES) and qrels_files(path):
                    by_name[path.name] = {"dataset": f"{table.folder}/{path.name}"}
            for name in table.skip:
                if by_name.pop(name, None) is None:
                    raise problem_in(self.path, "", f"skip: {folder} has no collection '{name}'; {nearest(name, by_name)}")
            if not by_name:
                raise problem_in(self.path, "", f"folder: {folder} has no folders in BEIR's form")
        for name, collection in table.collections.items():
            if not NAME.fullmatch(name):
                problem = f"the name '{name}' must be of letters, digits, '_', '.', '+' and '-': a folder is called by it"
                raise problem_in(self.path, "collections", problem)
            entry = {"dataset": collection} if isinstance(collection, str) else collection.model_dump(exclude_defaults=True)
            if by_name.keys() & {name} and not entry.keys() & {"dataset", "corpus", "topics", "qrels"}:
                entry = {**by_name[name], **entry}
            by_name[name] = entry
        if not by_name:
            problem = 'there is no collection; NAME = "FOLDER" in the table [collections] is one'
            raise problem_in(self.path, "", problem)
        return {name: self._with_split(collection) for name, collection in by_name.items()}

    def _with_split(self, collection: dict[str, Any]) -> dict[str, Any]:
        """Choose the test split of a dataset with several splits, if the table names none."""
        dataset = collection.get("dataset")
        if dataset is None or "split" in collection:
            return collection
        splits = qrels_files(beside(self.path, dataset))
        return {**collection, "split": TEST} if len(splits) > 1 and TEST in splits else collection

    def _published(self, name: str, table: PublishedTable) -> Published:
        table_name = f"published.{name}"
        for collection in table.values:
            if collection not in self.experiments:
                problem = f"values: there is no collection '{collection}'; {nearest(collection, list(self.experiments))}"
                raise problem_in(self.path, table_name, problem)
        try:
            return Published(name, parse(table.measure), table.values, table.source)
        except FontesError as error:
            raise problem_in(self.path, table_name, f"measure: {error}") from None


@contextmanager
def _errors_of(collection: str) -> Iterator[None]:
    """Add the name of the collection to a Fontes error raised in the block."""
    try:
        yield
    except FontesError as error:
        raise InputError.of_lines(f"{collection}: {line}" for line in str(error).splitlines()) from None


def _reported_by(collection: str) -> AbstractContextManager[None]:
    """Return a block whose reports have the name of the collection before the task."""
    return reported_as(lambda step: replace(step, task=f"{collection}, {step.task}"))

"""`Experiment`: a comparison that a TOML file describes, run into a folder of results and checked against its lock."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..comparison import Report
from ..comparison.report import both_labels
from ..comparison.testing import CORRECTIONS, TESTS, Testing
from ..core import FontesError, InputError, ParameterError, PipelineError, Qrels, Run, Stage, Topics
from ..core.expression import part
from ..core.hints import nearest
from ..core.part import Part
from ..core.work import ProgressCallback, work
from ..datasets import Dataset, named
from ..datasets.names import PREFIXES
from ..formats.decoding import ERRORS, ReadingOptions, reading_as
from ..formats.folder import CORPUS, QUERIES, beir_file, is_beir, present, qrels_files, split_of
from ..measures import DEFAULT, parse
from ..plots.tables import SUFFIXES
from ..storage.files import reading
from .collection import Collection
from .metadata import tracker
from .problems import Problems, System, planned_index
from .provenance import Check, hash_of, hash_of_dataset, read_lock
from .runner import FORMS, LOCK, RunPlan, run

if TYPE_CHECKING:
    from ..index import Index


MODEL_PARAMETERS = ("name_or_path", "model")  # with the folder or name of a model
LOCAL = "local:"  # prefix of the folder of a language model
PLACEHOLDER_RUN = Run.of({"1": {"1": 1.0}})  # for checking expressions
MAX_KEY_PARTS = 100  # of a dotted key; parsing time is quadratic
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
EXPECTED = {  # what a value must be, by pydantic's type of the error
    "string_type": "a string",
    "string_too_short": "a string",
    "list_type": "a list of strings",
    "too_short": "a list of strings",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
}


class TomlTable(BaseModel):
    """A table of the file; unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Text = Field(default=None, min_length=1)


class CollectionTable(TomlTable):
    """Documents, topics and judgments: paths, or names of collections (irds:NAME, sample:NAME)."""

    dataset: str | None = Text
    split: str | None = Text
    corpus: str | None = Text
    topics: str | None = Text
    qrels: str | None = Text
    machine: str | None = Text
    format: str | None = Text
    encoding: str | None = Text
    errors: str = Field(default=ERRORS[0], min_length=1)


class IndexTable(TomlTable):
    """Settings of the index to build, or the `path` of an existing index."""

    path: str | None = Text
    folder: str | None = Text
    analyzer: str = Field(default="english", min_length=1)
    fields: list[str] = Field(default=["title", "text"], min_length=1)
    vectors: str | None = Text
    separate: bool = False
    positions: bool = False


class RunTable(TomlTable):
    """A system that is the file of a run."""

    run: str = Field(min_length=1)


class ReportTable(TomlTable):
    """Measures, tests and formats of the report."""

    measures: list[str] = Field(default=list(DEFAULT), min_length=1)
    forms: list[str] = Field(default=list(FORMS), min_length=1)
    baseline: str | None = Text
    test: str | None = Text
    correction: str | None = Text
    alpha: float | None = None
    seed: int | None = None
    allow_empty: bool = False


class FileTable(TomlTable):
    """The whole file. A system is an expression, or the table of a run."""

    output: str | None = Text
    measurements: bool = False
    collection: CollectionTable = CollectionTable()
    index: IndexTable = IndexTable()
    systems: dict[str, str | RunTable] = {}
    report: ReportTable = ReportTable()


@dataclass(frozen=True)
class Sources:
    """Paths of documents, topics and judgments, or names of collections (irds:NAME, sample:NAME)."""

    corpus: Path | str | None
    topics: Path | str | None
    qrels: Path | str
    format: str | None = None
    machine: Path | str | None = None


def beside(file: Path, name: str) -> Path:
    """Return the path of a name in a file: relative to the folder of the file, with `~` expanded."""
    return file.parent / Path(name).expanduser()


def problem_in(path: Path, table: str, problem: str) -> InputError:
    """Return the error for a problem in a table of a file; "" is the top of the file."""
    return InputError(f"{path}{f', [{table}]' if table else ''}: {problem}")


class ExperimentFile:
    """A validated experiment file; `Expressions` checks its expressions.

    Args:
        path: The file.
        tables: The tables to use in place of those of the file.
        collection: Name of the table of the collection in messages.

    Raises:
        InputError: The file is invalid; the message names file, table and key.
    """

    def __init__(self, path: str | Path, tables: Mapping[str, Any] | None = None, collection: str = "collection") -> None:
        self.path = Path(path)
        self.raw = read_toml(self.path) if tables is None else tables
        self._collection = collection
        try:
            self._table = FileTable.model_validate(self.raw)
        except ValidationError as error:
            raise wrong_value(self.path, self.raw, error) from None
        systems = self._systems()
        self.sources = self._sources(self._table.collection)
        with self._errors_in("collection"):
            self.reading = ReadingOptions(self._table.collection.encoding, self._table.collection.errors)
        self.index = self._index_table()
        self.output = self._path(self._table.output) or self.path.with_name(f"{self.path.stem}.results")
        self.expressions = {name: system for name, system in systems.items() if isinstance(system, str)}
        self.runs = {name: beside(self.path, system.run) for name, system in systems.items() if isinstance(system, RunTable)}
        with self._errors_in("report", "measures: "):
            self.measures = tuple(map(parse, self._table.report.measures))
        self.forms = tuple(self._table.report.forms)
        self.baseline = self._table.report.baseline
        self.measurements = self._table.measurements
        self.testing = self._testing()

    def error_in(self, table: str, problem: str) -> InputError:
        """Return the error for a problem in a table; "" is the top of the file."""
        return problem_in(self.path, self._collection if table == "collection" else table, problem)

    @contextlib.contextmanager
    def _errors_in(self, table: str, key: str = "") -> Iterator[None]:
        """Add the file and the table to a Fontes error raised in the block."""
        try:
            yield
        except FontesError as error:
            raise self.error_in(table, f"{key}{error}") from None

    def _path(self, name: str | None) -> Path | None:
        return None if name is None else beside(self.path, name)

    def _path_or_name(self, name: str | None) -> Path | str | None:
        """Return the path of a file or folder, or the name of a collection."""
        return name if name is not None and name.startswith(tuple(PREFIXES)) else self._path(name)

    def _systems(self) -> dict[str, str | RunTable]:
        if not self._table.systems:
            raise self.error_in("", 'there is no system; NAME = "bm25()" in the table [systems] is one')
        for name in self._table.systems:
            if not NAME.fullmatch(name):
                problem = f"the name '{name}' must be of letters, digits, '_', '.', '+' and '-': a file is called by it"
                raise self.error_in("systems", problem)
        return self._table.systems

    def _sources(self, table: CollectionTable) -> Sources:
        names = {part: getattr(table, part) for part in ("corpus", "topics", "qrels")}
        if table.dataset is not None:
            for key in (*names, "format"):
                if getattr(table, key) is not None:
                    problem = f"'{key}' is part of the dataset; leave it out, or name all files instead of a dataset"
                    raise self.error_in("collection", problem)
            names = dict.fromkeys(names, table.dataset)
            folder = self._path_or_name(table.dataset)
            if isinstance(folder, Path) and not qrels_files(folder):
                raise self.error_in("collection", f"{folder} is no folder in BEIR's form: it has no qrels/*.tsv")
        elif table.split is not None and not any(self._has_splits(names[part]) for part in ("topics", "qrels")):
            problem = "'split' belongs to a folder in BEIR's form or a collection by name, not to a file"
            raise self.error_in("collection", problem)
        qrels = self._source("qrels", names["qrels"], table.split)
        if qrels is None:
            raise self.error_in("collection", "there is no key 'qrels' and no key 'dataset': name the judgments")
        corpus, topics = (self._source(part, names[part], table.split) for part in ("corpus", "topics"))
        return Sources(corpus, topics, qrels, table.format, self._source("machine", table.machine, table.split))

    def _has_splits(self, name: str | None) -> bool:
        source = self._path_or_name(name)
        return isinstance(source, str) or (source is not None and source.is_dir())

    def _source(self, part: str, name: str | None, split: str | None) -> Path | str | None:
        """Return the file of a part ("corpus", "topics", …) of the collection, or a name with its split."""
        source = self._path_or_name(name)
        if isinstance(source, str):
            return source if part == "corpus" or split is None else f"{source}/{split}"
        if source is None or not source.is_dir() or not is_beir(source):
            return source
        with self._errors_in("collection"):
            if part == "corpus":
                return present(source, CORPUS)
            files = qrels_files(source)
            return beir_file(source, QUERIES) if part == "topics" else files[split_of(source, files, split)]

    def _index_table(self) -> IndexTable:
        values = self.raw.get("index", {})
        if "path" not in values:
            return self._table.index
        for key in IndexTable.model_fields.keys() - {"path"}:
            if key in values:
                problem = f"'path' is an existing index, so '{key}' has no effect; leave one of them out"
                raise self.error_in("index", problem)
        if self.sources.corpus is not None and self._table.collection.dataset is None:
            raise self.error_in("index", "'path' is an existing index; leave it out, or 'corpus'")
        return self._table.index

    def _testing(self) -> Testing:
        report, forms = self._table.report, [suffix[1:] for suffix in SUFFIXES]
        for form in report.forms:
            if form not in forms:
                raise self.error_in("report", f"forms: there is no form '{form}'; {nearest(form, forms)}")
        for key, names in (("test", TESTS), ("correction", CORRECTIONS), ("baseline", self._table.systems)):
            name = getattr(report, key)
            if name is not None and name not in names:
                raise self.error_in("report", f"{key}: there is no '{name}'; {nearest(name, names)}")
        values = {key: getattr(report, key) for key in ("test", "correction", "alpha", "seed", "allow_empty")}
        with self._errors_in("report"):
            return Testing(**{key: value for key, value in values.items() if value is not None})


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file; InputError names the file."""
    with reading(path) as source:
        text = source.text()
    if any(part.count(".") > MAX_KEY_PARTS for line in text.splitlines() for part in line.split("=")):
        raise InputError(f"{path}: not TOML that is read here: a key of more than {MAX_KEY_PARTS} parts")
    try:
        raw = tomllib.loads(text)
        json.dumps(raw, default=str)  # fails for values that a message could not show
        return raw
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except ValueError:  # beyond Python's limit of digits
        raise InputError(f"{path}: not TOML: a number of thousands of digits") from None
    except RecursionError:
        raise InputError(f"{path}: not TOML: nested too deeply") from None


def wrong_value(path: Path, raw: Mapping[str, Any], error: ValidationError, model: type[TomlTable] = FileTable) -> InputError:
    """Return the error for the first problem of a file, with table and key.

    Args:
        path: The file.
        raw: Its values.
        error: All problems; unknown keys come first.
        model: The class that validates the whole file.
    """
    first = next((problem for problem in error.errors() if problem["type"] == "extra_forbidden"), error.errors()[0])
    *tables, key = [part for part in first["loc"] if isinstance(part, str) and part not in ("str", "RunTable")]
    if tables[:1] == ["systems"]:
        name = [*tables, key][1]
        kinds = 'an expression, "bm25()", or a run, { run = "FILE" }'
        return problem_in(path, "systems", f"{name}: a system is {kinds}, not {raw['systems'][name]!r}")
    table = ".".join(tables)
    location = f"{path}{f', [{table}]' if table else ''}"
    if first["type"] == "extra_forbidden":
        owner = model.model_fields[tables[0]].annotation if tables else model
        owner = get_args(owner)[-1] if get_args(owner) else owner  # of a table of tables
        keys = [field.alias or name for name, field in getattr(owner, "model_fields", {}).items()]
        noun = "key" if tables else "table or key"
        return InputError(f"{location}: there is no {noun} '{key}'; {nearest(key, keys)}")
    value: object = raw
    for name in (*tables, key):
        value = value.get(name) if isinstance(value, Mapping) else value
    if first["type"] == "missing":
        return InputError(f"{location}: there is no key '{key}', which is needed")
    expected = EXPECTED.get(first["type"])
    if expected is None:
        return InputError(f"{location}: '{key}': {first['msg']}")
    return InputError(f"{location}: '{key}' must be {expected}{f', [{key}]' if expected == 'a table' else ''}, not {value!r}")


class Expressions:
    """Systems of a file as stages and runs.

    Raises:
        InputError: An expression is invalid or names something unknown; the message names file, table and key.
    """

    def __init__(self, file: ExperimentFile) -> None:
        self._file = file
        self._names = list(file.raw["systems"])
        systems: dict[str, object] = dict.fromkeys(file.runs, PLACEHOLDER_RUN)
        problems, index = Problems(), planned_index()
        for name in file.expressions:
            with problems.collected():
                self._resolve(name, index, systems, ())
        problems.raise_all(str(file.path))
        self.stages = {name: system for name, system in systems.items() if isinstance(system, Stage)}
        """The systems that search, over a planned index, for checks."""
        self.searching = bool(self.stages)
        """Whether any system searches; the others are existing runs."""

    def made(self, index: Index | None) -> dict[str, Stage[Topics, Run] | Run | Path]:
        """Return all systems in file order: stages over the index, runs, and paths of runs."""
        uses_runs = any(set(_names_in(text)) & set(self._file.runs) for text in self._file.expressions.values())
        runs = {name: Run.of(path) for name, path in self._file.runs.items()} if uses_runs else self._file.runs
        systems: dict[str, Any] = dict(runs)
        for name in self._file.expressions:
            self._resolve(name, index, systems, ())
        return {name: self._file.runs.get(name, systems[name]) for name in self._names}

    def _resolve(self, name: str, index: Index | None, systems: dict[str, object], parents: tuple[str, ...]) -> None:
        """Add a system to `systems`, after the systems that its expression names; `parents` are those that name it."""
        if name in parents:
            raise self._error(name, f"the system is part of itself: {' > '.join([*parents[parents.index(name) :], name])}")
        if name in systems:
            return
        text = self._file.expressions[name]
        for other in _names_in(text):
            if other in self._file.expressions:
                self._resolve(other, index, systems, (*parents, name))
        try:
            system = part(text, index, systems=systems, folder=self._file.path.parent)
            if not isinstance(system, (Stage, Run)):
                raise ParameterError(f"'{text}' is no stage and no run")
            if isinstance(system, Stage) and (system.takes is not Topics or system.gives is not Run):
                types = f"{system.takes.__name__} to {system.gives.__name__}"
                raise PipelineError(f"it goes from {types}; a system goes from topics to a run")
        except FontesError as error:
            raise self._error(name, str(error)) from None
        systems[name] = system.map(self._with_local_model) if isinstance(system, Stage) else system

    def _with_local_model(self, inner: Part) -> Part:
        """Resolve the path of a model that is a folder beside the file."""
        for name in MODEL_PARAMETERS:
            if isinstance(model := inner.params().get(name), str):
                prefix = LOCAL if model.startswith(LOCAL) else ""
                folder = beside(self._file.path, model.removeprefix(prefix))
                return inner.with_(**{name: f"{prefix}{folder}"}) if folder.is_dir() else inner
        return inner

    def _error(self, name: str, problem: str) -> FontesError:
        return problem_in(self._file.path, "systems", f"{name}: {problem}")


def _names_in(text: str) -> list[str]:
    """Return the names in an expression that are not called; none if it does not parse."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]


RUN_OF = "run of "  # followed by the name of a system: the use of the file of a run


class Experiment:
    """An experiment as a TOML file: a collection, an index, systems as expressions, and a report.

    `run` writes into the folder `output`: runs/NAME.run, report.md, .json and .html, and experiment.lock with the versions,
    seeds, hashes of the data, hardware and all numbers. `check` runs it again and reports every number that differs.

    Args:
        path: The file, or its validated content.
        output: The folder of results, in place of the file's.

    Raises:
        InputError: The file is invalid; the message names file, table and key.
    """

    def __init__(self, path: str | Path | ExperimentFile, output: str | Path | None = None) -> None:
        self._file = path if isinstance(path, ExperimentFile) else ExperimentFile(path)
        self._expressions = Expressions(self._file)
        self.output = self._file.output if output is None else Path(output)
        sources, problem = self._file.sources, ""
        if self._expressions.searching and sources.topics is None:
            problem = "there is no key 'topics', and some systems search"
        elif self._expressions.searching and sources.corpus is None and self._file.index.path is None:
            problem = "there is no key 'corpus' (or no corpus.jsonl), and [index] has no 'path': there is nothing to search"
        if problem:
            raise self._file.error_in("collection", problem)

    def run(self, progress: ProgressCallback | None = None, ray: bool | str | None = None) -> Report:
        """Run, measure and compare all systems, and write the results to `output`, the lock last.

        A folder with a lock is complete. An interrupted run resumes.

        Args:
            progress: Called with the progress of each step.
            ray: A cluster that shares the topics: True for a local Ray, or an address.

        Raises:
            FontesError: A file, model or library is missing or unusable. All are checked before anything is built, and
                reported together.
        """
        with reading_as(self._file.reading), work(ray=ray, progress=progress):
            report = run(self._plan(Problems()), self.output).report
        assert report is not None
        return report

    def preflight(self, needs: dict[str, FontesError | None] | None = None) -> None:
        """Check inputs, models and libraries as `run` does, without running anything.

        Args:
            needs: Results for the parts that other experiments have checked; those of this one are added.

        Raises:
            FontesError: As `run`.
        """
        with reading_as(self._file.reading):
            self._plan(Problems(needs))

    def check(self, progress: ProgressCallback | None = None) -> Check:
        """Run the experiment again in a temporary folder, index included, and compare it with the lock in `output`.

        Language models are not called: their stored answers are replayed.

        Raises:
            InputError: There is no lock, or `run` raises it.
        """
        problems = Problems()
        locked: dict[str, Any] = {}
        with problems.collected():
            locked = read_lock(self.output / LOCK)
        temporary = tempfile.TemporaryDirectory(prefix="fontes-check-")
        with reading_as(self._file.reading), work(replay=True, progress=progress), temporary as folder:
            plan = replace(self._plan(problems), indexes=Path(folder) / "indexes", forms=())
            return Check.of(locked, run(plan, Path(folder)).lock)

    def _plan(self, problems: Problems) -> RunPlan:
        """Return the plan of a run; all problems, including those collected before, are raised at once."""
        file, sources, title = self._file, self._file.sources, str(self._file.path)
        for system in self._expressions.stages.values():
            problems.check_part(system)
        with problems.collected():
            if file.measurements:
                tracker()
        data = self._data_facts(problems)
        documents, topics, qrels, machine = None, None, None, None
        with problems.collected():
            if "qrels" in data:
                qrels = Qrels.of(sources.qrels, groups=any(measure.grouped for measure in file.measures))
            if qrels is not None and sources.machine is not None and "machine" in data:
                machine = both_labels(qrels, Qrels.of(sources.machine), file.measures, file.testing).machine
            topics = Topics.read(sources.topics).judged(machine or qrels) if qrels is not None and "topics" in data else None
        with problems.collected():
            if self._expressions.searching and "corpus" in data:
                corpus = _dataset(sources.corpus) if isinstance(sources.corpus, str) else sources.corpus
                documents = Collection(corpus, self.output, format=sources.format)
        has_runs = all(f"{RUN_OF}{name}" in data for name in file.runs)
        problems.check_systems(title, self._make_systems if has_runs else self._make_stages)
        problems.raise_all(title)
        assert qrels is not None
        return RunPlan(
            title=title,
            systems=self._make_systems,
            documents=documents,
            topics=topics,
            qrels=qrels,
            measures=file.measures,
            baseline=file.baseline,
            machine=machine,
            testing=file.testing,
            settings=_settings_of(file.raw),
            data=data,
            indexes=None if file.index.folder is None else beside(file.path, file.index.folder),
            forms=file.forms,
            measurements=file.measurements,
        )

    def _make_systems(self, collection: Collection) -> Mapping[str, System]:
        return self._expressions.made(self._index(collection))

    def _make_stages(self, collection: Collection) -> Mapping[str, System]:
        self._index(collection)
        return self._expressions.stages

    def _index(self, collection: Collection) -> Index | None:
        from ..index import Index

        if not self._expressions.searching:
            return None
        table = self._file.index
        if table.path is not None:
            return Index.open(beside(self._file.path, table.path))
        return collection.index(table.analyzer, table.fields, table.vectors, table.separate, table.positions)

    def _data_facts(self, problems: Problems) -> dict[str, dict[str, str]]:
        """Return the SHA-256 of each readable file by its use; for a named collection, the SHA-256 of its contents."""
        sources = self._file.sources
        used: dict[str, Path | str | None] = {
            "corpus": None if self._file.index.path else sources.corpus,
            "topics": sources.topics,
            "qrels": sources.qrels,
            "machine": sources.machine,
            **{f"{RUN_OF}{name}": path for name, path in self._file.runs.items()},
        }
        facts = {}
        for use, source in used.items():
            with problems.collected():
                if source is not None:
                    facts[use] = self._facts(source, use)
        return facts

    def _facts(self, source: Path | str, use: str) -> dict[str, str]:
        if isinstance(source, str):
            return {"file": source, "sha256": hash_of_dataset(_dataset(source), use)}
        # A path relative to the experiment's file, so that the lock does not depend on the machine.
        return {"file": os.path.relpath(source, self._file.path.parent), "sha256": hash_of(source, use)}


def _dataset(name: str) -> Dataset:
    dataset = named(name)
    assert dataset is not None
    return dataset


def _settings_of(raw: Mapping[str, Any]) -> dict[str, object]:
    """Return the file without the keys that affect no number: folders, report formats and measurements."""
    ignored = {"index": "folder", "report": "forms"}
    tables = {table: values for table, values in raw.items() if table not in ("output", "measurements")}
    shorter = {table: {k: v for k, v in values.items() if k != ignored.get(table)} for table, values in tables.items()}
    return {table: values for table, values in shorter.items() if values}

"""The file of an experiment: TOML, read and checked, with errors that name file, table and key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..comparison.report import SUFFIXES
from ..core import InputError
from ..core.errors import ParameterError
from ..measures.names import parse

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
FORMS = tuple(suffix[1:] for suffix in SUFFIXES)
IRDS = "irds:"
KINDS = ("model", "stages", "fuse", "run")  # of systems: each has one of these keys
TOP = ("output", "collection", "index", "systems", "report")


class Table:
    """A table of the file, which knows its name for messages."""

    def __init__(self, file: Path, name: str, values: Mapping[str, Any]) -> None:
        self.file = file
        self.name = name
        self.values = values

    def error(self, problem: str) -> InputError:
        """The error for `problem` in this table."""
        return InputError(f"{self.file}{f', [{self.name}]' if self.name else ''}: {problem}")

    def only(self, known: Iterable[str]) -> None:
        """Raises InputError for a key that is none of `known`, with the nearest one."""
        for key in self.values:
            if key not in known:
                raise self.error(f"there is no {'key' if self.name else 'table or key'} '{key}'; {nearest(key, known)}")

    def table(self, key: str) -> Table:
        """The table under `key`; an empty one where there is none."""
        values = self.values.get(key, {})
        name = f"{self.name}.{key}" if self.name else key
        if not isinstance(values, dict):
            raise self.error(f"'{key}' must be a table, [{name}], not {values!r}")
        return Table(self.file, name, values)

    def text(self, key: str) -> str | None:
        """The string under `key`, or None."""
        value = self.values.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.error(f"'{key}' must be a string, not {value!r}")
        return value

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """The list of strings under `key`."""
        value = self.values.get(key, default)
        if not isinstance(value, (list, tuple)) or not value or not all(isinstance(v, str) for v in value):
            raise self.error(f"'{key}' must be a list of strings, not {value!r}")
        return tuple(value)

    def path(self, key: str) -> Path | None:
        """The path under `key`, relative to the file, or None."""
        given = self.text(key)
        return None if given is None else self.file.parent / Path(given).expanduser()

    def source(self, key: str) -> Path | str | None:
        """The path under `key`, or the name of a collection of ir-datasets as it is given."""
        given = self.text(key)
        return given if given is not None and given.startswith(IRDS) else self.path(key)


@dataclass(frozen=True)
class Collection:
    """Where documents, topics and judgments are: paths, or names of ir-datasets that start with irds:."""

    corpus: Path | str | None
    topics: Path | str | None
    qrels: Path | str
    format: str | None = None


@dataclass(frozen=True)
class Indexing:
    """How the documents are indexed, or, in `path`, the index that there is already."""

    path: Path | None = None
    folder: Path | None = None
    analyzer: str = "english"
    fields: tuple[str, ...] = ("title", "text")
    vectors: str | None = None


@dataclass(frozen=True)
class Settings:
    """An experiment as its file has it. `systems` are tables; `raw` is the whole file."""

    file: Path
    output: Path
    collection: Collection
    index: Indexing
    systems: Mapping[str, Table]
    measures: tuple[str, ...]
    forms: tuple[str, ...]
    comparing: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)


def read_settings(path: str | Path) -> Settings:
    """Reads and checks the file of an experiment. Raises InputError that names file, table and key."""
    file = Path(path)
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not TOML: {error}") from None
    top = Table(file, "", raw)
    top.only(TOP)
    report = top.table("report")
    report.only(("measures", "forms", "baseline", "test", "correction", "alpha", "seed"))
    systems = _systems(top)
    collection, index = _collection(top.table("collection")), _indexing(top.table("index"))
    if collection.corpus is not None and index.path is not None and "dataset" not in top.table("collection").values:
        raise top.table("index").error("'path' is an index that is there already; leave it out, or 'corpus'")
    return Settings(
        file,
        top.path("output") or file.with_name(f"{file.stem}.results"),
        collection,
        index,
        systems,
        _measures(report),
        _forms(report),
        _comparing(report, systems),
        raw,
    )


def nearest(key: str, known: Iterable[str]) -> str:
    """What may have been meant by `key`, or all that there is."""
    names = list(known)
    close = difflib.get_close_matches(key, names, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}" if names else "there is none"


def _collection(table: Table) -> Collection:
    table.only(("corpus", "topics", "qrels", "format", "dataset", "split"))
    given = table.text("dataset")
    if given is None:
        if "split" in table.values:
            raise table.error("'split' belongs to a 'dataset'; with 'qrels' the file says which split it is")
        qrels = table.source("qrels")
        if qrels is None:
            raise table.error("there is no key 'qrels' and no key 'dataset': say where the judgments are")
        return Collection(table.source("corpus"), table.source("topics"), qrels, table.text("format"))
    for key in ("corpus", "topics", "qrels", "format"):
        if key in table.values:
            raise table.error(f"'{key}' is part of the dataset; leave it out, or name all files instead of a dataset")
    if given.startswith(IRDS):
        split = table.text("split")
        name = given if split is None else f"{given}/{split}"
        return Collection(given, name, name)
    return _beir(table, table.path("dataset"), table.text("split"))


def _beir(table: Table, folder: Path | None, split: str | None) -> Collection:
    """The files of a folder in BEIR's form."""
    assert folder is not None
    qrels = {p.name.removesuffix(".gz").removesuffix(".tsv"): p for p in sorted((folder / "qrels").glob("*.tsv*"))}
    if not qrels:
        raise table.error(f"{folder} is no folder in BEIR's form: it has no qrels/*.tsv")
    chosen = split or ("test" if "test" in qrels else next(iter(qrels)) if len(qrels) == 1 else None)
    if chosen is None or chosen not in qrels:
        problem = f"there is no split '{chosen}'" if chosen else "say which 'split'"
        raise table.error(f"{folder}: {problem}; there are {', '.join(qrels)}")
    corpus, topics = (_packed_or_plain(folder / f"{name}.jsonl") for name in ("corpus", "queries"))
    return Collection(corpus, topics, qrels[chosen])


def _packed_or_plain(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.is_file() and not path.is_file() else path


def _indexing(table: Table) -> Indexing:
    table.only(("path", "folder", "analyzer", "fields", "vectors"))
    if "path" in table.values:
        for key in ("folder", "analyzer", "fields", "vectors"):
            if key in table.values:
                raise table.error(f"'path' is an index that is there already, so '{key}' says nothing; leave one of them out")
    default = Indexing()
    return Indexing(
        table.path("path"),
        table.path("folder"),
        table.text("analyzer") or default.analyzer,
        table.texts("fields", default.fields),
        table.text("vectors"),
    )


def _systems(top: Table) -> dict[str, Table]:
    table = top.table("systems")
    if not table.values:
        raise top.error("there is no system; [systems.NAME] is one")
    systems = {}
    for name in table.values:
        if not NAME.fullmatch(name):
            raise table.error(f"the name '{name}' must be of letters, digits, '_', '.', '+' and '-': a file is called by it")
        system = table.table(name)
        kinds = [kind for kind in KINDS if kind in system.values]
        if len(kinds) != 1:
            said = f"it has {' and '.join(kinds)}" if kinds else "it has none"
            raise system.error(f"a system has one of the keys {', '.join(KINDS)}; {said}")
        systems[name] = system
    return systems


def _measures(report: Table) -> tuple[str, ...]:
    measures = report.texts("measures", ("nDCG@10", "AP", "R@100"))
    for measure in measures:
        try:
            parse(measure)
        except ParameterError as error:
            raise report.error(f"measures: {error}") from None
    return measures


def _forms(report: Table) -> tuple[str, ...]:
    forms = report.texts("forms", ("md", "json", "html"))
    for form in forms:
        if form not in FORMS:
            raise report.error(f"forms: there is no form '{form}'; {nearest(form, FORMS)}")
    return forms


def _comparing(report: Table, systems: Mapping[str, Table]) -> dict[str, Any]:
    """The arguments of `compare`, as far as they are given."""
    from ..comparison.testing import CORRECTIONS, TESTS, Testing

    for key, known in (("test", TESTS), ("correction", CORRECTIONS), ("baseline", systems)):
        name = report.text(key)
        if name is not None and name not in known:
            raise report.error(f"{key}: there is no '{name}'; {nearest(name, known)}")
    given = {key: report.values[key] for key in ("test", "correction", "alpha", "seed") if key in report.values}
    try:
        Testing(**given)
    except ParameterError as error:
        raise report.error(str(error)) from None
    return {**given, "baseline": report.text("baseline")}

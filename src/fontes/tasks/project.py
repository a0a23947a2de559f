"""`TaskProject`, a folder with a task's data in Fontes' formats, an experiment file and a README."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..core import InputError, ParameterError
from ..datasets import named
from ..experiments.experiment import NAME, TomlTable, read_toml, wrong_value
from ..formats import read_qrels, read_topics, write_qrels, write_topics
from ..measures import parse
from ..storage.files import write
from .base import Roles, Task, TaskData, TaskSide, data_of, registry, relative
from .release import ReleasedFiles

FILE, EXPERIMENT, README = "task.toml", "experiment.toml", "README.md"
DATA, GIVEN = "data", "given"
BEIR = "beir:"


class SideTable(TomlTable):
    """Topics of a side; without `qrels` they are not judged."""

    topics: str = Field(min_length=1)
    qrels: str | None = None
    corpus: str | None = None


class TaskTable(TomlTable):
    """The file task.toml."""

    task: str = Field(min_length=1)
    measure: str = Field(min_length=1)
    corpus: str | None = None
    choose: str | None = None
    measured: list[str] = Field(default_factory=list)
    submit: list[str] = Field(default_factory=list)
    train: str | None = None
    sides: dict[str, SideTable]


@dataclass(frozen=True)
class TaskProject:
    """A project of a shared task, as `new_project` lays it out.

    Args:
        folder: The folder.
        task: The task.
        table: The content of task.toml.
    """

    folder: Path
    task: Task
    table: TaskTable

    @classmethod
    def open(cls, folder: str | Path) -> TaskProject:
        """Open a project.

        Raises:
            InputError: The folder is not a project, or its file is invalid.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            command = f"fontes task new NAME {shlex.quote(str(folder))} --data …"
            raise InputError(f"{folder}: no {FILE}, so no project of a task; {command} makes one")
        raw = read_toml(path)
        try:
            table = TaskTable.model_validate(raw)
        except ValidationError as error:
            raise wrong_value(path, raw, error, TaskTable) from None
        if table.task not in registry:
            raise InputError(f"{path}: there is no task '{table.task}'; 'fontes task list' lists them")
        for name in table.sides:
            _check_name(str(path), name)
        for key in ("choose", "train"):
            _check_side(path, key, getattr(table, key), table, judged=True)
        for key in ("measured", "submit"):
            for name in getattr(table, key):
                _check_side(path, key, name, table, judged=key == "measured")
        parse(table.measure)
        return cls(Path(folder), registry[table.task](), table)

    @property
    def roles(self) -> Roles:
        """The use of each side."""
        table = self.table
        return Roles(table.choose, tuple(table.measured), tuple(table.submit), table.train)

    @cached_property
    def sides(self) -> dict[str, TaskSide]:
        """All sides by name, with their topics and judgments.

        Raises:
            InputError: A file cannot be read.
        """
        return {
            name: TaskSide(
                name,
                read_topics(self.folder / side.topics),
                None if side.qrels is None else read_qrels(self.folder / side.qrels),
                self.place(side.corpus or self.table.corpus),
            )
            for name, side in self.table.sides.items()
        }

    @property
    def corpora(self) -> dict[str, Path | str]:
        """The documents of each side that has documents: a path, or a collection by name."""
        corpora = {name: self.place(side.corpus or self.table.corpus) for name, side in self.table.sides.items()}
        return {name: corpus for name, corpus in corpora.items() if corpus is not None}

    def place(self, name: str | None) -> Path | str | None:
        """Return the name of a collection unchanged, and anything else as a path inside the project."""
        if name is None or named(name):
            return name
        return self.folder / name


def new_project(name: str, folder: str | Path, data: Iterable[str | Path] = ()) -> TaskProject:
    """Lay out the files that the organisers of a task give as a project.

    Args:
        name: The task; "beir:FOLDER" also names the data, a folder in BEIR's form, `irds:NAME` or `sample:NAME`.
        folder: Folder to make; if it exists, it must be empty.
        data: Files, folders and archives of the organisers.

    Raises:
        ParameterError: There is no such task.
        InputError: The folder is not empty, or a file is missing or cannot be read; nothing is left behind.
    """
    sources = list(data)
    kind, _, source = name.partition(":")
    if source and kind == "beir":
        if sources:
            raise ParameterError(f"'{name}' names its data; leave --data out")
        sources, name = [source], "beir"
    elif name not in registry or name.endswith(":"):
        raise ParameterError(
            f"there is no task '{name}'; there are {', '.join(n if n != 'beir' else 'beir:FOLDER' for n in registry)}"
        )
    elif name == "beir" and not sources:
        raise ParameterError("beir needs its data: beir:FOLDER, beir:irds:NAME or beir:sample:NAME")
    task, target = registry[name](), Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: exists and is not empty; give another folder")
    existed = target.exists()
    try:
        return _lay_out(task, target, sources)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        if existed:
            target.mkdir(exist_ok=True)
        raise


def _lay_out(task: Task, folder: Path, sources: list[str | Path]) -> TaskProject:
    """Write all files of a project."""
    collection = named(str(sources[0])) if task.name == "beir" and len(sources) == 1 else None
    if collection is not None:
        contents = data_of(collection, str(sources[0]))
    else:
        release = ReleasedFiles(sources, folder / GIVEN)
        contents = task.read(release, folder / DATA)
    roles = task.roles(contents.sides)
    table = _write_sides(task, contents, roles, folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / FILE, toml(table, TASK_COMMENT))
    project = TaskProject.open(folder)
    base = next(iter([*roles.measure, *([roles.choose] if roles.choose else [])]), None)
    if base in project.corpora:
        _write(folder / EXPERIMENT, toml(experiment_of(project, base), EXPERIMENT_COMMENT))
    _write(folder / README, readme(project))
    return project


def _check_name(where: str, side: str) -> None:
    """Raise InputError unless a side may name files and folders."""
    if not all(map(NAME.fullmatch, side.split("/"))):
        raise InputError(
            f"{where}: the name '{side}' of a side must be of letters, digits, '_', '.', '+' and '-': folders are called by it"
        )


def _write_sides(task: Task, contents: TaskData, roles: Roles, folder: Path) -> dict[str, object]:
    """Write the topics and judgments of all sides, and return the contents of task.toml."""
    sides: dict[str, dict[str, str]] = {}
    for side in contents.sides:
        _check_name(str(folder), side.name)
        side_folder = folder / DATA / side.name
        side_folder.mkdir(parents=True, exist_ok=True)
        write_topics(side.topics, side_folder / "queries.jsonl")
        sides[side.name] = {"topics": f"{DATA}/{side.name}/queries.jsonl"}
        if side.qrels is not None:
            write_qrels(side.qrels, side_folder / "qrels.tsv", "beir")
            sides[side.name]["qrels"] = f"{DATA}/{side.name}/qrels.tsv"
        if side.corpus is not None:
            sides[side.name]["corpus"] = relative(side.corpus, folder)
    uses = {"choose": roles.choose, "measured": list(roles.measure), "submit": list(roles.submit), "train": roles.train}
    corpus = {} if contents.corpus is None else {"corpus": relative(contents.corpus, folder)}
    used = {key: value for key, value in uses.items() if value not in (None, [])}
    return {"task": task.name, "measure": task.measure, **corpus, **used, "sides": sides}


TASK_COMMENT = """\
# The data of the task, and what each side is for; paths are relative to this file.
#   measure   what parameters and weights are chosen by
#   choose    the side to choose them on; it is measured on held-out topics
#   measured  judged sides to measure on, beside it
#   submit    the sides to submit runs for
#   train     the side that a model learns from, where one is trained
"""
EXPERIMENT_COMMENT = """\
# The baselines; `fontes experiment` runs this file as it is. Add systems of your own: `fontes task run` runs them beside
# those that it chooses (tuned, fused, …), and fuses all but the baseline.
"""


def experiment_of(project: TaskProject, side: str) -> dict[str, object]:
    """Return the contents of the experiment file of the baselines on a side."""
    rows = {"bm25": "bm25()", "rm3": "bm25 >> rm3() >> bm25", **project.task.rows}
    report = {"measures": list(project.task.measures), "baseline": "bm25", "forms": ["md", "tex", "json", "html"]}
    return {"collection": collection_of(project, side), "index": {"folder": "indexes"}, "systems": rows, "report": report}


def collection_of(project: TaskProject, side: str) -> dict[str, str]:
    """Return the table [collection] of an experiment file on a judged side."""
    table = project.table.sides[side]
    corpus = table.corpus or project.table.corpus
    pieces = {"corpus": corpus, "topics": table.topics, "qrels": table.qrels}
    return {key: value for key, value in pieces.items() if value is not None}


def toml(values: Mapping[str, object], comment: str = "") -> str:
    """Return strings, numbers, lists and nested tables as TOML, after a comment; runs of systems on one line each."""
    import tomlkit

    def inline(value: object) -> Any:
        if not isinstance(value, Mapping):
            return value
        table = tomlkit.inline_table() if "run" in value else {}
        table.update({key: inline(item) for key, item in value.items()})
        return table

    return f"{comment}\n" * bool(comment) + tomlkit.dumps(inline(values))


def readme(project: TaskProject) -> str:
    """Return the README of a project."""
    task, roles = project.task, project.roles
    sides = "\n".join(
        f"| {name} | {', '.join(_uses_of(name, roles)) or 'not used'} | {'judged' if side.qrels else 'not judged'} |"
        for name, side in project.table.sides.items()
    )
    corpus = project.table.corpus or ("each side has its own" if project.corpora else "none: nothing can be searched")
    return f"""# {task.title}

| side | use | |
|---|---|---|
{sides}

Documents: {corpus}. Submission: {task.submits}.

    fontes task check .             # counts, ids, texts that sides share, and the submission if there is one
    fontes task run .               # baselines, tuning, fusion, tests, paper/ and submission/
    fontes task run . --dense MODEL --rerank MODEL
    fontes task run . --train MODEL # train a cross-encoder first

| | |
|---|---|
| `{FILE}` | the data, and what each side is for; edit it |
| `{EXPERIMENT}` | the baselines; add systems of your own |
| `{DATA}/` | topics and judgments in BEIR's form; `{GIVEN}/` is what archives held |
| `held-out.toml`, `chosen-SIDE.toml` | written by `run`: what was chosen; `fontes experiment FILE --check` runs it again |
| `results/SIDE/` | runs, reports and `experiment.lock` |
| `paper/` | table and paragraph for the working notes, every figure from the locks |
| `submission/` | what to hand in |
"""


def _uses_of(name: str, roles: Roles) -> list[str]:
    uses = {
        "train": name == roles.train,
        "choose": name == roles.choose,
        "measure": name in roles.measure or (name == roles.choose and not roles.measure),
        "submit": name in roles.submit,
    }
    return [use for use, applies in uses.items() if applies]


def _check_side(path: Path, key: str, name: str | None, table: TaskTable, *, judged: bool) -> None:
    if name is None:
        return
    if name not in table.sides:
        raise InputError(f"{path}: {key}: there is no side '{name}'; there are {', '.join(table.sides)}")
    if judged and table.sides[name].qrels is None:
        raise InputError(f"{path}: {key}: the side '{name}' has no judgments")


def _write(path: Path, text: str) -> None:
    write(path, [text.encode()])

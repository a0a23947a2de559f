"""The systems of an experiment, made of stages by name and parameters.

`STAGES` is the list of all that can be named: another stage is one more line.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import ParameterError, PipelineError, Run, Stage, Topics
from .settings import KINDS, Table, nearest

if TYPE_CHECKING:
    from ..index import Index

# Name to module:object. One whose first parameter is `self` or `index` is given the index; the others are its parameters.
STAGES = {
    "bm25": "index:Index.bm25",
    "tfidf": "index:Index.tfidf",
    "ql": "index:Index.ql",
    "learned_sparse": "index:Index.learned_sparse",
    "rm3": "index:Index.rm3",
    "cut": "core:Cut",
    "passages": "passages:Passages",
    "to-documents": "passages:to_documents",
    "dense": "experiments.neural:dense",
    "late": "experiments.neural:late",
    "late-reranker": "experiments.neural:late_reranker",
    "cross-encoder": "neural:CrossEncoder",
    "monot5": "neural:MonoT5",
    "causal-evidence": "experiments.neural:causal_evidence",
    "raw": "rewrite:Raw",
    "manual": "rewrite:Manual",
    "automatic": "rewrite:Automatic",
    "last-turns": "rewrite:LastTurns",
    "weighted-turns": "rewrite:WeightedTurns",
    "hqe": "rewrite:HQE",
    "canard": "rewrite:CanardT5",
    "quretec": "rewrite:QuReTeC",
}
FUSING = ("method", "normalize", "weights", "k", "missing")
MODELS = ("name_or_path", "encoder", "colbert")  # parameters that may be a model's folder
TYPES: dict[str, Any] = {
    "dict[str, Any]": dict,
    "int": int,
    "float": (int, float),
    "str": str,
    "bool": bool,
    "None": type(None),
}


class Systems:
    """The systems of a file as stages and paths of runs; a system may name another one as a part.

    Raises InputError for stages, parameters and systems that there are not, naming file, table and key.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._made: dict[str, Any] = {}
        self._within: list[str] = []
        for name in tables:
            self._check(name)

    @property
    def runs(self) -> dict[str, Path]:
        """The files of runs, by system."""
        return {name: path for name, table in self._tables.items() if (path := table.path("run")) is not None}

    def made(self, index: Index | None) -> dict[str, Stage[Topics, Run] | Run | Path]:
        """All systems, in the order of the file: stages over the index, and paths of runs."""
        self._made.clear()
        return {name: self._system(name, index) for name in self._tables}

    @property
    def searching(self) -> bool:
        """Whether any system searches; the others are runs that are there already."""
        return any(map(self._searches, self._tables))

    def _searches(self, name: str) -> bool:
        """Whether a system is made of stages, and is not a run or a fusion of runs."""
        table = self._tables[name]
        if "fuse" in table.values:
            return any(self._is_stage(table, step) for step in table.values["fuse"])
        return "run" not in table.values

    def _is_stage(self, table: Table, step: Any) -> bool:
        system = self._meant(table, step)
        return system is None or self._searches(system)

    def _meant(self, table: Table, step: Any) -> str | None:
        """The system that a step names, if it names one. Within a system its own name is that of a stage."""
        own = isinstance(step, str) and table.name == f"systems.{step}" and step in STAGES
        return step if isinstance(step, str) and step in self._tables and not own else None

    def _check(self, name: str) -> None:
        """Checks names and types of all that a system consists of, and that no system is part of itself."""
        table = self._tables[name]
        if name in self._within:
            raise table.error(f"the system is part of itself: {' > '.join([*self._within, name])}")
        self._within.append(name)
        match next(kind for kind in KINDS if kind in table.values):
            case "run":
                table.only(("run",))
            case "model":
                model = table.text("model") or ""
                self._check_stage(table, model, _parameters_of(table), f"'{model}'", ("model", "cut"))
            case "stages":
                table.only(("stages", "cut"))
                self._check_steps(table, "stages", 1)
            case "fuse":
                table.only(("fuse", "cut", *FUSING))
                self._check_steps(table, "fuse", 2)
        cut = table.values.get("cut")
        if cut is not None and (not isinstance(cut, int) or isinstance(cut, bool) or cut < 1):
            raise table.error(f"'cut' must be a whole number from 1 up, not {cut!r}")
        self._within.pop()

    def _check_steps(self, table: Table, key: str, least: int) -> None:
        steps = table.values[key]
        if not isinstance(steps, list) or len(steps) < least:
            raise table.error(f"'{key}' must be a list of {'a stage' if least == 1 else 'two systems'} or more, not {steps!r}")
        for step in steps:
            match step:
                case str() if (system := self._meant(table, step)) is not None:
                    self._check(system)
                case str():
                    self._check_stage(table, step, {}, key)
                case dict() if len(step) == 1 and isinstance(next(iter(step.values())), dict):
                    ((stage, parameters),) = step.items()
                    self._check_stage(table, stage, parameters, f"{key}, '{stage}'")
                case _:
                    raise table.error(f"{key}: a step is a name or {{ name = {{ parameter = value }} }}, not {step!r}")
        runs = [step for step in steps if not self._is_stage(table, step)]
        if runs and (key == "stages" or len(runs) < len(steps)):
            problem = "cannot be a step" if key == "stages" else "cannot be fused with a stage, only with other runs"
            raise table.error(f"{key}: '{runs[0]}' is a run, which {problem}")

    def _check_stage(
        self, table: Table, stage: str, parameters: Mapping[str, Any], where: str, beside: tuple[str, ...] = ()
    ) -> None:
        if stage not in STAGES:
            known = [*STAGES, *(name for name in self._tables if not beside)]
            raise table.error(f"{where}: there is no stage{'' if beside else ' or system'} '{stage}'; {nearest(stage, known)}")
        known_parameters = _parameters(_factory(stage)[0])
        for key, value in parameters.items():
            if key not in known_parameters:
                raise table.error(f"{where} has no parameter '{key}'; {nearest(key, [*known_parameters, *beside])}")
            kinds = [TYPES.get(kind.strip()) for kind in str(known_parameters[key].annotation).split("|")]
            wrong_bool = isinstance(value, bool) and bool not in kinds
            if None not in kinds and (wrong_bool or not any(isinstance(value, kind) for kind in kinds if kind)):
                raise table.error(f"{where}: {key} must be {known_parameters[key].annotation}, not {value!r}")
        for key, parameter in known_parameters.items():
            if parameter.default is parameter.empty and key not in parameters:
                raise table.error(f"{where} needs the parameter '{key}'")

    def _system(self, name: str, index: Index | None) -> Any:
        if name not in self._made:
            table = self._tables[name]
            try:
                self._made[name] = self._assembled(table, index)
            except (ParameterError, PipelineError) as error:
                raise table.error(str(error)) from error
        return self._made[name]

    def _assembled(self, table: Table, index: Index | None) -> Any:
        run = table.path("run")
        if run is not None:
            return run
        values = table.values
        stage: Any
        if "model" in values:
            stage = _stage(values["model"], _located(table, _parameters_of(table)), index)
        elif "stages" in values:
            first, *others = (self._step(table, step, index) for step in values["stages"])
            stage = first
            for other in others:
                stage = stage >> other
        else:
            from ..fusion import fuse

            parts = [self._step(table, step, index) for step in values["fuse"]]
            stage = fuse(*parts, **{key: values[key] for key in FUSING if key in values})
        if isinstance(stage, Run):
            return stage.top(values["cut"]) if "cut" in values else stage
        if stage.takes is not Topics or stage.gives is not Run:
            raise PipelineError(
                f"it goes from {stage.takes.__name__} to {stage.gives.__name__}; a system goes from topics to a run"
            )
        return stage % values["cut"] if "cut" in values else stage

    def _step(self, table: Table, step: str | dict[str, Any], index: Index | None) -> Any:
        if isinstance(step, str):
            system = self._meant(table, step)
            return _stage(step, {}, index) if system is None else self._system(system, index)
        ((name, parameters),) = step.items()
        return _stage(name, _located(table, parameters), index)


def models_of(stage: Any) -> list[str]:
    """The fingerprints of the models in a stage, in the order of its parts."""
    if isinstance(stage, (tuple, list)):
        return list(dict.fromkeys(found for part in stage for found in models_of(part)))
    if not dataclasses.is_dataclass(stage):
        return []
    fingerprint = getattr(stage, "fingerprint", None)
    own = [fingerprint] if isinstance(fingerprint, str) else []
    return [*own, *models_of([getattr(stage, f.name) for f in dataclasses.fields(stage)])]


def _stage(name: str, parameters: Mapping[str, Any], index: Index | None) -> Stage[Any, Any]:
    factory, indexed = _factory(name)
    if "precision" in _parameters(factory):  # the quickest one differs from machine to machine, and its scores do
        parameters = {"precision": "float32", **parameters}
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    stage: Stage[Any, Any] = factory(index, **given) if indexed else factory(**given)
    getattr(stage, "weighting", None)  # a lexical model says here what is wrong with its parameters
    return stage


def _located(table: Table, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, with the folders of models that are given relative to the file as paths."""
    located: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, dict):
            located[key] = _located(table, value)
        else:
            folder = table.file.parent / value if key in MODELS and isinstance(value, str) else None
            located[key] = str(folder) if folder is not None and folder.is_dir() else value
    return located


def _factory(name: str) -> tuple[Callable[..., Any], bool]:
    """What makes the stage, and whether it is given the index."""
    module, _, path = STAGES[name].partition(":")
    found: Any = import_module(f"fontes.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    first = next(iter(inspect.signature(found).parameters), "")
    return found, first in ("self", "index")


def _parameters(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {name: p for name, p in inspect.signature(factory).parameters.items() if name not in ("self", "index", "progress")}


def _parameters_of(table: Table) -> dict[str, Any]:
    """The keys of a system that are its model's parameters."""
    return {key: value for key, value in table.values.items() if key not in ("model", "cut")}

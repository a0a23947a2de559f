"""The systems of an experiment's file: expressions, which may speak of one another, and runs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import FontesError, ParameterError, PipelineError, Run, Stage, Topics
from ..core.expression import part
from ..core.part import Part
from .problems import NOTHING, Problems
from .settings import ExperimentFile, problem_in

if TYPE_CHECKING:
    from ..index import Index

MODEL = "name_or_path"  # the parameter of parts that is the folder or the name of a model
ANY_RUN = Run.of({"1": {"1": 1.0}})  # stands for a run where expressions are only looked at


class Expressions:
    """The systems of a file as stages and runs.

    Args:
        file: The file.

    Raises:
        InputError: An expression cannot be read, or speaks of what there is not; the message names file, table and key.
    """

    def __init__(self, file: ExperimentFile) -> None:
        self._file = file
        self._names = list(file.raw["systems"])
        systems: dict[str, Any] = dict.fromkeys(file.runs, ANY_RUN)
        problems = Problems()
        for name in file.expressions:
            with problems.collected():
                self._resolve(name, NOTHING, systems, ())
        problems.raise_all(str(file.path))
        self.stages = {name: system for name, system in systems.items() if isinstance(system, Stage)}
        """The systems that search, over nothing: to be looked at."""
        self.searching = bool(self.stages)
        """Whether any system searches; the others are runs that are there already."""

    def made(self, index: Index | None) -> dict[str, Stage[Topics, Run] | Run | Path]:
        """All systems, in the order of the file: stages over the index, runs, and paths of runs."""
        runs = {name: Run.of(path) for name, path in self._file.runs.items()} if self._fused else self._file.runs
        systems = self._resolved(index, runs)
        return {name: self._file.runs.get(name, systems[name]) for name in self._names}

    @property
    def _fused(self) -> bool:
        """Whether an expression speaks of a run."""
        return any(set(_names_in(text)) & set(self._file.runs) for text in self._file.expressions.values())

    def _resolved(self, index: Any, runs: Mapping[str, Any]) -> dict[str, Any]:
        systems: dict[str, Any] = dict(runs)
        for name in self._file.expressions:
            self._resolve(name, index, systems, ())
        return systems

    def _resolve(self, name: str, index: Any, systems: dict[str, Any], within: tuple[str, ...]) -> None:
        """Makes a system, and those that it speaks of before it."""
        if name in within:
            raise self._error(name, f"the system is part of itself: {' > '.join([*within[within.index(name) :], name])}")
        if name in systems:
            return
        text = self._file.expressions[name]
        for other in _names_in(text):
            if other in self._file.expressions:
                self._resolve(other, index, systems, (*within, name))
        try:
            system = part(text, index, systems=systems)
            if not isinstance(system, (Stage, Run)):
                raise ParameterError(f"'{text}' is no stage and no run")
            if isinstance(system, Stage) and (system.takes is not Topics or system.gives is not Run):
                goes = f"{system.takes.__name__} to {system.gives.__name__}"
                raise PipelineError(f"it goes from {goes}; a system goes from topics to a run")
        except FontesError as error:
            raise self._error(name, str(error)) from None
        systems[name] = system.map(self._located) if isinstance(system, Stage) else system

    def _located(self, one: Part) -> Part:
        """A part whose model is a folder beside the file, with the path of the folder."""
        model = one.params().get(MODEL)
        if not isinstance(model, str):
            return one
        folder = self._file.path.parent / Path(model).expanduser()
        return one.with_(**{MODEL: str(folder)}) if folder.is_dir() else one

    def _error(self, name: str, problem: str) -> FontesError:
        return problem_in(self._file.path, "systems", f"{name}: {problem}")


def _names_in(text: str) -> list[str]:
    """The names that an expression speaks of without calling them; none where it is no expression."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]

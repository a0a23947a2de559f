"""Parser of pipeline expressions such as `bm25(k1=0.9, b=0.4) % 100 >> cross_encoder("MODEL")`.

Text is parsed by Python's `ast` and never evaluated. It may contain names of registered parts, calls, literals, signed numbers,
tuples, lists and mappings from strings, and the operators `>>`, `%`, `*` and `+`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, TypeGuard

from .errors import FontesError, ParameterError, PipelineError
from .hints import IN_PIPELINES, compact, nearest
from .parameters import Parameter, longer_name_hint, parameters
from .part import FrozenDict, Part, stages, state_of
from .run import Run
from .searches import check_depth
from .stage import Stage
from .where import MAX_DEPTH, MAX_INTEGER, PythonText

MAX_TEXT = 20_000  # greatest length of a text
TUNE = "tune"
OPERATORS = {
    ast.RShift: (">>", operator.rshift),
    ast.Mod: ("%", operator.mod),
    ast.Mult: ("*", operator.mul),
    ast.Add: ("+", operator.add),
}
AnyStage = Stage[Any, Any]


def pipeline(
    text: str, index: object = None, *, indexes: Mapping[str, object] | None = None, systems: Mapping[str, object] | None = None
) -> AnyStage:
    """Return the stage of an expression.

    Args:
        text: An expression, such as `0.7 * bm25() + 0.3 * dense("all-MiniLM-L6-v2")`, or the `repr` of a stage.
        index: The index that stages work on.
        indexes: Several indexes by name, chosen by a stage as in `bm25(index="title")`; the first is the default.
        systems: Stages or runs that the text may name.

    Returns:
        The stage, with its joins checked.

    Raises:
        ParameterError: The expression is invalid, or has unknown names or parameters; the message gives the position and the
            nearest known name.
        PipelineError: Stages do not fit together.
    """
    stage = _Builder(text, index, indexes, systems).build()
    if not isinstance(stage, Stage):
        raise ParameterError(f"'{text.strip()}' is {_kind(stage)}, not a stage")
    return stage


def part(text: str, index: object = None, *, systems: Mapping[str, object] | None = None, folder: Path | None = None) -> Any:
    """Return the stage, other part (such as an encoder) or fused run of an expression; otherwise as `pipeline`.

    Paths of files that stages read, fields with the metadata "file", are looked up in `folder` first.
    """
    return _Builder(text, index, None, systems, folder=folder).build()


def tunable(
    text: str, index: object = None, *, indexes: Mapping[str, object] | None = None
) -> tuple[Callable[..., AnyStage], dict[str, object]]:
    """Parse an expression in which some parameters are `tune()`, `tune(0.3, 0.9)`, `tune(0.3, 0.9, 0.1)` or `tune([…])`.

    Returns:
        A function that makes the stage from parameter values by path, such as `bm25__k1` (`bm25_2__k1` in the second part of
        that name; `bm25__fields.title` for a value in a mapping), with the parts' defaults; and the space: (low, high), (low,
        high, step) or a list of values for each path.

    Raises:
        ParameterError: As `pipeline`; and if nothing is tuned, or a parameter has no known range.
    """
    first = _Builder(text, index, indexes, None, values={})
    if not isinstance(stage := first.build(), Stage):
        raise ParameterError(f"'{text.strip()}' is {_kind(stage)}, not a stage")
    if not first.space:
        raise ParameterError(f"'{text.strip()}' has no parameter to be tuned; write it as bm25(k1=tune(), b=tune(0.3, 0.9))")

    def make(**values: object) -> AnyStage:
        for path in values:
            if path not in first.space:
                raise ParameterError(f"'{path}' is not tuned in the text; {nearest(path, first.space)}")
        stage: AnyStage = _Builder(text, index, indexes, None, values=values).build()
        return stage

    return make, dict(first.space)


class _Builder(PythonText):
    noun, example, longest, counted = "pipeline", "bm25() % 100 >> rm3() >> bm25()", MAX_TEXT, "pipeline, column"

    def __init__(
        self,
        text: str,
        index: object,
        indexes: Mapping[str, object] | None,
        systems: Mapping[str, object] | None,
        values: Mapping[str, object] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(text)
        self._folder = folder
        self._indexes = {name: state_of(each) for name, each in (indexes or {}).items()}
        self._index = next(iter(self._indexes.values()), None) if index is None else state_of(index)
        self._systems = dict(systems or {})
        self._values = values  # of tuned parameters; None if tune() is not allowed
        self._numbers: Counter[str] = Counter()
        self._depth = 0
        self.space: dict[str, Any] = {}

    def build(self) -> Any:
        return self._value(self.tree())

    def _value(self, node: ast.expr) -> object:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(node, f"nested more than {MAX_DEPTH} deep")
        try:
            match node:
                case ast.BinOp():
                    return self._operation(node)
                case ast.Call():
                    return self._called(node)
                case ast.Name():
                    return self._named(node)
                case ast.Constant(value=bool() | int() | float() | str() | None):
                    if isinstance(node.value, int) and node.value > MAX_INTEGER:
                        raise self.error(node, f"whole numbers go up to {MAX_INTEGER:,}")
                    return node.value
                case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)):
                    if not isinstance(number, bool) and number <= MAX_INTEGER:
                        return -number if isinstance(node.op, ast.USub) else number
                case ast.Tuple() | ast.List():
                    return tuple(self._value(item) for item in node.elts)
                case ast.Dict():
                    return self._mapping(node, lambda _, item: self._value(item))
            raise self.error(node, "only names, calls, literals, signed numbers and the operators >> % * + are known here")
        finally:
            self._depth -= 1

    def _mapping(self, node: ast.Dict, value_of: Callable[[str, ast.expr], object]) -> FrozenDict[object]:
        values: dict[str, object] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise self.error(key or item, "the names of a mapping are strings: {'title': 3, 'text': 1}")
            if key.value in values:
                raise self.error(key, f"'{key.value}' is given twice")
            values[key.value] = value_of(key.value, item)
        return FrozenDict(values)

    def _operation(self, node: ast.BinOp) -> object:
        left, right = self._value(node.left), self._value(node.right)
        if type(node.op) not in OPERATORS:
            raise self.error(node, "of the operators there are >> (then), % (the best k), * (times a weight) and + (sum)")
        sign, join = OPERATORS[type(node.op)]
        try:
            if sign == "%" and isinstance(left, Run):
                return left.top(check_depth(right))
            if isinstance(left, Stage) or (sign == "*" and isinstance(right, Stage)):
                return join(left, right)
        except FontesError as error:
            raise self.error(node.right, str(error), type(error)) from None
        except TypeError:
            pass  # neither operand supports the other
        raise self.error(node, f"{sign} does not join {_kind(left)} and {_kind(right)}")

    def _named(self, node: ast.Name) -> object:
        if node.id in self._systems:
            return self._systems[node.id]
        if (stage := _stage_name(node.id)) in stages:
            raise self.error(node, f"'{stage}' is a stage; write {stage}()")
        raise self.error(
            node, f"there is no stage{' or system' if self._systems else ''} '{node.id}'; {self._nearest(node.id)}"
        )

    def _called(self, node: ast.Call) -> object:
        if not isinstance(node.func, ast.Name):
            raise self.error(node.func, "only the name of a stage can be called")
        name = _stage_name(node.func.id)
        if name == TUNE:
            raise self.error(node, "tune() is the value of a parameter, in a pipeline for `tune`: bm25(k1=tune(0.4, 2.0))")
        if name not in stages:
            raise self.error(node.func, f"there is no stage '{name}'; {self._nearest(name)}")
        self._numbers[name] += 1
        label = name if self._numbers[name] == 1 else f"{name}_{self._numbers[name]}"
        cls = stages[name]
        declared = parameters(cls)
        values: dict[str, Any] = {}
        items: list[object] = []
        positional = [parameter for parameter in declared if parameter != cls.variadic]
        for number, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                raise self.error(argument, "* before an argument is not known here")
            if cls.variadic:
                items.append(self._value(argument))
            elif number < len(positional):
                values[positional[number]] = self._argument(label, declared, positional[number], argument)
            else:
                raise self.error(argument, f"{name} takes {len(positional)} arguments at most, besides its index")
        for keyword in node.keywords:
            values.update(self._keyword(name, label, declared, keyword, values))
        if cls.variadic:
            values[cls.variadic] = tuple(items)
        return self._constructed(node, name, cls, declared, values)

    def _keyword(
        self, name: str, label: str, declared: Mapping[str, Parameter], keyword: ast.keyword, values: Mapping[str, object]
    ) -> dict[str, object]:
        key = keyword.arg
        if key is None:
            raise self.error(keyword.value, "** before an argument is not known here")
        if key == "index" and "index" in stages[name].__dataclass_fields__:
            return {"index": self._index_called(keyword.value)}
        if key not in declared or key == stages[name].variadic:
            raise self.error(keyword, f"{name} has no parameter '{key}'; {nearest(key, declared, IN_PIPELINES)}")
        if key in values:
            raise self.error(keyword, f"{name}: '{key}' is given twice")
        return {key: self._argument(label, declared, key, keyword.value)}

    def _argument(self, label: str, declared: Mapping[str, Parameter], name: str, node: ast.expr) -> object:
        parameter = declared[name]
        path = f"{label}__{parameter.name}"
        if _tunes(node):
            uses_first = parameter.default is None and isinstance(parameter.range, list) and None not in parameter.range
            return self._tuned(path, parameter, node, parameter.range[0] if uses_first else parameter.default)

        def entry(key: str, item: ast.expr) -> object:
            return self._tuned(f"{path}.{key}", parameter, item, parameter.entry) if _tunes(item) else self._value(item)

        value = self._mapping(node, entry) if isinstance(node, ast.Dict) else self._value(node)
        try:
            return parameter.checked(value)
        except ParameterError as error:
            suggestion = longer_name_hint(declared, name, value)
            raise self.error(node, f"{re.sub(r'_[0-9]+$', '', label)}: {error}{suggestion}") from None

    def _tuned(self, path: str, parameter: Parameter, node: ast.Call, default: object) -> object:
        if self._values is None:
            raise self.error(node, "tune() is for pipelines that `tune` searches; give a value here")
        bounds = tuple(self._value(argument) for argument in node.args)
        if node.keywords or len(bounds) > 3:
            raise self.error(node, "write tune(), tune(low, high), tune(low, high, step) or tune([value, …])")
        if not bounds and parameter.range is None:
            raise self.error(node, f"no range is known for {parameter.name}; write tune(low, high), or tune(low, high, step)")
        if not bounds and path.endswith(f"__{parameter.name}") and not parameter.takes(parameter.range[0]):
            raise self.error(node, f"{parameter.name} is a mapping; tune its values: {parameter.name}={{'title': tune()}}")
        if len(bounds) == 1:
            if not isinstance(bounds[0], tuple):
                raise self.error(node, "with one argument tune takes the values to try, as a list")
            self.space[path] = list(bounds[0])
        else:
            self.space[path] = bounds or parameter.range
        if path in self._values:
            return self._values[path]
        return self.space[path][0] if default is MISSING else default

    def _index_called(self, node: ast.expr) -> object:
        name = self._value(node)
        if not isinstance(name, str) or name not in self._indexes:
            suggestion = nearest(str(name), self._indexes) if self._indexes else "only one index is given, which needs no name"
            raise self.error(node, f"there is no index {name!r}; {suggestion}")
        return self._indexes[name]

    def _constructed(
        self, node: ast.Call, name: str, cls: type[Part], declared: Mapping[str, Parameter], values: dict[str, Any]
    ) -> object:
        if "index" in cls.__dataclass_fields__ and "index" not in values:
            if self._index is None:
                raise self.error(node, f"{name} needs an index; none is given")
            values["index"] = self._index
        for key, parameter in declared.items():
            if parameter.required and key not in values:
                raise self.error(node, f"{name} needs the parameter '{key}'")
        if cls.variadic and any(isinstance(value, Run) for value in values[cls.variadic]):
            return self._of_runs(node, cls, values)
        if self._folder is not None:
            values = {name: self._located(cls, name, value, self._folder) for name, value in values.items()}
        try:
            part = cls(**values)
            part.check()
        except (FontesError, TypeError) as error:
            kind = type(error) if isinstance(error, FontesError) else ParameterError
            raise self.error(node, str(error), kind) from None
        return part

    def _located(self, cls: type[Part], name: str, value: object, folder: Path) -> object:
        """The value of a field; the path in the folder if the field names a file there."""
        field = cls.__dataclass_fields__.get(name)
        if isinstance(value, str) and value and field is not None and field.metadata.get("file"):
            path = folder / Path(value).expanduser()
            return str(path) if path.is_file() else value
        return value

    def _of_runs(self, node: ast.Call, cls: type[Part], values: dict[str, Any]) -> object:
        """Apply a part to finished runs, if it can: `fuse(a, b)` over runs."""
        of_runs = getattr(cls, "of_runs", None)
        runs = values.pop(cls.variadic)
        if of_runs is None or not all(isinstance(run, Run) for run in runs):
            raise self.error(node, f"{cls.name} cannot join a run to a stage; give only runs, or only stages", PipelineError)
        try:
            return of_runs(*runs, **values)
        except FontesError as error:
            raise self.error(node, str(error), type(error)) from None

    def _nearest(self, name: str) -> str:
        return nearest(name, [*self._systems, *stages], IN_PIPELINES)

    def error(self, node: ast.expr | ast.keyword | int, problem: str, kind: type[FontesError] = ParameterError) -> FontesError:
        return kind(problem) if problem.startswith("pipeline, ") else super().error(node, problem, kind)


def _tunes(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == TUNE


def _stage_name(typed: str) -> str:
    """The name of a stage that is typed in capitals or without "_": `BM25`, `CrossEncoder`."""
    if typed in stages or typed.islower():
        return typed
    return next((name for name in stages if compact(name) == compact(typed)), typed)


def _kind(value: object) -> str:
    if isinstance(value, Stage):
        return f"a stage ({value!r})"
    return "a run" if isinstance(value, Run) else f"{value!r}"

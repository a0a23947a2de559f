"""What is tuned: a stage, a function that makes one, or a text with `tune()` in it; and how a setting makes the stage."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core import ParameterError, Run, Stage, Topics
from ..core.expression import tunable as parse_tunable
from ..core.parameters import parameters
from ..core.part import Part, walk
from ..core.registry import nearest

Space: TypeAlias = Mapping[str, object]
Setting: TypeAlias = dict[str, Any]
Retriever: TypeAlias = Stage[Topics, Run]
Tunable: TypeAlias = Retriever | Callable[..., Retriever] | str

USUAL = {"bm25": ("k1", "b", "k3"), "ql": ("mu", "lambda_")}
"""By name of a stage, what is tuned of it where no space is given."""


@dataclass(frozen=True)
class Maker:
    """Makes the stage for a setting.

    Args:
        make: From the parameters' values by name to the stage.
        unchanged: The stage with the parameters' present values, or None for a function of which some parameter has no default.
        default: The present values of the parameters of the space, where they are known.
        ranges: The ranges of these parameters that their classes know of.
    """

    make: Callable[..., Any]
    unchanged: Retriever | None
    default: Setting
    ranges: Setting

    def __call__(self, setting: Setting) -> Retriever:
        """The stage with these parameters.

        Raises:
            ParameterError: The function did not make a stage.
            PipelineError: The stage does not go from topics to a run.
        """
        return _checked(self.make(**setting))


def maker_of(tunable: Tunable, space: Space | None, index: Any) -> tuple[Maker, Space]:
    """What makes the stage for a setting, and the space that is searched.

    Args:
        tunable: What is tuned.
        space: The space as the caller gave it. It adds to that of a text; for a stage None is the default space.
        index: The index of a text, or several by name.

    Raises:
        ParameterError: The stage, the function or the text does not have a parameter of the space, or there is no default
            space.
        PipelineError: The stage does not go from topics to a run.
    """
    if isinstance(tunable, str):
        return _of_text(tunable, space, index)
    if index is not None:
        raise ParameterError("an index is given for a text alone; a stage has its own")
    if not isinstance(tunable, Stage) and not callable(tunable):
        raise ParameterError(f"tune takes a stage, a function that makes one, or a text, not a {type(tunable).__name__}")
    chosen = default_space(tunable) if space is None else space
    names = list(chosen) if isinstance(chosen, Mapping) else []
    return _of_stage(tunable, names) if isinstance(tunable, Stage) else _of_function(tunable, names), chosen


def default_space(tunable: Retriever | Callable[..., Retriever]) -> Space:
    """The usual parameters of the lexical models in a stage, with the ranges that their classes have.

    Raises:
        ParameterError: There is no such model in the stage, or `tunable` is a function.
    """
    space: dict[str, object] = {}
    for part in walk(tunable) if isinstance(tunable, Stage) else ():
        shown = part.shown()
        for name in USUAL.get(part.name, ()):
            known = parameters(type(part))[name].range
            if known is not None and (name in shown or getattr(part, name) is None):
                space[name] = known
    if not space:
        what = repr(tunable) if isinstance(tunable, Stage) else "a function"
        raise ParameterError(f"there is no default space for {what}; give one, as {{'k1': (0.1, 4.5, 0.2), 'b': [0.4, 0.75]}}")
    return space


def _of_stage(stage: Retriever, names: list[str]) -> Maker:
    """The maker of copies of a stage, in which every part that has one of the parameters has its value."""
    owners = {name: _owner(stage, name) for name in names}

    def make(**setting: Any) -> Part:
        def changed(part: Part) -> Part:
            own = {_field(name): value for name, value in setting.items() if _has(part, name)}
            return part.with_(**own) if own else part

        return stage.map(changed)

    default = {name: _present(owner, _field(name)) for name, owner in owners.items()}
    return Maker(make, _checked(stage), default, _ranges(owners))


def _of_text(text: str, space: Space | None, index: Any) -> tuple[Maker, Space]:
    """The maker of stages from a text, and its space, with what the caller's adds to it."""
    one, several = (None, index) if isinstance(index, Mapping) else (index, None)
    make, written = parse_tunable(text, one, indexes=several)
    chosen = {**written, **(space or {})}
    for name in chosen:
        if name not in written:
            raise ParameterError(f"'{name}' is not tuned in the text; {nearest(name, written)}")
    unchanged = _checked(make())
    owners = {path: part for path in chosen if (part := _at(unchanged, path)) is not None}
    default = {path: _present(owner, _field(path)) for path, owner in owners.items()}
    return Maker(make, unchanged, default, _ranges(owners)), chosen


def _of_function(function: Callable[..., Any], names: list[str]) -> Maker:
    """The maker of stages by a function, whose defaults are those of its signature."""
    try:
        known = inspect.signature(function).parameters
    except ValueError:
        return Maker(function, None, {}, {})
    kinds = [parameter.kind for parameter in known.values()]
    for name in names:
        if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ParameterError(f"the function has no parameter '{name}'; it has {', '.join(known) or 'none'}")
    named = {n: p for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in names:
            raise ParameterError(f"the function needs '{name}', for which the space has no values")
    defaults = {n: p.default for n, p in named.items() if p.default is not p.empty}
    unchanged = _checked(function()) if len(defaults) == len(named) else None
    return Maker(function, unchanged, {n: defaults[n] for n in names if n in defaults}, {})


def _checked(stage: Any) -> Retriever:
    """A stage from topics to a run; anything else is an error."""
    if not isinstance(stage, Stage):
        raise ParameterError(f"the function that makes the stage gave a {type(stage).__name__}, not a stage")
    stage.require(Topics, Run, "tune")
    return stage


def _field(name: str) -> str:
    """The parameter that a name of the space means: `k1` of `bm25__k1`."""
    return name.rpartition("__")[2]


def _label(part: Part) -> str:
    """What a part is called in names of the space."""
    return part.name or type(part).__name__


def _has(part: Part, name: str) -> bool:
    """Whether a name of the space means a parameter of this part."""
    owner, _, field = name.rpartition("__")
    return field in part.params() and owner in ("", _label(part))


def _owner(stage: Retriever, name: str) -> Part:
    """The first part that has a parameter. Raises ParameterError for a name that no part has, or parts of several kinds."""
    owners = [part for part in walk(stage) if _has(part, name)]
    kinds = list(dict.fromkeys(map(_label, owners)))
    if not owners:
        known = {f"{_label(part)}__{field}" for part in walk(stage) for field in part.params()}
        raise ParameterError(f"no stage has the parameter '{name}'; there are {', '.join(sorted(known)) or 'none'}")
    if len(kinds) > 1:
        choices = " or ".join(f"'{kind}__{name}'" for kind in kinds)
        raise ParameterError(f"'{name}' is a parameter of {' and '.join(kinds)}; write {choices}")
    return owners[0]


def _at(stage: Retriever, path: str) -> Part | None:
    """The part that a path of a text means: `bm25_2__k1` is of the second part called bm25."""
    label, _, field = path.rpartition("__")
    numbered = re.fullmatch(r"(.+)_(\d+)", label)
    named = [part for part in walk(stage) if part.name == label and field in part.params()]
    if not named and numbered:
        named = [part for part in walk(stage) if part.name == numbered[1]][int(numbered[2]) - 1 :]
    return named[0] if named else None


def _present(part: Part, field: str) -> Any:
    """The value that a parameter has now."""
    value = getattr(part, field)
    # Lexical stages fill in the defaults of their variant in `weighting`.
    return getattr(getattr(part, "weighting", None), field, None) if value is None else value


def _ranges(owners: Mapping[str, Part]) -> Setting:
    """By name of the space, the range that the class of the owner knows of."""
    known = {name: parameters(type(owner))[_field(name)] for name, owner in owners.items()}
    return {name: parameter.range for name, parameter in known.items() if parameter.range is not None}

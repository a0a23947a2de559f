"""Parameters of a part, of another class or of a function: types and defaults from fields, descriptions from the docstring."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ParameterError
from .part import Part, default_of, fields, stages
from .stage import Stage

KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "None": (type(None),),
    "Path": (str, Path),
    "Mapping[str, float]": (Mapping,),
}
ENTRY = re.compile(r"\**(\w+)(?: \([^)]*\))?:\s*(.*)")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a part, of another class or of a function.

    Args:
        name: Its name.
        kind: Its annotated type.
        default: Its default; `dataclasses.MISSING` if required.
        description: Its description in the docstring.
        string: Name of the part made from a plain string; empty for none.
        range: Search range of `tune()`: (low, high, step), (low, high) or a list; for a mapping, that of each value. None if
            unknown.
        limits: Least and greatest valid value.
        usual: Whether `tune` searches its range if no space is given.
        entry: Default of a value of a mapping.
        options: Its options on the command line, if not --name; empty for none.
    """

    name: str
    kind: str
    default: Any
    description: str
    string: str = ""
    range: Any = None
    limits: tuple[float, float] = (-math.inf, math.inf)
    usual: bool = False
    entry: object = None
    options: tuple[str, ...] | None = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is dataclasses.MISSING

    def checked(self, value: object) -> object:
        """Return the checked value, converting a string to a part if needed.

        Raises:
            ParameterError: The value is of another type.
        """
        if self.string and isinstance(value, str):
            cls = stages[self.string]
            return cls(value)  # type: ignore[call-arg]
        kinds = [KINDS.get(kind.strip()) for kind in self.kind.split("|")]
        if None in kinds:  # a type that only the part itself can check
            return value
        allowed = [kind for group in kinds for kind in group or ()]
        if not isinstance(value, tuple(allowed)) or (isinstance(value, bool) and bool not in allowed):
            kinds_text = self.kind.replace("Mapping[str, float]", "{name: float}").replace(" | ", " or ")
            raise ParameterError(f"{self.name} must be {kinds_text}, not {value!r}")
        return value

    def takes(self, value: object) -> bool:
        """Whether the value is of the right type."""
        try:
            self.checked(value)
        except ParameterError:
            return False
        return True


def parameters(source: object) -> dict[str, Parameter]:
    """Return the parameters of a dataclass such as a part, of another class or of a function, by name and in order.

    Indexes are left out.
    """
    description = descriptions(source)
    attributes = {field.name for field in dataclasses.fields(Parameter)}  # that a field's metadata may set
    return {
        name: Parameter(
            name, _kind(annotation), default, description.get(name, ""), **{k: facts[k] for k in attributes & facts.keys()}
        )
        for name, annotation, default, facts in _declared(source)
        if name != "index"
    }


def _declared(source: Any) -> Iterator[tuple[str, object, object, Mapping[str, Any]]]:
    """Name, type, default and metadata of each parameter."""
    if dataclasses.is_dataclass(source):
        for field in fields(source):
            yield field.name, field.type, default_of(field), field.metadata
        return
    for name, parameter in inspect.signature(source).parameters.items():
        default = dataclasses.MISSING if parameter.default is parameter.empty else parameter.default
        yield name, parameter.annotation, default, {}


def _kind(annotation: Any) -> str:
    if hasattr(annotation, "__metadata__"):  # of pydantic's `Annotated`
        annotation = annotation.__origin__
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def tuned(
    default: object,
    range: object,
    limits: tuple[float, float] = (-math.inf, math.inf),
    usual: bool = False,
    entry: object = None,
) -> Any:
    """Return the field of a parameter that can be tuned; `Parameter` describes the arguments."""
    return dataclasses.field(default=default, metadata={"range": range, "limits": limits, "usual": usual, "entry": entry})


def longer_name_hint(declared: Mapping[str, Parameter], name: str, value: object) -> str:
    """Return "; did you mean k1=1.2?" if only a longer-named parameter can take the value, else an empty string."""
    if name not in declared or declared[name].takes(value):
        return ""
    longer = [
        other for other, parameter in declared.items() if other != name and other.startswith(name) and parameter.takes(value)
    ]
    return f"; did you mean {longer[0]}={value!r}?" if longer else ""


def summary(cls: type) -> str:
    """Return the first sentence of a class's docstring, in one line."""
    paragraph = (inspect.getdoc(cls) or "").partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", paragraph)[0]


def signature(cls: type[Part]) -> tuple[str, str]:
    """Return the names of a stage's input and output: "any" if they depend on the joined stage, "" for other parts."""
    if not issubclass(cls, Stage):
        return "", ""
    takes, gives = (getattr(kind, "__name__", "any").replace("Any", "any") for kind in cls._types)
    return takes, gives


def descriptions(source: object) -> dict[str, str]:
    """Return argument descriptions from the docstrings of a class and its bases, or of a function, each in one line."""
    described: dict[str, str] = {}
    for cls in reversed(getattr(source, "__mro__", (source,))):
        described.update(_entries(inspect.cleandoc(cls.__doc__ or "")))
    return described


def _entries(docstring: str) -> Iterator[tuple[str, str]]:
    """Entries of `Args:`, or of a base class's `Attributes:`, in a Google-style docstring."""
    lines = iter(docstring.splitlines())
    if not any(line.strip() in ("Args:", "Attributes:") for line in lines):
        return
    name, indent = "", 0
    words: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            break
        depth = len(line) - len(line.lstrip())
        entry = ENTRY.fullmatch(line.strip())
        if entry and (not name or depth <= indent):
            if name:
                yield name, " ".join(words)
            name, words, indent = entry[1], [entry[2]], depth
        elif name and line.strip():
            words.append(line.strip())
    if name:
        yield name, " ".join(words)

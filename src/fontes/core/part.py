"""`Part`: building block of pipelines, with a name, parameters, and an expression that recreates it.

A part is a frozen dataclass whose constructor only stores its parameters. Stages are parts, and so are their encoders, models
and keyphrase extractors. Only this module walks trees of parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from functools import cached_property, lru_cache
from numbers import Number
from typing import Any, ClassVar, Generic, Self, TypeVar

from .errors import ParameterError, PipelineError
from .hints import nearest
from .registry import STAGES, Registry

Names = Mapping[int, str]
"""The name of each index in a text, by the identity of its state."""
V = TypeVar("V")
P = TypeVar("P")


class Part:
    """Something with a name, parameters and a text.

    A subclass is a frozen dataclass. `class BM25(Lexical, name="bm25")` registers it under a name for expressions, files and
    the command line; its docstring's `Args:` describe the parameters.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    name: ClassVar[str] = ""
    """The name in texts; empty for a part without one."""
    variadic: ClassVar[str] = ""
    """The field that takes all positional arguments of a text, as a tuple; empty if each goes to a field of its own."""

    def __init_subclass__(cls, *, name: str = "", **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        cls.name = name
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Part.__repr__  # type: ignore[method-assign]  # else `dataclass` would generate another
        if name:
            stages.add(name, cls)

    def __post_init__(self) -> None:
        """Replace an `Index` by its newest state, so that the part reads one state throughout, and freeze dicts.

        A dict in a field that is neither compared nor shown stays as it is: it is a cache, not a parameter.
        """
        declared = getattr(type(self), "__dataclass_fields__", {})
        if "index" in declared:
            object.__setattr__(self, "index", state_of(getattr(self, "index")))  # noqa: B009  # a field of some parts alone
        for name, field in declared.items():
            value = getattr(self, name, None)
            if type(value) is dict and (field.compare or field.repr):
                object.__setattr__(self, name, FrozenDict(value))

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, with strings converted to parts where the field allows it."""
        return {field.name: as_part(getattr(self, field.name), field) for field in fields(type(self))}

    def with_(self, **changes: object) -> Self:
        """Return a copy with other parameters.

        Args:
            **changes: Parameters of this part, or with two underscores of inner parts: `rerank__max_length` for the part in the
                field `rerank`, or for every inner part of that name. A parameter that is a mapping takes single values after a
                dot: `**{"fields.title": 3}`.

        Raises:
            ParameterError: The parameter is unknown.
        """
        params = self.params()
        changes = self._with_entries(changes) if any("." in key for key in changes) else changes
        fields = {key: value for key, value in changes.items() if key in params}
        copy = dataclasses.replace(self, **fields) if fields else self
        for key, value in changes.items():
            if key not in fields:
                copy = copy._with_nested(key, value)
        return copy

    def _with_entries(self, changes: Mapping[str, object]) -> dict[str, object]:
        """Join changes of single values of a mapping, such as `fields.title`, into one change of the mapping."""
        joined: dict[str, Any] = {}
        for key, value in changes.items():
            name, dot, entry = key.partition(".")
            if dot and "__" not in name:
                joined[name] = {**(joined[name] if name in joined else self.entries(name)), entry: value}
            else:
                joined[key] = value
        return joined

    def entries(self, name: str) -> Mapping[str, Any]:
        """Return the present values by name of a parameter that is, or may be, a mapping."""
        value = self.params().get(name)
        return value if isinstance(value, Mapping) else {}

    def _with_nested(self, key: str, value: object) -> Self:
        head, _, rest = key.partition("__")
        params = self.params()
        if rest and isinstance(params.get(head), Part):
            return dataclasses.replace(self, **{head: params[head].with_(**{rest: value})})
        inside = [part for part in walk(self) if part is not self and part.name == head] if rest else []
        if not inside:
            names = [*params, *sorted({f"{p.name}__{q}" for p in walk(self) if p is not self and p.name for q in p.params()})]
            raise ParameterError(f"{self._label} has no parameter '{key}'; {nearest(key, names)}")
        return self.map(lambda part: part.with_(**{rest: value}) if part.name == head else part)

    def __getstate__(self) -> dict[str, object]:
        """Return the parameters alone, without cached values."""
        names = getattr(type(self), "__dataclass_fields__", vars(self))
        return {name: value for name, value in vars(self).items() if name in names}

    def parts(self) -> tuple[Part, ...]:
        """Return the direct inner parts in field order, flattening tuples."""
        return tuple(
            part
            for value in self.params().values()
            for part in (value if isinstance(value, tuple) else (value,))
            if isinstance(part, Part)
        )

    def map(self, function: Callable[[Part], Part], replaced: dict[int, tuple[Part, Part]] | None = None) -> Self:
        """Apply `function` to each part of the tree, innermost first; return a part of the same kind.

        Args:
            function: Returns the replacement of a part.
            replaced: Replacements by the identity of the part, so that a shared part stays one, also across trees.
        """
        replaced = {} if replaced is None else replaced
        if id(self) not in replaced:  # keeps the part alive, so that its id is not reused
            replaced[id(self)] = (self, function(self._mapped(lambda part: part.map(function, replaced))))
        return replaced[id(self)][1]  # type: ignore[return-value]

    def _mapped(self, function: Callable[[Part], Part]) -> Self:
        """Copy with `function` applied to the direct inner parts; the part itself if nothing changes."""
        changes: dict[str, object] = {}
        for key, value in self.params().items():
            items = value if isinstance(value, tuple) else (value,)
            mapped = tuple(function(item) if isinstance(item, Part) else item for item in items)
            if any(new is not old for new, old in zip(mapped, items, strict=True)):
                changes[key] = mapped if isinstance(value, tuple) else mapped[0]
        return dataclasses.replace(self, **changes) if changes else self

    def check(self) -> None:
        """Raise ParameterError for invalid parameters, as far as known before any work."""

    def check_needs(self) -> None:
        """Raise FontesError if a model, library or file needed at run time is missing."""
        getattr(self, "fingerprint", None)  # the fingerprint covers the content of the model

    def prepare(self) -> None:
        """Build what is missing before a run, such as document vectors; by default calls the inner parts."""
        for part in self.parts():
            part.prepare()

    def key(self) -> str | None:
        """Return a process-independent identity of class and parameters, the cache key of runs, or None (not cached).

        None for a class outside Fontes, whose code may change, and for parameters other than numbers, strings, None, tuples and
        mappings of such, parts with a key, and objects with a `fingerprint`, such as an index. Your own part may return a
        string that changes whenever its results could.
        """
        cls = type(self)
        if cls.__module__.partition(".")[0] != __name__.partition(".")[0] or not dataclasses.is_dataclass(cls):
            return None
        keys = _key(tuple(self.params().values()))
        return None if keys is None else f"{cls.__module__}.{cls.__qualname__}{keys}"

    @property
    def text(self) -> str:
        """Expression that recreates this part over the same indexes.

        Raises:
            PipelineError: The part or an inner one has no text, as it was made from a function or its class has no name.
        """
        return self.written(index_names(self), strict=True)

    def shown(self) -> dict[str, Any]:
        """Return the parameters in the text: required ones, and non-default ones that change results."""
        shown = {}
        for field in fields(type(self)):
            value = getattr(self, field.name)
            default = default_of(field)
            if field.name != "index" and (default is MISSING or (field.repr and value != default)):
                shown[field.name] = value
        return shown

    def written(self, names: Names, *, strict: bool) -> str:
        """Return the text with these index names; unless `strict`, a part without text is written as its class."""
        if strict and not self.name:
            raise PipelineError(f"{type(self).__name__} has no text: its class is registered under no name")
        shown = self.shown()
        index = getattr(self, "index", None)
        index_argument = {"index": names[id(index)]} if id(index) in names else {}
        parts = []
        if self.variadic:
            parts += [_value(item, names, strict) for item in shown.pop(self.variadic, ())]
        by_name = {field.name: field for field in fields(type(self))}
        leading = not self.variadic
        for key, value in shown.items():
            field = by_name.get(key)
            leading = leading and field is not None and (default_of(field) is MISSING or "leading" in field.metadata)
            text = _short(value, field) or _value(value, names, strict)
            parts.append(text if leading else f"{key}={text}")
        parts += [f"{key}={_value(value, names, strict)}" for key, value in index_argument.items()]
        return f"{self.name or type(self).__name__}({', '.join(parts)})"

    @property
    def _label(self) -> str:
        return self.name or type(self).__name__

    @cached_property
    def _shown_text(self) -> str:
        return self.written(index_names(self), strict=False)

    def __repr__(self) -> str:
        return self._shown_text


stages: Registry[type[Part]] = Registry("fontes.stages", "stage", STAGES)
"""All named parts: stages, and the encoders and models that stages take."""


def _fields(cls: Any) -> tuple[dataclasses.Field[Any], ...]:
    return tuple(sorted((field for field in dataclasses.fields(cls) if field.init), key=lambda field: bool(field.kw_only)))


fields: Callable[[Any], tuple[dataclasses.Field[Any], ...]] = lru_cache(None)(_fields)
"""Constructor fields of a part's class in order, keyword-only ones last."""


def as_part(value: object, field: dataclasses.Field[Any]) -> Any:
    """Return the value of a field, converting a string to a part if the field's metadata names one."""
    string = field.metadata.get("string")
    return stages[string](value) if string and isinstance(value, str) else value  # type: ignore[call-arg]


def state_of(index: object) -> Any:
    """Return the current state of an `Index`; anything else unchanged."""
    return getattr(index, "state", index)


def walk(part: Part) -> Iterator[Part]:
    """Yield a part and all inner parts, outermost first."""
    yield part
    for inner in part.parts():
        yield from walk(inner)


def uses_model(part: Part) -> bool:
    """Return whether a part, or one inside it, runs a pretrained model, whose `fingerprint` it has."""
    return any(hasattr(type(inner), "fingerprint") for inner in walk(part))


def indexes_of(part: Part) -> dict[str, Any]:
    """Return the indexes of a part by folder name, numbered if names clash."""
    indexes: dict[str, Any] = {}
    for inner in walk(part):
        index = getattr(inner, "index", None)
        if index is None or not hasattr(index, "fingerprint") or any(index is seen for seen in indexes.values()):
            continue
        name = base = str(getattr(index, "name", "")) or "index"
        number = 1
        while name in indexes:
            number += 1
            name = f"{base}_{number}"
        indexes[name] = index
    return indexes


def index_names(part: Part) -> Names:
    """Return the names of the indexes in a text; empty for a single index."""
    indexes = indexes_of(part)
    return {id(index): name for name, index in indexes.items()} if len(indexes) > 1 else {}


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field; `dataclasses.MISSING` if it is required."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _short(value: object, field: dataclasses.Field[Any] | None) -> str | None:
    """The plain string that makes this part in the field, if any."""
    if field is None or not isinstance(value, Part) or value.name != field.metadata.get("string") or not value.name:
        return None
    shown = list(value.shown().items())
    return _literal(shown[0][1]) if len(shown) == 1 and shown[0][0] == fields(type(value))[0].name else None


def _value(value: object, names: Names, strict: bool) -> str:
    if isinstance(value, Part):
        return value.written(names, strict=strict)
    if isinstance(value, (tuple, list)):
        items = [_value(item, names, strict) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, FrozenDict):
        return f"{{{', '.join(f'{_value(key, names, strict)}: {_value(item, names, strict)}' for key, item in value.items())}}}"
    literal = _literal(value)
    if literal is not None:
        return literal
    if strict:
        raise PipelineError(f"a {type(value).__name__} has no text; only numbers, strings and registered parts have one")
    return repr(value)


def _literal(value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, Number):
        return repr(value.item() if hasattr(value, "item") else value)
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if isinstance(value, str):
        plain = value.isprintable() and '"' not in value and "\\" not in value
        return f'"{value}"' if plain else repr(value)
    return None


def _key(value: object) -> str | None:
    if isinstance(value, Part):
        return value.key()
    if value is None or isinstance(value, (str, Number)):
        return repr(value)
    if isinstance(value, tuple):
        keys = [_key(item) for item in value]
        return None if None in keys else f"({', '.join(map(str, keys))})"
    if isinstance(value, FrozenDict):
        return _key(tuple(sorted(value.items())))
    if callable(getattr(getattr(value, "analyzer", None), "tokenizer", None)):
        return None  # the index knows only the name of its analyzer's function
    fingerprint = getattr(value, "fingerprint", None)
    return f"{type(value).__qualname__} {fingerprint}" if isinstance(fingerprint, str) else None


class FrozenDict(Mapping[str, V], Generic[V]):
    """A mapping that does not change, so that what holds it can be hashed; equal to a dict with the same items.

    Args:
        items: The values by name.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> V:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


def fix_precision(part: P, precisions: Mapping[str, str] | None = None) -> P:
    """Return the part with each model's "auto" precision replaced by the one used here; values that are no parts unchanged.

    `precisions` is the result of `precisions_of`; by default that of this part.
    """
    if not isinstance(part, Part):
        return part
    used = precisions_of(part) if precisions is None else precisions

    def in_precision(inner: Any) -> Part:
        automatic = _is_auto(inner) and inner.fingerprint in used
        return inner.with_(precision=used[inner.fingerprint]) if automatic else inner  # type: ignore[no-any-return]

    return part.map(in_precision) if used else part


def precisions_of(part: Part) -> dict[str, str]:
    """Return the precision used here by each model with "auto", by fingerprint. Loads these models."""
    models: Iterator[Any] = filter(_is_auto, walk(part))
    return {model.fingerprint: model.chosen_precision.partition(" ")[0] for model in models}


def _is_auto(part: Part) -> bool:
    return getattr(part, "precision", None) == "auto" and hasattr(type(part), "chosen_precision")

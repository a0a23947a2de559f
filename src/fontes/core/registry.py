"""Registries: what can be named in a text, a file or on the command line, filled by the rooms and by packages of others."""

from __future__ import annotations

import contextlib
import difflib
import pkgutil
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from .errors import FontesError, ParameterError

T = TypeVar("T")


class Registry(Generic[T]):
    """Things by name. They register themselves when their module is imported; unknown names make it look at entry points.

    An entry point of the group names a module, whose import registers what is in it; a package, of which all modules count; or
    an object, which is registered under the entry point's name. The rooms of Fontes are entry points like those of any other
    package. One that cannot be imported is left out with a warning that names its package.

    Importing every module for one name may take seconds. So a registry may be told how a module's source shows the names
    that it registers: then sources are read, and only the modules that a name needs are imported.
    """

    def __init__(self, group: str, noun: str, declaration: re.Pattern[str] | None = None) -> None:
        """An empty registry.

        Args:
            group: The group of entry points, such as "fontes.stages".
            noun: What its things are called in messages, such as "stage".
            declaration: Finds in a module's source each name that it registers, in its first group; modules without a match are
                not imported. None: all modules are imported when the first unknown name is asked for.
        """
        self.group = group
        self.noun = noun
        self._declaration = declaration
        self._things: dict[str, T] = {}
        self._modules: dict[str, list[str]] | None = None  # by name, the modules that say that they register it
        self._failures: dict[str, Exception] = {}

    def add(self, name: str, thing: T) -> None:
        """Registers a thing.

        Raises:
            ParameterError: Another thing has this name.
        """
        known = self._things.get(name)
        if known is not None and _place(known) != _place(thing):
            raise ParameterError(f"two {self.noun}s are called '{name}': {_place(known)} and {_place(thing)}; rename one")
        self._things[name] = thing

    def __getitem__(self, name: str) -> T:
        """The thing of this name.

        Raises:
            ParameterError: There is none; the message has the nearest name.
        """
        if name not in self._things:
            for module in self._declared().get(name, ()):
                self._import(module)
        if name not in self._things:
            raise ParameterError(f"there is no {self.noun} '{name}'; {self.problem(name) or nearest(name, self)}")
        return self._things[name]

    def problem(self, name: str) -> str:
        """Why the thing of this name is not here, though a package says that it has one; else an empty string."""
        failed = [module for module in self._declared().get(name, ()) if module in self._failures]
        return f"{failed[0]} has it and cannot be imported: {self._failures[failed[0]]}" if failed else ""

    def __contains__(self, name: object) -> bool:
        declared = {} if name in self._things else self._declared()  # which may import what registers the name
        return name in self._things or name in declared

    def __iter__(self) -> Iterator[str]:
        """The names, in alphabetical order."""
        declared = self._declared()
        return iter(sorted({*self._things, *declared}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def items(self) -> list[tuple[str, T]]:
        """The names with their things, in alphabetical order; what cannot be imported is left out."""
        for module in dict.fromkeys(module for modules in self._declared().values() for module in modules):
            self._import(module)
        return sorted(self._things.items(), key=lambda item: item[0])

    def _declared(self) -> dict[str, list[str]]:
        """By name, the modules that register it; the entry points are looked at once."""
        if self._modules is None:
            self._modules = {}
            for point in sorted(entry_points(group=self.group), key=lambda point: (point.value, point.name)):
                if point.attr:
                    self._load(point)
                    continue
                for name, source in _sources(point.module):
                    if self._declaration is None:
                        self._import(name)
                    else:
                        for declared in self._declaration.findall(source):
                            self._modules.setdefault(declared, []).append(name)
        return self._modules

    def _load(self, point: EntryPoint) -> None:
        try:
            loaded = point.load()
            if not any(thing is loaded for thing in self._things.values()):
                self.add(point.name, loaded)
        except Exception as error:
            self._left_out(point.value, error)

    def _import(self, module: str) -> None:
        try:
            import_module(module)
        except Exception as error:
            self._left_out(module, error)

    def _left_out(self, place: str, error: Exception) -> None:
        self._failures[place] = error
        warnings.warn(f"the {self.noun}s of {place} are left out: {error}", stacklevel=2)


@lru_cache(None)
def provided(group: str, name: str) -> Any:
    """What an installed package provides by an entry point, such as the tokenizers of models.

    Args:
        group: The group of entry points.
        name: The name in the group.

    Raises:
        FontesError: There is no such entry point, or what it names cannot be imported.
    """
    point = _entry_point(group, name)
    if point is None:
        raise FontesError(f"no installed package provides '{name}'")
    try:
        return point.load()
    except ImportError as error:
        raise FontesError(f"'{name}' is in {point.module}, which cannot be imported: {error}") from error


@lru_cache(None)
def _entry_point(group: str, name: str) -> EntryPoint | None:
    """An entry point, or None; the search takes milliseconds, and every search asks an index for methods that it may lack."""
    return next(iter(entry_points(group=group, name=name)), None)


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant by `name`: "did you mean 'x'?", or else all that there is."""
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}" if names else "there is none"


def _sources(name: str) -> Iterator[tuple[str, str]]:
    """The modules of a package, or a module alone, each with its source; nothing below the top package is imported."""
    top, *inside = name.split(".")
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        spec = find_spec(top)
        for part in inside:  # `find_spec` of a whole path would import the packages on it
            spec = spec and PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
        yield from _of_spec(spec)


def _of_spec(spec: ModuleSpec | None) -> Iterator[tuple[str, str]]:
    if spec is None:
        return
    source = getattr(spec.loader, "get_source", lambda name: None)(spec.name)
    yield spec.name, source or ""
    for info in pkgutil.iter_modules(spec.submodule_search_locations or (), f"{spec.name}."):
        finder: Any = info.module_finder
        yield from _of_spec(finder.find_spec(info.name))


def _place(thing: object) -> str:
    kind = thing if isinstance(thing, type) or hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"

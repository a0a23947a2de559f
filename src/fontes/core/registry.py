"""Registries of named parts, filled by Fontes and by other packages."""

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
    """Named things that register at import; unknown names trigger a search of entry points.

    An entry point of the group names a module or package, whose import registers its contents, or an object, registered under
    the entry point's name. Fontes' own packages are entry points too. One that cannot be imported is skipped with a warning.

    As importing every module may take seconds, `declaration` can find registered names in the source, so that only the needed
    modules are imported.
    """

    def __init__(self, group: str, noun: str, declaration: re.Pattern[str] | None = None) -> None:
        """Create an empty registry.

        Args:
            group: The group of entry points, such as "fontes.stages".
            noun: Name of its things in messages, such as "stage".
            declaration: Pattern whose first group is a registered name in a module's source; modules without a match are not
                imported. None: the first unknown name imports all modules.
        """
        self.group = group
        self.noun = noun
        self._declaration = declaration
        self._things: dict[str, T] = {}
        self._modules: dict[str, list[str]] | None = None  # modules by the names that they declare
        self._failures: dict[str, Exception] = {}

    def add(self, name: str, thing: T) -> None:
        """Register a thing.

        Raises:
            ParameterError: Another thing has this name.
        """
        present = self._things.get(name)
        if present is not None and _qualified_name(present) != _qualified_name(thing):
            raise ParameterError(
                f"two {self.noun}s are called '{name}': {_qualified_name(present)} and {_qualified_name(thing)}; rename one"
            )
        self._things[name] = thing

    def __getitem__(self, name: str) -> T:
        """Return the thing of this name.

        Raises:
            ParameterError: The name is unknown; the message has the nearest name.
        """
        if name not in self._things:
            for module in self._declared().get(name, ()):
                self._import(module)
        if name not in self._things:
            raise ParameterError(f"there is no {self.noun} '{name}'; {self.problem(name) or nearest(name, self)}")
        return self._things[name]

    def problem(self, name: str) -> str:
        """Return why a thing that a package declares is unavailable, else an empty string."""
        failed = [module for module in self._declared().get(name, ()) if module in self._failures]
        return f"{failed[0]} has it and cannot be imported: {self._failures[failed[0]]}" if failed else ""

    def __contains__(self, name: object) -> bool:
        declared = {} if name in self._things else self._declared()  # may import the module that registers the name
        return name in self._things or name in declared

    def __iter__(self) -> Iterator[str]:
        """Yield the names in alphabetical order."""
        declared = self._declared()
        return iter(sorted({*self._things, *declared}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def items(self) -> list[tuple[str, T]]:
        """Return names and things in alphabetical order, without those that cannot be imported."""
        for module in dict.fromkeys(module for modules in self._declared().values() for module in modules):
            self._import(module)
        return sorted(self._things.items(), key=lambda item: item[0])

    def _declared(self) -> dict[str, list[str]]:
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
            self._skip(point.value, error)

    def _import(self, module: str) -> None:
        try:
            import_module(module)
        except Exception as error:
            self._skip(module, error)

    def _skip(self, source: str, error: Exception) -> None:
        self._failures[source] = error
        warnings.warn(f"the {self.noun}s of {source} are left out: {error}", stacklevel=2)


@lru_cache(None)  # the lookup takes milliseconds
def provided(group: str, name: str) -> Any:
    """Return an object that an installed package provides by an entry point of the group, such as the tokenizers of models.

    Raises:
        FontesError: The entry point is missing, or its object cannot be imported.
    """
    point = next(iter(entry_points(group=group, name=name)), None)
    if point is None:
        raise FontesError(f"no installed package provides '{name}'")
    try:
        return point.load()
    except ImportError as error:
        raise FontesError(f"'{name}' is in {point.module}, which cannot be imported: {error}") from error


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the name nearest to `name`, or else all candidates."""
    names = list(candidates)
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}" if names else "there is none"


def _sources(name: str) -> Iterator[tuple[str, str]]:
    """Modules of a package, or a single module, with their sources; imports only the top package."""
    top, *path = name.split(".")
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        spec = find_spec(top)
        for part in path:  # `find_spec` of a whole path would import the packages on it
            spec = spec and PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
        yield from _sources_of(spec)


def _sources_of(spec: ModuleSpec | None) -> Iterator[tuple[str, str]]:
    if spec is None:
        return
    source = getattr(spec.loader, "get_source", lambda name: None)(spec.name)
    yield spec.name, source or ""
    for info in pkgutil.iter_modules(spec.submodule_search_locations or (), f"{spec.name}."):
        finder: Any = info.module_finder
        yield from _sources_of(finder.find_spec(info.name))


def _qualified_name(thing: object) -> str:
    kind = thing if isinstance(thing, type) or hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"

"""Registries: what can be named in a text, a file or on the command line, filled by the rooms and by packages of others."""

from __future__ import annotations

import difflib
import pkgutil
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeVar

from .errors import ParameterError

T = TypeVar("T")


class Registry(Generic[T]):
    """Things by name. They register themselves when their module is imported; unknown names make it look at entry points.

    An entry point of the group names a module, whose import registers what is in it; a package, of which all modules are
    imported; or an object, which is registered under the entry point's name. The rooms of Fontes are entry points like those
    of any other package. One that cannot be imported is left out with a warning that names its package.
    """

    def __init__(self, group: str, noun: str) -> None:
        """An empty registry.

        Args:
            group: The group of entry points, such as "fontes.stages".
            noun: What its things are called in messages, such as "stage".
        """
        self.group = group
        self.noun = noun
        self._things: dict[str, T] = {}
        self._loaded = False

    def add(self, name: str, thing: T) -> None:
        """Registers a thing.

        Raises:
            ParameterError: Another thing has this name.
        """
        known = self._things.get(name)
        if known is not None and _place(known) != _place(thing):
            raise ParameterError(f"two {self.noun}s are called '{name}': {_place(known)} and {_place(thing)}; rename one")
        self._things[name] = thing

    def load(self) -> None:
        """Imports what the entry points of the group name; once."""
        if self._loaded:
            return
        self._loaded = True
        for point in sorted(entry_points(group=self.group), key=lambda point: (point.value, point.name)):
            try:
                self._load(point)
            except Exception as error:
                package = point.dist.name if point.dist else point.value
                warnings.warn(f"the {self.noun}s of the package {package} ({point.value}) are left out: {error}", stacklevel=2)

    def _load(self, point: EntryPoint) -> None:
        loaded = point.load()
        if not isinstance(loaded, ModuleType):
            if not any(thing is loaded for thing in self._things.values()):
                self.add(point.name, loaded)
        elif hasattr(loaded, "__path__"):
            for module in pkgutil.walk_packages(loaded.__path__, f"{loaded.__name__}."):
                import_module(module.name)

    def __getitem__(self, name: str) -> T:
        """The thing of this name.

        Raises:
            ParameterError: There is none; the message has the nearest name.
        """
        if name not in self:
            raise ParameterError(f"there is no {self.noun} '{name}'; {nearest(name, self)}")
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._things:
            self.load()
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        """The names, in alphabetical order."""
        self.load()
        return iter(sorted(self._things))

    def __len__(self) -> int:
        self.load()
        return len(self._things)

    def items(self) -> list[tuple[str, T]]:
        """The names with their things, in alphabetical order."""
        return [(name, self._things[name]) for name in self]


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant by `name`: "did you mean 'x'?", or else all that there is."""
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}" if names else "there is none"


def _place(thing: object) -> str:
    kind = thing if isinstance(thing, type) or hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"

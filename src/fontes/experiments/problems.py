"""Checks before a run that collect all problems and raise them at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import FontesError, InputError, ParameterError, Run, Stage, Topics
from ..core.part import Part, walk
from ..core.registry import provided
from ..index import State
from ..index.settings import IndexSettings
from ..text import Analyzer
from .collection import Collection

if TYPE_CHECKING:
    from ..index.settings import IndexSettings
    from ..index_methods import Index
    from ..text import Analyzer

System = Stage[Topics, Run] | Run | Path
FALLBACK_ANALYZER = "standard"  # needs no library or model


def planned_index(settings: IndexSettings | None = None) -> Index:
    """Return an index without documents or a folder, over which stages are checked before the index is built.

    Args:
        settings: Settings of the index; None: they are unknown, so that any field, positions and term weights are accepted.
    """
    unknown = {"fields": [], "scale": 1.0, "components": ["fields", "positions"]}
    manifest = {
        **(settings.facts if settings else unknown),
        "columns": {"declared": False, "types": {}},
        "fingerprint": "",
        "segments": [],
    }
    analyzer = settings.analyzer if settings else Analyzer.of(FALLBACK_ANALYZER)
    index: Index = provided("index")(State(Path("the index"), manifest, analyzer))
    return index


Advice = Callable[[Part, FontesError], str]
"""Function from a part and what is wrong with it to how to do without the part; "" if there is no advice."""


class Problems:
    """Collects distinct errors; `needs` caches the parts already checked, so that models load once."""

    def __init__(self, needs: dict[str, FontesError | None] | None = None) -> None:
        self.errors: dict[str, tuple[FontesError, str]] = {}
        """The errors, each with advice or "", by message."""
        self.needs = {} if needs is None else needs

    @contextmanager
    def collected(self, advice: str = "") -> Iterator[None]:
        """Collect a Fontes error raised in the block, with the advice."""
        try:
            yield
        except FontesError as error:
            self._add(error, advice)

    def check_part(self, part: Part, advice: Advice = lambda part, error: "") -> None:
        """Collect invalid parameters and missing requirements of a part and its inner parts."""
        for inner in walk(part):
            for check in (inner.check, partial(self._check_needs, inner)):
                try:
                    check()
                except FontesError as error:
                    self._add(error, advice(inner, error))

    def check_systems(
        self,
        title: str,
        systems: Callable[[Collection], Mapping[str, System]],
        advice: Advice = lambda part, error: "",
    ) -> None:
        """Collect the problems of systems over an empty collection; `title` names the experiment in errors."""
        with tempfile.TemporaryDirectory(prefix="fontes-dry-run-") as folder, self.collected():
            by_name = systems(DryRunCollection(folder, self))
            if not by_name:
                raise ParameterError(f"{title} has no system")
            for name, system in by_name.items():
                with self.collected():
                    if not is_inside(f"{name}.run"):
                        raise ParameterError(f"{title}: '{name}' cannot be the name of a system, which is that of a file")
                    if isinstance(system, Stage):
                        system.require(Topics, Run, f"system '{name}' of {title}")
                        self.check_part(system, advice)

    def raise_all(self, title: str) -> None:
        """Raise one error with a sentence per problem, if there are any; `title` names the experiment."""
        errors = [error for error, _ in self.errors.values()]
        messages = [f"{text}; {advice}" if advice else text for text, (_, advice) in self.errors.items()]
        if not errors:
            return
        if len(errors) == 1:
            raise errors[0] if messages[0] in self.errors else type(errors[0])(messages[0])
        kinds = {type(error) for error in errors}
        prefix = f"{title}: "
        numbered = (f"  {number}. {text.removeprefix(prefix)}" for number, text in enumerate(messages, 1))
        lines = [f"{title} cannot be run, for {len(errors)} reasons:", *numbered]
        raise (kinds.pop() if len(kinds) == 1 else InputError).of_lines(lines)

    def _add(self, error: FontesError, advice: str) -> None:
        """Collect an error; of two messages where one begins with the other, the longer is kept."""
        message = str(error)
        if not any(earlier.startswith(message) for earlier in self.errors):
            self.errors = {text: earlier for text, earlier in self.errors.items() if not message.startswith(text)}
            self.errors[message] = error, advice

    def _check_needs(self, part: Part) -> None:
        """Raise the error of a part whose requirements are missing; each part is checked once."""
        # The start of a training needs less than the model of the same name.
        name = f"{type(part).__module__}.{part!r}{getattr(part, 'name_or_path', None)!r}"
        if name not in self.needs:
            try:
                part.check_needs()
                self.needs[name] = None
            except FontesError as error:
                self.needs[name] = error
        if (problem := self.needs[name]) is not None:
            raise problem


class DryRunCollection(Collection):
    """An empty collection for checks; building an index collects the error of an unavailable analyzer."""

    def __init__(self, folder: str | Path, problems: Problems) -> None:
        super().__init__([], folder)
        self._problems = problems

    def index(
        self,
        analyzer: str | Analyzer = "english",
        fields: Sequence[str] = ("title", "text"),
        vectors: str | None = None,
        separate: bool = False,
        positions: bool = False,
    ) -> Index:
        """Return a planned index, with `FALLBACK_ANALYZER` if the analyzer is unavailable."""
        usable: str | Analyzer = FALLBACK_ANALYZER
        with self._problems.collected():
            Analyzer.of(analyzer)("a")  # raises if the library or its model is missing
            usable = analyzer
        return planned_index(IndexSettings.of(usable, fields, vectors, separate=separate, positions=positions))


def is_inside(name: str) -> bool:
    """Whether a "/"-separated path stays inside its starting folder."""
    return bool(name) and "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))

"""Checks before a run that collect all problems and raise them at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ..core import FontesError, InputError, ParameterError, Run, Stage, Topics
from ..core.part import Part, walk
from .collection import Collection

if TYPE_CHECKING:
    from ..index_methods import Index
    from ..text import Analyzer

System = Stage[Topics, Run] | Run | Path
FALLBACK_ANALYZER = "standard"  # needs no library or model


class _AnyName:
    """A set of field names that contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


PLACEHOLDER_INDEX = SimpleNamespace(
    scale=1.0,
    path="",
    positions=None,
    field_statistics=SimpleNamespace(names=_AnyName()),
    leaves=(),
    schema=SimpleNamespace(types={}),
)
"""Placeholder index for checking expressions: it has no documents, and every field."""
PLACEHOLDER_INDEX.state = PLACEHOLDER_INDEX


class Problems:
    """Collects distinct errors; `needs` caches the parts already checked, so that models load once."""

    def __init__(self, needs: dict[str, FontesError | None] | None = None) -> None:
        self.errors: dict[str, FontesError] = {}
        """The errors by message."""
        self.needs = {} if needs is None else needs

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a Fontes error raised in the block."""
        try:
            yield
        except FontesError as error:
            self.add(error)

    def add(self, error: FontesError) -> None:
        """Collect an error; of two messages where one begins with the other, the longer is kept."""
        message = str(error)
        if not any(collected.startswith(message) for collected in self.errors):
            self.errors = {text: earlier for text, earlier in self.errors.items() if not message.startswith(text)}
            self.errors[message] = error

    def check_part(self, part: Part) -> None:
        """Collect invalid parameters and missing requirements of a part and its inner parts."""
        for inner in walk(part):
            with self.collected():
                inner.check()
            with self.collected():
                self._check_needs(inner)

    def check_systems(self, title: str, systems: Callable[[Collection], Mapping[str, System]]) -> None:
        """Collect the problems of systems over an empty collection; `title` names the experiment in errors."""
        with tempfile.TemporaryDirectory(prefix="fontes-rehearsal-") as folder, self.collected():
            by_name = systems(Rehearsal(folder, self))
            if not by_name:
                raise ParameterError(f"{title} has no system")
            for name, system in by_name.items():
                with self.collected():
                    if not is_inside(f"{name}.run"):
                        raise ParameterError(f"{title}: '{name}' cannot be the name of a system, which is that of a file")
                    if isinstance(system, Stage):
                        system.require(Topics, Run, f"system '{name}' of {title}")
                        self.check_part(system)

    def raise_all(self, title: str, advice: Mapping[str, str] | None = None) -> None:
        """Raise one error with a sentence per problem, if there are any.

        Args:
            title: Name of the experiment in the message.
            advice: How to avoid an error, by its message.
        """
        advice = advice or {}
        messages = [text + (f"; {advice[text]}" if text in advice else "") for text in self.errors]
        errors = list(self.errors.values())
        if not errors:
            return
        if len(errors) == 1:
            raise errors[0] if messages[0] in self.errors else type(errors[0])(messages[0])
        kinds = {type(error) for error in errors}
        prefix = f"{title}: "
        numbered = (f"  {number}. {text.removeprefix(prefix)}" for number, text in enumerate(messages, 1))
        lines = [f"{title} cannot be run, for {len(errors)} reasons:", *numbered]
        raise (kinds.pop() if len(kinds) == 1 else InputError).of_lines(lines)

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


class Rehearsal(Collection):
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
        """Return an empty index, with `FALLBACK_ANALYZER` if the analyzer is unavailable."""
        from ..text import Analyzer

        usable: str | Analyzer = FALLBACK_ANALYZER
        with self._problems.collected():
            Analyzer.of(analyzer)("a")  # raises if the library or its model is missing
            usable = analyzer
        index = super().index(usable, fields, vectors, separate, positions)
        index.state.path = Path("the index")  # in errors
        return index


def is_inside(name: str) -> bool:
    """Whether a "/"-separated path stays inside its starting folder."""
    return bool(name) and "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))

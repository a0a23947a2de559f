"""Problems of a run, looked for before anything is built or encoded, and raised at once."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ..core import FontesError, InputError, ParameterError, Run, Stage, Topics
from ..core.part import Part, walk
from .collection import Collection

if TYPE_CHECKING:
    from ..index import Index
    from ..text import Analyzer

System = Stage[Topics, Run] | Run | Path
NOTHING = SimpleNamespace(scale=1.0, path="")  # stands for the index, of vectors or not, where expressions are only looked at
WITHOUT_ALL = "Without all of that: "
PLAIN = "standard"  # an analyzer that needs nothing


def as_options(settings: Iterable[str]) -> str:
    """Settings of a recipe as on the command line."""
    return " ".join(f"-s {shlex.quote(setting)}" for setting in settings)


class Problems:
    """Collects errors, each once; `needs` are the parts looked for before, so that nobody waits for a model twice."""

    def __init__(self, needs: dict[str, FontesError | None] | None = None) -> None:
        self.errors: dict[str, FontesError] = {}
        """The errors by what they say."""
        self.needs = {} if needs is None else needs

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keeps an error of Fontes that is raised inside."""
        try:
            yield
        except FontesError as error:
            self.add(error)

    def add(self, error: FontesError) -> None:
        """Collects an error; of two of which one says what the other does and more, that one."""
        text = str(error)
        if not any(known.startswith(text) for known in self.errors):
            self.errors = {known: one for known, one in self.errors.items() if not text.startswith(known)}
            self.errors[text] = error

    def look_at(self, part: Part) -> None:
        """Collects what is wrong with the parameters of a part and of those inside it, and what they need and is not here."""
        for one in walk(part):
            with self.collected():
                one.check()
            with self.collected():
                self._look_for_needs(one)

    def look_at_systems(self, title: str, systems: Callable[[Collection], Mapping[str, System]]) -> None:
        """Collects the problems of systems made over a collection without documents; `title` names them in errors."""
        with tempfile.TemporaryDirectory(prefix="fontes-rehearsal-") as place, self.collected():
            named = systems(Rehearsal(place, self))
            if not named:
                raise ParameterError(f"{title} has no system")
            for name, system in named.items():
                with self.collected():
                    if not is_inside(f"{name}.run"):
                        raise ParameterError(f"{title}: '{name}' cannot be the name of a system, which is that of a file")
                    if isinstance(system, Stage):
                        system.require(Topics, Run, f"system '{name}' of {title}")
                        self.look_at(system)

    def raise_all(self, title: str, ways: Mapping[str, str] | None = None, settings: tuple[str, ...] = ()) -> None:
        """Raises one error with a sentence for each problem; nothing where there is none.

        Args:
            title: The name of what cannot be run.
            ways: By the text of an error, settings without it.
            settings: Settings without all of them, which the error carries.
        """
        ways = ways or {}
        said = [text + (f"; {ways[text]}" if text in ways else "") for text in self.errors]
        errors = list(self.errors.values())
        if not errors:
            return
        if len(errors) == 1:
            error = errors[0] if said[0] in self.errors else type(errors[0])(said[0])
        else:
            kinds = {type(error) for error in errors}
            prefix = f"{title}: "
            numbered = (f"  {number}. {text.removeprefix(prefix)}" for number, text in enumerate(said, 1))
            last = [f"{WITHOUT_ALL}{as_options(settings)}"] if settings else []
            lines = [f"{title} cannot be run, for {len(errors)} reasons:", *numbered, *last]
            error = (kinds.pop() if len(kinds) == 1 else InputError).of_lines(lines)
        error.settings = settings
        raise error

    def _look_for_needs(self, part: Part) -> None:
        # The start of a training needs less than the model of the same name.
        name = f"{type(part).__module__}.{part!r}{getattr(part, 'name_or_path', None)!r}"
        if name not in self.needs:
            try:
                part.check_needs()
                self.needs[name] = None
            except FontesError as error:
                self.needs[name] = error
        if (known := self.needs[name]) is not None:
            raise known


class Rehearsal(Collection):
    """A collection without documents, whose indexes collect what their analyzers lack."""

    def __init__(self, folder: str | Path, problems: Problems) -> None:
        super().__init__([], folder)
        self._problems = problems

    def index(
        self, analyzer: str | Analyzer = "english", fields: Sequence[str] = ("title", "text"), vectors: str | None = None
    ) -> Index:
        """An index without documents; where the analyzer cannot be had, one by another."""
        from ..text import Analyzer

        usable: str | Analyzer = PLAIN
        with self._problems.collected():
            Analyzer.of(analyzer)("a")  # raises where the library or its model is not there
            usable = analyzer
        return super().index(usable, fields, vectors)


def is_inside(name: str) -> bool:
    """Whether a path, its parts joined by "/", stays in the folder that it starts from."""
    return bool(name) and "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))

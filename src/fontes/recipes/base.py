"""`Recipe`: a published system with its parameters, run on a collection into a folder of runs and a report."""

from __future__ import annotations

import dataclasses
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from ..comparison import Report
from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..experiments import compare
from ..experiments.cache import Cache, topic_facts
from ..experiments.indexes import Tell
from ..experiments.systems import Made, Searches
from ..formats import read_qrels, read_topics, write_run
from ..measures import Measure, parse
from ..storage.files import write
from ..storage.hashes import hash_json
from .collection import Collection
from .folder import SUMMARY, alone, is_inside, replacing
from .result import FORMS, RecipeResult


@dataclass(frozen=True)
class Recipe(ABC):
    """A published system: its parts as parameters, with the published values as defaults, and the runs that it consists of.

    A recipe is a frozen dataclass whose constructor does nothing but store parameters. It says in `systems` how each of its
    runs is made.
    """

    name: ClassVar[str]
    """By which `fontes.recipe` finds it."""
    source: ClassVar[str]
    """Where it was published."""
    measures: ClassVar[tuple[str, ...]]
    """What it is measured by."""
    baseline: ClassVar[str | None] = None
    """The system that the others are tested against; None: all pairs are tested."""
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {}
    """System, measure, value, as they were published."""
    published_on: ClassVar[str] = ""
    """The topics and documents of the published values."""

    @abstractmethod
    def systems(self, collection: Collection) -> dict[str, Stage[Topics, Run]]:
        """The systems by name, each from topics to a run; a run's file is called by its name, folders included.

        Parameters and models are looked at first, and then indexes are built, so that what cannot be is found at once.
        """

    def check(self, topics: Topics) -> None:  # noqa: B027  (most recipes need nothing of their topics)
        """Raises InputError where topics lack what the recipe needs."""

    def measured(self, system: str) -> bool:
        """Whether the documents of a system are those that are judged; its run is compared with others if so."""
        return True

    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def with_(self, **changes: Any) -> Self:
        """A copy with other parameters. Raises ParameterError for a name that is none."""
        known = self.params()
        for key in changes:
            if key not in known:
                raise ParameterError(f"recipe {self.name} has no parameter '{key}'; it has {', '.join(known)}")
        return dataclasses.replace(self, **changes)

    def set(self, settings: Iterable[str]) -> Self:
        """A copy with parameters given as text, "NAME=VALUE", such as "k1=1.2" or "reranker=none".

        Raises ParameterError for a name that is none, and for a value of another type than the parameter.
        """
        changes = {}
        for setting in settings:
            key, sign, text = setting.partition("=")
            if not sign:
                raise ParameterError(f"'{setting}' does not set a parameter; write NAME=VALUE, such as depth=100")
            changes[key.strip()] = self._parsed(key.strip(), text.strip())
        return self.with_(**changes)

    def build(self, collection: object, folder: str | Path, tell: Tell | None = None) -> dict[str, Stage[Topics, Run]]:
        """The systems over a collection, whose indexes are built in `folder`, or found there; for `compare`, or to search.

        collection  the path of a corpus, an `Index`, a `Dataset`, or any documents
        """
        return self.systems(Collection(collection, Path(folder), tell))

    def run(
        self,
        collection: object,
        topics: object,
        qrels: object = None,
        output: str | Path = "results",
        *,
        measures: Iterable[str | Measure] | None = None,
        tell: Tell | None = None,
        moving: Tell | None = None,
    ) -> RecipeResult:
        """Runs all systems, and with judgments measures and compares them.

        collection  the path of a corpus, an `Index`, a `Dataset`, or any documents
        topics      all that `Topics.of` accepts, or the path of a file
        qrels       all that `Qrels.of` accepts, or the path of a file; None: nothing is measured
        output      a folder: runs/NAME.run; report.md, .json and .html with judgments; recipe.md, the parameters and what was
                    published beside what was found; recipe.json, the same with versions and hashes of the data; and, to be
                    used again by the next run into it, indexes/ and cache/
        measures    in place of those of the recipe
        tell        called with a line about each step
        moving      called, again and again, with a line about how far a long step is; None: `tell` is, every ten seconds

        What was found before a run was interrupted is found again. Results are written when all is done, and replace earlier
        ones; recipe.json is the last of them: a folder that has it is complete. Raises InputError and ParameterError for what
        cannot be used.
        """
        start = time.perf_counter()
        asked = read_topics(os.fspath(topics)) if isinstance(topics, (str, os.PathLike)) else Topics.of(topics)
        judged = _judgments(qrels)
        measured = [parse(measure) for measure in measures or self.measures]
        self._check_topics(asked, judged)
        folder = Path(output)
        given = Collection(collection, folder / "indexes", tell, moving)
        with alone(folder):
            made = self._made(self.systems(given), asked, folder, given)
            report = None if judged is None else self._report(made, asked, judged, measured)
            data = {"documents": given.hash, "topics": hash_json([topic_facts(topic) for topic in asked.values()])}
            runs = {name: m.run for name, m in made.items()}
            result = RecipeResult(self, runs, report, folder, {name: m.seconds for name, m in made.items()}, data)
            files = [*(f"runs/{name}.run" for name in runs), *(f"report.{form}" for form in FORMS if report), "recipe.md"]
            with replacing(folder, files, result.to_dict()):
                _write(result)
        others = [file for file in files if not file.startswith("runs/")]
        given.tell(
            f"{folder}: {', '.join([*others, SUMMARY])}, runs of {len(runs)} systems; {time.perf_counter() - start:.1f} s"
        )
        return result

    def _check_topics(self, topics: Topics, qrels: Qrels | None) -> None:
        if not topics:
            raise InputError("there are no topics to run the recipe on")
        if qrels is not None and not set(topics) & set(qrels):
            first, judged = next(iter(topics)), next(iter(qrels))
            raise InputError(f"no topic has judgments: the first topic is '{first}', the first of the qrels '{judged}'")
        self.check(topics)

    def _made(
        self, systems: Mapping[str, Stage[Topics, Run]], topics: Topics, folder: Path, collection: Collection
    ) -> dict[str, Made]:
        for name, stage in systems.items():
            stage.require(Topics, Run, f"system '{name}' of recipe {self.name}")
            if not is_inside(f"{name}.run"):
                raise ParameterError(f"recipe {self.name}: '{name}' cannot be the name of a system, which is that of a file")
        cache = Cache(folder / "cache")
        searches = Searches(topics, cache, collection.tell, collection.tell.progress("reranking", "pairs"))
        made = {}
        for name, stage in systems.items():
            made[name] = searches.made(stage)
            collection.tell(f"{name}: {made[name].run.rows:,} documents for {len(topics):,} topics{_cost(made[name])}")
        cache.trim()
        return made

    def _report(self, made: dict[str, Made], topics: Topics, qrels: Qrels, measures: list[Measure]) -> Report:
        compared = {name: m for name, m in made.items() if self.measured(name)}
        baseline = self.baseline if self.baseline in compared else None
        return compare(compared, topics, qrels, measures, baseline=baseline, cache=False)

    def _parsed(self, name: str, text: str) -> Any:
        if name not in self.params():
            self.with_(**{name: text})  # says which there are
        field = next(f for f in dataclasses.fields(self) if f.name == name)
        types = str(field.type)
        if text.lower() == "none" and "None" in types:
            return None
        value = self.params()[name]
        try:
            if isinstance(value, bool):
                return {"true": True, "false": False}[text.lower()]
            if isinstance(value, int) or (value is None and "int" in types):
                return int(text)
            if isinstance(value, float) or (value is None and "float" in types):
                return float(text)
        except (KeyError, ValueError):
            kind = "true or false" if isinstance(value, bool) else "a whole number" if isinstance(value, int) else "a number"
            raise ParameterError(f"recipe {self.name}: {name} must be {kind}, not '{text}'") from None
        if "str" not in types:
            raise ParameterError(f"recipe {self.name}: {name} is a stage ({types}); it can be given in Python alone")
        return text


def _write(result: RecipeResult) -> None:
    for name, run in result.runs.items():
        path = result.folder / "runs" / f"{name}.run"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_run(run, path, tag=name.rpartition("/")[2])
    if result.report is not None:
        for form in FORMS:
            result.report.save(result.folder / f"report.{form}")
    write(result.folder / "recipe.md", [result.to_markdown().encode()])


def _judgments(given: object) -> Qrels | None:
    if given is None:
        return None
    judged = read_qrels(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else Qrels.of(given)
    if not judged:
        raise InputError("the qrels hold no judgments")
    return judged


def _cost(made: Made) -> str:
    if made.cached:
        return ", found before"
    return "" if made.seconds is None else f", {made.seconds:.2f} s"

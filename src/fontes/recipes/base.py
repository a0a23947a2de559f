"""`Recipe`: a published system with its parameters, run on a collection into a folder of runs and a report."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..data import read_qrels, read_topics, write_run
from ..data.files import write
from ..evaluation import Report, compare
from ..evaluation.cache import Cache, digest, topic_facts
from ..evaluation.experiment_lock import of_machine, of_versions
from ..evaluation.indexes import Tell
from ..evaluation.systems import Made, Searches
from .collection import Collection

SUMMARY = "recipe.json"
FORMS = ("md", "json", "html")


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
    """System, measure, value, as they were published, on the data they were published for."""

    @abstractmethod
    def systems(self, collection: Collection) -> dict[str, Stage[Topics, Run]]:
        """The systems by name, each from topics to a run; a run's file is called by its name, folders included."""

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
        measures: Iterable[str] | None = None,
        tell: Tell | None = None,
    ) -> Served:
        """Runs all systems, and with judgments measures and compares them.

        collection  the path of a corpus, an `Index`, a `Dataset`, or any documents
        topics      all that `Topics.of` accepts, or the path of a file
        qrels       all that `Qrels.of` accepts, or the path of a file; None: nothing is measured
        output      a folder: runs/NAME.run, report.md, .json and .html with judgments, recipe.json, and, to be used again by
                    the next run into it, indexes/ and cache/
        measures    in place of those of the recipe
        tell        called with a line about each step

        What was found before a run was interrupted is found again. `recipe.json`, with parameters, versions, hashes of the data
        and numbers, is written last: a folder that has it is complete. Raises InputError and ParameterError for what cannot be
        used.
        """
        say = tell or (lambda line: None)
        start = time.perf_counter()
        folder = _folder(Path(output))
        asked = read_topics(os.fspath(topics)) if isinstance(topics, (str, os.PathLike)) else Topics.of(topics)
        judged = _judgments(qrels)
        if not asked:
            raise InputError("there are no topics to run the recipe on")
        self.check(asked)
        (folder / SUMMARY).unlink(missing_ok=True)
        given = Collection(collection, folder / "indexes", say)
        made = self._made(given, asked, folder, say)
        report = None
        if judged is not None:
            report = self._report(made, asked, judged, measures)
            for form in FORMS:
                report.save(folder / f"report.{form}")
        runs = {name: m.run for name, m in made.items()}
        served = Served(self, runs, report, folder, {name: m.seconds for name, m in made.items()})
        summary = {**served.to_dict(), "documents": given.hash, "topics": _hash_of_topics(asked)}
        write(folder / SUMMARY, [(json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode()])
        say(f"{folder}: {SUMMARY}, {', '.join([f'report.{form}' for form in FORMS] if report else [])}".rstrip(", "))
        say(f"{time.perf_counter() - start:.1f} s")
        return served

    def _made(self, collection: Collection, topics: Topics, folder: Path, say: Tell) -> dict[str, Made]:
        cache = Cache(folder / "cache")
        searches = Searches(topics, cache, say)
        made = {}
        for name, stage in self.systems(collection).items():
            made[name] = searches.made(stage)
            path = folder / "runs" / f"{name}.run"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_run(made[name].run, path, tag=name.rpartition("/")[2])
            say(f"{path}: {made[name].run.rows:,} documents for {len(topics):,} topics{_cost(made[name], len(topics))}")
        cache.trim()
        return made

    def _report(self, made: dict[str, Made], topics: Topics, qrels: Qrels, measures: Iterable[str] | None) -> Report:
        compared = {name: m for name, m in made.items() if self.measured(name)}
        baseline = self.baseline if self.baseline in compared else None
        return compare(compared, topics, qrels, list(measures or self.measures), baseline=baseline, cache=False)

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


@dataclass(frozen=True)
class Served:
    """What a recipe gave.

    runs     by the name of the system
    report   the systems that are measured, compared; None without judgments
    folder   where all of it was written
    seconds  by the name of the system: of all its steps together, searched now or earlier
    """

    recipe: Recipe
    runs: Mapping[str, Run]
    report: Report | None
    folder: Path
    seconds: Mapping[str, float | None]

    def published(self) -> list[dict[str, Any]]:
        """For each system and measure that was published: the value here, where it was measured, and the published one."""
        rows = []
        for system, values in self.recipe.published.items():
            for measure, value in values.items():
                known = self.report is not None and system in self.report.systems
                known = known and any(str(m) == measure for m in self.report.measures)  # type: ignore[union-attr]
                here = self.report.mean(system, measure) if known and self.report is not None else None
                rows.append({"system": system, "measure": measure, "here": here, "published": value})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """All of it but the runs and the topics, as JSON values."""
        return {
            "recipe": self.recipe.name,
            "source": self.recipe.source,
            "parameters": {name: shown(value) for name, value in self.recipe.params().items()},
            "systems": {
                name: {
                    "file": f"runs/{name}.run",
                    "documents": run.rows,
                    "stages": str(run.provenance.get("system", "")),
                    "seconds": self.seconds[name],
                    "measures": self._measures(name),
                }
                for name, run in self.runs.items()
            },
            "published": self.published(),
            "versions": of_versions(),
            "hardware": of_machine(),
        }

    def __str__(self) -> str:
        parts = [] if self.report is None else [str(self.report)]
        rows = [row for row in self.published() if row["here"] is not None]
        if rows:
            width = max(len(row["system"]) for row in rows)
            lines = [f"{row['system']:<{width}}  {row['measure']:<8} {row['here']:.4f}  {row['published']:.4f}" for row in rows]
            head = f"{'system':<{width}}  {'measure':<8} {'here':<6}  published (on other data)"
            parts.append("\n".join([head, *lines]))
        return "\n\n".join(parts) or f"{len(self.runs)} runs in {self.folder / 'runs'}"

    def _measures(self, name: str) -> dict[str, float]:
        if self.report is None or name not in self.report.systems:
            return {}
        return {str(measure): self.report.mean(name, measure) for measure in self.report.measures}


def shown(value: Any) -> Any:
    """A parameter as JSON: numbers and strings as they are, anything else as it prints."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made a folder ({error.strerror or error}); give another one") from None
    return path


def _judgments(given: object) -> Qrels | None:
    if given is None:
        return None
    judged = read_qrels(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else Qrels.of(given)
    if not judged:
        raise InputError("the qrels hold no judgments")
    return judged


def _hash_of_topics(topics: Topics) -> str:
    return digest([topic_facts(topic) for topic in topics.values()])


def _cost(made: Made, topics: int) -> str:
    if made.cached:
        return ", found before"
    return "" if made.seconds is None or not topics else f", {made.seconds / topics:.4f} s a topic"

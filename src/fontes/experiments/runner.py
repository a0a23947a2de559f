"""Runner of experiments, for files and recipes: runs, measures and compares systems, and writes a folder of results."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ..comparison import Report, SystemRun, Testing, compare_runs
from ..comparison.testing import check_rows
from ..core import InputError, Qrels, Run, Stage, Topics
from ..core.answers import sums_of
from ..core.part import Part, indexes_of
from ..core.work import Progress, cluster, reporter, work
from ..formats import write_run
from ..formats.json_text import json_text
from ..measures import Measure
from ..plots.tables import SUFFIXES
from ..storage.files import links_in, write
from ..storage.hashes import hash_json
from ..storage.system import locked
from .collection import Collection
from .metadata import measuring
from .problems import System, is_inside
from .provenance import hash_of, lock_of
from .systems import Cache, Searches

S = TypeVar("S", bound=System)
FORMS = ("md", "json", "html")  # default formats of the report


@dataclass(frozen=True)
class RunPlan:
    """An experiment to run.

    Args:
        title: Name in messages.
        systems: Returns the systems by name: stages over indexes of the collection, runs, or run files.
        documents: The documents; None if no system builds an index. Their folder is ignored.
        topics: The topics; None if no system searches.
        qrels: The judgments; None if nothing is measured.
        measures: The measures.
        measured: Whether a system, by its name, ranks the judged documents and is compared.
        baseline: The baseline of the tests; None tests all pairs.
        machine: Labels by a machine, which the judgments correct; None if there are none.
        testing: The test of differences.
        settings: The parameters in the lock, as JSON values.
        data: SHA-256 and file of each piece of data in the lock, by its use.
        indexes: The folder of indexes; None for `indexes` in the folder of results.
        forms: Formats of the report.
        pages: Returns the text of further pages by file name.
        measurements: Whether tirex-tracker measures time, memory and energy for the lock.
        allow_equal: Whether systems may have equal runs, as those whose parameters are chosen from data.
    """

    title: str
    systems: Callable[[Collection], Mapping[str, System]]
    documents: Collection | None
    topics: Topics | None
    qrels: Qrels | None
    measures: tuple[Measure, ...]
    measured: Callable[[str], bool] = field(default=lambda name: True)
    baseline: str | None = None
    machine: Qrels | None = None
    testing: Testing = field(default_factory=Testing)
    settings: Mapping[str, object] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)
    indexes: Path | None = None
    forms: tuple[str, ...] = FORMS
    pages: Callable[[Results], Mapping[str, str]] = field(default=lambda results: {})
    measurements: bool = False
    allow_equal: bool = False


@dataclass(frozen=True)
class Results:
    """Results of a plan.

    Args:
        folder: The folder of results.
        systems: Run and origin of each system, by name.
        report: The comparison of the measured systems; None without judgments.
        files: The files of the folder, without the lock.
        lock: The lock; empty while pages are made.
        prepared: Seconds of preparing each system, encoding above all, in the run that did it; what an earlier system has
            prepared costs nothing.
    """

    folder: Path
    systems: Mapping[str, SystemRun]
    report: Report | None
    files: tuple[str, ...] = ()
    lock: Mapping[str, Any] = field(default_factory=dict)
    prepared: Mapping[str, float] = field(default_factory=dict)

    @property
    def runs(self) -> dict[str, Run]:
        """Runs by system name."""
        return {name: system.run for name, system in self.systems.items()}

    @property
    def summary(self) -> str:
        """One-line summary of what was written."""
        reports = [file for file in self.files if not file.startswith("runs/")]
        count = len(self.systems)
        return f"{self.folder}: {', '.join([*reports, LOCK])}, runs of {count} system{'s' * (count != 1)}"


def run(plan: RunPlan, folder: Path) -> Results:
    """Run all systems of a plan into a folder: runs/NAME.run, the report, the plan's pages, and the lock.

    Check a plan with `Problems` first. The next run reuses `indexes` and `cache` in the folder. Results replace earlier ones
    when all systems have run; the lock is written last, so a folder with a lock is complete.

    Raises:
        InputError: An input or the folder cannot be used.
        ParameterError: A parameter is invalid.
    """
    documents = plan.documents or Collection([], folder)
    with exclusive(folder):
        with measuring(plan.measurements) as measurements:
            with work(ray=False):  # the workers of a cluster cannot read every collection
                systems = reproducible(plan.systems(documents.at(plan.indexes or folder / "indexes")))
            actors = cluster()
            with nullcontext() if actors is None else actors.joined_here("the experiment"):
                prepared = _prepare(plan, systems, folder / "cache" / PREPARED)
                runs = _run_systems(plan, systems, Cache(folder / "cache"))
        results = Results(folder, runs, _compare(plan, runs), prepared=prepared)
        return _write_results(plan, systems, results, measurements)


def reproducible(systems: Mapping[str, S]) -> dict[str, S]:
    """Return the systems with float32 for models that leave their precision open.

    The fastest precision, and with it the scores, depends on the machine.
    """
    replaced: dict[int, tuple[Part, Part]] = {}

    def in_float32(part: Part) -> Part:
        return part.with_(precision="float32") if part.params().get("precision") == "auto" else part

    return {name: system.map(in_float32, replaced) if isinstance(system, Stage) else system for name, system in systems.items()}


def _prepare(plan: RunPlan, systems: Mapping[str, System], file: Path) -> dict[str, float]:
    """Build all missing vectors; return the seconds of each system, kept in a file for later runs that find the vectors."""
    stages = {name: system for name, system in systems.items() if isinstance(system, Stage)}
    if any(not len(index) for stage in stages.values() for index in indexes_of(stage).values()):
        raise InputError(f"there are no documents to run {plan.title} on")
    try:
        earlier: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        earlier = {}
    seconds, kept = {}, dict(earlier)
    for name, stage in stages.items():
        start = time.perf_counter()
        stage.prepare()
        elapsed, key = time.perf_counter() - start, hash_json([stage.key() or name])
        seconds[name] = kept[key] = max(elapsed, earlier.get(key, 0.0))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, kept)
    return seconds


def _run_systems(plan: RunPlan, systems: Mapping[str, System], cache: Cache) -> dict[str, SystemRun]:
    report = reporter()
    searches = Searches(plan.topics or Topics(), cache)
    runs = {}
    for name, system in systems.items():
        result = runs[name] = searches.of(name, system)
        rows, topics = result.run.rows, len(result.run.topics)
        note = f"{topics:,} topic{'s' * (topics != 1)}{', from the cache' * result.cached}"
        report(Progress(name, rows, rows, result.seconds or 0.0, note=note))
    cache.trim()
    return runs


def _compare(plan: RunPlan, runs: Mapping[str, SystemRun]) -> Report | None:
    if plan.qrels is None:
        return None
    measured = {name: run for name, run in runs.items() if plan.measured(name)}
    baseline = plan.baseline if plan.baseline in measured else None
    testing = plan.testing
    if plan.allow_equal and not testing.allow_empty:
        check_rows({name: system.run for name, system in measured.items()}, allow_equal=True)
        testing = replace(testing, allow_empty=True)
    return compare_runs(
        measured,
        plan.qrels,
        plan.measures,
        topics=plan.topics,
        baseline=baseline,
        testing=testing,
        machine=plan.machine,
    )


def _write_results(
    plan: RunPlan, systems: Mapping[str, System], results: Results, measurements: Mapping[str, object]
) -> Results:
    folder, report = results.folder, results.report
    runs = {name: f"runs/{name}.run" for name in results.systems}
    reports = [f"report.{form}" for form in plan.forms] if report is not None else []
    pages = plan.pages(results)
    files = [*runs.values(), *reports, *pages]
    with replacing_results(folder, files) as finish:
        for name, file in runs.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            write_run(results.systems[name].run, path, tag=name.rpartition("/")[2])
        for file in reports:
            assert report is not None
            report.save(folder / file)
        for file, text in pages.items():
            write(folder / file, [text.encode()])
        stages = {name: system for name, system in systems.items() if isinstance(system, Stage)}
        facts = {name: _run_facts(results.systems[name].run, folder / file, name) for name, file in runs.items()}
        topics = len(report.topics) if report is not None else len(plan.topics or ())
        lock = lock_of(plan.settings, plan.data, stages, facts, report, topics)
        lock["seed"] = plan.testing.seed
        answers = {name: sums for name, run in results.runs.items() if (sums := sums_of(run.provenance))}
        if answers:
            lock["answers"] = answers
        if measurements:
            lock["measurements"] = dict(measurements)
        finish(lock)
    return replace(results, files=tuple(files), lock=lock)


def _run_facts(run: Run, path: Path, name: str) -> dict[str, object]:
    """Return the facts of a run for the lock, with the number and hash of the answers of language models, if any."""
    sums = sums_of(run.provenance)
    answers = {"answers": {"number": len(sums), "sha256": hash_json(sums)}} if sums else {}
    return {"run": hash_of(path, name), "documents": run.rows, **answers}


LOCK = "experiment.lock"
PREPARED = "prepared.json"  # in the folder of cached runs
UNFINISHED = "unfinished.json"  # lists the files being written, so that the next run can remove stale files
PAGES = (*(f"report{suffix}" for suffix in SUFFIXES), "recipe.md", "recipe.svg")
FOLDERS = ("runs", "indexes", "cache", "models")
RUN_FILE = re.compile(r"runs/.+\.run", re.DOTALL)


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Create the folder and hold it exclusively while the block runs.

    Raises:
        InputError: Another process holds the folder, it cannot be written, or it holds other results.
    """
    busy = InputError(f"{folder}: another process writes results into this folder; wait, or give another one")
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, busy))
        except OSError as error:
            raise InputError(f"{folder}: cannot be made a folder ({error.strerror or error}); give another one") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder}: nothing can be written there (Permission denied); give another folder")
        foreign = [name for name in ("runs", *PAGES) if (folder / name).exists()]
        if foreign and not (folder / LOCK).is_file() and not (folder / UNFINISHED).is_file():
            raise InputError(f"{folder}: holds results that are not of Fontes ({', '.join(foreign)}); give another folder")
        if link := next(_links(folder), None):
            raise InputError(f"{folder}: {link.relative_to(folder)} is a link, which may lead anywhere; give another folder")
        yield


@contextlib.contextmanager
def replacing_results(folder: Path, files: list[str]) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Replace the files of earlier runs with those that the block writes.

    If the process is killed in the block, the folder has no lock, and a list of the files lets the next run remove them.

    Yields:
        A function that writes the lock, the last file.
    """
    earlier = {*PAGES, *_result_files(folder / LOCK), *_result_files(folder / UNFINISHED)}
    write_json(folder / UNFINISHED, {"files": sorted(earlier | set(files))})
    (folder / LOCK).unlink(missing_ok=True)
    for name in earlier - set(files):
        path = folder / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # succeeds only if empty

    def finish(lock: Mapping[str, object]) -> None:
        write_json(folder / LOCK, {**lock, "files": files})
        (folder / UNFINISHED).unlink()

    yield finish


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write JSON with sorted keys."""
    write(path, [(json_text(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()])


def _links(folder: Path) -> Iterator[Path]:
    """Yield symbolic links among the result files of a folder, which another user may have made."""
    for name in (LOCK, UNFINISHED, *PAGES, *FOLDERS):
        yield from links_in(folder / name)


def _result_files(path: Path) -> list[str]:
    """Return the result files that a lock or a list names; none if it is missing or damaged."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["files"]
        return [name for name in names if isinstance(name, str) and _is_result_file(name)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _is_result_file(name: str) -> bool:
    return is_inside(name) and (name in PAGES or RUN_FILE.fullmatch(name) is not None)

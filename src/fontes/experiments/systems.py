"""`compare`, and the runs of its systems: each pipeline prefix is run once, and cached."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..comparison import Report, SystemRun, Testing, compare_runs
from ..comparison.report import both_labels, labels_of
from ..core import InputError, ParameterError, Pipeline, PipelineError, Run, Stage, Strings, Topic, Topics, Turn
from ..core.checks import hinted
from ..core.part import Names, indexes_of, walk
from ..core.stage import AnyStage, Cut, Ranker, Scaled, Sum, steps as steps_of
from ..core.values import Documents
from ..core.work import Progress, ProgressCallback, cluster, reporter
from ..fusion import Fusion
from ..measures.evaluation import AnyQrels, AnyTopics, judgments_of
from ..measures.measure import Measure
from ..measures.names import DEFAULT, parse_all
from ..storage.caches import DiskCache
from ..storage.compression import ENDINGS
from ..storage.files import write
from ..storage.hashes import hash_json
from .provenance import hash_of_topics, installed, processor, topic_facts

MAX_BYTES = 2 << 30  # of a cache; the least recently used runs are deleted first
LAYOUT = 1  # version of the file format
CACHE_FILE = re.compile(r"\.?[0-9a-f]{64}\.npz(\..+\.tmp)?")  # runs, and temporary files of killed processes
DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, IndexError, MemoryError, OverflowError, struct.error),
    *(RecursionError, NotImplementedError, zipfile.BadZipFile, zlib.error),
)


@hinted
def compare(
    systems: Mapping[str, object] | Iterable[object],
    topics: AnyTopics | None,
    qrels: AnyQrels,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    allow_empty: bool = False,
    cache: bool | str | os.PathLike[str] = True,
    machine: AnyQrels | None = None,
) -> Report:
    """Run and measure systems, and test whether their differences are more than chance.

    A prefix shared by several pipelines runs once. Values are over the given topics that are judged, where a topic without
    results counts 0; without `topics` they are over all judged topics, as for `evaluate`.

    Args:
        systems: Stages, runs (anything that `Run.of` accepts) or run files: a mapping by name, or a list, where a file is named
            by its stem and a stage by its text.
        topics: Anything that `Topics.of` accepts, or a path: the topics to run stages on and to measure, of which those without
            judgments are left out. None if no system is a stage: all judged topics are measured.
        qrels: Anything that `Qrels.of` accepts, or a path.
        measures: As for `evaluate`.
        baseline: The system that the others are tested against; None tests all pairs.
        test: "t" (paired), "wilcoxon", "fisher" (randomisation), each two-sided, or "tukey" (HSD, topics as blocks).
        correction: "holm", "bonferroni", "bh" (Benjamini-Hochberg) or "none", over the tests of one measure;
            "tukey" corrects by itself.
        alpha: Greatest corrected p that is significant; intervals cover 1 - alpha.
        seed: Seed of randomisation (100,000 permutations) and bootstrap (10,000 resamples).
        allow_empty: Whether to compare runs without any row, and runs with the same rows, whose difference is empty.
        cache: Whether to cache the runs of stages and prefixes on disk: True for the user's cache folder, a path for another,
            False for none. `Stage.key` says which runs can be cached.
        machine: Labels by a machine of these topics and more, which the judgments correct, as for `evaluate`; the test must
            then be "t", and intervals use the t distribution. Stages run on all labelled topics.

    Raises:
        InputError: A file or a value cannot be read, there are no judgments, machine labels do not go with them, or a run has
            no rows or the same rows as another and `allow_empty` is False.
        ParameterError: A name is unknown, or a number out of range.
        PipelineError: A stage does not go from topics to a run.
    """
    by_name = named(systems)
    parsed = parse_all(measures)
    testing = Testing(test, correction, alpha, seed, allow_empty)
    baseline_name = None if baseline is None else _baseline_name(baseline, list(by_name))
    judgments, labels = judgments_of(qrels, parsed), None if machine is None else judgments_of(machine)
    all_topics = None if topics is None else Topics.read(topics)
    searched = None if all_topics is None else all_topics.judged({**judgments, **(labels or {})})
    if labels is not None:  # checked before anything runs
        measured, machine_labels = (judgments, labels) if searched is None else labels_of(searched, judgments, labels)
        both_labels(measured, machine_labels, parsed, testing)
    runs = run_all(by_name, searched, Cache.of(cache))
    return compare_runs(
        runs,
        judgments,
        parsed,
        topics=all_topics,
        baseline=baseline_name,
        testing=testing,
        machine=labels,
    )


def _baseline_name(baseline: object, names: list[str]) -> str:
    """Return the name of the baseline, which may be given as the path of its file."""
    for name in (baseline, stem(baseline)) if isinstance(baseline, (str, os.PathLike)) else ():
        if name in names:
            return str(name)
    raise ParameterError(f"the baseline '{baseline}' is none of the systems; there are {', '.join(names)}")


class Cache:
    """A folder of runs, one .npz file each (no pickle), named by a hash of everything that the run depends on.

    A damaged file counts as missing and is written again. Writes are atomic, so processes may share a folder.
    """

    def __init__(self, folder: str | Path | None = None, limit: int = MAX_BYTES) -> None:
        """Open a cache, by default `runs` in the user's cache folder; it need not exist yet. `limit` is in bytes."""
        self._is_user_cache = folder is None
        self._disk = DiskCache("runs", limit, "[0-9a-f][0-9a-f]/*", None if folder is None else Path(folder))
        self.folder = self._disk.folder
        self._has_new_runs = False

    @classmethod
    def of(cls, value: bool | str | os.PathLike[str]) -> Cache | None:
        """Return the user's cache for True, the cache in a folder for its path, None for False."""
        if isinstance(value, bool):
            return cls() if value else None
        return cls(Path(value))

    def load(self, key: str, topics: Topics, documents: Mapping[str, Documents]) -> Run | None:
        """Return the run under a key, or None if it is missing; `documents` are the sources of documents by fingerprint."""
        path = self._path(key)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                facts = json.loads(stored["facts"].tobytes())
                if facts["key"] != key:
                    return None
                source = None if facts["documents"] is None else documents[facts["documents"]]
                run_topics = topics if facts["topics"] is None else Topics(map(_topic, facts["topics"]))
                ids = Strings(stored["blob"], stored["offsets"])
                columns = (stored[name] for name in ("bounds", "codes", "scores"))
                run = Run(run_topics, ids, *columns, documents=source, provenance=facts["provenance"])
        except DAMAGE:
            return None
        if not _is_sound(run):
            return None
        self._disk.use(path)
        return run

    def store(self, key: str, run: Run, topics: Topics) -> None:
        """Store a run under a key.

        Raises:
            InputError: The folder cannot be written to; for the user's cache there is only a warning.
        """
        used, codes = np.unique(run.codes, return_inverse=True)
        ids = run.ids.reordered(used)
        facts = {
            "key": key,
            "topics": None if run.topics is topics else [topic_facts(t) for t in run.topics.values()],
            "documents": getattr(run.documents, "fingerprint", None),
            "provenance": dict(run.provenance),
        }
        if run.documents is not None and facts["documents"] is None:
            return
        file, packed_facts = io.BytesIO(), np.frombuffer(json.dumps(facts, default=str).encode(), dtype=np.uint8)
        codes = codes.astype(np.int32)
        np.savez(
            file, facts=packed_facts, bounds=run.bounds, codes=codes, scores=run.scores, blob=ids.blob, offsets=ids.offsets
        )
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, [file.getvalue()])
            self._has_new_runs = True
        except (OSError, InputError) as error:
            if not self._is_user_cache:
                raise InputError(f"the cache cannot be written ({error}); give another folder, or cache=False") from None
            warnings.warn(f"runs are not cached: {error}; FONTES_CACHE names another folder", stacklevel=2)

    def trim(self) -> None:
        """Delete the least recently used runs beyond the limit."""
        if self._has_new_runs:
            self._disk.trim(lambda path: CACHE_FILE.fullmatch(path.name))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


def key_of(topics: str, stages: list[str]) -> str:
    """Return the key of a run, from the hash of its topics and the keys of its stages."""
    return hash_json([LAYOUT, _code_version(), topics, stages])


def _topic(facts: dict[str, Any]) -> Topic:
    turns = tuple(Turn(*turn) for turn in facts["turns"])
    origin = None if facts["origin"] is None else _topic(facts["origin"])
    return Topic(**{**facts, "turns": turns, "origin": origin})


@cache
def _code_version() -> list[object]:
    """Return the versions of Fontes and libraries, the sizes and times of Fontes' files, and the processor."""
    package = Path(__file__).parent.parent
    files = [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in sorted(package.glob("*/**/*.py"))]
    return [version("fontes"), files, installed(), processor()]


def _is_sound(run: Run) -> bool:
    bounds = run.bounds
    return bool(
        len(bounds) == len(run.topics) + 1
        and bounds[0] == 0
        and bounds[-1] == len(run.codes) == len(run.scores)
        and np.all(np.diff(bounds) >= 0)
        and (not len(run.codes) or (run.codes.min() >= 0 and run.codes.max() < len(run.ids)))
    )


SUFFIXES = (*ENDINGS, ".run", ".trec", ".txt", ".tsv", ".res")  # of runs
Steps = tuple[Stage[Any, Any], ...]


def named(systems: object) -> dict[str, object]:
    """Return the systems by name; in a list, files are named by stem and stages by their text.

    Raises:
        ParameterError: There is no system, two systems share a name, or the value is neither a mapping nor a list.
    """
    if isinstance(systems, Mapping):
        pairs = [(str(name), system) for name, system in systems.items()]
    elif isinstance(systems, Iterable) and not isinstance(systems, (str, bytes, Run)):
        pairs = [(_default_name(system, number), system) for number, system in enumerate(systems, 1)]
    else:
        raise ParameterError(
            f"systems are given in a mapping from name to system, or in a list, not as {type(systems).__name__}"
        )
    names = [name for name, _ in pairs]
    clashing = {name for name in names if names.count(name) > 1}
    # Files of one name in several folders are named by their paths.
    pairs = [
        (os.fspath(system) if name in clashing and isinstance(system, (str, os.PathLike)) else name, system)
        for name, system in pairs
    ]
    if not pairs:
        raise ParameterError(
            "there is no system to compare; give stages or runs, in a mapping from name to system or in a list"
        )
    result: dict[str, object] = {}
    for name, system in pairs:
        if name in result:
            raise ParameterError(f"two systems are called '{name}'; give each once, or a mapping from name to system")
        result[name] = system
    return result


def stem(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without its folder and the common suffixes of runs."""
    name = Path(path).name
    for suffix in SUFFIXES:
        if len(name) > len(suffix):
            name = name.removesuffix(suffix)
    return name


def run_all(systems: Mapping[str, object], topics: Topics | None, cache: Cache | None) -> dict[str, SystemRun]:
    """Return the run of each system: stages are applied to the topics, files are read.

    Raises:
        PipelineError: A stage does not go from topics to a run.
        InputError: A stage has no topics to run on, or a file or a value is no run.
    """
    for name, system in systems.items():
        if not isinstance(system, Stage):
            continue
        if system.takes is not Topics or system.gives is not Run:
            raise PipelineError(
                f"system '{name}' takes {system.takes.__name__} and gives {system.gives.__name__}; "
                "only what goes from Topics to Run can be compared"
            )
        if topics is None:
            raise InputError(f"system '{name}' is a stage and needs topics to run on; give them")
    searches = Searches(topics or Topics(), cache)
    runs = {name: searches.of(name, system) for name, system in systems.items()}
    if cache is not None:
        cache.trim()
    return runs


@dataclass(frozen=True)
class Output:
    """Result of a pipeline prefix, and the seconds that it took."""

    value: Topics | Run
    seconds: float
    cached: bool = False


class Searches:
    """Applies stages to topics, each pipeline prefix once.

    Prefixes are equal if their stages have the same keys or are the same objects. Runs whose stages all have keys are cached.
    """

    def __init__(self, topics: Topics, cache: Cache | None) -> None:
        self._topics = topics
        self._cache = cache
        self._outputs: dict[tuple[str | int, ...], Output] = {(): Output(topics, 0.0)}

    def of(self, name: str, system: object) -> SystemRun:
        """Return the run of a system; InputError if a file or a value is no run."""
        if isinstance(system, SystemRun):
            return system
        if isinstance(system, Stage):
            return self._run_stage(system)
        if isinstance(system, (str, os.PathLike)):
            return SystemRun(Run.of(system), os.fspath(system))
        try:
            run = Run.of(system)
        except InputError as error:
            raise InputError(f"system '{name}': {error}") from None
        seconds = run.provenance.get("seconds")
        measured = float(seconds) if isinstance(seconds, (int, float)) else None
        return SystemRun(run, str(run.provenance.get("system", "")), measured)

    def _run_stage(self, stage: AnyStage) -> SystemRun:
        stage.check()
        steps = steps_of(stage)
        output = self._output(steps)
        assert isinstance(output.value, Run)
        # A final cut is skipped to find the reranker before it.
        end = next(i for i in range(len(steps), 0, -1) if not isinstance(steps[i - 1], Cut))
        candidates = None
        if steps[end - 1].takes is Run and steps[end - 1].gives is Run:
            reranked = self._output(steps[: end - 1]).value
            candidates = reranked if isinstance(reranked, Run) else None
        return SystemRun(output.value, repr(stage), output.seconds, candidates, output.cached)

    def _output(self, steps: Steps) -> Output:
        identity = tuple(stage.key() or id(stage) for stage in steps)
        if identity not in self._outputs:
            self._outputs[identity] = self._load(steps, identity) or self._compute(steps, identity)
        return self._outputs[identity]

    def _compute(self, steps: Steps, identity: tuple[str | int, ...]) -> Output:
        prefix = self._output(steps[:-1])
        if isinstance(steps[-1], Cut):  # too cheap to cache
            return Output(_of_pipeline(steps[-1](prefix.value), steps, prefix.seconds), prefix.seconds, prefix.cached)
        last, seconds = self._with_finished_parts(steps[-1], steps[:-1])
        label = steps[-1].name or type(steps[-1]).__name__
        reporter()(Progress(f"running {label}", 0, len(self._topics), 0.0, "topics"))
        start = time.perf_counter()
        value = self._apply(last, prefix.value)
        seconds += prefix.seconds + time.perf_counter() - start
        if isinstance(value, Run):
            value = _of_pipeline(value, steps, seconds)
            key = self._key(identity)
            if self._cache is not None and key is not None:
                self._cache.store(key, value, self._topics)
        return Output(value, seconds)

    def _apply(self, stage: AnyStage, value: Topics | Run) -> Topics | Run:
        """Apply a step, on the cluster if it gives a run and contains no finished runs."""
        actors = None if stage.gives is not Run or any(isinstance(part, _FinishedRun) for part in walk(stage)) else cluster()
        result: Topics | Run = stage(value) if actors is None else actors.apply(stage, value)
        return result

    def _load(self, steps: Steps, identity: tuple[str | int, ...]) -> Output | None:
        key = self._key(identity)
        if self._cache is None or key is None or steps[-1].gives is not Run or isinstance(steps[-1], Cut):
            return None
        documents = {index.fingerprint: index for step in steps for index in indexes_of(step).values()}
        run = self._cache.load(key, self._topics, documents)
        return None if run is None else Output(run, float(run.provenance["seconds"]), cached=True)

    def _key(self, identity: tuple[str | int, ...]) -> str | None:
        keys = [part for part in identity if isinstance(part, str)]
        return key_of(self._topics_hash, keys) if len(keys) == len(identity) else None

    @cached_property
    def _topics_hash(self) -> str:
        return hash_of_topics(self._topics)

    def _with_finished_parts(self, stage: AnyStage, prefix: Steps) -> tuple[AnyStage, float]:
        """Return a stage with the parts of a weighted stage, sum or fusion replaced by their runs, and the parts' seconds."""
        total = 0.0

        def finish(part: Ranker) -> Ranker:
            nonlocal total
            # A sum applies the weights itself, so the part is run without its weight.
            is_weighted = isinstance(stage, Sum) and isinstance(part, Scaled)
            finished, seconds = self._with_finished_parts(part, prefix) if is_weighted else self._finish(part, prefix)
            total += seconds
            return finished

        match stage:
            case Scaled():
                stage = stage.with_(stage=finish(stage.stage))
            case Sum() | Fusion():
                stage = stage.with_(stages=tuple(map(finish, stage.stages)))
        return stage, total

    def _finish(self, stage: Ranker, prefix: Steps) -> tuple[AnyStage, float]:
        """Run a stage after a prefix; return its run as a stage, and its seconds."""
        output = self._output((*prefix, *steps_of(stage)))
        assert isinstance(output.value, Run)
        return _FinishedRun(output.value, stage.takes), output.seconds - self._output(prefix).seconds


@dataclass(frozen=True, repr=False, eq=False)
class _FinishedRun(Stage[Any, Run]):
    """A stage that returns a finished run for every input."""

    run: Run
    input_type: type

    @property
    def takes(self) -> type:
        return self.input_type

    def apply(self, value: object, /) -> Run:
        return self.run

    def __call__(self, value: object, *, progress: ProgressCallback | None = None) -> Run:
        return self.run  # keeps its provenance

    def written(self, names: Names, *, strict: bool) -> str:
        return str(self.run.provenance["system"])


def _of_pipeline(run: Run, steps: Steps, seconds: float) -> Run:
    """Return the run with the text, the indexes and the duration of all steps in its provenance."""
    pipeline = Pipeline(steps) if len(steps) > 1 else steps[-1]
    indexes = {name: index.fingerprint for name, index in indexes_of(pipeline).items()}
    facts = {"system": repr(pipeline), "indexes": indexes, "seconds": seconds}
    return run.with_(provenance={**run.provenance, **facts})


def _default_name(system: object, number: int) -> str:
    if isinstance(system, (str, os.PathLike)):
        return stem(system)
    if isinstance(system, Stage):
        return repr(system)
    return str(system.provenance.get("system", number)) if isinstance(system, Run) else f"run {number}"

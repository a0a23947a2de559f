"""Search by Ray actors that each hold some shards, merged into one ranking."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any, TypeVar

import numpy as np

from ..core import Run, Topics
from ..core.answers import NAME, join_facts
from ..core.arrays import Float32s, Int32s, Int64s
from ..core.errors import FontesError, IndexFormatError
from ..core.part import indexes_of, walk
from ..core.stage import AnyStage, Ranker
from ..core.strings import Strings
from ..core.work import ProgressCallback, resources, work
from ..index.files import shard_of, with_segments
from ..index.segment import Leaf
from ..index.state import State
from ..storage.hashes import hash_json
from ..text import Analyzer
from .actors import Actors, map_with
from .joining import joined_here

P = TypeVar("P")
R = TypeVar("R")
STATES = 2  # maximum states of an index that an actor keeps open
CALLS = 4  # calls that an actor answers at a time


class ShardActors:
    """Actors that search the shards of an index; they end with this object.

    With `partial`, results omit shards that cannot be searched. Raises FontesError if there is no cluster, or if a machine
    cannot open the index, which must have the same path on all machines.
    """

    def __init__(self, reader: State, partial: bool) -> None:
        self._partial = partial
        with ExitStack() as stack:
            cluster = stack.enter_context(joined_here("search"))
            self._groups = _groups(reader, max(1, cluster.cpus))
            min_cpus = min([int(node.get("CPU", 1)) or 1 for node in cluster.nodes.values()], default=1)
            cpus = max(1, min(min_cpus, cluster.cpus // len(self._groups)))
            path, analyzer = reader.path.absolute(), reader.analyzer
            makes = [functools.partial(Shards, path, analyzer, group, partial) for group in self._groups]
            with work(threads=resources().threads or cpus):
                self._actors = stack.enter_context(Actors(cluster, makes, "searching", cpus=0, calls=CALLS))
            self._answers(_open_part, reader.identity)
            weakref.finalize(self, stack.pop_all().close)

    def run(self, stage: Any, method: str, arguments: Sequence[Any]) -> Run:
        """Search all shards with a method of `stage` that returns a run; return the best documents per topic.

        The method's arguments begin with the topics. Raises FontesError if a required shard cannot be searched.
        """
        reader, (topics, *_) = stage.index, arguments
        call = _Call(reader.identity, stage.with_(index=None), method, tuple(arguments))
        answers = self._answers(_search_shards, call)
        missing = list(reader.missing)
        numbers, codes, scores = [], [], []
        for group, answer in zip(self._groups, answers, strict=True):
            if isinstance(answer, FontesError):
                missing += [
                    {"shard": shard, "documents": _documents(reader, [shard]), "problem": str(answer)} for shard in group
                ]
                continue
            counts, docs, doc_scores = answer
            numbers.append(np.repeat(np.arange(len(counts)), counts))
            codes.append(_to_index_ordinals(reader, group, docs))
            scores.append(doc_scores)
        if not scores:
            raise IndexFormatError(f"no shard of {reader.path} can be searched: {missing[0]['problem']}")
        provenance = {**reader.provenance, **({"missing": missing} if missing else {})}
        columns = np.concatenate(numbers), np.concatenate(codes), np.concatenate(scores)
        run = Run.from_columns(topics, reader.ids, *columns, documents=reader, provenance=provenance)
        return run.top(getattr(stage, stage.depth_field))

    def _answers(self, function: Callable[[Shards, P], R], part: P) -> list[R | FontesError]:
        """Call a function on each actor's shards; with `partial`, FontesErrors about lost shards are among the results."""
        answers = self._actors.answers(function, part)
        for group, answer in zip(self._groups, answers, strict=True):
            if not isinstance(answer, FontesError):
                continue
            from_ray = answer.__cause__ is not None  # errors of Ray are the cause of a FontesError
            if self._partial and (from_ray or isinstance(answer, IndexFormatError)):
                continue
            if not from_ray:
                raise answer
            raise FontesError(f"shard {', '.join(map(str, group))} cannot be searched: {answer}") from answer
        return answers

    def __reduce__(self) -> tuple[object, ...]:
        return type(None), ()  # actors belong to this process; other processes search without them


@dataclass(frozen=True)
class _Call:
    """A search with a method of `stage`, which is sent without its index; `identity` identifies the searched state."""

    identity: str
    stage: Ranker
    method: str
    arguments: tuple[object, ...]


class Shards:
    """Shards in an actor, with global statistics; with `partial`, unreadable shards are omitted."""

    def __init__(self, path: Path, analyzer: Analyzer, group: Sequence[int], partial: bool) -> None:
        self._group = group
        self._state = State.newest(path, lambda manifest: analyzer, partial=partial)
        self._parts: dict[str, PartOfIndex] = {}
        self._opening = threading.Lock()

    def part(self, identity: str) -> PartOfIndex:
        """Return the shards in the state with this identity; raise FontesError if it is no longer the newest."""
        with self._opening:
            if identity not in self._parts:
                if self._state.identity != identity:
                    self._state = self._state.refreshed()
                if self._state.identity != identity:
                    raise FontesError(
                        f"{self._state.path} has changed since it was opened; index.refresh() reads its newest state"
                    )
                self._parts[identity] = PartOfIndex(self._state, self._group)
                while len(self._parts) > STATES:
                    del self._parts[next(iter(self._parts))]
            return self._parts[identity]


def _open_part(shards: Shards, identity: str) -> None:
    """Open the state with this identity in an actor."""
    shards.part(identity)


def _search_shards(shards: Shards, call: _Call) -> tuple[Int64s, Int32s, Float32s]:
    """Number of results per topic, int64, and concatenated ordinals within the shards, int32, and scores, float32."""
    stage = call.stage.with_(index=shards.part(call.identity), threads=None)
    run: Run = getattr(stage, call.method)(*call.arguments)
    return np.diff(run.bounds), run.codes, run.scores


def _groups(reader: State, max_groups: int) -> list[list[int]]:
    """Distribute shards over actors, balancing document counts."""
    shards = sorted({shard_of(entry) for entry in reader.manifest["segments"]}) or [0]
    sizes = {shard: _documents(reader, [shard]) for shard in shards}
    groups: list[list[int]] = [[] for _ in range(min(max_groups, len(shards)))]
    for shard in sorted(shards, key=lambda shard: -sizes[shard]):
        min(groups, key=lambda group: sum(sizes[member] for member in group)).append(shard)
    return [sorted(group) for group in groups if group]


def _documents(reader: State, group: Sequence[int]) -> int:
    """Number of documents in a group of shards."""
    return sum(leaf.documents for leaf in _leaves(reader, group))


def _leaves(reader: State, group: Sequence[int]) -> list[Leaf]:
    """Leaves of the index in a group of shards."""
    names = {entry["name"] for entry in reader.manifest["segments"] if shard_of(entry) in group}
    return [leaf for leaf in reader.leaves if leaf.segment.folder.name in names]


def _to_index_ordinals(reader: State, group: Sequence[int], docs: Int32s) -> Int32s:
    """Map ordinals within a group of shards to ordinals in the whole index."""
    leaves = _leaves(reader, group)
    firsts = np.cumsum([0, *(leaf.documents for leaf in leaves)])[:-1]
    shifts = np.array([leaf.first for leaf in leaves], dtype=np.int64) - firsts
    ordinals = docs + shifts[np.searchsorted(firsts, docs, side="right") - 1] if len(leaves) else docs
    return ordinals.astype(np.int32)


class PartOfIndex(State):
    """Documents of some shards, scored with the statistics of the whole index."""

    def __init__(self, whole: State, shards: Collection[int]) -> None:
        segments = [entry for entry in whole.manifest["segments"] if shard_of(entry) in shards]
        super().__init__(whole.path, with_segments(_facts(whole.manifest), segments), whole.analyzer, whole)
        self._whole = whole
        self.fingerprint = hash_json([whole.fingerprint, self.manifest["fingerprint"]])  # covers the statistics too
        self.actors = None

    @property
    def whole(self) -> State:
        return self._whole

    @property
    def is_sound(self) -> bool:
        """Whether the files of the whole index match its fingerprint."""
        return self.whole.is_sound


def _facts(manifest: dict[str, object]) -> dict[str, object]:
    """Values of a manifest that do not depend on its segments."""
    return {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}


PIECES_PER_WORKER = 8  # pieces of the topics per CPU or GPU, to balance the load

Fingerprints = list[tuple[str, str]]


def apply(stage: Ranker, value: Topics | Run, ray: bool | str | None = None, progress: ProgressCallback | None = None) -> Run:
    """Apply a stage to each topic independently, with actors on a cluster.

    Indexes and models must have the same paths on all nodes. Set the precision of models, or each node chooses its own; see
    `core.part.fix_precision`.

    Args:
        stage: Stage from topics or a run to a run.
        value: Input of the stage.
        ray: Cluster, as in `fontes.work`; None for the one of `work`, or else a local Ray.
        progress: Called with the number of finished parts.

    Raises:
        FontesError: The stage raised it, or the cluster is lost.
    """
    label = stage.name or type(stage).__name__
    with work(ray=ray, progress=progress), joined_here(label) as cluster:
        topics = value if isinstance(value, Topics) else value.topics
        size = max(1, len(topics) // (PIECES_PER_WORKER * max(1, cluster.gpus or cluster.cpus)))
        pieces = [_piece(value, start, min(start + size, len(topics))) for start in range(0, len(topics), size)]
        if not pieces:
            return stage(value)
        runs = map_with(partial(_verified_stage, stage, fingerprints(stage)), _apply_to_piece, pieces, label, stage)
    return _concatenate(runs, stage, value)


def fingerprints(stage: AnyStage) -> Fingerprints:
    """Return names and fingerprints of the indexes and models that a stage depends on."""
    indexes = [(f"the index {name}", index.fingerprint) for name, index in indexes_of(stage).items()]
    models = [(repr(part), value) for part in walk(stage) if isinstance(value := getattr(part, "fingerprint", None), str)]
    return [*indexes, *models]


def _verified_stage(stage: Ranker, expected: Fingerprints) -> Ranker:
    """Return the stage in an actor, if its indexes and models match the driver's."""
    for (name, fingerprint), (_, driver_fingerprint) in zip(fingerprints(stage), expected, strict=True):
        if fingerprint != driver_fingerprint:
            raise FontesError(f"{name} differs on {gethostname()}; install the same one there")
    return stage


def _apply_to_piece(stage: Ranker, piece: Topics | Run) -> tuple[Run, str | None]:
    """Run of a piece of the input, with only the ids that it ranks, and its index's fingerprint."""
    run = stage(piece)
    return _compact(run, 0, len(run.topics)).with_(documents=None), getattr(run.documents, "fingerprint", None)


def _piece(value: Topics | Run, first: int, last: int) -> Topics | Run:
    """The topics from `first` to `last`, or the part of a run with these topics."""
    return Topics(list(value.values())[first:last]) if isinstance(value, Topics) else _compact(value, first, last)


def _compact(run: Run, first: int, last: int) -> Run:
    """The part of a run with the topics from `first` to `last`, with only the ids that it ranks."""
    rows = slice(int(run.bounds[first]), int(run.bounds[last]))
    used, codes = np.unique(run.codes[rows], return_inverse=True)
    topics = Topics(list(run.topics.values())[first:last])
    bounds = run.bounds[first : last + 1] - run.bounds[first]
    columns = run.ids.reordered(used), bounds, codes.astype(np.int32), run.scores[rows]
    return Run(topics, *columns, documents=run.documents, provenance=run.provenance)


def _concatenate(runs: Sequence[tuple[Run, str | None]], stage: Ranker, value: Topics | Run) -> Run:
    """Concatenate the runs of consecutive pieces; the documents come from the index with the first run's fingerprint."""
    numbers_by_id: dict[str, int] = {}
    codes = []
    for run, _ in runs:
        numbers = [numbers_by_id.setdefault(doc_id, len(numbers_by_id)) for doc_id in run.ids.tolist()]
        codes.append(np.array(numbers, dtype=np.int32)[run.codes])
    sources = {index.fingerprint: index for index in indexes_of(stage).values()}
    if isinstance(value, Run) and value.documents is not None:
        sources[getattr(value.documents, "fingerprint", "")] = value.documents
    sizes = np.concatenate([np.diff(run.bounds) for run, _ in runs])
    return Run(
        Topics([topic for run, _ in runs for topic in run.topics.values()]),
        Strings.of(list(numbers_by_id)),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate(codes),
        np.concatenate([run.scores for run, _ in runs]),
        documents=sources.get(runs[0][1] or "") or (value.documents if isinstance(value, Run) else None),
        provenance=_provenance([run.provenance for run, _ in runs]),
    )


def _provenance(parts: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Provenance of the first piece, with the pair counts of rerankers summed, and answers and refused topics joined."""
    provenance = dict(parts[0])
    if "refused" in provenance:
        provenance["refused"] = {topic_id: value for part in parts for topic_id, value in part["refused"].items()}
    if isinstance(reranked := provenance.get("reranked"), Mapping):
        sums = {name: sum(part["reranked"][name] for part in parts) for name in ("pairs", "from_cache") if name in reranked}
        provenance["reranked"] = {**reranked, **sums}
    answers = [part[NAME] for part in parts if NAME in part]
    return {**provenance, NAME: join_facts(answers)} if answers else provenance

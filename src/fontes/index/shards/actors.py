"""Search by actors of Ray that each hold some shards: a stage's own search over each part, and one order for all results."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...cluster.actors import Actors
from ...cluster.joining import joined
from ...core.errors import FontesError, IndexFormatError
from ...core.progress import Report
from ...core.run import Run
from ...text import Analyzer
from ..files import shard_of
from ..state import State
from .part import PartOfIndex

if TYPE_CHECKING:
    from ...core.stage import Stage

STATES = 2  # of an index that an actor keeps open


class ShardActors:
    """Actors that hold the shards of an index and search them. They are ended with this object.

    Args:
        reader: A state of the index, on storage that all machines see under the same path.
        ray: The cluster; see `Index.open`.
        partial: Whether shards that cannot be searched are left out of the results.

    Raises:
        FontesError: There is no such cluster, or a machine of it cannot open the index.
    """

    def __init__(self, reader: State, ray: bool | str, partial: bool) -> None:
        self._partial = partial
        with ExitStack() as stack:
            cluster = stack.enter_context(joined(ray, "search"))
            self._groups = _groups(reader, max(1, cluster.cpus))
            least = min([int(node.get("CPU", 1)) or 1 for node in cluster.nodes.values()], default=1)
            cpus = max(1, min(least, cluster.cpus // len(self._groups)))
            path, analyzer = reader.path.absolute(), reader.analyzer
            makes = [functools.partial(Shards, path, analyzer, group, partial, cpus) for group in self._groups]
            self._actors = stack.enter_context(Actors(cluster, makes, "searching", cpus=0))
            self._answers(_opened, reader.identity)
            weakref.finalize(self, stack.pop_all().close)

    def run(self, stage: Any, method: str, arguments: Sequence[Any], progress: Report) -> Run:
        """The best documents of all shards for each topic.

        Args:
            stage: A retriever over a state of the index.
            method: The name of its method that gives a run.
            arguments: What this is called with, the topics first.
            progress: Is called when all is done.

        Raises:
            FontesError: What a search raised; or a shard cannot be searched, and is not to be left out.
        """
        reader, (topics, *_) = stage.index, arguments
        call = _Call(reader.identity, stage.with_(index=None), method, tuple(arguments))
        answers = self._answers(_searched, call)
        missing = list(reader.missing)
        numbers, codes, scores = [], [], []
        for group, answer in zip(self._groups, answers, strict=True):
            if isinstance(answer, FontesError):
                missing += [
                    {"shard": shard, "documents": _documents(reader, [shard]), "problem": str(answer)} for shard in group
                ]
                continue
            counts, docs, of_docs = answer
            numbers.append(np.repeat(np.arange(len(counts)), counts))
            codes.append(_in_whole(reader, group, docs))
            scores.append(of_docs)
        if not scores:
            raise IndexFormatError(f"no shard of {reader.path} can be searched: {missing[0]['problem']}")
        provenance = {**reader.provenance, **({"missing": missing} if missing else {})}
        columns = (np.concatenate(column) for column in (numbers, codes, scores))
        run = Run.from_columns(topics, reader.ids, *columns, documents=reader, provenance=provenance)
        return run.top(getattr(stage, stage.depth_field))

    def _answers(self, function: Any, part: Any) -> list[Any]:
        """What a function gives of each actor's shards; where shards may be left out, the error of one that cannot tell."""
        answers: list[Any] = self._actors.answers(function, part)
        for group, answer in zip(self._groups, answers, strict=True):
            if isinstance(answer, FontesError):
                # An error of Ray's own is the cause of that which says so.
                lost = isinstance(answer, IndexFormatError) or answer.__cause__ is not None
                if not (lost and self._partial):
                    if answer.__cause__ is not None:
                        shards = ", ".join(map(str, group))
                        raise FontesError(f"shard {shards} cannot be searched: {answer}") from answer
                    raise answer
        return answers

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # in another process this one's actors are not at hand; it searches by itself


@dataclass(frozen=True)
class _Call:
    """A search that travels to the actors.

    Args:
        identity: That of the state that is searched; see `State.identity`.
        stage: The stage, without its index.
        method: The name of its method.
        arguments: What this is called with.
    """

    identity: str
    stage: Stage[Any, Run]
    method: str
    arguments: tuple[Any, ...]


class Shards:
    """What an actor holds: some shards, with the statistics of the whole.

    Args:
        path: The index.
        analyzer: Its analyzer.
        group: The numbers of the shards.
        partial: Whether shards that cannot be read are left out.
        threads: How many threads search.
    """

    def __init__(self, path: Path, analyzer: Analyzer, group: Sequence[int], partial: bool, threads: int) -> None:
        self._group, self.threads = group, threads
        self._whole = State.newest(path, lambda manifest: analyzer, partial=partial)
        self._parts: dict[str, PartOfIndex] = {}

    def part(self, identity: str) -> PartOfIndex:
        """The shards in the state with this identity.

        Raises:
            FontesError: It is not open, and no longer the newest.
        """
        if identity not in self._parts:
            if self._whole.identity != identity:
                self._whole = self._whole.refreshed()
            if self._whole.identity != identity:
                raise FontesError(
                    f"{self._whole.path} has changed since it was opened; index.refresh() goes on with what it is now"
                )
            self._parts[identity] = PartOfIndex(self._whole, self._group)
            while len(self._parts) > STATES:
                del self._parts[next(iter(self._parts))]
        return self._parts[identity]


def _opened(shards: Shards, identity: str) -> None:
    shards.part(identity)


def _searched(shards: Shards, call: _Call) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """For each topic the count of results, and their documents, by their ordinals here, and scores end to end."""
    stage: Any = call.stage.with_(index=shards.part(call.identity), threads=shards.threads)
    run: Run = getattr(stage, call.method)(*call.arguments)
    return np.diff(run.bounds), run.codes, run.scores


def _groups(reader: State, most: int) -> list[list[int]]:
    """The shards of each actor, so that all have about as many documents."""
    shards = sorted({shard_of(entry) for entry in reader.manifest["segments"]}) or [0]
    sizes = {shard: _documents(reader, [shard]) for shard in shards}
    groups: list[list[int]] = [[] for _ in range(min(most, len(shards)))]
    for shard in sorted(shards, key=lambda shard: -sizes[shard]):
        min(groups, key=lambda group: sum(sizes[one] for one in group)).append(shard)
    return [sorted(group) for group in groups if group]


def _documents(reader: State, group: Sequence[int]) -> int:
    return sum(leaf.documents for leaf in _leaves(reader, group))


def _leaves(reader: State, group: Sequence[int]) -> list[Any]:
    names = {entry["name"] for entry in reader.manifest["segments"] if shard_of(entry) in group}
    return [leaf for leaf in reader.leaves if leaf.segment.folder.name in names]


def _in_whole(reader: State, group: Sequence[int], docs: NDArray[np.int32]) -> NDArray[np.int32]:
    """The ordinals in the whole of documents of some shards."""
    leaves = _leaves(reader, group)
    firsts = np.cumsum([0, *(leaf.documents for leaf in leaves)])[:-1]
    shifts = np.array([leaf.first for leaf in leaves], dtype=np.int64) - firsts
    whole = docs + shifts[np.searchsorted(firsts, docs, side="right") - 1] if len(leaves) else docs
    return whole.astype(np.int32)

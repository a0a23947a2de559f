"""Distributed stages: actors hold the stage and its models, and process topics in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from socket import gethostname
from typing import Any

import numpy as np

from ..core import Run, Stage, Topics
from ..core.errors import FontesError
from ..core.part import indexes_of, walk
from ..core.progress import Report, silent
from ..core.strings import Strings
from ..core.work import work
from .actors import map_with
from .joining import joined_here

EACH = 8  # parts of the topics for each processor or GPU, so that none waits long for the last ones

Fingerprints = list[tuple[str, str]]


def apply(stage: Stage[Any, Run], value: Topics | Run, ray: bool | str | None = None, progress: Report = silent) -> Run:
    """Apply a stage to each topic independently, with actors on a cluster.

    Indexes and models must have the same paths on all nodes. Set the precision of models, or each node chooses its own; see
    `core.precision.settled`.

    Args:
        stage: Stage from topics or a run to a run.
        value: Input of the stage.
        ray: Cluster, as in `fontes.work`; None for the one of `work`, or else a local Ray.
        progress: Called with the number of finished parts.

    Raises:
        FontesError: The stage raised it, or the cluster is lost.
    """
    label = stage.name or type(stage).__name__
    with work(ray=ray), joined_here(label) as cluster:
        topics = value if isinstance(value, Topics) else value.topics
        size = max(1, len(topics) // (EACH * max(1, cluster.gpus or cluster.cpus)))
        pieces = [_piece(value, first, min(first + size, len(topics))) for first in range(0, len(topics), size)]
        if not pieces:
            return stage(value, progress=progress)
        runs = map_with(partial(_held, stage, fingerprints(stage)), _applied, pieces, label, stage, progress)
    return _whole(runs, stage, value)


def fingerprints(stage: Stage[Any, Any]) -> Fingerprints:
    """Return fingerprints and names of the indexes and models that a stage depends on."""
    indexes = [(f"the index {name}", index.fingerprint) for name, index in indexes_of(stage).items()]
    models = [(repr(part), value) for part in walk(stage) if isinstance(value := getattr(part, "fingerprint", None), str)]
    return [*indexes, *models]


def _held(stage: Stage[Any, Run], expected: Fingerprints) -> Stage[Any, Run]:
    """Return the stage in an actor, if its indexes and models match the driver's."""
    for (name, here), (_, there) in zip(fingerprints(stage), expected, strict=True):
        if here != there:
            raise FontesError(f"{name} is another one on {gethostname()} than here; put the same one there")
    return stage


def _applied(stage: Stage[Any, Run], piece: Topics | Run) -> tuple[Run, str | None]:
    """Run of some topics, reduced to its own ids, and its index's fingerprint."""
    run = stage(piece)
    return _compact(run, 0, len(run.topics)).with_(documents=None), getattr(run.documents, "fingerprint", None)


def _piece(value: Topics | Run, first: int, last: int) -> Topics | Run:
    """Slice of the topics, or of a run's topics."""
    return Topics(list(value.values())[first:last]) if isinstance(value, Topics) else _compact(value, first, last)


def _compact(run: Run, first: int, last: int) -> Run:
    rows = slice(int(run.bounds[first]), int(run.bounds[last]))
    used, codes = np.unique(run.codes[rows], return_inverse=True)
    topics = Topics(list(run.topics.values())[first:last])
    bounds = run.bounds[first : last + 1] - run.bounds[first]
    own: dict[str, Any] = {"documents": run.documents, "provenance": run.provenance}
    return Run(topics, run.ids.reordered(used), bounds, codes.astype(np.int32), run.scores[rows], **own)


def _whole(runs: Sequence[tuple[Run, str | None]], stage: Stage[Any, Run], value: Topics | Run) -> Run:
    known: dict[str, int] = {}
    codes = []
    for run, _ in runs:
        numbers = [known.setdefault(doc_id, len(known)) for doc_id in run.ids.tolist()]
        codes.append(np.array(numbers, dtype=np.int32)[run.codes])
    sources = {index.fingerprint: index for index in indexes_of(stage).values()}
    if isinstance(value, Run) and value.documents is not None:
        sources[getattr(value.documents, "fingerprint", "")] = value.documents
    sizes = np.concatenate([np.diff(run.bounds) for run, _ in runs])
    return Run(
        Topics([topic for run, _ in runs for topic in run.topics.values()]),
        Strings.of(list(known)),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate(codes),
        np.concatenate([run.scores for run, _ in runs]),
        documents=sources.get(runs[0][1] or "") or (value.documents if isinstance(value, Run) else None),
        provenance=_provenance([run.provenance for run, _ in runs]),
    )


def _provenance(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Provenance of the first piece, with rerankers' pair counts summed."""
    whole = dict(parts[0])
    if isinstance(facts := whole.get("reranked"), Mapping):
        sums = {name: sum(part["reranked"][name] for part in parts) for name in ("pairs", "from_cache") if name in facts}
        whole["reranked"] = {**facts, **sums}
    return whole

"""A stage over many topics: some at a time go to whichever actor is free, each of which holds the stage and its models."""

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
    """The run that a stage gives for each topic by itself, by actors on a cluster.

    The indexes and models of the stage lie under the same paths on all nodes. Models had better say their precision, or
    each node chooses its own; see `core.precision.settled`.

    Args:
        stage: From topics or a run to a run.
        value: Its input.
        ray: The cluster, as of `fontes.work`; None: the one that `work` names, or else a Ray on this machine.
        progress: Is called with the number of parts that are done.

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
    """Fingerprints of the indexes and models that the results of a stage depend on, with their names."""
    indexes = [(f"the index {name}", index.fingerprint) for name, index in indexes_of(stage).items()]
    models = [(repr(part), value) for part in walk(stage) if isinstance(value := getattr(part, "fingerprint", None), str)]
    return [*indexes, *models]


def _held(stage: Stage[Any, Run], expected: Fingerprints) -> Stage[Any, Run]:
    """The stage, in an actor, if its indexes and models are the driver's."""
    for (name, here), (_, there) in zip(fingerprints(stage), expected, strict=True):
        if here != there:
            raise FontesError(f"{name} is another one on {gethostname()} than here; put the same one there")
    return stage


def _applied(stage: Stage[Any, Run], piece: Topics | Run) -> tuple[Run, str | None]:
    """The run of some topics, with no more ids than it has, and the fingerprint of the index that has its documents."""
    run = stage(piece)
    return _compact(run, 0, len(run.topics)).with_(documents=None), getattr(run.documents, "fingerprint", None)


def _piece(value: Topics | Run, first: int, last: int) -> Topics | Run:
    """A range of the topics, or of the topics of a run."""
    return Topics(list(value.values())[first:last]) if isinstance(value, Topics) else _compact(value, first, last)


def _compact(run: Run, first: int, last: int) -> Run:
    rows = slice(int(run.bounds[first]), int(run.bounds[last]))
    used, codes = np.unique(run.codes[rows], return_inverse=True)
    topics = Topics(list(run.topics.values())[first:last])
    bounds = run.bounds[first : last + 1] - run.bounds[first]
    own: dict[str, Any] = {"documents": run.documents, "provenance": run.provenance}
    return Run(topics, run.ids.reordered(used), bounds, codes.astype(np.int32), run.scores[rows], **own)


def _whole(runs: Sequence[tuple[Run, str | None]], stage: Stage[Any, Run], value: Topics | Run) -> Run:
    """The runs of all topics as one."""
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
    """That of the first topics, with the pairs that rerankers have counted for all."""
    whole = dict(parts[0])
    if isinstance(facts := whole.get("reranked"), Mapping):
        sums = {name: sum(part["reranked"][name] for part in parts) for name in ("pairs", "from_cache") if name in facts}
        whole["reranked"] = {**facts, **sums}
    return whole

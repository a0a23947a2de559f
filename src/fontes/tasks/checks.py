"""Checks of a project's data: counts, ids, and texts and documents that sides share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from ..core import FontesError
from ..core.progress import Progress, ProgressCallback, silent
from ..datasets import corpus_of
from ..train import leakage
from .base import TaskSide
from .project import TaskProject

NEAR = 0.8  # least similarity of near texts
MAX_NEAR = 50_000  # topics of two sides beyond which only equal texts are looked for
STEP = 100_000  # documents between two reports of progress


@dataclass(frozen=True)
class DataCheck:
    """Result of `check_data`.

    Args:
        facts: Lines of what there is.
        remarks: What is allowed and worth knowing: other numbers than published, shared texts, missing judgments.
        faults: What must be mended before a run.
    """

    facts: tuple[str, ...]
    remarks: tuple[str, ...]
    faults: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there are no faults."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: list(getattr(self, name)) for name in ("facts", "remarks", "faults")}

    def __str__(self) -> str:
        marked = [*(f"note: {line}" for line in self.remarks), *(f"fault: {line}" for line in self.faults)]
        return "\n".join([*self.facts, *marked])


def check_data(project: TaskProject, progress: ProgressCallback = silent) -> DataCheck:
    """Check the data of a project.

    Numbers of documents and topics are compared with the published ones; ids with each other; and texts (equal, or near at
    0.8) and relevant documents of each two sides, which leak from one into the other.
    """
    facts: list[str] = []
    remarks: list[str] = []
    faults: list[str] = []
    known: dict[Path | str, set[str]] = {}
    for place in dict.fromkeys(project.corpora.values()):
        known[place] = _ids(project, place, facts, remarks, faults, progress)
    if not project.corpora:
        what = "runs can be compared (fontes compare) and fused (fontes fuse --learn), and nothing can be searched"
        faults.append(f"there are no documents: {what}; lay the task out again with the documents among --data")
    try:
        sides = project.sides
    except FontesError as error:
        return DataCheck(tuple(facts), tuple(remarks), (*faults, str(error)))
    for name, side in sides.items():
        facts.append(_facts(side))
        remarks += _remarks(project, name, side, known.get(project.corpora.get(name, ""), set()))
    for first, second in combinations(sides.values(), 2):
        remarks += _shared(first, second)
    remarks += _roles(project)
    if project.roles.choose is None:
        faults.append("no side is judged: nothing can be tuned or measured; 'fontes search' makes runs")
    return DataCheck(tuple(facts), tuple(remarks), tuple(faults))


def _roles(project: TaskProject) -> Iterator[str]:
    """Sentence on the choice of parameters without a dev side."""
    roles = project.roles
    if roles.choose is not None and not roles.measure:
        yield f"{roles.choose} is the only judged side: parameters and weights are chosen and measured on it, by nested folds"
    elif roles.choose is not None and roles.choose == roles.train:
        yield f"there is no dev side: parameters and weights are chosen on {roles.choose}, by nested folds"


def _ids(
    project: TaskProject,
    place: Path | str,
    facts: list[str],
    remarks: list[str],
    faults: list[str],
    progress: ProgressCallback,
) -> set[str]:
    ids: set[str] = set()
    twice: list[str] = []
    count = empty = 0
    try:
        for doc in corpus_of(str(place)):
            count += 1
            if doc.id in ids:
                twice.append(doc.id)
            ids.add(doc.id)
            empty += not (doc.text.strip() or doc.title.strip())
            if count % STEP == 0:
                progress(Progress("checking", count, None, 0.0))
    except FontesError as error:
        faults.append(str(error))
        return ids
    facts.append(f"documents: {count:,}" + (f" ({place})" if len(set(project.corpora.values())) > 1 else ""))
    published = project.task.counts.get("documents")
    if published not in (None, count):
        remarks.append(f"{count:,} documents, and {published:,} were published")
    if twice:
        faults.append(f"{len(twice):,} documents have the id of another, such as '{twice[0]}'; take one of each out")
    if empty:
        remarks.append(f"{empty:,} documents have no text and no title")
    return ids


def _facts(side: TaskSide) -> str:
    judged = f"{sum(map(len, side.qrels.values())):,} judgments" if side.qrels is not None else "no judgments"
    return f"{side.name}: {len(side.topics):,} topics, {judged}"


def _remarks(project: TaskProject, name: str, side: TaskSide, ids: set[str]) -> Iterator[str]:
    published = project.task.counts.get(name)
    if published not in (None, len(side.topics)):
        yield f"{name}: {len(side.topics):,} topics, and {published:,} were published"
    if side.qrels is None:
        return
    lacking = [topic for topic in side.qrels if topic not in side.topics]
    if lacking:
        yield f"{name}: {len(lacking):,} judged topics are not among the topics, such as '{lacking[0]}'; they count 0"
    unjudged = [topic for topic in side.topics if topic not in side.qrels]
    if unjudged:
        yield f"{name}: {len(unjudged):,} topics have no judgments, such as '{unjudged[0]}'; they are not measured"
    missing = dict.fromkeys(doc for grades in side.qrels.values() for doc in grades if doc not in ids) if ids else {}
    if missing:
        first = next(iter(missing))
        yield f"{name}: {len(missing):,} judged documents are not in the collection, such as '{first}'; nothing can find them"


def _shared(first: TaskSide, second: TaskSide) -> Iterator[str]:
    large = len(first.topics) + len(second.topics) > MAX_NEAR
    one, other = ((side.topics, side.qrels) if side.qrels else side.topics for side in (first, second))
    shared = leakage(one, other, None if large else NEAR)
    names = f"{second.name} shares with {first.name}"
    for what, pairs in (("the same text", shared.same), (f"a text at {NEAR:g} or more", shared.near)):
        topics = {pair.id for pair in pairs}
        if topics:
            pair = pairs[0]
            yield f"{names} {what}: {len(topics):,} of {shared.test:,} topics, such as {pair.id} = {pair.of}"
    documents = {topic for _, test in shared.documents.values() for topic in test}
    if documents:
        yield f"{names} a relevant document: {len(documents):,} of {shared.test:,} topics"
    if large:
        yield f"{names}: near texts were not looked for, with more than {MAX_NEAR:,} topics"

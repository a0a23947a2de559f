"""Checks of a project's data: counts, ids, and overlap of the sides in texts and relevant documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from ..core import FontesError
from ..core.work import Progress, reporter
from ..datasets import corpus_of
from ..train import leakage
from .base import TaskSide
from .project import TaskProject

MIN_SIMILARITY = 0.8  # of near texts
MAX_NEAR = 50_000  # maximum number of topics of two sides for a search for near texts
PROGRESS_INTERVAL = 100_000  # documents between two reports of progress


@dataclass(frozen=True)
class DataCheck:
    """Result of `check_data`.

    Args:
        facts: Lines with the number of documents, and of topics and judgments of each side.
        remarks: Sentences on unusual but valid data: numbers that differ from the published ones, shared texts, missing
            judgments.
        faults: Sentences on faults that must be corrected before a run.
    """

    facts: tuple[str, ...]
    remarks: tuple[str, ...]
    faults: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("facts", "remarks", "faults"):  # limited like an error, as an id may have any length
            object.__setattr__(self, name, tuple(str(FontesError(line)) for line in getattr(self, name)))

    def __bool__(self) -> bool:
        """Whether there are no faults."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: list(getattr(self, name)) for name in ("facts", "remarks", "faults")}

    def __str__(self) -> str:
        marked = [*(f"note: {line}" for line in self.remarks), *(f"fault: {line}" for line in self.faults)]
        return "\n".join([*self.facts, *marked])


def check_data(project: TaskProject) -> DataCheck:
    """Check the data of a project.

    Compares the numbers of documents and topics with the published ones, looks for duplicate ids, and looks for leaks between
    each two sides: equal texts, near texts (similarity of 0.8 or more), and shared relevant documents.
    """
    facts: list[str] = []
    remarks: list[str] = []
    faults: list[str] = []
    ids: dict[Path | str, set[str]] = {}
    try:
        texts = {topic.id: _plain(topic.text) for side in project.sides.values() for topic in side.topics.values()}
    except FontesError:
        texts = {}  # reported below
    for corpus in dict.fromkeys(project.corpora.values()):
        ids[corpus] = _check_documents(project, corpus, texts, facts, remarks, faults)
    if not project.corpora:
        consequence = "runs can be compared (fontes compare) and fused (fontes fuse --learn), and nothing can be searched"
        faults.append(f"there are no documents: {consequence}; lay the task out again with the documents among --data")
    try:
        sides = project.sides
    except FontesError as error:
        return DataCheck(tuple(facts), tuple(remarks), (*faults, str(error)))
    for name, side in sides.items():
        facts.append(_side_fact(side))
        remarks += _side_remarks(project, name, side, ids.get(project.corpora.get(name, ""), set()))
    for first, second in combinations(sides.values(), 2):
        remarks += _overlap_remarks(first, second)
    remarks += _role_remarks(project)
    if project.roles.choose is None:
        faults.append("no side is judged: nothing can be tuned or measured; 'fontes search' makes runs")
    return DataCheck(tuple(facts), tuple(remarks), tuple(faults))


def _role_remarks(project: TaskProject) -> Iterator[str]:
    """Yield a sentence on the choice of parameters if there is no dev side."""
    roles = project.roles
    if roles.choose is not None and not roles.measure:
        only = f"{roles.choose} is the only judged side" + f" beside {roles.train}" * (roles.train not in (None, roles.choose))
        yield f"{only}: parameters and weights are chosen and measured on it, by nested folds"
    elif roles.choose is not None and roles.choose == roles.train:
        yield f"there is no dev side: parameters and weights are chosen on {roles.choose}, by nested folds"


def _check_documents(
    project: TaskProject, corpus: Path | str, texts: Mapping[str, str], facts: list[str], remarks: list[str], faults: list[str]
) -> set[str]:
    """Return the ids of a corpus, and append to facts, remarks and faults; `texts` are those of the topics, by id."""
    report = reporter()
    ids: set[str] = set()
    same_ids: list[str] = []  # topics that are documents
    duplicates: list[str] = []
    count = empty = 0
    try:
        for doc in corpus_of(str(corpus)):
            count += 1
            if doc.id in ids:
                duplicates.append(doc.id)
            ids.add(doc.id)
            if (text := texts.get(doc.id)) and text in _plain(f"{doc.title} {doc.text}"):
                same_ids.append(doc.id)
            empty += not (doc.text.strip() or doc.title.strip())
            if count % PROGRESS_INTERVAL == 0:
                report(Progress("checking", count, None, 0.0))
    except FontesError as error:
        faults.append(str(error))
        return ids
    facts.append(f"documents: {count:,}" + (f" ({corpus})" if len(set(project.corpora.values())) > 1 else ""))
    published = project.task.counts.get("documents")
    if published not in (None, count):
        remarks.append(f"{count:,} documents, and {published:,} were published")
    if duplicates:
        faults.append(f"{len(duplicates):,} documents have the id of another, such as '{duplicates[0]}'; take one of each out")
    if same_ids:
        remarks.append(
            f"{len(same_ids):,} topics are documents with the same id, such as '{same_ids[0]}'; BEIR leaves these out of their "
            "rankings, as systems do that end in '>> not_itself()' in experiment.toml"
        )
    if empty:
        remarks.append(f"{empty:,} documents have no text and no title")
    return ids


def _plain(text: str) -> str:
    """Return lower-case words separated by single spaces."""
    return " ".join(text.casefold().split())


def _side_fact(side: TaskSide) -> str:
    judged = f"{sum(map(len, side.qrels.values())):,} judgments" if side.qrels is not None else "no judgments"
    return f"{side.name}: {len(side.topics):,} topics, {judged}"


def _side_remarks(project: TaskProject, name: str, side: TaskSide, ids: set[str]) -> Iterator[str]:
    published = project.task.counts.get(name)
    if published not in (None, len(side.topics)):
        yield f"{name}: {len(side.topics):,} topics, and {published:,} were published"
    if side.qrels is None:
        return
    unknown = [topic for topic in side.qrels if topic not in side.topics]
    if unknown:
        yield f"{name}: {len(unknown):,} judged topics are not among the topics, such as '{unknown[0]}'; they are not measured"
    unjudged = [topic for topic in side.topics if topic not in side.qrels]
    if unjudged:
        yield f"{name}: {len(unjudged):,} topics have no judgments, such as '{unjudged[0]}'; they are not measured"
    missing = dict.fromkeys(doc for grades in side.qrels.values() for doc in grades if doc not in ids) if ids else {}
    if missing:
        first = next(iter(missing))
        yield f"{name}: {len(missing):,} judged documents are not in the collection, such as '{first}'; nothing can find them"


def _overlap_remarks(first: TaskSide, second: TaskSide) -> Iterator[str]:
    large = len(first.topics) + len(second.topics) > MAX_NEAR
    first_topics, second_topics = ((side.topics, side.qrels) if side.qrels else side.topics for side in (first, second))
    shared = leakage(first_topics, second_topics, None if large else MIN_SIMILARITY)
    names = f"{second.name} shares with {first.name}"
    for kind, pairs in (("the same text", shared.same), (f"a text at {MIN_SIMILARITY:g} or more", shared.near)):
        topics = {pair.id for pair in pairs}
        if topics:
            pair = pairs[0]
            yield f"{names} {kind}: {len(topics):,} of {shared.test:,} topics, such as {pair.id} = {pair.of}"
    documents = {topic for _, test in shared.documents.values() for topic in test}
    if documents:
        yield f"{names} a relevant document: {len(documents):,} of {shared.test:,} topics"
    if large:
        yield f"{names}: near texts were not looked for, with more than {MAX_NEAR:,} topics"

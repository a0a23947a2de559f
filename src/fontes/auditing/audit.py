"""`audit`: how much of a score is real."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..core import InputError, Topics
from ..core.checks import check_whole, hinted
from ..measures.evaluation import AnyQrels, AnyRun, AnyTopics, check_agreement, judgments_of, run_and_judgments
from ..measures.measure import Measure
from ..measures.names import DEFAULT, parse_all
from ..train.duplicates import check_near
from ..train.sources import TrainingData
from . import lines
from .audited import Audited, AuditedCollection, tags_of
from .report import AuditReport, Finding
from .tools import tools

LINES: dict[str, Callable[[Audited], Finding]] = {
    "ties": lines.ties,
    "the topic itself": lines.itself,
    "training data": lines.training,
    "near copies": lines.copies,
    "unjudged": lines.unjudged,
    "machine": lines.machine,
    "missing documents": lines.missing,
    "tags": lines.tags,
    "depths": lines.depths,
    "other tools": tools,
}
OF_RUNS = {"ties", "unjudged", "tags", "depths", "other tools"}  # lines that need a run


@hinted
def audit(
    run: AnyRun | None,
    qrels: AnyQrels,
    *,
    topics: AnyTopics | None = None,
    corpus: str | Path | Iterable[object] | None = None,
    train: object = None,
    machine: AnyQrels | None = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    near: float | None = 0.8,
    seed: int = 0,
) -> AuditReport:
    """Audit a score: each line has the score as it is, the score without a problem, and the topics concerned.

    Args:
        run: The run, any value that `Run.of` accepts; None audits a collection: its topics, judgments and documents.
        qrels: The judgments, any value that `Qrels.of` accepts.
        topics: Texts of the topics, for topics that are documents or stand in the training data.
        corpus: The documents, any source that `read_corpus` accepts. They are read twice and not kept.
        train: Training data: a path of examples of `fontes mine`, of topics or of judgments, or of a folder in BEIR's form;
            `Examples`, `Topics`, `Qrels`, or a pair of the last two; or a list of these.
        machine: Labels of a machine. Judgments that these have too, with the same grade, count as the machine's.
        measures: As for `evaluate`.
        near: Least Jaccard similarity of 5-character shingles of near copies; None: only equal texts.
        seed: Seed of the random orders of equal scores.

    Raises:
        InputError: An input cannot be read, or run and judgments do not agree (see `check_agreement`).
        ParameterError: A measure is unknown, or a parameter out of range.
    """
    check_near(near)
    check_whole("seed", seed, 0)
    parsed = tuple(parse_all(measures))
    if run is None:
        ranking, judgments = None, judgments_of(qrels, parsed)
    else:
        ranking, judgments = run_and_judgments(run, qrels, parsed)
        check_agreement(ranking, judgments)
    texts = Topics.read(topics) if topics is not None else ranking.topics if ranking is not None else Topics()
    judged = Topics(topic for topic in texts.values() if topic.id in judgments and (topic.text or topic.turns))
    if topics is not None and texts and not texts.keys() & judgments.keys():
        raise InputError(
            f"the topics and the judgments have no topic in common: topics are such as '{next(iter(texts))}', those of the "
            f"judgments such as '{next(iter(judgments))}'; give the topics that were judged"
        )
    sources = train if isinstance(train, list) else [] if train is None else [train]
    audited = Audited(
        judgments,
        parsed,
        ranking,
        tags_of(run),
        judged,
        None if corpus is None else AuditedCollection(corpus, judgments, judged, near),
        TrainingData(sources) if sources else None,
        None if machine is None else judgments_of(machine),
        near,
        seed,
    )
    score = {} if ranking is None else dict(audited.evaluation)
    findings = {name: line(audited) for name, line in LINES.items() if ranking is not None or name not in OF_RUNS}
    return AuditReport(findings, len(judgments), score)

"""`fontes audit`: how much of a score is real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....core import Qrels
from ....core.errors import InputError
from ...options import Json, Measures, ReportFiles, Split, argument, check_one_stdin, option, reads_files
from ...output import print_report

if TYPE_CHECKING:
    from ....core import Qrels


@reads_files("id", "text", of="topics")
def audit(
    run: Annotated[str | None, argument("A run, or -.", "none: only the collection")] = None,
    qrels: Annotated[
        str | None, option("Judgments: a file, one of fontes judge, a BEIR folder, irds:NAME, sample:NAME.", False)
    ] = None,
    collection: Annotated[
        str | None,
        option("Judgments, topics, documents and the training split of a BEIR folder, irds:NAME or sample:NAME.", False),
    ] = None,
    topics: Annotated[str | None, option("Topics with their texts: as the judgments.", False)] = None,
    corpus: Annotated[str | None, option("Documents: a file or folder, irds:NAME, sample:NAME, or -.", False)] = None,
    train: Annotated[
        list[str] | None, option("Training data: examples, topics, judgments, a collection; repeatable.", False)
    ] = None,
    machine: Annotated[
        str | None, option("Labels of a machine that are among the judgments.", "the models of fontes judge")
    ] = None,
    measures: Measures = None,
    split: Split = None,
    near: Annotated[float, option("Least similarity of near copies; 0: only equal texts.")] = 0.8,
    seed: Annotated[int, option("Seed of the random orders of equal scores.")] = 0,
    output: ReportFiles = None,
    json: Json = False,
) -> None:
    """Audit a score: what of it is ties, leaks, copies, missing judgments or another tool's rule. The exit code is 0."""
    from ....auditing import audit as audit_of
    from ....datasets import corpus_of, judged_topics
    from ....measures import DEFAULT
    from ....measures.evaluation import refuse_exchanged
    from ....measures.names import need_groups, parse_all
    from ....storage.files import STANDARD

    if (qrels is None) == (collection is None):
        raise typer.BadParameter("give the judgments with --qrels, or all of a collection with --collection")
    check_one_stdin(run=run, qrels=qrels, topics=topics, corpus=corpus, machine=machine)
    parsed = parse_all(measures or DEFAULT)
    documents = corpus or (collection if collection is not None and _has_corpus(collection) else None)
    stored = None if qrels is None else _stored_judgments(Path(qrels))
    try:
        source = None if stored else qrels or collection
        texts, judgments = judged_topics(topics or collection, source, split, groups=need_groups(parsed))
        judgments, labels = stored or (judgments, None if machine is None else Qrels.of(machine))
        assert judgments is not None  # one of the two options is given
        report = audit_of(
            run,
            judgments,
            topics=texts,
            corpus=documents if documents in (None, STANDARD) else corpus_of(documents),
            train=[*(train or []), *([] if collection is None else _training_split(collection, split))],
            machine=labels,
            measures=parsed,
            near=near or None,
            seed=seed,
        )
    except InputError as error:
        if run is not None and qrels is not None and not stored:
            refuse_exchanged(run, qrels, error)
        raise
    print_report(report, output, json)


def _stored_judgments(path: Path) -> tuple[Qrels, Qrels] | None:
    """Return the judgments of a file of `fontes judge`, and those by models alone; None for another file."""
    if not path.is_file() or not path.read_bytes().startswith(b"SQLite format 3"):
        return None
    from ...judging.judging import judged_with_machines

    return judged_with_machines(path)


def _has_corpus(collection: str) -> bool:
    """Whether a collection has documents; a folder may have topics and judgments alone."""
    from ....formats.folder import CORPUS

    return not Path(collection).is_dir() or any(Path(collection).glob(f"{CORPUS}*"))


def _training_split(collection: str, split: str | None) -> list[tuple[object, Qrels]]:
    """Return topics and judgments of a collection's split "train", unless it is the audited one."""
    from ....datasets import dataset, named

    source = named(collection) or dataset(collection)
    if split in (None, "train") or "train" not in source.splits:
        return []
    return [(source.topics("train"), source.qrels("train"))]

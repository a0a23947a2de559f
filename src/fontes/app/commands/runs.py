"""`fontes eval`, `convert`, `rerank` and `rewrite`: one run, or one file of topics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ...core import Qrels, Topics
from ...core.errors import InputError
from ..completion import complete_pipeline
from ..options import (
    Analyzer,
    Format,
    Json,
    Judged,
    Machine,
    Measures,
    NotItself,
    Ray,
    RunFormat,
    RunOutput,
    Split,
    Tag,
    TopicsFile,
    TopicsSplit,
    Verify,
    argument,
    check_one_stdin,
    documents,
    option,
    reads_files,
)
from ..output import counted, print_evaluation, print_json, reporting
from ..pipelines import applied, open_index, reranker, rewriter

NOTEWORTHY = 10  # a note on topics whose own document is first, if they are one in ten


@reads_files("id", of="topics")
def eval_(
    qrels: Judged,
    run: Annotated[str, argument("A run, or -.")],
    names: Annotated[list[str] | None, argument("The same as --measures.")] = None,
    measures: Measures = None,
    per_topic: Annotated[bool, option("Each topic as well.", True, "-q", "--per-topic")] = False,
    split: Split = None,
    machine: Machine = None,
    not_itself: NotItself = False,
    json: Json = False,
) -> None:
    """Measure a run against judgments: means over all judged topics."""
    from ...formats import read_run
    from ...measures import DEFAULT, evaluate
    from ...measures.evaluation import refuse_exchanged
    from ...measures.names import need_groups, parse_all
    from ...reorder import NotItself as OwnDocuments
    from ...reorder.own_documents import own_documents_first

    check_one_stdin(qrels=qrels, run=run)
    parsed = parse_all([*(names or []), *(measures or [])] or DEFAULT)
    try:
        ranking = read_run(run)
        judgments = Qrels.of(qrels, split=split, groups=need_groups(parsed))
        labels = None if machine is None else Qrels.of(machine)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise
    if not_itself:
        ranking = OwnDocuments()(ranking)
    elif (first := own_documents_first(ranking, judgments)) and len(first) * NOTEWORTHY >= len(judgments):
        note = f"in {len(first):,} of {counted(len(judgments), 'topic')} the document with the topic's own id is first"
        print(f"fontes: {note}, such as '{first[0]}'; --not-itself leaves these out, as BEIR does", file=sys.stderr)
    result = evaluate(ranking, judgments, parsed, machine=labels)
    if json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_evaluation(result, per_topic)


@reads_files("id", "title", "text", "groups", "skip_bad")
def convert(
    kind: Annotated[str, argument("corpus, topics, qrels, run or index.")],
    source: Annotated[str, argument("File to read, a BEIR folder, irds:NAME, an index, or -.")],
    target: Annotated[str, argument("File to write, or -.")],
    format: Format = None,
    split: Split = None,
    to: Annotated[str | None, option("Format to write.", "the first of its kind")] = None,
    tag: Annotated[str, option("Runs: the last column.")] = "fontes",
    sentences: Annotated[
        bool, option("Qrels: the sentences that claims name as evidence, as DOCUMENT#NUMBER.", True, "--sentences")
    ] = False,
) -> None:
    """Rewrite a file in another format: BEIR's for corpora and topics, TREC's for qrels and runs, CIFF for an index."""
    if kind == "index":
        _export(source, target, {"--format": format, "--split": split, "--sentences": sentences or None}, to)
        return
    from ...formats import read_run, write
    from ...passages import sentence_qrels

    readers: dict[str, Callable[[], object]] = {
        "corpus": lambda: documents(source, format),
        "topics": lambda: Topics.read(source, split, format),
        "qrels": lambda: (
            sentence_qrels(Topics.read(source, split, format)) if sentences else Qrels.of(source, split, format=format)
        ),
        "run": lambda: read_run(source, format=format, split=split),
    }
    if kind not in readers:
        raise typer.BadParameter(f"'{kind}' is not one of {', '.join(readers)}, index")
    if split is not None and kind == "corpus":
        raise typer.BadParameter("--split applies to topics, qrels and runs, not to a corpus")
    if sentences and kind != "qrels":
        raise typer.BadParameter(f"--sentences applies to qrels, not to a {kind}")
    write(kind, readers[kind](), target, to, tag)


def _export(index: str, target: str, inapplicable: dict[str, object], to: str | None) -> None:
    """Write an index as a CIFF file; the `inapplicable` options must be None."""
    for name, value in inapplicable.items():
        if value is not None:
            raise typer.BadParameter(f"{name} applies to files, not to an index")
    if to not in (None, "ciff"):
        raise typer.BadParameter(f"an index is written as ciff, not as '{to}'")
    open_index(index).export(target)


@reads_files("id", "text", of="topics")
def rerank(
    run: Annotated[str, argument("A run: TREC or MS MARCO, or -.")],
    index: Annotated[Path, option("Index that has the documents' text.", False)],
    topics: TopicsFile,
    with_: Annotated[
        str, option("A stage from run to run: 'cross_encoder(\"MODEL\")'.", False, "--with", autocompletion=complete_pipeline)
    ],
    split: TopicsSplit = None,
    k: Annotated[int, option("The best documents of each topic; the others are left out.", True, "-k", min=1)] = 100,
    analyzer: Analyzer = None,
    verify: Verify = False,
    output: RunOutput = "-",
    tag: Tag = "fontes",
    to: RunFormat = None,
    ray: Ray = None,
    json: Json = False,
) -> None:
    """Rerank the documents of a run: with a cross-encoder, a T5, or any pipeline from run to run."""
    from ...formats import read_run, write_run
    from ..results import ranking_as_json

    check_one_stdin(run=run, topics=topics)
    opened = open_index(index, analyzer, verify)
    stage = reranker(with_, opened)
    candidates = read_run(run, Topics.read(topics, split=split)).with_(documents=opened).top(k)
    with reporting(json):
        reranked = applied(stage, candidates, ray)
    if json:
        for ranking in reranked.values():
            print_json(ranking_as_json(ranking, text=False))
    else:
        write_run(reranked, output, tag, to or "trec")


@reads_files("id", "text", of="topics")
def rewrite(
    topics: Annotated[str, argument("A file of topics with turns, sample:harbour/conversations, or -.")],
    with_: Annotated[
        str, option("A stage from topics to topics: 'last_turns(k=2)', 'hqe()', 'canard_t5()', …", False, "--with")
    ],
    index: Annotated[Path | None, option("Index, for stages that need one.", False)] = None,
    analyzer: Analyzer = None,
    output: Annotated[str, option("File of topics to write, as JSON lines.", True, "-o", "--output")] = "-",
    format: Format = None,
    split: TopicsSplit = None,
) -> None:
    """Rewrite the turns of conversations so that each can be searched by itself."""
    from ...formats import write_topics

    stage = rewriter(with_, None if index is None else open_index(index, analyzer), "fontes rewrite")
    turns = Topics.read(topics, split, format)
    with reporting():
        rewritten = stage(turns)
    write_topics(rewritten, output)

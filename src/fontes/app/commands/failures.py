"""`fontes failures`: the topics on which a run loses most, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...core.errors import InputError
from ..options import Json, Judged, ReportFiles, Split, argument, option, reads_files
from ..output import print_report
from ..pipelines import open_index


@reads_files("id", "text", of="topics")
def failures(
    qrels: Judged,
    run: Annotated[Path, argument("A run: TREC or MS MARCO.")],
    beside: Annotated[Path | None, option("Run to compare with.", "the ideal order of the judged documents")] = None,
    measure: Annotated[str, option("The measure.", True, "-m", "--measure")] = "nDCG@10",
    n: Annotated[int, option("Topics.", True, "-n")] = 10,
    topics: Annotated[str | None, option("Topics to examine, with their texts: as the judgments.", "all judged topics")] = None,
    index: Annotated[Path | None, option("Index searched, to examine words, lengths and repeats.", False)] = None,
    split: Split = None,
    output: ReportFiles = None,
    json: Json = False,
) -> None:
    """List the topics on which a run loses most, with facts that may explain it."""
    from ...comparison import failures as failures_of
    from ...datasets import judged_topics
    from ...formats import read_run
    from ...measures.evaluation import refuse_exchanged
    from ...measures.names import need_groups

    opened = None if index is None else open_index(index)
    try:
        queries, judgments = judged_topics(topics, qrels, split, need_groups(measure))
        assert judgments is not None  # `qrels` is given
        ranking, other = read_run(run), None if beside is None else read_run(beside)
        names = run.stem, "" if beside is None else beside.stem
        result = failures_of(ranking, judgments, measure, beside=other, topics=queries, index=opened, names=names, n=n)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise
    print_report(result, output, json)

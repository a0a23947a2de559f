"""`fontes fit`: the best pipeline that a time budget buys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...tuning import fit as fit_pipeline
from ..options import (
    Analyzer,
    Group,
    IndexPath,
    Json,
    QrelsFile,
    ReportFiles,
    Split,
    TopicsFile,
    Verify,
    option,
    options_of,
    reads_files,
)
from ..output import print_report, reporting
from ..pipelines import open_index, read_judged


@reads_files("id", "text", of="topics")
@options_of(
    fit_pipeline,
    *("measure", "folds", "seed", "memory"),
    flags={"measure": ("-m", "--measure"), "memory": ("--no-memory",)},
    memory="Do not measure the memory of the best pipelines.",
)
def fit(
    settings: dict[str, Any],
    index: IndexPath,
    topics: TopicsFile,
    qrels: QrelsFile,
    budget: Annotated[str, option("Longest time of a search, 95th percentile: 20ms, 1s.", False)],
    split: Split = None,
    rerank: Annotated[list[str] | None, option("A reranker to try: 'cross_encoder(\"MODEL\")'; repeatable.", "none")] = None,
    candidate: Annotated[list[str] | None, option("A further pipeline to try; repeatable.", "none")] = None,
    group: Group = None,
    output: ReportFiles = None,
    plot: Annotated[Path | None, option("Draw means against times and memory: .png, .svg or .pdf.", False)] = None,
    only: Annotated[bool, option("Print only the text of the pipeline.", True, "--only-pipeline")] = False,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Choose the best pipeline within a time budget, and measure the choice on held-out topics."""

    queries, judgments = read_judged(topics, qrels, split, settings, plot)
    with reporting(json):
        result = fit_pipeline(
            open_index(index, analyzer, verify),
            queries,
            judgments,
            budget,
            rerankers=rerank or (),
            candidates=candidate or (),
            groups=group,
            **settings,
        )
    if plot is not None:
        result.plot().save(plot)
    if only and not json:
        typer.echo(result.pipeline)
    else:
        print_report(result, output, json)

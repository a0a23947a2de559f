"""`fontes rerank`: apply a stage from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...core import Topics
from ..completion import complete_pipeline
from ..options import (
    Analyzer,
    Json,
    Ray,
    RunFormat,
    RunOutput,
    Tag,
    TopicsFile,
    TopicsSplit,
    Verify,
    argument,
    check_one_stdin,
    option,
    reads_files,
)
from ..output import print_json, reporting
from ..pipelines import applied, open_index, reranker


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

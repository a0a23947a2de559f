"""`fontes search`: search for one query, or for a file of topics."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..options import (
    Analyzer,
    Descending,
    Encoder,
    Facets,
    IndexPath,
    Json,
    Model,
    NotItself,
    Partial,
    Pipeline,
    Ray,
    RunOutput,
    Sort,
    Tag,
    Tolerance,
    TopicsSplit,
    Verify,
    Where,
    options_of,
    ray_of,
    reads_files,
)
from ..pipelines import LEXICAL, MODEL_PARAMETERS

commands = typer.Typer()

QUERY_DEPTH, RUN_DEPTH = 10, 1000  # default number of documents of a query, and of each topic of a run


@commands.command(rich_help_panel="Search")
@reads_files("id", "text", of="topics")
@options_of(LEXICAL, *MODEL_PARAMETERS, to="parameters")
def search(
    parameters: dict[str, Any],
    index: IndexPath,
    query: Annotated[str | None, typer.Argument(help="A question or keywords.", show_default=False)] = None,
    topics: Annotated[
        str | None,
        typer.Option(help="Topics: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", show_default=False),
    ] = None,
    split: TopicsSplit = None,
    pipeline: Pipeline = None,
    model: Model = None,
    encoder: Encoder = None,
    where: Where = None,
    sort: Sort = None,
    descending: Descending = False,
    facets: Facets = None,
    language: Annotated[
        bool,
        typer.Option("--query", help='Read the query language: +must -not "a phrase" title:word year:>=2020 pre* word~1.'),
    ] = False,
    tolerance: Tolerance = "off",
    analyzer: Analyzer = None,
    verify: Verify = False,
    partial: Partial = False,
    k: Annotated[
        int | None,
        typer.Option("-k", help="Documents a topic.", min=1, show_default="10; with --topics 1000, or as --pipeline says"),
    ] = None,
    offset: Annotated[int, typer.Option(help="Best documents to leave out, for the next page.", min=0)] = 0,
    count: Annotated[bool, typer.Option("--count", help="Count all documents that match, beyond 1,000 too.")] = False,
    not_itself: NotItself = False,
    output: RunOutput = "-",
    tag: Tag = "fontes",
    ir_metadata: Annotated[
        bool, typer.Option("--ir-metadata", help="Write a header with the run's provenance (ir_metadata).")
    ] = False,
    ray: Ray = None,
    json: Json = False,
) -> None:
    """Search an index for one query, or for a file of topics into a run."""
    from ...core.narrowing import narrowed
    from ...lexical.tolerance import tolerant
    from ..output import print_count, print_facets, print_hits, print_json, print_least_count, say_tolerated
    from ..pipelines import applied, ends_lists, hint_query_language, in_query_language, open_index, retriever, say_missing
    from ..progress import reporting
    from ..results import facets_as_json, least_total_of, ranking_as_json, total_of, why_empty
    from ..usage import refuse_exchanged

    if (query is None) == (topics is None):
        raise typer.BadParameter("give either a query or --topics FILE")
    if query is not None and not query.strip():
        raise typer.BadParameter("the query is empty; write what to search for: fontes search INDEX 'hot springs'")
    refuse_exchanged(index, query)
    if split is not None and topics is None:
        raise typer.BadParameter("--split goes with --topics")
    if not_itself and topics is None:
        raise typer.BadParameter("--not-itself goes with --topics")
    if topics is not None and (offset or count or facets):
        raise typer.BadParameter("--offset, --count and --facets go with a query, not with --topics")
    if descending and sort is None:
        raise typer.BadParameter("--descending goes with --sort COLUMN")
    if ir_metadata and (topics is None or json):
        raise typer.BadParameter("--ir-metadata goes with --topics, without --json")
    opened = open_index(index, analyzer, verify, partial, ray_of(ray))
    actors = opened.state.actors is not None
    if ray is not None and topics is None and not actors:
        raise typer.BadParameter("--ray goes with --topics, or with an index of several shards")
    stage = retriever(opened, pipeline, model, encoder, where, **parameters)
    stage = narrowed(stage, None, sort, descending)
    tolerating = None if tolerance == "off" else tolerant(stage, opened, tolerance)
    if topics is None:
        if tolerating is not None:
            stage = tolerating >> stage
        if language:
            stage = in_query_language(stage, opened, [query or ""])
        else:
            hint_query_language(stage, opened, [query or ""])
        columns = [name.strip() for name in (facets or "").split(",") if name.strip()]
        ranking = stage.search(query or "", k or (RUN_DEPTH if ends_lists(stage) else QUERY_DEPTH), offset, facets=columns)
        counts = ranking.facets()
        say_tolerated(ranking.topic)
        if json:
            total = total_of(ranking) if count else least_total_of(ranking, stage)
            counted = {"facets": facets_as_json(counts)} if columns else {}
            reason = {} if len(ranking) else {"no_hits": why_empty(ranking, opened, stage).to_dict()}
            print_json({**ranking_as_json(ranking, text=True), "total": total, **counted, **reason})
        else:
            print_hits(ranking, opened, stage)
            if count and (len(ranking) or not offset):
                print_count(ranking)
            elif len(ranking):
                print_least_count(ranking, stage)
            print_facets(counts)
        return
    from ...core import InputError, Topics
    from ...experiments import metadata_of
    from ...formats import write_run
    from ...reorder import NotItself as OwnDocuments

    depth = None if k is None and pipeline is not None else k or RUN_DEPTH
    if depth is not None:
        stage = stage % (depth + not_itself)
    if not_itself:
        stage = stage >> OwnDocuments() if depth is None else stage >> OwnDocuments() % depth
    if tolerating is not None:
        stage = tolerating >> stage
    queries = Topics.read(topics, split=split)
    texts = [topic.text for topic in queries.values()]
    if language:
        stage = in_query_language(stage, opened, texts)
    else:
        hint_query_language(stage, opened, texts)
    with reporting(json) as report:
        run = applied(stage, queries, None if actors else ray, report)
    say_missing(index, [shard for shard in run.provenance.get("missing", ()) if shard not in opened.state.missing])
    if json:
        for ranking in run.values():
            print_json(ranking_as_json(ranking, text=False))
    elif not run.rows:
        first = next(iter(run.values()))
        cause = why_empty(first, opened, stage).sentence if any(map(str.strip, texts)) else "Their texts are empty."
        raise InputError(f"{topics}: no topic has a result, so no run is written; topic '{first.topic.id}': {cause}")
    else:
        write_run(run, output, tag=tag, metadata=metadata_of(run) if ir_metadata else None)

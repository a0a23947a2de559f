"""The work of `fontes search`, without its declaration: a single query is answered before Typer would be imported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ..core import InputError, Topics
from ..core.searches import narrowed
from ..storage.files import STANDARD
from .flags import ray_of
from .pipelines import applied, ends_lists, hint_query_language, in_query_language, open_index, retriever, say_missing
from .usage import refuse_exchanged

if TYPE_CHECKING:
    from ..core import Run, Stage, Topics
    from ..index import Index

QUERY_DEPTH, RUN_DEPTH = 10, 1000  # default number of documents of a query, and of each topic of a run


class MisuseError(Exception):
    """Options that do not go together."""


def search(options: SimpleNamespace) -> None:
    """Search an index for one query, or for a file of topics into a run.

    Args:
        options: Values of the arguments and options of `commands.search.search`, by name.

    Raises:
        MisuseError: Options do not go together; nothing was printed.
    """
    _check(options)
    opened = open_index(options.index, options.analyzer, options.verify, options.partial, ray_of(options.ray))
    if options.ray is not None and options.topics is None and opened.state.actors is None:
        raise MisuseError("--ray goes with --topics, or with an index of several shards")
    stage = retriever(opened, options.pipeline, options.model, options.encoder, options.where, **options.parameters)
    stage = narrowed(stage, None, options.sort, options.descending)
    tolerating = None
    if options.tolerance != "off":
        from ..lexical.tolerance import tolerant

        tolerating = tolerant(stage, opened, options.tolerance)
    if options.topics is None:
        _print_ranking(options, opened, stage if tolerating is None else tolerating >> stage)
    else:
        _write_run(options, opened, stage, tolerating)


def _check(options: SimpleNamespace) -> None:
    query, topics = options.query, options.topics
    if (query is None) == (topics is None):
        raise MisuseError("give either a query or --topics FILE")
    if query is not None and not query.strip():
        raise MisuseError("the query is empty; write what to search for: fontes search INDEX 'hot springs'")
    refuse_exchanged(options.index, query)
    if options.split is not None and topics is None:
        raise MisuseError("--split goes with --topics")
    if options.not_itself and topics is None:
        raise MisuseError("--not-itself goes with --topics")
    if topics is not None and (options.offset or options.count or options.facets):
        raise MisuseError("--offset, --count and --facets go with a query, not with --topics")
    if options.descending and options.sort is None:
        raise MisuseError("--descending goes with --sort COLUMN")
    if str(options.output) != STANDARD and (topics is None or options.json):
        raise MisuseError("--output goes with --topics, without --json; > FILE keeps what is printed")
    if options.to is not None and (topics is None or options.json):
        raise MisuseError("--to goes with --topics, without --json")
    if options.ir_metadata and (topics is None or options.json):
        raise MisuseError("--ir-metadata goes with --topics, without --json")


def _print_ranking(options: SimpleNamespace, index: Index, stage: Stage[Topics, Run]) -> None:
    """Search for one query, and print the hits."""
    from .output import print_json
    from .results import (
        facets_as_json,
        least_total_of,
        print_count,
        print_facets,
        print_hits,
        print_least_count,
        ranking_as_json,
        say_tolerated,
        total_of,
        why_empty,
    )

    if options.language:
        stage = in_query_language(stage, index, [options.query])
    else:
        hint_query_language(stage, index, [options.query])
    columns = [name.strip() for name in (options.facets or "").split(",") if name.strip()]
    depth = options.k or (RUN_DEPTH if ends_lists(stage) else QUERY_DEPTH)
    ranking = stage.search(options.query, depth, options.offset, facets=columns)
    counts = ranking.facets()
    say_tolerated(ranking.topic)
    if options.json:
        total = total_of(ranking) if options.count else least_total_of(ranking, stage)
        counted = {"facets": facets_as_json(counts)} if columns else {}
        reason = {} if len(ranking) else {"no_hits": why_empty(ranking, index, stage).to_dict()}
        print_json({**ranking_as_json(ranking, text=True), "total": total, **counted, **reason})
        return
    print_hits(ranking, index, stage)
    if options.count and (len(ranking) or not options.offset):
        print_count(ranking)
    elif len(ranking):
        print_least_count(ranking, stage)
    print_facets(counts)


def _write_run(
    options: SimpleNamespace, index: Index, stage: Stage[Topics, Run], tolerating: Stage[Topics, Topics] | None
) -> None:
    """Search for a file of topics, and write the run."""
    from ..experiments import metadata_of
    from ..formats import write_run
    from ..reorder import NotItself
    from .output import print_json, reporting
    from .results import ranking_as_json, why_empty

    topics, not_itself = options.topics, options.not_itself
    depth = None if options.k is None and options.pipeline is not None else options.k or RUN_DEPTH
    if depth is not None:
        stage = stage % (depth + not_itself)
    if not_itself:
        stage = stage >> NotItself() if depth is None else stage >> NotItself() % depth
    if tolerating is not None:
        stage = tolerating >> stage
    queries = Topics.read(topics, split=options.split)
    texts = [topic.text for topic in queries.values()]
    if options.language:
        stage = in_query_language(stage, index, texts)
    else:
        hint_query_language(stage, index, texts)
    with reporting(options.json):
        run = applied(stage, queries, None if index.state.actors is not None else options.ray)
    absent = index.state.missing
    say_missing(options.index, [shard for shard in run.provenance.get("missing", ()) if shard not in absent])
    if options.json:
        for ranking in run.values():
            print_json(ranking_as_json(ranking, text=False))
    elif not run.rows:
        first = next(iter(run.values()))
        cause = why_empty(first, index, stage).sentence if any(map(str.strip, texts)) else "Their texts are empty."
        raise InputError(f"{topics}: no topic has a result, so no run is written; topic '{first.topic.id}': {cause}")
    else:
        write_run(run, options.output, options.tag, options.to or "trec", metadata_of(run) if options.ir_metadata else None)

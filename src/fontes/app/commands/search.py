"""`fontes search`: search for one query, or for a file of topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

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
    RunFormat,
    RunOutput,
    Sort,
    Tag,
    Tolerance,
    TopicsSplit,
    Verify,
    Where,
    argument,
    option,
    options_of_models,
    reads_files,
)


@reads_files("id", "text", of="topics")
@options_of_models
def search(
    parameters: dict[str, object],
    index: IndexPath,
    query: Annotated[str | None, argument("A question or keywords.")] = None,
    topics: Annotated[str | None, option("Topics: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", False)] = None,
    split: TopicsSplit = None,
    pipeline: Pipeline = None,
    model: Model = None,
    encoder: Encoder = None,
    where: Where = None,
    sort: Sort = None,
    descending: Descending = False,
    facets: Facets = None,
    language: Annotated[
        bool, option('Read the query language: +must -not "a phrase" title:word year:>=2020 pre* word~1.', True, "--query")
    ] = False,
    tolerance: Tolerance = "off",
    analyzer: Analyzer = None,
    verify: Verify = False,
    partial: Partial = False,
    k: Annotated[int | None, option("Documents a topic.", "10; with --topics 1000, or as --pipeline says", "-k", min=1)] = None,
    offset: Annotated[int, option("Best documents to leave out, for the next page.", min=0)] = 0,
    count: Annotated[bool, option("Count all documents that match, beyond 1,000 too.", True, "--count")] = False,
    not_itself: NotItself = False,
    output: RunOutput = "-",
    tag: Tag = "fontes",
    to: RunFormat = None,
    ir_metadata: Annotated[
        bool, option("Write a header with the run's provenance (ir_metadata).", True, "--ir-metadata")
    ] = False,
    ray: Ray = None,
    json: Json = False,
) -> None:
    """Search an index for one query, or for a file of topics into a run."""
    options = SimpleNamespace(**locals())
    from ..searching import MisuseError, search as search_index

    try:
        search_index(options)
    except MisuseError as error:
        raise typer.BadParameter(str(error)) from None

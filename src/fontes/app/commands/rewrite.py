"""`fontes rewrite`: apply a stage from topics to topics, such as a rewriter of turns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Analyzer, Format, TopicsSplit, reads_files

commands = typer.Typer()


@commands.command(rich_help_panel="Runs")
@reads_files("id", "text", of="topics")
def rewrite(
    topics: Annotated[
        str, typer.Argument(help="A file of topics with turns, sample:harbour/conversations, or -.", show_default=False)
    ],
    with_: Annotated[
        str,
        typer.Option(
            "--with", help="A stage from topics to topics: 'last_turns(k=2)', 'hqe()', 'canard_t5()', …", show_default=False
        ),
    ],
    index: Annotated[Path | None, typer.Option(help="Index, for stages that need one.", show_default=False)] = None,
    analyzer: Analyzer = None,
    output: Annotated[str, typer.Option("-o", "--output", help="File of topics to write, as JSON lines.")] = "-",
    format: Format = None,
    split: TopicsSplit = None,
) -> None:
    """Rewrite the turns of conversations so that each can be searched by itself."""
    from ...core import Topics
    from ...formats import write_topics
    from ..pipelines import open_index, rewriter
    from ..progress import reporting

    stage = rewriter(with_, None if index is None else open_index(index, analyzer), "fontes rewrite")
    turns = Topics.read(topics, split, format)
    with reporting():
        rewritten = stage(turns)
    write_topics(rewritten, output)

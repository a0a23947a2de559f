"""`fontes rewrite`: apply a stage from topics to topics, such as a rewriter of turns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...core import Topics
from ..options import Analyzer, Format, TopicsSplit, argument, option, reads_files
from ..output import reporting
from ..pipelines import open_index, rewriter


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

"""`fontes chat`: a conversation with an index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....core import InputError, Topic, Topics
from ....core.errors import ParameterError
from ....core.stage import steps
from ...options import Analyzer, Encoder, IndexPath, Json, Model, Pipeline, Verify, option, reads_files
from ...output import counted, say
from ...pipelines import open_index, retriever, rewriter_for, warm

if TYPE_CHECKING:
    from ....core import Topics


@reads_files()
def chat(
    index: IndexPath,
    with_: Annotated[
        str | None,
        option(
            "Rewriter of turns, a stage from topics to topics: 'last_turns(1)', 'hqe()', 'raw()', …",
            "weighted_turns(), or last_turns(1) where no terms are searched",
            "--with",
        ),
    ] = None,
    pipeline: Pipeline = None,
    model: Model = None,
    encoder: Encoder = None,
    analyzer: Analyzer = None,
    verify: Verify = False,
    k: Annotated[int, option("Documents a turn.", True, "-k", min=1)] = 3,
    resume: Annotated[str | None, option("Continue the conversation of a file written by /save.", False)] = None,
    at: Annotated[str | None, option("resume: after this topic.", "the last one of the file")] = None,
    json: Json = False,
) -> None:
    """Hold a conversation: each question is searched in the context of the earlier ones."""
    from ....formats.cast import PTKB
    from ....formats.decoding import reading_of
    from ....rewrite import Conversation
    from ....rewrite.turns import turns_rewriter
    from ...chat import ChatPrompt, answer_of

    opened = open_index(index, analyzer, verify)
    stage = retriever(opened, pipeline, model, encoder)
    rewriter = rewriter_for(stage) if with_ is None else with_
    if rewriter is not None:
        stage = turns_rewriter(rewriter, opened, "fontes chat --with") >> stage
    topics = _topics_until(resume, at)
    last = list(topics.values())[-1] if topics else Topic("1_0", "")
    warm(stage)
    name = last.id.rpartition("_")[0] or last.id
    ptkb = last.metadata.get(PTKB, ())
    conversation = Conversation(stage, k, id=name, turns=last.turns, answer=answer_of(opened), ptkb=ptkb)
    # Save to the same file only if that keeps all its topics and its encoding is UTF-8.
    keeps_all = at is None and reading_of().encoding is None and dict(conversation.topics()) == dict(topics)
    prompt = ChatPrompt(conversation, opened, json=json, file=Path(resume) if resume and keeps_all else None)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    if at_terminal:
        say(f"{counted(len(opened), 'document')}, {', '.join(map(repr, steps(stage)))}. /help lists the commands, Ctrl-D ends.")
    if last.turns and not json:
        say(f"After {counted(len(last.turns), 'turn')} of conversation {name}, the last: {last.turns[-1].text}")
    if at_terminal:
        prompt.interactive()
    else:
        prompt.piped()
        if prompt.failures:
            raise typer.Exit(1)


def _topics_until(resume: str | None, at: str | None) -> Topics:
    """Return the topics of a file up to the topic `at` or the last one; none without a file."""
    if resume is None:
        if at is not None:
            raise ParameterError("--at goes with --resume FILE")
        return Topics()
    topics = Topics.read(resume)
    ids = list(topics)
    last = ids[-1] if at is None else at
    if last not in topics:
        raise InputError(f"{resume} has no topic '{last}'; its last one is '{ids[-1]}'")
    if not topics[last].turns:
        raise InputError(f"{resume}: topic '{last}' has no turns, so there is no conversation to resume")
    return Topics(topics[topic_id] for topic_id in ids[: ids.index(last) + 1])

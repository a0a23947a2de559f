"""`fontes chat`: a conversation with an index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.errors import ParameterError
from .encode import DENSE, dense_of

if TYPE_CHECKING:
    from ...core import Run, Stage, Topics
    from ...index import Index

commands = typer.Typer()

LEXICAL = ("bm25", "tfidf", "ql")


@commands.command()
def chat(
    index: Annotated[Path, typer.Argument(help="An index directory.", show_default=False)],
    with_: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="The rewriter: raw(), 'last_turns(k=2)', weighted_turns(), hqe(), canard_t5(), 'quretec(\"FOLDER\")'.",
            show_default="weighted_turns(); dense: last_turns(k=1)",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="bm25, tfidf, ql (query likelihood), dense, or hybrid (bm25 and dense).")] = "bm25",
    k1: Annotated[float | None, typer.Option(help="BM25: saturation of tf.", show_default="0.9")] = None,
    b: Annotated[float | None, typer.Option(help="BM25: influence of length, 0 to 1.", show_default="0.4")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="dense, hybrid: the encoder's model.", show_default="the only one that the index has")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Documents a turn.", min=1)] = 3,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on with the conversation of a file of topics, as /save writes it.", show_default=False),
    ] = None,
    at: Annotated[str | None, typer.Option(help="resume: after this topic.", show_default="the last one of the file")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each line.")] = False,
) -> None:
    """Ask one question after the other: each is searched with those before it in mind."""
    from ...core import Topic
    from ...index import Index
    from ...rewrite import Conversation
    from ..chat import Session, answer_of
    from ..output import counted, say

    opened = Index.open(index)
    chosen = with_ or ("last_turns(k=1)" if model == "dense" else "weighted_turns()")
    stage = _rewriter(chosen, opened) >> _retriever(opened, model, k1, b, encoder)
    topics = _until(resume, at)
    last = list(topics.values())[-1] if topics else Topic("1_0", "")
    _warm(stage)
    name = last.id.rpartition("_")[0] or last.id
    conversation = Conversation(stage, k, id=name, turns=last.turns, answer=answer_of(opened))
    whole = at is None and dict(conversation.topics()) == dict(topics)  # so that saving to the same file loses nothing
    session = Session(conversation, opened, json=json, file=Path(resume) if resume and whole else None)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    if at_terminal:
        say(f"{counted(len(opened), 'document')}, {model}, {chosen}. /help lists the commands, Ctrl-D ends.")
    if last.turns and not json:
        say(f"After {counted(len(last.turns), 'turn')} of conversation {name}, the last: {last.turns[-1].text}")
    if at_terminal:
        session.interactive()
    else:
        session.piped()
        if session.failures:
            raise typer.Exit(1)


def _rewriter(text: str, index: Index) -> Stage[Topics, Topics]:
    """The rewriter of an expression. Raises ParameterError for one that takes what turns from a keyboard do not carry."""
    from ...core import Topics
    from ...core.expression import pipeline
    from ...core.part import walk
    from ...rewrite.turns import Carried

    stage = pipeline(text, index)
    stage.require(Topics, Topics, "fontes chat --with")
    for part in walk(stage):
        if isinstance(part, Carried) and part.missing == "error":
            raise ParameterError(f"what is typed carries no {part.kind} rewrite, so {part!r} has nothing to take")
    return stage


def _retriever(index: Index, model: str, k1: float | None, b: float | None, encoder: str | None) -> Stage[Topics, Run]:
    if model not in (*LEXICAL, *DENSE):
        raise ParameterError(f"unknown model '{model}'; there are {', '.join((*LEXICAL, *DENSE))}")
    if model != "bm25" and (k1 is not None or b is not None):
        raise ParameterError(f"--k1 and --b are of bm25, not of {model}")
    if model in DENSE:
        return dense_of(index, model, encoder, "flat", None)
    if model == "bm25":
        return index.bm25(k1=k1, b=b)
    return index.tfidf() if model == "tfidf" else index.ql()


def _until(resume: str | None, at: str | None) -> Topics:
    """The topics of a file, none where none is given; where `at` names one, the topics until then."""
    from ...core import InputError, Topics
    from ..inputs import topics_of

    if resume is None:
        if at is not None:
            raise ParameterError("--at goes with --resume FILE")
        return Topics()
    topics = topics_of(resume)
    ids = list(topics)
    last = ids[-1] if at is None else at
    if last not in topics:
        raise InputError(f"{resume} has no topic '{last}'; its last one is '{ids[-1]}'")
    if not topics[last].turns:
        raise InputError(f"{resume}: topic '{last}' has no turns, so there is no conversation to resume")
    return Topics(topics[topic_id] for topic_id in ids[: ids.index(last) + 1])


def _warm(stage: Stage[Topics, Run]) -> None:
    """Loads all models and compiles all kernels, so that what is missing is said before the first question."""
    from ...core import Topic, Turn

    stage(Topic("1", "why", turns=(Turn("water"), Turn("why"))))

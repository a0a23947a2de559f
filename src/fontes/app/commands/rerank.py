"""`fontes rerank`: a run read again by a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError

if TYPE_CHECKING:
    from ...neural import Reranker

commands = typer.Typer()


@commands.command()
def rerank(
    run: Annotated[str, typer.Argument(help="A run: TREC or MS MARCO, or -.", show_default=False)],
    index: Annotated[Path, typer.Option(help="The index that has the documents' text.", show_default=False)],
    topics: Annotated[str, typer.Option(help="A file of topics, irds:NAME, or -.", show_default=False)],
    model: Annotated[str, typer.Option(help="A folder, or a name on the Hugging Face hub.", show_default=False)],
    type: Annotated[str, typer.Option(help="cross-encoder or monot5.")] = "cross-encoder",
    k: Annotated[int, typer.Option("-k", help="The best documents of each topic; the others are left out.", min=1)] = 100,
    output: Annotated[str, typer.Option("-o", "--output", help="Where the run goes.")] = "-",
    tag: Annotated[str, typer.Option(help="The name of the run, its last column.")] = "fontes",
    weight: Annotated[float, typer.Option(help="Of the model; below 1 the run's scores are mixed in.", min=0.0, max=1.0)] = 1.0,
    passages: Annotated[
        int | None, typer.Option(help="Read passages of so many words; the best one counts.", min=1, show_default="whole")
    ] = None,
    score: Annotated[str, typer.Option(help="Cross-encoders: logit or sigmoid.")] = "logit",
    max_length: Annotated[
        int | None, typer.Option(help="Tokens of query and document.", min=1, show_default="the model's")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Pairs of the greatest length at once.", min=1, show_default="by tokens")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, …", show_default="a GPU where there is one")] = None,
    cache: Annotated[
        bool, typer.Option("--cache", help="Keep scores in the user's cache folder, and use those there.")
    ] = False,
) -> None:
    """Rerank the documents of a run with a cross-encoder or a T5."""
    from ...formats import read_run, write_run
    from ...index import Index
    from ...passages import Passages, to_documents
    from ..inputs import topics_of
    from ..output import building

    if run == "-" and topics == "-":
        raise typer.BadParameter("run and topics cannot both be -")
    settings = {"batch_size": batch_size, "max_length": max_length, "precision": precision, "device": device, "cache": cache}
    reranker = _reranker(type, model, score, {name: value for name, value in settings.items() if value is not None})
    given = read_run(run, topics_of(topics)).with_(documents=Index.open(index)).top(k)
    split = given if passages is None else Passages(words=passages)(given)
    stage = reranker if weight == 1 else reranker.interpolate(weight)
    with building(quiet=False, noun="pair") as progress:
        found = stage(split, progress=progress.update)
    write_run(found if passages is None else to_documents("max")(found), output, tag=tag)


def _reranker(type: str, model: str, score: str, settings: dict[str, Any]) -> Reranker:
    from ...neural import CrossEncoder, MonoT5

    if type == "cross-encoder":
        return CrossEncoder(model, score=score, **settings)
    if type != "monot5":
        raise ParameterError(f"unknown type '{type}'; there are cross-encoder and monot5")
    if score != "logit":
        raise ParameterError("score is of cross-encoders; monot5 gives log-probabilities")
    return MonoT5(model, **settings)

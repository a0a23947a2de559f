"""`fontes keyphrases`: the keyphrases of a text."""

from __future__ import annotations

from typing import Annotated

import typer

commands = typer.Typer()


@commands.command(rich_help_panel="Models")
def keyphrases(
    text: Annotated[str, typer.Argument(help="A file of text in UTF-8, or -.", show_default=False)],
    top: Annotated[int, typer.Option(help="How many; 0: all.", min=0)] = 10,
    model: Annotated[
        str, typer.Option(help="A spaCy model, or stopwords: runs without stop words, no model needed.")
    ] = "en_core_web_sm",
    stemmer: Annotated[str, typer.Option(help="One of Snowball's: porter, german, …; none.")] = "porter",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the keyphrases of a text with their scores, best first, by TopicRank."""
    from ...causal import TopicRank
    from ..output import print_json

    topicrank = TopicRank(model, stemmer=None if stemmer == "none" else stemmer)
    phrases = topicrank.keyphrases(_read(text), top or None)
    if json:
        print_json([{"keyphrase": phrase, "score": score} for phrase, score in phrases])
        return
    for phrase, score in phrases:
        typer.echo(f"{score:.4f}  {phrase}")


def _read(text: str) -> str:
    from ...storage.files import reading

    with reading(text) as source:
        return source.text()

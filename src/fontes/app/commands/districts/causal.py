"""`fontes why`: causes of an event; `fontes keyphrases`: keyphrases of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...options import Analyzer, Encoder, IndexPath, Json, Model, Pipeline, Verify, argument, option
from ...output import console, print_json, say
from ...pipelines import open_index, retriever
from ...usage import refuse_exchanged

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from ....causal import Cause, Chain


MAX_SOURCES = 3  # sources of a cause that are printed with their sentences


def why(
    index: IndexPath,
    event: Annotated[str, argument("What happened, in a few words.")],
    depth: Annotated[int, option("Length of a chain of causes.", min=1)] = 3,
    breadth: Annotated[int, option("Maximum causes of an event.", min=1)] = 3,
    k: Annotated[int, option("Documents read for each event.", True, "-k", min=1)] = 20,
    overlap: Annotated[float, option("Minimum share of the event's terms in an effect, 0 to 1.")] = 0.3,
    weak: Annotated[bool, option("Also read after, following, amid.", True, "--weak")] = False,
    leads: Annotated[int, option("Documents to add where no cause is stated.", min=0)] = 0,
    before: Annotated[str | None, option("Day of the event, YYYY-MM-DD: causes and leads are dated before it.", False)] = None,
    pipeline: Pipeline = None,
    model: Model = None,
    encoder: Encoder = None,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Print a tree of the causes of an event, as documents state them, with sources. English only."""
    from ....causal import causes

    refuse_exchanged(index, event)
    stage = retriever(open_index(index, analyzer, verify), pipeline, model, encoder)
    chain = causes(stage, event, depth, breadth, k=k, overlap=overlap, weak=weak, leads=leads, before=before)
    if json:
        print_json(chain.to_dict())
    elif chain:
        console().print(_tree(chain), soft_wrap=False)
    else:
        unused = [f"--{name}" for name, used in (("weak", weak), ("leads 3", leads)) if not used]
        say(f"No document states a cause of '{event}'{'; ' + ' or '.join(unused) + ' looks further' if unused else ''}.")


def keyphrases(
    text: Annotated[str, argument("A file of text in UTF-8, or -.")],
    top: Annotated[int, option("Keyphrases; 0: all.", min=0)] = 10,
    model: Annotated[str, option("A spaCy model, or stopwords: runs without stop words, no model needed.")] = "en_core_web_sm",
    stemmer: Annotated[str, option("One of Snowball's: porter, german, …; none.")] = "porter",
    json: Json = False,
) -> None:
    """Print the keyphrases of a text with their scores, best first, by TopicRank."""
    from ....causal import TopicRank
    from ....storage.files import reading

    with reading(text) as source:
        content = source.text()
    topicrank = TopicRank(model, stemmer=None if stemmer == "none" else stemmer)
    phrases = topicrank.keyphrases(content, top or None)
    if json:
        print_json([{"keyphrase": phrase, "score": score} for phrase, score in phrases])
        return
    for phrase, score in phrases:
        typer.echo(f"{score:.4f}  {phrase}")


def _tree(chain: Chain) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(chain.event, style="bold"))
    for cause in chain.causes:
        _add(tree, cause)
    return tree


def _add(tree: Tree, cause: Cause) -> None:
    branch = tree.add(_label(cause))
    for deeper in cause.causes:
        _add(branch, deeper)


def _label(cause: Cause) -> Text:
    from rich.text import Text

    label = Text.assemble((cause.text, "bold"))
    if cause.lead:
        label.append("  (a lead, not stated)", style="yellow")
    for source in cause.sources[:MAX_SOURCES]:
        details = [detail for detail in (source.date, source.title) if detail and detail != cause.text]
        label.append(f"\n{source.score:.2f}  ")
        label.append(source.doc_id, style="cyan")
        label.append(f"  {'  '.join(details)}" if details else "")
        label.append(f"\n      {source.sentence}", style="dim")
    if len(cause.sources) > MAX_SOURCES:
        label.append(f"\n      and {len(cause.sources) - MAX_SOURCES} more")
    return label

"""`fontes convert`: convert files between formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ...core import Qrels, Topics
from ..options import Format, Split, argument, documents, option, reads_files
from ..pipelines import open_index


@reads_files("id", "title", "text", "groups", "skip_bad")
def convert(
    kind: Annotated[str, argument("corpus, topics, qrels, run or index.")],
    source: Annotated[str, argument("File to read, a BEIR folder, irds:NAME, an index, or -.")],
    target: Annotated[str, argument("File to write, or -.")],
    format: Format = None,
    split: Split = None,
    to: Annotated[str | None, option("Format to write.", "the first of its kind")] = None,
    tag: Annotated[str, option("Runs: the last column.")] = "fontes",
    sentences: Annotated[
        bool, option("Qrels: the sentences that claims name as evidence, as DOCUMENT#NUMBER.", True, "--sentences")
    ] = False,
) -> None:
    """Rewrite a file in another format: BEIR's for corpora and topics, TREC's for qrels and runs, CIFF for an index."""
    if kind == "index":
        _export(source, target, {"--format": format, "--split": split, "--sentences": sentences or None}, to)
        return
    from ...formats import read_run, write
    from ...passages import sentence_qrels

    readers: dict[str, Callable[[], object]] = {
        "corpus": lambda: documents(source, format),
        "topics": lambda: Topics.read(source, split, format),
        "qrels": lambda: (
            sentence_qrels(Topics.read(source, split, format)) if sentences else Qrels.of(source, split, format=format)
        ),
        "run": lambda: read_run(source, format=format, split=split),
    }
    if kind not in readers:
        raise typer.BadParameter(f"'{kind}' is not one of {', '.join(readers)}, index")
    if split is not None and kind == "corpus":
        raise typer.BadParameter("--split applies to topics, qrels and runs, not to a corpus")
    if sentences and kind != "qrels":
        raise typer.BadParameter(f"--sentences applies to qrels, not to a {kind}")
    write(kind, readers[kind](), target, to, tag)


def _export(index: str, target: str, inapplicable: dict[str, object], to: str | None) -> None:
    """Write an index as a CIFF file; the `inapplicable` options must be None."""

    for name, value in inapplicable.items():
        if value is not None:
            raise typer.BadParameter(f"{name} applies to files, not to an index")
    if to not in (None, "ciff"):
        raise typer.BadParameter(f"an index is written as ciff, not as '{to}'")
    open_index(index).export(target)

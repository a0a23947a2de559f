"""`fontes encode`: the documents' vectors, stored with an index; and what searches them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError

if TYPE_CHECKING:
    from ...core import Run, Stage, Topics
    from ...index import Index

commands = typer.Typer()

DENSE = ("dense", "hybrid")  # models of `fontes search` that need an encoder


@commands.command()
def encode(
    index: Annotated[Path, typer.Argument(help="An index directory.", show_default=False)],
    model: Annotated[str, typer.Argument(help="A model: a folder, or a name on the hub.", show_default=False)],
    dtype: Annotated[str, typer.Option(help="float32, float16 or int8.")] = "float32",
    pooling: Annotated[
        str | None,
        typer.Option(
            help="cls, mean or max over the tokens of a transformer; default: sentence-transformers.", show_default=False
        ),
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens of a text at most.", show_default="the model's")] = None,
    query_prompt: Annotated[str | None, typer.Option(help="Text before each query.", show_default="the model's")] = None,
    document_prompt: Annotated[str | None, typer.Option(help="Text before each document.", show_default="the model's")] = None,
    window: Annotated[
        int | None, typer.Option(help="Encode windows of so many words, half overlapping.", show_default="whole texts")
    ] = None,
    search: Annotated[str, typer.Option(help="Also build an approximate index: hnsw, IVF256,Flat, annoy:1000, …")] = "flat",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Encode again what is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Store the documents' vectors with an index, for dense retrieval. Interrupted, it goes on where it was."""
    from ...index import Index
    from ..output import building, counted, print_json, say, size

    opened = Index.open(index)
    encoder = _encoder(model, pooling, max_length, query_prompt, document_prompt, window)
    with building(json) as progress:
        opened.encode(encoder, dtype=dtype, overwrite=overwrite, progress=progress.update)
    made = opened.embeddings(encoder, dtype).info()
    recall = opened.dense(encoder, algorithm=search, dtype=dtype).recall() if search != "flat" else {}
    if json:
        print_json({**made, "recall": recall, "seconds": round(progress.seconds, 3)})
        return
    vectors = f"{counted(made['vectors'], 'vector')} of {made['dim']} dimensions in {dtype}"
    say(f"{index}: {vectors} in {progress.seconds:.1f} s; {size(made['bytes'])}")
    if recall:
        say(f"{search}: " + ", ".join(f"{value:.1%} of the exact best {name[2:]}" for name, value in recall.items()))


def dense_of(index: Index, model: str, encoder: str | None, search: str, threads: int | None) -> Stage[Topics, Run]:
    """The retriever of `fontes search --model dense`, or for "hybrid" its fusion with BM25."""
    from ...fusion import fuse
    from ...neural.dense.settings import encoder_of

    dense = index.dense(encoder_of(index, encoder), algorithm=search, threads=threads)
    return dense if model == "dense" else fuse(index.bm25(threads=threads), dense, method="wsum", weights=(0.5, 0.5))


def _encoder(
    model: str,
    pooling: str | None,
    max_length: int | None,
    query_prompt: str | None,
    document_prompt: str | None,
    window: int | None,
) -> Any:
    from ...neural import ChunkedEncoder, SentenceEncoder, TransformerEncoder

    given: dict[str, Any] = {"query_prompt": query_prompt, "document_prompt": document_prompt, "max_length": max_length}
    given = {key: value for key, value in given.items() if value is not None}
    encoder: Any = SentenceEncoder(model, **given) if pooling is None else TransformerEncoder(model, pooling=pooling, **given)
    if window is None:
        return encoder
    if window < 2:
        raise ParameterError(f"--window must be 2 words or more, not {window}")
    return ChunkedEncoder(encoder, window=window, stride=window // 2)

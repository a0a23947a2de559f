"""The command line: `fontes`. Commands read and write files or, with "-", standard input and output, and pipe."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NoReturn, cast

import typer

from ..core.errors import FontesError, ParameterError
from .commands import (
    chat,
    compare,
    encode,
    experiment,
    fuse,
    keyphrases,
    late,
    plot,
    recipe,
    rerank,
    rewrite,
    split,
    train,
    tune,
    why,
)
from .commands.encode import DENSE, dense_of

if TYPE_CHECKING:
    from ..index import Index
    from ..lexical import Lexical

app = typer.Typer(
    name="fontes",
    help="Document retrieval: index a collection, search it, measure the run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

IndexPath = Annotated[Path, typer.Argument(help="An index directory.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Format = Annotated[str | None, typer.Option(help="The format of the input; default: detected.", show_default=False)]
Threads = Annotated[int | None, typer.Option(help="How many threads; default: all.", min=1, show_default=False)]
Model = Annotated[str, typer.Option(help="bm25, tfidf, ql (query likelihood), dense, or hybrid (bm25 and dense).")]
Encoder = Annotated[
    str | None, typer.Option(help="dense, hybrid: the encoder's model.", show_default="the only one that the index has")
]
Variant = Annotated[str, typer.Option(help="BM25: lucene, robertson, okapi, atire, plus or l.")]
K1 = Annotated[float | None, typer.Option(help="BM25: saturation of tf.", show_default="0.9; okapi 1.5")]
B = Annotated[float | None, typer.Option(help="BM25: influence of length, 0 to 1.", show_default="0.4; okapi 0.75")]
K3 = Annotated[float | None, typer.Option(help="BM25: saturation of the query's terms.", show_default="none")]
Delta = Annotated[float | None, typer.Option(help="BM25 plus and l.", show_default="1 and 0.5")]
Lengths = Annotated[str, typer.Option(help="BM25: exact, or lucene for scores equal to Lucene's.")]

# commands: one line here for each module in commands/: app.add_typer(fuse.commands)
app.add_typer(split.commands)
app.add_typer(keyphrases.commands)
app.add_typer(tune.commands)
app.add_typer(experiment.commands)
app.add_typer(plot.commands)
app.add_typer(compare.commands)
app.add_typer(fuse.commands)
app.add_typer(late.commands)
app.add_typer(encode.commands)
app.add_typer(rerank.commands)
app.add_typer(why.commands)
app.add_typer(train.commands)
app.add_typer(rewrite.commands)
app.add_typer(chat.commands)
app.add_typer(recipe.commands)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Document retrieval: index a collection, search it, measure the run."""


@app.command("index")
def index_command(
    corpus: Annotated[
        str, typer.Argument(help="A file or folder of documents, irds:NAME, or - for JSON lines.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The directory to make.", show_default=False)],
    analyzer: Annotated[str, typer.Option(help="english, czech, cjk, … , also with +words:1-2 or +chars:3-5.")] = "english",
    fields: Annotated[str, typer.Option(help="What to index, separated by commas.")] = "title,text",
    format: Annotated[
        str | None, typer.Option(help="The format of the documents; default: detected.", show_default=False)
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory for postings before they go to disk.")] = "2G",
    threads: Threads = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is there.")] = False,
    json: Json = False,
) -> None:
    """Make an index of a collection."""
    from ..datasets import corpus_of
    from ..index import Index
    from .output import building, counted, print_json, say, size

    with building(json) as progress:
        index = Index.build(
            corpus_of(corpus, format),
            output,
            analyzer=analyzer,
            fields=[f.strip() for f in fields.split(",") if f.strip()],
            memory=memory,
            threads=threads,
            overwrite=overwrite,
            progress=progress.update,
        )
    info = index.info()
    if json:
        print_json({**info, "seconds": round(progress.seconds, 3)})
    else:
        say(
            f"{output}: {counted(info['documents'], 'document')}, {counted(info['terms'], 'term')}, "
            f"{counted(info['tokens'], 'token')} in {progress.seconds:.1f} s; "
            f"{size(info['bytes'])}, of which text {size(info['bytes_of_text'])}"
        )


@app.command()
def search(
    index: IndexPath,
    query: Annotated[str | None, typer.Argument(help="A question or keywords.", show_default=False)] = None,
    topics: Annotated[str | None, typer.Option(help="A file of topics, irds:NAME, or -.", show_default=False)] = None,
    model: Model = "bm25",
    variant: Variant = "lucene",
    k1: K1 = None,
    b: B = None,
    k3: K3 = None,
    delta: Delta = None,
    lengths: Lengths = "exact",
    encoder: Encoder = None,
    vectors: Annotated[
        str, typer.Option("--search", help="dense: flat, or approximate: hnsw, IVF256,Flat, annoy:1000, …")
    ] = "flat",
    k: Annotated[
        int | None, typer.Option("-k", help="Documents a topic.", min=1, show_default="10; with --topics 1000")
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="Where the run goes, with --topics.")] = "-",
    tag: Annotated[str, typer.Option(help="The name of the run, its last column.")] = "fontes",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Search an index for one query, or for a file of topics into a run."""
    from ..datasets import topics_of
    from ..formats import write_run
    from ..index import Index
    from .output import print_hits, print_json, run_as_json

    if (query is None) == (topics is None):
        raise typer.BadParameter("give either a query or --topics FILE")
    opened = Index.open(index)
    k = k or (10 if topics is None else 1000)
    if model in DENSE:
        stage: Any = dense_of(opened, model, encoder, vectors, threads) % k
    else:
        stage = _retriever(opened, model, variant, k1, b, k3, delta, lengths, threads) % k
    if topics is None:
        ranking = stage.search(query or "", k)
        if json:
            print_json(run_as_json(ranking, text=True))
        else:
            print_hits(ranking, opened)
        return
    run: Any = stage(topics_of(topics))
    if json:
        for ranking in run.values():
            print_json(run_as_json(ranking, text=False))
    else:
        write_run(run, output, tag=tag)


@app.command("eval")
def evaluate_command(
    qrels: Annotated[str, typer.Argument(help="Judgments: TREC, BEIR, irds:NAME, or -.", show_default=False)],
    run: Annotated[str, typer.Argument(help="A run, or -.", show_default=False)],
    measures: Annotated[
        list[str] | None, typer.Argument(help="nDCG@10, AP, R@100, 'P(rel=2)@5', …", show_default="nDCG@10 AP R@100")
    ] = None,
    per_topic: Annotated[bool, typer.Option("-q", "--per-topic", help="Each topic as well.")] = False,
    json: Json = False,
) -> None:
    """Measure a run against judgments: means over all judged topics."""
    from ..datasets import qrels_of
    from ..formats import read_run
    from ..measures import evaluate
    from .output import print_evaluation, print_json

    if qrels == "-" and run == "-":
        raise typer.BadParameter("qrels and run cannot both be -")
    result = evaluate(read_run(run), qrels_of(qrels), measures or ["nDCG@10", "AP", "R@100"])
    if json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_evaluation(result, per_topic)


@app.command()
def explain(
    index: IndexPath,
    query: Annotated[str, typer.Argument(help="A question or keywords.", show_default=False)],
    document: Annotated[str, typer.Argument(help="A document's id.", show_default=False)],
    model: Model = "bm25",
    variant: Variant = "lucene",
    k1: K1 = None,
    b: B = None,
    k3: K3 = None,
    delta: Delta = None,
    lengths: Lengths = "exact",
    encoder: Encoder = None,
    json: Json = False,
) -> None:
    """Show how the score of a document for a query comes about."""
    from ..index import Index
    from .output import print_explanation, print_json

    opened = Index.open(index)
    stage: Any
    if model in DENSE:
        stage = dense_of(opened, model, encoder, "flat", 1)
    else:
        stage = _retriever(opened, model, variant, k1, b, k3, delta, lengths, 1)
    explanation = stage.explain(query, document)
    if json:
        print_json(explanation.to_dict())
    else:
        print_explanation(explanation)


@app.command()
def info(index: IndexPath, json: Json = False) -> None:
    """Say what an index holds."""
    from ..index import Index
    from .output import print_info, print_json

    facts = Index.open(index).info()
    if json:
        print_json(facts)
    else:
        print_info(facts)


@app.command()
def check(index: IndexPath, json: Json = False) -> None:
    """Read every file of an index and say whether it is sound."""
    from ..index import Index
    from .output import counted, print_json, say

    opened = Index.open(index)
    opened.check()
    if json:
        print_json({"path": str(index), "sound": True, "documents": len(opened)})
    else:
        say(f"{index} is sound: {counted(len(opened), 'document')}")


@app.command()
def convert(
    kind: Annotated[str, typer.Argument(help="corpus, topics, qrels or run.", show_default=False)],
    source: Annotated[str, typer.Argument(help="The file to read, irds:NAME, or -.", show_default=False)],
    target: Annotated[str, typer.Argument(help="The file to write, or -.", show_default=False)],
    format: Format = None,
    to: Annotated[
        str | None, typer.Option(help="The format to write; default: the first of its kind.", show_default=False)
    ] = None,
    tag: Annotated[str, typer.Option(help="Runs: the last column.")] = "fontes",
) -> None:
    """Rewrite a file in another format: by default in BEIR's for corpora and topics, in TREC's for qrels and runs."""
    from ..datasets import corpus_of, qrels_of, topics_of
    from ..formats import read_run, write

    readers: dict[str, Callable[[str, str | None], object]] = {
        "corpus": corpus_of,
        "topics": topics_of,
        "qrels": qrels_of,
        "run": lambda path, name: read_run(path, format=name),
    }
    if kind not in readers:
        raise typer.BadParameter(f"'{kind}' is none of {', '.join(readers)}")
    write(kind, readers[kind](source, format), target, to, tag)


@app.command()
def demo(
    directory: Annotated[
        Path | None, typer.Option(help="Keep the index here; default: a temporary place.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Index the documentation of Python's standard library, ask it questions, measure two models on it."""
    from .demo import run_demo

    run_demo(directory, json)


def main() -> NoReturn:
    """Runs the command line. Exit codes: 0 done, 1 an error in the input, 2 wrong usage."""
    _open_streams()
    signal.signal(signal.SIGINT, _interrupt)
    try:
        app(standalone_mode=True)
    except FontesError as e:
        _fail(str(e))
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as e:
        _fail(f"{e.filename or 'output'}: {e.strerror or e}")
    sys.exit(0)


def _open_streams() -> None:
    """Standard streams that are closed, as `<&-` does, become such as fail when they are used; messages go nowhere.

    Python has None in their place, and the next file to be opened would get their number, which libraries write to. What
    standard output cannot encode is written as an escape.
    """
    for number, (name, wrong) in enumerate((("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, wrong)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            raw = io.FileIO(number, "w" if number else "r", closefd=False)  # no buffer, which would fail again at the end
            setattr(sys, name, io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", write_through=True))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _interrupt(number: int, frame: object) -> NoReturn:
    # Not KeyboardInterrupt, of which typer makes a silent exit.
    raise FontesError("interrupted; what was there before is unchanged")


def _fail(message: str) -> NoReturn:
    if "--debug" in sys.argv:
        raise
    print(f"fontes: {message}", file=sys.stderr)
    sys.exit(1)


def _retriever(
    index: Index,
    model: str,
    variant: str,
    k1: float | None,
    b: float | None,
    k3: float | None,
    delta: float | None,
    lengths: str,
    threads: int | None,
) -> Lexical:
    if model == "bm25":
        return index.bm25(variant=variant, k1=k1, b=b, k3=k3, delta=delta, lengths=lengths, threads=threads)
    if model == "tfidf":
        return index.tfidf(threads=threads)
    if model == "ql":
        return index.ql(lengths=lengths, threads=threads)
    raise ParameterError(f"unknown model '{model}'; there are bm25, tfidf, ql, dense and hybrid")

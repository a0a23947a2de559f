"""Arguments and options shared by commands."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_type_hints

import typer

from ..core.parameters import descriptions

if TYPE_CHECKING:
    from ..core import Doc

Command: TypeAlias = Callable[..., None]

IndexPath = Annotated[Path, typer.Argument(help="An index directory.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Topics = Annotated[str, typer.Option(help="Topics: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", show_default=False)]
Qrels = Annotated[str, typer.Option(help="Judgments: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", show_default=False)]
Split = Annotated[str | None, typer.Option(help="Of a BEIR folder, irds:NAME or sample:NAME.", show_default="the only one")]
TopicsSplit = Annotated[
    str | None, typer.Option("--split", help="Of a BEIR folder, …: the topics judged in it alone.", show_default="all topics")
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "-m", "--measures", help="nDCG@10,AP,'P(rel=2)@5', …; with commas, or more than once.", show_default="nDCG@10,AP,R@100"
    ),
]
Format = Annotated[str | None, typer.Option(help="The format of the input.", show_default="detected")]
Corpus = Annotated[
    str, typer.Argument(help="A file or folder of documents, irds:NAME, or - for JSON lines.", show_default=False)
]
Parts = Annotated[
    list[str],
    typer.Argument(
        metavar="PART...",
        help="Files or folders of documents, also at s3://…, gs://… or https://…; irds:NAME; or - for JSON lines.",
        show_default=False,
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDRESS]",
        help="Work by Ray: on this machine, or on the cluster at an address: auto, HOST:6379, ray://HOST:10001.",
        show_default=False,
    ),
]
IdPrefixes = Annotated[
    list[str] | None,
    typer.Option(
        "--id-prefix", help="Before the ids of all parts, or more than once: of each part its own.", show_default=False
    ),
]
Memory = Annotated[str, typer.Option(help="Memory for postings before they go to disk.")]
Threads = Annotated[int | None, typer.Option(help="How many threads.", min=1, show_default="all")]
RunOutput = Annotated[str, typer.Option("-o", "--output", help="Where the run goes.")]
Tag = Annotated[str, typer.Option(help="The name of the run, its last column.")]

Analyzer = Annotated[
    str | None,
    typer.Option(
        help="Your own function that made the index's terms, MODULE:FUNCTION, which is imported.", show_default="the index's"
    ),
]


def ray_of(ray: str | None) -> bool | str | None:
    """Value of the option `Ray`: an address, or True without one."""
    return True if ray == "" else ray


def reads_files(*parts: str, of: str = "documents") -> Callable[[Command], Command]:
    """Add the options of input files to a command: --encoding, --errors, and columns of the parts.

    The command does not get their values: they apply to all files that it reads.

    Args:
        *parts: "id", "title" or "text", each of which becomes an option.
        of: Kind of the records: "documents" or "topics".
    """
    several = f"The column, key or tag of the PART of {of}; several are joined."
    usual = {"id": "id, docno, …", "title": "title", "text": "text, abstract, …"}
    options: dict[str, Any] = {}
    for part in parts:
        if part == "id" or of == "topics":
            said = f"The column, key or tag of the {part} of {of}, or of a table without a header its number."
            usual |= {"id": "qid, id, …", "text": "query, text, …"} if of == "topics" else {}
            options[part] = Annotated[str | None, typer.Option(f"--{part}", help=said, show_default=usual[part])]
        else:
            said = several.replace("PART", part)
            options[part] = Annotated[list[str] | None, typer.Option(f"--{part}", help=said, show_default=usual[part])]
    options["encoding"] = Annotated[
        str | None, typer.Option(help="The encoding of the files: cp1252, utf-16, …", show_default="utf-8, or as detected")
    ]
    options["errors"] = Annotated[
        str, typer.Option(help="Of bytes that are not of the encoding: strict stops, replace goes on without them.")
    ]

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            from ..formats.decoding import Reading, reading_as

            chosen = {part: own for part in parts if (own := arguments.pop(part))}
            with reading_as(Reading(arguments.pop("encoding"), arguments.pop("errors"), chosen)):
                command(**arguments)

        _extend(run, command, {name: (kind, "strict" if name == "errors" else None) for name, kind in options.items()})
        return run

    return decorated


def has_settings(settings: type[Any], *names: str) -> Callable[[Command], Command]:
    """Add an option for each field of a dataclass, or for the fields named; the command gets them as `settings`.

    Default and help come from the field's default and description. A boolean becomes a flag, a tuple a repeatable option.
    `metadata["options"]` renames an option, or leaves it out if empty; `metadata["limits"]` bounds a number.
    """
    help_of, kinds = descriptions(settings), get_type_hints(settings)
    options: dict[str, tuple[Any, Any]] = {}
    for field in dataclasses.fields(settings):
        flags = field.metadata.get("options", (f"--{field.name.replace('_', '-')}",))
        if flags and (not names or field.name in names):
            repeated = kinds[field.name] == tuple[str, ...]
            kind = list[str] | None if repeated else kinds[field.name]
            low, high = field.metadata.get("limits", (None, None))
            shown = not repeated and field.default != ""
            option = typer.Option(*flags, help=help_of[field.name], show_default=shown, min=low, max=high)
            options[field.name] = Annotated[kind, option], None if repeated else field.default

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in options}
            for name, (_, default) in options.items():
                if default is None:
                    values[name] = tuple(values[name] or ())
            command(**arguments, settings=values)

        _extend(run, command, options, "settings")
        return run

    return decorated


def takes_settings(settings: type[Any], **help: str) -> Callable[[Command], Command]:
    """Add an option for each field of a pydantic class; the command gets those typed as the dict `settings`.

    The help is the first sentence of the field's description, or one of `help`; "None: …" in it states the default.
    """
    help_of = descriptions(settings) | help
    options: dict[str, tuple[Any, Any]] = {}
    for name, field in settings.model_fields.items():
        text, _, absent = help_of[name].partition("None: ")
        sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text.strip())[0].rstrip(";.,: ")
        default = absent.partition(". ")[0].rstrip(".") if field.default is None else field.default
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not type(None)]
        kind = str if isinstance(kinds[0], str) else kinds[0]  # a Literal's
        flag = f"--{name.replace('_', '-')}"
        options[name] = Annotated[kind | None, typer.Option(flag, help=f"{sentence}.", show_default=shown)], None

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in options}
            command(**arguments, settings={name: value for name, value in values.items() if value is not None})

        _extend(run, command, options, "settings")
        return run

    return decorated


def _extend(run: Any, command: Command, options: Mapping[str, tuple[Any, Any]], without: str = "") -> None:
    """Give a function the signature of a command with more options: annotation and default by name."""
    hints = get_type_hints(command, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != without
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in options.items()
    ]
    run.__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}


def documents(corpus: str | list[str], format: str | None) -> Iterable[Doc]:
    """Read the documents that `Corpus` or `Parts`, `Format` and the options of `reads_files` specify."""
    from ..datasets import corpus_of
    from ..formats.corpus import join_corpora
    from ..formats.decoding import reading_of

    names = [corpus] if isinstance(corpus, str) else corpus
    parts = [corpus_of(name, format, reading_of().fields) for name in names]
    return parts[0] if len(parts) == 1 else join_corpora(parts)


Verify = Annotated[bool, typer.Option("--verify", help="Read every file of the index first, and compare its sum.")]

Partial = Annotated[bool, typer.Option("--partial", help="Leave shards out that cannot be read, and say which.")]

# Options of pipelines, which `pipelines.retriever` takes.
Pipeline = Annotated[
    str | None,
    typer.Option(help="What to search with, as an expression: 'bm25() % 100 >> cross_encoder(\"MODEL\")'.", show_default=False),
]
Model = Annotated[
    str | None,
    typer.Option(help="bm25, tfidf, ql (query likelihood), dense, or hybrid (bm25 and dense).", show_default="bm25"),
]
Where = Annotated[
    str | None,
    typer.Option(
        help="What must hold of documents' metadata: \"year >= 2020 and lang in ('cs', 'en') and not retracted\".",
        show_default=False,
    ),
]
Variant = Annotated[str | None, typer.Option(help="BM25: lucene, robertson, okapi, atire, plus or l.", show_default="lucene")]
K1 = Annotated[float | None, typer.Option(help="BM25: saturation of tf.", show_default="0.9; okapi 1.5")]
B = Annotated[float | None, typer.Option(help="BM25: influence of length, 0 to 1.", show_default="0.4; okapi 0.75")]
Encoder = Annotated[
    str | None, typer.Option(help="dense, hybrid: the encoder's model.", show_default="the only one that the index has")
]

"""Arguments and options shared by commands."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

from ..core.checks import real
from ..core.errors import InputError, ParameterError
from ..core.parameters import Parameter, parameters
from ..core.part import stages
from .completion import complete_column, complete_measures, complete_model, complete_pipeline
from .flags import LEXICAL

if TYPE_CHECKING:
    from ..core import Doc

Command: TypeAlias = Callable[..., None]


def option(help: str, shown: str | bool = True, *names: str, **more: Any) -> Any:
    """Return an option of typer.

    Args:
        help: Its description.
        shown: The default as the help shows it; True: the value, False: nothing.
        *names: Names, where they are not --name.
        **more: Further arguments of `typer.Option`.
    """
    return typer.Option(*names, help=help, show_default=shown, **more)


def argument(help: str, shown: str | bool = False, **more: Any) -> Any:
    """Return an argument of typer; see `option`."""
    return typer.Argument(help=help, show_default=shown, **more)


IndexPath = Annotated[Path, argument("An index directory.")]
Json = Annotated[bool, option("Print JSON.", True, "--json")]
TopicsFile = Annotated[str, option("Topics: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", False)]
QrelsFile = Annotated[str, option("Judgments: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", False)]
Judged = Annotated[str, argument("Judgments: a file, a BEIR folder, irds:NAME, or -.")]
NotItself = Annotated[bool, option("Leave out the document that has the topic's own id, as BEIR does.", True, "--not-itself")]
Split = Annotated[str | None, option("Split of a BEIR folder, irds:NAME or sample:NAME.", "the only one")]
TopicsSplit = Annotated[str | None, option("Split of a BEIR folder, irds:NAME or sample:NAME.", "all topics", "--split")]
Measures = Annotated[
    list[str] | None,
    option(
        "nDCG@10,AP,'P(rel=2)@5', …; with commas, or more than once.",
        "nDCG@10,AP,R@100",
        "-m",
        "--measures",
        autocompletion=complete_measures,
    ),
]
Machine = Annotated[str | None, option("Machine labels of these and more topics, which the judgments correct.", False)]
Format = Annotated[str | None, option("Format of the input.", "detected")]
Corpus = Annotated[str, argument("A file or folder of documents, irds:NAME, or - for JSON lines.")]
Parts = Annotated[
    list[str],
    argument("Files or folders, also at s3://…, gs://… or https://…; irds:NAME; or - for JSON lines.", metavar="PART..."),
]
Ray = Annotated[
    str | None,
    option("Work by Ray, on this machine or at an address: auto, HOST:6379, ray://HOST:10001.", False, metavar="[ADDRESS]"),
]
IdPrefixes = Annotated[
    list[str] | None, option("Prefix of the ids of all parts; repeated, of each part.", False, "--id-prefix")
]
Memory = Annotated[
    str | None, option("Memory for postings before they go to disk, such as 2G.", "64M a processor, at least 128M")
]
Threads = Annotated[int | None, option("How many threads.", "all", min=1)]
Results = Annotated[Path | None, option("Folder to write.", "FILE's stem, .results", "-o", "--output")]
CheckLock = Annotated[bool, option("Run it again elsewhere and compare every number with the lock.", True, "--check")]
Group = Annotated[str | None, option("Topics of one document or conversation in one fold.", "none")]
ReportFiles = Annotated[
    list[Path] | None, option("Write the report: .md, .tex, .csv, .json or .html; repeatable.", False, "-o", "--output")
]
RunOutput = Annotated[str, option("Where the run goes.", True, "-o", "--output")]
Tag = Annotated[str, option("Name of the run, its last column.")]
RunFormat = Annotated[str | None, option("Format of the run: trec, msmarco, checkthat, ikat, …", "trec", "--to")]

Analyzer = Annotated[str | None, option("MODULE:FUNCTION that made the index's terms; it is imported.", "the index's")]
Verify = Annotated[bool, option("Compare the checksums of the index first.", True, "--verify")]
Partial = Annotated[bool, option("Leave out unreadable shards, and name them.", True, "--partial")]

# Options of pipelines, which `pipelines.retriever` takes.
Pipeline = Annotated[
    str | None,
    option(
        "What to search with, as an expression: 'bm25() % 100 >> cross_encoder(\"MODEL\")'.",
        False,
        autocompletion=complete_pipeline,
    ),
]
Model = Annotated[
    str | None,
    option("bm25, tfidf, ql (query likelihood), dense, or hybrid (bm25 and dense).", "bm25", autocompletion=complete_model),
]
Where = Annotated[
    str | None, option("Condition on metadata: \"year >= 2020 and lang in ('cs', 'en') and not retracted\".", False)
]
Sort = Annotated[
    str | None,
    option(
        "Column of dates or numbers that orders the documents, in place of the score.", False, autocompletion=complete_column
    ),
]
Descending = Annotated[bool, option("With --sort: the greatest value, or newest date, first.", True, "--descending")]
Facets = Annotated[
    str | None,
    option("Columns whose values are counted in all documents that match: kind,year.", False, autocompletion=complete_column),
]
Tolerance = Annotated[
    str, option("Search misspelt words with their neighbours: off, auto, or typing (the last word is a beginning).")
]
Encoder = Annotated[str | None, option("dense, hybrid: the encoder's model.", "the only one that the index has")]


def check_one_stdin(**inputs: object) -> None:
    """Check that at most one input is `-`.

    Raises:
        BadParameter: Two are.
    """
    if [*inputs.values()].count("-") > 1:
        *names, last = inputs
        raise typer.BadParameter(f"only one of {', '.join(names)} and {last} can be -")


def check_local(check: bool, ray: str | None) -> None:
    """Check that the options `CheckLock` and `Ray` are not both given.

    Raises:
        BadParameter: Both are given.
    """
    if check and ray is not None:
        raise typer.BadParameter("--check runs on this machine, without --ray")


def weights_of(option: str, typed: str) -> dict[str, float]:
    """Parse an option that maps names to weights, such as title=3,text=1; a name alone has the weight 1.

    Raises:
        ParameterError: An item is not NAME=WEIGHT, or a name occurs twice.
    """
    weights: dict[str, float] = {}
    for item in typed.split(","):
        name, equals, weight = map(str.strip, item.partition("="))
        try:
            number = real(weight) if equals else 1.0
        except ValueError:
            number = None
        if not name or name in weights or number is None:
            raise ParameterError(
                f"--{option}: '{item}' in '{typed}' is no NAME=WEIGHT of its own; write --{option} title=3,text=1"
            )
        weights[name] = int(number) if number.is_integer() else number
    return weights


def reads_files(*parts: str, of: str = "documents") -> Callable[[Command], Command]:
    """Add the options of input files to a command: --encoding, --errors, and the columns of `parts`.

    The values are not passed to the command: they apply to all files that it reads.

    Args:
        *parts: "id", "title" or "text", each of which becomes an option; "groups", whether qrels have evidence sets;
            "skip_bad", the number of documents that may be left out.
        of: Kind of the records: "documents" or "topics".
    """
    defaults = {"id": "id, docno, …", "title": "title", "text": "text, abstract, …"}
    defaults_of = {"encoding": None, "errors": "strict", "groups": False, "skip_bad": 0}
    if of == "topics":
        defaults |= {"id": "qid, id, …", "text": "query, text, …"}
    options: dict[str, Any] = {}
    flags = {
        "groups": Annotated[bool, option("The second column of TREC judgments names evidence sets.", True, "--groups")],
        "skip_bad": Annotated[int, option("Bad documents of a file to leave out, each named.", min=0)],
    }
    for part in parts:
        if part in flags:
            options[part] = flags[part]
        elif part == "id" or of == "topics":
            help_text = f"Column, key or tag of the {part}; a number without a header."
            options[part] = Annotated[str | None, option(help_text, defaults[part], f"--{part}")]
        else:
            help_text = f"Column, key or tag of the {part}; several are joined."
            options[part] = Annotated[list[str] | None, option(help_text, defaults[part], f"--{part}")]
    options["encoding"] = Annotated[str | None, option("Encoding of the files: cp1252, utf-16, …", "utf-8, or as detected")]
    options["errors"] = Annotated[str, option("Undecodable bytes: strict stops, replace puts U+FFFD.")]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            from ..formats.bad_records import BadRecords
            from ..formats.decoding import ReadingOptions, reading_as

            columns = {part: arguments.pop(part) for part in parts if part not in defaults_of}
            chosen = {part: value for part, value in columns.items() if value not in (None, [])}
            settings = {name: arguments.pop(name) for name in defaults_of if name in options}
            with reading_as(ReadingOptions(fields=chosen, bad=BadRecords(settings.pop("skip_bad", 0)), **settings)):
                command(**arguments)

        _extend(run, command, {name: (kind, defaults_of.get(name)) for name, kind in options.items()})
        return run

    return decorate


def options_of(
    source: object, *names: str, to: str = "settings", flags: Mapping[str, Sequence[str]] | None = None, **help: str
) -> Callable[[Command], Command]:
    """Add an option for each parameter of a class or function; the command gets the values that were typed as a dict.

    A boolean becomes a flag, a list an option that may be repeated. The help is the first sentence of the parameter's
    description, where "None: …" states the default. Only parameters that are texts, numbers, paths or lists of them get an
    option.

    Args:
        source: A dataclass, a pydantic class or a function; or a mapping of several by name, which the help states.
        *names: Parameters that get an option; all if none is named.
        to: Argument of the command that gets the dict.
        flags: Options by parameter, where they are not --name.
        **help: Help by parameter, in place of its description.
    """
    owners: dict[str, dict[str, Parameter]] = {}
    for owner, target in (source if isinstance(source, Mapping) else {"": source}).items():
        for name, parameter in parameters(target).items():
            if name in (names or (name,)):
                owners.setdefault(name, {})[owner] = parameter
    declared = {name: next(iter(by_owner.values())) for name, by_owner in owners.items()}
    options = {}
    for name, parameter in declared.items():
        option = _option(owners[name], (flags or {}).get(name, parameter.options), help.get(name, parameter.description))
        if option is not None:
            options[name] = option, None

    def value_of(name: str, typed: Any) -> Any:
        """Value of a parameter from the value that typer parsed."""
        if isinstance(typed, bool):
            return not declared[name].default
        if typed == "None" and declared[name].kind.endswith("| None"):
            return None
        if declared[name].kind.startswith(WEIGHTS):
            return weights_of(name, typed)
        return tuple(typed) if isinstance(typed, list) else typed

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**arguments: object) -> None:
            typed = {name: arguments.pop(name) for name in options}
            values = {name: value_of(name, value) for name, value in typed.items() if value not in (None, [])}
            command(**arguments, **{to: values})

        _extend(run, command, options, to)
        return run

    return decorate


def options_of_models(command: Command) -> Command:
    """Add an option for each of `model_parameters`; see `options_of`."""
    return options_of({name: stages[name] for name in LEXICAL}, *model_parameters(), to="parameters")(command)


def model_parameters() -> tuple[str, ...]:
    """Return the parameters that not every lexical retriever has."""
    from ..lexical.retriever import Lexical

    names = (name for model in LEXICAL for name in parameters(stages[model]) if name not in Lexical.__annotations__)
    return tuple(dict.fromkeys(names))


WEIGHTS = "Mapping[str, float]"
TYPES = {"str": str, "int": int, "float": float, "bool": bool, "Path": Path, "Literal": str, WEIGHTS: str}
LIST_TYPE = re.compile(r"(?:tuple|list|Sequence|Iterable)\[(\w+)")


def _option(by_owner: Mapping[str, Parameter], flags: Sequence[str] | None, description: str) -> Any:
    """The annotation of an option for a parameter; None if it gets no option.

    Args:
        by_owner: The parameter of each class or function that has it; the first determines the type.
        flags: The option's names; None: --name. Without any, the parameter gets no option.
        description: The help is its first sentence.
    """
    parameter = next(iter(by_owner.values()))
    flags = (f"--{parameter.name.strip('_').replace('_', '-')}",) if flags is None else flags
    kind = _type_of(parameter)
    if not flags or kind is None:
        return None
    text = description.partition("None: ")[0].strip()
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)[0].rstrip(";.,: ")
    defaults = {owner: default for owner, owned in by_owner.items() if (default := _default_of(owned))}
    if len(set(defaults.values())) > 1:
        shown: str | bool = ", ".join(f"{owner} {default}" for owner, default in defaults.items())
    else:
        shown = next(iter(defaults.values()), False)
    low, high = parameter.limits if kind is int else (-math.inf, math.inf)
    option = typer.Option(
        *flags,
        help=f"{sentence}." if "" in by_owner else f"{', '.join(by_owner)}: {sentence}.",
        show_default=shown,
        min=None if low == -math.inf else low,
        max=None if high == math.inf else high,
        metavar="NAME=WEIGHT,…" if parameter.kind.startswith(WEIGHTS) else None,
    )
    return Annotated[kind | None, option]


def _type_of(parameter: Parameter) -> Any:
    """The type of a parameter's option; None if the parameter cannot have an option."""
    kind = parameter.kind.partition(" | ")[0]
    if listed := LIST_TYPE.match(kind):
        return GenericAlias(list, TYPES[listed[1]]) if listed[1] in TYPES else None
    return TYPES.get(kind)


def _default_of(parameter: Parameter) -> str:
    """The default as text; for None, the default that its description states. "" without a default."""
    default = parameter.default
    if default is None:
        return parameter.description.partition("None: ")[2].partition(". ")[0].rstrip(".")
    if isinstance(default, bool) or default == () or parameter.required:
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def _extend(run: Any, command: Command, options: Mapping[str, tuple[object, object]], without: str = "") -> None:
    """Give `run` the signature of `command`, less the argument `without`, plus options: annotation and default by name."""
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
    from .usage import is_index

    names = [corpus] if isinstance(corpus, str) else corpus
    for name in names:
        if is_index(Path(name)):
            raise InputError(f"{name} is an index; give the documents that it was made of")
    parts = [corpus_of(name, format, reading_of().fields) for name in names]
    return parts[0] if len(parts) == 1 else join_corpora(parts)

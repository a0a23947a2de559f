"""`fontes index`: make an index of a collection."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ...index import Index
from ..completion import complete_analyzer
from ..flags import ray_of
from ..options import Format, IdPrefixes, Json, Memory, Parts, Ray, Threads, documents, option, options_of, reads_files
from ..output import counted, payload_sizes, print_json, reporting, say, size


@reads_files("id", "title", "text", "skip_bad")
@options_of(Index.build, "separate", "positions", "shards", "overwrite", "drop_vectors")
def index(
    settings: dict[str, Any],
    part: Parts,
    output: Annotated[Path, option("Index directory to create.", False, "-o", "--output")],
    analyzer: Annotated[
        str,
        option(
            "english, czech, cjk, …, also with +words:1-2 or +chars:3-5; or your MODULE:FUNCTION.",
            autocompletion=complete_analyzer,
        ),
    ] = "english",
    fields: Annotated[str, option("What to index, separated by commas.")] = "title,text",
    format: Format = None,
    id_prefix: IdPrefixes = None,
    columns: Annotated[
        str | None,
        option(
            "Metadata columns for filters: year=integer,lang=keyword, …; also float, date (or date:%d/%m/%Y), boolean, "
            "keywords.",
            "all of one type",
        ),
    ] = None,
    ray: Ray = None,
    memory: Memory = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Make an index of a collection."""
    from ...formats.corpus import with_prefixes
    from ...text.analyzer import typed_analyzer

    start = time.perf_counter()
    docs = with_prefixes(part, id_prefix or (), lambda parts: documents(parts, format))
    with reporting(json, compiling=True):
        built = Index.build(
            docs,
            output,
            analyzer=typed_analyzer(analyzer),
            fields=[field.strip() for field in fields.split(",") if field.strip()],
            columns=_parse_columns(columns),
            ray=ray_of(ray),
            memory=memory,
            threads=threads,
            **settings,
        )
    seconds = time.perf_counter() - start
    info = built.info()
    if json:
        print_json({**info, "seconds": round(seconds, 3)})
    else:
        types = [f"{name}={kind}" for name, kind in info["columns"].items()] if columns is None and _has_cells(docs) else []
        guessed = f"; columns {','.join(types)} (--columns names others)" if types else ""
        guessed += _dates_to_declare(built)
        say(
            f"{output}: {counted(info['documents'], 'document')}, {counted(info['terms'], 'term')}, "
            f"{counted(info['tokens'], 'token')} in {seconds:.1f} s; "
            f"{size(info['bytes'])}, of which text {size(info['bytes_of_text'])}"
            f"{''.join(f', {name} {part}' for name, part in payload_sizes(info))}{guessed}"
        )


def _has_cells(docs: object) -> bool:
    """Whether documents come from tables, whose column types were guessed."""
    from ...formats.corpus import Corpus

    return isinstance(docs, Corpus) and docs.has_cells


def _dates_to_declare(index: Index) -> str:
    """Say which columns look like dates, and with which option they become dates; "" if there is none."""
    from ...index.columns import date_forms

    forms = date_forms(index.state)
    if not forms:
        return ""
    shown = [
        f"'{name}' looks like dates" + (f" of the form {' or '.join(named)}" if named[0] else "")
        for name, named in forms.items()
    ]
    types = index.columns | {name: f"date:{named[0]}".rstrip(":") for name, named in forms.items()}
    option = shlex.quote(",".join(f"{name}={kind}" for name, kind in types.items()))
    return f"; {', '.join(shown)}: --columns {option} --overwrite makes dates of {'it' if len(forms) == 1 else 'them'}"


def _parse_columns(text: str | None) -> dict[str, str] | None:
    """Read NAME=TYPE, …; the form of a date may have commas."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in re.split(r",(?=[^,=]*=)", text.rstrip(", ")) if pair.strip()]
    if other := next((kind for _, _, kind in pairs if "," in kind and not kind.startswith("date:")), None):
        raise typer.BadParameter(f"--columns takes NAME=TYPE, with commas, not '{other.partition(',')[2].strip()}'")
    for name, sign, kind in pairs:
        if not (name.strip() and sign and kind.strip()):
            raise typer.BadParameter(f"--columns takes NAME=TYPE, with commas, not '{name}{sign}{kind}'")
    return {name.strip(): kind.strip() for name, _, kind in pairs}

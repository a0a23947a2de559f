"""`fontes index`, `add`, `delete`, `merge`, `copy`, `info` and `check`: indexes, from the first document to the last check."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError
from ...index import Index
from ...storage.files import STANDARD, reading
from ...text.analyzer import typed_analyzer
from ..completion import complete_analyzer
from ..flags import ray_of
from ..options import (
    Analyzer,
    Format,
    IdPrefixes,
    IndexPath,
    Json,
    Memory,
    Partial,
    Parts,
    Ray,
    Threads,
    argument,
    documents,
    option,
    options_of,
    reads_files,
)
from ..output import counted, payload_sizes, print_change, print_info, print_json, reporting, say, size, tell
from ..pipelines import open_index
from ..usage import refuse_misspelt

if TYPE_CHECKING:
    from ...storage.temporary import Leftover

MARKER_FILES = ("experiment.lock", "unfinished.json", "config.json")  # of folders of results and of models


@reads_files("id", "title", "text", "skip_bad")
@options_of(Index.build, "separate", "positions", "duplicates", "shards", "overwrite", "drop_vectors")
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


@reads_files("id", "title", "text", "skip_bad")
def add(
    index: IndexPath,
    part: Parts,
    duplicates: Annotated[str, option("Ids that the index has: error, skip or replace.")] = "error",
    format: Format = None,
    id_prefix: IdPrefixes = None,
    analyzer: Analyzer = None,
    memory: Memory = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add documents to an index, or replace some that it has. Running searches are not disturbed."""
    from ...formats.corpus import with_prefixes

    opened = open_index(index, analyzer)
    docs = with_prefixes(part, id_prefix or (), lambda parts: documents(parts, format))
    start = time.perf_counter()
    with reporting(json, compiling=True):
        change = opened.add(docs, duplicates=duplicates, memory=memory, threads=threads)
    older = "an older one" if change.replaced == 1 else "older ones"
    replaced = f", {change.replaced:,} in place of {older}" if change.replaced else ""
    skipped = f", {change.skipped:,} skipped" if change.skipped else ""
    print_change(
        index, change, f"{counted(change.added, 'document')} added{replaced}{skipped}", time.perf_counter() - start, json
    )


def delete(
    index: IndexPath,
    id: Annotated[list[str] | None, argument("Ids of documents; - reads one per line.")] = None,
    where: Annotated[str | None, option("Filter, in place of ids: all documents that pass it.")] = None,
    missing: Annotated[str, option("Ids that the index lacks: error or skip.")] = "error",
    json: Json = False,
) -> None:
    """Delete documents from an index. Running searches are not disturbed."""
    if not id and where is None:
        raise ParameterError("name documents by their ids, or by a filter, --where; none is deleted")
    opened = open_index(index)
    start = time.perf_counter()
    change = opened.delete(_read_ids() if id == ["-"] else id or (), where=where, missing=missing)
    skipped = f", {change.skipped:,} skipped" if change.skipped else ""
    print_change(index, change, f"{counted(change.deleted, 'document')} deleted{skipped}", time.perf_counter() - start, json)


def _read_ids() -> list[str]:
    with reading(STANDARD) as source:
        return [line for _, line in source.texts()]


def merge(
    index: IndexPath,
    memory: Memory = None,
    threads: Threads = None,
    drop_vectors: Annotated[
        bool, option("Drop vectors that only some documents have, which prevent a merge.", True, "--drop-vectors")
    ] = False,
    positions: Annotated[
        bool, option("Also store the positions of terms, found in the stored texts.", True, "--positions")
    ] = False,
    analyzer: Analyzer = None,
    json: Json = False,
) -> None:
    """Merge the segments of an index, and drop deleted documents. Running searches are not disturbed."""
    opened = open_index(index, analyzer)
    start = time.perf_counter()
    with reporting(json, compiling=True):
        change = opened.merge(memory=memory, threads=threads, drop_vectors=drop_vectors, positions=positions)
    print_change(index, change, "merged", time.perf_counter() - start, json)


def copy(
    source: Annotated[str, argument("An index: a directory, or an address (s3://…, gs://…, hf://…).")],
    target: Annotated[str, argument("The copy to create: a directory, or an address.")],
    overwrite: Annotated[bool, option("Replace an existing index.", True, "--overwrite")] = False,
    json: Json = False,
) -> None:
    """Copy an index to a directory or an address, and check all sums. Existing files are not copied again."""
    from ...index.remote import copy_index

    refuse_misspelt(source)
    with reporting(json):
        copy_index(source, target, overwrite=overwrite)
    tell(json, {"source": source, "target": target}, f"{source} is at {target}")


def info(
    index: Annotated[Path | None, argument("An index directory.", "what is cached")] = None,
    partial: Partial = False,
    json: Json = False,
) -> None:
    """Describe an index; without one, list the bytes in the user's cache and of compiled code."""
    if index is None:
        from ...storage.caches import cached_bytes
        from ...storage.compiled import compiled_bytes

        facts: dict[str, object] = {**cached_bytes(), **compiled_bytes()}
    else:
        from ..pipelines import open_index

        facts = open_index(index, partial=partial).info()
    if json:
        print_json(facts)
    else:
        print_info(facts)


def check(
    index: Annotated[Path, argument("An index, or a folder of an experiment or a model.")],
    deep: Annotated[bool, option("Compare each part with the others as well.", True, "--deep")] = False,
    clean: Annotated[bool, option("Remove leftovers of stopped processes.", True, "--clean")] = False,
    json: Json = False,
) -> None:
    """Check every file of an index, and list leftovers of stopped processes."""
    from ...index.leftovers import clean as remove_leftovers, leftovers as list_leftovers

    removed, leftovers = remove_leftovers(index) if clean else ([], list_leftovers(index))
    try:
        documents = None if _may_be_no_index(index, removed) else _check_index(index, deep)
    finally:  # leftovers matter even more for a damaged index
        if not json:
            _print_leftovers(index, removed, leftovers)
    if json:
        state = {} if documents is None else {"sound": True, "documents": documents}
        print_json(
            {"path": str(index), **state, "leftovers": list(map(_facts, leftovers)), "removed": list(map(_facts, removed))}
        )
    elif documents is None:
        say(f"{index} is not an index; only leftovers were looked for")
    else:
        say(f"{index} is sound: {counted(documents, 'document')}")


def _may_be_no_index(path: Path, removed: list[Leftover]) -> bool:
    """Whether a path is a folder of results or of a model, or no longer exists after its leftovers were removed."""
    has_results_or_model = any((path / name).is_file() for name in MARKER_FILES) or (path / "indexes").is_dir()
    return has_results_or_model or (bool(removed) and not path.exists())


def _check_index(index: Path, deep: bool) -> int:
    """Check an index and return the number of its documents."""
    opened = open_index(index)
    opened.check(deep)
    return len(opened)


def _facts(leftover: Leftover) -> dict[str, object]:
    return {"path": str(leftover.path), "what": leftover.what, "in_use": leftover.in_use}


def _print_leftovers(index: Path, removed: list[Leftover], leftovers: list[Leftover]) -> None:
    for leftover in removed:
        say(f"removed: {leftover.path} ({leftover.what})")
    for leftover in leftovers:
        remedy = (
            "another process works in it" if leftover.in_use else f"fontes check {shlex.quote(str(index))} --clean removes it"
        )
        say(f"left behind: {leftover.path} ({leftover.what}); {remedy}")

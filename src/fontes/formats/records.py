"""Documents in records: JSON objects a line, and tables with tabs or commas."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..core import Doc, InputError, ParameterError
from ..storage.files import Source, decode

FORMATS_WITH_FIELDS = ("jsonl", "csv", "tsv", "trec")


@dataclass(frozen=True)
class Fields:
    """The names under which a record may hold its id, title and text.

    The first name that is present counts; of the parts in `chosen`, which the user named, all that are present are joined.
    """

    id: tuple[str, ...] = ("_id", "id", "docno", "doc_id", "docid")
    title: tuple[str, ...] = ("title",)
    text: tuple[str, ...] = ("text", "contents", "abstract", "body")
    chosen: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: Mapping[str, str | Sequence[str]] | None) -> Fields:
        """The usual names, save for the parts that `given` names. Raises ParameterError for a part that does not exist."""
        given = given or {}
        unknown = given.keys() - {"id", "title", "text"}
        if unknown:
            raise ParameterError(f"fields: a document has no part '{min(unknown)}'; it has id, title and text")
        names = {part: (name,) if isinstance(name, str) else tuple(name) for part, name in given.items()}
        if len(names.get("id", ("",))) != 1:
            raise ParameterError("fields: an id comes from one field")
        return cls(**names, chosen=frozenset(names))


USUAL = Fields()
ENDS = ("\n", "\r\n", "")  # of a line


def read_jsonl(source: Source, fields: Fields) -> Iterator[Doc]:
    """The documents of JSON objects, one a line."""
    for number, row in json_rows(source):
        yield doc_from(row, fields, source.name, number)


def json_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of the lines that are not blank. Raises InputError for what is no JSON object."""
    decoder = json.JSONDecoder()
    for number, line in enumerate(source.lines(), 1):
        try:
            text = line.decode()
            # The decoder looks for blanks around each value; most lines have none.
            row, end = decoder.raw_decode(text) if text[:1] == "{" else (None, 0)
            if not end or text[end:] not in ENDS:
                row = decoder.decode(text)
        except (ValueError, RecursionError) as error:
            if not line.strip():
                continue
            text = decode(line, source.name, number)
            shown = text.strip()[:40]
            raise InputError.at(source.name, number, f"broken JSON ({getattr(error, 'msg', error)}): {shown!r}") from None
        if type(row) is not dict:
            raise InputError.at(source.name, number, f"a JSON {type(row).__name__} where an object {{…}} belongs")
        yield number, row


def doc_from(row: dict[str, Any], fields: Fields, name: str, number: int, unit: str = "line") -> Doc:
    """The document in a record, which loses the keys that are used; the others become the metadata.

    A key "metadata" that holds an object, as in BEIR, is spread out. Raises InputError that names `name`, `unit` and
    `number` for a missing id or text, an empty id, and a part that is neither string, number nor null.
    """
    if not fields.chosen:  # most records have just these keys, and there are millions of them
        doc_id, text, title = row.get("_id"), row.get("text"), row.get("title", "")
        if type(doc_id) is type(text) is type(title) is str and doc_id and not doc_id.isspace() and "metadata" not in row:
            del row["_id"], row["text"]
            row.pop("title", None)
            return Doc(doc_id, text, title, row)
    parts: list[str] = []
    for part, names in (("id", fields.id), ("text", fields.text), ("title", fields.title)):
        value = _take(row, names, part in fields.chosen)
        if type(value) is not str:
            if value is MISSING and part != "title":
                raise _missing(part, names, row, parts, f"{name}, {unit} {number}")
            value = _string(value, part, f"{name}, {unit} {number}")
        parts.append(value)
    doc_id, text, title = parts
    if not doc_id or doc_id.isspace():
        raise InputError(f"{name}, {unit} {number}: the id is empty")
    if "metadata" in row and isinstance(row["metadata"], Mapping):
        row |= row.pop("metadata")
    return Doc(doc_id, text, title, row)


def read_csv(source: Source, fields: Fields) -> Iterator[Doc]:
    """The documents of a table with commas and a header; quoted cells may hold commas and line ends."""
    lines = source.decoded()
    yield from _table(source, lines, ",", fields)


def read_tsv(source: Source, fields: Fields) -> Iterator[Doc]:
    """The documents of a table with tabs: with a header if the first line names an id and a text, else as MS MARCO.

    Without a header the columns are id, text; or id, title, text; or id, url, title, body. They are taken as they are:
    quotes mean nothing.
    """
    lines = source.decoded()
    head = []
    for line in lines:
        head.append(line)
        if not line.isspace():
            break
    names = head[-1].rstrip("\r\n").split("\t") if head else []
    lines = itertools.chain(head, lines)
    if fields.chosen or (not set(fields.id).isdisjoint(names) and not set(fields.text).isdisjoint(names)):
        yield from _table(source, lines, "\t", fields)
        return
    columns = {2: ("id", "text"), 3: ("id", "title", "text"), 4: ("id", "url", "title", "text")}.get(len(names))
    if any(names) and columns is None:
        found = f"{len(names)} columns and no header that names an id and a text"
        raise InputError.at(source.name, len(head), f"{found}; without a header there are 2 (id, text), 3 or 4")
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r\n").split("\t")
        if columns and len(cells) == len(columns):
            yield doc_from(dict(zip(columns, cells, strict=True)), USUAL, source.name, number)
        elif not line.isspace():
            raise InputError.at(source.name, number, f"{len(cells)} columns where the first line has {len(names)}")


def _table(source: Source, lines: Iterator[str], delimiter: str, fields: Fields) -> Iterator[Doc]:
    csv.field_size_limit(sys.maxsize)  # the module's own limit is 131,072 characters, less than many documents have
    rows = csv.reader(lines, delimiter=delimiter)
    header: list[str] = next((row for row in rows if row), [])
    if len(set(header)) < len(header):
        raise InputError.at(source.name, 1, f"the header names a column twice: {', '.join(header)}")
    try:
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise InputError.at(source.name, rows.line_num, f"{len(row)} columns where the header has {len(header)}")
            yield doc_from(dict(zip(header, row, strict=True)), fields, source.name, rows.line_num)
    except csv.Error as error:
        raise InputError.at(source.name, rows.line_num, f"broken table ({error})") from None


MISSING = object()


def _take(row: dict[str, Any], names: tuple[str, ...], joined: bool) -> Any:
    """The value under the first of `names` that is there, or all their values joined, or MISSING; taken out of the row."""
    if not joined:
        for name in names:
            if name in row:
                return row.pop(name)
        return MISSING
    values = [row.pop(name) for name in names if name in row]
    if len(values) < 2:
        return values[0] if values else MISSING
    return "\n".join(str(v) for v in values if v not in (None, ""))


def _string(value: Any, part: str, where: str) -> str:
    if isinstance(value, str):
        return str(value)
    if part != "id" and (value is None or value is MISSING):
        return ""
    if isinstance(value, Real) and not isinstance(value, bool):
        return str(value)
    kind = {type(None): "null", bool: "true or false", list: "a list", dict: "an object"}
    raise InputError(f"{where}: the {part} is {kind.get(type(value), type(value).__name__)}, not a string")


def _missing(part: str, names: tuple[str, ...], row: Mapping[str, Any], parts: list[str], where: str) -> InputError:
    found = ", ".join(f"'{key}'" for key in row) or "nothing" + (" else" if parts else "")
    wanted = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return InputError(f"{where}: no {part} (a field {wanted}); found {found}")

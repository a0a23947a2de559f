"""JSON lines: the corpora and queries of BEIR, and Pyserini's corpora."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, cast

from ..core import Doc, InputError, Qrels, Run, Topic, Topics, Turn
from ..core.table import Table
from .bad_records import BadRecords
from .format import File, Format, json_or_none
from .json import Json, record_table
from .packed import Packed, Packing, pack_docs
from .records import Fields, MissingPartError, doc_from, is_topic, json_line, json_row, json_rows, located_in, topic_from

SAMPLE = 50  # lines by which an id is chosen
SMALL = 1 << 13  # bytes of lines that Python decodes, if msgspec cannot


class Jsonl(Format, name="jsonl"):
    """Documents, topics, or rows of judgments or a run as JSON objects, one a line.

    Documents are BEIR's (`_id`, `title`, `text`) or Pyserini's (`id`, `contents`); other keys are metadata. Topics have `_id`
    and `text`, and optionally `description`, `narrative`, `turns`, `weights`, and the objects `metadata` and `query`, a
    structured query.
    """

    endings = (".jsonl", ".ndjson", ".json")
    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        if kind == "corpus":
            return super().sniff(kind, file) or (0.6 if file.start.startswith("{") and not file.folder else 0.0)
        if kind in ("qrels", "run"):
            table = Table(file.name, list(file.first) if isinstance(file.first, dict) else [], ())
            return 0.9 if table.is_run or (kind == "qrels" and table.is_judged) else 0.0
        if file.start.startswith(("{", "[")) and file.plain.endswith(".jsonl"):
            return 0.9
        if not isinstance(file.first, dict):
            return 0.0
        # A single object without an id and a text may map ids to texts.
        return 0.7 if "\n" in file.start.rstrip() or is_topic(file.first) else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        if _is_of_values(file):
            return Json().read_corpus(file, fields)
        sample = self.sample(file)
        rows = json_rows(file, file.reading.bad)
        return file.docs(rows, lambda number, row: doc_from(row, fields, file.name, number), sample)

    def sample(self, file: File) -> list[dict[str, Any]]:
        return _sample(file.head)

    def pack_corpus(self, file: File, fields: Fields, size: int) -> Iterator[Packing] | None:
        return None if _is_of_values(file) else self._packings(file, fields, size)

    def _packings(self, file: File, fields: Fields, size: int) -> Iterator[Packing]:
        number = 1
        for block in file.blocks(size):
            yield Packing(partial(_pack_lines, block, fields, file.name, number, file.reading.bad), len(block))
            number += block.count(b"\n")

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        return not _is_of_values(file)

    def read_topics(self, file: File) -> Iterator[Topic]:
        fields = Fields.of_topics(file.reading.fields)
        for number, row in json_rows(file):
            yield topic_from(row, f"{file.name}, line {number}", fields)

    def read_qrels(self, file: File) -> Qrels:
        table = record_table(file.name, json_rows(file), "line")
        with located_in(table):
            return Qrels(table.judgments())

    def read_run(self, file: File, topics: Topics) -> Run:
        table = record_table(file.name, json_rows(file), "line")
        with located_in(table):
            return Run.of(table.results(), topics)

    def write_corpus(self, docs: Iterable[Doc]) -> Iterator[bytes]:
        return map(_doc_line, docs)

    def write_topics(self, topics: Topics) -> Iterator[bytes]:
        return (json_line(_topic_row(topic)) for topic in topics.values())


def _is_of_values(file: File) -> bool:
    """Whether a .json file of a folder, whose format is that of the first, is a list or has an object over several lines."""
    is_json = file.folder and file.plain.endswith(".json") and not file.opening
    return is_json and (file.start.startswith("[") or (file.start.startswith("{") and file.first is None))


def _sample(lines: bytes) -> list[dict[str, Any]]:
    """Return the objects of the first lines, as far as they are JSON."""
    rows = map(json_or_none, lines.decode(errors="replace").split("\n", SAMPLE)[:SAMPLE])
    return [row for row in rows if isinstance(row, dict)]


def _pack_lines(block: bytes, fields: Fields, name: str, number: int, bad: BadRecords) -> Packed:
    """Pack a block of lines: by msgspec if all are plain, or else in pieces, by Python if one is not plain."""
    line = block[: block.find(b"\n") + 1 or len(block)].decode(errors="replace")
    first = row if isinstance(row := json_or_none(line), dict) else {}
    keys = _plain_keys(tuple(first), fields)
    fields.seen.update(first.keys() & set(keys))
    decode = _decoder(*keys)
    if (rows := _plain_rows(block, decode)) is None:
        rows, start = [], 0
        while start < len(block):
            end = block.find(b"\n", start + SMALL) + 1 or len(block)
            piece, start = block[start:end], end
            plain = _plain_rows(piece, decode)
            rows += _docs(piece, fields, name, number, bad) if plain is None else plain
            number += piece.count(b"\n")
    return pack_docs(rows)


def _plain_rows(lines: bytes, decode: Callable[[bytes], list[Doc]] | None) -> list[Doc] | None:
    """Return the documents of plain lines, which have strings alone and no metadata; None if a line is another."""
    if decode is None:
        return None
    try:
        rows = decode(lines)
    except (ValueError, RecursionError):  # msgspec's errors, and those of UTF-8
        return None
    # msgspec takes several objects on a line, and one over several lines.
    newlines = lines.strip().count(b"\n")
    is_one_each = len(rows) == newlines + 1 == lines.count(b"}\n{") + lines.count(b"}\r\n{") + 1
    ids = [row.id for row in rows]
    has_ids = all(ids) and not any(map(str.isspace, ids))
    return rows if is_one_each and has_ids and not any(map(attrgetter("metadata"), rows)) else None


def _docs(lines: bytes, fields: Fields, name: str, number: int, bad: BadRecords) -> list[Doc]:
    docs = []
    for position, line in enumerate(io.BytesIO(lines), number):
        try:
            if (row := json_row(line, name, position)) is not None:
                docs.append(doc_from(row, fields, name, position))
        except MissingPartError as error:
            bad.skip(error.advised(_sample(lines)))
        except InputError as error:
            bad.skip(error)
    return docs


@lru_cache(maxsize=64)
def _decoder(doc_id: str, title: str, text: str) -> Callable[[bytes], list[Doc]] | None:
    """Return a function that decodes lines with these keys to objects with a document's attributes; None without keys."""
    import msgspec

    names = {"id": doc_id, "text": text, "title": title, "metadata": "metadata"}
    if not (doc_id and text) or len({name for name in names.values() if name}) < len(names) - (not title):
        return None
    optional: list[tuple[str, object, object]] = [("metadata", dict[str, Any], msgspec.field(default_factory=dict))]
    optional += [("title", str, msgspec.field(name=title or "\0", default=""))]
    required: list[tuple[str, type, object]] = [(part, str, msgspec.field(name=names[part])) for part in ("id", "text")]
    row = msgspec.defstruct("Row", [*required, *optional], forbid_unknown_fields=True, gc=False)
    decode: Any = msgspec.json.Decoder(row).decode_lines
    return cast("Callable[[bytes], list[Doc]]", decode)


def _plain_keys(present: tuple[str, ...], fields: Fields) -> tuple[str, str, str]:
    """Return the keys of the id, title and text; all empty if a part has several keys."""
    keys = fields.keys(present)
    if not keys["title"]:
        with_title = fields.keys((*present, "title"))
        keys = with_title if (with_title["id"], with_title["text"]) == (keys["id"], keys["text"]) else keys
    if any(len(part_keys) > 1 for part_keys in keys.values()):
        return "", "", ""
    doc_id, title, text = (keys[part][0] if keys[part] else "" for part in ("id", "title", "text"))
    return doc_id, title, text


def _doc_line(doc: Doc) -> bytes:
    row = {"_id": doc.id, "title": doc.title, "text": doc.text}
    shared = row.keys() & doc.metadata.keys()
    if shared:
        raise InputError(f"document '{doc.id}': the metadata key '{min(shared)}' is a field of its own in a jsonl corpus")
    try:
        return json_line({**row, **doc.metadata})
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"document '{doc.id}': the metadata cannot be written as JSON ({error})") from None


def _topic_row(topic: Topic) -> dict[str, object]:
    row: dict[str, object] = {"_id": topic.id, "text": topic.text}
    for name in ("description", "narrative"):
        if getattr(topic, name):
            row[name] = getattr(topic, name)
    if topic.turns:
        row["turns"] = [{name: text for name in Turn.__slots__ if (text := getattr(turn, name))} for turn in topic.turns]
    if topic.weights is not None:
        row["weights"] = dict(topic.weights)
    if topic.query is not None:
        row["query"] = topic.query.to_dict()
    if topic.metadata:
        row["metadata"] = dict(topic.metadata)
    return row

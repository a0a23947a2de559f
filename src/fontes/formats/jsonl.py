"""JSON lines: the corpora and queries of BEIR, and Pyserini's corpora."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from ..core import Doc, InputError, Qrels, Run, Topic, Topics, Turn
from ..core.table import Table
from .bad_records import BadRecords
from .format import File, Format, json_or_none
from .json import Json, record_table
from .packed import LineBlock, Packed, Packing, join_packed, pack_docs
from .records import Fields, MissingPartError, doc_from, is_topic, json_line, json_row, json_rows, located_in, topic_from

SAMPLE = 50  # lines by which an id is chosen


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
    """Pack a block of lines; Python decodes the lines that the compiled reader rejects, in runs of doubling length."""
    parts: list[Packed] = []
    reader, start, run_length = None, 0, 1
    while start >= 0:
        docs = []
        for _ in range(run_length):
            end = block.find(b"\n", start) + 1 or len(block)
            line, start = block[start:end], end
            try:
                if line and (row := json_row(line, name, number)) is not None:
                    keys = tuple(row)
                    docs.append(doc_from(row, fields, name, number))
                    reader = reader or LineBlock(block, _plain_keys(keys, fields))
            except MissingPartError as error:
                bad.skip(error.advised(_sample(block)))
            except InputError as error:
                bad.skip(error)
            number += 1
        parts.append(pack_docs(docs))
        run_length *= 2
        if start >= len(block):
            break
        if reader is not None:
            previous = start
            part, start = reader.read(start)
            number += block.count(b"\n", previous, start) if start >= 0 else 0
            parts.append(part)
    return join_packed(parts)


def _plain_keys(present: tuple[str, ...], fields: Fields) -> tuple[bytes, bytes, bytes]:
    """Return the JSON keys of the id, title and text for the compiled reader; all empty if a part has several keys."""
    keys = fields.keys(present)
    if not keys["title"]:
        with_title = fields.keys((*present, "title"))
        keys = with_title if (with_title["id"], with_title["text"]) == (keys["id"], keys["text"]) else keys
    names = [[json.dumps(name).encode() for name in keys[part]] for part in ("id", "title", "text")]
    if any(len(part_keys) > 1 for part_keys in names):
        return b"", b"", b""
    doc_id, title, text = (part_keys[0] if part_keys else b"" for part_keys in names)
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


def _topic_row(topic: Topic) -> dict[str, Any]:
    row: dict[str, Any] = {"_id": topic.id, "text": topic.text}
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

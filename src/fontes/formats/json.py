"""JSON values: documents and topics as lists of objects, topics as {id: text}, judgments and runs as {topic: {document: …}}."""

from __future__ import annotations

import codecs
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..core import Doc, InputError, ParameterError, Qrels, Run, Topic, Topics
from ..core.checks import grade_of, string_of
from ..core.table import Table
from ..core.tabular import GRADE, JUDGED, SCORE, find
from ..storage.compression import BUFFER
from ..storage.files import InputFile, check_length
from .format import File, Format
from .records import DECODER, LONG_NUMBER, Fields, doc_from, is_topic, json_value, located_in, named, topic_from

BLANKS = " \t\r\n"
META = "mteb_model_meta"  # beside the subsets in predictions of mteb 2
LEVELS = (0, 2)  # number of names above a topic: none, or subset and split
PAIRS = json.JSONDecoder(object_pairs_hook=list)  # keeps a document that is named twice
FIRST_MEMBER = re.compile(r"""\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:\s*(\S))""")
SHAPE = 'judgments and runs are objects such as {"q1": {"d1": 1.5, "d2": 0.5}}'


class Json(Format, name="json"):
    """JSON values: a list of objects with the fields of "jsonl", or objects over several lines; topics also as {id: text}.

    Judgments and runs are {topic: {document: grade or score}}, as ranx writes them, or {subset: {split: …}} of such objects, as
    mteb 2 writes predictions. Documents and rankings are read one by one, so that a file may be of any length.
    """

    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        if kind == "corpus":
            eligible = not file.folder or file.plain.endswith(".json")
            is_object = file.plain.endswith(".json") and file.start.startswith("{") and file.first is None  # multi-line
            return 0.95 if eligible and (file.start.startswith("[") or is_object) else 0.0
        if kind in ("qrels", "run"):
            return 0.7 if file.start.startswith(("{", "[")) else 0.0
        return 0.5 if file.start.startswith(("{", "[")) else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        def doc_of(number: int, row: object) -> Doc:
            if not isinstance(row, dict):
                raise InputError(f"{file.name}, item {number}: a JSON {type(row).__name__} where an object {{…}} belongs")
            if number == 1 and (key := _list_key(row, fields)):
                raise InputError(f"{file.name}: an object that has a list of objects, '{key}'; {_lines_of(key, file.name)}")
            return doc_from(row, fields, file.name, number, "item")

        return file.docs(enumerate(json_items(file), 1), doc_of)

    def read_topics(self, file: File) -> Iterator[Topic]:
        value, fields = json_value(file), Fields.of_topics(file.reading.fields)
        if isinstance(value, dict) and not fields.chosen and not is_topic(value):
            for topic_id, query in value.items():
                if not isinstance(query, str):
                    remedy = f"; {_lines_of(topic_id, file.name)}" if _is_list_of_objects(query) else ""
                    kind = type(query).__name__
                    raise InputError(f"{file.name}, topic '{topic_id}': a {kind} where the text belongs{remedy}")
                yield Topic(topic_id, query)
            return
        for number, row in enumerate(value if isinstance(value, list) else [value], 1):
            if not isinstance(row, dict):
                raise InputError(f"{file.name}, item {number}: a {type(row).__name__} where an object belongs")
            yield topic_from(row, f"{file.name}, item {number}", fields)

    def read_qrels(self, file: File) -> Qrels:
        if file.start.startswith("["):
            table = record_table(file.name, enumerate(json_items(file), 1), "item")
            with located_in(table):
                return Qrels(table.judgments())
        rows = _rows(file.name, _of_split(file, None), GRADE)
        with named(file.name):
            return Qrels((topic, "0", doc, _grade(value, file.name, topic, doc)) for topic, doc, value in rows)

    def read_run(self, file: File, topics: Topics) -> Run:
        if file.start.startswith("["):
            table = record_table(file.name, enumerate(json_items(file), 1), "item")
            with located_in(table):
                return Run.of(table.results(), topics)
        rankings = _of_split(file, file.reading.split)
        all_topics = Topics([*topics.values(), *(Topic(topic, "") for topic in rankings if topic not in topics)])
        with named(file.name):
            return Run.of(_rows(file.name, rankings, SCORE), all_topics)


def record_table(name: str, rows: Iterator[tuple[int, object]], unit: str) -> Table:
    """Return the table of records, whose columns are the keys of the first; InputError if that is no object, or missing."""
    number, first = next(rows, (0, None))
    if not number:
        raise InputError(f"{name}: an empty list")
    if not isinstance(first, dict):
        raise InputError(f"{name}, {unit} {number}: a JSON {type(first).__name__} where an object {{…}} belongs")
    cells = ((n, [row.get(key) for key in first] if isinstance(row, dict) else []) for n, row in rows)
    return Table(name, list(first), chain([(number, list(first.values()))], cells), unit)


def _of_split(file: File, split: str | None) -> dict[str, list[object]]:
    """Return what the file has for each topic of a split: pairs (document, value), or the items of a list.

    Args:
        file: The file.
        split: "SUBSET/SPLIT" of predictions of mteb, or one of the two; None for the only one.

    Raises:
        InputError: The value is broken, of another shape, or a topic occurs twice.
        ParameterError: There are several splits and none is named, or not the one that is named.
    """
    splits: dict[str, dict[str, list[object]]] = {}
    text = _TextBuffer(file)
    for keys, value in _innermost(text):
        *parents, topic = keys
        if keys[0] == META:
            continue
        if not isinstance(value, list) or len(parents) not in LEVELS:
            problem = f"'{topic}' has {json.dumps(value)[:40]} where an object of documents belongs"
            raise text.error(f"{problem}; {SHAPE}")
        if splits.setdefault("/".join(parents), {}).setdefault(topic, value) is not value:
            raise text.error(f"topic '{topic}' occurs twice")
    if text.next():
        raise text.error("broken JSON (Extra data)")
    matching = [name for name in splits if split is None or split == name or split in name.split("/")]
    if len(matching) == 1 and (split is None or matching[0]):
        return splits[matching[0]]
    if not splits:
        return {}
    if split is not None and not matching:
        raise ParameterError(f"{file.name}: there is no split '{split}'; there are {', '.join(splits)}")
    example = f"fontes convert run {shlex.quote(file.name)} one.run --split {shlex.quote(matching[0])}"
    raise ParameterError(f"{file.name}: holds {', '.join(matching)}; choose one with split= (read_run), or write it: {example}")


def _innermost(text: _TextBuffer, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield (keys, value) of the innermost objects, as pairs, and of lists and other values, reading one at once."""
    if not text.has_object():
        members = text.value(PAIRS)
        yield from [(keys, members)] if keys else ((((key,), value)) for key, value in members)
        return
    text.offset += 1
    while text.next() != "}":
        key = text.value()
        if not isinstance(key, str) or text.next() != ":":
            raise text.error("broken JSON (Expecting a name and ':')")
        text.offset += 1
        if text.next() == "{":
            yield from _innermost(text, (*keys, key))
        else:
            yield (*keys, key), text.value(PAIRS)
        if text.next() not in (",", "}"):
            raise text.error("broken JSON (Expecting ',' delimiter)")
        text.offset += text.next() == ","
    text.offset += 1


def _rows(name: str, rankings: Mapping[str, Sequence[object]], values: Sequence[str]) -> Iterator[tuple[str, str, object]]:
    """Yield (topic, document, value); without values, documents have 1/rank as scores, and None as grades."""
    for topic, items in rankings.items():
        for rank, item in enumerate(items, 1):
            default = 1 / rank if values == SCORE else None
            if isinstance(item, list) and item and isinstance(item[0], tuple):  # an object, as pairs
                record = dict(item)
                doc, value = find(record, JUDGED), find(record, values)
                item = (record.get(doc), default if value is None else record[value])
            elif isinstance(item, (str, int)):
                item = (item, default)
            if not isinstance(item, (list, tuple)) or len(item) != 2:
                raise InputError(f"{name}, topic '{topic}': {json.dumps(item)[:40]} is no document with its value; {SHAPE}")
            where = f"{name}, topic '{topic}'"
            yield topic, string_of(item[0], "document id", where), item[1]


def _grade(value: object, name: str, topic: str, doc: str) -> int:
    if value is None:
        raise InputError(f"{name}, topic '{topic}', document '{doc}': no grade; {SHAPE}")
    try:
        return grade_of(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}, topic '{topic}', document '{doc}': {json.dumps(value)[:40]} is no grade") from None


def json_items(source: InputFile) -> Iterator[Any]:
    """Yield the items of a file that is a JSON list, or objects one after the other; InputError gives the line of an error."""
    text = _TextBuffer(source)
    if text.next() in ("{", ""):
        while text.next():
            yield text.value()
        return
    if text.next() != "[":
        raise text.error("something else where a JSON list of objects, or objects, belong")
    text.offset += 1
    while text.next() != "]":
        yield text.value()
        if text.next() not in (",", "]"):
            raise text.error("broken JSON (Expecting ',' delimiter)")
        if text.next() == ",":
            text.offset += 1
            if text.next() == "]":
                raise text.error("broken JSON (Illegal trailing comma before end of array)")
    text.offset += 1
    if text.next():
        raise text.error("broken JSON (Extra data)")


def _list_key(row: dict[str, object], fields: Fields) -> str:
    """Return the key of the only list of objects in an object that is no document, or ""."""
    keys = fields.keys(tuple(row))
    lists = [key for key, value in row.items() if _is_list_of_objects(value)]
    return lists[0] if len(lists) == 1 and not (keys["id"] and keys["text"]) else ""


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _lines_of(key: str, name: str) -> str:
    """Return advice to make JSON lines of a list in an object."""
    path, selected = shlex.quote(name), shlex.quote(f".[{json.dumps(key)}][]")
    return f"jq -c {selected} {path} makes JSON lines of the list"


class _TextBuffer:
    """A file's text, buffered as far as one value needs; `offset` is the position of the next character to read."""

    def __init__(self, source: InputFile) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self.offset, self._line, self._ended = "", 0, 1, False

    def next(self) -> str:
        """Next character that is not blank; "" at the end."""
        while True:
            while self.offset < len(self._text) and self._text[self.offset] in BLANKS:
                self.offset += 1
            if self.offset < len(self._text) or not self._read_more():
                return self._text[self.offset : self.offset + 1]

    def has_object(self) -> bool:
        """Whether the next character begins an object whose first member is an object; InputError unless it begins one."""
        if self.next() != "{":
            raise self.error(f"no object where one belongs; {SHAPE}")
        while (match := FIRST_MEMBER.match(self._text, self.offset)) is None and self._read_more(len(self._text) - self.offset):
            pass
        return match is not None and match[1] == "{"

    def value(self, decoder: json.JSONDecoder = DECODER) -> Any:
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self.offset)
            except json.JSONDecodeError as error:
                distance = error.pos - self.offset  # reading more moves the offset
                if self._read_more(len(self._text) - self.offset):
                    continue
                self.offset += distance
                raise self.error(f"broken JSON ({error.msg})") from None
            except ValueError:  # Python's limit on digits
                raise self.error(f"broken JSON ({LONG_NUMBER})") from None
            except RecursionError:
                raise self.error("broken JSON (nested too deeply)") from None
            length = end - self.offset
            if end < len(self._text) or not self._read_more():  # a number may continue in the next chunk
                self.offset += length
                return value

    def error(self, problem: str) -> InputError:
        return InputError.at(self._source.name, self._line + self._text.count("\n", 0, self.offset), problem)

    def _read_more(self, min_size: int = 0) -> bool:
        """Drop the text before `offset`, and read at least `min_size` more bytes; return whether there were any."""
        if self._ended:
            return False
        self._line += self._text.count("\n", 0, self.offset)
        self._text, self.offset = self._text[self.offset :], 0
        check_length(len(self._text), self._source.name, "item that begins here", self._line)
        chunk = self._source.file.read(max(BUFFER, min_size))
        self._ended = not chunk
        try:
            self._text += self._decoder.decode(chunk, self._ended)
        except UnicodeDecodeError as error:
            line = self._line + self._text.count("\n") + error.object[: error.start].count(b"\n")
            raise InputError.at(self._source.name, line, f"not UTF-8; {self._source.remedy(error.object)}") from None
        return not self._ended

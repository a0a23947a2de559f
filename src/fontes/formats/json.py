"""Documents and topics in JSON values: a list of objects, objects over several lines, or topics as an object {id: text}."""

from __future__ import annotations

import codecs
import json
import shlex
from collections.abc import Iterator
from typing import Any

from ..core import Doc, InputError, Topic
from ..storage.compression import BUFFER
from ..storage.files import InputFile, check_length
from .format import File, Format
from .records import DECODER, LONG_NUMBER, Fields, doc_from, is_topic, json_value, topic_from

BLANKS = " \t\r\n"


class Json(Format, name="json"):
    """Documents or topics in JSON: a list of objects with the fields of "jsonl", or objects over several lines.

    Documents are read object by object, so that a file may be of any length. Topics may also be an object {id: text}.
    """

    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        if kind == "corpus":
            eligible = not file.folder or file.plain.endswith(".json")
            is_object = file.plain.endswith(".json") and file.start.startswith("{") and file.first is None  # multi-line
            return 0.95 if eligible and (file.start.startswith("[") or is_object) else 0.0
        return 0.5 if file.start.startswith(("{", "[")) else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        for number, row in enumerate(json_items(file), 1):
            if not isinstance(row, dict):
                raise InputError(f"{file.name}, item {number}: a JSON {type(row).__name__} where an object {{…}} belongs")
            if number == 1 and (key := _list_key(row, fields)):
                raise InputError(f"{file.name}: an object that has a list of objects, '{key}'; {_lines_of(key, file.name)}")
            yield doc_from(row, fields, file.name, number, "item")

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


def json_items(source: InputFile) -> Iterator[Any]:
    """Yield the items of a file that is a JSON list, or objects one after the other; InputError gives the line of an error."""
    text = _TextBuffer(source)
    if text.next() == "{":
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


def _list_key(row: dict[str, Any], fields: Fields) -> str:
    """Return the key of the only list of objects in an object that is no document, or ""."""
    keys = fields.keys(tuple(row))
    lists = [key for key, value in row.items() if _is_list_of_objects(value)]
    return lists[0] if len(lists) == 1 and not (keys["id"] and keys["text"]) else ""


def _is_list_of_objects(value: Any) -> bool:
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

    def value(self) -> Any:
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self.offset)
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

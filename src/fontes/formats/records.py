"""Records, from which documents and topics are made: JSON objects, lines of tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..core import Doc, InputError, ParameterError, Topic, Turn
from ..core.numbers import real
from ..storage.files import Source, decode


@dataclass(frozen=True)
class Fields:
    """The names under which a record may hold its id, title and text.

    Args:
        id: Names of the id, of which the first that is present counts.
        title: Names of the title, likewise.
        text: Names of the text, likewise.
        chosen: The parts whose names the user gave; of these all names that are present count, and their values are joined.
    """

    id: tuple[str, ...] = ("_id", "id", "docno", "doc_id", "docid")
    title: tuple[str, ...] = ("title",)
    text: tuple[str, ...] = ("text", "contents", "abstract", "body")
    chosen: frozenset[str] = frozenset()

    @classmethod
    def of(cls, chosen: Mapping[str, str | Sequence[str]] | None) -> Fields:
        """The usual names, save for the parts that `chosen` names.

        Raises:
            ParameterError: For a part that does not exist.
        """
        chosen = chosen or {}
        unknown = chosen.keys() - {"id", "title", "text"}
        if unknown:
            raise ParameterError(f"fields: a document has no part '{min(unknown)}'; it has id, title and text")
        names = {part: (name,) if isinstance(name, str) else tuple(name) for part, name in chosen.items()}
        if len(names.get("id", ("",))) != 1:
            raise ParameterError("fields: an id comes from one field")
        return cls(**names, chosen=frozenset(names))


USUAL = Fields()
TOPIC_ID = ("_id", "id", "qid", "query_id", "topic_id", "question_id", "number", "num")
TOPIC_TEXT = ("text", "query", "title", "question", "contents", "raw")
ENDS = ("\n", "\r\n", "")  # of a line
MISSING = object()
LONG_NUMBER = "a number of thousands of digits"


def json_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of the lines that are not blank.

    Raises:
        InputError: For what is no JSON object.
    """
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
            problem = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", LONG_NUMBER)
            raise InputError.at(source.name, number, f"broken JSON ({problem}): {text.strip()[:40]!r}") from None
        if type(row) is not dict:
            raise InputError.at(source.name, number, f"a JSON {type(row).__name__} where an object {{…}} belongs")
        yield number, row


def doc_from(row: dict[str, Any], fields: Fields, name: str, number: int, unit: str = "line") -> Doc:
    """The document in a record.

    Args:
        row: The record, which loses the keys that are used; the others become the metadata. A key "metadata" that holds an
            object, as in BEIR, is spread out.
        fields: The names of its parts.
        name: The name of the file, for errors.
        number: The number of the record in it, for errors.
        unit: What is counted.

    Raises:
        InputError: For a missing id or text, an empty id, and a part that is neither string, number nor null.
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


def topic_from(row: Mapping[str, Any], where: str) -> Topic:
    """The topic in a record.

    Raises:
        InputError: An id or text is missing, or turns or weights are odd; the message begins with `where`.
    """
    present = ", ".join(f"'{key}'" for key in row) or "nothing"
    topic_id = next((row[key] for key in TOPIC_ID if row.get(key) is not None), None)
    text = next((row[key] for key in TOPIC_TEXT if row.get(key) is not None), None)
    if isinstance(topic_id, bool) or not isinstance(topic_id, (str, int, float)) or not str(topic_id).strip():
        raise InputError(f"{where}: no id (a field {', '.join(TOPIC_ID[:4])}); found {present}")
    if not isinstance(text, str):
        raise InputError(f"{where}: no text (a field {', '.join(TOPIC_TEXT[:4])}); found {present}")
    try:
        turns = tuple(_turn(turn) for turn in row.get("turns") or ())
        weights = {term: _weight(w) for term, w in row["weights"].items()} if row.get("weights") is not None else None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{where}: 'turns' or 'weights' cannot be read ({error})") from None
    description, narrative = (row[name] if isinstance(row.get(name), str) else "" for name in ("description", "narrative"))
    return Topic(str(topic_id), text, narrative, description, turns, weights)


def json_value(source: Source) -> Any:
    """The JSON value that a whole file is.

    Raises:
        InputError: With the line of what is broken.
    """
    return json_parsed(source.text(), source.name)


def json_parsed(text: str, name: str) -> Any:
    """The JSON value that a text is.

    Args:
        text: The text.
        name: The name of its file, for errors.

    Raises:
        InputError: With the line of what is broken.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError.at(name, error.lineno, f"broken JSON ({error.msg})") from None
    except ValueError:  # Python's own limit
        place = digits.start() if (digits := re.search("[0-9]{4301}", text)) else 0
        raise InputError.at(name, text.count("\n", 0, place) + 1, f"broken JSON ({LONG_NUMBER})") from None
    except RecursionError:
        raise InputError(f"{name}: broken JSON (nested too deeply)") from None


def json_line(row: Any, indent: int | None = None) -> bytes:
    """A line of jsonl, or with `indent` many lines; characters are written as they are, save lone surrogates."""
    try:
        return json.dumps(row, ensure_ascii=False, indent=indent).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row, indent=indent).encode() + b"\n"


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
    present = ", ".join(f"'{key}'" for key in row) or "nothing" + (" else" if parts else "")
    usual = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return InputError(f"{where}: no {part} (a field {usual}); found {present}")


def _weight(value: Any) -> float:
    if not math.isfinite(weight := real(value)):
        raise ValueError(f"the weight {value!r} is not a number")
    return weight


def _turn(fields: Mapping[str, str]) -> Turn:
    turn = Turn(**fields)
    for name in Turn.__slots__:
        value = getattr(turn, name)
        if not isinstance(value, str):
            raise TypeError(f"the {name} of a turn is a {type(value).__name__}, not a text")
    return turn

"""Topics: read from BEIR, TSV, TREC, CAsT and CANARD files, and written as BEIR jsonl or CAsT."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core import InputError, ParameterError, Topic, Topics, Turn
from ..storage.files import Source, plain_name, reading, write
from .canard import canard_topics, is_canard
from .cast import cast_conversations, cast_topics, is_cast_json, is_turn, turn_topics
from .corpora import json_line
from .markup import trec_topics, xml_topics
from .records import json_rows

ID = ("_id", "id", "qid", "query_id", "topic_id", "question_id", "number", "num")
WRITTEN = ("jsonl", "cast")
TEXT = ("text", "query", "title", "question", "contents", "raw")


def read_topics(path: str | Path, format: str | None = None) -> Topics:
    """The topics of a file; .gz is unpacked, "-" is standard input.

    Formats, found from the content unless given:

    - "jsonl": one JSON object a line, as BEIR's queries.jsonl (`_id`, `text`); `description`, `narrative`, `turns` and
      `weights` are read where they are there, as `write_topics` writes them
    - "tsv": id, text
    - "trec": SGML with <top>, <num>, <title>, <desc>, <narr>
    - "xml": TREC XML with <topic number="1">
    - "json": an object {id: text}, or a list of objects as in jsonl
    - "cast": TREC CAsT of 2019 to 2022, the official JSON (flat or tree) or one turn a line; see `fontes.formats.cast`
    - "canard": CANARD, the official JSON or one item a line; see `read_canard`

    Raises InputError that names file and line for what cannot be read, for an id that occurs twice and for a file without
    topics, ParameterError for a format that does not exist.
    """
    if format is not None and format not in READERS:
        raise ParameterError(f"there is no topic format '{format}'; there are {', '.join(READERS)}")
    with reading(path) as source:
        text = source.text()
        found = format or _format_of(path, text)
        # The text is in memory: the readers get a source that looks like the file.
        again = Source(source.name, io.BytesIO(text.encode()))
        try:
            topics = Topics(READERS[found](again, text))
        except InputError as error:
            raise error if str(error).startswith(source.name) else InputError(f"{source.name}: {error}") from None
    if not topics:
        raise InputError(f"{path}: holds no topics")
    return topics


def write_topics(topics: object, path: str | Path, format: str = "jsonl") -> None:
    """Writes topics: all that `Topics.of` accepts.

    format   "jsonl", as BEIR: `_id` and `text`, and `description`, `narrative`, `turns` and `weights` where they are not empty;
             `origin` is not written. "cast", as TREC CAsT: whole conversations; see `fontes.formats.cast.cast_conversations`

    Raises InputError where writing fails and for topics that are no conversations, ParameterError for an unknown format.
    """
    if format not in WRITTEN:
        raise ParameterError(f"there is no topic format '{format}' to write; there are {', '.join(WRITTEN)}")
    given = Topics.of(topics).values()
    write(path, map(json_line, map(_row, given)) if format == "jsonl" else [json_line(cast_conversations(given), indent=1)])


def _row(topic: Topic) -> dict[str, Any]:
    row: dict[str, Any] = {"_id": topic.id, "text": topic.text}
    for name in ("description", "narrative"):
        if getattr(topic, name):
            row[name] = getattr(topic, name)
    if topic.turns:
        row["turns"] = [{name: said for name in Turn.__slots__ if (said := getattr(turn, name))} for turn in topic.turns]
    if topic.weights is not None:
        row["weights"] = dict(topic.weights)
    return row


def _format_of(path: str | Path, text: str) -> str:
    start = text.lstrip()[:2000]
    if start.startswith(("{", "[")):
        return _json_format(path, text)
    if "<top>" in start.lower():
        return "xml" if start.startswith("<?xml") or "<topics" in start.lower() else "trec"
    if start.startswith("<"):
        return "xml"
    if "\t" in start or plain_name(path).endswith(".tsv"):
        return "tsv"
    if not start:
        raise InputError(f"{path}: holds no topics")
    raise InputError(f"{path}: the format is not clear from the file; give format= one of {', '.join(READERS)}")


def _json_format(path: str | Path, text: str) -> str:
    """A file of one JSON value, or one with an object a line; of CAsT, CANARD or neither."""
    first = text.lstrip().split("\n", 1)[0]
    try:
        row = json.loads(first)
    except ValueError:
        row = None
    if isinstance(row, dict) and is_canard(row):
        return "canard"
    if isinstance(row, dict) and (text.strip() != first.strip() or ID[0] in row):
        return "cast" if is_turn(row) else "jsonl"
    if plain_name(path).endswith(".jsonl"):
        return "jsonl"
    value = _whole(str(path), text)
    return "cast" if is_cast_json(value) else "canard" if is_canard(value) else "json"


def _whole(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError.at(name, error.lineno, f"broken JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{name}: broken JSON (nested too deeply)") from None


def _from_jsonl(source: Source, text: str) -> Iterator[Topic]:
    for number, row in json_rows(source):
        yield _topic(row, f"{source.name}, line {number}")


def _from_json(source: Source, text: str) -> Iterator[Topic]:
    value = _whole(source.name, text)
    if isinstance(value, dict):
        for topic_id, query in value.items():
            if not isinstance(query, str):
                raise InputError(f"{source.name}, topic '{topic_id}': a {type(query).__name__} where the text belongs")
            yield Topic(topic_id, query)
        return
    for number, row in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(row, dict):
            raise InputError(f"{source.name}, item {number}: a {type(row).__name__} where an object belongs")
        yield _topic(row, f"{source.name}, item {number}")


def _topic(row: Mapping[str, Any], where: str) -> Topic:
    found = ", ".join(f"'{key}'" for key in row) or "nothing"
    topic_id = next((row[key] for key in ID if row.get(key) is not None), None)
    text = next((row[key] for key in TEXT if row.get(key) is not None), None)
    if isinstance(topic_id, bool) or not isinstance(topic_id, (str, int, float)) or not str(topic_id).strip():
        raise InputError(f"{where}: no id (a field {', '.join(ID[:4])}); found {found}")
    if not isinstance(text, str):
        raise InputError(f"{where}: no text (a field {', '.join(TEXT[:4])}); found {found}")
    try:
        turns = tuple(_turn(turn) for turn in row.get("turns") or ())
        weights = {str(term): float(w) for term, w in row["weights"].items()} if row.get("weights") is not None else None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{where}: 'turns' or 'weights' cannot be read ({error})") from None
    description, narrative = (row[name] if isinstance(row.get(name), str) else "" for name in ("description", "narrative"))
    return Topic(str(topic_id), text, narrative, description, turns, weights)


def _turn(given: Mapping[str, str]) -> Turn:
    turn = Turn(**given)
    for name in Turn.__slots__:
        value = getattr(turn, name)
        if not isinstance(value, str):
            raise TypeError(f"the {name} of a turn is a {type(value).__name__}, not a text")
    return turn


def _from_tsv(source: Source, text: str) -> Iterator[Topic]:
    for number, line in source.texts():
        topic_id, tab, query = line.partition("\t")
        if not tab or not topic_id.strip():
            raise InputError.at(source.name, number, "not an id and a text with a tab between them")
        if number == 1 and topic_id.lower() in (*ID, "query-id") and query.lower() in TEXT:
            continue
        yield Topic(topic_id.strip(), query.strip())


def _from_cast(source: Source, text: str) -> Iterator[Topic]:
    first = text.lstrip().split("\n", 1)[0].rstrip()
    if first.startswith("{") and first.endswith("}"):
        return turn_topics(json_rows(source), source.name)
    return cast_topics(_whole(source.name, text), source.name)


READERS: dict[str, Callable[[Source, str], Iterator[Topic]]] = {
    "jsonl": _from_jsonl,
    "tsv": _from_tsv,
    "trec": lambda source, text: trec_topics(text, source.name),
    "xml": lambda source, text: xml_topics(text, source.name),
    "json": _from_json,
    "cast": _from_cast,
    "canard": lambda source, text: canard_topics(source),
}

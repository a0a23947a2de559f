"""Topics in one JSON value: an object {id: text}, or a list of objects."""

from __future__ import annotations

from collections.abc import Iterator

from ..core import InputError, Topic
from .format import File, Format
from .records import json_value, topic_from


class Json(Format, name="json"):
    """Topics in one JSON value: an object {id: text}, or a list of objects with the fields of "jsonl"."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.5 if file.start.startswith(("{", "[")) else 0.0

    def read_topics(self, file: File) -> Iterator[Topic]:
        value = json_value(file)
        if isinstance(value, dict):
            for topic_id, query in value.items():
                if not isinstance(query, str):
                    raise InputError(f"{file.name}, topic '{topic_id}': a {type(query).__name__} where the text belongs")
                yield Topic(topic_id, query)
            return
        for number, row in enumerate(value if isinstance(value, list) else [value], 1):
            if not isinstance(row, dict):
                raise InputError(f"{file.name}, item {number}: a {type(row).__name__} where an object belongs")
            yield topic_from(row, f"{file.name}, item {number}")

"""Topics in XML, as TREC's later tracks have them: <topic> elements with a number."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from ..core import InputError, Topic
from .format import File, Format
from .trec_sgml import spaced


class Xml(Format, name="xml"):
    """Topics in TREC's XML: <topic number="1"> with title or query, description or question, narrative."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.3 if file.start.startswith("<") or "<top>" in file.start.lower() else 0.0

    def read_topics(self, file: File) -> Iterator[Topic]:
        return _topics(file.text(), file.name)


def _topics(text: str, name: str) -> Iterator[Topic]:
    """The topics of TREC XML: <topic number="1"> with title or query, description or question, narrative.

    What is searched is the query, title, question, summary or description, whichever comes first in this list, or else all
    the text of the topic. Raises InputError for broken XML and for a topic without number.
    """
    try:
        root = ET.fromstring(text.encode())
    except ET.ParseError as error:
        raise InputError(f"{name}: broken XML ({error})") from None
    for position, element in enumerate(e for e in root.iter() if e.tag.lower() in ("topic", "top")):
        parts = {child.tag.lower(): spaced("".join(child.itertext())) for child in element}
        attributes = {key.lower(): value for key, value in element.attrib.items()}
        number = _first(attributes, ("number", "id", "qid", "num")) or _first(parts, ("number", "num", "id", "qid"))
        if not number:
            raise InputError(f"{name}, topic {position + 1}: no number (an attribute number or id)")
        searched = _first(parts, ("query", "title", "question", "summary", "description", "desc"))
        yield Topic(
            number.strip(),
            searched or spaced(" ".join(element.itertext())),
            _first(parts, ("narrative", "narr")),
            _first(parts, ("description", "desc", "question")),
        )


def _first(parts: dict[str, str], names: tuple[str, ...]) -> str:
    return next((parts[name] for name in names if parts.get(name)), "")

"""Topics in XML, as in TREC's later tracks: <topic> elements with a number."""

from __future__ import annotations

import codecs
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from ..core import InputError, Topic
from .decoding import NO_CHARSETS, XML_ENCODING
from .format import File, Format
from .trec import spaced

UTF8 = ("utf-8", "utf8")


class Xml(Format, name="xml"):
    """Topics in TREC's XML: <topic number="1"> with title or query, description or question, narrative."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.3 if file.start.startswith("<") or "<top>" in file.start.lower() else 0.0

    def read_topics(self, file: File) -> Iterator[Topic]:
        return _topics(_text(file), file.name)


def _topics(text: str, name: str) -> Iterator[Topic]:
    """Yield topics; the query is the first of query, title, question, summary, description, else all text."""
    if "<!ENTITY" in text:  # entities can expand a small file to a huge one
        raise InputError(f"{name}: the file declares entities of its own; write what they stand for in their place")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise InputError(f"{name}: broken XML ({error})") from None
    for position, element in enumerate(_elements(root)):
        parts = {child.tag.lower(): spaced("".join(child.itertext())) for child in element}
        attributes = {key.lower(): value for key, value in element.attrib.items()}
        number = _first(attributes, ("number", "id", "qid", "num")) or _first(parts, ("number", "num", "id", "qid"))
        if not number:
            raise InputError(f"{name}, topic {position + 1}: no number (an attribute number or id)")
        query = _first(parts, ("query", "title", "question", "summary", "description", "desc"))
        yield Topic(
            number.strip(),
            query or spaced(" ".join(element.itertext())),
            _first(parts, ("narrative", "narr")),
            _first(parts, ("description", "desc", "question")),
        )


def _text(file: File) -> str:
    """Decode a file by its declared encoding; InputError if that is wrong or unknown."""
    declared = XML_ENCODING.match(file.head) if file.encoding == UTF8[0] else None
    encoding = declared[1].decode(errors="replace").lower() if declared else UTF8[0]
    if encoding in UTF8:
        return file.text()
    content = file.content()
    try:
        if codecs.lookup(encoding).name in NO_CHARSETS:
            raise LookupError(encoding)
        return content.decode(encoding)
    except LookupError:
        raise InputError.at(file.name, 1, f"there is no encoding '{encoding}'; convert the file to UTF-8") from None
    except ValueError:
        raise InputError(f"{file.name}: not in the encoding '{encoding}' that it declares; convert the file to UTF-8") from None


def _elements(root: ET.Element) -> Iterator[ET.Element]:
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.lower() in ("topic", "top"):
            yield element
        else:
            stack += reversed(element)


def _first(parts: dict[str, str], names: tuple[str, ...]) -> str:
    return next((parts[name] for name in names if parts.get(name)), "")

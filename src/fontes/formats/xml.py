"""Topics in XML, as in TREC's later tracks, CLEF, NTCIR and INEX; see `fontes.formats.markup`."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from ..core import InputError, Topic
from .decoding import NO_CHARSETS, XML_ENCODING
from .format import File, Format
from .markup import markup_topics
from .records import Fields

UTF8 = ("utf-8", "utf8")


class Xml(Format, name="xml"):
    """Topics in XML: <topic number="1"> or <query> with title or query, description or question, narrative."""

    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        return 0.3 if file.start.startswith("<") else 0.0

    def read_topics(self, file: File) -> Iterator[Topic]:
        return markup_topics(_text(file), file.name, Fields.of_topics(file.reading.fields))


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

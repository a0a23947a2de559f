"""SGML as TREC has it: documents between <DOC> and </DOC>, topics between <top> and </top>."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

from ..core import Doc, InputError, Topic
from ..storage.files import Source
from .records import Fields

DOC = re.compile(r"<doc(?:\s[^<>]*)?>(.*?)</doc\s*>", re.DOTALL | re.IGNORECASE)
OPENS = re.compile(r"<doc[\s>]", re.IGNORECASE)
ID_TAGS = ("DOCNO",)
TITLE_TAGS = ("TITLE", "HEADLINE", "HL", "HEAD", "TTL", "TI", "DOCTITLE")
TEXT_TAGS = ("TEXT", "LP", "LEADPARA", "ABSTRACT")
OTHER_TAGS = ("DOCNO", "DOCID", "DOCOLDNO", "DOCHDR", "SCRIPT", "STYLE")
MARKUP = re.compile(r"<!--.*?-->|</?[a-zA-Z!?][^<>]*>", re.DOTALL)
LABEL = re.compile(r"\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)


def sgml_docs(source: Source, fields: Fields) -> Iterator[Doc]:
    """The documents of a TREC SGML file.

    The title is the first of TITLE, HEADLINE, HL, HEAD, TTL, TI, DOCTITLE. The text is all of TEXT, LP, LEADPARA, ABSTRACT;
    where a document has none of them, as web pages do, all but its id, header, title, scripts and styles. Tags inside are
    left out and character references are resolved.

    Raises:
        InputError: For a <DOC> without DOCNO or end.
    """
    pending: list[str] = []
    start = 0
    for number, line in enumerate(source.decoded(), 1):
        if not pending:
            if not OPENS.search(line):
                continue
            start = number
        pending.append(line)
        if "</doc" not in line.lower():
            continue
        block, end = "".join(pending), 0
        for match in DOC.finditer(block):
            yield _doc(match[1], fields, source.name, start)
            end = match.end()
        pending = [block[end:]] if OPENS.search(block, end) else []
        start = number
    if pending:
        raise InputError.at(source.name, start, "the <DOC> that begins here has no </DOC>")


def sgml_topics(text: str, name: str) -> Iterator[Topic]:
    """The topics of TREC SGML: <num>, <title>, <desc>, <narr>, with or without closing tags.

    What is searched is the title, or the description where there is no title. "Number: 051" is the topic 51, as in the
    qrels.

    Raises:
        InputError: For a topic without number.
    """
    for position, block in enumerate(re.split(r"<top>", text, flags=re.IGNORECASE)[1:], 1):
        parts = {tag: _topic_part(block, tag) for tag in ("num", "title", "desc", "narr")}
        number = LABEL.sub("", parts["num"], count=1).strip()
        if not number:
            raise InputError(f"{name}, topic {position}: no number (<num>)")
        if number != parts["num"] and number.isdigit():
            number = str(int(number))
        title, description, narrative = (LABEL.sub("", parts[tag], count=1).strip() for tag in ("title", "desc", "narr"))
        yield Topic(number, title or description, narrative, description)


def _doc(block: str, fields: Fields, name: str, line: int) -> Doc:
    id_tags, title_tags, text_tags = (
        chosen if part in fields.chosen else usual
        for part, chosen, usual in (
            ("id", fields.id, ID_TAGS),
            ("title", fields.title, TITLE_TAGS),
            ("text", fields.text, TEXT_TAGS),
        )
    )
    doc_id = next((spaced(_plain(value)) for value in _elements(block, id_tags)), "")
    if not doc_id:
        raise InputError.at(name, line, f"the <DOC> that begins here has no <{id_tags[0]}>")
    titles = _elements(block, title_tags)
    title = "\n".join(spaced(_plain(t)) for t in (titles if "title" in fields.chosen else titles[:1]))
    texts = _elements(block, text_tags)
    if not texts and "text" not in fields.chosen:
        texts = [_element((*OTHER_TAGS, *title_tags)).sub(" ", block)]
    return Doc(doc_id, "\n".join(filter(None, map(_lines, map(_plain, texts)))), title)


def _elements(block: str, tags: Iterable[str]) -> list[str]:
    return [match[2] for match in _element(tuple(tags)).finditer(block)]


def _element(tags: tuple[str, ...]) -> re.Pattern[str]:
    """An element with one of these tags; group 2 is what is inside. (The re module keeps the compiled pattern.)"""
    names = "|".join(map(re.escape, tags))
    return re.compile(rf"<({names})(?:\s[^<>]*)?>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)


def _topic_part(block: str, tag: str) -> str:
    match = re.search(rf"<{tag}(?:\s[^<>]*)?>(.*?)(?=</?[a-zA-Z]|\Z)", block, re.DOTALL | re.IGNORECASE)
    return spaced(html.unescape(match[1])) if match else ""


def _plain(text: str) -> str:
    return html.unescape(MARKUP.sub(" ", text))


def _lines(text: str) -> str:
    """The lines that are not blank, each with single spaces."""
    return "\n".join(filter(None, map(spaced, text.splitlines())))


def spaced(text: str) -> str:
    """The words with single spaces between them."""
    return " ".join(text.split())

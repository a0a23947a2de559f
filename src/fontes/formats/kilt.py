"""KILT's knowledge source: Wikipedia pages, one a line, each a list of paragraphs.

Format: https://github.com/facebookresearch/KILT (Petroni et al., KILT: a Benchmark for Knowledge Intensive Language Tasks,
NAACL 2021).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core import Doc, InputError
from ..core.checks import string_of
from .format import File, Format
from .markup import spaced
from .records import Fields, json_rows

SECTION = "Section::::"
BULLET = re.compile(r"\ABULLET::::(?:-\s)?")
INNER_HEADING = re.compile(r"(?<=[.!?]):(?=\S)")  # "History.:Origins." is the heading "Origins." below "History."


class Kilt(Format, name="kilt"):
    """Pages of KILT's knowledge source: `wikipedia_id`, `wikipedia_title`, and `text`, a list of paragraphs.

    Paragraphs are joined by spaces, as in TREC CAsT 2021, but without the marks of headings and list items, `Section::::` and
    `BULLET::::-`, whose words a search would find. The page's address becomes the metadata `url`.
    """

    def sniff(self, kind: str, file: File) -> float:
        first = file.first if file.start.startswith("{") else None
        return 0.96 if isinstance(first, dict) and {"wikipedia_id", "text"} <= first.keys() else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return file.docs(json_rows(file, file.reading.bad), lambda number, row: _page(row, f"{file.name}, line {number}"))

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        return True


def _page(row: dict[str, object], where: str) -> Doc:
    paragraphs = row.get("text")
    if "wikipedia_id" not in row or not isinstance(paragraphs, list):
        raise InputError(f"{where}: not a page of KILT: 'wikipedia_id' and 'text', a list of paragraphs, are needed")
    if not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise InputError(f"{where}: a paragraph is not a string")
    page_id = string_of(row["wikipedia_id"], "wikipedia_id", where)
    if not page_id.strip():
        raise InputError(f"{where}: the wikipedia_id is empty")
    title, history = row.get("wikipedia_title"), row.get("history")
    url = history.get("url") if isinstance(history, dict) else None
    metadata = {"url": url} if isinstance(url, str) else {}
    return Doc(page_id, spaced(" ".join(map(_unmarked, paragraphs))), title if isinstance(title, str) else "", metadata)


def _unmarked(paragraph: str) -> str:
    """Return a paragraph without the mark of a heading or list item at its start."""
    if paragraph.startswith(SECTION):
        return INNER_HEADING.sub(" ", paragraph.removeprefix(SECTION))
    return BULLET.sub("", paragraph)

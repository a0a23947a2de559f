"""The TREC Washington Post Collection: news articles, one a line, each a list of blocks.

Format: https://trec.nist.gov/data/wapost/ (versions 2 to 4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ..core import Doc, InputError
from ..core.checks import string_of
from .format import File, Format
from .markup import resolved, spaced
from .records import Fields, json_rows

TAG = re.compile(r"<[^<>]*>")
KEYS = {"id", "article_url", "published_date"}  # keys of an article without blocks
SITE = "https://www.washingtonpost.com"


class WashingtonPost(Format, name="wapo"):
    """Articles of The Washington Post: `id`, `title`, `published_date` in milliseconds, and `contents`, a list of blocks.

    The text joins the blocks of subtype "paragraph" by spaces, without tags, captions and bylines, as in TREC CAsT 2021. The
    address, author and kicker become the metadata `url`, `author` and `section`; the publication day in UTC becomes `date`.
    """

    def sniff(self, kind: str, file: File) -> float:
        first = file.first if file.start.startswith("{") else None
        if not isinstance(first, dict):
            return 0.0
        blocks = first.get("contents")
        has_blocks = isinstance(blocks, list) and any(isinstance(block, dict) for block in blocks)
        return 0.96 if has_blocks or first.keys() >= KEYS else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return file.docs(json_rows(file, file.reading.bad), lambda number, row: _article(row, f"{file.name}, line {number}"))

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        return True


def _article(row: dict[str, object], where: str) -> Doc:
    blocks = row.get("contents")
    if "id" not in row or not (blocks is None or isinstance(blocks, list)):
        raise InputError(f"{where}: not an article of The Washington Post: 'id' and 'contents', a list, are needed")
    article_id = string_of(row["id"], "id", where)
    if not article_id.strip():
        raise InputError(f"{where}: the id is empty")
    blocks = [block for block in blocks or () if isinstance(block, dict)]
    title = row.get("title")
    return Doc(article_id, _text(blocks), spaced(title) if isinstance(title, str) else "", _metadata(row, blocks, where))


def _text(blocks: list[dict[str, object]]) -> str:
    paragraphs = (block.get("content") for block in blocks if block.get("subtype") == "paragraph")
    return spaced(" ".join(resolved(TAG.sub("", paragraph)) for paragraph in paragraphs if isinstance(paragraph, str)))


def _metadata(row: dict[str, object], blocks: list[dict[str, object]], where: str) -> dict[str, str]:
    url, published = row.get("article_url"), row.get("published_date")
    kickers = (block.get("content") for block in blocks if block.get("type") == "kicker")
    values = {
        "url": f"{SITE}{url}" if isinstance(url, str) and url.startswith("/") else url,
        "author": row.get("author"),
        "section": next(kickers, None),
        "date": None if published is None else _day(published, where),
    }
    return {name: value for name, value in values.items() if isinstance(value, str) and value}


def _day(published: Any, where: str) -> str:
    try:
        return datetime.fromtimestamp(int(published) / 1000, UTC).date().isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        raise InputError(f"{where}: the published_date {str(published)[:40]!r} is no number of milliseconds") from None

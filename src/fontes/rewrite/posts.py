"""Posts of social media as plain sentences."""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass

from ..core.errors import ParameterError
from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topics
from .turns import rewritten

URL = re.compile(r"(?:https?://|www\.|pic\.twitter\.com/)\S+", re.IGNORECASE)
NAME = re.compile(r"(?<![\w@#])([@#])(\w+)")
SIGNATURE = re.compile(r"\s*[—-]\s*([^—]*?)\s*\(@(\w+)\)\s*(\w+\.? \d{1,2}, \d{4}|\d{1,2} \w+\.? \d{4})?\s*$")
JOINERS = re.compile("[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U0001f1e6-\U0001f1ff]")  # and skin tones, and letters of flags
CHOICES = {
    "handles": ("words", "drop", "keep"),
    "hashtags": ("words", "drop", "keep"),
    "urls": ("drop", "keep"),
    "emoji": ("names", "drop", "keep"),
    "signature": ("author", "drop", "keep"),
}


@dataclass(frozen=True)
class PlainPosts(Stage[Topics, Topics], name="plain_posts"):
    """Turns posts into plain sentences: handles, hashtags, addresses, emoji and signatures.

    "words" splits a name into its parts: `@IlhanMN` becomes "Ilhan MN", `#PizzaVendingMachine` "Pizza Vending Machine". A
    signature is the line below a quoted post: "— Ilhan Omar (@IlhanMN) January 6, 2020". A post that would become empty stays
    unchanged.

    Args:
        handles: "words", "drop" or "keep".
        hashtags: "words", "drop" or "keep".
        urls: "drop" or "keep".
        emoji: "names", their names in Unicode, as "face with tears of joy"; "drop" or "keep".
        signature: "author" leaves the author's name; "drop" or "keep".
    """

    handles: str = "words"
    hashtags: str = "words"
    urls: str = "drop"
    emoji: str = "drop"
    signature: str = "author"

    def apply(self, topics: Topics, progress: Report, /) -> Topics:
        self.check()
        return rewritten(topics, lambda topic: self.plain(topic.text) or topic.text)

    def check(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ParameterError(f"plain_posts: {name} is {' or '.join(choices)}, not {getattr(self, name)!r}")

    def plain(self, text: str) -> str:
        """The text of a post as plain sentences."""
        if self.urls == "drop":
            text = URL.sub(" ", text)
        if self.signature != "keep":
            text = SIGNATURE.sub(r" \1" if self.signature == "author" else "", text)
        text = NAME.sub(lambda match: self._name(*match.groups()), text)
        if self.emoji != "keep":
            text = "".join(self._sign(character) for character in JOINERS.sub("", text))
        return " ".join(text.split())

    def _name(self, sign: str, name: str) -> str:
        how = self.handles if sign == "@" else self.hashtags
        return sign + name if how == "keep" else parts_of(name) if how == "words" else ""

    def _sign(self, character: str) -> str:
        if unicodedata.category(character) != "So":
            return character
        return f" {unicodedata.name(character, '').lower()} " if self.emoji == "names" else " "


def parts_of(name: str) -> str:
    """Split a name before capitals and digits, and after "_": "IlhanMN2020" is "Ilhan MN 2020"."""
    parts = [""]
    for before, character, after in zip(f" {name}", name, f"{name[1:]} ", strict=False):
        begins = (
            (before.islower() and character.isupper())
            or (before.isalnum() and before.isdigit() != character.isdigit())
            or (before.isupper() and character.isupper() and after.islower())
        )
        if begins:
            parts.append("")
        parts[-1] += character
    return " ".join(itertools.chain.from_iterable(part.split("_") for part in parts)).strip()

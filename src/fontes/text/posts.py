"""Posts of social networks as plain sentences."""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass, replace

from ..core.errors import ParameterError
from ..core.stage import Stage
from ..core.values import Topics

URL = re.compile(r"(?:https?://|www\.|pic\.twitter\.com/)\S+", re.IGNORECASE)
NAME = re.compile(r"(?<![\w@#])([@#])(\w+)")
SIGNATURE_END = re.compile(r"\(@\w+\)(?:\s*(?:\w+\.? \d{1,2}, \d{4}|\d{1,2} \w+\.? \d{4}))?")
JOINERS = re.compile("[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U0001f1e6-\U0001f1ff]")  # with skin tones and letters of flags
CHOICES = {
    "handles": ("words", "drop", "keep"),
    "hashtags": ("words", "drop", "keep"),
    "urls": ("drop", "keep"),
    "emoji": ("names", "drop", "keep"),
    "signature": ("author", "drop", "keep"),
}


@dataclass(frozen=True)
class PlainPosts(Stage[Topics, Topics], name="plain_posts"):
    """Turns posts into plain sentences, by rewriting handles, hashtags, addresses, emoji and signatures.

    "words" splits a name into its parts: `@IlhanMN` becomes "Ilhan MN", `#PizzaVendingMachine` "Pizza Vending Machine". A
    signature is the line below a quoted post: "— Ilhan Omar (@IlhanMN) January 6, 2020". A post that would become empty stays
    unchanged.

    Args:
        handles: "words", "drop" or "keep".
        hashtags: "words", "drop" or "keep".
        urls: "drop" or "keep".
        emoji: "names" for their Unicode names, such as "face with tears of joy"; "drop" or "keep".
        signature: "author" keeps only the author's name; "drop" or "keep".
    """

    handles: str = "words"
    hashtags: str = "words"
    urls: str = "drop"
    emoji: str = "drop"
    signature: str = "author"

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        return Topics(
            replace(topic, text=self.plain(topic.text) or topic.text, weights=None, query=None, origin=topic)
            for topic in topics.values()
        )

    def check(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ParameterError(f"plain_posts: {name} is {' or '.join(choices)}, not {getattr(self, name)!r}")

    def plain(self, text: str) -> str:
        """Return the text of a post as plain sentences."""
        if self.urls == "drop":
            text = URL.sub(" ", text)
        if self.signature != "keep":
            text = self._without_signature(text)
        text = NAME.sub(lambda match: self._name(*match.groups()), text)
        if self.emoji != "keep":
            text = "".join(self._emoji_text(character) for character in JOINERS.sub("", text))
        return " ".join(text.split())

    def _without_signature(self, text: str) -> str:
        """Return a text without its signature, or with the author only: from the last dash, or else the first hyphen."""
        start = text.rfind("(@")
        dash = text.rfind("—", 0, max(start, 0))
        if dash < 0:
            dash = text.find("-", 0, max(start, 0))
        if dash < 0 or not SIGNATURE_END.fullmatch(text[start:].rstrip()):
            return text
        return f"{text[:dash].rstrip()} {text[dash + 1 : start].strip() if self.signature == 'author' else ''}"

    def _name(self, sign: str, name: str) -> str:
        treatment = self.handles if sign == "@" else self.hashtags
        if treatment == "keep":
            return sign + name
        return parts_of(name) if treatment == "words" else ""

    def _emoji_text(self, character: str) -> str:
        if unicodedata.category(character) != "So":
            return character
        return f" {unicodedata.name(character, '').lower()} " if self.emoji == "names" else " "


def parts_of(name: str) -> str:
    """Split a name before capitals and digits, and after "_": "IlhanMN2020" is "Ilhan MN 2020"."""
    parts = [""]
    for before, character, after in zip(f" {name}", name, f"{name[1:]} ", strict=False):
        starts_part = (
            (before.islower() and character.isupper())
            or (before.isalnum() and before.isdigit() != character.isdigit())
            or (before.isupper() and character.isupper() and after.islower())
        )
        if starts_part:
            parts.append("")
        parts[-1] += character
    return " ".join(itertools.chain.from_iterable(part.split("_") for part in parts)).strip()

"""Apostrophes and capitals of languages, as Lucene's analyzers treat them."""

from __future__ import annotations

import re

APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ＇", "'"))  # Lucene's elision knows ’ alone
ELIDED = {  # articles and pronouns that lose their vowel before another: Lucene's lists, and Esperanto's article
    language: frozenset(words.split())
    for language, words in {
        "catalan": "d l m n s t",
        "esperanto": "l",
        "french": "l m t qu n s j d c jusqu quoiqu lorsqu puisqu",
        "irish": "d m b",
        "italian": "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d",
    }.items()
}
CODES = {"ca": "catalan", "fr": "french", "ga": "irish", "it": "italian", "tr": "turkish"}
TURKISH_CAPITALS = str.maketrans("Iİ", "ıi")
IRISH_PREFIX = re.compile("^([nt])(?=[AEIOUÁÉÍÓÚ])")  # a small letter before the capital of a name: tAthair


def prepared(token: str, language: str, lowercase: bool) -> str:
    """Return a token with plain apostrophes, without elided words, and with the language's own lower case.

    Args:
        token: A token in NFC, before lower case.
        language: A stemmer's name, or a code of `CODES`. For "turkish" the ending after an apostrophe is cut, too.
        lowercase: Whether letters become lower case afterwards.
    """
    if not token.isascii():
        token = token.translate(APOSTROPHES)
    language = CODES.get(language, language)
    before, _, after = token.partition("'")
    if language == "turkish":
        token = before or token
        return token.translate(TURKISH_CAPITALS) if lowercase else token
    if after and before.lower() in ELIDED.get(language, ()):
        token = after
    return IRISH_PREFIX.sub(r"\1-", token) if lowercase and language == "irish" else token

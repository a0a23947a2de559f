"""Guesses at the encoding of a text in European languages, from the letters that each language has."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import NamedTuple

WESTERN = {
    "Danish, Norwegian, Swedish": "åäæéöø",
    "Dutch": "áäèéëïóöü",
    "Finnish, Estonian": "äåõöüšž",
    "French": "àâæçèéêëîïôùûüÿœ",
    "German": "äöüß",
    "Icelandic": "áæéíðóöúýþ",
    "Italian": "àèéìíòóùú",
    "Portuguese": "àáâãçéêíóôõúü",
    "Spanish, Catalan": "àáçèéíïñòóúü",
}
CENTRAL = {
    "Croatian, Slovene": "čćđšž",
    "Czech": "áčďéíňóřšťúýžěů",
    "Hungarian": "áéíóöúüőű",
    "Polish": "óąćęłńśźż",
    "Romanian": "âîăşţ",
    "Slovak": "áäčďéíľňóôšťúýž",
}
ALPHABETS = {"cp1252": WESTERN, "cp1250": CENTRAL, "iso8859_2": CENTRAL}
SEVERAL = frozenset("".join(WESTERN.values())) - frozenset("ðýþšž")  # letters of texts with names of several languages
SYMBOL = re.compile(  # inside a word, or before a small letter: in another encoding a letter
    r"(?<=[^\W\d_])[‚„†‡‰‹›£¥©ª«®¯±²³µ¶¹º»¼½¾¿](?=[^\W\d_])|(?<![^\W_])[¹²³¾](?=[^\W\d_A-Z])"
)
OTHER_SCRIPT = re.compile(r"(?<![^\W_])[^\W\d_A-Za-z]{3,}(?![^\W_])")  # words without any letter of ASCII
NO_TEXT = re.compile("[\x80-\x9f\ufffdˇ˘˛˝˙]")
ADVISED = re.compile(r"cp(?:125\d|866|874|932|949)|iso8859_\d+|koi8_[ru]|gbk?\d*|big5|shift_jis|euc_(?:jp|kr)|utf_16")
MULTIBYTE_START = re.compile(rb"[\xc0-\xf4][\x80-\xbf]")  # start of a non-ASCII character in UTF-8
COMMON = ("cp1252", "cp1250", "latin_1")


class AlphabetFit(NamedTuple):
    """How well the letters of a text fit an encoding.

    Attributes:
        text: The decoded text; None if it cannot be in this encoding.
        share: Share of the letters beyond ASCII that one language has; 1 without such letters.
        letters: Number of letters beyond ASCII.
        of_several: Share of the letters that common Western European languages have.
    """

    text: str | None
    share: float = -1
    letters: int = 0
    of_several: float = 0

    @classmethod
    def of(cls, content: bytes, encoding: str) -> AlphabetFit:
        """Decode a text and count its letters."""
        try:
            text = content.decode(encoding)
        except UnicodeError:
            return cls(None)
        others = Counter(character for character in text.lower() if character > "\x7f")
        counts = {letter: count for letter, count in others.items() if letter.isalpha() and letter not in "ªºµ"}
        total = sum(counts.values())
        is_other = 10 * len(SYMBOL.findall(text)) > others.total() or 3 * sum(map(len, OTHER_SCRIPT.findall(text))) > total
        if is_other or (encoding != "cp1252" and NO_TEXT.search(text)):
            return cls(None)
        if not total:
            return cls(text, 1, 0, 1)
        best = max(sum(counts.get(letter, 0) for letter in alphabet) for alphabet in ALPHABETS[encoding].values())
        return cls(text, best / total, total, sum(counts.get(letter, 0) for letter in SEVERAL) / total)


def guessed(content: bytes) -> str:
    """Return cp1252, cp1250 or iso8859_2, if its letters are those of a language and fit better than the others', else ""."""
    fits = {encoding: AlphabetFit.of(content, encoding) for encoding in ALPHABETS}
    western, windows, iso = fits.values()
    central_name, central = ("iso8859_2", iso) if iso.share > windows.share else ("cp1250", windows)
    is_language = western.share >= 0.9 or (western.share >= 0.4 and western.of_several >= 0.95)
    if is_language and (western.share > central.share or not western.letters or western.text == central.text):
        return "cp1252"
    least = 0.75 if western.text is None else 0.9
    is_clear = windows.share != iso.share or windows.text == iso.text
    return central_name if is_clear and central.letters > 1 and central.share > max(western.share, least) else ""


def is_mostly_utf8(content: bytes) -> bool:
    """Whether a fourth of the bytes beyond ASCII or more begin characters of UTF-8, complete or not."""
    high, complete = _high_and_complete(content)
    return 4 * (len(MULTIBYTE_START.findall(content)) + complete) > high


def suggested(content: bytes, failed: str) -> str:
    """Return an encoding to advise for bytes that are not in `failed`: as guessed, or as charset-normalizer detects."""
    failed = codecs.lookup(failed).name
    high, complete = _high_and_complete(content)
    names = [] if 4 * complete >= high else [guessed(content), _detected(content)]  # not for broken UTF-8
    for name in (*names, *COMMON):
        if name and codecs.lookup(name).name != failed and _decodes(content, name):
            return name
    return COMMON[-1]


def _high_and_complete(content: bytes) -> tuple[int, int]:
    """Return the number of bytes beyond ASCII, and of characters of UTF-8 that they make."""
    high = sum(byte >= 0x80 for byte in content)
    return high, len(content.decode(errors="ignore")) - (len(content) - high)


def _detected(content: bytes) -> str:
    """The encoding that charset-normalizer detects, or ""."""
    from charset_normalizer import from_bytes

    best = from_bytes(content).best()
    encoding = "" if best is None else str(best.encoding)
    return encoding if ADVISED.fullmatch(encoding) else ""


def _decodes(content: bytes, encoding: str) -> bool:
    """Whether bytes, which may end inside a character, are of an encoding."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(content)
    except UnicodeError:
        return False
    return True

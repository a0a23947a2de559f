"""Unicode NFC before tokens are found, so that a letter and its marks are the same term as the composed letter."""

from __future__ import annotations

import unicodedata

import numpy as np

from ..core.arrays import Bytes, Int64s, Ints
from ..core.strings import offsets_of
from .tokenizers import COMPOSING, may_compose, properties


def composed(text: str) -> str:
    """Return the text in Unicode's NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def composed_table(text: Bytes, bounds: Ints) -> tuple[Bytes, Ints]:
    """Return concatenated texts in NFC: UTF-8, and the bounds of each text; those given if nothing changes."""
    pieces, sizes, end = [], np.diff(bounds), 0
    for i in may_compose(text, bounds):
        piece = text[bounds[i] : bounds[i + 1]].tobytes()
        in_nfc = composed(piece.decode()).encode()
        if in_nfc != piece:
            pieces += [text[end : bounds[i]].tobytes(), in_nfc]
            sizes[i], end = len(in_nfc), bounds[i + 1]
    if not pieces:
        return text, bounds
    return np.frombuffer(b"".join([*pieces, text[end:].tobytes()]), dtype=np.uint8), offsets_of(sizes)


def composed_edges(text: str) -> tuple[Int64s, Int64s]:
    """Return where characters of the composed text start and end in `text`.

    Characters that NFC joins have the edges of the whole sequence.

    Returns:
        The first character of what became each character of `composed(text)`, and the end of the text; and each one's end.
    """
    table = properties()
    first = [at for at, letter in enumerate(text) if not at or not (table[ord(letter)] & COMPOSING and _joins(letter))]
    bounds = np.array([*first, len(text)], dtype=np.int64)
    sizes = [len(composed(text[a:b])) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
    return np.repeat(bounds, [*sizes, 1]), np.repeat(bounds[1:], sizes)


def _joins(letter: str) -> bool:
    """Whether NFC may join a character, one of those marked as composing, with the one before."""
    first = unicodedata.normalize("NFD", letter)[0]  # three Tibetan vowels are no marks, but their parts are
    return unicodedata.combining(first) > 0 or unicodedata.normalize("NFC", letter) == letter

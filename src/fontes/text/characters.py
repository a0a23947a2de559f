"""What the tokenizers know of each code point: its Word_Break class (UAX 29) and a few properties more."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

# Word_Break classes, in the lowest five bits. Format and ZWJ count as Extend (rule WB4).
LETTER, HEBREW, NUMERIC, KATAKANA, JOINER = 1, 2, 3, 4, 5
MID_LETTER, MID_NUMBER, MID_BOTH, SINGLE_QUOTE, DOUBLE_QUOTE, EXTEND = 6, 7, 8, 9, 10, 11
CLASS = 31

# Flags. COMPLEX is Line_Break=SA: Thai, Lao, Khmer, Myanmar, which UAX 29 leaves to dictionaries.
COMPLEX, HAN, HIRAGANA, HANGUL = 32, 64, 128, 256
ALPHABETIC, SPACE, EMOJI, SKIN_TONE, REGIONAL = 512, 1024, 2048, 4096, 8192


@cache
def properties() -> NDArray[np.int16]:
    """The property bits of every code point, int16 of length 0x110000."""
    table = np.zeros(0x110000, dtype=np.int16)
    rows = _table("properties")
    sizes = rows[:, 1] - rows[:, 0] + 1
    places = np.arange(sizes.sum()) + np.repeat(rows[:, 0] - np.cumsum(sizes) + sizes, sizes)
    table[places] = np.repeat(rows[:, 2], sizes)
    return table


@cache
def lowercase() -> dict[int, int]:
    """The simple lower-case mapping, for `str.translate`: one code point to one, as Lucene does it."""
    return dict(_table("lower").tolist())


def _table(name: str) -> NDArray[np.int32]:
    with as_file(files(__package__) / "tables" / f"{name}.npy") as path:
        table: NDArray[np.int32] = np.load(path)
    return table

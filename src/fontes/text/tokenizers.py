"""Compiled tokenizers: from UTF-8 bytes to byte spans of tokens.

`standard` follows UAX 29 and Lucene's StandardTokenizer: letters and digits stay together, with following marks and a single
dot, comma or apostrophe inside; each Han or Hiragana character is a token; Thai, Lao, Khmer and Myanmar runs are one
token; an emoji sequence is a token; tokens are cut at 255 UTF-16 units.
`cjk` also turns each run of Han, Hiragana, Katakana and Hangul into overlapping pairs, as Lucene's CJKBigramFilter.
`letters` gives runs of letters, `whitespace` the text between white space.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from ..core.arrays import Bytes, Int16s, Int32s, Int64s, Ints
from ..storage.arrays import fixed
from ..storage.compiled import inner, kernel

# Word_Break classes, in the lowest five bits. Format and ZWJ count as Extend (rule WB4).
LETTER, HEBREW, NUMERIC, KATAKANA, JOINER = 1, 2, 3, 4, 5
MID_LETTER, MID_NUMBER, MID_BOTH, SINGLE_QUOTE, DOUBLE_QUOTE, EXTEND = 6, 7, 8, 9, 10, 11
CLASS = 31

# Flags. COMPLEX is Line_Break=SA: Thai, Lao, Khmer, Myanmar, which UAX 29 leaves to dictionaries.
COMPLEX, HAN, HIRAGANA, HANGUL = 32, 64, 128, 256
ALPHABETIC, SPACE, EMOJI, SKIN_TONE, REGIONAL = 512, 1024, 2048, 4096, 8192
COMPOSING = 16384  # Unicode's NFC may change or move the character, or join it with the one before

TOKENIZERS = ("standard", "cjk", "letters", "whitespace")
MAX_UNITS = 255
FIRST_COMPOSING = 0xCC  # first byte of U+0300, the first of the COMPOSING characters, in UTF-8
ZWJ, TEXT_STYLE, EMOJI_STYLE, KEYCAP = 0x200D, 0xFE0E, 0xFE0F, 0x20E3


def tokenize(name: str, text: Bytes, bounds: Ints) -> tuple[Int32s, Int32s, Int64s]:
    """Tokenize many texts at once.

    Args:
        name: One of `TOKENIZERS`.
        text: UTF-8 of all texts end to end, less than 2 GiB.
        bounds: Text i is text[bounds[i]:bounds[i+1]].

    Returns:
        Start and end byte of each token; and the index of each text's first token, with one more entry for the end.
    """
    # Tokens do not overlap, except the pairs of `cjk`, whose characters have at least two bytes.
    starts = np.empty(len(text), dtype=np.int32)
    ends = np.empty(len(text), dtype=np.int32)
    token_bounds = np.zeros(len(bounds), dtype=np.int64)
    count = _scan(TOKENIZERS.index(name), text, bounds, properties(), starts, ends, token_bounds)
    return starts[:count], ends[:count], token_bounds


def may_compose(text: Bytes, bounds: Ints) -> list[int]:
    """Return the numbers of the texts that have a character which Unicode's NFC may change, move or join with another."""
    if not len(text) or text.max() < FIRST_COMPOSING:
        return []
    leads = np.flatnonzero(text >= FIRST_COMPOSING)
    _keep_composing(fixed(text), properties(), leads)
    numbers = np.searchsorted(bounds, leads[leads >= 0], side="right") - 1
    changed: list[int] = numbers[np.diff(numbers, prepend=-1) > 0].tolist()
    return changed


@kernel(steps=lambda text, table, leads: len(leads))
def _keep_composing(text: Bytes, table: Int16s, leads: Int64s) -> None:
    """Replace the positions of characters that are not COMPOSING by -1."""
    for i in range(len(leads)):
        if not table[code_point(text, leads[i])[0]] & COMPOSING:
            leads[i] = -1


@kernel(steps=lambda mode, text, *rest: len(text))
def _scan(mode: int, text: Bytes, bounds: Int64s, table: Int16s, starts: Int32s, ends: Int32s, token_bounds: Int64s) -> int:
    count = 0
    for i in range(len(bounds) - 1):
        count = scan_text(mode, text, bounds[i], bounds[i + 1], table, starts, ends, count)
        token_bounds[i + 1] = count
    return count


@inner()
def scan_text(mode: int, text: Bytes, begin: int, stop: int, table: Int16s, starts: Int32s, ends: Int32s, count: int) -> int:
    """Append the tokens of text[begin:stop]; `mode` is the index of the tokenizer. Return the number of all tokens."""
    if mode <= 1:
        return _scan_words(mode == 1, text, begin, stop, table, starts, ends, count)
    return _scan_runs(mode == 2, text, begin, stop, table, starts, ends, count)


@inner()
def _scan_runs(
    letters: bool, text: Bytes, begin: int, stop: int, table: Int16s, starts: Int32s, ends: Int32s, count: int
) -> int:
    """Append runs of letters, or of anything but white space."""
    at, start = begin, -1
    while at < stop:
        code, size = code_point(text, at)
        inside = (table[code] & ALPHABETIC) != 0 if letters else (table[code] & SPACE) == 0
        if inside and start < 0:
            start = at
        elif not inside and start >= 0:
            starts[count], ends[count], start = start, at, -1
            count += 1
        at += size
    if start >= 0:
        starts[count], ends[count] = start, stop
        count += 1
    return count


@inner()
def _scan_words(
    pairs: bool, text: Bytes, begin: int, stop: int, table: Int16s, starts: Int32s, ends: Int32s, count: int
) -> int:
    at = begin
    run_end, run_length, last = -1, 0, begin  # current run of CJK characters
    while at < stop:
        byte = text[at]
        if byte < 128:
            bits = table[byte]
            if bits & CLASS == 0 and not (byte == 35 or byte == 42):  # '#' and '*' may start a keycap
                at += 1
                continue
            end = _ascii_word_end(text, at, stop, table)
            cjk = False
            if end == 0:
                end, cjk = _token_end(text, at, stop, table)
        else:
            end, cjk = _token_end(text, at, stop, table)
        if end == 0:
            at += _byte_count(byte)
            continue
        if pairs and cjk:
            if run_end != at:
                run_length = 0
            while at < end:
                after = _skip_extend(text, at + _byte_count(text[at]), end, table)
                if run_length >= 2 or (run_length == 1 and count > 0):
                    # The lone first character becomes the first pair.
                    if run_length == 1:
                        count -= 1
                    starts[count], ends[count] = last, after
                else:
                    starts[count], ends[count] = at, after
                count += 1
                run_length += 1
                last, at = at, after
            run_end = end
        else:
            starts[count], ends[count] = at, end
            count += 1
        at = end
    return count


@inner(inline="always")
def _ascii_word_end(text: Bytes, at: int, stop: int, table: Int16s) -> int:
    """Return the end of a run of ASCII letters and digits, or 0 if the full rules must decide."""
    end = at
    while end < stop and text[end] < 128 and end - at <= MAX_UNITS:
        kind = table[text[end]] & CLASS
        if kind != LETTER and kind != NUMERIC:
            break
        end += 1
    if end == at or end - at > MAX_UNITS:
        return 0
    if end < stop:
        if text[end] >= 128:
            return 0
        if table[text[end]] & CLASS != 0:
            if table[text[end]] & CLASS == JOINER:
                return 0
            if end + 1 < stop and (text[end + 1] >= 128 or table[text[end + 1]] & CLASS != 0):
                return 0
    return end


@inner()
def _token_end(text: Bytes, at: int, stop: int, table: Int16s) -> tuple[int, bool]:
    """Return the end of the longest token at `at` (0 for none), and whether it is CJK."""
    end, cjk = _longest_token(text, at, min(stop, at + 4 * MAX_UNITS), table)
    if end - at > MAX_UNITS:
        units, cut = 0, at
        while cut < stop:
            code, size = code_point(text, cut)
            units += 2 if code > 0xFFFF else 1
            if units > MAX_UNITS:
                break
            cut += size
        end, cjk = _longest_token(text, at, cut, table)
    return end, cjk


@inner()
def _longest_token(text: Bytes, at: int, stop: int, table: Int16s) -> tuple[int, bool]:
    code, size = code_point(text, at)
    bits = table[code]
    kind = bits & CLASS
    end = 0
    cjk = False
    if LETTER <= kind <= JOINER:
        end = _word_end(text, at, stop, table)
        cjk = end > 0 and (kind == KATAKANA or bits & HANGUL != 0) and _is_one_script(text, at, end, table, bits & HANGUL, kind)
    elif bits & COMPLEX:
        end = _complex_end(text, at, stop, table)
    elif bits & (HAN | HIRAGANA):
        end = _skip_extend(text, at + size, stop, table)
        cjk = True
    if bits & (EMOJI | REGIONAL | SKIN_TONE) or code == ZWJ or code == 35 or code == 42:
        emoji = _emoji_end(text, at, stop, table)
        if emoji >= end and emoji > 0:
            return emoji, False
    return end, cjk


@inner()
def _word_end(text: Bytes, at: int, stop: int, table: Int16s) -> int:
    """Return the end of a word by rules WB4 to WB13b, with Hebrew quotes as in Lucene; 0 for none."""
    state = 0  # class of the last letter, digit or underscore
    filled = False  # whether anything but underscores was seen
    joined = False  # whether the last letter follows inner punctuation; then no Hebrew quote may follow
    quoted = False  # after a Hebrew quote only a letter, digit or underscore may follow directly
    end = 0
    while at < stop:
        code, size = code_point(text, at)
        kind = table[code] & CLASS
        at += size
        if kind == EXTEND and state != 0:
            if filled:
                end = at
            continue
        if kind == LETTER or kind == HEBREW or kind == NUMERIC:
            if state == KATAKANA:
                break
        elif kind == KATAKANA:
            if state == LETTER or state == HEBREW or state == NUMERIC:
                break
        elif kind != JOINER:
            if state == 0 or quoted or kind < MID_LETTER or kind > DOUBLE_QUOTE:
                break
            at, following = _next_class(text, at, stop, table)
            between_letters = kind == MID_LETTER or kind == MID_BOTH or kind == SINGLE_QUOTE
            between_numbers = kind == MID_NUMBER or kind == MID_BOTH or kind == SINGLE_QUOTE
            letters = (state == LETTER or state == HEBREW) and (following == LETTER or following == HEBREW)
            if (letters and between_letters) or (state == NUMERIC and following == NUMERIC and between_numbers):
                at += _byte_count(text[at])
                state, joined, end = following, True, at
            elif state == HEBREW and not joined and kind == SINGLE_QUOTE:
                quoted, end = True, at
            elif state == HEBREW and not joined and kind == DOUBLE_QUOTE and following == HEBREW:
                at += _byte_count(text[at])
                quoted, end = True, at
            else:
                break
            continue
        state = kind
        joined = quoted = False
        filled = filled or kind != JOINER
        if filled:
            end = at
    return end


@inner()
def _complex_end(text: Bytes, at: int, stop: int, table: Int16s) -> int:
    while at < stop:
        code, size = code_point(text, at)
        if not (table[code] & COMPLEX or table[code] & CLASS == EXTEND):
            break
        at += size
    return at


@inner()
def _emoji_end(text: Bytes, at: int, stop: int, table: Int16s) -> int:
    """Return the end of an emoji sequence (UTS 51), or 0: a keycap, a flag, or emoji with modifiers and tags, joined by ZWJ."""
    code, size = code_point(text, at)
    if code == 35 or code == 42:
        at = _skip_marks(text, at + size, stop, table)
        if at + 3 <= stop and text[at] == 0xEF and code_point(text, at)[0] == EMOJI_STYLE:
            at += 3
            if at + 3 > stop or text[at] != 0xE2 or code_point(text, at)[0] != KEYCAP:
                return 0
            return _skip_marks(text, at + 3, stop, table)
        return at if _has_keycap(text, at - 3, at) else 0
    if table[code] & REGIONAL:
        at = _skip_extend(text, at + size, stop, table)
        if at < stop:
            code, size = code_point(text, at)
            if table[code] & REGIONAL:
                return _skip_extend(text, at + size, stop, table)
        return 0
    if table[code] & SKIN_TONE:
        return _skip_marks(text, at + size, stop, table)
    end = 0
    while at < stop:
        code, size = code_point(text, at)
        joined = end == 0
        while code == ZWJ:
            joined = True
            at += size
            if at >= stop:
                return end
            code, size = code_point(text, at)
        if not table[code] & EMOJI or not (joined or _is_zwj(text, at - 3)):
            return end
        at = _skip_marks(text, at + size, stop, table)
        if at + 3 <= stop and text[at] == 0xEF and code_point(text, at)[0] == EMOJI_STYLE:
            at += 3
        end = at
    return end


@inner()
def _has_keycap(text: Bytes, at: int, end: int) -> bool:
    return bool(at >= 0 and text[at] == 0xE2 and at + 3 == end and code_point(text, at)[0] == KEYCAP)


@inner()
def _is_zwj(text: Bytes, at: int) -> bool:
    return bool(text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] == 0x8D)


@inner()
def _is_one_script(text: Bytes, at: int, end: int, table: Int16s, hangul: int, kind: int) -> bool:
    """Whether all of text[at:end] is Hangul, or all Katakana, with marks."""
    while at < end:
        code, size = code_point(text, at)
        bits = table[code]
        if bits & CLASS != EXTEND and (bits & HANGUL != hangul or bits & CLASS != kind):
            return False
        at += size
    return True


@inner()
def _next_class(text: Bytes, at: int, stop: int, table: Int16s) -> tuple[int, int]:
    """Return the position and class of the first character that is not Extend; class 0 at the end."""
    while at < stop:
        code, size = code_point(text, at)
        if table[code] & CLASS != EXTEND:
            return at, table[code] & CLASS
        at += size
    return at, 0


@inner()
def _skip_extend(text: Bytes, at: int, stop: int, table: Int16s) -> int:
    while at < stop:
        code, size = code_point(text, at)
        if table[code] & CLASS != EXTEND:
            break
        at += size
    return at


@inner()
def _skip_marks(text: Bytes, at: int, stop: int, table: Int16s) -> int:
    """Like `_skip_extend`, but stops before the selectors of text and emoji style."""
    while at < stop:
        code, size = code_point(text, at)
        if table[code] & CLASS != EXTEND or code == TEXT_STYLE or code == EMOJI_STYLE:
            break
        at += size
    return at


@inner(inline="always")
def _byte_count(byte: int) -> int:
    if byte < 0x80:
        return 1
    if byte < 0xE0:
        return 2
    return 3 if byte < 0xF0 else 4


@inner(inline="always")
def code_point(text: Bytes, at: int) -> tuple[np.int64, int]:
    """Return the code point at a byte of UTF-8, and its number of bytes."""
    byte = np.int64(text[at])
    if byte < 0x80:
        return byte, 1
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | (text[at + 1] & 0x3F), 2
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | np.int64(text[at + 1] & 0x3F) << 6 | (text[at + 2] & 0x3F), 3
    return (
        (byte & 0x07) << 18 | np.int64(text[at + 1] & 0x3F) << 12 | np.int64(text[at + 2] & 0x3F) << 6 | (text[at + 3] & 0x3F)
    ), 4


@cache
def properties() -> Int16s:
    """Property bits of each code point: its Word_Break class (UAX 29) and flags; int16, (0x110000,)."""
    table = np.zeros(0x110000, dtype=np.int16)
    rows = _table("properties")
    sizes = rows[:, 1] - rows[:, 0] + 1
    indices = np.arange(sizes.sum()) + np.repeat(rows[:, 0] - np.cumsum(sizes) + sizes, sizes)
    table[indices] = np.repeat(rows[:, 2], sizes)
    for first, last in _table("composing").tolist():
        table[first : last + 1] |= COMPOSING
    return fixed(table)


@cache
def lowercase() -> dict[int, int]:
    """Simple lower-case mapping for `str.translate`, one code point to one, as in Lucene."""
    return dict(_table("lower").tolist())


@cache
def lowercase_shifts() -> Int32s:
    """Return the difference between the lower case of each code point and the code point; int32, (0x110000,)."""
    shifts = np.zeros(0x110000, dtype=np.int32)
    codes, lower = _table("lower").T
    shifts[codes] = lower - codes
    return shifts


def _table(name: str) -> Int32s:
    table: Int32s = np.load(Path(__file__).with_name("tables") / f"{name}.npy")
    return table

"""Writes src/fontes/text/tables/: the Unicode properties that the tokenizers need. Run it with the package `regex` installed.

properties.npy   int32, rows of (first code point, last code point, property bits of fontes.text.tokenizers)
lower.npy        int32, rows of (code point, its simple lower-case mapping)
composing.npy    int32, rows of (first code point, last code point) that Unicode's NFC may change, move or join with others
"""

import unicodedata
from pathlib import Path

import numpy as np
import regex

from fontes.text import tokenizers as c

FOLDER = Path(__file__).parent.parent / "src/fontes/text/tables"

WORD_BREAK = {
    "ALetter": c.LETTER,
    "Hebrew_Letter": c.HEBREW,
    "Numeric": c.NUMERIC,
    "Katakana": c.KATAKANA,
    "ExtendNumLet": c.JOINER,
    "MidLetter": c.MID_LETTER,
    "MidNum": c.MID_NUMBER,
    "MidNumLet": c.MID_BOTH,
    "Single_Quote": c.SINGLE_QUOTE,
    "Double_Quote": c.DOUBLE_QUOTE,
    "Extend": c.EXTEND,
    "Format": c.EXTEND,
    "ZWJ": c.EXTEND,
}
FLAGS = {
    r"\p{LB=SA}": c.COMPLEX,
    r"\p{Script=Han}": c.HAN,
    r"\p{Script=Hiragana}": c.HIRAGANA,
    r"\p{Script=Hangul}": c.HANGUL,
    r"\p{L}": c.ALPHABETIC,
    r"\p{White_Space}": c.SPACE,
    r"\p{Emoji_Modifier}": c.SKIN_TONE,
    r"\p{Regional_Indicator}": c.REGIONAL,
}
# Characters that Unicode has moved to another class since 12.1, the version of Lucene's grammar: as Lucene has them.
LUCENE = {
    c.MID_LETTER: ":︓﹕：",
    c.MID_NUMBER: "︐︔",
    c.EXTEND: "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2\U000110bd\U000110cd",
    c.NUMERIC | c.COMPLEX: "\u19da",
    0: "\u00b8\u02e5\u02e6\u02e7\u02e8\u02e9\u02ea\u02eb\u055a\u055f\u058a\ua708\ua709\ua70a\ua70b\ua70c\ua70d\ua70e"
    "\ua70f\ua710\ua711\ua712\ua713\ua714\ua715\ua716",
}
# What starts an emoji there: Extended_Pictographic of emoji 12.1, which reserved whole blocks. First and last code points.
EMOJI = """
A9 AE 203C 2049 2122 2139 2194-2199 21A9-21AA 231A-231B 2328 2388 23CF 23E9-23F3 23F8-23FA 24C2 25AA-25AB 25B6 25C0
25FB-25FE 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271D 2721 2728 2733-2734 2744 2747 274C 274E
2753-2755 2757 2763-2767 2795-2797 27A1 27B0 27BF 2934-2935 2B05-2B07 2B1B-2B1C 2B50 2B55 3030 303D 3297 3299
1F000-1F0FF 1F10D-1F10F 1F12F 1F16C-1F171 1F17E-1F17F 1F18E 1F191-1F19A 1F1AD-1F1E5 1F201-1F20F 1F21A 1F22F 1F232-1F23A
1F23C-1F23F 1F249-1F3FA 1F400-1F53D 1F546-1F64F 1F680-1F6FF 1F774-1F77F 1F7D5-1F7FF 1F80C-1F80F 1F848-1F84F 1F85A-1F85F
1F888-1F88F 1F8AE-1F8FF 1F90C-1F93A 1F93C-1F945 1F947-1FFFD
"""

points = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
bits = np.zeros(0x110000, dtype=np.int32)
for name, value in WORD_BREAK.items():
    for match in regex.finditer(rf"\p{{WB={name}}}", "".join(points)):
        bits[ord(match[0])] = value
for pattern, flag in FLAGS.items():
    for match in regex.finditer(pattern, "".join(points)):
        bits[ord(match[0])] |= flag
for value, moved in LUCENE.items():
    for point in moved:
        bits[ord(point)] = (bits[ord(point)] & ~c.CLASS) | value
for span in EMOJI.split():
    first, _, last = span.partition("-")
    bits[int(first, 16) : int(last or first, 16) + 1] |= c.EMOJI

starts = np.flatnonzero(np.diff(bits, prepend=-1))
ends = np.append(starts[1:], 0x110000) - 1
rows = np.stack([starts, ends, bits[starts]], axis=1).astype("<i4")
lower = [(ord(p), ord(p.lower())) for p in points if len(p.lower()) == 1 and p.lower() != p]
lower.append((0x130, ord("i")))  # the one simple mapping that str.lower does not give
pairs = [unicodedata.decomposition(p).split() for p in points if unicodedata.normalize("NFC", p) == p]
second = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}
second |= set(map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))))  # those of Hangul, whose syllables are computed
changes = np.zeros(0x110000 + 1, dtype=np.int8)
for p in points:
    changes[ord(p)] = unicodedata.combining(p) > 0 or p in second or unicodedata.normalize("NFC", p) != p
edges = np.flatnonzero(np.diff(changes, prepend=0)).reshape(-1, 2)

FOLDER.mkdir(exist_ok=True)
np.save(FOLDER / "composing.npy", (edges - [0, 1]).astype("<i4"))
np.save(FOLDER / "properties.npy", rows[rows[:, 2] != 0])
np.save(FOLDER / "lower.npy", np.array(sorted(lower), dtype="<i4"))
print(f"regex {regex.__version__}: {len(rows)} ranges, {len(lower)} lower-case mappings")

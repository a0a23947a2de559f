"""Porter's stemmer as in Lucene, compiled.

M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the two changes of the author's own later
programs ("bli" to "ble", "logi" to "log"), and without stemming words of one or two letters: the stems of Lucene's
PorterStemFilter. Snowball's "porter" lacks these changes.
"""

from __future__ import annotations

import numpy as np

from ..core.arrays import Int32s
from ..storage.arrays import fixed
from ..storage.compiled import inner, kernel


def porter(words: list[str]) -> list[str]:
    """Return the stems of lower-case words; a word with a line break is unchanged."""
    joined = "\n".join(word if "\n" not in word else "" for word in words)
    units = np.frombuffer(joined.encode("utf-16-le", "surrogatepass"), dtype="<u2").astype(np.int32)
    length = stem_lines(units)
    stems = units[:length].astype("<u2").tobytes().decode("utf-16-le", "surrogatepass").split("\n")
    return [stem or word for stem, word in zip(stems, words, strict=True)] if words else []


def stem_lines(units: Int32s) -> int:
    """Stem each line of UTF-16 units in place, closing gaps; return the new length."""
    return int(_stem_lines(units, STEP2, STEP3, STEP4))


Rules = tuple[Int32s, Int32s, Int32s, Int32s]


def _rules(text: str) -> Rules:
    """Return suffixes and replacements, each with bounds; in each step a longer suffix precedes its own endings."""
    pairs = [rule.partition(">") for rule in text.split()]
    sides = [[pair[0] for pair in pairs], [pair[2] for pair in pairs]]
    suffixes, replacements = (fixed(np.array([ord(c) for c in "".join(side)], dtype=np.int32)) for side in sides)
    bounds = [fixed(np.cumsum([0, *map(len, side)]).astype(np.int32)) for side in sides]
    return suffixes, bounds[0], replacements, bounds[1]


STEP2 = _rules(
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous ization>ize ation>ate "
    "ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble logi>log"
)
STEP3 = _rules("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
STEP4 = _rules("al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive> ize>")
_A, _E, _I, _L, _O, _S, _T, _U, _W, _X, _Y, _Z = (ord(c) for c in "aeilostuwxyz")


@kernel(steps=lambda b, *rest: 4 * len(b))
def _stem_lines(b: Int32s, step2: tuple[Int32s, ...], step3: tuple[Int32s, ...], step4: tuple[Int32s, ...]) -> int:
    word = np.empty(len(b) + 1, dtype=np.int32)
    out, start = 0, 0
    for end in range(len(b) + 1):
        if end < len(b) and b[end] != 10:
            continue
        n = end - start
        for i in range(n):
            word[i] = b[start + i]
        n = stem_word(word, n, step2, step3, step4)
        for i in range(n):
            b[out + i] = word[i]
        out += n
        if end < len(b):
            b[out] = 10
            out += 1
        start = end + 1
    return out


@inner()
def stem_word(word: Int32s, n: int, step2: tuple[Int32s, ...], step3: tuple[Int32s, ...], step4: tuple[Int32s, ...]) -> int:
    """Stem word[:n] in place, with room for one more letter; return the new length."""
    if n > 2:
        n = _step1(word, n)
        if n > 1:
            n = _replace(word, n, step2)
        n = _replace(word, n, step3)
        if n > 1:
            n = _strip(word, n, step4)
        n = _step5(word, n)
    return n


@inner()
def _step1(w: Int32s, n: int) -> int:
    """Step 1: plurals, -ed and -ing, and y to i."""
    if w[n - 1] == _S:
        if _ends(w, n, _SSES) or _ends(w, n, _IES):
            n -= 2
        elif w[n - 2] != _S:
            n -= 1
    if _ends(w, n, _EED):
        if _measure(w, n - 3) > 0:
            n -= 1
    else:
        stem = n - 2 if _ends(w, n, _ED) else n - 3 if _ends(w, n, _ING) else n
        if stem < n and _has_vowel(w, stem):
            n = stem
            if _ends(w, n, _AT) or _ends(w, n, _BL) or _ends(w, n, _IZ):
                w[n] = _E
                n += 1
            elif _ends_in_double(w, n):
                if w[n - 1] != _L and w[n - 1] != _S and w[n - 1] != _Z:
                    n -= 1
            elif _measure(w, n) == 1 and _ends_in_cvc(w, n):
                w[n] = _E
                n += 1
    if n > 0 and w[n - 1] == _Y and _has_vowel(w, n - 1):
        w[n - 1] = _I
    return n


@inner()
def _replace(w: Int32s, n: int, rules: tuple[Int32s, ...]) -> int:
    """Steps 2 and 3: replace the first matching suffix if the measure of the stem is above 0."""
    suffixes, bounds, replacements, replacement_bounds = rules
    for rule in range(len(bounds) - 1):
        suffix = suffixes[bounds[rule] : bounds[rule + 1]]
        if _ends(w, n, suffix):
            stem = n - len(suffix)
            if _measure(w, stem) == 0:
                return n
            for i in range(replacement_bounds[rule], replacement_bounds[rule + 1]):
                w[stem] = replacements[i]
                stem += 1
            return stem
    return n


@inner()
def _strip(w: Int32s, n: int, rules: tuple[Int32s, ...]) -> int:
    """Step 4: drop the first matching suffix if the measure of the stem is above 1; -ion only after s or t."""
    suffixes, bounds, _, _ = rules
    for rule in range(len(bounds) - 1):
        suffix = suffixes[bounds[rule] : bounds[rule + 1]]
        if _ends(w, n, suffix):
            stem = n - len(suffix)
            if suffix[0] == _I and suffix[1] == _O and not (stem > 0 and (w[stem - 1] == _S or w[stem - 1] == _T)):
                continue
            return stem if _measure(w, stem) > 1 else n
    return n


@inner()
def _step5(w: Int32s, n: int) -> int:
    """Step 5: a final e, and ll to l."""
    if w[n - 1] == _E:
        m = _measure(w, n - 1)
        if m > 1 or (m == 1 and not _ends_in_cvc(w, n - 1)):
            n -= 1
    if n > 0 and w[n - 1] == _L and _ends_in_double(w, n) and _measure(w, n) > 1:
        n -= 1
    return n


_SSES, _IES, _EED, _ED, _ING, _AT, _BL, _IZ = (
    np.array([ord(c) for c in suffix], dtype=np.int32) for suffix in ["sses", "ies", "eed", "ed", "ing", "at", "bl", "iz"]
)


@inner()
def _ends(w: Int32s, n: int, suffix: Int32s) -> bool:
    """Whether w[:n] ends with `suffix`, which may be the whole word, as in the author's program."""
    if len(suffix) > n:
        return False
    for i in range(len(suffix)):
        if w[n - len(suffix) + i] != suffix[i]:
            return False
    return True


@inner()
def _is_consonant(w: Int32s, i: int) -> bool:
    """Whether w[i] is a consonant: any letter except a, e, i, o, u, and y after a consonant."""
    c = w[i]
    if c == _A or c == _E or c == _I or c == _O or c == _U:
        return False
    if c != _Y:
        return True
    ys = 0  # a run of y alternates
    while i > 0 and w[i] == _Y:
        ys += 1
        i -= 1
    if w[i] == _Y:
        return ys % 2 == 0
    vowel = w[i] == _A or w[i] == _E or w[i] == _I or w[i] == _O or w[i] == _U
    return bool(vowel == (ys % 2 == 1))


@inner()
def _measure(w: Int32s, n: int) -> int:
    """Return the measure m of w[:n]: how often a consonant follows a vowel."""
    m = 0
    for i in range(1, n):
        if _is_consonant(w, i) and not _is_consonant(w, i - 1):
            m += 1
    return m


@inner()
def _has_vowel(w: Int32s, n: int) -> bool:
    for i in range(n):
        if not _is_consonant(w, i):
            return True
    return False


@inner()
def _ends_in_double(w: Int32s, n: int) -> bool:
    return n > 1 and w[n - 1] == w[n - 2] and _is_consonant(w, n - 1)


@inner()
def _ends_in_cvc(w: Int32s, n: int) -> bool:
    """Whether w[:n] ends in consonant, vowel, consonant, the last not w, x or y."""
    if n < 3 or not _is_consonant(w, n - 1) or _is_consonant(w, n - 2) or not _is_consonant(w, n - 3):
        return False
    c = w[n - 1]
    return bool(c != _W and c != _X and c != _Y)

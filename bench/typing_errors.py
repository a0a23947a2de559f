"""Typing errors as people make them, for `typed.py`.

The shares of the four edits are those of the 231 most frequent edits of letters in Norvig's counts of spelling errors
(count_1edit.txt of "Natural Language Corpus Data", in Beautiful Data, 2009): 39 % omissions, 33 % substitutions, 21 %
insertions, 7 % transpositions; four of five substitutions are a vowel for a vowel. Inadvertent doubling is the greatest
cause of insertions, and 90 to 95 % of misspelt words have one error (Pollock and Zamora, JASIS 34(1), 1983). Few errors
are in the first letter (Yannakoudakis and Fawthrop, Information Processing and Management 19(2), 1983). Other
insertions and substitutions are neighbours on a QWERTY keyboard. A letter with a mark loses it (Gimenes, Roman and
Carvalho, Computational Linguistics 41(1), 2015, find that marks play a major role where letters have them).
"""

from __future__ import annotations

import random
import re
import unicodedata

KINDS = {"omission": 0.39, "substitution": 0.33, "insertion": 0.21, "transposition": 0.07}
DOUBLED, VOWEL = 0.6, 0.8  # of insertions; of substitutions of vowels
FIRST = 0.3  # how much more seldom the first letter is the wrong one
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
VOWELS = "aeiouy"
WORD = re.compile(r"[^\W\d_]{4,}")


def neighbours(letter: str) -> str:
    """The keys around a letter's."""
    for row, keys in enumerate(ROWS):
        if (at := keys.find(letter)) >= 0:
            around = keys[max(at - 1, 0) : at] + keys[at + 1 : at + 2]
            around += ROWS[row - 1][at : at + 2] if row else ""
            return around + (ROWS[row + 1][max(at - 1, 0) : at + 1] if row + 1 < len(ROWS) else "")
    return VOWELS


def misspelt(word: str, rng: random.Random) -> str:
    """The word with one error."""
    while True:
        at = rng.choices(range(len(word)), [FIRST] + [1.0] * (len(word) - 1))[0]
        letter, before, after = word[at].lower(), word[:at], word[at + 1 :]
        kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
        if kind == "omission":
            other = before + after
        elif kind == "insertion":
            other = before + letter + (letter if rng.random() < DOUBLED else rng.choice(neighbours(letter))) + after
        elif kind == "transposition":
            other = before + after[:1] + letter + after[1:]
        elif (bare := unicodedata.normalize("NFD", letter)[0]) != letter:
            other = before + bare + after
        elif letter in VOWELS and rng.random() < VOWEL:
            other = before + rng.choice(VOWELS.replace(letter, "")) + after
        else:
            other = before + rng.choice(neighbours(letter)) + after
        if other.lower() != word.lower():
            return other


def with_error(query: str, rng: random.Random) -> str:
    """The query with one error, in a word of at least four letters; the same query if it has none."""
    words = list(WORD.finditer(query))
    if not words:
        return query
    word = rng.choices(words, [len(match[0]) for match in words])[0]
    return query[: word.start()] + misspelt(word[0], rng) + query[word.end() :]

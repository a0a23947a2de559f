"""Words of a text, as passages count them."""

from __future__ import annotations

import re

# Han, Hiragana, Katakana: written without spaces, so each character is a word.
IDEOGRAPHS = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
WORD = re.compile(f"[{IDEOGRAPHS}]|[^\\s{IDEOGRAPHS}]+")

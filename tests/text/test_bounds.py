"""Compiled loops read nothing outside the text: run as plain Python, where that is an error, they give the same terms."""

import json
import os
import subprocess
import sys

import numpy as np

from fontes.text import Analyzer

NAMES = ["english", "czech", "standard", "simple", "whitespace", "cjk+chars:1-3", "english+words:1-3"]
CHARACTERS = "aZé1٣.'’\"_ \u0301\u200d\ufe0f\u20e3#*中カー한ກߊ👩\U0001f3fd🇨İſ"
CODE = """
import json, sys, numpy
from fontes.text import Analyzer
numpy.seterr(over="ignore")
names, texts = json.load(sys.stdin)
analyzers = [Analyzer.of(name) for name in names]
print(json.dumps([[[analyzer(text) for text in texts], analyzer.many(texts)] for analyzer in analyzers]))
"""


def texts() -> list[str]:
    """Short texts, so that each character is often the first and the last of one, and some words."""
    rng = np.random.default_rng(0)
    alone = [a + b for a in ["", *CHARACTERS] for b in CHARACTERS[::3]]
    longer = ["".join(rng.choice(list(CHARACTERS), int(rng.integers(3, 9)))) for _ in range(120)]
    return [*CHARACTERS, *alone, *longer, "ponies", "the dog's running", "relational hopping agreed", "x" * 300, ""]


def test_loops_that_are_not_compiled_read_inside_the_text_and_give_the_same_terms() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    asked = json.dumps([NAMES, texts()])
    done = subprocess.run(
        [sys.executable, "-c", CODE], input=asked, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for name, (single, many) in zip(NAMES, json.loads(done.stdout), strict=True):
        analyzer = Analyzer.of(name)
        assert single == many == [analyzer(text) for text in texts()], name

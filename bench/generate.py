"""Writes a large collection by recombining the sentences of a real one: the same arguments give the same bytes.

python generate.py wikipedia_passages/corpus.jsonl.gz 2000000 big.jsonl
"""

import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np

WORDS = 60  # a document is sentences drawn at random until it has at least this many words


def main(source: str, documents: int, target: str, seed: int = 1) -> None:
    opener = gzip.open if source.endswith(".gz") else open
    with opener(source, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    sentences = [s for text in texts for s in re.split(r"(?<=[.!?]) +", text) if s]
    lengths = np.array([s.count(" ") + 1 for s in sentences])
    draws = np.random.default_rng(seed)
    with Path(target).open("w", encoding="utf-8") as out:
        written = 0
        while written < documents:
            drawn = draws.integers(0, len(sentences), 1 << 20)
            words, start = 0, 0
            for i, length in enumerate(lengths[drawn].tolist(), 1):
                words += length
                if words >= WORDS:
                    text = " ".join(sentences[s] for s in drawn[start:i].tolist())
                    out.write(json.dumps({"_id": f"d{written}", "text": text}, ensure_ascii=False) + "\n")
                    words, start, written = 0, i, written + 1
                    if written == documents:
                        return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

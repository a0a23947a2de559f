"""Posts that speak of documents, for recipes that learn; and the recipe air2025 with a small start."""

from pathlib import Path

import numpy as np
from support.tiny_t5 import TEXT

import fontes as ft
from fontes.core import Doc
from fontes.recipes import Air2025, Recipe

WORDS = sorted(set(TEXT.split()))


def collection(count: int = 30) -> tuple[list[Doc], dict[str, str], dict[str, dict[str, int]]]:
    """Documents of eight words, and posts of two of them, each about one."""
    generator = np.random.default_rng(3)
    docs = [Doc(f"d{n}", " ".join(generator.choice(WORDS, 8)), f"title {n}") for n in range(40)]
    posts = {f"q{n}": " ".join([*docs[n].text.split()[:2], WORDS[n % len(WORDS)]]) for n in range(count)}
    return docs, posts, {f"q{n}": {f"d{n}": 1} for n in range(count)}


def air(start: str, **changes: object) -> Recipe:
    return Air2025(analyzer="standard", candidates=5, start=start, precision="float32").with_(**changes)


def beir(parent: Path) -> Path:
    """A folder in BEIR's form with the splits train, dev and test, of 16, 6 and 8 posts."""
    docs, posts, qrels = collection()
    folder = parent / "collection"
    (folder / "qrels").mkdir(parents=True)
    ft.write_corpus(docs, folder / "corpus.jsonl")
    ft.write_topics(posts, folder / "queries.jsonl")
    names = list(posts)
    for split, ids in (("train", names[:16]), ("dev", names[16:22]), ("test", names[22:])):
        lines = ["query-id\tcorpus-id\tscore", *(f"{name}\t{doc}\t1" for name in ids for doc in qrels[name])]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder

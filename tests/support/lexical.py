"""A collection in which many scores are tied, and models and topics to search it with."""

import random
from pathlib import Path

from fontes.core import Run, Topic, Topics
from fontes.index import Index
from fontes.lexical import BM25, TFIDF
from fontes.lexical.bm25 import VARIANTS

MODELS: list[dict[str, object]] = [
    *({"variant": variant} for variant in VARIANTS),
    {"variant": "lucene", "lengths": "lucene", "k3": 2.0},
    {"variant": "plus", "k1": 2.0, "b": 1.0, "k3": 0.5, "delta": 0.3},
    {"norm": "l2"},
    {"norm": None, "relative_tf": True},
    {"norm": None},
    {"norm": "l2", "sublinear_tf": True, "smooth_idf": True},
]
TOPICS = Topics(
    [
        Topic("1", "w1 w2 w3"),
        Topic("2", "w0 w0 w5 nothing"),
        Topic("3", ""),
        Topic("4", "only unknown words"),
        Topic("5", " ".join(f"w{n}" for n in range(40))),
        Topic("6", "", weights={"w1": 2.0, "w7": -1.5, "w2": 0.25}),
    ]
)


def tied_index(path: Path) -> Index:
    """2,900 documents, some of them three times, so that scores are tied, and enough to be pruned."""
    draw = random.Random(3)
    texts = [" ".join(f"w{int(draw.paretovariate(0.6)) % 200}" for _ in range(draw.randrange(40))) for _ in range(2_500)]
    texts += texts[:200] * 2
    ids = [f"{draw.choice('aZé東')}{n}" for n in range(len(texts))]
    draw.shuffle(ids)
    docs = list(zip(ids, texts, strict=True))
    return Index.build(docs, path, analyzer="whitespace")


def model(index: Index, parameters: dict[str, object], **more: object) -> BM25 | TFIDF:
    """BM25 with parameters that have a variant, TF-IDF with others."""
    make = index.bm25 if "variant" in parameters else index.tfidf
    return make(**parameters, **more)  # type: ignore[operator, no-any-return]


def rows(run: Run) -> dict[str, list[tuple[str, float]]]:
    """The ids and scores of each topic."""
    return {topic: [(hit.id, hit.score) for hit in ranking] for topic, ranking in run.items()}

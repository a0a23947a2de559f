"""A collection in which short documents are relevant."""

import numpy as np
import pytest

import fontes as ft

WORDS = "spring water stone river well moss rain fern"


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """An index of 60 documents, 20 topics of two words, and judgments that prefer short documents."""
    rng = np.random.default_rng(3)
    words = WORDS.split()
    docs = {f"d{i:02}": " ".join(rng.choice(words, size=int(rng.integers(3, 60)))) for i in range(60)}
    topics = {f"c{i // 4}_{i % 4}": " ".join(rng.choice(words, size=3)) for i in range(20)}
    qrels = {}
    for topic_id, text in topics.items():
        share = {d: sum(w in text.split() for w in t.split()) / len(t.split()) for d, t in docs.items()}
        qrels[topic_id] = dict.fromkeys(sorted(share, key=lambda d: (-share[d], d))[:5], 1)
    index = ft.Index.build(docs.items(), tmp_path_factory.mktemp("tune") / "c.index", analyzer="whitespace")
    return index, ft.Topics.of(topics), ft.Qrels.of(qrels)

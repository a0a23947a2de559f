"""Indexes that are to be damaged, with every kind of file, and what is searched in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from support.hashed_encoder import generator_of

DOCUMENTS, WORDS = 4_500, 2_000  # of the index of texts: more than one window of the kernel, and lists with rows of bounds
FEW = 150  # documents with vectors
TOPICS = {"q1": "w1 w7 w300", "q2": "w2 w1999 w45 w46 spring", "q3": "w1"}


@dataclass(frozen=True)
class Fake:
    """A late-interaction model without a transformer: a token is a word, its vector depends on the word alone."""

    fingerprint: str = "fake"
    width: int = 8

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.stack([word_vector(word, self.width) for word in text.split()]) for text in texts]

    def encode_documents(self, docs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        rows = self.encode_queries([doc.text for doc in docs])
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])


@lru_cache(None)
def word_vector(word: str, width: int) -> np.ndarray:
    """A vector of unit length."""
    vector = generator_of(word).standard_normal(width).astype(np.float32)
    return vector / np.linalg.norm(vector)


def encoders() -> list[tuple[Any, str]]:
    """Encoders, and the precision in which an index has their vectors."""
    from support.counting_encoder import Counting, Several

    return [
        (Counting(fingerprint="one"), "float32"),
        (Several(fingerprint="two"), "float16"),
        (Several(fingerprint="three"), "int8"),
    ]


def make(root: Path) -> None:
    """Makes the folder `sound`: two indexes."""
    from support.counting_terms import CountingTerms

    from fontes import Index
    from fontes.neural.late.encode import encode_late

    sound = root / "sound"
    draw = np.random.default_rng(7)
    words = np.minimum(draw.zipf(1.25, (DOCUMENTS, 9)), WORDS)
    docs: list[dict[str, Any]] = [
        {"_id": f"d{n * 7919 % 5003:04}", "text": " ".join(f"w{w}" for w in row)} for n, row in enumerate(words.tolist())
    ]
    for n in range(0, DOCUMENTS, 50):
        metadata = {"year": 2000 + n % 25, "tag": ["léto", "zima"][: n % 3], "day": f"2020-01-{1 + n % 28:02}", "part": n / 7}
        docs[n] |= {"title": f"Pramen č. {n}", "metadata": {**metadata, "kind": f"k{n % 3}", "good": n % 2 == 0}}
    index = Index.build(docs[:-600], sound / "texts.index", analyzer="whitespace")
    index.add(docs[-600:-300])
    index.add(docs[-300:])
    index.delete([doc["_id"] for doc in docs[5:-400:97]])
    index = Index.build(docs[:FEW], sound / "vectors.index", analyzer="whitespace")
    index.add(docs[FEW : FEW + FEW // 2])
    index.delete([docs[7]["_id"], docs[70]["_id"]])
    for encoder, dtype in encoders():
        index.encode(encoder, dtype=dtype)
    index.encode(CountingTerms())
    for nbits in (2, 16):
        encode_late(index, Fake(), nbits=nbits, centroids=16)


# What is searched; each opens what it searches.


def _scores(run: Any) -> list[Any]:
    return [[ranking.ids, ranking.scores.tolist()] for ranking in run.values()]


def lexical(root: Path) -> Any:
    """All kinds of lexical models, feedback, an explanation."""
    from fontes import Index, Topic

    index = Index.open(root / "texts.index")
    minus = Topic("m", "", weights={"w1": -1.0, "w5": 2.0})
    stages = [
        index.bm25(k=10),
        index.bm25(k=20) >> index.rm3() >> index.bm25(k=10),
        index.tfidf(k=1000),
        index.ql(k=10),
        index.bm25(variant="okapi", k=5),
    ]
    runs = [_scores(stage(TOPICS)) for stage in stages]
    explained = [stages[0].explain("w1 w7", index.ids[place]).value for place in (0, 4_000)]
    return runs, _scores(stages[0](minus)), explained, len(index), repr(index), index.info()["tokens"]


def texts(root: Path) -> Any:
    """All documents, the terms of some, and a snippet."""
    from fontes import Index

    index = Index.open(root / "texts.index")
    some = list(index.ids)[::500]
    docs = index.state.documents(list(index.ids), range(len(index))) + index.docs(some)
    return (
        [(d.id, d.text, d.title, sorted(d.metadata.items())) for d in docs],
        index.analyzed(some),
        index.marked("w1", docs[0]),
    )


def dense(root: Path) -> Any:
    """Exact search in vectors."""
    from fontes import Index

    index = Index.open(root / "vectors.index")
    runs = [_scores(index.dense(e, dtype=dtype, k=20)({"q": "fox", "r": "dog"})) for e, dtype in encoders()]
    value = index.dense(encoders()[2][0]).explain("fox", index.ids[3]).value
    return runs, value, [v["dim"] for v in index.info()["vectors"]]


def approximate(root: Path) -> Any:
    """Approximate search in vectors."""
    from fontes import Index

    index = Index.open(root / "vectors.index")
    encoder = encoders()[1][0]
    algorithms = ["hnsw", "IVF4,Flat"] if find_spec("faiss") else []
    return [_scores(index.dense(encoder, algorithm=name, k=20)({"q": "fox"})) for name in algorithms]


def late(root: Path) -> Any:
    """Search in token vectors."""
    from fontes import Index
    from fontes.neural.late.store import stored_tokens

    index = Index.open(root / "vectors.index")
    model = Fake()
    (query,) = model.encode_queries(["w1 w2 w77"])
    answers = []
    for nbits in (2, 16):
        store = stored_tokens(index, model, nbits)
        docs = store.candidates(query, 2, 0.3, 40)
        answers.append([docs.tolist(), store.scores(query, docs).tolist()])
        answers.append(store.scores(query, np.arange(store.documents)).tolist())
    return answers


def columns(root: Path) -> Any:
    """A filtered search, and how many documents have each value."""
    from fontes import Index

    index = Index.open(root / "texts.index")
    run = index.bm25(k=10, where="year >= 2010 and 'zima' in tag")(TOPICS)
    counts = index.facets(*index.columns)
    other = index.bm25(k=10, where="day < '2020-01-20' and good and kind in ('k1', 'k2') or part > 99.5")
    return index.columns, _scores(run), _scores(other(TOPICS)), [(name, list(counts[name].items())) for name in counts]


def sparse(root: Path) -> Any:
    """Search in weights of terms."""
    from support.counting_terms import CountingTerms

    from fontes import Index

    index = Index.open(root / "vectors.index")
    return _scores(index.splade(CountingTerms(), k=20)({"q": "w1 w2", "r": "w77"}))


def runs(root: Path) -> Any:
    """A run out of the cache of runs, or searched again."""
    from fontes import Index, Topics
    from fontes.experiments.systems import Cache, key_of

    index, topics = Index.open(root / "texts.index"), Topics.of(TOPICS)
    cache, key = Cache(root / "cache" / "runs"), key_of("topics", ["bm25"])
    if (run := cache.load(key, topics, {index.fingerprint: index})) is None:
        run = index.bm25(k=30)(topics)
        cache.store(key, run, topics)
    return _scores(run)


def written(root: Path) -> Any:
    """Documents added and deleted, and all merged."""
    from fontes import Index

    index = Index.open(root / "texts.index")
    index.add([("new", "w1 w2 w2")])
    index.delete([index.ids[1]])
    index.merge()
    return _scores(Index.open(index.path).bm25(k=10)(TOPICS)), index.info()["tokens"], index.doc("new").text


SEARCHES: dict[str, Callable[[Path], Any]] = {
    "lexical": lexical,
    "texts": texts,
    "runs": runs,
    "written": written,
    "columns": columns,
    "dense": dense,
    "approximate": approximate,
    "late": late,
    "sparse": sparse,
}


def concerned(file: str) -> list[str]:
    """The searches that read a file."""
    if file.startswith("cache/"):
        return {"runs": ["runs"]}.get(file.split("/")[1], ["approximate"])
    if "/column" in file:
        return ["columns", "columns", "written"]
    if file.startswith("texts.index"):
        return ["lexical", "lexical", "texts", "written", "columns"]
    kinds = {"vectors-": ["dense", "approximate", "late"], "late-": ["late"], "sparse-": ["sparse"]}
    return next((names for part, names in kinds.items() if f"/{part}" in file), ["dense", "sparse", "late"])

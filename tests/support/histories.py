"""Indexes that live, what must be in them, and what lexical models make of them."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support.small_collections import files as files

from fontes.core import Doc, Run, Stage, Topic, Topics
from fontes.index import Index
from fontes.lexical.bm25 import VARIANTS

Model = Callable[[Index], Stage[Topics, Run]]
Answer = dict[str, tuple[tuple[str, ...], bytes]]  # for each topic the ids and the bytes of the scores

SOME = "year >= 2010 and lang == 'cs'"
COLUMNS = {"year": "integer", "lang": "keyword"}
MODELS: dict[str, Model] = {
    **{f"bm25 {variant}": lambda index, v=variant: index.bm25(variant=v, threads=1) for variant in VARIANTS},  # type: ignore[misc]
    "bm25 in bytes": lambda index: index.bm25(lengths="lucene", k3=2.0, threads=2),
    "bm25 apart": lambda index: index.bm25(variant="plus", k1=2.0, b=1.0, k3=0.5, delta=0.3, threads=1),
    "tfidf": lambda index: index.tfidf(threads=1),
    "tfidf of shares": lambda index: index.tfidf(norm=None, relative_tf=True, threads=1),
    "tfidf of logarithms": lambda index: index.tfidf(norm="l2", sublinear_tf=True, smooth_idf=True, threads=1),
    "tfidf without norm": lambda index: index.tfidf(norm=None, threads=1),
    "dirichlet": lambda index: index.ql(mu=20.0, threads=1),
    "jelinek-mercer": lambda index: index.ql(smoothing="jelinek-mercer", threads=1),
    "rm3": lambda index: index.bm25(threads=1) >> index.rm3(fb_docs=3, fb_terms=4, max_df=0.7) >> index.bm25(threads=1),
    "bm25 of some years": lambda index: index.bm25(where=SOME, threads=1),
    "tfidf of some years": lambda index: index.tfidf(where=SOME, threads=1),
}
OF_WEIGHTS: dict[str, Model] = {
    "learned sparse": lambda index: index.learned_sparse(threads=1),
    "learned sparse of some years": lambda index: index.learned_sparse(where=SOME, threads=1),
}
TOPICS = Topics(
    [
        Topic("1", "w1 w2 w3"),
        Topic("2", "w0 w0 w5 nothing"),
        Topic("3", ""),
        Topic("4", " ".join(f"w{n}" for n in range(25))),
        Topic("5", "", weights={"w1": 2.0, "w7": -1.5, "w2": 0.25}),
        Topic("6", "w9"),
    ]
)


def some_docs(seed: int, ids: Iterable[str], longest: int = 25) -> list[Doc]:
    """Documents of numbered words, the first of which are frequent; some are empty, some are equal, some have a title."""
    draw = random.Random(seed)
    docs: list[Doc] = []
    for doc_id in ids:
        if docs and draw.random() < 0.1:
            docs.append(Doc(doc_id, docs[-1].text, docs[-1].title, docs[-1].metadata))
            continue
        words = [f"w{min(int(draw.paretovariate(0.6)) - 1, 400)}" for _ in range(draw.randrange(longest))]
        vector = {f"w{draw.randrange(30)}": round(draw.uniform(0, 3), 2) for _ in range(draw.randrange(6))}
        title = f"w{draw.randrange(9)} title" if draw.random() < 0.3 else ""
        metadata = {"vector": vector, "year": draw.randrange(2000, 2021)}
        metadata |= {"lang": draw.choice(["cs", "en"])} if draw.random() < 0.7 else {}
        docs.append(Doc(doc_id, " ".join(words), title, metadata))
    return docs


def answers(index: Index, models: Mapping[str, Model], topics: Topics = TOPICS, k: int = 1000) -> dict[str, Answer]:
    """What the models find in an index: ids and scores, to the bit."""
    return {name: answer((model(index) % k)(topics)) for name, model in models.items()}


def answer(run: Run) -> Answer:
    """A run, to the bit."""
    return {topic: ranked(ranking) for topic, ranking in run.items()}


def ranked(ranking: Any) -> tuple[tuple[str, ...], bytes]:
    """A ranking, to the bit."""
    return tuple(hit.id for hit in ranking), np.array([hit.score for hit in ranking], np.float32).tobytes()


def statistics(index: Index) -> dict[str, Any]:
    """All that an index says of its documents and terms."""
    docs, tfs = index.postings(np.arange(len(index.terms)))
    return {
        "ids": index.ids.tolist(),
        "ordinals": [index.ordinal(doc_id) for doc_id in index.ids.tolist()],
        "terms": index.terms.tolist(),
        "df": index.df.tolist(),
        "cf": index.cf.tolist(),
        "lengths": index.lengths.tolist(),
        "tokens": index.tokens,
        "documents": len(index),
        "postings": docs.tolist(),
        "tfs": tfs.tolist(),
        "docs": index.docs(index.ids.tolist()),
    }


def fresh(docs: Sequence[tuple[str, str]], deleted: Iterable[str], path: Path) -> Index:
    """An index that was never changed, of the documents that are left."""
    gone = set(deleted)
    return Index.build([doc for doc in docs if doc[0] not in gone], path)


def segment_files(index: Any, beginning: str) -> dict[str, bytes]:
    """The files of an index's only segment in folders whose names begin so."""
    (leaf,) = index.state.leaves
    folder = leaf.segment.folder
    inner = {place: files(place) for place in folder.glob(f"{beginning}*")}
    return {f"{place.name}/{name}": content for place in inner for name, content in inner[place].items()}


def agrees(index: Index, fresh: Index, models: Mapping[str, Model], k: int = 1000) -> None:
    """An index says and finds what another one of the same documents does."""
    assert statistics(index) == statistics(fresh)
    for name, model in models.items():
        assert answer((model(index) % k)(TOPICS)) == answer((model(fresh) % k)(TOPICS)), f"{name} at {k}"

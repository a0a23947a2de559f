"""Compiles the loops of most tests, which takes minutes in a new clone, beside the types and the first tests of `make test`."""

import gc
import logging
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import compiled_code  # beside this file
from hashed_encoder import Hashed
from hypothesis import strategies

from fontes import Doc, Index, Topic
from fontes.core.query import AnyOf, Clause, Group, Phrase, Term, Window
from fontes.storage.compiled import load

PHRASE = Phrase(("red", "plums"), (0, 1))
QUERIES: tuple[tuple[Clause, ...], ...] = (
    (Term("red"), Term("plums")),
    (PHRASE,),
    (PHRASE, Term("red")),
    (AnyOf(("red", "sea")), Term("plums")),
    (Phrase(("red", "plums"), (0, 1), 2), Window(("red", "sea"), 5)),
)


def main() -> None:
    logging.disable()
    gc.set_threshold(50_000, 20, 50)  # Numba makes many objects, and searches for garbage take a tenth of the time otherwise
    compiled_code.take_over()
    compiled_code.compile_once()
    os.environ["FONTES_CACHE"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory() as folder:
        docs = [Doc(f"d{n}", "red plums by the sea", metadata={"year": n}) for n in range(400)]
        index = Index.build(docs, Path(folder) / "x", positions=True, threads=1)
        load()
        for number in range(2):  # in one segment, and in two
            for stage in (index.bm25(), index.bm25(where="year < 3"), index.tfidf()):
                for k in (10, 100):
                    stage.search("red plums", k)
                    (stage % k)({"1": "red plums", "2": "sea"})
                    for query in QUERIES:
                        stage.search(Topic("1", "", query=Group(must=query)), k)
                        stage.search(Topic("1", "", query=Group(should=query, must_not=(Term("blue"),))), k)
                        stage.count(Topic("1", "", query=Group(must=query)))
            (index.bm25() >> index.rm3() >> index.ql()).search("red plums")
            index.ql().search(Topic("1", "", query=Group(must=(PHRASE,))))
            index.suggest("red plmus")
            index.state.marked("plums", index.doc("d1"))
            index.add([Doc(f"new{number}", "red sea")])
        index.delete(["d1"])
        index.bm25().search("red plums")
        index.merge()
        in_fields = Index.build(docs, Path(folder) / "fields", positions=True, separate=True, threads=1)
        in_fields.add([Doc("new", "red sea", "plums")])
        in_fields.bm25(fields={"title": 2.0, "text": 1.0})({"1": "red plums"})
        in_fields.check(deep=True)
        in_fields.merge()
        encoder, topics = Hashed(), {str(number): "red plums" for number in range(5)}
        for dtype in ("float32", "float16", "int8", "rabitq1", "rabitq2", "rabitq4"):
            index.encode(encoder, dtype=dtype)
            for algorithm in ("flat", "hnsw") if find_spec("faiss") and dtype[:3] != "rab" else ("flat",):
                stage = index.dense(encoder, dtype=dtype, algorithm=algorithm, k=3)
                stage.search("red plums", 3)
                stage(topics)
    strategies.text().validate()  # makes tables of Unicode, which Hypothesis keeps


if __name__ == "__main__":
    main()

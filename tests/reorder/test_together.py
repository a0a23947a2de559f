"""Stages over columns give one run whatever the segments, shards and deletions of the index."""

from pathlib import Path

from fontes.core.expression import pipeline
from fontes.index import Index

DOCS = [
    {
        "_id": f"d{n}",
        "text": f"tea word{n % 13} word{n % 7}",
        "metadata": {"date": f"20{10 + n % 9}-0{1 + n % 8}-11", "maker": f"m{n % 17}", "price": (n % 5) / 3 if n % 6 else None},
    }
    for n in range(60)
]
TEXTS = (
    'bm25() >> boost("date", half_life="1y")',
    'bm25() >> sort("price", descending=True)',
    'bm25() >> collapse("maker") % 9',
    "bm25() % 50 >> mmr()",
    'fuse(bm25(), tfidf()) >> boost(where="price > 0.5") >> collapse("price", keep=4)',
)


def test_a_run_does_not_depend_on_how_the_index_was_made(tmp_path: Path) -> None:
    one = Index.build(DOCS, tmp_path / "one.index")
    shards = Index.build(DOCS, tmp_path / "shards.index", shards=3)
    grown = Index.build([*DOCS[:20], {"_id": "z", "text": "tea", "metadata": {"date": "2030-01-01"}}], tmp_path / "grown.index")
    grown.add(DOCS[20:])
    grown.delete(["z"])
    for text in TEXTS:
        runs = [pipeline(text, index)({"1": "tea word3", "2": "word5"}) for index in (one, shards, grown)]
        assert runs[0].rows > 0
        assert runs[0] == runs[1] == runs[2], text

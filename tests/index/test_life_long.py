"""Long histories of an index of real passages: every lexical run is, byte for byte, that of an index of what is left."""

import itertools
import random
from pathlib import Path

import pytest
from support.histories import MODELS, answers, files

from fontes.core import Doc, Topics
from fontes.formats import read_corpus, read_topics
from fontes.index import Index, draft

WHAT = {name: model for name, model in MODELS.items() if "years" not in name}  # passages have none
SUBSET = 12_000  # passages that histories draw from
STEPS = 30
MANY = 50


@pytest.fixture(scope="module")
def passages(shared: Path) -> list[Doc]:
    return list(itertools.islice(read_corpus(shared / "wikipedia_passages" / "corpus.jsonl.gz"), SUBSET))


@pytest.fixture(scope="module")
def topics(shared: Path) -> Topics:
    return Topics(itertools.islice(read_topics(shared / "wikipedia_passages" / "queries.jsonl").values(), 25))


def sizes(draw: random.Random) -> int:
    """Mostly few documents, sometimes many."""
    return int(min(1500, 3 * draw.paretovariate(0.5)))


def change(draw: random.Random, index: Index, docs: dict[str, Doc], passages: list[Doc]) -> None:
    """One random change of an index, and of the documents that should be in it."""
    kind = draw.choices(["add", "replace", "delete", "merge", "reopen"], [5, 3, 4, 0.3, 0.5])[0]
    if kind == "merge":
        index.merge(threads=1)
    elif kind == "reopen":
        index.refresh()
    elif kind == "delete":
        ids = list(docs)
        first, count = draw.randrange(len(ids)), sizes(draw)
        some = ids[first : first + count] if draw.random() < 0.3 else draw.sample(ids, min(count, len(ids) // 2))
        index.delete(some)
        for doc_id in some:
            del docs[doc_id]
    else:
        some = draw.sample(passages, sizes(draw))
        if kind == "replace":  # by other texts
            some = [Doc(doc.id, draw.choice(passages).text, doc.title) for doc in some]
        index.add(some, duplicates="skip" if kind == "add" else "replace", memory=draw.choice(["100K", "1G"]), threads=1)
        for doc in some:
            if kind == "replace":
                docs.pop(doc.id, None)
            docs.setdefault(doc.id, doc)


def history(number: int, folder: Path, passages: list[Doc], topics: Topics) -> None:
    """A random history, which is compared with a new index now and then and at its end."""
    draw = random.Random(number)
    start = draw.sample(passages, draw.choice([50, 1000, 5000]))
    index, docs = Index.build(start, folder / "x", threads=1), {doc.id: doc for doc in start}
    compared = {*draw.sample(range(STEPS), 1), STEPS - 1}
    for at in range(STEPS):
        change(draw, index, docs, passages)
        assert len(index) == len(docs)
        if at in compared:
            fresh = Index.build(docs.values(), folder / f"fresh{at}", threads=1)
            k = draw.choice([10, 1000])
            expected, found = answers(fresh, WHAT, topics, k), answers(index, WHAT, topics, k)
            assert [name for name in WHAT if found[name] != expected[name]] == []
    index.check(deep=True)
    index.merge(threads=1)
    assert files(index.path) == files(folder / f"fresh{STEPS - 1}")


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, MANY))])
def test_after_a_long_history_every_run_is_that_of_a_new_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passages: list[Doc], topics: Topics, number: int
) -> None:
    monkeypatch.setattr(draft, "MIN_TIER_DOCUMENTS", 10 ** (1 + number % 3))  # of segments that are merged when they pile up
    history(number, tmp_path, passages, topics)

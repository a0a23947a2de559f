"""The same documents give the same bytes: in every process, with any number of threads, with any memory."""

import os
import subprocess
import sys
import textwrap

import pytest
from support.small import small_batches
from support.small_collections import files

from fontes.core import InputError
from fontes.formats import read_corpus
from fontes.index import Index, build
from fontes.text import Analyzer

SCRIPT = """
    import random, sys
    from fontes.index import Index, build
    build.BATCH = 50_000
    def docs():
        draw = random.Random(5)
        for n in range(3_000):
            words = [f"w{int(draw.paretovariate(0.5)) % 5_000}" for _ in range(draw.randrange(60))]
            more = {"n": n, "map": {"b": 1, "a": 2}}
            yield {"_id": f"d{n * 7919 % 3_000}é", "title": "T" * (n % 3), "text": " ".join(words), **more}
    path, threads, memory = sys.argv[1:]
    Index.build(docs(), path, threads=int(threads), memory=memory, analyzer="english+words:1-2").check(deep=True)
"""


@pytest.mark.slow
def test_builds_with_other_hash_seeds_threads_and_memory_are_equal_byte_for_byte(tmp_path):
    built = []
    for seed, threads, memory in [("1", "1", "2G"), ("random", "4", "20K")]:
        path = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), threads, memory]
        subprocess.run(command, env=environment, check=True)
        built.append(files(path))
    assert len(built[0]) == 17
    assert sum(map(len, built[0].values())) > 100_000
    assert built[1] == built[0]


def test_the_first_build_at_a_path_and_an_overwriting_one_are_equal_byte_for_byte(tmp_path):
    docs = [(f"d{n}", f"some words {n}") for n in range(50)]
    Index.build(docs, tmp_path / "first")
    Index.build([("x", "other")], tmp_path / "second")
    Index.build(docs, tmp_path / "second", overwrite=True)
    assert files(tmp_path / "second") == files(tmp_path / "first")


def test_the_fingerprint_is_that_of_the_content(tmp_path):
    docs = [(f"d{n}", f"some words {n}") for n in range(50)]
    one = Index.build(docs, tmp_path / "1")
    assert Index.build(iter(docs), tmp_path / "2", threads=1, memory="1K").fingerprint == one.fingerprint
    assert Index.build(docs[:-1], tmp_path / "3").fingerprint != one.fingerprint
    assert Index.build(docs, tmp_path / "4", analyzer="standard").fingerprint != one.fingerprint
    assert Index.build(docs, tmp_path / "5", fields=["text"]).fingerprint != one.fingerprint


def test_a_vocabulary_that_was_used_before_does_not_change_the_bytes(tmp_path):
    docs = [(f"d{n}", f"some words {n}") for n in range(50)]
    used = Analyzer.of("english")
    used("words in another order some 7")
    Index.build(docs, tmp_path / "used", analyzer=used)
    Index.build(docs, tmp_path / "fresh", analyzer="english")
    assert files(tmp_path / "used") == files(tmp_path / "fresh")


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_nothing(tmp_path, monkeypatch, threads):
    small_batches(monkeypatch, 3_000)
    docs = [(f"d{n}", f"words {n % 13} " * (n % 9)) for n in range(300)]
    Index.build(docs, tmp_path / "one", threads=1)
    Index.build(docs, tmp_path / "other", threads=threads, memory="5K")
    assert files(tmp_path / "other") == files(tmp_path / "one")


@pytest.mark.parametrize("name", ["cranfield", "ctkfacts_cs"])
@pytest.mark.slow
def test_a_real_collection_has_the_same_bytes_with_any_threads_and_memory(shared, tmp_path, monkeypatch, name):
    monkeypatch.setattr(build, "BATCH", 100_000)
    corpus = shared / name / "corpus.jsonl"
    singly = read_corpus(list(read_corpus(corpus)))  # one document at a time, by Python
    expected = Index.build(singly, tmp_path / "one", threads=1).fingerprint
    for threads, memory in [(1, "500K"), (2, "2G"), (2, "3M"), (4, "1K"), (4, "8M")]:
        index = Index.build(corpus, tmp_path / "other", threads=threads, memory=memory, overwrite=True)
        assert index.fingerprint == expected, (threads, memory)


def test_ids_that_are_put_in_order_by_parts_are_those_of_one_part(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "BATCH", 1_000)
    docs = [(f"{n * 7919 % 10_007:x}{'é' * (n % 3)}", "a word") for n in range(2_000)]
    one = Index.build(docs, tmp_path / "one", threads=1)
    index = Index.build(docs, tmp_path / "parts", threads=2, memory="20K")
    assert index.fingerprint == one.fingerprint
    assert [index.ids[int(place)] for place in index.ids.order] == sorted(doc_id for doc_id, _ in docs)
    with pytest.raises(
        InputError, match="document id 'twice' occurs twice, as documents 4 and 2001; ids must be unique; duplicates='skip'"
    ):
        Index.build([*docs[:3], ("twice", "a"), *docs[3:1_999], ("twice", "b")], tmp_path / "x", threads=2, memory="20K")

"""Vectors and weights of terms of an index that changes: new documents alone are encoded, runs are those of a new index."""

import itertools
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.counting_encoder import Counting, Several
from support.counting_terms import CountingTerms
from support.hashed_encoder import Hashed, Parts, made_docs, queries
from support.histories import answer, fresh, segment_files
from support.processes import in_a_child
from support.small import blocks_of, small_tiers

from fontes.core.errors import FontesError, IndexFormatError, ParameterError
from fontes.core.work import Progress
from fontes.index import Index, draft
from fontes.index.embeddings.vectors import Embeddings
from fontes.neural.dense import vectors as dense_vectors
from fontes.neural.dense.exact import few_nearest

DOCS = made_docs(300)
GONE = [doc_id for doc_id, _ in (*DOCS[50:90], DOCS[130], DOCS[131], DOCS[299])]


def lived(path: Path, *encoders: Any, dtype: str | None = None, every: bool = True) -> Index:
    """An index of three segments, of which the first was encoded in a dtype before the others came; GONE are deleted."""
    index = Index.build(DOCS[:120], path)
    for encoder in encoders:
        index.encode(encoder, dtype=dtype)
    for part in (DOCS[120:200], DOCS[200:]):
        index.add(part)
        for encoder in encoders if every else ():
            index.encode(encoder)
    index.delete(GONE)
    assert index.info()["segments"] == 3
    return index


@pytest.mark.parametrize(
    ("encoder", "dtype"),
    [
        pytest.param(encoder, dtype, marks=[] if encoder == Hashed() or dtype in ("float32", "rabitq1") else pytest.mark.slow)
        for encoder in (Hashed(), Parts(), Hashed(length=None))
        for dtype in ("float32", "float16", "int8", "rabitq1", "rabitq2", "rabitq4")
    ],
)
def test_dense_runs_of_a_changed_index_are_those_of_a_new_one_byte_for_byte(
    tmp_path: Path, encoder: Hashed, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, new = lived(tmp_path / "x", encoder, dtype=dtype), fresh(DOCS, GONE, tmp_path / "y")
    new.encode(encoder, dtype=dtype)
    topics = queries()
    assert index.embeddings(encoder).dtype == dtype
    for k, batch in ((7, 3), (1000, 256)):
        monkeypatch.setattr(dense_vectors, "SCORES", 40 * batch)  # some blocks in each segment
        monkeypatch.setattr(dense_vectors, "QUERIES", batch)
        assert answer(index.dense(encoder, k=k)(topics)) == answer(new.dense(encoder, k=k)(topics))
    index.merge()
    assert answer(index.dense(encoder)(topics)) == answer(new.dense(encoder)(topics))
    assert segment_files(index, "vectors-") == segment_files(new, "vectors-")
    assert len(index.embeddings(encoder)) == len(new.embeddings(encoder))


def test_learned_sparse_runs_of_a_changed_index_are_those_of_a_new_one_byte_for_byte(tmp_path: Path) -> None:
    encoder, topics = CountingTerms(), queries()
    index, new = lived(tmp_path / "x", encoder), fresh(DOCS, GONE, tmp_path / "y")
    new.encode(encoder)
    assert answer(index.splade(encoder)(topics)) == answer(new.splade(encoder)(topics))
    facts = [{**one.info()["weights"][0], "bytes": 0} for one in (index, new)]
    assert facts[0]["documents"] == len(DOCS), "deleted documents take room until their segment is merged"
    index.merge()
    assert answer(index.splade(encoder)(topics)) == answer(new.splade(encoder)(topics))
    assert segment_files(index, "sparse-") == segment_files(new, "sparse-")
    assert {**index.info()["weights"][0], "bytes": 0} == facts[1]


def test_a_term_that_several_segments_have_weights_of_counts_once(tmp_path: Path) -> None:
    index, encoder = Index.build([("a", "fox"), ("b", "dog")], tmp_path / "x"), CountingTerms()
    index.add([("c", "fox owl")])
    index.encode(encoder)
    terms = [set(encoder.encode_queries([text])[0]) for text in ("fox dog", "fox owl")]
    assert index.info()["weights"][0]["terms"] == len(terms[0] | terms[1]) > max(map(len, terms))


def test_encoding_again_encodes_new_documents_alone_in_the_dtype_of_the_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    index = Index.build(DOCS[:100], tmp_path / "x")
    for kind in (Counting(str(log)), CountingTerms(str(log))):
        index.encode(kind, dtype=None if isinstance(kind, CountingTerms) else "float16")
    index.add(DOCS[100:130])
    log.write_text("")
    reports: list[Progress] = []
    for kind in (Counting(str(log)), CountingTerms(str(log))):
        index.encode(kind, progress=reports.append)
    assert log.read_text().split() == 2 * [doc_id for doc_id, _ in DOCS[100:130]]
    assert reports[-1].done == reports[-1].total == 30
    assert index.embeddings(Counting()).dtype == "float16"
    with pytest.raises(ParameterError, match="no float32 vectors"):
        index.embeddings(Counting(), "float32")


def test_segments_without_vectors_are_encoded_together_and_resumed_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks_of(monkeypatch, 8)
    log = tmp_path / "log"
    index = lived(tmp_path / "x", every=False)
    whole = lived(tmp_path / "y", every=False)
    whole.encode(Counting())

    def killed(progress: Progress) -> None:
        if progress.done >= 160:
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(lambda: index.encode(Counting(str(log)), progress=killed)) == -signal.SIGKILL
    log.write_text("")
    reports: list[Progress] = []
    index.encode(Counting(str(log)), progress=reports.append)
    assert log.read_text().split() == [doc_id for doc_id, _ in DOCS[160:]]
    assert [progress.done for progress in reports] == sorted(progress.done for progress in reports)
    assert reports[-1].done == reports[-1].total == 180, "the first segment was complete"
    assert reports[-1].fraction == 1.0
    assert answer(index.dense(Counting())(queries())) == answer(whole.dense(Counting())(queries()))


def test_vectors_of_only_some_documents_are_an_error(tmp_path: Path) -> None:
    index = lived(tmp_path / "x", Hashed(), CountingTerms(), every=False)
    for search in (index.dense(Hashed()), index.splade(CountingTerms())):
        with pytest.raises(
            ParameterError, match=r"for 80 of 257 documents; index.encode\(encoder\), or fontes encode .* others"
        ):
            search.search("w1")
    assert [facts["documents"] for facts in index.info()["vectors"]] == [80]
    index.dense(Hashed()).prepare()
    assert len(index.dense(Hashed()).search("w1 w2", 300)) == 257


def test_a_merge_by_the_way_carries_vectors_along_and_encodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiers(monkeypatch, 3)
    log = tmp_path / "log"
    index = Index.build(DOCS[:20], tmp_path / "x")
    for first in range(20, 300, 40):
        for encoder in (Counting(str(log)), CountingTerms(str(log))):
            index.encode(encoder)
        index.add(DOCS[first : first + 40])
    for encoder in (Counting(str(log)), CountingTerms(str(log))):
        index.encode(encoder)
    assert index.info()["segments"] < 5
    assert sorted(log.read_text().split()) == sorted(2 * [doc_id for doc_id, _ in DOCS])
    new = fresh(DOCS, [], tmp_path / "y")
    new.encode(Counting())
    assert answer(index.dense(Counting())(queries())) == answer(new.dense(Counting())(queries()))


def test_segments_with_different_vectors_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiers(monkeypatch, 2)
    index = Index.build(DOCS[:100], tmp_path / "x")
    index.encode(Hashed())
    index.add(DOCS[100:120])
    assert index.info()["segments"] == 2
    with pytest.raises(
        FontesError, match=r"cannot be merged: some of its documents have no vectors .* index.encode\(encoder\)"
    ):
        index.merge()
    assert index.info()["segments"] == 2
    index.merge(drop_vectors=True)
    assert index.info()["vectors"] == []
    assert answer(index.bm25()(queries())) == answer(fresh(DOCS[:120], [], tmp_path / "y").bm25()(queries()))


def test_a_merge_while_an_encoding_is_unfinished_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks_of(monkeypatch, 8)
    index = lived(tmp_path / "x", every=False)
    with pytest.raises(ParameterError, match="vectors of the shape"):
        index.encode(Counting(wrong=lambda rows: rows[:, :3] if len(rows) < 8 else rows))
    with pytest.raises(FontesError, match="an encoding of its documents is under way or was stopped; fontes encode resumes it"):
        index.merge()
    index.encode(Counting())
    index.merge()
    assert len(index.dense(Counting()).search("w1", 300)) == 257


def test_what_is_encoded_while_segments_are_merged_is_carried_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, merged = lived(tmp_path / "x", every=False), draft.merge_segments

    def meanwhile(*what: Any, **how: Any) -> dict[str, int]:
        Index.open(index.path).encode(Hashed())
        return merged(*what, **how)

    monkeypatch.setattr(draft, "merge_segments", meanwhile)
    monkeypatch.setattr(draft, "merge_encoded", carried_late(draft.merge_encoded))
    index.merge()
    assert len(index.dense(Hashed()).search("w1 w2", 300)) == 257


def carried_late(carry: Any) -> Any:
    """Does nothing the first time, as if the encoding had ended after it."""
    calls: list[Any] = []

    def carry_after(*what: Any, **how: Any) -> None:
        calls.append(what)
        if len(calls) > 1:
            carry(*what, **how)

    return carry_after


def test_an_encoding_whose_segment_is_merged_away_says_so(tmp_path: Path) -> None:
    index = lived(tmp_path / "x", every=False)
    old = Index.open(index.path)

    def merged(progress: Progress) -> None:
        if index.info()["segments"] > 1:
            index.merge(drop_vectors=True)

    with pytest.raises(FontesError, match=r"was merged meanwhile.*index.refresh\(\), and encode again"):
        old.encode(Counting(), progress=merged)
    old.refresh()
    old.encode(Counting())
    assert len(old.dense(Counting()).search("w1", 300)) == 257


def test_vectors_of_another_number_of_documents_are_refused(tmp_path: Path) -> None:
    index = lived(tmp_path / "x", Hashed())
    first, second = (next(leaf.segment.folder.glob("vectors-*")) for leaf in index.state.leaves[:2])
    shutil.rmtree(second)
    shutil.copytree(first, second)
    again = Index.open(index.path)
    for refuses in (lambda: again.dense(Hashed()).search("w1"), again.merge):
        with pytest.raises(IndexFormatError, match="of 120 documents, not 80; encode again with overwrite=True"):
            refuses()
    again.encode(Hashed(), overwrite=True)
    assert len(again.dense(Hashed()).search("w1 w2", 300)) == 257


def test_damaged_vectors_are_no_part_of_a_merge(tmp_path: Path) -> None:
    index = lived(tmp_path / "x", Hashed(), CountingTerms())
    for pattern in ("vectors-*/vectors.npy", "sparse-*/postings.npy"):
        file = next(index.state.leaves[1].segment.folder.glob(pattern))
        sound = file.read_bytes()
        file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        with pytest.raises(IndexFormatError, match=f"{file.name} has changed; encode again with overwrite=True"):
            index.merge()
        file.write_bytes(sound)
    index.merge()
    index.check(deep=True)


@pytest.mark.parametrize("algorithm", ["hnsw", "annoy:20"])
@pytest.mark.slow
def test_an_approximate_index_is_made_again_of_the_documents_that_are_there(tmp_path: Path, algorithm: str) -> None:
    pytest.importorskip("faiss" if algorithm == "hnsw" else "annoy")
    index = Index.build(DOCS[:200], tmp_path / "x")
    index.encode(Hashed())
    before = index.dense(Hashed(), algorithm=algorithm, k=300)(queries())
    index.add(DOCS[200:])
    index.encode(Hashed())
    index.delete(GONE)
    run = index.dense(Hashed(), algorithm=algorithm, k=300)(queries())
    exact = index.dense(Hashed(), k=300)(queries()).to_dict()
    assert run.provenance["approximate"]["vectors"] == 257
    assert run.provenance["vectors"] != before.provenance["vectors"]
    assert all(exact[topic][hit.id] == hit.score for topic, ranking in run.items() for hit in ranking)
    assert not set(GONE) & {hit.id for ranking in run.values() for hit in ranking}
    again = Index.open(index.path).dense(Hashed(), algorithm=algorithm, k=300)(queries())
    assert answer(again) == answer(run)


def test_a_merged_state_uses_what_it_has_open_and_reports_the_rest_as_removed(tmp_path: Path) -> None:
    index = lived(tmp_path / "x", Hashed(), Counting(), CountingTerms())
    old = Index.open(index.path)
    topics = queries(5)
    expected = [answer(search(topics)) for search in (old.dense(Hashed()), old.splade(CountingTerms()))]
    index.merge()
    assert [answer(search(topics)) for search in (old.dense(Hashed()), old.splade(CountingTerms()))] == expected
    for fails in (
        lambda: old.weights(CountingTerms(fingerprint="another")),
        lambda: old.embeddings(Hashed(salt="another")),
        lambda: old.encode(Hashed(salt="another")),
    ):
        with pytest.raises(FontesError, match=r"has changed since it was opened; index.refresh\(\) reads its newest state"):
            fails()
    assert old.refresh()
    assert [answer(search(topics)) for search in (old.dense(Hashed()), old.splade(CountingTerms()))] == expected


def test_an_index_without_documents_left_finds_nothing(tmp_path: Path) -> None:
    index = lived(tmp_path / "x", Hashed(), CountingTerms())
    index.delete(index.ids.tolist())
    for search in (index.dense(Hashed()), index.splade(CountingTerms())):
        assert len(search.search("w1")) == 0
    index.encode(Hashed())
    index.add(DOCS[:3])
    index.encode(Hashed())
    assert len(index.dense(Hashed()).search("w1", 10)) == 3


def test_a_search_by_numpy_gives_the_bytes_of_compiled_code(tmp_path: Path) -> None:
    index = lived(tmp_path / "x")
    some = np.random.default_rng(1).random(len(index)) < 0.5
    for encoder, dtype in itertools.product((Hashed(), Hashed(dim=43, length=None)), ("float32", "float16", "int8")):
        index.encode(encoder, dtype=dtype)
        embeddings, vectors = index.embeddings(encoder, dtype), encoder.encode_queries(list(queries(9).values()))
        for k, allowed in itertools.product((3, 1000), (None, some)):
            compiled = dense_vectors.nearest(embeddings, vectors, k, index.ids, allowed)
            same_bytes(few_nearest(embeddings, vectors, k, index.ids, allowed), compiled)


def same_bytes(by_numpy: Any, compiled: Any) -> None:
    """Documents and scores of two searches, by their types and bytes."""
    for ours, theirs in zip(by_numpy, compiled, strict=True):
        assert [(column.dtype, column.tobytes()) for column in ours] == [(c.dtype, c.tobytes()) for c in theirs]


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_documents_that_are_not_allowed_are_left_out_before_the_best_are_taken(tmp_path: Path, share: float) -> None:
    index = lived(tmp_path / "x", Parts())
    embeddings, ids = index.embeddings(Parts()), index.ids
    vectors = Parts().encode_queries(list(queries(9).values()))
    allowed = np.random.default_rng(1).random(len(index)) < share
    every = dense_vectors.nearest(embeddings, vectors, len(index), ids)
    for k in (3, 1000):
        for (docs, scores), (all_docs, all_scores) in zip(
            dense_vectors.nearest(embeddings, vectors, k, ids, allowed), every, strict=True
        ):
            own = np.flatnonzero(allowed[all_docs])[:k]
            np.testing.assert_array_equal(docs, all_docs[own])
            np.testing.assert_array_equal(scores, all_scores[own])


def test_rows_and_documents_of_several_segments_are_numbered_as_in_one(tmp_path: Path) -> None:
    index, new = lived(tmp_path / "x", Parts()), fresh(DOCS, GONE, tmp_path / "y")
    new.encode(Parts())
    joined, one = index.embeddings(Parts()), new.embeddings(Parts())
    whole: Embeddings = one.shares[0].embeddings
    np.testing.assert_array_equal(joined.decoded(slice(None)), whole.vectors)
    rows = np.random.default_rng(2).permutation(len(whole))[:50]
    np.testing.assert_array_equal(joined.decoded(rows), whole.vectors[rows])
    np.testing.assert_array_equal(joined.bounds, whole.bounds)
    np.testing.assert_array_equal(joined.norms, whole.norms)
    assert joined.rows(100, 150) == one.rows(100, 150)
    assert joined.meta["digest"] != one.meta["digest"]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_after_a_random_history_runs_are_those_of_a_new_index_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    small_tiers(monkeypatch, 3, 8)
    draw, encoders = random.Random(seed), (Counting(), Several(fingerprint="several"), CountingTerms())
    left = {f"d{n}": f"fox w{n % 12}" for n in range(draw.randrange(1, 20))}
    index, count = Index.build(left.items(), tmp_path / "x"), len(left)

    def encode(each: Index) -> Index:
        for encoder in encoders:
            each.encode(encoder)
        return each

    encode(index)
    for step in draw.choices(["add", "delete", "replace", "encode", "merge"], k=12):
        some = draw.sample(sorted(left), min(len(left), draw.randrange(1, 6)))
        if step == "add":
            new = {f"d{n}": f"fox w{draw.randrange(12)}" for n in range(count, count + draw.randrange(1, 9))}
            index.add(new.items())
            count += len(new)
            left |= new
        elif step == "delete":
            index.delete(some)
            left = {doc_id: text for doc_id, text in left.items() if doc_id not in some}
        elif step == "replace":
            index.add([(doc_id, f"fox w{draw.randrange(12)} again") for doc_id in some], duplicates="replace")
            left = {doc_id: text for doc_id, text in left.items() if doc_id not in some}
            left |= {doc_id: index.doc(doc_id).text for doc_id in some}
        else:
            encode(index)
        if step == "merge":
            index.merge()
    encode(index)
    new_index = encode(Index.build(left.items(), tmp_path / "y"))
    topics = {f"q{n}": f"fox w{n} w{n + 3}" for n in range(8)}
    for of in (lambda one, k: one.dense(encoders[0], k=k), lambda one, k: one.dense(encoders[1], k=k), splade):
        for k in (3, 1000):
            assert answer(of(index, k)(topics)) == answer(of(new_index, k)(topics))
    index.check(deep=True)


def splade(index: Index, k: int) -> Any:
    return index.splade(CountingTerms(), k=k)

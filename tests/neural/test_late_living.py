"""Token vectors of an index that changes: new documents alone are encoded, with the centroids that are there."""

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from support.histories import answer, fresh, segment_files
from support.tiny_colbert import QUERIES, TEXT_WORDS

import fontes as ft
from fontes.core.errors import FontesError, ParameterError
from fontes.core.values import Doc
from fontes.neural.late import encode as late_encode
from fontes.neural.late.colbert import ColBERT
from fontes.neural.late.encode import encode_late
from fontes.neural.late.residual import Codec
from fontes.neural.late.store import stored_tokens
from fontes.neural.rerank.encoders import LateReranker

DRAW = random.Random(5)
DOCS = [(f"d{n * 37 % 90}", " ".join(DRAW.choices(TEXT_WORDS, k=DRAW.randrange(3, 14)))) for n in range(90)]
GONE = [doc_id for doc_id, _ in (*DOCS[10:25], DOCS[45], DOCS[89])]


PRECISIONS: list[str] = []
"""Those in which documents were encoded."""


@pytest.fixture(autouse=True)
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The documents that were encoded: each by itself, so that its vectors are the same whatever is beside it."""
    ids: list[str] = []
    batch = ColBERT.encode_documents

    def one_by_one(self: ColBERT, docs: Sequence[Doc]) -> tuple[np.ndarray, np.ndarray]:
        ids.extend(doc.id for doc in docs)
        PRECISIONS.append(self.precision)
        vectors = [batch(self, [doc])[0] for doc in docs]
        return np.concatenate([np.zeros((0, self.width), np.float32), *vectors]), np.cumsum([0, *map(len, vectors)])

    monkeypatch.setattr(ColBERT, "encode_documents", one_by_one)
    return ids


def lived(path: Path, model: ColBERT, *widths: int) -> ft.Index:
    """An index of three segments, of which the first was encoded before the others came; GONE are deleted."""
    index = ft.Index.build(DOCS[:40], path)
    for nbits in widths:
        encode_late(index, model, nbits=nbits)
    for part in (DOCS[40:60], DOCS[60:]):
        index.add(part)
        encode_late(index, model)
    index.delete(GONE)
    return index


@pytest.mark.parametrize("nbits", [16, 32])
@pytest.mark.slow
def test_exhaustive_runs_of_a_changed_index_are_those_of_a_new_one(tmp_path: Path, model: ColBERT, nbits: int) -> None:
    index, new = lived(tmp_path / "x", model, nbits), fresh(DOCS, GONE, tmp_path / "y")
    encode_late(new, model, nbits=nbits)
    expected = answer(new.late(model, algorithm="exhaustive", k=50)(QUERIES))
    assert len(expected["q1"][0]) == 50
    assert answer(index.late(model, algorithm="exhaustive", k=50)(QUERIES)) == expected
    index.merge()
    assert answer(index.late(model, algorithm="exhaustive", k=50)(QUERIES)) == expected
    assert segment_files(index, "vectors-") == segment_files(new, "vectors-")
    index.check()


def test_only_new_documents_are_encoded_with_the_same_centroids_and_bits(
    tmp_path: Path, model: ColBERT, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = ft.Index.build(DOCS[:40], tmp_path / "x")
    encode_late(index, model, nbits=4)
    recall = index.late(model).recall()
    index.add(DOCS[40:])
    with pytest.raises(ParameterError, match=r"for 40 of 90 documents; fontes.neural.encode_late\(index, colbert\), or"):
        index.late(model)(QUERIES)
    encoded.clear()
    monkeypatch.setattr(late_encode, "kmeans", None)
    facts = encode_late(index, model)
    assert encoded == [doc_id for doc_id, _ in DOCS[40:]]
    assert (facts["nbits"], facts["recall"]) == (4, recall)
    first, second = stored_tokens(index, model).parts
    for name in ("centroids", "cutoffs", "weights"):
        np.testing.assert_array_equal(getattr(first.codec, name), getattr(second.codec, name))
    vectors, bounds = stored_tokens(index, model).vectors(np.array([80, 3, 41]))
    for place, number in enumerate((80, 3, 41)):
        whole, _ = model.encode_documents([index.doc(DOCS[number][0])])
        near = np.sum(whole * vectors[bounds[place] : bounds[place + 1]], axis=1)
        assert len(near) == len(whole)
        assert near.min() > 0.8, "the cosine of each token's vector with what is kept of it"


def test_a_merge_keeps_what_compressing_all_with_the_same_centroids_gives(
    tmp_path: Path, model: ColBERT, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = lived(tmp_path / "x", model, 2)
    store, searches = stored_tokens(index, model), [index.late(model, algorithm=name) for name in ("centroids", "exhaustive")]
    before = [answer(search(QUERIES)) for search in searches]
    encoded.clear()
    index.merge()
    assert not encoded
    assert [answer(search(QUERIES)) for search in searches] == before
    monkeypatch.setattr(late_encode, "kmeans", lambda sample, count: store.codec.centroids)
    monkeypatch.setattr(Codec, "fitted", lambda *fit: store.codec)
    monkeypatch.setattr(late_encode, "_recall", lambda *what: store.meta["recall"])
    new = fresh(DOCS, GONE, tmp_path / "y")
    encode_late(new, model, nbits=2)
    assert segment_files(index, "late-") == segment_files(new, "late-")


@pytest.mark.parametrize("allowed", [None, 0.5, 0.05])
def test_the_candidates_of_several_segments_are_those_of_one(tmp_path: Path, model: ColBERT, allowed: float | None) -> None:
    index = lived(tmp_path / "x", model, 2)
    chosen = None if allowed is None else np.random.default_rng(3).random(len(index)) < allowed
    (query,) = model.encode_queries([QUERIES["q1"]])
    several = [stored_tokens(index, model).candidates(query, 1, 0.4, count, allowed=chosen) for count in (12, 40, 400)]
    index.merge()
    one = [stored_tokens(index, model).candidates(query, 1, 0.4, count, allowed=chosen) for count in (12, 40, 400)]
    for docs, expected in zip(several, one, strict=True):
        np.testing.assert_array_equal(docs, expected)
        assert chosen is None or chosen[docs].all()
    everything = len(index) if chosen is None else int(chosen.sum())
    assert [len(docs) for docs in one] == [min(3, everything), min(10, everything), everything]


@pytest.mark.slow
def test_centroids_are_fitted_again_where_that_is_asked_for(
    tmp_path: Path, model: ColBERT, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, new = lived(tmp_path / "x", model, 2), fresh(DOCS, GONE, tmp_path / "y")
    before = index.late(model).key()
    encode_late(new, model, nbits=2)
    encode_late(index, model, overwrite=True)
    np.testing.assert_array_equal(stored_tokens(index, model).codec.centroids, stored_tokens(new, model).codec.centroids)
    assert answer(index.late(model)(QUERIES)) == answer(new.late(model)(QUERIES))
    assert index.late(model).recall() == new.late(model).recall()
    assert index.late(model).key() != before


@pytest.mark.slow
def test_token_vectors_of_different_fits_are_refused_by_search_and_merge(tmp_path: Path, model: ColBERT) -> None:
    index = lived(tmp_path / "x", model, 2)
    other = ft.Index.build(DOCS[:40], tmp_path / "y")
    encode_late(other, model, nbits=2, centroids=4)
    (theirs,), ours = stored_tokens(other, model).parts, index.state.leaves[0].segment.folder
    shutil.rmtree(ours / theirs.folder.name)
    shutil.copytree(theirs.folder, ours / theirs.folder.name)
    again = ft.Index.open(index.path)
    with pytest.raises(ParameterError, match=r"centroids were fitted at different times; fit them again with encode_late"):
        again.late(model)(QUERIES)
    with pytest.raises(FontesError, match="cannot be merged: its token vectors have centroids of different fits"):
        again.merge()
    encode_late(again, model, overwrite=True)
    assert len(again.late(model)(QUERIES)["q1"])
    again.merge()
    again.check()


@pytest.mark.slow
def test_a_kill_between_two_segments_leaves_what_the_next_time_completes(
    tmp_path: Path, model: ColBERT, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = ft.Index.build(DOCS[:40], tmp_path / "x")
    index.add(DOCS[40:])
    commit, done = late_encode.commit, []

    def killed(*place: Any) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(commit(*place))

    with monkeypatch.context() as patched:
        patched.setattr(late_encode, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            encode_late(index, model)
    with pytest.raises(ParameterError, match="for 40 of 90 documents"):
        index.late(model)(QUERIES)
    encoded.clear()
    encode_late(index, model)
    assert not encoded, "the vectors of all documents are there, whole"
    new = fresh(DOCS, [], tmp_path / "y")
    encode_late(new, model)
    assert answer(index.late(model)(QUERIES)) == answer(new.late(model)(QUERIES))
    assert not list(index.path.glob("segment-*/vectors-*"))


def test_the_reranker_reads_token_vectors_of_all_segments(tmp_path: Path, model: ColBERT, encoded: list[str]) -> None:
    index, new = lived(tmp_path / "x", model, 32), fresh(DOCS, GONE, tmp_path / "y")
    encode_late(new, model, nbits=32)
    encoded.clear()
    rerank = LateReranker(model)
    topics = {topic: text for topic, text in QUERIES.items() if text}
    assert answer((index.bm25() >> rerank)(topics)) == answer((new.bm25() >> rerank)(topics))
    assert not encoded


def test_an_index_without_documents_left_finds_nothing(tmp_path: Path, model: ColBERT) -> None:
    index = lived(tmp_path / "x", model, 2)
    index.delete(index.ids.tolist())
    assert len(index.late(model)(QUERIES)["q1"]) == 0
    assert encode_late(index, model)["tokens"] == 0


@pytest.mark.slow
def test_new_documents_have_the_precision_of_the_others(tmp_path: Path, model: ColBERT) -> None:
    index = ft.Index.build(DOCS[:20], tmp_path / "x")
    encode_late(index, model.with_(precision="bfloat16"))
    with pytest.raises(
        ParameterError, match=r"vectors of this encoder in bfloat16; overwrite=True \(--overwrite\) makes them again"
    ):
        encode_late(index, model.with_(precision="float32"))
    index.add(DOCS[20:40])
    for precision, used in (("auto", "bfloat16"), ("float32", "float32")):
        PRECISIONS.clear()
        facts = encode_late(index, model.with_(precision=precision), overwrite=precision != "auto")
        assert set(PRECISIONS) == {used}
        assert facts["precision"] == used
        assert {part.meta["precision"] for part in stored_tokens(index, model).parts} == {used}


@pytest.mark.slow
def test_the_commands_add_documents_encode_these_and_merge(fontes: Any, tmp_path: Path, model: ColBERT) -> None:
    corpus, path = tmp_path / "corpus.jsonl", tmp_path / "x"
    for first, last in ((0, 40), (40, 90)):
        corpus.write_text("".join(json.dumps({"_id": one, "text": text}) + "\n" for one, text in DOCS[first:last]))
        assert fontes(*(("add", path, corpus) if first else ("index", corpus, "-o", path)))[0] == 0
        if first:
            status, _, error = fontes("search", path, "old well", "--pipeline", f"late('{model.name_or_path}')")
            assert (status, "for 40 of 90 documents" in error, "fontes encode" in error) == (1, True, True)
        status, out, _ = fontes("encode", path, str(model.name_or_path), "--late", *([] if first else ["--nbits", "4"]))
        assert (status, "4 bits" in out) == (0, True)
    assert fontes("merge", path)[0] == 0
    status, out, _ = fontes("search", path, "old well", "--pipeline", f"late('{model.name_or_path}')", "--json")
    assert status == 0
    assert len(json.loads(out.splitlines()[0])) > 0
    assert fontes("check", path)[0] == 0

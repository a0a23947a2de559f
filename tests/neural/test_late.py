"""Late interaction over an index: what is stored, what is found, what survives a kill."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from support.tiny_colbert import QUERIES, documents, plain_scores

import fontes as ft
from fontes.core.errors import FontesError, IndexFormatError, ParameterError
from fontes.neural.late import encode as late_encode, store as late_store
from fontes.neural.late.colbert import ColBERT
from fontes.neural.late.encode import encode_late
from fontes.neural.late.store import TOKENS, TokenVectors, scores_of, stored_tokens
from fontes.storage.artifact import drafting


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, model: ColBERT) -> Path:
    """An index with compressed and with whole token vectors."""
    path = tmp_path_factory.mktemp("indexes") / "index"
    index = ft.Index.build(documents(), path)
    for nbits in (32, 2):
        encode_late(index, model, nbits=nbits)
    return path


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Iterator[ft.Index]:
    shutil.copytree(built, tmp_path / "index")
    return ft.Index.open(tmp_path / "index")


def test_the_exhaustive_search_over_whole_vectors_is_maxsim_of_all_documents(index: ft.Index, model: ColBERT) -> None:
    run = index.late(model, algorithm="exhaustive", nbits=32)(QUERIES)
    for topic in ("q1", "q2"):
        expected = plain_scores(index, model, QUERIES[topic])
        assert {hit.id: hit.score for hit in run[topic]} == pytest.approx(expected, abs=1e-5)
        assert [hit.id for hit in run[topic]] == sorted(expected, key=lambda d: (np.float32(expected[d]), d), reverse=True)


def test_a_topic_without_text_finds_nothing(index: ft.Index, model: ColBERT) -> None:
    assert len(index.late(model)(QUERIES)["q3"]) == 0
    assert len(index.late(model)({"q": " "})) == 1


@pytest.mark.parametrize("algorithm", ["centroids", "exhaustive"])
def test_threads_and_other_topics_do_not_change_the_run(
    index: ft.Index, model: ColBERT, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = index.late(model, algorithm=algorithm, k=7, threads=1)(QUERIES)
    monkeypatch.setattr(late_store, "SCORED_TOKENS", 40)
    several = index.late(model, algorithm=algorithm, k=7, threads=3)
    assert several(QUERIES) == one
    assert several({"q2": QUERIES["q2"]})["q2"].scores.tolist() == one["q2"].scores.tolist()


def test_a_search_that_looks_everywhere_finds_what_the_exhaustive_one_finds(index: ft.Index, model: ColBERT) -> None:
    assert len(index) == 60
    for nbits, numbers in ((2, [4 * 60]), (32, [4 * 59, 4 * 60])):  # all; of whole vectors also all but one
        exhaustive = index.late(model, k=10, nbits=nbits, algorithm="exhaustive")(QUERIES)
        for candidates in numbers:
            late = index.late(model, k=10, nbits=nbits, nprobe=1000, threshold=-1.0, candidates=candidates)
            assert late(QUERIES) == exhaustive


def test_a_search_that_looks_at_little_finds_some_documents_with_their_exact_scores(index: ft.Index, model: ColBERT) -> None:
    exhaustive = index.late(model, nbits=2, algorithm="exhaustive")(QUERIES).to_dict()
    late = index.late(model, nbits=2, nprobe=1, candidates=40)
    for topic, scores in late(QUERIES).to_dict().items():
        assert len(scores) == (10 if QUERIES[topic] else 0), "a quarter of the candidates"
        assert scores == {doc_id: exhaustive[topic][doc_id] for doc_id in scores}
        best = list(exhaustive[topic])[:5]
        assert len(set(best) & set(scores)) >= 3 or not best
    assert late.with_(candidates=400)(QUERIES).to_dict() == exhaustive


def test_candidates_are_the_documents_of_the_probed_centroids(index: ft.Index, model: ColBERT) -> None:
    store, (query,) = stored_tokens(index, model, 2), model.encode_queries([QUERIES["q1"]])
    similarities = query @ store.codec.centroids.T
    probed = set(np.argsort(-similarities, axis=1)[:, :2].ravel().tolist())
    of_document = [store.parts[0].codes[a:b] for a, b in zip(store.bounds, store.bounds[1:], strict=False)]
    there = [d for d, codes in enumerate(of_document) if probed & set(codes.tolist())]
    near = similarities[:, :].max(axis=0) >= 0.5

    def score(doc: int, pruned: bool) -> float:
        codes = np.unique([code for code in of_document[doc] if near[code] or not pruned]).astype(int)
        return float(similarities[:, codes].max(axis=1).sum()) if len(codes) else -float(len(query))

    first = sorted(there, key=lambda d: (-score(d, True), d))[:40]
    second = sorted(first, key=lambda d: (-score(d, False), d))[:10]
    found = store.candidates(query, 2, 0.5, 40)
    assert {round(score(d, False), 4) for d in found.tolist()} == {round(score(d, False), 4) for d in second}


def test_the_compressed_vectors_are_near_the_whole_ones(index: ft.Index, model: ColBERT) -> None:
    docs = np.arange(len(index))
    whole, _ = stored_tokens(index, model, 32).vectors(docs)
    compressed, _ = stored_tokens(index, model, 2).vectors(docs)
    assert np.sum(whole * compressed, axis=1).mean() > 0.9


def test_those_with_most_bits_are_searched_unless_others_are_named(index: ft.Index, model: ColBERT) -> None:
    assert stored_tokens(index, model).nbits == 32
    assert index.late(model)(QUERIES).provenance["nbits"] == 32
    assert index.late(model, nbits=2)(QUERIES).provenance["nbits"] == 2


def test_whole_vectors_are_removed_once_they_are_compressed(index: ft.Index, model: ColBERT, tmp_path: Path) -> None:
    fresh = ft.Index.build(documents(), tmp_path / "fresh")
    encode_late(fresh, model, nbits=1)
    assert not list((tmp_path / "fresh").glob("segment-*/vectors-*"))
    size = stored_tokens(fresh, model).info()["bytes"]
    assert size < stored_tokens(index, model, 32).info()["bytes"] / 2


def test_whole_half_precision_vectors_serve_for_others_and_stay(model: ColBERT, tmp_path: Path) -> None:
    index = ft.Index.build(documents(), tmp_path / "index")
    encode_late(index, model, nbits=16)
    seen: list[Any] = []
    encode_late(index, model, nbits=2, progress=seen.append)
    assert not seen, "nothing was encoded again"
    assert stored_tokens(index, model, 16).vectors(np.arange(3))[0].dtype == np.float32
    assert {store.nbits for store in (stored_tokens(index, model), stored_tokens(index, model, 2))} == {16, 2}


def test_other_bits_of_the_same_vectors_have_the_same_centroids(
    index: ft.Index, model: ColBERT, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_encode, "kmeans", None)
    encode_late(index, model, nbits=1)
    one, two = stored_tokens(index, model, 1), stored_tokens(index, model, 2)
    np.testing.assert_array_equal(one.codec.centroids, two.codec.centroids)
    np.testing.assert_array_equal(one.parts[0].codes, two.parts[0].codes)


def test_the_recall_is_the_share_of_the_exhaustive_search_that_is_found(
    index: ft.Index, model: ColBERT, tmp_path: Path
) -> None:
    fresh = ft.Index.build(documents(), tmp_path / "fresh")
    topics = {"q1": QUERIES["q1"], "q2": QUERIES["q2"]}
    recall = encode_late(fresh, model, nbits=1, topics=topics)["recall"]
    exact = index.late(model, algorithm="exhaustive", nbits=32, k=10)(topics)
    found = fresh.late(model, k=10)(topics)
    shares = [len(set(found[t].ids) & set(exact[t].ids)) / 10 for t in topics]
    assert recall["10"] == pytest.approx(sum(shares) / 2, abs=0.051), "float16 may swap two documents"
    assert recall["queries"] == 2
    assert fresh.late(model).recall() == recall


def test_the_explanation_adds_up_to_the_score_in_the_run(index: ft.Index, model: ColBERT) -> None:
    for nbits in (2, 32):
        late = index.late(model, nbits=nbits)
        hit = late.search("old well", k=1)[0]
        explanation = late.explain("old well", hit.id)
        assert np.float32(explanation.value) == np.float32(hit.score)
        assert np.float32(sum(part.value for part in explanation.parts)) == np.float32(hit.score)
        assert len(explanation.parts) == 8, "one for each token, those that fill the query up too"
        assert explanation.parts[2].label.startswith("'old' is nearest to '")


def test_a_cut_gives_the_first_of_the_whole_run(index: ft.Index, model: ColBERT) -> None:
    for algorithm in ("centroids", "exhaustive"):
        late = index.late(model, algorithm=algorithm)
        assert (late % 5)(QUERIES) == late(QUERIES).top(5)


def test_an_encoding_that_was_killed_goes_on_where_it_was(
    model: ColBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fontes.index.embeddings.journal.BLOCK_DOCUMENTS", 16)
    index = ft.Index.build(documents(), tmp_path / "index")
    whole = ColBERT.encode_documents
    encoded: list[int] = []

    def killed_in_the_third_block(self: ColBERT, docs: Any) -> Any:
        if len(encoded) == 2:
            raise KeyboardInterrupt
        encoded.append(len(docs))
        return whole(self, docs)

    monkeypatch.setattr(ColBERT, "encode_documents", killed_in_the_third_block)
    with pytest.raises(KeyboardInterrupt):
        encode_late(index, model)
    with pytest.raises(ParameterError, match="holds no token vectors"):
        index.late(model)(QUERIES)
    again: list[int] = []
    monkeypatch.setattr(ColBERT, "encode_documents", lambda self, docs: (again.append(len(docs)), whole(self, docs))[1])
    encode_late(index, model)
    assert (sum(encoded), sum(again)) == (32, 28)
    fresh = ft.Index.build(documents(), tmp_path / "fresh")
    encode_late(fresh, model)
    assert fresh.late(model)(QUERIES) == index.late(model)(QUERIES)


def test_a_kill_while_vectors_are_compressed_leaves_nothing_half_done(
    model: ColBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = ft.Index.build(documents(), tmp_path / "index")

    def killed(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(late_encode, "write_lists", killed)
        with pytest.raises(KeyboardInterrupt):
            encode_late(index, model)
    with pytest.raises(ParameterError, match="holds no token vectors"):
        index.late(model)(QUERIES)
    seen: list[Any] = []
    encode_late(index, model, progress=seen.append)
    assert not seen, "the documents are encoded already"
    assert len(index.late(model)(QUERIES)["q1"])


def test_existing_vectors_are_kept_unless_overwrite_is_asked_for(index: ft.Index, model: ColBERT) -> None:
    folder = stored_tokens(index, model, 2).parts[0].folder
    before = (folder / "artifact.json").stat().st_ino
    encode_late(index, model, nbits=2)
    assert (folder / "artifact.json").stat().st_ino == before
    encode_late(index, model, nbits=2, centroids=8, overwrite=True)
    assert TokenVectors(folder).meta["centroids"] == 8
    assert stored_tokens(index, model, 2).meta["centroids"] == 8


def test_damaged_files_are_errors_that_say_what_to_do(index: ft.Index, model: ColBERT) -> None:
    folder = stored_tokens(index, model, 2).parts[0].folder
    sound = TokenVectors(folder)
    sound.check()
    codes = (folder / "codes.npy").read_bytes()
    (folder / "codes.npy").write_bytes(codes[:-1] + bytes([codes[-1] ^ 1]))
    with pytest.raises(IndexFormatError, match=r"codes.npy has changed; make it again with overwrite=True"):
        sound.check()
    (folder / "codes.npy").write_bytes(codes[:-5])
    with pytest.raises(IndexFormatError, match=r"codes.npy has \d+ bytes instead of \d+; make it again"):
        TokenVectors(folder)
    meta = json.loads((folder / "artifact.json").read_text())
    (folder / "artifact.json").write_text(json.dumps({**meta, "tokens": 1}))
    with pytest.raises(IndexFormatError, match=r"artifact.json is damaged"):
        TokenVectors(folder)


def test_two_processes_do_not_encode_the_same_at_once(index: ft.Index, model: ColBERT) -> None:
    name = TOKENS.name_of(model.fingerprint, 4)
    busy = FontesError("the draft is in use")
    with (
        drafting(index.state.leaves[0].segment.folder / name, busy),
        pytest.raises(FontesError, match="being encoded by another process"),
    ):
        encode_late(index, model, nbits=4)


def test_an_index_that_is_built_anew_has_no_old_token_vectors(index: ft.Index, model: ColBERT) -> None:
    again = ft.Index.build(documents(10), index.path, overwrite=True, drop_vectors=True)
    with pytest.raises(ParameterError, match="holds no token vectors"):
        again.late(model)(QUERIES)


def test_an_index_of_one_document_and_one_without_any_can_be_encoded(model: ColBERT, tmp_path: Path) -> None:
    for count in (0, 1):
        index = ft.Index.build(documents(count), tmp_path / str(count))
        encode_late(index, model, nbits=2)
        assert len(index.late(model)(QUERIES)["q1"]) == count


def test_scores_of_some_documents_are_those_of_the_run(index: ft.Index, model: ColBERT) -> None:
    store = stored_tokens(index, model, 2)
    (query,) = model.encode_queries([QUERIES["q1"]])
    run = index.late(model, nbits=2, algorithm="exhaustive")({"q1": QUERIES["q1"]})
    docs = np.array([5, 7, 30])
    expected = {hit.id: hit.score for hit in run["q1"]}
    assert scores_of(store, [query], docs)[0].tolist() == [expected[index.ids[int(d)]] for d in docs]


def test_checking_an_index_reads_its_token_vectors(index: ft.Index, model: ColBERT) -> None:
    index.check()
    codes = stored_tokens(index, model, 2).parts[0].folder / "codes.npy"
    found = bytearray(codes.read_bytes())
    found[-1] ^= 1
    codes.write_bytes(found)
    with pytest.raises(IndexFormatError, match=r"codes.npy has changed"):
        index.check()

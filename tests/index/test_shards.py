"""Indexes of several shards: what they hold, what they find, and what is left where a shard cannot be read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.each import each
from support.hashed_encoder import Hashed
from support.histories import COLUMNS, MODELS, OF_WEIGHTS, TOPICS, answer, some_docs
from support.small import small_chunks, small_tiers

from fontes.cluster.shards import PartOfIndex
from fontes.core import Doc, FontesError, IndexFormatError
from fontes.core.run import Run
from fontes.formats import write_run
from fontes.index import Index

DOCS = [Doc(f"d{n:02}", f"w{n % 7} w{n % 5} w{n % 3}", metadata={"year": 2000 + n}) for n in range(20)]


def built(docs: Any, path: Path, **parameters: Any) -> Index:
    return Index.build(docs, path, analyzer="whitespace", threads=1, **parameters)


def of_shards(index: Index) -> list[list[str]]:
    """The ids of each shard's documents."""
    shards: list[list[str]] = [[] for _ in range(index.info()["shards"])]
    entries = {entry["name"]: entry["shard"] for entry in index.state.manifest["segments"]}
    for leaf in index.state.leaves:
        shards[entries[leaf.segment.folder.name]] += [leaf.segment.ids[int(place)] for place in leaf.live]
    return shards


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_shards_are_documents_in_a_row_as_many_in_each(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=3)
    assert of_shards(index) == [[doc.id for doc in DOCS[a:b]] for a, b in ((0, 6), (6, 13), (13, 20))]
    assert index.info()["shards"] == 3
    assert index.info()["segments"] == 3
    index.check(deep=True)


def test_each_shard_has_the_bytes_of_a_build_of_its_documents(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=3, columns={"year": "integer"})
    for (first, last), leaf in zip(((0, 6), (6, 13), (13, 20)), index.state.leaves, strict=True):
        (alone,) = built(DOCS[first:last], tmp_path / f"{first}", columns={"year": "integer"}).state.leaves
        assert files(leaf.segment.folder) == files(alone.segment.folder)


def test_an_id_that_two_shards_would_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FontesError, match="d00"):
        built([*DOCS, DOCS[0]], tmp_path / "x", shards=4)
    assert not (tmp_path / "x").exists()


def test_one_shard_is_no_shard(tmp_path: Path) -> None:
    assert "shards" not in built(DOCS, tmp_path / "x", shards=True).info()


def test_there_may_be_more_shards_than_documents(tmp_path: Path) -> None:
    index = built(DOCS[:2], tmp_path / "x", shards=5)
    assert sorted(map(len, of_shards(index))) == [0, 0, 0, 1, 1]
    index.add(DOCS[2:4])
    assert list(index.bm25().search("w0 w3", 9).ids) == list(built(DOCS[:4], tmp_path / "y").bm25().search("w0 w3", 9).ids)
    built([], tmp_path / "empty", shards=2).add(DOCS)


def test_documents_are_added_to_the_smallest_shard_and_deleted_where_they_are(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=3)
    index.add([Doc("new1", "w1"), Doc("new2", "w2")])
    assert list(map(len, of_shards(index))) == [8, 7, 7]
    index.delete(["d14", "new2"])
    assert of_shards(index)[0][-1] == "new1"
    assert list(map(len, of_shards(index))) == [7, 7, 6]
    index.add([Doc("d00", "w9")], duplicates="replace")
    assert of_shards(index)[2][-1] == "d00"
    assert "d00" not in of_shards(index)[0]


def test_merges_stay_within_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiers(monkeypatch, 3)
    index = built(DOCS, tmp_path / "x", shards=2)
    for n in range(12):
        index.add([Doc(f"new{n}", "w1")])
    counts = [entry["shard"] for entry in index.state.manifest["segments"]]
    assert counts == sorted(counts)
    assert max(counts.count(shard) for shard in (0, 1)) < 3
    before = [set(ids) for ids in of_shards(index)]
    change = index.merge()
    assert change.segments == 2
    assert [set(ids) for ids in of_shards(index)] == before
    index.check(deep=True)
    assert index.merge().segments == 2


def test_the_files_of_a_merged_shard_are_those_of_a_build(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=2)
    index.delete(["d03", "d15"])
    index.merge()
    (alone,) = built([doc for doc in DOCS[:10] if doc.id != "d03"], tmp_path / "y").state.leaves
    assert files(index.state.leaves[0].segment.folder) == files(alone.segment.folder)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**20), shards=st.integers(2, 6), weights=st.booleans(), data=st.data())
def test_every_history_of_shards_finds_what_one_index_finds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shards: int, weights: bool, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    docs = some_docs(seed, [f"{n * 7919 % 1009}é" for n in range(60)])
    parameters: dict[str, Any] = {"vectors": "vector" if weights else None, "columns": COLUMNS}
    index, left = built(docs[:45], folder / "x", shards=shards, **parameters), {doc.id: doc for doc in docs[:45]}
    for _ in range(data.draw(st.integers(1, 4))):
        what = data.draw(st.sampled_from(["add", "delete", "replace", "merge"]))
        if what == "add" and (new := [doc for doc in docs if doc.id not in left][: data.draw(st.integers(1, 9))]):
            index.add(new)
            left |= {doc.id: doc for doc in new}
        elif what == "delete" and left:
            gone = data.draw(st.lists(st.sampled_from(sorted(left)), unique=True, max_size=30))
            index.delete(gone)
            left = {doc_id: doc for doc_id, doc in left.items() if doc_id not in gone}
        elif what == "replace" and left:
            new = some_docs(seed + 1, data.draw(st.lists(st.sampled_from(sorted(left)), unique=True, max_size=5)))
            index.add(new, duplicates="replace")
            left |= {doc.id: doc for doc in new}
        elif what == "merge":
            index.merge()
    one = built(list(left.values()), folder / "one", **parameters)
    index.check(deep=True)
    for name, model in (OF_WEIGHTS if weights else MODELS).items():
        assert answer(model(index)(TOPICS)) == answer(model(one)(TOPICS)), name


@pytest.mark.parametrize("weights", [False, True])
def test_a_part_gives_its_documents_the_scores_of_the_whole(
    tmp_path: Path, weights: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_chunks(monkeypatch, 50)  # so that norms are summed in several pieces
    docs = some_docs(7, [f"{n * 7919 % 1009}é" for n in range(120)])
    parameters: dict[str, Any] = {"vectors": "vector" if weights else None, "columns": COLUMNS}
    one, index = (built(docs, tmp_path / f"{n}", shards=n, **parameters) for n in (1, 4))
    for opened in (one, index):
        opened.delete([doc.id for doc in docs[::7]])
    for name, model in (OF_WEIGHTS if weights else MODELS).items():
        if name == "rm3":  # which is of two searches
            continue
        scores: dict[str, dict[str, float]] = {topic: {} for topic in TOPICS}
        for group in ([0], [1, 3], [2]):
            run = model(index).with_(index=PartOfIndex(index.state, group))(TOPICS)
            for topic, ranking in run.items():
                scores[topic] |= dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
        assert Run.of(scores, TOPICS) == model(one)(TOPICS), name


def test_vectors_of_shards_find_what_those_of_one_index_find(tmp_path: Path) -> None:
    encoder = Hashed()
    one, index = (built(DOCS, tmp_path / f"{n}", shards=n) for n in (1, 3))
    for opened in (one, index):
        opened.encode(encoder)
    assert answer(index.dense(encoder)(TOPICS)) == answer(one.dense(encoder)(TOPICS))
    index.merge()
    assert answer(index.dense(encoder)(TOPICS)) == answer(one.dense(encoder)(TOPICS))


def test_documents_filters_facets_and_explanations_are_those_of_one_index(tmp_path: Path) -> None:
    one, index = (built(DOCS, tmp_path / f"{n}", shards=n) for n in (1, 3))
    assert index.docs(["d19", "d00"]) == one.docs(["d19", "d00"])
    assert index.facets("year") == one.facets("year")
    for opened in (one, index):
        opened.delete("d07")
    assert index.bm25().explain("w1 w2", "d08").value == one.bm25().explain("w1 w2", "d08").value
    ranking = index.bm25(where="year > 2010").search("w1 w2")
    assert list(ranking.ids) == list(one.bm25(where="year > 2010").search("w1 w2").ids)
    assert ranking.facets("year") == one.bm25(where="year > 2010").search("w1 w2").facets("year")


@pytest.mark.parametrize("collection", ["scifact", "ctkfacts_cs"])
def test_shards_of_real_collections_write_the_run_of_one_index(shared: Path, tmp_path: Path, collection: str) -> None:
    from fontes import Topics

    corpus, analyzer = shared / collection / "corpus.jsonl", "czech+chars:4-4" if collection == "ctkfacts_cs" else "english"
    if not corpus.exists():
        pytest.skip(f"{corpus} is not there")
    docs = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()[:200]]
    one, index = (Index.build(docs, tmp_path / f"{n}", shards=n, analyzer=analyzer) for n in (1, 3))
    topics = list(Topics.read(str(shared / collection / "queries.jsonl")).values())[:60]
    for name in ("bm25", "tfidf", "ql"):
        for opened in (one, index):
            write_run(getattr(opened, name)(k=100)(topics), tmp_path / f"{opened.name}.run")
        assert (tmp_path / "1.run").read_bytes() == (tmp_path / "3.run").read_bytes()


def damaged(tmp_path: Path, shard: int, how: str) -> tuple[Path, Index]:
    """An index of three shards of which one is damaged, and one of the documents of the others."""
    index = built(DOCS, tmp_path / "x", shards=3)
    folder = index.state.leaves[shard].segment.folder
    if how == "removed":
        shutil.rmtree(folder)
    elif how == "cut off":
        (folder / "postings.npy").write_bytes((folder / "postings.npy").read_bytes()[:-1])
    else:
        content = bytearray((folder / "df.npy").read_bytes())
        content[-1] ^= 0xFF
        (folder / "df.npy").write_bytes(content)
    ids = of_shards(index)[shard]
    return tmp_path / "x", built([doc for doc in DOCS if doc.id not in ids], tmp_path / "rest")


@pytest.mark.parametrize("how", ["removed", "cut off", "changed"])
def test_a_shard_that_cannot_be_read_is_named(tmp_path: Path, how: str) -> None:
    path, _ = damaged(tmp_path, 1, how)
    with pytest.raises(IndexFormatError, match="shard 1 of 3"):
        Index.open(path)


@pytest.mark.parametrize("how", ["removed", "cut off", "changed"])
def test_a_partial_index_names_the_missing_shards(tmp_path: Path, how: str) -> None:
    path, rest = damaged(tmp_path, 1, how)
    index = Index.open(path, partial=True)
    assert len(index) == 13
    assert index.info()["shards"] == 3
    (missing,) = index.info()["missing"]
    assert (missing["shard"], missing["documents"]) == (1, 7)
    assert index.state.leaves[0].segment.folder.parent == path
    run = index.bm25()(TOPICS)
    assert answer(run) == answer(rest.bm25()(TOPICS))
    assert run.provenance["missing"] == [missing]
    with pytest.raises(IndexFormatError, match="shard 1 of 3"):
        index.add([Doc("new", "w1")])
    with pytest.raises(IndexFormatError, match="shard 1 of 3"):
        index.check()
    assert not index.refresh()


def test_documents_that_were_deleted_from_a_missing_shard_are_not_missing(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=3)
    index.delete([doc.id for doc in DOCS[7:9]])
    (segment,) = [one for one in index.state.manifest["segments"] if one["shard"] == 1]
    assert segment["deleted"]["documents"] == 2
    (tmp_path / "x" / segment["name"] / "df.npy").unlink()
    partial = Index.open(tmp_path / "x", partial=True)
    assert [(one["shard"], one["documents"]) for one in partial.info()["missing"]] == [(1, segment["documents"] - 2)]
    assert len(partial) + segment["documents"] - 2 == len(index)


def test_a_partial_index_is_whole_again_when_its_shard_is_back(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=3)
    folder = index.state.leaves[2].segment.folder
    folder.rename(tmp_path / "away")
    partial = Index.open(tmp_path / "x", partial=True)
    assert len(partial) == 13
    (tmp_path / "away").rename(folder)
    assert partial.refresh()
    assert len(partial) == 20
    assert "missing" not in partial.info()
    assert partial.fingerprint == index.fingerprint
    partial.add([Doc("new", "w1")])


def test_what_only_reading_shows_is_left_out_where_every_file_is_read(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x", shards=3)
    file = index.state.leaves[0].segment.folder / "text.bytes.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    with pytest.raises(IndexFormatError, match="shard 0 of 3"):
        Index.open(tmp_path / "x", verify=True)
    assert [shard["shard"] for shard in Index.open(tmp_path / "x", verify=True, partial=True).info()["missing"]] == [0]


def test_no_readable_shard_is_an_error_even_if_shards_may_be_missing(tmp_path: Path) -> None:
    index = built(DOCS, tmp_path / "x")
    shutil.rmtree(index.state.leaves[0].segment.folder)
    with pytest.raises(IndexFormatError, match="is missing"):
        Index.open(tmp_path / "x", partial=True)


@each("shard", [-1, 2, None, "0", 1.0])
def test_a_segment_of_a_shard_that_there_is_not_is_damage(tmp_path: Path, shard: Any) -> None:
    from fontes.index import files as on_disk

    index = built(DOCS, tmp_path / "x", shards=2)
    segments = [{**entry} for entry in index.state.manifest["segments"]]
    segments[0]["shard"] = shard
    on_disk.write_manifest(tmp_path / "x", on_disk.with_segments(index.state.manifest, segments))
    with pytest.raises(IndexFormatError, match="damaged"):
        Index.open(tmp_path / "x")


def test_the_command_line_makes_shards_and_says_what_is_missing(tmp_path: Path, fontes: Any) -> None:
    lines = "\n".join(json.dumps({"_id": doc.id, "text": doc.text}) for doc in DOCS)
    (tmp_path / "c.jsonl").write_text(lines, encoding="utf-8")
    path = tmp_path / "x"
    assert fontes("index", tmp_path / "c.jsonl", "-o", path, "--shards", 4)[0] == 0
    assert json.loads(fontes("info", path, "--json")[1])["shards"] == 4
    shutil.rmtree(Index.open(path).state.leaves[3].segment.folder)
    code, _, errors = fontes("search", path, "w1")
    assert code == 1
    assert "shard 3 of 4" in errors
    code, output, errors = fontes("search", path, "w1", "--partial", "--json")
    assert code == 0
    assert "d01" in output
    assert "shard 3 with 5 documents is missing" in errors
    code, output, _ = fontes("info", path, "--partial")
    assert code == 0
    assert "missing" in output

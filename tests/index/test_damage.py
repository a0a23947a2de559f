"""Indexes that are damaged where no size tells: an error at opening, or a sum that `check` and `verify` compare."""

import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.counting_encoder import Counting, Several
from support.counting_terms import CountingTerms
from support.damage import forge, put
from support.forged import forged_manifest

from fontes.core import IndexFormatError, InputError
from fontes.index import Index, texts as documents
from fontes.index.files import read_manifest
from fontes.storage.compiled import load

DOCS = [(f"d{n:02}", f"fox {'dog ' * (n % 4)} w{n % 11} é{n}") for n in range(60)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, of one of which documents are deleted, with vectors and weights."""
    path = tmp_path_factory.mktemp("sound") / "x.index"
    index = Index.build(DOCS[:40], path)
    index.add(DOCS[40:])
    index.delete(["d03", "d05"])
    index.encode(Several(), dtype="int8")
    index.encode(CountingTerms())
    return path


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "x.index"))


def changed(path: Path, name: str, change: Callable[[np.ndarray], object], forged: bool = False) -> Path:
    """Changes an array of an index, of several of this name the first one, in place."""
    file = sorted(path.rglob(f"{name}.npy"))[0]
    array = np.load(file)
    change(array)
    np.save(file, array)
    if forged:
        forge(path, file)
    return file


def swap(array: np.ndarray) -> None:
    """Two different numbers in each other's place."""
    other = int(np.flatnonzero(array != array[0])[0])
    array[[0, other]] = array[[other, 0]]


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("doc_ids.bounds", put(3, 200)),
        ("doc_ids.bounds", put(-1, 90)),
        ("doc_ids.order", put(3, 41)),
        ("doc_ids.order", put(3, 0)),
        ("doc_lengths", put(3, 200)),
        ("terms.bounds", put(2, 250)),
        ("terms.bytes", put(-1, 0xFF)),
        ("df", put(0, 41)),
        ("df", put(0, 0)),
        ("cf", put(0, 77)),
        ("postings", put(0, 0)),
        ("postings", put(24, 200)),
        ("text.blocks", put((0, 0), 5)),
        ("text.blocks", put((1, 1), 2**62)),
        ("deleted-*/dead", put(0, 1)),
        ("deleted-*/terms", put(0, 255)),
        ("deleted-*/df", put(0, 3)),
        ("deleted-*/cf", put(0, 9)),
    ],
)
def test_numbers_that_cannot_be_are_damage_of_their_file_at_opening(copy: Path, name: str, change: Any, forged: bool) -> None:
    file = changed(copy, f"segment-*/{name}", change, forged)
    with pytest.raises(IndexFormatError, match=r"damaged") as error:
        Index.open(copy)
    assert file.name.partition(".")[0] in str(error.value)
    assert str(file.parent) in str(error.value)


@pytest.mark.parametrize("name", ["vectors-*/bounds", "vectors-*/vectors", "vectors-*/norms", "vectors-*/scales"])
def test_vector_files_that_do_not_fit_together_are_damage(copy: Path, name: str) -> None:
    file = sorted(copy.glob(f"segment-*/{name}.npy"))[0]
    array = np.load(file)
    np.save(file, array[: len(array) // 2])
    forge(copy, file)
    with pytest.raises(IndexFormatError, match=r"\.npy is (missing or )?damaged"):
        Index.open(copy).dense(Several()).search("d1")


def test_vectors_of_another_index_in_the_folder_of_a_segment_are_damage(copy: Path, tmp_path: Path) -> None:
    other = Index.build(DOCS[:7], tmp_path / "other.index")
    other.encode(Counting(fingerprint="other"))
    (folder,) = (tmp_path / "other.index").glob("segment-*/vectors-*")
    for segment in copy.glob("segment-*"):
        shutil.copytree(folder, segment / folder.name)
    with pytest.raises(IndexFormatError, match=r"of 7 documents, not (40|20)"):
        Index.open(copy).dense(Counting(fingerprint="other")).search("d1")


@pytest.mark.parametrize(
    "change",
    [
        lambda segment: segment.update(name="segment-../other"),
        lambda segment: segment.update(terms=-1),
        lambda segment: segment["deleted"].update(name="../deleted-0123456789abcdef"),
        lambda segment: segment["deleted"].update(files={"dead.npy": {}}),
        lambda segment: segment["deleted"].update(tokens=-1),
        lambda segment: segment["deleted"].update(documents=segment["documents"] + 1),
    ],
    ids=["name", "counts", "name of deletions", "files of deletions", "counts of deletions", "more deleted than there are"],
)
def test_entries_of_segments_that_cannot_be_are_damage_of_the_manifest(copy: Path, change: Callable[[Any], object]) -> None:
    (number,) = (n for n, entry in enumerate(read_manifest(copy)["segments"]) if entry["deleted"])
    forged_manifest(copy, lambda manifest: change(manifest["segments"][number]))
    with pytest.raises(IndexFormatError, match=r"manifest\.json is damaged"):
        Index.open(copy)


@pytest.mark.parametrize("name", ["doc_lengths", "cf", "deleted-*/dead", "vectors-*/norms", "vectors-*/vectors", "sparse-*/cf"])
def test_values_that_changed_are_found_by_their_sums_before_they_are_believed(copy: Path, name: str) -> None:
    changed(copy, f"segment-*/{name}", lambda array: swap(array.reshape(-1)))
    Index.open(copy)
    with pytest.raises(IndexFormatError, match=r"\.npy has changed"):
        Index.open(copy, verify=True)
    with pytest.raises(IndexFormatError, match=r"\.npy has changed"):
        Index.open(copy).check()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("doc_lengths", swap),
        ("cf", swap),
        ("terms.bytes", swap),
        ("doc_ids.bytes", put(4, ord("9"))),
        ("deleted-*/dead", swap),
        ("vectors-*/norms", swap),
        ("sparse-*/cf", swap),
    ],
)
def test_a_deep_check_finds_parts_that_do_not_fit_each_other(copy: Path, name: str, change: Any) -> None:
    Index.open(copy).check(deep=True)
    changed(copy, f"segment-*/{name}", change, forged=True)
    index = Index.open(copy, verify=True)
    index.check()
    with pytest.raises(IndexFormatError, match=r"damaged"):
        index.check(deep=True)


def test_deletions_that_do_not_fit_the_postings_never_write_beside_them(copy: Path) -> None:
    """Others are deleted than were counted; the lists of postings would be longer than what was reserved for them."""
    changed(
        copy, "segment-*/deleted-*/dead", lambda dead: (dead.__setitem__(slice(None), False), dead.__setitem__([0, 1], True))
    )
    with pytest.raises(IndexFormatError, match="deletions do not fit the postings"):
        Index.open(copy).postings(np.arange(3))
    load()
    for model in ("bm25", "tfidf"):
        assert len(getattr(Index.open(copy), model)().search("fox dog w3", 1000)) <= len(Index.open(copy))
    with pytest.raises(IndexFormatError, match=r"has changed|do not fit"):
        Index.open(copy).check(deep=True)


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize(
    "use",
    [
        lambda index: index.bm25(k=40)("fox dog w3"),
        lambda index: index.tfidf(k=1000).search("w3"),
        lambda index: index.dense(Several()).search("d1"),
        lambda index: index.doc("unknown"),
        lambda index: index.add([("new", "fox")]),
        lambda index: index.delete("d10"),
        lambda index: index.merge(),
    ],
    ids=["bm25", "tfidf", "dense", "doc", "add", "delete", "merge"],
)
def test_an_order_of_ids_with_one_twice_is_damage_at_first_use(
    copy: Path, use: Callable[[Index], object], forged: bool
) -> None:
    """Ranks that were never worked out would index arrays of compiled loops."""

    def twice(order: np.ndarray) -> None:
        low, high = np.flatnonzero(order == 3)[0], np.flatnonzero(order == 15)[0]
        order[low], order[high] = 4, 14

    changed(copy, "segment-*/doc_ids.order", twice, forged)
    index = Index.open(copy)
    with pytest.raises(IndexFormatError, match=r"doc_ids\.order\.npy (is damaged: it has a number twice|has changed)"):
        use(index)


@pytest.mark.parametrize("several", [False, True])
def test_a_text_is_not_unpacked_to_more_than_a_document_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    """A few hundred kilobytes of zeros would fill the memory, for each document of a page of results."""
    size = documents.MAX_PIECE if several else documents.MAX_PIECE + 1
    sizes = np.array([[0, size - 1, 0], [0, 1, 0]] if several else [[0, size, 0]], dtype=np.uint32)
    text = documents.compressed(bytes(size))
    writer = documents.DocumentWriter(tmp_path)
    writer.append(documents.Block(sizes, lambda: pytest.fail("it is packed"), text))
    writer.close()
    assert len(text) < 1 << 17
    store = documents.DocumentStore(tmp_path, len(sizes))
    monkeypatch.setattr(documents, "decompressed", lambda packed, length: pytest.fail("nothing is unpacked"))
    most = documents.MAX_BLOCK_BYTES if several else documents.MAX_PIECE
    for read in (lambda: store.read(["d"], [0]), store.check):
        with pytest.raises(IndexFormatError, match=rf"block 0 of .*: it has {size:,} bytes, more than the maximum of {most:,}"):
            read()


TEXT = b"The flap at the creek mouth jammed a hand's breadth open. " * 20


@pytest.mark.parametrize("pack", [documents.compressed, lambda text: zlib.compress(text, 1)], ids=["Zstandard", "zlib"])
def test_a_block_is_unpacked_as_a_whole_of_its_length_or_not_at_all(pack: Callable[[bytes], bytes]) -> None:
    for text in (TEXT, b"x", b""):
        packed = pack(text)
        assert documents.decompressed(packed, len(text)) == text
        assert documents.decompressed(packed, len(text) + 1) is None
        for longer in (packed + b"x", packed + packed) if text else ():
            with suppress(ValueError):
                assert documents.decompressed(longer, len(text)) is None
    packed = pack(TEXT)
    assert documents.decompressed(packed, len(TEXT) - 1) is None
    for at in range(len(packed)):
        for damaged in (packed[:at], packed[:at] + bytes([packed[at] ^ 0x10]) + packed[at + 1 :]):
            with suppress(ValueError):
                assert documents.decompressed(damaged, len(TEXT)) in (None, TEXT)  # the level of zlib is in its head


def test_a_block_that_says_to_be_longer_is_not_unpacked() -> None:
    packed = documents.compressed(bytes(1 << 26))
    assert len(packed) < 1 << 13
    assert documents.decompressed(packed, 1 << 10) is None


def test_documents_whose_text_cannot_be_read_are_damage_that_names_their_block(copy: Path) -> None:
    changed(copy, "segment-*/text.sizes", lambda sizes: sizes.__setitem__((0, 1), 200))
    with pytest.raises(IndexFormatError, match=r"text\.bytes\.npy is damaged: block 0 of the documents"):
        Index.open(copy).docs(Index.open(copy).ids)


def test_segments_that_are_damaged_are_not_merged_into_one_whose_sums_fit(copy: Path) -> None:
    changed(copy, "segment-*/doc_lengths", swap)
    before = (copy / "manifest.json").read_bytes()
    with pytest.raises(IndexFormatError, match=r"doc_lengths\.npy has changed, so that it cannot be merged"):
        Index.open(copy).merge()
    assert (copy / "manifest.json").read_bytes() == before


def test_a_deletion_does_not_count_damaged_postings(copy: Path) -> None:
    index = Index.open(copy)
    pairs = index.state.leaves[1].segment.lists.packed.pairs
    file = index.state.leaves[1].segment.folder / "postings.npy"
    file.write_bytes(file.read_bytes().replace(pairs.tobytes(), (pairs * np.array([[100], [1]], np.int32)).tobytes()))
    before = (copy / "manifest.json").read_bytes()
    index = Index.open(copy)
    with pytest.raises(IndexFormatError, match=r"damaged: the counts of its terms do not fit their postings"):
        index.delete([DOCS[50][0]])
    assert (copy / "manifest.json").read_bytes() == before


def test_deletions_that_are_damaged_are_not_carried_on_with_sums_that_fit(copy: Path) -> None:
    """As many are deleted as before, but others."""
    changed(copy, "segment-*/deleted-*/dead", lambda dead: dead.__setitem__(slice(None), dead[::-1].copy()))
    before = (copy / "manifest.json").read_bytes()
    with pytest.raises(IndexFormatError, match=r"dead\.npy has changed, so that it cannot be merged"):
        Index.open(copy).merge()
    index = Index.open(copy)
    with pytest.raises(IndexFormatError, match=r"dead\.npy has changed, so that more of its documents cannot be deleted"):
        index.delete(index.ids.tolist()[:1])
    assert (copy / "manifest.json").read_bytes() == before


def test_commands_verify_what_they_search_and_check_deeply(copy: Path, fontes: Any) -> None:
    assert fontes("search", copy, "fox", "--verify")[0] == 0
    assert fontes("check", copy, "--deep")[0] == 0
    changed(copy, "segment-*/doc_lengths", swap)
    assert fontes("search", copy, "fox")[0] == 0
    for command in (["search", copy, "fox"], ["explain", copy, "fox", "d01"]):
        code, _, errors = fontes(*command, "--verify")
        assert code == 1
        assert "doc_lengths.npy has changed" in errors
    forge(copy, sorted(copy.glob("segment-*/doc_lengths.npy"))[0])
    assert fontes("check", copy)[0] == 0
    assert "do not fit their postings" in fontes("check", copy, "--deep")[2]


def test_an_id_that_is_not_there_is_an_error_of_its_own(copy: Path) -> None:
    with pytest.raises(InputError, match="'d99' is not in the index"):
        Index.open(copy, verify=True).doc("d99")

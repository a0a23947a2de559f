"""Opening an index: what is damaged, missing, older or newer is an error that says what to do."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.each import each
from support.forged import forged_manifest

from fontes.core import IndexFormatError, ParameterError, Topic
from fontes.index import Index

DOCS = [(f"d{n}", f"fox {'dog ' * (n % 4)} w{n % 11} é{n}") for n in range(60)]
FILES = ["cf", "df", "doc_ids.bounds", "doc_ids.bytes", "doc_ids.order", "doc_lengths", "postings"]
FILES += ["terms.bounds", "terms.bytes", "text.blocks", "text.bytes", "text.sizes"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "x"
    Index.build(DOCS, path)
    return path


@pytest.fixture
def copy(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "x"))


def array(path: Path, name: str) -> Path:
    return next(path.glob(f"segment-*/{name}.npy"))


def refused(path: Path) -> str:
    """The message with which `open` refuses this path, which must be one sentence that names the path."""
    with pytest.raises(IndexFormatError) as error:
        Index.open(path)
    return sentence(error.value, path)


def sentence(error: Exception, path: Path) -> str:
    message = str(error)
    assert str(path) in message
    assert "\n" not in message
    assert not message.endswith(".")
    assert len(message.replace(str(path), "")) < 250
    return message


def change(path: Path, **changes: object) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.update(changes)
    (path / "manifest.json").write_text(json.dumps(manifest))


def flip(file: Path, at: int, bit: int = 1) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= bit
    file.write_bytes(content)


def test_a_sound_index_opens_and_checks(copy):
    Index.open(copy).check()
    Index.open(str(copy)).check()


def test_the_index_has_the_files_that_are_damaged_below(sound):
    assert sorted(f.name for f in sound.glob("segment-*/*")) == sorted(f"{name}.npy" for name in FILES)


def test_a_path_where_nothing_is_is_refused(tmp_path):
    assert "does not exist" in refused(tmp_path / "nowhere")


def test_a_folder_that_is_no_index_is_refused(tmp_path):
    assert "is not an index" in refused(tmp_path)


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("{}")
    assert "is not an index" in refused(tmp_path / "file")


@each(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"x"',
        b"{}",
        b'{"format": "fontes-index"}',
        b'{"version": 1}',
        b"\xef\xbb\xbf",
        b"\xff\xfe{}",
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused(copy, content):
    (copy / "manifest.json").write_bytes(content)
    assert "manifest.json is damaged" in refused(copy)


def test_a_manifest_that_lacks_a_part_or_has_a_broken_one_is_refused(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    parts = ("segments", "analyzer", "fields", "fingerprint", "scale")
    lacking = [{key: manifest[key] for key in manifest if key != part} for part in parts]
    broken = [{"segments": []}, {"segments": [{}]}, {"segments": None}, {"analyzer": {}}, {"fields": 5}]
    broken += [{"version": version} for version in ("1", None, [1], {})]
    for damaged in (*lacking, *({**manifest, **part} for part in broken)):
        (copy / "manifest.json").write_text(json.dumps(damaged))
        assert "damaged" in refused(copy)


@pytest.mark.parametrize(
    "changes",
    [
        *({"analyzer": value} for value in ([], [1], None, "english", {"tokenizer": "standard"})),
        *({"fields": value} for value in (5, None, "text", [1], {"text": 1})),
        *({"scale": value} for value in (0, -1, "100", True, float("inf"), float("nan"), [1])),
        *({"fontes": value} for value in (None, 1)),
        *({"shards": value} for value in (0, -1, 1.0, "2")),
        *({"columns": value} for value in (None, [], {"declared": 1, "types": {}}, {"declared": True, "types": {"a": 1}})),
    ],
    ids=repr,
)
def test_a_manifest_of_a_stranger_with_a_part_of_another_type_is_refused(copy, changes):
    forged_manifest(copy, lambda manifest: manifest.update(changes))
    assert "manifest.json" in refused(copy)


@pytest.mark.parametrize(
    "changes",
    [
        *({name: value} for name in ("possessive", "lowercase") for value in ([], {}, None, 10**30)),
        *({name: value} for name in ("normalize", "stemmer") for value in (0, [], {}, None)),
        *({"stopwords": value} for value in ([1], [[]], [None], 7, None)),
        *({"words": value} for value in (None, [1], [1, 2.5], ["a", "b"], [1, 10**30], {"a": 1, "b": 2})),
        *({"chars": value} for value in ([1], 7, [0, 1], [True, 2])),
        *({"tokenizer": value} for value in (None, [], {}, 7)),
    ],
    ids=repr,
)
def test_an_analyzer_of_a_stranger_with_a_part_of_another_type_is_refused(copy, changes):
    forged_manifest(copy, lambda manifest: manifest["analyzer"].update(changes))
    assert "manifest.json" in refused(copy)


def test_a_great_number_of_shards_takes_no_memory(copy):
    def many(manifest):
        manifest["shards"] = 10**15
        for segment in manifest["segments"]:
            segment["shard"] = 0

    index = Index.open(forged_manifest(copy, many))
    index.add([("new1", "fox")])
    index.add([("new2", "fox")])
    assert [segment["shard"] for segment in index.state.manifest["segments"]][-2:] == [1, 2]


def test_the_format_of_another_program_is_refused(copy):
    change(copy, format="lucene")
    assert "its format is 'lucene'" in refused(copy)


def test_another_format_is_refused_with_advice(copy):
    change(copy, version=999)
    newer = refused(copy)
    assert "has an index of the format 999, newer than" in newer
    assert "upgrade Fontes" in newer
    change(copy, version=0)
    older = refused(copy)
    assert "has an index of the format 0, older than" in older
    assert "build the index again" in older
    assert "upgrade" not in older


@each("name", FILES)
def test_a_file_that_is_missing_or_of_another_length_is_refused_by_its_name(copy, name):
    file, index = array(copy, name), Index.open(copy)
    content = file.read_bytes()
    file.unlink()
    assert f"{name}.npy is missing" in refused(copy)
    with pytest.raises(IndexFormatError) as error:
        index.check()
    sentence(error.value, copy)
    for other in (b"", content[: len(content) // 2], content[:-1], content + b"\0"):
        file.write_bytes(other)
        assert f"{name}.npy has {len(other)} bytes instead of {len(content)}" in refused(copy)
    file.write_bytes(content)


def test_a_missing_segment_is_refused(copy):
    shutil.rmtree(next(copy.glob("segment-*")))
    assert "is missing" in refused(copy)


@each("name", FILES)
def test_check_detects_a_flipped_bit_in_the_values_of_each_file(copy, name):
    file = array(copy, name)
    content = file.read_bytes()
    for at in (128, (128 + len(content)) // 2, len(content) - 1):
        flip(file, at, 0x10)
        with pytest.raises(IndexFormatError) as error:
            Index.open(copy).check()
        assert "build the index again" in sentence(error.value, copy)
        file.write_bytes(content)


@each("name", ["df", "doc_ids.order", "text.blocks", "terms.bytes"])
def test_a_flipped_bit_in_the_header_of_a_file_is_detected_by_open_or_by_check(copy, name):
    file = array(copy, name)
    content = file.read_bytes()
    for at in range(128):
        flip(file, at, (1, 8, 64)[at % 3])
        with pytest.raises(IndexFormatError):
            Index.open(copy).check()
        file.write_bytes(content)


def test_check_detects_a_changed_manifest(copy):
    text = (copy / "manifest.json").read_text()
    tokens = json.loads(text)["segments"][0]["tokens"]
    changed = text.replace(f'"tokens": {tokens}', f'"tokens": {tokens + 1}')
    assert changed != text
    (copy / "manifest.json").write_text(changed)
    with pytest.raises(IndexFormatError):
        Index.open(copy).check()


def test_check_detects_a_changed_analyzer(copy):
    text = (copy / "manifest.json").read_text()
    (copy / "manifest.json").write_text(text.replace('"porter"', '"german"'))
    with pytest.raises(IndexFormatError):
        Index.open(copy).check()


def test_damaged_text_is_an_error_of_fontes_when_a_document_is_read(copy):
    file = array(copy, "text.bytes")
    flip(file, 140, 0xFF)
    index = Index.open(copy)
    with pytest.raises(IndexFormatError) as error:
        index.doc("d0")
    sentence(error.value, copy)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_damaged_postings_never_name_documents_that_are_not_there(copy, step):
    """The compiled search trusts them; a wrong number would read and write memory that is not its own."""
    file = array(copy, "postings")
    content = file.read_bytes()
    damage = [(at, content[at] ^ 0xFF) for at in range(128, len(content), 2 * step)]
    damage += [(at, content[at] ^ 1) for at in range(129, len(content), 6 * step)]
    refusals, wrong = 0, []
    for at, byte in damage:
        file.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
        before = refusals
        try:
            index = Index.open(copy)
        except IndexFormatError as error:  # the header
            sentence(error, copy)
            continue
        for number in range(len(index.terms)):
            try:
                docs, tfs = index.postings(np.array([number]))
            except IndexFormatError as error:
                sentence(error, copy)
                refusals += 1
                continue
            if not (np.all((docs >= 0) & (docs < len(index))) and np.all(np.diff(docs) > 0) and np.all(tfs > 0)):
                wrong.append((at, byte, index.terms[number], docs.tolist(), tfs.tolist()))
        if refusals > before:
            with pytest.raises(IndexFormatError, match="damaged"):
                index.bm25()({"1": "fox dog"})
    assert refusals > 0
    assert wrong == []


def test_the_analyzer_it_was_made_with_may_be_given(copy):
    assert Index.open(copy, analyzer="english").bm25().search("fox").ids == Index.open(copy).bm25().search("fox").ids


def test_an_index_that_a_function_made_opens_without_it_for_what_needs_no_analysis(tmp_path):
    def tokenize(text: str) -> list[str]:
        return text.split()

    def other(text: str) -> list[str]:
        return text.split()

    Index.build(DOCS, tmp_path / "x", analyzer=tokenize)
    index = Index.open(tmp_path / "x")
    index.check()
    assert index.info()["analyzer"]["tokenizer"]["callable"].endswith("tokenize (not importable)")
    assert index.doc("d5").text == DOCS[5][1]
    assert len(index.bm25()(Topic("1", "", weights={"fox": 1.0}))["1"]) == 60
    assert list(pickle.loads(pickle.dumps(index)).ids) == list(index.ids)
    for work in (
        lambda: index.bm25().search("fox"),
        lambda: index.analyzed(["d1"]),
        lambda: index.marked("fox", index.doc("d1")),
    ):
        with pytest.raises(ParameterError, match="an index runs no code of its own; if you know that function, pass it"):
            work()
    with pytest.raises(ParameterError, match=r"was made with another analyzer: it was not made with .*other"):
        Index.open(tmp_path / "x", analyzer=other)
    assert len(Index.open(tmp_path / "x", analyzer=tokenize).bm25().search("fox", 100)) == 60


def with_analyzer(path: Path, **analyzer: object) -> Path:
    return forged_manifest(path, lambda manifest: manifest["analyzer"].update(analyzer))


def test_a_manifest_that_names_a_function_of_python_runs_nothing(copy, tmp_path):
    with_analyzer(copy, tokenizer={"callable": "subprocess:getoutput"}, lowercase=False)
    index = Index.open(copy)
    index.check()
    for stage in (index.bm25(), index.tfidf(), index.bm25() >> index.rm3() >> index.bm25()):
        with pytest.raises(ParameterError, match="'subprocess:getoutput', and an index runs no code of its own"):
            stage.search(f"touch {tmp_path / 'ran'}")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("tokenizer", [7, None, ["x"], {"other": "x"}, "no_such", "shell:ls"])
def test_a_manifest_with_a_tokenizer_that_does_not_exist_is_damaged(copy, tokenizer):
    with pytest.raises(IndexFormatError, match=r"manifest\.json: "):
        Index.open(with_analyzer(copy, tokenizer=tokenizer))


def test_an_index_can_be_moved(copy, tmp_path):
    copy.rename(tmp_path / "moved")
    index = Index.open(tmp_path / "moved")
    index.check()
    assert index.doc("d5").text == DOCS[5][1]


def test_an_index_is_read_through_a_link(copy, tmp_path):
    (tmp_path / "link").symlink_to(copy)
    Index.open(tmp_path / "link").check()


def test_a_file_that_is_not_ours_inside_the_index_does_no_harm(copy):
    (copy / ".DS_Store").write_text("")
    Index.open(copy).check()

"""Submissions: written in the organisers' form, read back, and refused with line and remedy where they are wrong."""

import gzip
import json
import zipfile

import pytest

import fontes as ft
from fontes.core import InputError
from fontes.tasks import registry

TOPICS = ft.Topics.of({"1": "one", "2": "two"})
DOCS = {"a", "b", "c", "10", "11"}
RUN = ft.Run.of({"1": {"a": 3.0, "b": 2.0, "10": 1.0}, "2": {"c": 1.0}}, TOPICS)


def submitted(name, tmp_path, run=RUN, side="test"):
    paths = registry[name]().submit({side: run}, tmp_path, "fused", "fuse(bm25(), dense('m'))")
    topics = {side: run.topics}
    return paths, [note for path in paths for note in registry[name]().check_submission(path, topics, DOCS)]


def test_posts_are_a_table_of_lists(tmp_path):
    (path,), _ = submitted("checkthat2025-4b", tmp_path)
    assert path.read_text() == "post_id\tpreds\n1\t['a', 'b', '10']\n2\t['c']\n"


def test_languages_are_tables_in_a_zip(tmp_path):
    topics = ft.Topics.of({"en-1": "one", "de-1": "eins"})
    run = ft.Run.of({"en-1": {"a": 1.0}, "de-1": {"b": 1.0}}, topics)
    (path,), _ = submitted("checkthat2026-1", tmp_path, run)
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {
            "predictions_en.tsv": "index\tpreds\n1\t['a']\n",
            "predictions_de.tsv": "index\tpreds\n1\t['b']\n",
        }
    task = registry["checkthat2026-1"]()
    with pytest.raises(InputError, match=r"no predictions_fr.tsv at its top; there are predictions_de.tsv, predictions_en"):
        task.check_submission(path, {"test": ft.Topics.of({"fr-1": "un"})}, None)


def test_claims_are_lines_with_numbers_where_organisers_wrote_numbers(tmp_path):
    (path,), _ = submitted("scifact", tmp_path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"claim_id": 1, "doc_ids": ["a", "b", 10]},
        {"claim_id": 2, "doc_ids": ["c"]},
    ]
    (path,), _ = submitted("fever", tmp_path)
    assert json.loads(path.read_text().splitlines()[1]) == {"id": 2, "claim": "two", "predicted_pages": [["c", 1.0]]}


def test_snapshots_are_folders_with_metadata(tmp_path):
    paths, notes = submitted("longeval", tmp_path, side="2025-01")
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == ["2025-01/run.txt.gz", "ir-metadata.yml"]
    assert gzip.decompress(paths[0].read_bytes()).decode().splitlines()[0] == "1 Q0 a 1 3.0 fused"
    text = paths[1].read_text()
    assert "dense_neural_model: yes" in text
    assert "deep_neural_model: no" in text
    assert "4 values are still 'ENTER_VALUE_HERE'" in notes[0]


def test_each_of_the_first_faults_has_a_sentence(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("".join(f"1 Q0 x{n} {n} {30 - n} t\n" for n in range(1, 21)))
    with pytest.raises(InputError) as error:
        registry["touche"]().check_submission(path, {"test": TOPICS}, DOCS)
    sentences = str(error.value).split("\n")
    assert len(sentences) == 11
    assert "there may be more from line 10 on" in sentences[-1]


def test_a_row_with_many_faults_and_a_long_id_make_a_short_message(tmp_path):
    path = tmp_path / "posts.tsv"
    path.write_text(f"post_id\tpreds\n1\t{['a'] * 3_000!r}\n{'x' * 100_000}\t['a']\n")
    with pytest.raises(InputError) as error:
        registry["checkthat2025-4b"]().check_submission(path, {"test": TOPICS}, DOCS)
    assert len(str(error.value).split("\n")) == 11
    assert len(str(error.value)) < 3_000
    path.write_text(f"post_id\tpreds\n1\t['a']\n{'x' * 100_000}\t['a']\n")
    with pytest.raises(InputError) as error:
        registry["checkthat2025-4b"]().check_submission(path, {"test": TOPICS}, DOCS)
    assert len(str(error.value)) < 5_000


def test_a_topic_without_results_is_a_remark_of_a_run(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("1 Q0 a 1 1 x\n")
    assert registry["beir"]().check_submission(path, {"test": TOPICS}, DOCS) == [f"{path}: no line of topic '2', of 2 topics"]

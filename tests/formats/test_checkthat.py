"""Submissions to CheckThat! 2025, task 4b: read as runs, and written."""

import csv
import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.core import Topics

DATA = Path(__file__).parents[3] / "shared" / "data" / "checkthat25_4b"
SUBMISSION = "post_id\tpreds\n16\t['3qvh482o', 'r58aohnu', 'sts48u9i']\n69\t['r58aohnu']\n7\t[]\n"


def file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_submission_is_read_in_the_order_of_its_lists(tmp_path: Path) -> None:
    run = ft.read_run(file(tmp_path / "predictions.tsv", SUBMISSION))
    assert run["16"].ids == ["3qvh482o", "r58aohnu", "sts48u9i"]
    assert run["16"].scores.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert (list(run), run["7"].ids) == (["16", "69", "7"], [])
    packed = tmp_path / "predictions.tsv.gz"
    packed.write_bytes(gzip.compress(SUBMISSION.encode()))
    assert ft.read_run(packed) == run
    topics = Topics.of({"69": "masks", "x": "other"})
    assert list(ft.read_run(tmp_path / "predictions.tsv", topics)) == ["69", "x", "16", "7"]


def test_what_pandas_writes_with_commas_is_read_too(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"post_id": [16, 69], "preds": [["a", "b"], [12, "it's"]]})
    for name, separator in (("p.tsv", "\t"), ("p.csv", ",")):
        frame.to_csv(tmp_path / name, index=None, sep=separator)
        run = ft.read_run(tmp_path / name)
        assert {topic: run[topic].ids for topic in run} == {"16": ["a", "b"], "69": ["12", "it's"]}


def test_five_documents_of_each_post_are_written_as_pandas_writes_them(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run = ft.Run.of({"16": {f"d{n}": 10.0 - n for n in range(8)}, "69": {"it's": 1.0}, "7": {}})
    ft.write_run(run, tmp_path / "ours.tsv", format="checkthat")
    best = [[f"d{n}" for n in range(5)], ["it's"], []]
    pandas.DataFrame({"post_id": [16, 69, 7], "preds": best}).to_csv(
        tmp_path / "theirs.tsv", index=None, sep="\t", quoting=csv.QUOTE_NONE
    )
    assert (tmp_path / "ours.tsv").read_text() == (tmp_path / "theirs.tsv").read_text()
    result = CliRunner().invoke(cli.app, ["convert", "run", str(tmp_path / "ours.tsv"), "-", "--to", "msmarco"])
    assert result.stdout.splitlines()[:2] == ["16\td0\t1", "16\td1\t2"]


@pytest.mark.skipif(not DATA.is_dir(), reason="the test collections are not here")
def test_a_participants_run_survives_the_form_of_a_submission(tmp_path: Path) -> None:
    run = ft.read_run(DATA / "runs" / "dev.leon_predictions_SciBERT_TOP10.trec")
    ft.write_run(run, tmp_path / "preds.tsv", format="checkthat")
    again = ft.read_run(tmp_path / "preds.tsv")
    assert {topic: again[topic].ids for topic in again} == {topic: run[topic].ids[:5] for topic in run}
    qrels = ft.read_qrels(DATA / "qrels" / "dev.tsv")
    assert ft.evaluate(again, qrels, ["RR@5"])["RR@5"] == pytest.approx(0.7084, abs=5e-5)

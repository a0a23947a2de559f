"""tirex-tracker's measurements in the lock of an experiment, with the real package."""

import json
import shutil

import pytest

import fontes as ft
from fontes.experiments.metadata import MEASURED, measuring

FILE = """
measurements = true
[collection]
dataset = "springs"
[systems]
bm25 = "bm25()"
[report]
measures = ["RR"]
forms = ["json"]
"""


@pytest.fixture
def experiment(tmp_path):
    (tmp_path / "springs").mkdir()
    for name, lines in {
        "corpus.jsonl": [{"_id": "a", "text": "rain"}, {"_id": "b", "text": "snow"}],
        "queries.jsonl": [{"_id": "1", "text": "rain"}],
    }.items():
        (tmp_path / "springs" / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "springs" / "qrels").mkdir()
    (tmp_path / "springs" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    (tmp_path / "x.toml").write_text(FILE)
    return tmp_path / "x.toml"


@pytest.mark.slow
def test_measurements_are_in_the_lock_and_no_part_of_a_check(experiment):
    pytest.importorskip("tirex_tracker", reason="tirex-tracker is not installed; test_environments.py runs this")
    ft.Experiment(experiment).run()
    lock = json.loads((experiment.parent / "x.results" / "experiment.lock").read_text())
    values = lock["measurements"]
    assert set(values) <= {name.lower() for name in MEASURED}
    assert values["time_elapsed_wall_clock_ms"] > 0
    assert set(values["ram_used_process_kb"]) == {"max", "min", "avg"}
    assert "measurements" not in lock["settings"]
    assert ft.Experiment(experiment).check()


@pytest.mark.slow
def test_an_error_in_the_block_is_that_error():
    pytest.importorskip("tirex_tracker", reason="tirex-tracker is not installed; test_environments.py runs this")
    with pytest.raises(ZeroDivisionError), measuring(True):
        1 / 0  # noqa: B018


def test_without_the_package_nothing_runs_and_without_the_key_nothing_is_measured(experiment, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tirex_tracker", None)
    with pytest.raises(ft.FontesError, match=r"measurements = true needs tirex-tracker.*fontes\[tirex\]"):
        ft.Experiment(experiment).run()
    assert not (experiment.parent / "x.results").exists()
    experiment.write_text(FILE.replace("measurements = true", ""))
    ft.Experiment(experiment).run()
    assert "measurements" not in json.loads((experiment.parent / "x.results" / "experiment.lock").read_text())
    shutil.rmtree(experiment.parent / "x.results")
    experiment.write_text(FILE.replace("measurements = true", "measurements = 1"))
    with pytest.raises(ft.FontesError, match="'measurements' must be true or false"):
        ft.Experiment(experiment)

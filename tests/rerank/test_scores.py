"""The file of scores: what it keeps, how large it gets, and what happens to it when things go wrong."""

import logging
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from support.score_writer import keys, write

import fontes as ft
from fontes.rerank.reranker import ScoreFile, pair_keys


def values(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32) / 7


def test_scores_come_back_to_the_last_bit_and_unknown_ones_as_nan(tmp_path: Path) -> None:
    file = ScoreFile(tmp_path / "new" / "s")
    assert np.isnan(file.read(keys(0, 3))).all()
    file.write(keys(0, 1200), values(1200))
    assert (file.read(keys(0, 1200)) == values(1200)).all()
    assert np.isnan(file.read(keys(1200, 1203))).all()


def test_a_key_tells_model_query_and_document_apart() -> None:
    pairs = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "b ")]
    assert len({*pair_keys("m", pairs), *pair_keys("n", pairs)}) == 10
    assert pair_keys("m", [("\ud800", "x")]) == pair_keys("m", [("\ud800", "x")])


def test_scores_that_are_no_numbers_are_not_kept(tmp_path: Path) -> None:
    file = ScoreFile(tmp_path / "s")
    file.write(keys(0, 3), np.array([1, np.nan, np.inf], dtype=np.float32))
    assert np.isnan(file.read(keys(0, 3))).tolist() == [False, True, True]


def test_a_full_file_drops_its_oldest_quarter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ScoreFile(tmp_path / "s", limit=200_000)
    for step in range(20):
        monkeypatch.setattr("time.time", lambda step=step: float(step))
        file.write(keys(1000 * step, 1000 * step + 1000), values(1000))
    assert np.isnan(file.read(keys(0, 1000))).all()
    assert not np.isnan(file.read(keys(19000, 20000))).any()
    assert (tmp_path / "s").stat().st_size < 400_000


def test_a_damaged_file_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"this is no database, but it is long enough to look like one" * 100)
    with caplog.at_level(logging.WARNING, "fontes.neural"):
        ScoreFile(path).write(keys(0, 3), values(3))
    assert (ScoreFile(path).read(keys(0, 3)) == values(3)).all()
    assert (tmp_path / "s.damaged").is_file()
    assert "is damaged" in caplog.text


def test_a_file_damaged_inside_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "s"
    ScoreFile(path).write(keys(0, 5000), values(5000))
    whole = bytearray(path.read_bytes())
    whole[4096 : len(whole) - 4096] = b"\xab" * (len(whole) - 8192)
    path.write_bytes(whole)
    assert np.isnan(ScoreFile(path).read(keys(0, 5000))).all()
    ScoreFile(path).write(keys(0, 3), values(3))
    assert (ScoreFile(path).read(keys(0, 3)) == values(3)).all()


def test_no_flipped_bit_makes_another_score(tmp_path: Path) -> None:
    path = tmp_path / "s"
    ScoreFile(path).write(keys(0, 300), values(300) + 1)
    sound, draw = path.read_bytes(), np.random.default_rng(3)
    lost = 0
    for at in draw.integers(0, len(sound), 150).tolist():
        path.write_bytes(sound[:at] + bytes([sound[at] ^ (1 << at % 8)]) + sound[at + 1 :])
        scores = ScoreFile(path).read(keys(0, 300))
        assert np.all(np.isnan(scores) | (scores == values(300) + 1))
        lost += int(np.isnan(scores).any())
        for left in tmp_path.iterdir():
            left.unlink()
    assert lost > 30


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    file = ScoreFile(tmp_path / "file" / "s")
    with caplog.at_level(logging.WARNING, "fontes.neural"):
        file.write(keys(0, 3), values(3))
    assert np.isnan(file.read(keys(0, 3))).all()
    assert "scores are not kept" in caplog.text


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ft.core.InputError, match="is a folder; cache takes the path of a file, or True"):
        ScoreFile(tmp_path).read(keys(0, 1))


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write, args=(path, first)) for first in (0, 2000)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = ScoreFile(path).read(keys(0, 4000))
    assert found.tolist() == [0.0] * 2000 + [2000.0] * 2000


def test_a_process_that_is_killed_leaves_whole_scores(tmp_path: Path) -> None:
    path = tmp_path / "s"
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=write, args=(path, 0))
    writer.start()
    while not path.exists():
        writer.join(0.005)
        assert writer.exitcode in (None, 0)
    writer.kill()
    writer.join()
    found = ScoreFile(path).read(keys(0, 2000))
    kept = ~np.isnan(found)
    assert (found[kept] == 0).all()
    assert kept.sum() % 100 == 0
    ScoreFile(path).write(keys(0, 2000), values(2000))
    assert (ScoreFile(path).read(keys(0, 2000)) == values(2000)).all()

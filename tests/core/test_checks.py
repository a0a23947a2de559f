"""Checks of parameters, facts of the work, and progress."""

from pathlib import Path

import numpy as np
import pytest

from fontes.core import Progress, work
from fontes.core.checks import as_number, check_whole, grade_of


def test_whole_numbers_of_python_and_numpy_pass_with_both_limits() -> None:
    for value in [2, 7, np.int64(2), np.uint8(7)]:
        assert (check_whole("n", value, 2, 7), type(check_whole("n", value, 2, 7))) == (int(value), int)  # type: ignore[call-overload]


def test_an_id_is_a_number_if_it_is_the_decimal_form_of_one() -> None:
    assert [as_number(text) for text in ("0", "12")] == [0, 12]
    for text in ("", "007", "-1", "\u0663", "\u00b2", "1_0", "9" * 5000):
        assert as_number(text) == text


def test_a_grade_is_a_whole_number_also_as_pandas_writes_it() -> None:
    assert [grade_of(value) for value in ("1", "-2", " 2.0", "3.", 1.0, np.int64(2), True)] == [1, -2, 2, 3, 1, 2, 1]
    for value in ("0.5", "1.01", "", ".0", "1e0", "1_0", 0.5):
        with pytest.raises(ValueError, match="not a whole number"):
            grade_of(value)


def test_a_field_of_the_processor_is_read_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text("Processor\t: first\nmodel name\t: A 9\nflags\t\t: fma avx2\nmodel name : other\n")
    monkeypatch.setattr(work, "Path", lambda path: tmp_path / Path(path).name)
    assert (work.cpuinfo("model name"), work.cpuinfo("bogomips")) == ("A 9", "")
    assert work.processor_features() == {"fma", "avx2"}


def test_the_time_left_comes_from_the_units_of_this_run() -> None:
    assert Progress("encoding", 25, 100, 10.0).seconds_left == pytest.approx(30)
    assert Progress("encoding", 25, 100, 10.0, before=5).seconds_left == pytest.approx(37.5)
    assert Progress("encoding", 5, 100, 10.0, before=5).seconds_left is None

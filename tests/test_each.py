"""Lists of cases that are one test."""

from pathlib import Path

import pytest
from support.each import each
from support.errors import check_error

from fontes.core import InputError, ParameterError


def test_every_case_runs_and_the_failure_names_those_that_fail() -> None:
    ran: list[int] = []

    @each("value", [1, 2, 3, 4], ids=["one", "two", "three", "four"])
    def odd(value: int) -> None:
        ran.append(value)
        assert value % 2

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as caught:
        odd()
    assert ran == [1, 2, 3, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in case 1: 'two'"], ["in case 3: 'four'"]]


@each("base", [2, 3])
@each(("power", "expected"), [(0, 1), (1, 0)])
def test_lists_are_combined_and_each_case_has_its_own_folder(base: int, power: int, expected: int, tmp_path: Path) -> None:
    assert (base**power == 1) == expected
    (tmp_path / "file").open("x").close()


def test_a_list_without_cases_is_refused() -> None:
    with pytest.raises(AssertionError, match="cannot fail"):
        each("value", [])


def test_an_error_that_does_not_name_its_input_and_the_remedy_fails_the_check() -> None:
    def refuse() -> None:
        raise ParameterError("k must be a whole number from 1 up, not 0")

    assert check_error(refuse, ParameterError, "k … not 0", "from 1 up").startswith("k must")
    for error, names, remedy in [
        (InputError, "not 0", ""),
        (ParameterError, "", "from 1 up"),
        (ParameterError, "not 0 … topic 'q'", ""),
        (ParameterError, "not 0", "from 2 up"),
    ]:
        with pytest.raises((AssertionError, ParameterError)):
            check_error(refuse, error, names, remedy)
    with pytest.raises(pytest.fail.Exception):
        check_error(lambda: None, ParameterError, "not 0")

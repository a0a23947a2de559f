"""One test over a list: each case runs, and the failure names those that fail."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception)


def each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once for each case, as one test; for lists of quick cases, where one test a case costs more than the check.

    Each case has a folder of its own as `tmp_path`, and what it patches or prints is gone before the next one.

    Args:
        names: Of the arguments that a case gives, as of `pytest.mark.parametrize`.
        cases: A value each, or a tuple of several.
        ids: Names of the cases in the order of the cases; without them a failure shows the values.
    """
    keys = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    listed, titles = list(cases), list(ids)
    assert listed, "a test without cases cannot fail"
    named = list(zip(titles or listed, listed, strict=True))

    def over(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @wraps(test)
        def all_cases(**fixtures: Any) -> None:
            failures = []
            for number, (name, case) in enumerate(named):
                values = dict(zip(keys, (case,) if len(keys) == 1 else case, strict=True))
                try:
                    test(**values, **fixtures | _own(fixtures, number))
                except FAILURES as error:
                    error.add_note(f"in case {number}: {name!r:.300}")
                    failures.append(error)
                if "monkeypatch" in fixtures:
                    fixtures["monkeypatch"].undo()
                if "capsys" in fixtures:
                    fixtures["capsys"].readouterr()
            if len(failures) > 1:
                raise BaseExceptionGroup(f"{len(failures)} of {len(named)} cases", failures)
            for failure in failures:
                raise failure

        rest = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        all_cases.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]  # what pytest reads
        return all_cases

    return over


def _own(fixtures: Mapping[str, Any], number: int) -> dict[str, Path]:
    """The folder of a case."""
    if "tmp_path" not in fixtures:
        return {}
    folder: Path = fixtures["tmp_path"] / str(number)
    folder.mkdir()
    return {"tmp_path": folder}

"""Progress on standard error: a bar on a terminal, lines where there is none."""

import io

import pytest
from rich.console import Console

from fontes.app import output as shown
from fontes.app.flags import flags
from fontes.core.work import Progress, lines, silent


def test_lines_come_where_work_begins_and_ends_and_every_ten_seconds_between() -> None:
    said: list[str] = []
    report = lines(said.append)
    report(Progress("encoding", 0, 4000, 0.0))
    for seconds in (1.0, 9.0, 10.5, 15.0, 21.0):
        report(Progress("encoding", int(100 * seconds), 4000, seconds))
    report(Progress("encoding", 4000, 4000, 40.0))
    report(Progress("indexing", 5, None, 11.0, note="2 files"))
    assert said == [
        "encoding: 0 of 4,000 documents",
        "encoding: 1,050 of 4,000 documents, 100 a second, 29 s left",
        "encoding: 2,100 of 4,000 documents, 100 a second, 19 s left",
        "encoding: 4,000 documents, 40.00 s",
        "indexing: 5 documents, 2.2 s a document, 2 files",
    ]


def test_without_steps_only_what_takes_long_is_told() -> None:
    said: list[str] = []
    report = lines(said.append, steps=False)
    for progress in (Progress("a", 0, 2, 0.0), Progress("a", 1, 2, 20.0), Progress("a", 2, 2, 30.0)):
        report(progress)
    assert said == ["a: 1 of 2 documents, 20.0 s a document, 20 s left"]


def test_a_terminal_has_a_bar_and_a_line_for_each_finished_step(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr("rich.console.Console", lambda **options: console)
    with shown.reporting(steps=True) as report:
        report(Progress("encoding", 50, 100, 1.0))
        assert isinstance(report, shown.Bar)
        report.progress.refresh()
        report(Progress("encoding", 100, 100, 2.0))
    assert "encoding: 50 of 100 documents, 50 a second, 1 s left" in screen.getvalue()
    assert "encoding: 100 documents, 2.00 s" in screen.getvalue()


def test_where_there_is_no_terminal_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with shown.reporting(steps=True) as report:
        report(Progress("encoding", 100, 100, 2.0))
    assert capsys.readouterr() == ("", "encoding: 100 documents, 2.00 s\n")


def test_quiet_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with shown.reporting(True) as report:
        assert report is silent
    monkeypatch.setattr(flags, "quiet", True)
    with shown.reporting(steps=True) as report:
        assert report is silent
    shown.note("a line")
    assert capsys.readouterr() == ("", "")

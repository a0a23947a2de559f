"""A folder of results that somebody else filled leads nowhere else: links in it are refused before anything is written."""

from pathlib import Path

import pytest
from support.each import each

from fontes.core import InputError
from fontes.experiments.runner import LOCK, exclusive, replacing_results


@each(
    "name",
    [
        *("report.md", "report.html", LOCK, "unfinished.json", "runs", "runs/a.run", "indexes", "cache", "models"),
        *("indexes/0123456789abcdef.index", "indexes/scores.sqlite", "indexes/0.index/segment-0/.vectors-0/journal"),
        *("cache/ab", "cache/ab/0.npz", "models/encoder-0"),
    ],
)
def test_a_link_in_a_folder_of_results_is_refused(tmp_path: Path, name: str) -> None:
    folder, outside = tmp_path / "results", tmp_path / "outside"
    outside.mkdir()
    (outside / "a.run").write_text("mine")
    (folder / name).parent.mkdir(parents=True)
    if name != LOCK:
        (folder / LOCK).write_text('{"files": ["runs/a.run"]}')
    (folder / name).symlink_to(outside if "." not in name else outside / "a.run")
    with (
        pytest.raises(InputError, match=f"{name} is a link, which may lead anywhere"),
        exclusive(folder),
        replacing_results(folder, []),
    ):
        pass
    assert (outside / "a.run").read_text() == "mine"


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    with exclusive(tmp_path / "results"):
        assert not list((tmp_path / "disk").iterdir())


@each("name", ["../x.run", "runs/../../x.run", "/x.run", "runs/a/../../../x.run", "runs/\0.run", "x.run"])
def test_a_lock_that_names_files_elsewhere_removes_none(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    for file in (tmp_path / "x.run", folder / "x.run"):
        file.write_text("mine")
    (folder / LOCK).write_text('{"files": ["%s"]}' % name.replace("\0", "\\u0000"))  # noqa: UP031
    with exclusive(folder), replacing_results(folder, []):
        pass
    assert (tmp_path / "x.run").read_text() == (folder / "x.run").read_text() == "mine"

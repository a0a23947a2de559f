import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.standard_input import give_input

from fontes.core import InputError
from fontes.formats import read_qrels, read_run, read_topics, write_corpus, write_qrels, write_run, write_topics
from fontes.storage.files import reading, write

RUN = {"q1": {"d1": 2.5, "d2": 1.0}}


def test_gzip_output_is_the_same_bytes_whatever_the_file_is_called(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "a.run.gz")
    write_run(RUN, tmp_path / "other.gz")
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "other.gz").read_bytes()
    assert read_run(tmp_path / "a.run.gz").to_dict() == RUN


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "c.jsonl"
    write_corpus([("1", "old")], target)
    before = target.read_bytes()

    def broken() -> Iterator[tuple[str, str]]:
        yield "1", "new"
        raise ConnectionError("the source of the documents is gone")

    with pytest.raises(ConnectionError):
        write_corpus(broken(), target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    for name in ("a.run", "a.run.gz"):
        with pytest.raises(InputError, match="No space left"):
            write_run(RUN, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null")
def test_a_device_is_written_to_and_not_replaced() -> None:
    write_run(RUN, "/dev/null")
    assert not Path("/dev/null").is_file()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.run").write_text("")
    (tmp_path / "link.run").symlink_to("real.run")
    write_run(RUN, tmp_path / "link.run")
    assert (tmp_path / "link.run").is_symlink()
    assert read_run(tmp_path / "real.run").to_dict() == RUN


def test_a_dash_is_standard_output_and_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for writer, reader, given in (
        (write_run, lambda: read_run("-").to_dict(), RUN),
        (write_qrels, lambda: read_qrels("-").to_dict(), {"q1": {"d1": 1}}),
        (write_topics, lambda: {t.id: t.text for t in read_topics("-").values()}, {"q1": "one two"}),
    ):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written))
        writer(given, "-")  # type: ignore[operator]
        give_input(monkeypatch, written.getvalue())
        assert reader() == given


def test_blocks_end_where_lines_end(tmp_path: Path) -> None:
    lines = [b"x" * (i % 50) + b"\n" for i in range(500)] + [b"no end"]
    write(tmp_path / "a", [b"\xef\xbb\xbf", *lines])
    for size in (1, 7, 64, 10_000_000):
        with reading(tmp_path / "a") as source:
            blocks = list(source.blocks(size))
        assert b"".join(blocks) == b"".join(lines)
        assert all(block.endswith(b"\n") for block in blocks[:-1])

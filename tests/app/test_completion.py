"""Completion of values in shells."""

from pathlib import Path

import pytest

from fontes import Index
from fontes.app.command_line import command_line

DOCS = [{"id": "a", "text": "a fire", "year": 2016, "kind": "news"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Index.build(DOCS, tmp_path_factory.mktemp("completion") / "fire.index").path.parent


def completions(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: str) -> list[str]:
    """What bash offers for the last word of a line that is typed."""
    words = [*typed.partition(" '")[0].split(), ""] if "'" in typed else typed.split()
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_FONTES_COMPLETE", "complete_bash")
    with pytest.raises(SystemExit):
        command_line()(args=[], prog_name="fontes")
    return [line for line in capsys.readouterr().out.splitlines() if line]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fontes search fire.index fire --model d", ["dense"]),
        ("fontes search fire.index fire --pipeline bm", ["bm25("]),
        ("fontes search fire.index fire --pipeline 'bm25() >> rm", ["bm25() >> rm3("]),
        ("fontes search fire.index fire --pipeline 'fuse(bm25(), tf", ["fuse(bm25(), tfidf("]),
        ("fontes search fire.index fire --pipeline 'bm25() % ", []),
        ("fontes search fire.index fire --sort y", ["year"]),
        ("fontes search fire.index fire --facets year,", ["year,kind", "year,year"]),
        ("fontes search none.index fire --sort y", []),
        ("fontes serve fire.index --pipeline 'best=bm25() >> mon", ["best=bm25() >> mono_t5("]),
        ("fontes stages tf", ["tfidf"]),
        ("fontes eval q r -m nDCG@10,Suc", ["nDCG@10,Success"]),
        ("fontes index c.jsonl --analyzer port", ["porter", "portuguese"]),
    ],
)
def test_a_shell_completes_values(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: str, offered: list[str]
) -> None:
    monkeypatch.chdir(folder)
    assert completions(capsys, monkeypatch, typed) == offered

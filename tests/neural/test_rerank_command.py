"""`fontes rerank`: files and pipes in, a run out. The model is tiny and random."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support.each import each
from support.tiny_cross_encoder import pairs, save_cross_encoder
from support.tiny_t5 import WORDS, save_t5

import fontes as ft
from fontes.app import cli


class Work:
    """A folder with an index, topics, a run and a model."""

    def __init__(self, folder: Path) -> None:
        texts = [document for _, document in pairs(40)]
        self.index = ft.Index.build([(f"d{i}", text) for i, text in enumerate(texts)], folder / "index")
        self.topics = folder / "topics.jsonl"
        self.topics.write_text("".join(json.dumps({"_id": w, "text": f"{w} water"}) + "\n" for w in WORDS[1:4]))
        self.run = self.index.bm25()(ft.read_topics(self.topics))
        self.file = folder / "bm25.run"
        ft.write_run(self.run, self.file)
        self.model = save_cross_encoder(folder / "ce")
        self.output = folder / "out.run"

    def __call__(self, *options: object, run: object = None, with_: str | None = None) -> int:
        files = ["rerank", run or self.file, "--index", self.index.path, "--topics", self.topics]
        words = [*files, "--with", with_ or self.expression(), *options]
        with mock.patch.object(sys, "argv", ["fontes", *map(str, words)]), pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0)

    def expression(self, name: str = "cross_encoder", model: object = None, more: str = "") -> str:
        return f"{name}({str(model or self.model)!r}, precision='float32', device='cpu'{more})"

    def stage(self, **parameters: Any) -> ft.CrossEncoder:
        return ft.CrossEncoder(str(self.model), precision="float32", device="cpu", **parameters)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    return Work(tmp_path_factory.mktemp("rerank"))


def near(found: ft.Run, expected: ft.Run) -> None:
    assert found.rows == expected.rows
    for topic, ranking in expected.to_dict().items():
        assert found.to_dict()[topic] == pytest.approx(ranking, abs=1e-4)


def test_the_command_gives_the_run_of_the_stage(work: Work) -> None:
    assert work("-k", 7, "-o", work.output, "--tag", "ce") == 0
    near(ft.read_run(work.output), work.stage()(work.run.top(7)))
    assert work.output.read_text().splitlines()[0].endswith(" ce")


def test_any_pipeline_from_run_to_run_reranks(work: Work) -> None:
    reranker = work.expression(more=", score='sigmoid', max_length=30, batch_size=5")
    assert work("-k", 5, "-o", work.output, with_=f"passages(words=20) >> interpolate({reranker}, 0.6) >> to_documents()") == 0
    pipeline = ft.Passages(words=20) >> work.stage(score="sigmoid", max_length=30).interpolate(0.6) >> ft.to_documents()
    near(ft.read_run(work.output), pipeline(work.run.top(5)))


def test_it_stands_in_a_pipe(work: Work, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    piped = io.TextIOWrapper(io.BytesIO(work.file.read_bytes()))
    monkeypatch.setattr(sys, "stdin", piped)
    assert work("-k", 3, run="-") == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert len(lines) == work.run.top(3).rows
    assert all(line.endswith(" fontes") for line in lines)


def test_monot5_is_chosen_by_its_name(work: Work, tmp_path: Path) -> None:
    folder = save_t5(tmp_path)
    assert work("-k", 2, "-o", work.output, with_=work.expression("mono_t5", folder)) == 0
    near(ft.read_run(work.output), ft.MonoT5(str(folder), precision="float32", device="cpu")(work.run.top(2)))


@each(
    ("expression", "message"),
    [
        ("mono_t6('m')", "there is no stage 'mono_t6'; did you mean 'mono_t5'?"),
        ("mono_t5('m', score='sigmoid')", "mono_t5 has no parameter 'score'"),
        ("bm25()", "bm25 takes Topics and gives Run; fontes rerank needs a stage from Run to Run"),
        ("cross_encoder('/no/such/folder', score='raw')", "score is one of logit, sigmoid"),
        ("cross_encoder('/no/such/folder')", "there is no cross-encoder at '/no/such/folder'"),
    ],
)
def test_errors_are_one_line(work: Work, expression: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert work(with_=expression) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_run_and_topics_cannot_both_be_standard_input(work: Work) -> None:
    assert work("--topics", "-", run="-") == 2


def test_a_topic_of_the_run_without_text_is_named(work: Work, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.run").write_text("elsewhere Q0 d1 1 2.5 x\n")
    assert work(run=tmp_path / "other.run") == 1
    assert "topic 'elsewhere' has documents to rerank but no text" in capsys.readouterr().err

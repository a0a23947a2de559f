"""Experiments with language models are locked, replayed and shared; `fontes llm` counts and packs answers."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.model_server import KEY, Answer, model_server

import fontes as ft
from fontes.core.answers import sums_of

from .conftest import Serve

Fontes = Callable[..., tuple[int, str, str]]

EXPERIMENT = """
[collection]
corpus = "corpus.jsonl"
topics = "queries.jsonl"
qrels = "qrels.tsv"

[systems]
bm25 = "bm25()"
listwise = 'bm25() >> llm_listwise("m", window=4, step=2)'
fused = 'fuse(bm25(), query2doc("m") >> bm25())'

[report]
measures = ["RR"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = [{"_id": f"d{n}", "title": "", "text": f"rain of day {n} in may"} for n in range(6)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, docs)))
    (tmp_path / "queries.jsonl").write_text("\n".join(json.dumps({"_id": str(n), "text": f"rain day {n}"}) for n in range(3)))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(f"{n}\td{n + 1}\t1" for n in range(3)))
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    return tmp_path


def answer(request: dict[str, Any], before: int) -> Answer:
    return Answer("[2] > [1]" if len(request["messages"]) > 1 else "a shower in may", usage=(100, 7))


def test_an_experiment_is_locked_replayed_and_shared(
    serve: Serve, folder: Path, fontes: Fontes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(answer)
    assert fontes("experiment", folder / "e.toml", "--quiet")[0] == 0
    asked = len(server.requests)
    assert asked == 3 * 2 + 3
    lock = json.loads((folder / "e.results/experiment.lock").read_text())
    assert set(lock["answers"]) == {"listwise", "fused"}
    assert lock["systems"]["listwise"]["answers"]["number"] == len(lock["answers"]["listwise"]) == 6
    assert lock["models"]["listwise"] == ["openai m"]
    assert "answers" not in lock["systems"]["bm25"]
    assert "127.0.0.1" not in json.dumps(lock)

    code, out, _ = fontes("experiment", folder / "e.toml", "--check", "--quiet")
    assert (code, "is reproduced" in out) == (0, True)
    pack = folder / "answers.jsonl.gz"
    assert fontes("llm", "export", folder / "e.results", pack)[:2] == (0, f"9 answers in {pack}\n")
    assert json.loads(fontes("llm", "usage", "--json")[1])[0].items() >= {"answers": 9, "prompt_tokens": 900}.items()
    assert fontes("llm", "usage", folder / "e.results")[1].startswith("openai m: 9 answers, 900 + 63 tokens, 20")

    monkeypatch.setenv("FONTES_CACHE", str(folder / "another cache"))
    code, _, err = fontes("experiment", folder / "e.toml", "--check", "--quiet")
    assert (code, "are not stored, and a replay asks no model" in err) == (1, True)
    code, _, err = fontes("llm", "export", folder / "e.results", pack)
    assert (code, "9 answers of it are not stored here" in err) == (1, True)
    assert fontes("llm", "import", pack)[1] == f"9 answers in {pack}, 9 new\n"
    assert json.loads(fontes("llm", "import", pack, "--json")[1]) == {"pack": str(pack), "answers": 9, "new": 0}
    assert json.loads(fontes("llm", "export", folder / "e.results", pack, "--json")[1]) == {"pack": str(pack), "answers": 9}
    assert fontes("experiment", folder / "e.toml", "--check", "--quiet")[0] == 0
    shutil.rmtree(folder / "e.results")
    assert fontes("--replay", "experiment", folder / "e.toml", "--quiet")[0] == 0
    assert json.loads((folder / "e.results/experiment.lock").read_text())["answers"] == lock["answers"]
    assert len(server.requests) == asked


@pytest.mark.slow
def test_an_answer_that_changed_is_a_difference_of_the_check(serve: Serve, folder: Path, fontes: Fontes) -> None:
    serve(answer)
    assert fontes("experiment", folder / "e.toml", "--quiet")[0] == 0
    file = ft.llm.AnswerFile()
    file.write(one.model_copy(update={"text": "day 3"}) for one in list(file.all()) if len(one.messages) == 1)
    code, out, _ = fontes("experiment", folder / "e.toml", "--check", "--quiet")
    assert code == 1
    assert "system, fused, run" in out


def test_rewritten_topics_and_runs_with_metadata_name_their_answers(serve: Serve, folder: Path, fontes: Fontes) -> None:
    pytest.importorskip("yaml")
    serve(answer)
    fontes("index", folder / "corpus.jsonl", "-o", folder / "i", "--quiet")
    topics, run, pack = folder / "rewritten.jsonl", folder / "run.txt", folder / "pack.jsonl"
    assert fontes("rewrite", folder / "queries.jsonl", "--with", 'query2doc("m")', "-o", topics, "--quiet")[0] == 0
    assert fontes("llm", "export", topics, pack)[1].startswith("3 answers")
    command = ["search", folder / "i", "--topics", folder / "queries.jsonl", "--pipeline", 'bm25() >> llm_listwise("m")']
    assert fontes(*command, "--ir-metadata", "-o", run, "--quiet")[0] == 0
    assert fontes("llm", "export", run, pack)[1].startswith("3 answers")
    assert fontes(*command, "-o", run, "--quiet")[0] == 0
    code, _, err = fontes("llm", "export", run, pack)
    assert (code, "it names no llm answers; give results or lock of an experiment" in err) == (1, True)


def test_a_budget_on_the_command_line_ends_in_one_sentence(serve: Serve, folder: Path, fontes: Fontes) -> None:
    server = serve(answer)
    code, _, err = fontes("experiment", "--token-budget", "20000", folder / "e.toml", "--quiet")
    assert code == 0
    shutil.rmtree(folder / "cache")
    shutil.rmtree(folder / "e.results")
    before = len(server.requests)
    code, _, err = fontes("experiment", folder / "e.toml", "--token-budget=100", "--quiet")
    assert (code, len(server.requests)) == (1, before)
    assert err.startswith("fontes: the budget of 100 tokens leaves 100, and a call may take ")
    assert fontes("experiment", folder / "e.toml", "--token-budget", "none")[0] == 2


@pytest.mark.parametrize("metadata", [{"llm": "x"}, {"llm": [5, {"sums": 3}]}, {"llm": [{"models": [], "sums": []}]}])
def test_topics_with_other_metadata_of_this_name_are_searched(metadata: dict[str, Any], tmp_path: Path) -> None:
    index = ft.Index.build([("a", "rain")], tmp_path / "i")
    run = index.bm25()([ft.Topic("1", "rain", metadata=metadata)])
    assert "llm" not in run.provenance
    assert sums_of(
        {"llm": "x", "parts": [{"llm": {"models": ["m"], "sums": ["b"]}}, {"llm": {"models": [], "sums": ["a", "b"]}}]}
    ) == ["a", "b"]


@pytest.mark.parametrize("installed", [True, False])
def test_without_the_package_kept_answers_are_replayed(
    serve: Serve, folder: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    serve(answer)
    index = ft.Index.build([("a", "rain"), ("b", "rain")], folder / "i")
    pipeline = ft.pipeline('bm25() >> llm_listwise("m")', index)
    pipeline({"1": "rain"})
    if not installed:
        monkeypatch.setattr("fontes.llm.model.find_spec", lambda name: None)
        with pytest.raises(
            ft.core.MissingExtraError, match=r"needs openai, which is not installed: pip install 'fontes\[llm\]'"
        ):
            ft.pipeline('bm25() >> llm_listwise("n")', index)({"1": "rain"})
    with ft.work(replay=True):
        assert len(ft.pipeline('bm25() >> llm_listwise("m")', index)({"1": "rain"})["1"]) == 2


@pytest.mark.slow
def test_a_cluster_replays_and_notes_the_same(ray: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fontes.cluster import apply

    index = ft.Index.build([(f"d{n}", f"rain {n}") for n in range(6)], folder / "i")
    stage = ft.pipeline('query2doc("m") >> bm25() >> llm_listwise("m")', index)
    topics = ft.Topics.of({str(n): f"rain {n}" for n in range(5)})
    with model_server(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        here = stage(topics)
    with ft.work(replay=True):
        there = apply(stage, topics, ray)
    assert there.scores.tolist() == here.scores.tolist()
    assert sorted(there.provenance["llm"]["sums"]) == sorted(here.provenance["llm"]["sums"])
    assert there.provenance["llm"]["answers"] == here.provenance["llm"]["answers"] == 10


@pytest.mark.slow
def test_the_command_line_searches_with_models_on_a_cluster(
    ray: str, folder: Path, fontes: Fontes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fontes("index", folder / "corpus.jsonl", "-o", folder / "i", "--quiet")
    pipeline = 'query2doc("cluster") >> bm25() >> llm_listwise("cluster")'
    command = ["search", folder / "i", "--topics", folder / "queries.jsonl", "--quiet", "--pipeline"]
    with model_server(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert fontes(*command, pipeline, "-o", folder / "here.run")[0] == 0
        assert len(server.requests) > 0
    assert fontes(*command, pipeline, "--replay", "--ray", ray, "-o", folder / "there.run") == (0, "", "")
    assert (folder / "there.run").read_bytes() == (folder / "here.run").read_bytes()
    other = pipeline.replace("cluster", "other")
    code, _, err = fontes(*command, other, "--replay", "--ray", ray, "-o", folder / "no.run")
    assert (code, 'answers of llm("other") are not stored' in err) == (1, True), err
    assert not (folder / "no.run").exists()


def test_files_of_prompts_and_examples_stand_beside_the_experiment(serve: Serve, folder: Path, fontes: Fontes) -> None:
    server = serve(answer)
    (folder / "own.md").write_text("## user\n\n{examples}\n\nAbout {query}:")
    (folder / "four.jsonl").write_text('{"query": "snow", "passage": "it is white"}\n')
    system = """fused = 'query2doc("m", prompt="own.md", examples="four.jsonl") >> bm25()'"""
    (folder / "e.toml").write_text(re.sub("fused = .*", system, EXPERIMENT))
    code, _, err = fontes("experiment", folder / "e.toml", "--quiet")
    assert (code, err) == (0, "")
    assert "Query: snow\nPassage: it is white\n\nAbout rain day 0:" in {r["messages"][-1]["content"] for r in server.requests}

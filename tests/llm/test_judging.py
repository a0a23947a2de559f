"""Language models as judges: grades with reasons, by UMBRELA's prompt or one's own."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes.app.judging.judging import agreement, judge_name, judge_pool, judgments_of
from fontes.app.judging.store import JudgmentStore
from fontes.llm import LlmJudge, Prompt, StoredAnswer
from fontes.llm.judging import label_of

from .conftest import Serve

Fontes = Callable[..., tuple[int, str, str]]
WORTH = re.compile(r"Passage: rain worth (\d)")


def graded(request: dict[str, Any], before: int) -> str:
    worth = int(WORTH.findall(request["messages"][0]["content"])[0])
    return "I cannot say." if worth > 3 else f"It is about rain.\n\n##final score: {worth}"


@pytest.fixture
def index(tmp_path: Path) -> ft.Index:
    return ft.Index.build([(f"d{n}", f"rain worth {n}") for n in range(5)], tmp_path / "i")


def test_a_grade_is_read_with_its_reason_or_there_is_none() -> None:
    for text, grade, reason in [
        ("##final score: 2", 2, ""),
        ("It answers.\n##final score: 3", 3, "It answers."),
        ("M 1, T 2. **Final score (O): 0**", 0, "M 1, T 2. **"),
        ("2", 2, "2"),
        ("The score is 1.", 1, "The score is 1."),
        ("Either 1 or 2", None, ""),
        ("##final score: 7", None, ""),
        ("##final score: 23", None, ""),
        ("", None, ""),
        ("<think>##final score: 3</think>##final score: 1", 1, ""),
        ("##final score: 2.0", 2, ""),
        ("##final score: <2>.", 2, ""),
        ("##final score - 2\n3. One reason", 2, ""),
        *((text, None, "") for text in ("final score: -1", "##final score: −1", "##final score: 3.5", "##final score: .3")),
        *(
            (text, None, "")
            for text in ("##final score: 1,5", "##final score: 2/3", "##final score: 2 ⁄ 3", "final score/3: 2")
        ),
        *(
            (text, None, "")
            for text in ("##final score: 1-2", "final score (0-3): 2", "##final score: 1 or 2", "##final score: 2½")
        ),
        *((text, None, "") for text in ("##final score: ٢", "##final score: 2³", "##final score: 1e-3", "##final score: 20%")),
        *((text, None, "") for text in ("The score is -1.", "It is 2 / 3.", "From 2 - 3.", "1,5", "final score: -1; no, 1")),
    ]:
        answer = StoredAnswer(service="s", model="m", parameters={}, sample=0, messages=(("user", "x"),), text=text)
        assert label_of(answer)[:2] == (grade, reason)


def test_the_published_prompt_asks_for_no_reason_and_the_other_one_does() -> None:
    texts = [Prompt.of(name, "passage", "query").messages(["P"], query="Q")[0][1] for name in ("umbrela", "umbrela_reasons")]
    assert texts[0].splitlines()[:-1] == texts[1].splitlines()[:-1]
    assert "without providing any reasoning" in texts[0]
    assert "\n\nQuery: Q\nPassage: P\n\n" in texts[0]
    assert texts[1].endswith("##final score: score")


def test_labels_of_a_run_are_judgments(serve: Serve, index: ft.Index) -> None:
    serve(graded)
    qrels = LlmJudge("m").judge(index.bm25()({"1": "rain"}), k=5)
    assert dict(qrels["1"]) == {"d0": 0, "d1": 1, "d2": 2, "d3": 3}
    assert ft.evaluate(index.bm25()({"1": "rain"}), qrels, ["nDCG@5"])["nDCG@5"] > 0


def test_a_model_is_one_more_judge_and_asks_for_new_documents_alone(serve: Serve, index: ft.Index, tmp_path: Path) -> None:
    server = serve(graded)
    judge = LlmJudge("owner/model: new")
    assert judge_name(judge) == "llm owner-model- new"
    with JudgmentStore(tmp_path / "j.sqlite") as store:
        store.add_topics(ft.Topics.of({"1": "rain", "2": "worth"}))
        store.add_pools({"1": [f"d{n}" for n in range(5)], "2": ["d1", "gone"]}, "", "run", 5)
        assert judge_pool(store, index, judge) == (5, 1)
        assert judge_pool(store, index, judge) == (0, 1)
        assert len(server.requests) == 6
        name = judge_name(judge)
        assert dict(judgments_of(store, name)["1"]) == {"d0": 0, "d1": 1, "d2": 2, "d3": 3}
        assert store.notes()[name, "1", "d2"] == "It is about rain."
        store.add_judge("anna")
        for doc, grade in (("d0", 0), ("d1", 2)):
            store.judge("anna", "1", doc, grade)
        (pair,) = agreement(store)
        assert (pair["judges"], pair["documents"], pair["topics"]) == ([name, "anna"], 2, {"1": [2, 1]})


def test_the_command_judges_and_exports(serve: Serve, index: ft.Index, tmp_path: Path, fontes: Fontes) -> None:
    pytest.importorskip("fastapi")
    server = serve(graded)
    topics, own, file, folder = (tmp_path / name for name in ("t.tsv", "own.md", "j.sqlite", "judged"))
    topics.write_text("1\train\n")
    command = ["judge", index.path, "--topics", topics, "--judgments", file, "--llm", "m", "--export", folder]
    code, out, _ = fontes(*command, "--quiet")
    assert code == 0
    assert out.splitlines()[0] == "llm m: 4 new judgments; 1 answer without a grade"
    assert "1 0 d3 3" in (folder / "llm m.qrels").read_text()
    own.write_text("## user\n\nPassage: {passage}\n\nOf use for {query}? 0 to 3.")
    code, out, _ = fontes(*command[:-4], "--llm", "n", "--guidelines", own, "--export", folder, "--quiet")
    assert out.splitlines()[0].startswith("llm n: 4 new judgments")
    assert server.requests[-1]["messages"][0]["content"].endswith("Of use for rain? 0 to 3.")
    code, _, err = fontes("judge", index.path, "--judgments", tmp_path / "new.sqlite", "--llm", "m", "--export", folder)
    assert (code, "new.sqlite has no topics to judge; add them: --topics FILE" in err) == (1, True)
    code, _, err = fontes("judge", index.path, "--guidelines", own)
    assert (code, "--guidelines is of the model that judges: add --llm MODEL" in err) == (1, True)


def test_the_last_score_counts_with_the_text_before_it() -> None:
    text = "At first ##final score: 1, but it answers.\n##final score: 3"
    answer = StoredAnswer(service="s", model="m", parameters={}, sample=0, messages=(("user", "x"),), text=text)
    assert label_of(answer)[:2] == (3, "At first ##final score: 1, but it answers.")


def test_the_best_documents_alone_are_judged(serve: Serve, index: ft.Index) -> None:
    server = serve(graded)
    run = index.bm25()({"1": "rain"})
    assert set(LlmJudge("m").judge(run, k=2)["1"]) | {"d4"} == {*run["1"].ids[:2], "d4"}
    assert len(server.requests) == 2

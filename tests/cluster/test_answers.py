"""Language models on a cluster: one budget of tokens, and answers that are kept where the work was begun."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.model_server import KEY, Answer, ModelServer, model_server
from support.ray_answers import Query2DocThere, exchanged

import fontes as ft
from fontes.cluster.answers import AnswerActor, AnswerStore
from fontes.core.work import Resources
from fontes.llm import AnswerFile, StoredAnswer


@pytest.mark.parametrize(("restarted", "left"), [(False, 75), (True, 0)])
def test_a_process_that_was_lost_gets_no_second_share_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, restarted: bool, left: int
) -> None:
    context = SimpleNamespace(was_current_actor_reconstructed=restarted, get_node_id=lambda: "n")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get_runtime_context=lambda: context))
    settings = AnswerStore(None, "n").used_by(Resources(), 75)
    assert settings.budget is not None
    assert settings.budget.left() == left


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server(lambda request, before: Answer("a shower", usage=(30, 7))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


def test_a_cluster_stops_before_it_passes_the_budget(ray: str, server: ModelServer, tmp_path: Path) -> None:
    from fontes.cluster import apply

    index = ft.Index.build([(f"d{n}", f"rain {n}") for n in range(6)], tmp_path / "i")
    variables = {"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": KEY, "FONTES_CACHE": str(tmp_path / "cache")}
    topics = ft.Topics.of({str(n): f"rain {n}" for n in range(12)})
    stage = Query2DocThere(ft.llm.Model("m"), variables=variables, max_tokens=16) >> index.bm25()
    with ft.work(tokens=300, ray=ray) as settings:
        with pytest.raises(ft.FontesError, match=r"the budget of \d+ tokens leaves \d+, and a call may take "):
            apply(stage, topics)
        assert settings.budget is not None
        assert 0 < settings.budget.spent <= 300
        assert settings.budget.spent == 37 * len(server.requests)
        asked = len(server.requests)
    with ft.work(tokens=5000, ray=ray) as settings:
        run = apply(stage, topics)
        assert settings.budget is not None
        assert settings.budget.spent == 37 * (len(server.requests) - asked)
    assert len(server.requests) == 12
    assert run.provenance["llm"]["answers"] == 12


def test_answers_go_to_the_machine_where_the_work_was_begun(ray: str, tmp_path: Path, monkeypatch: Any) -> None:
    import ray as library

    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "here"))
    here, there = (
        StoredAnswer(service="s", model="m", parameters={}, sample=n, messages=(("user", "x"),), text=text)
        for n, text in enumerate(("of the driver", "of the node"))
    )
    AnswerFile().write([here])
    actor = library.remote(num_cpus=0)(AnswerActor).remote(tmp_path / "here")
    elsewhere = {"env_vars": {"FONTES_CACHE": str(tmp_path / "there")}}
    task = library.remote(num_cpus=0, runtime_env=elsewhere)(exchanged)
    assert library.get(task.remote(actor, here.digest, there)) == (False, ["of the driver", "of the driver"])
    assert AnswerFile().read([there.digest])[there.digest].text == "of the node"
    assert (tmp_path / "there" / "answers.sqlite").exists()
    library.kill(actor)

"""Rewrites of QuReTeC, replayed as if a language model had given them."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import importlib
from pathlib import Path

import pytest
from support.term_classifier import NOUNS, TOPICS, base, model, trained

import fontes as ft
from fontes.rewrite import QuReTeC


@pytest.mark.slow
def test_rewrites_of_quretec_replayed_give_its_run(model: QuReTeC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    direct = model(TOPICS)
    again = importlib.import_module("replay").replayed(TOPICS, direct, tmp_path, "quretec")
    assert [topic.text for topic in again.values()] == [topic.text for topic in direct.values()]
    assert sum(topic.text != TOPICS[topic.id].text for topic in again.values()) > len(NOUNS)
    bm25 = ft.Index.build([(noun, f"The {noun} is old") for noun in NOUNS], tmp_path / "i").bm25()
    one, other = bm25(direct), bm25(again)
    assert (one.bounds.tolist(), one.scores.tolist()) == (other.bounds.tolist(), other.scores.tolist())
    assert other.provenance["llm"]["models"] == ["openai quretec"]
    assert other.provenance["llm"]["answers"] == len(TOPICS)

"""Rerankers as stages: what they read, in which order, and how their scores mix with those of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fontes as ft
from fontes.core.work import Progress, reporter
from fontes.neural.rerank.crossencoder import sigmoid
from fontes.rerank import reranker


@dataclass(frozen=True)
class Overlap(ft.neural.Reranker):
    """The words of the query in the document, and a little for its length; notes which pairs it was asked for."""

    version: str = "1"
    asked: list[tuple[str, str]] = field(default_factory=list, repr=False, compare=False)

    @property
    def fingerprint(self) -> str:
        return f"overlap {self.version}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        report = reporter()
        self.asked.extend(pairs)
        report(Progress("scoring", len(pairs), len(pairs), 1.0, "pairs"))
        found = [len({*query.split()} & {*document.split()}) + len(document) / 1000 for query, document in pairs]
        return np.array(found, dtype=np.float32)


class Texts:
    """Documents in memory."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts

    def docs(self, ids: Any) -> list[ft.Doc]:
        return [ft.Doc(i, self.texts[i], title="On" if i == "a" else "") for i in ids]


TOPICS = ft.Topics.of({"q1": "hot water", "q2": "rain", "q3": "nothing"})
RUN = ft.Run.of({"q1": {"a": 5.0, "b": 4.0, "c": 1.0}, "q2": {"b": 2.0}, "q3": {}}, TOPICS).with_(
    documents=Texts(a="cold stone", b="hot hot rain", c="hot water falls")
)


def test_every_document_gets_a_new_score_and_the_run_a_new_order() -> None:
    found = Overlap()(RUN)
    assert found["q1"].ids == ["c", "b", "a"]
    assert found["q1"].scores == pytest.approx([2.015, 1.012, 0.013])
    assert found["q2"].scores == pytest.approx([1.012])
    assert len(found["q3"]) == 0
    assert found.documents is RUN.documents
    assert found.topics is RUN.topics


def test_the_model_reads_the_topics_text_and_title_and_text_of_the_document() -> None:
    reranker = Overlap()
    rewritten = [ft.Topic(t.id, f"{t.text} cold", origin=t) for t in TOPICS.values()]
    reranker(RUN.with_(topics=ft.Topics(rewritten)).top(1))
    assert reranker.asked == [("hot water cold", "On cold stone"), ("rain cold", "hot hot rain")]


def test_a_cut_before_reranking_decides_how_many_are_read(tmp_path: Path) -> None:
    index = ft.Index.build([(f"d{i}", f"spring {'water ' * i}") for i in range(9)], tmp_path / "i")
    reranker = Overlap()
    pipeline = index.bm25() % 4 >> reranker % 2
    assert len(pipeline("spring")["1"]) == 2
    assert len(reranker.asked) == 4


def test_an_empty_run_stays_empty() -> None:
    run = ft.Run.of({"q": {}}).with_(documents=Texts())
    assert Overlap()(run) == run
    assert Overlap().interpolate(0.5)(run) == run


def test_interpolation_mixes_scores_brought_to_0_to_1_for_each_topic() -> None:
    found = Overlap().interpolate(0.7)(RUN)
    new = {"a": 0.0, "b": (1.012 - 0.013) / (2.015 - 0.013), "c": 1.0}
    old = {"a": 1.0, "b": 0.75, "c": 0.0}
    assert found.to_dict()["q1"] == pytest.approx({d: 0.7 * new[d] + 0.3 * old[d] for d in new}, abs=1e-6)
    assert found.to_dict()["q2"] == {"b": 1.0}


def test_a_weight_of_one_keeps_the_rerankers_order_and_of_zero_the_runs() -> None:
    reranker = Overlap()
    assert reranker.interpolate(1)(RUN)["q1"].ids == reranker(RUN)["q1"].ids
    assert reranker.interpolate(0)(RUN)["q1"].ids == RUN["q1"].ids


def test_many_topics_are_reranked_in_groups_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = ft.Topics.of({f"t{i}": f"w{i} rain" for i in range(23)})
    scores = {t: {d: float(i) for i, d in enumerate("abc"[: n % 4])} for n, t in enumerate(topics)}
    run = ft.Run.of(scores, topics).with_(documents=RUN.documents)
    whole = Overlap()(run)
    monkeypatch.setattr(reranker, "GROUP_SIZE", 5)
    assert Overlap()(run) == whole
    for stage in (Overlap(), Overlap().interpolate(0.5)):
        seen: list[Progress] = []
        stage(run, progress=seen.append)
        assert len(seen) > 5
        assert [p.done for p in seen] == sorted(p.done for p in seen)
        assert (seen[-1].task, seen[-1].unit) == ("reranking", "pairs")
        assert (seen[-1].done, seen[-1].total, seen[-1].fraction) == (run.rows, run.rows, 1.0)


def test_passages_are_reranked_and_joined_again() -> None:
    pipeline = ft.Passages(words=1, stride=1) >> Overlap() >> ft.to_documents("max")
    found = pipeline(RUN)
    assert found["q1"].ids == ["c", "b", "a"]
    assert found["q1"].scores == pytest.approx([1.005, 1.003, 0.008])


def test_the_provenance_says_which_model_scored_how_many_pairs() -> None:
    facts = Overlap()(RUN).provenance["reranked"]
    assert facts == {"fingerprint": "overlap 1", "pairs": 4, "from_cache": 0, "precision": "float32"}
    assert Overlap().interpolate(0.5)(RUN).provenance["reranked"]["weight"] == 0.5


def test_kept_scores_are_not_computed_again(tmp_path: Path) -> None:
    first = Overlap(cache=tmp_path / "scores.sqlite")
    expected = first(RUN)
    second = Overlap(cache=tmp_path / "scores.sqlite")
    assert second(RUN) == expected
    assert second.asked == []
    assert second(RUN).provenance["reranked"]["from_cache"] == 4
    other = ft.Run.of({"x": {"c": 1.0, "a": 2.0}}, ft.Topics.of({"x": "hot water"})).with_(
        documents=Texts(a="new", c="hot water falls")
    )
    second(other)
    assert second.asked == [("hot water", "On new")]


def test_another_model_computes_its_own_scores(tmp_path: Path) -> None:
    Overlap(cache=tmp_path / "s")(RUN)
    other = Overlap("2", cache=tmp_path / "s")
    other(RUN)
    assert len(other.asked) == 4


def test_nothing_is_kept_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "fontes"))
    Overlap()(RUN)
    assert not list(tmp_path.rglob("*"))
    Overlap(cache=True)(RUN)
    assert (tmp_path / "fontes" / "scores.sqlite").is_file()


def test_sigmoid_is_monotone_and_stays_in_0_to_1() -> None:
    found = sigmoid(np.array([-1000, -5, 0, 5, 1000], dtype=np.float32))
    assert found.tolist() == pytest.approx([0, 0.0066928509, 0.5, 0.9933071491, 1])

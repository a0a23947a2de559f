"""Fusion of stages: a stage like any other, that can be cut, copied, printed, joined and explained."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.each import each

from fontes import Index, Run, Stage, Topic, Topics, fuse
from fontes.core.expression import part, pipeline
from fontes.core.parameters import parameters as parameters_of
from fontes.core.work import Progress, reporter
from fontes.fusion import Fusion
from fontes.fusion.fusing import METHODS, FusionMethod

DOCS = [
    {"_id": "d1", "title": "Springs", "text": "Water comes up from springs in the hills."},
    {"_id": "d2", "title": "Wells", "text": "A well gives water, and a deep well gives cold water."},
    {"_id": "d3", "title": "Hot water", "text": "Hot springs are heated by the rock below."},
    {"_id": "d4", "title": "Rivers", "text": "Rivers carry the rain to the sea."},
]
QUERY = "hot water springs"
SUMS = ("rrf", "isr", "borda", "wsum", "combsum", "combmnz")


@dataclass(frozen=True)
class Fixed(Stage[Topics, Run]):
    """Gives each topic the same documents, as a dense retriever that knows nothing of the index."""

    scores: tuple[tuple[str, float], ...]

    def apply(self, topics: Topics, /) -> Run:
        return Run.of({topic: dict(self.scores) for topic in topics}, topics)


@dataclass(frozen=True)
class Reversed(Stage[Run, Run]):
    """A reranker that turns rankings over."""

    times: float = -1.0

    def apply(self, run: Run, /) -> Run:
        turned = {t: {hit.id: hit.score * self.times for hit in ranking} for t, ranking in run.items()}
        return Run.of(turned, run.topics)


@dataclass(frozen=True)
class Rewritten(Stage[Topics, Topics]):
    """Leaves topics as they are."""

    def apply(self, topics: Topics, /) -> Topics:
        return topics


@dataclass(frozen=True)
class Telling(Stage[Topics, Run]):
    """Finds nothing, and says that it is done."""

    task: str

    def apply(self, topics: Topics, /) -> Run:
        reporter()(Progress(self.task, 1, 1, 0.0))
        return Run.of({}, topics)


DENSE = Fixed((("d3", 0.9), ("d4", 0.8), ("d2", 0.1)))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("fusion") / "springs.index")


def test_a_hybrid_of_stages_gives_what_fusing_their_runs_gives(index: Index) -> None:
    hybrid = fuse(index.bm25() % 1000, DENSE % 1000)
    assert isinstance(hybrid, Fusion)
    run = hybrid({"1": QUERY, "2": "rain"})
    assert run == fuse((index.bm25() % 1000)({"1": QUERY, "2": "rain"}), DENSE({"1": QUERY, "2": "rain"}))
    assert run["1"].docs()[0].id == "d3"
    assert run.provenance["system"] == repr(hybrid)


def test_a_fusion_is_cut_searched_and_joined_like_any_stage(index: Index) -> None:
    hybrid = fuse(index.bm25(), DENSE)
    assert [len(ranking) for ranking in (hybrid % 2)(QUERY).values()] == [2]
    assert hybrid.search(QUERY, k=1).ids == ["d3"]
    assert hybrid.search(QUERY).ids == (hybrid >> Reversed(1.0)).search(QUERY).ids
    assert (0.5 * hybrid + index.bm25()).search(QUERY).ids[0] == "d3"
    assert fuse(hybrid, index.tfidf()).search(QUERY).ids[0] == "d3"


def test_stages_that_take_runs_are_fused_too(index: Index) -> None:
    rerank = fuse(Reversed(), Reversed(2.0), method="combsum", normalize=None)
    run = (index.bm25() >> rerank)(QUERY)
    assert run.to_dict()["1"] == pytest.approx({h.id: h.score for h in index.bm25().search(QUERY)}, rel=1e-6)


def test_parameters_change_by_with(index: Index) -> None:
    hybrid = fuse(index.bm25(), DENSE, method="wsum")
    tilted = hybrid.with_(weights=[0.0, 1.0])
    assert tilted.search(QUERY).ids[:2] == ["d3", "d4"]
    assert hybrid.weights is None
    assert hybrid.with_(method="rrf", k=10).search(QUERY)[0].score == pytest.approx(1 / 11 + 1 / 11)
    assert set(hybrid.params()) == {"stages", "method", "normalize", "weights", "k", "missing"}


def test_a_fusion_prints_its_method_and_the_parameters_that_are_not_the_defaults(index: Index) -> None:
    a, b = index.bm25(), index.tfidf() % 50
    assert repr(fuse(a, b)) == 'fuse(bm25(k1=0.9, b=0.4), tfidf() % 50, method="rrf")'
    assert repr(fuse(a, b, method="wsum", normalize=None, weights=[0.3, 0.7], missing="min")) == (
        'fuse(bm25(k1=0.9, b=0.4), tfidf() % 50, method="wsum", normalize=None, weights=(0.3, 0.7), missing="min")'
    )


@each(
    "parameters",
    [
        {},
        {"k": 10},
        {"method": "combmnz", "normalize": "z", "missing": "min"},
        {"method": "wsum", "normalize": None, "weights": (1, 0.5)},
        {"method": "combmax", "missing": -1.5},
    ],
)
def test_the_text_of_a_fusion_makes_an_equal_one(index: Index, parameters: dict[str, Any]) -> None:
    fusion = fuse(index.bm25(), 2 * index.tfidf() % 50, **parameters)
    assert pipeline(repr(fusion), index) == fusion
    assert pipeline(repr(fusion), index)(QUERY) == fusion(QUERY)


def test_a_text_fuses_runs_that_it_is_given_by_name(index: Index) -> None:
    one, two = index.bm25()(QUERY), DENSE(QUERY)
    fused = part('fuse(one, two, method="combsum", normalize="sum")', index, systems={"one": one, "two": two})
    assert fused == fuse(one, two, method="combsum", normalize="sum")


def test_the_stages_of_a_fusion_tell_how_far_they_are() -> None:
    told: list[Progress] = []
    fuse(Telling("first"), Telling("second"))(QUERY, progress=told.append)
    assert [progress.task for progress in told] == ["first", "second"]


def test_the_method_of_a_fusion_may_be_written_in_capitals() -> None:
    assert fuse({"1": {"a": 1.0}}, {"1": {"a": 1.0}}, method="RRF")["1"].ids == ["a"]


@each("method", [*SUMS, "combmax", "combmin"])
@each("missing", [None, "min", 0.5])
def test_an_explanation_comes_to_the_score_in_the_run(index: Index, method: str, missing: float | str | None) -> None:
    weights = (0.25, 2.0) if method in ("rrf", "isr", "borda", "wsum") else None
    hybrid = fuse(index.bm25(), DENSE, method=method, weights=weights, missing=missing)
    run = hybrid(QUERY)["1"]
    assert {hit.id for hit in run} == {"d1", "d2", "d3", "d4"}
    for hit in run:
        explanation = hybrid.explain(QUERY, hit.id)
        assert explanation.value == hit.score
        parts = [part.value for part in explanation.parts]
        if method in ("combmax", "combmin"):
            assert (max if method == "combmax" else min)(parts) == pytest.approx(hit.score)
        else:
            lists = sum("not among" not in str(part).split("\n")[-1] for part in explanation.parts)
            assert sum(parts) * (lists if method in ("isr", "combmnz") else 1) == pytest.approx(hit.score, rel=1e-6)


def test_an_explanation_says_where_the_parts_come_from(index: Index) -> None:
    text = str(fuse(index.bm25(), DENSE).explain(QUERY, "d3"))
    assert "rrf: sum of the parts" in text
    assert "1 / (60 + 1): rank 1 in bm25(k1=0.9, b=0.4)" in text
    assert "'hot'" in text  # what BM25 itself says
    assert "rank 1 in Fixed" in text


def test_a_document_that_no_stage_returns_is_explained_as_such(index: Index) -> None:
    explanation = fuse(DENSE, index.bm25()).explain("hills", "d9")
    assert (explanation.value, explanation.label, explanation.parts) == (0.0, "no stage returns 'd9'", ())


def test_an_explanation_of_a_topic_is_about_its_weights_as_the_run_is(index: Index) -> None:
    hybrid = fuse(index.bm25(), DENSE, method="combsum", normalize=None)
    topic = Topic("7", "rain", weights={"water": 2.0, "hill": 1.0})
    assert [hit.score for hit in hybrid(topic)["7"]] != [hit.score for hit in hybrid("rain")["1"]]
    for hit in hybrid(topic)["7"]:
        assert hybrid.explain(topic, hit.id).value == hit.score


def test_a_fusion_knows_what_values_of_its_parameters_to_try() -> None:
    known = parameters_of(Fusion)
    assert known["k"].range == (10, 100, 10)
    assert known["normalize"].range == ["min-max", "max", "sum", "z", "rank"]


def test_fusions_and_their_formulas_cannot_be_changed_in_place() -> None:
    for value in (fuse(DENSE, DENSE), FusionMethod(), METHODS["rrf"]):
        for field in dataclasses.fields(value):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, field.name, getattr(value, field.name))


def test_a_fusion_is_kept_by_content_like_its_stages(index: Index, tmp_path: Path) -> None:
    one, two = (fuse(index.bm25(), index.tfidf(), weights=[w, 1]).key() for w in (1, 2))
    assert one is not None
    assert one != two

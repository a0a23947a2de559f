"""`fit`: candidates within a budget, chosen without the topics that measure the choice; and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.hashed_encoder import Hashed

import fontes as ft
from fontes.core import InputError, ParameterError
from fontes.core.expression import part
from fontes.tuning import Fitted, fit, fitting
from fontes.tuning.fitting import peak_memory

POSTS = "sample:harbour/posts"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build("sample:harbour", tmp_path_factory.mktemp("fit") / "harbour.index", separate=True)


@pytest.fixture(scope="module")
def judged() -> tuple[ft.Topics, ft.Qrels]:
    collection = ft.dataset(POSTS.removeprefix("sample:"))
    return collection.topics(), collection.qrels()


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """Mean and seconds of candidates by the beginning of their text, in place of measuring them; noise of .1 in the values."""
    of: dict[str, tuple[float, float]] = {"": (0.3, 0.001)}

    def known(text: str) -> tuple[float, float]:
        return of[max((start for start in of if text.startswith(start)), key=len)]

    def measured(self: fitting.CandidatePool, text: str, place: int) -> np.ndarray:
        rows = self._parts[place]
        noise = np.random.default_rng([len(text), place]).normal(0, 0.1, len(rows))
        return known(text)[0] + noise - noise.mean()

    monkeypatch.setattr(fitting.CandidatePool, "_measure_part", measured)
    monkeypatch.setattr(fitting, "peak_memory", lambda path, text, texts: 1e6 * len(text))
    monkeypatch.setattr(fitting, "timed", lambda stage, *_: known(str(stage).replace('"', "'"))[1])
    return of


def test_each_held_out_value_is_of_the_pipeline_chosen_without_it(index, judged, monkeypatch):
    monkeypatch.setattr(fitting, "peak_memory", lambda *_: 1e6)  # it starts a process for each candidate
    topics = ft.Topics(list(judged[0].values())[:20])
    qrels = ft.Qrels.of({topic: dict(judged[1][topic]) for topic in topics})
    result = fit(index, topics, qrels, "10s", folds=2, seed=1)
    assert len(result.chosen) == 2
    per_pipeline = [ft.evaluate(part(text, index)(topics), qrels, "nDCG@10").per_topic("nDCG@10") for text in result.chosen]
    values = dict(zip(result.topic_ids, result.values.tolist(), strict=True))
    parts = [{i for i in values if values[i] == pytest.approx(of[i])} for of in per_pipeline]
    assert set.union(*parts) == set(values)
    assert result.score == pytest.approx(np.mean(list(values.values())))
    final = ft.evaluate(part(result.pipeline, index)(topics), qrels, "nDCG@10")["nDCG@10"]
    assert result.best.mean == pytest.approx(final)
    assert result.stage(topics) == part(result.pipeline, index)(topics)


def test_what_is_slower_than_the_budget_is_never_measured(index, judged, made_up):
    made_up["tfidf"] = (0.9, 0.5)
    result = fit(index, *judged, "20ms")
    slow = {one.pipeline: one for one in result.candidates if one.seconds > 0.02}
    assert list(slow) == ["tfidf()"]
    assert (slow["tfidf()"].topics, result.fate(slow["tfidf()"])) == (0, "too slow")
    assert fit(index, *judged, "1s").pipeline == "tfidf()"
    made_up[""] = (0.3, 0.05)
    with pytest.raises(
        ParameterError, match="no candidate answers within 20 ms; the quickest takes 50 ms: give a larger budget"
    ):
        fit(index, *judged, "20ms")


def test_bm25_stays_unless_another_is_better_by_a_standard_error(index, judged, made_up):
    made_up["tfidf"] = (0.31, 0.001)  # the error of the difference is about .02
    result = fit(index, *judged, "20ms")
    assert result.pipeline.startswith("bm25(")
    assert not result.beats_bm25
    assert "nothing beats tuned BM25" in str(result)
    made_up["tfidf"] = (0.5, 0.001)
    result = fit(index, *judged, "20ms")
    assert set(result.chosen) == {"tfidf()"}
    assert result.beats_bm25
    assert result.difference == pytest.approx(0.2, abs=0.05)


def test_half_of_the_candidates_is_dropped_at_each_stop(index, judged, made_up):
    result = fit(index, *judged, "20ms")
    counts = [one.topics for one in result.candidates if one.round == 1]
    assert set(counts) <= {10, 20, 40}
    assert counts.count(10) > 4
    first = next(one for one in result.candidates if one.topics == 10)
    assert result.fate(first) == "dropped after 10 topics"


def test_rerankers_are_tried_on_the_best_and_further_pipelines_in_the_first_round(index, judged, made_up):
    result = fit(index, *judged, "20ms", rerankers=["mmr()"], candidates=["bm25(k1=3, b=1)"])
    texts = [one.pipeline for one in result.candidates]
    assert "bm25(k1=3, b=1)" in texts
    assert [one.round for one in result.candidates if one.pipeline.endswith(">> mmr()")][:4] == [3] * 4
    assert any("% 100 >> mmr()" in text for text in texts)


def test_what_the_index_offers_and_cannot_search_is_left_out_with_a_note(index, judged, made_up, monkeypatch):
    made_up["tfidf"] = (0.9, 0.001)
    known = fitting.timed

    def timed(stage: object, *others: object) -> float:
        if str(stage) == "tfidf()":
            raise InputError("the model is not on this machine")
        return known(stage, *others)

    monkeypatch.setattr(fitting, "timed", timed)
    result = fit(index, *judged, "20ms")
    assert "note: tfidf(): the model is not on this machine" in str(result)
    assert not any("tfidf" in text for text in (result.pipeline, *result.chosen))
    with pytest.raises(InputError, match="not on this machine"):
        fit(index, *judged, "20ms", candidates=["tfidf()"])


def test_the_time_of_a_search_has_that_of_encoding_a_new_query(judged, monkeypatch, tmp_path: Path):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)

    class Slow(Hashed):
        def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
            clock.now += 0.03
            return super().encode_queries(texts)

    index, encoder = ft.Index.build("sample:harbour", tmp_path / "harbour.index"), Slow()
    index.encode(encoder)
    topics = ft.Topics(list(judged[0].values())[:12])
    monkeypatch.setattr(fitting, "time", clock)
    dense = index.dense(encoder)
    for stage in (dense, ft.fuse(index.bm25(), dense)):  # the second finds no vectors of the first
        assert fitting.timed(stage, topics, 1.0) == pytest.approx(0.03)
    assert fitting.timed(index.bm25(), topics, 1.0) == 0
    assert len(fitting.search_seconds(dense, topics, 1.0)) == 12
    assert len(fitting.search_seconds(dense, topics, 0.009)) == 10  # more than three times the budget


def test_every_kind_of_stored_vectors_is_a_candidate():
    facts = {
        "vectors": [{"encoder": "sentence_encoder('a')"}],
        "weights": [{"encoder": "splade_encoder('b')"}],
        "token_vectors": [{"colbert": "colbert('c')"}],
    }
    texts = fitting.first_round(SimpleNamespace(info=lambda: facts), ())
    assert texts[-3:] == ["dense(sentence_encoder('a'))", "splade(splade_encoder('b'))", "late(colbert('c'))"]


def test_seconds_are_read_from_words():
    assert [fitting.seconds_of(text) for text in ("20ms", "1.5 s", 0.25)] == [0.02, 1.5, 0.25]


def test_the_command_prints_a_pipeline_that_others_take(index, fontes, made_up, tmp_path: Path):
    made_up["tfidf"] = (0.5, 0.001)
    arguments = ["fit", index.path, "--topics", POSTS, "--qrels", POSTS, "--budget", "20ms"]
    code, out, _ = fontes(*arguments, "--only-pipeline", "--plot", tmp_path / "fit.svg")
    assert (code, out) == (0, "tfidf()\n")
    assert (tmp_path / "fit.svg").read_text().count("budget") >= 1
    assert fontes("search", index.path, "fire", "--pipeline", out.strip())[0] == 0
    code, out, _ = fontes(*arguments, "--json")
    facts = json.loads(out)
    assert (facts["pipeline"], facts["beats_bm25"], facts["topics"]) == ("tfidf()", True, 40)
    assert {one["fate"] for one in facts["candidates"]} >= {"chosen", "dropped after 10 topics"}


def test_candidates_are_rows_of_a_frame(index, judged, made_up):
    result = fit(index, *judged, "20ms")
    assert isinstance(result, Fitted)
    frame = result.to_pandas()
    assert list(frame.columns) == ["pipeline", "round", "seconds", "topics", "mean", "memory", "fate"]
    assert len(frame) == len(result.candidates)
    header, *lines = result.to_csv().splitlines()
    assert (header.split(","), len(lines)) == (list(frame.columns), len(frame))
    front = result.front
    assert [one.mean for one in front] == sorted(one.mean for one in front)


def test_memory_is_measured_of_the_chosen_pipeline_and_of_those_that_none_beats(index, judged, made_up):
    made_up["tfidf"] = (0.5, 0.001)
    result = fit(index, *judged, "20ms")
    front = {one.pipeline for one in result.front} | {result.pipeline}
    assert {one.pipeline for one in result.candidates if one.memory > 0} == front
    assert result.best.memory == 1e6 * len(result.pipeline)
    (line,) = (line for line in str(result).splitlines() if line.endswith(f"  {result.pipeline}"))
    assert line.split()[:2] == [f"{1000 * result.best.seconds:.2f}", str(len(result.pipeline))]
    assert (
        next(one["memory"] for one in result.to_dict()["candidates"] if one["pipeline"] == result.pipeline)
        == result.best.memory
    )
    without = fit(index, *judged, "20ms", memory=False)
    assert all(np.isnan(one.memory) for one in without.candidates)
    assert {one["memory"] for one in without.to_dict()["candidates"]} == {None}


def test_peak_memory_is_of_the_new_process_alone(index):
    held = np.ones(80_000_000)
    lexical = peak_memory(index.path, "bm25()", ["fire"])
    assert 2e7 < lexical < held.nbytes


def test_memory_that_cannot_be_measured_is_nan_with_a_warning(index):
    with pytest.warns(UserWarning, match="the memory of bm26.* cannot be measured: .*bm26"):
        assert np.isnan(peak_memory(index.path, "bm26()", ["fire"]))

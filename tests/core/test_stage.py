"""Stages: what fits, what does not, and what the operators mean."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fontes.core import Cut, Explanation, Pipeline, Run, Scaled, Stage, Sum, Topic, Topics

Ranked = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Shout(Stage[Topics, Topics]):
    def apply(self, topics: Topics, /) -> Topics:
        return Topics(dataclasses.replace(t, text=t.text.upper(), origin=t) for t in topics.values())


@dataclass(frozen=True)
class Fixed(Stage[Topics, Run]):
    """Gives the same documents for each topic, or the best k of them."""

    ranking: Ranked = (("a", 3.0), ("b", 2.0), ("c", 1.0))
    k: int = 1000

    def apply(self, topics: Topics, /) -> Run:
        return Run.of({t: dict(self.ranking) for t in topics}, topics).top(self.k)

    def cut(self, k: int) -> Fixed:
        return self.with_(k=min(k, self.k))

    def explain(self, query: Any, doc_id: str) -> Explanation:
        return Explanation(dict(self.ranking).get(doc_id, 0.0), f"score of {doc_id}")


@dataclass(frozen=True)
class Stubborn(Fixed):
    """Cannot cut by itself."""

    def cut(self, k: int) -> None:  # type: ignore[override]
        return None


@dataclass(frozen=True)
class Reverse(Stage[Run, Run]):
    def apply(self, run: Run, /) -> Run:
        return Run.of({t: {hit.id: -hit.score for hit in run[t]} for t in run}, run.topics)


@dataclass(frozen=True)
class Feedback(Stage[Run, Topics]):
    def apply(self, run: Run, /) -> Topics:
        return Topics(Topic(t, " ".join(run[t].ids)) for t in run)


@dataclass(frozen=True)
class Echo(Stubborn):
    """Its explanation says for what it was asked."""

    def explain(self, query: Any, doc_id: str) -> Explanation:
        return Explanation(super().explain(query, doc_id).value, f"'{query.text}' and {doc_id}")


FLOATS = st.floats(-1e6, 1e6, width=32)
RANKINGS = st.dictionaries(st.sampled_from("abcdefghij"), FLOATS, max_size=8).map(lambda r: tuple(r.items()))


def test_stages_that_fit_run_one_after_the_other():
    pipeline = Shout() >> Fixed() >> Reverse() >> Feedback() >> Fixed() % 2
    run = pipeline(["one", "two"])
    assert run.to_dict() == {"1": {"a": 3.0, "b": 2.0}, "2": {"a": 3.0, "b": 2.0}}
    assert (Fixed() >> Reverse())("x")["1"].ids == ["c", "b", "a"]
    assert (Shout() >> Shout())("x")["1"].text == "X"
    assert (Fixed() >> Feedback())("x")["1"].text == "a b c"


def test_what_is_no_stage_cannot_be_joined():
    for join in (lambda: Fixed() >> 5, lambda: Fixed() + 5, lambda: Fixed() * "2", lambda: Fixed() * True):
        with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
            join()


def test_pipelines_are_flat_whatever_the_brackets():
    a, b, c = Shout(), Fixed(), Reverse()
    assert (a >> b) >> c == a >> (b >> c) == Pipeline((a, b, c))


def test_percent_melts_into_the_stage_before_it():
    assert Fixed() % 2 == Fixed(k=2)
    assert Shout() >> Fixed() % 2 == (Shout() >> Fixed()) % 2 == Pipeline((Shout(), Fixed(k=2)))
    assert Fixed() % 2 % 5 == Fixed() % 5 % 2 == Fixed(k=2)
    assert Fixed() >> Cut(2) == Fixed(k=2)


def test_percent_stays_a_step_of_its_own_where_the_stage_cannot_cut():
    assert Stubborn() % 2 == Pipeline((Stubborn(), Cut(2)))
    assert Stubborn() % 2 % 5 == Stubborn() % 5 % 2 == Pipeline((Stubborn(), Cut(2)))
    assert (Fixed() >> Reverse()) % 2 == Pipeline((Fixed(), Reverse(), Cut(2)))
    assert Cut(5) % 2 == Cut(2) % 5 == Cut(2)


def test_percent_before_and_after_a_reranker_are_not_the_same():
    assert (Fixed() % 2 >> Reverse())("x")["1"].ids == ["b", "a"]
    assert ((Fixed() >> Reverse()) % 2)("x")["1"].ids == ["c", "b"]


@settings(deadline=None)
@given(RANKINGS, RANKINGS, st.integers(1, 9))
def test_percent_gives_the_first_k_of_what_the_stage_gives(first, second, k):
    for stage in (Fixed(first), Stubborn(first), Fixed(first) + Fixed(second), Fixed(first) >> Reverse(), -2 * Fixed(first)):
        assert (stage % k)("x") == stage("x").top(k)


@settings(deadline=None)
@given(RANKINGS, st.floats(-100, 100))
def test_a_weight_multiplies_the_scores(ranking, weight):
    expected = {d: float(np.float32(weight * s)) for d, s in ranking}
    assert (weight * Fixed(ranking))("x") == (Fixed(ranking) * weight)("x") == Run.of({"1": expected})


@settings(deadline=None)
@given(st.lists(st.tuples(RANKINGS, st.floats(-100, 100)), min_size=2, max_size=4))
def test_a_sum_adds_weighted_scores_and_counts_a_missing_document_as_0(parts):
    expected: dict[str, float] = {}
    for ranking, weight in parts:
        for doc_id, score in ranking:
            expected[doc_id] = expected.get(doc_id, 0.0) + weight * score
    stage = parts[0][1] * Fixed(parts[0][0])
    for ranking, weight in parts[1:]:
        stage = stage + weight * Fixed(ranking)
    assert isinstance(stage, Sum)
    assert len(stage.stages) == len(parts)
    assert stage(["x", "y"]) == Run.of({t: {d: float(np.float32(s)) for d, s in expected.items()} for t in ("1", "2")})


def test_a_sum_of_stages_over_one_table_of_ids_needs_no_other():
    run = Fixed()("x")

    @dataclass(frozen=True)
    class Same(Fixed):
        def apply(self, topics: Topics, /) -> Run:
            return run

    total = (Same() + 2 * Same())("x")
    assert total.ids is run.ids
    assert total.to_dict() == {"1": {"a": 9.0, "b": 6.0, "c": 3.0}}


def test_the_best_of_a_sum_is_cut_after_adding():
    stage = (Fixed((("a", 3.0), ("b", 2.0))) + Fixed((("c", 3.0), ("b", 2.0)))) % 1
    assert stage("x")["1"].ids == ["b"]


def test_a_stage_shows_how_it_is_written():
    assert repr(Shout() >> Fixed((), 5)) == "Shout() >> Fixed(ranking=(), k=5)"
    assert repr(0.5 * Reverse() + Reverse() >> Cut(3)) == "(0.5 * Reverse() + Reverse()) % 3"
    assert repr(0.5 * Reverse() % 3) == "0.5 * Reverse() % 3"
    assert repr(Cut(3) >> Reverse()) == "cut(3) >> Reverse()"
    assert repr(2 * (Reverse() + Reverse())) == "2 * (Reverse() + Reverse())"


def test_with_makes_a_copy_with_other_parameters():
    stage = Fixed()
    assert stage.with_(k=3) == Fixed(k=3)
    assert stage.k == 1000
    assert stage.params() == {"ranking": stage.ranking, "k": 1000}


def test_a_stage_does_not_change():
    for stage in (Fixed(), Fixed() >> Reverse(), 2 * Fixed(), Fixed() + Fixed()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            stage.k = 3  # type: ignore[attr-defined]


def test_a_stage_takes_whatever_makes_its_value():
    assert Fixed()({"q": "text"})["q"].ids == ["a", "b", "c"]
    assert Reverse()({"q": {"x": 1.0, "y": 2.0}})["q"].ids == ["x", "y"]
    assert (Reverse() >> Cut(1))([("q", "x", 1.0), ("q", "y", 2.0)])["q"].ids == ["x"]


def test_search_gives_the_ranking_of_one_query():
    ranking = Fixed().search("flu", k=2)
    assert ranking.ids == ["a", "b"]
    assert ranking.topic.text == "flu"
    assert Fixed().search(Topic("q9", "flu")).topic.id == "q9"


def test_a_search_with_an_offset_numbers_its_hits_from_there():
    ranking = Fixed().search("q", 2, offset=1)
    assert (ranking.offset, [(hit.rank, hit.id) for hit in ranking]) == (1, [(2, "b"), (3, "c")])


def test_a_run_says_what_made_it():
    run = (Shout() >> Fixed() % 2)("x")
    assert run.provenance["system"].startswith("Shout() >> Fixed(")
    assert run.provenance["seconds"] >= 0


def test_topics_and_their_origin_go_through_a_pipeline():
    run = (Shout() >> Fixed())({"q": "flu"})
    assert run.topics["q"].text == "FLU"
    assert run.topics["q"].origin == Topic("q", "flu")


def test_a_weighted_sum_explains_its_parts():
    explanation = (0.5 * Fixed() + Stubborn()).explain("x", "a")
    assert explanation.value == 4.5
    assert str(explanation) == "4.5  sum of the stages\n  1.5  0.5 times\n    3  score of a\n  3  score of a"


def test_a_pipeline_explains_scores_by_its_last_stage():
    assert (Shout() >> Echo()).explain(Topic("7", "x"), "a").label == "'X' and a"
    assert (Shout() >> Echo() % 2 >> Cut(1)).explain("x", "b") == Explanation(2.0, "'X' and b")
    assert (Shout() >> Fixed() >> Feedback() >> Echo()).explain("x", "a").label == "'a b c' and a"


@pytest.mark.parametrize(("from_scores", "first"), [(True, "score of a"), (False, "score in the run")])
def test_a_score_made_of_that_before_is_explained_by_the_stages_before(from_scores, first):
    @dataclass(frozen=True)
    class Doubled(Reverse):
        starts_from_scores = from_scores

        def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
            return Explanation(6.0, "doubled", (Explanation(3.0, "score in the run"), Explanation(3.0, "again")))

    explanation = (Fixed() >> Doubled()).explain("x", "a")
    assert [part.label for part in explanation.parts] == [first, "again"]


def test_a_cut_keeps_the_best_k_of_each_topic():
    assert Cut(1)({"1": {"a": 1.0, "b": 2.0}, "2": {}}).to_dict() == {"1": {"b": 2.0}, "2": {}}


def test_a_scaled_stage_is_cut_after_scaling_since_scaled_scores_may_tie():
    assert (2 * Fixed()) % 2 == Pipeline((Scaled(Fixed(), 2.0), Cut(2)))
    a, b = float(np.float32(1.7)), float(np.nextafter(np.float32(1.7), np.float32(0)))
    stage = 0.6 * Fixed(ranking=(("a", a), ("b", b)))
    assert (stage % 1)("q") == stage("q").top(1)
    assert ((-2 * Fixed()) % 2)("x")["1"].ids == ["c", "b"]


def test_a_ranking_of_a_run_counts_its_own_documents_up_to_a_number():
    ranking = Fixed()(Topics([Topic("1", "x")]))["1"]
    assert (ranking.total_up_to(2), ranking.total_up_to(3), ranking.total) == (3, 3, 3)


@dataclass(frozen=True)
class Lengths(Fixed):
    """Scores each document of a run by the length of its topic's text."""

    def candidate_scores(self, run: Run) -> Any:
        return np.array([float(len(run.topics[topic].text)) for topic in run for _ in run[topic]], np.float32)


@dataclass(frozen=True)
class Twice(Shout):
    def apply(self, topics: Topics, /) -> Topics:
        return Topics(dataclasses.replace(t, text=t.text * 2, origin=t) for t in topics.values())


@pytest.mark.parametrize(("pipeline", "score"), [(Twice() >> Lengths(), 4), (Twice() >> Twice() >> Lengths() % 2, 8)])
def test_a_pipeline_scores_documents_by_its_last_stage_for_the_rewritten_topic(pipeline, score):
    run = Fixed()(Topics([Topic("1", "ab")]))
    assert pipeline.candidate_scores(run).tolist() == [score] * 3


@dataclass(frozen=True)
class Same(Reverse):
    preserves_order = True

    def apply(self, run: Run, /) -> Run:
        return run


def test_a_cut_after_a_stage_that_changes_no_ranking_comes_before_it():
    assert (Fixed() >> Same()) % 2 == Pipeline((Fixed(k=2), Same()))
    assert (Shout() >> Fixed() >> Same()) % 2 == Pipeline((Shout(), Fixed(k=2), Same()))


@dataclass(frozen=True)
class Matching(Fixed):
    """Matches so many documents."""

    count_: int = 3

    def matches(self, topic: Topic) -> Any:
        return np.arange(self.count_)


def test_a_sum_counts_no_further_than_it_is_asked_to():
    both = Matching(count_=2) + Matching(count_=5)
    assert [both.count("q", up_to) for up_to in (None, 1, 4, 5, 9)] == [5, 2, 5, 5, 5]

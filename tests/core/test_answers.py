"""The budget of tokens, and the answers behind a run."""

from fontes.core import Topic, Topics
from fontes.core.answers import TokenBudget, answers_of, join_facts, sums_of


def test_the_rest_of_a_budget_is_what_is_neither_spent_nor_reserved() -> None:
    budget = TokenBudget(10, spent=3)
    assert budget.reserve(2)
    assert budget.reserve_rest() == 5
    assert not TokenBudget(10, spent=3).reserve(8)
    budget.settle(7, 1)
    assert (budget.spent, budget.left(), budget.reserve_rest()) == (4, 6, 6)
    assert TokenBudget(1, spent=3).reserve_rest() == 0


def test_sums_are_collected_from_all_runs_that_a_run_was_made_of() -> None:
    facts = {"models": ["openai m"], "sums": ["b", "c"]}
    provenance = {"llm": facts, "runs": [{"llm": {"models": [], "sums": ["a", "b"]}}, {"llm": "m"}], "other": {"sums": ["d"]}}
    assert sums_of(provenance) == ["a", "b", "c"]


def test_counts_of_answers_are_added_and_sums_and_models_listed_once() -> None:
    first = {"models": ["openai m"], "sums": ["a", "b"], "answers": 2, "tokens": 5}
    second = {"models": ["openai m", "local n"], "sums": ["b"], "answers": 1}
    facts = join_facts([first, second])
    assert (facts["models"], facts["sums"], facts["answers"]) == (["openai m", "local n"], ["a", "b"], 3)
    assert join_facts([]) == {}
    assert answers_of(Topics([Topic("1", "no answers"), Topic("2", "other facts", metadata={"llm": "m"})])) == {}

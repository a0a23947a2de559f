"""A socket without its package says in one sentence which extra brings it; filters of frameworks as texts."""

import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from importlib import import_module

import numpy as np
import pytest
from support.each import each

import fontes as ft
from fontes.integrations.searching import IndexSearch, comparison, joined, negated, where_text

NAME = 'it\'s a "name"'
SOCKETS = {
    "langchain": ("langchain_core", "langchain"),
    "llamaindex": ("llama_index", "llamaindex"),
    "haystack": ("haystack", "haystack"),
    "pyterrier": ("pyterrier", "pyterrier"),
    "pyterrier_stage": ("pyterrier", "pyterrier"),
    "dspy": ("dspy", "dspy"),
    "ranx": ("ranx", "ranx"),
    "ir_measures": ("ir_measures", "ir-measures"),
    "sentence_transformers": ("sentence_transformers", "neural"),
}


@each("socket", SOCKETS)
def test_a_missing_package_is_one_sentence_with_its_extra(socket, monkeypatch):
    package, extra = SOCKETS[socket]
    monkeypatch.setitem(sys.modules, package, None)
    for module in [name for name in sys.modules if name.startswith((f"{package}.", f"fontes.integrations.{socket}"))]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ft.core.MissingExtraError, match=rf"which is not installed: pip install 'fontes\[{extra}\]'$"):
        import_module(f"fontes.integrations.{socket}")


def test_a_search_is_made_from_a_stage_of_topics_to_a_run():
    for wrong, message in (("x", "not from str"), (ft.core.stage.Cut(3), "a retriever needs a stage from Topics to Run")):
        with pytest.raises(ft.FontesError, match=message):
            IndexSearch.of(wrong)


@each(
    ("sign", "value", "expected"),
    [
        ("==", 3, {"b"}),
        ("!=", 3, {"a", "c"}),
        ("in", [1, 3], {"a", "b"}),
        ("in", [], set()),
        ("in", [None], {"c"}),
        ("in", [None, 3], {"b", "c"}),
        ("in", [np.int64(3)], {"b"}),
        ("not in", [3], {"a", "c"}),
        ("not in", [], {"a", "b", "c"}),
        ("not in", [None], {"a", "b"}),
        ("==", None, {"c"}),
        ("!=", None, {"a", "b"}),
    ],
)
def test_a_comparison_with_a_missing_value_is_false_and_its_negation_true(sign, value, expected, small):
    assert selected(small, lambda types: comparison(NAME, sign, value, types)) == expected


@each(
    ("sign", "value", "expected"),
    [
        ("==", datetime(2020, 5, 17), {"a"}),
        (">", datetime(2020, 5, 17, tzinfo=UTC), {"b"}),
        ("<=", datetime(2020, 5, 17, 14, tzinfo=timezone(timedelta(hours=2))), {"a", "b"}),
        ("in", [date(2020, 5, 17), None], {"a", "c"}),
    ],
)
def test_dates_are_compared_as_moments(sign, value, expected, small):
    assert selected(small, lambda types: comparison("on", sign, value, types)) == expected


def test_conditions_that_are_always_true_or_never_are_joined_as_others(small):
    one = "(metadata['on'] is not None)"
    assert [joined("and", []), joined("or", []), joined("and", [True, False, one]), joined("or", [True, one])] == [1, 0, 0, 1]
    assert joined("and", [True, one]) == joined("or", [False, one]) == f"({one})"
    assert [negated(True), negated(False), negated(one)] == [False, True, f"(not {one})"]
    assert selected(small, lambda types: True) == {"a", "b", "c"}
    assert selected(small, lambda types: False) == set()


@each(
    ("column", "sign", "value", "message"),
    [
        ("onn", "==", 1, "^filter of 'onn': there is no column 'onn'; did you mean 'on'"),
        ("onn", "in", [], "^filter of 'onn': there is no column 'onn'"),
        (NAME, "==", "3", "compared with a whole number, not with '3'$"),
        (NAME, "<", date(2020, 1, 1), "a date is compared with columns of dates, and .* is of type integer$"),
        ("on", ">=", "2020", "^filter of 'on': 'on' is a column of type date"),
        ("on", "<", None, "^filter of 'on': < takes a value, not None$"),
        (NAME, "<", float("inf"), "a finite number, a truth value or a date, not inf$"),
        (NAME, "in", [1, float("nan")], "a finite number, a truth value or a date, not nan$"),
        (NAME, "==", Decimal(3), r"a finite number, a truth value or a date, not Decimal\('3'\)$"),
        ("on", "==", time(3), "a truth value or a date, not datetime.time"),
    ],
)
def test_a_wrong_comparison_names_its_column_and_no_position(column, sign, value, message, small):
    with pytest.raises(ft.core.ParameterError, match=message) as caught:
        comparison(column, sign, value, IndexSearch.of(small).types)
    assert "character" not in str(caught.value)


def selected(index, condition):
    """The documents that pass a condition, which is made from the types of columns."""
    search = IndexSearch.of(index)
    return {hit.id for hit, _ in search("rain", 9, where_text(condition(search.types), search.types))}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    metadata = {"a": {NAME: 1, "on": "2020-05-17"}, "b": {NAME: 3, "on": "2020-05-17T12:00:00Z"}, "c": {}}
    docs = [ft.Doc(doc_id, "rain", "", values) for doc_id, values in metadata.items()]
    return ft.Index.build(docs, tmp_path_factory.mktemp("small") / "x.index")

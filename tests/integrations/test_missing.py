"""A socket without its package says in one sentence which extra brings it."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

import fontes as ft
from fontes.integrations.searching import Search, comparison

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


@pytest.mark.parametrize("socket", SOCKETS)
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
            Search.of(wrong)


@pytest.mark.parametrize(
    ("sign", "value", "expected"),
    [
        ("==", 3, {"b"}),
        ("!=", 3, {"a", "c"}),
        ("in", [1, 3], {"a", "b"}),
        ("in", [], set()),
        ("not in", [3], {"a", "c"}),
        ("==", None, {"c"}),
        ("!=", None, {"a", "b"}),
    ],
)
def test_a_comparison_with_a_missing_value_is_false_and_its_negation_true(sign, value, expected, small):
    assert {hit.id for hit, _ in Search.of(small)("rain", 9, comparison('it\'s a "name"', sign, value))} == expected


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    docs = [ft.Doc(one, "rain", "", {} if n is None else {'it\'s a "name"': n}) for one, n in (("a", 1), ("b", 3), ("c", None))]
    return ft.Index.build(docs, tmp_path_factory.mktemp("small") / "x.index")

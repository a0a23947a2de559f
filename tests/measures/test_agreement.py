"""A run and judgments that do not belong together are an error; those that do are measured, however poor the run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.each import each

import fontes as ft
from fontes.core import Doc, InputError, Run
from fontes.core.errors import InputWarning
from fontes.measures import AP, evaluate


@dataclass
class Collection:
    """A collection of some ids."""

    ids: tuple[str, ...]

    def docs(self, ids):
        if any(doc_id not in self.ids for doc_id in ids):
            raise InputError("there is no such document")
        return [Doc(doc_id, "") for doc_id in ids]


@pytest.mark.parametrize(("found", "judged"), [("x", "d"), ("clueweb12-0-1", "clueweb22-10-23"), ("7", "123")])
def test_a_run_that_found_no_judged_document_scores_0_with_a_warning(tmp_path, fontes, found, judged):
    ft.write_run({"1": {found: 1.0}}, tmp_path / "a.run")
    ft.write_qrels({"1": {judged: 1}}, tmp_path / "a.qrels")
    with pytest.warns(InputWarning, match=f"not one document of the run is judged.*'{found}'.*'{judged}'; all values are 0"):
        assert evaluate(tmp_path / "a.run", tmp_path / "a.qrels", AP)[AP] == 0.0
    code, output, error = fontes("eval", tmp_path / "a.qrels", tmp_path / "a.run", "AP")
    assert (code, output.split()[:2], "all values are 0" in error) == (0, ["AP", "0.0000"], True)


@each(
    ("run", "qrels"),
    [
        ({}, {"1": {"d": 1}}),
        ({"1": {}}, {"1": {"d": 1}}),
        ({"other": {}}, {"1": {"d": 1}}),
        ({"1": {}, "other": {"x": 1.0}}, {"1": {"d": 1}}),
        ({"1": {"e": 1.0}}, {"1": {"d": 1}, "2": {"e": 1}}),
        ({"1": {"x": 1.0}, "2": {"d": 1.0}}, {"1": {"d": 1}}),
        ({"1": {"x": 1.0, "e": 0.5}}, {"1": {"d": 1, "e": 0}}),
    ],
)
def test_a_run_that_agrees_in_a_topic_and_a_document_or_is_empty_scores_0(run, qrels):
    assert evaluate(run, qrels, AP)[AP] == 0.0


def test_a_run_scores_0_if_its_collection_has_a_judged_document():
    run = Run.of({"1": {"x": 1.0}})
    assert evaluate(run.with_(documents=Collection(("x", "d"))), {"1": {"d": 1}}, AP)[AP] == 0.0


RUN, QRELS = {"1": {"a": 0.5}}, {"1": {"a": 1}}


def test_files_that_are_exchanged_are_an_error_that_says_so(tmp_path, fontes):
    ft.write_run(RUN, tmp_path / "a.run")
    ft.write_run(RUN, tmp_path / "b.run")
    ft.write_qrels(QRELS, tmp_path / "qrels")
    with pytest.raises(InputError, match=r"exchanged: '.*qrels' holds judgments, and '.*a\.run' a run"):
        evaluate(tmp_path / "qrels", tmp_path / "a.run", AP)
    for arguments in (("eval",), ("compare",), ("compare", tmp_path / "b.run")):
        code, _, error = fontes(*arguments[:1], tmp_path / "a.run", *arguments[1:], tmp_path / "qrels")
        assert code == 1
        assert "are exchanged" in error, arguments

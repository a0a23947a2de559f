"""A run and judgments that do not belong together are an error; those that do are measured, however poor the run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.each import each

import fontes as ft
from fontes.core import Doc, InputError, Qrels, Run, Topics
from fontes.core.errors import InputWarning
from fontes.measures import AP, evaluate

NO_TOPIC = "no topic in common: topics of the run are such as 'a1', those of the judgments such as '1'"
NO_DOCUMENT = "not one document of .* is judged: those of the run are such as 'x7', those of the judgments such as 'd'"


@dataclass
class Collection:
    """A collection of some ids."""

    ids: tuple[str, ...]

    def docs(self, ids):
        if any(doc_id not in self.ids for doc_id in ids):
            raise InputError("there is no such document")
        return [Doc(doc_id, "") for doc_id in ids]


def test_a_run_of_other_topics_is_an_error_that_shows_one_of_each():
    with pytest.raises(InputError, match=NO_TOPIC):
        evaluate({"a1": {"d": 1.0}, "a2": {}}, {"1": {"d": 1}, "2": {"d": 1}}, AP)


def test_a_run_of_other_documents_is_an_error_that_shows_one_of_each():
    with pytest.raises(InputError, match=NO_DOCUMENT):
        evaluate({"0": {"y7": 1.0}, "1": {"x7": 1.0}}, {"1": {"d": 1}, "2": {"e": 1}}, AP)


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
    with pytest.raises(InputError, match="nor is any document of its collection: those of the run are such as 'x'"):
        evaluate(run.with_(documents=Collection(("x", "y"))), {"1": {"d": 1}}, AP)


def test_compare_names_the_run_that_does_not_belong():
    good = {"1": {"d": 1.0}}
    with pytest.raises(InputError, match=f"the run 'bad' and the judgments have {NO_TOPIC}"):
        ft.compare({"good": good, "bad": {"a1": {"d": 1.0}}}, None, {"1": {"d": 1}}, AP)
    with pytest.raises(InputError, match="not one document of the run 'bad' is judged"):
        ft.compare({"good": good, "bad": {"1": {"x7": 1.0}}}, None, {"1": {"d": 1}}, AP)


def test_weights_are_not_learned_on_runs_that_do_not_belong():
    runs = [{"1": {"d": 1.0}, "2": {"d": 1.0}}, {"1": {"x7": 1.0}}]
    with pytest.raises(InputError, match="not one document of run 2 is judged"):
        ft.tuning.fit_weights(runs, {"1": {"d": 1}, "2": {"d": 1}}, AP, folds=2)


def test_a_pipeline_is_not_tuned_on_judgments_of_another_collection(tmp_path):
    index = ft.Index.build([{"id": "x", "text": "red"}, {"id": "y", "text": "blue"}], tmp_path / "i")
    topics = {"1": "red", "2": "blue"}
    with pytest.raises(InputError, match="nor is any document of its collection"):
        ft.tune(index.bm25(), {"k1": [0.9, 1.2]}, topics, {"1": {"d": 1}, "2": {"e": 1}}, AP, folds=2)


RUN, QRELS = {"1": {"a": 0.5}}, {"1": {"a": 1}}


def test_a_run_and_judgments_that_are_exchanged_are_an_error_that_says_so():
    for run, qrels in [(Qrels.of(QRELS), Run.of(RUN)), (QRELS, RUN), (Qrels.of(QRELS), RUN)]:
        with pytest.raises(InputError, match="the run and the judgments are exchanged"):
            evaluate(run, qrels, AP)


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


def test_what_stands_where_judgments_belong_is_named():
    with pytest.raises(InputError, match="Run stand where judgments belong; the order is"):
        ft.compare({"a": RUN}, None, Run.of(RUN), AP)
    with pytest.raises(InputError, match="Topics stand where judgments belong"):
        ft.compare({"a": RUN}, QRELS, Topics.of({"1": "x"}), AP)
    with pytest.raises(InputError, match="topic '1' is no text"):
        ft.compare({"a": RUN}, QRELS, QRELS, AP)

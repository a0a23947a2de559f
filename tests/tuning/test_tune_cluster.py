"""Tuning on a cluster: the trials, folds and parameters of one machine."""

from pathlib import Path

import numpy as np
import pytest
from support.hashed_encoder import made_docs, queries

from fontes.index import Index
from fontes.tuning import tune


@pytest.mark.parametrize(("method", "trials"), [("grid", None), pytest.param("tpe", 3, marks=pytest.mark.slow)])
def test_tuning_on_a_cluster_is_tuning_on_one_machine(tmp_path: Path, ray: str, method: str, trials: int | None) -> None:
    if method == "tpe":
        pytest.importorskip("optuna")
    index = Index.build(made_docs(200), tmp_path / "x", analyzer="whitespace")
    topics = queries(12)
    draw = np.random.default_rng(1)
    qrels = {topic: {f"d{number}": 1 for number in draw.integers(0, 200, 20)} for topic in topics}
    text = "bm25(k1=tune([0.5, 1.5]), b=tune([0.0, 0.5]))" if method == "grid" else "bm25(k1=tune(0.1, 4.0))"
    here, there = (
        tune(text, None, topics, qrels, "AP", 2, method=method, trials=trials, index=index, ray=where) for where in (None, ray)
    )
    assert [trial.params for trial in there.trials] == [trial.params for trial in here.trials]
    for ours, theirs in zip(here.trials, there.trials, strict=True):
        np.testing.assert_array_equal(theirs.values, ours.values)
    assert [fold.choice for fold in there.folds] == [fold.choice for fold in here.folds]
    assert repr(there.stage) == repr(here.stage)

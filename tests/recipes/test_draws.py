"""Draws of a recipe's division, and the table of errors of reranking."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.posts import collection
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_recipe import DOCS, QRELS, TOPICS, Tiny

import fontes as ft
from fontes.core import Qrels, Run
from fontes.recipes import DrawMean, LearningRecipe, RankChanges, RecipeTraining, run_draws
from fontes.recipes.errors import errors_of
from fontes.recipes.learning import weights_in


@dataclass(frozen=True)
class Divided(LearningRecipe):
    """BM25 with and without lengths, measured on a third of the topics."""

    source = "nobody"
    measures = ("RR@5", "R@5")
    baseline = "bm25"
    test: float = 1 / 3
    held_out: float = 0.0

    def learned_systems(
        self, collection: ft.experiments.Collection, learning: RecipeTraining
    ) -> dict[str, ft.Stage[ft.Topics, ft.Run]]:
        bm25 = collection.index("standard").bm25(k=10)
        return {"bm25": bm25, "flat": bm25.with_(b=0.0, k1=0.1)}


Divided.name = "divided"


def test_draws_have_the_corrected_interval_of_their_mean(tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    report = run_draws(Divided(seed=3), docs, posts, qrels, tmp_path, draws=4)
    rr = ft.RR @ 5
    means = []
    for n, seed in enumerate((3, 4, 5, 6), 1):
        alone = Divided(seed=seed).run(docs, posts, qrels, tmp_path / "alone")
        assert alone.report is not None
        assert ft.read_run(tmp_path / f"draw-{n}/runs/flat.run") == alone.runs["flat"]
        means.append(alone.report.mean("flat", rr))
    assert report.values("flat", rr).tolist() == means
    assert len(set(means)) > 1
    half = stats.t.ppf(0.975, 3) * math.sqrt(1 / 4 + 10 / 20) * np.std(means, ddof=1)
    got = report.mean("flat", rr)
    assert (got.mean, got.low, got.high) == pytest.approx((np.mean(means), np.mean(means) - half, np.mean(means) + half))
    difference = report.mean("flat", rr, "bm25")
    assert difference.mean == pytest.approx(got.mean - report.mean("bm25", rr).mean)
    written = json.loads((tmp_path / "draws.json").read_text())
    assert (written["recipe"], written["seeds"], written["topics"]) == ("divided", [3, 4, 5, 6], [10] * 4)
    assert f"| flat | {got.mean:.4f} | {got.low:.4f} to {got.high:.4f} |" in (tmp_path / "draws.md").read_text()
    assert "4 draws of 10 measured topics" in str(report)


def test_equal_draws_have_an_interval_without_width() -> None:
    assert DrawMean.of(np.array([0.5, 0.5, 0.5]), 0.25) == DrawMean(0.5, 0.0, 0.5, 0.5)


def test_changes_of_ranks_are_counted_by_the_first_relevant_document() -> None:
    names = [f"d{n}" for n in range(8)]

    def ranked(*ids: str, tied: bool = False) -> dict[str, float]:
        return {doc: 1.0 if tied else 10.0 - n for n, doc in enumerate(ids)}

    before = Run.of({topic: ranked(*names) for topic in ("up", "same", "down", "missing", "tied")})
    after = Run.of(
        {
            "up": ranked("d6", *names[:6], "d7"),
            "same": ranked(*names),
            "down": ranked(*names[1:7], "d0", "d7"),
            "missing": ranked(*names),
            "tied": {"d0": 9.0, "d1": 8.0, "d2": 8.0, "d3": 1.0},
        }
    )
    relevant = {"up": "d6", "same": "d1", "down": "d0", "missing": "x", "tied": "d1"}
    qrels = Qrels([(topic, "0", doc, 1) for topic, doc in relevant.items()] + [("up", "0", "d0", 0)])
    assert ft.Run.of(after)["tied"].ids == ["d0", "d2", "d1", "d3"]  # ids descend where scores are equal
    expected = RankChanges(topics=5, missing=1, up=1, same=1, down=2, lost=1, gained=1, tied=1)
    assert RankChanges.of(before, after, qrels) == expected
    head, text, table = errors_of({"reranked": (before, after)}, qrels)
    assert head == "## Errors of reranking"
    assert "best 5" in text
    assert table.splitlines()[-1] == "| reranked | 5 | 1 | 1 | 1 | 2 | 1 | 1 | 1 |"
    assert errors_of({}, qrels) == []


def test_a_report_says_which_weights_ran(tmp_path: Path) -> None:
    Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    page = (tmp_path / "recipe.md").read_text()
    assert "| system | run | weights | documents | seconds |\n" in page
    assert "| first | runs/first.run | none |" in page


def test_weights_are_named_by_their_path_in_the_folder_and_their_fingerprint(tmp_path: Path) -> None:
    model = save_cross_encoder(tmp_path / "out/models/cross")
    reranker = ft.CrossEncoder(str(model), max_length=32)
    index = ft.Index.build(DOCS, tmp_path / "docs.index")
    stage = index.bm25() % 2 >> reranker
    assert weights_in(stage, tmp_path / "elsewhere") == [f"{model} ({reranker.fingerprint[:8]})"]
    record = {"kind": "cross-encoder", "base": "START", "rows": 1, "steps": 1, "best": 1, "seconds": 1.0}
    record |= {"precision": "float32", "device": "cpu", "facts": {}}
    (model / "training.json").write_text(json.dumps(record))
    assert weights_in(stage, tmp_path / "out") == [f"models/cross ({reranker.fingerprint[:8]}), trained from START"]
    assert weights_in(index.bm25(), tmp_path) == []

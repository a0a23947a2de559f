"""Fusion of runs: formulas, normalisations, missing documents and topics, against values by hand and a plain reading."""

import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

from fontes import Run, Topic, Topics, fuse, read_run, write_run

A = {"q": {"a": 10.0, "b": 6.0, "c": 2.0}}
B = {"q": {"b": 0.9, "d": 0.5}}
METHODS = ("rrf", "combsum", "combmnz", "combmax", "combmin", "wsum", "borda", "isr")
NORMALIZATIONS = ("min-max", "max", "sum", "z", "rank", None)


def scores(method: str, **how: Any) -> dict[str, float]:
    return fuse(A, B, method=method, **how).to_dict()["q"]


def test_each_method_gives_what_its_formula_says() -> None:
    for method, expected in [
        ("rrf", {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63}),
        ("isr", {"b": 2 * (1 / 4 + 1), "a": 1.0, "d": 1 / 4, "c": 1 / 9}),
        ("borda", {"b": 3 + 4, "a": 4 + 1.5, "d": 1 + 3, "c": 2 + 1.5}),
        ("combsum", {"b": 1.5, "a": 1.0, "d": 0.0, "c": 0.0}),
        ("combmnz", {"b": 3.0, "a": 1.0, "d": 0.0, "c": 0.0}),
        ("combmax", {"b": 1.0, "a": 1.0, "d": 0.0, "c": 0.0}),
        ("combmin", {"a": 1.0, "b": 0.5, "d": 0.0, "c": 0.0}),
    ]:
        assert list(scores(method)) == list(expected)
        assert scores(method) == pytest.approx(expected, rel=1e-6)


def test_each_normalisation_gives_what_its_formula_says() -> None:
    for normalize, expected in [
        ("min-max", {"a": 1.0, "b": 0.5 + 1, "c": 0.0, "d": 0.0}),
        ("max", {"a": 1.0, "b": 0.6 + 1, "c": 0.2, "d": 5 / 9}),
        ("sum", {"a": 8 / 12, "b": 4 / 12 + 1, "c": 0.0, "d": 0.0}),
        ("z", {"a": math.sqrt(1.5), "b": 0 + 1, "c": -math.sqrt(1.5), "d": -1.0}),
        ("rank", {"a": 1.0, "b": 2 / 3 + 1, "c": 1 / 3, "d": 1 / 2}),
        (None, {"a": 10.0, "b": 6.9, "c": 2.0, "d": 0.5}),
    ]:
        assert scores("combsum", normalize=normalize) == pytest.approx(expected, rel=1e-6)


def test_weights_multiply_what_the_lists_give() -> None:
    assert scores("wsum", weights=[0.3, 2]) == pytest.approx({"a": 0.3, "b": 0.15 + 2, "c": 0, "d": 0}, rel=1e-6)
    assert scores("rrf", weights=(0, 1), k=0) == pytest.approx({"b": 1, "d": 1 / 2, "a": 0, "c": 0}, rel=1e-6)
    assert scores("isr", weights=(1, 0.5))["b"] == pytest.approx(2 * (1 / 4 + 0.5))
    assert scores("borda", weights=(1, 0.5))["a"] == pytest.approx(4 + 0.5 * 1.5)


def test_a_document_missing_from_a_list_can_get_the_least_score_of_that_list() -> None:
    for method, a in [("combsum", 10.5), ("combmnz", 10.5), ("combmax", 10.0), ("combmin", 0.5)]:
        assert scores(method, normalize=None, missing="min")["a"] == a


def test_a_document_missing_from_a_list_can_get_a_number() -> None:
    assert scores("combsum", normalize=None, missing=-1)["a"] == 9
    assert scores("combmin", normalize=None, missing=-1)["a"] == -1
    assert scores("rrf", missing=0.5)["a"] == pytest.approx(1 / 61 + 0.5)
    assert scores("borda", missing=0)["a"] == 4


def test_the_least_of_a_list_by_rank_is_what_its_last_document_gets() -> None:
    assert scores("rrf", missing="min")["a"] == pytest.approx(1 / 61 + 1 / 62)


def test_a_system_without_a_topic_has_an_empty_list_for_it() -> None:
    run = fuse({"q": {"a": 2.0}, "only": {"x": 5.0, "y": 4.0}}, {"q": {"b": 1.0}, "other": {"z": 1.0}}, missing="min")
    assert list(run) == ["q", "only", "other"]
    assert run.to_dict()["only"] == pytest.approx({"x": 1 / 61, "y": 1 / 62})
    assert run.to_dict()["other"] == pytest.approx({"z": 1 / 61})


def test_a_topic_keeps_its_text_wherever_a_run_has_it() -> None:
    known = Topics([Topic("q", "springs", narrative="of water")])
    fused = fuse(A, Run.of(B, known))
    assert fused.topics["q"].text == "springs"
    assert fuse(Run.of(A, known), Run.of(B, known)).topics is known


def test_a_list_with_one_score_throughout_still_counts() -> None:
    for normalize, expected in [("min-max", 1), ("sum", 1 / 2), ("z", 0), ("max", 1)]:
        run = fuse({"q": {"a": 3.0, "b": 3.0}}, {"q": {"c": 2.0, "d": 1.0}}, method="combsum", normalize=normalize)
        assert run.to_dict()["q"]["a"] == pytest.approx(expected)


def test_equal_scores_are_ordered_by_descending_id() -> None:
    assert fuse({"q": {"a": 1.0}}, {"q": {"é": 1.0}}, {"q": {"b": 1.0}})["q"].ids == ["é", "b", "a"]


def test_empty_runs_and_empty_lists_fuse_to_empty_ones() -> None:
    empty = Run.of({}, Topics.of({"q": "nothing"}))
    for method in METHODS:
        assert fuse(empty, empty, method=method).to_dict() == {"q": {}}
        assert len(fuse(Run.of({}), {}, method=method)) == 0


@each("method", METHODS)
def test_columns_give_what_a_plain_reading_of_the_formulas_gives(method: str) -> None:
    rng = random.Random(7)
    runs = [
        {
            f"q{t}": {
                f"d{d}": rng.choice([1.0, 2.0, 3.0, rng.uniform(0.1, 9)]) for d in rng.sample(range(30), rng.randint(0, 12))
            }
            for t in rng.sample(range(20), 15)
        }
        for _ in range(3)
    ]
    given = [Run.of(run) for run in runs]
    wrong = []
    for normalize, missing in itertools.product(NORMALIZATIONS, (None, "min", 0.25)):
        fused = fuse(*given, method=method, normalize=normalize, missing=missing).to_dict()
        expected = plainly(given, method, normalize, missing)
        ordered = {topic: sorted(scores, key=lambda d: (scores[d], d), reverse=True) for topic, scores in fused.items()}
        if (
            fused.keys() != expected.keys()
            or any(fused[topic] != pytest.approx(ranking, rel=1e-6, abs=1e-6) for topic, ranking in expected.items())
            or ordered != {topic: list(scores) for topic, scores in fused.items()}
        ):
            wrong.append((normalize, missing))
    assert wrong == []


def plainly(runs: list[Run], method: str, normalize: str | None, missing: Any) -> dict[str, dict[str, float]]:
    """The formulas, a topic and a document at a time."""
    fused: dict[str, dict[str, float]] = {}
    for topic in dict.fromkeys(t for run in runs for t in run):
        rankings = [run.to_dict().get(topic, {}) for run in runs]
        docs = {d for ranking in rankings for d in ranking}
        lists = [of_list(ranking, method, normalize, len(docs)) for ranking in rankings]
        fused[topic] = {}
        for doc in docs:
            parts = []
            for given in lists:
                if doc in given:
                    parts.append(given[doc])
                elif missing == "min":
                    parts.append(min(given.values(), default=0.0))
                elif missing is not None:
                    parts.append(missing)
                elif method == "borda":
                    parts.append((len(docs) - len(given) + 1) / 2)
            held = sum(doc in given for given in lists)
            if method in ("combmax", "combmin"):
                fused[topic][doc] = max(parts) if method == "combmax" else min(parts)
            else:
                fused[topic][doc] = sum(parts) * (held if method in ("combmnz", "isr") else 1)
    return fused


def of_list(ranking: dict[str, float], method: str, normalize: str | None, candidates: int) -> dict[str, float]:
    values = list(ranking.values())
    given = {}
    for rank, (doc, score) in enumerate(ranking.items(), 1):
        if method in ("rrf", "isr", "borda"):
            given[doc] = {"rrf": 1 / (60 + rank), "isr": 1 / rank**2, "borda": candidates - rank + 1.0}[method]
            continue
        same = max(values) == min(values)
        match normalize:
            case "min-max":
                given[doc] = 1.0 if same else (score - min(values)) / (max(values) - min(values))
            case "max":
                given[doc] = score / max(values)
            case "sum":
                given[doc] = 1 / len(values) if same else (score - min(values)) / sum(v - min(values) for v in values)
            case "z":
                given[doc] = 0.0 if same else (score - float(np.mean(values))) / float(np.std(values))
            case "rank":
                given[doc] = 1 - (rank - 1) / len(values)
            case _:
                given[doc] = score
    return given


def test_the_order_of_rows_and_of_ids_in_the_tables_changes_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [(f"q{t}", f"d{d}", float(s)) for t in range(5) for d, s in enumerate(rng.integers(0, 4, 20))]
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    topics = Topics.of({f"q{t}": "" for t in range(5)})
    other = Run.of([(t, d, -s) for t, d, s in rows], topics)
    for method in METHODS:
        one, two = (fuse(Run.of(r, topics), other, method=method) for r in (rows, shuffled))
        for name, run in (("one", one), ("two", two)):
            write_run(run, tmp_path / name)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_runs_may_be_files(tmp_path: Path) -> None:
    write_run(A, tmp_path / "a.run")
    write_run(B, tmp_path / "b.run.gz")
    assert fuse(tmp_path / "a.run", str(tmp_path / "b.run.gz")) == fuse(A, B)


def test_two_runs_with_one_table_of_ids_give_the_same_as_with_two() -> None:
    one = Run.of(A)
    assert fuse(one, one.top(2)) == fuse(A, {"q": {"a": 10.0, "b": 6.0}})


def test_an_infinite_score_is_fused_by_its_rank() -> None:
    infinite = {"q": {"a": math.inf, "b": 1.0}}
    assert fuse(B, infinite).to_dict()["q"]["a"] == pytest.approx(1 / 61)


# ranx 0.3.21 on the four development runs, topic dev:16 (wsum with 0.5, 0.2, 0.2, 0.1): the first two documents and the last.
RANX: dict[tuple[str, str | None], dict[str, float]] = {
    ("rrf", None): {"hg3xpej0": 0.048915917503966164, "styavbvi": 0.047371031746031744, "ktv6fk7q": 0.014285714285714285},
    ("isr", None): {"hg3xpej0": 6.75, "25aj8rj5": 1.0, "ktv6fk7q": 0.01},
    ("borda", None): {"hg3xpej0": 61.0, "styavbvi": 57.5, "66g5lpm6": 30.0},
    ("wsum", "min-max"): {"59up4v56": 0.538888888888889, "styavbvi": 0.5388888888888889, "ktv6fk7q": 0.0},
    ("wsum", "max"): {"styavbvi": 0.5700000000000001, "59up4v56": 0.56, "ktv6fk7q": 0.020000000000000004},
    ("combmnz", "z"): {"hg3xpej0": 12.140912149308225, "styavbvi": 4.177863742936749, "jrqlhjsm": -4.732485182895111},
    ("combmin", "sum"): {"25aj8rj5": 0.2, "3qvh482o": 0.2, "nksd3wuw": 0.0},
    ("combmax", "rank"): {"25aj8rj5": 1.0, "hg3xpej0": 1.0, "ktv6fk7q": 0.09999999999999998},
}


def test_real_runs_fuse_as_ranx_fuses_them(shared: Path) -> None:
    runs = [read_run(path) for path in sorted((shared / "checkthat25_4b" / "runs").glob("dev.*"))]
    for (method, normalize), of_ranx in RANX.items():
        weights = [0.5, 0.2, 0.2, 0.1] if method == "wsum" else None
        fused = fuse(*runs, method=method, normalize=normalize, weights=weights)
        got = {hit.id: hit.score for hit in fused["dev:16"]}
        assert {doc: got[doc] for doc in of_ranx} == pytest.approx(of_ranx, rel=1e-6), (method, normalize)

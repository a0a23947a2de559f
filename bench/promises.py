"""Are promises kept? Calibrated scores, cut lists and refusals over random divisions of topics.

    FONTES_DATA=DIR python bench/promises_runs.py --work DIR        # the runs, once
    FONTES_DATA=DIR python bench/promises.py --work DIR [--collection NAME ...] [--divisions 200] [--plot FILE.svg]

Each division puts half of the units (topics, or topics that share a relevant document) on the calibration side, and there half
into the map and half into what promises rest on; the other side is the test. A promise in expectation is kept in the mean if
the mean loss over divisions is at most the risk, but for two standard errors of that mean. A division is within what the
statement allows if its test side fails no more often than the .95 quantile for a promise that holds exactly:

* recall, complete, abstain: with n held-out and m test units, l = floor(risk * (n + 1)), the number of failed test units is
  beta-binomial (m, l, n + 1 - l), because it counts the test units below the l-th lowest of n held-out ones. The loss of
  recall is a share, not 0 or 1, which varies less, so that the allowance is wide for it.
* precision: the promise itself may fail for 1 - confidence of the calibration sides. A division is within if its loss is at
  most the .95 quantile of a binomial (m, risk), over m.

The level is the greatest of LEVELS that all divisions can promise. "k, same" is the least fixed k whose recall (or share of
complete topics) on the test side is that of the cut lists: chosen with the judgments of the test side, which a user lacks. "k,
promised" is the least k that conformal risk control allows on all topics of the calibration side. Results are kept in
WORK/results and not computed again. Set OMP_NUM_THREADS=1: the matrices are small.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import data_option, table
from numpy.typing import NDArray
from promises_runs import COLLECTIONS, DEEP, DEPTH, PIPELINES, grouping, judgments
from scipy.stats import betabinom, binom

import fontes as ft
from fontes.calibration import HeldOutTopics
from fontes.calibration.held_out import BEST, MISSING, best_probabilities, expected_shares
from fontes.calibration.maps import ProbabilityMap, features_of, in_order
from fontes.calibration.reliability import labels_of, reliability_of
from fontes.core.errors import ParameterError
from fontes.core.run import Run
from fontes.core.values import Topics
from fontes.train.calibration import _grid as precision_grid, fit_curve, fit_log_odds
from fontes.train.splits import units_without_leakage

LEVELS = (0.9, 0.8, 0.7, 0.6, 0.5)
CURVE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
KINDS = ("recall", "complete", "precision")
RISK, CONFIDENCE, TOP = 0.1, 0.9, 10
REMOVED = ("none", "half")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sets:
    """Rows of relevant documents and of complete evidence sets, by topic, so that a division reads them at once."""

    relevant: NDArray[np.int32]
    rows: NDArray[np.int64]  # of all members of complete sets
    starts: NDArray[np.int64]  # of each set among them
    topics: NDArray[np.int64]  # of each set

    @classmethod
    def of(cls, run: Run, qrels: ft.Qrels) -> Sets:
        relevant, rows, starts, topics = [], [], [], []
        for number, (topic, ranking) in enumerate(run.items()):
            row = {doc: int(run.bounds[number]) + position for position, doc in enumerate(ranking.ids)}
            relevant.append(sum(grade > 0 for grade in qrels[topic].values()))
            for members in qrels.groups(topic):
                if all(doc in row for doc in members):
                    starts.append(len(rows))
                    topics.append(number)
                    rows += [row[doc] for doc in members]
        columns = (np.array(values, dtype=np.int64) for values in (rows, starts, topics))
        return cls(np.array(relevant, dtype=np.int32), *columns)

    def complete(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The probability down to which each topic's first set is complete."""
        values = np.full(len(self.relevant), MISSING, dtype=np.float32)
        if len(self.starts):
            np.maximum.at(values, self.topics, np.minimum.reduceat(scores[self.rows], self.starts))
        return values


def held_topics(data: Collected, run: Run, units: list[list[int]], grid: NDArray[np.float32]) -> HeldOutTopics:
    """`HeldOutTopics.of` over arrays."""
    numbers = np.array([number for unit in units for number in unit])
    rows = np.concatenate([np.arange(run.bounds[n], run.bounds[n + 1]) for n in numbers])
    sizes = np.diff(run.bounds)[numbers]
    topic = np.repeat(np.arange(len(numbers)), sizes)
    labels, scores, width = data.labels[rows], run.scores[rows], len(grid) + 1
    first = np.searchsorted(-grid, -scores, side="left")
    kept = np.bincount(topic * width + first, minlength=len(numbers) * width).reshape(-1, width)[:, :-1].cumsum(axis=1)
    return HeldOutTopics(
        unit=np.repeat(np.arange(len(units), dtype=np.int32), [len(unit) for unit in units]),
        relevant=data.sets.relevant[numbers],
        bounds=np.concatenate([[0], np.cumsum(np.bincount(topic[labels], minlength=len(numbers)))]),
        retrieved=scores[labels],
        shares=expected_shares(run)[rows][labels],
        complete=data.sets.complete(run.scores)[numbers],
        best=best_probabilities(run)[numbers],
        grid=grid,
        kept=kept.astype(np.int32),
    )


@dataclass(frozen=True, eq=False)
class Collected:
    """A run as arrays: probabilities are computed for all rows at once, and topics are chosen by number."""

    run: Run
    qrels: ft.Qrels
    features: Floats
    labels: NDArray[np.bool_]
    units: list[list[str]]
    removed: dict[str, tuple[Run, Floats]]  # the best documents alone
    recall: Floats
    complete: Floats
    sets: Sets

    @classmethod
    def of(cls, name: str, pipeline: str, data: Path, work: Path) -> Collected:
        folder, topics = work / "runs" / name, ft.read_topics(data / name / "queries.jsonl")

        def read(suffix: str = "") -> Run:
            values = ft.read_run(folder / f"{pipeline}{suffix}.run")
            return Run.of(
                {topic: list(zip(r.ids, r.scores.tolist(), strict=True)) for topic, r in values.items()}, topics_of(ids)
            )

        def topics_of(chosen: Sequence[str]) -> Topics:
            return Topics(topics[i] for i in chosen)

        ids = sorted(ft.read_run(folder / f"{pipeline}.run"))
        run, qrels = read(), judgments(data / name).only(ids)
        removed = {suffix: read(f".{suffix}") for suffix in REMOVED}
        recall, complete = at_depths(run, qrels, DEEP.get(name, DEPTH))
        units = units_without_leakage(run.topics, qrels, groups=grouping(name))
        best = {suffix: (masked.top(BEST), features_of(masked.top(BEST))) for suffix, masked in removed.items()}
        return cls(run, qrels, features_of(run), labels_of(run, qrels, 1), units, best, recall, complete, Sets.of(run, qrels))

    def rows(self, ids: set[str]) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = self.chosen(ids)[self.run.topic_numbers]
        return chosen

    def chosen(self, ids: set[str]) -> NDArray[np.bool_]:
        return np.array([topic in ids for topic in self.run.topics], dtype=np.bool_)


def at_depths(run: Run, qrels: ft.Qrels, depth: int) -> tuple[Floats, Floats]:
    """Recall, and whether an evidence set is complete, of each topic among the first 1, 2, … documents."""
    recall, complete = np.zeros((len(run), depth)), np.zeros((len(run), depth))
    for number, (topic, ranking) in enumerate(run.items()):
        rank = {doc: position for position, doc in enumerate(ranking.ids)}
        relevant = [doc for doc, grade in qrels[topic].items() if grade > 0]
        for doc in relevant:
            recall[number, rank.get(doc, depth) :] += 1 / len(relevant)
        first = min(max(rank.get(doc, depth) for doc in members) for members in qrels.groups(topic))
        complete[number, first:] = 1
    return recall, complete


@dataclass(frozen=True, eq=False)
class Division:
    """What a division leaves to measure: held-out and test topics by probability, and the test side's rows."""

    held_out: HeldOutTopics
    test: HeldOutTopics
    probabilities: NDArray[np.float32]
    shares: NDArray[np.float32]
    bounds: NDArray[np.int64]
    labels: NDArray[np.bool_]
    numbers: NDArray[np.int64]
    calibration: NDArray[np.int64]
    removed: dict[str, Floats]
    several: NDArray[np.bool_]

    def kept(self, kind: str, threshold: float) -> NDArray[np.int64]:
        values = self.shares if kind == "recall" else self.probabilities
        above = np.concatenate([[0], np.cumsum(values >= np.float32(threshold))])
        return above[self.bounds[1:]] - above[self.bounds[:-1]]

    def losses(self, kind: str, threshold: float) -> Floats:
        """The loss of each test topic; of "found" that of recall among documents by probability."""
        values = self.test.shares if kind == "recall" else self.test.retrieved
        found = np.concatenate([[0], np.cumsum(values >= np.float32(threshold))])
        hits = found[self.test.bounds[1:]] - found[self.test.bounds[:-1]]
        if kind in ("recall", "found"):
            return 1 - hits / self.test.relevant
        if kind == "complete":
            return (self.test.complete < np.float32(threshold)).astype(np.float64)
        kept = self.kept(kind, threshold)
        return np.where(kept > 0, 1 - hits / np.maximum(kept, 1), 0.0)


def fit_map(features: Floats, labels: NDArray[np.bool_], kind: str) -> ProbabilityMap:
    return fit_curve(fit_log_odds(features, labels), features, labels, kind)


def divide(data: Collected, kind: str, seed: int) -> Division:
    """One division, with a map and thresholds that know nothing of the test side."""
    order = np.random.default_rng(seed).permutation(len(data.units))
    half = len(order) // 2
    of_map, held, tested = (
        [data.units[i] for i in part] for part in (order[: half // 2], order[half // 2 : half], order[half:])
    )
    learning = data.rows({topic for unit in of_map for topic in unit})
    mapping = fit_map(data.features[learning], data.labels[learning], kind)

    values = in_order(mapping.probabilities(mapping.log_odds(data.features)), data.run)
    run = Run(data.run.topics, data.run.ids, data.run.bounds, data.run.codes, values)
    grid = precision_grid(run.scores[learning])
    place = {topic: number for number, topic in enumerate(data.run.topics)}
    held_out = held_topics(data, run, [[place[topic] for topic in unit] for unit in held], grid)
    if not seed:
        check_equal(held_out, HeldOutTopics.of(run, data.qrels, held, grid, 1))
    test = held_topics(data, run, [[place[topic] for topic in unit] for unit in tested], grid[:0])
    numbers = np.array([place[topic] for unit in tested for topic in unit])
    pieces = [np.arange(run.bounds[n], run.bounds[n + 1]) for n in numbers]
    rows = np.concatenate(pieces)
    bounds = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    removed = {}
    for suffix, (masked, features) in data.removed.items():
        best = in_order(mapping.probabilities(mapping.log_odds(features)), masked)
        removed[suffix] = best_probabilities(Run(masked.topics, masked.ids, masked.bounds, masked.codes, best))[numbers]
    calibration = np.array([place[topic] for unit in (*of_map, *held) for topic in unit])
    return Division(
        held_out,
        test,
        run.scores[rows],
        expected_shares(run)[rows],
        bounds,
        data.labels[rows],
        numbers,
        calibration,
        removed,
        test.relevant > 1,
    )


def check_equal(ours: HeldOutTopics, theirs: HeldOutTopics) -> None:
    for kind in KINDS[:2]:
        for one, other in zip(ours.losses(kind), theirs.losses(kind), strict=True):
            np.testing.assert_allclose(one, other)
    for name in ("unit", "relevant", "bounds", "complete", "best", "kept"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


def allowed(kind: str, held: int, tested: int, risk: float) -> float:
    """The greatest mean loss of a test side that the statement allows, see above."""
    if kind == "precision":
        return float(binom.ppf(0.95, tested, risk)) / tested
    rank = int(risk * (held + 1) + 1e-9)
    return float(betabinom.ppf(0.95, tested, rank, held + 1 - rank)) / tested


def mean(values: Floats, test: HeldOutTopics) -> float:
    """The mean over units of the mean over their topics."""
    return float((values * test.weights).sum() / test.units)


def promised_k(losses: Floats, units: NDArray[np.int64], risk: float) -> float:
    """The least k whose loss on calibration topics allows the promise; losses are (topics, k)."""
    count = units.max() + 1
    sums = (losses / np.bincount(units)[units][:, None]).sum(axis=0)
    fits = np.flatnonzero(sums + 1 <= risk * (count + 1) + 1e-9)
    return float(fits[0] + 1) if len(fits) else float("nan")


def kept_promise(data: Collected, divisions: Sequence[Division], kind: str, level: float) -> dict[str, Any] | None:
    """What a promise gives over all divisions; None if one of them cannot make it."""
    rows = []
    unit_of = {topic: n for n, unit in enumerate(data.units) for topic in unit}
    unit = np.array([unit_of[topic] for topic in data.run.topics])
    at_k = None if kind == "precision" else data.recall if kind == "recall" else data.complete
    for one in divisions:
        try:
            promise = one.held_out.promise(kind, level, CONFIDENCE)
        except ParameterError:
            return None
        loss = mean(one.losses(kind, promise.threshold), one.test)
        lengths = one.kept(kind, promise.threshold)
        row = {"loss": loss, "length": float(lengths.mean()), "median": float(np.median(lengths))}
        row["within"] = loss <= allowed(kind, one.held_out.units, one.test.units, promise.risk) + 1e-9
        row["empty"] = float((lengths == 0).mean())
        if at_k is not None:
            reached = np.array([mean(column, one.test) for column in at_k[one.numbers].T])
            same = np.flatnonzero(reached >= 1 - loss - 1e-9)
            row["same"] = float(same[0] + 1) if len(same) else float("nan")
            members = np.unique(unit[one.calibration], return_inverse=True)[1]
            row["promised"] = promised_k(1 - at_k[one.calibration], members, promise.risk)
        else:
            row["recall"] = 1 - mean(one.losses("found", promise.threshold), one.test)
        rows.append(row)
    result: dict[str, Any] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    losses = np.array([row["loss"] for row in rows])
    result |= {"level": level, "error": float(losses.std(ddof=1) / len(losses) ** 0.5), "units": divisions[0].held_out.units}
    result["tested"] = divisions[0].test.units
    return result


def refusals(divisions: Sequence[Division]) -> dict[str, Any]:
    """False refusals, and refusals of topics without their relevant documents."""
    rows = []
    for one in divisions:
        false = mean((one.held_out.p_values(one.test.best) <= RISK).astype(float), one.test)
        row = {"false": false, "within": false <= allowed("answerable", one.held_out.units, one.test.units, RISK) + 1e-9}
        for suffix, best in one.removed.items():
            refused = one.held_out.p_values(best.astype(np.float32)) <= RISK
            chosen = one.several if suffix == "half" else np.ones(len(refused), dtype=np.bool_)
            row[suffix] = float(refused[chosen].mean()) if chosen.sum() >= 5 else float("nan")
        rows.append(row)
    result: dict[str, Any] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    return result | {"error": float(np.std([row["false"] for row in rows], ddof=1) / len(rows) ** 0.5)}


def calibration_errors(divisions: Sequence[Division]) -> dict[str, Any]:
    """ECE of test sides over all documents and over the first 10; the curve of the first 10 over all divisions."""
    all_rows, top_rows, pooled = [], [], []
    for one in divisions:
        rank = np.arange(len(one.labels)) - np.repeat(one.bounds[:-1], np.diff(one.bounds))
        values, first = one.probabilities.astype(np.float64), rank < TOP
        all_rows.append(reliability_of(values, one.labels).ece)
        top_rows.append(reliability_of(values[first], one.labels[first]).ece)
        pooled.append((values[first], one.labels[first]))
    curve = reliability_of(*(np.concatenate(part) for part in zip(*pooled, strict=True)))  # type: ignore[arg-type]
    bins = [(b.probability, b.relevant) for b in curve.bins]
    return {"ece": float(np.mean(all_rows)), "top": float(np.mean(top_rows)), "pooled": curve.ece, "bins": bins}


def measure(data: Collected, kind: str, count: int) -> dict[str, Any]:
    """All figures of a run."""
    start = time.perf_counter()
    divisions = [divide(data, kind, seed) for seed in range(count)]
    result: dict[str, Any] = {"topics": len(data.run), "units": len(data.units), **calibration_errors(divisions)}
    for promise in KINDS:
        tries = (kept_promise(data, divisions, promise, level) for level in LEVELS)
        result[promise] = next((found for found in tries if found is not None), None)
    result["abstain"] = refusals(divisions)
    curve = (kept_promise(data, divisions[:50], "recall", level) for level in CURVE)
    result["curve"] = [found for found in curve if found is not None]
    return result | {"seconds": time.perf_counter() - start}


def shifted(source: Collected, target: Collected, kind: str, count: int = 5) -> dict[str, Any]:
    """Promises learned on one collection and used on another: means over divisions of the source's topics."""
    rows = []
    names = np.arange(len(target.run))
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(source.units))
        of_map, held = ([source.units[i] for i in part] for part in (order[: len(order) // 2], order[len(order) // 2 :]))
        learning = source.rows({topic for unit in of_map for topic in unit})
        mapping = fit_map(source.features[learning], source.labels[learning], kind)
        runs = []
        for data in (source, target):
            values = in_order(mapping.probabilities(mapping.log_odds(data.features)), data.run)
            runs.append(Run(data.run.topics, data.run.ids, data.run.bounds, data.run.codes, values))
        held_out = HeldOutTopics.of(runs[0], source.qrels, held, precision_grid(runs[0].scores[learning]), 1)
        test = held_topics(target, runs[1], [[number] for number in range(len(names))], held_out.grid[:0])
        one = Division(
            held_out,
            test,
            runs[1].scores,
            expected_shares(runs[1]),
            target.run.bounds,
            target.labels,
            names,
            names[:0],
            {},
            names > 0,
        )
        row = {"top": calibration_errors([one])["top"], "false": float((held_out.p_values(test.best) <= RISK).mean())}
        for promise in KINDS:
            level = next((level for level in LEVELS if can(held_out, promise, level)), None)
            row[f"{promise} promised"] = level or float("nan")
            row[promise] = (
                float("nan")
                if level is None
                else 1 - float(one.losses(promise, held_out.promise(promise, level, CONFIDENCE).threshold).mean())
            )
        rows.append(row)
    return {key: float(np.nanmean([row[key] for row in rows])) for key in rows[0]}


def can(held_out: HeldOutTopics, kind: str, level: float) -> bool:
    try:
        held_out.promise(kind, level, CONFIDENCE)
    except ParameterError:
        return False
    return True


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of promises_runs.py")
    parser.add_argument("--collection", nargs="*", default=COLLECTIONS, help="names (default: six)")
    parser.add_argument("--divisions", type=int, default=200)
    parser.add_argument("--map", default="beta", help="isotonic, beta or logistic (default: %(default)s)")
    parser.add_argument("--plot", type=Path, help="draw length against promise")
    given = parser.parse_args()
    kept = given.work / "results"
    kept.mkdir(exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    data: dict[str, Collected] = {}
    for name in given.collection:
        for pipeline in PIPELINES:
            key = f"{name}.{pipeline}"
            if not (given.work / "runs" / name / f"{pipeline}.half.run").exists():
                print(f"{key}: no runs")
                continue
            data[key] = Collected.of(name, pipeline, given.data, given.work)
            path = kept / f"{key}.{given.map}.{given.divisions}.json"
            if not path.exists():
                path.write_text(json.dumps(measure(data[key], given.map, given.divisions)))
                print(f"{key}: {json.loads(path.read_text())['seconds']:.0f} s", flush=True)
            results[key] = json.loads(path.read_text())
    report(results)
    shifts(data, given.map, kept)
    if given.plot:
        draw(results, given.plot)


def number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def report(results: dict[str, dict[str, Any]]) -> None:
    keys = [(*key.split("."), found) for key, found in results.items()]
    table(
        "Calibration error on test sides",
        ["collection", "run", "topics", "units", "ECE", f"ECE, first {TOP}"],
        [[n, p, f["topics"], f["units"], number(f["ece"], 4), number(f["top"], 4)] for n, p, f in keys],
    )
    for kind in KINDS:
        rows = []
        for name, pipeline, found in keys:
            one = found[kind]
            if one is None:
                rows.append([name, pipeline, "none", *[""] * 7])
                continue
            kept = "yes" if one["loss"] <= 1 - one["level"] + 2 * one["error"] else "NO"
            row = [name, pipeline, f"{one['level']:g}", one["units"], number(1 - one["loss"]), kept, f"{one['within']:.1%}"]
            more = [number(one.get("same"), 1), number(one.get("promised"), 1)]
            if kind == "precision":
                more = [f"{one['empty']:.0%}", number(one["recall"])]
            rows.append([*row, number(one["length"], 1), *more])
        last = ["k, same", "k, promised"] if kind != "precision" else ["empty lists", "recall"]
        table(
            f"cut({kind}=…)",
            ["collection", "run", "level", "held out", "reached", "kept in the mean", "within", "mean length", *last],
            rows,
        )
    table(
        f"abstain(false_alarm={RISK:g})",
        ["collection", "run", "false refusals", "within", "refused, none left", "refused, half left"],
        [
            [n, p, number(a["false"]), f"{a['within']:.1%}", number(a["none"]), number(a["half"])]
            for n, p, f in keys
            for a in [f["abstain"]]
        ],
    )


def shifts(data: dict[str, Collected], kind: str, kept: Path) -> None:
    rows = []
    for source in data:
        for target in data:
            if source == target or source.split(".")[1] != target.split(".")[1]:
                continue
            path = kept / f"shift.{source}.{target}.{kind}.json"
            if not path.exists():
                path.write_text(json.dumps(shifted(data[source], data[target], kind)))
            one = json.loads(path.read_text())
            pairs = [f"{number(one[promise])} ({number(one[f'{promise} promised'], 1)})" for promise in KINDS]
            rows.append([*source.split("."), target.split(".")[0], number(one["top"]), *pairs, number(one["false"])])
    header = [
        "learned on",
        "run",
        "used on",
        f"ECE, first {TOP}",
        *(f"{promise} (promised)" for promise in KINDS),
        "false refusals",
    ]
    table("Shift", header, rows)


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Mean length of cut(recall=…), and the fixed k that reaches the same."""
    from fontes.plots.plot import draw_plot

    chosen = [key for key in ("checkthat20_task2.hybrid", "scifact.hybrid", "ctkfacts_cs.hybrid") if key in results]

    def lines(figure: Any) -> str:
        axes = figure.subplots(1, len(chosen))
        for axis, key in zip(np.atleast_1d(axes), chosen, strict=True):
            curve = results[key]["curve"]
            levels = [one["level"] for one in curve]
            axis.plot(levels, [one["length"] for one in curve], marker="o", markersize=3, label="cut(recall=…)")
            axis.plot(levels, [one["same"] for one in curve], marker="s", markersize=3, label="fixed k, same recall")
            axis.plot(levels, [one["promised"] for one in curve], marker="^", markersize=3, label="fixed k, same promise")
            axis.set(title=key.split(".")[0], xlabel="promised recall", yscale="log", yticks=[1, 3, 10, 30])
            axis.set_yticks([], minor=True)
            axis.set_yticklabels(["1", "3", "10", "30"])
        figure.legend(*np.atleast_1d(axes)[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        np.atleast_1d(axes)[0].set_ylabel("documents of a topic")
        return "Mean length of lists against the promised recall, hybrid runs"

    draw_plot(lines).save(path)


if __name__ == "__main__":
    main()

"""Fusion: agreement with ranx, seconds beside ranx, and what it brings on the development runs of CheckThat! 2025, task 4b.

    FONTES_DATA=DIR python bench/fusion.py [--peers DIR] [--parts agreement,speed,first,checkthat]

Prints Markdown tables. ranx runs in the peers' environment, in a process that answers one request a line; in the timings the
two take turns. Both have the runs in memory; the seconds are those of one call of `fuse`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

METHODS = {  # ours: ranx's
    "rrf": "rrf",
    "combsum": "sum",
    "combmnz": "mnz",
    "combmax": "max",
    "combmin": "min",
    "wsum": "wsum",
    "borda": "bordafuse",
    "isr": "isr",
}
NORMS = {None: None, "min-max": "min-max", "max": "max", "sum": "sum", "z": "zmuv", "rank": "rank"}
BY_RANK = ("rrf", "borda", "isr")
TIMED = (("rrf", None), ("wsum", "min-max"), ("combmnz", "z"), ("borda", None), ("isr", None))
TOPICS, DEPTH, COLLECTION, POOL = 1400, 100, 7718, 200


def main() -> None:
    from harness import machine, options

    parser = options(__doc__)
    parser.add_argument("--parts", default="agreement,speed,first,checkthat", help="(default: %(default)s)")
    given = parser.parse_args()
    sys.stdout.write(f"{machine()}\n")
    parts = {"agreement": agreement, "speed": speed, "first": first, "checkthat": checkthat}
    for part in given.parts.split(","):
        parts[part](given)


def agreement(given: Any) -> None:
    """Scores of every method and normalisation, ours and ranx's, on real runs.

    Topics with a list of one score throughout are left out; by rank also those with equal scores in a list, which ranx ranks
    in an order of its own.
    """
    from harness import table

    import fontes as ft

    for title, runs in (("checkthat25_4b, 4 development runs", dev_runs(given.data)), ("scifact, 3 runs", scifact(given.data))):
        alike, tied = uneven(runs)
        runs = [ft.Run.of({t: dict(r) for t, r in run.to_dict().items() if t not in alike}) for run in runs]
        weights = [0.5, 0.2, 0.2, 0.1][: len(runs)]
        rows = []
        with Ranx(given.peers, runs) as ranx:
            for method in METHODS:
                for norm in [None] if method in BY_RANK else NORMS:
                    ours = ft.fuse(*runs, method=method, normalize=norm, weights=weights if method == "wsum" else None)
                    theirs = ranx.fused(method, norm, weights, len(runs))
                    out = tied if method in BY_RANK or norm == "rank" else set()
                    kept = {topic: ranking for topic, ranking in ours.to_dict().items() if topic not in out}
                    rows.append([f"{method}, {norm or 'none'}", len(kept), *compared(kept, theirs)])
        table(
            f"{title}: {len(runs[0])} topics, {len(alike)} left out (a list with one score throughout)",
            [
                "method, normalisation",
                "topics",
                "documents",
                "greatest relative difference",
                "topics in another order, ties apart",
            ],
            rows,
        )


def compared(ours: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]]) -> list[Any]:
    documents, furthest, swapped = 0, 0.0, 0
    if any(ours[t].keys() != theirs[t].keys() for t in ours):
        return ["differ", "", ""]
    for topic, ranking in ours.items():
        documents += len(ranking)
        mine = np.array(list(ranking.values()))
        other = np.array([theirs[topic][doc] for doc in ranking])
        furthest = max(furthest, float(np.max(np.abs(mine - other) / np.maximum(np.abs(other), 1e-3), initial=0)))
        swapped += bool(np.any(np.diff(other) > 1e-6 * np.maximum(np.abs(other[1:]), 1e-3)))
    return [f"{documents:,}", f"{furthest:.1e}", swapped]


def speed(given: Any) -> None:
    """Milliseconds of `fuse` on made runs, warm; Fontes and ranx take turns."""
    from harness import middle, spread, table

    import fontes as ft

    for count in (2, 5):
        runs, rows = made(count), []
        with Ranx(given.peers, runs) as ranx:
            for method, norm in TIMED:
                weights = [1.0] * count if method == "wsum" else None
                ours, theirs = [], []
                for _ in range(given.runs + 1):
                    start = time.perf_counter()
                    ft.fuse(*runs, method=method, normalize=norm, weights=weights)
                    ours.append((time.perf_counter() - start) * 1e3)
                    theirs.append(ranx.seconds(method, norm, count) * 1e3)
                ratio = middle(theirs[1:]) / middle(ours[1:])
                rows.append([f"{method}, {norm or 'none'}", spread(ours[1:], 0), spread(theirs[1:], 0), f"{ratio:.1f}"])
        table(
            f"{count} runs of {TOPICS:,} topics x {DEPTH} documents, milliseconds: median (least–greatest) of {given.runs}",
            ["method, normalisation", "Fontes", "ranx", "ranx / Fontes"],
            rows,
        )


def first(given: Any) -> None:
    """Milliseconds of the first `fuse` of a process, without imports: ranx compiles, and later loads what it compiled."""
    from harness import table

    runs, rows = made(2), []
    for method, norm in TIMED[:2]:
        with tempfile.TemporaryDirectory() as cache:
            theirs = []
            for _ in range(2):
                with Ranx(given.peers, runs, cache) as ranx:
                    theirs.append(ranx.seconds(method, norm, 2) * 1e3)
        ours = fresh(runs, method, norm) * 1e3
        rows.append([f"{method}, {norm or 'none'}", f"{ours:.0f}", f"{theirs[0]:,.0f}", f"{theirs[1]:,.0f}"])
    header = ["method, normalisation", "Fontes", "ranx, never compiled", "ranx, compiled before"]
    table(f"the first call in a process, 2 runs of {TOPICS:,} topics x {DEPTH} documents, milliseconds", header, rows)


def checkthat(given: Any) -> None:
    """What fusion brings over the best single development run: means, and the paired difference with 95 % intervals."""
    from harness import table
    from scipy import stats

    import fontes as ft

    paths = dev_paths(given.data)
    runs, qrels = dev_runs(given.data), ft.read_qrels(given.data / "checkthat25_4b" / "qrels" / "dev.tsv")
    for measure in ("RR@5", "nDCG@10"):
        systems = {path.stem.removeprefix("dev."): run for path, run in zip(paths, runs, strict=True)}
        best = max(systems, key=lambda name: ft.evaluate(systems[name], qrels, measure)[measure])
        systems |= {
            "rrf": ft.fuse(*runs),
            "isr": ft.fuse(*runs, method="isr"),
            "wsum, min-max, equal weights": ft.fuse(*runs, method="wsum"),
        }
        for method in ("rrf", "isr", "wsum"):
            start = time.perf_counter()
            learned = ft.tuning.fit_weights(runs, qrels, measure, method=method)
            seconds = time.perf_counter() - start
            systems[f"{method}, weights by 5-fold cross-validation"] = learned.run
            sys.stdout.write(f"\n{method}, {measure}, learned in {seconds:.1f} s:\n{learned}\n")
        base = ft.evaluate(systems[best], qrels, measure).array(measure)
        rows = []
        for name, run in systems.items():
            values = ft.evaluate(run, qrels, measure).array(measure)
            gain = values - base
            interval = stats.ttest_1samp(gain, 0).confidence_interval(0.95) if gain.any() else (0, 0)
            low, high = np.quantile(resampled(gain), [0.025, 0.975])
            rows.append(
                [
                    name,
                    f"{values.mean():.4f}",
                    f"{gain.mean():+.4f}",
                    f"{interval[0]:+.4f} to {interval[1]:+.4f}",
                    f"{low:+.4f} to {high:+.4f}",
                ]
            )
        header = ["system", measure, f"beyond {best}", "95 % interval (t)", "95 % interval (bootstrap)"]
        table(f"checkthat25_4b, development, {len(qrels):,} topics, {measure}", header, rows)


def resampled(values: np.ndarray[Any, Any], times: int = 10_000) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    return np.array([values[rng.integers(0, len(values), len(values))].mean() for _ in range(times)])


def dev_paths(data: Path) -> list[Path]:
    return sorted((data / "checkthat25_4b" / "runs").glob("dev.*"))


def dev_runs(data: Path) -> list[Any]:
    import fontes as ft

    return [ft.read_run(path) for path in dev_paths(data)]


def scifact(data: Path) -> list[Any]:
    """Three models on scifact's test topics, 100 documents each."""
    import fontes as ft

    folder = data / "scifact"
    judged = ft.read_qrels(folder / "qrels" / "test.tsv")
    topics = ft.Topics(t for t in ft.read_topics(folder / "queries.jsonl").values() if t.id in judged)
    with tempfile.TemporaryDirectory() as place:
        index = ft.Index.build(folder / "corpus.jsonl", Path(place) / "index")
        return [(stage % 100)(topics).with_(documents=None) for stage in (index.bm25(), index.tfidf(), index.ql())]


def uneven(runs: Sequence[Any]) -> tuple[set[str], set[str]]:
    """The topics for which a run has one score throughout, and those for which it has some score twice."""
    lists = [(topic, list(ranking.values())) for run in runs for topic, ranking in run.to_dict().items()]
    alike = {topic for topic, scores in lists if len(set(scores)) < 2}
    return alike, {topic for topic, scores in lists if len(set(scores)) < len(scores)}


def made(count: int) -> list[Any]:
    """Runs that overlap by half, with normally distributed scores."""
    import fontes as ft

    rng = np.random.default_rng(0)
    ids = [f"{i * 2654435761 % 2**32:08x}" for i in range(COLLECTION)]
    runs: list[dict[str, dict[str, float]]] = [{} for _ in range(count)]
    for topic in range(TOPICS):
        pool = rng.choice(COLLECTION, POOL, replace=False)
        for run in runs:
            docs = rng.choice(pool, DEPTH, replace=False).tolist()
            run[f"q{topic}"] = {ids[doc]: float(s) for doc, s in zip(docs, rng.normal(10, 3, DEPTH), strict=True)}
    return [ft.Run.of(run) for run in runs]


def fresh(runs: Sequence[Any], method: str, norm: str | None) -> float:
    """Seconds of the first fusion in a new process."""
    import pickle

    with tempfile.NamedTemporaryFile(suffix=".runs") as file:
        pickle.dump(list(runs), file)
        file.flush()
        command = [sys.executable, __file__, "first", file.name, method, norm or ""]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def answer_first(path: str, method: str, norm: str) -> None:
    """The child of `fresh`."""
    import pickle

    runs = pickle.loads(Path(path).read_bytes())
    import fontes as ft

    start = time.perf_counter()
    ft.fuse(*runs, method=method, normalize=norm or None)
    sys.stdout.write(f"{time.perf_counter() - start}\n")


class Ranx:
    """ranx with some runs, in a process of its own."""

    def __init__(self, environment: Path, runs: Sequence[Any], cache: str | None = None) -> None:
        import peers

        self.folder = tempfile.TemporaryDirectory()
        for i, run in enumerate(runs):
            (Path(self.folder.name) / f"{i}.json").write_text(json.dumps(run.to_dict()), encoding="utf-8")
        variables = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
        self.child = subprocess.Popen(
            [peers.python(environment), __file__, "ranx", self.folder.name, str(len(runs))],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Ranx:
        return self

    def __exit__(self, *error: object) -> None:
        self.child.communicate()
        self.folder.cleanup()

    def seconds(self, method: str, norm: str | None, count: int) -> float:
        """Of one call of ranx.fuse."""
        return float(self._ask(method, norm, [1.0] * count, None))

    def fused(self, method: str, norm: str | None, weights: Sequence[float], count: int) -> dict[str, dict[str, float]]:
        """What ranx.fuse gives."""
        target = Path(self.folder.name) / "fused.json"
        self._ask(method, norm, list(weights), str(target))
        fused: dict[str, dict[str, float]] = json.loads(target.read_text(encoding="utf-8"))
        return fused

    def _ask(self, method: str, norm: str | None, weights: list[float], target: str | None) -> str:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        request = [METHODS[method], NORMS[norm], weights if method == "wsum" else None, target]
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline()


def answer(folder: str, count: int) -> None:
    """The child of `Ranx`: fuses as each line of standard input says, and prints the seconds."""
    import ranx

    runs = [ranx.Run(json.loads((Path(folder) / f"{i}.json").read_text(encoding="utf-8"))) for i in range(count)]
    for line in sys.stdin:
        method, norm, weights, target = json.loads(line)
        start = time.perf_counter()
        fused = ranx.fuse(runs, norm=norm, method=method, params={"weights": weights} if weights else None)
        seconds = time.perf_counter() - start
        if target:
            plain = {t: dict(ranking) for t, ranking in fused.run.items()}
            Path(target).write_text(json.dumps(plain), encoding="utf-8")
        sys.stdout.write(f"{seconds}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["ranx"]:
        answer(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["first"]:
        answer_first(*sys.argv[2:])
    else:
        main()

"""Fusion of BM25 and dense by log odds of calibrated scores, beside RRF and weighted sums: nDCG@10 over halves of topics.

    FONTES_DATA=DIR python bench/logodds.py --work DIR [--divisions 10]

The runs are those of bench/promises_runs.py. The maps learn from one half of the topics, and the other half is measured.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from harness import data_option, table
from promises_runs import COLLECTIONS, judgments

import fontes as ft
from fontes.calibration.model import Calibration
from fontes.core import Topics
from fontes.train.calibration import train_calibration

SYSTEMS = ("bm25", "dense")


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of bench/promises_runs.py")
    parser.add_argument("--divisions", type=int, default=10, help="random halves of the topics (default: 10)")
    given = parser.parse_args()
    rows = []
    for name in COLLECTIONS:
        values = np.array(list(measured(given.data / name, given.work / "runs" / name, given.divisions)))
        spread = (values[:, 0] - values[:, 1]).std()
        rows.append([name, *(f"{mean:.4f}" for mean in values.mean(axis=0)), f"{spread:.4f}"])
    table("nDCG@10 of the other half", ["collection", "logodds", "rrf", "wsum", "spread of logodds - rrf"], rows)


def measured(data: Path, runs: Path, divisions: int) -> list[list[float]]:
    """For each division the nDCG@10 of each method."""
    qrels, every = judgments(data), dict[str, ft.Topic]()
    for file in sorted(data.glob("queries*")):
        every |= {topic.id: topic for topic in Topics.read(file).values()}
    whole = {system: ft.read_run(runs / f"{system}.run") for system in SYSTEMS}
    ids, values = [topic for topic in whole["bm25"] if topic in qrels and topic in every], []

    def part(run: ft.Run, topics: Sequence[str]) -> ft.Run:
        scores = {topic: {hit.id: hit.score for hit in run[topic]} for topic in topics if topic in run}
        return ft.Run.of(scores, Topics([every[topic] for topic in topics]))

    for seed in range(divisions):
        random.Random(seed).shuffle(mixed := list(ids))
        known, other = mixed[: len(ids) // 2], mixed[len(ids) // 2 :]
        test = [part(run, other) for run in whole.values()]
        with tempfile.TemporaryDirectory() as folder:
            for system, run in whole.items():
                train_calibration(part(run, known), qrels, f"{folder}/{system}")
            maps = [Calibration.load(f"{folder}/{system}") for system in SYSTEMS]
        fused = [ft.fuse(*(one.apply(run) for one, run in zip(maps, test, strict=True)), method="logodds")]
        fused += [ft.fuse(*test, method="rrf"), ft.fuse(*test, method="wsum")]
        chosen = ft.Qrels([row for row in qrels.rows() if row[0] in set(other)])
        values.append([float(ft.evaluate(run, chosen, ["nDCG@10"])["nDCG@10"]) for run in fused])
    return values


if __name__ == "__main__":
    main()

"""Coverage of intervals from few human and many machine labels, with judgments that are held back and simulated machines.

    FONTES_DATA=DIR python bench/machine_labels.py [--collections cast2021,cranfield,scifact] [--human 20 40] [--trials 1000]

A machine's labels of a collection are drawn once. In each trial, as many topics as the collection has are drawn with
replacement, which makes its topics the population, and the human judgments of all but the first few are held back. Prints a
Markdown table of the share of trials whose 95 % interval covers the mean over the population: with labels as truth (all
topics), of the people's topics alone, and corrected. "width" is that of the corrected intervals, in widths of those of people
alone. "fixed" draws the people's topics from those of the collection, without replacement, whose mean is then the truth.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from harness import data_option, table
from numpy.typing import NDArray
from scipy.special import stdtrit

from fontes import Index, Qrels, Run, read_qrels, read_run, read_topics
from fontes.measures.evaluation import measure_run
from fontes.measures.names import parse
from fontes.measures.prediction_powered import PredictionPowered

Floats = NDArray[np.float64]
POOL = 20  # documents of each system that the machine labels


class Machine(NamedTuple):
    """Shares of relevant documents missed, and of others called relevant: anywhere, and in the second system's first 10."""

    missed: float
    added: float
    favoured: float = 0.0


MACHINES = {
    "misses 10 %, adds 1 %": Machine(0.1, 0.01),
    "misses 30 %, adds 5 %": Machine(0.3, 0.05),
    "favours the second system": Machine(0.1, 0.01, 0.3),
    "labels at random": Machine(0.9, 0.1),
}
ORGANISERS = {"cast2021": ("doc_org_manual_bm25.run", "doc_org_manual_ance_bert.run")}


def runs_of(folder: Path, qrels: Qrels) -> list[Run]:
    """Two systems: the organisers' of CAsT, or else BM25 and TF-IDF."""
    if folder.name in ORGANISERS:
        return [read_run(folder / "baselines" / name) for name in ORGANISERS[folder.name]]
    topics = read_topics(folder / "queries.jsonl").judged(qrels)
    with tempfile.TemporaryDirectory() as work:
        index = Index.build(folder / "corpus.jsonl", Path(work) / "index", analyzer="english")
        return [(stage % 100)(topics) for stage in (index.bm25(), index.tfidf())]


def labelled(qrels: Mapping[str, Mapping[str, int]], runs: list[Run], machine: Machine, random: np.random.Generator) -> Qrels:
    """Labels of the judged documents and of the first ones of each run, with the machine's errors."""
    labels: dict[str, dict[str, int]] = {}
    for topic, grades in qrels.items():
        firsts = [run[topic].ids[:POOL] if topic in run else [] for run in runs]
        favoured = set(firsts[1][:10])
        labels[topic] = {}
        for doc in dict.fromkeys([*grades, *firsts[0], *firsts[1]]):
            grade = max(grades.get(doc, 0), 0)
            added = random.random() < (max(machine.favoured, machine.added) if doc in favoured else machine.added)
            labels[topic][doc] = (grade if random.random() >= machine.missed else 0) if grade else int(added)
    return Qrels.of(labels)


def values(runs: list[Run], qrels: Qrels, measure: str) -> Floats:
    """Values of the first system and differences of the second from it, (topics, 2)."""
    first, second = (measure_run(run, qrels, [parse(measure)]).array(measure) for run in runs)
    return np.stack([first, second - first], axis=1)


def t_interval(sample: Floats) -> tuple[Floats, Floats]:
    """Means and halves of their 95 % intervals."""
    n = len(sample)
    return sample.mean(axis=0), stdtrit(n - 1, 0.975) * sample.std(axis=0, ddof=1) / np.sqrt(n)


def coverage(human: Floats, machine: Floats, n: int, trials: int, random: np.random.Generator) -> dict[str, Floats]:
    """Shares of trials whose interval covers, for each column, and the widths of the corrected beside those of people alone."""
    total, truth, rows = len(human), human.mean(axis=0), np.arange(n)
    covers: dict[str, Floats] = {name: np.zeros(human.shape[1]) for name in ("as truth", "people alone", "corrected", "fixed")}
    widths = np.zeros((2, human.shape[1]))
    for _ in range(trials):
        drawn = random.integers(0, total, total)
        alone, truths = t_interval(human[drawn[:n]]), t_interval(machine[drawn])
        low, high = PredictionPowered.of(human[drawn[:n]], machine[drawn], rows).interval()
        order = random.permutation(total)
        fixed = PredictionPowered.of(human[order[:n]], machine[order], rows).interval()
        covers["as truth"] += np.abs(truths[0] - truth) <= truths[1]
        covers["people alone"] += np.abs(alone[0] - truth) <= alone[1]
        covers["corrected"] += ~((low > truth) | (truth > high))  # an interval that is missing excludes nothing
        covers["fixed"] += ~((fixed[0] > truth) | (truth > fixed[1]))
        widths += np.where(np.isnan(low), 0, [2 * alone[1], high - low])
    return {name: count / trials for name, count in covers.items()} | {"width": widths[1] / widths[0]}


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--collections", default="cast2021,cranfield,scifact", help="names, separated by commas")
    parser.add_argument("--measure", default="nDCG@10")
    parser.add_argument("--human", type=int, nargs="+", default=[20, 40], help="topics judged by people (default: 20 40)")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    figures = ("as truth", "people alone", "corrected", "width", "fixed")
    rows = []
    for name in given.collections.split(","):
        folder = given.data / name
        test = next(path for split in ("test", "test_docs", "train") if (path := folder / "qrels" / f"{split}.tsv").is_file())
        qrels = read_qrels(test)
        runs = runs_of(folder, qrels)
        human, random = values(runs, qrels, given.measure), np.random.default_rng(given.seed)
        for kind, machine in MACHINES.items():
            by_machine = values(runs, labelled(qrels, runs, machine, random), given.measure)
            for n in given.human:
                shares = coverage(human, by_machine, n, given.trials, random)
                cells = [f"{shares[figure][column]:.3f}".lstrip("0") for column in (0, 1) for figure in figures]
                rows.append([f"{name} ({len(qrels)})", kind, n, *cells])
    header = ["collection (topics)", "machine", "judged", *(f"{what}: {f}" for what in ("mean", "difference") for f in figures)]
    table(f"Coverage of 95 % intervals of {given.measure}, {given.trials} trials", header, rows)


if __name__ == "__main__":
    main()

"""Topics with judgments by people of some, labels by a machine of all, and two runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Grades = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


class Labelled(NamedTuple):
    """Judgments of the first topics by people, all true ones, a machine's with errors, and runs."""

    people: Grades
    truth: Grades
    machine: Grades
    runs: dict[str, Scores]


def labelled(topics: int = 80, human: int = 30, wrong: float = 0.15, seed: int = 1) -> Labelled:
    """10 documents a topic, some relevant; the run "good" finds those better than "poor" does."""
    random = np.random.default_rng(seed)
    docs = [f"d{number}" for number in range(10)]
    truth, machine, good, poor = {}, {}, {}, {}
    for number in range(topics):
        topic, relevant = f"q{number}", random.random(10) < 0.3
        seen = np.where(random.random(10) < wrong, ~relevant, relevant)
        truth[topic] = dict(zip(docs, relevant.astype(int).tolist(), strict=True))
        machine[topic] = dict(zip(docs, seen.astype(int).tolist(), strict=True))
        for run, noise in ((good, 0.5), (poor, 1.5)):
            run[topic] = dict(zip(docs, (relevant + random.normal(0, noise, 10)).tolist(), strict=True))
    people = {topic: truth[topic] for topic in list(truth)[:human]}
    return Labelled(people, truth, machine, {"good": good, "poor": poor})

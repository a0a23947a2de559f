"""Runs and judgments whose probabilities of relevance are known."""

from collections.abc import Mapping, Sequence

import numpy as np

from fontes.calibration import HeldOutTopics
from fontes.core import Qrels, Run, Topics

Ranking = Sequence[tuple[float, bool]]


def held_out(
    rankings: Mapping[str, Ranking],
    units: Sequence[Sequence[str]] | None = None,
    missed: Mapping[str, int] | None = None,
    grid: Sequence[float] = (0.9, 0.5, 0.1),
) -> HeldOutTopics:
    """Held-out topics from each document's probability and relevance, and the number of relevant documents not in the run."""
    run = Run.of({t: {f"d{n}": p for n, (p, _) in enumerate(ranking)} for t, ranking in rankings.items()})
    rows = [
        (t, "0", f"d{n}", int(is_relevant)) for t, ranking in rankings.items() for n, (_, is_relevant) in enumerate(ranking)
    ]
    rows += [(t, "0", f"missed{n}", 1) for t, count in (missed or {}).items() for n in range(count)]
    alone = [[topic_id] for topic_id in rankings]
    return HeldOutTopics.of(run, Qrels(rows), units or alone, np.array(grid, dtype=np.float32), 1)


def simulated(topics: int, seed: int, depth: int = 12) -> tuple[Run, Qrels]:
    """A run whose documents are relevant with log odds of score - 3; scores fall from a best one that varies by topic."""
    draw = np.random.default_rng(seed)
    scores: dict[str, dict[str, float]] = {}
    rows: list[tuple[str, str, str, int]] = []
    for n in range(topics):
        values = np.sort(draw.normal(3, 1) - draw.exponential(3, depth))[::-1]
        relevant = draw.random(depth) < 1 / (1 + np.exp(3 - values))
        scores[f"t{n}"] = {f"t{n}d{i}": float(value) for i, value in enumerate(values)}
        rows += [(f"t{n}", "0", f"t{n}d{i}", int(is_relevant)) for i, is_relevant in enumerate(relevant)]
    texts = Topics.of({f"t{n}": f"{n:b}".replace("1", "yes ").replace("0", "no ") + f"word{n * 7919}" for n in range(topics)})
    return Run.of(scores, texts), Qrels(rows)

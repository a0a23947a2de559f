"""How often `fontes gate` is right, with losses planted into real runs of real collections.

    FONTES_DATA=DIR python bench/gate.py [--collections scifact,cranfield,...] [--draws 400] [--measure nDCG@10]

The baseline is BM25. Six changes make it worse. A share of the topics gets the ranking of a change, chosen so that the mean
over the collection's topics falls by exactly the planted loss. Without a loss, other topics get the gain of a second change,
whose arms are exchanged, so that both add to exactly 0: rare large differences against frequent small ones. Topics are drawn
with replacement, which makes those of the collection the population. In each draw a pilot of 50 topics is planned from, other
topics, as many as the plan names, are decided, and the changes take turns. Prints, as Markdown: the changes; the answers at
the numbers of topics that `plan` named; and the answers with few topics.

Beside them: "two means" says worse if the candidate's mean is lower; "overlap" if the first ten documents of both arms have
less than 80 % in common, on average; "t" is the plain t-test with the same margin.
"""

from __future__ import annotations

import tempfile
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from harness import SMALL, amount, data_option, table
from numpy.typing import NDArray
from scipy.special import stdtrit

import fontes as ft
from fontes.gate.decision import Answer, decide
from fontes.gate.planning import plan_baseline, plan_differences
from fontes.measures.evaluation import Evaluation, measure_run
from fontes.measures.names import parse

Floats = NDArray[np.float64]

COLLECTIONS = {"scifact": "english", "cranfield": "english", "cisi": "english", "checkthat20_task2": "english"}
COLLECTIONS["ctkfacts_cs"] = "czech"
LOSSES = (0.01, 0.02, 0.03, 0.05)
PILOT = 50
MOST = 20_000  # topics of a draw
FEW = (20, 50, 100, 200)
MARGIN = 0.02  # with few topics
OVERLAP = 0.8
IDS = tuple(map(str, range(MOST)))


class Change(NamedTuple):
    """A change of the baseline: differences of the measure, and overlap of the first ten documents, by topic."""

    differences: Floats
    overlap: Floats

    @property
    def loss(self) -> float:
        return float(-self.differences.mean())


class Collection(NamedTuple):
    """The baseline's values by topic, and the changes by name."""

    baseline: Floats
    changes: dict[str, Change]


class Draw(NamedTuple):
    """Topics that were drawn: values of both arms, and their mean overlap."""

    baseline: Floats
    differences: Floats
    overlap: float

    def evaluations(self, measure: str) -> list[Evaluation]:
        ids, parsed = IDS[: len(self.baseline)], parse(measure)
        return [Evaluation(ids, {parsed: values}) for values in (self.baseline.copy(), self.baseline + self.differences)]


def read(folder: Path, analyzer: str, measure: str, random: np.random.Generator) -> Collection:
    """Search a collection with the baseline and with each change."""
    grades: dict[str, dict[str, int]] = {}
    for split in sorted((folder / "qrels").glob("*.tsv")):
        grades |= {topic: dict(of_topic) for topic, of_topic in ft.read_qrels(split).items()}
    qrels = ft.Qrels.of(grades)
    topics = ft.read_topics(folder / "queries.jsonl").judged(qrels)
    with tempfile.TemporaryDirectory() as work:
        index = ft.Index.build(folder / "corpus.jsonl", Path(work) / "stems", analyzer=analyzer)
        words = ft.Index.build(folder / "corpus.jsonl", Path(work) / "words", analyzer="standard")
        wrong = {"k1": 0.1, "b": 1.0}
        stages = [index.bm25(), words.bm25(), index.bm25(**wrong), index.bm25(k1=8.0, b=0.0), words.bm25(**wrong)]
        base, stemless, saturated, linear, several = ((stage % 100)(topics) for stage in stages)
    lists = {topic: list(ranking.ids) for topic, ranking in base.items()}
    documents = sorted({doc for ids in lists.values() for doc in ids})
    missing = set(random.choice(documents, len(documents) // 5, replace=False))
    runs = {
        "a fifth of the documents missing": _run({t: [doc for doc in ids if doc not in missing] for t, ids in lists.items()}),
        "the first result exchanged": _run({t: _exchanged(ids, random) for t, ids in lists.items()}),
        "no stemmer": stemless,
        "k1 = .1, b = 1": saturated,
        "k1 = 8, b = 0": linear,
        "no stemmer, k1 = .1, b = 1": several,
    }
    parsed = parse(measure)
    values = {name: measure_run(run, qrels, [parsed]).array(parsed) for name, run in {"": base, **runs}.items()}
    changes = {}
    for name, run in runs.items():
        common = [
            len({*ids[:10]} & {*run[t].ids[:10]}) / max(len(ids[:10]), 1) if t in run else 0.0 for t, ids in lists.items()
        ]
        of_topic = dict(zip(lists, common, strict=True))
        overlap = np.array([of_topic.get(topic, 1.0) for topic in qrels])
        changes[name] = Change(np.round(values[name] - values[""], 12), overlap)
    return Collection(values[""], changes)


def _run(lists: dict[str, list[str]]) -> ft.Run:
    return ft.Run.of({topic: {doc: float(-rank) for rank, doc in enumerate(ids)} for topic, ids in lists.items()})


def _exchanged(ids: list[str], random: np.random.Generator) -> list[str]:
    """The first document exchanged with one of the next nine, in half of the topics."""
    ids = list(ids)
    if len(ids) > 1 and random.random() < 0.5:
        other = int(random.integers(1, min(len(ids), 10)))
        ids[0], ids[other] = ids[other], ids[0]
    return ids


class Planted(NamedTuple):
    """A change that a share of the topics gets, and another whose gain a share gets."""

    worse: Change
    share: float
    better: Change | None = None
    better_share: float = 0.0

    def draw(self, baseline: Floats, n: int, random: np.random.Generator) -> Draw:
        rows, part = random.integers(0, len(baseline), n), random.random(n)
        values, differences, overlap = baseline[rows], np.zeros(n), np.ones(n)
        worse = part < self.share
        differences[worse], overlap[worse] = self.worse.differences[rows[worse]], self.worse.overlap[rows[worse]]
        if self.better is not None:
            better = part >= 1 - self.better_share
            gains = -self.better.differences[rows[better]]
            values[better] -= gains
            differences[better], overlap[better] = gains, self.better.overlap[rows[better]]
        return Draw(values, differences, float(overlap.mean()))


def planted(changes: dict[str, Change], loss: float, margin: float) -> list[Planted]:
    """The changes that can lose exactly `loss`; without a loss, the pairs that lose and gain the margin."""
    losing = [change for change in changes.values() if change.loss >= margin]
    if loss:
        return [Planted(change, loss / change.loss) for change in losing]
    pairs = [Planted(a, margin / a.loss, b, margin / b.loss) for a, b in permutations(losing, 2)]
    return [pair for pair in pairs if pair.share + pair.better_share <= 1]


class Tally:
    """Answers of draws of one cell."""

    def __init__(self) -> None:
        self.topics: list[int] = []
        self.answers: list[Answer] = []
        self.others: list[tuple[bool, bool, bool, bool]] = []

    def add(self, draw: Draw, measure: str, margin: float) -> None:
        self.topics.append(len(draw.differences))
        baseline, candidate = draw.evaluations(measure)
        self.answers.append(decide(baseline, candidate, {measure: margin}).answer)
        n, mean = len(draw.differences), draw.differences.mean()
        half = stdtrit(n - 1, 0.95) * draw.differences.std(ddof=1) / np.sqrt(n)
        self.others.append(
            (mean < 0, draw.overlap < OVERLAP, mean - half > -margin, -margin >= mean - half and mean + half < 0)
        )

    def cells(self, plain: bool = False) -> list[str]:
        """Shares: loses, passes, not enough topics, two means, overlap; with `plain`, the t-test loses and passes."""
        mine = [
            np.mean([answer == each for answer in self.answers]) for each in (Answer.LOSES, Answer.PASSES, Answer.NOT_ENOUGH)
        ]
        means, overlap, passes, loses = np.mean(self.others, axis=0)
        return [f"{100 * share:.1f}" for share in [*mine, *([loses, passes] if plain else []), means, overlap]]


def at_plan(name: str, collection: Collection, measure: str, draws: int, random: np.random.Generator) -> list[list[str]]:
    """A row for no loss, with the margins in turn, and for each loss, which is the margin."""
    rows = []
    for loss in (0.0, *LOSSES):
        cases = [(case, m) for m in ([loss] if loss else LOSSES) for case in planted(collection.changes, loss, m)]
        tally = Tally()
        for number in range(draws if cases else 0):
            case, margin = cases[number * len(cases) // draws]
            pilot = case.draw(collection.baseline, PILOT, random).evaluations(measure)
            topics = min(plan_differences(*pilot, {measure: margin}).topics, MOST)
            tally.add(case.draw(collection.baseline, topics, random), measure, margin)
        if cases:
            low, middle, high = np.quantile(tally.topics, [0.1, 0.5, 0.9])
            margin_text = f"{loss:.2f}" if loss else "all"
            rows.append([name, f"{loss:.2f}", margin_text, f"{middle:.0f} ({low:.0f}–{high:.0f})", *tally.cells()])
    return rows


def with_few(collections: dict[str, Collection], measure: str, draws: int, random: np.random.Generator) -> list[list[str]]:
    """A row for each small number of topics and each loss: none, the margin, and more."""
    rows = []
    for topics in FEW:
        for loss in (0.0, MARGIN, 0.05):
            tally = Tally()
            for collection in collections.values():
                cases = planted(collection.changes, loss, max(loss, MARGIN))
                for number in range(draws if cases else 0):
                    case = cases[number * len(cases) // draws]
                    tally.add(case.draw(collection.baseline, topics, random), measure, MARGIN)
            if tally.answers:
                rows.append([f"{topics}", f"{loss:.2f}", *tally.cells(plain=True)])
    return rows


def changes_of(name: str, collection: Collection, measure: str, draws: int, random: np.random.Generator) -> list[str]:
    """What the changes do in a collection, the plan from the baseline alone, and how often a loss is found with it."""
    changes = list(collection.changes.values())
    candidates = [collection.baseline + change.differences for change in changes]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = [float(np.corrcoef(collection.baseline, values)[0, 1]) for values in candidates]
    figures = (
        [change.loss for change in changes],
        [float(change.differences.std()) for change in changes],
        [float(np.mean(change.differences != 0)) for change in changes],
        correlations,
    )
    evaluation = Evaluation(IDS[: len(collection.baseline)], {parse(measure): collection.baseline.copy()})
    plan = plan_baseline(evaluation, {measure: MARGIN}).measures[0]
    ranges = [f"{min(values):.2f}–{max(values):.2f}" for values in figures]
    tally, cases = Tally(), planted(collection.changes, MARGIN, MARGIN)
    for number in range(draws if cases else 0):
        case = cases[number * len(cases) // draws]
        tally.add(case.draw(collection.baseline, plan.topics, random), measure, MARGIN)
    lost = tally.cells()[0] if cases else "–"
    return [f"{name} ({len(collection.baseline)})", *ranges, f"{plan.topics:,} ({plan.low:,}–{plan.high:,})", lost]


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--collections", default=",".join(COLLECTIONS), help="names, separated by commas")
    parser.add_argument("--measure", default="nDCG@10")
    parser.add_argument("--draws", type=int, default=amount(400, 3), help="draws of each cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    names = given.collections.split(",")[: 1 if SMALL else None]
    collections = {name: read(given.data / name, COLLECTIONS[name], given.measure, random) for name in names}
    table(
        f"{given.measure}: the changes, least to greatest; topics planned from the baseline alone for a margin of {MARGIN:g}",
        ["collection (topics)", "loss", "spread", "share of topics changed", "correlation", "topics", "loses, %"],
        [changes_of(name, collection, given.measure, given.draws, random) for name, collection in collections.items()],
    )
    shares = ["loses, %", "passes, %", "not enough, %"]
    others = ["two means: worse, %", f"overlap@10 < {OVERLAP:g}, %"]
    table(
        f"{given.measure}, at the topics that the plan from {PILOT} others named; {given.draws} draws a row",
        ["collection", "true loss", "margin", "topics (80 % of draws)", *shares, *others],
        [
            row
            for name, collection in collections.items()
            for row in at_plan(name, collection, given.measure, given.draws, random)
        ],
    )
    table(
        f"{given.measure}, margin {MARGIN:g}, few topics; {given.draws} draws in each collection",
        ["topics", "true loss", *shares, "plain t: loses, %", "plain t: passes, %", *others],
        with_few(collections, given.measure, given.draws, random),
    )


if __name__ == "__main__":
    main()

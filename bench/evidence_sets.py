"""Whole evidence sets: Complete@k of plain BM25, of documents that differ (mmr), of those that belong together, and of RM3.

    FONTES_DATA=DIR python bench/evidence_sets.py --work DIR

CTKFacts: paragraphs, claims with the same evidence on one side. SciFact: sentences of all abstracts, where the evidence of a
claim in an abstract is a set. Each system reorders BM25's best 50; its parameter is the one with the best Complete@5 on the
claims to learn from, and it is measured on the others: all of them, and those whose smallest set has two documents or more.
Differences from plain BM25 have intervals of 95 % by bootstrap over claims.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import amount, machine, table
from long_documents import bare
from training import collections, options

import fontes as ft
from fontes.comparison.statistics import bootstrap

CANDIDATES = 50
DEPTHS = (2, 5, 10, 20)
CHOSEN_BY = "Complete@5"
PLAIN = "bm25()"
RM3 = [f"bm25() >> rm3(fb_docs={docs}, original_weight={weight}) >> bm25()" for docs in (1, 3) for weight in (0.5, 0.7, 0.9)]
SPACES = {
    PLAIN: [PLAIN],
    "mmr": [f"bm25() % {CANDIDATES} >> mmr(lambda_={value})" for value in (0.5, 0.7, 0.8, 0.9, 0.95)],
    "companions": [f"bm25() % {CANDIDATES} >> companions(weight={value})" for value in (0.5, 1, 1.5, 2, 3)],
    "rm3": RM3,
    "rm3 and companions": [f"{rm3} % {CANDIDATES} >> companions(weight={value})" for rm3 in RM3[3:5] for value in (0.5, 1)],
}


class Side(NamedTuple):
    topics: ft.Topics
    qrels: ft.Qrels


def of_sets(topics: ft.Topics, rows: Iterator[tuple[str, str, str, int]]) -> Side:
    qrels = ft.Qrels(row for row in rows if row[0] in topics and row[3] > 0)
    return Side(topics.judged(qrels), qrels)


def ctkfacts(data: Path, work: Path) -> tuple[ft.Index, Side, Side]:
    one = collections(data, work)["ctkfacts_cs"]
    claims = one.folder / "claims.jsonl"
    sets = ft.Qrels.of(str(claims), groups=True) if claims.exists() else ft.read_qrels(one.folder / "qrels" / "test.tsv")
    learned = ft.Topics([*one.topics(one.training).values(), *one.topics(one.choosing).values()])
    return one.index, of_sets(learned, sets.rows()), of_sets(one.topics(one.testing), sets.rows())


def scifact(data: Path, work: Path) -> tuple[ft.Index, Side, Side]:
    path = work / "scifact-sentences.index"
    if not path.exists():
        ft.Index.build(ft.Sentences().docs(data / "scifact" / "corpus.jsonl"), path, analyzer="english")
    return ft.Index.open(path), *(sentences(data / "scifact" / f"claims_{name}.csv") for name in ("train", "validation"))


def sentences(path: Path) -> Side:
    """The claims of a file, with the sentences of each abstract as a set."""
    texts, rows = {}, []
    with path.open(encoding="utf-8", newline="") as file:
        for number, line in enumerate(csv.DictReader(file)):
            for sentence in line["evidence_sentences"].strip("[]").replace(",", " ").split() if line["evidence_doc_id"] else ():
                texts[line["id"]] = line["claim"]
                rows.append((line["id"], str(number), f"{line['evidence_doc_id']}#{sentence}", 1))
    return of_sets(ft.Topics.of(texts), iter(rows))


def values(index: ft.Index, pipeline: str, side: Side) -> dict[str, Any]:
    run = ft.pipeline(f"{pipeline} % {max(DEPTHS)}", index)(side.topics)
    names = [f"Complete@{depth}" for depth in DEPTHS]
    evaluation = ft.evaluate(run, side.qrels, names)
    return {name: np.array([evaluation.per_topic(name)[topic] for topic in side.topics]) for name in names}


def best(index: ft.Index, space: list[str], side: Side) -> str:
    return max(space, key=lambda pipeline: float(values(index, pipeline, side)[CHOSEN_BY].mean()))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collection", action="append", choices=("ctkfacts", "scifact"), help="which (default: both)")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    print(machine())
    for name in chosen.collection or ("ctkfacts", "scifact"):
        index, learned, tested = {"ctkfacts": ctkfacts, "scifact": scifact}[name](chosen.data, chosen.work)
        pipelines = {system: best(index, space[: amount(9, 2)], learned) for system, space in SPACES.items()}
        found = {system: values(index, pipeline, tested) for system, pipeline in pipelines.items()}
        sizes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for topic, group, _, _ in tested.qrels.rows():
            sizes[topic][group] += 1
        several = np.array([min(sizes[topic].values()) > 1 for topic in tested.topics])
        for title, mask in (("all claims", np.ones(len(several), bool)), ("sets of two or more alone", several)):
            if mask.any():
                rows = [row(pipelines[system], found[system], found[PLAIN], mask) for system in found]
                header = ["", *(f"@{depth}" for depth in DEPTHS), *(f"difference @{depth}" for depth in (5, 20))]
                table(f"{name}, Complete@k: {title} ({mask.sum():,})", header, rows)


def row(pipeline: str, found: dict[str, Any], plain: dict[str, Any], mask: Any) -> list[str]:
    cells = [f"`{pipeline}`", *(bare(f"{found[f'Complete@{depth}'][mask].mean():.4f}") for depth in DEPTHS)]
    for depth in (5, 20):
        difference = (found[f"Complete@{depth}"] - plain[f"Complete@{depth}"])[mask].reshape(-1, 1)
        low, high = bootstrap(difference)
        cells.append("" if pipeline == PLAIN else bare(f"{difference.mean():+.4f} ({low[0]:+.4f} to {high[0]:+.4f})"))
    return cells


if __name__ == "__main__":
    main()

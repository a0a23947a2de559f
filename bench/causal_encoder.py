"""Labelled pairs of causes and effects, to train an encoder for causal retrieval on; and what it is worth.

    FONTES_DATA=DIR python bench/causal_encoder.py pairs.jsonl
    fontes train bi-encoder pairs.jsonl -o cause-effect --loss cosine --epochs 2 --mini-batch 0 --dropout 0 --precision float32
    fontes recipe run cair2021 -o FOLDER -s encoder=… -s trees=None …      with the start, and with what was trained
    python bench/causal_encoder.py --compare FOLDER FOLDER

An effect and its cause have the label 1. They are the two marked nouns of SemEval 2010 task 8's training sentences with
Cause-Effect, and the clauses that `causal_pairs` finds in these, in the training part of the Causal News Corpus (version 2)
and in Causal-TimeBank, in sentences that are labelled as causal there. The label 0 have an effect with a cause of another
sentence of the same source, one for each pair, and the marked nouns of as many SemEval sentences with another relation.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
from causal_pairs import rows
from harness import data_option, table

import fontes as ft
from fontes.causal import causal_pairs
from fontes.comparison.statistics import bootstrap, corrected, t_test
from fontes.recipes import Cair2021
from fontes.train import LabelledPair, LabelledPairs

CLAUSES = {
    "SemEval 2010 task 8": "semeval2010_task8_train.jsonl",
    "Causal News Corpus": "cnc_v2_train.jsonl",
    "Causal-TimeBank": "causal_timebank_sentences.jsonl",
}
WORDS = (2, 25)  # of a clause that says something and is one
SEED = 0
SYSTEMS = ("pipeline", "title-narrative-semantic", "title-semantic")  # those that ask the encoder


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("output", type=Path, nargs="?", help="the file of pairs to write")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FOLDER", help="of the recipe, before and after training")
    arguments = parser.parse_args()
    if arguments.compare:
        compare(*arguments.compare)
        return
    folder, draw = arguments.data / "causality", random.Random(SEED)
    nouns, others = nominals(rows(folder / CLAUSES["SemEval 2010 task 8"]))
    sources = {"SemEval, nouns": nouns, **{f"{name}, clauses": clauses(rows(folder / file)) for name, file in CLAUSES.items()}}
    learned = [pair for pairs in sources.values() for pair in labelled(pairs, draw)]
    learned += [LabelledPair(first, second, 0) for first, second in draw.sample(others, len(nouns))]
    LabelledPairs(learned).write(arguments.output)
    for name, pairs in sources.items():
        print(f"{name}: {len(pairs)} pairs")
    print(f"{arguments.output}: {dict(Counter(pair.label for pair in learned))}")


def compare(before: Path, after: Path) -> None:
    """Means with intervals (bootstrap, BCa) for two outputs of the recipe, and their differences; Holm over each table."""
    qrels = ft.datasets.samples.harbour.causal.qrels()
    for measure in ("AP", "P@5"):
        values = {}
        for system in SYSTEMS:
            runs = [ft.read_run(folder / "runs" / f"{system}.run") for folder in (before, after)]
            found = [ft.evaluate(run, qrels, [measure]).per_topic(measure) for run in runs]
            values[system] = np.array([[of_run[topic] for topic in qrels] for of_run in found])
        differences = np.stack([after - before for before, after in values.values()], axis=1)
        p = corrected(t_test(differences)[1], "holm")
        lines = []
        for number, (system, both) in enumerate(values.items()):
            shown = [f"{column.mean():.3f} ({_interval(column)})" for column in both]
            difference = f"{differences[:, number].mean():+.3f} ({_interval(differences[:, number])}), {p[number]:.3f}"
            lines.append([system, f"{Cair2021.published[system][measure]:.4f}", *shown, difference])
        table(measure, ["system", "published", before.name, after.name, "difference, p"], lines)


def _interval(values: np.ndarray) -> str:
    low, high = bootstrap(values[:, None])
    return f"{low[0]:.3f} to {high[0]:.3f}"


def nominals(sentences: list[dict[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The marked nouns as effect and cause where they are these, and those of the sentences with another relation."""
    causal, others = [], []
    for row in sentences:
        e1, e2 = row["e1"], row["e2"]
        (causal if row["label"] else others).append((e2, e1) if "(e1,e2)" in row["relation"] else (e1, e2))
    return list(dict.fromkeys(causal)), list(dict.fromkeys(others))


def clauses(sentences: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Effects and causes that sentences labelled as causal state by a strong cue, each once."""
    pairs = [pair for row in sentences if row["label"] for pair in causal_pairs(row["text"]) if not pair.negated]
    low, high = WORDS
    fitting = [p for p in pairs if all(low <= len(side.split()) <= high for side in (p.effect, p.cause))]
    return list(dict.fromkeys((pair.effect, pair.cause) for pair in fitting))


def labelled(pairs: list[tuple[str, str]], draw: random.Random) -> list[LabelledPair]:
    """Each pair, and its effect with a cause that no pair has for it."""
    known = set(pairs)
    learned = []
    for effect, cause in pairs:
        other = next(c for c in iter(lambda: draw.choice(pairs)[1], None) if (effect, c) not in known)
        learned += [LabelledPair(effect, cause, 1), LabelledPair(effect, other, 0)]
    return learned


if __name__ == "__main__":
    main()

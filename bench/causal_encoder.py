"""Labelled pairs of causes and effects, to train an encoder for causal retrieval on.

    FONTES_DATA=DIR python bench/causal_encoder.py pairs.jsonl
    fontes train bi-encoder pairs.jsonl -o cause-effect --loss cosine --epochs 2 --mini-batch 0 --dropout 0 --precision float32

An effect and its cause have the label 1. They are the two marked nouns of SemEval 2010 task 8's training sentences with
Cause-Effect, and the clauses that `causal_pairs` finds in these, in the training part of the Causal News Corpus (version 2)
and in Causal-TimeBank, in sentences that are labelled as causal there. The label 0 have an effect with a cause of another
sentence of the same source, one for each pair, and the marked nouns of as many SemEval sentences with another relation.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from causal_pairs import rows
from harness import data_option

from fontes.causal import causal_pairs
from fontes.train import LabelledPair, LabelledPairs

CLAUSES = {
    "SemEval 2010 task 8": "semeval2010_task8_train.jsonl",
    "Causal News Corpus": "cnc_v2_train.jsonl",
    "Causal-TimeBank": "causal_timebank_sentences.jsonl",
}
WORDS = (2, 25)  # of a clause that says something and is one
SEED = 0


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    folder, draw = arguments.data / "causality", random.Random(SEED)
    nouns, others = nominals(rows(folder / CLAUSES["SemEval 2010 task 8"]))
    sources = {"SemEval, nouns": nouns, **{f"{name}, clauses": clauses(rows(folder / file)) for name, file in CLAUSES.items()}}
    learned = [pair for pairs in sources.values() for pair in labelled(pairs, draw)]
    learned += [LabelledPair(first, second, 0) for first, second in draw.sample(others, len(nouns))]
    LabelledPairs(learned).write(arguments.output)
    for name, pairs in sources.items():
        print(f"{name}: {len(pairs)} pairs")
    print(f"{arguments.output}: {dict(Counter(pair.label for pair in learned))}")


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

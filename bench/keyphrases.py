"""TopicRank on the test set of Inspec: F@5, F@10 and speed, beside the figures that pke publishes.

    FONTES_DATA=DIR python bench/keyphrases.py [--first N]

The measure is that of the benchmark of pke (github.com/boudinfl/pke-benchmarking, benchmarking-inspec.ipynb): title, abstract,
uncontrolled keyphrases, exact match of Porter's stems, precision and recall of each document, the mean of the documents' F.
"""

from __future__ import annotations

import json
import time

import numpy as np
import Stemmer
from harness import data_option

from fontes.causal import TopicRank
from fontes.causal.topicrank import Token, spacy_tagger, tagged

PKE = "pke (published)", 24.57, 28.35, 266.5
MODELS = {
    "TopicRank()": TopicRank(),
    "similarity=0.26": TopicRank(similarity=0.26),
    'gap="paper"': TopicRank(gap="paper"),
    'represent="frequent"': TopicRank(represent="frequent"),
    '"stopwords"': TopicRank("stopwords"),
}
ROUNDS = 3


def stemmed(phrase: str) -> str:
    return " ".join(Stemmer.Stemmer("porter").stemWords(phrase.lower().split()))


def scores(found: list[str], gold: set[str]) -> tuple[float, float]:
    """(F@5, F@10) of one document."""
    values = []
    for k in (5, 10):
        best = {stemmed(phrase) for phrase in found[:k]}
        hits = len(best & gold)
        values.append(2 * hits / (len(found[:k]) + len(gold)) if hits else 0.0)
    return values[0], values[1]


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--first", type=int, default=None)
    given = parser.parse_args()
    path = given.data / "keyphrase" / "Inspec_hulth2003_test.jsonl"
    docs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][: given.first]
    texts = [f"{doc['title']}. {doc['text']}" for doc in docs]
    gold = [{stemmed(phrase) for phrase in doc["uncontr"]} for doc in docs]
    spacy_tagger("en_core_web_sm")
    tokens: dict[bool, list[list[Token]]] = {}
    tagging = {True: np.inf, False: np.inf}
    ranking = dict.fromkeys(MODELS, np.inf)
    means: dict[str, list[float]] = {}
    for _ in range(ROUNDS):  # interleaved, so that what else the machine does falls on all alike
        for with_model, tagger in ((True, "en_core_web_sm"), (False, "stopwords")):
            start = time.perf_counter()
            tokens[with_model] = list(tagged(tagger, texts))
            tagging[with_model] = min(tagging[with_model], time.perf_counter() - start)
        for name, model in MODELS.items():
            start = time.perf_counter()
            found = [model.rank(each, 10) for each in tokens[model.tagger != "stopwords"]]
            ranking[name] = min(ranking[name], time.perf_counter() - start)
            values = [scores([phrase for phrase, _ in phrases], want) for phrases, want in zip(found, gold, strict=True)]
            means[name] = [100 * float(mean) for mean in np.mean(values, axis=0)]
    print(f"{len(docs)} documents, best of {ROUNDS} rounds")
    print(f"{'':22}{'F@5':>8}{'F@10':>8}{'docs/s':>10}{'without tagging':>18}")
    for name, model in MODELS.items():
        whole = tagging[model.tagger != "stopwords"] + ranking[name]
        five, ten = means[name]
        print(f"{name:22}{five:8.2f}{ten:8.2f}{len(docs) / whole:10.1f}{len(docs) / ranking[name]:18.1f}")
    print(f"{PKE[0]:22}{PKE[1]:8.2f}{PKE[2]:8.2f}{'':10}{PKE[3]:18.1f}")


if __name__ == "__main__":
    main()

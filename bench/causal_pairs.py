"""Pairs of cause and effect: how well they are found in sentences with gold labels, and how fast.

FONTES_DATA=DIR python bench/causal_pairs.py              figures on the parts for testing
FONTES_DATA=DIR python bench/causal_pairs.py --develop    on the parts for training, by which the cues were chosen, cue by cue
FONTES_DATA=DIR python bench/causal_pairs.py --filter     what CausalFilter does to BM25 on the harbour and on SciFact
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

from harness import data_option

import fontes as ft
from fontes.causal import causal_pairs
from fontes.causal.pairs import CausalPair
from fontes.datasets.samples import harbour

Extract = Callable[[str], list[CausalPair]]
WAYS: dict[str, Extract] = {"strong cues": causal_pairs, "weak cues as well": lambda text: causal_pairs(text, weak=True)}


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--develop", action="store_true")
    parser.add_argument("--filter", action="store_true")
    arguments = parser.parse_args()
    if arguments.filter:
        filtered(arguments.data)
        return
    folder, develop = arguments.data / "causality", arguments.develop
    part = "train" if develop else "test"
    # Causal-TimeBank has no parts: of ten sentences the first five are for training.
    timebank = [row for i, row in enumerate(rows(folder / "causal_timebank_sentences.jsonl")) if (i % 10 < 5) == develop]
    news = rows(folder / f"cnc_v2_{'train' if develop else 'dev'}.jsonl")
    nominals = rows(folder / f"semeval2010_task8_{part}.jsonl")
    print("Is the sentence causal?           P      R      F1     (all called causal)")
    for name, sentences in (("Causal News Corpus", news), ("Causal-TimeBank", timebank), ("SemEval 2010 task 8", nominals)):
        for way, extract in WAYS.items():
            print(f"{name:<20} {way:<18} {detection(sentences, extract)}")
    print("\nSemEval, sentences with Cause-Effect(e1,e2) or (e2,e1):")
    for way, extract in WAYS.items():
        print(f"{way:<18} {roles(nominals, extract)}")
    speed()
    if develop:
        by_cue([*news, *timebank, *nominals])


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def detection(sentences: list[dict[str, str]], extract: Extract) -> str:
    """Precision, recall and F1 of calling a sentence causal that has a pair which is not negated."""
    called = [any(not pair.negated for pair in extract(row["text"])) for row in sentences]
    causal = [bool(row["label"]) for row in sentences]
    both = sum(a and b for a, b in zip(called, causal, strict=True))
    p, r = both / max(1, sum(called)), both / sum(causal)
    base = sum(causal) / len(causal)
    return f"{p:.3f}  {r:.3f}  {2 * p * r / (p + r):.3f}  ({base:.3f} 1.000 {2 * base / (1 + base):.3f})"


def roles(sentences: list[dict[str, str]], extract: Extract) -> str:
    """How often the two entities of a causal sentence lie in cause and effect, the right way round and the wrong way."""
    count: Counter[str] = Counter()
    for row in sentences:
        if not row["label"]:
            continue
        e1, e2 = row["e1"], row["e2"]
        cause, effect = (e1, e2) if "(e1,e2)" in row["relation"] else (e2, e1)
        pairs = [pair for pair in extract(row["text"]) if not pair.negated]
        count["n"] += 1
        count["pair"] += bool(pairs)
        count["cause"] += any(holds(pair.cause, cause) for pair in pairs)
        count["effect"] += any(holds(pair.effect, effect) for pair in pairs)
        right = any(holds(pair.cause, cause) and holds(pair.effect, effect) for pair in pairs)
        count["right"] += right
        count["wrong"] += not right and any(holds(pair.cause, effect) and holds(pair.effect, cause) for pair in pairs)
    n, directed = count["n"], count["right"] + count["wrong"]
    return (
        f"{n} sentences; a pair in {count['pair'] / n:.3f}; cause in the cause {count['cause'] / n:.3f}; effect in the effect "
        f"{count['effect'] / n:.3f}; both {count['right'] / n:.3f}; the wrong way round {count['wrong'] / n:.3f}; "
        f"right of those with a direction {count['right'] / max(1, directed):.3f}"
    )


def holds(span: str, entity: str) -> bool:
    return re.search(rf"\b{re.escape(entity)}\b", span) is not None


def speed() -> None:
    """Documents and characters a second on one core, on the harbour's stories a hundred times."""
    texts = [doc.text for doc in harbour.corpus] * 100
    causal_pairs(texts[0])
    for way, extract in WAYS.items():
        start = time.perf_counter()
        found = sum(len(extract(text)) for text in texts)
        seconds = time.perf_counter() - start
        size = sum(map(len, texts))
        print(
            f"\n{way}: {len(texts) / seconds:,.0f} stories a second, {size / seconds / 1e6:.2f} million characters a second, "
            f"{found / len(texts):.2f} pairs a story"
        )


def filtered(data: Path) -> None:
    """MAP and P@5 of BM25 with the filter, both ways round, and how many relevant documents it drops."""
    scifact = ft.dataset(data / "scifact")
    for name, collection, split, first in (
        ("harbour, title", harbour.causal, None, None),
        ("harbour, keyphrases", harbour.causal, None, ft.causal.CausalKeywords()),
        ("SciFact, claims", scifact, "test", None),
    ):
        topics, qrels = collection.topics(split), collection.qrels(split)
        with tempfile.TemporaryDirectory() as folder:
            index = ft.Index.build(collection.corpus, f"{folder}/index")
            bm25 = index.bm25() % 100
            plain = bm25 if first is None else first >> bm25
            systems = {"plain": plain}
            for roles, weak, failing in product(("published", "swapped"), (False, True), ("drop", "below")):
                named = f"{roles}, {'weak' if weak else 'strong'}, {failing}"
                systems[named] = plain >> ft.causal.CausalFilter(roles=roles, weak=weak, failing=failing)
            print(f"\n{name}\n{ft.compare(systems, topics, qrels, [ft.AP, ft.P @ 5], baseline='plain', allow_empty=True)}")
            for named, system in systems.items():
                if not named.endswith("below"):
                    run = system(topics)
                    relevant = sum(qrels[t].get(i, 0) > 0 for t in run if t in qrels for i in run[t].ids)
                    print(f"{named:<24} {run.rows:>6} documents, {relevant:>4} of them relevant")


def by_cue(sentences: list[dict[str, str]]) -> None:
    """For each cue in how many sentences it is, and the share of them that are causal."""
    causal: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in sentences:
        cues = {pair.cue for pair in WAYS["weak cues as well"](row["text"]) if not pair.negated}
        total.update(cues)
        causal.update(cues if row["label"] else ())
    for cue, n in total.most_common():
        print(f"{n:>5}  {causal[cue] / n:.2f}  {cue}")


if __name__ == "__main__":
    main()

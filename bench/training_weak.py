"""all-MiniLM-L6-v2 trained without judgments, on queries out of a collection's documents, and measured on its judged topics.

    FONTES_DATA=DIR python bench/training_weak.py --work DIR [--collection NAME ...] [--form NAME ...]

Each training reads queries of one form of up to 1,500 documents, in one epoch of batches of 32, at most 128 tokens of a text.
"taught" reads 500 documents, each with four of the best 30 of the hybrid, and learns the softmax of the hybrid's scores (kl).
Nothing is chosen on the topics: the rate is that of the other encoders of these benchmarks. Each encoder is compared with the
untrained one, alone and in a sum with BM25 of equal shares. A form with "round trip" keeps the queries for which BM25 returns
their document first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training import Collection, Results, minilm, mixed, options
from training_recipes import show, tested_against, towers

import fontes as ft
from fontes.train import Mining, document_examples, train_bi_encoder

MEASURE, LIMIT, SHARE = "nDCG@10", 1500, 0.5
COLLECTIONS = {"scifact": "rules", "cranfield": "nupunkt"}  # how sentences are found
FORMS = ("title", "first", "cloze", "cloze, round trip", "cloze, taught")
SETTINGS = towers(batch=32, epochs=1, max_length=128, evaluations=1)
TAUGHT = towers(batch=16, epochs=1, max_length=128, evaluations=1, loss="kl", teacher_scale=10.0)


def trained(one: Collection, form: str) -> tuple[Path, dict[str, Any]]:
    """The folder of the encoder, and facts on its training."""
    folder = one.work / "models" / f"{one.name}-{form.replace(', ', '-').replace(' ', '-')}"
    form, _, more = form.partition(", ")
    how: dict[str, Any] = {"limit": LIMIT}
    if more == "round trip":
        how["round_trip"] = one.index.bm25()
    elif more == "taught":
        hybrid = ft.fuse(one.index.bm25(), encoded(one, minilm()), method="wsum", weights=(SHARE, 1 - SHARE))
        how |= {"limit": LIMIT // 3, "negatives": hybrid, "mining": Mining(4, (1, 30), sampling="random"), "teacher": hybrid}
    mined = document_examples(one.index, form, sentences=COLLECTIONS[one.name], **how)
    folder.parent.mkdir(parents=True, exist_ok=True)
    settings = TAUGHT if more == "taught" else SETTINGS
    training = train_bi_encoder(mined.examples, folder, minilm(), settings, overwrite=True, progress=show)
    return folder, {"examples": len(mined.examples), "steps": training.steps, "training seconds": training.seconds}


def encoded(one: Collection, model: str) -> Any:
    """The stage of an encoder over its vectors of the collection."""
    encoder = ft.SentenceEncoder(model, max_length=256, precision="bfloat16")
    one.index.encode(encoder)
    return one.index.dense(encoder, k=1000)


def runs_of(one: Collection, model: str) -> dict[str, ft.Run]:
    """The run of an encoder, alone and with BM25."""
    dense = encoded(one, model)(one.topics(one.testing))
    return {"alone": dense, "with BM25": mixed(one.run(one.testing, "bm25"), dense, SHARE)}


def measured(one: Collection, form: str) -> dict[str, Any]:
    """The means before and after, and the difference with its interval."""
    folder, facts = trained(one, form)
    before, after = runs_of(one, minilm()), runs_of(one, str(folder))
    for which in before:
        report = ft.compare(
            {"before": before[which], "after": after[which]}, None, one.qrels(one.testing), [MEASURE], baseline="before"
        )
        means = {name: round(report.mean(name, MEASURE), 4) for name in ("before", "after")}
        facts[which] = means | tested_against(report.comparison("after", "before", MEASURE))
    return facts


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collection", action="append", choices=sorted(COLLECTIONS), help="which (default: all)")
    parser.add_argument("--form", action="append", choices=FORMS, help="which (default: all)")
    chosen = parser.parse_args()
    results = Results(chosen.work / "weak.jsonl")
    for name in chosen.collection or COLLECTIONS:
        one = Collection(name, chosen.data, chosen.work, MEASURE)
        for form in chosen.form or FORMS:
            results.once(f"{name}: {form}", lambda one=one, form=form: measured(one, form))


if __name__ == "__main__":
    main()

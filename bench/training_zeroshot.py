"""What was trained on some collections, measured on others that it has not seen.

    FONTES_DATA=DIR python bench/training_zeroshot.py --work DIR [--model NAME ...] [--collection NAME ...]

The models are recipes of bench/training_recipes.py, in whose work folder they are kept. A reranker reads the best 20 of BM25
and of the hybrid, a sum of BM25 and the untrained encoder with equal shares, and is measured alone and in a sum with equal
shares; over the hybrid also with shares chosen on other topics: each fifth of the topics with the share that is best on the
rest. An encoder is measured alone and with BM25. All are compared with the hybrid.
"""

from __future__ import annotations

from typing import Any

from training import SHARES, Collection, Results, mean, mixed, options
from training_recipes import RECIPES, UNSEEN, Bench, tested_against

import fontes as ft
from fontes.train import BiEncoderSettings

DEPTH, SHARE, MEASURE = 20, 0.5, "nDCG@10"
MODELS = ("listwise, hybrid", "scifact listwise", "both, listwise", "bi-encoder", "scifact bi-encoder")


def candidates(one: Collection) -> dict[str, ft.Run]:
    bm25, dense = (one.run(one.testing, system) for system in ("bm25", "dense"))
    return {"bm25": bm25, "dense": dense, "hybrid": mixed(bm25, dense, SHARE)}


def systems(name: str, bench: Bench, one: Collection, begun: dict[str, ft.Run]) -> dict[str, ft.Run]:
    """What a model makes of the collection."""
    recipe, folder = RECIPES[name], bench.trained(name)
    if isinstance(recipe.settings, BiEncoderSettings):
        encoder = ft.SentenceEncoder(str(folder), precision="bfloat16")
        one.index.encode(encoder)
        dense = one.index.dense(encoder)(one.topics(one.testing))
        return {"alone": dense, "with BM25": mixed(begun["bm25"], dense, SHARE)}
    scorer, made = recipe.scorer(folder, bench.work / "models" / "scores.sqlite"), {}
    for which in ("bm25", "hybrid"):
        best = begun[which].top(DEPTH)
        made[f"over {which}"] = new = scorer(best)
        made[f"over {which}, mixed"] = mixed(best, new, SHARE)
    return made | {"over hybrid, share chosen": cross_fitted(best, new, one.qrels(one.testing))}


def cross_fitted(first: ft.Run, second: ft.Run, qrels: ft.Qrels, folds: int = 5) -> ft.Run:
    """Both runs mixed, each fold of the topics with the share that is best on the topics of the other folds."""
    runs = {share: mixed(first, second, share) for share in SHARES}
    topics, chosen = list(qrels), {}
    for fold in range(folds):
        own = set(topics[fold::folds])
        rest = ft.Qrels([row for row in qrels.rows() if row[0] not in own])
        share = max(SHARES, key=lambda share, rest=rest: mean(runs[share], rest, MEASURE))
        chosen |= {topic: runs[share][topic] for topic in own if topic in runs[share]}
    return ft.Run.of({topic: dict(zip(one.ids, one.scores.tolist(), strict=True)) for topic, one in chosen.items()})


def measured(name: str, bench: Bench, one: Collection) -> dict[str, Any]:
    """The means, and the tests against BM25 and against the hybrid."""
    begun = candidates(one)
    runs = {**begun, **(systems(name, bench, one, begun) if name else {})}
    report = ft.compare(runs, None, one.qrels(one.testing), [MEASURE, "RR@5"], baseline="hybrid", allow_empty=True)
    tests = {which: tested_against(report.comparison(which, "hybrid", MEASURE)) for which in runs if which != "hybrid"}
    means = {which: {m: round(report.mean(which, m), 4) for m in (MEASURE, "RR@5")} for which in runs}
    return {"means": means, "tests": tests}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--model", action="append", choices=sorted(RECIPES), help="which recipes (default: some)")
    parser.add_argument("--collection", action="append", help=f"which (default: {', '.join(UNSEEN)})")
    chosen = parser.parse_args()
    bench, results = Bench(chosen.data, chosen.work), Results(chosen.work / "zeroshot.jsonl")
    for name in chosen.collection or UNSEEN:
        one = bench.group[name]
        for model in ("", *(chosen.model or MODELS)):
            results.once(f"{name}: {model or 'untrained'}", lambda model=model, one=one: measured(model, bench, one))


if __name__ == "__main__":
    main()

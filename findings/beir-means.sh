#!/usr/bin/env bash
# BEIR 2.2.0: `evaluate` and `evaluate_custom` take the mean over different topics, and `evaluate` changes the results it is given.
#
# Metrics: https://github.com/beir-cellar/beir/wiki/Metrics-available. nDCG, MAP, Recall and P are means over the judged
# topics that have results, MRR, R_cap, Hole and Accuracy over all judged topics: a system that answers one of two topics gets
# NDCG@10 1.0 and MRR@10 0.5. By default (`ignore_identical_ids`) a document with the id of its topic is removed from the
# caller's own dict, also where it is judged relevant. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps beir==2.2.0 pytrec_eval-terrier==0.5.11 numpy==2.4.6 tqdm
cat >"$folder/expected" <<'END'
{'NDCG@10': 1.0, 'MAP@10': 1.0, 'Recall@10': 1.0, 'P@10': 0.1}
{'MRR@10': 0.5}
{'R_cap@10': 0.5}
{'NDCG@10': 0.61315} {'1': {'b': 1.0}}
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from beir.retrieval.evaluation import EvaluateRetrieval

qrels, results = {"1": {"a": 1}, "2": {"b": 1}}, {"1": {"a": 2.0, "x": 1.0}}
ndcg, ap, recall, precision = EvaluateRetrieval.evaluate(qrels, results, [10])
print({**ndcg, **ap, **recall, **precision})
for metric in ("mrr", "r_cap"):
    print(EvaluateRetrieval.evaluate_custom(qrels, results, [10], metric))
qrels, results = {"1": {"1": 1, "b": 1}}, {"1": {"1": 2.0, "b": 1.0}}
print(EvaluateRetrieval.evaluate(qrels, results, [10])[0], results)
END
cat seen
diff expected seen

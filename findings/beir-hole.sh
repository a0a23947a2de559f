#!/usr/bin/env bash
# BEIR 2.2.0: Hole@k counts a document as judged if it was judged for any topic, and topics without results as fully judged.
#
# Documentation: https://github.com/beir-cellar/beir/wiki/Metrics-available: "% of top-k docs retrieved unseen by annotators". A
# document that was judged for another topic is no hole (retrieval/custom_metrics.py), and the holes of the topics that have
# results are divided by k and by the number of all judged topics: a short ranking and a missing topic hide holes. Here all
# documents retrieved are without a judgment for their topic. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps beir==2.2.0 pytrec_eval-terrier==0.5.11 numpy==2.4.6 tqdm
cat >"$folder/expected" <<'END'
judged for the other topic {'Hole@2': 0.0}
judged for no topic {'Hole@2': 1.0}
one of two topics answered {'Hole@2': 0.5}
one document found {'Hole@10': 0.1}
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from beir.retrieval.evaluation import EvaluateRetrieval

qrels = {"1": {"a": 1, "b": 1}, "2": {"c": 1, "d": 1}}
full = {"1": {"x": 2.0, "y": 1.0}, "2": {"x": 2.0, "y": 1.0}}
cases = {
    "judged for the other topic": ({"1": {"c": 2.0, "d": 1.0}, "2": {"a": 2.0, "b": 1.0}}, 2),
    "judged for no topic": (full, 2),
    "one of two topics answered": ({"1": full["1"]}, 2),
    "one document found": ({"1": {"x": 1.0}, "2": {"x": 1.0}}, 10),
}
for name, (results, k) in cases.items():
    print(name, EvaluateRetrieval.evaluate_custom(qrels, results, [k], "hole"))
END
cat seen
diff expected seen

#!/usr/bin/env bash
# ranx 0.3.21: with graded judgments RBP adds grades, and bpref is NaN without documents judged as not relevant.
#
# Documentation: https://amenra.github.io/ranx/metrics/: in the formula of RBP, r_i "is either 0 or 1, whether the i-th ranked
# document is non-relevant or relevant". The code (ranx/metrics/rank_biased_precision.py) takes the grade itself, so RBP grows with
# the scale of the judgments, and beyond 1; no other binary measure of ranx does so. In bpref, min(R, N) is the divisor also where N,
# the number of documents judged as not relevant, is 0: the value, and with it the mean over all topics, is NaN (trec_eval: 1). Seen on
# 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ranx==0.3.21 numba==0.68.1 numpy==2.4.6
cat >"$folder/expected" <<'END'
grades 1 and 1: rbp.80 0.36 precision@2 1.0
grades 3 and 1: rbp.80 0.76 precision@2 1.0
grades 3 and 3: rbp.80 1.08 precision@2 1.0
bpref with a document judged 0: 1.0
bpref without one: nan
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from ranx import Qrels, Run, evaluate

run = Run({"1": {"a": 2.0, "b": 1.0}})
for first, second in ((1, 1), (3, 1), (3, 3)):
    qrels = Qrels({"1": {"a": first, "b": second}})
    values = [round(float(evaluate(qrels, run, measure)), 4) for measure in ("rbp.80", "precision@2")]
    print(f"grades {first} and {second}: rbp.80 {values[0]} precision@2 {values[1]}")
print("bpref with a document judged 0:", float(evaluate(Qrels({"1": {"a": 1, "b": 1, "c": 0}}), run, "bpref")))
print("bpref without one:", float(evaluate(Qrels({"1": {"a": 1, "b": 1}}), run, "bpref")))
END
cat seen
diff expected seen

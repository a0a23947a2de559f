#!/usr/bin/env bash
# ir_measures 0.4.3: measures of one run order equal scores in different ways.
#
# Each measure is computed by the first provider that supports it (https://ir-measur.es/en/latest/providers.html), and each
# provider has its own order of ties: pytrec_eval's is by document id, descending; that of msmarco (RR with a cutoff) and of
# Judged and Compat is ascending; Accuracy keeps the given order. So RR is 0.5 and RR@10 is 1.0 for two tied documents, in
# both orders of the input. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ir_measures==0.4.3 pytrec_eval-terrier==0.5.11
cat >"$folder/expected" <<'END'
ab P@1 0.0
ab RR 0.5
ab RR@10 1.0
ab Compat(p=0.5) 1.0
ab Accuracy 1.0
ba P@1 0.0
ba RR 0.5
ba RR@10 1.0
ba Compat(p=0.5) 1.0
ba Accuracy 0.0
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
import ir_measures
from ir_measures import RR, Accuracy, Compat, P, Qrel, ScoredDoc

qrels = [Qrel("1", "a", 1), Qrel("1", "b", 0)]
for order in ("ab", "ba"):
    run = [ScoredDoc("1", doc_id, 1.0) for doc_id in order]
    for measure in (P @ 1, RR, RR @ 10, Compat(p=0.5), Accuracy):
        print(order, measure, round(float(ir_measures.calc_aggregate([measure], qrels, run)[measure]), 4))
END
cat seen
diff expected seen

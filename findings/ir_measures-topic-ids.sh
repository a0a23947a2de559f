#!/usr/bin/env bash
# ir_measures 0.4.3, measures that gdeval.pl computes (ERR@k, nDCG(dcg='exp-log2')@k): a topic id with a hyphen is cut.
#
# A topic id is a string without white space, in qrels and in runs (https://ir-measur.es/en/latest/getting-started.html), such
# as "wt09-1" or "2019-1". gdeval.pl takes what follows the last hyphen for the id. The values come back under that id: two
# topics "2019-1" and "2020-1" become one topic "1", beside which the judged topics themselves count 0 in the mean. There is
# no error. The same topics without hyphens: 0.0625 and 0.0, mean 0.03125. Needs perl. Seen on 2026-11-28: the lines of
# `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ir_measures==0.4.3 pytrec_eval-terrier==0.5.11
cat >"$folder/expected" <<'END'
nDCG@10 [('2019-1', 1.0), ('2020-1', 0.0)] mean 0.5
ERR@10 [('1', 0.03125), ('2019-1', 0.0), ('2020-1', 0.0)] mean 0.01042
nDCG@10 [('20191', 1.0), ('20201', 0.0)] mean 0.5
ERR@10 [('20191', 0.0625), ('20201', 0.0)] mean 0.03125
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
import ir_measures
from ir_measures import ERR, nDCG, Qrel, ScoredDoc

for first, second in (("2019-1", "2020-1"), ("20191", "20201")):
    qrels = [Qrel(first, "a", 1), Qrel(second, "b", 1)]
    run = [ScoredDoc(first, "a", 2.0), ScoredDoc(first, "x", 1.0), ScoredDoc(second, "x", 2.0), ScoredDoc(second, "y", 1.0)]
    for measure in (nDCG @ 10, ERR @ 10):
        values = sorted((one.query_id, round(float(one.value), 5)) for one in ir_measures.iter_calc([measure], qrels, run))
        print(measure, values, "mean", round(float(ir_measures.calc_aggregate([measure], qrels, run)[measure]), 5))
END
cat seen
diff expected seen

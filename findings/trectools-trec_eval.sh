#!/usr/bin/env bash
# trectools 0.0.50: with trec_eval=True, nDCG has another order of equal scores; and beside pandas 3, R-precision mixes topics.
#
# Documentation (docstrings of TrecEval, https://github.com/joaopalotti/trectools): trec_eval=True, the default, gives the result of
# trec_eval, whose order is by score, then by document id, descending. get_precision and get_map (trec_eval.py) sort so, get_ndcg does
# not: equal scores stay as trec_run.py sorts them, by document id ascending, so P@1 and nDCG@1 are of two rankings. get_rprec applies a
# function to the groups of topics and joins the result with the judgments; in pandas 3, which trectools' requirements allow, the groups
# have lost the column `query`, and the join goes by document alone: a document that is relevant for another topic counts for this one.
# No warning.
# trec_eval's values are those of pytrec_eval-terrier 0.5.11. Seen on 2026-11-30: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
install=("$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${install[@]}" trectools==0.0.50 pytrec_eval-terrier==0.5.11 numpy==2.4.6 pandas==2.3.3
cat >"$folder/expected" <<'END'
trec_eval: nDCG@1 0.0, P@1 0.0, R-precision 0.0
trectools, pandas 2.3.3: nDCG@1 0.5, P@1 0.0, R-precision 0.0
trectools, pandas 3.1.1: nDCG@1 0.5, P@1 0.0, R-precision 1.0
END
cd "$folder"
printf '%s\n' '1 0 a 1' '2 0 b 1' >qrels
printf '%s\n' '1 Q0 a 1 2.0 x' '1 Q0 b 2 2.0 x' '2 Q0 a 1 2.0 x' '2 Q0 b 2 1.0 x' >run
cat >measure.py <<'END'
import importlib.metadata
import sys

import pytrec_eval
from trectools import TrecEval, TrecQrel, TrecRun

if sys.argv[1:]:
    with open("qrels") as qrels, open("run") as run:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), {"ndcg_cut_1", "P_1", "Rprec"})
        values = evaluator.evaluate(pytrec_eval.parse_run(run)).values()
    means = [sum(value[name] for value in values) / 2 for name in ("ndcg_cut_1", "P_1", "Rprec")]
    tool = "trec_eval"
else:
    evaluation = TrecEval(TrecRun("run"), TrecQrel("qrels"))
    means = [evaluation.get_ndcg(1), evaluation.get_precision(1), evaluation.get_rprec()]
    tool = f"trectools, pandas {importlib.metadata.version('pandas')}"
print(f"{tool}: nDCG@1 {round(means[0], 4)}, P@1 {round(means[1], 4)}, R-precision {round(means[2], 4)}")
END
venv/bin/python -W ignore measure.py trec_eval >seen
venv/bin/python -W ignore measure.py >>seen
"${install[@]}" pandas==3.1.1
venv/bin/python -W ignore measure.py >>seen
cat seen
diff expected seen

#!/usr/bin/env bash
# ir_measures 0.4.3: IPrec@0.125 is computed at a recall of .12, without a word, and its result is called IPrec@0.125.
#
# Documentation: https://ir-measur.es/en/latest/measures.html: `recall` of IPrec is a number, as in IPrec@0.1. The recall is
# passed on with two decimals (providers/pytrec_eval_provider.py); pytrec_eval itself takes .125. Of 25 relevant documents
# three are found before the first other one, and .125 needs a fourth. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ir-measures==0.4.3 pytrec_eval-terrier==0.5.11
cat >"$folder/expected" <<'END'
ir_measures, IPrec@0.125: 1.0000
pytrec_eval, recall .125: 0.8889
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
import ir_measures
import pytrec_eval

qrels = {"1": {f"d{i}": 1 for i in range(25)} | {"n": 0}}
ranking = ["d0", "d1", "d2", "n", "d3", "d4", "d5", "d6", "d7"]
run = {"1": {doc: float(100 - rank) for rank, doc in enumerate(ranking)}}
measure = ir_measures.parse_measure("IPrec@0.125")
print(f"ir_measures, {measure}: {ir_measures.calc_aggregate([measure], qrels, run)[measure]:.4f}")
values = pytrec_eval.RelevanceEvaluator(qrels, {"iprec_at_recall.0.125"}).evaluate(run)["1"]
print(f"pytrec_eval, recall .125: {next(iter(values.values())):.4f}")
END
cat seen
diff expected seen

#!/usr/bin/env bash
# ranx 0.3.21: `evaluate` pairs plain dicts by position.
#
# `evaluate` takes `Dict[str, Dict[str, Number]]` in place of Qrels and Run (its docstring; https://amenra.github.io/ranx). It
# checks that both have the same topic ids, then pairs the values in the order of each dict: with the same topics in another
# order a perfect run gets 0.0, without an error. Ties in dicts are ordered in reverse of a Run's: the last given document
# comes first. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ranx==0.3.21 numba==0.68.1 numpy==2.4.6
cat >"$folder/expected" <<'END'
other order of topics: 1.0 dicts 0.0
ties: 1.0 dicts 0.5
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from ranx import Qrels, Run, evaluate

qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
run = {"q2": {"b": 2.0, "x": 1.0}, "q1": {"a": 2.0, "x": 1.0}}
print("other order of topics:", evaluate(Qrels(qrels), Run(run), "mrr"), "dicts", evaluate(qrels, run, "mrr"))
qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "x": 1.0}}
print("ties:", evaluate(Qrels(qrels), Run(run), "mrr"), "dicts", evaluate(qrels, run, "mrr"))
END
cat seen
diff expected seen

#!/usr/bin/env bash
# PyTerrier 1.1.2: `pt.io.read_results` and `pt.io.read_qrels` read the ids NA, null, None, nan and N/A as missing values.
#
# The readers are those of TREC's formats, whose ids are strings without white space (pyterrier/io.py of
# https://github.com/terrier-org/pyterrier). They call `pandas.read_csv`, which takes these words for NaN
# (https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html, na_values), although the columns are declared as
# strings: two documents become one, and are no document of the collection. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pyterrier==1.1.2 pandas==3.1.1
cat >"$folder/expected" <<'END'
[nan, nan, 'DE']
[nan, 'DE']
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from pathlib import Path

import pyterrier as pt

Path("countries.run").write_text("q1 Q0 NA 0 3.0 bm25\nq1 Q0 null 1 2.0 bm25\nq1 Q0 DE 2 1.0 bm25\n")
Path("countries.qrels").write_text("q1 0 NA 1\nq1 0 DE 0\n")
print(pt.io.read_results("countries.run").docno.tolist())
print(pt.io.read_qrels("countries.qrels").docno.tolist())
END
cat seen
diff expected seen

#!/usr/bin/env bash
# PyTerrier 1.1.2: `^` loses topics, and `+` loses queries, that the left side does not find.
#
# "a ^ b" is documented as the results of a, followed by those of b (docs/operators.rst of
# https://github.com/terrier-org/pyterrier). A topic for which a finds nothing has no results at all, although b finds some.
# "a + b" keeps its documents, but their query, and any other column of b that a has too, is NaN: a reranker that reads the
# text gets NaN. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pyterrier==1.1.2 pandas==3.1.1
cat >"$folder/expected" <<'END'
left ^ right
  | 1 | a | hot water | text of a
  | 1 | b | hot water | text of b
left + right
  | 1 | a | hot water | text of a
  | 1 | b | nan | nan
  | 2 | c | nan | nan
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
import pandas as pd
import pyterrier as pt


class Results(pt.Transformer):
    def __init__(self, rows):
        self.rows = pd.DataFrame(rows, columns=["qid", "docno", "score", "text"])

    def transform(self, topics):
        return pt.model.add_ranks(topics.merge(self.rows, on="qid"))


topics = pd.DataFrame({"qid": ["1", "2"], "query": ["hot water", "cold well"]})
left = Results([("1", "a", 2.0, "text of a")])
right = Results([("1", "b", 1.0, "text of b"), ("2", "c", 1.0, "text of c")])
for name, joined in (("left ^ right", left ^ right), ("left + right", left + right)):
    print(name)
    for row in joined(topics).itertuples():
        print(" ", row.qid, row.docno, row.query, row.text, sep=" | ")
END
cat seen
diff expected seen

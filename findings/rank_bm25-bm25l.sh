#!/usr/bin/env bash
# rank_bm25 0.2.2: BM25L multiplies by tf once more than the formula.
#
# BM25L (Lv and Zhai, When documents are very long, BM25 fails!, SIGIR 2011, https://doi.org/10.1145/2009916.2010070) is idf
# (k1 + 1) (c + delta) / (k1 + c + delta), c = tf / (1 - b + b dl / avgdl). `rank_bm25.BM25L`
# (https://github.com/dorianbrown/rank_bm25) multiplies this by tf, which reverses the order of these two documents. bm25s
# 0.3.16 with method="bm25l" follows the formula. Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check rank_bm25==0.2.2 bm25s==0.3.16 numpy==2.4.6
cat >"$folder/expected" <<'END'
rank_bm25 [0.9632, 2.8397]
bm25s     [0.9632, 0.9466]
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
import bm25s
import rank_bm25

short = ["harbour", *(f"x{i}" for i in range(9))]  # tf 1 in 10 words
long = ["harbour"] * 3 + [f"y{i}" for i in range(40)]  # tf 3 in 43 words
corpus = [short, long, ["z"] * 5, ["w"] * 5]
print("rank_bm25", rank_bm25.BM25L(corpus).get_scores(["harbour"])[:2].round(4).tolist())
model = bm25s.BM25(method="bm25l", dtype="float64")
model.index(corpus, show_progress=False)
print("bm25s    ", model.get_scores(["harbour"])[:2].round(4).tolist())
END
cat seen
diff expected seen

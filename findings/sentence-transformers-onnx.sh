#!/usr/bin/env bash
# sentence-transformers 6.2.0: its extra `onnx` cannot be installed, as no release of optimum-onnx takes transformers 5.
#
# The documentation of fast inference says `pip install sentence-transformers[onnx]`
# (https://sbert.net/docs/sentence_transformer/usage/efficiency.html). Release 6.2.0 needs transformers 5, optimum-onnx up to
# 0.1.0 less than 4.58 (https://github.com/huggingface/optimum-onnx/issues/114): pip ends with ResolutionImpossible, and
# without a version goes back to an older sentence-transformers. The extra `openvino` has a solution. uv says the same as pip
# without downloading torch. Seen on 2026-11-29: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9
cat >"$folder/expected" <<'END'
onnx: all versions of optimum-onnx depend on transformers>=4.36.0,<4.58.0
openvino: solved
END
cd "$folder"
for extra in onnx openvino; do
    echo "sentence-transformers[$extra]==6.2.0" >asked
    venv/bin/uv pip compile --quiet asked >answer 2>&1 && answer="solved" ||
        answer=$(grep -o "all versions of optimum-onnx depend on transformers[0-9.,<>=]*[0-9]" answer | head -1)
    echo "$extra: $answer" >>seen
done
cat seen
diff expected seen

#!/usr/bin/env bash
# charset-normalizer 3.5.3 detects European texts of 100 to 10,000 characters that are stored as cp1252 as other encodings.
#
# The letters differ: a French text becomes cp1257 ("la crčme"), Portuguese and Swedish cp1250 ("păo", "vĺren"). The texts are
# whole sentences with eight letters beyond ASCII or more. The language that is named does not help: Estonian, Polish, German.
# Documentation: https://github.com/Ousret/charset_normalizer ("helps you read text from an unknown charset encoding"), and the
# docstring of from_bytes: "return the best possibles charset usable to render str objects". Seen on 2026-11-28: the lines of
# `expected` (text, repetitions, encoding, language, whether the text is as it was written).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check charset-normalizer==3.5.3
cat >"$folder/expected" <<'END'
fr 1 cp1257 Estonian False
fr 50 cp1257 Estonian False
pt 1 cp1250 Polish False
pt 50 cp1250 Portuguese False
sv 1 cp1250 German False
sv 50 cp1250 German False
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from charset_normalizer import from_bytes

TEXTS = {
    "fr": "Les cafés à la crème sont très bons, et la forêt est déjà verte. C’est l’été : les élèves naïfs lisent à l’école. "
    "Où êtes-vous allés après la fête ? Nous avons vu des châteaux, des îles et des chênes. ",
    "pt": "A criança não comeu o pão. É difícil dizer se a estação é boa. As mães não estão lá, mas os irmãos já chegaram à "
    "estação com três maçãs e dois limões. ",
    "sv": "Räksmörgås är gott på våren. Flickan gick över bron i går kväll och såg en älg på ängen vid ån. ",
}
for name, text in TEXTS.items():
    for repetitions in (1, 50):
        best = from_bytes((text * repetitions).encode("cp1252")).best()
        print(name, repetitions, best.encoding, best.language, str(best) == text * repetitions)
END
cat seen
diff expected seen

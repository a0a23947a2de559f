#!/usr/bin/env bash
# Haystack 3.4.1: what a filter such as `>= "2020"` on dates selects depends on the day on which it is asked.
#
# `>`, `>=`, `<` and `<=` compare dates written in ISO format (https://docs.haystack.deepset.ai/docs/metadata-filtering). A
# text that is no ISO date goes to dateutil's parser, which completes it by the month and the day of today: ">= 2020" means
# from today's day of 2020 on, and the answer changes each day; "2020-05" gets today's day of the month. There is no error.
# (`==` reads ISO dates only.) Seen on 2026-11-28: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check haystack-ai==3.4.1
cat >"$folder/expected" <<'END'
selected from today's day on: True
END
cd "$folder"
venv/bin/python -W ignore >seen <<'END'
from datetime import date, timedelta

from haystack import Document
from haystack.utils.filters import document_matches_filter

days = [date(2020, 1, 1) + timedelta(days=number) for number in range(366)]
documents = [Document(content="", meta={"date": day.isoformat()}) for day in days]
since_2020 = {"field": "meta.date", "operator": ">=", "value": "2020"}
selected = [document.meta["date"] for document in documents if document_matches_filter(since_2020, document)]
print("selected from today's day on:", selected == [day.isoformat() for day in days if day >= date.today().replace(year=2020)])
END
cat seen
diff expected seen

"""A small collection with metadata, ties and a missing value, for the sockets of other frameworks."""

from pathlib import Path

import fontes as ft

DOCS = [
    ft.Doc("a", "hot springs bring hot water", "Springs", {"year": 1990, "kind": "spring", "tags": ["hot", "water"]}),
    ft.Doc("b", "a well brings cold water", "", {"year": 2005, "kind": "well", "tags": ["cold"]}),
    ft.Doc("c", "a well brings cold water", "", {"year": 2012, "kind": "well", "tags": ["water", "cold"]}),
    ft.Doc("d", "rain water", "Rain", {"kind": "sky"}),
    ft.Doc("e", "limestone and karst", "", {"year": 2020, "kind": "stone", "tags": []}),
]
TOPICS = {"q1": "hot water", "q2": "cold well", "q3": "volcano"}
QRELS = {"q1": {"a": 2, "d": 1}, "q2": {"b": 1, "c": 0}, "q3": {"e": 1}}
MISSING = "{} is not installed; test_environments.py runs this in an environment of its own"


def build(folder: Path) -> ft.Index:
    return ft.Index.build(DOCS, folder / "docs.index")

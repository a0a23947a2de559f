"""A recipe that is BM25 alone, and three documents for it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import fontes as ft
from fontes.recipes.base import AUTHORS_CODE, PUBLISHED

DOCS = [
    ft.Doc("sun", "Sunlight on skin makes vitamin D, which prevents rickets."),
    ft.Doc("flu", "A vaccine prevents influenza; washing hands helps.", "Influenza"),
    ft.Doc("bread", "Bread is made of flour, water and salt."),
]
TOPICS = {"q1": "what prevents rickets", "q2": "influenza vaccine", "q3": "bread"}
QRELS = {"q1": {"sun": 1}, "q2": {"flu": 1}, "q3": {"bread": 1, "flu": 0}}
CALLS: list[str] = []
PAGES = ["recipe.md", *(["recipe.svg"] if find_spec("matplotlib") else [])]
"""The files that every recipe writes, beside runs, reports and the lock."""


@dataclass(frozen=True)
class Noted(ft.Stage[ft.Topics, ft.Topics]):
    """Leaves topics as they are and notes that it was run; or kills the process."""

    kills: bool = False

    def apply(self, topics: ft.Topics, /) -> ft.Topics:
        CALLS.append("noted")
        if self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return topics


@dataclass(frozen=True)
class Tiny(ft.recipes.Recipe):
    """BM25 twice, and their sum.

    Args:
        k1: Of BM25.
    """

    source = "Nobody, On Small Things, 1999"
    cite = "Nobody 1999"
    task = "a small thing"
    needs = ("paper", "a pencil")
    measures = ("RR", "P@1")
    baseline = "first"
    published: ClassVar[dict[str, dict[str, float]]] = {"first": {"RR": 0.5}, "another team": {"RR": 0.25, "AP": 0.125}}
    published_on = "other things"

    k1: float = field(default=0.9, metadata=PUBLISHED)
    k: int = field(default=10, metadata=AUTHORS_CODE)
    loud: bool = False
    analyzer: str | None = "english"
    prefix: str = ""
    note: Noted = Noted()
    after: str | ft.Stage[ft.Run, ft.Run] | None = None

    def systems(self, collection: ft.experiments.Collection) -> dict[str, ft.Stage[ft.Topics, ft.Run]]:
        if self.k < 1:
            raise ft.core.ParameterError("k is too small")
        bm25 = collection.index(self.analyzer or "standard").bm25(k1=self.k1, k=self.k)
        second = self.note >> bm25.with_(b=0.1)
        if (after := self.stage("after", bm25.index)) is not None:
            second = second >> after
        return {"first": bm25, f"{self.prefix}second": second, "sum": bm25 + second}


Tiny.name = "tiny"  # not by the keyword, which would leave it in the registry for all other tests


def files(folder: Path) -> list[str]:
    """The files of results, without what is kept for the next run."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith(("indexes/", "cache/")))

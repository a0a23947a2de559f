"""Precisions that depend on the machine, fixed for use elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from fontes.core import Stage, Topics
from fontes.core.part import fix_precision, precisions_of


@dataclass(frozen=True)
class Same(Stage[Topics, Topics]):
    def apply(self, topics: Topics, /) -> Topics:
        return topics


@dataclass(frozen=True)
class Model(Same):
    precision: str = "auto"
    fingerprint: str = "m"

    @property
    def chosen_precision(self) -> str:
        return "bfloat16 (2 cores)"


@dataclass(frozen=True)
class Automatic(Same):
    precision: str = "auto"


def test_only_models_with_auto_are_settled() -> None:
    pipeline = Model() >> Model("float32", "n") >> Automatic() >> Same()
    assert precisions_of(pipeline) == {"m": "bfloat16"}
    assert fix_precision(pipeline) == Model("bfloat16") >> Model("float32", "n") >> Automatic() >> Same()
    assert fix_precision(Model(), {"m": "float16"}) == Model("float16")
    assert fix_precision(Model(), {"n": "float16"}) == Model()

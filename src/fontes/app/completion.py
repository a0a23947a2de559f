"""Completion of values in shells: models, stages inside pipelines, measures, analyzers, and columns of the index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import typer

from .flags import MODELS

LAST_WORD = re.compile(r"(?P<before>(?:.*[^\w.])?)(?P<word>\w*)", re.DOTALL)
ANALYZERS = ("english", "standard", "simple", "whitespace", "cjk", "nltk")


def complete_model(incomplete: str) -> list[str]:
    """Values of --model that begin with what is typed."""
    return _beginning(incomplete, MODELS)


def complete_pipeline(incomplete: str) -> list[str]:
    """The typed expression with its last word completed to a stage; none inside a text of the expression."""
    from ..core.part import stages

    if any(incomplete.count(quote) % 2 for quote in "'\""):
        return []
    before, word = _split(incomplete)
    if not word and before.rstrip().endswith((")", ",", "=", "%")):
        return []
    return [f"{before}{name}(" for name in _beginning(word, stages)]


def complete_stage(incomplete: str) -> list[str]:
    """Stages and other parts that begin with what is typed."""
    from ..core.part import stages

    return _beginning(incomplete, stages)


def complete_measures(incomplete: str) -> list[str]:
    """The typed list of measures with its last one completed."""
    from ..measures.measure import MEASURES

    before, comma, word = incomplete.rpartition(",")
    names = {cls.name: None for _, cls in MEASURES.items()}
    return [f"{before}{comma}{name}" for name in _beginning(word, names)]


def complete_analyzer(incomplete: str) -> list[str]:
    """Names of analyzers that begin with what is typed."""
    from ..text.analyzer import stemmers

    return _beginning(incomplete, dict.fromkeys((*ANALYZERS, *stemmers())))


def complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """The typed list of columns of the index that the command names, with its last one completed."""
    from ..core.errors import FontesError
    from ..index import Index
    from .usage import is_index

    columns: Iterable[str] = ()
    paths = [word for word in context.args if is_index(Path(word))]  # an option without its value leaves arguments unparsed
    with suppress(FontesError, OSError):
        columns = Index.open(paths[0]).columns if paths else ()
    before, comma, word = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(word, columns)]


def _split(text: str) -> tuple[str, str]:
    match = LAST_WORD.fullmatch(text)
    return ("", text) if match is None else (match["before"], match["word"])


def _beginning(word: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(word)]

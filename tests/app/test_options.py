"""Options of commands come from the parameters of what the commands call."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli, pipelines
from fontes.app.commands import explain, search, tuning
from fontes.app.options import options_of
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings
from fontes.core.expression import tunable
from fontes.core.parameters import tuned
from fontes.core.part import stages
from fontes.lexical import BM25
from fontes.lexical.bm25 import BM25Weighting
from fontes.tuning.space import default_space


@dataclass(frozen=True)
class Settings:
    """Settings of a walk.

    Args:
        steps: Number of steps. More of this is in books.
        pace: Speed of the walk. None: that of the weather.
        stops: Places on the way.
        back: Walk back, too.
        shoes: Wear shoes.
        secret: Nobody knows.
    """

    steps: int = 3
    pace: float | None = None
    stops: tuple[str, ...] = ()
    back: bool = False
    shoes: bool = True
    secret: object = None


def walk(way: str, steps: int = 7, *, laps: Sequence[int] = (), pace: float | None = 0.5) -> None:
    """Walk.

    Args:
        way: The way.
        steps: Number of strides.
        laps: Laps to walk. None: one.
        pace: Speed.
    """


def typed(source: Any, *arguments: str, names: Sequence[str] = (), **how: Any) -> Any:
    """What a command with these options gets; its output where it fails or shows its help."""
    values: dict[str, Any] = {}
    app = typer.Typer()

    @app.command()
    @options_of(source, *names, **how)
    def command(settings: dict[str, Any]) -> None:
        values.update(settings)

    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "TERM": "dumb"})
    return " ".join(done.output.split()) if done.exit_code or "--help" in arguments else values


def test_only_typed_options_reach_the_command() -> None:
    assert typed(Settings) == {}
    several = ("--steps", "5", "--stops", "a", "--stops", "b", "--back", "--no-shoes")
    expected = {"steps": 5, "stops": ("a", "b"), "back": True, "shoes": False}
    assert typed(Settings, *several, flags={"shoes": ("--no-shoes",)}) == expected
    assert typed(Settings, "--pace", "0") == {"pace": 0.0}
    assert "No such option" in typed(Settings, "--secret", "x")
    assert "No such option" in typed(Settings, "--pace", "2", names=["steps"])


def test_help_is_the_first_sentence_and_tells_the_default() -> None:
    shown = typed(Settings, "--help")
    assert "Number of steps. [default: (3)]" in shown
    assert "books" not in shown
    assert "Speed of the walk. [default: (that of the weather)]" in shown


def test_parameters_of_several_functions_are_one_option_that_names_them() -> None:
    shown = typed({"walk": walk, "hike": Settings}, "--help", names=["steps", "laps"])
    assert "walk, hike: Number of strides. [default: (walk 7, hike 3)]" in shown
    assert "walk: Laps to walk." in shown
    assert typed(walk, "--laps", "1", "--laps", "2", names=["laps"]) == {"laps": (1, 2)}


@dataclass(frozen=True)
class BoostedWeighting(BM25Weighting):
    boost: float = 1.0

    def postings(self, statistics: Any, postings: Any) -> Any:
        return self.boost * super().postings(statistics, postings)


@dataclass(frozen=True)
class Boosted(BM25):
    """BM25 times a factor.

    Args:
        boost: Factor of all weights.
    """

    boost: float = tuned(1.0, (1, 3, 1), usual=True)

    @cached_property
    def weighting(self) -> BM25Weighting:
        return BoostedWeighting.of(**self._parameters_of(BoostedWeighting))


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ft.Index]:
    """An index whose bm25 has a parameter more, which is a field and part of the formula."""
    index = ft.Index.build([("a", "hot springs"), ("b", "cold sea")], tmp_path / "springs.index")
    monkeypatch.setitem(stages._things, "bm25", Boosted)
    monkeypatch.setattr(Boosted, "name", "bm25")
    monkeypatch.setattr("fontes.lexical.BM25", Boosted)
    commands = (pipelines, search, explain, tuning)
    try:
        for module in commands:
            importlib.reload(module)
        yield index
    finally:
        monkeypatch.undo()
        for module in commands:
            importlib.reload(module)


def test_a_parameter_is_declared_once_and_is_known_everywhere(index: ft.Index, fontes: Callable[..., Any]) -> None:
    def score(stage: Any) -> float:
        return float(stage.search("springs")[0].score)

    plain = score(BM25(index.state))
    assert score(Boosted(index, boost=2)) == pytest.approx(2 * plain)
    assert repr(Boosted(index, boost=2)) == "bm25(k1=0.9, b=0.4, boost=2)"
    assert score(ft.pipeline("bm25(boost=3)", index)) == pytest.approx(3 * plain)

    assert f"{2 * plain:.4f}" in fontes("search", index.path, "springs", "--boost", "2")[1]
    assert "boost=2.0" in fontes("explain", index.path, "springs", "a", "--boost", "2")[1]
    assert "Factor of all weights" in fontes("search", "--help")[1]
    assert "Factor of all weights" in fontes("stages", "bm25")[1]
    assert "boost=tune()" in fontes("tune", "--help")[1]

    assert default_space(Boosted(index, boost=2))["boost"] == (1, 3, 1)
    assert tunable("bm25(boost=tune())", index)[1] == {"bm25__boost": (1, 3, 1)}

    service = Service([index.path], ServerSettings(any_pipeline=True), {})
    served = service.served(None).state.pipeline("bm25(boost=2)", None, 10, service.expressions).stage
    assert score(served) == pytest.approx(2 * plain)


def test_no_help_names_a_class_of_the_source_in_place_of_a_word() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(ft.__file__).parent.rglob("*.py")]
    classes = {name for source in sources for name in re.findall(r"^class ([A-Z]\w*[a-z][A-Z]\w*)", source, re.MULTILINE)}
    models = {"CanardT5", "CausalEvidence", "ColBERT", "MonoT5", "QuReTeC", "SetRank", "TopicRank"}
    pending: list[Any] = [typer.main.get_command(cli.app)]
    while pending:
        command = pending.pop()
        pending += getattr(command, "commands", {}).values()
        texts = [command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)]
        named = {word for text in texts for word in re.findall(r"\w+", text)} & classes
        assert named <= models, (command.name, named)

"""Registries: the table of Fontes' own classes, entry points of other packages, and classes of this process."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fontes
from fontes.core import ParameterError, registry as module
from fontes.core.part import Part, stages
from fontes.core.registry import PROVIDED, STAGES, Registry, at, provided
from fontes.formats.format import FORMATS, formats
from fontes.index.component import COMPONENTS, components

TABLES = {"stages": (STAGES, stages), "components": (COMPONENTS, components), "formats": (FORMATS, formats)}
SOURCE = Path(fontes.__file__).parent
PACKAGE = """
from support.named import Named

class Forward(Named, name="forward"): pass
class Reverse(Named, name="reverse", aliases=("backwards",)): pass
class Unnamed(Named): pass
"""


class Named:
    """A class that registers as those of Fontes do."""

    names: Registry[type[Named]]

    def __init_subclass__(cls, name: str = "", aliases: tuple[str, ...] = ()) -> None:
        cls.name = name
        for spelling in filter(None, (name, *aliases)):
            Named.names.add(spelling, cls)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a registry that sees these entry points of a package, and counts how often they are read."""
    (tmp_path / "acme_stages.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "support.named", SimpleNamespace(Named=Named))
    monkeypatch.delitem(sys.modules, "acme_stages", raising=False)
    reads: list[str] = []

    def make(*lines: str, **options: Any) -> tuple[Registry[Any], list[str]]:
        points = [EntryPoint(*line.split(" = "), "fontes.things") for line in lines]
        monkeypatch.setattr(module, "installed", lambda group: reads.append(group) or points)
        Named.names = Registry("fontes.things", "thing", **options)
        return Named.names, reads

    yield make
    sys.modules.pop("acme_stages", None)


def test_the_table_says_what_the_classes_declare() -> None:
    for kind in TABLES:
        table, names = TABLES[kind]
        for path in SOURCE.rglob("*.py"):
            if re.search(r"^class [^:]*\bname=", path.read_text(encoding="utf-8"), re.MULTILINE):
                importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
        classes = {name: thing if isinstance(thing, type) else type(thing) for name, thing in names.items()}
        own = {name: cls for name, cls in classes.items() if cls.__module__.startswith("fontes.")}
        assert {name: f"{cls.__module__}:{cls.__qualname__}" for name, cls in own.items()} == dict(table)
        assert list(table) == sorted(table)


def test_what_the_kernel_does_not_import_is_there() -> None:
    assert all(provided(name) is at(place) for name, place in PROVIDED.items())


def test_a_name_imports_the_module_of_its_entry_point(acme: Any) -> None:
    names, reads = acme("reverse = acme_stages:Reverse")
    assert "reverse" in names
    assert list(names) == ["reverse"]
    assert "acme_stages" not in sys.modules
    assert names["reverse"].__name__ == "Reverse"
    for _ in range(3):
        with pytest.raises(ParameterError, match="there is no thing 'revers'; did you mean 'reverse'"):
            names["revers"]
        assert names["reverse"].name == "reverse"
        assert [name for name, _ in names.items()] == ["backwards", "forward", "reverse"]
    assert reads == ["fontes.things"]


def test_a_name_of_the_table_reads_no_entry_points(acme: Any) -> None:
    names, reads = acme("reverse = elsewhere:Reverse", table={"reverse": "acme_stages:Reverse"})
    assert names["reverse"].__module__ == "acme_stages"
    assert names["reverse"] is names["reverse"]
    assert reads == []
    with pytest.warns(
        UserWarning, match=r'reverse = "elsewhere:Reverse" in fontes.things is left out: Fontes has a thing of this'
    ):
        list(names)


def test_an_entry_point_of_a_module_says_what_to_write(acme: Any) -> None:
    names, _ = acme("acme = acme_stages")
    advice = r'names no class; write one entry point for each thing: NAME = "acme_stages:CLASS"'
    with pytest.warns(UserWarning, match=advice), pytest.raises(ParameterError, match="there is no thing 'reverse'"):
        names["reverse"]


def test_the_entry_point_and_the_class_have_one_name(acme: Any) -> None:
    names, _ = acme("revers = acme_stages:Reverse", "unnamed = acme_stages:Unnamed", "gone = acme_stages:Gone")
    with pytest.raises(ParameterError, match="have different names, 'revers' and 'reverse'; write one name in both"):
        names["revers"]
    with pytest.raises(ParameterError, match="have different names, 'unnamed' and ''"):
        names["unnamed"]
    with pytest.raises(ParameterError, match=r"acme_stages has it and cannot be imported: .*no attribute 'Gone'"):
        names["gone"]


def test_a_package_that_cannot_be_imported_is_tried_once(acme: Any, tmp_path: Path) -> None:
    names, _ = acme("broken = acme_broken:Broken")
    for _ in range(2):
        with pytest.raises(ParameterError, match="there is no thing 'broken'; acme_broken has it and cannot be imported"):
            names["broken"]
        (tmp_path / "acme_broken.py").write_text("raise SystemExit")
    with pytest.warns(UserWarning, match="the thing 'broken' is left out: acme_broken has it and cannot be imported"):
        assert names.items() == []


def test_two_packages_of_one_name_are_an_error_of_the_second(acme: Any) -> None:
    names, _ = acme("reverse = acme_stages:Reverse", "reverse = other:Reverse")
    with pytest.warns(
        UserWarning, match='reverse = "other:Reverse" in fontes.things is left out: acme_stages has a thing of this'
    ):
        assert names["reverse"].__module__ == "acme_stages"


@pytest.mark.parametrize("imported_first", [False, True])
def test_a_class_of_this_process_is_known_and_may_not_take_a_declared_name(acme: Any, imported_first: bool) -> None:
    names, _ = acme("reverse = acme_stages:Reverse", table={"own": "elsewhere:Own"})

    class Local(Named, name="local"):
        pass

    assert names["local"] is Local
    with pytest.raises(ParameterError, match=r"two things are called 'own': elsewhere\.Own and .*Taken; rename one"):

        class Taken(Named, name="own"):
            pass

    if imported_first:
        names["reverse"]
    with pytest.raises(ParameterError, match=r"two things are called 'reverse': .*; rename one"):
        names[type("Reverse", (Named,), {}, name="reverse").name]


def test_classes_with_further_names_are_loaded_for_the_first_unknown_name(acme: Any) -> None:
    names, reads = acme("Reverse = acme_stages:Reverse", key=str.lower)
    assert "backwards" in names
    assert names["backwards"] is names["reverse"]
    assert reads == ["fontes.things"]


def test_a_stage_of_a_notebook_replaces_itself() -> None:
    def cell() -> type[Part]:
        class Again(Part, name="again"):
            pass

        return Again

    with stages.restored(), warnings.catch_warnings():
        cell()
        newest = cell()
        assert stages["again"] is newest
        warnings.simplefilter("error")
        assert dict(stages.items())["again"] is newest
    assert "again" not in stages
    assert "bm25" in stages

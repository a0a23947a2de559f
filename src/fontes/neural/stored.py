"""Encoders of the vectors that an index stores: their texts, precisions and names."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import FontesError, InputError, ParameterError, PipelineError
from ..core.expression import part
from ..core.hints import nearest
from ..core.part import Part, walk
from ..index.embeddings.encoding import VECTORS
from ..storage.artifact import LABEL
from .encoders.base import Encoder
from .encoders.sentence import SentenceEncoder
from .models.base import Pretrained
from .models.compute import PRECISIONS
from .models.hub import find_local_model

if TYPE_CHECKING:
    from ..index import Index, State
    from ..index.embeddings.encoded import EncodedComponent

E = TypeVar("E")
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")


def settings_of(encoder: object, *, absolute: bool = False) -> str | None:
    """Text of an encoder without its precision, which depends on the machine; None for an encoder without a text.

    With `absolute`, folders of models are given from the root, so that the text can be read in any folder.
    """
    if not isinstance(encoder, Part):
        return None

    def without_precision(model: Part) -> Part:
        if not isinstance(model, Pretrained):
            return model
        folder = Path(model.name_or_path).expanduser()
        path = {"name_or_path": str(folder.absolute())} if absolute and folder.is_dir() else {}
        return model.with_(precision="auto", **path)

    try:
        return encoder.map(without_precision).text
    except PipelineError:
        return None


def precision_of(encoder: object) -> str | None:
    """Precisions of an encoder's models on this machine, separated by spaces; None without models. Loads the models."""
    return " ".join(model.chosen_precision.partition(" ")[0] for model in _models(encoder)) or None


def check_precision(path: Path, encoder: object, stored: object) -> None:
    """Raise ParameterError if an encoder's models name another precision than that of vectors stored in an index at `path`.

    `stored` is a result of `precision_of`.
    """
    names = str(stored or "").split()
    chosen = (model.precision for model in _models(encoder) if names and model.precision != "auto")
    if (other := next((name for name in chosen if name not in names), None)) is not None:
        raise ParameterError(
            f"{path} has vectors of this encoder in {stored}; overwrite=True (--overwrite) makes them again in {other}, and "
            f"without precision='{other}' new documents are encoded in {stored}"
        )


def in_precision(encoder: E, stored: object) -> E:
    """Set the precision of models with precision "auto" to the precision of stored vectors.

    Args:
        encoder: The encoder.
        stored: A result of `precision_of`; unless it is a single precision, the encoder is returned unchanged.
    """
    names = set(str(stored or "").split())
    if not isinstance(encoder, Part) or len(names) != 1 or not names <= set(PRECISIONS):
        return encoder
    (name,) = names
    return encoder.map(
        lambda model: model.with_(precision=name) if isinstance(model, Pretrained) and model.precision == "auto" else model
    )


def encoder_from(text: object) -> Encoder:
    """Parse the text of an encoder; raise ParameterError if this version of Fontes cannot create it."""
    try:
        encoder: Encoder = _parsed(text if isinstance(text, str) else "")
    except FontesError as error:
        problem = f"the vectors belong to an encoder that this version of Fontes cannot create, {text} ({error}); encode again"
        raise ParameterError(problem) from error
    return encoder


_parsed = lru_cache(64)(part)


def check_free(
    index: Index | State, component: EncodedComponent[Any, Any], fingerprint: str, name: str | None, overwrite: bool
) -> None:
    """Raise ParameterError if vectors of an encoder cannot get a name.

    Args:
        index: The index.
        component: The component of the vectors.
        fingerprint: Fingerprint of the encoder.
        name: The name; None: none.
        overwrite: Whether another encoder's vectors may lose the name.
    """
    if name is None:
        return
    if not NAME.fullmatch(name):
        raise ParameterError(
            f"a name of vectors is letters, digits, '.', '_', '+' and '-' behind a letter or digit, not {name!r}"
        )
    other = index.vectors.labelled(component).get(name)
    if other is not None and other["fingerprint"] != fingerprint and not overwrite:
        raise ParameterError(
            f"{index.path} has {component.described(other)} under the name '{name}'; give another name, or overwrite=True "
            "(--overwrite) gives it to the new ones"
        )


def named_model(index: Index | State, component: EncodedComponent[Any, Any], model: object) -> Any:
    """Return the model of the vectors that an index stores under a name; anything but such a name unchanged.

    Args:
        index: The index.
        component: The component of the vectors.
        model: The parameter of a stage: a model, or a name.

    Raises:
        ParameterError: The name is no model on this machine, and the index has vectors under other names.
        InputError: The folder of the model is not there.
    """
    name = _plain_name(model)
    if name is None:
        return model
    labelled = index.vectors.labelled(component)
    if name in labelled:
        encoder = encoder_from(labelled[name]["settings"])
        for folder in (Path(inner.name_or_path) for inner in _models(encoder)):
            if folder.is_absolute() and not folder.is_dir():
                command = f"fontes encode {shlex.quote(str(index.path))} FOLDER --name {name}"
                raise InputError(f"the model of the vectors '{name}' is not at {folder}; {command} tells where it is now")
        return encoder
    if labelled and find_local_model(name, SentenceEncoder.owner) is None:
        raise ParameterError(f"{index.path} has no vectors with the name '{name}'; {nearest(name, labelled)}")
    return model


def named_encoder(index: Index | State, encoder: object) -> Any:
    """Return the encoder of the dense vectors that an index stores under a name; see `named_model`."""
    return named_model(index, VECTORS, encoder)


def _plain_name(model: object) -> str | None:
    """The name that a parameter may be: a string, or the model that an expression makes of it; None for anything else."""
    if isinstance(model, Pretrained) and list(model.shown()) == ["name_or_path"]:
        model = model.name_or_path
    return model if isinstance(model, str) and NAME.fullmatch(model) else None


def encoder_of(index: Index, name: str | None) -> Encoder:
    """Return the encoder of an index's vectors.

    Args:
        index: The index.
        name: Name of the vectors, or of the encoder's model, or its last part, if the index has several encoders. The name of
            another model gives a `SentenceEncoder`; its search raises an error that lists the encoders of the index.

    Raises:
        ParameterError: The choice is ambiguous, or the encoder cannot be created.
    """
    chosen = encoder_or_name(index, name)
    return named_encoder(index, chosen) if isinstance(chosen, str) else chosen


def encoder_or_name(index: Index, name: str | None) -> Encoder | str:
    """Return the name of an index's vectors if they have one, else their encoder; see `encoder_of`."""
    vectors = {facts["fingerprint"]: facts for facts in index.info()["vectors"] if facts["settings"]}
    by_name = {facts.get(LABEL, facts["settings"]): encoder_from(facts["settings"]) for facts in vectors.values()}
    chosen = [key for key, encoder in by_name.items() if name is None or name == key or name in _names(encoder)]
    chosen = [name] if name in chosen else chosen
    labels = index.vectors.labelled(VECTORS)
    if len(chosen) == 1:
        return chosen[0] if chosen[0] in labels else by_name[chosen[0]]
    if chosen:
        which = "give one's name" if name is None else "search from Python"
        shown = ", ".join(key if key in labels else repr(by_name[key]) for key in chosen)
        raise ParameterError(f"{index.path} holds vectors of several encoders ({shown}); {which}")
    if name is None:
        command = f"fontes encode {shlex.quote(str(index.path))} MODEL"
        raise ParameterError(f"{index.path} has no vectors of an encoder of Fontes; {command} makes them")
    return SentenceEncoder(name)


def _names(encoder: Encoder) -> set[str]:
    """Names of an encoder's models, and their last parts."""
    names = {str(model.name_or_path).rstrip("/") for model in _models(encoder)}
    return names | {name.rpartition("/")[2] for name in names}


def _models(encoder: object) -> list[Pretrained[Any]]:
    return [model for model in walk(encoder) if isinstance(model, Pretrained)] if isinstance(encoder, Part) else []

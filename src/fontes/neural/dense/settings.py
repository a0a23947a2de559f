"""The settings of an encoder as JSON, so that an index can make the encoder of its vectors again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ParameterError

if TYPE_CHECKING:
    from ...index import Index
    from ..encoders.base import Encoder

CLASSES = ("SentenceEncoder", "TransformerEncoder", "ChunkedEncoder")
OF_THE_MACHINE = ("batch_tokens", "precision", "device")  # parameters that are not kept


def settings_of(encoder: Encoder) -> dict[str, Any] | None:
    """The class of an encoder of Fontes and its parameters, or None for another one."""
    name = type(encoder).__name__
    if name not in CLASSES or not type(encoder).__module__.startswith(__package__) or not dataclasses.is_dataclass(encoder):
        return None
    found: dict[str, Any] = {"class": name}
    for field in dataclasses.fields(encoder):
        if field.name not in OF_THE_MACHINE:
            value = getattr(encoder, field.name)
            if isinstance(value, Path):
                value = str(value)
            found[field.name] = settings_of(value) if field.name == "encoder" else value
    return None if "encoder" in found and found["encoder"] is None else found


def encoder_from(settings: dict[str, Any]) -> Encoder:
    """The encoder with these settings. Raises ParameterError where they are of another version of Fontes."""
    from ... import neural

    given = {key: encoder_from(value) if key == "encoder" else value for key, value in settings.items() if key != "class"}
    if settings["class"] not in CLASSES:
        raise ParameterError(f"the vectors are of an encoder '{settings['class']}', which this Fontes does not know")
    try:
        made: Encoder = getattr(neural, settings["class"])(**given)
    except TypeError as e:
        raise ParameterError(f"the vectors are of an encoder that this Fontes cannot make ({e}); encode again") from e
    return made


def encoder_of(index: Index, name: str | None) -> Encoder:
    """The encoder of an index's vectors, by the name of its model where there are several.

    A name that no vectors are of becomes a SentenceEncoder, whose search then says which vectors there are. Raises
    ParameterError where it is not clear which encoder is meant.
    """
    from ..encoders.sentence import SentenceEncoder

    known: dict[str, dict[str, Any]] = {}
    for facts in index.info()["vectors"]:
        if facts["settings"]:
            known[facts["fingerprint"]] = facts["settings"]
    fitting = [settings for settings in known.values() if name is None or name in _names(settings)]
    if len(fitting) == 1:
        return encoder_from(fitting[0])
    if fitting:
        which = "give one's name" if name is None else "search from Python"
        raise ParameterError(f"{index.path} holds vectors of several encoders ({', '.join(map(_shown, fitting))}); {which}")
    if name is None:
        raise ParameterError(
            f"{index.path} holds no vectors of an encoder of Fontes; fontes encode {index.path} MODEL makes them"
        )
    return SentenceEncoder(name)


def _names(settings: dict[str, Any]) -> Iterator[str]:
    """The model's name, and its last part."""
    inner = settings
    while "encoder" in inner:
        inner = inner["encoder"]
    name = str(inner["name_or_path"]).rstrip("/")
    yield from (name, name.rpartition("/")[2])


def _shown(settings: dict[str, Any]) -> str:
    return repr(encoder_from(settings))

"""The text of an encoder, by which an index can make the encoder of its vectors again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import FontesError, ParameterError, PipelineError
from ...core.expression import part
from ...core.part import Part, walk
from ..encoders.base import Encoder
from ..encoders.sentence import SentenceEncoder
from ..models.base import Pretrained
from ..models.compute import PRECISIONS

if TYPE_CHECKING:
    from ...index import Index

E = TypeVar("E")


def settings_of(encoder: object) -> str | None:
    """The text of an encoder, without the precision, which belongs to the machine; None for one that has no text."""
    if not isinstance(encoder, Part):
        return None
    try:
        return encoder.map(lambda inner: inner.with_(precision="auto") if isinstance(inner, Pretrained) else inner).text
    except PipelineError:
        return None


def precision_of(encoder: object) -> str | None:
    """In which precision each of an encoder's models runs here, with spaces between; None for one without. Loads the models."""
    return " ".join(model.chosen_precision.partition(" ")[0] for model in _models(encoder)) or None


def in_precision(encoder: E, stored: object) -> E:
    """The encoder with the models that leave their precision to the machine in that of vectors that are stored.

    Args:
        encoder: The encoder.
        stored: What `precision_of` gave; another thing, or several precisions, change nothing.
    """
    names = set(str(stored or "").split())
    if not isinstance(encoder, Part) or len(names) != 1 or not names <= set(PRECISIONS):
        return encoder
    (name,) = names
    changed: E = encoder.map(  # type: ignore[assignment]
        lambda inner: inner.with_(precision=name) if isinstance(inner, Pretrained) and inner.precision == "auto" else inner
    )
    return changed


def encoder_from(text: object) -> Encoder:
    """The encoder with this text.

    Raises:
        ParameterError: It is the text of no encoder that this Fontes can make.
    """
    try:
        encoder: Encoder = part(text if isinstance(text, str) else "")
    except FontesError as error:
        raise ParameterError(
            f"the vectors are of an encoder that this Fontes cannot make, {text} ({error}); encode again"
        ) from error
    return encoder


def encoder_of(index: Index, name: str | None) -> Encoder:
    """The encoder of an index's vectors.

    Args:
        index: The index.
        name: The name of the encoder's model, or its last part, where there are several. One that no vectors are of becomes a
            `SentenceEncoder`, whose search then says which vectors there are.

    Raises:
        ParameterError: It is not clear which encoder is meant, or it cannot be made.
    """
    texts = {facts["fingerprint"]: facts["settings"] for facts in index.info()["vectors"] if facts["settings"]}
    encoders = [encoder for encoder in map(encoder_from, texts.values()) if name is None or name in _names(encoder)]
    if len(encoders) == 1:
        return encoders[0]
    if encoders:
        which = "give one's name" if name is None else "search from Python"
        raise ParameterError(f"{index.path} holds vectors of several encoders ({', '.join(map(repr, encoders))}); {which}")
    if name is None:
        raise ParameterError(
            f"{index.path} holds no vectors of an encoder of Fontes; fontes encode {index.path} MODEL makes them"
        )
    return SentenceEncoder(name)


def _names(encoder: Encoder) -> set[str]:
    """The names of an encoder's models, and their last parts."""
    names = {str(model.name_or_path).rstrip("/") for model in _models(encoder)}
    return names | {name.rpartition("/")[2] for name in names}


def _models(encoder: object) -> list[Pretrained[Any]]:
    """The models of Fontes in an encoder."""
    return [inner for inner in walk(encoder) if isinstance(inner, Pretrained)] if isinstance(encoder, Part) else []

"""Loading transformers with the attention of their architecture, and their maximum length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InputError, ParameterError
from ..models.hub import NO_CODE, library, model_errors, quiet, read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ATTENTIONS = ("model", "favor+")
BEHIND_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "data2vec-text", "xlm-roberta-xl")
"""Types of models whose positions start after the position of padding."""
NO_LIMIT = 1 << 20  # number of tokens of models without a limit, for which tokenizers report a far greater number


def install_attention(module: PreTrainedModel, attention: str = "model", features: int = 256) -> int | None:
    """Give a model of transformers the attention of its architecture, for any caller; leave other architectures unchanged.

    A Nyströmformer gets Nyström attention; a Longformer, global attention on the first token; a Reformer, padding to its
    chunks and hashes from a fixed seed; a BERT-shaped model with "favor+", the attention of the Performer. With each of these
    a text has the same vectors alone and in a batch, in training too.

    Args:
        module: Takes `input_ids` and `attention_mask`; changed in place.
        attention: One of ATTENTIONS.
        features: Random features of FAVOR+.

    Returns:
        Maximum number of tokens of a text, special tokens included; None without a limit.
    """
    if attention not in ATTENTIONS:
        raise ParameterError(f"attention is one of {', '.join(ATTENTIONS)}, not {attention!r}")
    if features < 1:
        raise ParameterError(f"features must be 1 or more, not {features}")
    from . import networks

    name = "performer" if attention == "favor+" else module.config.model_type
    return networks.install(module, name, {"attention": attention, "features": features}, position_limit(module))


def declared_attention(folder: Path) -> dict[str, Any] | None:
    """Arguments of `install_attention` in the `fontes.json` of a model's folder; None without this file.

    Raises InputError if the file is damaged.
    """
    from .networks import FILE

    file = folder / FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is damaged: {error}") from None
    valid = isinstance(values, dict) and values.keys() == {"attention", "features"} and values["attention"] in ATTENTIONS
    if not valid or type(values["features"]) is not int:
        raise InputError(f'{file} is not {{"attention": "{"|".join(ATTENTIONS)}", "features": a whole number}}')
    return dict(values)


def load(folder: Path, name: str) -> Any:
    """Load the model of a folder in float32, without its decoder; raise InputError if transformers cannot read it."""
    transformers = library("transformers", "TransformerEncoder")
    library("torch", "TransformerEncoder")
    with model_errors(f"transformers cannot read the model {name}"), quiet():
        module = transformers.AutoModel.from_pretrained(str(folder), **NO_CODE).float()
    return module.get_encoder() if module.config.is_encoder_decoder else module


def configured_positions(folder: Path) -> int | None:
    """`position_limit` read from the configuration in a model's folder; None if unknown, and for a Reformer."""
    config: dict[str, Any] = read_json(folder / "config.json", {})
    positions, model_type = config.get("max_position_embeddings"), config.get("model_type")
    if not isinstance(positions, int) or positions < 1 or model_type == "reformer":
        return None
    return positions - int(config.get("pad_token_id") or 0) - 1 if model_type in BEHIND_PADDING else positions


def position_limit(module: PreTrainedModel) -> int | None:
    """Maximum number of positions in a model's configuration; None for relative positions."""
    positions = getattr(module.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:
        return None
    # Positions of RoBERTa and its variants start after the position of padding.
    table = getattr(getattr(module, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return positions - padding - 1 if padding is not None else positions

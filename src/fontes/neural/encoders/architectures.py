"""How each architecture wants its texts: which may share a batch, to which length they are padded, and what it is given."""

from __future__ import annotations

import math
from typing import Any

from ...core.errors import ParameterError
from ..models.hub import NO_CODE, library, quiet, readable

ATTENTIONS = ("model", "favor+")
ENDLESS = 1 << 20  # what tokenizers give as the limit of models that have none is far above


class Plain:
    """Any encoder of transformers that takes token ids and a mask, and does not look at padding.

    Attributes:
        limit: The most tokens of a text, special tokens included; None where there is no limit.
    """

    def __init__(self, module: Any) -> None:
        self.limit: int | None = position_limit(module)

    def group(self, length: int) -> int:
        """Texts of equal groups may share a batch."""
        return 0

    def padded(self, length: int) -> int:
        """The length to which a batch is padded whose longest text has `length` tokens."""
        return length

    def hidden(self, module: Any, ids: Any, mask: Any) -> Any:
        """The last hidden states, (batch, positions, width), of token ids and a mask of 0 and 1, (batch, positions)."""
        return module(input_ids=ids, attention_mask=mask).last_hidden_state


class Longformer(Plain):
    """Padded to the attention window; the first token attends to all and all to it, as in its authors' classification."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        window = module.config.attention_window
        self.window: int = window if isinstance(window, int) else max(window)

    def padded(self, length: int) -> int:
        return _multiple(length, self.window)

    def hidden(self, module: Any, ids: Any, mask: Any) -> Any:
        everywhere = mask.new_zeros(mask.shape)
        everywhere[:, 0] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "global_attention_mask": everywhere}
        return module(**inputs).last_hidden_state


class Replaced(Plain):
    """A model whose attention was replaced: it gets no mask itself, its attentions do."""

    def hidden(self, module: Any, ids: Any, mask: Any) -> Any:
        return module(input_ids=ids, attention_mask=self.masked(module, mask)).last_hidden_state

    def masked(self, module: Any, mask: Any) -> Any:
        """Hands a mask to the attentions; what the model is to be called with in its place."""
        from .attention import set_mask

        set_mask(module, mask.bool())
        return mask.new_ones(mask.shape)  # and not None: without a mask transformers warns of padding


class Nystromformer(Replaced):
    """Nyström attention, whose cost is linear; transformers' defaults, 64 landmarks for 64 positions, are full attention."""

    def __init__(self, module: Any) -> None:
        from .attention import NystromAttention, replace

        super().__init__(module)
        self.landmarks: int = module.config.num_landmarks
        replace(module, lambda attention: NystromAttention(attention, self.landmarks))

    def group(self, length: int) -> int:
        return int(length > self.landmarks)


class Performer(Replaced):
    """FAVOR+ in place of the attention of a BERT-shaped model."""

    def __init__(self, module: Any, features: int) -> None:
        from .attention import replace
        from .performer import FavorAttention

        super().__init__(module)
        if not replace(module, lambda attention: FavorAttention(attention, features)):
            raise ParameterError(f"attention='favor+' takes a BERT-shaped model, not {type(module).__name__}")


class Reformer(Plain):
    """Padded to its chunks; buckets by the padded length, hashes from a fixed seed, so that a text has one vector."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        config = module.config
        chunks = {"lsh": config.lsh_attn_chunk_length, "local": config.local_attn_chunk_length}
        used = [chunks[kind] for kind in set(config.attn_layers)]
        self.chunk, self.shortest = math.lcm(*used), min(used)
        if config.axial_pos_embds:
            self.limit = min(self.limit or ENDLESS, math.prod(config.axial_pos_shape))
        if self.limit:  # padding takes positions too
            self.limit = max(self.limit // self.chunk * self.chunk, min(self.limit, self.shortest))
        self.hashing = [part for part in module.modules() if hasattr(part, "hash_seed")]
        self.given_buckets = config.num_buckets
        for part in self.hashing:
            part.hash_seed = config.hash_seed or 0

    def group(self, length: int) -> int:
        return 0 if length <= self.shortest else _multiple(length, self.chunk)

    def padded(self, length: int) -> int:
        return length if length <= self.shortest else _multiple(length, self.chunk)

    def hidden(self, module: Any, ids: Any, mask: Any) -> Any:
        torch = library("torch", "the Reformer")
        for part in module.modules():
            if hasattr(part, "hash_seed"):
                part.num_buckets = self.given_buckets or buckets(ids.shape[1], module.config)
        with torch.random.fork_rng(devices=[ids.device] if ids.is_cuda else []):
            return module(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state


def buckets(length: int, config: Any) -> int | list[int]:
    """The number of buckets for texts of `length` positions, as transformers sets it by the first text that it sees."""
    power = (2 * (length // config.lsh_attn_chunk_length)).bit_length() - 1
    most = 2 * max(int((config.max_position_embeddings // config.lsh_attn_chunk_length) ** 0.5), config.lsh_attn_chunk_length)
    if power < 1:
        return 2
    return 2**power if 2**power <= most else [2 ** (power // 2), 2 ** (power - power // 2)]


def of(module: Any, attention: str, features: int) -> Plain:
    """The architecture of a model, whose attention is changed where it must be.

    Raises:
        ParameterError: For an unknown one.
    """
    if attention not in ATTENTIONS:
        raise ParameterError(f"attention is one of {', '.join(ATTENTIONS)}, not {attention!r}")
    if features < 1:
        raise ParameterError(f"features must be 1 or more, not {features}")
    if attention == "favor+":
        return Performer(module, features)
    kinds: dict[str, type[Plain]] = {"longformer": Longformer, "nystromformer": Nystromformer, "reformer": Reformer}
    return kinds.get(module.config.model_type, Plain)(module)


def load(folder: Any, name: str) -> Any:
    """The model of a folder in float32, without its decoder.

    Raises:
        InputError: Where transformers cannot read it.
    """
    transformers = library("transformers", "TransformerEncoder")
    library("torch", "TransformerEncoder")
    with readable(f"transformers cannot read the model {name}"), quiet():
        module = transformers.AutoModel.from_pretrained(str(folder), **NO_CODE).float()
    return module.get_encoder() if module.config.is_encoder_decoder else module


def position_limit(module: Any) -> int | None:
    """The most positions of a model by its configuration; None where it has none (relative positions)."""
    most = getattr(module.config, "max_position_embeddings", None)
    if not isinstance(most, int) or most < 1:
        return None
    # RoBERTa and its kin count positions from behind the one of padding.
    table = getattr(getattr(module, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return most - padding - 1 if padding is not None else most


def _multiple(length: int, of: int) -> int:
    return -(-length // of) * of

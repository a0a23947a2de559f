"""Encoders out of any model of transformers: BERT, mBERT, Longformer, Nyströmformer, Reformer, Performer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError
from ...core.part import Part
from ...core.strings import encodable
from ...core.values import Doc
from ..models.compute import Prepared, batch_tokens, in_batches, prepared
from ..models.hub import device, fingerprint, library, loaded, located, quiet, readable
from . import architectures as architectures
from .base import digest, sample_ids, text_of, unit

if TYPE_CHECKING:
    from ...core.progress import Progress

logger = logging.getLogger("fontes.neural")

POOLINGS = ("cls", "mean", "max")


@dataclass(frozen=True)
class TransformerEncoder(Part, name="transformer_encoder"):
    """An encoder out of any encoder model of transformers, its token vectors pooled to one.

    name_or_path      a folder, or a name on the Hugging Face hub
    pooling           "cls" (the first token), "mean" or "max" over all tokens of the text, special ones included
    max_length        tokens that are read of a text, special ones included; never more than the model has positions for, so
                      that BERT reads 512 of the 2,048
    query_prompt      text before each query, as the model was trained
    document_prompt   text before each document
    normalize         whether vectors are scaled to length 1, which makes the inner product the cosine
    attention         "model" (its own), or "favor+": the Performer's, in linear time, for a BERT-shaped model
    features          random features of FAVOR+; its error shrinks as they grow
    batch_tokens      tokens of a batch, padding included; None: 2,048 for each thread of a CPU, 65,536 on a GPU
    precision         "float32", "bfloat16", "float16", or "auto": the quickest here that keeps a cosine of 0.999
    device            "cpu", "cuda", …; None: a GPU where there is one

    Nyströmformer runs with real Nyström attention, whatever its configuration says; Longformer with global attention on its
    first token; Reformer hashes from a fixed seed. With any of them a text has the same vector alone and in a batch (to
    rounding). Raises InputError for a model that is not there, ParameterError for parameters outside their range.
    """

    name_or_path: str
    pooling: str = "mean"
    max_length: int = 2048
    query_prompt: str = ""
    document_prompt: str = ""
    normalize: bool = True
    attention: str = "model"
    features: int = 256
    batch_tokens: int | None = None
    precision: str = "auto"
    device: str | None = None

    @property
    def dim(self) -> int:
        """The number of dimensions of the vectors."""
        return self._loaded().dim

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of all that changes the vectors of documents, save the precision."""
        self._check()
        attention = f"favor+{self.features}" if self.attention == "favor+" else self.attention
        settings = (self.pooling, self.max_length, self.document_prompt, self.normalize, attention)
        return digest("TransformerEncoder", fingerprint(self._folder()), *settings)

    @property
    def similarity(self) -> str:
        """What the inner product is: "cosine" with `normalize`, else "dot"."""
        return "cosine" if self.normalize else "dot"

    @property
    def length(self) -> int:
        """Tokens that are read of a text at most: `max_length`, or the model's limit where that is lower."""
        return self._loaded().length(self.max_length)

    @property
    def prepared(self) -> Prepared:
        """The model as it runs: its device, its precision and how that was chosen."""
        return self._loaded().prepared

    def encode_documents(self, docs: Sequence[Doc], progress: Callable[[Progress], None] | None = None) -> NDArray[np.float32]:
        """The vectors of documents (title, a space, text), float32 (number of documents, dim), in their order."""
        return self._encode([self.document_prompt + text_of(doc) for doc in docs], progress)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, float32 (number of queries, dim), in their order."""
        return self._encode([self.query_prompt + text for text in texts])

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the tokens of a text begin and end, in characters, special tokens left out."""
        return token_spans(self._loaded().tokenizer, text)

    def _encode(self, texts: Sequence[str], progress: Callable[[Progress], None] | None = None) -> NDArray[np.float32]:
        model = self._loaded()
        texts = list(map(encodable, texts))
        ids = token_ids(model.tokenizer, texts, model.length(self.max_length))
        budget = batch_tokens(self.batch_tokens, model.prepared.device)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            return model.vectors(model.prepared.module, [ids[i] for i in batch], self.pooling)

        if not ids:
            return np.empty((0, self.dim), np.float32)
        vectors = in_batches([len(one) for one in ids], budget, work, progress)
        return unit(vectors) if self.normalize else vectors

    def _folder(self) -> str:
        return str(located(self.name_or_path, "encoder"))

    def _check(self) -> None:
        if self.pooling not in POOLINGS:
            raise ParameterError(f"pooling is one of {', '.join(POOLINGS)}, not {self.pooling!r}")
        if self.max_length < 3:
            raise ParameterError(f"max_length must be 3 or more, two special tokens and one of the text, not {self.max_length}")

    def _loaded(self) -> Model:
        self._check()
        folder, where = self._folder(), device(self.device)
        key = (Model, folder, self.attention, self.features, self.precision, where)
        return loaded(key, lambda: Model(self.name_or_path, folder, self.attention, self.features, self.precision, where))


class Model:
    """A model of transformers with its tokenizer, ready to run."""

    def __init__(self, name: str, folder: str, attention: str, features: int, precision: str, where: str) -> None:
        transformers = library("transformers", "TransformerEncoder")
        module = architectures.load(folder, name)
        with readable(f"transformers finds no tokenizer in the model {name}"), quiet():
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.architecture = architectures.of(module, attention, features)
        self.padding: int = self.tokenizer.pad_token_id or 0
        limits = [limit for limit in (self.architecture.limit, self.tokenizer.model_max_length) if limit]
        self.limit = min(limits, default=architectures.ENDLESS)
        self.name = name
        sample = sample_ids(module.config.vocab_size, min(256, self.limit))
        self.prepared = prepared(module, lambda one: self.pooled(one, sample, "mean"), precision=precision, device=where)
        self.dim = int(self.vectors(self.prepared.module, sample[:1], "mean").shape[1])

    def length(self, wanted: int) -> int:
        if wanted > self.limit:
            logger.info("%s has positions for %d tokens: texts are cut there, not at %d", self.name, self.limit, wanted)
        return min(wanted, self.limit)

    def vectors(self, module: Any, ids: list[NDArray[np.int32]], pooling: str) -> NDArray[np.float32]:
        """The pooled vectors of texts, float32 (number of texts, dim); each group of the architecture in a batch of its own."""
        torch = library("torch", "TransformerEncoder")
        groups: dict[int, list[int]] = {}
        for number, one in enumerate(ids):
            groups.setdefault(self.architecture.group(len(one)), []).append(number)
        result: NDArray[np.float32] | None = None
        with torch.inference_mode():
            for members in groups.values():
                part = self.pooled(module, [ids[i] for i in members], pooling).cpu().numpy()
                result = np.empty((len(ids), part.shape[1]), np.float32) if result is None else result
                result[members] = part
        assert result is not None
        return result

    def pooled(self, module: Any, ids: list[NDArray[np.int32]], pooling: str) -> Any:
        """The same as a float32 tensor, all texts in one batch."""
        torch = library("torch", "TransformerEncoder")
        length = self.architecture.padded(max(map(len, ids)))
        padded = np.full((len(ids), length), self.padding, np.int64)
        mask = np.zeros((len(ids), length), np.int64)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = one
            mask[row, : len(one)] = 1
        where = next(module.parameters()).device
        there = torch.from_numpy(mask).to(where)
        hidden = self.architecture.hidden(module, torch.from_numpy(padded).to(where), there).float()
        if pooling == "cls":
            return hidden[:, 0]
        inside = there.bool()[:, :, None]
        if pooling == "max":
            return hidden.masked_fill(~inside, float("-inf")).amax(dim=1)
        return hidden.masked_fill(~inside, 0.0).sum(dim=1) / there.sum(dim=1, keepdim=True)


def token_ids(tokenizer: Any, texts: Sequence[str], length: int) -> list[NDArray[np.int32]]:
    """The token ids of texts, special ones included, cut to `length` tokens."""
    if not texts:
        return []
    found = tokenizer(list(texts), truncation=True, max_length=length, padding=False, return_attention_mask=False)["input_ids"]
    # A text without any token, with a tokenizer that adds none: the padding token stands for it.
    return [np.array(ids or [tokenizer.pad_token_id or 0], np.int32) for ids in found]


def token_spans(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """The characters from and to of each token of a text. Raises ParameterError for a tokenizer that cannot tell."""
    if not tokenizer.is_fast:
        raise ParameterError("windows of tokens need a fast tokenizer, which this model has not; use unit='words'")
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    return [(start, end) for start, end in found["offset_mapping"] if end > start]

"""MonoT5: a T5 that answers "true" or "false" for a query and a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import InputError, ParameterError
from ..models.base import NAMELESS, token_ids
from ..models.compute import Prepared, padded, prepare_module
from ..models.hub import library, seq2seq
from .crossencoder import SAMPLE, PretrainedReranker

if TYPE_CHECKING:
    from torch import Tensor, nn

KIND = "T5 reranker"
MIN_DOCUMENT_TOKENS = 32  # tokens of the document that are read after a long query


@dataclass(frozen=True)
class MonoT5(PretrainedReranker["MonoT5Model"], name="mono_t5"):
    """Reranks with a T5 trained to answer "true" or "false" (Nogueira, Jiang, Pradeep and Lin, Findings of EMNLP 2020).

    The model reads "Query: … Document: … Relevant:". The score is the log-probability of "true" against "false" at the first
    decoded position: the logarithm of the softmax over these two tokens, at most 0. The batch changes scores by rounding only.
    The model is loaded on first use. `fontes.train.train_mono_t5` trains one.

    Args:
        max_length: Maximum tokens of an input; only the document is truncated.
        tokens: The two words, such as ("yes", "no") for mMARCO's mT5.

    Raises:
        InputError: On use: the model is missing, is not a T5, or a word is not a single token of its vocabulary.
    """

    kind = KIND

    name_or_path: str | Path = field(default="castorini/monot5-base-msmarco", metadata=NAMELESS)
    max_length: int = field(default=512, metadata={"least": 1})
    tokens: tuple[str, str] = ("true", "false")

    def check(self) -> None:
        if len(self.tokens) != 2 or isinstance(self.tokens, str):
            raise ParameterError(f"tokens are two words, as ('true', 'false'), not {self.tokens!r}")
        super().check()

    def _inputs(self, model: MonoT5Model, pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
        return model.inputs(pairs, self.max_length)

    def _load(self, folder: Path, device: str) -> MonoT5Model:
        model = MonoT5Model(folder, tuple(self.tokens))
        model.prepare(self.precision, device)
        return model

    def _load_parameters(self) -> tuple[object, ...]:
        return tuple(self.tokens)


class MonoT5Model:
    """A T5 and its tokenizer, in float32 on the CPU until it is prepared to run."""

    prepared: Prepared

    def __init__(self, folder: Path, words: tuple[str, ...]) -> None:
        self.network, self.tokenizer = seq2seq(folder, KIND)
        self.words = [self._token(word, folder) for word in words]
        self.start = self.network.config.decoder_start_token_id
        self.pad = int(self.tokenizer.pad_token_id or 0)

    def prepare(self, precision: str, device: str) -> None:
        """Move the network to a device, in a precision."""
        sample = self.inputs(SAMPLE, 512)
        self.prepared = prepare_module(
            self.network, lambda module: self.logits(module, sample), precision=precision, device=device
        )

    def inputs(self, pairs: Sequence[tuple[str, str]], max_length: int) -> list[list[int]]:
        """Token ids of "Query: … Document: … Relevant:" for each pair, with the document truncated to fit `max_length`."""
        heads = {query: self._ids([f"Query: {query.strip()} Document:"])[0] for query in dict.fromkeys(q for q, _ in pairs)}
        (tail,) = self._ids(["Relevant:"])
        end = [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]
        texts = list(dict.fromkeys(document for _, document in pairs))
        documents = dict(zip(texts, self._ids(texts), strict=True))
        inputs = []
        for query, document in pairs:
            document_tokens = max(MIN_DOCUMENT_TOKENS, max_length - len(heads[query]) - len(tail) - len(end))
            inputs.append([*heads[query], *documents[document][:document_tokens], *tail, *end])
        return inputs

    def lengths(self, inputs: list[list[int]]) -> list[int]:
        return list(map(len, inputs))

    def logits(self, module: nn.Module, inputs: list[list[int]]) -> Tensor:
        """Log-probability of the first word for each input of a batch, float32."""
        torch = library("torch", "a T5 reranker")
        ids, mask = padded(inputs, self.pad, next(module.parameters()).device)
        start = torch.full((len(inputs), 1), self.start, device=ids.device)
        with torch.inference_mode():
            output = module(input_ids=ids, attention_mask=mask, decoder_input_ids=start, use_cache=False)
            logits: Tensor = torch.log_softmax(output.logits[:, 0, self.words].float(), dim=1)[:, 0]
        return logits

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return token_ids(self.tokenizer, texts, special=False)

    def _token(self, word: str, folder: Path) -> int:
        """Token id of a word at the start of a text, such as ▁true; raises InputError unless it is one known token."""
        (ids,) = self._ids([word])
        if len(ids) != 1 or ids[0] == self.tokenizer.unk_token_id:
            raise InputError(
                f"{folder}: in the model's vocabulary '{word}' is not one token but {len(ids)}"
                f"{' unknown' if len(ids) == 1 else ''}; name the two words that it was trained with: tokens=(…, …)"
            )
        return ids[0]

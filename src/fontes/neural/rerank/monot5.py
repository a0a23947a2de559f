"""MonoT5: a T5 that says "true" or "false" when it has read query and document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, ParameterError
from ...core.progress import Report
from ..models.compute import Prepared, in_batches, prepared
from ..models.hub import device, fingerprint, library, loaded, located, seq2seq
from .base import Reranker, check_sizes, tokens_of
from .crossencoder import SAMPLE_DOCUMENTS, SAMPLE_QUERIES

KIND = "T5 reranker"
LEAST = 32  # tokens of the document that are kept beside a query that leaves no space


@dataclass(frozen=True)
class MonoT5(Reranker, name="mono_t5"):
    """Reranks with a T5 that was trained to say "true" or "false" (Nogueira, Jiang, Pradeep and Lin, Findings of EMNLP 2020).

    The model reads "Query: … Document: … Relevant:". The score is the log-probability of "true" against "false" at the first
    decoded position: the logarithm of the softmax over these two tokens alone, so 0 or less.

    name_or_path   a folder, or a name on the Hugging Face hub
    batch_size     how many pairs of the greatest length are computed at once; of shorter ones more, with the same number of
                   tokens. Default: what is quick on the device
    max_length     tokens of an input. Only the document is cut; a query that leaves it less than 32 tokens makes the input
                   longer than this, which T5's relative positions allow
    tokens         the two words, such as ("yes", "no") for mMARCO's mT5
    cache          True keeps scores in the user's cache folder, a path keeps them in that file
    precision      "auto" (the quickest that agrees with float32), "float32", "bfloat16" or "float16"
    device         "cpu", "cuda", …; None takes a GPU where there is one

    What else is in a batch changes scores by rounding alone. The model is loaded when it is first used. Raises InputError for a
    model that is not there, is no T5, or in whose vocabulary the words are not one token each.
    """

    name_or_path: str = "castorini/monot5-base-msmarco"
    batch_size: int | None = None
    max_length: int = 512
    tokens: tuple[str, str] = ("true", "false")
    cache: bool | str | Path = field(default=False, repr=False)
    precision: str = field(default="auto", repr=False)
    device: str | None = field(default=None, repr=False)

    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report | None = None) -> NDArray[np.float32]:
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        self._check()
        model = self._model
        inputs = model.inputs(pairs, self.max_length)
        lengths = [len(ids) for ids in inputs]
        tokens = tokens_of(self.batch_size, lengths, model.prepared.device)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            found: NDArray[np.float32] = (
                model.log_probabilities(model.prepared.module, [inputs[i] for i in batch]).cpu().numpy()
            )
            return found

        return in_batches(lengths, tokens, work, progress)

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the model's content, the greatest length and the two words."""
        facts = {
            "model": fingerprint(located(self.name_or_path, KIND)),
            "max_length": self.max_length,
            "tokens": list(self.tokens),
        }
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def chosen_precision(self) -> str:
        """The precision that the model runs in, and what the calibration found. Loads the model."""
        return str(self._model.prepared.precision)

    @property
    def _model(self) -> _Model:
        folder = located(self.name_or_path, KIND)
        where = device(self.device)
        key = (KIND, folder, fingerprint(folder), tuple(self.tokens), self.precision, where)
        return loaded(key, lambda: _Model(folder, tuple(self.tokens), self.precision, where))

    def _check(self) -> None:
        if len(self.tokens) != 2 or isinstance(self.tokens, str):
            raise ParameterError(f"tokens are two words, as ('true', 'false'), not {self.tokens!r}")
        check_sizes(self, "batch_size", "max_length")


class _Model:
    """A T5 and its tokenizer."""

    def __init__(self, folder: Path, words: tuple[str, ...], precision: str, where: str) -> None:
        model, self.tokenizer = seq2seq(folder, KIND)
        self.words = [self._token(word, folder) for word in words]
        self.start = model.config.decoder_start_token_id
        self.pad = int(self.tokenizer.pad_token_id or 0)
        sample = self.inputs([(query, document * 2) for query in SAMPLE_QUERIES for document in SAMPLE_DOCUMENTS], 512)
        self.prepared: Prepared = prepared(
            model, lambda module: self.log_probabilities(module, sample), precision=precision, device=where
        )

    def inputs(self, pairs: Sequence[tuple[str, str]], max_length: int) -> list[list[int]]:
        """The tokens of "Query: … Document: … Relevant:", the document cut where they are too many."""
        heads = {query: self._ids([f"Query: {query.strip()} Document:"])[0] for query in dict.fromkeys(q for q, _ in pairs)}
        (tail,) = self._ids(["Relevant:"])
        end = [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]
        texts = list(dict.fromkeys(document for _, document in pairs))
        documents = dict(zip(texts, self._ids(texts), strict=True))
        inputs = []
        for query, document in pairs:
            space = max(LEAST, max_length - len(heads[query]) - len(tail) - len(end))
            inputs.append([*heads[query], *documents[document][:space], *tail, *end])
        return inputs

    def log_probabilities(self, module: Any, inputs: list[list[int]]) -> Any:
        """A float32 tensor of one score an input, computed in one batch."""
        torch = library("torch", "a T5 reranker")
        longest = max(map(len, inputs))
        ids = torch.tensor([one + [self.pad] * (longest - len(one)) for one in inputs])
        mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in inputs])
        start = torch.full((len(inputs), 1), self.start)
        where = next(module.parameters()).device
        with torch.inference_mode():
            found = module(
                input_ids=ids.to(where), attention_mask=mask.to(where), decoder_input_ids=start.to(where), use_cache=False
            )
            return torch.log_softmax(found.logits[:, 0, self.words].float(), dim=1)[:, 0]

    def _ids(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(texts, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        return ids

    def _token(self, word: str, folder: Path) -> int:
        """The one token of a word at the start of a text, as ▁true."""
        (ids,) = self._ids([word])
        if len(ids) != 1 or ids[0] == self.tokenizer.unk_token_id:
            raise InputError(
                f"{folder}: in the model's vocabulary '{word}' is not one token but {len(ids)}"
                f"{' unknown' if len(ids) == 1 else ''}; name the two words that it was trained with: tokens=(…, …)"
            )
        return ids[0]

"""Encoders of sentence-transformers, with its modules, prompts and settings, but run faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError
from ...core.part import Part
from ...core.strings import encodable
from ...core.values import Doc
from ..models.compute import Precision, Prepared, batch_tokens, in_batches, prepared
from ..models.hub import device, fingerprint, library, loaded, located, quiet, readable
from .architectures import ENDLESS, position_limit
from .base import digest, sample_ids, text_of, unit
from .transformer import token_spans

if TYPE_CHECKING:
    from ...core.progress import Progress

QUERY, DOCUMENT = ("query",), ("document", "passage", "corpus")  # the names of prompts, as sentence-transformers has them


@dataclass(frozen=True)
class SentenceEncoder(Part, name="sentence_encoder"):
    """An encoder of sentence-transformers: its pooling, projections, normalization and prompts are the model's own.

    name_or_path      a folder, or a name on the Hugging Face hub (`all-MiniLM-L6-v2`, `intfloat/e5-base-v2`, …)
    query_prompt      text before each query; None: the model's prompt for queries, where it names one
    document_prompt   text before each document; None: the model's prompt for documents
    max_length        tokens that are read of a text, special ones included; None: as the model says
    normalize         whether vectors are scaled to length 1, which makes the inner product the cosine
    batch_tokens      tokens of a batch, padding included; None: 2,048 for each thread of a CPU, 65,536 on a GPU
    precision         "float32", "bfloat16", "float16", or "auto": the quickest here that keeps a cosine of 0.999
    device            "cpu", "cuda", …; None: a GPU where there is one

    The transformer runs in `precision`; pooling and what follows it in float32. A model whose first module is no transformer
    over text (static embeddings, a router) runs through sentence-transformers' own `encode` in float32.
    Raises InputError for a model that is not there, ParameterError for parameters outside their range.
    """

    name_or_path: str
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_length: int | None = None
    normalize: bool = True
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
        return digest("SentenceEncoder", fingerprint(self._folder()), self.document_prompt, self.max_length, self.normalize)

    @property
    def similarity(self) -> str:
        """What the inner product is: "cosine" with `normalize`, else "dot"."""
        return "cosine" if self.normalize else "dot"

    @property
    def length(self) -> int:
        """Tokens that are read of a text at most."""
        return self._loaded().length

    @property
    def prepared(self) -> Prepared:
        """The model as it runs: its device, its precision and how that was chosen."""
        return self._loaded().prepared

    def encode_documents(self, docs: Sequence[Doc], progress: Callable[[Progress], None] | None = None) -> NDArray[np.float32]:
        """The vectors of documents (title, a space, text), float32 (number of documents, dim), in their order."""
        return self._encode([text_of(doc) for doc in docs], self.document_prompt, DOCUMENT, progress)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, float32 (number of queries, dim), in their order."""
        return self._encode(list(texts), self.query_prompt, QUERY, None)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the tokens of a text begin and end, in characters, special tokens left out."""
        return token_spans(self._loaded().model.tokenizer, text)

    def _encode(
        self,
        texts: list[str],
        given: str | None,
        names: tuple[str, ...],
        progress: Callable[[Progress], None] | None,
    ) -> NDArray[np.float32]:
        model = self._loaded()
        if not texts:
            return np.empty((0, model.dim), np.float32)
        texts = list(map(encodable, texts))
        prompt = model.prompt(names) if given is None else given
        budget = batch_tokens(self.batch_tokens, model.prepared.device)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            return model.vectors([texts[i] for i in batch], prompt, names[0])

        vectors = in_batches(model.lengths(texts, prompt), budget, work, progress)
        return unit(vectors) if self.normalize else vectors

    def _folder(self) -> str:
        return str(located(self.name_or_path, "sentence encoder", "sentence-transformers"))

    def _loaded(self) -> Model:
        if self.max_length is not None and self.max_length < 3:
            raise ParameterError(f"max_length must be 3 or more, two special tokens and one of the text, not {self.max_length}")
        folder, where = self._folder(), device(self.device)
        key = (Model, folder, self.max_length, self.precision, where)
        return loaded(key, lambda: Model(self.name_or_path, folder, self.max_length, self.precision, where))


class Model:
    """A model of sentence-transformers, ready to run."""

    def __init__(self, name: str, folder: str, max_length: int | None, precision: str, where: str) -> None:
        library("torch", "SentenceEncoder")
        sentence_transformers = library("sentence_transformers", "SentenceEncoder")
        with readable(f"sentence-transformers cannot read the model {name}"), quiet():
            self.model: Any = sentence_transformers.SentenceTransformer(folder, device=where, local_files_only=True)
        self.model.eval().float()
        transformer = getattr(self.model[0], "auto_model", None)
        self.transformer: Any = transformer if hasattr(getattr(transformer, "config", None), "vocab_size") else None
        if max_length is not None:
            self._cut(name, max_length)
        self.length = int(min(self.model.max_seq_length or ENDLESS, ENDLESS))
        self.where = where
        if self.transformer is None:
            self.prepared = Prepared(self.model, Precision("float32", {}), where)
        else:
            sample = np.stack(sample_ids(self.transformer.config.vocab_size, min(256, self.length)))
            self.prepared = prepared(self.transformer, lambda one: self._means(one, sample), precision=precision, device=where)
        self.dim = int(self.vectors(["a"], "", DOCUMENT[0]).shape[1])

    def prompt(self, names: tuple[str, ...]) -> str:
        """The model's own prompt: the first under one of `names` that is not empty; its default where it has none of them."""
        prompts: dict[str, str | None] = self.model.prompts or {}
        named = [prompts[name] or "" for name in names if name in prompts]
        return next(filter(None, named), "") if named else prompts.get(self.model.default_prompt_name or "") or ""

    def lengths(self, texts: list[str], prompt: str) -> NDArray[np.int64]:
        """The tokens of each text; in a model without a transformer its characters."""
        if self.transformer is None:
            return np.array([len(text) for text in texts], np.int64)
        given = [prompt + text for text in texts]
        limits = {"truncation": True, "max_length": self.length} if self.length < ENDLESS else {"truncation": False}
        found = self.model.tokenizer(given, padding=False, return_attention_mask=False, **limits)["input_ids"]
        return np.array([len(ids) for ids in found], np.int64)

    def vectors(self, texts: list[str], prompt: str, task: str) -> NDArray[np.float32]:
        """The vectors of texts as one batch, float32 (number of texts, dim)."""
        torch = library("torch", "SentenceEncoder")
        if self.transformer is None:
            encode = getattr(self.model, f"encode_{task}", self.model.encode)
            found = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
            return np.asarray(found, np.float32)
        features = self._features(texts, prompt)
        features = {name: value.to(self.where) if hasattr(value, "to") else value for name, value in features.items()}
        with torch.inference_mode():
            features = self.model[0](features)
            for name, value in features.items():
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    features[name] = value.float()
            for module in list(self.model)[1:]:
                features = module(features)
            vectors: NDArray[np.float32] = features["sentence_embedding"].float().cpu().numpy()
        return vectors

    def _features(self, texts: list[str], prompt: str) -> dict[str, Any]:
        if hasattr(self.model, "preprocess"):
            return dict(self.model.preprocess(texts, prompt=prompt or None))
        features = dict(self.model.tokenize([prompt + text for text in texts]))
        if prompt:  # older versions: the prompt's tokens, without the closing special one
            features["prompt_length"] = int(self.model.tokenize([prompt])["input_ids"].shape[-1]) - 1
        return features

    def _means(self, module: Any, ids: NDArray[np.int32]) -> Any:
        torch = library("torch", "SentenceEncoder")
        given = torch.from_numpy(ids.astype(np.int64)).to(next(module.parameters()).device)
        return module(input_ids=given, attention_mask=torch.ones_like(given)).last_hidden_state.float().mean(dim=1)

    def _cut(self, name: str, max_length: int) -> None:
        if self.transformer is None:
            raise ParameterError(f"the model {name} is no transformer over text and takes no max_length")
        limit = position_limit(self.transformer)
        if limit is not None and max_length > limit:
            raise ParameterError(f"max_length is {max_length}, but {name} has positions for {limit} tokens only")
        self.model.max_seq_length = max_length

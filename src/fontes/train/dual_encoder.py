"""Two-tower training of one encoder: rows, losses, searches and files.

Imports torch and sentence-transformers: import it inside functions only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.base.losses.gradcache import (
    CachedLossMixin,
    RandContext,
    _create_minibatch,
    has_static_embedding_input,
)
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from torch import Tensor, nn

from ..core.arrays import Float32s
from ..core.run import Run
from ..core.values import Qrels, Topics
from ..measures import Measure
from ..measures.evaluation import measure_run
from ..neural.models.base import token_ids
from ..neural.models.hub import NO_CODE, quiet, without_warnings
from .examples import Examples, LabelledPairs
from .runner.running import QueryRow, Rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.model import BaseModel

    from .bi_encoder import BiEncoderSettings
    from .encoder_fit import EncoderSettings, Scores

POSITIVE, NEGATIVE, UNCOUNTED = 1.0, 0.0, -1.0  # labels of a batch's documents for a query
DEPTH = 1000  # documents per query in the run of a search
CHUNK_SIZE = 1000  # texts tokenized at once
PART = 16  # texts padded together


def rows_of(data: Examples | LabelledPairs, negatives: int | None, teacher: bool = False) -> Rows:
    """Return training data as rows: a query, its documents, and a label for each.

    Args:
        data: Examples, relevant document first with the label 1; or pairs, each a row with one document.
        negatives: Number of other documents per example, from the first; None: all.
        teacher: Whether labels are the scores in the examples.
    """
    if isinstance(data, LabelledPairs):
        rows: list[QueryRow] = [{"query": p.first, "documents": [p.second], "labels": [float(p.label)]} for p in data]
        # Pairs are not negatives of each other, so they can be batched by length in characters.
        return Rows(rows, [max(len(pair.first), len(pair.second)) for pair in data])
    rows = []
    for example in data:
        passages = (example.positive, *example.negatives[:negatives])
        labels = [float(p.score or 0.0) if teacher else float(p is example.positive) for p in passages]
        rows.append({"query": example.query, "documents": [passage.text for passage in passages], "labels": labels})
    return Rows(rows, [1] * len(rows))  # equal lengths give random batches, whose examples are each other's negatives


@dataclass
class Collator(SentenceTransformerDataCollator):
    """Collates rows into queries, distinct documents by length, and the labels between them.

    Labels are float32, (2, queries, documents). The first table has POSITIVE for the first document of a query, UNCOUNTED for
    other documents known to be relevant to it (`relevant`: texts by query), else NEGATIVE. The second has the labels of the
    query's own documents, and NaN for all others.
    """

    relevant: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, object]:
        texts = sorted({text for row in features for text in row["documents"]}, key=lambda text: (len(text), text))
        columns = {text: number for number, text in enumerate(texts)}
        labels = torch.full((2, len(features), len(texts)), NEGATIVE)
        labels[1] = math.nan
        for number, row in enumerate(features):
            for text in self.relevant.get(row["query"], ()):
                if text in columns:
                    labels[0, number, columns[text]] = UNCOUNTED
            for text, label in zip(row["documents"], row["labels"], strict=True):
                labels[1, number, columns[text]] = label
            labels[0, number, columns[row["documents"][0]]] = POSITIVE
        batch: dict[str, object] = {"label": labels}
        for name, column in (("query", [row["query"] for row in features]), ("document", texts)):
            prompts = self.prompts if isinstance(self.prompts, dict) else {}
            tokens = self.preprocess_fn(column, prompt=prompts.get(name) or None, task=name)
            batch |= {f"{name}_{key}": value for key, value in {**tokens, "task": name}.items()}
        return batch


def parts_of(features: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Divide the texts of a batch into parts of PART texts, without the padding that all texts of a part share."""
    mask, parts = features["attention_mask"], []
    counted = mask.bool() | features.get("query_expansion_positions", mask).bool()
    for first in range(0, len(mask), PART):
        rows = slice(first, first + PART)
        width = int(counted[rows].any(dim=0).nonzero().max()) + 1
        inside = {name: value[rows, :width] for name, value in features.items() if getattr(value, "shape", None) == mask.shape}
        parts.append({**features, **inside})
    return parts


class DualEncoderLoss(CachedLossMixin, nn.Module):
    """Loss of the scores of a batch's queries and documents, with cached gradients if `mini_batch` is set.

    The losses of `EncoderSettings.loss`: "mnrl", cross-entropy of the relevant document against all others of the batch
    (multiple negatives; Henderson et al. 2017); "teacher", squared error of the score differences between relevant and other
    documents against a teacher's (MarginMSE; Hofstätter et al. 2020); "kl", the Kullback-Leibler divergence of the softmax of
    the scores of a query's own documents from that of a teacher's; "cosine", squared error of the cosines of pairs against
    their labels (Reimers and Gurevych 2019).

    This class is for models with one vector per text, scored by the inner product. `mini_batch` texts are computed at once,
    which bounds memory (GradCache; Gao et al. 2021).

    Args:
        model: Model of sentence-transformers.
        settings: Loss, scales and mini-batch.
    """

    output = "sentence_embedding"  # name of the model's output

    def __init__(self, model: BaseModel, settings: EncoderSettings) -> None:
        super().__init__()
        self.model, self.settings = model, settings
        self.whole = has_static_embedding_input(model)
        self.cached = settings.mini_batch is not None and not self.whole
        self.mini_batch_size = settings.mini_batch or 0

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        if self.cached:
            return self.forward_cached(sentence_features, labels)
        parts = ([features] if self.whole else parts_of(features) for features in sentence_features)
        return self.calculate_loss([[self.vectors(part) for part in text_parts] for text_parts in parts], labels)

    def calculate_loss(self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False) -> Tensor:
        queries, documents = (self.joined(parts).float() for parts in reps)
        assert labels is not None
        with torch.autocast(queries.device.type, enabled=False):
            loss = self._loss(self.scores(queries, documents), *labels) + self.penalty(queries, documents)
        if with_backward:
            torch.autograd.backward(loss)
            return loss.detach()
        return loss

    def embed_minibatch(
        self,
        sentence_feature: dict[str, Tensor],
        begin: int,
        end: int,
        with_grad: bool,
        copy_random_state: bool,
        random_state: RandContext | None = None,
    ) -> tuple[Tensor, RandContext | None]:
        part = _create_minibatch(sentence_feature, begin, end)
        with random_state or nullcontext(), torch.set_grad_enabled(with_grad):
            state = RandContext(*part.values()) if copy_random_state else None
            return self.vectors(part), state

    def vectors(self, features: dict[str, Tensor]) -> Tensor:
        """Return the representations of a part of the texts."""
        vectors: Tensor = self.model(features, task=features.get("task"))[self.output]
        return vectors

    def joined(self, parts: list[Tensor]) -> Tensor:
        """Return the representations of all texts, given those of each part."""
        return torch.cat(parts)

    def scores(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Return the scores, (queries, documents)."""
        return queries @ documents.T

    def penalty(self, queries: Tensor, documents: Tensor) -> Tensor | float:
        """Return the term added to the loss."""
        return 0.0

    def _loss(self, scores: Tensor, kinds: Tensor, labels: Tensor) -> Tensor:
        settings, is_labelled = self.settings, ~torch.isnan(labels)
        if settings.loss == "cosine":
            return nn.functional.mse_loss(scores[is_labelled], labels[is_labelled])
        scores, positive = scores * settings.scale, kinds == POSITIVE
        if settings.loss == "mnrl":
            return nn.functional.cross_entropy(scores.masked_fill(kinds == UNCOUNTED, -math.inf), kinds.argmax(dim=1))
        labels = labels * settings.teacher_scale
        if settings.loss == "kl":
            return divergence(scores, labels, is_labelled)
        is_other = is_labelled & ~positive
        distances = scores[positive][:, None] - scores
        target_distances = labels[positive][:, None] - labels
        return self.distance_loss(distances[is_other], target_distances[is_other])

    def distance_loss(self, distances: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of the score differences to other documents, given those of the scores in the examples."""
        return nn.functional.mse_loss(distances, targets)


class ResidualLoss(DualEncoderLoss):
    """Mean of max(0, margin - lexical difference - difference) over the other documents of each query.

    The loss of CLEAR (Gao, Dai, Chen, Fan, Van Durme and Callan, ECIR 2021): with a lexical retriever's scores in the examples,
    the encoder learns what the retriever gets wrong. The sum of both scores ranks.
    """

    settings: BiEncoderSettings

    def distance_loss(self, distances: Tensor, targets: Tensor) -> Tensor:
        return (self.settings.margin - targets - distances).relu().mean()


def divergence(scores: Tensor, targets: Tensor, is_labelled: Tensor) -> Tensor:
    """Return the mean Kullback-Leibler divergence of the softmax of each row's scores from the softmax of its targets.

    Args:
        scores: Scores, (queries, documents).
        targets: Scores of a teacher, (queries, documents).
        is_labelled: Whether a document has a target for a query, (queries, documents); others are left out.
    """
    log_scores, log_targets = (logits.masked_fill(~is_labelled, -math.inf).log_softmax(dim=1) for logits in (scores, targets))
    differences = log_targets.masked_fill(~is_labelled, 0) - log_scores.masked_fill(~is_labelled, 0)
    return (log_targets.exp() * differences).sum(dim=1).mean()


def tokens_of(model: BaseModel, rows: Rows) -> frozenset[int] | None:
    """Return the ids of all tokens in rows, with prompts and padding; None for a model without a tokenizer of transformers."""
    tokenizer = model.tokenizer
    if not hasattr(tokenizer, "pad_token_id") or has_static_embedding_input(model):
        return None
    ids = {tokenizer.pad_token_id or 0}
    queries, documents = {row["query"] for row in rows.rows}, {text for row in rows.rows for text in row["documents"]}
    for name, texts in (("query", queries), ("document", documents)):
        ordered, prompt = sorted(texts), model.prompts.get(name) or ""
        for start in range(0, len(ordered), CHUNK_SIZE):
            chunk = [prompt + text for text in ordered[start : start + CHUNK_SIZE]]
            ids.update(*token_ids(tokenizer, chunk, model.max_seq_length))
    return frozenset(ids)


def cut_of(model: BaseModel, rows: Rows) -> dict[str, float]:
    """Return the token limit of the model, and the share of longer documents; empty without a limit."""
    if tokens_of(model, Rows()) is None or not (limit := model.max_seq_length):
        return {}
    texts = sorted({model.prompts.get("document", "") + text for row in rows.rows for text in row["documents"]})
    chunks = (texts[start : start + CHUNK_SIZE] for start in range(0, len(texts), CHUNK_SIZE))
    cut = sum(len(ids) > limit for chunk in chunks for ids in token_ids(model.tokenizer, chunk))
    return {"tokens_read": int(limit), "documents_cut": round(cut / max(1, len(texts)), 6)}


def relevant_texts(data: Iterable[Examples | LabelledPairs]) -> dict[str, frozenset[str]]:
    """Return the texts relevant to each query of the examples; labelled pairs are ignored."""
    texts: dict[str, set[str]] = {}
    for dataset in data:
        for example in dataset if isinstance(dataset, Examples) else ():
            texts.setdefault(example.query, set()).add(example.positive.text)
    return {query: frozenset(relevant) for query, relevant in texts.items()}


def cosines(model: SentenceTransformer) -> Scores:
    """Return a function that scores queries and documents by the inner product of their vectors."""

    def vectors(column: Sequence[str], prompt: str) -> Float32s:
        encoded = model.encode(list(column), prompt_name=prompt, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(encoded, np.float32)

    return lambda queries, texts: vectors(queries, "query") @ vectors(texts, "document").T


def search_measure(
    scores: Scores, topics: Topics, documents: Mapping[str, str], qrels: Qrels, measure: Measure
) -> Callable[[], float]:
    """Return a function that measures an exhaustive search for `topics` in `documents` (texts by id) with the current model."""
    queries, ids, texts = [topic.text for topic in topics.values()], list(documents), list(documents.values())

    def value() -> float:
        rows = scores(queries, texts)
        best = np.argsort(-rows, axis=1, kind="stable")[:, :DEPTH]
        run = Run.of(
            {topic: {ids[i]: float(row[i]) for i in order} for topic, row, order in zip(topics, rows, best, strict=True)}
        )
        return float(measure_run(run, qrels, [measure])[measure])

    return value


def save(model: BaseModel, folder: Path) -> None:
    """Write a model of sentence-transformers to a folder."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is not None:  # otherwise its file would have the truncation and padding of the last batch
        tokenizer.no_truncation()
        tokenizer.no_padding()
    with quiet():
        model.save_pretrained(str(folder), create_model_card=False)


def restore(model: BaseModel, folder: Path) -> None:
    """Load weights that `save` wrote to a folder."""
    with without_warnings():
        saved = type(model)(str(folder), device="cpu", **NO_CODE)
    model.load_state_dict(saved.state_dict())

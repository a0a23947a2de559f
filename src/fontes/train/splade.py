"""Training a learned sparse encoder: a masked language model that weighs the tokens of its vocabulary."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ..core.work import ProgressCallback
from ..neural.models.base import token_ids
from ..neural.models.hub import tokenizer_in
from ..neural.sparse import Splade
from ..neural.sparse.trainable import STATIC_NAME, checkpoint_of, is_headless, trainable
from .encoder_fit import EncoderSettings, SearchValidation, encoder_fit, start_of, train_encoder
from .examples import Examples, TrainingSplit, passages_of
from .runner.running import Fit, Training

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BASE = "rasyosef/splade-tiny"
STATIC_RATE = 1e-3  # learning rate of static weights of queries, as in the examples of sentence-transformers


class SpladeSettings(EncoderSettings):
    """Training settings of a learned sparse encoder.

    Attributes:
        loss: "mnrl", "teacher" or "kl". The loss "mnrl" (multiple negatives) is the cross-entropy of the relevant document
            against all others of the batch; "teacher" (MarginMSE) the squared error of score differences against those of a
            teacher, stored in the examples; "kl" the divergence of the scores of each query's documents from a teacher's.
        batch: Examples per step. With "mnrl" larger batches give more negatives.
        document_flops: Weight of the FLOPS penalty of documents: the more, the fewer terms they get.
        query_flops: Weight of the FLOPS penalty of queries; not used with static queries.
        flops_warm_up: Share of the steps in which both weights rise from 0, by the square of the steps.
        static_queries: Whether queries get learned weights of their own tokens, without the model ("inference-free").
    """

    loss: Literal["mnrl", "teacher", "kl"] = "mnrl"
    batch: int = Field(default=32, gt=0)
    document_flops: float = Field(default=3e-5, ge=0, allow_inf_nan=False)
    query_flops: float = Field(default=5e-5, ge=0, allow_inf_nan=False)
    flops_warm_up: float = Field(default=1 / 3, ge=0, le=1)
    static_queries: bool = False


def train_splade(
    examples: object,
    output: str | Path,
    encoder: Splade | str | Path = BASE,
    settings: SpladeSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train a learned sparse encoder and write it to the folder `output`, which `Splade(output)` loads.

    The loss includes the FLOPS penalty (Paria et al. 2020): the sum over the vocabulary of the squared mean weight of a token
    in the batch, one sum for queries and one for documents. The weights of both sums warm up as in SPLADE (Formal et al. 2021).
    The loss on validation examples includes the whole penalty from the first step.

    All else is as for `train_bi_encoder`: arguments, negatives, repeatability and errors.

    Args:
        examples: Anything `Examples.of` takes.
        output: Folder to create.
        encoder: Start: a Splade, a folder, or a name on the Hugging Face hub, of a SPLADE model or a masked language model. An
            encoder without a head gets a new head, which a few hundred examples are too few to train.
        settings: Training settings; None: the defaults.
        validation: A `SearchValidation`, or examples.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.
    """
    settings = settings or SpladeSettings()
    fit_of = partial(_fit, encoder, settings)
    return train_encoder(fit_of, "a learned sparse encoder", examples, output, settings, validation, overwrite, progress)


def _fit(
    encoder: Splade | str | Path, settings: SpladeSettings, split: TrainingSplit[Examples], search: SearchValidation
) -> Fit:
    from . import losses

    start = start_of(encoder, Splade, "splade_encoder", max_length=settings.max_length)
    checkpoint = checkpoint_of(start.folder)
    static = None
    if settings.static_queries and checkpoint.static is None:
        static = _initial_weights(split.learned, tokenizer_in(checkpoint.transformer, f"{start.name_or_path} has no tokenizer"))
    model = trainable(start, dropout=settings.dropout, static=static, seed=settings.seed)
    static_queries = static is not None or checkpoint.static is not None
    loss = losses.SpladeLoss(model, settings, queries=not static_queries)
    return encoder_fit(
        split,
        search,
        settings,
        start,
        model,
        losses.products(model),
        kind="SPLADE model",
        trainer="SparseEncoderTrainer",
        loss=loss,
        rates={STATIC_NAME: STATIC_RATE} if static_queries else {},
        scheduled=loss.warm_up,
        facts={"new_head": is_headless(checkpoint), "static_queries": static_queries},
    )


def _initial_weights(examples: Examples, tokenizer: PreTrainedTokenizerBase) -> dict[str, float]:
    """Return the initial query weight of each token, its idf in the documents: ln(1 + (N - df + .5) / (df + .5))."""
    texts = sorted({passage.text for example in examples for passage in passages_of(example)})
    df = Counter(token for ids in token_ids(tokenizer, texts, special=False) for token in set(ids))
    weights = {
        token: math.log(1 + (len(texts) - df[number] + 0.5) / (df[number] + 0.5))
        for token, number in tokenizer.get_vocab().items()
    }
    return weights | dict.fromkeys(tokenizer.all_special_tokens, 0.0)

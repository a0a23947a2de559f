"""Training a late-interaction model: one vector a token, scored by the sum of each query token's best similarity."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..core.work import ProgressCallback
from ..neural.late import ColBERT
from ..neural.late.trainable import fill_of, trainable
from .encoder_fit import EncoderSettings, SearchValidation, encoder_fit, start_of, train_encoder
from .examples import Examples, TrainingSplit
from .runner.running import Fit, Training

BASE = "sentence-transformers/all-MiniLM-L6-v2"


class ColBERTSettings(EncoderSettings):
    """Training settings of a late-interaction model.

    Attributes:
        loss: "mnrl", "teacher" or "kl". The loss "mnrl" (multiple negatives) is the cross-entropy of the relevant document
            against all others of the batch; "teacher" (MarginMSE) the squared error of score differences against those of a
            teacher, stored in the examples; "kl" (ColBERTv2's) the divergence of the scores of each query's documents from a
            teacher's.
        batch: Examples per step. With "mnrl" larger batches give more negatives.
        max_length: Maximum tokens of a document, truncated beyond. None: as the base.
        markers: Whether to add markers of queries and documents to a start that has none.
    """

    loss: Literal["mnrl", "teacher", "kl"] = "mnrl"
    batch: int = Field(default=32, gt=0)
    markers: bool = True


def train_colbert(
    examples: object,
    output: str | Path,
    encoder: ColBERT | str | Path = BASE,
    settings: ColBERTSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train a late-interaction model and write it to the folder `output`, which `ColBERT(output)` loads.

    The start determines lengths, the padding of queries with [MASK], tokens without a vector and, if it has no projection, the
    dimensions: `ColBERT("MODEL", dim=128, query_length=32, expand=True)`. By default punctuation gets no vectors, and an
    encoder keeps its own dimensions.

    All else is as for `train_bi_encoder`: arguments, negatives, repeatability and errors.

    Args:
        examples: Anything `Examples.of` takes.
        output: Folder to create.
        encoder: Start: a ColBERT, a folder, or a name on the Hugging Face hub, of a late-interaction model or any encoder.
        settings: Training settings; None: the defaults.
        validation: A `SearchValidation`, or examples.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.
    """
    settings = settings or ColBERTSettings()
    fit_of = partial(_fit, encoder, settings)
    return train_encoder(fit_of, "a late-interaction model", examples, output, settings, validation, overwrite, progress)


def _fit(
    encoder: ColBERT | str | Path, settings: ColBERTSettings, split: TrainingSplit[Examples], search: SearchValidation
) -> Fit:
    from . import losses

    start = start_of(encoder, ColBERT, "colbert", document_length=settings.max_length)
    model = trainable(start, markers=settings.markers, dropout=settings.dropout, seed=settings.seed)
    fill = fill_of(model)
    return encoder_fit(
        split,
        search,
        settings,
        start,
        model,
        losses.maxsims(model),
        kind="ColBERT model",
        trainer="MultiVectorEncoderTrainer",
        loss=losses.ColBERTLoss(model, settings),
        tokens=() if fill is None else [fill],
        facts={"dimensions": start.width, "markers": ", ".join(filter(None, model.prompts.values())) or "none"},
    )

"""Training a late-interaction model: one vector a token, scored by the sum of each query token's best similarity."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from ..core.errors import ParameterError
from ..core.progress import ProgressCallback, silent
from ..neural.late import ColBERT
from ..neural.late.trainable import fill_of, trainable
from .encoder_fit import EncoderSettings, Encoding, SearchValidation, encoder_fit, sides_of
from .runner.checkpoint_folder import check_output_folder
from .runner.running import Training, check_training, run

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
    progress: ProgressCallback = silent,
) -> Training:
    """Train a late-interaction model and write it to the folder `output`, which `ColBERT(output)` loads.

    The start determines lengths, the padding of queries with [MASK], tokens without a vector and, if it has no projection, the
    dimensions: `ColBERT("MODEL", dim=128, query_length=32, expand=True)`. By default punctuation gets no vectors, and an
    encoder keeps its own dimensions.

    Documents known to be relevant to a query are never its negatives. Training resumes from its last checkpoint, and the same
    seed, torch, processor and thread count give the same model in float32. Uses a GPU if there is one.

    Args:
        examples: Anything `Examples.of` takes: Examples, a list of Example, or the path of a file.
        output: Folder to create, complete when it appears. During the training, checkpoints are in OUTPUT.training.
        encoder: Start: a ColBERT, a folder, or a name on the Hugging Face hub, of a late-interaction model or any encoder.
        settings: Training settings; None: the defaults.
        validation: A `SearchValidation`, or examples as above; None: held-out queries.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: The examples, `output`, the encoder or the working folder cannot be used.
        ParameterError: The settings or the encoder are unsuitable, or the loss is no longer a number.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or ColBERTSettings()
    target = Path(output)
    check_output_folder(target, overwrite)
    check_training("training a late-interaction model")
    start = _starting_encoder(encoder, settings)
    search = SearchValidation.of(validation)
    split = sides_of(examples, search, settings)
    model = trainable(start, markers=settings.markers, dropout=settings.dropout, seed=settings.seed)
    from . import colbert_loss

    fill = fill_of(model)
    encoding = Encoding(
        kind="ColBERT model",
        base=str(start.name_or_path),
        folder=start.folder,
        key=str(start.key()),
        model=model,
        trainer="MultiVectorEncoderTrainer",
        loss=colbert_loss.ColBERTLoss(model, settings),
        scores=colbert_loss.maxsims(model),
        tokens=frozenset() if fill is None else frozenset([fill]),
        facts={"dimensions": start.width, "markers": ", ".join(filter(None, model.prompts.values())) or "none"},
    )
    return run(encoder_fit(encoding, split, search, settings), settings, target, overwrite, progress)


def _starting_encoder(encoder: ColBERT | str | Path, settings: ColBERTSettings) -> ColBERT:
    start = ColBERT(encoder) if isinstance(encoder, (str, Path)) else encoder
    if not isinstance(start, ColBERT):
        raise ParameterError(f"{start!r} cannot be trained; use colbert(…) or a model")
    return start if settings.max_length is None else start.with_(document_length=settings.max_length)

"""Training a bi-encoder: one encoder of queries and documents, scored by cosine."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from ..core.errors import ParameterError
from ..core.values import Doc
from ..core.work import ProgressCallback
from ..neural.encoders import ChunkedEncoder, Encoder, SentenceEncoder, TransformerEncoder
from ..neural.encoders.base import encoder_in
from ..neural.encoders.trainable import trainable
from ..neural.models.hub import find_model
from .encoder_fit import EncoderSettings, EncoderSplit, SearchValidation, encoder_fit, hash_of, train_encoder
from .examples import Examples, LabelledPairs, Passage, TrainingSplit, passages_of
from .runner.running import Fit, Training

BASE = "sentence-transformers/all-MiniLM-L6-v2"
Trainable = SentenceEncoder | TransformerEncoder


class BiEncoderSettings(EncoderSettings):
    """Training settings of a bi-encoder.

    Attributes:
        loss: "mnrl", "teacher", "kl", "residual" or "cosine". The loss "mnrl" (multiple negatives) is the cross-entropy of the
            relevant document against all others of the batch; "teacher" (MarginMSE) the squared error of score differences
            against those of a teacher, stored in the examples; "kl" the divergence of the scores of each query's documents from
            a teacher's; "residual" (CLEAR; Gao et al. 2021) a hinge: the sum of the stored scores, those of a lexical
            retriever, and the encoder's must rank the relevant document `margin` above each other document of the example;
            "cosine" (Sentence-BERT's siamese network) the squared error of the cosines of labelled pairs against their labels.
        scale: Factor of the cosines in the loss, one over the temperature; not used by "cosine".
        margin: Required difference of the sums, with "residual".
    """

    loss: Literal["mnrl", "teacher", "kl", "residual", "cosine"] = "mnrl"
    scale: float = Field(default=20.0, gt=0, allow_inf_nan=False)
    margin: float = Field(default=1.0, gt=0, allow_inf_nan=False)


def train_bi_encoder(
    examples: object,
    output: str | Path,
    encoder: Encoder | str | Path = BASE,
    settings: BiEncoderSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train an encoder and write it to the folder `output`, which `SentenceEncoder(output)` loads.

    Any encoder with a model can be trained, including Nyströmformer, Longformer, Reformer and Performer as `TransformerEncoder`
    runs them; the folder records the attention, prompts and pooling. Documents known to be relevant to a query are never its
    negatives, and a text that occurs twice in a batch counts once.

    The same seed, torch, processor and thread count give the same model in float32, also after an interruption: training
    resumes from its last checkpoint. Uses a GPU if there is one.

    Args:
        examples: Anything `Examples.of` takes: Examples, a list of Example, or the path of a file; with the loss "cosine"
            anything `LabelledPairs.of` takes.
        output: Folder to create, complete when it appears. During the training, checkpoints are in OUTPUT.training.
        encoder: Start: a SentenceEncoder, a TransformerEncoder, a folder, or a name on the Hugging Face hub. For a
            ChunkedEncoder, its inner encoder is trained on the window of each document that is best for the query before
            training.
        settings: Training settings; None: the defaults.
        validation: A `SearchValidation`, or examples as above; None: held-out queries.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: The examples, `output`, the encoder or the working folder cannot be used.
        ParameterError: The settings or the encoder are unsuitable, or the loss is no longer a number.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or BiEncoderSettings()
    fit_of = partial(_fit, encoder, settings)
    return train_encoder(fit_of, "a bi-encoder", examples, output, settings, validation, overwrite, progress)


def _fit(encoder: Encoder | str | Path, settings: BiEncoderSettings, split: EncoderSplit, search: SearchValidation) -> Fit:
    from . import dual_encoder

    start, windows = _starting_encoder(encoder, settings.max_length)
    model = trainable(start, dropout=settings.dropout)
    loss = dual_encoder.ResidualLoss if settings.loss == "residual" else dual_encoder.DualEncoderLoss
    return encoder_fit(
        split if windows is None else _windowed_split(split, windows),
        search,
        settings,
        start,
        model,
        dual_encoder.cosines(model),
        kind="bi-encoder",
        trainer="SentenceTransformerTrainer",
        loss=loss(model, settings),
    )


def _starting_encoder(encoder: Encoder | str | Path, max_length: int | None) -> tuple[Trainable, ChunkedEncoder | None]:
    if isinstance(encoder, ChunkedEncoder):
        inner, _ = _starting_encoder(encoder_in(encoder), max_length)
        return inner, encoder
    if isinstance(encoder, (str, Path)):
        folder = find_model(encoder, SentenceEncoder.kind, SentenceEncoder.owner)
        encoder = (SentenceEncoder if (folder / "modules.json").is_file() else TransformerEncoder)(encoder)
    if not isinstance(encoder, (SentenceEncoder, TransformerEncoder)):
        raise ParameterError(f"{encoder!r} cannot be trained; use sentence_encoder(…), transformer_encoder(…) or a model")
    return (encoder if max_length is None else encoder.with_(max_length=max_length)), None


def _windowed_split(split: TrainingSplit[Any], encoder: ChunkedEncoder) -> TrainingSplit[Examples]:
    if isinstance(split.learned, LabelledPairs):
        raise ParameterError("labelled pairs have no documents to cut into windows: train the inner encoder")
    learned = windowed(split.learned, encoder)
    validation = None if split.validation is None else windowed(split.validation, encoder)
    return TrainingSplit(learned, validation, {**split.hashes, "windows": hash_of(encoder.fingerprint)})


def windowed(examples: Examples, encoder: ChunkedEncoder) -> Examples:
    """Return examples in which each text is replaced by its best window for the query, by the encoder's own scores."""
    texts = list(dict.fromkeys(passage.text for example in examples for passage in passages_of(example)))
    queries = list(dict.fromkeys(example.query for example in examples))
    vectors, bounds = encoder.with_(pooling="max").encode_documents_parts([Doc("", text) for text in texts])
    query_vectors = dict(zip(queries, encoder.encode_queries(queries), strict=True))
    text_windows = {text: (encoder.windows(text), slice(*bounds[i : i + 2])) for i, text in enumerate(texts)}

    def best(query: str, passage: Passage) -> Passage:
        windows, rows = text_windows[passage.text]
        return replace(passage, text=windows[int(np.argmax(vectors[rows] @ query_vectors[query]))])

    return Examples(
        replace(
            example,
            positive=best(example.query, example.positive),
            negatives=tuple(best(example.query, passage) for passage in example.negatives),
        )
        for example in examples
    )

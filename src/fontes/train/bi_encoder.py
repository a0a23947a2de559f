"""Training a bi-encoder: one encoder of queries and documents, scored by cosine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from ..core.errors import InputError, ParameterError
from ..core.progress import ProgressCallback, silent
from ..core.qrels import Qrels
from ..core.values import Doc, Topic, Topics, text_of
from ..neural.encoders import ChunkedEncoder, Encoder, SentenceEncoder, TransformerEncoder
from ..neural.encoders.base import encoder_in
from ..neural.encoders.trainable import trainable
from ..neural.models.hub import located
from .examples import Examples, LabelledPairs, Passage, TrainingSplit, check_teacher, queries, training_split
from .runner.checkpoint_folder import check_place
from .runner.running import Fit, Rows, Training, check_training, run
from .runner.settings import FitSettings

if TYPE_CHECKING:
    from ..index import Index

BASE = "sentence-transformers/all-MiniLM-L6-v2"
Trainable = SentenceEncoder | TransformerEncoder


class BiEncoderSettings(FitSettings):
    """Training settings of a bi-encoder.

    Attributes:
        loss: "mnrl", "teacher" or "cosine". Multiple negatives ("mnrl"): cross-entropy of the relevant document against all
            others of the batch; squared error of score differences against a teacher's ("teacher"), stored in the examples
            (MarginMSE); or of the cosines of labelled pairs against their labels ("cosine", Sentence-BERT's siamese
            network).
        batch: Examples or pairs per step. With "mnrl" larger batches give more negatives.
        mini_batch: Texts computed at once: cached gradients limit memory to one mini-batch, at the cost of computing each text
            twice. None: all at once, faster if memory allows.
        scale: Factor of the cosines in the loss, one over the temperature; not used by "cosine".
        negatives: Number of negatives used per example, from the first; None: all.
    """

    loss: Literal["mnrl", "teacher", "cosine"] = "mnrl"
    batch: int = Field(default=64, gt=0)
    mini_batch: int | None = Field(default=16, gt=0)
    scale: float = Field(default=20.0, gt=0, allow_inf_nan=False)
    negatives: int | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class SearchValidation:
    """Validation of a bi-encoder by exhaustive search.

    Args:
        examples: Examples of held-out queries, to measure the loss; None: some training queries are held out.
        index: Index to search; None: the documents of the validation examples.
        topics: Queries, from which training queries are removed; None: those of the examples.
        qrels: Judgments of the queries; None: the relevant documents of the examples.
    """

    examples: object = None
    index: Index | None = None
    topics: Topics | None = None
    qrels: Qrels | None = None


def train_bi_encoder(
    examples: object,
    output: str | Path,
    encoder: Encoder | str | Path = BASE,
    settings: BiEncoderSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback = silent,
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
        output: Folder to create, complete when it appears. Checkpoints are in OUTPUT.training meanwhile.
        encoder: Start: a SentenceEncoder, a TransformerEncoder, a folder, or a name on the Hugging Face hub. Of a
            ChunkedEncoder the inner encoder is trained, on each document's best window for the query before training.
        settings: Training settings; None: the defaults.
        validation: A `SearchValidation`, or examples as above; None: held-out queries.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: Unusable examples, `output`, encoder or working folder.
        ParameterError: Unsuitable settings or encoder, or the loss is no longer a number.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or BiEncoderSettings()
    place = Path(output)
    check_place(place, overwrite)
    check_training("training a bi-encoder")
    start, windows = _start(encoder, settings.max_length)
    search = validation if isinstance(validation, SearchValidation) else SearchValidation(validation)
    split = _split(examples, search, settings)
    _check_search(search, split, settings)
    model = trainable(start, dropout=settings.dropout)
    if windows is not None:
        split = _windowed(split, windows, progress)
    return run(_fit(start, model, split, search, settings), settings, place, overwrite, progress)


def _start(encoder: Encoder | str | Path, max_length: int | None) -> tuple[Trainable, ChunkedEncoder | None]:
    if isinstance(encoder, ChunkedEncoder):
        inner, _ = _start(encoder_in(encoder), max_length)
        return inner, encoder
    if isinstance(encoder, (str, Path)):
        folder = located(encoder, SentenceEncoder.kind, SentenceEncoder.owner)
        encoder = (SentenceEncoder if (folder / "modules.json").is_file() else TransformerEncoder)(encoder)
    if not isinstance(encoder, (SentenceEncoder, TransformerEncoder)):
        raise ParameterError(f"{encoder!r} cannot be trained; use sentence_encoder(…), transformer_encoder(…) or a model")
    return (encoder if max_length is None else encoder.with_(max_length=max_length)), None


def _split(examples: object, search: SearchValidation, settings: BiEncoderSettings) -> TrainingSplit[Any]:
    kind = LabelledPairs if settings.loss == "cosine" else Examples
    data: Any = kind.of(examples)
    if settings.loss == "cosine":
        data.check_labels()
    split = training_split(data, None if search.examples is None else kind.of(search.examples), settings)
    if settings.loss == "teacher":
        data.check_labels()
        check_teacher(split.learned, split.validation)
    return split


def _windowed(split: TrainingSplit[Any], encoder: ChunkedEncoder, progress: ProgressCallback) -> TrainingSplit[Any]:
    if isinstance(split.learned, LabelledPairs):
        raise ParameterError("labelled pairs have no documents to cut into windows: train the inner encoder")
    learned = windowed(split.learned, encoder, progress)
    validation = None if split.validation is None else windowed(split.validation, encoder, progress)
    return TrainingSplit(learned, validation, {**split.hashes, "windows": _hash(encoder.fingerprint)})


def _fit(start: Trainable, model: Any, split: TrainingSplit[Any], search: SearchValidation, settings: BiEncoderSettings) -> Fit:
    from . import towers

    def rows(data: Examples | LabelledPairs | None) -> Rows:
        return Rows() if data is None else towers.rows_of(data, settings.negatives, settings.loss == "teacher")

    learned = rows(split.learned)
    data = [one for one in (split.learned, split.validation) if one is not None]
    searched = _search(search, split) if search.index is not None or settings.by_measure else None
    return Fit(
        kind="bi-encoder",
        base=str(start.name_or_path),
        folder=start.folder,
        model=model,
        trainer="SentenceTransformerTrainer",
        loss=towers.TowersLoss(model, settings.loss, settings.scale, settings.mini_batch),
        collator=towers.Collator(model.preprocess, prompts=dict(model.prompts), relevant=towers.relevant_texts(data)),
        train=learned,
        tokens=towers.tokens_of(model, learned),
        validation=rows(split.validation),
        measure=searched and towers.search_measure(model, *searched, settings.measure),
        save=partial(towers.save, model),
        restore=partial(towers.restore, model),
        identity={**split.hashes, "encoder": _hash(str(start.key()))},
        facts={
            "queries": len(split.queries),
            "queries_validated": len(queries(split.validation)) if split.validation is not None else 0,
            "topics_measured": len(searched[2]) if searched else 0,
            **towers.cut_of(model, learned),
        },
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _check_search(search: SearchValidation, split: TrainingSplit[Any], settings: BiEncoderSettings) -> None:
    whole = search.index is not None and search.topics is not None and search.qrels is not None
    if (search.topics is None) != (search.qrels is None):
        raise ParameterError("validation topics and their qrels belong together: give both or none")
    if (search.index is not None or settings.by_measure) and not whole and not isinstance(split.validation, Examples):
        remedy = "hold out examples for validation, or give index, topics and qrels"
        raise ParameterError(f"{settings.measure} is measured on a search: {remedy}")


def _search(search: SearchValidation, split: TrainingSplit[Any]) -> tuple[Topics, dict[str, str], Qrels]:
    held_out: Examples | tuple[()] = split.validation if isinstance(split.validation, Examples) else ()
    if search.index is not None:
        documents = {doc.id: text_of(doc) for doc in search.index.docs(search.index.ids)}
    else:
        documents = {passage.id: passage.text for one in held_out for passage in (one.positive, *one.negatives)}
    if search.topics is None or search.qrels is None:
        topics = Topics({one.topic: Topic(one.topic, one.query) for one in held_out}.values())
        return topics, documents, Qrels.of([(one.topic, one.positive.id, 1) for one in held_out])
    unlearned = Topics(topic for topic in search.topics.values() if topic.text.strip() not in split.queries)
    judgments = [row for row in search.qrels.rows() if row[0] in unlearned]
    if not judgments:
        raise InputError("all validation topics are learned from, or none of them is judged: give others")
    return unlearned, documents, Qrels(judgments)


def windowed(examples: Examples, encoder: ChunkedEncoder, progress: ProgressCallback = silent) -> Examples:
    """Replace the text of each document by its best window for the query, as the encoder cuts and scores it."""
    texts = list(dict.fromkeys(passage.text for example in examples for passage in (example.positive, *example.negatives)))
    queries = list(dict.fromkeys(example.query for example in examples))
    vectors, bounds = encoder.with_(pooling="max").encode_documents_parts([Doc("", text) for text in texts], progress)
    of_queries = dict(zip(queries, encoder.encode_queries(queries), strict=True))
    parts = {text: (encoder.windows(text), slice(*bounds[at : at + 2])) for at, text in enumerate(texts)}

    def best(query: str, passage: Passage) -> Passage:
        windows, rows = parts[passage.text]
        return replace(passage, text=windows[int(np.argmax(vectors[rows] @ of_queries[query]))])

    return Examples(
        replace(
            one,
            positive=best(one.query, one.positive),
            negatives=tuple(best(one.query, passage) for passage in one.negatives),
        )
        for one in examples
    )

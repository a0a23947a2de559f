"""Parts shared by trainings of encoders: settings, data, validation by exhaustive search, and the fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import Field

from ..core.arrays import Float32s
from ..core.errors import InputError, ParameterError
from ..core.values import Qrels, Topic, Topics, text_of
from ..core.work import ProgressCallback, work
from .examples import DISTILLED, Examples, LabelledPairs, TrainingSplit, check_teacher, passages_of, training_split
from .runner.running import Fit, Rows, Training, begin, run
from .runner.settings import FitSettings

if TYPE_CHECKING:
    from ..index import Index
    from ..neural.models.base import Pretrained

T = TypeVar("T", bound="Pretrained[Any]")
EncoderSplit: TypeAlias = TrainingSplit[Examples | LabelledPairs]
Scores: TypeAlias = Callable[[Sequence[str], Sequence[str]], Float32s]
"""Function from queries and documents to their scores by the current model: float32, (queries, documents)."""


class EncoderSettings(FitSettings):
    """Settings shared by trainings of encoders.

    Attributes:
        batch: Examples or pairs per step. With "mnrl" larger batches give more negatives.
        mini_batch: Texts computed at once: cached gradients limit memory to one mini-batch, at the cost of computing each text
            twice. None: the whole batch at once, which is faster if memory allows.
        scale: Factor of the scores in the loss, one over the temperature.
        teacher_scale: Factor of the scores in the examples, with "teacher", "kl" and "residual".
        negatives: Negatives used per example, from the first; None: all.
    """

    loss: str
    batch: int = Field(default=64, gt=0)
    mini_batch: int | None = Field(default=16, gt=0)
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    teacher_scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    negatives: int | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class SearchValidation:
    """Validation of an encoder by exhaustive search.

    Args:
        examples: Examples of held-out queries, for the validation loss; None: some training queries are held out.
        index: Index to search; None: the documents of the validation examples.
        topics: Queries, from which training queries are removed; None: the queries of the examples.
        qrels: Judgments of the queries; None: the relevant documents of the examples.
    """

    examples: object = None
    index: Index | None = None
    topics: Topics | None = None
    qrels: Qrels | None = None

    @classmethod
    def of(cls, validation: object) -> SearchValidation:
        """Return a `SearchValidation` unchanged, or one with the given examples."""
        return validation if isinstance(validation, SearchValidation) else cls(validation)


def train_encoder(
    fit_of: Callable[[TrainingSplit[Any], SearchValidation], Fit],
    kind: str,
    examples: object,
    output: str | Path,
    settings: EncoderSettings,
    validation: object,
    overwrite: bool,
    progress: ProgressCallback | None,
) -> Training:
    """Train an encoder of a kind, given its fit to training and validation data; see `train_bi_encoder`."""
    target, search = begin(output, overwrite, f"training {kind}"), SearchValidation.of(validation)
    with work(progress=progress):
        return run(fit_of(sides_of(examples, search, settings), search), settings, target, overwrite)


def sides_of(examples: object, search: SearchValidation, settings: EncoderSettings) -> TrainingSplit[Any]:
    """Return training and validation data, checked for the loss and the search; raise InputError or ParameterError."""
    kind: type[Examples | LabelledPairs] = LabelledPairs if settings.loss == "cosine" else Examples
    data: Any = kind.of(examples)
    if settings.loss == "cosine":
        data.check_labels()
    split = training_split(data, None if search.examples is None else kind.of(search.examples), settings)
    if settings.loss in DISTILLED:
        data.check_labels()
        check_teacher(settings.loss, split.learned, split.validation)
    _check_search(search, split, settings)
    return split


def start_of(encoder: T | str | Path, kind: type[T], stage: str, **changes: int | None) -> T:
    """Return the encoder of a name or folder, with the changes that are not None; ParameterError for one of another kind."""
    start: object = kind(encoder) if isinstance(encoder, (str, Path)) else encoder
    if not isinstance(start, kind):
        raise ParameterError(f"{start!r} cannot be trained; use {stage}(…) or a model")
    return start.with_(**{name: value for name, value in changes.items() if value is not None})


def encoder_fit(
    split: EncoderSplit,
    search: SearchValidation,
    settings: EncoderSettings,
    start: Pretrained[Any],
    model: Any,
    scores: Scores,
    *,
    tokens: Iterable[int] = (),
    facts: Mapping[str, object] = MappingProxyType({}),
    **parts: Any,
) -> Fit:
    """Return the fit of an encoder to its training data.

    Args:
        split: Training and validation data.
        search: Validation by a search.
        settings: Training settings.
        start: Encoder that is trained further.
        model: Model of sentence-transformers, in float32 on the CPU.
        scores: Scores by the current model.
        tokens: Ids of tokens that the model adds to texts.
        facts: Further facts for the card.
        **parts: Arguments of `Fit` that differ between kinds of encoders.
    """
    from . import dual_encoder

    def rows(examples: Examples | LabelledPairs | None) -> Rows:
        return Rows() if examples is None else dual_encoder.rows_of(examples, settings.negatives, settings.loss in DISTILLED)

    training_rows = rows(split.learned)
    examples = [example for example in (split.learned, split.validation) if example is not None]
    search_data = _search_data(search, split) if search.index is not None or settings.by_measure else None
    text_tokens = dual_encoder.tokens_of(model, training_rows)
    return Fit(
        base=str(start.name_or_path),
        folder=start.folder,
        model=model,
        collator=dual_encoder.Collator(
            model.preprocess, prompts=dict(model.prompts), relevant=dual_encoder.relevant_texts(examples)
        ),
        train=training_rows,
        tokens=None if text_tokens is None else text_tokens.union(tokens),
        validation=rows(split.validation),
        measure=search_data and dual_encoder.search_measure(scores, *search_data, settings.measure),
        save=partial(dual_encoder.save, model),
        restore=partial(dual_encoder.restore, model),
        identity={**split.hashes, "encoder": hash_of(str(start.key()))},
        facts={
            **split.counts,
            "topics_measured": len(search_data[2]) if search_data else 0,
            **facts,
            **dual_encoder.cut_of(model, training_rows),
        },
        **parts,
    )


def hash_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_search(search: SearchValidation, split: EncoderSplit, settings: EncoderSettings) -> None:
    """Raise ParameterError if the validation lacks topics, judgments or documents that the search needs."""
    is_complete = search.index is not None and search.topics is not None and search.qrels is not None
    if (search.topics is None) != (search.qrels is None):
        raise ParameterError("validation topics and their qrels belong together: give both or none")
    if (search.index is not None or settings.by_measure) and not is_complete and not isinstance(split.validation, Examples):
        remedy = "hold out examples for validation, or give index, topics and qrels"
        raise ParameterError(f"{settings.measure} is measured on a search: {remedy}")


def _search_data(search: SearchValidation, split: EncoderSplit) -> tuple[Topics, dict[str, str], Qrels]:
    """Return the topics of the validation search, the texts of its documents by id, and its judgments."""
    held_out: Examples | tuple[()] = split.validation if isinstance(split.validation, Examples) else ()
    if search.index is not None:
        documents = {doc.id: text_of(doc) for doc in search.index.docs(search.index.ids)}
    else:
        documents = {passage.id: passage.text for example in held_out for passage in passages_of(example)}
    if search.topics is None or search.qrels is None:
        topics = Topics({example.topic: Topic(example.topic, example.query) for example in held_out}.values())
        return topics, documents, Qrels.of([(example.topic, example.positive.id, 1) for example in held_out])
    unlearned = Topics(topic for topic in search.topics.values() if topic.text.strip() not in split.queries)
    judgments = [row for row in search.qrels.rows() if row[0] in unlearned]
    if not judgments:
        raise InputError("all validation topics are learned from, or none of them is judged: give others")
    return unlearned, documents, Qrels(judgments)

"""Training a MonoT5: a T5 that answers "true" or "false" for pairs of a query and a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from pydantic import Field

from ..core.run import Run
from ..core.values import Qrels
from ..core.work import ProgressCallback
from ..neural.models.hub import find_model
from ..neural.rerank.monot5 import KIND, MonoT5Model
from .cross_encoder import reranker_split
from .current import CurrentReranker
from .examples import Example, passages_of
from .runner.running import Rows, Training, begin, run
from .runner.settings import FitSettings
from .seq2seq import Seq2SeqModel

BASE = "google-t5/t5-base"
MAX_LENGTH = 512  # default maximum of tokens of a pair


class MonoT5Settings(FitSettings):
    """Training settings of a MonoT5; the defaults are our own.

    Attributes:
        epochs: Passes over the pairs.
        batch: Pairs of a query and a document per step.
        lr: Peak learning rate.
        max_length: Maximum tokens of a pair; only the document is truncated. None: 512.
        true: Word for a relevant document, a single token of the vocabulary.
        false: Word for any other document.
    """

    batch: int = Field(default=32, gt=0)
    lr: float = Field(default=3e-4, gt=0, allow_inf_nan=False)
    true: str = "true"
    false: str = "false"


def train_mono_t5(
    examples: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: MonoT5Settings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train a T5 to answer "true" for relevant documents and "false" for others (Nogueira et al., Findings of EMNLP 2020).

    The model reads what `MonoT5` reads, and learns the word and the end of the sentence by cross-entropy over the whole
    vocabulary. The paper draws as many relevant documents as others; mine one negative per relevant document for that.

    The same seed, torch, processor and thread count give the same model in float32, also after an interruption: training
    resumes from its last checkpoint. Uses a GPU if there is one.

    Args:
        examples: Anything `Examples.of` takes: Examples, a list of Example, or the path of a file.
        output: Folder to create, complete when it appears; `MonoT5(output)` loads it, with other words by its `tokens`. During
            the training, checkpoints are in OUTPUT.training.
        base: Start, a T5: a folder, or a name on the Hugging Face hub.
        settings: Training settings; None: the defaults.
        validation: A `Validation`, or examples as above; None: held-out queries.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: The examples, `output`, the base or the working folder cannot be used, or a word is not a single token.
        ParameterError: The settings are unsuitable, or the loss is no longer a number.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or MonoT5Settings()
    target = begin(output, overwrite, "training a MonoT5")
    split, candidates = reranker_split(examples, validation, settings)

    model = TrainableMonoT5(find_model(base, KIND), settings)
    fit = model.fit(
        str(base),
        train=model.rows(split.learned),
        validation=model.rows(split.validation or ()),
        measure=candidates and model.measure(*candidates),
        identity=split.hashes,
        facts={**split.counts, "topics_measured": len(candidates[1]) if candidates else 0, **model.cut_of(split.learned)},
    )
    return run(fit, settings, target, overwrite, progress)


class TrainableMonoT5(Seq2SeqModel):
    """MonoT5 in float32 on the CPU, made from the base in a folder."""

    def __init__(self, folder: Path, settings: MonoT5Settings) -> None:
        self._model = MonoT5Model(folder, (settings.true, settings.false))
        super().__init__(folder, self._model.network, self._model.tokenizer, KIND, settings)
        self._settings = settings
        self._max_length = settings.max_length or MAX_LENGTH

    def rows(self, examples: Iterable[Example]) -> Rows:
        """Return a row for each pair of a query and a document: their token ids, and those of the word as labels."""
        pairs = [(example, passage) for example in examples for passage in passages_of(example)]
        end = [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]
        true, false = ([word, *end] for word in self._model.words)
        inputs = self._model.inputs([(example.query, passage.text) for example, passage in pairs], self._max_length)
        return self.rows_of(inputs, [true if passage is example.positive else false for example, passage in pairs])

    def cut_of(self, examples: Iterable[Example]) -> dict[str, float]:
        """Return the token limit of a pair, and the share of longer pairs."""
        pairs = [(example.query, passage.text) for example in examples for passage in passages_of(example)]
        whole = self._model.inputs(pairs, max_length=2**31)
        cut = sum(len(ids) > self._max_length for ids in whole)
        return {"tokens_read": self._max_length, "pairs_cut": round(cut / len(pairs), 6)}

    def measure(self, run: Run, qrels: Qrels) -> Callable[[], float]:
        """Return a function that reranks a run with the current model and measures it."""
        model, inputs_of = self._model, partial(self._model.inputs, max_length=self._max_length)
        stage = CurrentReranker(model.network, inputs_of, model.lengths, partial(model.logits, model.network))
        return stage.measured(run, qrels, self._settings.measure)

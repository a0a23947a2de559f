"""QuReTeC: a token classifier reads the conversation and says which of its terms the turn lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.progress import Report
from ..core.stage import Stage
from ..core.values import Topics
from ..neural.models.compute import Prepared, batch_tokens, in_batches, prepared
from ..neural.models.hub import device, fingerprint, library, loaded, located, quiet, readable
from .quretec_terms import history_of, words_of
from .turns import joined, rewritten, utterance

KIND = "term classifier"
RELEVANT = "REL"  # the label of a relevant term, as the published checkpoints have it
THRESHOLD = 0.5
SAMPLE = ("What is throat cancer? Is it treatable? Tell me about lung cancer.", "What are its symptoms?")


@dataclass(frozen=True)
class QuReTeC(Stage[Topics, Topics], name="quretec"):
    """Adds to each turn the terms of the conversation that it lacks (Voskarides, Li, Ren, Kanoulas and de Rijke, SIGIR 2020).

    The model reads the history and, after a separator, the turn: [CLS] history [SEP] turn [SEP]. It gives each word of the
    history, at its first subword, a probability of being relevant. The new text is the raw utterance and after it the
    relevant words that it has not yet, each once, in the order in which they were first said.

    name_or_path   a token classifier of transformers with the label REL: a folder, such as `train_terms` writes, or a name on
                   the Hugging Face hub, such as uva-irlab/quretec
    answers        of how many turns before the current one the answers belong to the history
    threshold      the least probability of a relevant word; None: what the training found, or 0.5
    max_length     tokens of an input, as published; a longer history loses its oldest words first, and the turn has half at
                   least
    precision      "auto" (the quickest that agrees with float32), "float32", "bfloat16" or "float16"
    device         "cpu", "cuda", …; None takes a GPU where there is one

    A topic without earlier turns keeps its utterance. The model is loaded when it is first used. Raises InputError for a model
    that is not there or no term classifier, ParameterError for a parameter that makes no sense.
    """

    name_or_path: str | Path
    answers: int = 0
    threshold: float | None = None
    max_length: int = 300
    precision: str = field(default="auto", repr=False)
    device: str | None = field(default=None, repr=False)

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        terms = self.terms(given)
        return rewritten(given, lambda topic: joined(utterance(topic), *terms[topic.id]))

    def terms(self, given: object) -> dict[str, list[str]]:
        """For each topic the terms that its new text gains. `given`: whatever `Topics.of` accepts."""
        topics = Topics.of(given)
        found = self.probabilities(topics)
        threshold = self.used_threshold if any(found.values()) else THRESHOLD
        terms = {}
        for topic_id, words in found.items():
            known = {word.lower() for word in words_of(utterance(topics[topic_id]))}
            kept: dict[str, str] = {}
            for word, probability in words:
                if probability >= threshold and word.lower() not in known and (word[0].isalnum() or word[0] == "_"):
                    kept.setdefault(word.lower(), word)
            terms[topic_id] = list(kept.values())
        return terms

    def probabilities(self, given: object) -> dict[str, list[tuple[str, float]]]:
        """For each topic the words of its history that the model read, in their order, with probabilities from 0 to 1."""
        self._check()
        topics = Topics.of(given)
        histories = {topic.id: history_of(topic, self.answers) for topic in topics.values()}
        asked = [topic_id for topic_id, words in histories.items() if words]
        found: dict[str, list[tuple[str, float]]] = {topic_id: [] for topic_id in topics}
        if not asked:
            return found
        model = self._model
        turns = [words_of(utterance(topics[topic_id])) for topic_id in asked]
        inputs = model.inputs([histories[topic_id] for topic_id in asked], turns, self.max_length)

        def work(batch: NDArray[np.intp]) -> NDArray[Any]:
            rows = np.empty(len(batch), dtype=object)
            rows[:] = model.probabilities([inputs[at] for at in batch])
            return rows

        tokens = batch_tokens(None, model.prepared.device)
        results = in_batches([len(one.ids) for one in inputs], tokens, work)
        for topic_id, one, values in zip(asked, inputs, results, strict=True):
            words = histories[topic_id][one.lost :]
            found[topic_id] = list(zip(words, values.tolist(), strict=True))
        return found

    @property
    def used_threshold(self) -> float:
        """The threshold that is used: the one given, or what the model's training found, or 0.5."""
        return self._model.threshold if self.threshold is None else self.threshold

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the model's content."""
        return fingerprint(located(self.name_or_path, KIND))

    def key(self) -> str | None:
        """The class, the model's content and the settings: see `Stage.key`."""
        settings = (self.answers, self.threshold, self.max_length, self.precision)
        return f"{type(self).__module__}.{type(self).__qualname__}({self.fingerprint}, {settings})"

    @property
    def _model(self) -> _Model:
        folder, where = located(self.name_or_path, KIND), device(self.device)
        key = (KIND, folder, fingerprint(folder), self.precision, where)
        return loaded(key, lambda: _Model(folder, self.precision, where))

    def _check(self) -> None:
        check_whole("answers", self.answers, 0)
        check_whole("max_length", self.max_length, 8)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ParameterError(f"threshold must be a probability from 0 to 1, not {self.threshold!r}")


@dataclass(frozen=True)
class Input:
    """What the model reads of one topic: its tokens, where each word of the history starts, how many of its words are lost."""

    ids: list[int]
    starts: list[int]
    lost: int


class Pieces:
    """The subwords of words, each word by itself, and inputs made of them."""

    def __init__(self, tokenizer: Any, positions: int) -> None:
        self._tokenizer = tokenizer
        self._positions = positions
        self._pieces: dict[str, list[int]] = {}

    def inputs(self, histories: Sequence[list[str]], turns: Sequence[list[str]], max_length: int) -> list[Input]:
        """[CLS] history [SEP] turn [SEP], in at most `max_length` tokens: the oldest words of a history are lost first."""
        new = sorted({word for words in (*histories, *turns) for word in words} - self._pieces.keys())
        if new:
            ids = self._tokenizer([[word] for word in new], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            unknown = [self._tokenizer.unk_token_id]
            self._pieces |= {word: pieces or unknown for word, pieces in zip(new, ids, strict=True)}
        length = min(max_length, self._positions)
        return [self._input(history, turn, length) for history, turn in zip(histories, turns, strict=True)]

    def _input(self, history: list[str], turn: list[str], length: int) -> Input:
        first, middle = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        question = [piece for word in turn for piece in self._pieces[word]]
        pieces = [self._pieces[word] for word in history]
        # A very long turn leaves the history half.
        space = length - 3 - min(len(question), max(length // 2, length - 3 - sum(map(len, pieces))))
        kept, used = 0, 0
        for word in reversed(pieces):
            if used + len(word) > space:
                break
            kept, used = kept + 1, used + len(word)
        read = pieces[len(pieces) - kept :]
        starts = [1]
        for word in read:
            starts.append(starts[-1] + len(word))
        ids = [first, *(piece for word in read for piece in word), middle, *question[: length - 3 - used], middle]
        return Input(ids, starts[:-1], len(pieces) - kept)


class _Model:
    """A token classifier, its tokenizer and its threshold."""

    def __init__(self, folder: Path, precision: str, where: str) -> None:
        module, tokenizer = classifier(folder)
        self.relevant = relevant_label(module.config, folder)
        self.threshold = getattr(module.config, "term_threshold", THRESHOLD)
        if not isinstance(self.threshold, (int, float)) or not 0 <= self.threshold <= 1:
            raise InputError(f"the {KIND} at {folder} has a threshold of {self.threshold!r}, not from 0 to 1")
        self.pad = int(tokenizer.pad_token_id or 0)
        self._pieces = Pieces(tokenizer, positions_of(module.config))
        sample = self.inputs([words_of(SAMPLE[0] * times) for times in (1, 2, 4)], [words_of(SAMPLE[1])] * 3, 300)
        self.prepared: Prepared = prepared(module, lambda module: self._odds(module, sample), precision=precision, device=where)

    def inputs(self, histories: Sequence[list[str]], turns: Sequence[list[str]], max_length: int) -> list[Input]:
        return self._pieces.inputs(histories, turns, max_length)

    def probabilities(self, inputs: Sequence[Input]) -> list[NDArray[np.float32]]:
        """For each input the probability of each of its words."""
        odds = self._odds(self.prepared.module, inputs).cpu().numpy()
        return [row[one.starts] for row, one in zip(odds, inputs, strict=True)]

    def _odds(self, module: Any, inputs: Sequence[Input]) -> Any:
        """The probability of the label at each token: a float32 tensor (inputs, greatest length), 0 at the padding."""
        torch = library("torch", "a term classifier")
        longest = max(len(one.ids) for one in inputs)
        ids = torch.tensor([one.ids + [self.pad] * (longest - len(one.ids)) for one in inputs])
        mask = torch.tensor([[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in inputs])
        where = next(module.parameters()).device
        with torch.inference_mode():
            logits = module(input_ids=ids.to(where), attention_mask=mask.to(where)).logits
            return torch.softmax(logits.float(), dim=2)[:, :, self.relevant] * mask.to(where)


def classifier(folder: Path) -> tuple[Any, Any]:
    """The token classifier of a folder and its tokenizer. Raises InputError where it has no trained head or cannot be read."""
    transformers = library("transformers", "a term classifier")
    with readable(f"the {KIND} at {folder} cannot be read"), silent():
        module, report = transformers.AutoModelForTokenClassification.from_pretrained(folder, output_loading_info=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if missing := sorted(report["missing_keys"]):
        advice = "train_terms makes one (fontes train terms)"
        raise InputError(f"the model at {folder} is no {KIND}: it has no weights for {missing[0]}; {advice}")
    return module, tokenizer


@contextmanager
def silent() -> Iterator[None]:
    """Keeps transformers from reporting weights that a model lacks: those of a new head, or those that our error names."""
    logging = library("transformers", "reading a model").utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with quiet():
            yield
    finally:
        logging.set_verbosity(level)


def relevant_label(config: Any, folder: Path) -> int:
    """The number of the label REL, or of the second of two. Raises InputError where there is neither."""
    labels = {str(name): int(number) for number, name in config.id2label.items()}
    if RELEVANT in labels:
        return labels[RELEVANT]
    if len(labels) == 2:
        return 1
    raise InputError(f"the model at {folder} is no {KIND}: none of its labels ({', '.join(labels)}) is {RELEVANT}")


def positions_of(config: Any) -> int:
    """How many tokens the model can read."""
    return int(getattr(config, "max_position_embeddings", 0) or 512)

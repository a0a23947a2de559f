"""QuReTeC: a token classifier selects terms of the conversation that the turn lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import AnyArray, Float32s, Indices
from ..core.errors import InputError, ParameterError
from ..core.stage import Stage
from ..core.values import Topics
from ..neural.models.base import Pretrained
from ..neural.models.compute import Prepared, padded, prepare_module
from ..neural.models.hub import NO_CODE, library, model_errors, without_warnings
from .terms import history_of, words_of
from .turns import join_texts, utterance, with_texts

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

KIND = "term classifier"
RELEVANT = "REL"  # label of a relevant term in the published checkpoints
THRESHOLD = 0.5
SAMPLE = ("What is throat cancer? Is it treatable? Tell me about lung cancer.", "What are its symptoms?")


@dataclass(frozen=True)
class Input:
    """An input of the classifier.

    Args:
        ids: Token ids.
        starts: Position of the first token of each word of the history.
        dropped: Number of the oldest words of the history that were dropped.
    """

    ids: list[int]
    starts: list[int]
    dropped: int


class Pieces:
    """Subwords of words, which are tokenized one by one, and inputs built from them."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, positions: int) -> None:
        """Start with an empty cache; an input has at most `positions` tokens."""
        self._tokenizer = tokenizer
        self._positions = positions
        self._pieces: dict[str, list[int]] = {}

    def inputs(self, histories: Sequence[list[str]], turns: Sequence[list[str]], max_length: int) -> list[Input]:
        """Build inputs [CLS] history [SEP] turn [SEP] of at most `max_length` tokens, without the oldest words."""
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
        # A very long turn leaves half of the input to the history.
        space = length - 3 - min(len(question), max(length // 2, length - 3 - sum(map(len, pieces))))
        count, used = 0, 0
        for word in reversed(pieces):
            if used + len(word) > space:
                break
            count, used = count + 1, used + len(word)
        recent = pieces[len(pieces) - count :]
        starts = [1]
        for word in recent:
            starts.append(starts[-1] + len(word))
        ids = [first, *(piece for word in recent for piece in word), middle, *question[: length - 3 - used], middle]
        return Input(ids, starts[:-1], len(pieces) - count)


class TermClassifier:
    """A token classifier, its tokenizer and its threshold."""

    def __init__(self, folder: Path, precision: str, device: str) -> None:
        network, tokenizer = classifier(folder)
        self.relevant = relevant_label(network.config, folder)
        self.threshold = getattr(network.config, "term_threshold", THRESHOLD)
        if not isinstance(self.threshold, (int, float)) or not 0 <= self.threshold <= 1:
            raise InputError(f"the {KIND} at {folder} has a threshold of {self.threshold!r}, not from 0 to 1")
        self.padding = int(tokenizer.pad_token_id or 0)
        self._pieces = Pieces(tokenizer, positions_of(network.config))
        sample = self.inputs([words_of(SAMPLE[0] * times) for times in (1, 2, 4)], [words_of(SAMPLE[1])] * 3, 300)
        self.prepared: Prepared = prepare_module(
            network, lambda network: self._odds(network, sample), precision=precision, device=device
        )

    def inputs(self, histories: Sequence[list[str]], turns: Sequence[list[str]], max_length: int) -> list[Input]:
        """See `Pieces.inputs`."""
        return self._pieces.inputs(histories, turns, max_length)

    def probabilities(self, inputs: Sequence[Input]) -> list[Float32s]:
        """Return the probability of each word of each input."""
        odds = self._odds(self.prepared.module, inputs).cpu().numpy()
        return [row[model_input.starts] for row, model_input in zip(odds, inputs, strict=True)]

    def _odds(self, network: Module, inputs: Sequence[Input]) -> Tensor:
        """Return the probability of the label at each token: a float32 tensor (inputs, greatest length), 0 at padding."""
        torch = library("torch", f"a {KIND}")
        ids, mask = padded([model_input.ids for model_input in inputs], self.padding, next(network.parameters()).device)
        with torch.inference_mode():
            logits = network(input_ids=ids, attention_mask=mask).logits
            odds: Tensor = torch.softmax(logits.float(), dim=2)[:, :, self.relevant] * mask
        return odds


@dataclass(frozen=True)
class QuReTeC(Pretrained[TermClassifier], Stage[Topics, Topics], name="quretec"):
    """Adds to each turn the terms of the conversation that it lacks (Voskarides, Li, Ren, Kanoulas and de Rijke, SIGIR 2020).

    The model is a token classifier of transformers with the label REL, from `train_terms` or uva-irlab/quretec on the Hugging
    Face hub. Its input is [CLS] history [SEP] turn [SEP]; it gives each word of the history, at its first subword, a
    probability of relevance. The new text is the raw utterance followed by the relevant words that it lacks, each once, in the
    order of their first occurrence.

    A topic without earlier turns keeps its utterance. The model is loaded on first use, which raises InputError if it is
    missing or not a term classifier.

    Args:
        answers: Earlier turns whose answers belong to the history.
        threshold: Minimum probability of a relevant word; None: the one from training, or 0.5.
        max_length: Maximum tokens of an input; a longer history loses its oldest words.
    """

    kind = KIND
    task = "rewriting"
    unit = "turns"

    answers: int = field(default=0, metadata={"least": 0})
    threshold: float | None = None
    max_length: int = field(default=300, metadata={"least": 8})

    def apply(self, topics: Topics, /) -> Topics:
        terms = self.terms(topics)
        return with_texts(topics, lambda topic: join_texts(utterance(topic), *terms[topic.id]))

    def check(self) -> None:
        super().check()
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ParameterError(f"threshold must be a probability from 0 to 1, not {self.threshold!r}")

    def terms(self, topics: object) -> dict[str, list[str]]:
        """Return the terms added to each topic, by topic id."""
        topics = Topics.of(topics)
        probabilities = self.probabilities(topics)
        threshold = self.used_threshold if any(probabilities.values()) else THRESHOLD
        terms = {}
        for topic_id, words in probabilities.items():
            own_words = {word.lower() for word in words_of(utterance(topics[topic_id]))}
            added: dict[str, str] = {}
            for word, probability in words:
                if probability >= threshold and word.lower() not in own_words and (word[0].isalnum() or word[0] == "_"):
                    added.setdefault(word.lower(), word)
            terms[topic_id] = list(added.values())
        return terms

    def probabilities(self, topics: object) -> dict[str, list[tuple[str, float]]]:
        """Return the words of each topic's history that the model read, in order, with probabilities from 0 to 1."""
        self.check()
        topics = Topics.of(topics)
        histories = {topic.id: history_of(topic, self.answers) for topic in topics.values()}
        with_history = [topic_id for topic_id, words in histories.items() if words]
        probabilities: dict[str, list[tuple[str, float]]] = {topic_id: [] for topic_id in topics}
        if not with_history:
            return probabilities
        model = self._model
        turns = [words_of(utterance(topics[topic_id])) for topic_id in with_history]
        inputs = model.inputs([histories[topic_id] for topic_id in with_history], turns, self.max_length)

        def work(batch: Indices) -> AnyArray:
            rows = np.empty(len(batch), dtype=object)
            rows[:] = model.probabilities([inputs[i] for i in batch])
            return rows

        results = self._in_batches([len(model_input.ids) for model_input in inputs], work)
        for topic_id, model_input, values in zip(with_history, inputs, results, strict=True):
            words = histories[topic_id][model_input.dropped :]
            probabilities[topic_id] = list(zip(words, values.tolist(), strict=True))
        return probabilities

    @property
    def used_threshold(self) -> float:
        """The threshold in use: the parameter if given, else the one from training, else 0.5."""
        return self._model.threshold if self.threshold is None else self.threshold

    def _load(self, folder: Path, device: str) -> TermClassifier:
        return TermClassifier(folder, self.precision, device)


def classifier(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the token classifier of a folder and its tokenizer; raise InputError for a model without a trained head."""
    transformers = library("transformers", f"a {KIND}")
    with model_errors(f"the {KIND} at {folder} cannot be read"), without_warnings():
        network, report = transformers.AutoModelForTokenClassification.from_pretrained(
            folder, output_loading_info=True, **NO_CODE
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
    if missing := sorted(report["missing_keys"]):
        advice = "train_terms makes one (fontes train terms)"
        raise InputError(f"the model at {folder} is no {KIND}: it has no weights for {missing[0]}; {advice}")
    return network, tokenizer


def relevant_label(config: Any, folder: Path) -> int:
    """Return the number of the label REL, or of the second of two labels; raise InputError for other labels."""
    labels = {str(name): int(number) for number, name in config.id2label.items()}
    if RELEVANT in labels:
        return labels[RELEVANT]
    if len(labels) == 2:
        return 1
    raise InputError(f"the model at {folder} is no {KIND}: none of its labels ({', '.join(labels)}) is {RELEVANT}")


def positions_of(config: PreTrainedConfig) -> int:
    """Return the maximum number of tokens of the model."""
    return int(getattr(config, "max_position_embeddings", 0) or 512)

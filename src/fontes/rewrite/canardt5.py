"""A T5 trained on CANARD, which rewrites a turn from the conversation so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import AnyArray, Indices
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..neural.models.base import NAMELESS, Pretrained, token_ids
from ..neural.models.compute import Prepared, padded, prepare_module
from ..neural.models.hub import library, seq2seq
from .statements import statements_of
from .turns import earlier, utterance, with_texts

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase

KIND = "T5 rewriter"
SEPARATOR = " ||| "
SAMPLE = (
    "What is throat cancer? ||| Is it treatable?",
    "Tell me about geysers. ||| A geyser is a hot spring that erupts from time to time. It needs heat, water and a narrow "
    "pipe. ||| Where are they?",
    "Frank Zappa ||| Disbandment ||| What group disbanded ||| Zappa and the Mothers of Invention ||| When did they disband?",
    "How are flights priced? ||| Airlines change the prices of their tickets many times a day. ||| Why? ||| Seats are sold and "
    "the day of departure comes near. ||| When should I book one?",
)


def context_parts(topic: Topic, answers: int, statements: bool = False) -> tuple[str, ...]:
    """Return the non-empty parts of a topic's context: earlier turns, the last `answers` with answers, then its last turn.

    With `statements`, those about the user come first, the best of them last, since long contexts lose their first parts.
    """
    previous = earlier(topic)
    answered = len(previous) - answers
    parts = list(reversed(statements_of(topic))) if statements else []
    for number, turn in enumerate(previous):
        parts += [turn.text, turn.answer if number >= answered else ""]
    return tuple(part.strip() for part in (*parts, utterance(topic)) if part.strip())


def context_ids(tokenizer: PreTrainedTokenizerBase, contexts: Sequence[tuple[str, ...]], max_length: int) -> list[list[int]]:
    """Tokenize contexts, whose last part is the turn, up to `max_length` tokens; the oldest parts are dropped."""
    texts = list(dict.fromkeys(part for parts in contexts for part in parts))
    tokens = dict(zip(texts, token_ids(tokenizer, texts, special=False), strict=True))
    (separator,) = token_ids(tokenizer, [SEPARATOR.strip()], special=False)
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    return [[*_join_newest([tokens[part] for part in parts], separator, max_length - len(end)), *end] for parts in contexts]


class T5:
    """A T5 and its tokenizer."""

    def __init__(self, folder: Path, precision: str, device: str) -> None:
        network, self.tokenizer = seq2seq(folder, KIND)
        self.start = network.config.decoder_start_token_id
        self.padding = int(self.tokenizer.pad_token_id or 0)
        sample = self.inputs([tuple(text.split(SEPARATOR)) for text in SAMPLE], 512)
        self.prepared: Prepared = prepare_module(
            network, lambda network: self._first_logits(network, sample), precision=precision, device=device
        )

    def inputs(self, contexts: Sequence[tuple[str, ...]], max_length: int) -> list[list[int]]:
        """Return the token ids of each context; see `context_ids`."""
        return context_ids(self.tokenizer, contexts, max_length)

    def generate(self, inputs: list[list[int]], num_beams: int, max_new_tokens: int) -> list[str]:
        """Generate rewrites by beam search, in one batch."""
        torch = library("torch", f"a {KIND}")
        network = self.prepared.module
        ids, mask = padded(inputs, self.padding, next(network.parameters()).device)
        with torch.inference_mode():
            outputs = network.generate(
                input_ids=ids,
                attention_mask=mask,
                num_beams=num_beams,
                early_stopping=num_beams > 1,
                do_sample=False,
                max_new_tokens=max_new_tokens,
            )
        texts: list[str] = self.tokenizer.batch_decode(outputs, skip_special_tokens=True, clean_up_tokenization_spaces=True)
        return texts

    def _first_logits(self, network: Module, inputs: list[list[int]]) -> Tensor:
        """Logits of the first token of each rewrite, to compare precisions."""
        torch = library("torch", f"a {KIND}")
        ids, mask = padded(inputs, self.padding, next(network.parameters()).device)
        start = torch.full((len(inputs), 1), self.start, device=ids.device)
        outputs = network(input_ids=ids, attention_mask=mask, decoder_input_ids=start, use_cache=False)
        logits: Tensor = outputs.logits[:, 0]
        return logits


@dataclass(frozen=True)
class CanardT5(Pretrained[T5], Stage[Topics, Topics], name="canard_t5"):
    """Rewrites turns with a T5 trained on CANARD (Lin et al. 2020), as in the baseline of TREC CAsT 2021.

    The model reads the result of `context`. Beyond `max_length`, whole parts are dropped, oldest first; the part just before
    the turn is truncated instead, and so is a turn that is too long by itself. The track's description does not specify this.

    The beam search follows chatty-goose, by the authors of the model: 10 beams, early stopping, 64 tokens including the start
    token. Its preprocessing, spaCy's tokens joined by spaces, is left out, as in the track's description and on the model's
    card. First turns are rewritten too, as in the track; empty turns stay empty, and a turn for which the model writes nothing
    is kept.

    Rewrites depend on the batch only through rounding. The model is loaded on first use, which raises InputError if it is
    missing or not a T5, and MissingExtraError without transformers and torch. `fontes.train.train_rewriter` trains one.

    Args:
        answers: Earlier turns whose answers are in the context.
        num_beams: Beams.
        max_length: Maximum input tokens; longer contexts lose their oldest parts.
        max_new_tokens: Maximum tokens of a rewrite.
        statements: Whether the context begins with the statements about the user (TREC iKAT): those that `statements` has
            chosen, or all. Longer contexts lose them first, the best last. For a model that was trained with them.
    """

    kind = KIND
    task = "rewriting"
    unit = "turns"
    cpu_tokens = 2048  # each context is decoded by several beams
    cuda_tokens = 32_768

    name_or_path: str | Path = field(default="castorini/t5-base-canard", metadata=NAMELESS)
    answers: int = field(default=3, metadata={"least": 0})
    num_beams: int = field(default=10, metadata={"least": 1})
    max_length: int = field(default=512, metadata={"least": 8})
    max_new_tokens: int = field(default=63, metadata={"least": 1})
    statements: bool = False

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        parts = {topic.id: self._parts(topic) for topic in topics.values() if utterance(topic).strip()}
        texts = self._generate(list(dict.fromkeys(parts.values()))) if parts else {}

        def rewrite(topic: Topic) -> str:
            return texts[parts[topic.id]].strip() or utterance(topic) if topic.id in parts else utterance(topic)

        return with_texts(topics, rewrite)

    def context(self, topic: Topic) -> str:
        """Return the model's input for a topic, before truncation.

        It consists of the statements about the user, if the stage reads them, the raw utterances of earlier turns, the last
        `answers` of them followed by their answers, and the topic's own utterance, joined by " ||| ". For a topic without
        turns, the last part is the topic's text.
        """
        self.check()
        return SEPARATOR.join(self._parts(topic))

    def _parts(self, topic: Topic) -> tuple[str, ...]:
        return context_parts(topic, self.answers, self.statements)

    def _load(self, folder: Path, device: str) -> T5:
        return T5(folder, self.precision, device)

    def _generate(self, contexts: list[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
        model = self._model
        inputs = model.inputs(contexts, self.max_length)

        def work(batch: Indices) -> AnyArray:
            texts = np.empty(len(batch), dtype=object)
            texts[:] = model.generate([inputs[i] for i in batch], self.num_beams, self.max_new_tokens)
            return texts

        return dict(zip(contexts, self._in_batches([len(ids) for ids in inputs], work).tolist(), strict=True))


def _join_newest(parts: list[list[int]], separator: list[int], space: int) -> list[int]:
    """Join the newest parts that fit into `space` tokens: always the turn, and at least the start of the part before it."""
    *previous, turn = parts
    tokens = turn[:space]
    for number, part in enumerate(reversed(previous)):
        remaining = space - len(tokens) - len(separator)
        if number == 0:
            part = part[: max(remaining, 0)]
        if not part or len(part) > remaining:
            break
        tokens = [*part, *separator, *tokens]
    return tokens

"""Decoders that transformers runs on this machine: chat templates, seeded sampling, log-probabilities of words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import AnyArray, Float32s, Indices
from ..core.errors import InputError
from ..neural.models.base import NAMELESS, Pretrained, token_ids
from ..neural.models.compute import Prepared, padded, prepare_module
from ..neural.models.hub import NO_CODE, library, model_errors, quiet, tokenizer_in
from .answers import Request
from .prompts import Message
from .service import LlmReply

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module

KIND = "decoder"
MIN_LOGPROB = -1e4  # for a word that a model excludes
SAMPLE = "Which rocks hold the water of springs?", "A geyser is a hot spring. Write the next sentence about it."


class CausalModel:
    """A decoder and its tokenizer."""

    def __init__(self, folder: Path, precision: str, device: str) -> None:
        torch, transformers = library("torch", f"a {KIND}"), library("transformers", f"a {KIND}")
        self._folder = folder
        self.tokenizer = tokenizer_in(folder, f"{folder} cannot be loaded as a {KIND}")
        if not getattr(self.tokenizer, "chat_template", None):
            raise InputError(f"{folder} has no chat template, so it follows no instructions; take a model that was trained to")
        dtype = torch.float32 if precision == "auto" else getattr(torch, precision)
        with model_errors(f"{folder} cannot be loaded as a {KIND}"), quiet():
            network = transformers.AutoModelForCausalLM.from_pretrained(str(folder), dtype=dtype, **NO_CODE)
        end = network.generation_config.eos_token_id
        ends = end if isinstance(end, list) else [end]
        self.stop_tokens = [token_id for token_id in [*ends, self.tokenizer.eos_token_id] if token_id is not None]
        self.padding = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else (self.stop_tokens or [0])[0]
        self.positions = getattr(network.config, "max_position_embeddings", None)
        added = (str(token) for token in self.tokenizer.added_tokens_decoder.values())
        self._marks = [mark for mark in dict.fromkeys([*self.tokenizer.all_special_tokens, *added]) if len(mark.strip()) > 1]
        sample = [self.inputs((("user", text),)) for text in SAMPLE]
        self.prepared: Prepared = prepare_module(
            network, lambda network: self._last_logits(network, sample), precision=precision, device=device
        )

    def inputs(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a prompt in the chat template; marks of the template in texts are broken by spaces."""
        prefix = messages[-1][1] if messages[-1][0] == "assistant" else ""
        turns = [(role, self._break_marks(text)) for role, text in (messages[:-1] if prefix else messages)]
        try:
            text = self._apply_template(turns)
        except Exception as error:  # a template may refuse anything, by any exception
            if turns[0][0] != "system" or len(turns) < 2:
                raise InputError(f"{self._folder}: its chat template refuses the prompt ({error})") from None
            (_, instruction), (role, first), *rest = turns  # some templates have no system role
            text = self._apply_template([(role, f"{instruction}\n\n{first}"), *rest])
        (ids,) = token_ids(self.tokenizer, [text + prefix], special=False)
        return ids

    def generate(self, inputs: list[list[int]], requests: Sequence[Request], seeds: Sequence[int]) -> list[LlmReply]:
        """Generate answers, in one batch; a sample depends on its seed and not on the batch."""
        torch, transformers = library("torch", f"a {KIND}"), library("transformers", f"a {KIND}")
        network = self.prepared.module
        ids, mask = self._padded(inputs)
        sampling = [_Sampling(request.temperature, seed) for request, seed in zip(requests, seeds, strict=True)]
        settings = transformers.GenerationConfig(
            max_new_tokens=max(request.max_tokens for request in requests),
            eos_token_id=self.stop_tokens or None,
            pad_token_id=self.padding,
            do_sample=False,
        )
        with torch.inference_mode():
            outputs = network.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList([_sampler(sampling)]),
            )[:, ids.shape[1] :].tolist()
        replies = []
        for tokens, prompt_tokens, request in zip(outputs, inputs, requests, strict=True):
            ended = next((n for n, token in enumerate(tokens) if token in self.stop_tokens), len(tokens))
            used = min(ended, request.max_tokens)
            text = self.tokenizer.decode(tokens[:used], skip_special_tokens=True)
            finish = "stop" if ended < min(len(tokens), request.max_tokens) else "length"
            replies.append(LlmReply(text, finish, None, (len(prompt_tokens), min(ended + 1, request.max_tokens, len(tokens)))))
        return replies

    def choose(self, inputs: list[list[int]], words: tuple[str, ...]) -> list[LlmReply]:
        """Return the log-probabilities of words as the next token, in float32, in one batch."""
        torch = library("torch", f"a {KIND}")
        first = [token_ids(self.tokenizer, [word], special=False)[0][:1] for word in words]
        numbers = [token for tokens in first for token in tokens]
        if len(set(numbers)) < len(words):
            raise InputError(f"{self._folder}: the words {', '.join(words)} have no different first tokens in its vocabulary")
        with torch.inference_mode():
            values = torch.log_softmax(self._last_logits(self.prepared.module, inputs).float(), dim=1)[:, numbers].tolist()
        return [
            LlmReply(words[int(np.argmax(row))], "stop", _finite(words, row), (len(prompt_tokens), 1))
            for row, prompt_tokens in zip(values, inputs, strict=True)
        ]

    def _last_logits(self, network: Module, inputs: list[list[int]]) -> Tensor:
        """Return the logits of the token after each input."""
        ids, mask = self._padded(inputs, next(network.parameters()).device)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        options = {"logits_to_keep": 1} if "logits_to_keep" in signature(network.forward).parameters else {}
        outputs = network(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, **options)
        logits: Tensor = outputs.logits[:, -1]
        return logits

    def _padded(self, inputs: list[list[int]], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Return token ids and mask, padded on the left, because a decoder continues on the right."""
        reversed_ids, mask = padded([ids[::-1] for ids in inputs], self.padding, device or self.prepared.device)
        return reversed_ids.flip(1), mask.flip(1)

    def _apply_template(self, turns: Sequence[Message]) -> str:
        chat = [{"role": role, "content": text} for role, text in turns]
        text: str = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        return text

    def _break_marks(self, text: str) -> str:
        for mark in self._marks:
            while mark in text:
                text = text.replace(mark, f"{mark[0]} {mark[1:]}")
        return text


@dataclass(frozen=True)
class Decoder(Pretrained[CausalModel]):
    """A decoder of transformers with a chat template.

    Answers depend on the batch only through rounding.
    """

    kind = KIND
    task = "answering"
    unit = "answers"

    name_or_path: str | Path = field(default="", metadata=NAMELESS)

    def answer(
        self,
        requests: Sequence[Request],
        seeds: Sequence[int],
        keep: Callable[[Sequence[int], Sequence[LlmReply]], None],
        admit: Callable[[Sequence[int], Sequence[int]], None],
    ) -> None:
        """Answer requests in batches of similar length.

        Args:
            requests: The requests.
            seeds: Seed of each request, for samples.
            keep: Called with the numbers of a batch's requests and their answers.
            admit: Called before a batch, with the numbers of its requests and the maximum number of tokens of each.
        """
        model = self._model
        inputs = [model.inputs(request.messages) for request in requests]
        answer_lengths = [1 if request.choices else request.max_tokens for request in requests]
        lengths = [len(ids) + length for ids, length in zip(inputs, answer_lengths, strict=True)]
        if model.positions and max(lengths, default=0) > model.positions:
            longest = int(np.argmax(lengths))
            size = len(inputs[longest])
            raise InputError(
                f"{self.name_or_path} reads {model.positions:,} tokens; a prompt has {size:,}, and its answer up to "
                f"{lengths[longest] - size:,}: take fewer words of documents, fewer documents, or a shorter answer"
            )

        def work(batch: Indices) -> AnyArray:
            numbers = batch.tolist()
            admit(numbers, [lengths[n] for n in numbers])
            for choices in dict.fromkeys(requests[n].choices for n in numbers):
                group = [n for n in numbers if requests[n].choices == choices]
                tokens, chosen = [inputs[n] for n in group], [requests[n] for n in group]
                replies = (
                    model.choose(tokens, choices) if choices else model.generate(tokens, chosen, [seeds[n] for n in group])
                )
                keep(group, replies)
            return np.zeros(len(batch))

        self._in_batches(lengths, work)

    def _load(self, folder: Path, device: str) -> CausalModel:
        return CausalModel(folder, self.precision, device)


def _finite(words: Sequence[str], logprobs: Sequence[float]) -> dict[str, float]:
    """Return log-probabilities by word, at least `MIN_LOGPROB`; empty if one is not a number."""
    if any(map(math.isnan, logprobs)):
        return {}
    return {word: max(value, MIN_LOGPROB) for word, value in zip(words, logprobs, strict=True)}


class _Sampling:
    """Noise of one sample: the token with the greatest logit + temperature * Gumbel noise is a draw from the softmax."""

    def __init__(self, temperature: float, seed: int) -> None:
        self._temperature, self._noise = temperature, np.random.default_rng(seed)

    def __call__(self, size: int) -> Float32s:
        if self._temperature <= 0:
            return np.zeros(size, dtype=np.float32)
        return (self._temperature * self._noise.gumbel(size=size)).astype(np.float32)


def _sampler(sampling: Sequence[_Sampling]) -> Callable[[Tensor, Tensor], Tensor]:
    torch = library("torch", f"a {KIND}")

    def add(ids: Tensor, logits: Tensor) -> Tensor:
        noise = np.stack([sample(logits.shape[1]) for sample in sampling])
        noisy: Tensor = logits.float() + torch.from_numpy(noise).to(logits.device)
        return noisy

    return add

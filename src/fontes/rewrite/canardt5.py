"""A T5 that was trained on CANARD: it reads the conversation so far and writes the turn so that it stands by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.progress import Report, silent
from ..core.stage import Stage
from ..core.strings import encodable
from ..core.values import Topic, Topics
from .turns import earlier, rewritten, utterance

if TYPE_CHECKING:
    from ..core.progress import Progress

KIND = "T5 rewriter"
BETWEEN = " ||| "
CPU_TOKENS = 2048  # of a batch of contexts; each is decoded in as many beams
CUDA_TOKENS = 32_768
SAMPLE = (
    "What is throat cancer? ||| Is it treatable?",
    "Tell me about geysers. ||| A geyser is a hot spring that erupts from time to time. It needs heat, water and a narrow "
    "pipe. ||| Where are they?",
    "Frank Zappa ||| Disbandment ||| What group disbanded ||| Zappa and the Mothers of Invention ||| When did they disband?",
    "How are flights priced? ||| Airlines change the prices of their tickets many times a day. ||| Why? ||| Seats are sold and "
    "the day of departure comes near. ||| When should I book one?",
)


@dataclass(frozen=True)
class CanardT5(Stage[Topics, Topics], name="canard_t5"):
    """Topics rewritten by a T5 that was trained on CANARD (Lin et al. 2020), as in the baseline of TREC CAsT 2021.

    name_or_path     a folder, or a name on the Hugging Face hub
    answers          of how many turns before the current one the answers are in the context
    num_beams        of the beam search
    max_length       tokens that the model reads; a longer context loses its oldest parts first
    max_new_tokens   tokens of a rewrite at most
    batch_size       how many contexts of the greatest length are computed at once; of shorter ones more, with the same
                     number of tokens. Default: what is quick on the device
    precision        "auto" (the quickest that agrees with float32), "float32", "bfloat16" or "float16"
    device           "cpu", "cuda", …; None takes a GPU where there is one

    The model reads what `context` gives. Where that is longer than `max_length`, whole parts are left out, the oldest first;
    the part just before the turn is not left out but loses its end, and so does a turn that is too long by itself. The
    track's description does not say what the organisers did there: this is our choice.

    The beam search is that of chatty-goose, by the authors of the model: 10 beams, ended early, 64 tokens, of which the first
    is the start. What chatty-goose does to the text before, spaCy's tokens with spaces between, is left out, as in the track's
    description and on the model's card. First turns are rewritten too, as in the track's own rewrites; an empty turn stays
    empty, and one for which the model writes nothing stays as it was.

    What else is in a batch changes the probabilities of words by rounding alone, so a rewrite differs only where two beams
    are as good as equal. The model is loaded when it is first used. Raises InputError for a model that is not there or is no
    T5, MissingExtraError without transformers and torch.
    """

    name_or_path: str = "castorini/t5-base-canard"
    answers: int = 3
    num_beams: int = 10
    max_length: int = 512
    max_new_tokens: int = 63
    batch_size: int | None = None
    precision: str = field(default="auto", repr=False)
    device: str | None = field(default=None, repr=False)

    def apply(self, given: Topics, progress: Report, /) -> Topics:
        return self.rewrite(given)

    def rewrite(self, given: object, progress: Callable[[Progress], None] | None = None) -> Topics:
        """The stage, with a report: `progress` is called after each batch with a `Progress`, whose documents are contexts."""
        self._check()
        topics = Topics.of(given)
        parts = {topic.id: self._parts(topic) for topic in topics.values() if utterance(topic).strip()}
        texts = self._generated(list(dict.fromkeys(parts.values())), progress) if parts else {}

        def text(topic: Topic) -> str:
            return texts[parts[topic.id]].strip() or utterance(topic) if topic.id in parts else utterance(topic)

        return rewritten(topics, text)

    def context(self, topic: Topic) -> str:
        """What the model reads for a topic, before anything is left out.

        The raw utterances of all earlier turns, each of the last `answers` followed by its answer where it has one, then
        the topic's own utterance, joined by " ||| ". Of a topic without turns, its text.
        """
        self._check()
        return BETWEEN.join(self._parts(topic))

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the model's content and of all that changes what it reads and writes."""
        from ..neural.models.hub import fingerprint, located

        facts = {
            "model": fingerprint(located(self.name_or_path, KIND)),
            "settings": [self.answers, self.num_beams, self.max_length, self.max_new_tokens],
        }
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()

    def key(self) -> str | None:
        """The class, the fingerprint and the precision: see `Stage.key`."""
        return f"{type(self).__module__}.{type(self).__qualname__}({self.fingerprint}, {self.precision})"

    @property
    def chosen_precision(self) -> str:
        """The precision that the model runs in, and what the calibration found. Loads the model."""
        return str(self._model.prepared.precision)

    def _parts(self, topic: Topic) -> tuple[str, ...]:
        before = earlier(topic)
        answered = len(before) - self.answers
        parts = []
        for number, turn in enumerate(before):
            parts += [turn.text, turn.answer if number >= answered else ""]
        return tuple(part.strip() for part in (*parts, utterance(topic)) if part.strip())

    def _generated(
        self, contexts: list[tuple[str, ...]], progress: Callable[[Progress], None] | None
    ) -> dict[tuple[str, ...], str]:
        from ..neural.models.compute import batch_tokens, in_batches

        model = self._model
        inputs = model.inputs(contexts, self.max_length)
        lengths = [len(ids) for ids in inputs]
        wanted = self.batch_size and self.batch_size * max(lengths)
        tokens = batch_tokens(wanted or (CPU_TOKENS if model.prepared.device == "cpu" else CUDA_TOKENS), model.prepared.device)

        def work(batch: NDArray[np.intp]) -> NDArray[Any]:
            written = np.empty(len(batch), dtype=object)
            written[:] = model.generated([inputs[i] for i in batch], self.num_beams, self.max_new_tokens)
            return written

        return dict(zip(contexts, in_batches(lengths, tokens, work, progress or silent).tolist(), strict=True))

    @property
    def _model(self) -> _Model:
        from ..neural.models.hub import device, fingerprint, loaded, located

        folder = located(self.name_or_path, KIND)
        where = device(self.device)
        return loaded((KIND, folder, fingerprint(folder), self.precision, where), lambda: _Model(folder, self.precision, where))

    def _check(self) -> None:
        for name, least in (("answers", 0), ("num_beams", 1), ("max_length", 8), ("max_new_tokens", 1), ("batch_size", 1)):
            if name != "batch_size" or self.batch_size is not None:
                check_whole(name, getattr(self, name), least)


class _Model:
    """A T5 and its tokenizer."""

    def __init__(self, folder: Path, precision: str, where: str) -> None:
        from ..neural.models.compute import Prepared, prepared
        from ..neural.models.hub import seq2seq

        model, self.tokenizer = seq2seq(folder, KIND)
        self.start = model.config.decoder_start_token_id
        self.pad = int(self.tokenizer.pad_token_id or 0)
        sample = self.inputs([tuple(text.split(BETWEEN)) for text in SAMPLE], 512)
        self.prepared: Prepared = prepared(
            model, lambda module: self._first_logits(module, sample), precision=precision, device=where
        )

    def inputs(self, contexts: Sequence[tuple[str, ...]], max_length: int) -> list[list[int]]:
        """The tokens of each context, whose last part is the turn, without the oldest parts where they are too many."""
        texts = list(dict.fromkeys(part for parts in contexts for part in parts))
        tokens = dict(zip(texts, self._ids(texts), strict=True))
        (between,) = self._ids([BETWEEN.strip()])
        end = [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]
        return [[*_fitting([tokens[part] for part in parts], between, max_length - len(end)), *end] for parts in contexts]

    def generated(self, inputs: list[list[int]], num_beams: int, max_new_tokens: int) -> list[str]:
        """What the model writes for each input, found by beam search in one batch."""
        from ..neural.models.hub import library

        torch = library("torch", f"a {KIND}")
        ids, mask = self._batch(inputs, self.prepared.module)
        with torch.inference_mode():
            found = self.prepared.module.generate(
                input_ids=ids,
                attention_mask=mask,
                num_beams=num_beams,
                early_stopping=num_beams > 1,
                do_sample=False,
                max_new_tokens=max_new_tokens,
            )
        texts: list[str] = self.tokenizer.batch_decode(found, skip_special_tokens=True, clean_up_tokenization_spaces=True)
        return texts

    def _first_logits(self, module: Any, inputs: list[list[int]]) -> Any:
        """The logits of the first word of each rewrite, by which precisions are compared."""
        from ..neural.models.hub import library

        torch = library("torch", f"a {KIND}")
        ids, mask = self._batch(inputs, module)
        start = torch.full((len(inputs), 1), self.start, device=ids.device)
        return module(input_ids=ids, attention_mask=mask, decoder_input_ids=start, use_cache=False).logits[:, 0]

    def _batch(self, inputs: list[list[int]], module: Any) -> tuple[Any, Any]:
        from ..neural.models.hub import library

        torch = library("torch", f"a {KIND}")
        longest = max(map(len, inputs))
        where = next(module.parameters()).device
        ids = torch.tensor([one + [self.pad] * (longest - len(one)) for one in inputs], device=where)
        mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in inputs], device=where)
        return ids, mask

    def _ids(self, texts: list[str]) -> list[list[int]]:
        readable = list(map(encodable, texts))
        ids: list[list[int]] = self.tokenizer(readable, add_special_tokens=False, verbose=False)["input_ids"]
        return ids


def _fitting(parts: list[list[int]], between: list[int], space: int) -> list[int]:
    """The tokens of the newest parts that fit into `space`; the last part, the turn, always, and all or the start of the one
    before it.
    """
    *before, turn = parts
    kept = turn[:space]
    for number, part in enumerate(reversed(before)):
        left = space - len(kept) - len(between)
        if number == 0:
            part = part[: max(left, 0)]
        if not part or len(part) > left:
            break
        kept = [*part, *between, *kept]
    return kept

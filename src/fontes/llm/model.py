"""`Model`: access to language models, with stored answers, replays and a count of tokens."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..core.errors import FontesError, InputError, MissingExtraError, ParameterError
from ..core.expression import part
from ..core.part import Part
from ..core.strings import encodable
from ..core.work import Progress, reported_as, reporter, resources, silent, work
from ..neural.models.base import check_fields
from ..neural.models.compute import PRECISIONS
from ..storage.threads import pool_of
from .answers import AnswerFile, Request, StoredAnswer, now, request_digest
from .service import TOP_LOGPROBS, LlmReply, LlmService, UnsettledError, service, variables

if TYPE_CHECKING:
    from .local import Decoder

logger = logging.getLogger("fontes.llm")
T = TypeVar("T")

LOCAL = "local:"
MESSAGE_TOKENS = 16  # maximum number of tokens that a chat template adds to a message, and to the prompt
LIMIT_PARAMETERS = ("max_tokens", "max_completion_tokens")  # parameters that limit the length of an answer
MAX_REPORTS = 10  # progress reports per second


@dataclass(frozen=True)
class Model(Part, name="llm"):
    """A language model, reached at a service with the OpenAI-compatible protocol or run on this machine by transformers.

    Every answer is stored in `answers.sqlite` in the user's cache folder, under the SHA-256 of service, model, parameters,
    sample and prompt, and is never requested again. `work(replay=True)` uses only stored answers, and `work(tokens=…)` limits
    the tokens of new ones.

    Address and key of a service come from the environment: for the service "openai" from OPENAI_BASE_URL and OPENAI_API_KEY,
    for another service from variables that begin with its name in capitals. Default addresses exist for "openai", and for
    "ollama", "vllm" and "llamacpp" on this machine.

    Args:
        name_or_path: Name of the model at the service; or "local:" and a folder, or a name on the hub.
        service: Name of the service, in lower case.
        parameters: Further request parameters, such as {"reasoning_effort": "low"}; None removes one. Not for a local
            model.
        seed: Seed of the samples of a local model.
        max_concurrency: Maximum number of simultaneous requests to the service.
        timeout: Seconds to wait for an answer of the service.
        retries: Number of further tries after a rate limit or a failure of the server.
        batch_size: Number of prompts of maximum length in a batch of a local model. None: a fast size.
        precision: Precision of a local model, as in `SentenceEncoder`.
        device: Device of a local model; None takes a GPU if there is one.
    """

    keeps_answers: ClassVar[bool] = True

    name_or_path: str
    service: str = "openai"
    parameters: Mapping[str, object] = field(default_factory=dict, kw_only=True)
    seed: int = field(default=0, kw_only=True, metadata={"least": 0})
    max_concurrency: int = field(default=8, repr=False, kw_only=True, metadata={"least": 1})
    timeout: float = field(default=120.0, repr=False, kw_only=True)
    retries: int = field(default=6, repr=False, kw_only=True, metadata={"least": 0})
    batch_size: int | None = field(default=None, repr=False, kw_only=True, metadata={"least": 1})
    precision: str = field(default="auto", kw_only=True, metadata={"choices": PRECISIONS})
    device: str | None = field(default=None, repr=False, kw_only=True)

    @property
    def is_local(self) -> bool:
        """Whether the model runs on this machine."""
        return self.name_or_path.startswith(LOCAL)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights of a local model; service and name of any other model."""
        return " ".join(self._identity)

    def key(self) -> str | None:
        settings = (dict(self.parameters), self.seed, self.precision if self.is_local else "")
        return f"{type(self).__module__}.{type(self).__qualname__}({self.fingerprint}, {settings})"

    def check(self) -> None:
        if not isinstance(self.name_or_path, str) or not self.name_or_path.removeprefix(LOCAL).strip():
            raise ParameterError(
                f"a model is named by a text, such as 'gpt-4o-mini' or 'local:FOLDER', not {self.name_or_path!r}"
            )
        check_fields(self)
        variables(self.service)
        if not isinstance(self.timeout, Real) or not 0 < self.timeout < math.inf:
            raise ParameterError(f"timeout is a number of seconds above 0, not {self.timeout!r}")
        if self.is_local and (self.parameters or self.service != "openai"):
            raise ParameterError("service and parameters are of a model at a service, not of a local one")
        try:
            json.dumps(dict(self.parameters), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"parameters are values that JSON has, with finite numbers ({error})") from None
        super().check()

    def check_needs(self) -> None:
        if self.is_local:
            self._decoder.check_needs()
        elif find_spec("openai") is None and not resources().replay:
            raise MissingExtraError.of("openai", "llm", f"the model {self.name_or_path}")

    def ask(self, requests: Sequence[Request]) -> list[StoredAnswer]:
        """Return the answer to each request, from the file of answers or the model; new answers are stored as they arrive.

        Args:
            requests: The requests; equal ones are sent once.

        Raises:
            InputError: Answers are missing within `work(replay=True)`, or they cannot be stored.
            FontesError: The service refuses or fails, or the budget of tokens is used up; earlier answers are stored.
        """
        self.check()
        file = resources().answers or AnswerFile()
        clean = [_encodable(request) for request in requests]
        sums = [self.digest(request) for request in clean]
        by_sum = dict(zip(sums, clean, strict=True))
        answers = file.read(by_sum)
        missing = [digest for digest in by_sum if digest not in answers]
        if missing and resources().replay:
            raise InputError(
                f"{len(missing):,} of {len(by_sum):,} answers of {self!r} are not stored, and a replay asks no model; run it "
                "once without replay, or get the answers: fontes llm import PACK"
            )
        if missing:
            collector = _AnswerCollector(self, file, {digest: by_sum[digest] for digest in missing}, len(by_sum))
            collector.ask_decoder() if self.is_local else collector.ask_service()
            answers |= collector.answers
        return [answers[digest] for digest in sums]

    def digest(self, request: Request) -> str:
        """Return the SHA-256 under which the answer to a request is stored."""
        service, model = self._identity
        return request_digest(service, model, self.parameters_of(request), request.sample, request.messages)

    def parameters_of(self, request: Request) -> dict[str, Any]:
        """Return the parameters of a request, which for a service are those of the protocol."""
        if self.is_local:
            common: dict[str, object] = {"precision": self.precision}
            if request.choices:
                return {**common, "choices": list(request.choices)}
            sampling = {"temperature": request.temperature, "seed": self.seed} if request.temperature > 0 else {}
            return {**common, "max_tokens": request.max_tokens, **sampling}
        defaults: dict[str, object] = {"max_tokens": request.max_tokens, "temperature": request.temperature}
        if request.choices:
            defaults = {"max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return {name: value for name, value in {**defaults, **self.parameters}.items() if value is not None}

    @cached_property
    def _decoder(self) -> Decoder:
        from .local import Decoder

        folder = self.name_or_path.removeprefix(LOCAL)
        return Decoder(folder, batch_size=self.batch_size, precision=self.precision, device=self.device)

    @property
    def _identity(self) -> tuple[str, str]:
        return ("local", self._decoder.fingerprint) if self.is_local else (self.service, self.name_or_path)


class _AnswerCollector:
    """Collects the missing answers of a call of `Model.ask`.

    Args:
        model: The model.
        file: File in which answers are stored.
        requests: The requests without stored answers, by the SHA-256 of their answers.
        total: Number of all requests.
    """

    def __init__(self, model: Model, file: AnswerFile, requests: Mapping[str, Request], total: int) -> None:
        self._model, self._file, self._requests, self._report = model, file, requests, reporter()
        self._service, self._name = model._identity
        self._budget = resources().budget
        self._total, self._stored_before = total, total - len(requests)
        self._start, self._reported, self._tokens = time.perf_counter(), 0.0, 0
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._unwritten: dict[str, StoredAnswer] = {}
        self.answers: dict[str, StoredAnswer] = {}

    def ask_service(self) -> None:
        """Send several requests to the service at a time; after an error, wait for the calls in progress, and raise it."""
        client = service(self._service, self._name, self._model.timeout, self._model.retries)
        stopped = threading.Event()
        with pool_of(min(self._model.max_concurrency, len(self._requests))) as pool:
            calls = [pool.submit(self._call, client, request, stopped) for request in self._requests]
            try:
                done, _ = wait(calls, return_when=FIRST_EXCEPTION)
            finally:
                stopped.set()
                for call in calls:
                    call.cancel()
        for call in calls:
            if call in done:
                call.result()

    def ask_decoder(self) -> None:
        """Run the decoder on this machine."""
        sums, requests = list(self._requests), list(self._requests.values())
        reserved: dict[int, int] = {}

        def admit(numbers: Sequence[int], tokens: Sequence[int]) -> None:
            new = {number: count for number, count in zip(numbers, tokens, strict=True) if number not in reserved}
            self._reserve(sum(new.values()))
            reserved.update(new)

        def keep(numbers: Sequence[int], replies: Sequence[LlmReply]) -> None:
            self._keep({sums[n]: (reply, reserved.pop(n)) for n, reply in zip(numbers, replies, strict=True)})

        try:
            with work(progress=silent):
                self._model._decoder.answer(requests, [int(digest[:15], 16) for digest in sums], keep, admit)
        finally:
            self._settle(sum(reserved.values()), 0)

    def _call(self, client: LlmService, digest: str, stopped: threading.Event) -> None:
        request = self._requests[digest]
        parameters = self._model.parameters_of(request)
        max_tokens = self._max_tokens(request, parameters)
        self._reserve(max_tokens)
        try:
            reply = client.ask(request, parameters, stopped)
        except FontesError as error:
            self._settle(max_tokens, max_tokens if isinstance(error, UnsettledError) else 0)
            raise
        except BaseException:
            self._settle(max_tokens, max_tokens)
            raise
        self._keep({digest: (reply, max_tokens)})

    def _max_tokens(self, request: Request, parameters: Mapping[str, Any]) -> int:
        """Return the maximum number of tokens of a call: a token has at least one byte."""
        answer_limit = next((parameters[name] for name in LIMIT_PARAMETERS if name in parameters), None)
        if answer_limit is None:
            if self._budget is not None:
                raise ParameterError("a budget of tokens needs a limit of the answer: the parameter max_tokens is taken away")
            return 0
        return sum(len(text.encode()) + MESSAGE_TOKENS for _, text in request.messages) + MESSAGE_TOKENS + int(answer_limit)

    def _reserve(self, tokens: int) -> None:
        if self._budget is not None and not self._budget.reserve(tokens):
            raise FontesError(
                f"the budget of {self._budget.limit:,} tokens leaves {self._budget.left():,}, and a call may take {tokens:,}: "
                f"{len(self.answers):,} answers arrived and are stored; go on with another budget"
            )

    def _settle(self, reserved: int, used: int) -> None:
        if self._budget is not None:
            self._budget.settle(reserved, used)

    def _keep(self, replies: Mapping[str, tuple[LlmReply, int]]) -> None:
        """Store answers on disk, count their tokens, and report progress."""
        for reply, max_tokens in replies.values():
            self._settle(max_tokens, max_tokens if reply.tokens is None else sum(reply.tokens))
        arrived = {digest: self._answer_of(self._requests[digest], reply) for digest, (reply, _) in replies.items()}
        with self._lock:
            self._unwritten |= arrived
        with self._writing:  # answers that arrive while another thread writes are written in one batch
            with self._lock:
                batch, self._unwritten = self._unwritten, {}
            try:
                self._file.write(batch.values())
            except BaseException:
                with self._lock:
                    self._unwritten = batch | self._unwritten  # the next call that ends writes them
                raise
        for digest, (reply, _) in replies.items():
            logger.debug("%s was asked:\n%s\nand answered:\n%s", self._name, _as_text(self._requests[digest]), reply.text)
        with self._lock:
            self.answers |= arrived
            self._tokens += sum(sum(reply.tokens or ()) for reply, _ in replies.values())
            done, seconds = len(self.answers), time.perf_counter() - self._start
            if done < len(self._requests) and seconds - self._reported < 1 / MAX_REPORTS:
                return
            self._reported = seconds
            note = f"{self._tokens:,} tokens, {self._tokens / max(seconds, 1e-9):,.0f} a second"
            self._report(
                Progress(
                    "asking", self._stored_before + done, self._total, seconds, "answers", before=self._stored_before, note=note
                )
            )

    def _answer_of(self, request: Request, reply: LlmReply) -> StoredAnswer:
        prompt, completion = reply.tokens or (0, 0)
        return StoredAnswer(
            service=self._service,
            model=self._name,
            parameters=self._model.parameters_of(request),
            sample=request.sample,
            messages=request.messages,
            text=reply.text,
            finish=reply.finish,
            choices=dict(reply.choices or {}),
            prompt_tokens=prompt,
            completion_tokens=completion,
            time=now(),
        )


Dialogue = Generator[Request, StoredAnswer, T]


def model_of(text: str) -> Model:
    """Return the model of a command's option: a name, "local:FOLDER", or an expression, "llm(…)".

    Raises:
        ParameterError: The text is not a model.
    """
    model = part(text) if text.startswith("llm(") else Model(text)
    if not isinstance(model, Model):
        raise ParameterError(f"'{text}' is no language model; write a name, local:FOLDER, or llm(…)")
    return model


def run_dialogues(model: Model, dialogues: Sequence[Dialogue[T]]) -> list[T]:
    """Run generators that yield requests and receive their answers; all requests that wait are sent in one call.

    Args:
        model: The model.
        dialogues: Generators that yield a `Request`, receive a `StoredAnswer`, and return a result.

    Returns:
        The result of each generator.
    """
    results: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(dialogues)))
    start = time.perf_counter()
    while answers:
        waiting: dict[int, Request] = {}
        for number, answer in answers.items():
            try:
                waiting[number] = dialogues[number].send(answer)
            except StopIteration as ended:
                results[number] = ended.value
        with reported_as(partial(_of_topics, len(results), len(dialogues), start)):
            answers = dict(zip(waiting, model.ask(list(waiting.values())), strict=True))
    return [results[number] for number in range(len(dialogues))]


def _of_topics(done: int, total: int, start: float, part: Progress) -> Progress:
    return Progress("asking", done, total, time.perf_counter() - start, "topics", note=f"{part.done:,} answers, {part.note}")


def _encodable(request: Request) -> Request:
    """Return a request whose texts can be encoded in UTF-8."""
    return replace(request, messages=tuple((role, encodable(text)) for role, text in request.messages))


def _as_text(request: Request) -> str:
    return "\n".join(f"[{role}] {text}" for role, text in request.messages)

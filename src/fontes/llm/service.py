"""Services that speak the OpenAI-compatible protocol: vLLM, llama.cpp, Ollama, OpenAI and others."""

from __future__ import annotations

import json
import logging
import math
import os
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ..core.errors import FontesError, InputError, MissingExtraError, ParameterError
from .answers import Request

if TYPE_CHECKING:
    from openai import APIStatusError

logger = logging.getLogger("fontes.llm")

ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "llamacpp": "http://localhost:8080/v1",
}
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
KEY_MASK = "[key]"
FIRST_WAIT, MAX_WAIT = 0.5, 60.0  # seconds before another try
MAX_PAUSE = 600.0  # seconds; it is an error if a service demands a longer pause
TOP_LOGPROBS = 20  # number of tokens whose log-probabilities are requested
ABSENT_LOGPROB = -20.0  # log-probability of a choice that is not among these tokens
RETRY_STATUSES = (408, 409, 425, 429)  # worth another try, as are 500 and above


@dataclass(frozen=True)
class LlmReply:
    """The answer to a request.

    Args:
        text: The text.
        finish: "stop", or "length" if it was cut.
        choices: Log-probabilities of the request's choices; empty if none of them is among the most probable tokens.
        tokens: Tokens of the prompt and of the answer; None if the service did not say.
    """

    text: str
    finish: str = "stop"
    choices: Mapping[str, float] | None = None
    tokens: tuple[int, int] | None = None


class UnsettledError(FontesError):
    """A failed call for which the service may nevertheless have counted tokens."""


def variables(service: str) -> tuple[str, str]:
    """Return the variables of the environment with the address and the key of a service.

    Raises:
        ParameterError: The name of the service is not allowed.
    """
    if not NAME.fullmatch(service):
        raise ParameterError(f"a service is named by small letters, digits and _, such as openai or ollama, not {service!r}")
    return f"{service.upper()}_BASE_URL", f"{service.upper()}_API_KEY"


def service(name: str, model: str, timeout: float, retries: int) -> LlmService:
    """Return a client of a service; the clients used last are cached."""
    return _cached_service(name, model, timeout, retries, *(os.environ.get(variable) for variable in variables(name)))


@lru_cache(8)
def _cached_service(name: str, model: str, timeout: float, retries: int, *environment: str | None) -> LlmService:
    return LlmService(name, model, timeout, retries)


class LlmService:
    """A client of a service. Address and key come only from the environment; neither is shown, stored or logged.

    Args:
        name: Name of the service.
        model: Name of the model there.
        timeout: Seconds to wait for an answer.
        retries: Number of further tries after a temporary failure.

    Raises:
        InputError: The environment has no address or no key.
        MissingExtraError: The package openai is not installed.
    """

    def __init__(self, name: str, model: str, timeout: float, retries: int) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError.of("openai", "llm", f"the model {model}") from None
        self._openai, self.name, self.model, self._retries = openai, name, model, retries
        address, key = variables(name)
        url = os.environ.get(address) or ADDRESSES.get(name, "")
        self._key = os.environ.get(key, "").strip()
        if not url:
            raise InputError(f"the service {name} has no address: set {address} in the environment, such as https://HOST/v1")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise InputError(
                f"{address} in the environment is no address such as https://HOST/v1, without a name and a password"
            )
        if not self._key and url == ADDRESSES["openai"]:
            raise InputError(f"the service {name} needs a key: set {key} in the environment")
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._client = openai.OpenAI(
            api_key=self._key or "none", base_url=url, timeout=timeout, max_retries=0, organization="", project=""
        )
        self._resume = 0.0  # time at which a service that demanded a pause may be called again, by time.monotonic()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"the model {self.model} of the service {self.name}"

    def ask(self, request: Request, parameters: Mapping[str, Any], stopped: threading.Event) -> LlmReply:
        """Return the answer to a request, trying again after temporary failures.

        Args:
            request: The request.
            parameters: Parameters of the protocol.
            stopped: Event that ends the wait for another try.

        Raises:
            FontesError: The service refuses, or each try fails.
        """
        messages = [{"role": role, "content": text} for role, text in request.messages]
        if messages[-1]["role"] == "assistant":  # the beginning of a local model's answer, which few services support
            messages.pop()
        body = {"model": self.model, "messages": messages, **parameters}
        problem, unsettled, (address, _) = "", False, variables(self.name)
        for attempt in range(self._retries + 1):
            self._wait(attempt, stopped)
            try:
                response = self._client.chat.completions.with_raw_response.create(**body)
                return self._reply(response.http_response.content, request)
            except self._openai.APIStatusError as error:
                problem = f"{error.status_code} {self._without_key(_error_message(error))}"
                if error.status_code not in RETRY_STATUSES and error.status_code < 500:
                    raise FontesError(f"{self} refuses: {problem}{self._remedy(error.status_code)}") from None
                self._pause(error.response.headers)
            except self._openai.APITimeoutError:
                problem, unsettled = "no answer in time; a larger timeout may help", True
            except self._openai.APIConnectionError as error:
                cause = self._without_key(_root_cause(error))
                problem = f"no connection to {self._host} ({cause}); see that it runs there, or set {address}"
            except self._openai.OpenAIError as error:
                problem = self._without_key(f"{type(error).__name__}: {error}")
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
                problem, unsettled = "what it sends is no answer of the protocol", True
            logger.debug("%s, try %d: %s", self, attempt + 1, problem)
        kind = UnsettledError if unsettled else FontesError
        raise kind(f"{self} gives no answer in {self._retries + 1} tries: {problem}; the answers before it are stored")

    def _reply(self, content: bytes, request: Request) -> LlmReply:
        value = json.loads(content)
        choice = value["choices"][0]
        text = choice["message"].get("content") or ""
        if not isinstance(text, str):
            raise TypeError
        usage = value.get("usage") or {}
        counts: list[Any] = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        is_counted = all(type(count) is int and 0 <= count < 1 << 40 for count in counts)
        probabilities = _probabilities(choice, request.choices) if request.choices else None
        finish = "length" if choice.get("finish_reason") == "length" else "stop"
        return LlmReply(self._without_key(text), finish, probabilities, (counts[0], counts[1]) if is_counted else None)

    def _wait(self, attempt: int, stopped: threading.Event) -> None:
        """Wait before a try: with jitter after a failure, and at least as long as the service demands."""
        seconds = 0.0 if attempt == 0 else min(MAX_WAIT, FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
        with self._lock:
            seconds = max(seconds, self._resume - time.monotonic())
        if seconds > 0 and stopped.wait(seconds):
            raise FontesError(f"{self} is not asked again: another call failed")

    def _pause(self, headers: Mapping[str, str]) -> None:
        """Make all calls wait as long as Retry-After demands."""
        seconds = _retry_seconds(headers.get("retry-after"))
        if seconds > MAX_PAUSE:
            raise FontesError(
                f"{self} wants a pause of {seconds:,.0f} seconds; run it again then: the answers before it are stored"
            )
        with self._lock:
            self._resume = max(self._resume, time.monotonic() + seconds * random.uniform(1.0, 1.1))

    def _remedy(self, status: int) -> str:
        address, key = variables(self.name)
        if status in (401, 403):
            return f"; set {key} in the environment to a key of this service"
        return f"; see that it has this model, and that {address} is right ({self._host})" if status == 404 else ""

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, KEY_MASK) if self._key else text


def _root_cause(error: BaseException) -> str:
    """Return the first cause of an error, shortened."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(getattr(error, "strerror", None) or error or type(error).__name__)[:200]


def _error_message(error: APIStatusError) -> str:
    """Return the message of an error of the service, shortened."""
    body = error.body.get("error", error.body) if isinstance(error.body, dict) else None
    message = body.get("message") if isinstance(body, dict) else None
    return str(message or error.response.reason_phrase or "")[:400]


def _retry_seconds(value: str | None) -> float:
    """Return the seconds of a header Retry-After, which is a number or a date."""
    try:
        seconds = float(value or 0)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _probabilities(choice: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, float]:
    """Return the log-probability of each word as the first token of the answer, in any case; empty if no word is a token."""
    tokens = ((choice.get("logprobs") or {}).get("content") or [{}])[0].get("top_logprobs") or []
    values: dict[str, float] = {}
    for token in tokens[:TOP_LOGPROBS]:
        word, value = str(token["token"]).strip().lower(), float(token["logprob"])
        if word in words and math.isfinite(value):
            values[word] = min(0.0, float(np.logaddexp(values.get(word, -math.inf), min(0.0, value))))
    return {word: values.get(word, ABSENT_LOGPROB) for word in words} if values else {}

"""Stored answers of language models, by the SHA-256 of their requests; and packs of answers to share."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..core.errors import InputError
from ..storage.caches import cache_folder
from ..storage.files import reading, write
from ..storage.hashes import hash_json
from ..storage.keyed import KeyedFile
from .prompts import Message

LAYOUT_VERSION = 1
PACK_BATCH = 500  # answers of a pack that are stored together
THOUGHTS = re.compile(r"\s*<think>.*?(</think>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """A request to a model.

    Args:
        messages: The prompt.
        max_tokens: Maximum number of tokens of the answer.
        temperature: 0 for the most probable answer, above 0 to sample.
        sample: Number of the sample, from 0, which tells samples of one prompt apart.
        choices: Words between which the model chooses; if any, the answer has their log-probabilities.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0
    sample: int = 0
    choices: tuple[str, ...] = ()


class StoredAnswer(BaseModel):
    """An answer as it is stored and shared, with everything from which its SHA-256 is computed.

    Attributes:
        service: Name of the service, or "local".
        model: Name of the model; for "local", the fingerprint of its weights.
        parameters: Parameters of the request.
        sample: Number of the sample.
        messages: The prompt: roles and texts.
        text: The answer.
        finish: Why the answer ended: "stop", or "length" if it was cut.
        choices: Log-probabilities of the choices; empty for an answer in words.
        prompt_tokens: Tokens of the prompt; 0 if the service did not say.
        completion_tokens: Tokens of the answer.
        time: Seconds since 1970, in UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: str
    model: str
    parameters: dict[str, Any]
    sample: int
    messages: tuple[tuple[str, str], ...]
    text: str
    finish: str = "stop"
    choices: dict[str, float] = {}
    prompt_tokens: int = 0
    completion_tokens: int = 0
    time: int = 0

    @property
    def sum(self) -> str:
        """SHA-256 of the model and the request, under which the answer is stored."""
        return sum_of(self.service, self.model, self.parameters, self.sample, self.messages)

    @property
    def final_text(self) -> str:
        """The answer without the thoughts that a reasoning model writes before it."""
        return THOUGHTS.sub("", self.text, count=1).strip()


def sum_of(service: str, model: str, parameters: Mapping[str, Any], sample: int, messages: Sequence[Message]) -> str:
    """Return the SHA-256 of a request to a model."""
    return hash_json([LAYOUT_VERSION, service, model, dict(parameters), sample, [list(message) for message in messages]])


@dataclass(frozen=True)
class AnswerFile:
    """The file of stored answers. Answers are never removed.

    Args:
        path: Path of the file; by default `answers.sqlite` in the user's cache folder.
    """

    name: ClassVar[str] = "answers.sqlite"

    path: Path = field(default_factory=lambda: cache_folder() / AnswerFile.name)

    def read(self, sums: Iterable[str]) -> dict[str, StoredAnswer]:
        """Return the stored answers by SHA-256, without those that are missing."""
        keys = [bytes.fromhex(digest) for digest in dict.fromkeys(sums)]
        if not keys or not self.path.exists():
            return {}
        return {key.hex(): _decode_answer(value) for key, value in self._file.values(keys).items()}

    def write(self, answers: Iterable[StoredAnswer]) -> None:
        """Store answers; they are on disk when this returns.

        Raises:
            InputError: The file cannot be written.
        """
        values = {bytes.fromhex(answer.sum): zlib.compress(answer.model_dump_json().encode(), 1) for answer in answers}
        if values:
            self._file.store(values)

    def all(self) -> Iterator[StoredAnswer]:
        """Yield all answers."""
        return (_decode_answer(value) for _, value in self._file.items())

    @property
    def _file(self) -> KeyedFile:
        return KeyedFile(self.path, noun="answers of language models", needed=True)


def _decode_answer(value: bytes) -> StoredAnswer:
    return StoredAnswer.model_validate_json(zlib.decompress(value))


def write_pack(answers: Iterable[StoredAnswer], path: str | Path) -> int:
    """Write answers to a file of JSON lines, compressed for .gz, and return their number; equal answers give equal bytes.

    Raises:
        InputError: The file cannot be written.
    """
    ordered = sorted(answers, key=lambda answer: answer.sum)
    write(path, ((answer.model_dump_json() + "\n").encode() for answer in ordered))
    return len(ordered)


def read_pack(path: str | Path, file: AnswerFile) -> tuple[int, int]:
    """Store the answers of a pack, except answers to requests that have a stored answer.

    Args:
        path: The pack.
        file: The file in which they are stored.

    Returns:
        Number of answers in the pack, and number of new ones.

    Raises:
        InputError: A line is not an answer; answers on earlier lines may already be stored.
    """
    total, new, entries = 0, 0, list[StoredAnswer]()

    def keep() -> int:
        stored = file.read(entry.sum for entry in entries)
        fresh = {entry.sum: entry for entry in entries if entry.sum not in stored}
        file.write(fresh.values())
        entries.clear()
        return len(fresh)

    with reading(path) as source:
        for number, line in source.texts():
            try:
                entries.append(StoredAnswer.model_validate_json(line))
            except ValidationError as error:
                detail = error.errors()[0]
                field_path = ".".join(map(str, detail["loc"]))
                problem = f"{field_path}: {detail['msg']}" if field_path else detail["msg"]
                raise InputError.at(path, number, f"no kept answer ({problem})") from None
            total += 1
            if len(entries) >= PACK_BATCH:
                new += keep()
    return total, new + keep()


def now() -> int:
    """Return the current time, in seconds since 1970, for an answer."""
    return int(time.time())

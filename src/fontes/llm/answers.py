"""Kept answers: what language models answered, by the SHA-256 of what they were asked; and packs of answers to share."""

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

LAYOUT = 1
PACK = 500  # answers that are read or written together
THOUGHTS = re.compile(r"\s*<think>.*?(</think>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """A request to a model.

    Args:
        messages: The prompt.
        max_tokens: Maximum number of tokens of the answer.
        temperature: 0 for the most probable answer, above 0 to sample.
        sample: Number of the sample, from 0, which tells samples of one prompt apart.
        choices: Words between which the model chooses; then the answer has their log-probabilities.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0
    sample: int = 0
    choices: tuple[str, ...] = ()


class Kept(BaseModel):
    """An answer as it is kept and shared, with all that its sum is made of.

    Attributes:
        service: Name of the service, or "local".
        model: Name of the model, or for "local" the fingerprint of its weights.
        parameters: Parameters of the request.
        sample: Number of the sample.
        messages: The prompt: roles and texts.
        text: The answer.
        finish: Why it ended: "stop", or "length" if it was cut.
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
        """SHA-256 of what was asked, and of whom, under which the answer is kept."""
        return sum_of(self.service, self.model, self.parameters, self.sample, self.messages)

    @property
    def said(self) -> str:
        """The answer without the thoughts that a reasoning model writes before it."""
        return THOUGHTS.sub("", self.text, count=1).strip()


def sum_of(service: str, model: str, parameters: Mapping[str, Any], sample: int, messages: Sequence[Message]) -> str:
    """Return the SHA-256 of a request to a model."""
    return hash_json([LAYOUT, service, model, dict(parameters), sample, [list(message) for message in messages]])


@dataclass(frozen=True)
class AnswerFile:
    """The file of kept answers, `answers.sqlite` in the user's cache folder. Answers are never removed.

    Args:
        path: Another file.
    """

    name: ClassVar[str] = "answers.sqlite"

    path: Path = field(default_factory=lambda: cache_folder() / AnswerFile.name)

    def read(self, sums: Iterable[str]) -> dict[str, Kept]:
        """Return the answers under these sums, without missing ones."""
        keys = [bytes.fromhex(digest) for digest in dict.fromkeys(sums)]
        if not keys or not self.path.exists():
            return {}
        return {key.hex(): _unpacked(value) for key, value in self._file.values(keys).items()}

    def write(self, answers: Iterable[Kept]) -> None:
        """Keep answers; they are on disk when this returns.

        Raises:
            InputError: The file cannot be written.
        """
        values = {bytes.fromhex(answer.sum): zlib.compress(answer.model_dump_json().encode(), 1) for answer in answers}
        if values:
            self._file.store(values)

    def all(self) -> Iterator[Kept]:
        """Yield all answers."""
        return (_unpacked(value) for _, value in self._file.items())

    @property
    def _file(self) -> KeyedFile:
        return KeyedFile(self.path, noun="answers of language models", needed=True)


def _unpacked(value: bytes) -> Kept:
    return Kept.model_validate_json(zlib.decompress(value))


def write_pack(answers: Iterable[Kept], path: str | Path) -> int:
    """Write answers to a file of JSON lines, compressed for .gz; the same answers give the same bytes. Returns their number.

    Raises:
        InputError: The file cannot be written.
    """
    ordered = sorted(answers, key=lambda answer: answer.sum)
    write(path, ((answer.model_dump_json() + "\n").encode() for answer in ordered))
    return len(ordered)


def read_pack(path: str | Path, file: AnswerFile) -> tuple[int, int]:
    """Keep the answers of a pack, except those under whose sums other answers are kept.

    Args:
        path: The pack.
        file: Where they are kept.

    Returns:
        Number of answers in the pack, and of new ones.

    Raises:
        InputError: A line is no answer; the answers of the lines before it may be kept by then.
    """
    total, new, entries = 0, 0, list[Kept]()

    def keep() -> int:
        known = file.read(entry.sum for entry in entries)
        fresh = {entry.sum: entry for entry in entries if entry.sum not in known}
        file.write(fresh.values())
        entries.clear()
        return len(fresh)

    with reading(path) as source:
        for number, line in source.texts():
            try:
                entries.append(Kept.model_validate_json(line))
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise InputError.at(path, number, f"no kept answer ({f'{where}: ' if where else ''}{first['msg']})") from None
            total += 1
            if len(entries) >= PACK:
                new += keep()
    return total, new + keep()


def now() -> int:
    """Return the time of an answer."""
    return int(time.time())

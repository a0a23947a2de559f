"""Stored answers of language models, by the SHA-256 of their requests; and packs of answers to share."""

from __future__ import annotations

import glob
import json
import logging
import secrets
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from ..core.errors import InputError
from ..core.strings import encodable
from ..storage.caches import cache_folder
from ..storage.files import reading, write
from ..storage.hashes import hash_json
from ..storage.keyed import KeyedFile
from .prompts import Message

logger = logging.getLogger("fontes.llm")

LAYOUT_VERSION = 1
PACK_BATCH = 500  # answers of a pack that are stored together
THOUGHTS = "<think>", "</think>"
WAITING = ".waiting-"  # in the name of a pack of answers that could not be stored
YEAR_10000 = 253_402_300_800  # seconds since 1970


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


def _finite(parameters: dict[str, object]) -> dict[str, object]:
    json.dumps(parameters, allow_nan=False)
    return parameters


Tokens = Annotated[int, Field(ge=0, lt=1 << 40)]


class StoredAnswer(BaseModel):
    """An answer as it is stored and shared, with everything from which its SHA-256 is computed.

    Attributes:
        service: Name of the service, or "local".
        model: Name of the model; for "local", the fingerprint of its weights.
        parameters: Parameters of the request.
        sample: Number of the sample.
        messages: The prompt: roles and texts.
        text: The answer; a lone surrogate becomes U+FFFD.
        finish: Why the answer ended: "stop", or "length" if it was cut.
        choices: Log-probabilities of the choices; empty for an answer in words.
        prompt_tokens: Tokens of the prompt; 0 if the service did not say.
        completion_tokens: Tokens of the answer.
        time: Seconds since 1970, in UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: str
    model: str
    parameters: Annotated[dict[str, object], AfterValidator(_finite)]
    sample: int
    messages: tuple[tuple[str, str], ...]
    text: Annotated[str, AfterValidator(encodable)]
    finish: str = "stop"
    choices: dict[str, FiniteFloat] = {}
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    time: Annotated[int, Field(ge=0, lt=YEAR_10000)] = 0

    @property
    def digest(self) -> str:
        """SHA-256 of the model and the request, under which the answer is stored."""
        return request_digest(self.service, self.model, self.parameters, self.sample, self.messages)

    @property
    def final_text(self) -> str:
        """The answer without the thoughts that a reasoning model writes before it; tags that an answer quotes stay.

        Thoughts begin the text. Their opening tag is missing if the model's chat template has written it (Qwen3-Thinking,
        DeepSeek-R1); then a line ends after the closing tag.
        """
        opening, closing = THOUGHTS
        text = self.text.strip()
        thoughts, tag, rest = text.partition(closing)
        if text.startswith(opening):
            return rest.strip()
        unopened = tag and opening not in thoughts and rest[:1] in ("", "\r", "\n")
        return rest.strip() if unopened else text


def request_digest(service: str, model: str, parameters: Mapping[str, object], sample: int, messages: Sequence[Message]) -> str:
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
        digests = list(dict.fromkeys(sums))
        if not digests:
            return {}
        waiting = self._store_waiting()
        stored = self._file.values([bytes.fromhex(digest) for digest in digests]) if self.path.exists() else {}
        return _decode_answers(stored) | {digest: waiting[digest] for digest in digests if digest in waiting}

    def write(self, answers: Iterable[StoredAnswer]) -> None:
        """Store answers; they are on disk when this returns.

        If the file cannot be written, such as when another process locks it for long, the answers wait in a pack beside it,
        which later calls read and store.

        Raises:
            InputError: Neither can be written.
        """
        arrived = {answer.digest: answer for answer in answers}
        if not arrived:
            return
        try:
            self._store(arrived)
        except InputError as error:
            pack = self.path.with_name(f"{self.path.name}{WAITING}{secrets.token_hex(8)}.jsonl")
            try:
                write_pack(arrived.values(), pack)
            except InputError:
                raise error from None
            logger.warning("%s; until a later run can store them, %s keeps answers: %d", error, pack.name, len(arrived))

    def all(self) -> Iterator[StoredAnswer]:
        """Yield all answers."""
        waiting = self._store_waiting()
        for key, value in self._file.items():
            waiting.pop(key.hex(), None)
            yield from _decode_answers({key: value}).values()
        yield from waiting.values()

    def _store(self, answers: Mapping[str, StoredAnswer]) -> None:
        self._file.store(
            {bytes.fromhex(digest): zlib.compress(answer.model_dump_json().encode(), 1) for digest, answer in answers.items()}
        )

    def _store_waiting(self) -> dict[str, StoredAnswer]:
        """Store the answers of packs that wait beside the file, and return them by SHA-256."""
        waiting, packs = dict[str, StoredAnswer](), list[Path]()
        for pack in self.path.parent.glob(f"{glob.escape(self.path.name)}{WAITING}*.jsonl"):
            with suppress(InputError):  # another process has stored it
                waiting |= {answer.digest: answer for answer in _pack_answers(pack)}
                packs.append(pack)
        if waiting:
            with suppress(InputError, OSError):  # the file still cannot be written
                self._store(waiting)
                for pack in packs:
                    pack.unlink(missing_ok=True)
        return waiting

    @property
    def _file(self) -> KeyedFile:
        return KeyedFile(self.path, noun="answers of language models", needed=True)


def _decode_answers(values: Mapping[bytes, bytes]) -> dict[str, StoredAnswer]:
    """Return answers by SHA-256, without those that are not valid, which are logged and count as missing."""
    answers: dict[str, StoredAnswer] = {}
    for key, value in values.items():
        with suppress(ValidationError, zlib.error):
            answers[key.hex()] = StoredAnswer.model_validate_json(zlib.decompress(value))
    if invalid := len(values) - len(answers):
        logger.warning("stored answers that are not valid, and count as missing: %d", invalid)
    return answers


def write_pack(answers: Iterable[StoredAnswer], path: str | Path) -> int:
    """Write answers to a file of JSON lines, compressed for .gz, and return their number; equal answers give equal bytes.

    Raises:
        InputError: The file cannot be written.
    """
    ordered = sorted(answers, key=lambda answer: answer.digest)
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
        stored = file.read(entry.digest for entry in entries)
        fresh = {entry.digest: entry for entry in entries if entry.digest not in stored}
        file.write(fresh.values())
        entries.clear()
        return len(fresh)

    for entry in _pack_answers(path):
        entries.append(entry)
        total += 1
        if len(entries) >= PACK_BATCH:
            new += keep()
    return total, new + keep()


def _pack_answers(path: str | Path) -> Iterator[StoredAnswer]:
    """Yield the answers of a pack; InputError for a line that is not an answer."""
    with reading(path) as source:
        for number, line in source.texts():
            try:
                yield StoredAnswer.model_validate_json(line)
            except ValidationError as error:
                detail = error.errors()[0]
                field_path = ".".join(map(str, detail["loc"]))
                problem = f"{field_path}: {detail['msg']}" if field_path else detail["msg"]
                raise InputError.at(path, number, f"no stored answer ({problem})") from None


def now() -> int:
    """Return the current time, in seconds since 1970, for an answer."""
    return int(time.time())

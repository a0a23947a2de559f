"""The arms of a gate: what answers the topics. Each is a table of the gate's file, with the method `run`."""

from __future__ import annotations

import asyncio
import inspect
import shlex
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, PrivateAttr

from ..core import FontesError, InputError, Run, Stage, Topic, Topics, expression
from ..core.part import stages
from ..experiments.experiment import TomlTable, beside
from ..formats import read_run, write_topics
from ..index import Index
from .lock import Lock

MAX_FAILURES = 5  # topics that an arm may fail on before the others are left out
MAX_ERROR = 300  # characters of a command's last errors


@dataclass(frozen=True)
class Reply:
    """The answer of an arm to a topic.

    Args:
        ids: Documents, the best first.
        scores: Their scores; by default descending numbers.
        generation: Generation of the index that answered, if known.
        tokens: Tokens that the answer cost, if known.
        tied: Whether the engine gave all documents the same score.
    """

    ids: tuple[str, ...]
    scores: tuple[float, ...] | None = None
    generation: str | None = None
    tokens: int | None = None
    tied: bool = False


class Arm(TomlTable):
    """Base of arms."""

    kind: ClassVar[str]
    """The key of the table that names the kind."""
    by_topic: ClassVar[bool] = True
    """Whether topics are answered one by one, so that time can be measured."""
    costs: ClassVar[tuple[str, ...]] = ()
    """Costs that can be known: tokens, bytes."""
    _folder: Path = PrivateAttr(default=Path())

    def at(self, folder: Path) -> Self:
        """Return a copy whose paths are relative to a folder."""
        arm = self.model_copy()
        arm._folder = folder
        return arm

    def asking(self, k: int) -> AbstractContextManager[Callable[[Topic], Reply]]:
        """Return a context with a function that answers a topic by at most k documents."""
        raise NotImplementedError

    def run(self, topics: Topics, k: int) -> Run:
        """Answer topics.

        Returns:
            The run. Its provenance has `failed` (problems by topic id), `empty` (topics answered by no document), `source`,
            `description` and, if they are known, `generations` of the index, `tokens` and `bytes`.

        Raises:
            FontesError: No topic can be answered.
        """
        answers, failed = dict[str, Reply](), dict[str, str]()
        with self.asking(k) as ask:
            for topic in topics.values():
                try:
                    answers[topic.id] = ask(topic)
                except Exception as error:
                    failed[topic.id] = str(error) if isinstance(error, FontesError) else f"{type(error).__name__}: {error}"
                if len(failed) == MAX_FAILURES:
                    break
        return run_of(topics, answers, {"failed": failed, **self.names})

    @property
    def source(self) -> str:
        """The index, run, address, server or command that answers."""
        return str(getattr(self, self.kind))

    @property
    def names(self) -> dict[str, str]:
        """The `source` of the documents, and a `description` of the arm."""
        return {"source": self.source, "description": self.source}

    def path(self, name: str) -> Path:
        """Return the path of a name in the file."""
        return beside(self._folder / "gate.toml", name)


def run_of(topics: Topics, answers: Mapping[str, Reply], facts: Mapping[str, object]) -> Run:
    """Return the run of answers; without scores, documents keep their order."""
    scores = {
        topic: dict(zip(answer.ids, answer.scores or range(len(answer.ids), 0, -1), strict=True))
        for topic, answer in answers.items()
    }
    generations = [answer.generation for answer in answers.values() if answer.generation is not None]
    tokens = [answer.tokens for answer in answers.values() if answer.tokens is not None]
    several = [answer.tied for answer in answers.values() if len(answer.ids) > 1]
    provenance = {
        "tied": bool(several) and all(several),
        "empty": [topic for topic, answer in answers.items() if not answer.ids],
        "generations": list(dict.fromkeys(generations)),
        **({"tokens": sum(tokens)} if tokens else {}),
        **facts,
    }
    return Run.of(scores, topics).with_(provenance=provenance)


class PipelineArm(Arm):
    """A pipeline over an index."""

    kind = "index"
    costs = ("bytes",)
    index: str = Field(min_length=1)
    pipeline: str = Field(default="bm25()", min_length=1)

    @contextmanager
    def asking(self, k: int) -> Iterator[Callable[[Topic], Reply]]:
        stage = self._stage(self._index()) % k

        def ask(topic: Topic) -> Reply:
            return Reply(tuple(hit.id for hit in stage(Topics([topic]))[topic.id]))

        yield ask

    def run(self, topics: Topics, k: int) -> Run:
        index = self._index()
        run: Run = (self._stage(index) % k)(topics)
        generations = list(dict.fromkeys([index.fingerprint, self._index().fingerprint]))
        empty = [topic for topic in topics if topic not in run or not run[topic]]
        facts = {"failed": {}, "empty": empty, **self.names, "generations": generations, "bytes": index.info()["bytes"]}
        return run.with_(provenance={**run.provenance, **facts})

    @property
    def names(self) -> dict[str, str]:
        """The index, and the pipeline over it."""
        return {"source": self.index, "description": f"{self.pipeline} over {self.index}"}

    def _index(self) -> Index:
        return Index.open(self.path(self.index))

    def _stage(self, index: Index) -> Stage[Topics, Run]:
        stage: Stage[Topics, Run] = expression.pipeline(self.pipeline, index)
        stage.require(Topics, Run, "the key 'pipeline'")
        return stage


class ServerArm(Arm):
    """A pipeline of `fontes serve` at an address. The key or token is in the environment; see `fontes.Client`."""

    kind = "server"
    server: str = Field(pattern="https?://.+")
    index_name: str = ""
    pipeline: str = ""

    @contextmanager
    def asking(self, k: int) -> Iterator[Callable[[Topic], Reply]]:
        stage = self._client(k)

        def ask(topic: Topic) -> Reply:
            return Reply(tuple(hit.id for hit in stage(Topics([topic]))[topic.id]))

        yield ask

    def run(self, topics: Topics, k: int) -> Run:
        run: Run = self._client(k)(topics)
        empty = [topic for topic in topics if not run[topic]]
        facts = {"failed": {}, "empty": empty, **self.names, "generations": run.provenance["servers"][self.server]}
        return run.with_(provenance={**run.provenance, **facts})

    def _client(self, k: int) -> Any:
        client: Any = stages["client"]
        return client(self.server, self.pipeline, self.index_name) % k


class RunArm(Arm):
    """The file of a run. Its lock, beside it, says what it was accepted with."""

    kind = "run"
    by_topic = False
    costs = ("tokens", "bytes")
    run_file: str = Field(alias="run", min_length=1)

    @property
    def source(self) -> str:
        """The file."""
        return self.run_file

    @property
    def lock(self) -> Path:
        """The path of the lock."""
        return self.path(self.run_file).with_suffix(".lock")

    def run(self, topics: Topics, k: int) -> Run:
        facts = Lock.read(self.lock).facts if self.lock.exists() else {}
        return Run.of(self.path(self.run_file)).top(k).with_(provenance={"failed": {}, "empty": [], **facts, **self.names})


class CommandArm(Arm):
    """A command that reads topics (JSON lines, as in queries.jsonl) and writes a run in TREC's format."""

    kind = "command"
    by_topic = False
    command: str = Field(min_length=1)
    timeout: float = Field(default=3600, gt=0)

    def run(self, topics: Topics, k: int) -> Run:
        words = [word.replace("{k}", str(k)) for word in words_of(self.command)]
        with tempfile.TemporaryDirectory(prefix="fontes-gate-") as folder:
            queries, output = Path(folder) / "queries.jsonl", Path(folder) / "output.run"
            write_topics(topics, queries)
            try:
                with queries.open("rb") as source, output.open("wb") as target:
                    done = subprocess.run(
                        words,
                        stdin=source,
                        stdout=target,
                        stderr=subprocess.PIPE,
                        cwd=self._folder,
                        timeout=self.timeout,
                        check=False,
                    )
            except subprocess.TimeoutExpired:
                raise InputError(f"'{self.command}' took more than {self.timeout:g} seconds; raise 'timeout'") from None
            except OSError as error:
                raise InputError(f"'{self.command}' cannot be started ({error.strerror or error})") from None
            if done.returncode:
                lines = done.stderr.decode(errors="replace").strip()[-MAX_ERROR:]
                raise InputError(
                    f"'{self.command}' ended with exit code {done.returncode}: {' '.join(lines.split()) or 'no message'}"
                )
            try:
                run = read_run(output) if output.stat().st_size else Run.of({})
            except FontesError as error:
                raise InputError(str(error).replace(str(output), f"the output of '{self.command}'")) from None
        return run.top(k).with_(provenance={"failed": {}, "empty": [], "generations": [], **self.names})


class FunctionArm(Arm):
    """A function of a test, from a query to document ids, the best first, or to pairs of an id and a score."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    kind = "function"
    function: Callable[[str], object]

    @contextmanager
    def asking(self, k: int) -> Iterator[Callable[[Topic], Reply]]:
        def ask(topic: Topic) -> Reply:
            value = self.function(topic.text)
            return reply_of(asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value, k)

        yield ask

    @property
    def source(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "__qualname__", self.function))


def words_of(command: str) -> list[str]:
    """Return the words of a command, as a shell does; InputError if it has none, or a quotation mark that is not closed."""
    try:
        words = shlex.split(command)
    except ValueError:
        raise InputError(f"the command {command!r} has a quotation mark that is not closed; close it") from None
    if not words:
        raise InputError("the command is empty; write the program and its arguments")
    return words


async def _awaited(value: Awaitable[object]) -> object:
    return await value


def reply_of(value: Any, k: int) -> Reply:
    """Return the answer in the value of a function; InputError if it has another form."""
    value_text = f"{type(value).__name__} {str(value)[:60]!r}"
    problem = f"the function returned {value_text}; give a list of ids, or of pairs of id and score"
    if value is None or isinstance(value, (str, bytes)):
        raise InputError(problem)
    items = list(value.items() if isinstance(value, Mapping) else value)
    if all(isinstance(item, (str, Integral)) for item in items):
        return Reply(tuple(dict.fromkeys(map(str, items)))[:k])
    try:
        pairs = sorted(((str(item[0]), float(item[1])) for item in items), key=lambda pair: -pair[1])
    except (TypeError, ValueError, LookupError):
        raise InputError(problem) from None
    best = dict(reversed(pairs))  # of a document that occurs twice, its highest score
    ids = sorted(best, key=lambda doc_id: -best[doc_id])[:k]
    return Reply(tuple(ids), tuple(best[doc_id] for doc_id in ids))

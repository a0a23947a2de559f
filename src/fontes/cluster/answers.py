"""Language models on a cluster: shares of the token budget, and the stored answers of the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.answers import TokenBudget
from ..core.part import Part, walk
from ..core.work import Resources
from ..storage.caches import cache_folder
from .joining import Cluster, translated

if TYPE_CHECKING:
    from ..llm import AnswerFile, StoredAnswer

TASK = "asking language models"


@dataclass(frozen=True)
class AnswerStore:
    """Handle of the actor that stores answers on the driver's machine, for the processes of a cluster.

    Args:
        actor: Handle of an `AnswerActor`.
        node: Id of the node on which it stores answers.
    """

    actor: object
    node: str

    def used_by(self, settings: Resources, tokens: int | None) -> Resources:
        """Return settings of this process, with its share of the budget (None: no limit) and the driver's answers.

        A process that was lost may have used its share, and gets no other.
        """
        import ray

        context = ray.get_runtime_context()
        spent = tokens if tokens and context.was_current_actor_reconstructed else 0
        budget = None if tokens is None else TokenBudget(tokens, spent)
        return replace(
            settings, budget=budget, answers=None if context.get_node_id() == self.node else RemoteAnswers(self.actor)
        )


@contextmanager
def answer_store(cluster: Cluster, part: object) -> Iterator[AnswerStore | None]:
    """Run the store for the language models of a part during the block; None without models."""
    if not any(getattr(subpart, "keeps_answers", False) for subpart in (walk(part) if isinstance(part, Part) else ())):
        yield None
        return

    ray = cluster.ray
    node = ray.get_runtime_context().get_node_id()
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
    with translated(TASK):
        actor = ray.remote(num_cpus=0, scheduling_strategy=strategy)(AnswerActor).remote(cache_folder())
    try:
        yield AnswerStore(actor, node)
    finally:
        if ray.is_initialized():
            with suppress(Exception):
                ray.kill(actor)


class AnswerActor:
    """Stores answers on the driver's machine.

    Args:
        folder: The cache folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, sums: list[str]) -> dict[str, StoredAnswer]:
        """Return stored answers by their sums."""
        return self._file.read(sums)

    def write(self, answers: list[StoredAnswer]) -> None:
        """Store answers."""
        self._file.write(answers)

    @property
    def _file(self) -> AnswerFile:
        from ..llm import AnswerFile

        return AnswerFile(self._folder / AnswerFile.name)


@dataclass(frozen=True)
class RemoteAnswers:
    """Stored answers of a machine of the cluster, and of the driver's machine.

    Args:
        actor: Handle of an `AnswerActor`.
    """

    actor: object

    def read(self, sums: Iterable[str]) -> dict[str, StoredAnswer]:
        """Return the stored answers with these sums; answers from the driver's machine are also stored on this one."""
        from ..llm import AnswerFile

        file, keys = AnswerFile(), list(dict.fromkeys(sums))
        answers = file.read(keys)
        missing = [key for key in keys if key not in answers]
        if missing:
            remote: dict[str, StoredAnswer] = _call_actor(self.actor, "read", missing)
            file.write(remote.values())
            answers |= remote
        return answers

    def write(self, answers: Iterable[StoredAnswer]) -> None:
        """Store answers on both machines."""
        from ..llm import AnswerFile

        arrived = list(answers)
        AnswerFile().write(arrived)
        _call_actor(self.actor, "write", arrived)


def _call_actor(actor: object, name: str, argument: object) -> Any:
    """Call a method of an actor, and return its result."""
    import ray

    with translated(TASK):
        return ray.get(getattr(actor, name).remote(argument))

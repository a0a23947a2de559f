"""Language models on a cluster: one budget of tokens, and the stored answers of the driver."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.answers import TokenBudget
from ..core.part import Part, walk
from ..core.work import Resources, resources
from .joining import Cluster, translated

if TYPE_CHECKING:
    from ..llm import AnswerFile, StoredAnswer

TASK = "asking language models"
WAITING = "waiting"  # group of the actor's threads for calls that wait for tokens
THREADS = {"concurrency_groups": {WAITING: 64}, "max_concurrency": 4}
STOP = 10.0  # seconds to ask for the number of used tokens


@dataclass(frozen=True)
class Ledger:
    """Handle of the actor that counts tokens and stores answers, for the processes of a cluster.

    Args:
        actor: Handle of a `LedgerActor`.
        node: Id of the node on which it stores answers.
        limit: Maximum number of tokens; None: no limit.
    """

    actor: Any
    node: str
    limit: int | None

    def used_by(self, holder: int, settings: Resources) -> Resources:
        """Return settings of a process that starts to work, with the budget and the answers of the ledger."""
        import ray

        life = os.urandom(8).hex()
        with translated(TASK):
            ray.get(self.actor.join.remote(holder, life))
        budget = None if self.limit is None else RemoteBudget(self.actor, self.limit, (holder, life))
        is_local = ray.get_runtime_context().get_node_id() == self.node
        return replace(settings, budget=budget, answers=None if is_local else RemoteAnswers(self.actor))

    def leave(self, holder: int) -> None:
        """Count the tokens that a lost process had reserved as used."""
        self.actor.join.remote(holder, "")


@contextmanager
def ledger_of(cluster: Cluster, part: object) -> Iterator[Ledger | None]:
    """Run the ledger for the language models of a part during the block, with the budget of `work`; None without models."""
    if not any(getattr(subpart, "keeps_answers", False) for subpart in (walk(part) if isinstance(part, Part) else ())):
        yield None
        return
    from ..storage.caches import cache_folder

    ray, budget = cluster.ray, resources().budget
    node = ray.get_runtime_context().get_node_id()
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
    limit = None if budget is None else budget.limit
    used = reserved = 0 if budget is None else budget.reserve_rest()
    actor = None
    try:
        with translated(TASK):
            remote = ray.remote(num_cpus=0, scheduling_strategy=strategy, **THREADS)(LedgerActor)
            actor = remote.remote(cache_folder(), limit, 0 if limit is None else limit - reserved)
        yield Ledger(actor, node, limit)
    finally:
        if actor is not None and ray.is_initialized():
            with suppress(Exception):
                used = ray.get(actor.used.remote(), timeout=STOP)
                ray.kill(actor)
        if budget is not None:
            budget.settle(reserved, min(used, reserved))


class LedgerActor:
    """Counts the tokens of all processes, and stores their answers on the driver's machine.

    Args:
        folder: The cache folder.
        limit: Maximum number of tokens; None: no limit.
        spent: Tokens that were used before.
    """

    def __init__(self, folder: Path, limit: int | None, spent: int) -> None:
        self._folder, self._spent_before = folder, spent
        self._budget = None if limit is None else TokenBudget(limit, spent)
        self._lock = threading.Lock()
        self._reserved: dict[int, tuple[str, int]] = {}

    def join(self, holder: int, life: str) -> None:
        """Begin the life of a process; tokens reserved by an earlier process with this number count as used."""
        with self._lock:
            _, lost = self._reserved.pop(holder, ("", 0))
            self._reserved[holder] = (life, 0)
        if self._budget is not None:
            self._budget.settle(lost, lost)

    def reserve(self, holder: int, life: str, tokens: int) -> bool:
        """Reserve tokens, as `TokenBudget.reserve`."""
        if self._budget is None or not self._budget.reserve(tokens):
            return False
        with self._lock:
            current_life, reserved = self._reserved.get(holder, ("", 0))
            if current_life == life:
                self._reserved[holder] = (life, reserved + tokens)
                return True
        self._budget.settle(tokens, 0)  # the process was lost while it waited
        return False

    def settle(self, holder: int, life: str, reserved: int, used: int) -> None:
        """Replace a reservation by the tokens that were used."""
        with self._lock:
            current_life, outstanding = self._reserved.get(holder, ("", 0))
            if current_life != life:
                return
            self._reserved[holder] = (life, outstanding - reserved)
        if self._budget is not None:
            self._budget.settle(reserved, used)

    def spent(self) -> int:
        """Number of used tokens, including the tokens used before."""
        return 0 if self._budget is None else self._budget.spent

    def used(self) -> int:
        """Number of tokens used on the cluster, including tokens reserved by calls that got no answer."""
        with self._lock:
            return self.spent() - self._spent_before + sum(tokens for _, tokens in self._reserved.values())

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


class RemoteBudget(TokenBudget):
    """The budget of a process of the cluster, which asks the ledger.

    Args:
        actor: Handle of the ledger's actor.
        limit: The maximum number of tokens.
        holder: Number and life of the process.
    """

    def __init__(self, actor: Any, limit: int, holder: tuple[int, str]) -> None:
        super().__init__(limit)
        self._actor, self._holder = actor, holder

    def reserve(self, tokens: int) -> bool:
        return bool(_call_actor(self._actor, "reserve", *self._holder, tokens, group=WAITING))

    def settle(self, reserved: int, used: int) -> None:
        _call_actor(self._actor, "settle", *self._holder, reserved, used)

    def left(self) -> int:
        return self.limit - int(_call_actor(self._actor, "spent"))


@dataclass(frozen=True)
class RemoteAnswers:
    """Stored answers of a machine of the cluster, and of the driver's machine.

    Args:
        actor: Handle of the ledger's actor.
    """

    actor: Any

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


def _call_actor(actor: Any, name: str, *arguments: Any, group: str | None = None) -> Any:
    """Call a method of an actor, in one of its groups of threads, and return its result."""
    import ray

    method = getattr(actor, name)
    with translated(TASK):
        return ray.get((method if group is None else method.options(concurrency_group=group)).remote(*arguments))

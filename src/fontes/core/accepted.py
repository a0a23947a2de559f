"""What callers may give where a run, judgments or topics are taken, as types."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from .qrels import Qrels
from .run import Run
from .values import Topic, Topics


class Frame(Protocol):
    """A DataFrame, as far as it is looked at: columns by name."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    def __getitem__(self, name: Any, /) -> Any: ...


Path: TypeAlias = str | os.PathLike[str]
AnyRun: TypeAlias = (
    Run
    | Mapping[str, Mapping[str, float]]
    | Mapping[str, Iterable[tuple[str, float]]]
    | Iterable[tuple[str, str, float]]
    | Frame
    | Path
)
AnyQrels: TypeAlias = Qrels | Mapping[str, Mapping[str, int]] | Iterable[tuple[str, str, int]] | Frame | Path
AnyTopics: TypeAlias = (
    Topics | Topic | Mapping[str, str] | Mapping[str, Topic] | Iterable[Topic | tuple[str, str] | str] | Frame | Path
)

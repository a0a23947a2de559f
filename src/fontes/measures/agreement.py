"""Checks that a run and judgments belong together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Protocol, TypeAlias

from ..core import Documents, FontesError, InputError, Qrels, Run, Topic, Topics

LOOKED_UP = 1000  # judged documents to look up in a collection


# Types of callers' arguments.
class Frame(Protocol):
    """Type of a DataFrame: columns by name."""

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


def judgments_of(qrels: object) -> Qrels:
    """Convert `qrels` with `Qrels.of`; InputError if it is empty, a run or topics."""
    if isinstance(qrels, (Run, Topics)):
        raise InputError(
            f"{type(qrels).__name__} stand where judgments belong; the order is evaluate(run, qrels, measures) and "
            "compare(systems, topics, qrels, measures)"
        )
    judgments = Qrels.of(qrels)
    if not judgments:
        raise InputError("the qrels hold no judgments")
    return judgments


def run_and_judgments(run: object, qrels: object) -> tuple[Run, Qrels]:
    """Convert a run with `Run.of` and judgments with `judgments_of`; InputError if exchanged or unreadable."""
    try:
        if isinstance(run, Qrels):
            raise InputError("judgments stand where the run belongs")
        return Run.of(run), judgments_of(qrels)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise


def refuse_exchanged(run: object, qrels: object, error: Exception) -> None:
    """Raise InputError, from `error`, if `run` holds judgments and `qrels` a run."""
    if "-" not in (run, qrels) and _reads(Qrels, run) and _reads(Run, qrels):
        raise InputError(
            f"the run and the judgments are exchanged: {_shown(run)} holds judgments, and {_shown(qrels)} a run"
        ) from error


def check_agreement(run: Run, qrels: Qrels, name: str = "the run") -> None:
    """Check that a run's topics and collection are those that were judged.

    They must share a topic, and the run must have a document judged for any topic. If it has none but knows its documents, one
    judged document in the collection suffices, as a poor system may find none. An empty run agrees with all judgments.

    Args:
        run: The run.
        qrels: The judgments.
        name: Name of the run in the message.

    Raises:
        InputError: They do not agree; the message has an id of each.
    """
    common = [topic_id for topic_id in run if topic_id in qrels]
    if any(doc_id in qrels[topic_id] for topic_id in common for doc_id in run[topic_id].ids):
        return  # the usual case, after a few lookups
    answered = [topic_id for topic_id in common or run if len(run[topic_id])]
    if not answered:
        return
    if not common:
        raise InputError(
            f"{name} and the judgments have no topic in common: topics of the run are such as '{answered[0]}', those of the "
            f"judgments such as '{next(iter(qrels))}'; give the judgments of these topics"
        )
    judged = dict.fromkeys(doc_id for grades in qrels.values() for doc_id in grades)
    if any(doc_id in judged for topic_id in run for doc_id in run[topic_id].ids):
        return
    if run.documents is not None and any(has_document(run.documents, doc_id) for doc_id in islice(judged, LOOKED_UP)):
        return
    collection = "" if run.documents is None else ", nor is any document of its collection"
    raise InputError(
        f"not one document of {name} is judged{collection}: those of the run are such as '{run[answered[0]].ids[0]}', those of "
        f"the judgments such as '{next(iter(qrels[answered[0]]))}'; give the judgments of this collection, with its ids"
    )


def has_document(documents: Documents, doc_id: str) -> bool:
    """Whether a collection has a document."""
    try:
        return bool(documents.docs([doc_id]))
    except FontesError:
        return False


def _reads(kind: type[Run] | type[Qrels], value: object) -> bool:
    try:
        return isinstance(value, kind) or (not isinstance(value, (Run, Qrels)) and bool(kind.of(value)))
    except (FontesError, TypeError, ValueError):
        return False


def _shown(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) or hasattr(value, "__fspath__") else f"the {type(value).__name__}"

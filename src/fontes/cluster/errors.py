"""Ray's own exceptions as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import FontesError

SENTENCES = {
    "OutOfMemoryError": "a machine of the cluster ran out of memory and ended a process; give smaller parts, or more memory",
    "WorkerCrashedError": "a process of the cluster has died, again after it was started anew; it may lack memory",
    "ActorDiedError": "a process of the cluster has died, again after it was started anew; it may lack memory",
    "ActorUnavailableError": "a process of the cluster does not answer; look at its node",
    "NodeDiedError": "a machine of the cluster is lost; start the command again, which goes on with what is finished",
    "ObjectLostError": "a result was lost with its machine; start the command again, which goes on with what is finished",
    "OwnerDiedError": "a result was lost with its machine; start the command again, which goes on with what is finished",
    "TaskCancelledError": "it was cancelled",
}


@contextmanager
def translated(task: str) -> Iterator[None]:
    """Lets errors of a task come out as themselves, and Ray's own as a sentence.

    Args:
        task: What is being done, which begins the sentence.

    Raises:
        FontesError: For what Ray raises of its own.
    """
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from error
        raise FontesError(f"{task}: {_last_line(error)}") from error
    except RayError as error:
        names = [cls.__name__ for cls in type(error).__mro__]
        sentence = next((SENTENCES[name] for name in names if name in SENTENCES), _last_line(error))
        raise FontesError(f"{task}: {sentence}") from error
    except SystemError as error:  # what Ray's C makes of an exception of a signal's handler, such as Ctrl-C's
        raise (error.__cause__ or error) from None
    except ConnectionError as error:
        raise FontesError(f"{task}: the connection to the cluster is lost; start the command again") from error


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()

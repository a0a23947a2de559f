"""Work in a process that is stopped before one of its file-system operations."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from fontes.app.running import Interrupted, _interrupt
from fontes.core import FontesError
from fontes.storage import interrupts

# As Python's audit hooks name them; the last is how folders that change places are looked up.
OPERATIONS = {"open", "fcntl.flock", "tempfile.mkdtemp", "shutil.rmtree", "ctypes.dlsym"}
OPERATIONS |= {f"os.{name}" for name in ("mkdir", "rename", "remove", "rmdir", "chmod", "truncate", "listdir", "scandir")}
DONE, STOPPED, WRONG = 0, 1, 5  # how a child ends


def stopped_before(number: int, signal_number: int, folder: Path, work: Callable[[], object]) -> tuple[int, str, int]:
    """Does `work` in a forked process, which gets a signal before an operation.

    Args:
        number: Before which one, from 1; 0 for none.
        signal_number: SIGKILL, or SIGINT, which has the effect that it has on the command line.
        folder: Operations count that name something in it, and all on open files.
        work: What is done.

    Returns:
        How the process ended, negative for the signal that killed it; its message; and how many operations it began.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(number, signal_number, str(folder), work, writer)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        count, _, message = pipe.read().rpartition("\n")[0].rpartition("\0")[2].partition(" ")
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), message, int(count or 0)


def _child(number: int, signal_number: int, folder: str, work: Callable[[], object], writer: int) -> None:
    count, counting = 0, True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if counting and event in OPERATIONS and (event[:3] in ("fcn", "cty") or folder in os.fsdecode(_first(arguments))):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal_number)

    interrupts.complete.clear()
    signal.signal(signal.SIGINT, _interrupt)
    status, message = DONE, ""
    try:
        sys.addaudithook(hook)
        work()
    except (FontesError, Interrupted) as error:
        status, message = STOPPED, str(error)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = WRONG
    counting = False
    os.write(writer, f"\0{count} {message}\n".encode())
    os._exit(status)


def _first(arguments: tuple[object, ...]) -> str | bytes:
    """The path that an operation names first; nothing for a number of an open file."""
    first = arguments[0] if arguments else ""
    return first if isinstance(first, (str, bytes)) else os.fspath(first) if isinstance(first, os.PathLike) else ""

"""Work in a process of its own, which may be killed, perhaps before one of its file-system operations; and small disks."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fontes.app.running import Interrupted, _interrupt
from fontes.core import FontesError
from fontes.storage import system


def in_a_child(work: Callable[[], object]) -> int:
    """Runs `work` in a forked process; the exit status, negative for the signal that killed it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except FontesError:
            os._exit(3)
        except KeyboardInterrupt:
            os._exit(4)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(5)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def kill() -> None:
    """Kills this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def full_disk() -> None:
    """Raises what a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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

    system.complete.clear()
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


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of this size, mounted where the tests may."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a file system can be mounted by root only: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)

"""Work in a process of its own, which may be killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from fontes.core import FontesError


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

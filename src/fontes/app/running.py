"""Running the command line: streams, signals, and errors as one sentence."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, NoReturn, cast

from ..core.errors import FontesError, InputWarning
from ..storage.system import complete
from .flags import flags, flags_first


def _usage_errors() -> tuple[type[Exception], type[Exception]] | tuple[()]:
    """Errors of usage and of an aborted question; none if the command ran without Typer."""
    if (typer := sys.modules.get("typer")) is None:
        return ()
    return typer.BadParameter.__mro__[1], typer.Abort  # the first is Click's, which newer versions of Typer contain


def run(app: Callable[..., object], error_code: int | None = None) -> NoReturn:
    """Run the command line on the process's arguments and end the process.

    Exit codes: 0 success, even without matches; 1 an error in the input; 2 wrong usage.

    Args:
        app: The command line.
        error_code: Exit code of errors of all kinds, for a command whose 0, 1 and 2 are answers.
    """
    _open_streams()
    signal.signal(signal.SIGINT, _interrupt)
    warnings.showwarning = cast(Any, _show_warning)
    arguments = flags_first(sys.argv[1:])
    flags.debug, flags.arguments = "--debug" in arguments, tuple(sys.argv[1:])
    try:
        code = app(args=arguments, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except _usage_errors() as error:
        if type(error).__name__ == "Abort":
            _fail("aborted", error_code)
        _fail_usage(error, arguments, error_code or 2)
    except (FontesError, Interrupted) as error:
        _fail(str(error), error_code)
    except BrokenPipeError:
        # The reader of our output has closed the pipe, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(error_code or 0)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror or error}", error_code)
    except Exception:
        if error_code is None:
            raise
        with suppress(OSError):  # an answer's code must not be that of a closed pipe
            traceback.print_exc()
        sys.exit(error_code)


def _open_streams() -> None:
    """Replace closed standard streams (`<&-`) by streams that fail on use; messages are discarded.

    Python sets closed streams to None. The next opened file would get the number of a closed stream, and libraries would write
    into it. Characters that standard output cannot encode are escaped.
    """
    for number, (name, unusable) in enumerate((("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, unusable)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            raw = io.FileIO(number, "w" if number else "r", closefd=False)  # no buffer, which would fail again at the end
            setattr(sys, name, io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", write_through=True))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    """Print a warning; an InputWarning is a plain line, left out with `--quiet`."""
    if not issubclass(category, InputWarning):
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)
    elif not flags.quiet:
        print(f"fontes: {message}", file=sys.stderr, flush=True)


class Interrupted(BaseException):
    """The user has interrupted the command. Not a KeyboardInterrupt, after which typer exits silently."""


def _interrupt(number: int, frame: object) -> NoReturn:
    """Handle SIGINT: raise Interrupted with a sentence about the files that are complete."""
    from ..storage.caches import cache_folder

    cache = cache_folder().absolute()
    paths = [path for path in complete if cache not in path.absolute().parents]
    if not paths:
        raise Interrupted("interrupted; what was there before is unchanged")
    if len(paths) == 1:
        raise Interrupted(f"interrupted; {paths[0]} was complete by then")
    raise Interrupted(f"interrupted; {len(paths)} files or folders were complete by then, the last {paths[-1]}")


def _fail_usage(error: Exception, arguments: list[str], code: int) -> NoReturn:
    from .usage import usage_sentence

    if sentence := usage_sentence(error, arguments):
        print(f"fontes: {sentence}", file=sys.stderr)
    sys.exit(code)


def _fail(message: str, code: int | None) -> NoReturn:
    """Print the error that is being handled and exit, by default with code 1; with `--debug`, show where it occurred."""
    if flags.debug and code is None:
        raise
    if flags.debug:
        traceback.print_exc()
    print(f"fontes: {message}", file=sys.stderr)
    sys.exit(code or 1)

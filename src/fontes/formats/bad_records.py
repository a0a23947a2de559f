"""Records of a corpus that are left out: known quirks of official files, and as many bad ones as the user allows."""

from __future__ import annotations

import threading
import warnings

from ..core import InputError
from ..core.checks import check_whole
from ..core.errors import InputWarning


class KnownQuirkError(InputError):
    """A record of an official corpus that is no document; readers leave it out with a warning."""


class EmptyIdError(InputError):
    """A record whose id is empty, of which the user may leave out some."""


class BadRecords:
    """Bad records left out so far, each with a warning; shared by the files of a corpus.

    Args:
        limit: Maximum number of records to leave out. Known quirks are not counted.

    Raises:
        ParameterError: The limit is not a whole number from 0.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = check_whole("skip_bad", limit, 0)
        self._problems: set[str] = set()  # a corpus that is read again has the same ones
        self._lock = threading.Lock()

    def skip(self, error: InputError) -> None:
        """Warn that the record of an error is left out; raise InputError if no more may be left out."""
        problem = str(error)
        if isinstance(error, KnownQuirkError):
            warnings.warn(InputWarning(f"{problem}; left out"), stacklevel=2)
            return
        with self._lock:
            if problem in self._problems:
                return
            if len(self._problems) == self.limit:
                raise self._refused(error)
            self._problems.add(problem)
            count = len(self._problems)
        warnings.warn(InputWarning(f"{problem}; left out, {count:,} of at most {self.limit:,}"), stacklevel=2)

    def _refused(self, error: InputError) -> InputError:
        if self.limit:
            return InputError(f"{error}; {self.limit:,} bad before it were left out")
        remedy = "skip_bad= (--skip-bad N) leaves out up to so many bad documents"
        return InputError(f"{error}; {remedy}") if isinstance(error, EmptyIdError) else error

    def __reduce__(self) -> tuple[object, ...]:
        return BadRecords, (self.limit,)

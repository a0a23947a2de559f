"""Removal of duplicate documents from a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..core import ParameterError, Run, Stage, Strings
from ..formats.duplicates import Duplicates, read_duplicates

KEEP_CHOICES = ("original", "best")


@dataclass(frozen=True)
class Deduplicate(Stage[Run, Run], name="deduplicate"):
    """Keeps one document of each group of duplicates, with the group's best score.

    It takes a run of documents: put it before `Passages` or after `to_documents`.

    Args:
        duplicates: The result of `read_duplicates`, or the path of a file for it.
        keep: "original", the document that judgments name, even if it is not in the run; or "best", the document with the best
            score.
        prefix: Prefix for each id of the file: see `read_duplicates`.

    Raises:
        InputError: When called, for a file that cannot be read.
        ParameterError: When called, for invalid parameters.
    """

    duplicates: Duplicates | str
    keep: str = KEEP_CHOICES[0]
    prefix: str = ""

    def check(self) -> None:
        if self.keep not in KEEP_CHOICES:
            raise ParameterError(f"keep is {' or '.join(KEEP_CHOICES)}, not '{self.keep}'")
        if not isinstance(self.duplicates, (Duplicates, str, Path)):
            raise ParameterError("Deduplicate takes what read_duplicates gives, or the path of a file that it reads")
        if self.prefix and isinstance(self.duplicates, Duplicates):
            raise ParameterError("Deduplicate takes a prefix with the path of a file; give it to read_duplicates")

    def apply(self, run: Run, /) -> Run:
        self.check()
        duplicates = self._loaded_duplicates
        doc_ids = run.ids.take(np.arange(len(run.ids)))
        group_numbers: dict[str, int] = {}  # by id of the original
        groups = np.array(
            [group_numbers.setdefault(duplicates.get(doc_id, doc_id), len(group_numbers)) for doc_id in doc_ids], dtype=np.int64
        )
        unnamed = group_numbers.get("", -1)  # group of duplicates without a named original, which are removed
        topics = run.topic_numbers
        row_groups = groups[run.codes]
        # Rows are in rank order, so the first row of a group has its best score.
        _, best_rows = np.unique(topics * len(group_numbers) + row_groups, return_index=True)
        rows = np.sort(best_rows[row_groups[best_rows] != unnamed])
        keep_original = self.keep == "original"
        return Run.from_columns(
            run.topics,
            Strings.of(group_numbers) if keep_original else run.ids,
            topics[rows],
            row_groups[rows].astype(np.int32) if keep_original else run.codes[rows],
            run.scores[rows],
            documents=run.documents,
            provenance=run.provenance,
        )

    def key(self) -> str | None:
        """Return the cache key of the class, parameters and list: see `Stage.key`."""
        if isinstance(self.duplicates, Duplicates):
            return super().key()
        return replace(self, duplicates=self._loaded_duplicates, prefix="").key()

    @property
    def _loaded_duplicates(self) -> Duplicates:
        if isinstance(self.duplicates, Duplicates):
            return self.duplicates
        path = Path(self.duplicates)
        stat = path.stat() if path.is_file() else None
        return _read_cached(str(self.duplicates), self.prefix, stat and (stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=4)
def _read_cached(path: str, prefix: str, stamp: tuple[int, int] | None) -> Duplicates:
    """Read a list; it is cached until the modification time or size of the file (`stamp`) changes."""
    return read_duplicates(path, prefix)

"""What mining gives: the examples, and how they came about."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...core.progress import Report, silent
from ...core.run import Run
from ...core.stage import Stage
from ..duplicates import Duplicate
from ..examples import Example, Examples

NEGATIVES = ("negative", "negatives")
KINDS = ("exact", "normalised", "near")
SHOWN = 3  # duplicates in a report
REASONS = {  # one, and several
    "no_gold": ("topic without a relevant document", "topics without a relevant document"),
    "no_hits": ("topic without hits", "topics without hits"),
    "no_document": ("relevant document that is not there", "relevant documents that are not there"),
    "no_text": ("relevant document without text", "relevant documents without text"),
    "empty": ("candidate without text", "candidates without text"),
    "repeated": ("candidate with the text of another negative", "candidates with the text of another negative"),
    "no_title": ("document without title or text", "documents without title or text"),
    "too_short": ("document that is too short", "documents that are too short"),
}
QUANTILES = {"least": 0, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 1}


@dataclass(frozen=True, repr=False)
class Mined:
    """What `mine_negatives` gives.

    Args:
        examples: The examples.
        settings: With which they were mined, by name.
        total: How many topics, or documents, there were.
        unit: Which of the two, in the singular.
        left_out: How many topics, relevant documents and candidates were left out, by reason: a key of REASONS.
        duplicates: The candidates that the guard left out before their group was full; `id` is the candidate, `of` the relevant
            document, and `similarity` is 1 for all but near ones, of which it is the least that counts.
        negative_ranks: The rank of each negative in its run, in the order of the examples.
        positive_ranks: The rank of each group's relevant document; 0 where the run does not have it.
    """

    examples: Examples
    settings: Mapping[str, Any]
    total: int
    unit: str
    left_out: Mapping[str, int]
    duplicates: tuple[Duplicate, ...]
    negative_ranks: tuple[int, ...]
    positive_ranks: tuple[int, ...]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the examples, as `Examples.write`."""
        self.examples.write(path)

    def scored(self, reranker: Stage[Run, Run], progress: Report = silent) -> Mined:
        """The same with a teacher's scores, as `Examples.scored`."""
        return replace(self, examples=self.examples.scored(reranker, progress))

    @property
    def sizes(self) -> dict[int, int]:
        """A number of negatives to the number of groups that have so many, the greatest first."""
        return dict(sorted(Counter(len(example.negatives) for example in self.examples).items(), reverse=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: the statistics, without the examples."""
        kinds = Counter(pair.kind for pair in self.duplicates)
        present = [rank for rank in self.positive_ranks if rank]
        return {
            "total": self.total,
            "topics": len(self.examples.topics),
            "groups": len(self.examples),
            "negatives": len(self.negative_ranks),
            "sizes": {str(size): count for size, count in self.sizes.items()},
            "left_out": dict(self.left_out),
            "duplicates": {kind: kinds[kind] for kind in KINDS},
            "ranks": _quantiles(self.negative_ranks),
            "positives": {"in_run": len(present), "missed": len(self.positive_ranks) - len(present), **_quantiles(present)},
            "settings": dict(self.settings),
            "hash": self.examples.hash,
        }

    def __str__(self) -> str:
        negatives, groups = len(self.negative_ranks), len(self.examples)
        sizes = ", ".join(f"{count:,} with {size}" for size, count in self.sizes.items())
        total = _counted(self.total, (self.unit, f"{self.unit}s"))
        grouped = f"{_counted(groups, ('group', 'groups'))} of {len(self.examples.topics):,}"
        lines = [f"{total}: {grouped}, {_counted(negatives, NEGATIVES)} ({negatives / groups:.2f} a group: {sizes})"]
        lines += [f"left out: {_counted(count, REASONS[reason])}" for reason, count in self.left_out.items()]
        if self.duplicates:
            lines.append(self._duplicates_line())
        if self.negative_ranks:
            lines.append(f"ranks of the negatives: {_spread(self.negative_ranks)}")
        present = [rank for rank in self.positive_ranks if rank]
        missed = len(self.positive_ranks) - len(present)
        if present:
            missing = f"; {missed:,} not among the hits" if missed else ""
            lines.append(f"ranks of the relevant documents: {_spread(present)}{missing}")
        return "\n".join(lines)

    def _duplicates_line(self) -> str:
        kinds = Counter(pair.kind for pair in self.duplicates)
        counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
        pairs = list(dict.fromkeys(f"{pair.id} = {pair.of}" for pair in self.duplicates))
        shown = ", ".join(pairs[:SHOWN]) + (", …" if len(pairs) > SHOWN else "")
        noun = ("candidate that is a duplicate", "candidates that are duplicates")
        return f"left out: {_counted(len(self.duplicates), noun)} of a relevant document ({counts}): {shown}"

    def __repr__(self) -> str:
        return f"Mined({len(self.examples)} groups, {len(self.negative_ranks)} negatives)"


@dataclass
class Tally:
    """Counts what mining leaves out and what it takes, on the way to a `Mined`.

    Args:
        total: How many topics, or documents, there are.
        unit: Which of the two, in the singular.
    """

    total: int
    unit: str = "topic"
    left_out: Counter[str] = field(default_factory=Counter)
    duplicates: list[Duplicate] = field(default_factory=list)
    negative_ranks: list[int] = field(default_factory=list)
    positive_ranks: list[int] = field(default_factory=list)

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Counts what is left out, by a key of REASONS."""
        self.left_out[reason] += count

    def group(self, positive: int, negatives: Sequence[int]) -> None:
        """Counts the ranks of a group; 0 for a relevant document that the run does not have."""
        self.positive_ranks.append(positive)
        self.negative_ranks += negatives

    def mined(self, examples: Sequence[Example], settings: Mapping[str, Any]) -> Mined:
        """The examples with what was counted.

        Args:
            examples: The examples.
            settings: With which they were mined, by name.

        Raises:
            InputError: There are none.
        """
        left_out = {reason: self.left_out[reason] for reason in REASONS if self.left_out[reason]}
        if not examples:
            reasons = ", ".join(_counted(count, REASONS[reason]) for reason, count in left_out.items())
            raise InputError(f"no example could be made of {_counted(self.total, (self.unit, f'{self.unit}s'))}: {reasons}")
        return Mined(
            Examples(examples),
            settings,
            self.total,
            self.unit,
            left_out,
            tuple(self.duplicates),
            tuple(self.negative_ranks),
            tuple(self.positive_ranks),
        )


def _quantiles(ranks: Sequence[int]) -> dict[str, float]:
    return {name: float(np.quantile(ranks, q)) for name, q in QUANTILES.items()} if ranks else {}


def _spread(ranks: Sequence[int]) -> str:
    values = {name: f"{value:g}" for name, value in _quantiles(ranks).items()}
    return (
        f"{values['least']} to {values['most']}, the median {values['median']}, half of them "
        f"{values['lower']} to {values['upper']}"
    )


def _counted(number: int, nouns: tuple[str, str]) -> str:
    return f"{number:,} {nouns[number != 1]}"

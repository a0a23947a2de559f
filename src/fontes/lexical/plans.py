"""Plans: structured queries as required and excluded clauses, for the compiled search; and how a query is searched."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ..core.query import Clause, Condition, Group, Leaf


@dataclass
class Plan:
    """Clauses that a document must match, or must not match. Its score is the sum of all clauses that it has.

    Args:
        required: Leaves that a document must have; if empty, it must have at least one of the clauses that score.
        excluded: Leaves that it must not have.
        within: Conditions and groups that it must match.
        without: Conditions and groups that it must not match.
    """

    required: list[Leaf] = field(default_factory=list)
    excluded: list[Leaf] = field(default_factory=list)
    within: list[Clause] = field(default_factory=list)
    without: list[Clause] = field(default_factory=list)

    @classmethod
    def of(cls, query: Group) -> Plan | None:
        """Return the plan of a query without guarded clauses (see `structured.Scoring`); None if the query has no plan."""
        plan = cls()
        plan._add(query)
        if plan.required:
            return plan
        if query.must:
            return plan if any(isinstance(clause, Group) and is_union(clause) for clause in plan.within) else None
        return plan if is_union(Group(should=query.should)) else None

    def _add(self, group: Group) -> None:
        for clause in group.must:
            if isinstance(clause, Group) and clause.must:
                self._add(clause)
            elif isinstance(clause, (Condition, Group)):
                self.within.append(clause)
            else:
                self.required.append(clause)
        for clause in group.must_not:
            if isinstance(clause, (Condition, Group)):
                self.without.append(clause)
            else:
                self.excluded.append(clause)


def is_union(group: Group) -> bool:
    """Whether a document matches a group if it has at least one of the clauses in it that score."""
    return not (group.must or group.must_not) and all(
        is_union(clause) if isinstance(clause, Group) else not isinstance(clause, Condition) for clause in group.should
    )


class PlanRow(NamedTuple):
    """A clause or a segment in a plan.

    Args:
        kind: "required", "optional", "excluded" or "filter"; "segment", or "segments" that are searched as one.
        text: The clause, or which segment.
        documents: Number of documents that match the clause, or that the segment has.
    """

    kind: str
    text: str
    documents: int


@dataclass(frozen=True)
class SearchPlan:
    """How a query is searched.

    Args:
        stage: The text of the retriever.
        code: The code that runs.
        rows: The clauses, then the segments in the order of the search.
    """

    stage: str
    code: str
    rows: tuple[PlanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return asdict(self) | {"rows": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        width = max(len(row.text) for row in self.rows)
        rows = [f"{row.kind:<9} {row.text:<{width}} {row.documents:>9,}" for row in self.rows]
        return "\n".join([f"{self.stage}: {self.code}", *rows])

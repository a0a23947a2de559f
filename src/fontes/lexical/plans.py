"""Plans: structured queries as clauses that a document must have, may have and must not have, for the compiled search."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.query import Clause, Condition, Group, Leaf


@dataclass
class Plan:
    """Clauses that a document must match, and must not, to get the sum of the clauses that it has.

    Args:
        required: Clauses that it must have; where there are none, it must have one of those that score.
        excluded: Clauses that it must not have.
        within: Other clauses that it must match.
        without: Other clauses that it must not match.
    """

    required: list[Leaf] = field(default_factory=list)
    excluded: list[Leaf] = field(default_factory=list)
    within: list[Clause] = field(default_factory=list)
    without: list[Clause] = field(default_factory=list)

    @classmethod
    def of(cls, query: Group) -> Plan | None:
        """Return the plan of a query in which no clause scores in part of the documents alone; None where there is none."""
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
    """Whether a document matches a group if it has one of the clauses below it that score."""
    return not (group.must or group.must_not) and all(
        is_union(clause) if isinstance(clause, Group) else not isinstance(clause, Condition) for clause in group.should
    )

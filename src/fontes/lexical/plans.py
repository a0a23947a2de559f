"""Plans: structured queries as required and excluded clauses, for the compiled search."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        """Return the plan of a query without guarded clauses (see `structured.Part`); None if the query has no plan."""
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

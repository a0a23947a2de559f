"""The mutants of a session of cosmic-ray: a random choice of those that a test could tell, and those that survived.

`mutants.toml` says how the session is made and run. Of the mutants of one place (an operator, a number, a keyword) one is
chosen. Left out are those that nothing can tell: in annotations, under TYPE_CHECKING, in overloads, and decorators that work
without a trace (njit, overload, abstractmethod).
"""

from __future__ import annotations

import argparse
import ast
import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Place = tuple[int, int]  # line and column
SILENT = ("njit", "overload", "abstractmethod")


def untold(path: Path) -> list[tuple[Place, Place]]:
    """The parts of a module in which no mutant can be told."""
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in _untold(ast.parse(path.read_text(encoding="utf-8")))
    ]


def _untold(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield node
        elif isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef):
            yield from (decorator for decorator in node.decorator_list if ast.unparse(decorator).startswith(SILENT))
            if node.returns is not None:
                yield node.returns
            if any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
                yield node


def choose(session: sqlite3.Connection, number: int, seed: int) -> int:
    """Leaves so many mutants in the session; returns how many there are to choose from, one a place."""
    columns = "module_path, start_pos_row, start_pos_col, operator_name, occurrence, job_id"
    parts: dict[str, list[tuple[Place, Place]]] = {}
    places: dict[tuple[str, Place], list[str]] = defaultdict(list)
    for module, line, column, _, _, job in session.execute(f"SELECT {columns} FROM mutation_specs ORDER BY {columns}"):
        inside = parts.setdefault(module, untold(Path(module)))
        # The operator that removes a decorator starts at its @, one before the expression.
        if not any(start <= (line, column + 1) and (line, column) < end for start, end in inside):
            places[module, (line, column)].append(job)
    draw = random.Random(seed)
    one = [draw.choice(jobs) for jobs in places.values()]
    chosen = draw.sample(one, min(number, len(one)))
    marks = ", ".join("?" * len(chosen))
    for table in ("work_results", "mutation_specs", "work_items"):
        session.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({marks})", chosen)
    session.commit()
    return len(one)


def survivors(session: sqlite3.Connection) -> None:
    """Prints how many mutants there are of each outcome, and the changes that no test noticed."""
    for outcome, count in session.execute("SELECT test_outcome, count(*) FROM work_results GROUP BY test_outcome"):
        print(outcome, count)
    for (diff,) in session.execute("SELECT diff FROM work_results WHERE test_outcome != 'KILLED' ORDER BY diff"):
        print(diff)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("session", type=Path, help="the session's file, as `cosmic-ray init` makes it")
    parser.add_argument("--number", type=int, default=60, help="how many mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=13, help="of the choice (default: %(default)s)")
    parser.add_argument("--survivors", action="store_true", help="print the outcomes, and what survived")
    options = parser.parse_args()
    with sqlite3.connect(options.session) as session:
        if options.survivors:
            survivors(session)
        else:
            print(f"{options.number} of {choose(session, options.number, options.seed)} mutants")


if __name__ == "__main__":
    main()

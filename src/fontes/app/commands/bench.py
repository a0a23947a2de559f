"""`fontes bench`: the same systems on several collections, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..flags import ray_of
from ..options import CheckLock, Json, Ray, Results, argument, check_local
from ..output import check_values, counted, end_check, note, print_report, reporting


def bench(
    file: Annotated[Path, argument("Collections and systems, in TOML.")],
    output: Results = None,
    check: CheckLock = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Run the same systems on several collections: one table with means, ranks and tests, and an experiment for each."""
    from ...experiments import Suite
    from ...experiments.runner import LOCK

    check_local(check, ray)
    suite = Suite(file, output)
    with reporting(json, steps=True, compiling=True):
        result = suite.check() if check else suite.run(ray=ray_of(ray))
    if isinstance(result, dict):
        values = {collection: check_values(outcome) for collection, outcome in result.items()} if json else None
        end_check({suite.output / collection / LOCK: outcome for collection, outcome in result.items()}, values)
        return
    if not json:
        note(f"{suite.output}: report and runs of {counted(len(result.reports), 'collection')}")
    print_report(result, json=json)

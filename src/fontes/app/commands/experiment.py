"""`fontes experiment`: run an experiment, or check that its results are reproduced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..flags import ray_of
from ..options import CheckLock, Json, Ray, Results, argument, check_local
from ..output import check_values, counted, end_check, note, print_report, reporting


def experiment(
    file: Annotated[Path, argument("The experiment, in TOML.")],
    output: Results = None,
    check: CheckLock = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Run an experiment and write runs, a report and a lock; or check that its results are reproduced."""
    from ...experiments import Experiment
    from ...experiments.provenance import Check
    from ...experiments.runner import LOCK

    check_local(check, ray)
    experiment_run = Experiment(file, output)
    with reporting(json, steps=True, compiling=True):
        result = experiment_run.check() if check else experiment_run.run(ray=ray_of(ray))
    if isinstance(result, Check):
        end_check({experiment_run.output / LOCK: result}, check_values(result) if json else None)
        return
    if not json:
        note(f"{experiment_run.output}: report and runs of {counted(len(result.systems), 'system')}")
    print_report(result, json=json)

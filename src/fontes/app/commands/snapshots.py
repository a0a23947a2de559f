"""`fontes snapshots`: compare systems over snapshots of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ...comparison.testing import Testing
from ...core import Qrels
from ...core.errors import InputError, ParameterError
from ..options import Json, Measures, ReportFiles, argument, option, options_of
from ..output import print_report

QRELS = ("qrels.txt", "qrels.tsv", "qrels_processed.txt", "qrels/test.tsv")
RUNS = ("runs/*.run", "*.run", "*.trec")


@options_of(Testing, "test", "correction", "alpha", "seed", "allow_empty")
def snapshots(
    settings: dict[str, Any],
    folders: Annotated[list[Path], argument("Folders in order of time, each with the runs NAME.run or runs/NAME.run.")],
    pivot: Annotated[str, option("The system that the others are compared with.")] = "bm25",
    qrels: Annotated[
        list[str] | None,
        option("Judgments of each folder, in order, as for the other commands.", f"the folder's {', '.join(QRELS[:2])}, …"),
    ] = None,
    reference: Annotated[str | None, option("Folder that the others are compared with.", "the first")] = None,
    measures: Measures = None,
    output: ReportFiles = None,
    json: Json = False,
) -> None:
    """Compare systems over time: Result Delta, relative improvement and effect ratio beside a pivot system."""
    from ...comparison import compare_snapshots
    from ...formats import read_run
    from ...measures import DEFAULT

    if qrels and len(qrels) != len(folders):
        raise ParameterError(
            f"--qrels was given {len(qrels)} times for {len(folders)} folders; give it once for each, in order"
        )
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    if len(set(names)) < len(names):
        raise ParameterError("a folder is named twice; name each snapshot once, in order of time")
    by_name = dict(zip(names, folders, strict=True))
    sources = qrels or [str(_find_qrels(folder)) for folder in folders]
    runs_and_qrels = {
        name: ({path.stem: read_run(path) for path in _find_runs(folder)}, Qrels.of(source))
        for (name, folder), source in zip(by_name.items(), sources, strict=True)
    }
    if reference is not None:
        reference = next((name for name, folder in by_name.items() if reference in (name, str(folder))), reference)
    report = compare_snapshots(runs_and_qrels, pivot, measures or DEFAULT, reference=reference, testing=Testing(**settings))
    print_report(report, output, json)


def _find_qrels(folder: Path) -> Path:
    _require_folder(folder)
    for name in QRELS:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder}: no judgments ({', '.join(QRELS)}); name them with --qrels, once for each folder")


def _find_runs(folder: Path) -> list[Path]:
    _require_folder(folder)
    for pattern in RUNS:
        if files := sorted(folder.glob(pattern)):
            return files
    raise InputError(f"{folder}: no runs ({', '.join(RUNS)}); a snapshot has a run of each system")


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; a snapshot is a folder of runs")

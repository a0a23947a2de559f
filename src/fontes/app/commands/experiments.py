"""`fontes new`, `experiment`, `bench`, `compare`, `failures` and `snapshots`: systems beside one another."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from ...comparison import compare_snapshots, failures as failures_of
from ...comparison.testing import Testing
from ...core import Qrels
from ...core.errors import InputError, ParameterError
from ...datasets import judged_topics
from ...datasets.samples import HARBOUR, Harbour
from ...experiments import Experiment, Suite, compare as compare_runs
from ...experiments.provenance import Check
from ...experiments.runner import LOCK
from ...formats import read_run
from ...measures import DEFAULT, parse
from ...measures.evaluation import refuse_exchanged
from ...measures.names import need_groups, parse_all
from ...storage.files import as_path, write
from ..flags import ray_of
from ..options import (
    CheckLock,
    Json,
    Judged,
    Machine,
    Measures,
    Ray,
    ReportFiles,
    Results,
    Split,
    argument,
    check_local,
    option,
    options_of,
    reads_files,
)
from ..output import check_values, counted, end_check, note, print_report, reporting, tell
from ..pipelines import open_index

TEMPLATES = Path(__file__).parent.parent / "project"
PLACEHOLDER = "PROJECT"  # for the name of the project in templates
TASK = "claims"  # of the sample collection
QRELS = ("qrels.txt", "qrels.tsv", "qrels_processed.txt", "qrels/test.tsv")
RUNS = ("runs/*.run", "*.run", "*.trec")


def new(directory: Annotated[Path, argument("Folder to write; it is new or empty.")], json: Json = False) -> None:
    """Write a project: a folder of data, an experiment, a notebook and a README. They run, on a sample until you replace it."""
    folder = as_path(directory)
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{directory} is not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        files = dict(_files(folder.resolve().name))
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{directory} is a file; name a new folder") from None
    except OSError as error:
        raise InputError(f"{directory}: the folder cannot be made ({error.strerror or error})") from None
    for name, content in files.items():
        write(folder / name, [content])
    tell(
        json,
        {"directory": str(directory), "files": list(files)},
        f"{directory}: {', '.join(files)}",
        f"Next: cd {directory}; fontes experiment experiment.toml",
    )


def _files(project: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a project."""
    title = " ".join(project.split())
    for name, written in (("README.md", title), ("experiment.toml", ""), ("notebook.ipynb", json_.dumps(title)[1:-1])):
        yield name, (TEMPLATES / name).read_text(encoding="utf-8").replace(PLACEHOLDER, written).encode()
    yield ".gitignore", (TEMPLATES / "gitignore").read_bytes()
    yield "data/corpus.jsonl", (HARBOUR / "corpus.jsonl").read_bytes()
    yield "data/queries.jsonl", (HARBOUR / TASK / "queries.jsonl").read_bytes()
    judgments = [
        f"{topic}\t{doc}\t{grade}\n" for topic, grades in Harbour(TASK).qrels().items() for doc, grade in grades.items()
    ]
    yield "data/qrels/test.tsv", "".join(["query-id\tcorpus-id\tscore\n", *judgments]).encode()


def experiment(
    file: Annotated[Path, argument("The experiment, in TOML.")],
    output: Results = None,
    check: CheckLock = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Run an experiment and write runs, a report and a lock; or check that its results are reproduced."""
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


def bench(
    file: Annotated[Path, argument("Collections and systems, in TOML.")],
    output: Results = None,
    check: CheckLock = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Run the same systems on several collections: one table with means, ranks and tests, and an experiment for each."""
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


@reads_files("id", "text", of="topics")
@options_of(compare_runs, "test", "correction", "alpha", "seed", "allow_empty")
def compare(
    settings: dict[str, Any],
    qrels: Judged,
    runs: Annotated[list[Path], argument("Runs: TREC or MS MARCO.")],
    measures: Measures = None,
    baseline: Annotated[str | None, option("A run, to test the others against.", "all pairs are tested")] = None,
    topics: Annotated[str | None, option("Topics to measure, with their texts: as the judgments.", "all judged topics")] = None,
    index: Annotated[Path | None, option("Index, for its documents' texts in a page.", False)] = None,
    split: Split = None,
    machine: Machine = None,
    output: ReportFiles = None,
    html: Annotated[Path | None, option("Write the report as a page.", False)] = None,
    json: Json = False,
) -> None:
    """Compare runs: means side by side, tests, intervals and effect sizes."""
    for path in runs:
        _refuse_measure(path)
    opened = None if index is None else open_index(index)
    parsed = parse_all(measures or DEFAULT)
    try:
        queries, judgments = judged_topics(topics, qrels, split, groups=need_groups(parsed))
        assert judgments is not None  # `qrels` is given
        report = compare_runs(
            runs,
            queries,
            judgments,
            parsed,
            baseline=baseline,
            cache=False,
            machine=None if machine is None else Qrels.of(machine),
            **settings,
        )
    except InputError as error:
        for path in runs:
            refuse_exchanged(path, qrels, error)
        raise
    report = report if opened is None else report.with_documents(opened)
    if html is not None:
        report.save(html, "html")
    print_report(report, output, json)


def _refuse_measure(path: Path) -> None:
    """Raise ParameterError if a path is the name of a measure and not of a file."""
    if path.exists() or path.suffix:
        return
    try:
        parse(str(path))
    except ParameterError:
        return
    raise ParameterError(f"'{path}' is a measure, not a run; write -m {path}")


@reads_files("id", "text", of="topics")
def failures(
    qrels: Judged,
    run: Annotated[Path, argument("A run: TREC or MS MARCO.")],
    beside: Annotated[Path | None, option("Run to compare with.", "the ideal order of the judged documents")] = None,
    measure: Annotated[str, option("The measure.", True, "-m", "--measure")] = "nDCG@10",
    n: Annotated[int, option("Topics.", True, "-n")] = 10,
    topics: Annotated[str | None, option("Topics to examine, with their texts: as the judgments.", "all judged topics")] = None,
    index: Annotated[Path | None, option("Index searched, to examine words, lengths and repeats.", False)] = None,
    split: Split = None,
    output: ReportFiles = None,
    json: Json = False,
) -> None:
    """List the topics on which a run loses most, with facts that may explain it."""
    opened = None if index is None else open_index(index)
    try:
        queries, judgments = judged_topics(topics, qrels, split, need_groups(measure))
        assert judgments is not None  # `qrels` is given
        ranking, other = read_run(run), None if beside is None else read_run(beside)
        names = run.stem, "" if beside is None else beside.stem
        result = failures_of(ranking, judgments, measure, beside=other, topics=queries, index=opened, names=names, n=n)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise
    print_report(result, output, json)


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

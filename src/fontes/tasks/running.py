"""`run_task`: chooses systems on one side, runs the experiment on the others, and writes notes and submission."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import Report, SnapshotReport, Testing, compare_snapshots
from ..core import InputError, ParameterError, Run, Stage, Topics
from ..core.hints import nearest
from ..core.work import ProgressCallback, work
from ..datasets import corpus_of
from ..experiments import Collection, Experiment
from ..experiments.experiment import ExperimentFile, Expressions
from ..experiments.provenance import read_lock
from ..experiments.runner import LOCK
from ..formats import write_qrels, write_run, write_topics
from ..measures import parse
from ..recipes.learning import cached_run
from ..storage.files import write
from ..train import Side
from .base import TaskSide
from .choosing import BASELINE, Choices, Chooser, TaskOptions
from .notes import notes_of
from .project import EXPERIMENT, TaskProject, collection_of, toml

if TYPE_CHECKING:
    from ..index import Index

RESULTS, PAPER, SUBMISSION = "results", "paper", "submission"
HELD_OUT, CHOSEN, UNMEASURED = "held-out", "chosen", "unmeasured"
COMMENTS = {
    HELD_OUT: "systems with choices are runs in which no topic had a part in what was chosen for it.",
    CHOSEN: "what was chosen on another side.",
    UNMEASURED: "what was chosen on these very topics: it is for searching other topics, and measures too well on these.",
}
"""Comments of experiment files, by kind of file."""


@dataclass(frozen=True)
class TaskResult:
    """Result of `run_task`.

    Args:
        project: The project.
        reports: The report of each measured side; the first is on held-out topics of the side used for choosing.
        submitted: The submitted system.
        submission: The files to hand in.
        paper: Files with a table and a paragraph for the working notes.
        notes: Sentences on choices, training and the submission.
        snapshots: The comparison over time, if the sides are snapshots.
    """

    project: TaskProject
    reports: Mapping[str, Report]
    submitted: str
    submission: tuple[Path, ...]
    paper: tuple[Path, ...]
    notes: tuple[str, ...]
    snapshots: SnapshotReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: the locks of all sides, and the paths of written files."""
        folder = self.project.folder
        return {
            "task": self.project.task.name,
            "results": {name: read_lock(folder / RESULTS / name / LOCK) for name in self.reports},
            "submitted": self.submitted,
            "submission": [path.relative_to(folder).as_posix() for path in self.submission],
            "paper": [path.relative_to(folder).as_posix() for path in self.paper],
            "notes": list(self.notes),
            "snapshots": None if self.snapshots is None else self.snapshots.to_dict(),
        }

    def __str__(self) -> str:
        choose = next(iter(self.reports))
        parts = []
        for name, report in self.reports.items():
            remark = " (held-out topics: none had a part in what was chosen for it)" if name == choose else ""
            parts.append(f"{name}{remark}\n\n{report}")
        if self.snapshots is not None:
            parts.append(f"over time\n\n{self.snapshots}")
        return "\n\n".join([*parts, "\n".join(f"note: {note}" for note in self.notes)]).rstrip("\n")


def run_task(
    project: TaskProject | str | Path, options: TaskOptions | None = None, progress: ProgressCallback | None = None
) -> TaskResult:
    """Run a project: baselines, choices, fusion, tests, the table and paragraph of the notes, and the submission.

    Parameters of BM25 and weights of fusion are chosen on the side `choose` of task.toml, which is measured by nested
    cross-validation: the topics of each fold are run with the parameters and weights chosen on the other folds. Other measured
    sides are run with those chosen on all topics of `choose`. A cross-encoder is trained on the side `train`. All runs and
    numbers come from `fontes.Experiment`.

    Args:
        project: The project, or its folder.
        options: Models and settings.
        progress: Called with the progress of each step.

    Raises:
        InputError: The data, the experiment or a model cannot be used.
        ParameterError: An option is invalid.
    """
    project = project if isinstance(project, TaskProject) else TaskProject.open(project)
    options = options or TaskOptions()
    base = _read_base(project)
    roles = project.roles
    assert roles.choose is not None
    with work(progress=progress):
        chosen = _choose(project, base, options)
        if options.submit is not None and options.submit not in chosen.systems:
            raise ParameterError(f"there is no system '{options.submit}' to submit; {nearest(options.submit, chosen.systems)}")
        reports = {}
        for side in (roles.choose, *roles.measure):
            kind = HELD_OUT if side == roles.choose else CHOSEN
            reports[side] = Experiment(_write_experiment(project, base, chosen, side, kind)).run()
        if roles.measure:
            final = project.folder / f"{CHOSEN}-{roles.measure[0]}.toml"
        else:
            final = _write_experiment(project, base, chosen, roles.choose, UNMEASURED)
        submitted = options.submit or chosen.best
        notes = [*chosen.notes, _reason(project, chosen, submitted, options)]
        submission, remarks = _write_submission(project, final, submitted, chosen.systems)
    snapshots = _compare_snapshots(project, reports) if project.task.over_time and len(reports) > 1 else None
    result = TaskResult(project, reports, submitted, submission, (), (*notes, *remarks), snapshots)
    return replace(result, paper=_write_paper(result, chosen))


def _read_base(project: TaskProject) -> ExperimentFile:
    """Read the project's own experiment file, and check that the project can be run."""
    path = project.folder / EXPERIMENT
    if not project.corpora:
        alternatives = "runs can be compared (fontes compare) and fused (fontes fuse --learn)"
        raise InputError(
            f"{project.folder}: there are no documents, so nothing to search; {alternatives}, or lay the task out with them"
        )
    if project.roles.choose is None:
        raise InputError(
            f"{project.folder}: no side is judged, so nothing can be tuned or measured; 'fontes search' makes runs"
        )
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; lay the task out again, or write the experiment")
    base = ExperimentFile(path)
    if BASELINE not in base.expressions:
        raise InputError(f"{path}, [systems]: there is no '{BASELINE}', the baseline; {BASELINE} = \"bm25()\" is one")
    for name in ("tuned", "fused"):
        if name in base.raw["systems"]:
            raise InputError(f"{path}, [systems]: '{name}' is the name of a system that is chosen; give it another")
    return base


def _choose(project: TaskProject, base: ExperimentFile, options: TaskOptions) -> Choices:
    roles, sides = project.roles, project.sides
    assert roles.choose is not None
    side = _judged_side(sides[roles.choose])
    index = _open_index(project, base, roles.choose)
    systems = Expressions(base).made(index)
    stages = {name: system for name in base.expressions if isinstance(system := systems[name], Stage)}
    train = None
    if roles.train is not None:
        train = side if roles.train == roles.choose else _judged_side(sides[roles.train])
    later = dict.fromkeys(name for name in (*roles.measure, *roles.submit) if name not in (roles.train, roles.choose))
    measured = Topics(replace(topic, id=f"{name} {topic.id}") for name in later for topic in sides[name].topics.values())
    chooser = Chooser(index, base.expressions, stages, side, project.table.measure, project.folder, options)
    return chooser.choose(train, measured)


def _judged_side(side: TaskSide) -> Side:
    """Return the judged topics of a side, with their judgments."""
    assert side.qrels is not None
    topics = side.topics.judged(side.qrels)
    return Side(topics, side.qrels.only(topics))


def _open_index(project: TaskProject, base: ExperimentFile, side: str) -> Index:
    corpus = project.corpora.get(side)
    if corpus is None:
        raise InputError(f"{project.folder}: the side '{side}' has no documents; name them as 'corpus' in task.toml")
    documents = corpus_of(corpus) if isinstance(corpus, str) else corpus
    table = base.index
    folder = project.folder / (table.folder or f"{RESULTS}/indexes")
    return Collection(documents, folder).index(table.analyzer, table.fields, table.vectors, table.separate, table.positions)


def _write_experiment(project: TaskProject, base: ExperimentFile, chosen: Choices, side: str, kind: str) -> Path:
    """Write the experiment file of a side; `kind` is one of COMMENTS."""
    folder = project.folder
    systems: dict[str, object] = dict(chosen.systems)
    collection = collection_of(project, side)
    if kind == HELD_OUT:
        for name, run in chosen.held_out.items():
            path = folder / HELD_OUT / f"{name}.run"
            path.parent.mkdir(exist_ok=True)
            write_run(run, path, tag=name)
            systems[name] = {"run": f"{HELD_OUT}/{name}.run"}
        if len(chosen.topics.topics) < len(project.sides[side].topics):
            write_topics(chosen.topics.topics, folder / HELD_OUT / "queries.jsonl")
            write_qrels(chosen.topics.qrels, folder / HELD_OUT / "qrels.tsv", "beir")
            collection |= {"topics": f"{HELD_OUT}/queries.jsonl", "qrels": f"{HELD_OUT}/qrels.tsv"}
    raw = {key: value for key, value in base.raw.items() if key != "output"}
    index = {"folder": f"{RESULTS}/indexes", **raw.get("index", {})}
    report = {"baseline": BASELINE, "allow_empty": True, **raw.get("report", {})}  # "tuned" may be the baseline
    report["forms"] = list(dict.fromkeys([*report.get("forms", ["md", "json", "html"]), "tex"]))
    measures = list(report.get("measures", project.task.measures))
    if project.table.measure not in measures:
        measures = [project.table.measure, *measures]
    output = {} if kind == UNMEASURED else {"output": f"{RESULTS}/{side}"}
    tables = {"collection": collection, "index": index, "systems": systems, "report": {**report, "measures": measures}}
    path = folder / (f"{HELD_OUT}.toml" if kind == HELD_OUT else f"{CHOSEN}-{side}.toml")
    comment = f"# Written by `fontes task run`: {COMMENTS[kind]}\n"
    write(path, [toml({**output, **raw, **tables}, comment).encode()])
    return path


def _reason(project: TaskProject, chosen: Choices, submitted: str, options: TaskOptions) -> str:
    roles = project.roles
    value = f"{project.table.measure} {chosen.values[submitted]:.4f}"
    if options.submit is None:
        return f"submitted: {submitted}, the best on the held-out topics of {roles.choose} ({value})"
    return f"submitted: {submitted}, as asked ({value} on the held-out topics of {roles.choose})"


def _write_submission(
    project: TaskProject, final: Path, name: str, systems: Mapping[str, str]
) -> tuple[tuple[Path, ...], list[str]]:
    """Write the submission of a system, and check it."""
    file = ExperimentFile(final)
    sides = {side: project.sides[side] for side in project.roles.submit}
    runs: dict[str, Run] = {}
    for side, task_side in sides.items():
        stage = Expressions(file).made(_open_index(project, file, side))[name]
        runs[side] = cached_run(name, stage, task_side.topics, project.folder)
    folder = project.folder / SUBMISSION
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = tuple(project.task.submit(runs, folder, name, systems[name]))
    topics = {side: task_side.topics for side, task_side in sides.items()}
    return paths, [remark for path in paths for remark in project.task.check_submission(path, topics, None)]


def check_submission(project: TaskProject, path: Path) -> list[str]:
    """Check a submission against the topics and documents of a project.

    Returns:
        Remarks.

    Raises:
        InputError: The file is missing, or the submission is invalid; the message has a sentence for each fault, with line and
            remedy.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    sides = {side: project.sides[side].topics for side in project.roles.submit}
    corpora = {project.corpora[side] for side in sides if side in project.corpora}
    ids = {doc.id for corpus in corpora for doc in corpus_of(str(corpus))} if corpora else None
    return project.task.check_submission(path, sides, ids)


def _compare_snapshots(project: TaskProject, reports: Mapping[str, Report]) -> SnapshotReport:
    runs_and_qrels = {
        name: ({s: system.run for s, system in report.systems.items()}, report.qrels) for name, report in reports.items()
    }
    measures = next(iter(reports.values())).measures
    report = compare_snapshots(runs_and_qrels, BASELINE, measures, testing=Testing(allow_empty=True))
    for form in ("md", "tex", "json", "html"):
        report.save(project.folder / RESULTS / f"snapshots.{form}")
    return report


def _write_paper(result: TaskResult, chosen: Choices) -> tuple[Path, ...]:
    """Write the table and the paragraph for the working notes, and return their paths."""
    project_folder = result.project.folder
    folder = project_folder / PAPER
    folder.mkdir(exist_ok=True)
    last = list(result.reports)[-1]
    table, paragraph = folder / "table.tex", folder / "notes.tex"
    shutil.copyfile(project_folder / RESULTS / last / "report.tex", table)
    locks = {name: json.loads((project_folder / RESULTS / name / LOCK).read_text(encoding="utf-8")) for name in result.reports}
    measure = str(parse(result.project.table.measure))
    text = notes_of(result.project, locks, chosen.systems, result.submitted, measure)
    write(paragraph, [text.encode()])
    paths = [table, paragraph]
    if result.snapshots is not None:
        paths.append(folder / "snapshots.tex")
        shutil.copyfile(project_folder / RESULTS / "snapshots.tex", paths[-1])
    return tuple(paths)

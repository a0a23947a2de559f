"""`fontes task`: shared tasks, from the organisers' data to the submission."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ...options import Json, argument, option
from ...output import note, print_json, reporting, say

group = typer.Typer()

Folder = Annotated[Path, argument("The project.", metavar="DIR")]


@group.command("list")
def list_(json: Json = False) -> None:
    """List the tasks, with the organisers' data and the submission of each."""
    from ....tasks import registry

    tasks = {name if name != "beir" else "beir:FOLDER": task for name, task in registry.items()}
    if json:
        print_json(
            [
                {"name": name, "title": task.title, "given": task.organisers, "submitted": task.submits}
                for name, task in tasks.items()
            ]
        )
        return
    for name, task in tasks.items():
        say(f"{name}: {task.title}\n    given:     {task.organisers}\n    submitted: {task.submits}")


@group.command()
def new(
    name: Annotated[str, argument("The task, as fontes task list names it; beir:FOLDER.")],
    folder: Annotated[Path, argument("Folder to make.", metavar="DIR")],
    data: Annotated[
        list[Path] | None, option("The organisers' data: a folder, a file or an archive; repeatable.", False)
    ] = None,
    json: Json = False,
) -> None:
    """Set up a project from the organisers' data, and check it."""
    from ....tasks import check_data, new_project

    project = new_project(name, folder, data or [])
    with reporting(json):
        result = check_data(project)
    if json:
        print_json({"folder": str(folder), **result.to_dict()})
    else:
        say(str(result))
        next_step = f"fontes task run {shlex.quote(str(folder))} runs it" if result else "fix the problems, then run it"
        note(f"{folder}: laid out; {next_step}; {folder}/README.md tells more")


@group.command()
def check(
    folder: Folder,
    submission: Annotated[list[Path] | None, option("A file to hand in; repeatable.", "those in DIR/submission")] = None,
    json: Json = False,
) -> None:
    """Check the data of a project, and its submission if there is one."""
    from ....tasks import TaskProject, check_data, check_submission

    project = TaskProject.open(folder)
    with reporting(json):
        result = check_data(project)
    files = submission or sorted(path for path in (folder / "submission").rglob("*") if path.is_file())
    if not json:
        say(str(result))
    remarks = {str(path): check_submission(project, path) for path in files}
    if json:
        print_json({**result.to_dict(), "submission": remarks})
    for path, path_remarks in remarks.items() if not json else ():
        for remark in path_remarks:
            say(f"note: {remark}")
        say(f"{path}: valid")
    if not result:
        raise typer.Exit(1)


@group.command()
def run(
    folder: Folder,
    dense: Annotated[
        str | None,
        option(
            "An encoder, for a dense row: a folder or a name; without a value, one of an installed package.",
            False,
            metavar="[MODEL]",
        ),
    ] = None,
    sparse: Annotated[str | None, option("A learned sparse model, for a sparse row.", False)] = None,
    rerank: Annotated[str | None, option("A cross-encoder that reranks the best of BM25.", False)] = None,
    train: Annotated[str | None, option("A model to train such a cross-encoder from, on the training side.", False)] = None,
    submit: Annotated[str | None, option("The system to submit.", "the best on held-out topics")] = None,
    depth: Annotated[int, option("Documents that are reranked.", min=1)] = 100,
    seed: Annotated[int, option("Of folds and training.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Run a project: baselines, tuning, fusion, tests, the table and paragraph of the notes, and the submission."""
    from ....tasks import TaskOptions, TaskProject, run_task

    options = TaskOptions(dense, sparse, rerank, train, submit, depth, seed)
    project = TaskProject.open(folder)
    with reporting(json, steps=True, compiling=True):
        result = run_task(project, options)
    if json:
        print_json(result.to_dict())
        return
    say(str(result))
    for path in (*result.paper, *result.submission):
        note(f"{path}: written")

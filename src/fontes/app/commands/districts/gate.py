"""`fontes gate`: a check, for continuous integration, that a change of a search loses no quality."""

from __future__ import annotations

from dataclasses import replace
from os.path import relpath
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from ....core import Qrels
from ...options import Json, Split, argument, option
from ...output import counted, print_json, print_report, reporting, say, tell

group = typer.Typer()

File = Annotated[Path, argument("The gate.", True, metavar="[FILE]")]


@group.command()
def init(
    source: Annotated[str, argument("An index; or a collection to index: sample:NAME, irds:NAME, a BEIR folder.")],
    file: Annotated[Path, argument("File to write.", True, metavar="[FILE]")] = Path("gate.toml"),
    topics: Annotated[str | None, option("Topics, for an index.", "the collection's")] = None,
    qrels: Annotated[str | None, option("Judgments, for an index.", "the collection's")] = None,
    split: Split = None,
    pipeline: Annotated[str, option("Pipeline of the first baseline.")] = "bm25()",
    json: Json = False,
) -> None:
    """Write the file of a gate, with a first baseline."""
    from ....gate import init as write_gate

    with reporting(json, compiling=True):
        gate = write_gate(source, file, topics, qrels, split, pipeline)
    written = [str(file), str(gate.baseline_run), str(gate.lock)]
    tell(
        json,
        {"files": written, "topics": len(gate.topics)},
        f"{', '.join(written)}: {len(gate.topics):,} topics",
        f"Next: change [candidate] in {file}; fontes gate run {file}; fontes gate plan {file} names the topics needed",
    )


@group.command()
def run(
    file: File = Path("gate.toml"),
    output: Annotated[
        list[Path] | None,
        option(
            "Write the result: .md for a pull request, .xml for JUnit, .json, or .html; repeatable.", False, "-o", "--output"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run baseline and candidate, and decide. Exit code 0 passes, 1 loses, 2 not enough topics, 3 did not run."""
    from ....gate import GateFile, GateResult, run_gate

    forms = {path: GateResult.form_of(path) for path in output or []}  # a wrong name is told before the arms run
    gate = GateFile.read(file)
    with reporting(json, compiling=True):
        result = run_gate(gate)
    result.write()
    pages = [path for path, form in forms.items() if form == "to_html" and result.report is not None]
    for path, form in forms.items():
        if form != "to_html" or path in pages:  # without a comparison there is no page
            link = {"page": quote(Path(relpath(pages[0], path.parent)).as_posix())} if pages else {}
            result.save(path, **(link if form == "to_markdown" else {}))
    print_report(result, json=json)
    raise typer.Exit(result.exit_code)


@group.command()
def plan(
    file: File = Path("gate.toml"),
    machine: Annotated[
        str | None, option("Machine labels of these and more topics, which the judgments correct.", "the file's")
    ] = None,
    json: Json = False,
) -> None:
    """Name the topics that the gate needs, from the differences of its arms or the values of its baseline."""
    from ....gate import GateFile, plan_gate

    gate = GateFile.read(file)
    if machine is not None:
        gate = replace(gate, machine=Qrels.of(machine))
    with reporting(json, compiling=True):
        result = plan_gate(gate)
    if json:
        rows = [{**vars(row), "measure": str(row.measure), "spread": vars(row.spread)} for row in result.measures]
        print_json({"topics": result.topics, "measures": rows})
        return
    for row in result.measures:
        say(f"{row.measure}: {row} (from {row.low:,} to {row.high:,}; by {row.spread.source})")
        if gate.machine is not None:
            judged = "more than there are" if row.judged is None else f"{row.judged:,}"
            say(f"{row.measure}: with machine labels of {len(gate.machine):,} topics, people must judge {judged}")


@group.command()
def accept(
    file: File = Path("gate.toml"),
    because: Annotated[str, option("Why a change is accepted that does not pass; the lock keeps it.", False)] = "",
    json: Json = False,
) -> None:
    """Make the candidate's run of the last fontes gate run the baseline, and write its lock."""
    from ....gate import GateFile, accept as accept_run

    gate = GateFile.read(file)
    lock = accept_run(gate, because)
    facts = {"run": str(gate.baseline_run), "lock": str(gate.lock), "changes": lock.accepted, "means": lock.means}
    means = ", ".join(f"{measure} {mean:.4f}" for measure, mean in lock.means.items())
    accepted = counted(lock.accepted, "change")
    tell(json, facts, f"{gate.baseline_run}: {means}; {accepted} accepted since the first baseline")

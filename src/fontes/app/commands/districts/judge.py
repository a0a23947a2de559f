"""`fontes judge`: judge pools of documents in the browser."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....core import Topics
from ....core.errors import InputError, ParameterError, needs_extra
from ...completion import complete_pipeline
from ...options import Measures, argument, option, options_of, reads_files
from ...output import counted, note, reporting, say
from ...server.settings import ServerSettings, named_expressions
from ...usage import refuse_misspelt

if TYPE_CHECKING:
    from ....index import Index
    from ...judging.store import JudgmentStore


@reads_files("id", "text", of="topics")
@options_of(ServerSettings, "port", "host", "hosts")
def judge(
    settings: dict[str, Any],
    index: Annotated[Path | None, argument("Index directory.")] = None,
    topics: Annotated[
        str | None, option("Topics: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", "those typed in the page")
    ] = None,
    pipeline: Annotated[
        list[str] | None,
        option(
            "Pipeline that fills the pools, NAME=EXPR or EXPR; repeatable.", "bm25=bm25()", autocompletion=complete_pipeline
        ),
    ] = None,
    run: Annotated[list[Path] | None, option("Run whose documents join the pools; repeatable.", False)] = None,
    depth: Annotated[int, option("Documents of each pipeline in a pool.", min=1, max=10_000)] = 20,
    judgments: Annotated[Path, option("File of judgments, which is created or continued.")] = Path("judgments.sqlite"),
    judge: Annotated[
        list[str] | None, option("Name of a judge; new judges get a token; repeatable.", "those in the file, or 'judge'")
    ] = None,
    renew: Annotated[list[str] | None, option("Name of a judge who gets a new token; repeatable.")] = None,
    token_file: Annotated[
        Path | None, option("File to create for new tokens, which only you can read.", "printed once")
    ] = None,
    export: Annotated[Path | None, option("Write topics and judgments into this folder, and serve nothing.", False)] = None,
    llm: Annotated[
        str | None, option("A language model that judges the pools first: a name, local:FOLDER, or llm(…).", False)
    ] = None,
    guidelines: Annotated[
        str | None, option("For --llm: umbrela, or a file with your guidelines, FILE.md.", "umbrela_reasons")
    ] = None,
    plan: Annotated[
        bool, option("Print how many more topics people must judge to settle which runs are better.", True, "--plan")
    ] = False,
    machine: Annotated[str | None, option("For --plan: a machine's labels, as a file or the name of its judge.", False)] = None,
    measures: Measures = None,
) -> None:
    """Judge a pool in the browser: documents of several pipelines, shuffled and blind, into a test collection."""
    from ...judging.store import JudgmentStore

    if guidelines is not None and llm is None:
        raise ParameterError("--guidelines is of the model that judges: add --llm MODEL")
    if export is not None and llm is None:
        _export_judgments(judgments, export)
        return
    if plan:
        _print_plan(judgments, machine, run or [], measures)
        return
    if index is None:
        raise ParameterError("name the index to judge documents of: fontes judge INDEX; or --export FOLDER")
    with needs_extra("server", "fontes judge", "FastAPI"):
        from ...judging.judging import Judging, fill_pools, pool_run
        from ...judging.routes import router
        from ...server.running import serve
        from ...server.service import Service
    from ....formats import read_run

    refuse_misspelt(index)
    service = Service([index], ServerSettings(**settings), named_expressions(pipeline or []))
    with JudgmentStore(judgments) as store:
        if topics is not None:
            store.add_topics(Topics.read(topics))
        if not store.topics() and (llm is not None or run):
            raise ParameterError(f"{judgments} has no topics to judge; add them: --topics FILE")
        with reporting(compiling=True):
            fill_pools(store, service.served(None).state, depth)
        for path in run or []:
            pool_run(store, read_run(path), str(path), depth)
        if llm is not None:
            _judge_by_model(store, service.served(None).state.index, llm, guidelines)
        if export is None:
            _add_judges(store, judge or [], renew or [], token_file)
        service.described["judging"] = True
        pooled = sum(len(store.pool(topic)) for topic in store.topics())
        documents = f"{counted(len(store.topics()), 'topic')}, {counted(pooled, 'document')} to judge, {judgments}"
        if not store.topics():
            documents = f"No topics yet, {judgments}: write them in the page,"
        if export is None:
            routers = [router(Judging(store, depth))]
            serve(service, routers, started=lambda address: say(f"{documents} at {address}/judge ; Ctrl-C ends"))
    if export is not None:
        _export_judgments(judgments, export)


def _judge_by_model(store: JudgmentStore, index: Index, llm: str, guidelines: str | None) -> None:
    from ....llm import LlmJudge, model_of
    from ...judging.judging import judge_name, judge_pool

    judge = LlmJudge(model_of(llm))
    judge = judge if guidelines is None else judge.with_(prompt=guidelines)
    with reporting():
        graded, unreadable = judge_pool(store, index, judge)
    ungraded = f"; {counted(unreadable, 'answer')} without a grade" if unreadable else ""
    say(f"{judge_name(judge)}: {counted(graded, 'new judgment')}{ungraded}")


def _add_judges(store: JudgmentStore, judges: list[str], renewed: list[str], path: Path | None) -> None:
    """Give a token to new and renewed judges, and print the tokens or write them to the file `path`."""
    from ...judging.judging import MACHINE

    existing = [name for name in store.judges() if not name.startswith(MACHINE)]
    for name in renewed:
        if name not in existing:
            raise ParameterError(f"--renew {name}: there is no judge of this name; there are {', '.join(existing) or 'none'}")
    new = [name for name in dict.fromkeys(judges or ([] if existing else ["judge"])) if name not in existing]
    if not new and not renewed:
        return
    if path is None:
        for name in dict.fromkeys([*new, *renewed]):
            typer.echo(f"The token of {name}, which is not shown again: {store.add_judge(name)}")
        return
    with_tokens: list[str] = []
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            for name in dict.fromkeys([*new, *renewed]):
                token = store.add_judge(name)
                with_tokens.append(name)
                file.write(f"{name}\t{token}\n")
    except OSError as error:
        again = f"; give these tokens again: --renew {' --renew '.join(map(shlex.quote, with_tokens))}" if with_tokens else ""
        raise InputError(f"{path}: the file of new tokens cannot be made ({error.strerror or error}){again}") from None


def _export_judgments(judgments: Path, folder: Path) -> None:
    from ...judging.judging import export
    from ...judging.store import JudgmentStore

    with JudgmentStore(judgments, reading=True) as store:
        for sentence in export(store, folder):
            note(sentence)
        say(f"{len(store.topics()):,} topics, {len(store.judgments()):,} judgments of {', '.join(store.judges())} in {folder}")


def _print_plan(judgments: Path, machine: str | None, runs: list[Path], measures: list[str] | None) -> None:
    from ....comparison import plan_judging
    from ....experiments import compare
    from ....measures import DEFAULT
    from ...judging.judging import judged_by_people

    if machine is None or len(runs) < 2:
        raise ParameterError("a plan needs --machine LABELS and two runs or more: --run A --run B")
    people, labels = judged_by_people(judgments, machine)
    report = compare(runs, None, people, measures or DEFAULT, allow_empty=True, cache=False, machine=labels)
    say(str(plan_judging(report)))

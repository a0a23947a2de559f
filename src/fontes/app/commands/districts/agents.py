"""`fontes mcp`, `fontes agent` and `fontes skill`: search for language models, and analysis of their calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....core.errors import ParameterError, needs_extra
from ....core.values import Qrels
from ...completion import complete_pipeline
from ...options import IndexPath, Json, Measures, ReportFiles, argument, option, options_of
from ...output import counted, print_json, print_report, reporting, say, tell
from ...server.settings import KEY, ServerSettings, named_expressions, secret_of
from ...usage import refuse_misspelt

if TYPE_CHECKING:
    from ...agents.log import Session


@options_of(
    ServerSettings,
    "port",
    "host",
    "hosts",
    "root_path",
    "proxies",
    "query",
    "tolerance",
    "k",
    "seconds",
    "max_concurrency",
    "refresh",
)
def mcp(
    indexes: Annotated[list[Path], argument("Index directories.", metavar="INDEX...")],
    settings: dict[str, Any],
    pipeline: Annotated[
        list[str] | None,
        option(
            "Pipeline of searches beside bm25, NAME=EXPR or EXPR; the first is the default; repeatable.",
            "only bm25=bm25()",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    http: Annotated[bool, option("Serve over HTTP at /mcp, not over standard input and output.", True, "--http")] = False,
    key_file: Annotated[
        Path | None, option("File with the key that every client must send over HTTP.", "FONTES_KEY of the environment")
    ] = None,
    log: Annotated[Path | None, option("Folder into which every call is written.", "no log")] = None,
    session: Annotated[str | None, option("Name of the session in the log, without --http.", "the time")] = None,
) -> None:
    """Serve indexes to a language model as search tools, by the Model Context Protocol. Read-only.

    Searches may state reasoning, for the log and with_reasoning(), and leave out what their session has shown.
    """
    import asyncio

    with needs_extra("mcp", "fontes mcp", "mcp"):
        from ...agents.calls import Tools
        from ...agents.log import CallLog
        from ...agents.protocol import PATH, Protocol, check_key, http_application, serve_stdio
        from ...server.running import serve as run
        from ...server.service import PIPELINES, Service

    http_options = {"port": "port", "host": "host", "hosts": "name", "root_path": "root-path", "proxies": "proxy"}
    http_options |= {"max_concurrency": "max-concurrency", "key_file": "key-file"}
    typed = {*settings, *(["key_file"] if key_file is not None else [])}
    if not http and (inapplicable := next((option for name, option in http_options.items() if name in typed), None)):
        raise ParameterError(f"--{inapplicable} applies to a server over HTTP: add --http")
    if http and session is not None:
        raise ParameterError("--session names the session of standard input and output; over HTTP each client has its own")
    for index in indexes:
        refuse_misspelt(index)
    settings["root_path"] = settings.get("root_path", "").rstrip("/")
    server_settings = ServerSettings(**settings, key=secret_of(key_file, KEY) if http else "")
    if http:
        check_key(server_settings)
    expressions = named_expressions(pipeline or [])
    expressions |= {name: text for name, text in PIPELINES.items() if name not in expressions}
    service = Service(indexes, server_settings, expressions)
    calls = None if log is None else CallLog(log)
    tools = Tools(service, wait=True)
    protocol = Protocol(tools, calls, session or ("" if calls is None else calls.session))
    try:
        if not http:
            asyncio.run(serve_stdio(protocol, tools))
            return
        names = " and ".join(f"{served.name} ({len(served.state.index):,} documents)" for served in service.indexes.values())
        app = http_application(protocol, tools)
        run(
            service,
            started=lambda address: say(f"{names} at {address}{server_settings.root_path}{PATH} ; Ctrl-C ends"),
            app=app,
        )
    finally:
        if calls is not None:
            calls.close()


group = typer.Typer()

Log = Annotated[Path, argument("Folder of fontes mcp --log, or a file of it.")]
Answers = Annotated[Path | None, option("JSON lines with session and text, whose cited ids are evidence.", "what was read")]
LoggedIndex = Annotated[str | None, option("Name of the index in the log whose calls count.", "the only one; of a report, all")]
Judgments = Annotated[
    str | None, option("Judgments of the topics of fontes agent export.", "what was read or cited", "--qrels")
]


@group.command()
def report(
    log: Log,
    answers: Answers = None,
    qrels: Judgments = None,
    logged_index: LoggedIndex = None,
    confidence: Annotated[float, option("Confidence of the intervals.", min=0.5, max=0.999)] = 0.95,
    output: ReportFiles = None,
    json: Json = False,
) -> None:
    """Report calls, tokens, repeats, searches without hits and evidence by call, with intervals over sessions."""
    from ...agents.log import read_log
    from ...agents.report import report_of
    from ...agents.sessions import of_index

    sessions = read_log(log) if logged_index is None else of_index(read_log(log), logged_index)
    judgments, judged = _judgments(sessions, answers, qrels)
    print_report(report_of(sessions, judgments, judged, confidence), output, json)


@group.command()
def replay(
    log: Log,
    index: IndexPath,
    pipeline: Annotated[
        list[str] | None,
        option("Pipeline to compare, NAME=EXPR or EXPR; repeatable.", "bm25=bm25()", autocompletion=complete_pipeline),
    ] = None,
    tool: Annotated[list[str] | None, option("search or evidence; repeatable.", "search")] = None,
    tokens: Annotated[int | None, option("Budget of each answer.", "as logged", min=200)] = None,
    measures: Measures = None,
    answers: Answers = None,
    qrels: Judgments = None,
    logged_index: LoggedIndex = None,
    json: Json = False,
) -> None:
    """Search the queries of a log again, with their reasoning, by several pipelines or tools, and compare the answers."""
    with needs_extra("server", "fontes agent replay", "FastAPI"):
        from ...agents.replay import replay as replay_log
    from ...agents.log import read_log
    from ...agents.sessions import of_index

    refuse_misspelt(index)
    sessions = of_index(read_log(log), logged_index)
    judgments, _ = _judgments(sessions, answers, qrels)
    expressions = named_expressions(pipeline or []) or {"bm25": "bm25()"}
    replay_measures = measures or ["RR@10", "R@10"]
    with reporting(compiling=True):
        result = replay_log(sessions, index, expressions, judgments, replay_measures, tool or ["search"], tokens)
    if json:
        evidence = {name: {"mean": rate.mean, "low": rate.low, "high": rate.high} for name, rate in result.evidence.items()}
        counts = {"queries": result.topics, "judged": result.judged}
        print_json({**result.report.to_dict(), "tokens": dict(result.tokens), "evidence": evidence, **counts})
    else:
        typer.echo(str(result))


@group.command()
def export(
    log: Log,
    folder: Annotated[Path, argument("Folder to write.")],
    answers: Answers = None,
    logged_index: LoggedIndex = None,
    json: Json = False,
) -> None:
    """Write a log as a test collection: queries.jsonl, weak judgments, and the run of what was shown, for fontes judge."""
    from ...agents.log import read_log
    from ...agents.sessions import export as write_collection, of_index, read_answers

    logged = read_log(log)
    sessions = of_index(logged, logged_index)
    topics, qrels = write_collection(sessions, folder, None if answers is None else read_answers(answers, logged))
    judgments = sum(len(grades) for grades in qrels.values())
    facts = {"folder": str(folder), "topics": len(topics), "sessions": len(sessions), "judgments": judgments}
    weak = counted(judgments, "weak judgment")
    tell(json, facts, f"{counted(len(topics), 'topic')} of {counted(len(sessions), 'session')}, {weak} in {folder}")


def _judgments(sessions: list[Session], answers: Path | None, qrels: str | None) -> tuple[Qrels, str]:
    """Return judgments of the sessions' topics, and their kind: "judged", "read" or "cited"."""
    from ...agents.sessions import CITED, read_answers, weak_qrels

    if qrels is not None:
        if answers is not None:
            raise ParameterError("--answers and --qrels both define the evidence; give one of them")
        return Qrels.of(qrels), "judged"
    if answers is None:
        return weak_qrels(sessions), "read"
    weak = weak_qrels(sessions, read_answers(answers, sessions))
    rows = ((topic, "0", doc, grade) for topic, grades in weak.items() for doc, grade in grades.items() if grade == CITED)
    return Qrels(rows), "cited"


def skill(
    folder: Annotated[Path, argument("Folder to write, such as .claude/skills/fontes.", True, metavar="DIR")],
    json: Json = False,
) -> None:
    """Write a skill for coding agents: SKILL.md and the files it refers to."""
    from ...agents.tools import write_skill

    files = write_skill(folder)
    tell(json, {"folder": str(folder), "files": list(files)}, f"{folder}: {', '.join(files)}")

"""The commands of the command line.

Each command in `SUMMARIES` is the function of its name in the module of its name, in one of `MODULES` or of `DISTRICTS`; or
the `group` of its commands there. Other packages add commands by entry points of the group `fontes.commands`: the name of a
command, and its `typer.Typer`.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import typer

from . import commands
from .commands import SUMMARIES
from .flags import BUDGET, VERSION, flags, print_version

GROUP = "fontes.commands"
MODULES = {
    "add": "indexes",
    "bench": "experiments",
    "check": "indexes",
    "compare": "experiments",
    "convert": "runs",
    "copy": "indexes",
    "delete": "indexes",
    "eval": "runs",
    "experiment": "experiments",
    "failures": "experiments",
    "fit": "tuning",
    "fuse": "tuning",
    "index": "indexes",
    "info": "indexes",
    "merge": "indexes",
    "new": "experiments",
    "rerank": "runs",
    "rewrite": "runs",
    "snapshots": "experiments",
    "tune": "tuning",
}
"""Modules of several commands of the kernel, by command."""
DISTRICTS = {
    "agent": "agents",
    "ask": "llm",
    "audit": "audit",
    "chat": "rewrite",
    "demo": "recipes",
    "encode": "neural",
    "gate": "gate",
    "judge": "judge",
    "keyphrases": "causal",
    "llm": "llm",
    "mcp": "agents",
    "mine": "train",
    "models": "neural",
    "recipe": "recipes",
    "serve": "serve",
    "skill": "agents",
    "split": "train",
    "task": "tasks",
    "train": "train",
    "why": "causal",
}
"""Modules of commands that need optional parts, by command."""
PANELS = ("Index", "Search", "Runs", "Measure", "Models", "Reproduce")


def _version(show: bool) -> None:
    if show:
        print_version()
        raise typer.Exit


def _options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; anywhere on the line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only results and errors; anywhere on the line.")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Answer only from stored answers of language models; anywhere on the line.")
    ] = False,
    tokens: Annotated[
        int | None,
        typer.Option(BUDGET, help="Tokens that language models may use; anywhere on the line.", show_default="no limit"),
    ] = None,
    version: Annotated[bool, typer.Option(VERSION, help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Document retrieval: index a collection, search it, measure the run."""
    flags.debug, flags.quiet = debug, quiet
    if debug:
        context.with_resource(_prompts_shown())
    if replay or tokens is not None:
        from ..core.work import work

        context.with_resource(work(replay=replay or None, tokens=tokens))


@contextlib.contextmanager
def _prompts_shown() -> Iterator[None]:
    """Print the prompts and answers of language models on stderr, until the command ends."""
    logger, handler = logging.getLogger("fontes.llm"), logging.StreamHandler()
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def _panel_order(entry: Any) -> tuple[int, str]:
    """Sort key of a command: its panel in the help, then its name."""
    name = entry.name or (entry.typer_instance.info.name if hasattr(entry, "typer_instance") else entry.callback.__name__)
    return PANELS.index(entry.rich_help_panel) if entry.rich_help_panel in PANELS else len(PANELS), name


def command_line(word: str = "", overview: bool = False) -> typer.Typer:
    """Build the command line.

    Args:
        word: The command that was typed. If it exists, only its module is imported: importing all takes longer than
            a search.
        overview: If there is no such command, list the commands of Fontes without importing them, for `fontes --help`.
    """
    root = typer.Typer(
        name="fontes",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_options)
    groups = _groups(word, overview)
    registered = [entry for group in groups for entry in (*group.registered_commands, *group.registered_groups)]
    for entry in sorted(registered, key=_panel_order):
        single = typer.Typer()
        entries: list[Any] = single.registered_groups if hasattr(entry, "typer_instance") else single.registered_commands
        entries.append(entry)
        root.add_typer(single)
    return root


def _groups(word: str, overview: bool) -> list[typer.Typer]:
    """The command `word`, or all commands if there is no such command."""
    if word in SUMMARIES:
        return [*_own(word)]
    from ..core.registry import at, installed

    others = {point.name: point.value for point in installed(GROUP) if point.name not in SUMMARIES}
    groups = []
    if word in others:
        others = {word: others[word]}
    else:
        groups += [_overview()] if overview else [group for name in SUMMARIES for group in _own(name)]
    for reference in sorted({*others.values()}):
        try:
            groups.append(at(reference))
        except Exception as error:
            warnings.warn(f"the commands of {reference} are left out: {error}", stacklevel=2)
    return groups


def _own(name: str) -> Iterator[typer.Typer]:
    """Yield a command of Fontes, unless its optional part is missing."""
    panel, summary = SUMMARIES[name]
    reference = f"{commands.__name__}.{f'districts.{DISTRICTS[name]}' if name in DISTRICTS else MODULES.get(name, name)}"
    try:
        module = import_module(reference)
    except Exception as error:
        if name not in DISTRICTS:
            raise
        warnings.warn(f"the commands of {reference} are left out: {error}", stacklevel=2)
        return
    listed = typer.Typer()
    command = getattr(module, "eval_" if name == "eval" else name, None)
    if command is None:
        listed.add_typer(module.group, name=name, help=summary, no_args_is_help=True, rich_help_panel=panel)
    else:
        listed.command(name, rich_help_panel=panel)(command)
    yield listed


def _overview() -> typer.Typer:
    """The commands of Fontes with their summaries, without arguments and options."""
    listed = typer.Typer()
    for name, (panel, summary) in SUMMARIES.items():
        listed.command(name, help=summary, rich_help_panel=panel)(lambda: None)
    return listed

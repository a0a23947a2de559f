"""`fontes stages`: list the parts of pipelines."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError
from ...core.parameters import parameters, signature, summary
from ...core.part import Part, stages as registry
from ..completion import complete_stage
from ..options import Json, argument, option
from ..output import console, print_json, say

if TYPE_CHECKING:
    from ...core.part import Part


INTRODUCTION = """# Stages

The parts of [pipelines](../guides/pipelines.md), on the command line, in files and in Python. `fontes stages` lists them, and
those of other installed packages; `fontes stages NAME` prints one. A parameter without a default must be given; what
None stands for is in brackets. A string stands for a part: `dense("MODEL")` is `dense(sentence_encoder("MODEL"))`, and so with
`colbert`, `llm`, `splade_encoder` and `topicrank`.
"""
STRING = re.compile(r"; a string is (?:the|a) \w+ of an? `\w+`")
MIN_SHARING = 3  # a parameter that at least so many parts describe alike is described once


def stages(
    name: Annotated[str | None, argument("A stage or another part.", "all", autocompletion=complete_stage)] = None,
    markdown: Annotated[bool, option("Print the page of the reference.", True, "--markdown")] = False,
    json: Json = False,
) -> None:
    """List the parts of pipelines, or show the parameters of one."""
    if markdown and (json or name is not None):
        raise ParameterError("--markdown prints the page of all parts; leave --json and the name out")
    if markdown:
        typer.echo(page(), nl=False)
    elif json:
        print_json([facts(part) for _, part in registry.items()] if name is None else facts(registry[name]))
    elif name is None:
        _print_all(dict(registry.items()))
    else:
        _print_part(registry[name])


def facts(part: type[Part]) -> dict[str, Any]:
    """The registry's facts about a part, as JSON values."""
    takes, gives = signature(part)
    return {
        "name": part.name,
        "takes": takes,
        "gives": gives,
        "summary": summary(part),
        "parameters": [
            {
                "name": parameter.name,
                "type": parameter.kind,
                **({} if parameter.required else {"default": _format_default(parameter.default)}),
                "description": parameter.description,
            }
            for parameter in parameters(part).values()
        ],
    }


def page() -> str:
    """The reference page of all parts of Fontes, in Markdown."""
    builtin = [facts(part) for _, part in registry.items() if part.__module__.startswith("fontes.")]
    for stage_facts in builtin:
        stage_facts["parameters"] = [p for p in stage_facts["parameters"] if p["description"] != "Not used."]
        for parameter in stage_facts["parameters"]:
            parameter["description"] = STRING.sub("", parameter["description"])
    kinds: dict[str, list[str]] = {}
    for stage_facts in builtin:
        kinds.setdefault(_arrow(stage_facts) or "arguments of other parts", []).append(
            f"[`{stage_facts['name']}`](#{stage_facts['name']})"
        )
    rows = [f"* {kind}: {', '.join(names)}" for kind, names in sorted(kinds.items(), key=lambda kind: -len(kind[1]))]
    shared = _shared([parameter for stage_facts in builtin for parameter in stage_facts["parameters"]])
    parts = [INTRODUCTION, *rows, "\n## Shared parameters\n", *[_item(shared[name]) for name in sorted(shared)]]
    for stage_facts in builtin:
        parts.append(f"\n## {stage_facts['name']}\n\n{_escape_links(stage_facts['summary'])}")
        linked = [p for p in stage_facts["parameters"] if p["description"] == shared.get(p["name"], {}).get("description")]
        if items := [_item(p) for p in stage_facts["parameters"] if p not in linked]:
            parts.append("\n" + "\n".join(items))
        if linked:
            names = [p["name"] if p.get("default") == shared[p["name"]].get("default") else _signature(p) for p in linked]
            parts.append(f"\n[Shared](#shared-parameters): {', '.join(f'`{name}`' for name in names)}")
    return "\n".join(parts) + "\n"


def _shared(parameters: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the parameters that several parts describe alike, by name; without a default where the parts differ in it."""
    counts = Counter((parameter["name"], parameter["description"]) for parameter in parameters)
    shared: dict[str, dict[str, object]] = {}
    for name, description in (key for key, count in counts.most_common() if count >= MIN_SHARING):
        same = [parameter for parameter in parameters if (parameter["name"], parameter["description"]) == (name, description)]
        same_default = len({parameter.get("default") for parameter in same}) == 1
        shared.setdefault(name, same[0] if same_default else {k: v for k, v in same[0].items() if k != "default"})
    return shared


def _signature(parameter: dict[str, Any]) -> str:
    """Format a parameter as in a signature, with its type where the default does not show it."""
    name, kind, default = parameter["name"], parameter["type"], parameter.get("default")
    if default is None:
        return f"{name}: {kind}"
    return f"{name}: {kind.removesuffix(' | None')} = None" if default == "None" else f"{name}={default}"


def _item(parameter: dict[str, Any]) -> str:
    """Format a parameter as a list item; a default of None is explained in brackets."""
    text, marker, meaning = parameter["description"].rpartition("None: ")
    if marker and parameter.get("default") == "None" and ". " not in meaning:
        text = text.rstrip(" ;").removesuffix(".")
        names = f"`{parameter['name']}: {parameter['type'].removesuffix(' | None')}` ({meaning.rstrip('.')})"
        return f"* {names}: {_escape_links(text)}." if text else f"* {names}"
    return f"* `{_signature(parameter)}`: {_escape_links(parameter['description'])}"


def _escape_links(text: str) -> str:
    return text.replace("[", "\\[") if "](" in text else text


def _arrow(stage_facts: dict[str, object]) -> str:
    return f"{stage_facts['takes']} → {stage_facts['gives']}" if stage_facts["takes"] else ""


def _format_default(default: object) -> str:
    return repr(default) if isinstance(default, Part) or not isinstance(default, str) else f'"{default}"'


def _print_all(parts: dict[str, type[Part]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for header in ("name", "takes → gives", ""):
        table.add_column(header, no_wrap=bool(header))
    for part in parts.values():
        stage_facts = facts(part)
        table.add_row(Text(stage_facts["name"], style="bold"), _arrow(stage_facts), Text(stage_facts["summary"]))
    console().print(table)


def _print_part(part: type[Part]) -> None:
    from rich.table import Table
    from rich.text import Text

    stage_facts = facts(part)
    arrow = _arrow(stage_facts)
    console().print(Text.assemble((stage_facts["name"], "bold"), f"  {arrow}" if arrow else ""))
    say(stage_facts["summary"])
    if not stage_facts["parameters"]:
        return
    table = Table(box=None)
    for header in ("parameter", "type", "default", ""):
        table.add_column(header, no_wrap=bool(header))
    for parameter in stage_facts["parameters"]:
        cells = (parameter["name"], parameter["type"], parameter.get("default", "required"), parameter["description"])
        table.add_row(*map(Text, cells))
    console().print(table)

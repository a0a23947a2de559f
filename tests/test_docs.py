"""The documentation does what it says: its examples run and print what is shown, and it leaves nothing public out.

In README and in docs/start, docs/guides, docs/concepts and docs/coming-from a block marked `python` is run, one block after
the other; a block marked `text` right after it shows what it prints. In a block marked `console` the lines after `$` are run
and the others are what they print. Blocks with other marks (`py`, `sh`, `json`) are not run.

    python tests/test_docs.py docs/guides/models.md …     writes what the examples of these pages print into them
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import io
import operator
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

import fontes
from fontes.app import cli
from fontes.core import MissingExtraError
from fontes.core.part import stages
from fontes.formats.format import formats
from fontes.measures.measure import MEASURES
from fontes.recipes.base import registry as recipes

with contextlib.suppress(ImportError):  # it keeps the standard error of the first import, which a test may have replaced
    import mcp.client.stdio  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RUN = ("start", "guides", "concepts", "coming-from")
PAGES = [ROOT / "README.md", *(page for part in RUN for page in sorted((DOCS / part).glob("*.md")))]
TEXTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
SAMPLED = ("README.md", "first-search.md")  # their output depends on the standard library of the Python that runs them,
WRITTEN_WITH = (3, 11)  # which was this one

BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
VARYING = (
    (re.compile(r"^[a-z ]+: [\d,]+ of [\d,]+ .* left\n", re.MULTILINE), ""),  # progress, where a machine takes ten seconds
    (re.compile(r"\d+\.\d+ s\b"), "# s"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "#"),
    (re.compile(r"\b\d+\.\d+\.\d+\b"), "#"),
    (re.compile(r"^( bytes( of text)? +)[\d,]+", re.MULTILINE), r"\1#"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its mark, what is inside, and where that is."""

    mark: str
    inside: str
    start: int
    end: int
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], m.start(2), m.end(2), text.count("\n", 0, m.start(2)) + 1) for m in BLOCK.finditer(text)]


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    """Whatever is printed inside, to standard output or error, in one list when it ends."""
    output: list[str] = []
    with tempfile.TemporaryFile(buffering=0) as file:  # with a number, for the processes that a block starts
        stream = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield output
        stream.flush()
        file.seek(0)
        shown = file.read().decode()
    output += [line for line in shown.splitlines(keepends=True) if not line.startswith("Compiling the kernels")]


def run_command(command: str) -> str:
    """What a command prints. One that is `fontes` alone runs in this process, which is quicker."""
    words = shlex.split(command)
    signs = set(shlex.shlex(command, posix=True, punctuation_chars=True)) & {"|", ">", "<", ";", "&&"}
    if words[0] != "fontes" or signs:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.stdout
    with printed() as output, mock.patch.object(sys, "argv", words), contextlib.suppress(SystemExit):
        cli.main()
    return "".join(output)


def run_console(inside: str) -> str:
    """A console block with what its commands print in place of what it shows."""
    commands = [line.removeprefix("$ ") for line in inside.replace("\\\n", "\\\0").splitlines() if line.startswith("$ ")]
    parts = []
    for command in commands:
        command = command.replace("\0", "\n")
        parts.append(f"$ {command}\n{run_command(command.replace(chr(92) + chr(10), ' '))}")
    return "".join(parts)


def run_page(page: Path) -> Iterator[tuple[Block, str]]:
    """Each block of a page that shows what is printed, and what is printed."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    output = ""
    before = ""
    for block in blocks_of(page):
        if block.mark == "python":
            with printed() as lines:
                code = compile("\n" * (block.line - 1) + block.inside, str(page), "exec", dont_inherit=True)
                exec(code, namespace)
            output = "".join(lines)
        elif block.mark == "text" and before == "python":
            yield block, output
        elif block.mark == "console":
            yield block, run_console(block.inside)
        before = block.mark


def rewrite(page: Path) -> None:
    """Puts what the examples of a page print into it."""
    text = page.read_text(encoding="utf-8")
    parts, at = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(DOCS / "examples", folder, dirs_exist_ok=True)
        for block, output in run_page(page):
            lines = [line.rstrip() for line in output.splitlines()]
            parts += [text[at : block.start], "".join(f"{line}\n" for line in lines)]
            at = block.end
    page.write_text("".join([*parts, text[at:]]), encoding="utf-8")


def comparable(text: str, page: Path) -> str:
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    if "ms a topic\n" in text:  # the last column of the table
        text = re.sub(r"(?<=\d) +\d+\.\d+$", " #", text, flags=re.MULTILINE)
    return text.strip()


SLOW = ("agents", "causal-evidence", "causal-retrieval", "chat", "cluster", "evidence", "experiment-files")
SLOW += ("first-search", "index-on-disk", "harbour", "living", "test-collections", "train")
SLOW += ("dense", "cast2021", "index-a-collection", "rewriting", "late-interaction", "models", "search-and-runs", "plots")
SLOW += ("compare", "fuse", "language-models", "learning-to-rank", "pyserini", "shared-task", "judge")


@pytest.fixture
def _no_names_left() -> Iterator[None]:
    """Takes what a page registers, such as a recipe of its own, out of the registries again."""
    with stages.restored(), formats.restored(), recipes.restored(), MEASURES.restored():
        yield


@pytest.mark.usefixtures("_no_names_left")
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else [], id=page.stem) for page in PAGES]
)
def test_the_examples_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DOCS / "examples", tmp_path, dirs_exist_ok=True)
    for block, output in run_page(page):
        if page.name not in SAMPLED or sys.version_info[:2] == WRITTEN_WITH:
            shown = comparable(block.inside, page)
            assert comparable(output, page) == shown, f"{page.name}, line {block.line}"


def tool(name: str) -> Any:
    """The module tools/NAME.py."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_lists_for_language_models_have_every_page_and_docstring() -> None:
    module = tool("llms")
    pages = ["index.md", "guides/agents.md", "reference/values.md"]
    texts = {path.replace(".md", ".html"): (DOCS / path).read_text(encoding="utf-8") for path in pages}
    nav = [{"Fontes": pages[0]}, {"Guides": [{"Serve": [pages[1]]}]}, {"Reference": [pages[2]]}]
    index, whole = module.llms("Fontes", "Retrieval.", module.sections(nav), texts)
    assert index.startswith("# Fontes\n\n> Retrieval.\n\n- [Fontes](index.html): ")
    assert "\n## Guides\n\n- [Agents](guides/agents.html): Give a language model search tools over an index" in index
    assert index.count("\n- [") == len(pages)
    assert "### `fontes.Topics(" in whole
    assert "Topics by id, in their original order. Immutable." in whole
    assert ":::" not in whole


FRONT = (ROOT / "README.md", DOCS / "index.md")


def test_the_front_pages_begin_with_the_two_make_commands() -> None:
    for page in FRONT:
        assert [line.partition("#")[0].strip() for line in blocks_of(page)[0].inside.splitlines()] == ["make demo", "make test"]


def test_the_front_pages_lead_from_what_one_has_to_commands_that_run(
    fontes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lines = led_to(DOCS / "index.md")
    assert led_to(ROOT / "README.md") == lines
    assert len(lines) == 9
    for command in lines:
        code, _, errors = fontes(*shlex.split(command)[1:])
        assert code == 0, f"{command}: {errors}"


def led_to(page: Path) -> list[str]:
    """The commands below "What do you have?": the one to begin with, and one for each thing that one may have."""
    section = page.read_text(encoding="utf-8").partition("## What do you have?\n")[2].partition("\n## ")[0]
    return [
        first or second for first, second in re.findall(r"^(fontes [^#\n]+)|^\* \*\*.*?`(fontes [^`]+)`", section, re.MULTILINE)
    ]


def test_guides_are_in_groups_of_at_most_seven() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    guides = navigation.partition("  - Guides:\n")[2].partition("\n  - ")[0]
    groups = re.split(r"^      - .*:\n", f"{guides}\n", flags=re.MULTILINE)
    assert groups[0] == ""
    assert max(group.count(".md\n") for group in groups) <= 7


def test_the_command_reference_has_every_option_and_its_help() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert tool("command_line").written(page) == page, "run: python tools/command_line.py"


def test_the_options_that_are_read_without_typer_are_those_that_are_declared() -> None:
    table = tool("command_line")
    assert table.quick_table() == table.TABLE.read_text(encoding="utf-8"), "run: python tools/command_line.py"


def test_the_command_reference_has_a_section_for_each_command_and_no_other() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## fontes (.+)$", page, re.MULTILINE)) == set(tool("command_line").commands())


def test_the_commands_without_json_are_those_that_the_guide_names() -> None:
    guide = (DOCS / "guides" / "search-and-runs.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)`", guide.partition("Every command has `--json`")[2].partition("; except")[2].partition(".")[0])
    without = [
        name
        for name, command in tool("command_line").commands().items()
        if not any("--json" in parameter.opts for parameter in command.params)
    ]
    assert sorted(named) == sorted(without)


def test_every_option_that_the_command_reference_names_exists() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    group: Any = typer.main.get_command(cli.app)
    known = {
        written for command in (group, *tool("command_line").commands().values()) for p in command.params for written in p.opts
    }
    assert set(re.findall(r"`(--[a-z][a-z0-9-]*)", page)) <= known | {"--help"}


def public() -> list[str]:
    """What users may use: the daily names, and those of the rooms."""
    daily = [name for name in fontes.__all__ if not inspect.ismodule(getattr(fontes, name))]
    rooms = [name for name in fontes.__all__ if inspect.ismodule(getattr(fontes, name))]
    return [*daily, *(f"{room}.{name}" for room in rooms for name in getattr(fontes, room).__all__ if name not in daily)]


@functools.cache
def reference() -> frozenset[str]:
    """Lines of all pages of the reference."""
    pages = (DOCS / "reference").glob("*.md")
    return frozenset(line for page in pages for line in page.read_text(encoding="utf-8").splitlines())


def test_every_public_name_has_a_docstring_and_a_place_in_the_reference() -> None:
    values = {name: operator.attrgetter(name)(fontes) for name in public()}
    assert len(values) > 300
    described = [name for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)]
    assert [name for name in described if not inspect.getdoc(values[name])] == []
    assert [name for name in values if f"::: fontes.{name}" not in reference()] == []


def exists(name: str) -> bool:
    """Whether there is such a name below fontes; "a.b" may be a name in a room, or a module."""
    value: Any = fontes
    for number, part in enumerate(name.split("."), 1):
        try:
            importlib.import_module(".".join(["fontes", *name.split(".")[:number]]))
        except MissingExtraError:  # a socket, whose package is elsewhere
            source = Path(fontes.__file__).parent.joinpath(*name.split(".")[:number]).with_suffix(".py")
            defined = [getattr(node, "name", "") for node in ast.parse(source.read_text(encoding="utf-8")).body]
            return name.split(".")[number:] in [[], *([one] for one in defined)]
        except ImportError:
            pass
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def test_the_reference_has_no_name_that_does_not_exist() -> None:
    for page in (DOCS / "reference").glob("*.md"):
        for name in re.findall(r"^::: fontes\.([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert exists(name), f"{page.name}: {name}"


def test_links_lead_to_files_and_headings_that_exist() -> None:
    links = [(page, target) for page in TEXTS for target in LINK.findall(without_blocks(page))]
    wrong = [f"{page.relative_to(ROOT)} links to {target}" for page, target in links if not leads(page, target)]
    assert len(links) > 500
    assert not wrong, "\n".join(wrong)


@functools.cache
def without_blocks(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def leads(page: Path, target: str) -> bool:
    """Whether a link of a page leads to a file, and to a heading of it if it names one; addresses are not followed."""
    if re.match(r"[a-z]+:", target):
        return True
    name, _, heading = target.partition("#")
    linked = page if not name else (page.parent / name).resolve()
    return linked.exists() and (
        not heading or heading in map(anchor, re.findall(r"^#+ (.+)$", without_blocks(linked), re.MULTILINE))
    )


def anchor(heading: str) -> str:
    """The anchor that mkdocs and GitHub give to a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower())


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f" {page.relative_to(DOCS).as_posix()}\n" in navigation, page.name


def test_every_guide_is_linked_from_another_page() -> None:
    targets = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in TEXTS
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if target.partition("#")[0]
    }
    for page in [*(DOCS / "guides").glob("*.md"), *(DOCS / "concepts").glob("*.md")]:
        assert page in targets, page.name


def test_the_page_about_installing_has_every_extra() -> None:
    page = (DOCS / "start" / "install.md").read_text(encoding="utf-8")
    for extra in project()["optional-dependencies"].keys() - {"test", "docs"}:
        assert f"\n* `fontes[{extra}]`: " in page, extra


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_dependency_has_its_reason() -> None:
    reasons = (DOCS / "dependencies.md").read_text(encoding="utf-8").lower()
    extras = [name for names in project()["optional-dependencies"].values() for name in names]
    for requirement in [*project()["dependencies"], *extras]:
        name = re.split(r"[<>=\[ ]", requirement)[0].lower()
        assert name == "fontes" or re.search(rf"^\* {re.escape(name)}( \(.*\))?: ", reasons, re.MULTILINE), name


if __name__ == "__main__":
    for given in [Path(argument).resolve() for argument in sys.argv[1:]]:
        rewrite(given)

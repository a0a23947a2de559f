"""The house: which rooms there are, which way imports go, how large files are, and what is said once."""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import fontes as ft
from fontes.core import Stage
from fontes.core.parameters import parameters, summary
from fontes.core.part import stages

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "fontes"
KERNEL = (  # from top to bottom: a room imports from those above it
    "core",
    "storage",
    "formats",
    "datasets",
    "text",
    "measures",
    "index",
    "suggest",
    "lexical",
    "rerank",
    "passages",
    "fusion",
    "reorder",
    "ltr",
    "calibration",
    "plots",
    "comparison",
    "tuning",
    "experiments",
)
DISTRICTS = (  # which the kernel finds by tables of texts
    "neural",
    "rewrite",
    "causal",
    "llm",
    "train",
    "auditing",
    "recipes",
    "tasks",
    "cluster",
    "gate",
    "integrations",
    "app",
)
ROOMS = KERNEL + DISTRICTS
FRAME_FILES = (
    *("cli", "command_line", "completion", "flags", "options", "output"),
    *("pipelines", "progress", "quick", "results", "running", "searching", "usage"),
)
FRAME = tuple(f"fontes.app.{name}" for name in FRAME_FILES)
"""The command line without the commands of districts: a part of the kernel."""
LINES = 600
CIRCLE = 7  # files of the index: a segment opens components, which read segments


@dataclass(frozen=True)
class Import:
    """An import that runs: from which module, of which, and whether inside a function."""

    source: str
    target: str
    in_function: bool
    for_types: bool


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True)
class Source:
    """What the checks ask about a file: its imports, its classes with methods and assigned names, and all values' names."""

    path: Path
    imports: tuple[Import, ...]
    classes: tuple[tuple[str, frozenset[str], frozenset[str]], ...]
    values: tuple[tuple[int, str], ...]


@cache
def sources() -> tuple[Source, ...]:
    """All files, each parsed once."""
    paths = sorted(SOURCE.rglob("*.py"))
    modules = {module_of(path) for path in paths}
    return tuple(source_of(path, modules) for path in paths)


def source_of(path: Path, modules: set[str]) -> Source:
    module, package = module_of(path), list(path.relative_to(SOURCE.parent).parent.parts)
    imported: list[Import] = []
    classes: list[tuple[str, frozenset[str], frozenset[str]]] = []
    values: list[tuple[int, str]] = []
    waiting: list[tuple[ast.AST, bool, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False, False)]
    while waiting:
        node, in_function, for_types = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in targets_of(node, package, modules):
                if target == "fontes" or target.startswith("fontes."):
                    imported.append(Import(module, target, in_function, for_types))
        elif isinstance(node, ast.ClassDef):
            methods = frozenset(item.name for item in node.body if isinstance(item, ast.FunctionDef))
            targets = [target for item in node.body if isinstance(item, ast.Assign) for target in item.targets]
            classes.append((node.name, methods, frozenset(target.id for target in targets if isinstance(target, ast.Name))))
        elif isinstance(node, ast.arg):
            values.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.append((node.lineno, node.id))
        in_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        guarded = (
            set(map(id, node.body)) if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING" else set()
        )
        waiting += [(child, in_function, for_types or id(child) in guarded) for child in ast.iter_child_nodes(node)]
    return Source(path, tuple(imported), tuple(classes), tuple(values))


def targets_of(node: ast.Import | ast.ImportFrom, package: list[str], modules: set[str]) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    start = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*start, *(node.module.split(".") if node.module else [])])
    named = [f"{base}.{alias.name}" for alias in node.names]
    return list(dict.fromkeys(name if name in modules else base for name in named))


def every_import() -> tuple[Import, ...]:
    return tuple(imported for source in sources() for imported in source.imports)


def imports() -> list[Import]:
    """All imports but those that only type checkers see."""
    return [imported for imported in every_import() if not imported.for_types]


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_room_has_its_place() -> None:
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} == set(ROOMS)


def test_a_room_imports_only_from_the_rooms_above_it() -> None:
    level = {room: number for number, room in enumerate(ROOMS)}
    wrong = [
        f"{imported.source} imports {imported.target}"
        for imported in imports()
        if (room := room_of(imported.source)) in level and level.get(room_of(imported.target), len(ROOMS)) > level[room]
    ]
    assert not wrong, "\n".join(wrong)


def is_frame(module: str) -> bool:
    return module in FRAME or (module.startswith("fontes.app.commands") and "districts" not in module)


def test_the_command_line_works_without_the_districts() -> None:
    for imported in imports():
        if is_frame(imported.source) and not is_frame(imported.target):
            assert room_of(imported.target) in KERNEL or imported.target == "fontes.app", imported


WITHOUT_DISTRICTS = """
import json, sys
from contextlib import suppress
from pathlib import Path

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] in [["fontes", district] for district in DISTRICTS] or name.startswith("fontes.app.server"):
            raise ModuleNotFoundError(f"No module named '{name}'")

DISTRICTS, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
sys.meta_path.insert(0, Refused())

import fontes as ft
from fontes.app.command_line import command_line
index = ft.Index.build([("a", "rain and snow"), ("b", "rain rain"), ("c", "sun")], folder / "weather.index")
assert [hit.id for hit in index.bm25().search("rain")] == ["b", "a"]
topics, qrels = {"1": "rain", "2": "sun"}, {"1": {"a": 1}, "2": {"c": 1}}
systems = {"bm25": index.bm25(), "tfidf": index.tfidf(), "rationales": index.bm25() >> ft.Rationales()}
assert ft.evaluate(index.bm25()(topics), qrels, ["RR"])["RR"] == 0.75
assert "tfidf" in str(ft.compare(systems, topics, qrels, ["RR"], allow_empty=True, cache=False))
tuned = ft.tune("bm25(k1=tune([0.5, 1]))", None, topics, qrels, "RR", 2, index=index)
assert list(tuned.params.values())[0] in (0.5, 1)
with suppress(SystemExit):
    command_line("search")(["search", str(index.path), "rain", "--json"])
command_line()
try:
    ft.pipeline("dense('MODEL')", index)
except ft.FontesError as error:
    print(error)
"""


def test_the_kernel_works_without_the_districts(tmp_path: Path) -> None:
    districts = [room for room in DISTRICTS if room != "app"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_DISTRICTS, json.dumps(districts), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    hits, problem = done.stdout.splitlines()
    assert [hit["id"] for hit in json.loads(hits)["hits"]] == ["b", "a"]
    assert "fontes.neural.dense.dense has it and cannot be imported" in problem


def test_measures_need_core_alone() -> None:
    for imported in imports():
        if room_of(imported.source) == "measures":
            assert room_of(imported.target) in ("core", "measures"), f"{imported.source} imports {imported.target}"


def test_nobody_imports_the_application() -> None:
    for imported in imports():
        if room_of(imported.target) == "app":
            assert room_of(imported.source) in ("app", "") or imported.source == "fontes.__main__", imported


def test_no_modules_import_each_other_in_a_circle() -> None:
    of: dict[str, set[str]] = {}
    for imported in imports():
        own_package = imported.target in (imported.source, imported.source.rpartition(".")[0])
        if not own_package:
            of.setdefault(imported.source, set()).add(imported.target)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join([*path[path.index(module) :], module])
        if module in done:
            return
        for target in sorted(of.get(module, ())):
            visit(target, (*path, module))
        done.add(module)

    for module in sorted(of):
        visit(module, ())


def test_few_files_refer_to_each_other_in_a_circle_even_for_types() -> None:
    of: dict[str, set[str]] = {}
    for imported in every_import():
        of.setdefault(imported.source, set()).add(imported.target)

    def reached(module: str) -> set[str]:
        modules, new = set[str](), {module}
        while new:
            modules |= new
            new = {target for source in new for target in of.get(source, ())} - modules
        return modules

    reach = {module: reached(module) for module in of}
    circle = max(({other for other in reach[module] if module in reach.get(other, ())} for module in of), key=len)
    assert len(circle) <= CIRCLE, sorted(circle)
    assert {room_of(module) for module in circle} == {"index"}


def test_no_class_answers_every_name() -> None:
    """A question such as `hasattr(state, "rationales")` must cost nothing."""
    for source in sources():
        for name, methods, _ in source.classes:
            assert not {"__getattr__", "__getattribute__"} & methods, f"{source.path.relative_to(SOURCE)}: {name}"


def test_only_the_package_imports_the_index_with_its_methods() -> None:
    """It refers to stages of all rooms; who opens an index gets it through `core.registry`."""
    assert not [imported for imported in imports() if imported.target == "fontes.index_methods"]


def test_no_file_has_many_lines() -> None:
    for path in SOURCE.rglob("*.py"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= LINES, f"{path.relative_to(SOURCE)} has {lines} lines; is it one idea?"


def test_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert set(ROOMS) <= folders | {"plots"}
    assert folders <= {*ROOMS, "hostile"}


def test_importing_fontes_needs_numpy_alone() -> None:
    code = """
        import sys
        before = set(sys.modules)
        import fontes
        fontes.Run, fontes.Topics, fontes.nDCG, fontes.evaluate
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*sorted(loaded & set(sys.argv[1].split())))
    """
    heavy = (
        "numba scipy pandas torch transformers sentence_transformers faiss spacy matplotlib optuna typer rich pydantic Stemmer"
    )
    command = [sys.executable, "-c", inspect.cleandoc(code), heavy]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []


def test_comparing_files_of_runs_compiles_nothing() -> None:
    modules = "fontes.experiments.systems, fontes.app.commands.experiments, fontes.app.commands.runs"
    command = [sys.executable, "-c", f"import sys, {modules}; print('numba' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_what_users_type_daily_is_shown_and_the_rest_is_in_its_room() -> None:
    shown = [name for name in ft.__all__ if not inspect.ismodule(getattr(ft, name)) and not name.startswith("_")]
    assert 40 <= len(shown) <= 58
    for name in shown:
        assert inspect.getdoc(getattr(ft, name)), name
    for room in ROOMS:
        if room not in ("app", "storage"):
            exported = import_module(f"fontes.{room}")
            for name in exported.__all__:
                assert getattr(exported, name) is not None


def test_what_a_stage_takes_and_gives_is_said_in_its_base_alone() -> None:
    for source in sources():
        for name, _, assigned in source.classes:
            assert not {"takes", "gives"} & assigned, f"{source.path.relative_to(SOURCE)}: {name}"


def test_every_stage_has_a_sentence_and_describes_its_parameters() -> None:
    assert [name for name, cls in stages.items() if not summary(cls).endswith((".", "?"))] == []
    assert [(name, p.name) for name, cls in stages.items() for p in parameters(cls).values() if not p.description] == []


def test_stages_write_no_representation_of_their_own() -> None:
    from fontes.core.part import Part

    for _, cls in stages.items():
        assert cls.__repr__ is Part.__repr__, cls
        assert issubclass(cls, Stage) or cls.name


FORBIDDEN = {"found", "given", "told", "made", "asked", "wanted", "held", "own", "said", "taken", "there", "here", "some"}
FORBIDDEN |= {"place", "known", "those"}


def test_values_have_names_of_the_field() -> None:
    """Words that say how a value came about and not what it is; a value has the field's own name."""
    uses = [
        f"{source.path.relative_to(SOURCE)}:{line}: {name}"
        for source in sources()
        for line, name in source.values
        if name in FORBIDDEN
    ]
    assert not uses, f"{len(uses)}: " + ", ".join(uses[:20])


def names_used(path: Path) -> Iterator[str]:
    """What a program names of Fontes: what it imports, and what it takes from `fontes` or `ft` by dots."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "fontes":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            chain = ast.unparse(node)
            if chain.startswith(("ft.", "fontes.")) and chain.replace(".", "").replace("_", "").isalnum():
                yield f"fontes.{chain.partition('.')[2]}"


def test_the_programs_beside_the_package_name_what_exists() -> None:
    programs = [path for folder in ("bench", "tools") for path in sorted((ROOT / folder).glob("*.py"))]
    assert len(programs) > 50
    missing = [f"{path.name}: {name}" for path in programs for name in names_used(path) if not exists(name)]
    assert not missing, "\n".join(missing)


def exists(name: str) -> bool:
    """Whether there is such a module, such a name in one, or such an attribute of a module's class."""
    value: object = ft
    for number, part in enumerate(name.split(".")[1:], 2):
        with contextlib.suppress(ImportError):
            import_module(".".join(name.split(".")[:number]))
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
        if not inspect.ismodule(value):
            break
    return True

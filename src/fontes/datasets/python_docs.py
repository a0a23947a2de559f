"""A sample collection from every Python: the docstrings of its standard library."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Any

from ..core import Doc, Qrels, Topic, Topics

# Tests and an application; and readline, which changes the terminal when it is imported.
SKIPPED = frozenset({"test", "tests", "idlelib", "readline"})
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(\[])|\n\s*\n")
CALL_LINES = re.compile(r"(?:(?:\w+\.)*\w+\(.*\)(?:\s*-+>.*)?\n)+\n\s*")


def python_docs() -> list[Doc]:
    """Documents from the docstrings of public modules, classes, functions and methods of the standard library.

    The id is the qualified name ("zipfile.ZipFile.read"), the title the signature ("ZipFile.read(self, name, pwd=None)"), the
    text the docstring after `inspect.cleandoc`. Python modules are parsed, not imported; extension and built-in modules are
    imported. Of equal names the first definition counts. Sorted by id; Python 3.11 has about 6,500.
    """
    docs: dict[str, Doc] = {}
    for doc in (*_from_sources(Path(sysconfig.get_path("stdlib"))), *_from_compiled()):
        if doc.text:
            docs.setdefault(doc.id, doc)
    return [docs[doc_id] for doc_id in sorted(docs)]


def known_item(docs: Iterable[Doc]) -> tuple[list[Doc], Topics, Qrels]:
    """Known-item collection: the first sentence of each docstring is the query for its object.

    A docstring of one sentence leaves its document only the title.

    Args:
        docs: Documents whose text begins with such a sentence, as those of `python_docs`.

    Returns:
        Documents without that sentence; a topic for each, with the document's id; judgments with that one relevant document.
    """
    rest, topics = [], []
    for doc in docs:
        end = SENTENCE_END.search(doc.text)
        sentence, remainder = (doc.text[: end.start()], doc.text[end.end() :]) if end else (doc.text, "")
        rest.append(Doc(doc.id, remainder, doc.title, doc.metadata))
        topics.append(Topic(doc.id, " ".join(sentence.split())))
    return rest, Topics(topics), Qrels((topic.id, "0", topic.id, 1) for topic in topics)


def _from_sources(folder: Path) -> Iterator[Doc]:
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        names = parts[:-1] if parts[-1] == "__init__" else parts
        # Folders such as site-packages and lib-dynload are no identifiers.
        if not names or not all(n.isidentifier() and _is_public(n) and n not in SKIPPED for n in names):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue
        module = ".".join(names)
        yield _doc(module, module, ast.get_docstring(tree, clean=False))
        yield from _from_body(tree.body, module, "")


def _from_body(body: list[ast.stmt], module: str, inside: str) -> Iterator[Doc]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(node.name):
                name = inside + node.name
                yield _doc(f"{module}.{name}", f"{name}({ast.unparse(node.args)})", ast.get_docstring(node, clean=False))
            case ast.ClassDef() if _is_public(node.name):
                name = inside + node.name
                yield _doc(f"{module}.{name}", name + _constructor(node), ast.get_docstring(node, clean=False))
                yield from _from_body(node.body, module, name + ".")
            case ast.If():
                yield from _from_body(node.body + node.orelse, module, inside)
            case ast.Try():
                handlers = [statement for handler in node.handlers for statement in handler.body]
                yield from _from_body(node.body + handlers + node.orelse, module, inside)


def _constructor(node: ast.ClassDef) -> str:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            arguments = statement.args
            del (arguments.posonlyargs or arguments.args)[:1]
            return f"({ast.unparse(arguments)})"
    return ""


def _from_compiled() -> Iterator[Doc]:
    for module in sorted(sys.stdlib_module_names):
        if not _is_public(module) or module in SKIPPED or module.startswith("xx") or not _is_compiled(module):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                imported = importlib.import_module(module)
        except ImportError:
            continue
        yield _doc(module, module, imported.__doc__)
        members = vars(imported)
        if module == "sys":  # programs replace its hooks; it keeps the originals
            members = {name: members.get(f"__{name}__", member) for name, member in members.items()}
        yield from _from_members(members, module, "")


def _from_members(members: Any, module: str, inside: str) -> Iterator[Doc]:
    for name in sorted(members):
        member = members[name]
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if not _is_public(name) or (not inside and getattr(member, "__module__", None) not in (module, None)):
            continue
        if isinstance(member, type) and not inside:
            yield _described(module, name, member, "")
            yield from _from_members(vars(member), module, f"{name}.")
        elif inspect.isroutine(member):
            yield _described(module, inside + name, member, "(...)")


def _described(module: str, name: str, member: Any, otherwise: str) -> Doc:
    try:
        signature = str(inspect.signature(member))
    except (ValueError, TypeError):
        signature = ""
    readable = bool(signature) and " at 0x" not in signature
    text = member.__doc__ if isinstance(member.__doc__, str) else None
    return _doc(f"{module}.{name}", name + (signature if readable else otherwise), text, readable)


def _doc(doc_id: str, title: str, docstring: str | None, has_signature: bool = True) -> Doc:
    """Document of an object. Initial calls of the docstring become the title if there is no signature."""
    text = inspect.cleandoc(docstring or "").strip()
    calls = CALL_LINES.match(text)
    if calls:
        title = title if has_signature else text.partition("\n")[0]
        text = text[calls.end() :]
    return Doc(doc_id, text, title)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_compiled(module: str) -> bool:
    if module in sys.builtin_module_names:
        return True
    spec = PathFinder.find_spec(module)
    return spec is not None and str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES))

"""A sample collection that every Python contains: the docstrings of its standard library."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

from ..core import Doc, Qrels, Topic, Topics

# Tests, an application, and readline, which changes the terminal when it is imported.
SKIPPED = frozenset({"test", "tests", "idlelib", "readline"})
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(\[])|\n\s*\n")
CALL_LINES = re.compile(r"(?:(?:\w+\.)*\w+\(.*\)(?:\s*-+>.*)?\n)+\n\s*")


def python_docs() -> list[Doc]:
    """Return a document for each docstring of a public module, class, function or method of the standard library.

    The id is the qualified name ("zipfile.ZipFile.read"), the title is the signature ("ZipFile.read(self, name, pwd=None)"),
    and the text is the docstring after `inspect.cleandoc`. Python modules are parsed, not imported; extension and built-in
    modules are imported. If a name has several definitions, the first counts. Documents are sorted by id; Python 3.11 has about
    6,500.
    """
    docs: dict[str, Doc] = {}
    for doc in (*_from_sources(Path(sysconfig.get_path("stdlib"))), *_from_compiled()):
        if doc.text:
            docs.setdefault(doc.id, doc)
    return [docs[doc_id] for doc_id in sorted(docs)]


def known_item(docs: Iterable[Doc]) -> tuple[list[Doc], Topics, Qrels]:
    """Make a known-item collection: the first sentence of each document becomes the query that should find it.

    A document of one sentence keeps only its title.

    Args:
        docs: Documents whose first sentence describes them, such as those of `python_docs`.

    Returns:
        The documents without their first sentence; a topic for each document, with its id; and judgments, where each topic has
            one relevant document.
    """
    shortened, topics = [], []
    for doc in docs:
        end = SENTENCE_END.search(doc.text)
        sentence, remainder = (doc.text[: end.start()], doc.text[end.end() :]) if end else (doc.text, "")
        shortened.append(Doc(doc.id, remainder, doc.title, doc.metadata))
        topics.append(Topic(doc.id, " ".join(sentence.split())))
    return shortened, Topics(topics), Qrels((topic.id, "0", topic.id, 1) for topic in topics)


def _from_sources(folder: Path) -> Iterator[Doc]:
    """Yield the documents of all modules in Python below a folder, without importing them."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        names = parts[:-1] if parts[-1] == "__init__" else parts
        # Names of folders such as site-packages and lib-dynload are not identifiers.
        if not names or not all(name.isidentifier() and _is_public(name) and name not in SKIPPED for name in names):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue
        module = ".".join(names)
        yield _doc(module, module, ast.get_docstring(tree, clean=False))
        yield from _from_body(tree.body, module, "")


def _from_body(body: list[ast.stmt], module: str, prefix: str) -> Iterator[Doc]:
    """Yield the documents of definitions, also inside of `if` and `try`; `prefix` is the class and a dot, "" in a module."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(node.name):
                name = prefix + node.name
                yield _doc(f"{module}.{name}", f"{name}({ast.unparse(node.args)})", ast.get_docstring(node, clean=False))
            case ast.ClassDef() if _is_public(node.name):
                name = prefix + node.name
                yield _doc(f"{module}.{name}", name + _constructor(node), ast.get_docstring(node, clean=False))
                yield from _from_body(node.body, module, name + ".")
            case ast.If():
                yield from _from_body(node.body + node.orelse, module, prefix)
            case ast.Try():
                handlers = [statement for handler in node.handlers for statement in handler.body]
                yield from _from_body(node.body + handlers + node.orelse, module, prefix)


def _constructor(node: ast.ClassDef) -> str:
    """Return the arguments of a class's `__init__` in parentheses, without self; "" for a class without `__init__`."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            arguments = statement.args
            del (arguments.posonlyargs or arguments.args)[:1]
            return f"({ast.unparse(arguments)})"
    return ""


def _from_compiled() -> Iterator[Doc]:
    """Yield the documents of extension and built-in modules, which are imported."""
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
        if module == "sys":  # programs replace hooks such as excepthook; __excepthook__ is the original
            members = {name: members.get(f"__{name}__", member) for name, member in members.items()}
        yield from _from_members(members, module, "")


def _from_members(members: Mapping[str, object], module: str, prefix: str) -> Iterator[Doc]:
    """Yield the documents of a module's members; `prefix` is the class and a dot for the members of a class, else ""."""
    for name in sorted(members):
        member = members[name]
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if not _is_public(name) or (not prefix and getattr(member, "__module__", None) not in (module, None)):
            continue
        if isinstance(member, type) and not prefix:
            yield _member_doc(module, name, member, "")
            yield from _from_members(vars(member), module, f"{name}.")
        elif inspect.isroutine(member):
            yield _member_doc(module, prefix + name, member, "(...)")


def _member_doc(module: str, name: str, member: Callable[..., object], default_signature: str) -> Doc:
    """Return the document of an object; its title has `default_signature` if the object has no readable signature."""
    try:
        signature = str(inspect.signature(member))
    except (ValueError, TypeError):
        signature = ""
    readable = bool(signature) and " at 0x" not in signature
    docstring = member.__doc__ if isinstance(member.__doc__, str) else None
    return _doc(f"{module}.{name}", name + (signature if readable else default_signature), docstring, readable)


def _doc(doc_id: str, title: str, docstring: str | None, has_signature: bool = True) -> Doc:
    """Return the document of an object.

    Calls on the first lines of the docstring are not part of the text; the first of them is the title if there is no signature.
    """
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

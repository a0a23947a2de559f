"""Expressions that come with requests: parts that cost a processor alone, and models that the server has loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ...core.errors import ParameterError
from ...core.expression import MAX_TEXT
from ...core.part import stages
from ...core.run import Run
from ...core.stage import Stage
from ...core.values import Topics
from ...index import Index
from ..pipelines import retriever
from .problems import RefusedError

RETRIEVERS = ("bm25", "learned_sparse", "ql", "tfidf")
FREE = frozenset(
    (*RETRIEVERS, "as_typed", "causal_feedback", "cut", "deduplicate", "fuse", "last_turns", "raw", "rm3", "weighted_turns")
)
"""Parts without a model or a file, which every expression may have."""


class Guarded:
    """Reads the expressions of requests.

    Nothing is made of a part that names a model or a file unless the same part stands in one of the server's own expressions.

    Args:
        texts: The server's own expressions.
        most: The greatest whole number of an expression, which may be a depth or a number of documents.
    """

    def __init__(self, texts: Iterable[str], most: int) -> None:
        self._most = most
        self._own = {ast.dump(node) for text in texts for node in _nodes(text) if isinstance(node, ast.Call)}

    def is_light(self, text: str) -> bool:
        """Whether an expression has no part that may run a model."""
        return all(_name(node) in FREE for node in _nodes(text) if isinstance(node, ast.Call))

    def stage(self, text: str, index: Index) -> Stage[Topics, Run]:
        """The stage from topics to a run that an expression describes.

        Raises:
            RefusedError: It has a part that the server has not loaded.
            ParameterError: It cannot be read.
            PipelineError: It does not go from topics to a run.
        """
        try:
            for node in _nodes(text):
                self._check(node)
        except RecursionError:
            raise ParameterError("the pipeline is nested too deeply") from None
        return retriever(index, text)

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > self._most:
            raise RefusedError(422, f"a number in a pipeline may be {self._most:,} at most here")
        name = _name(node)
        if name in stages and name not in FREE and ast.dump(node) not in self._own:
            raise RefusedError(403, f"{name} with these parameters is not among what this server has loaded")


def _name(node: ast.AST) -> str:
    """The name that a call calls; "" for anything else."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _nodes(text: str) -> list[ast.AST]:
    """All of an expression; nothing of one that cannot be read, which the parser of expressions refuses with the place."""
    if len(text) > MAX_TEXT:
        return []
    try:
        return list(ast.walk(ast.parse(text.replace("\n", " ").strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []

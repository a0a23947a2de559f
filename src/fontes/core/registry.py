"""Registries of named parts: those of Fontes, of other packages, and of this process; and of readers and writers of files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import FontesError, ParameterError
from .hints import nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
GROUPS = "fontes."  # beginning of the names of all groups of entry points
PACKAGE = "fontes.datasets"  # fills these when it is imported, with `formats`
readers: dict[str, Callable[..., object]] = {}
"""Functions from a path to a value, by kind: "corpus", "topics", "qrels", "run"."""
writers: dict[str, Callable[..., None]] = {}
"""Functions that write a value to a path, by kind."""
PROVIDED = {
    "cluster": "fontes.cluster:",
    "encode": "fontes.neural.encode:encode",
    "encoder_or_name": "fontes.neural.stored:encoder_or_name",
    "index": "fontes.index_methods:Index",
    "named_encoder": "fontes.neural.stored:named_encoder",
    "tokenizer_of": "fontes.neural.models.tokens:tokenizer_of",
}
"""Functions and modules of districts, and the class of an index, that the kernel loads by name when it needs them."""


class Registry(Generic[T]):
    """Classes by name, each with a name in its class statement: `class Reverse(Stage[Run, Run], name="reverse")`.

    A class registers when it is created. A table says where those of Fontes are, and entry points those of other packages,
    one for each, so that a name imports the one module that has it: `reverse = "acme.stages:Reverse"`. A class that neither
    declares, such as one of a notebook, is known in the process that creates it. Entry points are read at most once, and only
    for names that Fontes does not have.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        table: Mapping[str, str] = MappingProxyType({}),
        key: Callable[[str], str] | None = None,
    ) -> None:
        """Create a registry.

        Args:
            group: The group of entry points, such as "fontes.stages".
            noun: Name of its things in messages, such as "stage".
            table: "module:Class" of Fontes' own things by name. A thing that it lacks is known when its package is imported.
            key: Makes the key of a name, if classes register under further names too; then all entry points are loaded for the
                first name that Fontes does not have.
        """
        self.group = group
        self.noun = noun
        self._table = table
        self._key = key
        self._things: dict[str, T] = {}
        self._ready: set[str] = set()  # names that no declaration contradicts
        self._problems: dict[str, str] = {}

    def add(self, name: str, thing: T) -> None:
        """Register a thing.

        Raises:
            ParameterError: Another thing has this name.
        """
        present = self._things.get(name)
        declared = self._table.get(name, "").replace(":", ".") if present is None else _qualified_name(present)
        if declared and declared != _qualified_name(thing):
            raise ParameterError(f"two {self.noun}s are called '{name}': {declared} and {_qualified_name(thing)}; rename one")
        self._things[name] = thing

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Forget at the end of the block what it registers, as tests of one's own classes need it.

        What a table or an entry point declares stays, since its module is imported once.
        """
        before = dict(self._things)
        try:
            yield
        finally:
            new = [name for name, thing in self._things.items() if name not in before and not _is_own(thing)]
            for name in new:
                if not self._reference(name):
                    del self._things[name]
            self._things |= before

    def __getitem__(self, name: str) -> T:
        """Return the thing of this name.

        Raises:
            ParameterError: The name is unknown, and the message has the nearest name; or its module cannot be imported.
        """
        if name not in self._ready or name not in self._things:
            self._load(name)
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        if name in self._table or name in self._things:
            return True
        return name in self._others or name in self._things  # reading the others may have loaded them

    def __iter__(self) -> Iterator[str]:
        """Yield the names in alphabetical order."""
        return iter(sorted({*self._table, *self._others, *self._things}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def items(self) -> list[tuple[str, T]]:
        """Return names and things in alphabetical order, without those that cannot be imported, with a warning for each."""
        for name in self:
            try:
                self[name]
            except ParameterError:
                warnings.warn(f"the {self.noun} '{name}' is left out: {self._problems[name]}", stacklevel=2)
        return sorted((name, thing) for name, thing in self._things.items() if name not in self._problems)

    def _load(self, name: str) -> None:
        """Import the module that has the thing of a name, unless it is there."""
        reference = self._reference(name)
        is_loaded = name in self._things and _qualified_name(self._things[name]) == reference.replace(":", ".")
        if reference and not is_loaded and name not in self._problems:
            self._import(name, reference)
        if name in self._problems or name not in self._things:
            raise ParameterError(f"there is no {self.noun} '{name}'; {self._problems.get(name) or nearest(name, self)}")
        self._ready.add(name)

    def _reference(self, name: str) -> str:
        """The "module:Class" that is declared for a name, or an empty string."""
        if name in self._table or (name in self._things and _is_own(self._things[name])):
            return self._table.get(name, "")
        return _reference_of(self._others[name]) if name in self._others else ""

    def _import(self, name: str, reference: str) -> None:
        """Import a module; keep the problem if it cannot be imported, or has no class of this name."""
        module, _, cls = reference.partition(":")
        origin = module if name in self._table else _origin(self._others[name])
        try:
            thing = at(reference)
        except Exception as error:
            self._problems[name] = f"{origin} has it and cannot be imported: {error}"
            return
        created = self._things.get(name)
        if created is None or _qualified_name(created) != _qualified_name(thing):
            stated = getattr(thing, "name", "") or ""
            self._problems[name] = (
                f"the entry point of {origin} and the class statement of {cls} have different names, "
                f"'{name}' and '{stated}'; write one name in both"
            )

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        """The entry points of other packages, by name."""
        others: dict[str, EntryPoint] = {}
        for point in installed(self.group):
            name = self._key(point.name) if self._key else point.name
            problem = ""
            if not point.attr:
                problem = f'it names no class; write one entry point for each {self.noun}: NAME = "{point.module}:CLASS"'
            elif name in self._table or (name in self._things and _is_own(self._things[name])):
                problem = f"Fontes has a {self.noun} of this name"
            elif name in others and _reference_of(others[name]) != _reference_of(point):
                problem = f"{_origin(others[name])} has a {self.noun} of this name"
            if problem:
                line = f'{point.name} = "{point.value}"'
                warnings.warn(f"the entry point {line} in {self.group} is left out: {problem}", stacklevel=2)
            else:
                others.setdefault(name, point)
        self.__dict__["_others"] = others  # loading reads it
        for name in others if self._key else ():
            self._import(name, _reference_of(others[name]))
        return others


@lru_cache(None)
def installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, in a fixed order; they are read once in a process, from a file of each package."""
    from importlib.metadata import entry_points  # takes milliseconds

    return tuple(sorted(entry_points(group=group), key=lambda point: (point.value, point.name)))


def _reference_of(point: EntryPoint) -> str:
    return f"{point.module}:{point.attr}"


def _origin(point: EntryPoint) -> str:
    """Module and package of an entry point."""
    return point.module if point.dist is None else f"{point.module} of the package {point.dist.name}"


def _is_own(thing: object) -> bool:
    return _qualified_name(thing).startswith(GROUPS)


def _qualified_name(thing: object) -> str:
    kind = thing if isinstance(thing, type) or hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def read(kind: str, path: str | os.PathLike[str], **options: object) -> Any:
    """Read a "corpus", "topics", "qrels" or "run" from a file, "-" (standard input), a folder in BEIR's form, or a collection.

    `options` are further arguments of the reader, such as a split.

    Raises:
        InputError: The file cannot be read.
        ParameterError: No reader of this kind is installed.
    """
    return _function(readers, kind, path)(os.fspath(path), **options)


def write(kind: str, value: object, path: str | os.PathLike[str], **options: object) -> None:
    """Write a value to the file at `path`; the kinds are those of `read`, the options those of the writer.

    Raises:
        InputError: The file cannot be written.
        ParameterError: No writer of this kind is installed.
    """
    _function(writers, kind, path)(value, os.fspath(path), **options)


def _function(functions: Mapping[str, Callable[..., object]], kind: str, path: object) -> Callable[..., Any]:
    if kind not in functions:
        import_module(PACKAGE)
    if kind not in functions:
        raise ParameterError(f"{path}: nothing that reads or writes a {kind} is installed")
    return functions[kind]


STAGES = {
    "abstain": "fontes.calibration.stages:Abstain",
    "answer": "fontes.llm.answering:LlmAnswer",
    "as_typed": "fontes.rewrite.turns:AsTyped",
    "automatic": "fontes.rewrite.turns:Automatic",
    "best_passages": "fontes.passages.aggregate:BestPassages",
    "bm25": "fontes.lexical.bm25:BM25",
    "boost": "fontes.reorder.boost:Boost",
    "calibrated": "fontes.calibration.stages:Calibrated",
    "canard_t5": "fontes.rewrite.canardt5:CanardT5",
    "cast_passages": "fontes.recipes.cast2021:CastPassages",
    "causal_chains": "fontes.causal.linking:CausalChains",
    "causal_evidence": "fontes.causal.evidence:CausalEvidence",
    "causal_feedback": "fontes.lexical.feedback:CausalFeedback",
    "causal_filter": "fontes.causal.pairs:CausalFilter",
    "causal_keywords": "fontes.causal.narratives:CausalKeywords",
    "chunked_encoder": "fontes.neural.encoders.chunked:ChunkedEncoder",
    "client": "fontes.client:Client",
    "colbert": "fontes.neural.late.colbert:ColBERT",
    "collapse": "fontes.reorder.collapse:Collapse",
    "column": "fontes.ltr.features:Column",
    "companions": "fontes.reorder.companions:Companions",
    "coverage": "fontes.ltr.features:Coverage",
    "cross_encoder": "fontes.neural.rerank.crossencoder:CrossEncoder",
    "cut": "fontes.calibration.stages:PromisedCut",
    "deduplicate": "fontes.passages.duplicates:Deduplicate",
    "dense": "fontes.neural.dense.dense:Dense",
    "encoder_reranker": "fontes.neural.rerank.encoders:EncoderReranker",
    "first_passages": "fontes.recipes.cast2021:FirstPassages",
    "fuse": "fontes.fusion.fusing:Fusion",
    "hqe": "fontes.rewrite.hqe:HQE",
    "hyde": "fontes.llm.queries:Hyde",
    "interpolate": "fontes.rerank.reranker:Interpolated",
    "last_turns": "fontes.rewrite.turns:LastTurns",
    "late": "fontes.neural.late.late:Late",
    "late_reranker": "fontes.neural.rerank.encoders:LateReranker",
    "learned_sparse": "fontes.lexical.learned_sparse:LearnedSparse",
    "length": "fontes.ltr.features:Length",
    "llm": "fontes.llm.model:Model",
    "llm_keywords": "fontes.llm.queries:LlmKeywords",
    "llm_listwise": "fontes.llm.rerank:LlmListwise",
    "llm_pointwise": "fontes.llm.rerank:LlmPointwise",
    "llm_questions": "fontes.llm.questions:LlmQuestions",
    "llm_rewrite": "fontes.llm.queries:LlmRewrite",
    "llm_setwise": "fontes.llm.rerank:LlmSetwise",
    "ltr": "fontes.ltr.stage:LearningToRank",
    "manual": "fontes.rewrite.turns:Manual",
    "manual_statements": "fontes.rewrite.statements:ManualStatements",
    "mmr": "fontes.reorder.mmr:MaximalMarginalRelevance",
    "mono_t5": "fontes.neural.rerank.monot5:MonoT5",
    "narrative": "fontes.causal.narratives:Narrative",
    "not_itself": "fontes.reorder.own_documents:NotItself",
    "passages": "fontes.passages.split:Passages",
    "plain_posts": "fontes.text.posts:PlainPosts",
    "ql": "fontes.lexical.likelihood:QueryLikelihood",
    "query": "fontes.lexical.language:QueryLanguage",
    "query2doc": "fontes.llm.queries:Query2Doc",
    "query_length": "fontes.ltr.features:QueryLength",
    "quretec": "fontes.rewrite.quretec:QuReTeC",
    "rationales": "fontes.passages.rationales:Rationales",
    "raw": "fontes.rewrite.turns:Raw",
    "rm3": "fontes.lexical.feedback:RM3",
    "score": "fontes.ltr.features:Score",
    "sdm": "fontes.lexical.dependence:SequentialDependence",
    "sentence_encoder": "fontes.neural.encoders.sentence:SentenceEncoder",
    "sentences": "fontes.passages.split:Sentences",
    "sort": "fontes.reorder.sort:Sort",
    "splade": "fontes.neural.sparse.splade:SpladeRetriever",
    "splade_encoder": "fontes.neural.sparse.splade:Splade",
    "statements": "fontes.rewrite.statements:Statements",
    "subquestions": "fontes.llm.queries:Subquestions",
    "synonyms": "fontes.lexical.synonyms:Synonyms",
    "text_scorer": "fontes.passages.rationales:TextScorer",
    "tfidf": "fontes.lexical.tfidf:TFIDF",
    "title_and_narrative": "fontes.causal.narratives:TitleAndNarrative",
    "to_documents": "fontes.passages.aggregate:ToDocuments",
    "tolerance": "fontes.lexical.tolerance:Tolerance",
    "topicrank": "fontes.causal.topicrank:TopicRank",
    "transformer_encoder": "fontes.neural.encoders.transformer:TransformerEncoder",
    "weighted_turns": "fontes.rewrite.turns:WeightedTurns",
    "with_reasoning": "fontes.rewrite.reasoning:WithReasoning",
}
"""Stages, and the encoders and models that stages take, by the names in their class statements."""


def at(reference: str) -> Any:
    """Return the object of a reference, "module:name", or the module itself for "module:"."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)


@lru_cache(None)
def provided(name: str) -> Any:
    """Return a function, module or class of a lower room, by its name in `PROVIDED`.

    Raises:
        FontesError: It cannot be imported.
    """
    try:
        return at(PROVIDED[name])
    except ImportError as error:
        raise FontesError(f"'{name}' is in {PROVIDED[name].strip(':')}, which cannot be imported: {error}") from error

"""TREC CAsT 2021: the organisers' baseline for conversations, from rewritten turns to passages and documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core import FontesError, InputError, ParameterError, Run, Stage, Topics
from ..core.checks import check_whole
from ..core.part import walk
from ..core.stage import AnyStage
from ..experiments import Collection
from ..neural import Reranker
from ..passages import Deduplicate, Passages, read_duplicates, to_documents
from ..passages.aggregate import check_separator, parents_of
from ..rewrite import Automatic, Manual
from ..text.sentences import Spans, sentences
from .base import AUTHORS_CODE, PUBLISHED, Need, Recipe
from .errors import errors_table, turn_errors
from .result import RecipeResult

DOCUMENT_RUNS = "document_runs/"
FIRST = 3  # documents among which a turn is found, as in the track's main measure
ERRORS = (
    f"A turn is found if a document of grade 2 or more is among the first {FIRST} (by reranker: not so before reranking). "
    "Other turns are counted once, under the first reason that applies: rewriting (found with the manual rewrite), retrieval "
    f"(no relevant document is a candidate), lost by reranker (one is among the first {FIRST} candidates), ranked low (further "
    "down)."
)


@dataclass(frozen=True, repr=False)
class Cast2021(Recipe, name="cast2021"):
    """Ranks documents by BM25 with rewritten turns, reranks their passages by MonoT5, and takes each document's best passage.

    Topics are turns of conversations, rewritten in two ways; each way gives a run of passages and one of documents. Documents
    are retrieved, split into passages, and the passages reranked. Each step is a parameter: a stage or an expression.

    The runs of documents before reranking, which the organisers call candidates, are saved and measured, too; recipe.md counts
    the turns that are missed, by depth of the turn and by the step at fault: rewriting, retrieval or reranking.

    Published figures: the organisers' automatic run in the CAsT 2021 overview, cited by Łajewska and Balog (ECIR 2023).

    Args:
        automatic: Rewriter of turns for the first two runs. The organisers' rewrites, by castorini/t5-base-canard, come with
            the 2021 topics. None: no such runs. `canard_t5("MODEL")` rewrites other conversations, by a T5
            as published or trained by `fontes train rewriter`.
        manual: Rewriter of turns for the other two runs: manual rewrites, which come with the topics; None: no such runs.
        k1: BM25 parameter.
        b: BM25 parameter.
        documents: Number of documents retrieved per turn, which is part of the runs' names.
        analyzer: Analyzer of the index.
        duplicates: Lists of duplicate documents, one of each group kept: PATH or PREFIX=PATH, comma-separated; PREFIX is put
            before the ids, as in MARCO_=marco_duplicates.txt.
        passages: Passage splitter: by default whole sentences up to two thirds of 250 words; `passages(words=150,
            separator="-")` makes windows.
        reranker: Reranker of passages; None: a passage keeps its document's score.
        depth: Maximum number of passages reranked per turn, from its best documents; None: all.
        keep: Number of passages per turn kept in the runs and used for documents; None: all.
    """

    source = (
        "Baseline run description of TREC CAsT 2021, https://github.com/daltonj/treccastweb/tree/master/2021/baselines; "
        "J. Dalton, C. Xiong and J. Callan, TREC CAsT 2021: The Conversational Assistance Track Overview"
    )
    cite = "Dalton et al., TREC 2021"
    task = "a conversation"
    needs = ("fontes[neural,spacy]", "castorini/monot5-base-msmarco", "en_core_web_sm")
    sample = "harbour/conversations"
    measures = ("nDCG@3", "nDCG@500", "AP(rel=2)@500", "R(rel=2)@500", "RR(rel=2)@500")
    baseline = "document_runs/org_automatic_results_1000.v1.0"
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {
        "document_runs/org_automatic_results_1000.v1.0": {
            "nDCG@3": 0.436,
            "nDCG@500": 0.504,
            "AP(rel=2)@500": 0.291,
            "R(rel=2)@500": 0.636,
            "RR(rel=2)@500": 0.607,
        }
    }
    published_on = "the 158 judged turns of CAsT 2021 and the documents of MS MARCO, KILT's Wikipedia and The Washington Post"

    automatic: str | Stage[Topics, Topics] | None = field(default="automatic()", metadata=PUBLISHED)
    manual: str | Stage[Topics, Topics] | None = field(default="manual()", metadata=PUBLISHED)
    k1: float = field(default=4.46, metadata=PUBLISHED)
    b: float = field(default=0.82, metadata=PUBLISHED)
    documents: int = field(default=1000, metadata=PUBLISHED)
    analyzer: str = "english"
    duplicates: str | None = None
    passages: str | Stage[Run, Run] = field(default="cast_passages()", metadata=AUTHORS_CODE)
    reranker: str | Stage[Run, Run] | None = field(default='mono_t5("castorini/monot5-base-msmarco")', metadata=PUBLISHED)
    depth: int | None = None
    keep: int | None = None

    def systems(self, collection: Collection) -> dict[str, Stage[Topics, Run]]:
        index = collection.index(self.analyzer)
        duplicates = self._duplicates()
        passages: Any = self.stage("passages", index)

        ranked: Stage[Topics, Run] = index.bm25(k1=self.k1, b=self.b, k=self.documents)
        for deduplicate in duplicates:
            ranked = ranked >> deduplicate
        candidates = ranked
        ranked = ranked >> passages
        if self.depth is not None:
            ranked = ranked >> FirstPassages(self.depth)
        if (reranker := self._reranker(index, collection.folder)) is not None:
            ranked = ranked >> reranker
        if self.keep is not None:
            ranked = ranked % self.keep

        systems = {}
        for kind in ("automatic", "manual"):
            if (rewriter := self.stage(kind, index)) is not None:
                final, before = self._names(kind)
                systems[before] = rewriter >> candidates
                systems[final] = rewriter >> ranked
                systems[f"{DOCUMENT_RUNS}{final}"] = systems[final] >> to_documents("max")
        return systems

    def _names(self, kind: str) -> tuple[str, str]:
        """Return the names of the final run of passages and of its candidates, both as the organisers name them."""
        return f"org_{kind}_results_{self.documents}.v1.0", f"org_{kind}_results_docs_{self.documents}.v1.0"

    def analysis(self, result: RecipeResult) -> list[str]:
        report, runs = result.report, result.runs
        if report is None or not any(topic.turns for topic in report.topics.values()):
            return []
        tables = []
        for kind in ("automatic", "manual"):
            final, before = self._names(kind)
            by_hand = runs.get(DOCUMENT_RUNS + self._names("manual")[0]) if kind == "automatic" else None
            if before in runs:
                with suppress(InputError):  # no turn has a relevant document
                    run = runs[DOCUMENT_RUNS + final]
                    errors = turn_errors(report.topics, run, runs[before], report.qrels, by_hand, k=FIRST)
                    tables += [f"With {kind} rewrites:", errors_table(errors)]
        return ["## Turns found and missed, by depth", ERRORS, *tables] if tables else []

    def name_here(self, published: str) -> str:
        return published.replace("_results_1000.", f"_results_{self.documents}.")

    def measured(self, system: str) -> bool:
        return system.startswith(DOCUMENT_RUNS) or "_results_docs_" in system

    def check(self) -> None:
        for name, value in (("documents", self.documents), ("depth", self.depth), ("keep", self.keep)):
            if value is not None:
                check_whole(f"recipe cast2021: {name}", value)
        if self.automatic is None and self.manual is None:
            raise ParameterError("recipe cast2021: automatic and manual are both None, which leaves no run to make")

    def requirements(self, topics: Topics | None) -> Iterator[Need]:
        for kind in ("automatic", "manual"):
            without = f"-s '{kind}=raw()' searches what was typed or -s {kind}=None leaves these runs out"
            yield Need(partial(self.stage, kind), without)
            if topics is not None:
                yield Need(partial(self._check_rewrites, kind, topics), without)
        yield Need(self._duplicates, "-s duplicates=None leaves duplicates in")
        yield Need(partial(self.stage, "passages"), self._other_passages)
        yield Need(partial(self.stage, "reranker"), "-s reranker=None keeps the order of BM25")

    @property
    def _other_passages(self) -> str:
        """Settings that make passages by another library, or by none."""
        with suppress(FontesError):
            if "nupunkt" not in str(getattr(self.stage("passages"), "sentences", "")):
                return "-s 'passages=cast_passages(sentences=\"nupunkt\")' finds sentences by another library"
        return "-s 'passages=passages(words=150, separator=\"-\")' makes windows of words"

    def _check_rewrites(self, kind: str, topics: Topics) -> None:
        rewriter: AnyStage | None = None
        with suppress(FontesError):  # invalid expressions are reported elsewhere
            rewriter = self.stage(kind)
        for part in walk(rewriter) if rewriter is not None else ():
            if isinstance(part, (Automatic, Manual)) and part.missing == "error":
                lacking = [t.id for t in topics.values() if not (t.turns and getattr(t.turns[-1], part.name).strip())]
                more = f" and {len(lacking) - 1} others carry" if len(lacking) > 1 else " carries"
                if lacking:
                    raise InputError(f"recipe cast2021: topic '{lacking[0]}'{more} no {part.name} rewrite")

    def _duplicates(self) -> list[Deduplicate]:
        stages = []
        for entry in self.duplicates.split(",") if self.duplicates else ():
            prefix, _, path = entry.strip().rpartition("=")
            stages.append(Deduplicate(read_duplicates(path, prefix)))
        return stages

    def _reranker(self, index: object, folder: Path) -> Stage[Run, Run] | None:
        reranker = self.stage("reranker", index)
        if isinstance(reranker, Reranker) and isinstance(self.reranker, str):
            # The scores are cached, so an interrupted run resumes.
            return reranker.with_(cache=folder / "scores.sqlite")
        return reranker


FILL_SHARE = 0.67  # share of the word limit at which a passage ends
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class CastPassages(Passages, name="cast_passages"):
    """Makes passages like the CAsT 2021 tools: whole sentences up to the one that reaches 0.67 * 250 words.

    Words are runs of letters and digits.

    Args:
        words: Not used.
        stride: Not used.
        sentences: "spacy:MODEL", whose SentenceRecognizer is run, or "nupunkt".
        max_words: A passage ends with the sentence that reaches two thirds of this.
        title: Whether passages keep the document's title.
        separator: "MARCO_D59865-7" is passage 7, from 0, of the document "MARCO_D59865".
        tokens: Not used.
        tokenizer: Not used.
    """

    sentences: str | None = "spacy:en_core_web_sm"
    max_words: int | None = 250
    title: bool = False
    separator: str = "-"

    def splitter(self) -> Callable[[Sequence[str]], list[Spans]]:
        """Return a function from texts to passage spans, (first character, end)."""
        check_separator(self.separator)
        unused = (self.words, self.stride, self.tokens, self.tokenizer)
        if any(value is not None for value in unused) or self.sentences is None:
            raise ParameterError("the passages of CAsT take sentences and max_words, no words, stride and tokens")
        min_words = FILL_SHARE * check_whole("passages: max_words", self.max_words)
        find = sentences(self.sentences)
        return lambda texts: [_pack_sentences(text, spans, min_words) for text, spans in zip(texts, find(texts), strict=True)]


@dataclass(frozen=True)
class FirstPassages(Stage[Run, Run], name="first_passages"):
    """Keep the first `k` passages of each topic's best documents.

    Use it for a run whose passages have their documents' scores, where `% k` would break ties by passage id.

    Args:
        k: Passages kept per topic.
    """

    k: int

    def check(self) -> None:
        check_whole("first_passages: k", self.k)

    def apply(self, run: Run, /) -> Run:
        self.check()
        k = int(self.k)
        names, parents, numbers = parents_of(run)
        sizes = np.diff(run.bounds)
        topics = np.repeat(np.arange(len(sizes)), sizes)
        _, first, document = np.unique(topics * len(names) + parents[run.codes], return_index=True, return_inverse=True)
        order = np.lexsort((numbers[run.codes], first[document], topics))
        rows = order[np.arange(run.rows) - np.repeat(run.bounds[:-1], sizes) < k]
        columns = topics[rows], run.codes[rows], run.scores[rows]
        return Run.from_columns(run.topics, run.ids, *columns, documents=run.documents, provenance=run.provenance)


def _pack_sentences(text: str, spans: Spans, min_words: float) -> Spans:
    """Return passages of whole sentences, each with at least `min_words` words, stripped of surrounding white space."""
    passages: Spans = []
    start, previous_end, words = 0, 0, 0
    for _, end in spans:
        words += sum(1 for _ in WORD.finditer(text, previous_end, end))
        previous_end = end
        if words >= min_words:
            passages.append((start, end))
            start, words = end, 0
    if text[start:].strip() or not passages:
        passages.append((start, len(text)))
    return [_strip(text, a, b) for a, b in passages]


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return start, start + len(text[start:end].rstrip())

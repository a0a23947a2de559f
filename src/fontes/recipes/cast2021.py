"""TREC CAsT 2021: the organisers' baseline for conversations, from rewritten turns to passages and documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..core import Doc, InputError, ParameterError, Run, Stage, Topics
from ..core.checks import check_whole
from ..core.expression import pipeline
from ..core.part import walk
from ..lexical.weightings import BM25Weighting
from ..passages import Deduplicate, Passages, read_duplicates, to_documents
from ..rewrite.turns import Carried
from .base import Recipe
from .cast2021_parts import CastPassages, FirstPassages
from .collection import Collection


@dataclass(frozen=True)
class Cast2021(Recipe):
    """BM25 with rewritten turns, the documents' passages read again by MonoT5, and the best passage of each document.

    Topics are turns of conversations. They are rewritten in two ways, each of which gives a run of passages and one of
    documents; None leaves these out. A rewriter is a stage, or its text: "automatic()" or "manual()" (what the turns carry),
    "raw()", "last_turns(k=2)", "weighted_turns()", "hqe()", "canard_t5()", 'quretec("FOLDER")'.
    automatic      the organisers' rewrites come from castorini/t5-base-canard, and the topics of 2021 carry them
    manual         rewrites made by hand

    (1) Documents are retrieved.
    k1, b          of BM25
    documents      how many for a turn; their number is in the names of the runs
    analyzer       of the index
    duplicates     lists of duplicate documents, of which one of each group stays: PATH or PREFIX=PATH, with commas between
                   several; PREFIX is put before the ids of the list, as in MARCO_=marco_duplicates.txt

    (2) They are split into passages.
    passages       "spacy:MODEL" or "nupunkt": whole sentences, up to the one with which there are two thirds of 250 words;
                   "words": windows of 150 words; or a stage such as `Passages(…)`

    (3) Passages are read again.
    reranker       a T5 as MonoT5, by name or folder; "cross-encoder:NAME"; a stage; None: a passage keeps its document's score
    depth          how many passages of a turn at most, those of its best documents; None: all
    keep           how many passages of a turn are in the runs, and documents are made of; None: all

    The published figures are those of the organisers' automatic run in the overview of CAsT 2021, as Łajewska and Balog (ECIR
    2023) cite them.
    """

    name = "cast2021"
    source = (
        "Baseline run description of TREC CAsT 2021, https://github.com/daltonj/treccastweb/tree/master/2021/baselines; "
        "J. Dalton, C. Xiong and J. Callan, TREC CAsT 2021: The Conversational Assistance Track Overview"
    )
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

    automatic: str | Stage[Topics, Topics] | None = "automatic()"
    manual: str | Stage[Topics, Topics] | None = "manual()"
    k1: float = 4.46
    b: float = 0.82
    documents: int = 1000
    analyzer: str = "english"
    duplicates: str | None = None
    passages: str | Stage[Run, Run] = "spacy:en_core_web_sm"
    reranker: str | Stage[Run, Run] | None = "castorini/monot5-base-msmarco"
    depth: int | None = None
    keep: int | None = None

    def systems(self, collection: Collection) -> dict[str, Stage[Topics, Run]]:
        duplicates, passages, reranker = self._parts(collection.folder)
        index = collection.index(self.analyzer)

        ranked: Stage[Topics, Run] = index.bm25(k1=self.k1, b=self.b, k=self.documents)
        for stage in duplicates:
            ranked = ranked >> stage
        ranked = ranked >> passages
        if self.depth is not None:
            ranked = ranked >> FirstPassages(self.depth)
        if reranker is not None:
            ranked = ranked >> reranker
        if self.keep is not None:
            ranked = ranked % self.keep

        systems = {}
        for kind, rewriter in self._rewriters.items():
            name = f"org_{kind}_results_{self.documents}.v1.0"
            systems[name] = _rewriter(rewriter, index) >> ranked
            systems[f"document_runs/{name}"] = systems[name] >> to_documents("max")
        return systems

    def measured(self, system: str) -> bool:
        return system.startswith("document_runs/")

    def check(self, topics: Topics) -> None:
        for kind, rewriter in self._rewriters.items():
            stage = _rewriter(rewriter, UNBUILT)
            carried = stage.kind if isinstance(stage, Carried) and stage.missing == "error" else ""
            lacking = [t.id for t in topics.values() if carried and not (t.turns and getattr(t.turns[-1], carried).strip())]
            if lacking:
                more = f" and {len(lacking) - 1} others carry" if len(lacking) > 1 else " carries"
                raise InputError(
                    f"recipe cast2021: topic '{lacking[0]}'{more} no {carried} rewrite; {kind}=raw() searches what was typed, "
                    f"{kind}=canard_t5() has a model rewrite it, {kind}=none leaves these runs out"
                )

    @property
    def _rewriters(self) -> dict[str, str | Stage[Topics, Topics]]:
        given = {"automatic": self.automatic, "manual": self.manual}
        return {kind: rewriter for kind, rewriter in given.items() if rewriter is not None}

    def _parts(self, folder: Path) -> tuple[list[Deduplicate], Stage[Run, Run], Stage[Run, Run] | None]:
        """Lists of duplicates, passages and reranker, all parameters looked at and all models found."""
        for name, value in (("documents", self.documents), ("depth", self.depth), ("keep", self.keep)):
            if value is not None:
                check_whole(f"recipe cast2021: {name}", value)
        BM25Weighting("lucene", self.k1, self.b)
        if not self._rewriters:
            raise ParameterError("recipe cast2021: automatic and manual are both none, which leaves no run to make")
        duplicates = []
        for listed in self.duplicates.split(",") if self.duplicates else ():
            prefix, _, path = listed.strip().rpartition("=")
            duplicates.append(Deduplicate(read_duplicates(path, prefix)))
        passages = self._passages()
        if isinstance(passages, Passages):
            passages.of(Doc("", ""))
        reranker = self._reranker(folder)
        rewriters = [_rewriter(rewriter, UNBUILT) for rewriter in self._rewriters.values()]
        for part in (*rewriters, *([] if reranker is None else [reranker])):
            for inner in walk(part):
                getattr(inner, "fingerprint", None)  # raises where the model is not there
        return duplicates, passages, reranker

    def _passages(self) -> Stage[Run, Run]:
        if isinstance(self.passages, Stage):
            return self.passages
        return Passages(separator="-") if self.passages == "words" else CastPassages(sentences=self.passages)

    def _reranker(self, folder: Path) -> Stage[Run, Run] | None:
        from ..neural import CrossEncoder, MonoT5

        if not isinstance(self.reranker, str):
            return self.reranker
        model = self.reranker.removeprefix("cross-encoder:")
        cache = folder / "scores.sqlite"  # so that a run that was interrupted goes on where it was
        return MonoT5(model, cache=cache) if model == self.reranker else CrossEncoder(model, cache=cache)


UNBUILT = object()
"""What stands for the index while parameters are looked at, before it is built."""


def _rewriter(rewriter: str | Stage[Topics, Topics], index: object) -> Stage[Topics, Topics]:
    stage = rewriter if isinstance(rewriter, Stage) else pipeline(rewriter, index)
    stage.require(Topics, Topics, "a rewriter of cast2021")
    return stage

"""Fontes: document retrieval, from a question, a claim, an event or a conversation to the documents that it came from.

`import fontes` needs numpy alone and is quick: each public name is loaded from its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .causal import (
        CausalEvidence as CausalEvidence,
        CausalFilter as CausalFilter,
        CausalHead as CausalHead,
        CausalKeywords as CausalKeywords,
        CausalPair as CausalPair,
        Cause as Cause,
        Chain as Chain,
        Narrative as Narrative,
        TitleAndNarrative as TitleAndNarrative,
        TopicRank as TopicRank,
        causal_pairs as causal_pairs,
        causes as causes,
        relevant_part as relevant_part,
    )
    from .core import (
        Cut as Cut,
        Doc as Doc,
        Explanation as Explanation,
        FontesError as FontesError,
        Hit as Hit,
        IndexFormatError as IndexFormatError,
        InputError as InputError,
        MissingExtraError as MissingExtraError,
        ParameterError as ParameterError,
        Pipeline as Pipeline,
        PipelineError as PipelineError,
        Qrels as Qrels,
        Ranking as Ranking,
        Run as Run,
        Stage as Stage,
        Topic as Topic,
        Topics as Topics,
        Turn as Turn,
    )
    from .data import (
        Deduplicate as Deduplicate,
        dataset as dataset,
        datasets as datasets,
        known_item as known_item,
        python_docs as python_docs,
        read_canard as read_canard,
        read_corpus as read_corpus,
        read_duplicates as read_duplicates,
        read_qrels as read_qrels,
        read_run as read_run,
        read_topics as read_topics,
        samples as samples,
        write_corpus as write_corpus,
        write_qrels as write_qrels,
        write_run as write_run,
        write_topics as write_topics,
    )
    from .evaluation import (
        AP as AP,
        RBP as RBP,
        RR as RR,
        Bpref as Bpref,
        Comparison as Comparison,
        Complete as Complete,
        Evaluation as Evaluation,
        Experiment as Experiment,
        IPrec as IPrec,
        Judged as Judged,
        LearnedWeights as LearnedWeights,
        NumRel as NumRel,
        NumRelRet as NumRelRet,
        NumRet as NumRet,
        P as P,
        Plot as Plot,
        PowerLaw as PowerLaw,
        R as R,
        Report as Report,
        Rprec as Rprec,
        SetF as SetF,
        SetP as SetP,
        SetR as SetR,
        Success as Success,
        System as System,
        Tuning as Tuning,
        compare as compare,
        evaluate as evaluate,
        fit_weights as fit_weights,
        heaps as heaps,
        nDCG as nDCG,
        parse as parse,
        plot_bm25 as plot_bm25,
        plot_heaps as plot_heaps,
        plot_idf as plot_idf,
        plot_lengths as plot_lengths,
        plot_tfidf as plot_tfidf,
        plot_zipf as plot_zipf,
        tune as tune,
        zipf as zipf,
    )
    from .fusion import (
        Fusion as Fusion,
        fuse as fuse,
    )
    from .index import (
        Index as Index,
        Progress as Progress,
    )
    from .lexical import (
        BM25 as BM25,
        RM3 as RM3,
        TFIDF as TFIDF,
        LearnedSparse as LearnedSparse,
        QueryLikelihood as QueryLikelihood,
    )
    from .neural import (
        ChunkedEncoder as ChunkedEncoder,
        ColBERT as ColBERT,
        CrossEncoder as CrossEncoder,
        Dense as Dense,
        Encoder as Encoder,
        Late as Late,
        LateReranker as LateReranker,
        MonoT5 as MonoT5,
        PartsEncoder as PartsEncoder,
        Reranker as Reranker,
        SentenceEncoder as SentenceEncoder,
        TransformerEncoder as TransformerEncoder,
        encode_late as encode_late,
    )
    from .recipes import (
        Cair2021 as Cair2021,
        Cast2021 as Cast2021,
        CastPassages as CastPassages,
        Collection as Collection,
        Recipe as Recipe,
        RecipeResult as RecipeResult,
        recipe as recipe,
    )
    from .rewrite import (
        HQE as HQE,
        Automatic as Automatic,
        CanardT5 as CanardT5,
        Conversation as Conversation,
        LastTurns as LastTurns,
        Manual as Manual,
        QuReTeC as QuReTeC,
        Raw as Raw,
        RewritingScores as RewritingScores,
        TermScores as TermScores,
        WeightedTurns as WeightedTurns,
        relevant_terms as relevant_terms,
        rewriting_scores as rewriting_scores,
        term_scores as term_scores,
    )
    from .text import (
        Analyzer as Analyzer,
        Passages as Passages,
        to_documents as to_documents,
    )
    from .train import (
        CausalityMeasured as CausalityMeasured,
        Duplicate as Duplicate,
        Leakage as Leakage,
        Split as Split,
        TermProgress as TermProgress,
        TermSettings as TermSettings,
        TermTraining as TermTraining,
        leakage as leakage,
        measure_causality as measure_causality,
        split as split,
        train_causality as train_causality,
        train_terms as train_terms,
    )

_NAMES = {
    "causal": (
        "CausalEvidence CausalFilter CausalHead CausalKeywords CausalPair Cause Chain Narrative TitleAndNarrative "
        "TopicRank causal_pairs causes relevant_part"
    ),
    "core": (
        "Cut Doc Explanation FontesError Hit IndexFormatError InputError MissingExtraError ParameterError "
        "Pipeline PipelineError Qrels Ranking Run Stage Topic Topics Turn"
    ),
    "data": (
        "Deduplicate datasets dataset known_item python_docs read_canard read_corpus read_duplicates read_qrels read_run "
        "read_topics samples write_corpus write_qrels write_run write_topics"
    ),
    "evaluation": (
        "AP RBP RR Bpref Comparison Complete Evaluation IPrec Judged LearnedWeights NumRel NumRelRet NumRet P R Report Rprec "
        "SetF SetP SetR Success System compare evaluate fit_weights nDCG parse "
        "Experiment Plot PowerLaw heaps plot_bm25 plot_heaps plot_idf plot_lengths plot_tfidf plot_zipf Tuning tune zipf"
    ),
    "fusion": ("Fusion fuse"),
    "index": ("Index Progress"),
    "lexical": ("BM25 LearnedSparse RM3 TFIDF QueryLikelihood"),
    "neural": (
        "ChunkedEncoder ColBERT CrossEncoder Dense Encoder Late LateReranker MonoT5 PartsEncoder Reranker "
        "SentenceEncoder TransformerEncoder encode_late"
    ),
    "recipes": ("Cair2021 Cast2021 CastPassages Collection Recipe RecipeResult recipe"),
    "rewrite": (
        "Automatic CanardT5 Conversation HQE LastTurns Manual QuReTeC Raw RewritingScores TermScores WeightedTurns "
        "relevant_terms rewriting_scores term_scores"
    ),
    "text": ("Analyzer Passages to_documents"),
    "train": (
        "CausalityMeasured Duplicate Leakage Split TermProgress TermSettings TermTraining leakage measure_causality split "
        "train_causality train_terms"
    ),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("fontes")
    if name not in _MODULES:
        raise AttributeError(f"module 'fontes' has no attribute '{name}'")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])

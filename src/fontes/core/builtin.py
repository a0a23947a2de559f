"""Tables of the modules that have the parts of Fontes, as texts: a module is imported when one of its parts is used."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from .errors import FontesError

PROVIDED = {
    "cluster": "fontes.cluster:",
    "encode": "fontes.neural.encode:encode",
    "encoder_or_name": "fontes.neural.stored:encoder_or_name",
    "index": "fontes.index_methods:Index",
    "named_encoder": "fontes.neural.stored:named_encoder",
    "tokenizer_of": "fontes.neural.models.tokens:tokenizer_of",
}
"""Functions and modules of districts, and the class of an index, that the kernel loads by name when it needs them."""


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

"""Language models as stages: a model whose answers are stored, replayed and counted; queries, rerankers and cited answers."""

from .answer_scores import AnswerScores, answer_scores
from .answering import Citation, CitedAnswer, CitedSentence, LlmAnswer, answer_of
from .answers import AnswerFile, Request, StoredAnswer, read_pack, write_pack
from .base import LlmPart
from .judging import Label, LlmJudge
from .model import Model, model_of
from .prompts import Prompt
from .queries import Hyde, LlmKeywords, LlmRewrite, Query2Doc, Subquestions
from .questions import LlmQuestions
from .rerank import LlmListwise, LlmPointwise, LlmSetwise

__all__ = [
    "AnswerFile",
    "AnswerScores",
    "Citation",
    "CitedAnswer",
    "CitedSentence",
    "Hyde",
    "Label",
    "LlmAnswer",
    "LlmJudge",
    "LlmKeywords",
    "LlmListwise",
    "LlmPart",
    "LlmPointwise",
    "LlmQuestions",
    "LlmRewrite",
    "LlmSetwise",
    "Model",
    "Prompt",
    "Query2Doc",
    "Request",
    "StoredAnswer",
    "Subquestions",
    "answer_of",
    "answer_scores",
    "model_of",
    "read_pack",
    "write_pack",
]

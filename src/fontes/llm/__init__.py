"""Language models as stages: one door that keeps, replays and counts every answer; queries and rerankers."""

from .answers import AnswerFile, Kept, Request, read_pack, write_pack
from .base import Asking
from .model import Model
from .prompts import Prompt
from .queries import Hyde, LlmKeywords, LlmRewrite, Query2Doc, Subquestions
from .rerank import LlmListwise, LlmPointwise, LlmSetwise

__all__ = [
    "AnswerFile",
    "Asking",
    "Hyde",
    "Kept",
    "LlmKeywords",
    "LlmListwise",
    "LlmPointwise",
    "LlmRewrite",
    "LlmSetwise",
    "Model",
    "Prompt",
    "Query2Doc",
    "Request",
    "Subquestions",
    "read_pack",
    "write_pack",
]

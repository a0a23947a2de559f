"""Values, the algebra of stages, and errors. Needs numpy alone."""

from .errors import FontesError, IndexFormatError, InputError, MissingExtraError, ParameterError, PipelineError
from .qrels import Qrels
from .run import Ranking, Run, order_keys
from .stage import Cut, Pipeline, Scaled, Stage, Sum
from .strings import Strings, utf8
from .values import Doc, Documents, Explanation, Hit, Topic, Topics, Turn

__all__ = [
    "Cut",
    "Doc",
    "Documents",
    "Explanation",
    "FontesError",
    "Hit",
    "IndexFormatError",
    "InputError",
    "MissingExtraError",
    "ParameterError",
    "Pipeline",
    "PipelineError",
    "Qrels",
    "Ranking",
    "Run",
    "Scaled",
    "Stage",
    "Strings",
    "Sum",
    "Topic",
    "Topics",
    "Turn",
    "order_keys",
    "utf8",
]

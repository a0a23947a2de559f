"""Core values, stages, pipeline expressions, registries, progress and errors. Needs numpy alone."""

from .errors import FontesError, IndexFormatError, InputError, MissingExtraError, ParameterError, PipelineError
from .expression import pipeline, tunable
from .parameters import Parameter, parameters
from .part import Part, stages
from .progress import Progress, ProgressCallback, show, silent
from .qrels import Qrels
from .ranking import Ranking, order_keys
from .registry import Registry
from .run import Run
from .stage import Cut, Pipeline, Scaled, Stage, Sum
from .strings import Strings, utf8
from .tabular import Tabular
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
    "Parameter",
    "ParameterError",
    "Part",
    "Pipeline",
    "PipelineError",
    "Progress",
    "ProgressCallback",
    "Qrels",
    "Ranking",
    "Registry",
    "Run",
    "Scaled",
    "Stage",
    "Strings",
    "Sum",
    "Tabular",
    "Topic",
    "Topics",
    "Turn",
    "order_keys",
    "parameters",
    "pipeline",
    "show",
    "silent",
    "stages",
    "tunable",
    "utf8",
]

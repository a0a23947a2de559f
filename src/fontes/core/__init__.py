"""Core values, stages, pipeline expressions, registries, progress and errors. Needs numpy alone."""

from .errors import FontesError, IndexFormatError, InputError, MissingExtraError, ParameterError, PipelineError
from .expression import pipeline, tunable
from .parameters import Parameter, parameters
from .part import Part, stages
from .progress import Progress, Report, silent
from .qrels import Qrels
from .ranking import Ranking, order_keys
from .registry import Registry
from .run import Run
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
    "Parameter",
    "ParameterError",
    "Part",
    "Pipeline",
    "PipelineError",
    "Progress",
    "Qrels",
    "Ranking",
    "Registry",
    "Report",
    "Run",
    "Scaled",
    "Stage",
    "Strings",
    "Sum",
    "Topic",
    "Topics",
    "Turn",
    "order_keys",
    "parameters",
    "pipeline",
    "silent",
    "stages",
    "tunable",
    "utf8",
]

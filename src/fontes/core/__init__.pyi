from .errors import (
    FontesError as FontesError,
    IndexFormatError as IndexFormatError,
    InputError as InputError,
    MissingExtraError as MissingExtraError,
    ParameterError as ParameterError,
    PipelineError as PipelineError,
)
from .expression import pipeline as pipeline, tunable as tunable
from .parameters import Parameter as Parameter, parameters as parameters
from .part import Part as Part, stages as stages
from .ranking import Ranking as Ranking, order_keys as order_keys
from .registry import Registry as Registry
from .run import Run as Run
from .stage import Cut as Cut, Pipeline as Pipeline, Scaled as Scaled, Stage as Stage, Sum as Sum
from .strings import Strings as Strings, utf8 as utf8
from .tabular import Tabular as Tabular
from .values import (
    Doc as Doc,
    Documents as Documents,
    Explanation as Explanation,
    Hit as Hit,
    Qrels as Qrels,
    Topic as Topic,
    Topics as Topics,
    Turn as Turn,
)
from .work import (
    Progress as Progress,
    ProgressCallback as ProgressCallback,
    reporter as reporter,
    show as show,
    silent as silent,
)

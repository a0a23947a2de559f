from . import (
    auditing as auditing,
    calibration as calibration,
    causal as causal,
    comparison as comparison,
    core as core,
    datasets as datasets,
    experiments as experiments,
    formats as formats,
    fusion as fusion,
    gate as gate,
    index as index,
    lexical as lexical,
    llm as llm,
    ltr as ltr,
    measures as measures,
    neural as neural,
    passages as passages,
    plots as plots,
    recipes as recipes,
    rewrite as rewrite,
    tasks as tasks,
    text as text,
    train as train,
    tuning as tuning,
)
from .auditing import audit as audit
from .client import Client as Client
from .core import (
    Doc as Doc,
    Explanation as Explanation,
    FontesError as FontesError,
    Hit as Hit,
    Qrels as Qrels,
    Ranking as Ranking,
    Run as Run,
    Stage as Stage,
    Topic as Topic,
    Topics as Topics,
    Turn as Turn,
    pipeline as pipeline,
)
from .core.function import stage as stage
from .core.work import work as work
from .datasets import dataset as dataset
from .experiments import Experiment as Experiment, compare as compare
from .formats import (
    read_corpus as read_corpus,
    read_qrels as read_qrels,
    read_run as read_run,
    read_topics as read_topics,
    write_corpus as write_corpus,
    write_qrels as write_qrels,
    write_run as write_run,
    write_topics as write_topics,
)
from .fusion import fuse as fuse
from .index_methods import Index as Index
from .measures import AP as AP, RR as RR, P as P, R as R, evaluate as evaluate, nDCG as nDCG
from .neural import (
    ChunkedEncoder as ChunkedEncoder,
    ColBERT as ColBERT,
    CrossEncoder as CrossEncoder,
    EncoderReranker as EncoderReranker,
    MonoT5 as MonoT5,
    SentenceEncoder as SentenceEncoder,
    Splade as Splade,
    TransformerEncoder as TransformerEncoder,
)
from .passages import (
    BestPassages as BestPassages,
    Deduplicate as Deduplicate,
    Passages as Passages,
    Rationales as Rationales,
    Sentences as Sentences,
    to_documents as to_documents,
)
from .recipes import recipe as recipe
from .rewrite import HQE as HQE, CanardT5 as CanardT5, Conversation as Conversation, QuReTeC as QuReTeC
from .text import Analyzer as Analyzer
from .train import mine_negatives as mine_negatives, split as split
from .tuning import tune as tune

__version__: str

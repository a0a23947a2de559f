"""Training of encoders, rerankers, rewriters and classifiers; hard negatives, and splits without leakage."""

from ..causal.causality import CausalityMeasured, measure_causality, train_causality
from .bi_encoder import BiEncoderSettings, train_bi_encoder
from .calibration import (
    CalibrationSettings,
    CalibrationTraining,
    CalibrationValidation,
    train_calibration,
    validate_calibration,
)
from .colbert import ColBERTSettings, train_colbert
from .cross_encoder import CrossEncoderSettings, Validation, train_cross_encoder
from .document_examples import document_examples
from .duplicates import Duplicate
from .encoder_fit import SearchValidation
from .examples import Example, Examples, LabelledPair, LabelledPairs, Passage
from .learners import RankerSettings
from .mining import Mined, Mining, mine_negatives
from .mono_t5 import MonoT5Settings, train_mono_t5
from .ranker import RankerFold, RankerTraining, RankerValidation, train_ranker, validate_ranker
from .rewriter import RewriterSettings, train_rewriter
from .runner.running import Training
from .splade import SpladeSettings, train_splade
from .splits import Leakage, Side, Split, leakage, split
from .terms import TermSettings, train_terms

__all__ = [
    "BiEncoderSettings",
    "CalibrationSettings",
    "CalibrationTraining",
    "CalibrationValidation",
    "CausalityMeasured",
    "ColBERTSettings",
    "CrossEncoderSettings",
    "Duplicate",
    "Example",
    "Examples",
    "LabelledPair",
    "LabelledPairs",
    "Leakage",
    "Mined",
    "Mining",
    "MonoT5Settings",
    "Passage",
    "RankerFold",
    "RankerSettings",
    "RankerTraining",
    "RankerValidation",
    "RewriterSettings",
    "SearchValidation",
    "Side",
    "SpladeSettings",
    "Split",
    "TermSettings",
    "Training",
    "Validation",
    "document_examples",
    "leakage",
    "measure_causality",
    "mine_negatives",
    "split",
    "train_bi_encoder",
    "train_calibration",
    "train_causality",
    "train_colbert",
    "train_cross_encoder",
    "train_mono_t5",
    "train_ranker",
    "train_rewriter",
    "train_splade",
    "train_terms",
    "validate_calibration",
    "validate_ranker",
]

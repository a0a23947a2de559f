"""What errors of training say: the setting, file, line, topic or document at fault, and what to do."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.errors import check_error
from support.paired_words import SETTINGS as PAIRED, examples as paired, masked_start, start
from support.ranked import FEATURES, candidates as ranked, documents, judgments, topics as ranked_topics
from support.simulated import simulated
from support.term_classifier import SETTINGS as TERMS, TOPICS as CONVERSATIONS, asked, base as base
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_models import tiny
from support.tiny_t5 import save_t5
from support.tiny_training import SETTINGS, candidates, examples

import fontes as ft
from fontes import ChunkedEncoder, Index, Qrels, Run, Topic, Topics, Turn
from fontes.core import FontesError, InputError, MissingExtraError, ParameterError
from fontes.neural import ColBERT, Splade
from fontes.neural.late.trainable import trainable as trainable_late
from fontes.train import (
    BiEncoderSettings,
    CalibrationSettings,
    ColBERTSettings,
    CrossEncoderSettings,
    Example,
    Examples,
    LabelledPairs,
    MonoT5Settings,
    Passage,
    RankerSettings,
    RewriterSettings,
    SearchValidation,
    SpladeSettings,
    TermSettings,
    Validation,
    train_bi_encoder,
    train_calibration,
    train_colbert,
    train_cross_encoder,
    train_mono_t5,
    train_ranker,
    train_rewriter,
    train_splade,
    train_terms,
)
from fontes.train.cross_encoder import settings_of
from fontes.train.splits import units_without_leakage
from fontes.tuning.folds import folds_of


@each(
    ("kind", "changes", "names", "remedy"),
    [
        (BiEncoderSettings, {"mini_batch": 0}, "mini_batch … not 0", "above 0"),
        (BiEncoderSettings, {"scale": 0.0}, "scale … not 0.0", "above 0"),
        (BiEncoderSettings, {"negatives": -1}, "negatives … not -1", "0 or more"),
        (BiEncoderSettings, {"loss": "triplet"}, "loss … not 'triplet'", "'mnrl', 'teacher', 'kl', 'residual' or 'cosine'"),
        (BiEncoderSettings, {"warm_up": 1.5}, "not 1.5", "a share of the steps below 1, or a number of steps"),
        (BiEncoderSettings, {"warm_up": math.inf}, "warm_up … inf", "finite"),
        (SpladeSettings, {"document_flops": -1.0}, "document_flops … not -1.0", "0 or more"),
        (SpladeSettings, {"flops_warm_up": 1.5}, "flops_warm_up … not 1.5", "1 or less"),
        (SpladeSettings, {"loss": "cosine"}, "loss … not 'cosine'", "'mnrl', 'teacher' or 'kl'"),
        (SpladeSettings, {"scale": 0.0}, "scale … not 0.0", "above 0"),
        (CrossEncoderSettings, {"loss": "mse"}, "loss … not 'mse'", "'bce', 'margin', 'lambda', 'teacher' or 'kl'"),
        (CrossEncoderSettings, {"evaluations": 0}, "evaluations … not 0", "above 0"),
        (CrossEncoderSettings, {"held_out": 1.0}, "held_out … not 1.0", "below 1"),
        (CrossEncoderSettings, {"warm_up": -0.1}, "warm_up … not -0.1", "0 or more"),
        (CrossEncoderSettings, {"best": "accurracy"}, "accurracy", ""),
        (CrossEncoderSettings, {"best": "P"}, "P", "needs a cutoff"),
        (CrossEncoderSettings, {"margin": 0.0}, "margin … not 0.0", "above 0"),
        (CrossEncoderSettings, {"checkpoints": "x"}, "'checkpoints'", "there are epochs, batch"),
        (
            CrossEncoderSettings,
            {"order": "random", "weight_decay": -1.0},
            "weight_decay … not -1.0 … order",
            "'length' or 'shuffled'",
        ),
        (RewriterSettings, {"best": "RR@5"}, "best … not 'RR@5'", "'loss' or 'last'"),
        (RankerSettings, {"learner": "svm"}, "learner … not 'svm'", "'lightgbm', 'linear' or 'setrank'"),
        (RankerSettings, {"measure": "nDCG@x"}, "'x'", ""),
        (CalibrationSettings, {"map": "platt"}, "map … not 'platt'", "isotonic, beta or logistic"),
        *(
            (kind, changes, names, remedy)
            for kind in (TermSettings, TERMS.with_)
            for changes, names, remedy in (
                ({"epochs": 0}, "epochs … not 0", "above 0"),
                ({"epochs": 1.5}, "epochs … not 1.5", "a whole number"),
                ({"minutes": -1}, "minutes … not -1", "above 0"),
                ({"dropout": 1.0}, "dropout … not 1.0", "below 1"),
                ({"dropout": -0.5}, "dropout … not -0.5", "0 or more"),
                ({"held_out": 0}, "held_out … not 0", "above 0"),
                ({"max_length": 3}, "max_length … not 3", "8 or more"),
                ({"lr": float("inf")}, "lr … not inf", "finite"),
                ({"lr": "fast"}, "lr … not 'fast'", "a number"),
                ({"seed": -1}, "seed … not -1", "0 or more"),
                ({"seed": 2**32}, "seed … not 4294967296", "below 4294967296"),
                ({"limit": True}, "limit … not True", "a whole number"),
                ({"analyzer": None}, "analyzer … not None", "a string"),
                ({"precision": "float8"}, "precision … not 'float8'", "'auto', 'float32' or 'bfloat16'"),
                ({"rate": 1}, "'rate'", "there are epochs, batch"),
                ({"epochs": 0, "batch": 0}, "epochs … not 0 … batch … not 0", "above 0"),
            )
        ),
        (lambda: settings_of("air2024"), {}, "'air2024'", "there are air2025"),
    ],
)
def test_settings_that_make_no_sense(kind: Any, changes: dict[str, Any], names: str, remedy: str) -> None:
    check_error(lambda: kind(**changes), ParameterError, names, remedy)


PAIRS = paired(12, 1, longest=6)
QUICK = PAIRED.with_(epochs=1, held_out=0.0)
UNSCORED = Examples([Example("1", "brook", Passage("a", "oak"), (Passage("b", "elm"),)), *PAIRS])
ONE_LABEL = LabelledPairs.of([("brook", "oak", 1), ("beck", "ash", 1)])
LABELLED = LabelledPairs.of(PAIRS)
NO_QRELS = SearchValidation(topics=ft.Topics())
COLBERT = ColBERTSettings(epochs=1, evaluations=1, precision="float32")
SPLADE = SpladeSettings(epochs=1, evaluations=1, precision="float32")
REWRITER = RewriterSettings(epochs=1, batch=4, held_out=0.25, evaluations=1, precision="float32")
DATA = examples()
RUN, QRELS = candidates(DATA)
LEARNED = candidates(DATA.held_out(0.2, 0)[0])
WORDLESS = Topics([Topic("1_1", "words", turns=(Turn("words"),))])
T5 = MonoT5Settings(epochs=1, batch=8, evaluations=1, precision="float32")


def colbert(**settings: Any) -> ColBERT:
    settings = {"precision": "float32", "device": "cpu", "document_length": 24, "query_length": 8, **settings}
    return ColBERT(start("bert").folder, **settings)


def splade(**settings: Any) -> Splade:
    return Splade(masked_start(), precision="float32", device="cpu", **settings)


def spoken(conversations: int = 4) -> Topics:
    """Conversations of two turns, of which the second lacks a word of the first."""
    return Topics(
        Topic(f"c{c}_{len(turns)}", turns[-1].text, turns=turns)
        for c in range(conversations)
        for first in [Turn(f"water rock {c}", manual=f"water rock {c}", answer="hot")]
        for turns in ((first,), (first, Turn("cold", manual="water cold", answer="rain")))
    )


def written(path: Path, those: Iterable[Example]) -> Path:
    Examples(those).write(path)
    return path


def cross(path: Path, *changes: Any, **settings: Any) -> object:
    """Train a cross-encoder from a base that is not looked at."""
    data, validation = (*changes, DATA, None)[:2] if changes else (DATA, None)
    return train_cross_encoder(data, path / "m", path / "none", SETTINGS.with_(**settings), validation)


@each(
    ("train", "error", "names", "remedy"),
    [
        (
            lambda p: train_bi_encoder(written(p / "e.jsonl", PAIRS), p / "m", start("bert"), PAIRED.with_(loss="teacher")),
            InputError,
            "e.jsonl, line 1: the document",
            "score of a teacher",
        ),
        (
            lambda p: train_bi_encoder(ONE_LABEL, p / "m", start("bert"), PAIRED.with_(loss="cosine")),
            InputError,
            "all pairs have the label 1",
            "",
        ),
        (
            lambda p: train_bi_encoder(PAIRS, p / "m", start("bert"), PAIRED.with_(best="RR@5", held_out=0.0)),
            ParameterError,
            "RR@5",
            "hold out examples",
        ),
        (lambda p: train_bi_encoder(p / "none.jsonl", p / "m", start("bert"), PAIRED), InputError, "none.jsonl", ""),
        (lambda p: train_bi_encoder(PAIRS, p / "m", 7), ParameterError, "7", "use sentence_encoder"),
        (lambda _: ft.split([("1", "a")], test_size=0.2), ParameterError, "split … 'test_size'", "'test'"),
        (
            lambda p: train_bi_encoder(PAIRS, p / "m", start("bert"), QUICK, NO_QRELS),
            ParameterError,
            "qrels",
            "belong together",
        ),
        (
            lambda p: train_bi_encoder(LABELLED, p / "m", ChunkedEncoder(start("bert")), QUICK.with_(loss="cosine")),
            ParameterError,
            "labelled pairs",
            "windows",
        ),
        # late interaction
        (
            lambda p: train_colbert(UNSCORED, p / "m", colbert(), COLBERT.with_(loss="teacher")),
            InputError,
            "score of a teacher … loss 'teacher'",
            "",
        ),
        (
            lambda p: train_colbert(PAIRS, p / "m", colbert(), COLBERT.with_(best="RR@5", held_out=0.0)),
            ParameterError,
            "RR@5",
            "a search",
        ),
        (
            lambda p: train_colbert(PAIRS, p / "m", colbert(), COLBERT.with_(max_length=5000)),
            ParameterError,
            "document_length is 5000",
            "512 positions",
        ),
        (lambda p: train_colbert(PAIRS, p / "m", colbert(dim=64), COLBERT), ParameterError, "dim", "between 1 and 32"),
        (lambda p: train_colbert(PAIRS, p / "m", start("bert"), COLBERT), ParameterError, "transformer", "use colbert(…)"),
        (lambda p: train_colbert(PAIRS, p / "m", p / "none", COLBERT), InputError, "none", ""),
        # learned sparse weights
        (
            lambda p: train_splade(UNSCORED, p / "m", splade(), SPLADE.with_(loss="kl")),
            InputError,
            "score of a teacher … loss 'kl'",
            "one for each",
        ),
        (
            lambda p: train_splade(PAIRS, p / "m", splade(), SPLADE.with_(best="RR@5", held_out=0.0)),
            ParameterError,
            "RR@5",
            "a search",
        ),
        (lambda p: train_splade(PAIRS, p / "m", splade(document_terms=5), SPLADE), ParameterError, "terms", "all terms"),
        (
            lambda p: train_splade(PAIRS, p / "m", splade(max_length=5000), SPLADE),
            ParameterError,
            "max_length is 5000",
            "512 tokens",
        ),
        (lambda p: train_splade(PAIRS, p / "m", start("bert"), SPLADE), ParameterError, "transformer", "use splade_encoder"),
        (lambda p: train_splade(PAIRS, p / "m", tiny("t5"), SPLADE), InputError, "t5 as a masked language model", ""),
        (lambda p: train_splade(PAIRS, p / "m", p / "none", SPLADE), InputError, "none", ""),
        (
            lambda p: train_splade(PAIRS, p / "m", splade(), SPLADE.with_(held_out=0.0), NO_QRELS),
            ParameterError,
            "qrels",
            "belong together",
        ),
        # rerankers
        (
            lambda p: train_cross_encoder(DATA, p / "m", save_cross_encoder(p / "base", labels=3), SETTINGS),
            InputError,
            "base … 3 labels",
            "a model with one, or from an encoder",
        ),
        (
            lambda p: cross(p, DATA, written(p / "v.jsonl", [replace(one, topic="other") for one in DATA[4:6]])),
            InputError,
            "v.jsonl, line … 2 queries",
            "remove them from one of the two: '",
        ),
        (lambda p: cross(p, DATA, Validation(None, *LEARNED)), InputError, "validation", "no judged topic of the run is left"),
        (lambda p: cross(p, best="RR@5"), ParameterError, "best='RR@5'", "give a validation run and qrels"),
        (lambda p: cross(p, DATA, Validation(run=RUN)), ParameterError, "qrels", "give both or none"),
        (lambda p: cross(p, loss="teacher"), InputError, "the document 'q", "see Examples.scored"),
        (lambda p: cross(p, DATA, Validation(run=RUN.with_(documents=None), qrels=QRELS)), InputError, "documents' text", ""),
        (
            lambda p: cross(p, written(p / "e.jsonl", [replace(one, negatives=()) for one in DATA])),
            InputError,
            "e.jsonl, line 1 to … e.jsonl, line 20",
            "no example has negatives",
        ),
        (
            lambda p: train_mono_t5(DATA, p / "m", save_t5(p / "t5"), T5.with_(true="perhaps")),
            InputError,
            "'perhaps' … 8",
            "one token",
        ),
        # rewriters
        *(
            (lambda p, d=those, o=others: train_rewriter(d, p / "m", p / "none", REWRITER, o), InputError, names, remedy)
            for those, others, names, remedy in (
                (WORDLESS, None, "no training data", "manual rewrite"),
                (spoken(), WORDLESS, "no validation data", ""),
                (spoken(), spoken(1), "'c0'", "remove from one of the two"),
                (spoken(1), None, "one conversation", "at least two"),
            )
        ),
        (
            lambda p: train_rewriter(spoken(), p / "m", save_cross_encoder(p / "bert"), REWRITER),
            InputError,
            "bert is no T5 rewriter … BertForSequenceClassification",
            "",
        ),
        # classifiers of terms
        *(
            (lambda p, d=those: train_terms(d, p / "m", p / "none", TERMS), InputError, names, remedy)
            for those, names, remedy in (
                ([Topic("1_1", "a", turns=(Turn("a", "a"),))], "no topic has earlier turns", "a manual rewrite"),
                ([asked("a", "b", manual="b")], "1 conversation", "at least three"),
                ([asked("a", "b", manual="b a", id=f"{c}_2") for c in (1, 2)], "2 conversations", "to measure with"),
                ([asked("a", "b", id="1_1"), asked("a", "b", id="2_1")], "no topic has earlier turns", "a manual rewrite"),
            )
        ),
        (
            lambda p: train_terms(CONVERSATIONS, p / "m", start("bert").folder, TERMS.with_(analyzer="klingon")),
            ParameterError,
            "klingon",
            "",
        ),
        (lambda p: train_terms(CONVERSATIONS, p / "m", p / "nowhere", TERMS), InputError, "no encoder at … nowhere", ""),
    ],
)
def test_a_training_is_refused_before_it_writes(
    tmp_path: Path, train: Callable[[Path], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: train(tmp_path), error, names, remedy)
    assert not list(tmp_path.glob("m*"))


@each("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_base_is_named(tmp_path: Path, base: Path, name: str) -> None:
    for file in base.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[: 100 if file.name == name else None])
    call = lambda: train_terms(CONVERSATIONS, tmp_path / "m", tmp_path, TERMS)  # noqa: E731
    check_error(call, InputError, f"the base {tmp_path} cannot be read as an encoder: ")


@each(
    ("file", "change", "names"),
    [
        (
            "modules.json",
            lambda value: [*value, {"idx": 9, "name": "9", "path": "9", "type": "some.LateChunking"}],
            "LateChunking",
        ),
        (
            "sentence_bert_config.json",
            lambda value: {**value, "query_expansion": {"strategy": "min", "length": 8}},
            "query_expansion",
        ),
    ],
)
def test_a_saved_model_of_another_form_is_named(tmp_path: Path, file: str, change: Callable[[Any], Any], names: str) -> None:
    trainable_late(colbert()).save_pretrained(str(tmp_path / "m"), create_model_card=False)
    path = tmp_path / "m" / file
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    model = ColBERT(tmp_path / "m", precision="float32", device="cpu")
    check_error(lambda: model.encode_queries(["brook"]), InputError, names)


# Learning to rank and calibration


class Springs:
    """A collection and its candidates, each created when the first row asks for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "mine").mkdir()

    @cached_property
    def index(self) -> Index:
        return Index.build(documents(), self.folder / "springs.index", separate=True)

    @cached_property
    def run(self) -> Run:
        return ranked(self.index)

    @cached_property
    def qrels(self) -> Qrels:
        return judgments(ranked_topics())

    @cached_property
    def irrelevant(self) -> Qrels:
        return Qrels((topic, g, doc, 0) for topic, g, doc, _ in self.qrels.rows())

    @cached_property
    def all_relevant(self) -> Qrels:
        return Qrels((topic, "0", hit.id, 1) for topic, ranking in self.run.items() for hit in ranking)

    def train(
        self,
        qrels: Qrels | None = None,
        features: str = FEATURES,
        run: Run | None = None,
        path: Path | None = None,
        group: str | None = None,
        **options: Any,
    ) -> object:
        settings = RankerSettings(learner="linear", folds=options.pop("folds", 3), group=group)
        run = self.run if run is None else run
        return train_ranker(self.index, run, self.qrels if qrels is None else qrels, features, path, settings, **options)


@pytest.fixture(scope="module")
def springs(tmp_path_factory: pytest.TempPathFactory) -> Springs:
    return Springs(tmp_path_factory.mktemp("springs"))


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda s: s.train(s.irrelevant), InputError, "candidates of the 24 judged topics", "take more"),
        (lambda s: s.train(s.all_relevant), InputError, "no topic", "relevant and other candidates"),
        (
            lambda s: s.train(run=Run.of(s.run.to_dict()).with_(documents=s.index)),
            InputError,
            "topic 'q0' has no text",
            "read_run",
        ),
        (lambda s: s.train(path=s.folder / "mine", overwrite=True), InputError, "mine is not a model of learning to rank", ""),
        (lambda s: s.train(path=s.folder / "mine"), InputError, "mine … exists already", "overwrite"),
        (lambda s: s.train(features="query_length()"), InputError, "the model has learned nothing", ""),
        *(
            (
                lambda s, f=folds: s.train(folds=f, group="document"),
                ParameterError,
                names,
                "give fewer folds, or group=None (--group None)",
            )
            for folds, names in ((5, "5 folds cannot be made of 4"), (4, "one of 4 folds"))
        ),
    ],
)
def test_rankers_and_their_candidates(
    springs: Springs, call: Callable[[Springs], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(springs), error, names, remedy)


def test_folds_need_as_many_groups() -> None:
    shared = Qrels((f"q{n}", "0", f"d{n // 6}", 1) for n in range(8))
    topics = Topics.of({f"q{n}": "abcdefgh"[n] * 9 for n in range(8)})
    units = units_without_leakage(topics, shared, groups="document")
    check_error(lambda: folds_of(units, 4, 0), ParameterError, "4 folds cannot be made of 2 topics or groups")


SIMULATED, JUDGED = simulated(40, 8)
BETA = CalibrationSettings(map="beta", near=1.0)
FEW = Topics(list(SIMULATED.topics.values())[:2])


@each(
    ("run", "qrels", "settings", "error", "names", "remedy"),
    [
        (SIMULATED, Qrels((t, "0", "x", 1) for t in SIMULATED), BETA, InputError, "not one document of the run is judged", ""),
        (
            SIMULATED,
            Qrels((t, "0", ranking.ids[0], 0) for t, ranking in SIMULATED.items()),
            BETA,
            InputError,
            "none of the 240 documents of the 20 topics",
            "take more",
        ),
        (
            SIMULATED,
            Qrels((t, "0", doc, 1) for t, ranking in SIMULATED.items() for doc in ranking.ids),
            BETA,
            InputError,
            "all documents … relevant",
            "",
        ),
        (SIMULATED.with_scores(np.ones(SIMULATED.rows)), JUDGED, BETA, InputError, "all scores of the run are equal", ""),
        (SIMULATED, Qrels([("other", "0", "x", 1)]), BETA, InputError, "no topic in common", ""),
        (Run.of(SIMULATED.to_dict()), JUDGED, BETA, InputError, "has no text", "read_run"),
        (
            Run.of({t: SIMULATED.to_dict()[t] for t in FEW}, FEW),
            JUDGED,
            BETA,
            ParameterError,
            "2 judged topics or groups … 0.5",
            "",
        ),
        (
            SIMULATED,
            JUDGED,
            CalibrationSettings(share=0.001),
            ParameterError,
            "0.001 … cut(recall=0.9) rests on 9",
            "2 or more",
        ),
    ],
)
def test_runs_that_teach_no_probabilities(
    run: Run, qrels: Qrels, settings: CalibrationSettings, error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: train_calibration(run, qrels, settings=settings), error, names, remedy)


def test_a_folder_that_is_no_calibration_is_not_overwritten(tmp_path: Path) -> None:
    call = lambda: train_calibration(SIMULATED, JUDGED, tmp_path, BETA, overwrite=True)  # noqa: E731
    check_error(call, InputError, f"{tmp_path} is not a calibration")


@each(
    ("module", "train", "names"),
    [
        (
            "datasets",
            lambda p, s: train_cross_encoder(DATA, p / "m", save_cross_encoder(p / "b", architecture="BertModel"), SETTINGS),
            "training a cross-encoder needs datasets … pip install 'fontes[train]'",
        ),
        (
            "accelerate",
            lambda p, s: train_terms(CONVERSATIONS, p / "m", save_cross_encoder(p / "b", architecture="BertModel"), TERMS),
            "training needs accelerate … pip install 'fontes[train]'",
        ),
        (
            "lightgbm",
            lambda p, s: train_ranker(s.index, s.run, s.qrels, FEATURES),
            "training with --learner lightgbm needs lightgbm … fontes[ltr]",
        ),
        ("sklearn.linear_model", lambda p, s: s.train(), "training a linear model needs … fontes[ltr]"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, springs: Springs, monkeypatch: pytest.MonkeyPatch, module: str, train: Any, names: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]
    check_error(lambda: train(tmp_path, springs), MissingExtraError, names)

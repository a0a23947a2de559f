"""`fontes train`: train rerankers, encoders, rewriters, and classifiers of terms and causality."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .....causal.causality import labelled, measure_causality, train_causality
from .....core import Qrels, Topics, expression
from .....formats import read_run, write_run
from .....neural import MonoT5, SentenceEncoder
from .....rewrite import TermScores
from .....train import (
    BiEncoderSettings,
    CalibrationSettings,
    ColBERTSettings,
    CrossEncoderSettings,
    Examples,
    MonoT5Settings,
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
    validate_calibration,
    validate_ranker,
)
from .....train.cross_encoder import settings_of
from .....train.examples import DISTILLED
from .....train.runner.checkpoint_folder import check_output_folder
from ....options import (
    Analyzer,
    IndexPath,
    Json,
    QrelsFile,
    Split,
    TopicsFile,
    Verify,
    argument,
    option,
    options_of,
    reads_files,
)
from ....output import counted, note, print_json, reporting, say, tell
from ....pipelines import open_index, retriever
from .mine import teacher_of

if TYPE_CHECKING:
    from .....core import Part, Qrels as Judgments, Run
    from .....train import Examples, SearchValidation, Training
    from .....train.calibration import CalibrationTraining, CalibrationValidation
    from .....train.encoder_fit import EncoderSettings
    from .....train.ranker import RankerTraining, RankerValidation

Output = Annotated[Path, option("Model folder to create.", False, "-o", "--output")]
ValidationFile = Annotated[str | None, option("Examples to validate on.", "queries that are held out", "--validation")]
Teacher = Annotated[
    str | None,
    option(
        "What scores the examples, for --loss teacher, kl or residual: a reranker, or a pipeline over --teacher-index.",
        "the scores in the examples",
        "--teacher",
    ),
]
TeacherIndex = Annotated[Path | None, option("Index that the teacher searches.", "none", "--teacher-index")]
Nested = Annotated[int | None, option("Measure by nested cross-validation, too, with so many outer folds.", "no", min=2)]
MinedExamples = Annotated[str, argument("Examples of `fontes mine`: JSON lines, or -.")]
T5Base = Annotated[str, option("The T5 to start from: a folder, or a name on the hub.")]
Overwrite = Annotated[bool, option("Replace an existing model.", True, "--overwrite")]

START = "sentence-transformers/all-MiniLM-L6-v2"
T5_START = "google-t5/t5-base"
CandidateRun = Annotated[str | None, option("Candidates to rerank and to measure.", "none", "--run")]
CandidateIndex = Annotated[Path | None, option("Index that has their text.", "none", "--index")]
CandidateTopics = Annotated[str | None, option("Their topics: a file, a BEIR folder, …", "none", "--topics")]
CandidateQrels = Annotated[str | None, option("Their judgments: a file, a BEIR folder, …", "none", "--qrels")]
CandidateDepth = Annotated[int, option("The best candidates of each topic.", True, "-k", min=1)]
RUN_NEEDS = "--run, --index, --topics and --qrels belong together: the candidates to validate on, their texts and judgments"
group = typer.Typer()


@group.command("cross-encoder")
@reads_files("id", "text", of="topics")
@options_of(CrossEncoderSettings)
def cross_encoder(
    settings: dict[str, Any],
    examples: MinedExamples,
    output: Output,
    base: Annotated[str, option("The start: a folder, or a name on the hub.")] = START,
    preset: Annotated[str | None, option("air2025, or air2025-run.", "air2025")] = None,
    validation: ValidationFile = None,
    run: CandidateRun = None,
    index: CandidateIndex = None,
    topics: CandidateTopics = None,
    qrels: CandidateQrels = None,
    split: Split = None,
    k: CandidateDepth = 100,
    teacher: Teacher = None,
    teacher_index: TeacherIndex = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a cross-encoder that reranks. After an interruption the same command resumes from the last checkpoint."""
    candidates = _candidates(run, index, topics, qrels, split, k)
    with reporting(json):
        train_set, held_out = _scored((examples, validation), teacher, teacher_index, settings.get("loss"), output, overwrite)
        validated = Validation(held_out, *candidates)
        training = train_cross_encoder(train_set, output, base, settings_of(preset, **settings), validated, overwrite)
    report(output, training, f'cross_encoder("{output}")', json)


@group.command("mono-t5")
@reads_files("id", "text", of="topics")
@options_of(MonoT5Settings)
def mono_t5(
    settings: dict[str, Any],
    examples: MinedExamples,
    output: Output,
    base: T5Base = T5_START,
    validation: ValidationFile = None,
    run: CandidateRun = None,
    index: CandidateIndex = None,
    topics: CandidateTopics = None,
    qrels: CandidateQrels = None,
    split: Split = None,
    k: CandidateDepth = 100,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a MonoT5 that reranks. After an interruption the same command resumes from the last checkpoint."""
    model_settings = MonoT5Settings(**settings)
    validated = Validation(validation, *_candidates(run, index, topics, qrels, split, k))
    with reporting(json):
        training = train_mono_t5(examples, output, base, model_settings, validated, overwrite)
    report(output, training, repr(MonoT5(str(output), tokens=(model_settings.true, model_settings.false))), json)


def _candidates(
    run: str | None, index: Path | None, topics: str | None, qrels: str | None, split: str | None, k: int
) -> tuple[Run, Judgments] | tuple[None, None]:
    """Return the run to validate on, with its documents, and its judgments; (None, None) without a run."""
    if run is None and index is None and topics is None and qrels is None:
        return None, None
    if run is None or index is None or topics is None or qrels is None:
        raise typer.BadParameter(RUN_NEEDS)
    candidates = read_run(run, Topics.read(topics, split=split)).with_(documents=open_index(index, None)).top(k)
    return candidates, Qrels.of(qrels, split=split)


SearchedIndex = Annotated[
    Path | None, option("Index to search for validation.", "the validated examples' documents", "--index")
]
SearchedTopics = Annotated[
    str | None, option("Validation queries: a file, a BEIR folder, …", "the validated examples'", "--topics")
]
SearchedQrels = Annotated[
    str | None, option("Validation judgments: a file, a BEIR folder, …", "the validated examples'", "--qrels")
]


def _encoder_command(
    name: str,
    settings_of: type[EncoderSettings],
    train_model: Callable[..., Training],
    use: str,
    about: str,
    start: str = START,
    starts: str = "an encoder",
    examples_help: str = "Examples of `fontes mine`: JSON lines, or -.",
    **options: Any,
) -> None:
    """Add the command that trains one kind of encoder by `train_model`; `use` is the stage for its model."""

    def train(
        settings: dict[str, Any],
        examples: str,
        output: Output,
        encoder: str = start,
        validation: ValidationFile = None,
        index: SearchedIndex = None,
        topics: SearchedTopics = None,
        qrels: SearchedQrels = None,
        split: Split = None,
        teacher: Teacher = None,
        teacher_index: TeacherIndex = None,
        overwrite: Overwrite = False,
        json: Json = False,
    ) -> None:
        if settings.get("mini_batch") == 0:
            settings["mini_batch"] = None
        model_settings = settings_of(**settings)
        with reporting(json):
            train_set, held_out = _scored(
                (examples, validation), teacher, teacher_index, settings.get("loss"), output, overwrite
            )
            search = _search_validation(held_out, index, topics, qrels, split)
            training = train_model(train_set, output, _start_model(encoder), model_settings, search, overwrite)
        report(output, training, f'{use}("{output}")', json)

    train.__doc__ = f"{about} After an interruption the same command resumes from the last checkpoint."
    encoder_help = f"The start: a folder, a name on the hub, or {starts} as an expression."
    train.__annotations__["examples"] = Annotated[str, argument(examples_help)]
    train.__annotations__["encoder"] = Annotated[str, option(encoder_help)]
    command = options_of(settings_of, mini_batch="Texts that are computed at once; 0: all of a step.", **options)(train)
    group.command(name)(reads_files("id", "text", of="topics")(command))


_encoder_command(
    "bi-encoder",
    BiEncoderSettings,
    train_bi_encoder,
    "sentence_encoder",
    "Train an encoder for dense retrieval.",
    examples_help="Examples of `fontes mine`, or with cosine labelled pairs: JSON lines, or -.",
)
_encoder_command(
    "sparse",
    SpladeSettings,
    train_splade,
    "splade",
    "Train a learned sparse encoder.",
    start="rasyosef/splade-tiny",
    starts="splade_encoder(…)",
)
_encoder_command(
    "late",
    ColBERTSettings,
    train_colbert,
    "late",
    "Train a late-interaction model.",
    starts="colbert(…)",
    flags={"markers": ("--no-markers",)},
    markers="Add no markers of queries and documents to a start that has none.",
)


def _scored(
    files: tuple[str, str | None], teacher: str | None, index: Path | None, loss: str | None, output: Path, overwrite: bool
) -> tuple[Examples | str | None, Examples | str | None]:
    """Return the files of examples for training and validation, or with a teacher the examples with its scores."""
    if teacher is None:
        if index is not None:
            raise typer.BadParameter("--teacher-index goes with --teacher")
        return files
    if loss not in DISTILLED:
        raise typer.BadParameter("--teacher goes with --loss teacher, kl or residual, which read its scores")
    check_output_folder(output, overwrite)  # scoring takes long
    stage = teacher_of(teacher, None if index is None else open_index(index))

    def read(file: str | None) -> Examples | None:
        if file is None:
            return None
        examples = Examples.read(file)
        scored = examples.scored(stage)
        if dropped := len(examples) - len(scored):
            share = f"{dropped:,} of {counted(len(examples), 'example')}"
            note(f"{file}: {share} left out, whose relevant document the teacher does not return")
        return scored

    return read(files[0]), read(files[1])


def _search_validation(
    validation: object, index: Path | None, topics: str | None, qrels: str | None, split: str | None
) -> SearchValidation:
    """Return the validation of an encoder: held-out examples, and a search where an index is given."""
    return SearchValidation(
        validation,
        None if index is None else open_index(index),
        None if topics is None else Topics.read(topics, split=split),
        None if qrels is None else Qrels.of(qrels, split),
    )


def _start_model(text: str) -> Part | str:
    """Return the part of an expression, or the name of a model as it is."""
    return expression.part(text) if text.rstrip().endswith(")") else text


Conversations = Annotated[str, argument("Conversations with manual rewrites: a file of CANARD or CAsT, or -.")]


@group.command("terms")
@reads_files("id", "text", of="topics")
@options_of(TermSettings)
def terms(
    settings: dict[str, Any],
    topics: Conversations,
    output: Output,
    base: Annotated[str, option("The encoder to start from: a folder, or a name on the hub.")] = START,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a term classifier for QuReTeC. After an interruption the same command resumes from the last checkpoint."""
    with reporting(json):
        training = train_terms(topics, output, base, TermSettings(**settings), overwrite)
    report(output, training, f'quretec("{output}")', json)
    for name, about in (("chosen", f"threshold {training.facts['threshold']:g}, chosen on"), ("scores", "held out from both:")):
        counts = {key: training.facts[name][key] for key in ("topics", "relevant", "predicted", "correct")}
        if not json:
            say(f"{about} {TermScores(**counts)}")


@group.command("rewriter")
@options_of(RewriterSettings)
def rewriter(
    settings: dict[str, object],
    topics: Conversations,
    output: Output,
    base: T5Base = T5_START,
    validation: Annotated[str | None, option("Other conversations to validate on.", "some that are held out")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a T5 that rewrites turns. After an interruption the same command resumes from the last checkpoint."""
    held_out = None if validation is None else Topics.read(validation)
    with reporting(json):
        training = train_rewriter(Topics.read(topics), output, base, RewriterSettings(**settings), held_out, overwrite)
    report(output, training, f'canard_t5("{output}")', json)


@group.command("causality")
def causality(
    train: Annotated[str, argument("JSON lines with text and label (1: reports a cause, 0: not), or -.")],
    output: Annotated[Path, option("File of the head to create.", False, "-o", "--output")],
    encoder: Annotated[str, option("The encoder of the sentences: a folder, or a name on the hub.")] = START,
    name: Annotated[str | None, option("Name of the encoder in the head.", "the last part of its name")] = None,
    test: Annotated[str | None, option("Labelled sentences to measure with.", "none")] = None,
    folds: Annotated[int, option("Folds of the cross-validation for the regularization.")] = 5,
    seed: Annotated[int, option("Random seed of folds and intervals.")] = 0,
    precision: Annotated[str, option("auto, float32, bfloat16 or float16.")] = "float32",
    json: Json = False,
) -> None:
    """Train the head of CausalEvidence, a classifier of sentences that report a cause."""
    model = SentenceEncoder(encoder, precision=precision)
    held_out = None if test is None else labelled(test)
    head = train_causality(train, model, folds=folds, seed=seed, name=name)
    measured = held_out and measure_causality(head.classify(model, held_out[0]), held_out[1], head.threshold, seed=seed)
    head.save(output)
    card = dict(head.card)
    tell(
        json,
        {**card, "encoder": head.encoder, "test": measured.to_dict() if measured else None},
        f"{output}: a head over {head.encoder} from {counted(card['sentences'], 'sentence')}, {card['causal']:,} causal",
        f"{folds}-fold cross-validation: accuracy {card['accuracy']:.3f}, F1 {card['f1']:.3f}; strength {card['strength']:g}",
        *([f"{test}: {measured}"] if measured else []),
    )


@group.command("ranker")
@reads_files("id", "text", of="topics")
@options_of(RankerSettings)
def ranker(
    settings: dict[str, object],
    index: IndexPath,
    topics: TopicsFile,
    qrels: QrelsFile,
    output: Output,
    features: Annotated[str, option("Features, with commas between: 'bm25(), ql(), column(\"date\"), length()'.", False)],
    split: Split = None,
    pipeline: Annotated[str | None, option("What finds the candidates.", "bm25() % 100")] = None,
    run: Annotated[str | None, option("The candidates themselves, in place of a pipeline.", "none")] = None,
    validation: Annotated[
        str | None, option("Split of the judgments whose topics are held out, in place of folds: dev.", "none")
    ] = None,
    nested: Nested = None,
    held_out: Annotated[str | None, option("Where the held-out run goes; of --nested, if given.", "nowhere")] = None,
    overwrite: Overwrite = False,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Train a model of learning to rank, for ltr("FOLDER"): LambdaMART by LightGBM, a linear model, or SetRank."""
    from .....datasets import judged_topics

    if run is not None and (pipeline is not None or validation is not None):
        raise typer.BadParameter(f"--run goes without {'--pipeline' if pipeline is not None else '--validation'}")
    opened, model_settings = open_index(index, analyzer, verify), RankerSettings(**settings)
    stage = retriever(opened, pipeline or "bm25() % 100")

    def candidates_of(split: str | None) -> tuple[Run, Judgments | None]:
        queries, judgments = judged_topics(topics, qrels, split)
        return (stage(queries) if run is None else read_run(run, queries)), judgments

    with reporting(json):
        candidates, judgments = candidates_of(split)
        validation_set = None if validation is None else candidates_of(validation)
        training = train_ranker(
            opened, candidates, judgments, features, output, model_settings, validation=validation_set, overwrite=overwrite
        )
        measured = validate_ranker(opened, candidates, judgments, features, model_settings, folds=nested) if nested else None
    if held_out is not None:
        write_run(measured.run if measured else training.run, held_out)
    _report_validated(output, training, measured, f'{pipeline or "bm25() % 100"} >> ltr("{output}")', json)


@group.command("calibration")
@reads_files("id", "text", of="topics")
@options_of(CalibrationSettings)
def calibration(
    settings: dict[str, object],
    index: IndexPath,
    topics: TopicsFile,
    qrels: QrelsFile,
    output: Output,
    split: Split = None,
    pipeline: Annotated[str | None, option("The pipeline to calibrate.", "bm25() % 100")] = None,
    run: Annotated[str | None, option("Its run, in place of a pipeline.", "none")] = None,
    nested: Nested = None,
    overwrite: Overwrite = False,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Train a calibration of a pipeline, for calibrated("FOLDER"): probabilities, and promises for cut and abstain."""
    from .....datasets import judged_topics

    if run is not None and pipeline is not None:
        raise typer.BadParameter("--run goes without --pipeline")
    opened, model_settings = open_index(index, analyzer, verify), CalibrationSettings(**settings)
    stage = retriever(opened, pipeline or "bm25() % 100")
    queries, judgments = judged_topics(topics, qrels, split)
    with reporting(json):
        searched = stage(queries) if run is None else read_run(run, queries)
        training = train_calibration(searched, judgments, output, model_settings, overwrite=overwrite)
        measured = validate_calibration(searched, judgments, model_settings, folds=nested) if nested else None
    levels = {kind: min(level, 0.9) for kind, level in training.promises.items() if level}
    cut = f" >> cut({next(iter(levels))}={next(iter(levels.values())):g})" if levels else ""
    _report_validated(output, training, measured, f'{"…" if run else stage} >> calibrated("{output}"){cut}', json)


def _report_validated(
    output: Path,
    training: RankerTraining | CalibrationTraining,
    measured: RankerValidation | CalibrationValidation | None,
    use: str,
    json: bool,
) -> None:
    """Print a training of a model without steps, its nested validation, if any, and the expression that uses it."""
    facts, lines = training.to_dict(), [f"{output}: {training}"]
    if measured:
        facts |= {"nested": measured.to_dict()}
        lines.append(str(measured))
    tell(json, facts, *lines, f"use it as {use}")


def report(output: Path, training: Training, use: str, json: bool) -> None:
    """Print a summary of a training and the expression that uses the model; or both as JSON."""
    if json:
        print_json(training.to_dict())
        return
    rows, steps = counted(training.rows, "row"), counted(training.steps, "step")
    seconds = training.seconds
    took = f"{seconds:.2f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    say(f"{output}: a {training.kind} from {rows} in {steps} and {took}, from {training.base}")
    if training.facts.get("new_head"):
        layer = "scores" if training.kind == "cross-encoder" else "words"
        say(f"the base has no layer for {layer}: a new one was initialized with the seed {training.settings['seed']}")
    if training.figures:
        figures = ", ".join(f"{name} {value:.4f}" for name, value in training.figures.items())
        say(f"best after step {training.best:,}: validation {figures}")
    say(f"use it as {use}")

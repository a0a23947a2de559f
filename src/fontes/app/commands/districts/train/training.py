"""`fontes train`: train rerankers, encoders, rewriters, and classifiers of terms and causality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .....train import (
    BiEncoderSettings,
    ColBERTSettings,
    CrossEncoderSettings,
    RankerSettings,
    RewriterSettings,
    SpladeSettings,
    TermSettings,
)
from ....options import Analyzer, IndexPath, Json, Qrels, Split, Topics, Verify, options_of, reads_files

if TYPE_CHECKING:
    from .....core.progress import ProgressCallback
    from .....train import TermTraining, Training

Output = Annotated[Path, typer.Option("-o", "--output", help="Model folder to create.", show_default=False)]
ValidationFile = Annotated[
    str | None, typer.Option("--validation", help="Examples to validate on.", show_default="queries that are held out")
]
Teacher = Annotated[
    str | None,
    typer.Option(
        "--teacher",
        help="What scores the examples, for --loss teacher or kl: a reranker, or a pipeline over --teacher-index.",
        show_default="the scores in the examples",
    ),
]
TeacherIndex = Annotated[
    Path | None, typer.Option("--teacher-index", help="Index that the teacher searches.", show_default="none")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")]

START, SPARSE_START = "sentence-transformers/all-MiniLM-L6-v2", "rasyosef/splade-tiny"
RUN_NEEDS = "--run, --index, --topics and --qrels belong together: the candidates to validate on, their texts and judgments"
group = typer.Typer()


@group.command("cross-encoder")
@reads_files("id", "text", of="topics")
@options_of(CrossEncoderSettings)
def cross_encoder(
    settings: dict[str, Any],
    examples: Annotated[str, typer.Argument(help="Examples of `fontes mine`: JSON lines, or -.", show_default=False)],
    output: Output,
    base: Annotated[str, typer.Option(help="The start: a folder, or a name on the hub.")] = START,
    preset: Annotated[str | None, typer.Option(help="air2025, or air2025-run.", show_default="air2025")] = None,
    validation: ValidationFile = None,
    run: Annotated[str | None, typer.Option(help="Candidates to rerank and to measure.", show_default="none")] = None,
    index: Annotated[Path | None, typer.Option(help="Index that has their text.", show_default="none")] = None,
    topics: Annotated[str | None, typer.Option(help="Their topics: a file, a BEIR folder, …", show_default="none")] = None,
    qrels: Annotated[str | None, typer.Option(help="Their judgments: a file, a BEIR folder, …", show_default="none")] = None,
    split: Split = None,
    k: Annotated[int, typer.Option("-k", help="The best candidates of each topic.", min=1)] = 100,
    teacher: Teacher = None,
    teacher_index: TeacherIndex = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a cross-encoder that reranks. After an interruption the same command resumes from the last checkpoint."""
    from .....train import train_cross_encoder
    from .....train.cross_encoder import Validation, settings_of
    from ....progress import reporting

    candidates = _candidates(run, index, topics, qrels, split, k)
    with reporting(json) as progress:
        train_set, held_out = _scored((examples, validation), teacher, teacher_index, settings, output, overwrite, progress)
        validated = Validation(held_out, *candidates)
        training = train_cross_encoder(train_set, output, base, settings_of(preset, **settings), validated, overwrite, progress)
    report(output, training, f'cross_encoder("{output}")', json)


def _candidates(
    run: str | None, index: Path | None, topics: str | None, qrels: str | None, split: str | None, k: int
) -> tuple[Any, Any]:
    """Return the run to validate on, with its documents, and its judgments; (None, None) without a run."""
    from .....datasets import qrels_of, topics_of
    from .....formats import read_run
    from ....pipelines import open_index

    if run is None and index is None and topics is None and qrels is None:
        return None, None
    if run is None or index is None or topics is None or qrels is None:
        raise typer.BadParameter(RUN_NEEDS)
    candidates = read_run(run, topics_of(topics, split=split)).with_(documents=open_index(index, None)).top(k)
    return candidates, qrels_of(qrels, split=split)


NO_MARKERS = "Give a start without markers of queries and documents none."
MINI_BATCH = "Texts that are computed at once; 0: all of a step."
SearchedIndex = Annotated[
    Path | None,
    typer.Option("--index", help="Index to search for validation.", show_default="the validated examples' documents"),
]
SearchedTopics = Annotated[
    str | None,
    typer.Option("--topics", help="Validation queries: a file, a BEIR folder, …", show_default="the validated examples'"),
]
SearchedQrels = Annotated[
    str | None,
    typer.Option("--qrels", help="Validation judgments: a file, a BEIR folder, …", show_default="the validated examples'"),
]
Examples = Annotated[str, typer.Argument(help="Examples of `fontes mine`: JSON lines, or -.", show_default=False)]


@group.command("bi-encoder")
@reads_files("id", "text", of="topics")
@options_of(BiEncoderSettings, mini_batch=MINI_BATCH)
def bi_encoder(
    settings: dict[str, Any],
    examples: Annotated[
        str,
        typer.Argument(help="Examples of `fontes mine`, or with cosine labelled pairs: JSON lines, or -.", show_default=False),
    ],
    output: Output,
    encoder: Annotated[
        str, typer.Option(help="The start: a folder, a name on the hub, or an encoder as an expression.")
    ] = START,
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
    """Train an encoder for dense retrieval. After an interruption the same command resumes from the last checkpoint."""
    from .....train import train_bi_encoder
    from ....progress import reporting

    model_settings = BiEncoderSettings(**_encoder_settings(settings))
    with reporting(json) as progress:
        train_set, held_out = _scored((examples, validation), teacher, teacher_index, settings, output, overwrite, progress)
        search = _search_validation(held_out, index, topics, qrels, split)
        training = train_bi_encoder(train_set, output, _start_model(encoder), model_settings, search, overwrite, progress)
    report(output, training, f'sentence_encoder("{output}")', json)


@group.command("sparse")
@reads_files("id", "text", of="topics")
@options_of(SpladeSettings, mini_batch=MINI_BATCH)
def sparse(
    settings: dict[str, Any],
    examples: Examples,
    output: Output,
    encoder: Annotated[
        str, typer.Option(help="The start: a folder, a name on the hub, or splade_encoder(…) as an expression.")
    ] = SPARSE_START,
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
    """Train a learned sparse encoder. After an interruption the same command resumes from the last checkpoint."""
    from .....train import train_splade
    from ....progress import reporting

    model_settings = SpladeSettings(**_encoder_settings(settings))
    with reporting(json) as progress:
        train_set, held_out = _scored((examples, validation), teacher, teacher_index, settings, output, overwrite, progress)
        search = _search_validation(held_out, index, topics, qrels, split)
        training = train_splade(train_set, output, _start_model(encoder), model_settings, search, overwrite, progress)
    report(output, training, f'splade("{output}")', json)


@group.command("late")
@reads_files("id", "text", of="topics")
@options_of(ColBERTSettings, mini_batch=MINI_BATCH, flags={"markers": ("--no-markers",)}, markers=NO_MARKERS)
def late(
    settings: dict[str, Any],
    examples: Examples,
    output: Output,
    encoder: Annotated[
        str, typer.Option(help="The start: a folder, a name on the hub, or colbert(…) as an expression.")
    ] = START,
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
    """Train a late-interaction model. After an interruption the same command resumes from the last checkpoint."""
    from .....train import train_colbert
    from ....progress import reporting

    model_settings = ColBERTSettings(**_encoder_settings(settings))
    with reporting(json) as progress:
        train_set, held_out = _scored((examples, validation), teacher, teacher_index, settings, output, overwrite, progress)
        search = _search_validation(held_out, index, topics, qrels, split)
        training = train_colbert(train_set, output, _start_model(encoder), model_settings, search, overwrite, progress)
    report(output, training, f'late("{output}")', json)


def _scored(
    files: tuple[str, str | None],
    teacher: str | None,
    index: Path | None,
    settings: dict[str, Any],
    output: Path,
    overwrite: bool,
    progress: ProgressCallback,
) -> tuple[Any, Any]:
    """Return the files of examples for training and validation, or with a teacher the examples with its scores."""
    from .....train import Examples
    from .....train.runner.checkpoint_folder import check_output_folder
    from ....output import counted
    from ....pipelines import open_index
    from ....progress import note
    from .mine import teacher_of

    if teacher is None:
        if index is not None:
            raise typer.BadParameter("--teacher-index goes with --teacher")
        return files
    if settings.get("loss") not in ("teacher", "kl"):
        raise typer.BadParameter("--teacher goes with --loss teacher or --loss kl, which learn its scores")
    check_output_folder(output, overwrite)  # scoring takes long
    stage = teacher_of(teacher, None if index is None else open_index(index))

    def read(file: str | None) -> Examples | None:
        if file is None:
            return None
        examples = Examples.read(file)
        scored = examples.scored(stage, progress)
        if dropped := len(examples) - len(scored):
            share = f"{dropped:,} of {counted(len(examples), 'example')}"
            note(f"{file}: {share} left out, whose relevant document the teacher does not return")
        return scored

    return read(files[0]), read(files[1])


def _encoder_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an encoder; a mini-batch of 0 becomes None."""
    return settings | ({"mini_batch": None} if settings.get("mini_batch") == 0 else {})


def _search_validation(validation: Any, index: Path | None, topics: str | None, qrels: str | None, split: str | None) -> Any:
    """Return the validation of an encoder: held-out examples, and a search where an index is given."""
    from .....datasets import qrels_of, topics_of
    from .....train import SearchValidation
    from ....pipelines import open_index

    return SearchValidation(
        validation,
        None if index is None else open_index(index),
        None if topics is None else topics_of(topics, split=split),
        None if qrels is None else qrels_of(qrels, split),
    )


def _start_model(text: str) -> Any:
    """Return the part of an expression, or the name of a model as it is."""
    from .....core import expression

    return expression.part(text) if text.rstrip().endswith(")") else text


Conversations = Annotated[
    str, typer.Argument(help="Conversations with manual rewrites: a file of CANARD or CAsT, or -.", show_default=False)
]


@group.command("terms")
@reads_files("id", "text", of="topics")
@options_of(TermSettings)
def terms(
    settings: dict[str, Any],
    topics: Conversations,
    output: Output,
    base: Annotated[str, typer.Option(help="The encoder to start from: a folder, or a name on the hub.")] = START,
    checkpoints: Annotated[
        Path | None, typer.Option(help="A folder of checkpoints, to resume from.", show_default="none")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a term classifier for QuReTeC. An interrupted run leaves only its checkpoints."""
    from .....datasets import topics_of
    from .....train import train_terms
    from ....output import print_json
    from ....progress import reporting

    with reporting(json) as report:
        training = train_terms(topics_of(topics), output, base, TermSettings(**settings), overwrite, report, checkpoints)
    if json:
        print_json(training.to_dict())
    else:
        _print_term_training(output, training)


def _print_term_training(output: Path, training: TermTraining) -> None:
    from ....output import counted, say

    learned, steps = counted(training.trained, "topic"), counted(training.steps, "step")
    say(f"{output}: a term classifier from {learned} read {training.epochs:.2f} times in {steps} and {training.seconds:.0f} s")
    say(f"threshold {training.threshold:g}, chosen on topics with {training.chosen}")
    say(f"held out from both: {training.scores}")


@group.command("rewriter")
@options_of(RewriterSettings)
def rewriter(
    settings: dict[str, Any],
    topics: Conversations,
    output: Output,
    base: Annotated[str, typer.Option(help="The T5 to start from: a folder, or a name on the hub.")] = "google-t5/t5-base",
    validation: Annotated[
        str | None, typer.Option(help="Other conversations to validate on.", show_default="some that are held out")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a T5 that rewrites turns. After an interruption the same command resumes from the last checkpoint."""
    from .....datasets import topics_of
    from .....train import train_rewriter
    from ....progress import reporting

    held_out = None if validation is None else topics_of(validation)
    with reporting(json) as progress:
        training = train_rewriter(topics_of(topics), output, base, RewriterSettings(**settings), held_out, overwrite, progress)
    report(output, training, f'canard_t5("{output}")', json)


@group.command("causality")
def causality(
    train: Annotated[
        str, typer.Argument(help="JSON lines with text and label (1: reports a cause, 0: not), or -.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="File of the head to create.", show_default=False)],
    encoder: Annotated[str, typer.Option(help="The encoder of the sentences: a folder, or a name on the hub.")] = START,
    name: Annotated[
        str | None, typer.Option(help="Name of the encoder in the head.", show_default="the last part of its name")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Labelled sentences to measure with.", show_default="none")] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation for the regularization.")] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of folds and intervals.")] = 0,
    precision: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "float32",
    json: Json = False,
) -> None:
    """Train the head of CausalEvidence, a classifier of sentences that report a cause."""
    from .....neural import SentenceEncoder
    from .....train.causality import labelled, measure_causality, train_causality
    from ....output import counted, print_json, say

    model = SentenceEncoder(encoder, precision=precision)
    held_out = None if test is None else labelled(test)
    head = train_causality(train, model, folds=folds, seed=seed, name=name)
    measured = held_out and measure_causality(head.classify(model, held_out[0]), held_out[1], head.threshold, seed=seed)
    head.save(output)
    card = dict(head.card)
    if json:
        print_json({**card, "encoder": head.encoder, "test": measured.to_dict() if measured else None})
        return
    say(f"{output}: a head over {head.encoder} from {counted(card['sentences'], 'sentence')}, {card['causal']:,} causal")
    say(f"{folds}-fold cross-validation: accuracy {card['accuracy']:.3f}, F1 {card['f1']:.3f}; strength {card['strength']:g}")
    if measured:
        say(f"{test}: {measured}")


@group.command("ranker")
@reads_files("id", "text", of="topics")
@options_of(RankerSettings)
def ranker(
    settings: dict[str, Any],
    index: IndexPath,
    topics: Topics,
    qrels: Qrels,
    output: Output,
    features: Annotated[
        str,
        typer.Option(help="Features, with commas between: 'bm25(), ql(), column(\"date\"), length()'.", show_default=False),
    ],
    split: Split = None,
    pipeline: Annotated[str | None, typer.Option(help="What finds the candidates.", show_default="bm25() % 100")] = None,
    run: Annotated[
        str | None, typer.Option(help="The candidates themselves, in place of a pipeline.", show_default="none")
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(help="Split of the judgments whose topics are held out, in place of folds: dev.", show_default="none"),
    ] = None,
    nested: Annotated[
        int | None,
        typer.Option(help="Measure by nested cross-validation, too, with so many outer folds.", min=2, show_default="no"),
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(help="Where the held-out run goes; of --nested, if given.", show_default="nowhere")
    ] = None,
    overwrite: Overwrite = False,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Train a model of learning to rank, for ltr("FOLDER"): LambdaMART by LightGBM, or a linear model."""
    from .....datasets import judged_topics
    from .....formats import read_run, write_run
    from .....train import train_ranker, validate_ranker
    from ....output import print_json, say
    from ....pipelines import open_index, retriever
    from ....progress import reporting

    if run is not None and (pipeline is not None or validation is not None):
        raise typer.BadParameter(f"--run goes without {'--pipeline' if pipeline is not None else '--validation'}")
    opened, model_settings = open_index(index, analyzer, verify), RankerSettings(**settings)
    stage = retriever(opened, pipeline or "bm25() % 100")

    def candidates_of(split: str | None) -> tuple[Any, Any]:
        queries, judgments = judged_topics(topics, qrels, split)
        return (stage(queries) if run is None else read_run(run, queries)), judgments

    with reporting(json) as progress:
        candidates, judgments = candidates_of(split)
        validation_set = None if validation is None else candidates_of(validation)
        training = train_ranker(
            opened,
            candidates,
            judgments,
            features,
            output,
            model_settings,
            validation=validation_set,
            overwrite=overwrite,
            progress=progress,
        )
        measured = nested and validate_ranker(
            opened, candidates, judgments, features, model_settings, folds=nested, progress=progress
        )
    if held_out is not None:
        write_run(measured.run if measured else training.run, held_out)
    if json:
        print_json(training.to_dict() | ({"nested": measured.to_dict()} if measured else {}))
        return
    say(f"{output}: {training}")
    if measured:
        say(str(measured))
    say(f'use it as {pipeline or "bm25() % 100"} >> ltr("{output}")')


def report(output: Path, training: Training, use: str, json: bool) -> None:
    """Print a summary of a training and the expression that uses the model; or both as JSON."""
    from ....output import counted, print_json, say

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

"""`fontes mine`: training examples from a run and judgments, or from the documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .....core import ParameterError, Qrels, Run, Topics, expression
from .....core.expression import part, pipeline as pipeline_of
from .....core.stage import Ranker
from ....options import Analyzer, IndexPath, Json, Pipeline, Split, Verify, argument, check_one_stdin, option, reads_files
from ....output import print_json, reporting
from ....pipelines import open_index, retriever

if TYPE_CHECKING:
    from .....index import Index

REQUIRED_FORMS = {"keep": ("first", "cloze", "section"), "sentences": ("first", "cloze")}  # values of --from by option


@reads_files("id", "text", of="topics")
def mine(
    index: IndexPath,
    output: Annotated[str, option("The examples to write: JSON lines, or -.", False, "-o", "--output")],
    topics: Annotated[str | None, option("Topics: a file, a BEIR folder, irds:NAME, sample:NAME, or -.", False)] = None,
    qrels: Annotated[str | None, option("Judgments: a file, a BEIR folder, irds:NAME, or -.", False)] = None,
    split: Split = None,
    run: Annotated[str | None, option("Run to take negatives from, or -.", False)] = None,
    pipeline: Pipeline = None,
    from_: Annotated[
        str | None,
        option(
            "In place of topics: title, first, cloze or section of the documents, or 'llm_questions(\"MODEL\")'.",
            False,
            "--from",
        ),
    ] = None,
    preset: Annotated[str | None, option("air2025: the best 5, no guard; in place of other settings.", "none")] = None,
    per_positive: Annotated[int, option("Maximum negatives per relevant document.")] = 4,
    ranks: Annotated[str, option("Ranks of the negatives.")] = "1-100",
    margin: Annotated[float | None, option("Minimum score difference from the relevant document.", "any")] = None,
    relative_margin: Annotated[
        float | None, option("Maximum teacher's score, as a share of the relevant document's, such as 0.95.", "any")
    ] = None,
    sampling: Annotated[str, option("top or random.")] = "top",
    no_guard: Annotated[
        bool, option("Keep duplicates of relevant documents and of other negatives.", True, "--no-guard")
    ] = False,
    per_document: Annotated[int | None, option("--from: maximum number of queries per document.", "1")] = None,
    keep: Annotated[
        float | None, option("--from first, cloze, section: probability that the query stays in its text.", "0.1")
    ] = None,
    sentences: Annotated[str | None, option("--from first, cloze: rules, nupunkt or spacy:MODEL.", "rules")] = None,
    limit: Annotated[int | None, option("--from: maximum number of documents.", "all")] = None,
    round_trip: Annotated[
        str | None, option("--from: pipeline that must return the document for its query.", "all queries")
    ] = None,
    round_trip_rank: Annotated[int | None, option("--round-trip: maximum rank of the document.", "1")] = None,
    seed: Annotated[int, option("Random seed.")] = 0,
    teacher: Annotated[
        str | None, option("What scores the examples: 'cross_encoder(\"MODEL\")', or a whole pipeline.", "none")
    ] = None,
    judged: Annotated[
        Path | None, option("Also write the queries and their documents: topics.jsonl, topics.qrels.", False)
    ] = None,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Mine hard negatives: for each relevant document of a topic, documents that rank high and are not relevant."""
    from .....datasets import judged_topics
    from .....formats import read_run
    from .....train import Mining, document_examples, mine_negatives

    from_options: dict[str, Any] = {"per_document": per_document, "keep": keep, "limit": limit}
    from_options |= {"sentences": sentences, "round_trip": round_trip, "round_trip_rank": round_trip_rank}
    options = {name: value for name, value in from_options.items() if value is not None}
    if json and output == "-":
        raise typer.BadParameter("--json goes with -o FILE: the examples themselves go to standard output")
    check_one_stdin(topics=topics, qrels=qrels, run=run)
    _check_sources(from_, {"--topics": topics, "--qrels": qrels}, {"--run": run, "--pipeline": pipeline}, [*options])
    settings: dict[str, Any] = {"per_positive": per_positive, "margin": margin, "relative_margin": relative_margin}
    settings |= {"ranks": _parse_ranks(ranks), "sampling": sampling, "guard_duplicates": not no_guard, "seed": seed}
    mining = Mining.of(preset, **settings)
    opened = open_index(index, analyzer, verify)
    stage = None if pipeline is None else retriever(opened, pipeline)
    teaching = None if teacher is None else teacher_of(teacher, opened)
    with reporting(json):
        if from_ is not None:
            if round_trip is not None:
                options["round_trip"] = pipeline_of(round_trip, opened)
            form = part(from_, opened) if "(" in from_ else from_
            mined = document_examples(opened, form, stage, mining, **options, seed=seed, teacher=teaching)
        else:
            queries, judgments = judged_topics(topics, qrels, split)
            candidates = stage if run is None else read_run(run, queries).with_(documents=opened)
            teaching_options: dict[str, Any] = {"preset": preset, "teacher": teaching}
            mined = mine_negatives(candidates, queries, judgments, **teaching_options, **settings)
    mined.write(output)
    if judged is not None:
        mined.examples.judged().save(judged)
    if json:
        print_json(mined.to_dict())
    else:
        typer.echo(str(mined), err=output == "-")


def teacher_of(text: str, index: Index | None) -> Ranker:
    """Return the stage of a teacher: a reranker, or a pipeline from topics to a run."""
    stage = expression.pipeline(text, index)
    if stage.gives is not Run or stage.takes not in (Run, Topics):
        raise ParameterError(f"--teacher is a reranker, or a pipeline from topics to a run, not '{text}'")
    return stage


def _check_sources(
    from_: str | None, judged: dict[str, str | None], candidates: dict[str, str | None], options: list[str]
) -> None:
    sources = [name for name, value in candidates.items() if value is not None]
    if len(sources) > 1:
        raise typer.BadParameter("give either --run or --pipeline")
    if "round_trip_rank" in options and "round_trip" not in options:
        raise typer.BadParameter("--round-trip-rank goes with --round-trip")
    if from_ is None:
        missing = [name for name, value in judged.items() if value is None]
        if missing:
            raise typer.BadParameter(f"{' and '.join(missing)} missing; or make examples of the documents: --from title")
        if not sources:
            raise typer.BadParameter("say where negatives come from: --run FILE, or --pipeline 'bm25()'")
        if options:
            raise typer.BadParameter(f"--{options[0].replace('_', '-')} goes with --from")
    elif stray := [name for name, value in {**judged, "--run": candidates["--run"]}.items() if value is not None]:
        raise typer.BadParameter(f"--from makes queries of the documents; leave {' and '.join(stray)} out")
    elif unused := [name for name, forms in REQUIRED_FORMS.items() if name in options and from_ not in forms]:
        raise typer.BadParameter(f"--{unused[0]} goes with --from {' or '.join(REQUIRED_FORMS[unused[0]])}")


def _parse_ranks(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*-\s*([0-9]{1,9})\s*", text)
    if match is None:
        raise typer.BadParameter(f"--ranks is the first and the last rank, such as 1-100, not '{text}'")
    return int(match[1]), int(match[2])


@reads_files("id", "text", of="topics")
def split(
    topics: Annotated[str, argument("Topics: a file, a BEIR folder, irds:NAME, or -.")],
    qrels: Annotated[
        list[str] | None, argument("Judgments: a file, a BEIR folder, irds:NAME, or -; several are merged.", "none")
    ] = None,
    output: Annotated[Path | None, option("A directory for both sides.", "only the report", "-o", "--output")] = None,
    test: Annotated[float, option("The share for testing, below 1, or from 1 up a number of topics.")] = 0.2,
    group: Annotated[str | None, option("Topics of one document or conversation on one side.", "none")] = None,
    split_: Annotated[str | None, option("Of judgments in a BEIR folder.", "the only one", "--split")] = None,
    near: Annotated[float, option("Minimum similarity of near duplicates; 0: do not search for them.")] = 0.8,
    seed: Annotated[int, option("Random seed.")] = 0,
    more: Annotated[list[str] | None, option("More topics to merge; repeatable.", True, "--with")] = None,
    json: Json = False,
) -> None:
    """Split topics into training and test without duplicates, and report the overlap of the sides."""
    from .....train import split as split_topics

    if [topics, *(qrels or []), *(more or [])].count("-") > 1:
        raise typer.BadParameter("only one of the inputs can be -")
    result = split_topics(
        [Topics.read(name) for name in (topics, *(more or []))],
        [Qrels.of(name, split=split_) for name in qrels] if qrels else None,
        int(test) if test >= 1 and test == int(test) else test,
        groups=group,
        near=near or None,
        seed=seed,
    )
    if output is not None:
        result.save(output)
    if json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))

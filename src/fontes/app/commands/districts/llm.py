"""`fontes ask`: answers with citations; `fontes llm`: stored answers of language models."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....core.answers import NAME, answers_of, cited_answer
from ....core.errors import InputError, ParameterError
from ...options import Analyzer, Encoder, IndexPath, Json, Pipeline, Where, argument, option
from ...output import counted, print_json, reporting, say, tell
from ...pipelines import open_index, retriever
from ...usage import refuse_exchanged

if TYPE_CHECKING:
    from ....llm import StoredAnswer

group = typer.Typer()

MODEL = "FONTES_LLM"  # environment variable


def ask(
    index: IndexPath,
    question: Annotated[str, argument("A question.")],
    llm: Annotated[
        str | None,
        option("The language model: a name, or local:FOLDER, or an expression, llm(…).", f"{MODEL} of the environment"),
    ] = None,
    k: Annotated[int, option("Documents that it reads.", True, "-k", min=1)] = 5,
    source: Annotated[
        str | None, option("Metadata field with addresses, such as url, for sentences that end with (source: URL).", False)
    ] = None,
    pipeline: Pipeline = None,
    encoder: Encoder = None,
    where: Where = None,
    analyzer: Analyzer = None,
    json: Json = False,
) -> None:
    """Answer a question from the documents of an index; every sentence cites words that stand in a document."""
    import os

    from ....llm import LlmAnswer, model_of
    from ...results import REFUSED, print_answer, print_hits, why_empty

    name = llm or os.environ.get(MODEL, "")
    if not name:
        raise ParameterError(f"name the language model that answers: --llm MODEL, or {MODEL} in the environment")
    refuse_exchanged(index, question)
    opened = open_index(index, analyzer)
    stage = retriever(opened, pipeline, "dense" if encoder else None, encoder, where) % k
    with reporting(json):
        run = stage(question)
        answered = LlmAnswer(model_of(name), k, source=source)(run)
    answer = cited_answer(answered["1"].topic) or {}
    no_hits = None if len(run["1"]) else why_empty(run["1"], opened, stage)
    if json:
        print_json({"question": question, **answer, **({} if no_hits is None else {"no_hits": no_hits.to_dict()})})
    elif no_hits is not None and no_hits.cause == REFUSED:
        print_hits(run["1"], opened, stage)
    else:
        print_answer(answer)


RESULTS = "Results or lock of an experiment, rewritten topics (.jsonl), or a run with --ir-metadata."
Pack = Annotated[Path, argument("A file of answers, .jsonl or .jsonl.gz.", metavar="PACK")]


@group.command()
def usage(
    results: Annotated[Path | None, argument(RESULTS, "all stored answers", metavar="[RUN]")] = None, json: Json = False
) -> None:
    """Count stored answers and their tokens, by model."""
    from ....llm import AnswerFile

    answers = AnswerFile().all() if results is None else _read_answers(results)[0]
    models: dict[tuple[str, str], dict[str, Any]] = {}
    for answer in answers:
        empty = {"service": answer.service, "model": answer.model, "answers": 0, "prompt_tokens": 0, "completion_tokens": 0}
        row = models.setdefault((answer.service, answer.model), {**empty, "first": answer.time, "last": answer.time})
        row["answers"] += 1
        row["prompt_tokens"] += answer.prompt_tokens
        row["completion_tokens"] += answer.completion_tokens
        if answer.time:
            row["first"], row["last"] = min(row["first"] or answer.time, answer.time), max(row["last"], answer.time)
    if json:
        print_json([models[key] for key in sorted(models)])
        return
    if not models:
        say("No answers are stored.")
    for key in sorted(models):
        row = models[key]
        days = [datetime.fromtimestamp(row[name], UTC).date().isoformat() for name in ("first", "last") if row[name]]
        tokens = f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens"
        period = f", {' to '.join(dict.fromkeys(days))}" if days else ""
        say(f"{row['service']} {row['model']}: {counted(row['answers'], 'answer')}, {tokens}{period}")


@group.command()
def export(results: Annotated[Path, argument(RESULTS, metavar="RUN")], pack: Pack, json: Json = False) -> None:
    """Write the answers behind a run into a file to share, so that others can replay it."""
    from ....llm import write_pack

    answers, missing = _read_answers(results)
    if missing:
        raise InputError(f"{results}: {counted(missing, 'answer')} of it are not stored here, so a pack could not replay it")
    total = write_pack(answers, pack)
    tell(json, {"pack": str(pack), "answers": total}, f"{counted(total, 'answer')} in {pack}")


@group.command("import")
def import_(pack: Pack, json: Json = False) -> None:
    """Store the answers of a pack, so that runs with them can be replayed. Stored answers are not replaced."""
    from ....llm import AnswerFile, read_pack

    total, new = read_pack(pack, AnswerFile())
    facts = {"pack": str(pack), "answers": total, "new": new}
    tell(json, facts, f"{counted(total, 'answer')} in {pack}, {new:,} new")


def _read_answers(results: Path) -> tuple[Iterable[StoredAnswer], int]:
    """Return the stored answers behind results, and the number of missing ones."""
    from ....llm import AnswerFile

    sums = _answer_sums(results)
    answers = AnswerFile().read(sums)
    return answers.values(), len(sums) - len(answers)


def _answer_sums(path: Path) -> list[str]:
    """Return the SHA-256 sums of the answers behind results."""
    from ....experiments.provenance import read_lock
    from ....experiments.runner import LOCK
    from ....formats import read_metadata, read_topics
    from ....storage.files import plain_name

    sums: Any
    if path.is_dir() or path.name == LOCK:
        answers = read_lock(path / LOCK if path.is_dir() else path).get("answers")
        sums = [item for of_system in (answers.values() if isinstance(answers, dict) else ()) for item in of_system]
    elif plain_name(path).endswith(".jsonl"):
        sums = answers_of(read_topics(path)).get("sums", ())
    else:
        facts = read_metadata(path).get("language models")
        sums = facts.get("sums", ()) if isinstance(facts, dict) else ()
    valid = [
        item
        for item in dict.fromkeys(sums)
        if isinstance(item, str) and len(item) == 64 and set(item) <= set("0123456789abcdef")
    ]
    if not valid:
        raise InputError(f"{path}: it names no {NAME} answers; give {RESULTS[0].lower()}{RESULTS[1:]}")
    return valid

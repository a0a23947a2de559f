"""`fontes eval`: evaluate a run against judgments."""

from __future__ import annotations

import sys
from typing import Annotated

from ...core import Qrels
from ...core.errors import InputError
from ..options import Json, Judged, Machine, Measures, NotItself, Split, argument, check_one_stdin, option, reads_files
from ..output import counted, print_evaluation, print_json

NOTEWORTHY = 10  # a note on topics whose own document is first, if they are one in ten


@reads_files("id", of="topics")
def eval_(
    qrels: Judged,
    run: Annotated[str, argument("A run, or -.")],
    names: Annotated[list[str] | None, argument("The same as --measures.")] = None,
    measures: Measures = None,
    per_topic: Annotated[bool, option("Each topic as well.", True, "-q", "--per-topic")] = False,
    split: Split = None,
    machine: Machine = None,
    not_itself: NotItself = False,
    json: Json = False,
) -> None:
    """Measure a run against judgments: means over all judged topics."""
    from ...formats import read_run
    from ...measures import DEFAULT, evaluate
    from ...measures.evaluation import refuse_exchanged
    from ...measures.names import need_groups, parse_all
    from ...reorder import NotItself as OwnDocuments
    from ...reorder.own_documents import own_documents_first

    check_one_stdin(qrels=qrels, run=run)
    parsed = parse_all([*(names or []), *(measures or [])] or DEFAULT)
    try:
        ranking = read_run(run)
        judgments = Qrels.of(qrels, split=split, groups=need_groups(parsed))
        labels = None if machine is None else Qrels.of(machine)
    except InputError as error:
        refuse_exchanged(run, qrels, error)
        raise
    if not_itself:
        ranking = OwnDocuments()(ranking)
    elif (first := own_documents_first(ranking, judgments)) and len(first) * NOTEWORTHY >= len(judgments):
        note = f"in {len(first):,} of {counted(len(judgments), 'topic')} the document with the topic's own id is first"
        print(f"fontes: {note}, such as '{first[0]}'; --not-itself leaves these out, as BEIR does", file=sys.stderr)
    result = evaluate(ranking, judgments, parsed, machine=labels)
    if json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_evaluation(result, per_topic)

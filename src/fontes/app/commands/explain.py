"""`fontes explain`: explain a score."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..options import Analyzer, Encoder, IndexPath, Json, Model, Pipeline, Verify, argument, option, options_of_models
from ..output import print_explanation, print_json, tell
from ..pipelines import open_index, retriever
from ..usage import refuse_exchanged


@options_of_models
def explain(
    parameters: dict[str, Any],
    index: IndexPath,
    query: Annotated[str, argument("A question or keywords.")],
    document: Annotated[str | None, argument("A document's id; none with --plan.")] = None,
    pipeline: Pipeline = None,
    model: Model = None,
    encoder: Encoder = None,
    analyzer: Analyzer = None,
    verify: Verify = False,
    plan: Annotated[bool, option("Show how the query is searched.", True, "--plan")] = False,
    json: Json = False,
) -> None:
    """Explain the score of a document for a query, or how the query is searched."""
    refuse_exchanged(index, query)
    stage = retriever(open_index(index, analyzer, verify), pipeline, model, encoder, **parameters)
    if (document is None) != plan:
        raise typer.BadParameter("give either the id of a document, whose score is explained, or --plan")
    if document is None:
        from ...lexical.retriever import plan_of

        search_plan = plan_of(stage, query)
        tell(json, search_plan.to_dict(), str(search_plan))
        return
    explanation = stage.explain(query, document)
    if json:
        print_json(explanation.to_dict())
    else:
        print_explanation(explanation)

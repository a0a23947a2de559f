"""Bodies of requests and answers, as pydantic checks them and OpenAPI shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...core.values import Doc, Topic


class Body(BaseModel):
    """The base of them: keys that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


class SearchQuery(Body):
    """The parameters of a search for one query."""

    q: str = Field(description="A question or keywords.")
    k: int = Field(10, description="Hits.")
    pipeline: str | None = Field(None, description="The pipeline, by its name; the first where none is named.")
    index: str | None = Field(None, description="The index; the first where none is named.")
    where: str | None = Field(None, description="What must hold of documents' metadata, such as year >= 2020.")
    facets: str = Field("", description="Columns whose values are counted, with commas.")
    histograms: str = Field("", description="Columns of numbers or dates that are counted in bins, with commas.")
    explain: bool = Field(False, description="Whether hits come with the explanations of their scores.")
    text: bool = Field(False, description="Whether hits come with the documents' whole texts.")
    snippets: bool = Field(True, description="Whether hits come with the piece of the text that fits best.")


def described(model: type[BaseModel]) -> dict[str, Any]:
    """The parameters of a model as OpenAPI has those of a query; FastAPI would take longer to read them than the search."""
    schema = model.model_json_schema()
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in schema["required"], "schema": of_name}
            | {"description": of_name.pop("description")}
            for name, of_name in schema["properties"].items()
        ]
    }


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a body that a route reads by hand, whole: OpenAPI's components have it not."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def whole(part: Any) -> Any:
        if isinstance(part, dict):
            if "$ref" in part:
                return whole(definitions[part["$ref"].rpartition("/")[2]])
            return {key: whole(value) for key, value in part.items()}
        return [whole(each) for each in part] if isinstance(part, list) else part

    resolved: dict[str, Any] = whole(schema)
    return resolved


class Search(Body):
    """Topics to search, with all that they may bring: narratives, turns of conversations, weights of terms."""

    topics: list[Topic] = Field(min_length=1, description="The topics.")
    index: str | None = Field(None, description="The index; the first where none is named.")
    pipeline: str | None = Field(None, description="The pipeline; the first where none is named.")
    k: int = Field(10, description="Hits of a topic.")
    where: str | None = Field(None, description="What must hold of documents' metadata, such as year >= 2020.")
    facets: list[str] = Field([], description="Columns whose values are counted.")
    histograms: list[str] = Field([], description="Columns of numbers or dates that are counted in bins.")
    explain: bool = Field(False, description="Whether hits come with the explanations of their scores.")
    text: bool = Field(False, description="Whether hits come with the documents' whole texts.")
    snippets: bool = Field(True, description="Whether hits come with the piece of the text that fits best.")


class Rewrite(Body):
    """Topics to rewrite, such as turns of conversations."""

    topics: list[Topic] = Field(min_length=1, description="The topics.")
    index: str | None = Field(None, description="The index; the first where none is named.")
    rewriter: str | None = Field(None, description="The rewriter; the first where none is named.")


class NewConversation(Body):
    """What the turns of a conversation are searched with."""

    index: str | None = Field(None, description="The index; the first where none is named.")
    pipeline: str | None = Field(None, description="The pipeline; the first where none is named.")
    rewriter: str | None = Field(None, description="The rewriter; the first where none is named.")
    k: int = Field(10, description="Hits of a turn.")


class NewTurn(Body):
    """A turn of a conversation."""

    text: str = Field(description="What is asked.")
    rewritten: str | None = Field(None, description="What is searched, in place of what the rewriter makes of it.")
    replace: bool = Field(False, description="Whether it takes the place of the last turn.")


class Additions(Body):
    """Documents to add."""

    documents: list[Doc] = Field(min_length=1, description="The documents.")
    index: str | None = Field(None, description="The index; the first where none is named.")
    duplicates: Literal["error", "skip", "replace"] = Field("error", description="How to treat duplicate ids.")


class HitOut(BaseModel):
    """A hit."""

    rank: int
    id: str
    score: float
    title: str = Field("", description="The title; like all that follows not of an index without texts.")
    metadata: dict[str, Any] = {}
    snippet: dict[str, Any] = Field({}, description="text, and matches: where words match, as first character and end.")
    text: str | None = Field(None, description="The whole text, where asked for.")
    explanation: dict[str, Any] | None = Field(None, description="value, label and parts, where asked for.")
    rationales: list[dict[str, Any]] | None = Field(None, description="Sentences, where the pipeline picks some.")


class ResultOut(BaseModel):
    """The hits of a topic."""

    topic: str = Field(description="The topic's id.")
    query: str = Field(description="What was searched.")
    hits: list[HitOut]
    facets: dict[str, list[dict[str, Any]]] | None = Field(
        None, description="By column value and count, the most frequent first."
    )
    histograms: dict[str, list[dict[str, Any]]] | None = Field(
        None, description="By column from, to and count, ascending; to is inclusive, except of floats."
    )


class SearchOut(ResultOut):
    """The answer to a query."""

    index: str
    pipeline: str


class SearchesOut(BaseModel):
    """The answer to topics."""

    index: str
    pipeline: str
    results: list[ResultOut]

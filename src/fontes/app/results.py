"""Rankings as JSON values and as text, for `fontes search`, `fontes chat` and the server."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import Doc, FontesError, Pipeline, PipelineError, Ranking, Run, Stage, Topic, Topics
from ..core.answers import cited_answer
from ..core.part import Part, uses_model, walk
from ..core.query import terms_of
from ..core.ranking import MAX_COUNTED, SNIPPET, docs_of
from ..core.stage import steps
from ..core.values import added_terms, tolerated
from ..index.columns import filter_of
from ..lexical import Lexical
from ..suggest import suggest
from ..text import Snippet, snippet
from .output import console, counted, is_plain, say, say_parts

if TYPE_CHECKING:
    from ..index import Index
    from ..passages import Rationale

SHOWN_VALUES = 10  # of a column in a text
FACET_VALUES = 100  # maximum values of a facet, the most frequent ones
MAX_ANSWER_BYTES = 1 << 28  # of titles, texts and metadata in one answer
NEAREST = 5  # documents shown for a query that the pipeline refuses
REFUSED = "refused"  # cause of a ranking that `abstain` left empty


def ranking_as_json(ranking: Ranking, text: bool) -> dict[str, Any]:
    """Return a ranking as JSON values; with `text`, also titles, texts, metadata and snippets of the documents."""
    return rankings_as_json([ranking], text)[0]


def rankings_as_json(rankings: Sequence[Ranking], text: bool, snippets: bool = True) -> list[dict[str, Any]]:
    """Return rankings of one run as JSON values; see `ranking_as_json`.

    Raises:
        InputError: With `text`, the documents have more than 256 MiB.
    """
    hits: list[list[dict[str, Any]]] = []
    if text and all(ranking.has_texts for ranking in rankings):
        docs = docs_of(rankings, MAX_ANSWER_BYTES)
        pieces = iter(_snippets(rankings, docs) if snippets else ())
        for ranking, ranking_docs in zip(rankings, docs, strict=True):
            hits.append([])
            for rank, (doc, score) in enumerate(zip(ranking_docs, ranking.scores.tolist(), strict=True), ranking.offset + 1):
                texts = {"title": doc.title, "text": doc.text, "metadata": dict(doc.metadata)}
                hits[-1].append({"rank": rank, "id": doc.id, "score": score, **texts})
                if snippets:
                    piece = next(pieces)
                    hits[-1][-1]["snippet"] = {"text": piece.text, "matches": list(map(list, piece.matches))}
    else:
        hits = [[{"rank": hit.rank, "id": hit.id, "score": hit.score} for hit in ranking] for ranking in rankings]
    for ranking, ranking_hits in zip(rankings, hits, strict=True):
        for hit in ranking_hits if has_rationales(ranking) else ():
            hit["rationales"] = [rationale._asdict() for rationale in rationales(ranking, hit["id"])]
    return [
        {
            "topic": ranking.topic.id,
            "query": ranking.topic.text,
            **({"tolerated": words} if (words := tolerated(ranking.topic)) else {}),
            **({"answer": answer} if (answer := cited_answer(ranking.topic)) else {}),
            "hits": ranking_hits,
        }
        for ranking, ranking_hits in zip(rankings, hits, strict=True)
    ]


def total_of(ranking: Ranking) -> dict[str, object]:
    """Return the number of documents that match, as JSON values.

    Returns:
        "value" and "relation". "eq": the number of documents. "gte", if the pipeline cannot count them: the number of documents
        up to the end of this page, with a "reason".
    """
    try:
        return {"value": ranking.total, "relation": "eq"}
    except PipelineError as error:
        return {"value": ranking.offset + len(ranking), "relation": "gte", "reason": str(error)}


def facets_as_json(counts: Mapping[str, Mapping[object, int]]) -> dict[str, list[dict[str, object]]]:
    """Return counts by column and value as JSON values, at most 100 values of a column, the most frequent first."""
    return {
        column: [{"value": value, "count": count} for value, count in islice(values.items(), FACET_VALUES)]
        for column, values in counts.items()
    }


def least_total_of(ranking: Ranking, stage: Part) -> dict[str, Any]:
    """Return how many documents match at least, as `total_of` does, but without slow work.

    Returns:
        "value" and "relation": "eq" up to 1,000 documents, "gt" beyond them; "gte" if the number is not known at once.
    """
    with suppress(PipelineError):
        if _counts_at_once(stage):
            number = ranking.total_up_to(MAX_COUNTED)
            return {"value": min(number, MAX_COUNTED), "relation": "gt" if number > MAX_COUNTED else "eq"}
    return {"value": ranking.offset + len(ranking), "relation": "gte"}


class NoHits(NamedTuple):
    """Why a search has no hits.

    Attributes:
        cause: "words": no document holds a word of the query; "stop words": the index searches none of its words; "no words";
            "filter": no document passes it; "offset": it is beyond the last hit; "refused": `abstain` found that nothing
            answers the query; or "pipeline".
        sentence: The reason for the user.
        nearest: For "refused", the best documents all the same, with their probabilities.
    """

    cause: str
    sentence: str
    nearest: Ranking | None = None

    def to_dict(self, text: bool = True) -> dict[str, object]:
        """Return plain values, for JSON; without `text`, of the nearest documents only titles, metadata and snippets."""
        values: dict[str, Any] = {"cause": self.cause, "sentence": self.sentence}
        if self.nearest is not None:
            values["nearest"] = ranking_as_json(self.nearest, text=True)["hits"]
            for hit in () if text else values["nearest"]:
                hit.pop("text", None)
        return values


def why_empty(ranking: Ranking, index: Index, stage: Part) -> NoHits:
    """Return why a ranking of an index by a stage is empty."""
    topic, parts = ranking.topic, list(walk(stage))
    if ranking.offset:
        return _beyond(ranking)
    if (refusal := _refusal(ranking, stage)) is not None:
        return refusal
    filters = [
        str(where)
        for part in parts
        if getattr(part, "takes", None) is Topics and (where := getattr(part, "where", None)) is not None
    ]
    for where in filters:
        passing_docs = filter_of(index, where)
        if passing_docs is not None and not passing_docs.mask.any():
            return NoHits("filter", f"No document passes the filter {where!r}.")
    passing = f" that passes the filter {' and '.join(map(repr, filters))}" if filters else ""
    if not isinstance(parts[0], Lexical) or topic.query is not None:  # other stages may change the words of the query
        return NoHits("pipeline", f"No document{passing} was found.")
    if topic.weights is None and not index.analyzer(topic.text):
        if replace(index.analyzer, stopwords=())(topic.text):
            return NoHits("stop words", "All words of the query are stop words, which are not searched.")
        return NoHits("no words", "The query has no words.")
    return NoHits("words", f"No document{passing} holds any of these words.")


def _refusal(ranking: Ranking, stage: Part) -> NoHits | None:
    """Return that the pipeline abstains, with the nearest documents; None if it does not."""
    parts = steps(stage) if isinstance(stage, Stage) else ()
    if all(part.name != "abstain" for part in parts):
        return None
    from ..calibration import Abstain, refused

    number, abstain = next(((n, part) for n, part in enumerate(parts) if isinstance(part, Abstain)), (0, None))
    if abstain is None:
        return None
    typed = ranking.topic  # the topic before any rewriting, which the pipeline repeats
    while typed.origin is not None:
        typed = typed.origin
    run = Pipeline(parts[:number])(Topics([typed]))
    p_value = refused(abstain(run)).get(typed.id)
    if p_value is None:
        return None
    sentence = f"Nothing in this collection answers this (p = {p_value:.2g}, refused up to {abstain.false_alarm:g})."
    return NoHits(REFUSED, sentence, run.top(NEAREST)[typed.id])


def _beyond(ranking: Ranking) -> NoHits:
    with suppress(PipelineError):
        if ranking.total <= ranking.offset:
            documents = f"{ranking.total:,} document{'' if ranking.total == 1 else 's'}"
            return NoHits("offset", f"Offset {ranking.offset:,} is beyond the last of {documents}.")
    return NoHits("offset", f"Offset {ranking.offset:,} is beyond the last document that the pipeline ranks.")


def _counts_at_once(stage: Part) -> bool:
    """Whether counting neither repeats a search nor runs a model."""
    pipelines = (part for part in walk(stage) if isinstance(part, Pipeline) and (part.takes, part.gives) == (Topics, Run))
    repeated = (step for pipeline in pipelines for step in pipeline.before_retriever)
    return all(step.takes is step.gives is Topics and not uses_model(step) for step in repeated)


def has_rationales(ranking: Ranking) -> bool:
    """Whether sentences of the documents were selected."""
    return callable(getattr(ranking.documents, "rationales", None))


def rationales(ranking: Ranking, doc_id: str) -> list[Rationale]:
    """Selected sentences of a document, in the order of its text."""
    documents: Any = ranking.documents
    return documents.rationales(ranking.topic.id, doc_id) if has_rationales(ranking) else []


def _snippets(rankings: Sequence[Ranking], docs: list[list[Doc]]) -> list[Snippet]:
    """Best snippets of all documents, in order; their beginnings if the run's documents make no snippets."""
    topics = [ranking.topic for ranking in rankings]
    queries: list[str | Topic] = [topic if topic.query or tolerated(topic) else topic.text for topic in topics]
    pairs = [(query, doc) for query, ranking_docs in zip(queries, docs, strict=True) for doc in ranking_docs]
    snippets_of: Any = getattr(rankings[0].documents, "snippets", None)
    if snippets_of is None:
        return [Snippet(doc.text[:SNIPPET], ()) for _, doc in pairs]
    pieces: list[Snippet] = snippets_of(pairs)
    return pieces


def say_tolerated(topic: Topic) -> None:
    """Report on standard error which words of a topic were searched with others."""
    for word in tolerated(topic):
        others = ", ".join(also["word"] for also in word["also"])
        print(f"fontes: '{word['word']}' is searched with {others}", file=sys.stderr)


def print_hits(ranking: Ranking, index: Index, stage: Part) -> None:
    """Print each document with its title and its best snippet or selected sentences, with matches highlighted.

    Args:
        ranking: The hits; if there are none, a sentence gives the reason.
        index: The index.
        stage: The stage that searched.
    """
    if answer := cited_answer(ranking.topic):
        print_answer(answer)
    if not len(ranking):
        cause, sentence, nearest = why_empty(ranking, index, stage)
        correction = None
        with suppress(FontesError):  # texts may be damaged
            correction = suggest(index, ranking.topic.text, 1).correction if cause == "words" else None
        say(sentence if correction is None else f"{sentence.removesuffix('.')}; did you mean {correction!r}?")
        if nearest is not None:
            say("Nearest documents:")
            ranking = nearest
    topic = ranking.topic
    terms = {*index.analyzer(topic.text), *added_terms(topic)}.union(
        *map(terms_of, () if topic.query is None else topic.query.scored)
    )
    docs = ranking.docs() if ranking.has_texts else [Doc(hit.id, "") for hit in ranking]
    for hit, doc in zip(ranking, docs, strict=True):
        say_parts((f"{hit.rank:>3}  {hit.score:8.4f}  ", ""), (hit.id, "bold cyan"))
        selected = rationales(ranking, hit.id)
        for text in (doc.title, "" if selected else doc.text):
            if text:
                say_parts(("     ", ""), *_styled(snippet(index.analyzer, text, terms)))
        for number, score, text in selected:
            prefix = (f"     {score:8.4f}  ", ""), (f"{number}: ", "dim")
            say_parts(*prefix, *_styled(snippet(index.analyzer, text, terms, len(text))))


def print_count(ranking: Ranking) -> None:
    """Print how many documents match; if the pipeline cannot count them, a sentence on standard error."""
    try:
        say(f"{counted(ranking.total, 'document')} {'matches' if ranking.total == 1 else 'match'}.")
    except PipelineError as error:
        print(f"fontes: {error}", file=sys.stderr)


def print_least_count(ranking: Ranking, stage: Part) -> None:
    """Print how many documents match at least, if the number is known at once and exceeds the number of hits."""
    total = least_total_of(ranking, stage)
    if total["relation"] != "gte" and total["value"] > len(ranking):
        more = "More than " if total["relation"] == "gt" else ""
        say(f"{more}{total['value']:,} documents match.")


def print_facets(counts: Mapping[str, Mapping[object, int]]) -> None:
    """Print a line for each column: its most frequent values with their numbers of documents."""
    for column, values in counts.items():
        shown = [f"{value} ({count:,})" for value, count in islice(values.items(), SHOWN_VALUES)]
        more = [f"and {counted(len(values) - SHOWN_VALUES, 'more value')}"] if len(values) > SHOWN_VALUES else []
        say(f"{column}: {', '.join([*shown, *more]) or 'no values'}")


def print_answer(answer: dict[str, Any]) -> None:
    """Print an answer with the numbers of its citations, and a line for each with its document and the quoted words.

    If the text names its sources, it has no numbers.
    """
    numbers: dict[tuple[str, str], int] = {}
    from rich.text import Text

    text = Text()
    for sentence in answer["sentences"]:
        marks = [numbers.setdefault((cited["document"], cited["quote"]), len(numbers) + 1) for cited in sentence["citations"]]
        text.append(f"{sentence['text']} ")
        text.append("".join(f"[{mark}]" for mark in dict.fromkeys(marks)), "bold cyan").append(" ")
    sourced = any("url" in cited for sentence in answer["sentences"] for cited in sentence["citations"])
    console().print(text if numbers and not sourced else Text(answer["text"]))
    for (document, quote), number in numbers.items():
        console().print(Text.assemble(f"{f'[{number}]':>5} ", (document, "bold cyan"), f": “{quote}”"))
    console().print()


def _styled(piece: Snippet) -> Iterator[tuple[str, str]]:
    """A snippet with its matches highlighted: by colour on a terminal, otherwise by marks."""
    if is_plain() or not console().is_terminal:
        yield piece.marked(), ""
        return
    position = 0
    for start, end in piece.matches:
        yield piece.text[position:start], ""
        yield piece.text[start:end], "bold yellow"
        position = end
    yield piece.text[position:], ""

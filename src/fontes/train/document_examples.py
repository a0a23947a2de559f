"""`document_examples`: training examples from documents alone, without topics."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.run import Run
from ..core.stage import AnyStage, Ranker, Stage
from ..core.values import Doc, Documents, Topic, Topics, text_of
from ..core.work import Progress, ProgressCallback, reporter, silent, unreported, work
from ..formats import read_corpus
from ..text.sentences import check_sentence_finder, sentence_spans
from .examples import Example, Passage
from .mining import Mined, Miner, Mining, RelevantDocument, Tally, random_key, run_of

BATCH_SIZE = 1_000  # documents read at once, whose queries are searched together
MIN_WORDS = 4  # words of a sentence or section used as a query
BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True)
class DocumentQuery:
    """A query taken from a document, the document, and the text of the relevant passage."""

    topic: Topic
    doc: Doc
    positive: str


@runtime_checkable
class QuestionWriter(Protocol):
    """Writes questions that documents answer, as `LlmQuestions`: a list for each document, at most `count` in each."""

    def questions(self, docs: Sequence[Doc], count: int, /) -> list[list[str]]: ...


Spans = Callable[[str], list[tuple[int, int]]]


def document_examples(
    documents: object,
    form: str | QuestionWriter = "title",
    negatives: AnyStage | None = None,
    mining: Mining | None = None,
    *,
    per_document: int = 1,
    keep: float = 0.1,
    limit: int | None = None,
    seed: int = 0,
    sentences: str = "rules",
    round_trip: AnyStage | None = None,
    round_trip_rank: int = 1,
    teacher: Stage[Run, Run] | None = None,
    progress: ProgressCallback | None = None,
) -> Mined:
    """Make examples whose queries are taken from the documents that answer them.

    "title": the query is the title, and the passage is the text without a copy of the title at its start, also in negatives.
    "cloze": the query is a sentence, and the passage is the title and the remaining text, the inverse cloze task of Lee, Chang
    and Toutanova (2019, section 4.1); by default the sentence stays in one text of ten, so that models also learn word overlap.
    "first": the same with the first sentence. "section": the same with a section between blank lines. Sentences and sections of
    fewer than four words, or equal to the title, are never queries; documents with fewer than two sentences or sections are
    left out. With a writer, such as `LlmQuestions`, the query is a question that it writes, and the passage is title and text.
    Results depend only on documents, seed and parameters; without a round trip the examples of a document do not depend on
    other documents.

    Args:
        documents: An index, or anything `read_corpus` accepts.
        form: "title", "first", "cloze" or "section", or a writer of questions, such as `LlmQuestions("MODEL")`.
        negatives: Stage from topics to a run, such as `index.bm25()`, searched for negatives; None: no negatives, for training
            with in-batch negatives.
        mining: Choice of negatives; None: the defaults of `mine_negatives`. Its guard leaves out duplicates of the document.
        per_document: Maximum number of queries per document; titles and first sentences give one.
        keep: Probability that the sentence or section stays in the text.
        limit: Maximum number of documents, drawn by `seed`; None: all.
        seed: Seed of the draws; the mining has its own.
        sentences: "rules": a sentence ends with a full stop before a capital letter; for texts in lower case "nupunkt" or
            "spacy:MODEL".
        round_trip: Stage from topics to a run that must return the document for its query, otherwise the query is left out
            (round-trip consistency; Dai et al., 2023); None: all queries are used.
        round_trip_rank: Greatest rank of the document in that run.
        teacher: A reranker whose scores the examples get, and that the mining's `relative_margin` needs.
        progress: Called as documents are finished.

    Raises:
        InputError: No document gives an example, or documents cannot be read.
        ParameterError: A parameter is out of range.
        PipelineError: The stage does not go from topics to a run.
    """
    check_sentence_finder(sentences)
    find_sentences = partial(sentence_spans, how=sentences)
    query_makers: dict[str, Callable[[Doc], list[DocumentQuery]]] = {
        "title": _title_queries,
        "first": lambda doc: _span_queries(doc, find_sentences, 1, keep, seed, draw=False),
        "cloze": lambda doc: _span_queries(doc, find_sentences, per_document, keep, seed),
        "section": lambda doc: _span_queries(doc, _sections, per_document, keep, seed),
    }
    if isinstance(form, str) and form not in query_makers:
        raise ParameterError(f"there is no form '{form}' of document examples; there are {', '.join(query_makers)}")
    if not isinstance(form, (str, QuestionWriter)):
        raise ParameterError(f'queries are made by {", ".join(query_makers)}, or llm_questions("MODEL"), not by {form!r}')
    check_whole("per_document", per_document)
    check_whole("round_trip_rank", round_trip_rank)
    if round_trip is not None:
        round_trip.require(Topics, Run, "a round trip")
    check_whole("seed", seed, 0)
    if isinstance(keep, bool) or not isinstance(keep, (int, float)) or not 0 <= keep <= 1:
        raise ParameterError(f"keep must be a probability from 0 to 1, not {keep!r}")
    mining = mining or Mining()
    mining.check()
    tally = Tally(0, "document")
    examples: list[Example] = []
    start = time.perf_counter()
    docs = iter(_limit_docs(_iterate_docs(documents), limit, seed))
    with work(progress=progress):
        report = reporter()
        while batch := list(islice(docs, BATCH_SIZE)):
            tally.total += len(batch)
            if isinstance(form, str):
                queries_by_doc = [query_makers[form](doc) for doc in batch]
                tally.leave_out("no_title" if form == "title" else "too_short", queries_by_doc.count([]))
            else:
                queries_by_doc = _question_queries(form, batch, per_document)
                tally.leave_out("no_question", queries_by_doc.count([]))
            doc_queries = [doc_query for of_doc in queries_by_doc for doc_query in of_doc]
            if round_trip is not None and doc_queries:
                doc_queries = _round_trip_queries(doc_queries, round_trip % round_trip_rank, tally)
            if negatives is None:
                examples += _examples_without_negatives(doc_queries, tally)
            elif doc_queries:
                with work(progress=silent):
                    run = run_of(negatives, Topics(doc_query.topic for doc_query in doc_queries), mining)
                read_text = _text_without_title if form == "title" else text_of
                miner = Miner(mining, run.documents_for("mining"), tally, read_text, teacher)
                examples += _examples_with_negatives(doc_queries, run, miner)
            total = None if limit is None else min(limit, tally.total) if len(batch) < BATCH_SIZE else limit
            report(Progress("making examples", tally.total, total, time.perf_counter() - start))
    settings = {
        "form": form if isinstance(form, str) else repr(form),
        "per_document": per_document,
        "keep": keep,
        "limit": limit,
        "document_seed": seed,
        **({"sentences": sentences} if form in ("first", "cloze") else {}),
        **({} if round_trip is None else {"round_trip": repr(round_trip), "round_trip_rank": round_trip_rank}),
    }
    mined = tally.mined(examples, {**settings, **({} if negatives is None else asdict(mining))})
    with work(progress=progress):
        return mined if teacher is None else mined.scored(teacher)


def _title_queries(doc: Doc) -> list[DocumentQuery]:
    title, text = " ".join(doc.title.split()), _text_without_title(doc)
    return [DocumentQuery(Topic(doc.id, title), doc, text)] if title and text else []


def _text_without_title(doc: Doc) -> str:
    """Return the text without a copy of the title at its start, which would only teach a model to compare words."""
    copy = re.match(r"\s*" + r"\s+".join(map(re.escape, doc.title.split())) + r"(?!\w)", doc.text, re.IGNORECASE)
    return (doc.text[copy.end() :] if copy else doc.text).strip()


def _question_queries(writer: QuestionWriter, docs: Sequence[Doc], per_document: int) -> list[list[DocumentQuery]]:
    return [
        [DocumentQuery(Topic(f"{doc.id}#{n}", question), doc, text_of(doc)) for n, question in enumerate(questions, 1)]
        for doc, questions in zip(docs, writer.questions(docs, per_document), strict=True)
    ]


@unreported
def _round_trip_queries(doc_queries: Sequence[DocumentQuery], round_trip: Ranker, tally: Tally) -> list[DocumentQuery]:
    """Return the queries for which the round trip returns their document; count the others as left out."""
    run = round_trip(Topics(doc_query.topic for doc_query in doc_queries))
    returned = [query for query in doc_queries if query.topic.id in run and query.doc.id in run[query.topic.id].ids]
    tally.leave_out("not_returned", len(doc_queries) - len(returned))
    return returned


def _span_queries(
    doc: Doc, spans_of: Spans, per_document: int, keep: float, seed: int, draw: bool = True
) -> list[DocumentQuery]:
    """Return queries made of spans of a text, numbered from 1: drawn by the seed, or with `draw` False the first ones."""
    spans = [(start, end) for start, end in spans_of(doc.text) if doc.text[start:end].strip()]
    if len(spans) < 2:
        return []
    numbers = [n for n, (start, end) in enumerate(spans, 1) if _is_query(doc.text[start:end], doc.title)]
    if draw:
        numbers = sorted(heapq.nsmallest(per_document, numbers, key=lambda n: random_key(seed, doc.id, str(n))))
    queries = []
    for n in numbers[:per_document]:
        start, end = spans[n - 1]
        is_kept = int.from_bytes(random_key(seed, doc.id, str(n), "stays")) < keep * 2**64
        text = doc.text if is_kept else _join_around_gap(doc.text[:start], doc.text[end:])
        topic = Topic(f"{doc.id}#{n}", " ".join(doc.text[start:end].split()))
        queries.append(DocumentQuery(topic, doc, text_of(replace(doc, text=text))))
    return queries


def _is_query(text: str, title: str) -> bool:
    words = text.casefold().split()
    return len(words) >= MIN_WORDS and words != title.casefold().split()


def _join_around_gap(before: str, after: str) -> str:
    """Join the texts around a removed sentence or section, with the white space of one side between them."""
    return f"{before.rstrip()}{before[len(before.rstrip()) :] if after.strip() else ''}{after.lstrip()}".strip()


def _sections(text: str) -> list[tuple[int, int]]:
    edges = [0, *(edge for gap in BLANK_LINE.finditer(text) for edge in gap.span()), len(text)]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]


def _examples_without_negatives(doc_queries: Iterable[DocumentQuery], tally: Tally) -> Iterator[Example]:
    for doc_query in doc_queries:
        tally.group(0, ())
        yield Example(
            doc_query.topic.id,
            doc_query.topic.text,
            Passage(doc_query.doc.id, doc_query.positive),
            (),
            f"document '{doc_query.doc.id}'",
        )


def _examples_with_negatives(doc_queries: Iterable[DocumentQuery], run: Run, miner: Miner) -> list[Example]:
    groups = []
    for doc_query in doc_queries:
        positive = Passage(doc_query.doc.id, doc_query.positive)
        groups.append(
            RelevantDocument(
                run[doc_query.topic.id], doc_query.topic.text, positive, frozenset([doc_query.doc.id]), [doc_query.doc]
            )
        )
    return miner.examples(groups)


def _iterate_docs(documents: Any) -> Iterator[Doc]:
    ids = getattr(documents, "ids", None)
    if ids is None:
        yield from read_corpus(documents)
        return
    source: Documents = documents
    names = iter(ids)
    while batch := list(islice(names, BATCH_SIZE)):
        yield from source.docs(batch)


def _limit_docs(docs: Iterable[Doc], limit: int | None, seed: int) -> Iterable[Doc]:
    if limit is None:
        return docs
    numbered = heapq.nsmallest(
        check_whole("limit", limit), enumerate(docs), key=lambda numbered_doc: random_key(seed, numbered_doc[1].id, "limit")
    )
    return (doc for _, doc in sorted(numbered, key=lambda numbered_doc: numbered_doc[0]))

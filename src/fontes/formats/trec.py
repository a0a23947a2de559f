"""TREC formats: documents and topics in SGML, qrels in four columns and runs in six."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..core import Doc, InputError, Qrels, Run, Topic, Topics
from ..storage.files import check_length
from .columns import (
    PRELS,
    TREC_QRELS,
    TREC_RUN,
    one_word,
    qrels_width,
    read_qrels_columns,
    read_run_columns,
    run_rankings,
    run_width,
)
from .format import LAST_RESORT, File, Format
from .markup import markup_topics, resolved, spaced
from .records import Fields

DOC_START = re.compile(r"<doc[\s>]", re.IGNORECASE)
OPENING = re.compile(r"<doc(?:\s[^<>]*)?>", re.IGNORECASE)
DOC_END = re.compile(r"</doc\s*(?:>|\Z)", re.IGNORECASE)
ID_TAGS = ("DOCNO",)
TITLE_TAGS = ("TITLE", "HEADLINE", "HL", "HEAD", "TTL", "TI", "DOCTITLE")
TEXT_TAGS = ("TEXT", "LP", "LEADPARA", "ABSTRACT")
OTHER_TAGS = ("DOCNO", "DOCID", "DOCOLDNO", "DOCHDR")
TAG = re.compile(r"</?[a-zA-Z!?][^<>]*>")
TOP = re.compile(r"<top[\s>]", re.IGNORECASE)
HIDDEN = re.compile(r"<!--|-->|<(?P<slash>/?)(?P<tag>script|style)(?:\s[^<>]*)?(?<!/)>", re.IGNORECASE)


def sgml_docs(source: File, fields: Fields) -> Iterator[Doc]:
    """Yield the documents of a TREC SGML file; InputError for a <DOC> without DOCNO, unless skipped, or end.

    The title is the first of TITLE, HEADLINE, HL, HEAD, TTL, TI, DOCTITLE; the text is all of TEXT, LP, LEADPARA, ABSTRACT. If
    a document has none of these, like a web page, the text is everything except the id, header and title. The title of a web
    page is the TITLE in its HEAD. Tags, comments, scripts and styles are removed, and character references resolved. Raises
    InputError if no document has an element that the user chose as text.
    """
    has_text = "text" not in fields.chosen
    doc: Doc | None = None
    pending: list[str] = []  # pieces of a document, joined once
    start = size = 0
    for number, line in enumerate(source.decoded(), 1):
        offset = 0
        while True:
            if not pending:
                if not (opens := DOC_START.search(line, offset)):
                    break
                start, size, offset = number, 0, opens.start()
            closes = DOC_END.search(line, offset)
            pending.append(line[offset : closes.start() if closes else len(line)])
            size += len(pending[-1])
            check_length(size, source.name, "<DOC> that begins here", start)
            if not closes:
                break
            for doc in source.docs([(start, "".join(pending))], lambda line, block: _doc(block, fields, source.name, line)):
                has_text = has_text or bool(doc.text)
                yield doc
            pending, offset = [], closes.end()
    if pending:
        raise InputError.at(source.name, start, "the <DOC> that begins here has no </DOC>")
    if doc is not None and not has_text:
        raise InputError(f"{source.name}: no document has a text in <{'> or <'.join(fields.text)}>")


def _doc(block: str, fields: Fields, name: str, line: int) -> Doc:
    id_tags, title_tags, text_tags = (
        chosen if part in fields.chosen else usual
        for part, chosen, usual in (
            ("id", fields.id, ID_TAGS),
            ("title", fields.title, TITLE_TAGS),
            ("text", fields.text, TEXT_TAGS),
        )
    )
    opening = OPENING.search(block)
    if not opening:
        raise InputError.at(name, line, "the <DOC> that begins here has no > after its name")
    block = _without_hidden(block[opening.end() :])
    doc_id = next((spaced(_without_markup(value)) for value in _contents(block, id_tags)), "")
    if not doc_id:
        raise InputError.at(name, line, f"the <DOC> that begins here has no <{id_tags[0]}>")
    titles = list(_contents(block, title_tags))
    if "title" not in fields.chosen:
        titles = [next(_contents(title, TITLE_TAGS[:1]), title) for title in titles[:1]]  # HEAD may be a headline, or HTML's
    title = "\n".join(spaced(_without_markup(title)) for title in titles)
    texts = list(_contents(block, text_tags))
    if not texts and "text" not in fields.chosen:
        texts = [_without(block, (*OTHER_TAGS, *title_tags))]
    return Doc(doc_id, "\n".join(filter(None, map(_spaced_lines, map(_without_markup, texts)))), title)


def _contents(block: str, tags: Iterable[str]) -> Iterator[str]:
    return (block[opening.end() : closing.start()] for opening, closing in _elements(block, tags))


def _without(block: str, tags: Iterable[str]) -> str:
    pieces, offset = [], 0
    for opening, closing in _elements(block, tags):
        pieces.append(block[offset : opening.start()])
        offset = closing.end()
    return " ".join([*pieces, block[offset:]])


def _elements(block: str, tags: Iterable[str]) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield outermost, closed elements as (opening tag, closing tag)."""
    names = "|".join(map(re.escape, tags))
    closing = rf"/(?P<closes>{names})\s*>"
    last = {tag["closes"].lower(): tag.start() for tag in re.finditer(f"<{closing}", block, re.IGNORECASE)}
    opening: re.Match[str] | None = None
    for tag in re.finditer(rf"<(?:(?P<opens>{names})(?:\s[^<>]*)?>|{closing})", block, re.IGNORECASE):
        if opening is None:
            if tag["opens"] and last.get(tag["opens"].lower(), -1) > tag.start():
                opening = tag
        elif (tag["closes"] or "").lower() == opening["opens"].lower():
            yield opening, tag
            opening = None


def _without_hidden(block: str) -> str:
    """Remove comments, scripts and styles; one without an end is text."""
    tokens = list(HIDDEN.finditer(block))
    ends = {_kind(token): token.start() for token in tokens if _is_end(token)}
    pieces, offset, hidden = [], 0, ""
    for token in tokens:
        kind = _kind(token)
        if hidden:
            if _is_end(token) and kind == hidden:
                offset, hidden = token.end(), ""
        elif not _is_end(token) and ends.get(kind, -1) > token.start():
            pieces.append(block[offset : token.start()])
            hidden = kind
    return " ".join([*pieces, block[offset:]])


def _kind(token: re.Match[str]) -> str:
    return (token["tag"] or "comment").lower()


def _is_end(token: re.Match[str]) -> bool:
    return token[0] == "-->" or bool(token["slash"])


def _without_markup(text: str) -> str:
    return resolved(TAG.sub(" ", text))


def _spaced_lines(text: str) -> str:
    return "\n".join(filter(None, map(spaced, text.splitlines())))


class Trec(Format, name="trec"):
    """Formats that NIST distributes for TREC.

    Documents are SGML with <DOC> and <DOCNO>, many a file; topics SGML with <top>, <num>, <title>, <desc>, <narr>. Qrels have
    the columns topic, group, document, grade, or topic, document, grade, method, probability (prels); runs topic, Q0, document,
    rank, score, tag. A run's rank and line order are ignored.
    """

    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        opening = file.start.lower()
        match kind:
            case "corpus":
                return 0.4 if (opening.startswith("<doc>") if file.folder else "<doc>" in opening) else 0.0
            case "topics":
                return 0.4 if TOP.search(opening) and not opening.startswith("<?xml") else 0.0
            case "qrels":  # the last resort: its reader reports a wrong number of columns
                return 0.5 if qrels_width(file) in (TREC_QRELS, PRELS) else LAST_RESORT
            case _:
                return 0.5 if run_width(file) == TREC_RUN else LAST_RESORT

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return sgml_docs(file, fields)

    def read_topics(self, file: File) -> Iterator[Topic]:
        return markup_topics(file.text(), file.name, Fields.of_topics(file.reading.fields))

    def read_qrels(self, file: File) -> Qrels:
        width = PRELS if qrels_width(file) == PRELS else TREC_QRELS
        return read_qrels_columns(file, width, file.reading.groups)

    def read_run(self, file: File, topics: Topics) -> Run:
        return read_run_columns(file, TREC_RUN, topics)

    def write_qrels(self, qrels: Qrels) -> Iterator[bytes]:
        for topic_id, group, doc_id, grade in qrels.rows():
            topic, doc = one_word(topic_id, "topic"), one_word(doc_id, "document")
            yield f"{topic} {one_word(group, 'group')} {doc} {grade}\n".encode()

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        for topic_id, ranking in run_rankings(run):
            scores = ranking.scores.astype(str).tolist()
            rows = enumerate(zip(ranking.ids, scores, strict=True), 1)
            yield "".join(f"{topic_id} Q0 {doc_id} {rank} {score} {tag}\n" for rank, (doc_id, score) in rows).encode()

"""Claims with evidence, as in FEVER, CTKFacts and SciFact; such a file holds both topics and judgments.

A claim is a topic. Its metadata hold its `label` and, if sentences are named, `evidence`: sets of [document, sentence]. Its
judgments are its evidence documents; the documents of one set form a group, because they are evidence only together.

Forms, one object a line:

* FEVER (Thorne et al. 2018): `evidence` is a list of sets of [_, _, page, sentence]. Grade 1.
* CTKFacts (Ullrich et al. 2023): `evidence` is a list of sets of paragraphs: ids (without white space) or quoted text.
  Quoted paragraphs get the ids e0, e1, … in order of first occurrence; such a file is also a corpus.
* SciFact (Wadden et al. 2020): `evidence` maps abstracts to rationales. Each abstract suffices alone, grade 2; other
  `cited_doc_ids` have grade 1. Or a line or table row for each rationale (`evidence_doc_id`, …).

A claim labelled "NOT ENOUGH INFO" has no evidence, even if its line quotes paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core import Doc, InputError, Qrels, Topic
from ..core.checks import string_of
from .csv import table_rows
from .format import File, Format
from .records import Fields, json_rows

CLAIM, EVIDENCE, CITED, LABEL = "claim", "evidence", "cited_doc_ids", "label"
DOCUMENT, DOCUMENT_LABEL, SENTENCES = "evidence_doc_id", "evidence_label", "evidence_sentences"
CLAIM_KEYS = {"id", CLAIM, EVIDENCE, CITED, DOCUMENT, DOCUMENT_LABEL, SENTENCES}
NO_EVIDENCE = re.compile("not[ _]enough[ _]info|nei", re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


@dataclass
class Claim:
    """A claim and its evidence.

    Args:
        id: The claim's id.
        text: The claim.
        metadata: Other fields.
        sets: Evidence sets of (document, sentence or None).
        cited: Documents that may hold evidence.
        graded: Whether evidence has a higher grade than documents that are only cited.
    """

    id: str
    text: str
    metadata: dict[str, object]
    sets: list[list[tuple[str, int | None]]] = field(default_factory=list)
    cited: list[str] = field(default_factory=list)
    graded: bool = False

    def topic(self) -> Topic:
        """Return the claim as a topic."""
        sentences = [[list(piece) for piece in pieces] for pieces in self.sets if all(n is not None for _, n in pieces)]
        return Topic(self.id, self.text, metadata={**self.metadata, **({EVIDENCE: sentences} if sentences else {})})

    def judgments(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield (claim, group, document, grade); SciFact's documents, each sufficient alone, have no group."""
        sets = [] if NO_EVIDENCE.fullmatch(str(self.metadata.get(LABEL, ""))) else self.sets
        distinct: dict[frozenset[str], list[str]] = {}
        for documents in ([document for document, _ in pieces] for pieces in sets):
            distinct.setdefault(frozenset(documents), list(dict.fromkeys(documents)))
        if self.graded:
            evidence = dict.fromkeys(document for documents in distinct.values() for document in documents)
            yield from ((self.id, "0", document, 2) for document in evidence)
            yield from ((self.id, "0", document, 1) for document in dict.fromkeys(self.cited) if document not in evidence)
        else:
            groups = enumerate(distinct.values(), 1)
            yield from ((self.id, str(group), document, 1) for group, documents in groups for document in documents)


class ClaimsFormat(Format, name="claims"):
    """Claims with evidence, as FEVER, CTKFacts and SciFact publish them: topics with labels, judgments with groups."""

    def sniff(self, kind: str, file: File) -> float:
        if isinstance(file.first, dict):
            evidence = isinstance(file.first.get(EVIDENCE), (list, dict)) or CITED in file.first or DOCUMENT in file.first
            return 0.95 if CLAIM in file.first and evidence else 0.0
        return 0.95 if _is_table(file) else 0.0

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        quotes: dict[str, str] = {}
        list(_claims(file, quotes))  # fills `quotes`
        if not quotes:
            raise InputError(
                f"{file.name}: these claims name the documents of their evidence and do not quote them; give the corpus"
            )
        return (Doc(doc_id, text) for text, doc_id in quotes.items())

    def read_topics(self, file: File) -> Iterator[Topic]:
        return (claim.topic() for claim in _claims(file, {}))

    def read_qrels(self, file: File) -> Qrels:
        return Qrels(row for claim in _claims(file, {}) for row in claim.judgments())


def _is_table(file: File) -> bool:
    columns = {cell.strip(' "\r') for cell in file.start.split("\n", 1)[0].split(",")}
    return {CLAIM, DOCUMENT} <= columns


def _claims(file: File, quotes: dict[str, str]) -> Iterator[Claim]:
    """Yield claims, merging the lines of each claim; adds the ids of quoted paragraphs to `quotes`."""
    claims: dict[str, Claim] = {}
    lines: dict[str, int] = {}
    for number, row in table_rows(file) if _is_table(file) else json_rows(file):
        where = f"{file.name}, line {number}"
        claim = _claim(row, where, quotes)
        first = claims.setdefault(claim.id, claim)
        if first is claim:
            lines[claim.id] = number
        elif DOCUMENT not in row or first.text != claim.text:
            raise InputError(f"{where}: claim '{claim.id}' occurs a second time; the first is in line {lines[claim.id]}")
        else:
            first.sets += claim.sets
            first.metadata = {**claim.metadata, **first.metadata}
    yield from claims.values()


def _claim(row: Mapping[str, object], where: str, quotes: dict[str, str]) -> Claim:
    """Return the claim of an object or table row; `quotes` maps quoted paragraphs to ids and is updated."""
    text, evidence = row.get(CLAIM), row.get(EVIDENCE)
    if row.get("id") in (None, ""):
        raise InputError(f"{where}: the claim has no 'id'")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: no text under '{CLAIM}'")
    claim = Claim(string_of(row["id"], "id", where), text, {key: value for key, value in row.items() if key not in CLAIM_KEYS})
    if CITED in row:
        claim.cited, claim.graded = [string_of(cited, "cited id", where) for cited in _as_list(row[CITED], CITED, where)], True
    if DOCUMENT in row:
        claim.graded = True
        if row[DOCUMENT] not in (None, ""):
            document = string_of(row[DOCUMENT], "document id", where)
            claim.sets = [[(document, n) for n in _sentences(row.get(SENTENCES), where)] or [(document, None)]]
            claim.metadata |= {LABEL: row[DOCUMENT_LABEL]} if row.get(DOCUMENT_LABEL) else {}
    elif isinstance(evidence, dict):
        claim.graded = True
        _add_rationales(claim, evidence, where)
    elif isinstance(evidence, list):
        claim.sets = [pieces for row_set in evidence if (pieces := _evidence_set(row_set, where, quotes))]
    elif evidence is not None:
        raise InputError(
            f"{where}: 'evidence' is a {type(evidence).__name__}, neither sets of documents nor documents with rationales"
        )
    return claim


def _add_rationales(claim: Claim, evidence: Mapping[str, object], where: str) -> None:
    """Add SciFact's evidence: {document: [{"sentences": [0, 2], "label": "SUPPORT"}]}."""
    labels = []
    for document, rationales in evidence.items():
        for rationale in _as_list(rationales, f"{EVIDENCE} of '{document}'", where):
            if not isinstance(rationale, dict):
                problem = f"a rationale of '{document}' is a {type(rationale).__name__}"
                raise InputError(f"{where}: {problem}, not an object with 'sentences' and 'label'")
            claim.sets.append([(document, n) for n in _sentences(rationale.get("sentences"), where)] or [(document, None)])
            labels.append(str(rationale.get(LABEL, "")))
    if any(labels):
        claim.metadata[LABEL] = ", ".join(dict.fromkeys(filter(None, labels)))


def _evidence_set(pieces: object, where: str, quotes: dict[str, str]) -> list[tuple[str, int | None]]:
    """Return an evidence set of FEVER ([_, _, page, sentence]) or CTKFacts; empty if FEVER's pages are null."""
    documents: list[tuple[str, int | None]] = []
    for piece in _as_list(pieces, "a set of the evidence", where):
        if isinstance(piece, str) and piece.strip():
            quoted = len(piece.split()) > 1
            documents.append((quotes.setdefault(piece, f"e{len(quotes)}") if quoted else piece.strip(), None))
        elif isinstance(piece, list) and len(piece) == 4 and (piece[2] is None or isinstance(piece[2], str)):
            if piece[2] is not None:
                documents += [(piece[2], n) for n in _sentences([piece[3]], where)]
        else:
            problem = f"{str(piece)[:40]!r} is no piece of evidence"
            raise InputError(f"{where}: {problem}; that is [_, _, page, sentence] as in FEVER, or a paragraph or its id")
    return documents


def _as_list(value: object, name: str, where: str) -> list[Any]:
    """Return a list, parsed from a table's "[2 5]" if need be."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        value = value[1:-1].replace(",", " ").split()
    if not isinstance(value, list):
        raise InputError(f"{where}: {name} is a {type(value).__name__}, not a list")
    return value


def _sentences(value: object, where: str) -> list[int]:
    numbers = [] if value is None else _as_list(value, SENTENCES, where)
    for number in numbers:
        if not WHOLE_NUMBER.fullmatch(str(number)):
            raise InputError(f"{where}: the number of a sentence is {number!r}, not a whole number from 0")
    return [int(number) for number in numbers]

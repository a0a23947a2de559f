"""CIFF files of bags of words, sound and unsound, and what is in a file."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

from google.protobuf.proto import parse_length_prefixed

from fontes.formats.ciff import encoded, messages

# What ciff-toolkit 0.2.2 wrote of: d1 "spring water spring", d2 "water mill", an empty document, one of "spring", three "mill"
# and 200 "x", and one of "žlutý", "kůň", U+1F40E and U+FF5E; the terms in the order of their UTF-16, as Java sorts them.
TOOLKIT = bytes.fromhex(
    "1d0801100818052008280530d50139cdcccccccc4c454042056120746f79110a056bc5afc58810011801220408041001160a046d696c6c100218"
    "04220408011001220408021003160a06737072696e671002180322021002220408031001150a0577617465721002180222021001220408011001"
    "0f0a0178100118c8012205080310c801130a07c5be6c7574c3bd10011801220408041001100a04f09f908e100118012204080410010f0a03efbd"
    "9e10011801220408041001061202643118030808011202643218020908021205656d7074790b080312046c6f6e6718cc010808041202c5be1804"
)


def postings_list(term: str, tfs: Mapping[int, int], **others: Any) -> Any:
    """The message of a term with its frequency in each document; `others` replace fields."""
    docs = sorted(tfs)
    gaps = [doc - before for before, doc in zip([0, *docs], docs, strict=False)]
    postings = [{"docid": gap, "tf": tfs[doc]} for gap, doc in zip(gaps, docs, strict=True)]
    values = {"term": term.encode(), "df": len(tfs), "cf": sum(tfs.values()), "postings": postings}
    return messages().PostingsList(**values | others)


def ciff(
    bags: Sequence[Mapping[str, int]],
    names: Iterable[str | bytes] | None = None,
    lengths: Sequence[int] | None = None,
    lists: Sequence[Any] | None = None,
    docids: Iterable[int] | None = None,
    **header: Any,
) -> bytes:
    """A file of documents as bags of words.

    Args:
        bags: The documents.
        names: Their ids; d0, d1, … unless given.
        lengths: Their lengths; the sums of their bags unless given.
        lists: The messages of the postings lists in place of those of the bags.
        docids: The docids of the documents; 0, 1, … unless given.
        **header: Fields of the header in place of what is so.
    """
    terms: dict[str, dict[int, int]] = {}
    for doc, bag in enumerate(bags):
        for term, tf in bag.items():
            terms.setdefault(term, {})[doc] = tf
    lists = [postings_list(term, terms[term]) for term in sorted(terms, key=str.encode)] if lists is None else lists
    lengths = [sum(bag.values()) for bag in bags] if lengths is None else lengths
    tokens = sum(sum(bag.values()) for bag in bags)
    counts = [1, len(lists), len(bags), len(lists), len(bags), tokens, tokens / max(1, len(bags)), "a test"]
    names = [f"d{doc}" for doc in range(len(bags))] if names is None else names
    fields = messages().Header.DESCRIPTOR.fields_by_name
    ids = [name if isinstance(name, bytes) else name.encode() for name in names]
    rows = zip(range(len(bags)) if docids is None else docids, ids, lengths, strict=True)
    records = [messages().DocRecord(docid=docid, collection_docid=name, doclength=length) for docid, name, length in rows]
    return encoded([messages().Header(**dict(zip(fields, counts, strict=True)) | header), *lists, *records])


def parsed(content: bytes) -> tuple[dict[str, Any], dict[str, dict[int, int]], list[tuple[str, int]]]:
    """The header, the postings by term, and each document's id and length."""
    file, kinds = BytesIO(content), messages()
    header = parse_length_prefixed(kinds.Header, file)
    terms: dict[str, dict[int, int]] = {}
    for _ in range(header.num_postings_lists):
        message, doc, postings = parse_length_prefixed(kinds.PostingsList, file), 0, {}
        for posting in message.postings:
            doc += posting.docid
            postings[doc] = posting.tf
        assert (message.df, message.cf) == (len(postings), sum(postings.values()))
        terms[message.term.decode()] = postings
    assert len(terms) == header.num_postings_lists
    records = [parse_length_prefixed(kinds.DocRecord, file) for _ in range(header.num_docs)]
    assert [record.docid for record in records] == list(range(header.num_docs))
    facts = {name: getattr(header, name) for name in kinds.Header.DESCRIPTOR.fields_by_name}
    return facts, terms, [(record.collection_docid.decode(), record.doclength) for record in records]

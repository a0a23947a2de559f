"""What other engines make of CIFF, and what they write; ciff.py calls it, each part in an environment that has the engine.

python ciff_engines.py lucene INDEX FOLDER              # a Lucene index as Anserini's exporter sees it, for `write`
python ciff_engines.py write FOLDER FILE.ciff           # by ciff-toolkit
python ciff_engines.py read FILE.ciff FOLDER            # by ciff-toolkit, in the form of `lucene`
python ciff_engines.py pisa-reads FILE.ciff FOLDER      # by PISA, which searches it: topics.jsonl to pisa-reads.tsv
python ciff_engines.py pisa-writes FILE.ciff FOLDER     # of the tokens of docs.tokens.jsonl, which it searches too
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

K1, B, HITS = 0.9, 0.4, 1000


def lucene(index: Path, folder: Path) -> None:
    """As io.osirrc.ciff.lucene.ExportAnseriniLuceneIndex: gaps and frequencies, lengths of one byte, exact sums."""
    from pyserini.pyclass import autoclass as java  # isort: skip; it starts the Java machine

    package = "org.apache.lucene."
    path = java("java.io.File")(str(index)).toPath()
    reader = java(f"{package}index.DirectoryReader").open(java(f"{package}store.FSDirectory").open(path))
    leaf, documents = reader.leaves().get(0).reader(), reader.maxDoc()
    assert leaf.maxDoc() == documents, "the index has several segments"
    done, length_of = 0x7FFFFFFF, java(f"{package}util.SmallFloat").byte4ToInt
    terms = leaf.terms("contents").iterator()
    count = 0
    with (folder / "lists.jsonl").open("w", encoding="utf-8") as file:
        while (term := terms.next()) is not None:
            postings, before, gaps, tfs = terms.postings(None, 8), 0, [], []
            while (doc := postings.nextDoc()) != done:
                gaps.append(doc - before)
                tfs.append(postings.freq())
                before = doc
            text = term.utf8ToString()
            file.write(json.dumps([text, terms.docFreq(), terms.totalTermFreq(), gaps, tfs], ensure_ascii=False) + "\n")
            count += 1
    norms, lengths = leaf.getNormValues("contents"), [0] * documents
    while (doc := norms.nextDoc()) != done:
        lengths[doc] = length_of((norms.longValue() + 128) % 256 - 128)
    fields = reader.storedFields()
    with (folder / "docs.jsonl").open("w", encoding="utf-8") as file:
        for doc, length in enumerate(lengths):
            file.write(json.dumps([fields.document(doc).get("id"), length], ensure_ascii=False) + "\n")
    total = reader.getSumTotalTermFreq("contents")
    header = {"version": 1, "num_postings_lists": count, "num_docs": documents, "total_postings_lists": count}
    header |= {"total_docs": documents, "total_terms_in_collection": total, "average_doclength": total / documents}
    (folder / "header.json").write_text(json.dumps({**header, "description": "Index built by Anserini."}))


def write(folder: Path, file: Path) -> None:
    from ciff_toolkit.ciff_pb2 import DocRecord, Header, Posting, PostingsList
    from ciff_toolkit.write import CiffWriter

    with CiffWriter(file) as writer:
        writer.write_header(Header(**json.loads((folder / "header.json").read_text())))
        writer.write_postings_lists(
            PostingsList(
                term=term, df=df, cf=cf, postings=[Posting(docid=gap, tf=tf) for gap, tf in zip(gaps, tfs, strict=True)]
            )
            for term, df, cf, gaps, tfs in _lines(folder / "lists.jsonl")
        )
        writer.write_documents(
            DocRecord(docid=docid, collection_docid=name, doclength=length)
            for docid, (name, length) in enumerate(_lines(folder / "docs.jsonl"))
        )


def read(file: Path, folder: Path) -> None:
    from ciff_toolkit.read import CiffReader

    with CiffReader(file) as reader:
        names = [field.name for field in reader.header.DESCRIPTOR.fields]
        (folder / "header.json").write_text(json.dumps({name: getattr(reader.header, name) for name in names}))
        with (folder / "lists.jsonl").open("w", encoding="utf-8") as out:
            for one in reader.read_postings_lists():
                gaps, tfs = [p.docid for p in one.postings], [p.tf for p in one.postings]
                out.write(json.dumps([one.term, one.df, one.cf, gaps, tfs], ensure_ascii=False) + "\n")
        with (folder / "docs.jsonl").open("w", encoding="utf-8") as out:
            for docid, doc in enumerate(reader.read_documents()):
                assert doc.docid == docid
                out.write(json.dumps([doc.collection_docid, doc.doclength], ensure_ascii=False) + "\n")


def pisa(file: Path, folder: Path, writes: bool) -> None:
    import pandas as pd
    from pyterrier_pisa import PisaIndex

    name = "pisa-writes" if writes else "pisa-reads"
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    if writes:  # in one batch, as several are not merged well
        index = PisaIndex(str(place), text_field="terms", stemmer="none", stops="none", batch_size=1 << 30)
        docs = ({"docno": i, "terms": {t: float(n) for t, n in Counter(terms).items()}} for i, terms in _tokens(folder, "docs"))
        index.toks_indexer("terms", scale=1.0).index(docs)
        index.to_ciff(str(file))
    else:
        PisaIndex.from_ciff(str(file), str(place), overwrite=True, stemmer="none")
        index = PisaIndex(str(place), stemmer="none", stops="none")
    topics = list(_tokens(folder, "topics"))
    model = index.bm25(k1=K1, b=B, num_results=HITS, threads=1, query_algorithm="maxscore", query_weighted=True, toks_scale=1.0)
    queries = [{t: float(n) for t, n in Counter(terms).items()} for _, terms in topics]
    rows = model.transform(pd.DataFrame({"qid": [i for i, _ in topics], "query_toks": queries}))
    rows[["qid", "docno", "score"]].to_csv(folder / f"{name}.tsv", sep="\t", index=False, header=False)


def _tokens(folder: Path, name: str) -> Iterator[Any]:
    yield from _lines(folder / f"{name}.tokens.jsonl")


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    first, second = map(Path, sys.argv[2:4])
    match sys.argv[1]:
        case "lucene":
            lucene(first, second)
        case "write":
            write(first, second)
        case "read":
            read(first, second)
        case "pisa-reads" | "pisa-writes":
            pisa(first, second, sys.argv[1] == "pisa-writes")
    sys.stdout.write("\n{}\n")

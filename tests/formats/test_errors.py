"""What errors of files say: the file and the line, row, item or topic at fault, and what to do."""

import datetime
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error

import fontes as ft
from fontes.core import Doc, FontesError, InputError, ParameterError, Topics, Turn
from fontes.datasets import judged_topics
from fontes.datasets.names import corpus_of
from fontes.experiments import metadata_of
from fontes.formats import (
    read_corpus,
    read_metadata,
    read_qrels,
    read_run,
    read_topics,
    write,
    write_corpus,
    write_qrels,
    write_run,
    write_topics,
)
from fontes.formats.ir_metadata import END, START

READERS: dict[str, Callable[..., object]] = {
    "corpus": lambda path, **options: list(read_corpus(path, **options)),
    "kilt": lambda path: list(read_corpus(path, format="kilt")),
    "wapo": lambda path: list(read_corpus(path, format="wapo")),
    "topics": read_topics,
    "canard": lambda path: read_topics(path, format="canard"),
    "qrels": read_qrels,
    "run": read_run,
    "metadata": read_metadata,
}


def jsonl(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def canard(**change: Any) -> str:
    """Two questions of a conversation, of which the second is changed."""
    first = {"QuAC_dialog_id": "C_1", "Question_no": 1, "History": ["x", "y"], "Question": "Who?", "Rewrite": "Who is Bo?"}
    second = first | {"Question_no": 2, "History": ["x", "y", "Who?", "Bo."], "Question": "Why?", "Rewrite": "Why Bo?"}
    return json.dumps([first, second | change])


def kilt(**change: Any) -> str:
    page = {"_id": "7", "wikipedia_id": "7", "wikipedia_title": "Mail", "text": ["Mail\n", "Mail is sent.\n"]}
    page |= {"anchors": [], "categories": "", "history": None}
    return jsonl(page, page | change)


def wapo(**change: Any) -> str:
    content = [{"type": "sanitized_html", "subtype": "paragraph", "content": "A tale.", "mime": "text/html"}]
    article = {
        "id": "b2",
        "article_url": "/a",
        "title": "A",
        "author": "M",
        "published_date": 1325376562000,
        "contents": content,
    }
    return jsonl(article, article | change)


def claims(**row: Any) -> str:
    first = {"id": 62, "label": "SUPPORTS", "claim": "Reed was an actor.", "evidence": [[[1, 11, "Reed", 0]]]}
    return jsonl(first, {"id": 2, "claim": "A."} | row)


def ikat(**change: Any) -> str:
    return jsonl({"turn_id": "1_1", "references": {"a": 1.0}, "responses": []} | change)


def answered(*passages: object) -> str:
    return ikat(references=None, responses=[{"passage_provenance": passages}])


def year_2025(**change: Any) -> str:
    turn = {"turn_id": 1, "user_utterance": "What?", "resolved_utterance": "What?", "response": "Tea.", "relevant_ptkbs": []}
    return json.dumps(
        [{"number": "1-1", "title": "A", "ptkb": ["I eat."], "responses": [turn | change.pop("turn", {})]} | change]
    )


def cast(**turn: Any) -> str:
    return json.dumps([{"number": 1, "turn": [{"number": 1, "raw_utterance": "a"} | turn]}])


def tree(first: str = '"number": "1-1"', parent: str = "1-1") -> str:
    return (
        f'[{{"number": 132, "turn": [{{{first}, "participant": "User", "utterance": "u1"}},\n'
        f' {{"number": "1-2", "parent": "{parent}", "participant": "System", "response": "s2"}},\n'
        ' {"number": "1-3", "parent": "1-2", "participant": "User", "utterance": "u3"}]}]'
    )


FLAT = """[{"number": 1, "turn": [{"number": "1-1", "utterance": "a"}, {"number": "1-3", "utterance": "b"}]},
{"number": 1, "turn": [{"number": "1-1", "utterance": "z"}, {"number": "2-1", "utterance": "c"}]}]"""
GOOD_TURN = jsonl({"_id": "5_1", "topic": 5, "turn": 1, "raw": "a", "manual": "A"})
RATIONALE = {"41": ["x"]}
REQUESTS = "<Requests><Request><RequestNumber>7</RequestNumber><RequestText>piers</RequestText></Request></Requests>"


@each(
    ("reader", "name", "content", "names", "remedy"),
    [
        # documents in JSON lines
        ("corpus", "c.jsonl", '{"_id": "1", "text": "x"}\n{"_id": ', "line 2: broken JSON", ""),
        ("corpus", "c.jsonl", '{"_id": "1", "text": "x"}\n\n[1]', "line 3 … JSON list", "object"),
        ("corpus", "c.jsonl", '{"title": "1", "text": "x"}', "line 1: no id … 'title'", "_id, id, pid, docno, doc_id, docid"),
        ("corpus", "c.jsonl", '{"_id": "1", "body_text": "x"}', "line 1: no text … 'body_text'", "contents, abstract or body"),
        ("corpus", "c.jsonl", '{"_id": "", "text": "x"}', "line 1: the id is empty", "skip_bad="),
        ("corpus", "c.jsonl", '{"_id": " ", "text": "x"}', "line 1: the id is empty", ""),
        ("corpus", "c.jsonl", '{"_id": null, "text": "x"}', "line 1: the id is null", ""),
        ("corpus", "c.jsonl", '{"_id": "1", "text": ["x"]}', "line 1: the text is a list", ""),
        ("corpus", "c.jsonl", '{"id": 1, "contents": ["a", "b"]}\n', "line 1: the text is a list", "string"),
        ("corpus", "c.jsonl", "\n \n", "no documents", ""),
        ("corpus", "c.jsonl", b'{"_id": "1", "text": "x"}\n{"_id": "2", "text": "\xff"}', "line 2: not UTF-8", ""),
        ("corpus", "c.jsonl", "[" * 100_000, "line 1: broken JSON", ""),
        # documents in tables
        ("corpus", "c.tsv", "0\ta\n\n1\tb\tc\n", "line 3: 3 columns", "the first line has 2"),
        ("corpus", "c.tsv", "just text\n", "line 1: 1 columns", "header"),
        ("corpus", "c.csv", 'id,text\n1,"a\nb"\n2\n', "line 4: 1 columns", "header has 2"),
        ("corpus", "c.csv", "id,year\n1,1999\n", "line 2: no text … 'year'", ""),
        ("corpus", "c.csv", "id,text\n", "no documents", ""),
        ("corpus", "bad.csv", b"id,text\r1,a\r2\r", "line 3: 1 columns", "header has 2"),
        # documents in SGML, and of no format
        ("corpus", "a.sgml", "\n<DOC><DOCNO>1</DOCNO>\n<TEXT>x", "line 2: … <DOC>", "no </DOC>"),
        ("corpus", "a.sgml", "<DOC>\n<TEXT>x</TEXT></DOC>", "line 1: … <DOC>", "no <DOCNO>"),
        ("corpus", "notes", "some words", "notes", "--format … jsonl, ciff, claims, csv, json, kilt, parquet"),
        # pages of KILT, articles of The Washington Post
        ("kilt", "a.json", kilt(text="one text"), "line 2: … KILT", ""),
        ("kilt", "a.json", kilt(text=["a", 1]), "line 2: … paragraph", "string"),
        ("kilt", "a.json", kilt(wikipedia_id=" "), "line 2: the wikipedia_id is empty", ""),
        ("kilt", "a.json", kilt(wikipedia_id=None), "line 2", ""),
        ("wapo", "a.json", wapo(contents="one text"), "line 2: … The Washington Post", ""),
        ("wapo", "a.json", wapo(id=""), "line 2: the id is empty", ""),
        ("wapo", "a.json", wapo(published_date="today"), "line 2: the published_date 'today'", "milliseconds"),
        ("wapo", "a.json", wapo(published_date=10**40), "line 2: the published_date", ""),
        # claims
        ("qrels", "c.jsonl", claims(id=None, evidence=[]), "line 2: … 'id'", ""),
        ("qrels", "c.jsonl", claims(claim=" ", evidence=[]), "line 2: … 'claim'", ""),
        ("qrels", "c.jsonl", claims(evidence="B."), "line 2: 'evidence' is a str", "sets of documents"),
        ("qrels", "c.jsonl", claims(evidence=["B."]), "line 2: a set of the evidence is a str", "list"),
        ("qrels", "c.jsonl", claims(evidence=[[["Reed", 0]]]), "line 2: … ['Reed', 0]", ""),
        ("qrels", "c.jsonl", claims(evidence=[[[1, 2, "Reed", "first"]]]), "line 2: … sentence is 'first'", ""),
        ("qrels", "c.jsonl", claims(evidence=[[[1, 2, "A", "9" * 5000]]]), "line 2: … sentence is '999", ""),
        ("qrels", "c.jsonl", claims(evidence=RATIONALE), "line 2: a rationale of '41' is a str", "an object with"),
        ("qrels", "c.jsonl", claims(cited_doc_ids=41), "line 2: cited_doc_ids is a int", "list"),
        ("qrels", "c.jsonl", claims(id=62, evidence=[]), "line 2: claim '62'", "line 1"),
        ("qrels", "c.jsonl", jsonl({"id": 1, "label": "NOT ENOUGH INFO", "claim": "A.", "evidence": []}), "no judgments", ""),
        ("corpus", "c.jsonl", claims(evidence=[]), "documents of their evidence", "give the corpus"),
        # topics
        ("topics", "q", "", "no topics", ""),
        ("topics", "q", "words alone", "format is not clear", ""),
        ("topics", "q.tsv", "1\tone\ntwo\n", "line 2", "an id and a text"),
        ("topics", "q.tsv", b"1\tone\n2\tcaf\xe9\n", "line 2: not UTF-8", ""),
        ("topics", "q", '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}', "topic '1' … twice", ""),
        ("topics", "q", '{"_id": "1", "text": "a"}\n{"_id": "2"}', "line 2: no text", ""),
        ("topics", "q", '{"_id": "1", "text": "a"}\n{"text": "b"}', "line 2: no id", ""),
        ("topics", "q", '{"_id": "1", "text": "a"}\n{oops', "line 2: broken JSON", ""),
        ("topics", "q", jsonl({"qid": 1, "words": "a"}, {"qid": 2}), "no text … 'qid', 'words'", "--id qid --text words"),
        ("topics", "q", '{"1": "one",\n oops}', "line 2: broken JSON", ""),
        ("topics", "q", '{"1": ["1-1"]}', "topic '1': a list", "text"),
        (
            "topics",
            "q",
            '{"questions": [{"id": "5", "body": "What?"}]}',
            "topic 'questions': a list",
            "jq -c '.[\"questions\"][]' ",
        ),
        ("topics", "q", "[1]", "item 1: a int", ""),
        ("topics", "q", '{"_id": "1", "text": "a", "turns": [1]}', "line 1: 'turns' or 'weights'", ""),
        (
            "topics",
            "q",
            '{"_id": "1", "text": "a", "turns": [{"text": "a", "manual": 7}]}',
            "manual of a turn is a int",
            "text",
        ),
        ("topics", "q", '{"_id": "1", "text": "a", "turns": [{"text": null}]}', "text of a turn is a NoneType", "text"),
        ("topics", "q", '{"_id": "1", "text": "a", "turns": [{"text": "a", "who": 1}]}', "'who'", "manual, automatic, answer"),
        ("topics", "q", '{"_id": "1", "text": "a", "query": {"must": 7}}', "line 1: query.must: … 7", "list of clauses"),
        # conversations
        ("topics", "q", '[{"turn": [{"number": 1, "raw_utterance": "a"}]}]', "conversation … no number", ""),
        ("topics", "q", cast(raw_utterance=["a"]), "'raw_utterance' of turn 1 is a list", ""),
        ("topics", "q", cast(response={"b": 1}), "turn 1 … a dict", ""),
        ("topics", "q", tree(parent="9-9"), "conversation 132: turn 1-2 … 9-9", ""),
        ("topics", "q", tree(first='"number": "1-1", "parent": "1-3"'), "conversation 132: … follows itself", ""),
        ("topics", "q", FLAT, "turn 1-1 occurs twice", ""),
        ("topics", "turns.jsonl", GOOD_TURN + '{"_id": "1", "text": "x"}', "line 2: not a turn", ""),
        ("topics", "q", year_2025(turn={"turn_id": None}), "conversation 1-1: 'responses'", "list of turns with numbers"),
        ("topics", "q", year_2025(ptkb=[7]), "conversation 1-1: 'ptkb'", "list … object of texts"),
        ("topics", "q", year_2025(turn={"relevant_ptkbs": 3}), "conversation 1-1: … turn 1", "list"),
        ("canard", "c.json", canard(Question=" "), "item 2: … 'Question'", ""),
        ("canard", "c.json", canard(QuAC_dialog_id=None), "item 2: … 'QuAC_dialog_id'", ""),
        ("canard", "c.json", canard(Question_no="2"), "item 2: … 'Question_no'", "whole number"),
        ("canard", "c.json", canard(Rewrite=3), "item 2: 'Rewrite' is a int", ""),
        ("canard", "c.json", canard(History="x"), "item 2: 'History'", "list of texts"),
        ("canard", "c.json", canard(History=["x", "y", "z"]), "item 2: 'History' has 3", ""),
        ("canard", "c.json", canard(Question_no=1), "item 2: question 1 of the conversation C_1", ""),
        ("canard", "c.json", "[{", "broken JSON", ""),
        ("canard", "c.json", "", "no topics", ""),
        ("canard", "c.json", "[]", "no topics", ""),
        ("canard", "c.json", "[1]", "c.json", "an object"),
        # topics in plain lines
        ("topics", "t.txt", "".join(f"{n}:{'x' * 60}\n" for n in range(100)) + "no id\n", "line 101", "as in the line '0:xxx"),
        ("topics", "t.txt", "1:a\n2:b\n2:c\n3:d\n", "'2'", ""),
        ("topics", "t.txt", "no id\n1:a\n2:b\n3:c\n4:d\n", "line 1", "as in the line '1:a'"),
        ("topics", "t.txt", "1:a\n2:b\n3:c\nno id\n4:d\n", "line 4", "as in the line '1:a'"),
        ("topics", "t.txt", "1 0 d1 1\n1 0 d2 0\n", "judgments, not topics", ""),
        ("topics", "t.txt", "1 d1 1\n2 d2 0\n", "judgments, not topics", ""),
        ("topics", "t.txt", "1 Q0 d1 1 2.5 x\n2 Q0 d1 1 2.5 x\n", "a run, not topics", ""),
        ("topics", "t.txt", f"{START}\n# tag: x\n{END}\n1 Q0 d1 1 2.5 x\n1 Q0 d2 2 1.5 x\n", "a run, not topics", ""),
        ("topics", "t.txt", f"{START}\n# a\n1 Q0 d1 1 2.0 x\n", "a run, not topics", ""),
        ("topics", "t.txt", f"{START}\n# a\n1 0 d1 1\n", "judgments, not topics", ""),
        # topics in tables
        ("topics", "t.tsv", "1\tone\td1\n", "line 1: 3 columns", "choose the columns"),
        ("topics", "t.csv", "\n1,one,d1\n", "line 2: 3 columns", "header"),
        ("topics", "t.tsv", "1\tone\n2\ttwo\td1\n", "line 2", "an id and a text"),
        ("topics", "t.tsv", "post_id\ttweet\tcord_uid\n1\tx\td\n", "text of the topic … post_id, tweet, co", ""),
        ("topics", "t.tsv", "name\ttext\tcord_uid\n1\tx\td\n", "id of the topic … name, text, cord_uid", ""),
        ("topics", "t.tsv", "qid\ttext\tcord_uid\n1\tx\n", "line 2: 2 columns", "header has 3"),
        ("topics", "t.tsv", "qid\tqid\ttext\n1\t1\tx\n", "line 1: … 'qid'", ""),
        ("topics", "t.tsv", "qid\ttext\tcord_uid\n1\tx\td\n1\ty\te\n", "line 3: topic '1' … another text", ""),
        ("topics", "t.tsv", "qid\ttext\n1\tx\n1\tx\n", "topic '1' … twice", ""),
        ("topics", "t.tsv", "qid\ttext\n\tx\n", "line 2: the topic id is empty", ""),
        ("topics", "t.csv", 'qid,text\n1,"x\n2,y\n', "line 2: … row … broken", "a cell with"),
        ("topics", "t.csv", 'qid,text\n1,"x" y\n', "line 2: … row … broken", ""),
        ("topics", "t.csv", 'qid,"text\n1,x\n', "line 1: … row … broken", ""),
        ("topics", "t.tsv", 'qid\ttext\n1\t"x\ny" z\n', "line 2: … row … broken", ""),
        # topics in markup
        ("topics", "q", "<top><title>x</title></top>", "topic 1: no number", "num, number, identifier, id or qid"),
        ("topics", "q", "<topics><topic>", "broken XML", ""),
        ("topics", "q", "<topics><topic>x</topic></topics>", "topic 1: no number", ""),
        (
            "topics",
            "q",
            '<topics>\n<topic number="1"><title>x</title></topic>\n<topic number="2"><tit',
            "<topics> … has no",
            "",
        ),
        ("topics", "q", "<top><num>1<title>x</top>\n<top>\n<num>2", "line 2: the <top>", "no </top>"),
        ("topics", "q", "<DOC><DOCNO>1</DOCNO></DOC>", "no topics … <DOC>, <DOCNO>", "<top> or <topic>"),
        ("topics", "q", "<top><TNR>1</TNR><TITLE>x</TITLE></top>", "'TNR', 'TITLE'", "--id TNR --text TITLE (in Python"),
        ("topics", "q", REQUESTS, "no topics … <Requests>, <Request>", "--id RequestNumber --text RequestText (in Python"),
        ("topics", "q", '<!DOCTYPE t [<!ENTITY a "b">]><top/>', "entities", ""),
        # judgments
        ("qrels", "q", "1 0 a 1\n1 0 b\n", "line 2: 3 columns", "topic, group, document, grade"),
        ("qrels", "q", "1 a\n", "line 1: 2 columns", ""),
        ("qrels", "q", "1 0 a 1\n\n1 0 b 1.5\n", "line 3: the grade '1.5'", "integer"),
        ("qrels", "q", "# one\r\n1 0 d1 1\r\n1 0 d2 x\r\n", "line 3: the grade 'x'", "integer"),
        ("qrels", "q", "1 0 a 1\n1 0 a 2\n", "line 2: topic '1', document 'a' … 1 and 2", ""),
        ("qrels", "q", "1 1 d 1\n1 1 d 0\n", "line 2: topic '1', document 'd' … 1 and 0", ""),
        ("qrels", "q", "", "no judgments", ""),
        ("qrels", "q", "query-id\tcorpus-id\tscore\n", "no judgments", ""),
        ("qrels", "t.tsv", "post_id\ttweet_text\tpaper\n1\tx\td\n", "id of the document … post_id, tweet_text, pa", ""),
        ("qrels", "t.tsv", "qid\tdocno\tlabel\n1\td\tyes\n", "line 2: 'yes' … 'label'", "whole number"),
        ("qrels", "t.tsv", "qid\tdocno\tlabel\n1\td\t1_0\n", "line 2: '1_0' … 'label'", ""),
        ("qrels", "t.tsv", "qid\tdocno\tlabel\n1\td\t1\n1\td\t2\n", "line 3: topic '1', document 'd' … 1 and 2", ""),
        ("qrels", "t.tsv", "qid\tdocno\n1\t\n", "no judgments", ""),
        ("qrels", "t.csv", "Nr;Tweet;cord_uid\n1;moon;d1\n", "id of the topic", ""),
        ("qrels", "t.csv", "id,thread_id,label\n1,2,1\n", "id of the document", ""),
        ("qrels", "t.csv", "tweet_id,tweet_text,user_id\n1,words,2\n", "id of the document", ""),
        ("qrels", "x.json", '{"q": {"d": 1, "d": 2}}', "topic 'q', document 'd' … 1 and 2", ""),
        ("qrels", "x.json", '{"1": ["a"]}', "topic '1', document 'a': no grade", "objects such as"),
        ("qrels", "x.json", '{"1": [{"docno": "a"}]}', "topic '1', document 'a': no grade", "objects such as"),
        ("qrels", "x.json", '{"1": {"a": null}}', "topic '1', document 'a': no grade", "objects such as"),
        # runs
        ("run", "a.run", "\n# one\n1 Q0 d1 1 1 x\n1 Q0 d2 1 x x\n", "line 4: the score 'x'", "number"),
        ("run", "x.csv", "qid,docno,rank\nq,d1,0\nq,d2,-1\n", "line 3: '-1' … 'rank'", "rank from 1"),
        ("run", "x.csv", "qid,docno,rank\nq,d1,0\nq,d2,nan\n", "line 3: 'nan' … 'rank'", "rank from 1"),
        ("run", "x.json", '{"q": {"d": 1}, "q": {"e": 2}}', "topic 'q' … twice", ""),
        ("run", "x.json", '{"q": {"d": 1, "d": 2}}', "document 'd' … twice", ""),
        ("run", "x.json", '{"q": {"d": NaN}}', "score is not a number", ""),
        ("run", "x.json", '{"q": {"d": "x"}}', "x.json", "topic id, document id and a number"),
        ("run", "x.json", '{"q": {"d": {"rank": 1}}}', "'d' has [[\"rank\", 1]]", "object of documents"),
        ("run", "x.json", '{"q": 1}', "'q' has 1", "object of documents"),
        ("run", "x.json", '{"q": {"d": 1}', "line 1: broken JSON", ""),
        ("run", "x.json", '{"q": {"d": 1}} x', "Extra data", ""),
        ("run", "x.json", '{"q": [[1, 2, 3]]}', "no document with its value", ""),
        ("run", "x.json", "[1]", "item 1: a JSON int", "object"),
        ("run", "x.json", "[]", "empty list", ""),
        ("run", "x.json", "q1\td1\t12.5\n", "line 1: the rank '12.5'", "header: qid docid score"),
        ("run", "x.json", "q1\td1\t1\t12.5\n", "line 1: 4 columns", "6 (TREC) or 3 (MS MARCO) … qid docid rank score"),
        ("run", "x.json", "q1,d1,1.5\n", "line 1: 1 columns", "6 (TREC) or 3 (MS MARCO) … qid,docid,score"),
        ("run", "x.run", f"{START}\n# tag: x\n{END}\n1 Q0 a 1 1.5 t\n1 Q0 b 2 half t\n", "line 5: the score 'half'", "number"),
        # submissions to CheckThat! and iKAT
        ("run", "p.tsv", "post_id\tpreds\n16\td1 d2\n", "line 2", "post and list of documents, such as: 16<tab>"),
        ("run", "p.tsv", "post_id\tpreds\n16\t['a', 1.5]\n", "line 2", "post and list of documents"),
        ("run", "p.tsv", "post_id\tpreds\n16\t__import__('os')\n", "line 2", "post and list of documents"),
        ("run", "p.tsv", "post_id\tpreds\n16\t[" + "9" * 5000 + "]\n", "line 2", "post and list of documents"),
        ("run", "p.tsv", "post_id\tpreds\n16\t[0x" + "f" * 5000 + "]\n", "line 2", "post and list of documents"),
        ("run", "p.tsv", "post_id\tpreds\n16\t[True]\n", "line 2", "post and list of documents"),
        ("run", "p.tsv", "post_id\tpreds\n16\t['a']\n16\t['b']\n", "line 3: topic '16' … twice", ""),
        ("run", "p.tsv", "post_id\tpreds\n16\t['a', 'b', 'a']\n", "line 2: topic '16', document 'a'", ""),
        ("run", "r.jsonl", ikat(turn_id=7), "line 1: no 'turn_id'", "text"),
        ("run", "r.jsonl", ikat(references=["a"]), "line 1: 'references'", "object from passage to score"),
        ("run", "r.jsonl", ikat(references={"a": "high"}), "line 1: the score of 'a' is 'high'", "number"),
        ("run", "r.jsonl", answered("a"), "line 1: 'passage_provenance'", "objects"),
        ("run", "r.jsonl", answered({"score": 1}), "line 1", "'id' and 'score'"),
        ("run", "r.jsonl", answered({"id": "a", "score": 3}, {"id": "a", "score": 2}), "document 'a' … twice", ""),
        ("run", "r.json", '{"run_name": "r", "turns": 3}', "'turns'", "list"),
        # headers of runs
        ("metadata", "x.run", f"{START}\n# a: 1\n1 Q0 a 1 1.5 t\n", "line 3: the header has no end", ""),
        ("metadata", "x.run", f"{START}\n# a: 1\n", "line 3: the header has no end", ""),
        ("metadata", "x.run", f"{START}\n# a: [1\n{END}\n", "line 2: the header … YAML", ""),
        ("metadata", "x.run", f"{START}\n# - 1\n{END}\n", "the header … mapping", ""),
        ("metadata", "x.run", f"{START}\n# {'[' * 5000}\n{END}\n", "the header … YAML", ""),
    ],
)
def test_a_file_names_its_line_at_fault(
    tmp_path: Path, reader: str, name: str, content: str | bytes, names: str, remedy: str
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    message = check_error(lambda: READERS[reader](tmp_path / name), InputError, f"{tmp_path / name} … {names}", remedy)
    assert message.removeprefix(str(tmp_path / name))[:2] in (": ", ", ")
    assert str(tmp_path) not in message.removeprefix(str(tmp_path / name)).partition(";")[0]


JSONL, TABLE, TRIPLES = '{"_id": "1", "text": "a"}', "Nr;Tweet;cord_uid\n1;moon;d1\n", "q\ta\t1\n"
MTEB = '{"mteb_model_meta": {}, "eng": {"dev": {"q": {"d": 0.5}}, "test": {"q": {"d": 1}}}, "ces": {"test": {"r": {"d": 1}}}}'
TURNS = '[{"number": 1, "turn": [{"number": 1, "raw_utterance": "a"}]}]'


@each(
    ("reader", "content", "options", "error", "names", "remedy"),
    [
        ("corpus", "some words", {"format": "pdf"}, ParameterError, "'pdf'", "jsonl, ciff, claims"),
        ("corpus", JSONL, {"fomat": "jsonl"}, ParameterError, "read_corpus … 'fomat'", "'format'"),
        ("topics", JSONL, {"splt": "test"}, ParameterError, "read_topics … 'splt'", "'split'"),
        ("qrels", TRIPLES, {"group": True}, ParameterError, "read_qrels … 'group'", "'groups'"),
        ("run", TRIPLES, {"sep": ","}, ParameterError, "read_run … 'sep'", "format, encoding"),
        ("topics", JSONL, {"format": "yaml"}, ParameterError, "'yaml'", "jsonl"),
        ("qrels", TRIPLES, {"format": "msmarco"}, ParameterError, "'msmarco'", "trec, beir, claims, csv, json, jsonl"),
        ("run", TRIPLES, {"format": "beir"}, ParameterError, "'beir'", "trec, checkthat, csv, ikat, json, jsonl, msmarco"),
        ("qrels", TRIPLES, {"format": "trec"}, InputError, "line 1: 3 columns", "topic, group, document, grade"),
        ("run", TRIPLES, {"format": "trec"}, InputError, "line 1: 3 columns", "not 6"),
        ("corpus", JSONL, {"fields": {"body": "x"}}, ParameterError, "'body'", ""),
        ("corpus", JSONL, {"format": "text", "fields": {"text": "x"}}, ParameterError, "no named fields", ""),
        (
            "corpus",
            "key,Title,Text\n1,t,x\n",
            {"fields": {"id": "key", "title": "Titel"}},
            InputError,
            "line 1 … 'Titel'",
            "key, Title",
        ),
        (
            "corpus",
            '7,"a, b"\n8,c\n',
            {"format": "csv", "fields": {"id": "1", "text": "3"}},
            InputError,
            "line 1: … column 3",
            "the line has 2",
        ),
        ("corpus", JSONL, {"skip_bad": -1}, ParameterError, "skip_bad … -1", "from 0"),
        ("topics", TABLE, {"fields": {"id": "Nr", "text": "Tweets"}}, InputError, "line 1: … 'Tweets'", "Nr, Tweet, cord_uid"),
        ("topics", TURNS, {"fields": {"text": "x"}}, ParameterError, "'cast'", "manual() >> bm25()"),
        ("topics", "201:a\n202:b\n", {"fields": {"text": "x"}}, ParameterError, "'lines'", ""),
        ("topics", JSONL, {"fields": {"title": "x"}}, ParameterError, "'title'", "id and text"),
        (
            "topics",
            "<top><num>1</num><title>t</title></top>",
            {"fields": {"text": "summary"}},
            InputError,
            "'num', 'title'",
            "summary",
        ),
        ("run", MTEB, {"split": "x"}, ParameterError, "'x'", "eng/dev, eng/test, ces/test"),
        ("run", MTEB, {"split": "test"}, ParameterError, "eng/test, ces/test", "choose one"),
        ("topics", JSONL, {"split": "test"}, ParameterError, "'test' in a file", ""),
        ("qrels", TRIPLES, {"split": "test"}, ParameterError, "'test' in a file", ""),
        ("corpus", "1\ta\n", {"encoding": "nonsense"}, ParameterError, "encoding 'nonsense'", ""),
        ("corpus", "1\ta\n", {"encoding": "idna"}, ParameterError, "encoding 'idna'", ""),
        ("corpus", "1\ta\n", {"encoding": "hex"}, ParameterError, "encoding 'hex'", ""),
        ("corpus", "1\ta\n", {"encoding": "\0"}, ParameterError, "encoding '", ""),
        ("corpus", "1\ta\n", {"errors": "ignore"}, ParameterError, "errors … 'ignore'", "strict or replace"),
        ("corpus", b"1\ta\n2\tb\x81\n", {"encoding": "cp1252"}, InputError, "line 2: the byte 81 … cp1252", "--encoding NAME"),
        ("corpus", "1\ta\n2\tb\n".encode("utf-16")[:-1], {}, InputError, "line 2: the byte 0a … utf-16", ""),
        (
            "corpus",
            "<DOC><DOCNO>1</DOCNO><TEXT>x</TEXT></DOC>\n",
            {"fields": {"text": "BODYTEXT"}},
            InputError,
            "<BODYTEXT>",
            "",
        ),
    ],
)
def test_an_option_of_a_file_is_named_with_what_can_be_chosen(
    tmp_path: Path, reader: str, content: str | bytes, options: dict[str, Any], error: Any, names: str, remedy: str
) -> None:
    (tmp_path / "notes").write_bytes(content if isinstance(content, bytes) else content.encode())
    check_error(lambda: READERS[reader](tmp_path / "notes", **options), error, names, remedy)


def of_x(*docs: Any) -> Any:
    """Documents whose id is at x."""
    return read_corpus(docs, fields={"id": "x"})


@pytest.fixture(scope="module")
def beir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in BEIR's form with two splits; its folder of judgments has no queries."""
    folder = tmp_path_factory.mktemp("data") / "beir"
    (folder / "qrels").mkdir(parents=True)
    write_corpus({"d1": "red spring"}, folder / "corpus.jsonl.gz")
    write_topics({"q1": "spring"}, folder / "queries.jsonl")
    (folder.parent / "bare").mkdir()
    write_topics({"q1": "spring"}, folder.parent / "bare" / "queries.jsonl")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    return folder


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda folder: read_qrels(folder), ParameterError, "beir … dev, test", "--split NAME, or split="),
        (lambda folder: ft.evaluate({}, folder, "AP"), ParameterError, "beir … dev, test", "--split NAME, or split="),
        (lambda folder: read_topics(folder, split="train"), ParameterError, "beir … 'train'", "dev, test"),
        (lambda folder: ft.Topics.read(folder / "queries.jsonl", split="test"), ParameterError, "queries.jsonl … 'test'", ""),
        (lambda folder: ft.Qrels.of(folder / "queries.jsonl", split="test"), ParameterError, "queries.jsonl … 'test'", ""),
        (lambda folder: ft.Topics.read({}, split="test"), ParameterError, "split='test' … dict", "folder"),
        (lambda folder: ft.Qrels.of({}, split="test"), ParameterError, "split='test' … dict", "folder"),
        (lambda folder: read_corpus(folder.parent / "bare"), InputError, "bare: no corpus.jsonl or corpus.jsonl.gz", "BEIR"),
        (lambda folder: read_qrels(folder.parent / "bare"), InputError, "bare: … no judgments", "BEIR"),
        (lambda folder: read_topics(folder / "qrels"), InputError, "qrels: no queries.jsonl or queries.jsonl.gz", ""),
        (lambda folder: read_topics(folder, split="dev"), InputError, "'q1' … 'q2'", ""),
        (
            lambda folder: judged_topics(str(folder / "queries.jsonl"), str(folder / "qrels" / "test.tsv"), "dev"),
            ParameterError,
            "'dev'",
            "",
        ),
        (lambda folder: read_corpus(folder / "nothing.jsonl"), InputError, "nothing.jsonl", "no such file"),
    ],
)
def test_a_folder_names_the_part_or_split_at_fault(beir: Path, call: Any, error: Any, names: str, remedy: str) -> None:
    check_error(lambda: call(beir), error, names, remedy)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda: read_corpus([("1", "a")], encoding="cp1252"), ParameterError, "encoding='cp1252' … a list", "a file"),
        (lambda: read_corpus([("1", "a")], errors="replace"), ParameterError, "errors='replace' … a list", "a file"),
        (lambda: read_corpus([("1", "a")], format="csv"), ParameterError, "format='csv' … a list", "a file"),
        (lambda: corpus_of("sample:harbour", "tsv"), ParameterError, "sample:harbour: format='tsv' … a collection", "a file"),
        (lambda: read_corpus(read_corpus([("1", "a")]), fields={"id": "x"}), ParameterError, "IterableCorpus", ""),
        (lambda: list(of_x({"x": "1", "text": "a"}, ("1", "a"))), ParameterError, "item 2: a tuple", "fields"),
        (lambda: list(of_x({"x": "1", "text": "a"}, Doc("1", "a"))), ParameterError, "item 2: a Doc", "fields"),
        (lambda: list(of_x(("1", "a")).portions(10, 10)), ParameterError, "item 1: a tuple", "fields"),
        (lambda: list(of_x(Doc("1", "a")).portions(10, 10)), ParameterError, "item 1: a Doc", "fields"),
        (lambda: list(read_corpus([("1", "a"), 3])), InputError, "item 2: a int", ""),
        (lambda: list(read_corpus([{"text": "a"}])), InputError, "item 1: no id", ""),
        (lambda: read_corpus("corpus.jsonl"), InputError, "corpus.jsonl", "no such file or folder"),
        (lambda: list(read_corpus([{"id": "b", "text": "y", "x": object()}])), InputError, "item 1, document 'b': 'x'", ""),
        (lambda: list(read_corpus([Doc("b", "y", "", {"x": ENDLESS})])), InputError, "document 'b'", "nested too deeply"),
        (
            lambda: Topics.of([{"qid": "1", "text": "x"}, {"qid": "2", "y": 1}]),
            InputError,
            "item 2 … 'qid', 'y'",
            "text, query",
        ),
        (lambda: Topics.of([{}]), InputError, "item 1 … no id", "found nothing"),
        (lambda: Topics.of([{"qid": "1", "query": None}]), InputError, "item 1 … text of topic '1'", ""),
        (lambda: metadata_of(ft.Run.of({}), [1]), ParameterError, "list", ""),
    ],
)
def test_a_value_names_its_item_at_fault(call: Any, error: type[FontesError], names: str, remedy: str) -> None:
    check_error(call, error, names, remedy)


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
RUN = ft.Run.of({"1": {"a": 1.5}})


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda path: write_corpus([Doc("1", "", "", {"text": "x"})], path), InputError, "'text' is a field", ""),
        (lambda path: write_corpus([Doc("0", "x"), Doc("1", "", "", {"a": object()})], path), InputError, "'1' … JSON", ""),
        (lambda path: write_corpus([], path, format="tsv"), ParameterError, "'tsv'", "jsonl"),
        (lambda path: write_topics({}, path, format="tsv"), ParameterError, "'tsv'", "jsonl, cast"),
        (lambda path: write_topics({}, path, format="trec"), ParameterError, "'trec'", "jsonl, cast"),
        (lambda path: write_qrels({}, path, format="tsv"), ParameterError, "'tsv'", "trec"),
        (lambda path: write_run({}, path, format="tsv"), ParameterError, "'tsv'", "trec"),
        (lambda path: write_run({}, path, format="csv"), ParameterError, "'csv'", "trec"),
        (lambda path: write("index", {}, path), ParameterError, "'index'", "corpus, topics, qrels, run"),
        (lambda path: write_run({"q": {"a b": 1.0}}, path), InputError, "'a b' … white space", "--to parquet"),
        (lambda path: write_run({"q": {"": 1.0}}, path), InputError, "'' … white space", ""),
        (lambda path: write_run({"q": {"\u2003": 1.0, "a": 0.5}}, path), InputError, "white space", ""),
        (lambda path: write_run({"q 1": {"a": 1.0}}, path), InputError, "'q 1' … white space", ""),
        (lambda path: write_run({}, path, tag="my run"), ParameterError, "my run", "one word"),
        (
            lambda path: write_run(RUN, path, metadata={"a": {"b": object()}}),
            ParameterError,
            "metadata, a, b: … object",
            "lists",
        ),
        (lambda path: write_run(RUN, path, metadata={"a": [1.0, float("nan")]}), ParameterError, "metadata, a, 2: nan", ""),
        (lambda path: write_run(RUN, path, metadata=[1]), ParameterError, "metadata", "mapping"),
        (lambda path: write_run(RUN, path, format="msmarco", metadata={}), ParameterError, "'msmarco'", ""),
        (lambda path: write_qrels({"1": {"a b": 1}}, path), InputError, "'a b' … white space", ""),
        *(
            (lambda path, i=i: write_qrels({"1": {i: 1}}, path, "beir"), InputError, "columns", "")
            for i in ("a\tb", " a", "a\n", "")
        ),
        (lambda path: write_topics({"q1": "Who?"}, path, format="cast"), InputError, "topic 'q1'", "<conversation>_<turn>"),
        (lambda path: write_topics({"1_1": " "}, path, format="cast"), InputError, "topic '1_1' … empty", ""),
        (lambda path: write_topics([SECOND], path, format="cast"), InputError, "topic '1_2': turn 1", ""),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_no_file(
    tmp_path: Path, call: Any, error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tmp_path / "x"), error, names, remedy)
    assert list(tmp_path.iterdir()) == []


SECOND = ft.Topic("1_2", "Why?", turns=(Turn("Who?"), Turn("Why?")))
TEXTS = ["a cat sat", "a dog ran", "the cat ran"]


@each(
    ("columns", "names", "remedy"),
    [
        (
            {"id": ["a", "b", "c"], "text": TEXTS, "x": ["x", "y", object()]},
            "row 3, column 'x' … Python object",
            "leave it out",
        ),
        ({"id": ["a", "b", "c"], "text": TEXTS, "x": ["x", b"\xff", "y"]}, "row 2, column 'x' … bytes", "leave it out"),
        ({"id": ["a", None, "c"], "text": TEXTS}, "row 2: the id is null", ""),
        ({"paper_id": [4, 5], "text": TEXTS[:2]}, "no id … 'paper_id'", ""),
        ({"paper": ["a1", "a2", "a3"], "text": TEXTS}, "row 1: no id", "fields={'id': 'paper', 'text': 'text'} … names='_id'"),
        ({"paper": ["x", "y"], "text": TEXTS[:2], "when": [datetime.date(2020, 1, 1)] * 2}, "no id", "'id': 'paper'"),
        ({0: ["a"], 1: ["a cat sat"]}, "no id", "fields={'id': '0', 'text': '1'}"),
    ],
)
def test_a_data_frame_of_documents_names_its_row_and_column(columns: dict[Any, list[Any]], names: str, remedy: str) -> None:
    pd = pytest.importorskip("pandas")
    check_error(lambda: list(read_corpus(pd.DataFrame(columns))), InputError, names, remedy)


def test_names_and_labels_of_a_data_frame_that_occur_twice_are_named() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([["a", "b", "c"]], columns=["id", "text", "text"])
    check_error(lambda: list(read_corpus(frame)), InputError, "'text' in id, text, text", "")
    check_error(lambda: Topics.of(pd.Series(["x", None])), InputError, "item 2 … text of topic '1'", "")


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    packed = gzip.compress("".join(json.dumps({"_id": str(i), "text": str(i**9)}) + "\n" for i in range(9999)).encode())
    for name, content, problem in (("cut.jsonl.gz", packed[:-100], "cut off"), ("no.jsonl.gz", b"{}" + packed, "damaged")):
        (tmp_path / name).write_bytes(content)
        check_error(lambda name=name: list(read_corpus(tmp_path / name)), InputError, f"{name} … {problem}")  # type: ignore[misc]


def test_a_folder_names_its_file_at_fault(tmp_path: Path) -> None:
    check_error(lambda: read_corpus(tmp_path), InputError, str(tmp_path), "no files")
    (tmp_path / "a.jsonl").write_text(JSONL)
    (tmp_path / "b.jsonl").write_text("oops")
    check_error(lambda: list(read_corpus(tmp_path)), InputError, "b.jsonl, line 1 … broken JSON")

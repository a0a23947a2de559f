"""Claims with their evidence, in the forms of FEVER, CTKFacts and SciFact."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Fontes

import fontes as ft
from fontes.formats import read_corpus, read_qrels, read_topics, write_qrels, write_topics

# The example of https://fever.ai/dataset/fever.html, with numbers in the places of the annotations.
OLIVER = {
    "id": 62037,
    "verifiable": "VERIFIABLE",
    "label": "SUPPORTS",
    "claim": "Oliver Reed was a film actor.",
    "evidence": [
        [[1, 11, "Oliver_Reed", 0]],
        [[1, 12, "Oliver_Reed", 3], [1, 12, "Gladiator_-LRB-2000_film-RRB-", 0]],
        [[1, 13, "Oliver_Reed", 2], [1, 13, "Castaway_-LRB-film-RRB-", 0]],
        [[1, 14, "Oliver_Reed", 1]],
    ],
}
HENRI = {"id": 137637, "label": "NOT ENOUGH INFO", "claim": "Henri built a palace.", "evidence": [[[2, None, None, None]]]}
QUOTED = [
    {"id": 1, "label": "NOT ENOUGH INFO", "claim": "Loď připlula.", "evidence": [["Loď stojí na břehu."]]},
    {
        "id": 2,
        "label": "REFUTES",
        "claim": "Přístav je zavřený.",
        "evidence": [
            ["Přístav je otevřený.", "Loď stojí na břehu."],
            ["Loď stojí na břehu.", "Přístav je otevřený."],
            ["Přístav žije."],
        ],
    },
]
SCIFACT = [
    {"id": 3, "claim": "Statins help.", "evidence": {}, "cited_doc_ids": [31]},
    {
        "id": 4,
        "claim": "Zinc helps.",
        "evidence": {"41": [{"sentences": [2, 5], "label": "SUPPORT"}, {"sentences": [7], "label": "SUPPORT"}]},
        "cited_doc_ids": [41, 42],
    },
]
TABLE = """id,claim,evidence_doc_id,evidence_label,evidence_sentences,cited_doc_ids
3,Statins help.,,,[],[31]
4,"Zinc helps.",41,SUPPORT,[2 5],[41 42]
4,"Zinc helps.",41,SUPPORT,[7],[41 42]
"""


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_fevers_evidence_sets_are_groups_of_pages_and_of_single_pages(tmp_path: Path) -> None:
    qrels = read_qrels(lines(tmp_path / "train.jsonl", OLIVER, HENRI))
    assert list(qrels) == ["62037"]
    assert set(qrels["62037"].values()) == {1}
    gladiator, castaway = {"Oliver_Reed", "Gladiator_-LRB-2000_film-RRB-"}, {"Oliver_Reed", "Castaway_-LRB-film-RRB-"}
    assert qrels.groups("62037") == [{"Oliver_Reed"}, gladiator, castaway]


def test_a_claim_is_a_topic_with_label_and_evidence_as_metadata(tmp_path: Path) -> None:
    topics = read_topics(lines(tmp_path / "train.jsonl", OLIVER, HENRI))
    assert [topic.text for topic in topics.values()] == ["Oliver Reed was a film actor.", "Henri built a palace."]
    assert topics["137637"].metadata == {"label": "NOT ENOUGH INFO"}
    assert topics["62037"].metadata["label"] == "SUPPORTS"
    assert topics["62037"].metadata["evidence"][1] == [["Oliver_Reed", 3], ["Gladiator_-LRB-2000_film-RRB-", 0]]


def test_quoted_paragraphs_are_counted_as_the_file_quotes_them_and_are_a_corpus(tmp_path: Path) -> None:
    path = lines(tmp_path / "claims.jsonl", *QUOTED)
    assert {doc.id: doc.text for doc in read_corpus(path)} == {
        "e0": "Loď stojí na břehu.",
        "e1": "Přístav je otevřený.",
        "e2": "Přístav žije.",
    }
    qrels = read_qrels(path)
    assert qrels.to_dict() == {"2": {"e1": 1, "e0": 1, "e2": 1}}
    assert qrels.groups("2") == [{"e0", "e1"}, {"e2"}]
    assert read_topics(path)["2"].metadata == {"label": "REFUTES"}


def test_a_paragraph_without_white_space_is_an_id(tmp_path: Path) -> None:
    row = {"id": 7, "label": "SUPPORTS", "claim": "A.", "evidence": [["T2008_3", "T2008_4"], ["T2008_9"]]}
    assert read_qrels(lines(tmp_path / "claims.jsonl", row)).groups("7") == [{"T2008_3", "T2008_4"}, {"T2008_9"}]


def test_scifact_reads_alike_from_its_own_lines_from_rows_and_from_a_table(tmp_path: Path) -> None:
    own = lines(tmp_path / "claims_train.jsonl", *SCIFACT)
    table = tmp_path / "claims_train.csv"
    table.write_text(TABLE)
    apart = {"evidence_doc_id": "41", "evidence_label": "SUPPORT", "cited_doc_ids": [41, 42]}
    rows = lines(
        tmp_path / "rows.jsonl",
        {
            "id": 3,
            "claim": "Statins help.",
            "evidence_doc_id": "",
            "evidence_label": "",
            "evidence_sentences": [],
            "cited_doc_ids": [31],
        },
        {"id": 4, "claim": "Zinc helps.", "evidence_sentences": [2, 5], **apart},
        {"id": 4, "claim": "Zinc helps.", "evidence_sentences": [7], **apart},
    )
    for path in (own, table, rows):
        assert read_qrels(path).to_dict() == {"3": {"31": 1}, "4": {"41": 2, "42": 1}}
        assert read_qrels(path).groups("4") == [{"41"}, {"42"}]
        topics = read_topics(path)
        assert topics["3"].metadata == {}
        assert topics["4"].metadata == {"label": "SUPPORT", "evidence": [[["41", 2], ["41", 5]], [["41", 7]]]}


def test_metadata_and_groups_are_written_and_read_back(tmp_path: Path) -> None:
    path = lines(tmp_path / "train.jsonl", OLIVER)
    write_topics(read_topics(path), tmp_path / "queries.jsonl")
    write_qrels(read_qrels(path), tmp_path / "qrels.txt")
    assert read_topics(tmp_path / "queries.jsonl") == read_topics(path)
    assert read_qrels(tmp_path / "qrels.txt", groups=True).groups("62037") == read_qrels(path).groups("62037")


def test_every_command_takes_a_file_of_claims_as_corpus_topics_and_judgments(tmp_path: Path, fontes: Fontes) -> None:
    row = {"id": 5, "label": "SUPPORTS", "claim": "Přístav a loď.", "evidence": [["Přístav žije.", "Stojí tam loď."]]}
    claims, run, index = lines(tmp_path / "claims.jsonl", row), tmp_path / "bm25.run", tmp_path / "x.index"
    assert fontes("index", claims, "-o", index)[0] == 0
    assert fontes("search", index, "--topics", claims, "-o", run)[0] == 0
    status, output, _ = fontes("eval", claims, run, "Complete@1", "Complete@2", "--json")
    assert status == 0
    assert json.loads(output)["measures"] == {"Complete@1": 0.0, "Complete@2": 1.0}


def test_rewriters_keep_the_metadata_of_a_topic(tmp_path: Path) -> None:
    topic = ft.Topic("1", "a claim", metadata={"label": "SUPPORT"})
    index = ft.Index.build([ft.Doc("a", "a claim of a port")], tmp_path / "x.index")
    rewritten = (index.bm25() >> index.rm3())(ft.Topics([topic]))
    assert rewritten["1"].metadata == {"label": "SUPPORT"}


def test_ctkfacts_has_the_paragraphs_and_judgments_that_were_made_of_it_by_others(shared: Path) -> None:
    folder = shared / "ctkfacts_cs"
    assert list(read_corpus(folder / "claims.jsonl")) == list(read_corpus(folder / "corpus.jsonl"))
    qrels = read_qrels(folder / "claims.jsonl")
    assert qrels.to_dict() == read_qrels(folder).to_dict()
    rows = [json.loads(line) for line in (folder / "claims.jsonl").read_text(encoding="utf-8").splitlines()]
    sets = [frozenset(one) for row in rows if row["label"] != "NOT ENOUGH INFO" for one in row["evidence"]]
    assert sum(len(one) > 1 for topic in qrels for one in qrels.groups(topic)) == sum(len(one) > 1 for one in sets)


@pytest.mark.parametrize(("split", "file"), [("train", "claims_train.csv"), ("test", "claims_validation.csv")])
def test_scifact_has_the_topics_and_relevant_documents_of_beir(shared: Path, split: str, file: str) -> None:
    path = shared / "scifact" / file
    beir = read_qrels(shared / "scifact", split=split)
    assert {topic: set(grades) for topic, grades in read_qrels(path).items()} == {
        topic: set(grades) for topic, grades in beir.items()
    }
    own, texts = read_topics(path), read_topics(shared / "scifact", split=split)
    assert {t.id: t.text.split() for t in own.values()} == {t.id: t.text.split() for t in texts.values()}

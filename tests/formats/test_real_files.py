import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.each import each

from fontes.datasets import dataset
from fontes.formats import read_corpus, read_qrels, read_run, read_topics, write_qrels, write_run, write_topics

COLLECTIONS = ("checkthat20_task2", "cisi", "cranfield", "ctkfacts_cs", "med", "npl", "scifact", "xquad_en")
CAST = {"cast2019": (479, 50), "cast2020": (216, 25), "cast2021": (239, 26), "cast2022": (205, 18)}


@each("name", [*COLLECTIONS, *CAST])
def test_collections_have_as_many_documents_topics_and_judgments_as_they_say(shared: Path, name: str) -> None:
    folder = shared / name
    stats = json.loads((folder / "stats.json").read_text())
    if "docs" in stats:
        corpus = read_corpus(folder / "corpus.jsonl")
        assert len({doc.id for doc in corpus}) == stats["docs"]
        assert corpus.position == corpus.size
    assert len(read_topics(folder / "queries.jsonl")) == stats["queries"]
    for split, counts in stats.get("qrels", {}).items():
        if not (folder / "qrels" / f"{split}.tsv").exists():
            continue
        qrels = read_qrels(folder / "qrels" / f"{split}.tsv")
        grades = [grade for topic in qrels.values() for grade in topic.values()]
        assert (len(qrels), len(grades), sum(g > 0 for g in grades)) == (counts["q"], counts["n"], counts["pos"])
        if "docs" in stats and counts["doc_ok%"] == 100:
            assert len(dataset(folder).topics(split)) == counts["q"]


def test_the_packed_passages_are_all_read(shared: Path) -> None:
    corpus = read_corpus(shared / "wikipedia_passages" / "corpus.jsonl.gz")
    assert sum(1 for _ in corpus) == 207_168
    assert corpus.position == corpus.size
    assert len(read_topics(shared / "wikipedia_passages" / "queries.jsonl")) == 1_803


@each("name", CAST)
def test_cast_turns_carry_the_raw_utterances_and_the_conversation(shared: Path, name: str) -> None:
    turns = read_topics(shared / name / "turns.jsonl")
    raw = read_topics(shared / name / "queries.jsonl")
    assert {t.id: " ".join(t.text.split()) for t in turns.values()} == {t.id: t.text for t in raw.values()}
    assert (len(turns), len({t.split("_")[0] for t in turns})) == CAST[name]
    for topic in turns.values():
        assert topic.turns[-1].text == topic.text
        number = topic.id.split("_")[1]
        assert "-" in number or len(topic.turns) == int(number)
    for kind in ("manual", "automatic"):
        path = shared / name / f"queries_{kind}.jsonl"
        if path.exists():
            assert {t.id: getattr(t.turns[-1], kind) for t in turns.values()} == {
                t.id: t.text for t in read_topics(path).values()
            }


def test_cast_2021_answers_are_the_passages_of_its_corpus(shared: Path) -> None:
    passages = {doc.id: doc.text for doc in read_corpus(shared / "cast2021" / "corpus.jsonl")}
    turns = [topic.turns[-1] for topic in read_topics(shared / "cast2021" / "turns.jsonl").values()]
    assert {turn.answer_id for turn in turns} == set(passages)


def test_the_cast_2022_tree_has_the_topics_of_the_turns_and_longer_conversations(shared: Path) -> None:
    tree = read_topics(shared / "cast2022" / "topics_tree.json")
    turns = read_topics(shared / "cast2022" / "turns.jsonl")
    assert {t.id: t.text for t in tree.values()} == {t.id: t.text for t in turns.values()}
    assert [t.text for t in tree["132_2-3"].turns] == [tree[f"132_{n}"].text for n in ("1-1", "1-3", "2-1", "2-3")]
    assert sum(len(tree[t].turns) > len(turns[t].turns) for t in tree) == 112
    # The two files chose different ones of two answers to 142_1-3; and the tree has no automatic rewrites.
    assert [t for t in tree if tree[t].turns[-1] != replace(turns[t].turns[-1], automatic="")] == ["142_1-3"]


def test_the_other_checkthat_topics_and_qrels_are_read(shared: Path) -> None:
    folder = shared / "checkthat25_4b"
    topics = read_topics(folder / "queries.jsonl")
    assert len(topics) == 15_699
    for split, count in (("train", 12_853), ("dev", 1_400), ("test", 1_446)):
        assert len(read_qrels(folder / "qrels" / f"{split}.tsv")) == count


@pytest.mark.slow
def test_real_runs_read_back_the_same_and_are_written_byte_for_byte_the_same(shared: Path, tmp_path: Path) -> None:
    paths = sorted([*(shared / "cast2021" / "baselines").glob("*org*"), *(shared / "checkthat25_4b" / "runs").iterdir()])
    assert len(paths) == 16
    for path in paths:
        run = read_run(path)
        assert run.rows == path.read_bytes().count(b"\n")
        write_run(run, tmp_path / "a.run")
        again = read_run(tmp_path / "a.run")
        write_run(again, tmp_path / "b.run")
        assert again == run
        assert (tmp_path / "a.run").read_bytes() == (tmp_path / "b.run").read_bytes()


def test_real_topics_and_qrels_read_back_the_same(shared: Path, tmp_path: Path) -> None:
    for path in (shared / "cast2021" / "turns.jsonl", shared / "ctkfacts_cs" / "queries.jsonl"):
        topics = read_topics(path)
        write_topics(topics, tmp_path / "t.jsonl")
        assert list(read_topics(tmp_path / "t.jsonl").values()) == list(topics.values())
    qrels = read_qrels(shared / "cast2019" / "qrels" / "test.tsv")
    write_qrels(qrels, tmp_path / "q")
    assert read_qrels(tmp_path / "q").to_dict() == qrels.to_dict()


PUBLISHED = {"dev": (0.552, 0.708), "test": (0.431, 0.683)}  # MRR@5 of BM25 and of SciBERT, computed by others


@each("name", ["tweets.tsv", "tweets.csv"])
@each("split", PUBLISHED)
def test_the_tweets_of_checkthat_with_their_papers_are_topics_and_judgments(shared, tmp_path, fontes, split, name) -> None:
    folder = shared / "checkthat25_4b"
    topics, qrels = read_topics(folder, split=split), read_qrels(folder, split=split)
    with (tmp_path / name).open("w", newline="") as file:  # as the organisers distribute them
        table = csv.writer(file, delimiter="\t" if name.endswith("tsv") else ";")
        table.writerow(["post_id", "tweet_text", "cord_uid"])
        table.writerows([topic, topics[topic].text, paper] for topic in topics for paper in qrels[topic])
    read = read_topics(tmp_path / name)
    assert {t.id: t.text for t in read.values()} == {t.id: t.text.strip() for t in topics.values()}
    for system, figure in zip(("BM25", "SciBERT"), PUBLISHED[split], strict=True):
        run = folder / "runs" / f"{split}.leon_predictions_{system}_TOP10.trec"
        code, out, _ = fontes("eval", tmp_path / name, run, "RR@5", "--json")
        assert (code, round(json.loads(out)["measures"]["RR@5"], 3)) == (0, figure)


def test_a_folder_gives_the_published_figures_as_collection_topics_and_judgments(shared, tmp_path, fontes) -> None:
    folder, index, run = shared / "cranfield", tmp_path / "index", tmp_path / "run"
    assert fontes("index", folder, "-o", index)[0] == 0
    pipeline = "bm25(lengths='lucene') % 1000"
    assert fontes("search", index, "--topics", folder, "--split", "test", "--pipeline", pipeline, "-o", run)[0] == 0
    code, out, _ = fontes("eval", folder, run, "nDCG@10", "AP", "R@100", "RR@10", "P@5", "--json")
    pyserini = [0.3654, 0.2879, 0.7224, 0.5078, 0.3093]
    assert (code, [round(value, 4) for value in json.loads(out)["measures"].values()]) == (0, pyserini)

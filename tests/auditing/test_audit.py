"""`audit`: each line on a small case with exact numbers."""

import json
import math
import random

import pytest

import fontes as ft
from fontes.auditing import AuditReport
from fontes.core import Doc, Qrels, Run, Topics
from fontes.measures.ties import TiedScores
from fontes.train import leakage
from fontes.train.duplicates import CopySearch, plain_text

LONG = "limestone dissolves slowly in rain water that carries carbon dioxide from the soil above the cave"


def scores_of(report: AuditReport, line: str, measure: str) -> dict[str, float]:
    (parsed,) = ft.measures.names.parse_all(measure)
    return {version: round(means[parsed], 4) for version, means in report[line].scores.items()}


def test_equal_scores_are_ordered_in_the_best_and_the_worst_way_and_at_random() -> None:
    run, qrels = {"1": {"a": 1.0, "b": 1.0}, "2": {"a": 2.0, "b": 1.0}}, {"1": {"a": 1, "b": 0}, "2": {"a": 1}}
    report = ft.audit(run, qrels, measures="RR")
    assert report.to_dict()["score"] == {"RR": 0.75}
    scores = scores_of(report, "ties", "RR")
    assert (scores["relevant first"], scores["relevant last"]) == (1.0, 0.75)
    assert abs(scores["expected"] - 0.875) < 0.03  # 100 orders
    assert report["ties"].topics == ("1",)
    assert scores == scores_of(ft.audit(run, qrels, measures="RR"), "ties", "RR")


def test_a_constant_scorer_is_found() -> None:
    docs = [f"d{number:02}" for number in range(10)]
    run = {topic: dict.fromkeys(docs, 1.0) for topic in "123"}
    qrels = {topic: {"d09": 1} for topic in "123"}  # the first of equal scores in Fontes' and trec_eval's order
    report = ft.audit(run, qrels, measures="RR")
    assert report.to_dict()["score"] == {"RR": 1.0}
    assert scores_of(report, "ties", "RR")["relevant last"] == 0.1
    expected = sum(1 / rank for rank in range(1, 11)) / 10
    assert abs(scores_of(report, "ties", "RR")["expected"] - expected) < 0.05
    assert "all scores of a topic are equal in 3 topics, which ranks nothing" in report["ties"].text


def test_orders_of_equal_scores_bound_every_order() -> None:
    rng = random.Random(3)
    docs = [f"d{number}" for number in range(12)]
    for _ in range(20):
        run = {topic: {d: float(rng.randint(1, 3)) for d in rng.sample(docs, 8)} for topic in "123"}
        qrels = Qrels.of({topic: {d: rng.randint(0, 2) for d in rng.sample(docs, 5)} for topic in "123"})
        tied = TiedScores(Run.of(run), qrels)
        for measure in (ft.nDCG @ 5, ft.AP, ft.RR, ft.P @ 3):
            best, worst = measure.score(tied.best()), measure.score(tied.worst())
            for epsilons in ({d: rng.random() / 1000 for d in docs} for _ in range(5)):
                other = {topic: {d: score + epsilons[d] for d, score in scores.items()} for topic, scores in run.items()}
                values = ft.evaluate(other, qrels, measure).array(measure)
                assert (worst <= values + 1e-12).all()
                assert (values <= best + 1e-12).all()


def test_documents_that_are_the_topic_by_id_are_left_out() -> None:
    run = {"a": {"a": 3.0, "b": 2.0}, "b": {"b": 3.0, "a": 2.0}}
    report = ft.audit(run, {"a": {"b": 1}, "b": {"a": 1}}, measures="RR")
    assert scores_of(report, "the topic itself", "RR") == {"left out": 1.0}
    assert report["the topic itself"].topics == ("a", "b")
    judged = ft.audit(run, {"a": {"a": 1, "b": 1}, "b": {"b": 0, "a": 1}}, measures="P@1")
    assert judged.to_dict()["score"] == {"P@1": 0.5}
    assert "judged relevant in 1" in judged["the topic itself"].text


def test_texts_show_which_equal_ids_are_chance_and_which_documents_repeat_a_topic() -> None:
    run = {"1": {"1": 3.0, "2": 2.0}, "2": {"9": 3.0, "1": 2.0}}
    qrels = {"1": {"2": 1}, "2": {"1": 1}}
    topics = {"1": "Where does karst water flow?", "2": "caves of the north"}
    corpus = [Doc("1", "a shop sells bread"), Doc("2", "springs"), Doc("9", "Caves of the North.")]
    report = ft.audit(run, qrels, topics=topics, corpus=corpus, measures="RR")
    assert report["the topic itself"].topics == ("2",)
    assert "2 topics with no more than the id of a document" in report["the topic itself"].text
    assert scores_of(report, "the topic itself", "RR") == {"left out": 0.75}
    report = ft.audit({"1": {"2": 3.0, "1": 2.0}, "2": {"9": 3.0}}, qrels, measures="RR")
    assert "1 topic with the id of a document, by chance or not" in report["the topic itself"].text


def test_a_leaked_training_set_is_found() -> None:
    topics = {"1": "where do rivers vanish in karst", "2": "what is a doline", "3": "how deep are the caves of Slovenia"}
    qrels = {"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}}
    run = {"1": {"a": 1.0}, "2": {"b": 1.0}, "3": {"x": 1.0}}
    training = {"9": "Where do rivers vanish in karst?", "8": "something else"}, {"9": {"z": 1}, "8": {"b": 1, "c": 0}}
    report = ft.audit(run, qrels, topics=topics, train=training, measures="RR")
    finding = report["training data"]
    assert (finding.topics, finding.examples) == (("1", "2"), ("1 = 9 (1.00)",))
    versions = {"without texts (1)": 0.5, "without texts and documents (2)": 0.0}
    assert scores_of(report, "training data", "RR") == versions
    assert ft.audit(run, qrels, train=Topics.of({"7": "any"}))["training data"].topics == ()
    assert "texts of topics unknown" in ft.audit(run, qrels, train=training)["training data"].text


def test_near_copies_of_relevant_documents_in_the_training_data_are_found() -> None:
    run, qrels = {"1": {"a": 1.0}}, {"1": {"a": 1}}
    corpus = [Doc("a", LONG), Doc("b", LONG.replace("slowly", "slow")), Doc("c", "bread")]
    report = ft.audit(run, qrels, corpus=corpus, train=Qrels.of({"5": {"b": 1}}))
    assert report["training data"].topics == ("1",)
    assert ft.audit(run, qrels, corpus=corpus, train=Qrels.of({"5": {"c": 1}}))["training data"].topics == ()


def test_training_data_are_read_from_files_of_each_kind(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run, qrels, topics = {"1": {"a": 1.0}}, {"1": {"a": 1}}, {"1": "where do rivers vanish"}
    example = {"topic": "9", "query": "other", "positive": {"id": "z", "text": LONG}, "negatives": []}
    (tmp_path / "examples.jsonl").write_text(json.dumps(example) + "\n")
    (tmp_path / "train.qrels").write_text("9 0 a 1\n")
    (tmp_path / "queries.tsv").write_text("9\twhere do rivers vanish\n8\tanother\n")
    for name, corpus, count in (("examples.jsonl", [Doc("a", LONG)], 1), ("train.qrels", None, 1), ("queries.tsv", None, 1)):
        report = ft.audit(run, qrels, topics=topics, corpus=corpus, train=name)
        assert len(report["training data"].topics) == count, name
    (tmp_path / "notes.bin").write_bytes(b"\x00\x01")
    with pytest.raises(ft.FontesError, match="neither examples of fontes mine, nor topics, nor judgments"):
        ft.audit(run, qrels, train=str(tmp_path / "notes.bin"))


def test_near_copies_judged_differently_count_as_one_document() -> None:
    corpus = [Doc("a", LONG), Doc("b", LONG.upper()), Doc("c", LONG.replace("slowly", "slow")), Doc("d", "bread and butter")]
    run, qrels = {"1": {"c": 3.0, "d": 2.0, "a": 1.0}, "2": {"d": 1.0}}, {"1": {"a": 2, "c": 0}, "2": {"d": 1}}
    report = ft.audit(run, qrels, corpus=corpus, measures="RR")
    finding = report["near copies"]
    assert finding.topics == ("1",)
    assert sorted(finding.examples[0].removeprefix("1: ").split(" = ")) == ["a (grade 2)", "b (not judged)", "c (grade 0)"]
    assert scores_of(report, "near copies", "RR") == {"one of each": 1.0}
    assert ft.audit(run, qrels, corpus=corpus[::3])["near copies"].topics == ()


def test_near_copies_are_those_of_leakage() -> None:
    rng = random.Random(7)
    words = [f"word{number}" for number in range(30)] + ["a", "of", "die", "水", "é"]
    texts = [" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(60)]
    for text in texts[:40]:
        changed = list(text)
        for _ in range(rng.randint(0, 3)):
            if changed:
                changed[rng.randrange(len(changed))] = rng.choice("xyz ")
        texts.append("".join(changed))
    few, many = texts[:50], texts[50:]
    for near in (0.5, 0.8, 1.0):
        search = CopySearch({str(i): plain_text(text) for i, text in enumerate(few)}, near)
        pairs = {(key, str(j)) for j, text in enumerate(many) for key in search(plain_text(text))}
        train = Topics(ft.Topic(str(j), text) for j, text in enumerate(many))
        shared = leakage(train, Topics(ft.Topic(str(i), text) for i, text in enumerate(few)), near)
        expected = {(pair.id, pair.of) for pair in (*shared.same, *shared.near)}
        assert pairs == {pair for pair in expected if plain_text(few[int(pair[0])])}


def test_unjudged_documents_bound_the_score() -> None:
    run, qrels = {"1": {"x": 3.0, "a": 2.0, "y": 1.0}, "2": {"b": 1.0}}, {"1": {"a": 1}, "2": {"b": 1}}
    report = ft.audit(run, qrels, measures="P@2,RR")
    assert report["unjudged"].topics == ("1",)
    assert report["unjudged"].text.startswith("33.3% of the first 2 documents")
    assert scores_of(report, "unjudged", "P@2") == {"all relevant": 0.75, "left out": 0.5}
    assert scores_of(report, "unjudged", "RR") == {"all relevant": 1.0, "left out": 1.0}
    assert ft.audit({"1": {"a": 1.0}}, qrels)["unjudged"].text == "all of the first 100 documents are judged"


def test_a_run_without_documents_is_not_said_to_be_judged() -> None:
    report = ft.audit({"1": {}}, {"1": {"a": 1}}, measures="RR")
    assert str(report["unjudged"]) == "the run has no documents of judged topics"


def test_topics_of_another_collection_are_refused() -> None:
    with pytest.raises(ft.FontesError, match="topics are such as 'q9', those of the judgments such as '1';"):
        ft.audit({"1": {"a": 1.0}}, {"1": {"a": 1}}, topics={"q9": LONG})


def test_numbers_of_one_are_said_in_the_singular_and_counts_stay_whole() -> None:
    run, qrels, topics = {"1": {"a": 1.0, "b": 1.0}}, {"1": {"a": 1, "c": 1}}, {"1": LONG}
    report = ft.audit(run, qrels, corpus=[("a", "x"), ("b", "y")], topics=topics, train=topics, measures=["RR", "NumRelRet"])
    assert report["missing documents"].text == "the collection lacks 1 judged document (1 relevant) of 1 topic"
    assert report["training data"].text.startswith("the training data have the text of 1 topic (1 equal,")
    assert report["ties"].scores["expected"][ft.measures.names.parse_all("NumRelRet")[0]] == 1


def test_the_score_by_people_alone_leaves_out_the_judgments_of_a_machine() -> None:
    run = {"1": {"a": 2.0, "b": 1.0}, "2": {"c": 1.0}}
    qrels = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
    report = ft.audit(run, qrels, machine={"1": {"a": 1, "b": 0}, "2": {"c": 1}}, measures="RR")
    assert report["machine"].text == "2 of 3 judgments are the machine's, all of those of 1 topic"
    assert report["machine"].topics == ("1", "2")
    assert scores_of(report, "machine", "RR") == {"people alone": 0.5}  # the second topic has no judgment by people


def test_judged_documents_that_the_collection_lacks_are_found() -> None:
    run, qrels = {"1": {"a": 1.0}, "2": {"a": 1.0}}, {"1": {"a": 1, "x": 1}, "2": {"y": 1}}
    report = ft.audit(run, qrels, corpus=[Doc("a", "text")], measures="R@10")
    finding = report["missing documents"]
    assert (finding.topics, finding.examples) == (("1", "2"), ("1: x", "2: y"))
    assert scores_of(report, "missing documents", "R@10") == {"without them": 1.0}


def test_a_run_of_several_tags_or_depths_is_found(tmp_path) -> None:
    tags, sizes = ["one", "one", "one", "two", "one", "one"], [12, 12, 12, 12, 20, 20]
    lines = [f"{topic} Q0 d{rank} {rank} {30 - rank} {tags[topic]}" for topic, size in enumerate(sizes) for rank in range(size)]
    (tmp_path / "mixed.run").write_text("\n".join(lines) + "\n")
    qrels = {str(topic): {"d0": int(topic < 3), "d15": 1} for topic in range(6)}
    report = ft.audit(str(tmp_path / "mixed.run"), qrels, measures="R")
    assert report["tags"].text == "2 tags in one run: one (5 topics), two (1 topic)"
    assert report["tags"].topics == ("3",)
    assert report["depths"].text == "topics are cut at different depths: 12 (4 topics), 20 (2 topics)"
    assert report["depths"].topics == ("4", "5")
    assert scores_of(report, "depths", "R") == {"cut at 12": 0.25}
    assert report.to_dict()["score"]["R"] > 0.25


def test_a_collection_alone_is_audited() -> None:
    report = ft.audit(None, {"1": {"a": 1}}, topics={"1": "karst"}, corpus=[Doc("a", LONG), Doc("b", LONG)])
    assert list(report) == ["the topic itself", "training data", "near copies", "machine", "missing documents"]
    assert report["near copies"].topics == ("1",)
    assert report["near copies"].scores == {}
    assert str(report).splitlines()[2].split() == ["near", "copies", "1"]
    assert report.to_columns()["topics"] == [1, 1]


PEERS = {  # printed by pytrec_eval-terrier 0.5.11, BEIR 2.2.0 and ir_measures 0.4.3 for the case below
    "pytrec_eval": {"nDCG@3": 0.2776, "AP": 0.2594, "AP@3": 0.1875, "P@3": 0.1667, "R@3": 0.375, "RR": 0.3125, "RR@3": None},
    "BEIR": {"nDCG@3": 0.3478, "AP": None, "AP@3": 0.25, "P@3": 0.1667, "R@3": 0.375, "RR": None, "RR@3": None},
    "ir_measures": {"nDCG@3": 0.2221, "AP": 0.2075, "AP@3": 0.15, "P@3": 0.1333, "R@3": 0.3, "RR": 0.25, "RR@3": 0.3},
}
RANX = dict.fromkeys(("nDCG@3", "AP", "AP@3", "RR", "RR@3")) | {"P@3": 0.1333, "R@3": 0.3}  # the file decides the others
DEFINITIONS = {
    "nDCG, exponential gain": {"nDCG@3": 0.2304},
    "AP over the relevant found": {"AP": 0.2767, "AP@3": 0.2},
    "P over the results, where fewer than k": {"P@3": 0.1667},
    "RR": {"RR@3": 0.25},
}


def test_other_tools_and_definitions_give_the_figures_that_they_print() -> None:
    qrels = {"1": {"a": 2, "b": 1}, "2": {"a": 1}, "3": {"c": 0}, "4": {"d": 1, "e": 2, "f": 1, "g": 1}, "5": {"a": 1}}
    run = {
        "1": {"1": 9.0, "a": 8.0, "x": 7.0},  # the document with the topic's id
        "3": {"c": 1.0},  # a topic without a relevant document; topic 2 has no results
        "4": {"x": 5.0, "y": 4.5, "z": 4.2, "d": 4.0, "e": 3.0, "f": 2.0},
        "5": {"c": 2.0, "a": 2.0},  # equal scores
    }
    report = ft.audit(run, qrels, measures="nDCG@3,AP,AP@3,P@3,R@3,RR,RR@3")
    finding = report["other tools"]
    assert finding.topics == ("2", "3")
    versions = report.to_dict()["lines"]["other tools"]["scores"]
    for name, figures in PEERS.items():
        assert {m: v if v is None else round(v, 4) for m, v in versions[name].items()} == figures, name
    for name, figures in DEFINITIONS.items():
        assert {m: round(v, 4) for m, v in versions[name].items()} == figures, name
    assert versions["over topics with results"]["P@3"] == pytest.approx(1 / 6)
    assert {m: v if v is None else round(v, 4) for m, v in versions["ranx"].items()} == RANX
    assert "1 topic without results count 0; 1 topic without a relevant document count 0" in finding.text


def test_recall_is_also_given_over_the_most_that_k_documents_can_hold() -> None:
    run, qrels = {"1": {"a": 3.0, "b": 2.0}}, {"1": dict.fromkeys("abcd", 1)}
    report = ft.audit(run, qrels, measures="R@2")
    assert scores_of(report, "other tools", "R@2") == {"R over min(k, relevant)": 1.0}
    same = ft.audit(run, qrels, measures="RR")["other tools"]
    assert same.text == "pytrec_eval, ranx, BEIR, ir_measures print the same"


def test_a_report_has_the_forms_of_other_reports(tmp_path) -> None:
    report = ft.audit({"1": {"a": 1.0, "b": 1.0}}, {"1": {"a": 1}}, measures="RR")
    for name in ("a.md", "a.tex", "a.csv", "a.json", "a.html"):
        report.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    plain = json.loads(report.to_json())
    assert plain["lines"]["ties"]["topics"] == ["1"]
    assert plain["lines"]["ties"]["scores"]["relevant first"] == {"RR": 1.0}
    assert "<table>" in report._repr_html_()
    assert not math.isnan(plain["score"]["RR"])


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ft.FontesError, match="near, a Jaccard similarity"):
        ft.audit(None, {"1": {"a": 1}}, near=2.0)
    with pytest.raises(ft.FontesError, match="seed must be a whole number"):
        ft.audit(None, {"1": {"a": 1}}, seed=-1)
    with pytest.raises(ft.FontesError, match="no topic in common"):
        ft.audit({"1": {"a": 1.0}}, {"2": {"a": 1}})

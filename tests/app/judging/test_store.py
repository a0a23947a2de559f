"""The file of judgments: what is kept, in which order it is judged, what comes of it, and what it survives."""

import os
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
from support.judging import PIPELINES
from support.serving import springs

import fontes as ft
from fontes import Topic, Topics
from fontes.app.commands.districts.judge import _add_judges
from fontes.app.judging.judging import agreement, different_evidence, disagreements, export, fill_pools, judgments_of, shuffled
from fontes.app.judging.store import JudgmentStore
from fontes.app.server.served import ServedIndex
from fontes.core import FontesError, InputError
from fontes.formats import read_qrels, read_topics

DOCUMENTS = [f"d{number}" for number in range(40)]


@pytest.fixture
def store(tmp_path: Path) -> JudgmentStore:
    """Two judges, two topics, a pool of 40 documents for the first and of two for the second."""
    store = JudgmentStore(tmp_path / "j.sqlite")
    for name in ("anna", "ben"):
        store.add_judge(name)
    store.add_topics(Topics.of({"1": "one", "2": "two"}))
    store.add_pools({"1": DOCUMENTS, "2": DOCUMENTS[:2]}, "index", "bm25()", 40)
    return store


def grades(store: JudgmentStore, judge: str = "anna") -> dict[tuple[str, str], int]:
    return {(one.topic, one.document): one.grade for one in store.judgments(judge)}


def test_undo_takes_back_one_judgment_after_the_other_and_earlier_grades_come_back(store: JudgmentStore) -> None:
    for document, grade in (("d1", 1), ("d2", 2), ("d1", 3)):
        store.judge("anna", "1", document, grade, 2.5)
    store.judge("ben", "1", "d1", 0)
    assert [one.seconds for one in store.judgments("ben")] == [0.0]
    assert grades(store) == {("1", "d1"): 3, ("1", "d2"): 2}
    assert {one.document: one.seconds for one in store.judgments("anna")} == {"d1": 5.0, "d2": 2.5}
    assert store.undo("anna") == ("1", "d1")
    assert grades(store) == {("1", "d1"): 1, ("1", "d2"): 2}
    assert [store.undo("anna") for _ in range(3)] == [("1", "d2"), ("1", "d1"), None]
    assert grades(store) == {}
    assert grades(store, "ben") == {("1", "d1"): 0}


def test_tokens_are_kept_as_hashes_and_belong_to_one_judge(store: JudgmentStore) -> None:
    token, other = store.add_judge("eva"), store.add_judge("dan")
    assert (store.judge_of(token), store.judge_of(other), store.judge_of("x" * 32)) == ("eva", "dan", None)
    renewed = store.add_judge("eva")
    assert (store.judge_of(token), store.judge_of(renewed)) == (None, "eva")
    store.close()
    for path in store.path.parent.iterdir():
        assert token.encode() not in path.read_bytes()
        assert renewed.encode() not in path.read_bytes()


def test_tokens_that_do_not_fit_on_the_disk_are_given_again(
    store: JudgmentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    with monkeypatch.context() as patch:
        fdopen = os.fdopen
        patch.setattr(
            "os.fdopen", lambda handle, *more, **settings: fdopen(os.open("/dev/full", os.O_WRONLY), *more, **settings)
        )
        with pytest.raises(InputError, match=r"\(No space left on device\); give these tokens again: --renew 'new one'$"):
            _add_judges(store, ["new one"], [], tmp_path / "tokens")
    with pytest.raises(InputError, match=r"\(File exists\)$"):
        _add_judges(store, ["other"], [], tmp_path / "tokens")
    _add_judges(store, [], ["new one"], tmp_path / "again")
    assert store.judge_of((tmp_path / "again").read_text().removeprefix("new one\t").strip()) == "new one"


def test_the_order_is_another_for_each_judge_and_topic_and_stays_when_the_pool_grows() -> None:
    order = shuffled("anna", "1", DOCUMENTS)
    assert order == shuffled("anna", "1", reversed(DOCUMENTS))
    assert sorted(order) == sorted(DOCUMENTS)
    assert (
        len({tuple(order), tuple(shuffled("ben", "1", DOCUMENTS)), tuple(shuffled("anna", "2", DOCUMENTS)), tuple(DOCUMENTS)})
        == 4
    )
    grown = shuffled("anna", "1", [*DOCUMENTS, "e1", "e2"])
    assert [document for document in grown if document in DOCUMENTS] == order
    places = [shuffled("anna", str(topic), DOCUMENTS).index("d0") for topic in range(400)]
    assert abs(np.mean(places) - 19.5) < 3 * 11.5 / 20  # the place of the best document tells nothing


def test_a_pool_has_the_best_of_each_pipeline_once_and_grows_without_loss(tmp_path: Path) -> None:
    served = ServedIndex(springs(tmp_path), "springs", PIPELINES, {})
    index = ft.Index.open(tmp_path / "springs.index")
    topics = Topics.of({"1": "hot spring water", "2": "nothing of that"})
    with JudgmentStore(tmp_path / "j.sqlite") as store:
        store.add_judge("anna")
        store.add_topics(topics)
        fill_pools(store, served.state, 2)
        best = {
            ranking.ids[n]
            for stage in (index.bm25(), index.ql())
            for ranking in [stage.search("hot spring water", 2)]
            for n in (0, 1)
        }
        assert set(store.pool("1")) == best
        assert store.pool("2") == []
        store.judge("anna", "1", sorted(best)[0], 3)
    with JudgmentStore(tmp_path / "j.sqlite") as store:
        store.add_topics(topics)
        fill_pools(store, served.state, 4)
        assert best < set(store.pool("1"))
        assert [one.grade for one in store.judgments()] == [3]
        before = store.rows("SELECT * FROM pools")
        fill_pools(store, served.state, 3)
        assert store.rows("SELECT * FROM pools") == before


def test_a_topic_without_an_id_gets_the_next_one(store: JudgmentStore) -> None:
    assert list(store.topics()) == ["1", "2"]
    assert store.new_topic(Topic("", "three", narrative="of three")) == Topic("3", "three", narrative="of three")


def test_a_topic_is_added_again_with_its_own_text(store: JudgmentStore) -> None:
    store.add_topics(Topics.of({"1": "one", "3": "three"}))
    assert list(store.topics()) == ["1", "2", "3"]


def test_topics_keep_all_that_they_have(store: JudgmentStore) -> None:
    topic = Topic("t", "x", "narrative", "description", (ft.Turn("x", answer="y"),), {"x": 0.5}, metadata={"label": ["a"]})
    store.add_topics(Topics([topic]))
    assert store.topics()["t"] == topic


def judged_alike_and_not(store: JudgmentStore) -> None:
    for document, (first, second) in {"d0": (0, 0), "d1": (3, 3), "d2": (2, 1), "d3": (1, 0), "d4": (2, 2)}.items():
        store.judge("anna", "1", document, first)
        store.judge("ben", "1", document, second)
    store.judge("anna", "1", "d5", 1)
    store.settle("ben", "1", "d2", 1)
    store.set_evidence("anna", "1", [["d1", "d4"], ["d4", "d1"], ["d3", "d5"]])
    store.set_evidence("ben", "1", [["d1", "d2"]])


def test_judgments_are_a_judges_own_or_agreed_or_settled(store: JudgmentStore) -> None:
    judged_alike_and_not(store)
    assert judgments_of(store, "ben").to_dict() == {"1": {"d0": 0, "d1": 3, "d2": 1, "d3": 0, "d4": 2}}
    assert judgments_of(store, "agreed").to_dict() == {"1": {"d0": 0, "d1": 3, "d4": 2}}
    assert judgments_of(store, "settled").to_dict() == {"1": {"d0": 0, "d1": 3, "d2": 1, "d4": 2, "d5": 1}}
    sets = {rule: set(judgments_of(store, rule).groups("1")) for rule in ("anna", "agreed", "settled")}
    both, pair = frozenset(("d1", "d4")), frozenset(("d3", "d5"))
    assert sets["anna"] == {both, pair, frozenset(("d2",))}
    assert sets["agreed"] == {both}
    assert sets["settled"] == {both, frozenset(("d1", "d2")), frozenset(("d5",))}


def test_evidence_differs_where_judges_name_different_groups(store: JudgmentStore) -> None:
    for judge in ("anna", "ben"):
        for document in ("d1", "d2", "d3", "d4"):
            store.judge(judge, "1", document, 2)
        store.judge(judge, "2", "d0", 1)
        store.set_evidence(judge, "2", [["d0"]])
    store.set_evidence("anna", "1", [["d1", "d2"], ["d3", "d4"], ["d1", "d3"]])
    store.set_evidence("ben", "1", [["d4", "d3"], ["d1", "d2", "d3"]])
    store.judge("anna", "1", "d2", 0)  # so the group with it is evidence no more
    judges = ["anna", "ben"]
    (one,) = different_evidence(store, {"1": judges, "2": judges})
    assert (one["topic"], one["alike"], one["groups"]) == ("1", 1, 3)
    both = {"documents": ["d3", "d4"]}
    assert one["judges"] == [
        {"judge": "anna", "groups": [{**both, "others": ["ben"]}, {"documents": ["d1", "d3"], "others": []}]},
        {"judge": "ben", "groups": [{**both, "others": ["anna"]}, {"documents": ["d1", "d2", "d3"], "others": []}]},
    ]
    assert different_evidence(store, {"1": ["anna"], "2": []}) == []


def test_agreement_is_cohens_kappa(store: JudgmentStore) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(7)
    first = random.integers(0, 4, 40)
    second = np.where(random.random(40) < 0.6, first, random.integers(0, 4, 40))
    for document, one, other in zip(DOCUMENTS, first.tolist(), second.tolist(), strict=True):
        store.judge("anna", "1", document, one)
        store.judge("ben", "1", document, other)
    store.judge("anna", "2", "d0", 3)
    (pair,) = agreement(store)
    assert pair["judges"] == ["anna", "ben"]
    assert pair["documents"] == 40
    assert pair["same"] == int((first == second).sum())
    assert pair["table"] == metrics.confusion_matrix(first, second).tolist()
    expected = {
        "kappa": metrics.cohen_kappa_score(first, second),
        "linear": metrics.cohen_kappa_score(first, second, weights="linear"),
        "quadratic": metrics.cohen_kappa_score(first, second, weights="quadratic"),
        "relevant": metrics.cohen_kappa_score(first > 0, second > 0),
    }
    assert {name: pair[name] for name in expected} == pytest.approx(expected)
    assert len(disagreements(store, ["1"])) == int((first != second).sum())
    assert disagreements(store, ["2"]) == []


def test_what_is_exported_is_read_and_evaluated(store: JudgmentStore, tmp_path: Path) -> None:
    judged_alike_and_not(store)
    assert export(store, tmp_path / "out") == []
    assert read_topics(tmp_path / "out").keys() == {"1", "2"}
    for rule in ("settled", "agreed", "anna", "ben"):
        expected = judgments_of(store, rule)
        assert read_qrels(tmp_path / "out", split=rule).to_dict() == expected.to_dict()
        assert sorted(read_qrels(tmp_path / "out" / f"{rule}.qrels", groups=True).rows()) == sorted(expected.rows())
    run = ft.Run.of({"1": {"d0": 5.0, "d1": 4.0, "d2": 3.0, "d9": 2.0}})
    measured = ft.evaluate(run, tmp_path / "out" / "settled.qrels", ["P@3", "R@3"])
    assert [measured["P@3"], measured["R@3"]] == pytest.approx([2 / 3, 2 / 4])
    assert len((tmp_path / "out" / "judgments.jsonl").read_text().splitlines()) == 11


def test_ids_that_a_form_cannot_hold_leave_only_its_file_out(store: JudgmentStore, tmp_path: Path) -> None:
    store.add_pools({"1": ["ü 5"]}, "index", "other()", 1)
    store.judge("anna", "1", "ü 5", 2)
    left_out = export(store, tmp_path / "out")
    assert any("anna.qrels is left out: the document id 'ü 5' has white space" in sentence for sentence in left_out)
    assert any("ben.tsv is left out: there is nothing to write" in sentence for sentence in left_out)
    assert read_qrels(tmp_path / "out", split="anna").to_dict() == {"1": {"ü 5": 2}}


def test_one_server_has_a_file_and_readers_may_look(store: JudgmentStore) -> None:
    with pytest.raises(FontesError, match=r"j\.sqlite: another server has this file open"):
        JudgmentStore(store.path)
    store.judge("anna", "1", "d1", 2)
    with JudgmentStore(store.path, reading=True) as reader:
        assert grades(reader) == {("1", "d1"): 2}
        with pytest.raises(FontesError, match="cannot be used"):
            reader.judge("anna", "1", "d2", 2)
    store.close()
    with JudgmentStore(store.path) as again:
        assert grades(again) == {("1", "d1"): 2}


def test_other_files_are_left_as_they_are(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "a.txt", tmp_path / "b.sqlite", tmp_path / "c.sqlite"
    text.write_text("no database, and longer than the hundred bytes that SQLite reads first " * 4)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE judges (name)")
    JudgmentStore(newer).close()
    with sqlite3.connect(newer) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        db.execute("PRAGMA user_version = 9")
    before = [path.read_bytes() for path in (text, other)]
    for path, sentence in ((text, "not a file of judgments"), (other, "not a file of judgments"), (newer, "has version 9")):
        with pytest.raises(InputError, match=f"{path.name}: .*{sentence}"):
            JudgmentStore(path)
    assert [path.read_bytes() for path in (text, other)] == before


def test_a_damaged_file_is_said_in_a_sentence(store: JudgmentStore) -> None:
    for document in DOCUMENTS:
        store.judge("anna", "1", document, 1)
    store.close()
    whole = store.path.read_bytes()
    for start in range(4096, len(whole), 4096):
        store.path.write_bytes(whole[:start] + b"\xff" * 512 + whole[start + 512 :])
        with pytest.raises(InputError, match=r"j.sqlite: the file of judgments is damaged \(.*\); use an undamaged copy"):
            JudgmentStore(store.path)
    store.path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        JudgmentStore(store.path)


def test_a_killed_process_has_lost_no_judgment_that_it_had_answered(tmp_path: Path) -> None:
    for attempt in range(4):
        path = tmp_path / f"{attempt}.sqlite"
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            store = JudgmentStore(path)
            store.add_judge("anna")
            store.add_topics(Topics.of({"1": "one"}))
            store.add_pools({"1": [f"d{number}" for number in range(5000)]}, "index", "bm25()", 5000)
            for number in range(5000):
                store.judge("anna", "1", f"d{number}", number % 4)
                os.write(writer, b".")
        os.close(writer)
        answered = len(os.read(reader, 1))
        time.sleep(0.03 * attempt)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(reader, 65536):
            answered += len(more)
        os.close(reader)
        with JudgmentStore(path) as store:
            kept = store.judgments("anna")
            assert answered <= len(kept) <= answered + 1
            assert [(one.document, one.grade) for one in kept] == [(f"d{n}", n % 4) for n in range(len(kept))]
            store.judge("anna", "1", "d4999", 3)

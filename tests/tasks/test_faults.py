"""Faults of submissions, archives and data that are told, and choices in which no topic has a part in its own figures."""

from __future__ import annotations

import io
import json
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
from support.each import each
from support.organisers import GIVEN, POSTS, lines, put, relevant

import fontes as ft
from fontes.core import InputError, Topics
from fontes.datasets import corpus_of
from fontes.recipes.learning import RecipeTraining
from fontes.tasks import (
    ReleasedFiles,
    TaskOptions,
    TaskProject,
    TaskSide,
    check_data,
    check_submission,
    choosing,
    new_project,
    registry,
)
from fontes.tasks.choosing import Chooser
from fontes.train import Side

TOPICS = ft.Topics.of({"1": "one", "2": "two"})


def checked(task, path, text, topics=None):
    path.write_text(text)
    return registry[task]().check_submission(path, topics or {"test": TOPICS}, None)


def test_ranks_increase_and_scores_may_be_equal(tmp_path):
    path, second = tmp_path / "run.txt", "2 Q0 a 1 5 t\n"
    assert checked("beir", path, f"1 Q0 a 1 2.5 t\n{second}1 Q0 b 2 2.5 t\n1 Q0 c 5 1 t\n") == []


@pytest.mark.parametrize("task", ["beir", "touche"])
def test_a_run_has_so_many_documents_for_each_topic_and_no_more(task, tmp_path):
    path, depth = tmp_path / "run.txt", registry[task].depth
    rows = [f"{topic} Q0 d{n} {n} {2 * depth - n} t\n" for n in range(1, depth + 2) for topic in "12"]
    assert checked(task, path, "".join(rows[: 2 * depth])) == []
    with pytest.raises(InputError) as error:
        checked(task, path, "".join(rows[: 2 * depth + 1]))
    assert str(error.value) == (
        f"{path}, line {2 * depth + 1}: topic '1' has more than {depth:,} documents; keep the first {depth:,}"
    )


@pytest.mark.parametrize("task", ["scifact", "fever"])
def test_claims_are_all_in_a_submission_and_sides_in_their_own_files(task, tmp_path):
    id_key, list_key = ("claim_id", "doc_ids") if task == "scifact" else ("id", "predicted_pages")
    row = json.dumps({id_key: 1, list_key: ["a"]}) + "\n"
    sides = {"dev": ft.Topics.of({"9": "nine"}), "test": ft.Topics.of({"1": "one"})}
    assert checked(task, tmp_path / "x_test.jsonl", row, sides) == []


@pytest.mark.parametrize(("count", "others"), [(2, ""), (3, " and of 1 others"), (1_203, " and of 1,201 others")])
def test_topics_without_a_line_are_counted(tmp_path, count, others):
    topics = ft.Topics.of({str(n): "x" for n in range(count)})
    path = tmp_path / "run.txt"
    remarks = checked("beir", path, "0 Q0 a 1 1 t\n", {"test": topics})
    assert remarks == [f"{path}: no line of topic '1'{others}, of {count:,} topics"]


def test_the_run_of_a_side_is_checked_by_its_topics(tmp_path):
    sides = {"2020": ft.Topics.of({"9": "nine"}), "2021": TOPICS}
    assert len(checked("touche", tmp_path / "run_2021.txt", "1 Q0 a 1 1 t\n", sides)) == 1


def test_an_id_is_a_number_only_as_it_is_written(tmp_path):
    ids = ["7", "007", "0", "-7", "7.0", "a7"]
    run = ft.Run.of({name: {doc: 1.0} for name, doc in zip(ids, ids[::-1], strict=True)})
    (path,) = registry["scifact"]().submit({"test": run}, tmp_path, "t", "bm25()")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["claim_id"]: row["doc_ids"] for row in rows} == {
        7: ["a7"],
        "007": ["7.0"],
        0: ["-7"],
        "-7": [0],
        "7.0": ["007"],
        "a7": [7],
    }


@pytest.fixture
def project(tmp_path):
    return new_project("checkthat2025-4b", tmp_path / "p", [GIVEN["checkthat2025-4b"](tmp_path)])


def test_documents_of_a_submission_are_looked_up_in_the_collection(project, tmp_path):
    first, *others = [i for i, _, _ in relevant("test")]
    rest = "".join(f"{i}\t[]\n" for i in others)
    path = tmp_path / "predictions.tsv"
    path.write_text(f"post_id\tpreds\n{first}\t['{next(iter(POSTS.corpus)).id}']\n{rest}")
    assert check_submission(project, path) == []
    path.write_text(f"post_id\tpreds\n{first}\t['nowhere']\n{rest}")
    with pytest.raises(InputError, match=r"line 2: topic .*: there is no document 'nowhere' in the collection"):
        check_submission(project, path)


def test_a_side_without_judgments_is_neither_chosen_on_nor_measured(project):
    file = project.folder / "task.toml"
    text = file.read_text()
    for old, new, key in (
        ('choose = "dev"', 'choose = "test"', "choose"),
        ("submit =", 'measured = ["test"]\nsubmit =', "measured"),
    ):
        file.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=f"{key}: the side 'test' has no judgments"):
            TaskProject.open(project.folder)


def archive(path, *members):
    """A tar with files and links of these names, targets and modes."""
    with tarfile.open(path, "w:gz") as target:
        for name, link, mode in members:
            info = tarfile.TarInfo(name)
            info.mode = mode
            info.type, info.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
            info.size = 0 if link else 3
            target.addfile(info, None if link else io.BytesIO(b"{}\n"))
    return path


@each("member", [("../out.jsonl", ""), ("a/../../out.jsonl", ""), ("link", "/etc"), ("link", "../../..")])
def test_an_archive_that_leads_out_of_its_folder_is_not_unpacked(member, tmp_path):
    given = archive(tmp_path / "given.tar.gz", (*member, 0o644))
    with pytest.raises(InputError, match=r"given\.tar\.gz: no archive, or a damaged one"):
        ReleasedFiles([given], tmp_path / "in" / "unpacked")
    assert not list(tmp_path.rglob("out.jsonl"))
    assert not (tmp_path / "in" / "unpacked" / "given" / "link").exists()


def test_files_of_an_archive_get_no_special_rights(tmp_path):
    files = ReleasedFiles([archive(tmp_path / "given.tar.gz", ("a/corpus.jsonl", "", 0o6777))], tmp_path / "unpacked").files
    assert files["a/corpus.jsonl"].stat().st_mode & 0o7022 == 0


def test_hidden_files_are_not_the_organisers(tmp_path):
    for name in ("a/corpus.jsonl", "a/._corpus.jsonl", ".git/claims_dev.jsonl", "__MACOSX/corpus.jsonl", "a/.DS_Store"):
        put(tmp_path / "given" / name, "{}\n")
    assert list(ReleasedFiles([tmp_path / "given"], tmp_path / "u").files) == ["a/corpus.jsonl"]


def test_files_of_one_name_in_two_folders_are_all_kept(tmp_path):
    for folder in ("first", "second"):
        put(tmp_path / folder / "a" / "corpus.jsonl", "{}\n")
    files = ReleasedFiles([tmp_path / "first", tmp_path / "second", tmp_path / "first"], tmp_path / "u").files
    assert {name: path.parts[-3] for name, path in files.items()} == {
        "a/corpus.jsonl": "first",
        "second/a/corpus.jsonl": "second",
    }


def test_a_post_without_a_paper_is_not_judged(tmp_path):
    given = tmp_path / "hub"
    put(given / "collection.jsonl", lines([{"pubkey": "p", "title": "t", "abstract": "x"}]))
    posts = [{"index": 0, "text": "a", "pubkey": "p"}, {"index": 1, "text": "b", "pubkey": ""}, {"index": 2, "text": "c"}]
    put(given / "en" / "dev.jsonl", lines(posts))
    (side,) = new_project("checkthat2026-1", tmp_path / "p", [given]).sides.values()
    assert (list(side.topics), side.qrels) == (["en-0", "en-1", "en-2"], {"en-0": {"p": 1}})


def test_the_file_with_judgments_is_taken_where_a_side_comes_twice(tmp_path):
    given = tmp_path / "given"
    rows = [(i, text, doc) for i, text, doc in relevant("test")]
    for name in ("subtask4b_query_tweets_test.tsv", "subtask4b_query_tweets_test_gold.tsv"):
        gold = "gold" in name
        header = ["post_id", "tweet_text", *(["cord_uid"] if gold else [])]
        put(given / name, "".join("\t".join(row[: len(header)]) + "\n" for row in (header, *rows)))
    put(given / "subtask4b_collection_data.jsonl", lines([{"cord_uid": "d", "title": "t", "abstract": "x"}]))
    (side,) = new_project("checkthat2025-4b", tmp_path / "p", [given]).sides.values()
    assert len(side.qrels) == len(rows)


def test_claims_with_cited_documents_alone_are_judged(tmp_path):
    given = tmp_path / "given"
    put(given / "corpus.jsonl", lines([{"doc_id": 7, "title": "t", "abstract": ["x"]}]))
    put(given / "claims_dev.jsonl", lines([{"id": 1, "claim": "c", "evidence": {}, "cited_doc_ids": [7]}]))
    put(given / "claims_test.jsonl", lines([{"id": 2, "claim": "c"}]))
    sides = new_project("scifact", tmp_path / "p", [given]).sides
    assert (sides["dev"].qrels, sides["test"].qrels) == ({"1": {"7": 1}}, None)


@each("task", ["checkthat2025-4b", "checkthat2026-1", "fever", "scifact"])
def test_documents_of_a_project_have_the_texts_of_the_organisers(task, tmp_path):
    project = new_project(task, tmp_path / "p", [GIVEN[task](tmp_path)])
    docs = {doc.id: doc for doc in corpus_of(str(project.corpora["dev"]))}
    for doc in POSTS.corpus:
        assert " ".join(docs[doc.id].text.split()) == " ".join(
            doc.text.replace(". ", " " if task == "scifact" else ". ").split()
        )
        assert docs[doc.id].title == (doc.id if task == "fever" else doc.title)


def test_what_is_odd_in_the_data_is_remarked(tmp_path):
    given = tmp_path / "b"
    docs = [("a", "Springs", ""), ("b", "", "water"), ("c", " ", "\n"), ("d", "", "")]
    put(given / "corpus.jsonl", lines({"_id": i, "title": title, "text": text} for i, title, text in docs))
    text = " ".join(f"word{n}" for n in range(30))
    texts = {"1": f"{text} springs", "2": f"{text} caves"}
    put(given / "queries.jsonl", lines({"_id": i, "text": text} for i, text in texts.items()))
    for split, topic, doc in (("dev", "1", "a"), ("test", "2", "b")):
        put(given / "qrels" / f"{split}.tsv", f"query-id\tcorpus-id\tscore\n{topic}\t{doc}\t1\n")
    remarks = check_data(new_project("scifact", tmp_path / "p", [given])).remarks
    assert "2 documents have no text and no title" in remarks
    assert "dev: 1 topics, and 300 were published" in remarks
    assert "test shares with dev a text at 0.8 or more: 1 of 1 topics, such as 2 = 1" in remarks


def sides(judged, hidden=()):
    qrels = ft.Qrels.of({"1": {"a": 1}})
    return [TaskSide(name, TOPICS, qrels if name in judged else None) for name in (*judged, *hidden)]


def test_each_side_has_its_use():
    for task, judged, hidden, choose, measure, submit, train in [
        ("beir", ["train", "dev", "test"], [], "dev", ["test"], ["test"], "train"),
        ("beir", ["train", "test"], [], "train", ["test"], ["test"], "train"),
        ("beir", ["train", "dev"], ["test"], "dev", [], ["test"], "train"),
        ("beir", ["dev"], [], "dev", [], ["dev"], None),
        ("beir", [], ["test"], None, [], ["test"], None),
        ("longeval", ["train", "2025-01"], ["2025-02"], "train", ["2025-01"], ["2025-02"], "train"),
        ("longeval", ["train", "2025-01"], [], "train", ["2025-01"], ["2025-01"], "train"),
        ("longeval", ["train"], ["2025-01", "2025-02"], "train", [], ["2025-01", "2025-02"], "train"),
    ]:
        roles = registry[task]().roles(sides(judged, hidden))
        assert (roles.choose, roles.measure, roles.submit, roles.train) == (choose, tuple(measure), tuple(submit), train)


class Recorder:
    """Stands for `tune` and `fit_weights`: folds of the topics, and runs that are ideal where a topic had a part in them."""

    def __init__(self, side, seed):
        self.side, self.seed, self.learned_on, self.runs = side, seed, [], []

    def takes_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand for the functions that tune and fit weights."""
        monkeypatch.setattr(choosing, "tune", self.tune)
        monkeypatch.setattr(choosing, "fit_weights", self.fit_weights)

    def tune(self, stage, space, topics, qrels, measure, folds, *, seed):
        assert seed == self.seed
        halves = [range(0, len(topics), 2), range(1, len(topics), 2)]
        choices = [{"posts": "", "k1": 0.9 + n, "b": 0.4} for n in range(2)]
        made = [SimpleNamespace(topics=np.array(half), choice=choice) for half, choice in zip(halves, choices, strict=True)]
        return SimpleNamespace(folds=made, params={"posts": "", "k1": 1.2, "b": 0.4}, topic_ids=list(topics), warnings=[])

    def fit_weights(self, runs, qrels, measure, *, folds, seed):
        assert seed == self.seed
        self.learned_on.append(set(qrels))
        best = {t: dict.fromkeys(grades, 9.0) if t in qrels else {} for t, grades in self.side.qrels.items()}
        self.runs.append(ft.Run.of(best, self.side.topics))
        return SimpleNamespace(run=self.runs[-1], weights=[0.5] * len(runs))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return ft.Index.build(POSTS.corpus, tmp_path_factory.mktemp("index") / "i")


def chooser(index, folder, count, options):
    rows = relevant("dev")[:count]
    side = Side(ft.Topics.of({i: text for i, text, _ in rows}), ft.Qrels.of({i: {doc: 1} for i, _, doc in rows}))
    stages = {"bm25": index.bm25(), "tfidf": index.tfidf()}
    systems = {name: f"{name}()" for name in stages}
    return Chooser(index, systems, stages, side, "RR@5", folder, options), side


@pytest.mark.parametrize("count", [4, 7])
def test_no_topic_has_a_part_in_the_weights_of_its_held_out_run(index, tmp_path, monkeypatch, count):
    made, side = chooser(index, tmp_path, count, TaskOptions(seed=7))
    recorder = Recorder(side, 7)
    recorder.takes_part(monkeypatch)
    choices = made.choose(None, Topics())
    whole, *others = recorder.learned_on
    assert whole == set(side.topics)
    assert sorted(topic for learned in others for topic in whole - learned) == sorted(whole)
    assert all(ranking.ids == [] for ranking in choices.held_out["fused"].values())
    bm25 = [index.bm25(k1=0.9 + n, b=0.4)(side.topics) for n in (0, 1)]
    for n, topic in enumerate(side.topics):
        assert choices.held_out["tuned"][topic].scores.tolist() == bm25[n % 2][topic].scores.tolist()
    tuned = ft.evaluate(choices.held_out["tuned"], side.qrels, "RR@5")["RR@5"]
    assert (choices.values["fused"], choices.values["tuned"]) == (0.0, tuned)
    assert choices.best != "fused"


def test_fewer_than_four_topics_choose_nothing(index, tmp_path):
    with pytest.raises(InputError, match="chosen on 4 topics or more, and there are 3"):
        chooser(index, tmp_path, 3, TaskOptions())[0].choose(None, Topics())


def test_a_reranker_learns_from_no_text_of_another_side(index, tmp_path, monkeypatch):
    made, side = chooser(index, tmp_path, 4, TaskOptions(train="start", depth=5))
    recorder, learned = Recorder(side, 0), []
    recorder.takes_part(monkeypatch)
    monkeypatch.setattr(RecipeTraining, "model", lambda self, *rest, **more: learned.append(self) or "models/trained")
    plain = choosing.part
    monkeypatch.setattr(choosing, "part", lambda text, *rest, **more: index.bm25() if "cross_" in text else plain(text, *rest))
    dev, test = next(iter(side.topics.values())).text, "where is the key of the tide mill"
    train = Side(
        ft.Topics.of({"a": f" {dev}", "b": "who painted the old ferry", "c": test}),
        ft.Qrels.of({topic: {"h001": 1} for topic in "abc"}),
    )
    choices = made.choose(train, ft.Topics.of({"test 1": test}))
    assert list(learned[0].train.topics) == ["b"]
    assert choices.systems["reranked"].startswith("bm25 % 5 >> cross_encoder(")

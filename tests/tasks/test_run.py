"""A task from the archive to the submission: what is chosen, measured, written and handed in."""

import json
import re
import shutil
import tomllib

import pytest
from support.each import each
from support.organisers import GIVEN, POSTS, lines, put, relevant
from support.tiny_cross_encoder import save_cross_encoder

import fontes as ft
from fontes.core import FontesError
from fontes.tasks import TaskOptions, TaskProject, new_project, run_task
from fontes.tasks.choosing import Choices, Chooser
from fontes.train import Side


@pytest.fixture(scope="module")
def friday(tmp_path_factory):
    """A project of posts, dev judged and test not, that was run."""
    folder = tmp_path_factory.mktemp("friday")
    project = new_project("checkthat2025-4b", folder / "p", [GIVEN["checkthat2025-4b"](folder)])
    file = project.folder / "experiment.toml"
    file.write_text(file.read_text().replace('plain = "plain_posts() >> bm25()"', 'tfidf = "tfidf()"'))
    return run_task(project, TaskOptions(submit="fused"))


def lock(result, side):
    return json.loads((result.project.folder / "results" / side / "experiment.lock").read_text())


def test_a_dense_row_takes_a_model_of_an_installed_package_by_its_name(friday, tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    from support.static_models import model2vec

    from fontes.neural.models import packaged

    folder = tmp_path / "words"
    model2vec(folder, {"normalize": True})
    model = packaged.PackagedModel("little-words", "", "words", folder)
    for module in ("packaged", "listing"):
        monkeypatch.setattr(f"fontes.neural.models.{module}.packaged_models", lambda: (model,))
    project = TaskProject.open(shutil.copytree(friday.project.folder, tmp_path / "p"))
    result = run_task(project, TaskOptions(dense="", submit="dense"))
    assert tomllib.loads((project.folder / "held-out.toml").read_text())["systems"]["dense"] == "dense('little-words')"
    assert str(tmp_path) not in (project.folder / "results" / "dev" / "experiment.lock").read_text()
    assert result.submitted == "dense"


def test_a_tie_goes_to_the_simplest_system():
    side = Side(ft.Topics(), ft.Qrels())
    for names, best in ((("dense", "bm25", "tuned", "fused"), "bm25"), (("dense", "tuned", "fused"), "tuned")):
        assert Choices({}, {}, dict.fromkeys(names, 0.5), side).best == best
    assert Choices({}, {}, {"bm25": 0.5, "fused": 0.6}, side).best == "fused"


@pytest.mark.slow
def test_the_held_out_run_is_chosen_fold_by_fold(friday):
    """Each fold's topics have the run of what the other folds chose, parameters and weights."""
    place, side = friday.project.folder, friday.project.sides["dev"]
    index = ft.Index.open(next((place / "indexes").glob("*.index")))
    tuning = ft.tune(
        "bm25(k1=tune([0.6, 0.9, 1.2, 1.5, 2, 3, 4.5]), b=tune([0.2, 0.4, 0.6, 0.75, 0.9]))",
        None,
        side.topics,
        side.qrels,
        "RR@5",
        index=index,
    )
    tuned, fused = (ft.read_run(place / "held-out" / f"{name}.run") for name in ("tuned", "fused"))
    rm3 = (index.bm25() >> index.rm3() >> index.bm25())(side.topics)
    tfidf = index.tfidf()(side.topics)
    for fold in tuning.folds:
        inside = {tuning.topic_ids[i] for i in fold.topics.tolist()}
        stage = index.bm25(k1=fold.choice["bm25__k1"], b=fold.choice["bm25__b"])
        bm25 = stage(side.topics)
        others = {topic: dict(grades) for topic, grades in side.qrels.items() if topic not in inside}
        weights = ft.tuning.fit_weights([rm3, tfidf, bm25], others, "RR@5").weights
        expected = ft.fuse(rm3, tfidf, bm25, method="wsum", weights=weights)
        for topic in inside:
            assert tuned[topic].ids == bm25[topic].ids
            assert fused[topic].ids == expected[topic].ids


def test_the_systems_are_those_of_the_file_and_those_that_were_chosen(friday):
    values = tomllib.loads((friday.project.folder / "chosen-dev.toml").read_text())
    assert list(values["systems"]) == ["bm25", "rm3", "tfidf", "tuned", "fused"]
    assert re.fullmatch(r"bm25\(k1=[\d.]+, b=[\d.]+\)", values["systems"]["tuned"])
    assert values["systems"]["fused"].startswith("fuse(rm3, tfidf, tuned, method='wsum', weights=(")
    held_out = tomllib.loads((friday.project.folder / "held-out.toml").read_text())
    assert held_out["systems"]["fused"] == {"run": "held-out/fused.run"}
    assert list(friday.reports["dev"].systems) == list(values["systems"])


@pytest.mark.slow
def test_the_experiment_that_was_written_is_reproduced(friday):
    assert ft.Experiment(friday.project.folder / "held-out.toml").check().differences == ()


def test_every_figure_of_the_paragraph_is_in_a_lock(friday):
    text = (friday.project.folder / "paper" / "notes.tex").read_text()
    values = lock(friday, "dev")
    known = [value for one in values["systems"].values() for value in (one["measures"]["RR@5"], *one["intervals"]["RR@5"])]
    test = values["tests"]["RR@5"]["fused - bm25"]
    known += [test["difference"], test["corrected"]]
    shown = {f"{value:.4f}" for value in known} | {f"{value:+.4f}" for value in known}
    figures = re.findall(r"[+-]?\d+\.\d{4}", text)
    assert len(figures) >= 7
    assert set(figures) <= shown
    assert r"(95\% interval " in text
    assert "20 held-out topics of dev" in text
    assert "BM25 over 150 documents" in text
    assert values["systems"]["fused"]["run"][:12] in text
    assert "RR@5" in (friday.project.folder / "paper" / "table.tex").read_text()


def test_the_submission_has_every_post_and_the_run_of_the_chosen_system(friday):
    (path,) = friday.submission
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == [i for i, _, _ in relevant("test")]
    index = ft.Index.open(next((friday.project.folder / "indexes").glob("*.index")))
    text = tomllib.loads((friday.project.folder / "chosen-dev.toml").read_text())["systems"]
    weights = tuple(map(float, re.search(r"weights=\(([^)]+)\)", text["fused"])[1].split(",")))
    k1, b = map(float, re.findall(r"[\d.]+(?=[,)])", text["tuned"]))
    bm25 = index.bm25()
    parts = bm25 >> index.rm3() >> bm25, index.tfidf(), index.bm25(k1=k1, b=b)
    expected = ft.fuse(*parts, method="wsum", weights=weights)(friday.project.sides["test"].topics)
    assert [row[1] for row in rows] == [repr(expected[row[0]].ids[:5]) for row in rows]


def beir(folder, **splits):
    put(folder / "corpus.jsonl", lines({"_id": doc.id, "title": doc.title, "text": doc.text} for doc in POSTS.corpus))
    rows = {i: text for half in ("dev", "test") for i, text, _ in relevant(half)}
    put(folder / "queries.jsonl", lines({"_id": i, "text": text} for i, text in rows.items()))
    for name, (half, part) in splits.items():
        put(folder / "qrels" / f"{name}.tsv", "".join(f"{i}\t{doc}\t1\n" for i, _, doc in relevant(half)[part]))
    return folder


def test_what_cannot_be_run_is_refused_in_one_sentence(tmp_path):
    few = new_project(f"beir:{beir(tmp_path / 'b', test=('dev', slice(0, 3)))}", tmp_path / "few")
    file = few.folder / "experiment.toml"
    text = file.read_text()
    for change, options, message in [
        (("", ""), TaskOptions(), "chosen on 4 topics or more, and there are 3"),
        (('bm25 = "bm25()"', 'base = "bm25()"'), TaskOptions(), r"there is no 'bm25', the baseline|base"),
        (('rm3 = "', 'tuned = "'), TaskOptions(), "'tuned' is the name of a system that is chosen"),
    ]:
        file.write_text(text.replace(*change))
        with pytest.raises(FontesError, match=message):
            run_task(few, options)


@pytest.mark.slow
@each("name", [name for name in GIVEN if name != "checkthat2025-4b"])
def test_every_task_runs_to_a_valid_submission(name, fontes, tmp_path):
    new_project(name, tmp_path / "p", [GIVEN[name](tmp_path)])
    code, output, errors = fontes("task", "run", tmp_path / "p", "--json")
    assert code == 0, errors
    result = json.loads(output)
    assert result["submission"]
    code, output, errors = fontes("task", "check", tmp_path / "p")
    assert code == 0, errors
    assert output.count(": valid") == len(result["submission"])
    assert (result["snapshots"] is not None) == (name == "longeval")


@pytest.mark.slow
def test_what_was_chosen_on_dev_is_measured_on_test(tmp_path):
    whole = slice(None)
    result = run_task(new_project(f"beir:{beir(tmp_path / 'b', dev=('dev', whole), test=('test', whole))}", tmp_path / "p"))
    assert list(result.reports) == ["dev", "test"]
    assert ft.Experiment(tmp_path / "p" / "chosen-test.toml").check().differences == ()
    text = (tmp_path / "p" / "paper" / "notes.tex").read_text()
    assert f"{lock(result, 'test')['systems'][result.submitted]['measures']['nDCG@10']:.4f}" in text
    assert ft.read_run(result.submission[0]) == result.reports["test"].systems[result.submitted].run


@pytest.mark.slow
def test_a_cross_encoder_learns_from_a_part_where_there_is_no_dev_side(tmp_path):
    start = save_cross_encoder(tmp_path / "start")
    splits = {"train": ("dev", slice(None)), "test": ("test", slice(None))}
    project = new_project(f"beir:{beir(tmp_path / 'b', **splits)}", tmp_path / "p")
    result = run_task(project, TaskOptions(train=str(start), depth=5))
    assert "learns from 16 training topics, and the other 4 choose" in result.notes[0]
    assert len(result.reports["train"].topics) == 4
    system = tomllib.loads((tmp_path / "p" / "chosen-test.toml").read_text())["systems"]["reranked"]
    assert re.fullmatch(r"bm25 % 5 >> cross_encoder\('models/cross-encoder-\w+'\)", system)
    assert str(tmp_path) not in (tmp_path / "p" / "results" / "test" / "experiment.lock").read_text()
    again = run_task(TaskProject.open(tmp_path / "p"), TaskOptions(train=str(start), depth=5))
    assert again.reports["test"].comparisons == result.reports["test"].comparisons


@pytest.mark.parametrize(("handles", "start"), [(True, "plain_posts() >> bm25("), (False, "bm25(")])
def test_posts_are_tried_as_plain_sentences_where_they_have_handles(tmp_path, handles, start):
    places = ["Cave", "Geyser", "Spring", "Karst", "Lava"]
    docs = [ft.Doc(f"{place}{kind}", f"{place} {kind}") for place in places for kind in ("Valley", "Lake")]
    texts = {doc.id: f"#{doc.id} is near!" if handles else f"{doc.text} is near!" for doc in docs}
    side = Side(ft.Topics.of(texts), ft.Qrels.of({doc.id: {doc.id: 1} for doc in docs}))
    index = ft.Index.build(docs, tmp_path / "docs.index")
    stages = {"bm25": index.bm25(), "tfidf": index.tfidf()}
    texts = {"bm25": "bm25()", "tfidf": "tfidf()"}
    chooser = Chooser(index, texts, stages, side, "RR@5", tmp_path, TaskOptions())
    choices = chooser.choose(None, ft.Topics())
    assert choices.systems["tuned"].startswith(start)
    assert choices.values["tuned"] == 1
    note = "tuned: 10 of 10 topics have a handle, hashtag or link, so plain_posts() was tried; chosen: with it"
    assert (note in choices.notes) == handles

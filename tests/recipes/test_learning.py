"""Recipes that learn: what they learn from, models and weights kept in the folder, and trainings that go on."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.posts import air, beir, collection
from support.small import frequent_checkpoints
from support.threads import one_thread as one_thread
from support.tiny_training import no_curves as no_curves
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.core import Doc, InputError, Qrels, Run, Topics
from fontes.core.work import Progress, silent
from fontes.recipes import RecipeResult
from fontes.recipes.learning import RecipeTraining, Side, without_twins
from fontes.recipes.sides import merge_duplicates

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_recipe_learns_from_four_fifths_of_the_posts_and_measures_the_others(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    result = air(start, held_out=0.25).run(docs, posts, qrels, tmp_path)
    assert result.learning is not None
    sides = [set(result.learning.train.topics), set(result.learning.dev.topics), set(result.runs["bm25"].topics)]
    assert [len(side) for side in sides] == [18, 6, 6]
    assert set.union(*sides) == set(posts)
    assert result.report is not None
    assert len(result.report.topics) == 6
    model, weights = result.learning.notes
    assert (model["queries"], model["rows"]) == (18, 90)  # a group of five of each post
    assert sum(weights["weights"]) == pytest.approx(1)
    page = (tmp_path / "recipe.md").read_text()
    assert "18 topics to learn from, 6 to choose with and to validate on." in page
    assert "| reranker | " in page
    assert result.to_dict()["data"]["train"]["topics"] == 18


@pytest.mark.slow
def test_what_was_trained_is_found_again_and_another_setting_trains_another_model(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection(20)
    first = air(start, epochs=1).run(docs, posts, qrels, tmp_path)
    (model,) = (tmp_path / "models").iterdir()
    said = (model / "training.json").stat().st_mtime_ns
    again = air(start, epochs=1).run(docs, posts, qrels, tmp_path)
    assert again.runs["reranked"] == first.runs["reranked"]
    assert (model / "training.json").stat().st_mtime_ns == said
    air(start, epochs=1, lr=1e-3).run(docs, posts, qrels, tmp_path)
    assert len(list((tmp_path / "models").iterdir())) == 2


@pytest.mark.slow
def test_a_recipe_that_is_killed_while_it_trains_goes_on_to_the_same_model(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent_checkpoints(monkeypatch)
    docs, posts, qrels = collection(20)

    def run(name: str, progress: Callable[[Progress], None] = silent) -> RecipeResult:
        return air(start).run(docs, posts, qrels, tmp_path / name, progress=progress)

    def die(at: Progress) -> None:
        if at.task == "training" and at.done >= 3:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        run("killed", die)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert [path.suffix for path in (tmp_path / "killed" / "models").iterdir()] == [".training"]
    seen: list[int] = []
    result = run("killed", lambda at: seen.append(at.done) if at.task == "training" else None)
    assert seen[0] >= 3
    assert result.runs["reranked"] == run("whole").runs["reranked"]


def test_judgments_to_learn_from_and_to_choose_with_may_be_splits_or_files(ready: str, tmp_path: Path) -> None:
    folder = beir(tmp_path)
    one = air(ready, reranker=ready)
    named = one.run(str(folder), str(folder), str(folder), tmp_path / "a", split="test", train="train", dev="dev")
    assert named.learning is not None
    assert list(named.learning.train.topics) == [f"q{n}" for n in range(16)]
    assert list(named.learning.dev.topics) == [f"q{n}" for n in range(16, 22)]
    assert list(named.runs["bm25"].topics) == [f"q{n}" for n in range(22, 30)]
    files = {name: str(folder / "qrels" / f"{name}.tsv") for name in ("train", "dev", "test")}
    other = one.run(
        str(folder), str(folder / "queries.jsonl"), files["test"], tmp_path / "b", train=files["train"], dev=files["dev"]
    )
    assert other.learning is not None
    assert other.learning.hashes == named.learning.hashes
    assert other.runs["bm25"] == named.runs["bm25"]


def test_several_splits_are_merged_and_divided(ready: str, tmp_path: Path) -> None:
    folder = beir(tmp_path)
    result = air(ready, reranker=ready).run(str(folder), str(folder), str(folder), tmp_path / "out", split=("train", "dev"))
    assert result.learning is not None
    assert len(result.learning.train.topics) + len(result.learning.dev.topics) == 18
    assert len(result.runs["bm25"].topics) == 4


@pytest.mark.slow
def test_the_command_takes_what_is_learned_from(ready: str, tmp_path: Path) -> None:
    folder = beir(tmp_path)
    settings = [f"-s{text}" for text in ("analyzer=standard", f"start={ready}", f"reranker={ready}", "candidates=5")]
    base = ["recipe", "run", "air2025", "--collection", str(folder), "--topics", str(folder), "--qrels", str(folder), *settings]
    sides = ["--split", "test", "--train", "train", "--dev", "dev"]
    result = CliRunner().invoke(cli.app, [*base, *sides, "-o", str(tmp_path / "one")], catch_exceptions=False)
    assert result.exit_code == 0
    assert "reranked" in result.stdout
    assert "Published on 2,848 of the 14,240 distinct tweets" in result.stdout
    merged = ["--split", "train", "--split", "dev", "--json", "-o", str(tmp_path / "two")]
    result = CliRunner().invoke(cli.app, [*base, *merged], catch_exceptions=False)
    assert json.loads(result.stdout)["data"]["train"]["topics"] == 16
    with pytest.raises(InputError, match="recipe cair2021 chooses with train, and trains nothing: leave dev out"):
        CliRunner().invoke(cli.app, [*base[:2], "cair2021", *base[3:9], *sides, "-o", "x"], catch_exceptions=False)


def test_a_systems_models_are_those_that_were_trained_and_it_can_be_built_again(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection(20)
    one = air(start, epochs=1)
    result = one.run(docs, posts, qrels, tmp_path)
    (model,) = (tmp_path / "models").iterdir()
    assert f'cross_encoder("{model}"' in result.to_dict()["systems"]["reranked"]["stages"]
    systems = one.build(docs, tmp_path, learning=result.learning)
    topics = result.runs["bm25"].topics
    assert systems["interpolated"](topics) == result.runs["interpolated"]


def test_distinct_posts_are_those_of_different_texts_and_the_first_has_all_judgments() -> None:
    topics = Topics.of({"b": "same", "a": "same", "c": "other", "d": "not judged"})
    side = merge_duplicates(topics, Qrels.of([("a", "x", 1), ("b", "y", 1), ("c", "z", 1)]))
    assert list(side.topics) == ["b", "c"]
    assert {topic: dict(grades) for topic, grades in side.qrels.items()} == {"b": {"x": 1, "y": 1}, "c": {"z": 1}}


def test_parts_are_drawn_by_the_seed_and_do_not_depend_on_the_order() -> None:
    topics = Topics.of({str(n): f"text {n}" for n in range(50)})
    qrels = Qrels.of([(str(n), "d", 1) for n in range(50)])
    rest, drawn = Side(topics, qrels).split(0.2, 7)
    assert (len(rest.topics), len(drawn.topics)) == (40, 10)
    assert set(rest.topics) | set(drawn.topics) == set(topics)
    backwards = Topics(reversed(list(topics.values())))
    assert set(Side(backwards, qrels).split(0.2, 7)[1].topics) == set(drawn.topics)
    assert set(Side(topics, qrels).split(0.2, 8)[1].topics) != set(drawn.topics)


def test_topics_whose_relevant_document_has_a_twin_are_left_out_of_choices(tmp_path: Path) -> None:
    docs = [Doc("a", '"Masks" help'), Doc("b", "'masks' help."), Doc("c", "bread"), Doc("d", "Masks help")]
    index = ft.Index.build(docs, tmp_path / "i", analyzer="standard")
    run = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"c": 1.0, "a": 0.5}, "3": {"a": 2.0, "b": 1.0}, "4": {"c": 1.0}})
    qrels = Qrels.of([("1", "a", 1), ("2", "c", 1), ("3", "a", 1), ("3", "b", 1), ("4", "d", 1), ("5", "c", 1)])
    assert list(without_twins(run.with_(documents=index), qrels)) == ["2", "3", "4", "5"]


def test_of_systems_that_are_equally_good_the_one_of_the_fewest_stages_is_chosen(tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    bm25 = ft.Index.build(docs, tmp_path / "x.index").bm25()
    learning = RecipeTraining(dev=Side(Topics.of(posts), Qrels.of(qrels)), folder=tmp_path)
    stages = {"sum": 0.5 * bm25 + 0.5 * bm25, "alone": bm25, "again": bm25 % 1000}
    assert learning.best("first", stages, "RR@5", [learning.dev]) == "alone"
    assert learning.best("order", {"one": bm25, "two": bm25.with_(k=999)}, "RR@5", [learning.dev]) == "one"
    better = {"short": bm25.with_(k=1), "long": stages["sum"]}
    qrels_of_two = Qrels.of({topic: dict.fromkeys(docs_of, 1) for topic, docs_of in two_best(bm25, posts).items()})
    side = Side(Topics.of(posts), qrels_of_two)
    assert learning.best("better", better, "R@5", [side]) == "long"


def two_best(stage: Any, topics: Any) -> dict[str, list[str]]:
    """The ids of the two best documents of each topic."""
    return {topic: list(ranking.ids) for topic, ranking in (stage % 2)(topics).items()}

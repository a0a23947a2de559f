"""Texts on two sides of a recipe: said before anything is built, or left out and counted."""

from pathlib import Path

import pytest
from support.posts import air, collection
from support.threads import one_thread as one_thread
from support.tiny_training import no_curves as no_curves
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.core import InputError, Qrels, Topics
from fontes.recipes import Claims
from fontes.recipes.learning import RecipeTraining
from fontes.recipes.sides import drop_leaked
from fontes.train import Side

pytestmark = pytest.mark.usefixtures("one_thread")


def sides(texts: dict[str, str]) -> tuple[RecipeTraining, Topics]:
    """Sides of topics whose ids begin with "l", "c" or "m": to learn from, to choose with, to measure with."""
    topics, qrels = Topics.of(texts), Qrels.of([(topic, "d", 1) for topic in texts])
    learned, chosen = (Side(topics, qrels).only({topic for topic in texts if topic[0] == side}) for side in "lc")
    return RecipeTraining(learned, chosen), Topics(topic for topic in topics.values() if topic.id[0] == "m")


SHARED = {
    "l1": "a",
    "l2": "b ",
    "l3": "c",
    "l4": "d",
    "l5": "d",
    "c1": "b",
    "c2": "e",
    "c3": "f",
    "m1": "c",
    "m2": "e",
    "m3": "g",
}


def test_each_text_on_two_sides_is_listed() -> None:
    learning, measured = sides(SHARED)
    with pytest.raises(InputError) as error:
        drop_leaked(learning, measured, lambda topics: topics, drop=False)
    lines = str(error.value).splitlines()
    assert lines[0] == "3 topics have a text that is on two sides:"
    assert lines[1] == "  topic 'l2' (to learn from) has the text of topic 'c1' (to choose with): \"b\""
    assert lines[2] == "  topic 'l3' (to learn from) has the text of topic 'm1' (to measure with): \"c\""
    assert lines[3] == "  topic 'c2' (to choose with) has the text of topic 'm2' (to measure with): \"e\""
    assert "(--leaks drop)" in lines[4]


def test_dropped_topics_are_those_of_the_earlier_side_and_are_counted() -> None:
    learning, measured = sides(SHARED)
    left = drop_leaked(learning, measured, lambda topics: topics, drop=True)
    assert list(left.train.topics) == list(left.train.qrels) == ["l1", "l4", "l5"]  # two of one side may share a text
    assert list(left.dev.topics) == ["c1", "c3"]
    assert [note["without"] for note in left.notes] == [
        "2 of 5, whose text is chosen or measured with",
        "1 of 3, whose text is measured with",
    ]


def test_posts_that_differ_in_their_addresses_alone_are_one_text_to_claims() -> None:
    learning, measured = sides({"l1": "masks help https://t.co/a", "l2": "other", "c1": "masks help https://t.co/b"})
    left = drop_leaked(learning, measured, Claims().as_model_input, drop=True)
    assert list(left.train.topics) == ["l2"]
    assert list(drop_leaked(learning, measured, Claims(posts=None).as_model_input, drop=True).train.topics) == ["l1", "l2"]
    empty, _ = sides({"l1": "https://t.co/a", "l2": "other", "c1": "https://t.co/b"})
    assert len(drop_leaked(empty, measured, Claims().as_model_input, drop=True).train.topics) == 2  # nothing is left to compare


def test_leakage_between_files_is_said_before_anything_is_built(ready: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    posts |= {"q1": posts["q20"], "q2": posts["q25"]}
    names = list(posts)
    of = {
        side: {name: qrels[name] for name in ids}
        for side, ids in (("train", names[:16]), ("dev", names[16:22]), ("test", names[22:]))
    }
    recipe = air(ready, reranker=ready)
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"2 topics have a text that is on two sides:\n  topic 'q1' \(to learn from\)"):
        recipe.run(docs, posts, of["test"], out, train=of["train"], dev=of["dev"])
    assert not out.exists()
    paths = {}
    for name, data in (("corpus", docs), ("topics", posts)):
        paths[name] = tmp_path / f"{name}.jsonl"
        (ft.write_corpus if name == "corpus" else ft.write_topics)(data, paths[name])
    for side, rows in of.items():
        paths[side] = tmp_path / f"{side}.tsv"
        lines = [f"{topic} 0 {doc} 1\n" for topic, grades in rows.items() for doc in grades]
        paths[side].write_text("".join(lines))
    command = [
        "recipe",
        "run",
        "air2025",
        "--collection",
        paths["corpus"],
        "--topics",
        paths["topics"],
        "--qrels",
        paths["test"],
    ]
    command += ["--train", paths["train"], "--dev", paths["dev"], "--leaks", "drop", "-o", out]
    command += [f"-s{text}" for text in ("analyzer=standard", f"start={ready}", f"reranker={ready}", "candidates=4")]
    result = CliRunner().invoke(cli.app, [str(word) for word in command], catch_exceptions=False)
    assert result.exit_code == 0
    said = "to learn from: 2 of 16, whose text is chosen or measured with"
    assert said in result.stdout
    assert f"* {said}" in (out / "recipe.md").read_text()
    assert "14 topics to learn from" in (out / "recipe.md").read_text()


def test_a_recipe_that_divides_topics_itself_leaves_shared_texts_out(ready: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    posts = {name: f"{text} " if number % 2 else text for number, (name, text) in enumerate(posts.items())}
    posts |= {"q1": posts["q0"] + " ", "q3": posts["q2"] + " ", "q5": posts["q4"] + " "}
    result = air(ready, reranker=ready, held_out=0.4).run(docs, posts, qrels, tmp_path)
    assert result.learning is not None
    texts = [
        {topic.text.strip() for topic in one.values()}
        for one in (result.learning.train.topics, result.learning.dev.topics, result.runs["bm25"].topics)
    ]
    assert not texts[0] & texts[1]
    assert not (texts[0] | texts[1]) & texts[2]
    assert "whose text is" in (tmp_path / "recipe.md").read_text()

"""CanardT5: its context is that of the track's description, its rewrites those of the library. The model is tiny and random."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.odd_conversations import ODD, SIXTY, conversation

import fontes as ft
from fontes import Topic, Topics, Turn

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from support.tiny_t5 import WORDS, save_t5  # noqa: E402  (needs torch)

from fontes.neural.models.base import token_ids  # noqa: E402
from fontes.rewrite.canardt5 import context_parts  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_t5(tmp_path_factory.mktemp("t5"))
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    for parameter in model.parameters():
        parameter.data.mul_(2.5)  # rewrites that differ
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def t5(folder: Path) -> ft.CanardT5:
    return ft.CanardT5(str(folder), device="cpu", precision="float32", max_new_tokens=12, num_beams=4)


def words(generator: random.Random, least: int, most: int) -> str:
    return " ".join(generator.choices(WORDS, k=generator.randint(least, most)))


def conversations(number: int = 3, length: int = 6) -> Topics:
    generator = random.Random(3)
    topics = []
    for c in range(number):
        turns: tuple[Turn, ...] = ()
        for n in range(1, length + 1):
            turns = (*turns, Turn(words(generator, 1, 8), answer=words(generator, 0, 40)))
            topics.append(Topic(f"{c}_{n}", turns[-1].text, turns=turns))
    return Topics(topics)


def texts(topics: Topics) -> list[str]:
    return [topic.text for topic in topics.values()]


def library(folder: Path, context: str, num_beams: int = 4, max_new_tokens: int = 12) -> str:
    """What transformers itself writes for one context."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    ids = tokenizer(context, return_tensors="pt").input_ids
    found = model.generate(ids, num_beams=num_beams, early_stopping=True, max_length=max_new_tokens + 1)
    text: str = tokenizer.decode(found[0], skip_special_tokens=True, clean_up_tokenization_spaces=True)
    return text.strip()


def test_the_context_of_107_8_is_that_of_the_tracks_description() -> None:
    turns = tuple(Turn(f"query 107-{n}", f"manual {n}", f"automatic {n}", f"passage 107-{n}") for n in range(1, 9))
    context = ft.CanardT5().context(Topic("107_8", "query 107-8", turns=turns))
    assert context == (
        "query 107-1 ||| query 107-2 ||| query 107-3 ||| query 107-4 ||| query 107-5 ||| passage 107-5 ||| query 107-6 ||| "
        "passage 107-6 ||| query 107-7 ||| passage 107-7 ||| query 107-8"
    )


def test_the_context_of_the_real_107_8(shared: Path) -> None:
    topic = ft.read_topics(shared / "cast2021/turns.jsonl")["107_8"]
    parts = ft.CanardT5().context(topic).split(" ||| ")
    queries = [turn.text for turn in topic.turns]
    passages = [turn.answer for turn in topic.turns]
    assert len(parts) == 11
    assert parts[:5] == queries[:5]
    assert parts[5::2] == passages[4:7]
    assert parts[6::2] == queries[5:8]


def test_the_context_has_the_raw_utterances_whatever_the_topic_was_rewritten_to() -> None:
    topic = conversation("1", "Who?", "Why?", manual="a rewrite")
    rewritten = (ft.rewrite.Manual() >> ft.rewrite.LastTurns())(topic)["1"]
    assert ft.CanardT5().context(rewritten) == "Who? ||| Why?"


def test_the_number_of_answers_can_be_chosen() -> None:
    topic = conversation("1", "a", "b", "c", answers=True)
    assert ft.CanardT5(answers=0).context(topic) == "a ||| b ||| c"
    assert ft.CanardT5(answers=1).context(topic) == "a ||| b ||| answer 2 ||| c"
    assert ft.CanardT5(answers=9).context(topic) == "a ||| answer 1 ||| b ||| answer 2 ||| c"


def test_contexts_of_odd_conversations() -> None:
    found = {topic.id: ft.CanardT5().context(topic) for topic in ODD.values()}
    assert found["empty"] == "Where is the lighthouse? ||| answer 1"
    assert found["blank"] == found["after-empty"] == found["no-turns"] == "Where is the lighthouse?"
    assert found["no-passages"] == "Where is the lighthouse? ||| Who built it?"
    assert found["czech"] == "Kdy byl postaven Karlův most? ||| answer 1 ||| Kdo ho nechal postavit?"
    assert found["why"] == "why?"
    assert found["sixty"].split(" ||| ") == [
        *SIXTY[:57],
        "answer 57",
        SIXTY[57],
        "answer 58",
        SIXTY[58],
        "answer 59",
        SIXTY[59],
    ]


@pytest.mark.slow
def test_rewrites_are_those_of_transformers_one_at_a_time(t5: ft.CanardT5, folder: Path) -> None:
    topics = conversations()
    expected = [library(folder, t5.context(topic)) or topic.text for topic in topics.values()]
    assert texts(t5(topics)) == expected
    assert len(set(expected)) > 5  # the model tells the contexts apart


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_rewrites_do_not_depend_on_what_else_is_in_the_batch(t5: ft.CanardT5, batch_size: int) -> None:
    topics = conversations()
    assert texts(t5.with_(batch_size=batch_size)(topics)) == texts(t5(topics))
    backwards = Topics(reversed(list(topics.values())))
    assert {topic.id: topic.text for topic in t5(backwards).values()} == {t.id: t.text for t in t5(topics).values()}


def test_a_rewritten_topic_keeps_its_turns_and_its_origin(t5: ft.CanardT5) -> None:
    topic = replace(conversations()["1_4"], weights={"water": 1.0})
    found = t5(topic)["1_4"]
    assert found.turns == topic.turns
    assert found.origin is topic
    assert found.weights is None


def test_odd_conversations_are_rewritten_or_left(t5: ft.CanardT5) -> None:
    found = {topic.id: topic.text for topic in t5(ODD).values()}
    assert found["empty"] == ""
    assert found["blank"] == "   "
    assert all(text for name, text in found.items() if name not in ("empty", "blank"))


def test_only_empty_turns_need_no_model() -> None:
    given = conversation("1", "Who?", "")
    assert texts(ft.CanardT5("/no/such/folder")(given)) == [""]


def inputs(t5: ft.CanardT5, topic: Topic, max_length: int) -> str:
    """What the model reads, as text."""
    model = t5._model
    (ids,) = model.inputs([context_parts(topic, t5.answers)], max_length)
    assert len(ids) <= max_length
    assert ids[-1] == model.tokenizer.eos_token_id
    text: str = model.tokenizer.decode(ids[:-1]).replace("▁", "").replace("<unk>", "|")
    return " ".join(text.split())


def test_a_context_that_fits_is_read_as_one_text(t5: ft.CanardT5, folder: Path) -> None:
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    topics = conversations()
    given = [context_parts(topic, t5.answers) for topic in topics.values()]
    expected = [tokenizer(t5.context(topic))["input_ids"] for topic in topics.values()]
    assert t5._model.inputs(given, 512) == expected


def test_a_context_that_is_too_long_loses_its_oldest_parts(t5: ft.CanardT5) -> None:
    topic = conversation("1", "water spring", "geyser rock", "hot cold river", "lake rain")
    whole = "water spring | geyser rock | hot cold river | lake rain"
    length = len(t5._model.inputs([context_parts(topic, t5.answers)], 512)[0])
    assert inputs(t5, topic, length) == whole
    assert inputs(t5, topic, length - 1) == "geyser rock | hot cold river | lake rain"


def test_of_a_context_that_is_too_long_the_newest_parts_are_read_at_every_length(t5: ft.CanardT5) -> None:
    separator = len(token_ids(t5._model.tokenizer, ["|||"], special=False)[0])
    said = [
        "rock",
        "hot cold river lake rain storm well",
        "cave",
        "water spring",
        "geyser rock",
    ]  # an old short, a long, shorts
    topic = conversation("1", *said)
    parts = [text.split() for text in said]
    lengths = []
    for space in range(7, 40):
        fitting = (n for n in range(len(parts)) if sum(map(len, parts[n:])) + separator * (len(parts) - n - 1) <= space)
        expected = [word for part in parts[next(fitting) :] for word in ("|", *part)][1:]
        assert inputs(t5, topic, space + 1) == " ".join(expected), space
        lengths.append(len(expected))
    assert lengths[0] < lengths[-1] == sum(map(len, parts)) + len(parts) - 1


def test_the_part_before_the_turn_loses_its_end_and_so_does_a_turn_that_is_too_long(t5: ft.CanardT5) -> None:
    topic = conversation("1", "water", "geyser rock hot cold river", "lake rain")
    separator = len(token_ids(t5._model.tokenizer, ["|||"], special=False)[0])
    space = 2 + separator + 3 + 1  # the turn, the separator, three words of the part before, the end
    assert inputs(t5, topic, space) == "geyser rock hot | lake rain"
    long = conversation("1", "water", "geyser rock hot cold river lake rain storm well cave")
    assert inputs(t5, long, 8) == "geyser rock hot cold river lake rain"


def test_sixty_turns_with_long_answers_are_rewritten(t5: ft.CanardT5) -> None:
    answer = " ".join(WORDS * 20)
    turns = tuple(Turn(f"water {n}", answer=answer) for n in range(60))
    topic = Topic("1", turns[-1].text, turns=turns)
    read = inputs(t5, topic, 512)
    assert read.startswith(" ".join(WORDS[:5]))
    assert read.endswith(" | " + inputs(t5, Topic("2", turns[-1].text), 512))
    assert t5(topic)["1"].text


def test_text_that_is_no_unicode_is_read(t5: ft.CanardT5) -> None:
    assert t5(conversation("1", "water \ud800", "rock?"))["1"].text


def test_progress_counts_contexts(t5: ft.CanardT5) -> None:
    seen = []
    t5(conversations(), progress=seen.append)
    contexts = len({context_parts(topic, t5.answers) for topic in conversations().values()})
    assert (seen[-1].task, seen[-1].done, seen[-1].total, seen[-1].unit) == ("rewriting", contexts, contexts, "turns")
    assert seen[-1].fraction == pytest.approx(1.0)


def test_the_key_changes_with_the_weights_and_with_what_is_read(t5: ft.CanardT5, tmp_path: Path) -> None:
    other = t5.with_(name_or_path=str(save_t5(tmp_path / "other")))
    keys = {t5.key(), t5.with_(answers=1).key(), t5.with_(num_beams=2).key(), other.key()}
    assert len(keys) == 4
    assert t5.with_(batch_size=3).key() == t5.key()


def test_a_model_that_is_not_there_or_is_no_t5_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ft.core.InputError, match="the T5 rewriter castorini/no-such-canard is not on this machine"):
        ft.CanardT5("castorini/no-such-canard")("why?")
    from support.tiny_models import tiny

    with pytest.raises(ft.core.InputError, match="is no T5 rewriter: its architecture is BertModel"):
        ft.CanardT5(tiny("bert"))("why?")

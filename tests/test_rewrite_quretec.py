"""QuReTeC and its training, with a tiny model of random weights that learns one pattern in seconds."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fontes.app import cli
from fontes.core import InputError, ParameterError, Topic, Topics, Turn
from fontes.data import read_canard
from fontes.rewrite import QuReTeC, TermScores, relevant_terms, term_scores
from fontes.rewrite.quretec_terms import Labels, history_of, words_of
from fontes.train import TermProgress, TermSettings, TermTraining, train_terms

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

NOUNS = re.findall(
    r"\w+",
    "harbour lighthouse bridge tower castle museum station garden river canal market library church theatre school factory "
    "cinema stadium airport hospital palace mill abbey pier quarry forest valley island tunnel prison fountain orchard barn",
)
WORDS = re.findall(r"\S+", "tell me about the is it old who built how big when was made and what of ? . why again")
SETTINGS = TermSettings(epochs=15, batch=8, lr=5e-3, dropout=0.0, held_out=0.2, precision="float32", max_length=48)


def conversation(number: int, noun: str) -> list[Topic]:
    """Three turns that lack the noun of the first."""
    turns: tuple[Turn, ...] = ()
    topics = []
    for text, manual in (
        (f"Tell me about the {noun}.", f"Tell me about the {noun}."),
        ("Is it old?", f"Is the {noun} old?"),
        ("Who built it?", f"Who built the {noun}?"),
    ):
        turns = (*turns, Turn(text, manual=manual, answer=f"The {noun} is big." if turns else ""))
        topics.append(Topic(f"c{number}_{len(turns)}", text, turns=turns))
    return topics


TOPICS = Topics(topic for number, noun in enumerate(NOUNS) for topic in conversation(number, noun))


def asked(*texts: str, manual: str = "", answers: bool = False, id: str = "1_1") -> Topic:
    turns = tuple(Turn(text, manual=manual, answer="The mill is old." if answers else "") for text in texts)
    return Topic(id, texts[-1], turns=turns)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two small layers with random weights."""
    folder = tmp_path_factory.mktemp("base")
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [
        *marks,
        *sorted({*WORDS, *NOUNS, *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")}),
    ]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    transformers.set_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TermTraining]:
    folder = tmp_path_factory.mktemp("trained") / "model"
    return folder, train_terms(TOPICS, folder, base, SETTINGS)


@pytest.fixture(scope="module")
def model(trained: tuple[Path, TermTraining]) -> QuReTeC:
    return QuReTeC(trained[0], precision="float32", device="cpu")


# What is relevant


def test_a_word_is_relevant_where_its_stem_is_in_the_rewrite_and_not_in_the_turn() -> None:
    topic = replace(
        TOPICS["c0_2"],
        turns=(Turn("Do the lighthouses of Rhodes shine?"), Turn("Is it old?", manual="Is the lighthouse of Rhodes old?")),
    )
    marked = dict(zip(history_of(topic), Labels()(topic), strict=True))
    assert [word for word, relevant in marked.items() if relevant] == ["lighthouses", "Rhodes"]
    again = replace(topic, turns=(topic.turns[0], replace(topic.turns[1], text="Is the lighthouse old?")))
    assert [w for w, relevant in zip(history_of(again), Labels()(again), strict=True) if relevant] == ["Rhodes"]


def test_stop_words_and_marks_are_never_relevant() -> None:
    topic = asked("Who are they?", "Why?", manual="Why are they who? ?")
    assert Labels()(topic) == [False] * 4


def test_labels_in_czech_take_czech_stems() -> None:
    topic = Topic(
        "1_2",
        "Kdo ho nechal postavit?",
        turns=(Turn("Co je Karlův most?"), Turn("Kdo ho nechal postavit?", "Kdo nechal postavit Karlova mostu?")),
    )
    assert Labels("czech")(topic) == [False, False, True, True, False]


def test_a_topic_without_a_manual_rewrite_has_no_labels() -> None:
    with pytest.raises(InputError, match="topic '1_1': its last turn has no manual rewrite"):
        Labels()(asked("a", "b"))


def test_the_history_holds_the_answers_of_the_last_turns_before_the_current_one() -> None:
    topic = TOPICS["c0_3"]
    assert history_of(topic) == words_of("Tell me about the harbour. Is it old?")
    assert history_of(topic, 1) == words_of("Tell me about the harbour. Is it old? The harbour is big.")
    assert history_of(asked("One?", "Two?", "Three?", answers=True), 9) == words_of(
        "One? The mill is old. Two? The mill is old."
    )
    assert history_of(asked("alone", answers=True), 3) == []


def test_terms_of_a_released_conversation(shared: Path) -> None:
    topic = read_canard(shared / "canard" / "dev.json")["C_2d211835213b45588ad5ca868ce7fabd_0_2"]
    assert relevant_terms(topic, 1) == ["Zappa", "Mothers", "Invention"]
    assert relevant_terms(topic) == []


# Scores


def test_scores_count_distinct_terms_or_each_occurrence() -> None:
    topic = asked("The mill, the old mill.", "And?", manual="And the mill?")
    found = {"1_1": [("The", 0.1), ("mill", 0.9), (",", 0.0), ("the", 0.1), ("old", 0.8), ("mill", 0.2), (".", 0.0)]}
    assert term_scores(found, [topic]) == TermScores(1, relevant=1, found=2, correct=1)
    assert term_scores(found, [topic], each="occurrence") == TermScores(1, relevant=2, found=2, correct=1)
    assert term_scores(found, [topic], threshold=0.85) == TermScores(1, relevant=1, found=1, correct=1)
    scores = term_scores(found, [topic], each="occurrence")
    assert (scores.precision, scores.recall, scores.f1) == (0.5, 0.5, 0.5)
    with pytest.raises(ParameterError, match="each is 'term' or 'occurrence'"):
        term_scores(found, [topic], each="word")


def test_words_that_the_model_did_not_read_count_as_not_found() -> None:
    topic = asked("The mill.", "The pier.", "And?", manual="And the mill and the pier?")
    read = [("The", 0.0), ("pier", 0.9), (".", 0.0)]
    assert term_scores({"1_1": read}, [topic]) == TermScores(1, relevant=2, found=1, correct=1)
    assert term_scores({}, [topic]).recall == 0


def test_topics_without_earlier_turns_do_not_count() -> None:
    assert term_scores({}, [asked("The mill?", manual="The mill?")]) == TermScores(0, 0, 0, 0)
    assert TermScores(0, 0, 0, 0).f1 == 0


# Training


def test_training_learns_the_pattern(trained: tuple[Path, TermTraining], model: QuReTeC) -> None:
    _, made = trained
    assert made.losses[-1] < made.losses[0] / 5
    assert made.scores.f1 > 0.9
    seen = term_scores(model.probabilities(TOPICS), TOPICS, model.used_threshold)
    assert seen.f1 > 0.95
    assert seen.topics == 2 * len(NOUNS)


def test_what_was_trained_on_what_lies_beside_the_model(trained: tuple[Path, TermTraining], base: Path) -> None:
    folder, made = trained
    card = json.loads((folder / "term_classifier.json").read_text())
    assert card == json.loads(json.dumps(made.to_dict()))
    assert (card["topics"], card["trained"] + card["held"]) == (99, 66)
    assert card["base"] == str(base)
    assert card["epochs"] == 15
    assert {"precision", "recall", "f1"} <= card["scores"].keys()
    assert not list(folder.parent.glob(".*"))


def test_all_topics_of_a_conversation_are_on_one_side(base: Path, tmp_path: Path) -> None:
    made = train_terms(TOPICS, tmp_path / "m", base, replace(SETTINGS, epochs=1, held_out=0.5))
    assert (made.held, made.trained) == (32, 34)


def test_the_same_seed_gives_the_same_model(base: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=2, dropout=0.2)
    one, two, three = (
        train_terms(TOPICS, tmp_path / name, base, replace(settings, seed=seed))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.losses == two.losses
    assert one.fingerprint == two.fingerprint
    assert three.losses != one.losses


def test_minutes_stop_the_training_and_what_was_learned_is_kept(base: Path, tmp_path: Path) -> None:
    made = train_terms(TOPICS, tmp_path / "m", base, replace(SETTINGS, epochs=10**6, minutes=0.01))
    assert 0 < made.steps < 10**4
    assert QuReTeC(tmp_path / "m").probabilities(TOPICS)["c0_2"]


def test_a_limit_takes_fewer_topics_and_progress_is_told(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[TermProgress] = []
    clock = iter(range(10**6))
    monkeypatch.setattr("fontes.train.terms.time.perf_counter", lambda: 1.0 * next(clock))
    made = train_terms(TOPICS, tmp_path / "m", base, replace(SETTINGS, epochs=1, limit=20), progress=told.append)
    assert made.trained + made.held == 20
    assert told
    assert all(0 < one.step <= one.steps == made.steps and 0 <= one.part < 1 and one.loss > 0 for one in told)


def test_a_training_that_is_interrupted_leaves_what_was_there(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m"
    settings = replace(SETTINGS, epochs=1)
    first = train_terms(TOPICS, target, base, settings)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for name in ("_Trainer._step", "_held_out"):
        with monkeypatch.context() as patched:
            patched.setattr(f"fontes.train.terms.{name}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                train_terms(TOPICS, target, base, settings, overwrite=True)
        assert [path.name for path in tmp_path.iterdir()] == ["m"]
        assert json.loads((target / "term_classifier.json").read_text())["fingerprint"] == first.fingerprint


def test_a_model_that_is_there_is_replaced_only_when_asked(base: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=1)
    first = train_terms(TOPICS, tmp_path / "m", base, settings)
    with pytest.raises(InputError, match="is there already"):
        train_terms(TOPICS, tmp_path / "m", base, settings)
    second = train_terms(TOPICS, tmp_path / "m", base, replace(settings, seed=5), overwrite=True)
    assert second.fingerprint != first.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_only_a_term_classifier_is_ever_overwritten(base: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("Dear Ada")
    with pytest.raises(InputError, match="is no term classifier"):
        train_terms(TOPICS, tmp_path / "letters", base, SETTINGS, overwrite=True)
    with pytest.raises(InputError, match="cannot be made"):
        train_terms(TOPICS, tmp_path / "letters" / "letter.txt" / "m", base, SETTINGS)
    assert (tmp_path / "letters" / "letter.txt").read_text() == "Dear Ada"


def test_turns_without_a_rewrite_are_left_out(base: Path, tmp_path: Path) -> None:
    lacking = [asked("Is it old?", "Who built it?", id=f"x{number}_2") for number in range(5)]
    made = train_terms([*TOPICS.values(), *lacking], tmp_path / "m", base, replace(SETTINGS, epochs=1))
    assert (made.topics, made.trained + made.held) == (104, 66)


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([Topic("1_1", "a", turns=(Turn("a", "a"),))], "no topic has earlier turns and a manual rewrite"),
        ([asked("a", "b", manual="b")], "all topics are of one conversation"),
        ([asked("a", "b", id="1_1"), asked("a", "b", id="2_1")], "no topic has earlier turns and a manual rewrite"),
    ],
)
def test_topics_that_teach_nothing_are_errors(base: Path, tmp_path: Path, topics: list[Topic], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_terms(topics, tmp_path / "m", base, SETTINGS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs is above 0"),
        ({"minutes": -1}, "minutes is above 0"),
        ({"dropout": 1.0}, "dropout is from 0 up"),
        ({"held_out": 0}, "held_out above 0"),
        ({"max_length": 3}, "max_length is 8 or more"),
        ({"precision": "float8"}, "precision is auto or float32 or bfloat16"),
        ({"analyzer": "klingon"}, "klingon"),
    ],
)
def test_settings_that_make_no_sense_are_errors(base: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        train_terms(TOPICS, tmp_path / "m", base, replace(SETTINGS, **changes))


def test_a_base_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no encoder at"):
        train_terms(TOPICS, tmp_path / "m", tmp_path / "nowhere", SETTINGS)


# Rewriting


def test_the_relevant_terms_come_after_the_turn_and_the_topic_keeps_its_origin(model: QuReTeC) -> None:
    rewritten = model(TOPICS)
    assert rewritten["c0_1"].text == "Tell me about the harbour."
    assert rewritten["c0_3"].text == "Who built it? harbour"
    assert rewritten["c0_3"].origin is TOPICS["c0_3"]
    assert rewritten["c0_3"].turns == TOPICS["c0_3"].turns


def test_a_term_is_added_once_in_its_order_and_never_where_the_turn_has_it(model: QuReTeC) -> None:
    every = model.with_(threshold=0.0)
    assert every(asked("The mill, the old Mill.", "Is it old?"))["1_1"].text == "Is it old? The mill"
    assert every.terms(asked("a b a c", "b?")) == {"1_1": ["a", "c"]}
    assert model.with_(threshold=1.0)(TOPICS)["c0_2"].text == "Is it old?"


def test_probabilities_do_not_depend_on_what_else_is_in_the_batch(model: QuReTeC) -> None:
    together = model.probabilities(TOPICS)
    for name in ("c0_1", "c3_2", "c5_3"):
        alone = model.probabilities(TOPICS[name])[name]
        assert [word for word, _ in alone] == [word for word, _ in together[name]]
        assert [p for _, p in alone] == pytest.approx([p for _, p in together[name]], abs=1e-5)


def test_answers_belong_to_the_history_where_they_are_wanted(model: QuReTeC) -> None:
    topic = asked("Is it old?", "Who built it?", answers=True)
    assert [word for word, _ in model.probabilities(topic)["1_1"]] == words_of("Is it old?")
    assert [word for word, _ in model.with_(answers=1).probabilities(topic)["1_1"]] == words_of("Is it old? The mill is old.")


def test_a_long_history_loses_its_oldest_words_first(model: QuReTeC) -> None:
    turns = [f"Tell me about the {noun}." for noun in (*NOUNS, *NOUNS)][:60]
    topic = asked(*turns, "Who built it?")
    read = [word for word, _ in model.probabilities(topic)["1_1"]]
    assert read == words_of(" ".join(turns))[-len(read) :]
    assert 50 < len(read) <= 64 - 3 - 4  # the model has 64 positions, of which 7 are separators and the turn
    assert len(model.with_(max_length=20).probabilities(topic)["1_1"]) == 13
    assert model(topic)["1_1"].text.startswith("Who built it?")


def test_a_very_long_turn_leaves_half_to_the_history(model: QuReTeC) -> None:
    topic = asked("Tell me about the mill. " * 10, "old " * 500)
    assert 20 < len(model.probabilities(topic)["1_1"]) <= 32
    assert model(topic)["1_1"].text.startswith("old old")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("why?",), "why?"),
        (("why?", "why?", "why?"), "why?"),
        (("Tell me about the mill.", ""), "Tell me about the mill"),
        (("", "why?"), "why?"),
        (("   ", "   "), ""),
        (("?!", "why?"), "why?"),
        (("Kdy byl postaven Karlův most?", "Kdo ho nechal postavit?"), "Kdo ho nechal postavit? Kdy byl postaven Karlův most"),
        (("港はどこ？", "why?"), "why? 港はどこ"),
        (("\u200d\ufeff", "why?"), "why?"),
    ],
)
def test_odd_conversations(model: QuReTeC, texts: tuple[str, ...], expected: str) -> None:
    assert model.with_(threshold=0.0)(asked(*texts))["1_1"].text.strip() == expected
    assert model(asked(*texts))["1_1"].text.startswith(texts[-1].strip())


def test_topics_without_turns_need_no_model(tmp_path: Path) -> None:
    topics = Topics([Topic("1", "Where is the mill?"), asked("why?", id="2")])
    assert [topic.text for topic in QuReTeC(tmp_path / "nowhere")(topics).values()] == ["Where is the mill?", "why?"]
    assert len(QuReTeC("nowhere")(Topics())) == 0


def test_the_threshold_of_the_training_is_used_unless_another_is_given(
    model: QuReTeC, trained: tuple[Path, TermTraining]
) -> None:
    assert model.used_threshold == trained[1].threshold
    assert model.with_(threshold=0.3).used_threshold == 0.3


def test_the_key_tells_the_content_of_the_model(model: QuReTeC, trained: tuple[Path, TermTraining], tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(trained[0], tmp_path / "copy"))
    assert model.with_(model=str(copy)).key() == model.key()
    assert model.with_(answers=1).key() != model.key()
    assert trained[1].fingerprint != ""
    assert model.fingerprint == model.with_(model=str(copy)).fingerprint


# Models of others


def headed(base: Path, folder: Path, labels: list[str]) -> Path:
    config = transformers.AutoConfig.from_pretrained(base)
    config.id2label = dict(enumerate(labels))
    config.label2id = {name: number for number, name in enumerate(labels)}
    transformers.set_seed(3)
    transformers.BertForTokenClassification(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


def test_a_checkpoint_with_the_labels_of_the_authors_is_read(base: Path, tmp_path: Path) -> None:
    folder = headed(base, tmp_path, ["[PAD]", "O", "REL", "[CLS]", "[SEP]"])
    stage = QuReTeC(folder, precision="float32", device="cpu")
    (values,) = stage.probabilities(TOPICS["c0_2"]).values()
    assert stage.used_threshold == 0.5
    module = transformers.BertForTokenClassification.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        "tell me about the harbour . [SEP] is it old ?", return_tensors="pt"
    )
    with torch.inference_mode():
        direct = torch.softmax(module(**tokens).logits[0], dim=1)[1:7, 2]
    assert [p for _, p in values] == pytest.approx(direct.tolist(), abs=1e-5)


def test_models_that_are_no_term_classifiers_are_errors(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no term classifier: it has no weights for classifier\.(bias|weight)"):
        QuReTeC(base)(TOPICS)
    with pytest.raises(InputError, match=r"none of its labels \(A, B, C\) is REL"):
        QuReTeC(headed(base, tmp_path / "abc", ["A", "B", "C"]))(TOPICS)
    with pytest.raises(InputError, match="there is no term classifier at"):
        QuReTeC(tmp_path / "nowhere")(TOPICS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no term classifier"):
        QuReTeC(tmp_path / "empty")(TOPICS)


@pytest.mark.parametrize("change", [{"threshold": 1.5}, {"answers": -1}, {"max_length": 3}, {"answers": 0.5}])
def test_parameters_that_make_no_sense_are_errors(model: QuReTeC, change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="QuReTeC"):
        model.with_(**change)(TOPICS)


# The command


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["fontes", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr()
    return int(ended.value.code or 0), output.out, output.err


def test_the_command_trains_a_model(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "QuAC_dialog_id": topic.id.rpartition("_")[0],
            "Question_no": len(topic.turns),
            "HistoryQuestions": [turn.text for turn in topic.turns[:-1]],
            "Question": topic.text,
            "Rewrite": topic.turns[-1].manual,
        }
        for topic in TOPICS.values()
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    given = (
        "train",
        "terms",
        path,
        "-o",
        tmp_path / "m",
        "--base",
        base,
        "--epochs",
        1,
        "--lr",
        0.001,
        "--precision",
        "float32",
    )
    code, out, err = run(monkeypatch, capsys, *given)
    assert (code, "a term classifier from" in out, "held out: P " in out) == (0, True, True), err
    code, out, _ = run(monkeypatch, capsys, *given, "--overwrite", "--json", "--seed", 4)
    assert json.loads(out)["settings"]["seed"] == 4
    code, _, err = run(monkeypatch, capsys, *given)
    assert code == 1
    assert "is there already; give another folder, or overwrite it" in err
    code, _, err = run(monkeypatch, capsys, "train", "terms", tmp_path / "nothing.jsonl", "-o", tmp_path / "n")
    assert code == 1
    assert err.count("\n") == 1

"""Training a term classifier: what it learns, what it writes, what stops it; and the command."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import copy
import json
import re
import resource
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Fontes
from support.each import each
from support.term_classifier import NOUNS, SETTINGS, TOPICS, asked, base, model, one_thread, trained

from fontes.core import InputError, MissingExtraError, ParameterError, Topic, Topics, Turn
from fontes.core.work import Progress
from fontes.rewrite import QuReTeC, term_scores
from fontes.train import TermSettings, Training, train_terms
from fontes.train.terms import topic_split

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from fontes.train.runner.fitting import LengthGroupedSampler  # noqa: E402 (imports torch)
from fontes.train.terms import TermModel  # noqa: E402


def test_training_learns_the_pattern(trained: tuple[Path, Training], model: QuReTeC) -> None:
    _, made = trained
    assert made.losses[-1] < made.losses[0] / 5
    assert made.facts["scores"]["f1"] > 0.9
    seen = term_scores(model.probabilities(TOPICS), TOPICS, model.used_threshold)
    assert seen.f1 > 0.95
    assert seen.topics == 2 * len(NOUNS)


def test_what_was_trained_on_what_lies_beside_the_model(trained: tuple[Path, Training], base: Path) -> None:
    folder, made = trained
    card = json.loads((folder / "training.json").read_text())
    assert card == json.loads(json.dumps(made.to_dict()))
    facts = card["facts"]
    assert (facts["topics"], card["rows"] + facts["topics_validated"] + facts["topics_held_out"]) == (99, 66)
    assert card["base"] == str(base)
    assert {"precision", "recall", "f1"} <= facts["scores"].keys() & facts["chosen"].keys()
    assert 'quretec("model") >> bm25()' in (folder / "README.md").read_text()
    assert not list(folder.parent.glob(".*"))


def test_all_topics_of_a_conversation_are_on_one_side(base: Path, tmp_path: Path) -> None:
    made = train_terms(TOPICS, tmp_path / "m", base, SETTINGS.with_(epochs=1, held_out=0.5))
    assert (made.rows, made.facts["topics_validated"], made.facts["topics_held_out"]) == (34, 16, 16)
    sides = topic_split(TOPICS, SETTINGS.with_(held_out=0.5))
    conversations = [{topic.id.partition("_")[0] for topic in side} for side in sides]
    assert [len(side) for side in conversations] == [17, 8, 8]
    assert len(set.union(*conversations)) == 33


@pytest.mark.slow
def test_the_threshold_is_chosen_on_topics_that_are_not_measured(base: Path, tmp_path: Path) -> None:
    """The topics held out get rewrites that only a very low threshold would do justice to: that must not move it."""
    settings = SETTINGS.with_(epochs=8, held_out=0.5)
    plain = train_terms(TOPICS, tmp_path / "a", base, settings)
    held_out = {topic.id for topic in topic_split(TOPICS, settings).held_out}
    everything = {
        topic.id: replace(
            topic, turns=(*topic.turns[:-1], replace(topic.turns[-1], manual="Tell about the " + topic.turns[0].text))
        )
        for topic in TOPICS.values()
        if topic.id in held_out
    }
    other = train_terms([everything.get(t.id, t) for t in TOPICS.values()], tmp_path / "b", base, settings)
    assert other.losses == plain.losses
    assert all(other.facts[name] == plain.facts[name] for name in ("threshold", "chosen"))
    assert other.facts["scores"]["recall"] < plain.facts["scores"]["recall"]
    stage = QuReTeC(tmp_path / "b", precision="float32", device="cpu")
    sides = topic_split(TOPICS, settings)
    for side, scores in ((sides.validation, plain.facts["chosen"]), (sides.held_out, plain.facts["scores"])):
        topics = Topics(side)
        again = term_scores(stage.probabilities(topics), topics, plain.facts["threshold"])
        assert (again.topics, again.f1) == (len(side), scores["f1"])
    by_threshold = {
        at / 20: term_scores(stage.probabilities(Topics(sides.validation)), Topics(sides.validation), at / 20).f1
        for at in range(2, 19)
    }
    assert plain.facts["chosen"]["f1"] == max(by_threshold.values()) == by_threshold[plain.facts["threshold"]]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_model(base: Path, tmp_path: Path) -> None:
    settings = SETTINGS.with_(epochs=2, dropout=0.2)
    one, two, three = (
        train_terms(TOPICS, tmp_path / name, base, settings.with_(seed=seed)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.losses == two.losses
    assert one.fingerprint == two.fingerprint
    assert three.losses != one.losses


@pytest.mark.slow
def test_minutes_stop_the_training_and_what_was_learned_is_kept(base: Path, tmp_path: Path) -> None:
    made = train_terms(TOPICS, tmp_path / "m", base, SETTINGS.with_(epochs=10**6, minutes=0.01))
    assert 0 < made.steps < 10**4
    assert QuReTeC(tmp_path / "m").probabilities(TOPICS)["c0_2"]


def test_a_limit_takes_fewer_topics_and_progress_is_told(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Progress] = []
    clock = iter(range(10**6))
    monkeypatch.setattr("fontes.train.runner.fitting.time.perf_counter", lambda: 1.0 * next(clock))
    made = train_terms(TOPICS, tmp_path / "m", base, SETTINGS.with_(epochs=1, limit=20), progress=told.append)
    assert made.rows + made.facts["topics_validated"] + made.facts["topics_held_out"] == 20
    assert told
    for one in told:
        assert (one.task, one.unit, one.total) == ("training", "steps", made.steps)
        assert 0 < one.done <= made.steps
        assert one.fraction == one.done / one.total
        assert float(one.note.removeprefix("loss ")) > 0


@pytest.mark.slow
def test_a_training_goes_on_from_its_checkpoints_to_the_same_model(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SETTINGS.with_(epochs=4, dropout=0.2)
    whole = train_terms(TOPICS, tmp_path / "whole", base, settings)
    state = tmp_path / "m.training"
    monkeypatch.setattr("fontes.train.runner.fitting.CHECKPOINT_INTERVAL", 0.0)
    steps = 0

    def interrupt(self: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 17:
            raise KeyboardInterrupt
        return loss(self, *arguments, **more)

    with monkeypatch.context() as patched:
        loss = TermModel.loss
        patched.setattr(TermModel, "loss", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_terms(TOPICS, tmp_path / "m", base, settings)
    assert not (tmp_path / "m").exists()
    assert sorted(path.name for path in state.iterdir()) == ["checkpoint-16", "training.json"]
    told: list[int] = []
    monkeypatch.setattr(TermModel, "loss", lambda self, *a, **b: told.append(1) or loss(self, *a, **b))
    made = train_terms(TOPICS, tmp_path / "m", base, settings)
    assert len(told) == whole.steps - 16
    assert (made.steps, made.losses, made.fingerprint) == (whole.steps, whole.losses, whole.fingerprint)
    assert not state.exists()


def test_the_steps_are_those_of_adamw_with_a_rate_that_rises_and_falls(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same training in plain torch, over the same batches."""
    settings = SETTINGS.with_(epochs=2, weight=3.0, lr=2e-3)
    losses: list[float] = []
    loss = TermModel.loss

    def noted(self: Any, *arguments: Any, **more: Any) -> Any:
        value = loss(self, *arguments, **more)
        losses.append(float(value.detach()))
        return value

    monkeypatch.setattr(TermModel, "loss", noted)
    train_terms(TOPICS, tmp_path / "m", base, settings)
    model = TermModel(base, settings)
    network, rows = model.network, model.rows(topic_split(TOPICS, settings).learned)
    order = LengthGroupedSampler(rows.lengths, settings.batch, settings.seed)
    batches = []
    for epoch in range(2):
        order.set_epoch(epoch)
        batches += [model.collator([dict(rows.rows[n]) for n in batch]) for batch in order]
    decayed = [p for n, p in network.named_parameters() if not n.endswith("bias") and "LayerNorm" not in n]
    plain = [p for n, p in network.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}])
    expected = []
    network.train()
    for step, batch in enumerate(batches):
        part, labels = step / len(batches), batch["labels"]
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * min((part + 1 / len(batches)) / 0.1, (1 - part) / 0.9, 1.0)
        logits = network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        odds = torch.log_softmax(logits, dim=2)
        counted, weights = labels != -100, torch.tensor([1.0, 3.0])[labels.clamp(min=0)]
        value = -(weights * odds.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0])[counted].sum() / weights[counted].sum()
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        expected.append(float(value.detach()))
    assert len(losses) == 2 * -(-len(rows) // settings.batch)
    assert losses == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_a_training_that_is_interrupted_leaves_what_was_there(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m"
    settings = SETTINGS.with_(epochs=1)
    first = train_terms(TOPICS, target, base, settings)

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for name in ("terms.TermModel.loss", "terms._choose_threshold"):
        with monkeypatch.context() as patched:
            patched.setattr(f"fontes.train.{name}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                train_terms(TOPICS, target, base, settings, overwrite=True)
        assert {path.name for path in tmp_path.iterdir()} == {"m", "m.training"}
        assert json.loads((target / "training.json").read_text())["fingerprint"] == first.fingerprint


@pytest.mark.slow
def test_a_model_that_is_there_is_replaced_only_when_asked(base: Path, tmp_path: Path) -> None:
    settings = SETTINGS.with_(epochs=1)
    first = train_terms(TOPICS, tmp_path / "m", base, settings)
    with pytest.raises(InputError, match="exists already"):
        train_terms(TOPICS, tmp_path / "m", base, settings)
    second = train_terms(TOPICS, tmp_path / "m", base, settings.with_(seed=5), overwrite=True)
    assert second.fingerprint != first.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_only_a_trained_model_is_ever_overwritten(base: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("Dear Ada")
    with pytest.raises(InputError, match="is not a model trained by Fontes"):
        train_terms(TOPICS, tmp_path / "letters", base, SETTINGS, overwrite=True)
    with pytest.raises(InputError, match="cannot be created"):
        train_terms(TOPICS, tmp_path / "letters" / "letter.txt" / "m", base, SETTINGS)
    assert (tmp_path / "letters" / "letter.txt").read_text() == "Dear Ada"


def test_turns_without_a_rewrite_are_left_out(base: Path, tmp_path: Path) -> None:
    lacking = [asked("Is it old?", "Who built it?", id=f"x{number}_2") for number in range(5)]
    made = train_terms([*TOPICS.values(), *lacking], tmp_path / "m", base, SETTINGS.with_(epochs=1))
    assert made.facts["topics"] == 104
    assert made.rows + made.facts["topics_validated"] + made.facts["topics_held_out"] == 66


@pytest.mark.parametrize("changes", [{"lr": 1e30}, {"weight": 1e39}, {"lr": 1e30, "epochs": 1, "batch": 1000}])
def test_a_training_that_learns_nothing_writes_no_model(base: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(
        ParameterError, match=r"with lr=.* and weight=.*: use smaller values|with lr=.* the numbers overflow: use smaller ones"
    ):
        train_terms(TOPICS, tmp_path / "m", base, SETTINGS.with_(**changes))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("limit", [300, 50_000])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(limit: int, base: Path, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(InputError, match=r"m(\.training)? cannot be written: .*File too large"):
            train_terms(TOPICS, tmp_path / "m", base, SETTINGS.with_(epochs=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "m").exists()


def test_the_command_trains_a_model(base: Path, tmp_path: Path, fontes: Fontes) -> None:
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
    code, out, err = fontes(*given)
    assert (code, "a term classifier from" in out) == (0, True), err
    assert re.search(r"^threshold 0\.\d+, chosen on P .*\nheld out from both: P .*\n$", out, re.MULTILINE)
    code, out, _ = fontes(*given, "--overwrite", "--json", "--seed", 4)
    assert json.loads(out)["settings"]["seed"] == 4
    code, _, err = fontes(*given)
    assert code == 1
    assert "exists already; give another folder, or overwrite it" in err
    code, _, err = fontes("train", "terms", tmp_path / "nothing.jsonl", "-o", tmp_path / "n")
    assert code == 1
    assert err.count("\n") == 1

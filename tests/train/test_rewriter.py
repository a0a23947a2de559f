"""Training a T5 rewriter: what it reads, its losses, that it learns, what it writes, and how it goes on when killed."""

import json
import os
import random
import signal
from pathlib import Path

import pytest
from support.threads import one_thread as one_thread
from support.tiny_models import weights
from support.tiny_training import no_curves as no_curves
from typer.testing import CliRunner

import fontes as ft
from fontes import CanardT5, Topic, Topics, Turn
from fontes.app import cli
from fontes.core import InputError
from fontes.core.work import Progress
from fontes.train import RewriterSettings, train_rewriter
from fontes.train.rewriter import rewrite_pairs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
for library in ("sentence_transformers", "accelerate", "datasets"):
    pytest.importorskip(library)

from support.small import frequent_checkpoints  # noqa: E402
from support.tiny_t5 import TEXT, save_t5  # noqa: E402 (needs torch)

from fontes.train.rewriter import RewriterModel  # noqa: E402
from fontes.train.runner import fitting  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
CANARD = Path(__file__).parents[3] / "shared" / "data" / "canard" / "train.jsonl"
REAL = pytest.mark.skipif(not CANARD.is_file(), reason="the test collections are not here")
SETTINGS = RewriterSettings(epochs=2, batch=4, lr=1e-2, held_out=0.25, evaluations=1, dropout=0.0, precision="float32")
WORDS = TEXT.split()


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"))


def conversations(number: int = 4, length: int = 3) -> Topics:
    """Turns of two words; the rewrite is the first turn's first word and the turn."""
    generator = random.Random(2)
    topics = []
    for c in range(number):
        turns: tuple[Turn, ...] = ()
        subject = WORDS[c % len(WORDS)]
        for n in range(1, length + 1):
            text = " ".join(generator.sample(WORDS, 2))
            said = f"{subject} {text}" if n == 1 else text
            turns = (*turns, Turn(said, manual=f"{subject} {text}", answer=generator.choice(WORDS)))
            topics.append(Topic(f"c{c}_{n}", said, turns=turns))
    return Topics(topics)


def test_the_model_reads_what_the_stage_reads_and_writes_the_manual_rewrite(start: Path) -> None:
    topics = conversations()
    stage = CanardT5(str(start), answers=1)
    pairs = rewrite_pairs(topics, answers=1)
    assert [" ||| ".join(pair.context) for pair in pairs] == [stage.context(topic) for topic in topics.values()]
    assert [pair.rewrite for pair in pairs] == [topic.turns[-1].manual for topic in topics.values()]
    model = RewriterModel(start, SETTINGS.with_(max_length=16, target_length=3))
    rows = model.rows(pairs).rows
    for row, pair in zip(rows, pairs, strict=True):
        assert row["input_ids"] == stage._model.inputs([pair.context], 16)[0]
        assert len(row["input_ids"]) <= 16
        assert len(row["labels"]) == 3
        assert row["labels"][-1] == model.tokenizer.eos_token_id
    assert rewrite_pairs(Topics([Topic("1_1", "no rewrite", turns=(Turn("no rewrite"),)), Topic("2", "no turns")]), 3) == []


def test_the_steps_are_those_of_adamw_on_the_cross_entropy_of_the_rewrites_tokens(start: Path, tmp_path: Path) -> None:
    """The same training in plain torch."""
    settings = SETTINGS.with_(held_out=0.0, warm_up=0.0, order="shuffled")
    training = train_rewriter(conversations(), tmp_path / "m", start, settings)
    model = RewriterModel(start, settings)
    rows = model.rows(rewrite_pairs(conversations(), 3)).rows
    network = model.network.train()
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.0)
    order = fitting.LengthGroupedSampler([1] * len(rows), 4, 0)
    expected: list[float] = []
    for epoch in range(2):
        order.set_epoch(epoch)
        for batch in order:
            optimizer.param_groups[0]["lr"] = settings.lr * (1 - len(expected) / 6)
            losses = []
            for n in batch:  # one by one, without padding
                labels = torch.tensor([rows[n]["labels"]])
                logits = network(input_ids=torch.tensor([rows[n]["input_ids"]]), labels=labels).logits
                losses.append(torch.nn.functional.cross_entropy(logits[0], labels[0], reduction="none"))
            loss = torch.cat(losses).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            expected.append(float(loss.detach()))
    assert training.losses == pytest.approx(expected, rel=2e-3)
    assert (training.steps, training.best, training.rows) == (6, 6, 12)


def test_whole_conversations_are_held_out_and_their_loss_is_the_mean_over_tokens(start: Path, tmp_path: Path) -> None:
    training = train_rewriter(conversations(8), tmp_path / "m", start, SETTINGS.with_(batch=4, epochs=1))
    assert (training.rows, training.validated) == (18, 6)
    assert training.facts == {"conversations": 6, "conversations_validated": 2}
    model = RewriterModel(tmp_path / "m", SETTINGS)
    pairs = rewrite_pairs(conversations(8), 3)
    sums = {}
    for pair, row in zip(pairs, model.rows(pairs).rows, strict=True):
        labels = torch.tensor([row["labels"]])
        with torch.no_grad():
            logits = model.network.eval()(input_ids=torch.tensor([row["input_ids"]]), labels=labels).logits
        losses = torch.nn.functional.cross_entropy(logits[0], labels[0], reduction="none")
        total, count = sums.get(pair.conversation, (0.0, 0))
        sums[pair.conversation] = (total + float(losses.sum()), count + len(losses))
    means = {(a, b): (sums[a][0] + sums[b][0]) / (sums[a][1] + sums[b][1]) for a in sums for b in sums if a < b}
    assert min(abs(mean - training.figures["loss"]) for mean in means.values()) < 1e-4


@pytest.mark.slow
def test_it_memorises_a_few_rewrites_and_the_stage_writes_them(start: Path, tmp_path: Path) -> None:
    topics = conversations(2, 2)
    settings = SETTINGS.with_(epochs=60, held_out=0.0, batch=4)
    training = train_rewriter(topics, tmp_path / "m", start, settings)
    assert training.losses[-1] < 0.1 * training.losses[0]
    rewritten = CanardT5(str(tmp_path / "m"), num_beams=2, precision="float32", device="cpu", max_new_tokens=20)(topics)
    written = [topic.text.replace("▁", "") for topic in rewritten.values()]  # the small tokenizer has no decoder
    assert written == [topic.turns[-1].manual for topic in topics.values()]


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frequent_checkpoints(monkeypatch)
    settings = SETTINGS.with_(epochs=3)

    def die(at: Progress) -> None:
        if at.task == "training" and at.done == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        train_rewriter(conversations(), tmp_path / "killed", start, settings, progress=die)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    seen: list[int] = []
    killed = train_rewriter(conversations(), tmp_path / "killed", start, settings, progress=lambda at: seen.append(at.done))
    assert seen[0] == 5
    whole = train_rewriter(conversations(), tmp_path / "whole", start, settings)
    assert killed.losses == whole.losses
    assert killed.fingerprint == whole.fingerprint
    first, second = weights(tmp_path / "killed"), weights(tmp_path / "whole")
    assert all(torch.equal(first[name], second[name]) for name in second)


def test_the_command_trains_from_files_and_the_folder_has_a_card(start: Path, tmp_path: Path) -> None:
    ft.write_topics(conversations(), tmp_path / "topics.jsonl", format="jsonl")
    words = ["train", "rewriter", str(tmp_path / "topics.jsonl"), "-o", str(tmp_path / "m"), "--base", str(start)]
    words += ["--epochs", "1", "--batch", "4", "--lr", "0.01", "--held-out", "0.25", "--precision", "float32", "--limit", "8"]
    result = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "a T5 rewriter from 8 rows in 2 steps" in result.stdout
    assert f'use it as canard_t5("{tmp_path / "m"}")' in result.stdout
    card = (tmp_path / "m" / "README.md").read_text()
    assert 'library_name: "transformers"' in card
    assert 'canard_t5("m")' in card
    assert json.loads((tmp_path / "m" / "training.json").read_text())["kind"] == "T5 rewriter"
    with pytest.raises(InputError, match="exists already"):
        train_rewriter(conversations(), tmp_path / "m", start, SETTINGS)


@REAL
@pytest.mark.slow
def test_all_pairs_of_canard_are_read_and_a_small_t5_learns_from_some(start: Path, tmp_path: Path) -> None:
    topics = ft.read_topics(CANARD)
    assert len(rewrite_pairs(topics, 3)) == 31_526
    settings = SETTINGS.with_(limit=256, batch=16, epochs=3, held_out=0.001)
    training = train_rewriter(topics, tmp_path / "m", start, settings)
    losses = [row["loss"] for row in training.evaluations]
    assert losses == sorted(losses, reverse=True)
    assert training.facts["conversations_validated"] == 4

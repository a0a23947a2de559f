"""Training a cross-encoder: what it learns, what it is validated on, what it writes, and what it refuses."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import json
import math
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.graded import WordGrades, agreement
from support.small import frequent_reports
from support.tiny_cross_encoder import SIZES, save_cross_encoder
from support.tiny_training import SETTINGS, WORDS, base, candidates, examples, no_curves, one_thread

from fontes.core import InputError, MissingExtraError, ParameterError
from fontes.core.work import Progress
from fontes.measures import evaluate
from fontes.neural import CrossEncoder
from fontes.neural.models.hub import fingerprint
from fontes.train import CrossEncoderSettings, Examples, Training, Validation, train_cross_encoder
from fontes.train.cross_encoder import PRESETS, settings_of
from fontes.train.runner.card import learning_curves

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
for library in ("sentence_transformers", "accelerate", "datasets"):
    pytest.importorskip(library)

from fontes.train.pair_model import PairModel  # noqa: E402
from fontes.train.runner.fitting import LengthGroupedSampler  # noqa: E402 (imports torch)
from fontes.train.runner.used_embeddings import UsedEmbeddings, UsedRows  # noqa: E402

DATA = examples()


def scores_in_numpy(network: Any, pairs: list[tuple[str, str]]) -> np.ndarray:
    with torch.no_grad():
        return np.concatenate([network.predict([pair], show_progress_bar=False) for pair in pairs]).ravel()


def test_the_steps_are_those_of_adamw_on_the_cross_entropy_of_pairs(base: Path, tmp_path: Path) -> None:
    """The same training in plain torch, over the same batches."""
    settings = SETTINGS.with_(held_out=0.0, warm_up=0.2)
    losses = train_cross_encoder(DATA, tmp_path / "m", base, settings).losses
    pairs = [(e.query, p.text, float(p is e.positive)) for e in DATA for p in (e.positive, *e.negatives)]
    model = PairModel(base, settings)
    network = model.network.transformers_model.train()
    batches = LengthGroupedSampler(model.rows(DATA).lengths, 8, 0)
    steps = 2 * len(batches)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.0)
    expected = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        for batch in batches:
            step, rising = len(expected), math.ceil(0.2 * steps)
            rate = step / rising if step < rising else (steps - step) / (steps - rising)
            optimizer.param_groups[0]["lr"] = settings.lr * rate
            texts = [pairs[n][:2] for n in batch]
            tokens = model.network.tokenizer(*map(list, zip(*texts, strict=True)), padding=True, return_tensors="pt")
            logits = network(**tokens).logits[:, 0]
            labels = torch.tensor([pairs[n][2] for n in batch])
            loss = -(labels * torch.log(torch.sigmoid(logits)) + (1 - labels) * torch.log(1 - torch.sigmoid(logits))).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            expected.append(float(loss.detach()))
    assert len(expected) == 20
    assert losses == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("loss", ["margin", "teacher"])
def test_the_losses_of_distances_are_their_formulas(loss: str, base: Path) -> None:
    data = examples(4, scored=True)
    model = PairModel(base, SETTINGS.with_(loss=loss, margin=0.3))
    rows = model.rows(data).rows
    labels = [torch.tensor(row["labels"]) for row in rows]
    value = model.loss()([[row["query"] for row in rows], [row["documents"] for row in rows]], labels)
    terms = []
    for one in data:
        first, *others = scores_in_numpy(model.network, [(one.query, p.text) for p in (one.positive, *one.negatives)])
        for score, passage in zip(others, one.negatives, strict=True):
            wrong = (first - score) - (one.positive.score - passage.score)  # type: ignore[operator]
            terms.append(max(0.0, 0.3 - (first - score)) if loss == "margin" else wrong**2)
    assert float(value.detach()) == pytest.approx(np.mean(terms), rel=1e-4)


def test_the_softmax_of_a_teachers_scores_is_learned_over_each_group(base: Path) -> None:
    data = examples(4, scored=True)
    model = PairModel(base, SETTINGS.with_(loss="kl", teacher_scale=0.5))
    rows = model.rows(data).rows
    labels = [torch.tensor(row["labels"]) for row in rows]
    value = model.loss()([[row["query"] for row in rows], [row["documents"] for row in rows]], labels)
    terms = []
    for one in data:
        passages = (one.positive, *one.negatives)
        own = scores_in_numpy(model.network, [(one.query, p.text) for p in passages])
        taught = np.exp([0.5 * (p.score or 0.0) for p in passages])
        terms.append(-(taught / taught.sum() * (own - np.log(np.exp(own).sum()))).sum())
    assert float(value.detach()) == pytest.approx(np.mean(terms), rel=1e-4)


@pytest.mark.parametrize("loss", ["teacher", pytest.param("kl", marks=pytest.mark.slow)])
def test_a_student_comes_to_rank_other_queries_documents_as_its_teacher_does(loss: str, base: Path, tmp_path: Path) -> None:
    data = examples(60, negatives=7).scored(WordGrades(tuple(WORDS)))
    learned, others = Examples(data[:40]), Examples(data[40:])
    settings = SETTINGS.with_(loss=loss, held_out=0.0, epochs=8, batch=4)
    untaught = PairModel(base, settings).network
    before = agreement(lambda query, texts: scores_in_numpy(untaught, [(query, text) for text in texts]), others)
    train_cross_encoder(learned, tmp_path / "m", base, settings)
    student = CrossEncoder(str(tmp_path / "m"), precision="float32")
    after = agreement(lambda query, texts: student.pair_scores([(query, text) for text in texts]), others)
    assert after > before + 0.2


def test_lambda_loss_is_that_of_the_paper(base: Path) -> None:
    """NDCG-Loss2++ of Wang et al. 2018 with mu 10, in plain loops: a mean over the pairs of a better and a worse document."""
    data = examples(3)
    model = PairModel(base, SETTINGS.with_(loss="lambda"))
    rows = model.rows(data).rows
    value = model.loss()(
        [[row["query"] for row in rows], [row["documents"] for row in rows]], [torch.tensor(row["labels"]) for row in rows]
    )
    terms = []
    for one in data:
        scores = scores_in_numpy(model.network, [(one.query, p.text) for p in (one.positive, *one.negatives)])
        order = np.argsort(-scores)
        ranked, gains = scores[order], (order == 0).astype(float)  # the best DCG is 1, so the gains are normalized
        discount = np.log2(1 + np.arange(1, len(order) + 1))
        for i in range(len(order)):
            for j in range(len(order)):
                if gains[i] > gains[j]:
                    near = abs(i - j)
                    delta = abs(1 / np.log2(1 + near) - 1 / np.log2(2 + near))
                    weight = (10 * delta + abs(1 / discount[i] - 1 / discount[j])) * abs(gains[i] - gains[j])
                    terms.append(-weight * np.log2(1 / (1 + np.exp(-(ranked[i] - ranked[j])))))
    assert float(value.detach()) == pytest.approx(np.mean(terms), rel=1e-3)


@pytest.mark.slow
def test_what_it_learned_ranks_documents_of_queries_that_it_did_not_see(base: Path, tmp_path: Path) -> None:
    """Means over seeds, against each model's own start: 60 topics of four documents, where chance differs by some 0.05."""
    everything = list(examples(180))
    learned, unseen = Examples(everything[:120]), Examples(everything[120:])
    settings = SETTINGS.with_(epochs=4, loss="margin", held_out=0.0)

    def gain(data: Examples, seed: int) -> float:
        run, qrels = candidates(data)
        models = (tmp_path / f"{name}{seed}" for name in ("start", "end"))
        start, end = (evaluate(CrossEncoder(model, precision="float32")(run), qrels, "RR@5")["RR@5"] for model in models)
        return end - start

    for seed in range(3):
        train_cross_encoder(
            Examples(everything[:4]), tmp_path / f"start{seed}", base, settings.with_(lr=1e-12, epochs=1, seed=seed)
        )
        train_cross_encoder(learned, tmp_path / f"end{seed}", base, settings.with_(seed=seed))
    assert np.mean([gain(learned, seed) for seed in range(3)]) > 0.25
    assert np.mean([gain(unseen, seed) for seed in range(3)]) > 0.15


@pytest.mark.slow
def test_the_figure_of_the_best_state_is_that_of_the_model_that_was_written(base: Path, tmp_path: Path) -> None:
    run, qrels = candidates(DATA)
    settings = SETTINGS.with_(best="RR@5", evaluations=3)
    made = train_cross_encoder(DATA, tmp_path / "m", base, settings, Validation(run=run, qrels=qrels))
    _, held_out = DATA.held_out(0.2, 0)
    of_held_out = {topic: qrels[topic] for topic in held_out.topics}
    reranked = CrossEncoder(tmp_path / "m", precision="float32")(run)
    assert made.figures["RR@5"] == pytest.approx(evaluate(reranked, of_held_out, "RR@5")["RR@5"])
    assert made.facts["topics_measured"] == 4
    assert [row["step"] for row in made.evaluations] == [3, 5, 8, 11, 13, 16]
    values = [row["RR@5"] for row in made.evaluations]
    assert made.best == made.evaluations[values.index(max(values))]["step"]


@pytest.mark.slow
def test_the_best_state_is_that_of_the_least_loss_where_no_measure_is_named(base: Path, tmp_path: Path) -> None:
    made = train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS.with_(lr=0.1, epochs=4))
    losses = [row["loss"] for row in made.evaluations]
    assert made.figures == {"loss": min(losses)}
    assert min(losses) < losses[-1]  # or nothing is shown
    _, held_out = DATA.held_out(0.2, 0)
    pairs = [(e.query, p.text) for e in held_out for p in (e.positive, *e.negatives)]
    labels = np.array([float(p is e.positive) for e in held_out for p in (e.positive, *e.negatives)])
    logits = CrossEncoder(tmp_path / "m", precision="float32").scores(pairs).astype(float)
    expected = np.mean(np.log1p(np.exp(-logits)) * labels + np.log1p(np.exp(logits)) * (1 - labels))
    assert made.figures["loss"] == pytest.approx(expected, rel=1e-4)


def test_the_same_seed_gives_the_same_model_and_another_gives_another(base: Path, tmp_path: Path) -> None:
    settings = SETTINGS.with_(dropout=0.1, epochs=1)
    made = [
        train_cross_encoder(DATA, tmp_path / str(n), base, settings.with_(seed=seed)).fingerprint
        for n, seed in enumerate((3, 3, 4))
    ]
    assert made[0] == made[1] != made[2]
    assert made[0] == fingerprint(tmp_path / "0")


@pytest.mark.slow
def test_an_encoder_without_a_head_gets_one_and_a_cross_encoder_keeps_its_own(base: Path, tmp_path: Path) -> None:
    settings = SETTINGS.with_(epochs=1)
    first = train_cross_encoder(DATA, tmp_path / "a", base, settings)
    again = train_cross_encoder(DATA, tmp_path / "b", tmp_path / "a", settings.with_(lr=1e-9))
    assert (first.facts["new_head"], again.facts["new_head"]) == (True, False)
    pairs = [(e.query, e.positive.text) for e in DATA]
    of_first, of_again = (CrossEncoder(tmp_path / name, precision="float32").scores(pairs) for name in "ab")
    assert of_again == pytest.approx(of_first, abs=1e-5)


@each(("loss", "rows"), [("lambda", 16), ("teacher", 16), ("kl", 16), ("bce", 64)])
def test_each_loss_trains_a_model(loss: str, rows: int, base: Path, tmp_path: Path) -> None:
    made = train_cross_encoder(examples(scored=True), tmp_path / "m", base, SETTINGS.with_(loss=loss, epochs=1))
    assert (made.rows, made.validated) == (rows, 4 if loss != "bce" else 16)
    assert np.isfinite(made.losses).all()
    assert CrossEncoder(tmp_path / "m").scores([("water", "hot spring")]).shape == (1,)


def pairs_of(data: Examples) -> list[tuple[str, str]]:
    return [(example.query, passage.text) for example in data for passage in (example.positive, *example.negatives)]


def test_longer_texts_are_cut_at_max_length(base: Path) -> None:
    assert max(PairModel(base, SETTINGS.with_(max_length=12)).rows(DATA).lengths) == 12
    whole = [len(query.split()) + len(text.split()) + 3 for query, text in pairs_of(DATA)]
    share = sum(length > 12 for length in whole) / len(whole)
    assert 0 < share < 1
    assert PairModel(base, SETTINGS.with_(max_length=12)).cut_of(DATA) == {"tokens_read": 12, "pairs_cut": round(share, 6)}
    assert max(PairModel(base, SETTINGS).rows(DATA).lengths) > 12


def test_batches_are_of_like_length_and_have_each_row_once() -> None:
    lengths = np.random.default_rng(0).integers(5, 100, 203).tolist()
    order = LengthGroupedSampler(lengths, 8, seed=1)
    epochs = []
    for epoch in (0, 1, 0):
        order.set_epoch(epoch)
        epochs.append(list(order))
        assert sorted(n for batch in epochs[-1] for n in batch) == list(range(203))
        assert len(epochs[-1]) == len(order) == 26
    assert epochs[0] == epochs[2] != epochs[1]
    spread = [max(lengths[n] for n in batch) - min(lengths[n] for n in batch) for batch in epochs[0]]
    assert np.mean(spread) < 20  # of eight at random some 75
    firsts = [lengths[batch[0]] for batch in epochs[0]]
    assert firsts != sorted(firsts, reverse=True)


@pytest.mark.slow
def test_bfloat16_trains_too_and_the_calibration_says_which_is_quicker(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = train_cross_encoder(DATA, tmp_path / "a", base, SETTINGS.with_(precision="bfloat16"))
    assert made.precision == "bfloat16"
    assert np.isfinite(made.losses).all()
    monkeypatch.setattr("fontes.train.runner.fitting.CALIBRATED_FROM", 1)
    monkeypatch.setattr("fontes.train.runner.fitting.candidates", lambda device: ["bfloat16"])
    made = train_cross_encoder(DATA, tmp_path / "b", base, SETTINGS.with_(precision="auto"))
    assert re.fullmatch(r"(float32|bfloat16) \(calibration: float32 \d+ ms, bfloat16 \d+ ms a step\)", made.precision)


def test_nothing_is_asked_of_the_network_no_library_prints_and_the_card_says_what_was_trained_on_what(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    made = train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS)
    assert capfd.readouterr() == ("", "")
    monkeypatch.undo()
    says_what_was_trained_on_what(tmp_path / "m", made)


def says_what_was_trained_on_what(folder: Path, made: Training) -> None:
    """The card of a model does."""
    card = (folder / "README.md").read_text()
    for text in (
        DATA.hash,
        made.fingerprint,
        "| lr | 0.003 |",
        "| new head | True |",
        f"{made.figures['loss']:.4f}",
        "not stated",
    ):
        assert text in card
    assert json.loads((folder / "training.json").read_text())["losses"] == list(made.losses)
    assert "curves.svg" not in card  # as there is no matplotlib in these tests


@pytest.mark.slow
def test_progress_tells_the_loss_what_was_validated_and_the_time_left(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent_reports(monkeypatch)
    told: list[Progress] = []
    made = train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS, progress=told.append)
    assert [one.done for one in told] == list(range(1, made.steps + 1))
    assert re.fullmatch(
        r"training: 9 of 16 steps, .* a second, \d+ s left, loss 0\.\d{4}, validation loss 0\.\d{4}", str(told[8])
    )


@pytest.mark.slow
def test_the_curves_show_the_losses_and_what_was_validated(tmp_path: Path) -> None:
    measured = [{"step": 100.0, "loss": 0.5, "RR@5": 0.4}, {"step": 200.0, "loss": 0.6, "RR@5": 0.7}]
    losses = np.linspace(1, 0.1, 200).tolist()
    plot = learning_curves(losses, measured, best=200)
    assert plot.caption == "the loss and RR@5 while training; the line marks step 200, which was chosen"
    loss, rank = plot.figure.axes
    assert (loss.get_ylabel(), rank.get_ylabel()) == ("loss", "RR@5")
    drawn = [line.get_ydata() for line in loss.lines]
    assert len(drawn[0]) == 100
    assert drawn[0][0] == pytest.approx((losses[0] + losses[1]) / 2)
    assert list(drawn[1]) == [0.5, 0.6]
    assert plot.to_bytes("svg") == learning_curves(losses, measured, best=200).to_bytes("svg")


def test_the_licence_is_that_of_the_base(base: Path, tmp_path: Path) -> None:
    from fontes.train.runner.card import licence_of

    assert licence_of(base) == "not stated"
    (tmp_path / "config.json").write_text('{"license": "mit"}')
    assert licence_of(tmp_path) == "mit"
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\nlicense: gpl\n")
    assert licence_of(tmp_path) == "apache-2.0"
    (tmp_path / "README.md").write_text("# A model\n\nlicense: gpl\n")
    assert licence_of(tmp_path) == "mit"


def test_topics_that_are_learned_from_are_not_measured(base: Path, tmp_path: Path) -> None:
    run, qrels = candidates(DATA)
    both = train_cross_encoder(DATA, tmp_path / "m", base, SETTINGS, Validation(run=run, qrels=qrels))
    assert list(both.figures) == ["loss", "nDCG@10"]


def test_the_preset_of_2025_is_what_its_report_says() -> None:
    preset = PRESETS["air2025"]
    assert (preset.loss, preset.batch, preset.epochs, preset.best, preset.held_out) == ("bce", 16, 2, "loss", 0.1)
    assert settings_of("air2025", epochs=3) == preset.with_(epochs=3)


@pytest.mark.slow
def test_words_that_do_not_occur_cost_nothing_and_change_nothing(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows stay as they were; the others are those of a training of all rows."""
    unusual = {"dye", "heat", "pipe", "cave", "well", "rain", "cold"}
    few = Examples(
        replace(one, negatives=one.negatives[:1])
        for one in examples(60)
        if not unusual & set(f"{one.query} {one.positive.text} {one.negatives[0].text}".split())
    )
    model = PairModel(base, SETTINGS)
    model.rows(few)
    before = model.network.transformers_model.get_input_embeddings().weight.detach().clone()
    unused = sorted(set(range(len(before))) - model.tokens)
    assert len(unused) > 0.2 * len(before)
    settings = SETTINGS.with_(held_out=0.0)
    made = [train_cross_encoder(few, tmp_path / "some", base, settings)]
    monkeypatch.setattr("fontes.train.runner.used_embeddings.MAX_USED_SHARE", 0.0)
    made.append(train_cross_encoder(few, tmp_path / "all", base, settings))
    assert made[0].losses == pytest.approx(made[1].losses, rel=1e-3)
    some, every = (
        PairModel(tmp_path / name, SETTINGS).network.transformers_model.get_input_embeddings().weight.detach()
        for name in ("some", "all")
    )
    assert torch.equal(some[unused], before[unused])
    assert torch.equal(every[unused], before[unused])
    assert torch.allclose(some, every, atol=1e-5)
    assert not torch.allclose(some, before, atol=1e-4)


def test_rows_of_an_embedding_that_are_not_trained_come_as_they_are() -> None:
    whole = torch.nn.Embedding(10, 4, padding_idx=0)
    small = UsedRows(whole, torch.tensor([0, 2, 5]))
    ids = torch.tensor([[2, 5, 7], [0, 2, 9]])
    assert torch.equal(small(ids), whole(ids))
    small(ids).sum().backward()
    assert small.weight.grad.tolist() == [[0.0] * 4, [2.0] * 4, [1.0] * 4]  # of padding none, as in the whole


def test_where_nobody_says_which_words_occur_all_are_trained() -> None:
    model = torch.nn.Sequential(transformers.BertModel(transformers.BertConfig(**SIZES, vocab_size=50)))
    words = model[0].get_input_embeddings()
    for tokens in ((), range(45)):
        UsedEmbeddings(model, tokens)
        assert model[0].get_input_embeddings() is words
    vocabulary = UsedEmbeddings(model, [3, 5])
    small = model[0].get_input_embeddings()
    assert isinstance(small, UsedRows)
    with torch.no_grad():
        small.weight += 1
    before = words.weight.detach().clone()
    with vocabulary.whole():
        assert model[0].get_input_embeddings() is words
        assert torch.equal(words.weight[[3, 5]], before[[3, 5]] + 1)
    assert model[0].get_input_embeddings() is small

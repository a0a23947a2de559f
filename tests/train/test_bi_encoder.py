"""Training a bi-encoder: its losses, what comes out, and how it goes on."""

import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.dual_encoders import batch_of
from support.each import each
from support.graded import WordGrades, agreement
from support.paired_words import ASKED, FILLED, KINDS, MEANT, SETTINGS, examples, one_thread, start  # noqa: F401
from support.small import frequent_checkpoints
from support.tiny_models import weights

import fontes as ft
from fontes import ChunkedEncoder, Doc, SentenceEncoder
from fontes.core.work import Progress
from fontes.neural.encoders.trainable import trainable
from fontes.train import (
    BiEncoderSettings,
    Example,
    Examples,
    LabelledPairs,
    Passage,
    SearchValidation,
    Training,
    train_bi_encoder,
)
from fontes.train.bi_encoder import windowed

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytest.importorskip("datasets")

from fontes.train import dual_encoder  # noqa: E402

QUICK = SETTINGS.with_(epochs=1, held_out=0.0)


def search(encoder: Any, on: Examples) -> float:
    """RR@10 over all documents of the examples."""
    texts = {passage.id: passage.text for one in on for passage in (one.positive, *one.negatives)}
    documents = encoder.encode_documents([Doc(doc_id, text) for doc_id, text in texts.items()])
    scores = encoder.encode_queries([one.query for one in on]) @ documents.T
    run = {one.topic: dict(zip(texts, row.tolist(), strict=True)) for one, row in zip(on, scores, strict=True)}
    return float(ft.evaluate(run, {one.topic: {one.positive.id: 1} for one in on}, ft.RR @ 10)[ft.RR @ 10])


# Losses


def loss_of(model: Any, kind: str, mini_batch: int | None) -> Any:
    return dual_encoder.DualEncoderLoss(model, BiEncoderSettings(loss=kind, mini_batch=mini_batch))


def value(loss: Any) -> float:
    return float(loss.detach())


def unit_vectors(model: Any, texts: list[str]) -> NDArray[np.float64]:
    return np.asarray(model.encode(texts), np.float64)


FEW = Examples(
    [
        Example("1", "brook beck", Passage("a", "oak ash the of"), (Passage("b", "elm"), Passage("c", "lime the"))),
        Example("1", "brook beck", Passage("d", "ash oak"), (Passage("c", "lime the"),)),
        Example("2", "burn", Passage("b", "elm")),
        Example("3", "rill", Passage("c2", "lime the"), (Passage("a", "oak ash the of"),)),
    ]
)


def test_negatives_are_all_documents_of_the_batch_not_known_as_relevant() -> None:
    model = trainable(start("bert"), dropout=0.0)
    loss = value(loss_of(model, "mnrl", None)(*batch_of(model, FEW)))
    queries, documents = ["brook beck", "brook beck", "burn", "rill"], ["oak ash the of", "ash oak", "elm", "lime the"]
    cosines = 20 * unit_vectors(model, queries) @ unit_vectors(model, documents).T
    right, left_out = [0, 1, 2, 3], {(0, 1), (1, 0)}  # the other relevant document of the same query
    expected = []
    for row, at in enumerate(right):
        others = [math.exp(cosines[row, column]) for column in range(4) if (row, column) not in left_out]
        expected.append(-math.log(math.exp(cosines[row, at]) / sum(others)))
    assert loss == pytest.approx(np.mean(expected), rel=1e-4)


def test_a_teachers_distances_are_learned_between_a_querys_own_documents() -> None:
    model = trainable(start("bert"), dropout=0.0)
    scored = Examples(
        [
            Example("1", "brook", Passage("a", "oak", 3.0), (Passage("b", "elm", 1.0), Passage("c", "ash", 5.0))),
            Example("2", "burn", Passage("b", "elm", 2.0), (Passage("a", "oak", -2.0),)),
            Example("3", "rill", Passage("c", "ash", 2.0)),
        ]
    )
    loss = value(loss_of(model, "teacher", None)(*batch_of(model, scored, teacher=True)))
    q, d = unit_vectors(model, ["brook", "burn", "rill"]), unit_vectors(model, ["oak", "elm", "ash"])
    s = 20 * q @ d.T
    expected = [(s[0, 0] - s[0, 1] - 2) ** 2, (s[0, 0] - s[0, 2] + 2) ** 2, (s[1, 1] - s[1, 0] - 4) ** 2]
    assert loss == pytest.approx(np.mean(expected), rel=1e-4)


def test_what_a_lexical_retriever_gets_wrong_is_learned_by_a_hinge_of_the_sum() -> None:
    model = trainable(start("bert"), dropout=0.0)
    lexical = {"a": 2.0, "b": 9.0, "c": 1.0, "d": 3.0, "c2": 0.5}
    scored = Examples(
        Example(one.topic, one.query, of(one.positive, lexical), tuple(of(passage, lexical) for passage in one.negatives))
        for one in FEW
    )
    settings = BiEncoderSettings(loss="residual", teacher_scale=0.5, scale=4.0, margin=0.25, mini_batch=None)
    loss = value(dual_encoder.ResidualLoss(model, settings)(*batch_of(model, scored, teacher=True)))
    hinges = []
    for one in scored:
        query = unit_vectors(model, [one.query])[0]
        sums = {
            passage.id: 0.5 * lexical[passage.id] + 4 * float(unit_vectors(model, [passage.text])[0] @ query)
            for passage in (one.positive, *one.negatives)
        }
        hinges += [max(0.0, 0.25 - sums[one.positive.id] + sums[passage.id]) for passage in one.negatives]
    assert len(hinges) == 4
    assert 0 < sum(hinge > 0 for hinge in hinges) < 4
    assert loss == pytest.approx(np.mean(hinges), rel=1e-4)


def of(passage: Passage, scores: dict[str, float]) -> Passage:
    return Passage(passage.id, passage.text, scores[passage.id])


def test_a_teachers_softmax_is_learned_over_a_querys_own_documents() -> None:
    model = trainable(start("bert"), dropout=0.0)
    scored = Examples(
        [
            Example("1", "brook", Passage("a", "oak", 3.0), (Passage("b", "elm", 1.0), Passage("c", "ash", 5.0))),
            Example("2", "burn", Passage("b", "elm", 2.0)),
        ]
    )
    settings = BiEncoderSettings(loss="kl", scale=3.0, teacher_scale=0.5, mini_batch=None)
    loss = dual_encoder.DualEncoderLoss(model, settings)(*batch_of(model, scored, teacher=True))
    scores = 3 * unit_vectors(model, ["brook"]) @ unit_vectors(model, ["oak", "elm", "ash"]).T
    log = scores[0] - np.log(np.exp(scores[0]).sum())
    right = np.array([1.5, 0.5, 2.5]) - np.log(np.exp([1.5, 0.5, 2.5]).sum())
    assert value(loss) == pytest.approx(np.sum(np.exp(right) * (right - log)) / 2, rel=1e-4)
    loss.backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["teacher", "kl"])
def test_a_student_comes_to_rank_other_queries_documents_as_its_teacher_does(loss: str, tmp_path: Path) -> None:
    texts = examples(360, longest=4, negatives=0)
    data = Examples(
        Example(one.topic, one.query, one.positive, tuple(other.positive for other in texts[60 + 5 * n : 65 + 5 * n]))
        for n, one in enumerate(texts[:60])
    ).scored(WordGrades((*MEANT, *FILLED)))
    learned, others = Examples(data[:40]), Examples(data[40:])

    def tau(encoder: Any) -> float:
        def scores(query: str, documents: list[str]) -> Any:
            return encoder.encode_documents([Doc(text, text) for text in documents]) @ encoder.encode_queries([query])[0]

        return agreement(scores, others)

    before = tau(start("bert"))
    settings = SETTINGS.with_(loss=loss, held_out=0.0, epochs=8)
    train_bi_encoder(learned, tmp_path / "m", start("bert"), settings)
    after = tau(SentenceEncoder(str(tmp_path / "m"), precision="float32"))
    assert after > before + 0.3


def test_labelled_pairs_are_learned_by_the_squared_error_of_their_cosines() -> None:
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    model = trainable(start("bert"), dropout=0.0).eval()
    pairs = LabelledPairs.of([("brook", "oak", 1), ("beck", "oak", 0), ("burn", "elm the", 0.3), ("brook", "elm the", 0)])
    loss = value(loss_of(model, "cosine", None)(*batch_of(model, pairs)))
    sides = [model.preprocess([pair.first for pair in pairs]), model.preprocess([pair.second for pair in pairs])]
    theirs = CosineSimilarityLoss(model)(sides, torch.tensor([pair.label for pair in pairs]))
    assert loss == pytest.approx(value(theirs), rel=1e-4)


def test_labelled_pairs_of_like_length_are_learned_together() -> None:
    from fontes.train.runner.fitting import LengthGroupedSampler

    pairs = LabelledPairs.of([("brook", "oak" + " oak" * (n % 2 * 40), float(n % 3 == 0)) for n in range(256)])
    batches = list(LengthGroupedSampler(dual_encoder.rows_of(pairs, None).lengths, 4, seed=0))
    assert sorted(row for batch in batches for row in batch) == list(range(256))
    # Rows are sorted in parts of 64, so that one batch of a part may have both.
    assert sum(len({row % 2 for row in batch}) == 2 for batch in batches) <= 4


def test_loss_and_gradients_are_those_of_sentence_transformers() -> None:
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

    rows = [one for one in examples(12, 3) if one.negatives]
    assert len({text for one in rows for text in (one.query, one.positive.text, one.negatives[0].text)}) == 3 * len(rows)
    columns = [[one.query for one in rows], [one.positive.text for one in rows], [one.negatives[0].text for one in rows]]
    found = []
    for number in range(2):
        model = trainable(start("bert"), dropout=0.0).train()
        if number:
            theirs = CachedMultipleNegativesRankingLoss(model, scale=20.0, mini_batch_size=4)
            loss = theirs([model.preprocess(column) for column in columns], None)
        else:
            loss = loss_of(model, "mnrl", 4)(*batch_of(model, Examples(rows), negatives=1))
        loss.backward()
        found.append((value(loss), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    assert found[0][1].keys() == found[1][1].keys()
    for name, gradient in found[1][1].items():
        np.testing.assert_allclose(found[0][1][name], gradient, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_cached_gradients_are_those_of_the_whole_batch(kind: str, dropout: float) -> None:
    """With dropout the gradients of cached vectors are right only where the second pass has the dropout of the first."""
    model = trainable(start(kind), dropout=dropout).train()
    columns, labels = batch_of(model, examples(6, 3))
    torch.manual_seed(7)
    loss = loss_of(model, "mnrl", 4)
    cached = loss(columns, labels)
    cached.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    torch.manual_seed(7)
    again = [[v for v, _ in loss.embed_minibatch_iter(c, True, False)] for c in columns]
    whole = loss.calculate_loss(again, labels)
    whole.backward()
    assert value(cached) == pytest.approx(value(whole), rel=1e-5)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            np.testing.assert_allclose(found[name], parameter.grad, atol=1e-5, err_msg=name)


@each("kind", KINDS)
def test_parts_of_a_batch_give_its_loss_and_gradients_with_less_padding(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trainable(start(kind), dropout=0.0).train()
    rows = Examples([*examples(6, 3), Example("long", "brook", Passage("long", "oak ash the of " * 7))])
    columns, labels = batch_of(model, rows)
    widths, found = [], []
    model.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0]["input_ids"].shape[1]))
    for part in (1000, 2):
        monkeypatch.setattr(dual_encoder, "PART", part)
        model.zero_grad()
        loss = loss_of(model, "mnrl", None)(columns, labels)
        loss.backward()
        found.append((value(loss), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}))
    assert len(set(widths[2:])) > 2
    assert max(widths[2:-1]) < max(widths)
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for name, gradient in found[0][1].items():
        np.testing.assert_allclose(found[1][1][name], gradient, rtol=1e-5, atol=1e-5, err_msg=name)


def test_only_as_many_negatives_as_the_settings_say_are_used() -> None:
    documents = [[len(row["documents"]) for row in dual_encoder.rows_of(FEW, n).rows] for n in (None, 1, 0)]
    assert documents == [[3, 2, 1, 2], [2, 2, 1, 2], [1, 1, 1, 1]]


def test_prompts_come_before_queries_and_documents_in_training() -> None:
    model = trainable(start("bert").with_(query_prompt="of ", document_prompt="the in "))
    columns, _ = batch_of(model, FEW)
    words = [model.tokenizer.decode(column["input_ids"][0]).split()[1:3] for column in columns]
    assert words == [["of", "brook"], ["the", "in"]]


# What comes out


SLOW = ("nystromformer", "longformer", "reformer")


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The kind, the start, the folder, what is said of the training, and the vectors of the model that was trained."""
    folder = tmp_path_factory.mktemp("trained") / "model"
    vectors: list[NDArray[np.float32]] = []
    original = dual_encoder.save

    def recording(model: Any, place: Path) -> None:
        vectors[:] = [model.encode([one.query for one in examples(5, 2)], prompt_name="query")]
        original(model, place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dual_encoder, "save", recording)
        training = train_bi_encoder(
            examples(96, 1, longest=12), folder, start(request.param), SETTINGS.with_(epochs=4, mini_batch=None)
        )
    return request.param, start(request.param), folder, training, vectors[0]


def test_the_loss_falls_and_an_encoder_that_has_learned_finds_more(trained: Any) -> None:
    kind, before, folder, training, vectors = trained
    assert np.mean(training.losses[-4:]) < 0.7 * np.mean(training.losses[:2])
    after = SentenceEncoder(folder, precision="float32")
    unseen = examples(40, 9, longest=12)
    assert search(before, unseen) < 0.15
    assert search(after, unseen) > 0.25
    np.testing.assert_allclose(after.encode_queries([one.query for one in examples(5, 2)]), vectors, atol=1e-5)
    assert (kind in ("bert",)) == (not (folder / "fontes.json").exists())


def test_the_folder_says_how_it_was_trained(trained: Any) -> None:
    _, _, folder, training, _ = trained
    said = json.loads((folder / "training.json").read_text())
    assert said["kind"] == "bi-encoder"
    assert said["settings"]["loss"] == "mnrl"
    count = len({one.query for one in examples(96, 1, longest=12)})
    assert said["facts"]["queries"] + said["facts"]["queries_validated"] == count
    assert training.figures["loss"] == min(row["loss"] for row in training.evaluations)
    assert (folder / "README.md").is_file()
    assert not folder.with_name("model.training").exists()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_and_another_one_others(tmp_path: Path) -> None:
    data = examples(32, 4, longest=6)
    settings = QUICK.with_(dropout=0.1)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train_bi_encoder(data, tmp_path / name, start("bert"), settings.with_(seed=seed))
    first, same, other = (weights(tmp_path / name) for name in "abc")
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.slow
def test_the_words_that_occur_are_learned_and_no_others(told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not told:
        monkeypatch.setattr(dual_encoder, "tokens_of", lambda *_: None)
    few = Examples(one for one in examples(64, 4, longest=6) if ASKED[0] not in one.query.split())
    train_bi_encoder(few, tmp_path / "m", start("bert"), QUICK)
    name = next(name for name in weights(tmp_path / "m") if name.endswith("word_embeddings.weight"))
    moved = (weights(tmp_path / "m")[name] != weights(start("bert").folder)[name]).any(dim=1)
    ids = trainable(start("bert")).tokenizer.get_vocab()
    assert not moved[ids[ASKED[0]]]
    assert all(moved[ids[word]] for word in ASKED[1:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reformer"])
def test_killed_at_any_moment_it_goes_on_to_the_same_weights(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequent_checkpoints(monkeypatch)
    data, settings = examples(48, 4, longest=20), QUICK.with_(dropout=0.1, epochs=2, batch=12)

    def train(name: str, progress: Callable[[Progress], None]) -> Training:
        return train_bi_encoder(data, tmp_path / name, start(kind), settings, progress=progress)

    whole = train("whole", lambda _: None)
    for step in (2, 5):

        def die(progress: Progress, step: int = step) -> None:
            if progress.done >= step:
                os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if child == 0:
            train("killed", die)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert not (tmp_path / "killed").exists()
    seen: list[int] = []
    training = train("killed", lambda progress: seen.append(progress.done))
    assert seen[0] > 2
    assert training.losses == whole.losses
    first, second = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_the_best_state_is_that_of_a_measure_of_a_search(tmp_path: Path) -> None:
    data = examples(64, 1, longest=8)
    others = Examples(one for one in examples(30, 5, longest=8) if one.query not in {known.query for known in data})
    training = train_bi_encoder(
        data, tmp_path / "m", start("bert"), SETTINGS.with_(epochs=4, best="RR@10"), SearchValidation(others)
    )
    measured = {row["step"]: row["RR@10"] for row in training.evaluations}
    assert len(measured) == 4
    assert measured[training.best] == max(measured.values())
    best = SentenceEncoder(tmp_path / "m", precision="float32")
    assert search(best, others) == pytest.approx(max(measured.values()), abs=1e-6)


@pytest.mark.slow
def test_an_index_is_searched_for_topics_that_are_not_learned_from(tmp_path: Path) -> None:
    data, others = examples(32, 1, longest=8), examples(12, 5, longest=8)
    docs = [Doc(one.positive.id, one.positive.text) for one in (*data, *others)]
    index = ft.Index.build(docs, tmp_path / "index")
    topics = ft.Topics([*(ft.Topic(f"o{one.topic}", one.query) for one in others), ft.Topic("known", data[0].query)])
    qrels = ft.Qrels.of([*((f"o{one.topic}", one.positive.id, 1) for one in others), ("known", data[0].positive.id, 1)])
    validation = SearchValidation(index=index, topics=topics, qrels=qrels)
    training = train_bi_encoder(data, tmp_path / "m", start("bert"), QUICK.with_(best="R@5"), validation)
    known = {one.query for one in data}
    assert training.facts["topics_measured"] == sum(one.query not in known for one in others)
    encoder = SentenceEncoder(tmp_path / "m", precision="float32")
    index.encode(encoder)
    left = ft.Topics(topic for topic in topics.values() if topic.text not in known)
    run = index.dense(encoder)(left)
    expected = ft.evaluate(run, {row[0]: {row[2]: 1} for row in qrels.rows() if row[0] in left}, ft.R @ 5)[ft.R @ 5]
    assert training.figures["R@5"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_windows_are_learned_from_where_they_fit_the_query_best(tmp_path: Path) -> None:
    inner = start("bert").with_(max_length=12)
    chunked = ChunkedEncoder(inner, window=8, stride=4)
    data = examples(24, 4, longest=30)
    cut = windowed(data, chunked)
    for one, part in zip(data, cut, strict=True):
        for whole, window in zip((one.positive, *one.negatives), (part.positive, *part.negatives), strict=True):
            windows = chunked.windows(whole.text)
            scores = inner.encode_documents([Doc("", text) for text in windows]) @ inner.encode_queries([one.query])[0]
            assert window.text in windows
            assert scores[windows.index(window.text)] == pytest.approx(scores.max(), abs=1e-5)
    train_bi_encoder(data, tmp_path / "m", chunked, QUICK)
    assert SentenceEncoder(tmp_path / "m", precision="float32").length == 12


@pytest.mark.slow
def test_labelled_pairs_are_learned(tmp_path: Path) -> None:
    pairs = LabelledPairs.of(examples(32, 1, longest=6))
    training = train_bi_encoder(pairs, tmp_path / "m", start("bert"), SETTINGS.with_(loss="cosine", epochs=3))
    assert np.mean(training.losses[-5:]) < np.mean(training.losses[:5])


@pytest.mark.slow
def test_a_folder_alone_is_a_start_and_settings_cut_its_texts(tmp_path: Path) -> None:
    data = examples(16, 1, longest=6)
    training = train_bi_encoder(data, tmp_path / "m", start("nystromformer").folder, QUICK.with_(max_length=9))
    assert SentenceEncoder(tmp_path / "m").length == 9
    assert training.facts["tokens_read"] == 9
    assert 0 < training.facts["documents_cut"] < 1
    assert (tmp_path / "m" / "fontes.json").is_file()
    again = train_bi_encoder(data, tmp_path / "n", tmp_path / "m", QUICK)
    assert again.base == str(tmp_path / "m")
    assert again.base_fingerprint == training.fingerprint
    assert SentenceEncoder(tmp_path / "n").length == 9


@pytest.mark.slow
def test_a_model_without_a_transformer_is_trained_without_cached_gradients(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(str(start("bert").folder / "tokenizer.json"))
    torch.manual_seed(0)
    SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=16)], device="cpu").save(str(tmp_path / "static"))
    training = train_bi_encoder(examples(64, 1, longest=6), tmp_path / "m", tmp_path / "static", SETTINGS.with_(lr=0.1))
    assert np.mean(training.losses[-5:]) < np.mean(training.losses[:5])
    assert search(SentenceEncoder(tmp_path / "m"), examples(40, 9, longest=6)) > 0.15


# Errors


def test_the_command_trains_an_encoder(tmp_path: Path, fontes: Any) -> None:
    examples(24, 1, longest=6).write(tmp_path / "examples.jsonl")
    expression = f"transformer_encoder('{start('favor+').folder}', attention='favor+', features=16)"
    command: list[Any] = ["train", "bi-encoder", tmp_path / "examples.jsonl", "-o", tmp_path / "m", "--encoder", expression]
    command += ["--epochs", 1, "--batch", 8, "--mini-batch", 0, "--lr", 0.01, "--dropout", 0, "--precision", "float32"]
    code, out, err = fontes(*command)
    assert (code, "a bi-encoder from" in out, f'use it as sentence_encoder("{tmp_path / "m"}")' in out) == (0, True, True), err
    assert json.loads((tmp_path / "m" / "fontes.json").read_text()) == {"attention": "favor+", "features": 16}
    code, out, _ = fontes(*command, "--overwrite", "--json", "--best", "RR@10")
    assert json.loads(out)["settings"]["mini_batch"] is None
    code, _, err = fontes(*command)
    assert (code, "exists already" in err) == (1, True)

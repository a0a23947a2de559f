"""The recipe for evidence: rows of words and of vectors, what is left out, and what is said of each model."""

import json
import re
import shutil
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.threads import one_thread as one_thread

import fontes as ft
from fontes.core import InputError, MissingExtraError
from fontes.experiments import Collection
from fontes.recipes import Evidence, RecipeResult
from fontes.recipes.evidence import LANGUAGES
from fontes.recipes.rows import WEIGHTS, document_encoder, starts_of

pytest.importorskip("torch")
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_models import docs, tiny
from support.tiny_splade import masked_lm

pytestmark = pytest.mark.usefixtures("one_thread")
LEXICAL = ["tfidf", "bm25-pyserini", "bm25-words", "bm25-stems", "bm25-chars", "bm25-formula", "bm25-default", "bm25-tuned"]
DOCS = docs(*range(12, 60, 4))
TOPICS = {f"q{n}": " ".join(doc.text.split()[3:7]) for n, doc in enumerate(DOCS)}
QRELS = {f"q{n}": {f"d{n}": 1} for n in range(len(DOCS))}
NUMBERS = ["".join(letters) for letters in islice(product("bdfk", "aeiou", "lmnr", "aou"), 0, 240, 4)]
TRIED: dict[str, list[Any]] = {"K1": [0.4, 1.2, 2.0], "B": [0.4, 0.75], "K3": [None, 1.2]}  # a tenth of the settings of BM25
NO_MODELS: dict[str, Any] = dict.fromkeys(("nystromformer", "mbert", "colbert", "e5", "encoder", "reranker"))


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing may be downloaded, no model is in the cache of the hub, and spaCy's own is not there."""

    def refused(name: str, kind: str) -> Path:
        raise AssertionError(f"{name} would be downloaded")

    monkeypatch.setattr("fontes.neural.models.hub._downloaded", refused)
    alone(monkeypatch)
    monkeypatch.chdir(tmp_path)


def alone(patch: pytest.MonkeyPatch) -> None:
    """What is on this machine is not found, and few settings of BM25 are tried."""
    patch.setattr("fontes.neural.models.hub._cached", lambda name: None)
    patch.setitem(LANGUAGES, "english", ("snowball:english", "en", "xx_none"))
    for name, values in TRIED.items():
        patch.setattr(f"fontes.recipes.rows.{name}", values)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A tiny model for each parameter."""
    folder = tmp_path_factory.mktemp("models")
    trained = Path(shutil.copytree(tiny("bert"), folder / "trained"))
    said = {"kind": "bi-encoder", "base": "a/start", "rows": 614, "steps": 78, "best": 39, "seconds": 90.0}
    said |= {"precision": "float32", "device": "cpu", "facts": {"queries": 545}}
    (trained / "training.json").write_text(json.dumps(said))
    kinds = {"nystromformer": "nystromformer", "longformer": "longformer", "reformer": "reformer"}
    kinds |= dict.fromkeys(("performer", "windows", "mbert", "colbert", "e5", "encoder"), "bert")
    return {
        **{name: tiny(kind) for name, kind in kinds.items()},
        "trained": str(trained),
        "splade": str(masked_lm(folder / "splade")),
        "reranker": str(save_cross_encoder(folder / "reranker")),
    }


@pytest.fixture(scope="module")
def result(models: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecipeResult]:
    with pytest.MonkeyPatch.context() as patch:
        alone(patch)
        recipe = Evidence(passages="passages(words=20, stride=20)", reread=5, **models)  # type: ignore[arg-type]
        yield recipe.run(DOCS, TOPICS, QRELS, tmp_path_factory.mktemp("out"), measures=["R@5", "RR"])


def run_of(stage: Any) -> ft.Run:
    stage.prepare()
    return stage(TOPICS)  # type: ignore[no-any-return]


def assert_same(run: ft.Run, expected: ft.Run) -> None:
    assert {t: list(r.ids) for t, r in run.items()} == {t: list(r.ids) for t, r in expected.items()}
    np.testing.assert_allclose(run.scores, expected.scores, atol=1e-5)


@pytest.mark.slow
def test_without_models_the_rows_of_words_run_and_each_other_row_says_what_to_give() -> None:
    result = Evidence(encoder=None).run("sample:harbour/claims", "sample:harbour/claims", "sample:harbour/claims", "out")
    assert [name for name in result.runs if name != "bm25-simplemma"] == [*LEXICAL, "together"]
    assert result.learning is not None
    without = {note["role"]: note["without"] for note in result.learning.notes if "without" in note}
    assert "run `hf download uw-madison/nystromformer-2048`, or give -s nystromformer=FOLDER" in without["nystromformer"]
    assert "`fontes train bi-encoder` makes of allenai/longformer-base-4096" in without["longformer"]
    assert "spaCy has no model 'xx_none' here" in without["bm25-spacy"]
    assert "-s reranker=FOLDER" in without["reranked"]
    page = (result.folder / "recipe.md").read_text()
    for said in without.values():
        assert said in page
        assert said in str(result)
    columns = re.split(r" {2,}", str(result).split("\n")[0].strip())
    measures = ["R@10", "Judged@10", "RR@10", "SetP@5", "Judged@5", "SetF@5", "Complete@10"]
    assert columns == ["system", *measures, "candidates", "a topic"]
    assert result.report is not None
    assert tuple(map(str, result.report.measures)) == Evidence.measures


@pytest.mark.slow
def test_there_are_stems_and_lemmas_of_two_languages() -> None:
    czech = [ft.Doc("a", "Přístavy v zimě zamrzaly."), ft.Doc("b", "V přístavu hořela loď.")]
    result = Evidence(**NO_MODELS, language="czech").run(czech, {"1": "přístavem"}, None, "out")
    found = {name: list(run["1"].ids) for name, run in result.runs.items()}
    assert (found["bm25-words"], found["bm25-stems"]) == ([], ["b", "a"])


def test_the_measures_are_recall_and_reciprocal_rank_first_and_then_those_of_sets() -> None:
    names = ("R", "RR", "SetP", "SetF", "Complete")
    assert Evidence.measures == tuple(f"{name}@{k}" for name in names for k in (1, 5, 10, 20))


def test_a_row_for_each_model_and_both_together_and_reranked(result: RecipeResult) -> None:
    rows = ["nystromformer", "longformer", "reformer", "performer", "windows", "encoder", "trained", "e5", "splade", "mbert"]
    last = ["colbert", "hybrid", "reranked", "together"]
    assert [name for name in result.runs if name not in (*LEXICAL, "bm25-simplemma")] == [*rows, *last]
    assert {len(ranking) for ranking in result.runs["reranked"].values()} == {5}


@pytest.mark.slow
def test_long_encoders_read_whole_documents_and_others_windows(
    result: RecipeResult, models: dict[str, str], tmp_path: Path
) -> None:
    index = ft.Index.build(DOCS, tmp_path / "x.index")
    ones = {"precision": "float32"}
    expected = {
        "nystromformer": ft.TransformerEncoder(models["nystromformer"], **ones),
        "reformer": ft.TransformerEncoder(models["reformer"], **ones),
        "performer": ft.TransformerEncoder(models["performer"], attention="favor+", **ones),
        "windows": ft.ChunkedEncoder(ft.SentenceEncoder(models["windows"], precision="float32"), window=150, stride=75),
    }
    for name, encoder in expected.items():
        assert_same(result.runs[name], run_of(index.dense(encoder)))


def test_of_paragraphs_a_document_has_the_score_of_its_best_one(result: RecipeResult, models: dict[str, str]) -> None:
    encoder = ft.TransformerEncoder(models["mbert"], precision="float32")
    queries = encoder.encode_queries(list(TOPICS.values()))
    best = {}
    for doc in DOCS:
        words = doc.text.split()
        paragraphs = [ft.Doc("p", " ".join(words[at : at + 20])) for at in range(0, len(words), 20)]
        best[doc.id] = (encoder.encode_documents(paragraphs) @ queries.T).max(axis=0)
    for number, ranking in enumerate(result.runs["mbert"].values()):
        scores = {hit.id: hit.score for hit in ranking}
        assert scores == pytest.approx({doc: float(values[number]) for doc, values in best.items()}, abs=1e-5)


def test_both_are_bm25_and_the_trained_encoder_by_reciprocal_ranks(result: RecipeResult) -> None:
    expected = ft.fuse(result.runs["bm25-default"], result.runs["trained"])
    assert_same(result.runs["hybrid"], expected)


def test_each_row_names_its_weights_and_their_training_data(result: RecipeResult, models: dict[str, str]) -> None:
    page = (result.folder / "recipe.md").read_text().replace("\\_", "_")
    assert f"| trained | {models['trained']} | a/start | 614 rows of 545 queries | 78, 39 | 1.5 (cpu, float32) |" in page
    assert (
        f"| mbert | {models['mbert']} |  | not trained: a language model as published; give --train, and it is trained |"
        in page
    )
    assert f"| colbert | {models['colbert']} |  | token vectors of an encoder that is not a ColBERT |" in page
    assert f"| reranked | {models['reranker']} |  | as published |" in page


def test_the_page_says_how_many_tokens_encoders_read_and_where_its_defaults_are_from() -> None:
    encoder = ft.TransformerEncoder(tiny("bert"), max_length=20)
    result = Evidence(**{**NO_MODELS, "encoder": encoder}).run(DOCS, TOPICS, QRELS, "out", measures=["R@5"])
    page = (result.folder / "recipe.md").read_text()
    assert "| system | tokens read | documents cut | documents | bytes | seconds to encode | ms a topic |\n" in page
    cut = sum(len(doc.text.split()) + 2 > 20 for doc in DOCS) / len(DOCS)
    for row in ("encoder", "hybrid"):
        size, seconds, milliseconds = costs_of(page, f"{row} | 20 | {cut:.1%} | 12")
        assert 12 * 32 * 4 <= size < 2 * 12 * 32 * 4
        assert seconds >= 0 < milliseconds
    assert "| bm25-words | 20" not in page
    assert "| k1 | 1.2 | 1.2 | published |" in page
    assert "| mbert | **None** | google-bert/bert-base-multilingual-cased | ours |" in page


def costs_of(page: str, start: str) -> list[float]:
    """Return bytes, seconds to encode and milliseconds a topic from the row of the page that starts so."""
    (rest,) = re.findall(rf"^\| {re.escape(start)} \| (.*) \|$", page, re.MULTILINE)
    return [float(number.replace(",", "")) for number in rest.split(" | ")]


def test_each_length_has_a_row_and_its_cost(tmp_path: Path) -> None:
    recipe = Evidence(
        **{**NO_MODELS, "nystromformer": tiny("nystromformer"), "reformer": tiny("reformer"), "window": 5, "stride": 4}
    )
    own = ft.TransformerEncoder(tiny("bert"), max_length=30)
    recipe = recipe.set(["length=64,20,2048,512"]).with_(windows=tiny("bert"), performer=own)
    texts = docs(*range(12, 108, 8))
    result = recipe.run(texts, TOPICS, QRELS, "out", measures=["R@5"])
    rows = [f"nystromformer-{length}" for length in (20, 64, 512)]
    assert [name for name in result.runs if name.startswith(("nystromformer", "reformer", "performer"))] == [
        *rows,
        *(f"reformer-{length}" for length in (20, 64, 512)),
        "performer",
    ]
    left_out = {note["role"]: note["without"] for note in result.learning.notes if "without" in note}
    assert left_out["nystromformer-2048"] == "the model reads no more tokens than in the row nystromformer-512"
    assert left_out["longformer"].startswith("give -s longformer=FOLDER")
    page = (result.folder / "recipe.md").read_text().replace("\\_", "_")
    for row, tokens in zip(rows, (20, 64, 512), strict=True):
        cut = sum(len(doc.text.split()) + 2 > tokens for doc in texts) / len(texts)
        assert costs_of(page, f"{row} | {tokens} | {cut:.1%} | 12")[0] >= 12 * 32 * 4
        assert f"| {row} | {tiny('nystromformer')} |" in page
    assert "\n| nystromformer-2048 |" not in page
    assert "\n| performer | 30 |" in page  # an encoder has a length of its own
    index = ft.Index.build(texts, tmp_path / "x.index")
    encoder = ft.TransformerEncoder(tiny("nystromformer"), max_length=20, precision="float32")
    assert_same(result.runs["nystromformer-20"], run_of(index.dense(encoder)))
    windows = ft.ChunkedEncoder(ft.SentenceEncoder(tiny("bert"), precision="float32"), window=5, stride=4)
    assert_same(result.runs["windows"], run_of(index.dense(windows)))
    again = recipe.run(texts, TOPICS, QRELS, "out", measures=["R@5"])
    assert again.prepared["nystromformer-20"] >= result.prepared["nystromformer-20"]  # of the run that encoded


def test_a_model_reads_no_more_than_it_was_trained_for(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("bert"), tmp_path / "trained"))
    (folder / "modules.json").write_text("[]")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    lengths = [document_encoder(str(folder), length).max_length for length in (128, 256, 2048)]  # type: ignore[attr-defined]
    assert lengths == [128, None, None]


def test_paragraphs_have_230_tokens_of_the_row_s_model(tmp_path: Path) -> None:
    bert = tiny("bert")
    recipe = Evidence(**NO_MODELS)
    assert repr(recipe.paragraphs(bert)) == f'passages(stride=230, tokens=230, tokenizer="{bert}")'
    assert recipe.paragraphs(ft.TransformerEncoder(bert)) == recipe.paragraphs(bert)
    assert recipe.paragraphs(None) == recipe.paragraphs("a/name-that-is-not-here") == ft.Passages(words=230, stride=230)
    long = ft.Doc("long", " ".join(f"{'pumps deep ' * 10}springs" for _ in range(40)))  # 840 tokens: springs is [UNK]
    result = recipe.with_(mbert=bert).run([*DOCS, long], TOPICS, QRELS, "out", measures=["R@5"])
    page = (result.folder / "recipe.md").read_text()
    paragraphs = len(DOCS) + len(recipe.paragraphs(bert).of(long))
    assert costs_of(page, f"mbert | 512 | 0.0% | {paragraphs}")
    assert len(recipe.paragraphs(bert).of(long)) == -(-840 // 230)


def test_a_long_encoder_reads_as_far_as_its_positions_whatever_its_tokenizer_says(tmp_path: Path) -> None:
    for kind, tokens in (("nystromformer", 512), ("roberta", 401), ("reformer", 32)):
        folder = Path(shutil.copytree(tiny(kind), tmp_path / kind))
        settings = folder / "tokenizer_config.json"
        settings.write_text(json.dumps({**json.loads(settings.read_text()), "model_max_length": 32}))
        assert document_encoder(str(folder)).length == tokens  # type: ignore[attr-defined]
    assert document_encoder(tiny("bert")) == ft.TransformerEncoder(tiny("bert"))


def test_the_row_of_the_formula_is_bm25_as_textbooks_write_it(tmp_path: Path) -> None:
    rows = Evidence(**NO_MODELS).systems(Collection(DOCS, tmp_path))
    assert repr(rows["bm25-formula"]).startswith('bm25(variant="atire", k1=1.2, b=0.75, k3=1.2')
    assert repr(rows["bm25-default"]).startswith("bm25(k1=1.2, b=0.75")


@pytest.mark.slow
def test_k1_b_and_k3_are_those_that_are_best_on_the_topics_to_learn_from(tmp_path: Path) -> None:
    claims = ft.dataset("harbour/claims")
    topics, qrels = claims.topics(), claims.qrels()
    train = {topic_id: dict(qrels[topic_id]) for topic_id in list(topics)[:25]}
    test = {topic_id: dict(qrels[topic_id]) for topic_id in list(topics)[25:]}
    result = Evidence(**NO_MODELS).run(claims, topics, test, "out", train=train, measures=["R@10"])
    assert set(result.runs["bm25-tuned"]) == set(test)
    index = ft.Index.build(claims.corpus, tmp_path / "x.index")
    learned = ft.Topics(topics[topic_id] for topic_id in train)
    settings = [dict(zip(("k1", "b", "k3"), values, strict=True)) for values in product(*TRIED.values())]
    values = [ft.evaluate(index.bm25(**setting)(learned), train, ["RR@10"])["RR@10"] for setting in settings]
    assert result.learning is not None
    chosen = next(note["chosen"] for note in result.learning.notes if "chosen" in note)
    setting = next(one for one in settings if chosen.startswith(", ".join(f"{name} = {one[name]}" for name in one) + ", with"))
    assert values[settings.index(setting)] == max(values)
    assert_same(result.runs["bm25-tuned"], index.bm25(**setting)(ft.Topics(topics[t] for t in test)))
    assert f"bm25-tuned: {chosen}." in (result.folder / "recipe.md").read_text()
    with pytest.raises(InputError, match="a topic has one use"):
        Evidence(**NO_MODELS).run(claims, topics, qrels, "out", train=train)


def test_models_stand_beside_bm25_that_is_tuned_by_folds_of_the_measured_claims(result: RecipeResult) -> None:
    (chosen,) = [note["chosen"] for note in result.learning.notes if note["role"] == "bm25-tuned"]
    assert "with which RR@10 was best on the other folds" in chosen
    page = (result.folder / "recipe.md").read_text()
    assert f"bm25-tuned: {chosen}." in page
    assert result.report is not None
    table = page.partition("## Models beside tuned BM25")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w-]+) \| ([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\) \|", table, re.MULTILINE)
    assert [name for name, *_ in rows] == [name for name in result.runs if name not in (*LEXICAL, "bm25-simplemma")]
    for name, mean, low, high in rows:
        difference = result.report.mean(name, "R@5") - result.report.mean("bm25-tuned", "R@5")
        assert float(mean) == pytest.approx(difference, abs=1e-4)
        assert float(low) <= float(mean) <= float(high)


def test_bm25_needs_judgments_and_claims_of_several_evidences_to_be_tuned() -> None:
    recipe = Evidence(**NO_MODELS)
    for qrels, why in ((None, "judged claims"), ({topic: {"d0": 1} for topic in TOPICS}, "claims that share no evidence")):
        result = recipe.run(DOCS, TOPICS, qrels, "out", measures=["R@5"])
        assert "bm25-tuned" not in result.runs
        (without,) = [note["without"] for note in result.learning.notes if note["role"] == "bm25-tuned"]
        assert without == f"give --train, or {why}, and k1, b and k3 are those that are best for other claims"


@pytest.mark.slow
def test_encoders_are_trained_on_the_claims_to_learn_from(shared: Path, tmp_path: Path) -> None:
    """On Czech claims, with tiny encoders whose tokenizer would cut at 32 of the 512 positions."""
    names = {"nystromformer": "nystromformer", "mbert": "bert", "encoder": "bert"}
    folders = {name: Path(shutil.copytree(tiny(kind), tmp_path / name)) for name, kind in names.items()}
    for folder in folders.values():
        settings = folder / "tokenizer_config.json"
        settings.write_text(json.dumps({**json.loads(settings.read_text()), "model_max_length": 32}))
    documents = list(islice(ft.read_corpus(shared / "ctkfacts_cs"), 60))
    known = {doc.id for doc in documents}
    judged = ft.read_qrels(shared / "ctkfacts_cs" / "qrels" / "test.tsv")
    rows = [row for row in judged.rows() if row[2] in known][:40]
    claims = ft.read_topics(shared / "ctkfacts_cs").judged(ft.Qrels(rows))
    ids = list(claims)
    train, test = (ft.Qrels(row for row in rows if row[0] in side) for side in (ids[:-8], ids[-8:]))
    recipe = Evidence(
        **{**NO_MODELS, **dict(zip(folders, map(str, folders.values()), strict=True))}, language="czech", spacy=None
    )
    recipe = recipe.with_(epochs=1, batch=8, precision="float32", lr=1e-3)

    result = recipe.run(documents, claims, test, "out", train=train, measures=["R@5"], leaks="drop")
    assert result.learning is not None
    notes = {note["role"]: note for note in result.learning.notes if "model" in note}
    for name, start, tokens in (("nystromformer", "nystromformer", 512), ("mbert", "mbert", 512), ("trained", "encoder", 32)):
        assert (notes[name]["base"], notes[name]["kind"]) == (str(folders[start]), "bi-encoder")
        said = json.loads((Path(notes[name]["model"]) / "training.json").read_text())
        assert said["facts"]["tokens_read"] == tokens
        assert ft.SentenceEncoder(notes[name]["model"]).length == tokens
        assert (said["facts"]["documents_cut"] > 0.5) == (tokens == 32)
        page = (result.folder / "recipe.md").read_text().replace("\\_", "_")
        assert f"| {name} | {notes[name]['model']} | {folders[start]} | {notes[name]['rows']} rows of" in page
        assert f"| {name} | {tokens} | " in page
    dense = ft.Index.build(documents, tmp_path / "x.index", analyzer="czech").dense(
        ft.SentenceEncoder(notes["nystromformer"]["model"], precision="float32")
    )
    dense.prepare()
    assert_same(result.runs["nystromformer"], dense(claims.judged(test)))
    assert {"trained", "hybrid"} <= result.runs.keys()
    again = recipe.run(documents, claims, test, "out", train=train, measures=["R@5"], leaks="drop")  # finds the models
    assert again.learning is not None
    assert again.learning.notes == result.learning.notes

    untrained = recipe.run(documents, claims, test, "other", measures=["R@5"])
    page = (untrained.folder / "recipe.md").read_text().replace("\\_", "_")
    assert f"| nystromformer | {folders['nystromformer']} |  | not trained: a language model as published; give --train" in page
    assert "* trained: not trained: give --train, or give -s trained=FOLDER" in page
    assert untrained.runs["nystromformer"] != result.runs["nystromformer"]


def test_a_model_for_retrieval_is_not_trained_again(models: dict[str, str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(models["nystromformer"], tmp_path / "n"))
    assert starts_of(Evidence(**{**NO_MODELS, "nystromformer": str(folder)})) == {"nystromformer": str(folder)}
    (folder / "modules.json").write_text("[]")
    assert starts_of(Evidence(**{**NO_MODELS, "nystromformer": str(folder)})) == {}
    both = {"encoder": models["encoder"], "trained": models["trained"]}
    assert starts_of(Evidence(**{**NO_MODELS, **both})) == {}
    assert starts_of(Evidence(encoder=None)) == {}  # none of the other models by default is here


def test_a_library_that_training_lacks_is_told_before_anything_is_built(
    models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(purpose: str) -> None:
        raise MissingExtraError.of("accelerate", "train", purpose)

    monkeypatch.setattr("fontes.recipes.evidence.check_training", lacking)
    recipe = Evidence(**{**NO_MODELS, "mbert": models["mbert"]})
    train, test = {topic: QRELS[topic] for topic in ("q0", "q2")}, {"q1": QRELS["q1"]}
    with pytest.raises(MissingExtraError, match="training an encoder needs accelerate"):
        recipe.run(DOCS, TOPICS, test, "out", train=train)
    assert not Path("out").exists()
    recipe.with_(mbert=None).run(DOCS, TOPICS, test, "out", train=train, measures=["R@5"])


def test_a_collection_is_split_into_paragraphs_once(tmp_path: Path) -> None:
    whole = Collection(DOCS, tmp_path)
    split, again = (whole.split(ft.Passages(words=20, stride=20)) for _ in range(2))
    assert split.index("whitespace").path == again.index("whitespace").path != whole.index("whitespace").path
    assert list(split.index("whitespace").ids) == [
        f"{doc.id}%p{n}" for doc in DOCS for n in range(-(-len(doc.text.split()) // 20))
    ]
    assert whole.split(ft.Passages(words=10)).hash != split.hash


def test_lists_end_where_they_promise_a_whole_evidence_set(tmp_path: Path) -> None:
    documents = [{"_id": f"d{n}", "text": f"the {word} was seen near the harbour"} for n, word in enumerate(NUMBERS)]
    documents += [{"_id": f"e{n}", "text": f"others say that the {word} was not seen"} for n, word in enumerate(NUMBERS)]
    topics = {f"q{n}": f"the {word} was seen" for n, word in enumerate(NUMBERS)}
    for name, numbers in (("dev", range(40)), ("test", range(40, 60))):
        rows = "".join(f"q{n} 1 d{n} 1\nq{n} 1 e{n} 1\n" for n in numbers)
        (tmp_path / f"{name}.qrels").write_text(rows)
    recipe, options = Evidence(**NO_MODELS), {"measures": ["Complete@100", "SetP"]}
    sides = {"qrels": str(tmp_path / "test.qrels"), "dev": str(tmp_path / "dev.qrels")}
    result = recipe.run(documents, topics, output=tmp_path / "out", **sides, **options)  # type: ignore[arg-type]
    run = ft.read_run(tmp_path / "out" / "runs" / "complete.run")
    assert all({f"d{n}", f"e{n}"} <= set(run[f"q{n}"].ids) for n in range(40, 60))  # whole sets, of the second column
    assert run.rows < ft.read_run(tmp_path / "out" / "runs" / "bm25-default.run").rows
    (said,) = [note["chosen"] for note in result.learning.notes if note["role"] == "complete"]
    assert "a list holds a complete evidence set for at least 0.9 of the topics" in said
    (choice,) = [note for note in result.learning.notes if note["role"] == "together"]
    assert (choice["measure"], float(choice["choice"]) in (1.0, *WEIGHTS)) == ("Complete@5", True)
    assert f"together: {choice['choice']}, with which Complete@5 was best" in (tmp_path / "out" / "recipe.md").read_text()
    without = recipe.run(documents, topics, str(tmp_path / "test.qrels"), tmp_path / "alone", measures=["AP"])
    index = ft.Index.build(documents, tmp_path / "x.index")
    together = index.bm25(k1=1.2, b=0.75) % 50 >> index.companions(weight=1)
    assert_same(without.runs["together"], together(topics))
    assert "together" not in recipe.with_(together=None).systems(Collection(documents, tmp_path))
    left_out = {note["role"]: note["without"] for note in without.learning.notes if "without" in note}
    assert left_out["complete"] == "give --dev, claims from which it learns where lists end"

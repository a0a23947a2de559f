"""What errors of passages, duplicates and rationales say: the id, line or parameter at fault, and what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error

import fontes as ft
from fontes.core import FontesError, InputError, ParameterError, PipelineError
from fontes.passages import RationaleDocuments, TextScorer, read_duplicates, sentence_qrels, with_rationales

DOCS = [ft.Doc("spring", "A spark set the barn on fire. Rain put it out.", "Barn"), ft.Doc("blank", "", "Only a title")]
TOPICS = {"q1": "the spark of the fire"}
OF_PASSAGES = ft.Run.of({"q": {"a%p0": 1.0}})


class Shelf:
    """A source of one document."""

    def docs(self, ids: Any) -> list[ft.Doc]:
        return [ft.Doc(doc_id, "x") for doc_id in ids]


class Nowhere(Shelf):
    """Documents that are in no index."""


def run() -> ft.Run:
    return ft.Run.of({"q1": {"spring": 2.0, "blank": 1.0}}, ft.Topics.of(TOPICS)).with_(documents=Shelf())


def split(**parameters: Any) -> object:
    return ft.Passages(**parameters).of(ft.Doc("a", "x"))


@each(
    ("call", "error", "names", "remedy"),
    [
        *(
            (lambda i=i: ft.to_documents()(ft.Run.of({"q": {i: 1.0}})), InputError, f"'{i}' is not a passage's id", "%p")
            for i in ("d1", "d1%p", "d1%px", "d1%p-1", "d1%p2%q", "d1%p²", "d1%p٣")
        ),
        (lambda: ft.Passages().over(Shelf()).docs(["a%p1"]), InputError, "'a%p1' … has 1", ""),
        (lambda: ft.Passages().over(Shelf()).docs(["a%p7"]), InputError, "'a%p7' … has 1", ""),
        (
            lambda: ft.Passages()(run().with_(documents=None)),
            InputError,
            "Passages … documents' text",
            "with_(documents=index)",
        ),
        (lambda: split(words=0), ParameterError, "words", "whole number"),
        (lambda: split(words=3, stride=4), ParameterError, "words", "leaves out words"),
        (lambda: split(max_words=3), ParameterError, "max_words", "sentences"),
        (lambda: split(sentences="nupunkt", words=3), ParameterError, "words", "sentences"),
        (lambda: split(sentences="nltk"), ParameterError, "'nltk'", "rules, nupunkt and spacy:MODEL"),
        (lambda: split(separator=""), ParameterError, "separator", "without digits"),
        (lambda: split(separator="-0"), ParameterError, "separator … '-0'", "without digits"),
        (lambda: split(separator=" "), ParameterError, "separator … ' '", "white space"),
        (lambda: ft.to_documents("best")(OF_PASSAGES), ParameterError, "'best'", "max, mean, sum, first"),
        (lambda: split(tokens=3), ParameterError, "tokens", "tokenizer"),
        (lambda: split(tokenizer="x"), ParameterError, "tokenizer", "tokens"),
        (lambda: split(tokens=0, tokenizer="x"), ParameterError, "tokens", "whole number"),
        (lambda: split(tokens=3, tokenizer="x", words=3), ParameterError, "words … tokens", ""),
        (lambda: split(tokens=3, tokenizer="x", sentences="rules", max_words=3), ParameterError, "words … tokens", ""),
        (lambda: split(tokens=3, tokenizer="x", stride=4), ParameterError, "stride of 4 … passages of 3", ""),
        (lambda: split(tokens=3, tokenizer="x", sentences="rules", stride=3), ParameterError, "sentences", ""),
        (lambda: ft.Passages(tokens=3, tokenizer="/nowhere").check_needs(), InputError, "tokenizer … '/nowhere'", ""),
        # sentences and rationales
        (lambda: ft.Sentences("commas")(run()), ParameterError, "'commas'", "rules, nupunkt and spacy:MODEL"),
        (lambda: ft.Sentences(separator=" ")(run()), ParameterError, "separator … ' '", "without digits"),
        (lambda: ft.BestPassages(0)(run()), ParameterError, "best_passages: n … 0", ""),
        (lambda: ft.BestPassages(threshold=math.nan)(run()), ParameterError, "best_passages: … threshold … nan", "number"),
        (lambda: ft.Rationales("bm25")(run()), ParameterError, "rationales … 'bm25'", "cross_encoder"),
        (lambda: ft.Rationales(n=0)(run()), ParameterError, "n … 0", ""),
        (lambda: TextScorer("bm25")(run()), ParameterError, "text_scorer", "a bm25"),  # type: ignore[arg-type,operator]
        (lambda: ft.Rationales()(run()), ParameterError, "run over an index", "name one"),
        (lambda: ft.Rationales().explain("spark", "spring"), PipelineError, "documents of a run", ""),
        (lambda: with_rationales(run(), run()), InputError, "'spring' is not a passage's id", ""),
        (lambda: sentence_qrels(TOPICS), InputError, "topics", "SciFact and FEVER"),
        (
            lambda: run().with_(documents=RationaleDocuments(Nowhere(), run()))["q1"].facets("year"),
            InputError,
            "documents of this run",
            "",
        ),
        # duplicates
        (lambda: ft.Deduplicate({"D2": "D1"})(run()), ParameterError, "Deduplicate", "read_duplicates … path"),  # type: ignore[arg-type]
        (lambda: ft.Deduplicate("/nowhere.txt")(run()), InputError, "nowhere.txt", "no such file"),
        (lambda: read_duplicates("/nowhere.txt"), InputError, "nowhere.txt", ""),
    ],
)
def test_passages_and_rationales_name_what_is_at_fault(
    call: Callable[[], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


@each(
    ("lines", "use", "error", "names", "remedy"),
    [
        ("D1:D2\n:D5\n", None, InputError, "duplicates.txt, line 2: … ':D5'", "original:duplicate,duplicate"),
        ("D1:D2\nD4:D5,,D6\n", None, InputError, "duplicates.txt, line 2: … id is missing", ""),
        ("D1:D2\nD4:D5 D6\n", None, InputError, "duplicates.txt, line 2: 'D5 D6' … white space", "commas"),
        ("D1:D2\n", lambda listed: ft.Deduplicate(listed, keep="first")(run()), ParameterError, "'first'", "original or best"),
        ("D1:D2\n", lambda listed: ft.Deduplicate(listed, prefix="D")(run()), ParameterError, "prefix", "read_duplicates"),
        ("D1:D2\n", lambda listed: ft.Deduplicate(listed).text, PipelineError, "a Duplicates has no text", ""),
    ],
)
def test_a_list_of_duplicates_names_its_line_at_fault(
    tmp_path: Path, lines: str, use: Any, error: type[FontesError], names: str, remedy: str
) -> None:
    (tmp_path / "duplicates.txt").write_text(lines)
    check_error(lambda: (use or list)(read_duplicates(tmp_path / "duplicates.txt")), error, names, remedy)


def test_rationales_need_a_stage_from_run_to_run(tmp_path: Path) -> None:
    index = ft.Index.build(DOCS, tmp_path / "x")
    over_index = run().with_(documents=index)
    check_error(lambda: ft.Rationales(index.bm25())(over_index), PipelineError, "rationales", "from Run to Run")  # type: ignore[arg-type]


def test_a_model_of_spacy_that_is_not_there_is_named_with_its_command() -> None:
    pytest.importorskip("spacy")
    names, remedy = "'xx_none'", "python -m spacy download xx_none"
    check_error(lambda: ft.Passages(sentences="spacy:xx_none").of(ft.Doc("d", "x")), ParameterError, names, remedy)

"""Positions of terms: those of a plain analysis, with gaps for dropped words and between fields."""

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to
from support.occurrences import agrees
from support.small_collections import PROPERTY, files

from fontes.core import Doc, IndexFormatError
from fontes.datasets import corpus_of
from fontes.formats import read_corpus
from fontes.index import Index, build, inversion, positions as places_of, postings
from fontes.text import Analyzer

WORDS = st.lists(st.sampled_from(["a", "the", "fox", "foxes", "é", "東", "jumps", "z's", "–"]), max_size=14).map(" ".join)
DOCS = st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=14)
FIELDS = st.sampled_from([("text",), ("title", "text"), ("text", "title"), ("title", "note", "text")])
FOXES = [
    Doc("d1", "The fox jumps over the lazy dog, and the fox sleeps.", "Fox and dog"),
    Doc("d2", "A dog sleeps."),
    Doc("d3", "", "Foxes"),
    Doc("d4", "Of the fox"),
]


def docs_of(texts: list[tuple[str, str, str]]) -> list[Doc]:
    return [Doc(f"d{n}", text, title, {"note": note} if note else {}) for n, (text, title, note) in enumerate(texts)]


@settings(PROPERTY, max_examples=up_to(30))
@given(DOCS, FIELDS, st.sampled_from(["standard", "english", "whitespace", "cjk", "simple"]), st.booleans())
def test_positions_and_frequencies_by_field_are_those_of_a_plain_analysis(
    tmp_path_factory: Any, texts: Any, fields: Any, analyzer: str, separate: bool
) -> None:
    docs = docs_of(texts)
    folder = tmp_path_factory.mktemp("i")
    index = Index.build(docs, folder / "x", analyzer=analyzer, fields=fields, separate=separate, positions=True, threads=1)
    agrees(index, docs, fields)
    index.check(deep=True)


def test_dropped_words_and_the_ends_of_fields_leave_gaps(tmp_path: Path) -> None:
    index = Index.build(FOXES, tmp_path / "x", positions=True)
    (part,) = index.state.parts
    bounds, positions = part.positions.of(part.term_number("fox"))
    # d1: fox(0) and dog(2) | the fox(104) jumps over the lazy dog and the fox(112); d3: foxes(0) |; d4: | of the fox(102)
    assert (bounds.tolist(), positions.tolist()) == ([0, 3, 4, 5], [0, 104, 112, 0, 102])
    assert part.positions.field_starts.tolist() == [[0, 103, 114], [0, 100, 103], [0, 101, 101], [0, 100, 103]]
    assert index.separate == ()


@settings(PROPERTY, max_examples=up_to(25))
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=150),
    st.lists(st.integers(0, 149), max_size=20, unique=True).map(sorted),
    st.sampled_from([1, 2, 32]),
)
def test_positions_of_some_postings_are_read_alone(
    tmp_path_factory: Any, counts: list[int], chosen: list[int], block: int
) -> None:
    docs = [(f"d{n}", "x " * (n % 5) + "a b " * count) for n, count in enumerate(counts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places_of, "ROWS_PER_OFFSET", block)
        index = Index.build(docs, tmp_path_factory.mktemp("i") / "x", positions=True, threads=1)
        (part,) = index.state.parts
        number = part.term_number("b")
        if number < 0:
            return
        bounds, positions = part.positions.of(number)
        places = np.array([place for place in chosen if place < len(bounds) - 1], dtype=np.int64)
        expected = [positions[bounds[place] : bounds[place + 1]].tolist() for place in places]
        own_bounds, own = part.positions.of(number, places)
        assert [own[a:b].tolist() for a, b in pairwise(own_bounds)] == expected
        terms, edges = np.array([number, number]), np.array([0, len(places), 2 * len(places)])
        twice, both = part.positions.of_terms(terms, edges, np.concatenate([places, places]))
        assert both.tolist() == [*own.tolist(), *own.tolist()]
        assert np.diff(twice).tolist() == [*np.diff(own_bounds), *np.diff(own_bounds)]
        with pytest.raises(IndexError, match="not among the postings"):
            part.positions.of(number, np.array([len(bounds) - 1]))


@settings(PROPERTY, max_examples=up_to(15))
@given(DOCS, st.integers(1, 200), st.sampled_from([1, 24 * 3, 24 * 20]), st.integers(1, 9))
def test_runs_that_were_spilled_and_merged_give_the_same_files(
    tmp_path_factory: Any, texts: Any, batch: int, memory: int, chunk: int
) -> None:
    docs, folder = docs_of(texts), tmp_path_factory.mktemp("i")
    kept: dict[str, Any] = {"analyzer": "standard", "separate": True, "positions": True, "threads": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "BATCH", batch)
        Index.build(docs, folder / "whole", **kept)
        patch.setattr(inversion, "CHUNK_POSTINGS", chunk)
        patch.setattr(postings, "CHUNK_POSTINGS", chunk)
        index = Index.build(docs, folder / "spilled", memory=memory, **kept)
        agrees(index, docs, ("title", "text"))
        index.check(deep=True)
    assert files(folder / "spilled") == files(folder / "whole")


def test_the_other_files_of_an_index_are_those_of_one_without(tmp_path: Path) -> None:
    """Word n-grams aside, which end with a field that is kept apart."""
    Index.build(FOXES, tmp_path / "plain")
    for name, options in {"fields": {"separate": True}, "positions": {"positions": True}}.items():
        Index.build(FOXES, tmp_path / name, **options)
        plain, other = (
            {Path(file).name: content for file, content in files(tmp_path / folder).items() if file != "manifest.json"}
            for folder in ("plain", name)
        )
        assert {file: content for file, content in other.items() if not file.startswith(f"{name}.")} == plain


def test_an_analyzer_of_ones_own_has_positions(tmp_path: Path) -> None:
    index = Index.build(FOXES, tmp_path / "x", analyzer=Analyzer.of(str.split), positions=True)
    agrees(index, FOXES, ("title", "text"))


def test_damaged_positions_are_refused(tmp_path: Path) -> None:
    docs = [(f"d{n}", "a " * (n % 3 + 1)) for n in range(300)]
    index = Index.build(docs, tmp_path / "x", positions=True, analyzer="standard")
    (file,) = (tmp_path / "x").glob("segment-*/positions.rows.npy")
    sound = file.read_bytes()
    for change in (lambda a: a.__setitem__(slice(None), 0), lambda a: a.__setitem__(slice(None), 255)):
        array = np.load(file)
        change(array)
        np.save(file, array)
        for places in (None, np.array([5]), np.array([299])):
            reader = Index.open(index.path)
            with pytest.raises(IndexFormatError, match=r"positions\.rows\.npy is damaged"):
                reader.state.parts[0].positions.of(0, places)
        file.write_bytes(sound)


@pytest.mark.parametrize("analyzer", ["english", "standard"])
def test_fields_and_positions_of_real_documents_are_those_of_a_plain_analysis(tmp_path: Path, analyzer: str) -> None:
    docs = list(islice(read_corpus(corpus_of("sample:harbour")), 300))
    index = Index.build(docs, tmp_path / "x", analyzer=analyzer, separate=True, positions=True)
    agrees(index, docs, ("title", "text"))

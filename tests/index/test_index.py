"""An open index: numbers of documents and terms, its name, how a notebook shows it, and threads that share it."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.small_collections import DOCS

from fontes.core import Doc
from fontes.index import Index

MODELS = (
    *(("bm25", {"k1": k1, "b": b}) for k1, b in ((0.9, 0.4), (1.2, 0.75), (2.0, 0.1))),
    ("bm25", {"variant": "okapi"}),
    ("tfidf", {}),
    ("tfidf", {"sublinear_tf": True}),
    ("ql", {}),
    ("ql", {"smoothing": "jelinek-mercer"}),
)


def test_a_collection_is_built_and_added_by_the_name_that_the_command_takes(tmp_path: Path) -> None:
    assert len(Index.build("sample:harbour", tmp_path / "harbour.index")) == 150
    assert Index.build(DOCS, tmp_path / "small.index").add("sample:harbour").added == 150


def test_the_ordinal_of_a_document_is_its_place_among_the_ids(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x")
    assert [index.ordinal(doc.id) for doc in DOCS] == [0, 1, 2]


def test_the_number_of_a_term_is_its_place_among_the_terms_and_below_0_for_others(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x", analyzer="whitespace")
    for _ in range(2):  # the second time from memory
        assert [index.term_number(term) for term in index.terms] == list(range(len(index.terms)))
        assert index.term_number("unicorn") == -1


def test_the_name_of_an_index_is_that_of_its_folder_without_the_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Index.build(DOCS, tmp_path / "papers.index").name == "papers"
    monkeypatch.chdir(tmp_path / "papers.index")
    assert Index.open(".").name == "papers"


def test_a_notebook_shows_what_the_index_is_and_nothing_of_it_is_markup(tmp_path: Path) -> None:
    path = tmp_path / "<script>alert(1)</script>.index".replace("/", "|")
    index = Index.build(
        [Doc("d1", "one two"), Doc("d2", "two", "", {"<b>": ""})], path, analyzer="whitespace", fields=["text", "<b>"]
    )
    page = index._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page
    for row in ("<td>documents</td><td>2</td>", "<td>terms</td><td>2</td>", "<td>tokens</td><td>3</td>"):
        assert row in page.replace(' style="text-align:left"', "")
    assert index.fingerprint[:16] in page


def test_a_notebook_shows_the_fitting_part_of_a_document_with_escaped_markup(tmp_path: Path) -> None:
    doc = Doc("d1", "The <foxes> & dogs", "On <i>foxes</i>")
    index = Index.build([doc], tmp_path / "x")
    assert index.marked("fox", doc) == "<i>On &lt;i&gt;foxes&lt;/i&gt;</i> The &lt;<b>foxes</b>&gt; &amp; dogs"
    assert "<b>foxes</b>" in index.bm25().search("fox")._repr_html_()


def test_an_index_travels_to_another_process_with_what_was_searched_left_behind(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x")
    hits = index.bm25().search("fox")
    again = pickle.loads(pickle.dumps(index))
    assert again.fingerprint == index.fingerprint
    assert list(again.bm25().search("fox")) == list(hits)


def test_eight_threads_with_eight_models_get_what_one_thread_gets(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    docs = [(f"d{n}", " ".join(f"w{w}" for w in rng.zipf(1.4, 30) if w < 200)) for n in range(400)]
    queries = [f"w{a} w{b} w{c}" for a, b, c in rng.integers(1, 60, (12, 3))]
    path = Index.build(docs, tmp_path / "x", analyzer="whitespace").path

    def answers(index: Index, number: int) -> list[list[tuple[str, float]]]:
        name, parameters = MODELS[number]
        stage = getattr(index, name)(**parameters)
        return [[(hit.id, hit.score) for hit in stage.search(query, 20)] for query in queries]

    alone = [answers(Index.open(path), number) for number in range(len(MODELS))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(MODELS)) as pool:
            for _ in range(5):
                shared = Index.open(path)
                assert list(pool.map(lambda number, index=shared: answers(index, number), range(len(MODELS)))) == alone
    finally:
        sys.setswitchinterval(interval)

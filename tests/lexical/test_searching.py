"""One topic without compiled code: the same ranking, and a cost by which Numba is loaded in time."""

import pytest
from support.uncompiled import uncompiled

from fontes import Index
from fontes.lexical import searching


def test_a_search_without_compiled_code_gives_the_same_ranking(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build([(f"d{n}", " ".join(f"w{n % divisor}" for divisor in range(1, 9))) for n in range(900)], tmp_path / "x")
    steps = []
    compiled = [(hit.id, hit.score) for hit in index.bm25().search("w0 w1 w2 w5", 20)]
    stage = index.bm25()
    uncompiled(monkeypatch, lambda count: steps.append(count) is None)
    assert [(hit.id, hit.score) for hit in stage.search("w0 w1 w2 w5", 20)] == compiled
    postings = int(sum(index.df[index.term_number(term)] for term in ("w0", "w1", "w2", "w5")))
    assert steps == [postings // searching.POSTINGS_PER_STEP + 900 // searching.SUMS_PER_STEP + searching.CALL_STEPS]


def test_a_run_of_few_topics_without_compiled_code_is_the_same(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build([(f"d{n}", " ".join(f"w{n % divisor}" for divisor in range(1, 9))) for n in range(900)], tmp_path / "x")
    topics = {"a": "w0 w1 w5", "b": "nowhere", "c": "", "d": "w6 w2"}
    compiled = index.bm25(k=50)(topics)
    uncompiled(monkeypatch)
    plain = index.bm25(k=50)(topics)
    assert [plain[topic].ids for topic in plain] == [compiled[topic].ids for topic in compiled]
    assert plain.scores.dtype == compiled.scores.dtype
    assert plain.scores.tobytes() == compiled.scores.tobytes()

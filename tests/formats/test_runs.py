from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.each import each
from support.examples import up_to

from fontes.core import InputError, Qrels, Run, Topic, Topics
from fontes.formats import columns, read_qrels, read_run, write_qrels, write_run


def put(tmp_path: Path, content: str | bytes, name: str = "a.run") -> Path:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return tmp_path / name


def test_a_trec_run_is_read_in_the_one_order_whatever_ranks_and_lines_say(tmp_path: Path) -> None:
    run = read_run(put(tmp_path, "q2 Q0 a 1 0.5 x\nq1 Q0 b 7 1.5 x\nq1\tQ0\td 1 2e0 x\r\n\nq2 0 c 9 0.5 x"))
    assert list(run) == ["q2", "q1"]
    assert [(h.id, h.score, h.rank) for h in run["q2"]] == [("c", 0.5, 1), ("a", 0.5, 2)]
    assert run.to_dict()["q1"] == {"d": 2.0, "b": 1.5}


def test_an_ms_marco_run_keeps_its_order(tmp_path: Path) -> None:
    run = read_run(put(tmp_path, "7\tb\t2\n7\ta\t1\n7\tc\t3\n"))
    assert run.to_dict() == {"7": {"a": 1.0, "b": 0.5, "c": float(np.float32(1 / 3))}}


def test_a_run_takes_the_given_topics_and_adds_those_that_only_it_has(tmp_path: Path) -> None:
    topics = Topics([Topic("q0", "zero"), Topic("q1", "one")])
    run = read_run(put(tmp_path, "q9 Q0 a 1 1 x\nq1 Q0 a 1 1 x\n"), topics)
    assert list(run) == ["q0", "q1", "q9"]
    assert (run.topics["q1"].text, len(run["q0"]), run.topics["q9"].text) == ("one", 0, "")


def test_an_empty_file_is_an_empty_run(tmp_path: Path) -> None:
    assert len(read_run(put(tmp_path, "\n"))) == 0
    assert len(read_run(put(tmp_path, ""), Topics([Topic("q", "")]))["q"]) == 0


GOOD = "q1 Q0 a 1 2.0 x\n\nq1 Q0 b 2 1.0 x\n"


@each(
    ("content", "problem"),
    [
        (GOOD + "q1 Q0 c 3 x\n", "line 4: 5 columns, not 6 as in the lines before"),
        (GOOD + "q1 Q0 c 3 1.0 x y\nq1 Q0 d 4 0.5\n", "line 4: 7 columns, not 6"),
        (GOOD + "q1 Q0 c 3 high x\n", "line 4: the score 'high' is not a number"),
        (GOOD + "q1 Q0 c 3 NaN x\n", "line 4: the score 'NaN' is not a number"),
        (GOOD + "q2 Q0 a 1 1 x\n\nq1 Q0 a 3 0.1 x\n", "line 6: topic 'q1', document 'a': listed a second time"),
        (GOOD.encode() + b"q1 Q0 \xff 3 0.1 x\n", "line 4: not UTF-8"),
        (GOOD.encode() + b"\xff Q0 a 3 0.1 x\n", "line 4: not UTF-8"),
        ("q1 a\n", "line 1: 2 columns, not 6 (TREC) or 3 (MS MARCO)"),
        ("q1 a 1\nq1 b -1\n", "line 2: the rank '-1' is not a whole number from 0"),
        ("q1 a 1\nq1 b 1.5\n", "line 2: the rank '1.5' is not a whole number from 0"),
    ],
)
@each("block", [1, 20, 1 << 24])
def test_run_errors_name_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | bytes, problem: str, block: int
) -> None:
    monkeypatch.setattr(columns, "BLOCK_SIZE", block)
    path = put(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}, {problem}")


def test_a_run_is_read_the_same_in_blocks_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(
        tmp_path, "\ufeff" + "".join(f"q{i % 7} Q0 d{i} 1 {i * i % 31} tag\n" + "\n" * (i % 11 == 3) for i in range(300))
    )
    whole = read_run(path)
    for block in (1, 10, 333):
        monkeypatch.setattr(columns, "BLOCK_SIZE", block)
        assert read_run(path) == whole


def test_a_written_run_has_the_shortest_digits_that_read_back_the_same(tmp_path: Path) -> None:
    write_run({"q1": {"a": 0.1, "b": 199, "c": -2.5, "d": 1e-7}, "q2": {}}, tmp_path / "a.run", tag="t")
    assert (tmp_path / "a.run").read_text() == "q1 Q0 b 1 199.0 t\nq1 Q0 a 2 0.1 t\nq1 Q0 d 3 1e-07 t\nq1 Q0 c 4 -2.5 t\n"


@settings(max_examples=up_to(50), deadline=None)
@given(st.dictionaries(st.text("abž", min_size=1), st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_any_run_reads_back_the_same_and_is_written_the_same(tmp_path_factory: pytest.TempPathFactory, ranking: dict) -> None:
    folder = tmp_path_factory.mktemp("run")
    run = Run.of({"q": ranking, "r": ranking})
    write_run(run, folder / "a.run")
    again = read_run(folder / "a.run")
    write_run(again, folder / "b.run")
    assert again == run
    assert (folder / "a.run").read_bytes() == (folder / "b.run").read_bytes()


def test_every_kind_of_float32_reads_back_the_same(tmp_path: Path) -> None:
    bits = np.random.default_rng(7).integers(0, 2**32, 20_000, dtype=np.uint32)
    scores = bits.view(np.float32)
    scores = scores[np.isfinite(scores)]
    run = Run.of(("q", f"d{i}", s) for i, s in enumerate(scores))
    write_run(run, tmp_path / "a.run")
    assert read_run(tmp_path / "a.run") == run


def test_an_ms_marco_file_has_ranks(tmp_path: Path) -> None:
    write_run({"1": {"a": 3.0, "b": 4.0}}, tmp_path / "a.run", format="msmarco")
    assert (tmp_path / "a.run").read_text() == "1\tb\t1\n1\ta\t2\n"


def test_trec_qrels_keep_the_group_that_is_asked_for(tmp_path: Path) -> None:
    qrels = read_qrels(put(tmp_path, "1 0 a 2\n1 g b 1\n1 g c 1\n\n2\t0\td\t-1\r\n"), groups=True)
    assert qrels.to_dict() == {"1": {"a": 2, "b": 1, "c": 1}, "2": {"d": -1}}
    assert qrels.groups("1") == [frozenset({"b", "c"}), frozenset({"a"})]


@pytest.mark.parametrize("header", ["query-id\tcorpus-id\tscore\n", ""])
def test_beir_qrels_may_have_a_header_and_ids_with_blanks(tmp_path: Path, header: str) -> None:
    assert read_qrels(put(tmp_path, header + "1\ta b\t1\n2\tc\t0\n")).to_dict() == {"1": {"a b": 1}, "2": {"c": 0}}


def test_written_qrels_read_back_the_same(tmp_path: Path) -> None:
    qrels = Qrels([("1", "0", "a", 2), ("1", "g", "b", 1), ("1", "h", "b", 1), ("2", "0", "c", 0)])
    write_qrels(qrels, tmp_path / "q.gz")
    again = read_qrels(tmp_path / "q.gz", groups=True)
    assert list(again.rows()) == list(qrels.rows())


def test_beir_judgments_are_written_with_ids_that_have_blanks_and_without_groups(tmp_path: Path) -> None:
    qrels = Qrels([("t 1", "g1", "d 1", 2), ("t 1", "0", "d2", 0), ("2", "0", "d2", 1)])
    write_qrels(qrels, tmp_path / "test.tsv", "beir")
    assert (tmp_path / "test.tsv").read_text() == "query-id\tcorpus-id\tscore\nt 1\td 1\t2\nt 1\td2\t0\n2\td2\t1\n"
    assert read_qrels(tmp_path / "test.tsv").to_dict() == qrels.to_dict()


def test_topics_of_a_run_may_be_a_file(tmp_path):
    (tmp_path / "topics.tsv").write_text("1\tfirst\n2\tsecond\n")
    (tmp_path / "a.run").write_text("1 Q0 d 1 2.5 a\n")
    run = read_run(tmp_path / "a.run", tmp_path / "topics.tsv")
    assert [(topic.id, topic.text) for topic in run.topics.values()] == [("1", "first"), ("2", "second")]

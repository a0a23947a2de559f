"""Lists of duplicate documents: read, left out of a collection, joined in a run."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import fontes as ft
from fontes.core.expression import pipeline
from fontes.passages import Duplicates, read_duplicates

# The forms of the files of TREC CAsT: marco_duplicates.txt and wapo-near-duplicates of 2021, all_duplicates.txt of 2022.
MARCO = "D135:D2854269\nD590:D1258790,D7001097\nD7:\n"
WAPO = "aa11 aa11 One article twice\naa11 bb22 The same text\tunder another id\ncc33\tdd44\n"
ALL = "MARCO_D5\nKILT_9\n"


def listed(tmp_path: Path, text: str, prefix: str = "") -> Duplicates:
    path = tmp_path / "duplicates.txt"
    path.write_text(text)
    return ft.passages.read_duplicates(path, prefix)


def test_the_list_of_ms_marco_names_an_original_and_its_duplicates(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, MARCO)) == {"D2854269": "D135", "D1258790": "D590", "D7001097": "D590"}


def test_the_prefix_is_put_before_ids_that_lack_it(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, "D1:D2,MARCO_D3\n", "MARCO_")) == {"MARCO_D2": "MARCO_D1", "MARCO_D3": "MARCO_D1"}


def test_the_list_of_the_washington_post_names_pairs_and_titles(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, WAPO, "WAPO_")) == {"WAPO_bb22": "WAPO_aa11", "WAPO_dd44": "WAPO_cc33"}


def test_a_list_may_name_duplicates_alone(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, ALL)) == {"MARCO_D5": "", "KILT_9": ""}


def test_an_original_that_is_a_duplicate_itself_hands_on_to_its_own(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, "b:c\na:b\n")) == {"b": "a", "c": "a"}
    assert dict(listed(tmp_path, "a:b\nb:c\n")) == {"b": "a", "c": "a"}


def test_of_several_originals_the_first_counts(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, "a:c\nb:c\n")) == {"c": "a"}


def test_a_circle_leaves_one_original(tmp_path: Path) -> None:
    assert dict(listed(tmp_path, "a:b\nb:c\nc:a\n")) == {"b": "a", "c": "a"}


def test_a_packed_list_is_read(tmp_path: Path) -> None:
    path = tmp_path / "duplicates.txt.gz"
    path.write_bytes(gzip.compress(MARCO.encode()))
    assert len(ft.passages.read_duplicates(path)) == 3


def test_a_collection_loses_its_duplicates_and_repeated_copies(tmp_path: Path) -> None:
    duplicates = listed(tmp_path, WAPO)
    docs = [ft.Doc("dd44", "x"), ft.Doc("aa11", "first"), ft.Doc("aa11", "again"), ft.Doc("bb22", "y"), ft.Doc("ee55", "z")]
    assert [(d.id, d.text) for d in duplicates.docs(docs)] == [("aa11", "first"), ("ee55", "z")]


def test_a_collection_without_duplicates_is_indexed_from_its_file(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "D1", "text": "a spring"}\n{"_id": "D2", "text": "a spring"}\n')
    index = ft.Index.build(listed(tmp_path, "D1:D2\n").docs(corpus), tmp_path / "index")
    assert index.bm25().search("spring").ids == ["D1"]


RUN = {"q1": {"D2": 3.0, "D9": 2.5, "D1": 2.0, "D3": 1.0}, "q2": {"D3": 4.0}, "q3": {"D9": 1.0}}


def test_the_group_has_its_best_score_and_its_originals_id(tmp_path: Path) -> None:
    stage = ft.Deduplicate(listed(tmp_path, "D1:D2,D3\n"))
    assert stage(RUN).to_dict() == {"q1": {"D1": 3.0, "D9": 2.5}, "q2": {"D1": 4.0}, "q3": {"D9": 1.0}}


def test_the_best_of_a_group_may_keep_its_own_id(tmp_path: Path) -> None:
    stage = ft.Deduplicate(listed(tmp_path, "D1:D2,D3\n"), keep="best")
    assert stage(RUN).to_dict() == {"q1": {"D2": 3.0, "D9": 2.5}, "q2": {"D3": 4.0}, "q3": {"D9": 1.0}}


@pytest.mark.parametrize("keep", ["original", "best"])
def test_a_duplicate_of_nothing_named_is_left_out(tmp_path: Path, keep: str) -> None:
    stage = ft.Deduplicate(listed(tmp_path, "D2\nD3\n"), keep=keep)
    assert stage(RUN).to_dict() == {"q1": {"D9": 2.5, "D1": 2.0}, "q2": {}, "q3": {"D9": 1.0}}


@pytest.mark.parametrize("keep", ["original", "best"])
def test_random_runs_agree_with_a_plain_account(keep: str) -> None:
    generator = np.random.default_rng(4)
    duplicates = Duplicates((f"D{i % 7}", f"D{i}") for i in range(7, 30))
    for _ in range(20):
        ids = [f"D{i}" for i in generator.permutation(40)[:25]]
        run = ft.Run.of({"q": dict(zip(ids, generator.integers(0, 6, 25).astype(float).tolist(), strict=True))})
        met: dict[str, tuple[str, float]] = {}
        for hit in run["q"]:
            group = duplicates.get(hit.id, hit.id)
            met.setdefault(group, (group if keep == "original" else hit.id, hit.score))
        assert ft.Deduplicate(duplicates, keep)(run) == ft.Run.of({"q": dict(met.values())})


def test_it_has_a_key_by_what_the_list_says(tmp_path: Path) -> None:
    first, second = (ft.Deduplicate(listed(tmp_path, text)) for text in ("D1:D2\nD3:D4\n", "D3:D4\nD1:D2\n"))
    assert first.key() == second.key() != ft.Deduplicate(listed(tmp_path, "D1:D2\n")).key()
    assert first.key() is not None
    assert repr(first) == "deduplicate(Duplicates(2))"


def test_the_path_of_a_list_does_what_the_list_does_and_has_a_text(tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_text("1:2\n")
    stage, by_list = ft.Deduplicate(str(path), prefix="D"), ft.Deduplicate(read_duplicates(path, prefix="D"))
    assert stage(RUN) == by_list(RUN)
    assert stage.key() == by_list.key()
    assert pipeline(stage.text) == stage
    path.write_text("1:2,3\n")
    assert stage(RUN) == ft.Deduplicate(read_duplicates(path, prefix="D"))(RUN) != by_list(RUN)


def test_an_empty_run_stays_empty(tmp_path: Path) -> None:
    assert ft.Deduplicate(listed(tmp_path, "D1:D2\n"))({}).to_dict() == {}

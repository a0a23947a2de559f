"""The report of `compare`: its figures on real runs, its forms, and the command that prints it."""

import csv
import functools
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

import fontes as ft
from fontes.comparison.statistics import tukey
from fontes.experiments.experiment import ReportTable
from fontes.plots import tables

QRELS = {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}, "q3": {"d1": 0}, "q4": {"d4": 1}}
GOOD = {"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d3": 1.0}, "q4": {"d4": 1.0}}
BAD = {"q1": {"d9": 3.0, "d1": 2.0}, "q2": {"d8": 1.0, "d3": 0.5}, "q3": {"d1": 1.0}, "q9": {"d1": 1.0}}


LEFT, RIGHT = '<td style="text-align:left">', "<td>"


def test_superscripts_name_the_systems_that_are_significantly_worse(shared: Path) -> None:
    report = of_checkthat(shared, "dev")
    lines = str(report).splitlines()
    assert lines[1].split()[:3] == ["a", "dev.leon_predictions_BM25_TOP10", "0.5523"]
    assert lines[2].split()[:3] == ["b", "dev.leon_predictions_SciBERT_TOP10", "0.7084ᵃᶜᵈ"]
    assert report.best(ft.RR @ 5) == {"dev.leon_predictions_SciBERT_TOP10"}


@functools.cache
def of_checkthat(shared: Path, split: str, **options: Any) -> ft.comparison.Report:
    folder = shared / "checkthat25_4b"
    return ft.compare(
        sorted((folder / "runs").glob(f"{split}.*")), None, folder / "qrels" / f"{split}.tsv", ft.RR @ 5, **options
    )


def test_runs_of_checkthat_have_the_published_figures(shared: Path) -> None:
    published = {"dev.leon_predictions_BM25_TOP10": 0.552, "dev.leon_predictions_SciBERT_TOP10": 0.708}
    dev = of_checkthat(shared, "dev", test="fisher")
    assert {name: round(dev.mean(name, "RR@5"), 3) for name in published} == published
    published = {"test.leon_predictions_BM25_TOP10": 0.431, "test.leon_predictions_SciBERT_TOP10": 0.683}
    test = of_checkthat(shared, "test")
    assert {name: round(test.mean(name, "RR@5"), 3) for name in published} == published
    (one,) = test.comparisons
    assert one.significant
    assert one.low < one.difference < one.high


def test_p_values_wins_and_tukeys_are_those_of_ranx(shared: Path) -> None:
    # ranx 0.3.21, compare(stat_test="student") and "tukey" of mrr@5 on these files; its Tukey is the one without blocks.
    ranx = {
        ("leon_predictions_SciBERT_TOP10", "leon_predictions_BM25_TOP10"): (7.147106694264843e-45, (398, 912, 90), 0.0),
        ("ysong_colbertv2", "leon_predictions_BM25_TOP10"): (4.605860233939603e-16, (297, 972, 131), 2.557039529449412e-06),
        ("ysong_openai_emb", "leon_predictions_SciBERT_TOP10"): (0.000286399527965872, (158, 1018, 224), 0.2276840954047623),
        ("ysong_openai_emb", "ysong_colbertv2"): (2.9273380263785676e-05, (260, 981, 159), 0.07934057703510844),
    }
    report = of_checkthat(shared, "dev")
    names = list(report.systems)
    for (system, against), (p, counts, tukeys) in ranx.items():
        one = report.comparison(f"dev.{system}", f"dev.{against}", "RR@5")
        assert one.p == pytest.approx(p, rel=1e-9)
        assert (one.wins, one.ties, one.losses) == counts
        pair = (names.index(one.system), names.index(one.against))
        assert tukey(report.values[ft.RR @ 5], [pair], blocks=False)[1][0] == pytest.approx(tukeys, abs=1e-9)


def test_the_organisers_runs_of_cast_evaluate_to_what_trec_eval_gives(shared: Path) -> None:
    folder = shared / "cast2021"
    qrels = ft.read_qrels(folder / "qrels" / "test_docs.tsv")
    files = sorted((folder / "baselines").glob("*.run"))
    report = ft.compare(files, folder / "queries.jsonl", qrels, ["nDCG@3", "AP", "R@100", "RR"])
    trec_eval = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), {"ndcg_cut.3", "map", "recall.100", "recip_rank"})
    for path in files:
        values = trec_eval.evaluate(ft.read_run(path).to_dict())
        for measure, name in {"nDCG@3": "ndcg_cut_3", "AP": "map", "R@100": "recall_100", "RR": "recip_rank"}.items():
            mean = sum(values[t][name] for t in values if t in qrels) / len(qrels)
            system = next(s for s in report.systems if path.name.startswith(f"{s}."))
            assert report.mean(system, measure) == pytest.approx(mean, abs=1e-9)
    assert report.topics["106_1"].text


def test_json_holds_everything_and_csv_a_line_for_each_test() -> None:
    report = ft.compare({"a": GOOD, "b": BAD, "c": {}}, None, QRELS, ["AP", "RR"], test="fisher", seed=3, allow_empty=True)
    facts = json.loads(report.to_json())
    assert (facts["test"], facts["correction"], facts["permutations"], facts["seed"]) == ("fisher", "holm", 100_000, 3)
    assert facts["systems"]["c"]["missing"] == 4
    assert facts["per_topic"]["AP"]["a"] == report.systems["a"].evaluation.per_topic("AP")
    assert [c["p"] for c in facts["comparisons"]] == [c.p for c in report.comparisons]
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [(r["measure"], r["system"], r["against"]) for r in rows if r["measure"] == "AP"] == [
        ("AP", "a", ""), ("AP", "b", "a"), ("AP", "c", "a"), ("AP", "c", "b")
    ]  # fmt: skip
    assert float(rows[1]["p"]) == report.comparisons[0].p


def test_with_a_baseline_table_and_caption_say_what_was_tested_against_what() -> None:
    systems = {"g_1": GOOD, "b_2": BAD, "c": GOOD}
    report = ft.compare(systems, None, QRELS, "AP", baseline="b_2", correction="bonferroni", allow_empty=True)
    assert "b  b_2 (baseline)  0.1875" in str(report)
    assert (
        "tests: each system against the baseline b (b_2), over 4 topics (paired t-test, Bonferroni over each measure, p ≤ 0.05)"
        in str(report)
    )
    assert (
        r"\caption{Means over 4 topics. Each system was tested against the baseline b\_2 "
        r"(paired t-test, Bonferroni over each measure, $p \le 0.05$); superscripts: significantly better than that system.}"
    ) in report.to_latex()
    assert "| b | b\\_2 (baseline) |" in report.to_markdown()
    assert "tested against b_2" in report.to_html()
    assert (
        "Superscripts: significantly better than that system (all pairs; paired t-test"
        in ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP").to_latex()
    )


def test_latex_is_a_whole_table_of_booktabs_whose_numbers_are_right_aligned() -> None:
    many = {"1": {"a": 1}, **{str(i): {"a": 1} for i in range(2, 40)}}
    good = {t: {"a": 2.0, "b": 1.0} for t in many}
    bad = {t: {"b": 2.0, "a": 1.0} if int(t) % 3 else {"c": 3.0, "b": 2.0, "a": 1.0} for t in many}
    report = ft.compare({"a & b": good, "50%_{x}\n$^~#\\": bad}, None, many, ["RR", "nDCG(dcg='exp-log2')@10", "NumRet"])
    lines = report.to_latex(label="tab:springs").splitlines()
    assert lines[1:6:4] == [r"\begin{table}", r"\begin{tabular}{llrrr}"]
    assert lines[4] == r"\label{tab:springs}"
    rules = [lines.index(rf"\{name}rule") for name in ("top", "mid", "bottom")]
    rows = lines[rules[0] + 1 : rules[1]] + lines[rules[1] + 1 : rules[2]]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == 4
        assert row.endswith(r" \\")
    assert r"\textbf{1.0000}\rlap{$^{b}$}" in rows[1]
    body = "\n".join(lines[1:])
    unescaped = re.sub(r"\\[\\{}$&%_#]", "", body)
    assert unescaped.count("{") == unescaped.count("}")
    assert unescaped.count("$") % 2 == 0
    assert not re.findall(r"[%#~]", unescaped)
    assert re.findall(r"\\(?:begin|end)\{(\w+)", body) == ["table", "tabular", "tabular", "table"]


def test_an_index_brings_the_texts_of_the_documents_into_the_page(tmp_path: Path, fontes: Any) -> None:
    docs = [("d1", "first spring"), ("d2", "second spring"), ("d3", "third"), ("d9", "ninth"), ("d8", "eighth"), ("d4", "x")]
    index = ft.Index.build(docs, tmp_path / "some.index")
    for name, run in {"good": GOOD, "bad": BAD}.items():
        ft.write_run(run, tmp_path / f"{name}.run")
    ft.write_qrels(QRELS, tmp_path / "qrels")
    files = [tmp_path / "qrels", tmp_path / "good.run", tmp_path / "bad.run"]
    code, _, error = fontes("compare", *files, "--index", tmp_path / "some.index", "--html", tmp_path / "page.html")
    assert code == 0, error
    page = (tmp_path / "page.html").read_text()
    assert "second spring" in page
    assert "ninth" in page
    report = ft.compare(files[1:], None, files[0], "AP")
    assert "second spring" not in report.to_html()
    assert "second spring" in report.with_documents(index).to_html()


def test_the_command_refuses_an_empty_run_unless_allowed(tmp_path: Path, fontes: Any) -> None:
    for name, run in {"good": GOOD, "bad": BAD}.items():
        ft.write_run(run, tmp_path / f"{name}.run")
    (tmp_path / "none.run").touch()
    (tmp_path / "topics.tsv").write_text("q1\tspring\nq4\twell\n")
    ft.write_qrels(QRELS, tmp_path / "qrels")
    qrels, good, bad, none = (tmp_path / name for name in ("qrels", "good.run", "bad.run", "none.run"))
    code, out, error = fontes("compare", qrels, good, bad, "--topics", tmp_path / "topics.tsv", "--json")
    assert (code, json.loads(out)["topics"], json.loads(out)["not_given"]) == (0, 2, len(QRELS) - 2), error
    code, _, error = fontes("compare", qrels, good, none)
    assert code != 0
    assert "the run 'none' has no rows" in error
    assert fontes("compare", qrels, good, none, "--allow-empty")[0] == 0


def test_eval_and_compare_take_measures_alike(tmp_path: Path, fontes: Any) -> None:
    ft.write_run(GOOD, tmp_path / "good.run")
    ft.write_qrels(QRELS, tmp_path / "qrels")
    files = [tmp_path / "qrels", tmp_path / "good.run"]
    names = ["P(rel=2)@1", "RBP(rel=1,p=0.5)"]
    for written in (["-m", ",".join(names)], ["-m", names[0], "--measures", names[1]]):
        _, shown, _ = fontes("eval", *files, *written, "--json")
        assert list(json.loads(shown)["measures"]) == ["P(rel=2)@1", "RBP(p=0.5)"]
        _, shown, _ = fontes("compare", *files, *written, "--json")
        assert json.loads(shown)["measures"] == ["P(rel=2)@1", "RBP(p=0.5)"]
    _, shown, _ = fontes("eval", *files, names[0], names[1], "AP,RR", "--json")
    assert list(json.loads(shown)["measures"]) == ["P(rel=2)@1", "RBP(p=0.5)", "AP", "RR"]
    code, _, error = fontes("compare", *files, "nDCG@10")
    assert (code, error.count("\n")) == (1, 1)
    assert "'nDCG@10' is a measure, not a run; write -m nDCG@10" in error


def test_the_measures_by_default_are_the_same_everywhere(tmp_path: Path, fontes: Any) -> None:
    ft.write_run(GOOD, tmp_path / "good.run")
    ft.write_qrels(QRELS, tmp_path / "qrels")
    files = [tmp_path / "qrels", tmp_path / "good.run"]
    expected = list(ft.measures.DEFAULT)
    assert list(map(str, ft.evaluate(GOOD, QRELS))) == expected
    assert list(map(str, ft.compare({"a": GOOD}, None, QRELS).measures)) == expected
    assert list(json.loads(fontes("eval", *files, "--json")[1])["measures"]) == expected
    assert json.loads(fontes("compare", *files, "--json")[1])["measures"] == expected
    assert ReportTable().measures == expected
    for command in ("eval", "compare"):
        assert ",".join(expected) in fontes(command, "--help")[1]


@pytest.mark.parametrize("name", ["[a]", "*a"])
def test_a_latex_row_may_begin_with_a_bracket_or_a_star(name: str) -> None:
    assert rf"{{}}{name} & 1 \\" in tables.ResultTable.of(("id", "n"), [("b", "2"), (name, "1")], 1).latex("tab:x")


def test_names_are_escaped_in_latex_and_markdown() -> None:
    report = ft.compare({"a_b & 50% >> {x}^2~\\|": GOOD, "*b*": BAD}, None, QRELS, "AP")
    assert (
        r"a\_b \& 50\% \textgreater{}\textgreater{} \{x\}\textasciicircum{}2\textasciitilde{}\textbackslash{}"
        in report.to_latex()
    )
    assert r"\textbf{0.7500}" in report.to_latex()
    assert r"| a | a\_b & 50% >> {x}^2~\\\| | **0.7500** |" in report.to_markdown()
    assert r"\*b\*" in report.to_markdown()


def test_the_best_value_is_bold_in_a_terminal_and_the_text_the_same() -> None:
    from rich.console import Console

    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP")
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    console.print(report)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1m0.7500" in shown
    plain = Console(file=io.StringIO(), width=200)
    plain.print(report)
    assert [x.rstrip() for x in plain.file.getvalue().split("\n")][:-1] == str(report).split("\n")  # type: ignore[attr-defined]


def test_in_a_notebook_the_means_have_their_marks_and_names_are_escaped(shared: Path) -> None:
    shown = of_checkthat(shared, "dev")._repr_html_()
    means, tests = shown.split("<details>")
    assert f"{LEFT}dev.leon_predictions_SciBERT_TOP10</td>{RIGHT}<b>0.7084</b><sup>a c d</sup></td>" in means
    assert f"{LEFT}dev.leon_predictions_BM25_TOP10</td>{RIGHT}0.5523</td>" in means
    assert "<li>superscripts: significantly better than the systems with these letters" in means
    assert tests.startswith("<summary>6 tests</summary><table>")
    assert tests.count(f"<tr>{LEFT}RR@5</td>") == 6
    odd = ft.compare({"<i>": GOOD}, None, QRELS, "AP")._repr_html_()
    assert f"{LEFT}&lt;i&gt;</td>" in odd
    assert "<i>" not in odd
    assert "<details>" not in odd  # there is no test


def test_an_interval_that_contradicts_its_p_says_how_both_were_computed() -> None:
    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP")
    (one,) = report.comparisons
    assert one.high < 0
    assert not one.significant
    note = "interval and p disagree on b – a by AP: the interval is by bootstrap (BCa, 10,000 samples), not corrected; "
    for text in (str(report), report.to_markdown(), report.to_html(), report._repr_html_()):
        assert f"{note}the p by paired t-test, Holm over each measure" in text


def test_intervals_and_ps_that_agree_are_not_explained(shared: Path) -> None:
    report = of_checkthat(shared, "test")
    assert all((c.low > 0 or c.high < 0) == c.significant for c in report.comparisons)
    assert "disagree" not in str(report)


def test_a_page_is_written_where_a_path_is_named(tmp_path: Path) -> None:
    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP")
    assert report.to_html(tmp_path / "x.html", depth=3) == (tmp_path / "x.html").read_text() == report.to_html(depth=3)


def test_more_than_25_systems_have_letters_of_their_own() -> None:
    report = ft.compare({f"s{i}": GOOD if i % 2 else BAD for i in range(27)}, None, QRELS, "AP", allow_empty=True)
    labels = [line.split()[0] for line in str(report).splitlines()[1:28]]
    assert labels[15:18] == ["p", "r", "s"]
    assert labels[24:] == ["z", "a2", "b2"]
    assert "351 tests, too many to print" in str(report)
    assert tables.ResultCell("1", ("a2", "b")).raised == "ᵃ²ᵇ"


def test_a_report_is_saved_in_the_form_of_its_name(tmp_path: Path) -> None:
    report = ft.compare({"a": GOOD, "b": BAD}, None, QRELS, "AP")
    for name, text in {"r.md": report.to_markdown(), "r.tex": report.to_latex(), "r.csv": report.to_csv()}.items():
        report.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    report.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["measures"] == ["AP"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with judgments and two runs, which is the current one."""
    ft.write_qrels(QRELS, tmp_path / "qrels.txt")
    ft.write_run(GOOD, tmp_path / "good.run")
    ft.write_run(BAD, tmp_path / "bad.run")
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_fontes(*arguments: str) -> Any:
    from typer.testing import CliRunner

    from fontes.app.cli import app

    return CliRunner().invoke(app, ["compare", "qrels.txt", *arguments])


def test_the_command_prints_what_the_report_prints(files: Path) -> None:
    result = run_fontes("good.run", "bad.run", "--measures", "RR,nDCG(dcg='exp-log2')@5,P(rel=2)@1", "--baseline", "bad.run")
    measures = [ft.RR, ft.nDCG(dcg="exp-log2") @ 5, ft.P(rel=2) @ 1]
    report = ft.compare(["good.run", "bad.run"], None, "qrels.txt", measures, baseline="bad")
    assert result.output == f"{report}\n"
    assert not (files / "cache").exists()


def test_the_command_prints_json_and_writes_all_forms(files: Path) -> None:
    result = run_fontes(
        "good.run", "bad.run", "-m", "AP", "--json", "-o", "r.md", "-o", "r.tex", "--test", "wilcoxon", "--alpha", "0.1"
    )
    facts = json.loads(result.output)
    assert (facts["test"], facts["alpha"], list(facts["systems"])) == ("wilcoxon", 0.1, ["good", "bad"])
    assert "| a | good |" in (files / "r.md").read_text(encoding="utf-8")
    assert r"\toprule" in (files / "r.tex").read_text(encoding="utf-8")


def test_the_command_says_what_is_wrong(files: Path) -> None:
    for arguments, message in {
        ("good.run", "--baseline", "best"): "the baseline 'best' is none of the systems; there are good",
        ("good.run", "--test", "z"): "unknown test 'z'",
        ("none.run",): "none.run: there is no such file",
        ("good.run", "-m", ""): "there is no measure; give at least one",
    }.items():
        result = run_fontes(*arguments)
        assert isinstance(result.exception, ft.FontesError)
        assert message in str(result.exception)

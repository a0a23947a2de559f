"""Plots: the values that they show, their bytes, and what they leave alone."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support.each import each
from typer.testing import CliRunner

import fontes as ft
from fontes.app.cli import app
from fontes.core.expression import pipeline
from fontes.experiments.problems import planned_index
from fontes.lexical import Postings, Statistics
from fontes.lexical.bm25 import VARIANTS
from fontes.plots import indexes as plots_index, plot as plots

pytest.importorskip("matplotlib")

TEXTS = ["cold spring", "hot spring water water", "well well well", "a pump for the well and the cold spring", ""]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    docs = [(f"d{i}", TEXTS[i % 5] + f" stone{i // 4}" * (i % 7 > 0)) for i in range(40)]
    return ft.Index.build(docs, tmp_path_factory.mktemp("plots") / "index", analyzer="whitespace")


def lines_of(plot, axes=0):
    return [line.get_xydata() for line in plot.figure.axes[axes].lines]


def texts_of(plot):
    return [t.get_text() for axes in plot.figure.axes for t in axes.texts]


@each("variant", list(VARIANTS))
def test_the_curves_of_bm25_are_weights_of_the_index_over_their_idf(variant, index):
    plot = ft.plots.bm25(index, variant=variant, k1=1.2, b=0.75, lengths=[1, 2], tf=5)
    avgdl = index.tokens / len(index)
    weighting = index.bm25(variant=variant, k1=1.2, b=0.75).weighting
    statistics = Statistics.of(index)
    term = index.term_number("stone3")  # rare enough that no variant has an idf of 0
    docs, tf = index.postings(np.array([term]))
    weight = weighting.postings(statistics, Postings(np.array([term]), np.array([len(docs)]), docs, tf))
    idf = weighting.idf(statistics, len(docs))
    again = ft.plots.bm25(index, variant=variant, k1=1.2, b=0.75, lengths=statistics.lengths[docs] / avgdl, tf=5)
    drawn = [points[t - 1, 1] for points, t in zip(lines_of(again), tf, strict=True)]
    np.testing.assert_allclose(drawn, weight / idf, rtol=1e-12)
    assert texts_of(plot) == ["dl = avgdl", "dl = 2 avgdl", "tf = 1", "tf = 2", "tf = 5"]


def test_lucenes_bm25_with_k1_2_and_b_1_at_the_mean_length_is_tf_over_tf_plus_2():
    plot = ft.plots.bm25(variant="lucene", k1=2, b=1, lengths=[1], tf=4)
    np.testing.assert_allclose(lines_of(plot)[0], [[1, 1 / 3], [2, 2 / 4], [3, 3 / 5], [4, 4 / 6]])


def test_bm25_is_drawn_over_tf_and_over_length_with_the_term_of_textbooks():
    plot = ft.plots.bm25(lengths=[0.5, 3], tf=10)
    tf = np.arange(1, 11)
    for line, length in zip(lines_of(plot, 0), [0.5, 3], strict=True):
        np.testing.assert_allclose(line, np.column_stack([tf, 2.2 * tf / (tf + 1.2 * (0.25 + 0.75 * length))]))
    assert [line[-1, 0] for line in lines_of(plot, 1)] == [3, 3, 3, 3]
    for line, count in zip(lines_of(plot, 1), [1, 2, 5, 10], strict=True):
        length = line[:, 0]
        np.testing.assert_allclose(line[:, 1], 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length)))
    assert texts_of(plot)[2:] == ["tf = 1", "tf = 2", "tf = 5", "tf = 10"]
    assert plot.caption.startswith("the tf part of BM25 atire, k1 = 1.2, b = 0.75, over tf from 1 to 10")


def test_lengths_in_tokens_of_a_model_tell_the_shares_beyond_512_and_2048(tmp_path, fontes, monkeypatch):
    pytest.importorskip("torch")
    from support.tiny_models import text, tiny

    docs = [ft.Doc(f"d{n}", text(words), "The river" * (n == 0)) for n, words in enumerate((508, 510, 511, 600, 2046, 2047, 3))]
    index = ft.Index.build(docs, tmp_path / "long.index")
    plot = ft.plots.lengths(index, tiny("bert"))
    tokens = np.array([512, 512, 513, 602, 2048, 2049, 5])  # with the title's two and two special ones
    assert plot.caption == (
        f"lengths of 7 documents in tokens of bert: mean {tokens.mean():.1f}, median 513 tokens, from 5 to 2,049; "
        "57.1% have more than 512 and 14.3% have more than 2,048; 0 beyond the axis"
    )
    assert texts_of(plot)[-2:] == ["512", "2,048"]
    assert sum(bar.get_height() for bar in plot.figure.axes[0].patches) == 7
    code, out, _ = fontes("plot", "lengths", index.path, "--tokenizer", tiny("bert"), "-o", tmp_path / "a.svg")
    assert (code, out) == (0, f"{tmp_path / 'a.svg'}: {plot.caption}\n")
    monkeypatch.setattr("fontes.index.facts.SAMPLE", 3)
    assert ft.plots.lengths(index, tiny("bert")).caption.startswith("lengths of 3 of 7 documents in tokens of bert: ")
    assert "fontes plot zipf has no option --tokenizer" in fontes("plot", "zipf", index.path, "--tokenizer", "x")[2]


def test_lengths_of_an_index_are_shown_in_terms_and_multiples_in_mean_lengths(index):
    in_terms, in_means = ft.plots.bm25(index), ft.plots.bm25(index, lengths=[1, 4])
    longest = np.percentile(index.lengths, 95, method="nearest")
    assert [plot.figure.axes[1].get_xlim()[1] for plot in (in_terms, in_means)] == pytest.approx([longest, 4])
    avgdl, length = index.tokens / len(index), lines_of(in_terms, 1)[0][:, 0]
    np.testing.assert_allclose(lines_of(in_terms, 1)[0][:, 1], 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / avgdl)))


def test_a_parameter_of_bm25_that_is_none_is_the_variants_own():
    assert "k1 = 1.5, b = 0.75" in ft.plots.bm25(variant="okapi", k1=None, b=None).caption
    assert "k1 = 0.9, b = 0.4, delta = 0.5" in ft.plots.bm25(variant="l", k1=None, b=None).caption


def test_the_lines_of_an_index_are_for_its_percentiles_of_length(index):
    lengths = np.sort(index.lengths)
    shown = [text.split()[2] for text in texts_of(ft.plots.bm25(index))]
    assert shown[0] == str(lengths[2])
    assert shown[4] == str(lengths[37])


def test_variants_of_idf_that_are_the_same_share_a_line():
    plot = ft.plots.idf(documents=500)
    assert sorted(texts_of(plot)) == ["atire = tf-idf", "lucene = l", "okapi", "plus", "robertson", "tf-idf, smooth"]
    for axes in (0, 1):
        assert len(lines_of(plot, axes)) == 6 + 1  # and the line at 0


def test_okapis_floor_is_epsilon_times_the_mean_idf_of_the_index(index):
    plot = ft.plots.idf(index, epsilon=0.5)
    okapi = next(points for points in lines_of(plot, 1) if points[-1, 1] == points[-2, 1] > 0)
    n, df = len(index), np.asarray(index.df)
    assert okapi[-1, 1] == pytest.approx(0.5 * np.mean(np.log((n - df + 0.5) / (df + 0.5))))


def test_the_map_of_tfidf_names_its_formula_and_size(index):
    caption = ft.plots.tfidf(index, sublinear_tf=True, smooth_idf=True, tf=8).caption
    assert caption.startswith("TF-IDF, (1 + ln tf) · (ln((1 + N) / (1 + df)) + 1), over tf from 1 to 8 and df from 1 to N = 40")
    assert "tf · ln(N / df)" in ft.plots.tfidf(documents=7).caption


def test_beside_the_map_is_the_weight_over_tf_at_several_df():
    plot = ft.plots.tfidf(documents=1000, tf=4)
    assert [axes.get_title() for axes in plot.figure.axes] == ["over tf and df", "over tf, at several df"]
    tf, dfs = np.arange(1, 5), [1, 4, 16, 63, 251]  # 1000 to the power of 0, 1/5, …
    for line, df in zip(lines_of(plot, 1), dfs, strict=True):
        np.testing.assert_allclose(line, np.column_stack([tf, tf * np.log(1000 / df)]))
    assert texts_of(plot)[-5:] == [f"df = {df}" for df in dfs]


def test_a_power_law_is_found_again():
    terms = SimpleNamespace(scale=None, tokens=9, cf=300 * np.arange(1, 5000, dtype=np.float64) ** -0.8)
    law = ft.plots.fit_zipf(terms, 1, 4000)
    assert (law.factor, law.exponent, law.r2) == pytest.approx((300, -0.8, 1.0))
    assert (law.first, law.last) == (1, 4000)
    assert law(10) == pytest.approx(300 * 10**-0.8)


def test_heaps_curve_counts_the_terms_of_the_first_documents(index):
    points = lines_of(ft.plots.heaps(index))[0].tolist()
    seen, expected, total = set(), [], 0
    for doc in index.analyzed(index.ids):
        seen |= set(doc)
        total += len(doc)
        if doc:
            expected.append([total, len(seen)])
    assert [point for point in expected if point in points] == points
    assert len(points) > 20


def test_heaps_curve_does_not_depend_on_how_many_postings_are_read_at_a_time(index, monkeypatch):
    whole = lines_of(ft.plots.heaps(index))[0]
    monkeypatch.setattr(plots_index, "POSTINGS_READ", 3)
    np.testing.assert_array_equal(lines_of(ft.plots.heaps(index))[0], whole)


def test_zipf_is_fitted_down_to_the_last_term_that_occurs_ten_times():
    docs = [(str(i), " ".join(f"t{j}" for j in range(20) if i % (j + 1) == 0)) for i in range(200)]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        index = ft.Index.build(docs, f"{folder}/index", analyzer="whitespace")
        law = ft.plots.fit_zipf(index)
        assert (law.first, law.last) == (1, int(np.count_nonzero(index.cf >= 10)))
        assert law.exponent == pytest.approx(-1, abs=0.05)
        assert ft.plots.fit_zipf(index, first=2, last=5).last == 5


def test_the_histogram_holds_every_document_or_says_how_many_it_leaves_out(index):
    plot = ft.plots.lengths(index)
    shown = sum(bar.get_height() for bar in plot.figure.axes[0].patches)
    beyond = int(plot.caption.split(";")[1].split()[0])
    assert shown + beyond == len(index)
    assert f"mean {index.lengths.mean():.1f}" in plot.caption


@pytest.mark.parametrize("format", ["svg", "png", "pdf"])
def test_the_same_plot_gives_the_same_bytes(format, tmp_path):
    paths = [tmp_path / f"{i}.{format}" for i in range(2)]
    for path in paths:
        ft.plots.bm25().save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert b"20" + b"26-" not in paths[0].read_bytes()


def test_settings_of_the_caller_are_neither_used_nor_changed():
    import matplotlib

    before = ft.plots.bm25().to_bytes("svg")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.hashsalt": "mine"}):
        assert ft.plots.bm25().to_bytes("svg") == before
        assert matplotlib.rcParams["font.size"] == 30
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"


@pytest.mark.slow
def test_a_plot_needs_no_pyplot():
    code = (
        "import fontes as ft, sys; ft.plots.bm25().to_bytes('png'); ft.plots.idf(); "
        "assert 'matplotlib' in sys.modules; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ft.core.MissingExtraError, match=r"pip install 'fontes\[plots\]'"):
        ft.plots.bm25()


@each(
    ("heights", "expected"),
    [
        ([0.2, 0.8], [0.2, 0.8]),
        ([0.5, 0.5], [0.45, 0.55]),
        ([0.9, 1.0, 0.98], [0.8, 1.0, 0.9]),
        ([0.5, 0.52, 0.54, 0.1], [0.42, 0.52, 0.62, 0.1]),
    ],
)
def test_labels_are_moved_apart_as_little_as_needed(heights, expected):
    assert plots.spaced(heights, 0.1) == pytest.approx(expected)


def test_no_label_lies_on_another_or_outside_the_figure(index):
    from matplotlib.text import Text  # without the line to its place that an annotation has

    made = [ft.plots.bm25(variant="l", tf=50), ft.plots.bm25(index), ft.plots.idf(), ft.plots.lengths(index), ft.plots.tfidf()]
    for plot in [*made, ft.plots.zipf(index), ft.plots.heaps(index)]:
        with plots.style():
            plot.figure.draw_without_rendering()
            page = plot.figure.bbox
            boxes = [Text.get_window_extent(t) for axes in plot.figure.axes for t in axes.texts if t.get_text()]
        for number, box in enumerate(boxes):
            assert page.x0 <= box.x0
            assert box.x1 <= page.x1 + 1
            assert page.y0 <= box.y0
            assert box.y1 <= page.y1 + 1, plot
            assert not any(box.shrunk(0.9, 0.8).overlaps(other) for other in boxes[:number]), plot


@each(
    ("call", "message"),
    [
        (lambda: ft.plots.bm25(variant="bm26"), "no BM25 variant 'bm26'"),
        (lambda: ft.plots.bm25(b=2), "b between 0 and 1"),
        (lambda: ft.plots.bm25(lengths=[0]), "multiples of the mean length, above 0"),
        (lambda: ft.plots.bm25(tf=1), "tf from 1 to 2 or more"),
        (lambda: ft.plots.tfidf(documents=1), "2 documents or more, not 1"),
        (lambda: ft.plots.idf(documents=5), "20 documents or more, not 5"),
        (lambda: ft.plots.bm25().save("bm25.jpeg"), "bm25.jpeg: a plot is written as .svg, .png, .pdf"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(call, message):
    with pytest.raises(ft.core.ParameterError, match=message):
        call()


def test_an_index_without_terms_or_of_vectors_cannot_be_drawn(tmp_path):
    empty = ft.Index.build([("a", "")], tmp_path / "empty")
    vectors = ft.Index.build([{"_id": "a", "text": "", "vector": {"x": 1.0}}], tmp_path / "vectors", vectors="vector")
    for draw in (ft.plots.lengths, ft.plots.zipf, ft.plots.heaps, ft.plots.bm25, ft.plots.idf, ft.plots.tfidf):
        with pytest.raises(ft.core.ParameterError, match="holds no terms"):
            draw(empty)
        with pytest.raises(ft.core.ParameterError, match="holds vectors"):
            draw(vectors)


def test_a_fit_to_one_point_is_an_error(index):
    with pytest.raises(ft.core.ParameterError, match="a line needs two points: from 5 to 5 there are 1 ranks"):
        ft.plots.fit_zipf(index, first=5, last=5)


def test_the_command_writes_the_file_and_says_what_it_shows(fontes, tmp_path, index):
    path = tmp_path / "zipf.svg"
    code, out, _ = fontes("plot", "zipf", index.path, "-o", path, "--last", 4)
    assert (code, out) == (0, f"{path}: {ft.plots.zipf(index, last=4).caption}\n")
    assert path.read_bytes() == ft.plots.zipf(index, last=4).to_bytes("svg")


def test_the_command_refuses_options_of_other_plots(fontes, tmp_path):
    code, _, err = fontes("plot", "idf", "-o", tmp_path / "idf.svg", "--k1", 2)
    assert (code, err) == (1, "fontes: fontes plot idf has no option --k1; its options are --docs, --epsilon\n")
    assert fontes("plot", "zipf")[2].startswith("fontes: fontes plot zipf needs an index")
    assert "there is no plot 'pie'" in fontes("plot", "pie")[2]


def test_laws_of_a_real_collection(shared, tmp_path):
    index = ft.Index.build(shared / "cranfield" / "corpus.jsonl", tmp_path / "index")
    law = ft.plots.fit_heaps(index)
    # Heaps' exponents of English text lie between 0.4 and 0.6 (Manning, Raghavan, Schütze 2008, 5.1.1).
    assert 0.4 < law.exponent < 0.6
    assert law.r2 > 0.99
    assert law(index.tokens) == pytest.approx(len(index.terms), rel=0.05)


# Pipelines


def drawn(text):
    """The plot of an expression, and the first lines of its boxes from left to right and from top to bottom."""
    plot = ft.plots.pipeline(pipeline(text, planned_index()))
    [axes] = plot.figure.axes
    names = [(t.get_position(), t.get_text()) for t in axes.texts if t.get_text() and t.get_weight() == "bold"]
    return plot, [name for _, name in sorted(names)]


def test_a_pipeline_is_drawn_as_a_box_for_each_stage():
    plot, names = drawn("bm25(k1=1.2) % 100 >> rm3(fb_docs=3) >> bm25()")
    assert names == ["bm25", "rm3", "bm25"]
    assert {"k1=1.2", "% 100", "fb_docs=3", "topics", "run"} < set(texts_of(plot))
    assert plot.caption.startswith("the pipeline bm25(k1=1.2, b=0.4) % 100 >> rm3(fb_docs=3) >> bm25(")
    assert plot.caption.endswith(", from topics to run")


@each(
    ("text", "names", "arrows"),
    [
        ("bm25()", ["bm25"], 2),
        ("rm3()", ["rm3"], 2),
        ("0.7 * bm25() + 0.3 * tfidf()", ["bm25", "tfidf", "0.7 ×", "0.3 ×", "+"], 7),
        ('fuse(bm25(), raw() >> bm25() >> rm3() >> bm25(), method="isr")', ["raw", "bm25", "bm25", "rm3", "bm25", "fuse"], 8),
        ('(bm25() + tfidf()) % 10 >> cross_encoder("nowhere/model")', ["bm25", "tfidf", "+", "% 10", "cross_encoder"], 7),
    ],
)
def test_stages_of_a_sum_or_a_fusion_are_one_above_the_other_and_meet(text, names, arrows):
    plot, seen = drawn(text)
    assert sorted(seen) == sorted(names)
    [axes] = plot.figure.axes
    assert len(axes.lines) == arrows
    places = {t.get_text(): t.get_position() for t in axes.texts}
    if "tfidf" in names:
        assert places["bm25"][0] == places["tfidf"][0]
        assert places["bm25"][1] < places["+"][1] < places["tfidf"][1]
        assert places["+"][0] > places["tfidf"][0]


def test_no_box_of_a_pipeline_lies_on_another_or_outside_of_the_figure():
    text = 'fuse(bm25(), raw() >> bm25() >> rm3() >> bm25(), 2 * (bm25() + ql()), dense("some/long-name-of-a-model")) % 9'
    [axes] = drawn(text)[0].figure.axes
    boxes = [patch.get_extents() for patch in axes.patches]
    assert len(boxes) == 12
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    whole = axes.get_window_extent()
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in boxes)


def test_a_stage_without_a_name_and_one_with_much_text_are_drawn():
    @ft.stage(gives=ft.Topics)
    def own(topics):
        return topics

    assert {"stage(own)", "last_turns"} < set(texts_of(ft.plots.pipeline(own >> ft.rewrite.LastTurns(k=2))))
    long, _ = drawn(f'dense("{"directory/" * 20}model")')
    assert max(map(len, texts_of(long))) <= 30


def test_a_pipeline_of_too_many_stages_is_refused():
    with pytest.raises(ft.core.ParameterError, match="a pipeline of 4,001 stages is too large to draw"):
        ft.plots.pipeline(ft.core.Sum((ft.rewrite.Raw(),) * 4000))


def test_the_same_pipeline_gives_the_same_bytes_and_the_command_writes_them(tmp_path):
    text = "bm25() % 100 >> rm3() >> bm25()"
    expected = drawn(text)[0].to_bytes("svg")
    for name in ("a.svg", "b.png"):
        shown = CliRunner().invoke(app, ["plot", "pipeline", text, "-o", str(tmp_path / name)])
        assert shown.exit_code == 0
    assert (tmp_path / "a.svg").read_bytes() == expected
    assert (tmp_path / "b.png").read_bytes()[:4] == b"\x89PNG"
    assert (
        shown.stdout
        == f"{tmp_path / 'b.png'}: the pipeline bm25(k1=0.9, b=0.4) % 100 >> rm3() >> bm25(k1=0.9, b=0.4), from topics to run\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "needs one expression"), (["bm25()", "ql()"], "needs one expression"), (["bm26()"], "did you mean 'bm25'")],
)
def test_the_command_refuses_what_is_no_pipeline(arguments, message, tmp_path):
    shown = CliRunner().invoke(app, ["plot", "pipeline", *arguments, "-o", str(tmp_path / "a.svg")])
    assert isinstance(shown.exception, ft.core.ParameterError)
    assert message in str(shown.exception)

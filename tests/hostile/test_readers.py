"""Whatever a file holds, reading it gives a value or one sentence that names the file, in bounded time."""

import json

import pytest
from hypothesis import strategies as st
from support.hostile import (
    CAST_LINE,
    CELLS,
    CONVERSATION,
    DOCUMENT,
    NUMBERS,
    PAIRED,
    QUESTION,
    TOPIC,
    analyzer_specs,
    damaged,
    each_grammar,
    expressions,
    fuzz,
    json_text,
    lines,
    listed,
    measure_names,
    outcome,
    packed,
    sgml,
    sheet,
    table,
    toml,
    training_example,
    xml,
)
from support.queries import QUERY_JSON
from support.typed_queries import TYPED

import fontes as ft
from fontes.core.errors import ParameterError
from fontes.core.expression import pipeline, tunable
from fontes.core.query import Group
from fontes.core.work import memory_size
from fontes.experiments.experiment import ExperimentFile
from fontes.experiments.provenance import Check, read_lock
from fontes.formats import read_corpus, read_qrels, read_run, read_topics, write_corpus, write_qrels, write_run, write_topics
from fontes.measures import evaluate, parse
from fontes.storage.compiled import load
from fontes.train import Examples, LabelledPairs

CORPORA = {
    "jsonl": lines(DOCUMENT),
    "json": listed(DOCUMENT),
    "csv": table(",|"),
    "tsv": table("\t"),
    "trec": sgml(["DOCNO", "TEXT", "TITLE", "HEADLINE", "HEAD", "P", "SCRIPT"], "DOC"),
    "text": CELLS,
}
TOPICS = {
    "jsonl": lines(TOPIC),
    "json": st.one_of(listed(TOPIC), json_text(["1", "2"])),
    "cast": st.one_of(listed(CONVERSATION), lines(CAST_LINE)),
    "canard": st.one_of(listed(QUESTION), lines(QUESTION)),
    "tsv": table("\t"),
    "trec": sgml(["num", "title", "desc", "narr", "top"], "top"),
    "xml": xml(),
    "lines": table(":| "),
}
OPTIONS = st.fixed_dictionaries(
    {
        "encoding": st.sampled_from([None, None, None, "utf-8", "utf-16", "cp1252", "utf-7", "gb18030"]),
        "errors": st.sampled_from([None, None, "replace"]),
        "fields": st.sampled_from([None, None, {"id": "1", "text": "2"}, {"id": "q1", "text": "text"}, {"text": "title"}]),
    }
)
pytestmark = pytest.mark.filterwarnings("ignore::fontes.core.errors.InputWarning")


@pytest.fixture
def stored(tmp_path):
    """Writes a file of this content and ending; gives its path."""

    def store(content, name="file", ending=""):
        path = tmp_path / (name + ending)
        path.write_bytes(content)
        return path

    return store


@each_grammar
@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus(stored, tmp_path, name, examples):
    def check(example):
        (content, gz), form, how = example
        path = stored(content, ending={"jsonl": ".jsonl", "json": ".json", "csv": ".csv", "tsv": ".tsv"}.get(name, "") + gz)
        docs = outcome(lambda: list(read_corpus(path, form, **how)), str(path))
        if docs is not None:
            outcome(lambda: write_corpus(docs, tmp_path / "written.jsonl"))

    formats = st.sampled_from([None, name, *CORPORA])
    fuzz(st.tuples(packed(damaged(CORPORA[name])), formats, OPTIONS), examples, check)


@each_grammar
@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_a_sheet(stored, kind, examples):
    def check(example):
        content, ending, how = example
        path = stored(content, ending=ending)
        outcome(lambda: list(read_corpus(path, **how)), str(path))
        outcome(lambda: read_topics(path, **how), str(path))
        outcome(lambda: read_qrels(path), str(path))

    fuzz(st.tuples(sheet(kind), st.sampled_from([f".{kind}", f".{kind}", ""]), OPTIONS), examples, check)


@each_grammar
@pytest.mark.parametrize("name", TOPICS)
def test_topics(stored, tmp_path, name, examples):
    def check(example):
        (content, gz), form, how = example
        path = stored(content, ending=gz)
        topics = outcome(lambda: read_topics(path, form, **how), str(path))
        if topics is not None:
            outcome(lambda: write_topics(topics, tmp_path / "written.jsonl"))
            outcome(lambda: write_topics(topics, tmp_path / "written.json", "cast"))
            run = outcome(lambda: ft.Run.of({topic_id: {"d": 1.0} for topic_id in topics}, topics))
            outcome(lambda: write_run(run, tmp_path / "written.run"))

    formats = st.sampled_from([None, name, *TOPICS])
    fuzz(st.tuples(packed(damaged(TOPICS[name])), formats, OPTIONS), examples, check)


@each_grammar
def test_judgments_and_runs(stored, tmp_path, examples):
    topics = ft.Topics.of({"q1": "fox", "\ud800": "dog"})

    def check(example):
        (judged, gz), (ranked, also), forms, measure = example
        path, other = stored(judged, "qrels", gz), stored(ranked, "run", also)
        qrels = outcome(lambda: read_qrels(path, forms and forms[0]), str(path))
        run = outcome(lambda: read_run(other, None if gz else topics, forms and forms[1]), str(other))
        if qrels is not None:
            outcome(lambda: write_qrels(qrels, tmp_path / "written.qrels"))
            outcome(lambda: evaluate(ft.Run.of({t: dict.fromkeys(qrels[t], 1.0) for t in qrels}), qrels, measure))
        if run is not None:
            outcome(lambda: write_run(run, tmp_path / "written.run"))

    files = packed(damaged(table()))
    formats = st.sampled_from([None, ("trec", "trec"), ("beir", "msmarco")])
    measures = st.sampled_from(["nDCG@10", "nDCG(dcg='exp-log2')", "ERR", "AP", "Bpref", "infAP", "RBP", "Complete@5"])
    fuzz(st.tuples(files, files, formats, measures), 3 * examples, check)


@each_grammar
def test_the_file_of_an_experiment_and_its_lock(stored, examples):
    now = {key: {} for key in ("data", "indexes", "models", "settings", "systems", "tests", "topics", "versions", "hardware")}

    def check(example):
        experiment, lock = example
        path = stored(experiment, ending=".toml")
        outcome(lambda: ExperimentFile(path), str(path))
        path = stored(lock, ending=".lock")
        locked = outcome(lambda: read_lock(path), str(path))
        if locked is not None:
            outcome(lambda: list(map(str, Check.of(locked, now).differences)))

    locks = json_text(["data", "indexes", "systems", "tests", "topics", "files"])
    keyed = json_text(["x"]).map(lambda value: f'{{"layout": 2, "systems": {value}, "versions": {value}}}')
    fuzz(st.tuples(damaged(toml()), damaged(st.one_of(locks, keyed))), 2 * examples, check)


@each_grammar
@pytest.mark.parametrize("kind", [Examples, LabelledPairs])
def test_what_models_learn_from(stored, tmp_path, kind, examples):
    def check(example):
        content, gz = example
        path = stored(content, ending=gz)
        learned = outcome(lambda: kind.read(path), str(path))
        if learned is not None:
            learned.write(tmp_path / "written.jsonl")
            again = kind.read(tmp_path / "written.jsonl")
            assert (again, again.hash) == (learned, learned.hash)

    rows = training_example() if kind is Examples else st.one_of(PAIRED, training_example())
    fuzz(packed(damaged(lines(rows))), examples, check)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return ft.Index.build([("d1", "a fox"), ("d2", "a dog")], tmp_path_factory.mktemp("index") / "i")


@each_grammar
def test_an_expression(index, examples):
    def check(text):
        stage = outcome(lambda: pipeline(text, index))
        if stage is not None:
            outcome(lambda: pipeline(repr(stage), index))
        outcome(lambda: tunable(text, index))

    fuzz(expressions(), 3 * examples, check)


@pytest.fixture(scope="module")
def fielded(tmp_path_factory):
    """An index with separate fields, positions and a column of each type."""
    values = {
        "year": 2020,
        "lang": "cs",
        "date": "2020-05-17",
        "tags": ["hot", "w"],
        "score": 1.5,
        "new": True,
        "a b": "2021-01-01",
    }
    docs = [
        ft.Doc("d1", "hot springs in the spring", "Hot", values),
        ft.Doc("d2", "wi-fi and C++ (f(x)) a w1", "", {"year": 7}),
    ]
    folder = tmp_path_factory.mktemp("fielded")
    index = ft.Index.build(docs, folder / "x", fields=["title", "text"], separate=True, positions=True, analyzer="english")
    load()  # what is timed below is no compilation
    warm = '"hot springs" "hot spring"~2 "hot spring"~uw8 title:hot title:"hot spring"~2 ho* spring~1 year:2020 -wi'
    (index.query() >> index.bm25()).search(warm)
    return index


@each_grammar
def test_a_query_in_the_language(fielded, examples):
    stages = [fielded.query(operator=operator) >> fielded.bm25() for operator in ("or", "and")]
    strict = fielded.query(strict=True, max_expansions=1)

    def check(text):
        for stage in stages:
            assert outcome(lambda stage=stage: stage.search(text)) is not None  # nothing typed is an error
        outcome(lambda: strict.parse(text), "query")

    fuzz(TYPED, 2 * examples, check)


@each_grammar
def test_a_structured_query(fielded, examples):
    def check(values):
        query = outcome(lambda: Group.from_dict(values), "query")
        if query is not None:
            assert Group.from_dict(query.to_dict()) == query
            outcome(lambda: fielded.bm25().search(ft.Topic("q", "hot", query=query)))

    fuzz(QUERY_JSON, 2 * examples, check)


@each_grammar
def test_the_name_of_a_measure(examples):
    qrels = ft.Qrels([("q", "0", "d1", 3), ("q", "0", "d2", 0), ("r", "0", "d1", -1)])

    def check(name):
        measure = outcome(lambda: parse(name))
        if measure is not None:
            hash(measure)
            assert parse(str(measure)) == measure
            outcome(lambda: evaluate({"q": {"d1": 1.0, "d2": 2.0}}, qrels, measure))

    fuzz(measure_names(), 6 * examples, check)


@each_grammar
def test_the_name_of_an_analyzer(examples):
    def check(name):
        analyzer = outcome(lambda: ft.Analyzer.of(name))
        if analyzer is not None:
            outcome(lambda: analyzer("The foxes' dens, 東京 and " + "w" * 300))

    fuzz(analyzer_specs(), 3 * examples, check)


@each_grammar
def test_a_size_of_memory(examples):
    def check(size):
        assert (outcome(lambda: memory_size(size)) or 1) <= 1 << 50

    fuzz(st.builds("{}{}".format, st.one_of(NUMBERS, CELLS), st.sampled_from(["", "G", "T", "KiB", "x"])), examples, check)


def test_an_error_of_our_own_is_not_taken_for_one_of_the_file(stored):
    with pytest.raises(ParameterError, match="there is no topic format 'x'"):
        read_topics(stored(json.dumps({"1": "fox"}).encode()), "x")

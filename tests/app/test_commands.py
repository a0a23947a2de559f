"""The command line, run in this process but for pipes and signals."""

import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from support.each import each
from typer.main import get_command

from fontes.app.cli import main
from fontes.app.command_line import PANELS, command_line
from fontes.app.commands import SUMMARIES
from fontes.app.commands.stages import page
from fontes.core import Doc, expression
from fontes.core.parameters import summary
from fontes.core.part import stages
from fontes.index import Index

CORPUS = [
    {"_id": "sun", "title": "Vitamin D", "text": "Sunlight on skin makes vitamin D, which prevents rickets."},
    {"_id": "flu", "title": "Influenza", "text": "A vaccine prevents influenza; washing hands helps."},
    {"_id": "bread", "title": "", "text": "Bread is made of flour, water and salt.", "source": "kitchen"},
]
TOPICS = "q1\tvitamin for rickets\nq2\tprevent influenza\nq3\tquantum chromodynamics\n"
QRELS = "q1 0 sun 1\nq2 0 flu 1\nq3 0 bread 1\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    docs = [Doc(doc["_id"], doc["text"], doc["title"]) for doc in CORPUS]
    return Index.build(docs, tmp_path_factory.mktemp("commands") / "c.index").path


@pytest.fixture
def place(tmp_path):
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in CORPUS))
    (tmp_path / "topics.tsv").write_text(TOPICS)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


@pytest.fixture
def index(place, built):
    return Path(shutil.copytree(built, place / "c.index"))


def test_index_says_what_it_made(place, fontes):
    code, out, _ = fontes("index", place / "corpus.jsonl", "-o", place / "c.index")
    assert code == 0
    assert "3 documents" in out
    assert Index.open(place / "c.index").ids.tolist() == ["sun", "flu", "bread"]


def test_index_prints_json_on_request(place, fontes):
    code, out, _ = fontes("index", place / "corpus.jsonl", "-o", place / "c.index", "--json", "--analyzer", "standard")
    facts = json.loads(out)
    assert (code, facts["documents"], facts["analyzer"]["stemmer"]) == (0, 3, "")


def test_search_marks_the_words_of_the_query(index, fontes):
    code, out, _ = fontes("search", index, "preventing rickets")
    assert code == 0
    assert out.index("sun") < out.index("flu")
    assert "**prevents** **rickets**" in out


def test_search_gives_hits_with_text_as_json(index, fontes):
    _, out, _ = fontes("search", index, "bread", "--json")
    hit = json.loads(out)["hits"][0]
    assert hit["id"] == "bread"
    assert hit["text"] == CORPUS[2]["text"]


def test_search_for_unknown_words_finds_nothing_and_succeeds(index, fontes):
    assert fontes("search", index, "C++ 😀 中文")[0] == 0
    assert "No document" in fontes("search", index, "quantum chromodynamics")[1]


def test_search_with_topics_writes_a_run_that_eval_measures(place, index, fontes):
    run = place / "bm25.run"
    assert fontes("search", index, "--topics", place / "topics.tsv", "-o", run, "--tag", "mine")[0] == 0
    assert all(line.endswith(" mine") for line in run.read_text().splitlines())
    code, out, _ = fontes("eval", place / "qrels.txt", run, "RR", "P@1")
    assert code == 0
    assert "0.6667" in out
    _, out, _ = fontes("eval", place / "qrels.txt", run, "RR", "--json", "-q")
    result = json.loads(out)
    assert (result["topics"], result["missing"]) == (3, 1)
    assert result["measures"]["RR"] == pytest.approx(2 / 3)
    assert result["per_topic"]["RR"]["q3"] == 0


def test_eval_prints_each_topic_on_request(place, index, fontes):
    fontes("search", index, "--topics", place / "topics.tsv", "-o", place / "r.run")
    _, out, _ = fontes("eval", place / "qrels.txt", place / "r.run", "RR", "-q")
    assert [line.split() for line in out.splitlines() if line.split()[:1] == ["q2"]] == [["q2", "1.0000"]]


def test_models_and_parameters_reach_the_retriever(index, fontes):
    def scores(*options: str) -> list[float]:
        return [hit["score"] for hit in json.loads(fontes("search", index, "vitamin", "--json", *options)[1])["hits"]]

    plain = scores()
    for options in (["--model", "tfidf"], ["--model", "ql"], ["--k1", "2"], ["--b", "1"], ["--variant", "plus"]):
        assert scores(*options) != plain
    for options, pipeline in (
        (["--model", "ql", "--mu", "5"], "ql(mu=5)"),
        (["--model", "ql", "--smoothing", "jelinek-mercer", "--lambda", "0.7"], 'ql("jelinek-mercer", lambda_=0.7)'),
        (["--model", "tfidf", "--norm", "None", "--sublinear-tf"], "tfidf(norm=None, sublinear_tf=True)"),
        (["--lengths", "lucene", "--k3", "2"], 'bm25(lengths="lucene", k3=2)'),
    ):
        assert scores(*options) == scores("--pipeline", pipeline)
    assert scores("--pipeline", "bm25()") == scores("--pipeline", "bm25(k3=0)") == plain
    assert scores("--pipeline", "2 * bm25(k1=2)") == pytest.approx([2 * score for score in scores("--k1", "2")])


def test_a_pipeline_searches_explains_and_keeps_its_own_depth(place, index, fontes):
    run = place / "r.run"
    pipeline = "bm25() >> rm3(fb_docs=1) >> bm25() % 1"
    assert fontes("search", index, "--topics", place / "topics.tsv", "--pipeline", pipeline, "-o", run)[0] == 0
    assert [line.split()[2] for line in run.read_text().splitlines()] == ["sun", "flu"]
    assert "sum of the stages" in fontes("explain", index, "vitamin", "sun", "--pipeline", "0.5 * bm25() + ql()")[1]


def test_shorthands_that_do_not_go_together_are_an_error(index, fontes):
    for options, words in (
        (["--pipeline", "bm25()", "--k1", "2"], "--pipeline says all; leave --k1 out, or --pipeline"),
        (["--model", "tfidf", "--k1", "2"], "tfidf has no parameter 'k1'"),
        (["--model", "dense", "--k1", "2"], "--k1 is no option of dense"),
        (["--encoder", "m"], "--encoder is of dense and hybrid, not of bm25"),
    ):
        code, out, err = fontes("search", index, "vitamin", *options)
        assert (code, out) == (1, "")
        assert words in err


def test_stages_are_listed_and_shown_out_of_the_registry(fontes):
    listed = json.loads(fontes("stages", "--json")[1])
    known = {one["name"]: one for one in listed}
    assert {"bm25", "dense", "cross_encoder", "fuse", "cast_passages"} <= set(known)
    assert (known["rm3"]["takes"], known["rm3"]["gives"]) == ("Run", "Topics")
    assert known["bm25"] == json.loads(fontes("stages", "bm25", "--json")[1])
    (depth,) = (one for one in known["bm25"]["parameters"] if one["name"] == "k")
    assert {"type": "int", "default": "1000"}.items() <= depth.items()
    assert "Topics → Run" in fontes("stages", "ql")[1]
    assert "bm25" in fontes("stages")[1]
    assert fontes("stages", "bm52")[2].startswith("fontes: there is no stage 'bm52'; did you mean 'bm25'?")


def test_each_example_of_a_stage_is_a_pipeline(tmp_path):
    docs = [Doc("d1", "a geyser", "", {"date": "2015-07-23", "thread": "t1"})]
    index = Index.build(docs, tmp_path / "x", separate=True, positions=True)
    texts = [page(), *map(summary, dict(stages.items()).values())]
    examples = {example for text in texts for example in re.findall("`([^`\n]+)`", text) if re.search(r"^\w+\(|>>", example)}
    assert len(examples) > 15
    (tmp_path / "synonyms.txt").write_text("geyser, spring")
    for example in examples:
        expression.part(example.replace("synonyms.txt", str(tmp_path / "synonyms.txt")), index)


def test_the_page_of_stages_is_up_to_date(fontes):
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "stages.md"
    remedy = "run: fontes stages --markdown > docs/reference/stages.md"
    assert page.read_text(encoding="utf-8") == fontes("stages", "--markdown")[1], remedy


def test_the_overview_of_commands_is_that_of_the_commands_themselves():
    commands = get_command(command_line()).commands
    listed = {
        name: (each.rich_help_panel, inspect.cleandoc(each.help).partition("\n\n")[0].replace("\n", " "))
        for name, each in commands.items()
    }
    assert listed == SUMMARIES
    overview = get_command(command_line("", overview=True)).commands
    assert list(overview) == list(commands)


def modules_of(*arguments):
    """The modules that a command imports, in a process."""
    code = "import sys, atexit; from fontes.app.cli import main; "
    code += f"sys.argv = {['fontes', *arguments]!r}; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


def test_the_version_and_the_overview_import_little():
    out, modules = modules_of("info", "--version")
    assert out == f"fontes {version('fontes')}\n"
    assert len(modules) < 200
    assert not {"typer", "numpy", "fontes.core"} & modules
    out, modules = modules_of("--help")
    assert "search " in out
    assert not {name for name in modules if re.match(r"fontes\.(app\.commands\.|index|lexical|experiments)", name)}
    assert len({name for name in modules if name.startswith("fontes")}) < 50
    assert not {"numba", "torch", "pandas", "Stemmer"} & modules


def test_flags_stand_anywhere_on_the_line(index, fontes, monkeypatch):
    assert fontes("info", "--version")[1] == fontes("--version")[1] == f"fontes {version('fontes')}\n"
    assert fontes("search", index, "vitamin", "--quiet")[0] == 0
    assert fontes("search", index, "--", "--quiet")[1] == "No document holds any of these words.\n"
    monkeypatch.setattr(sys, "argv", ["fontes", "info", "nowhere", "--debug"])
    with pytest.raises(Exception, match="nowhere does not exist"):
        main()


def test_the_help_has_its_commands_in_panels(fontes):
    out = fontes("--help")[1]
    places = [out.index(f" {panel} ") for panel in PANELS]
    assert places == sorted(places)
    assert "--install-completion" in out


def test_explain_adds_up_to_the_score(index, fontes):
    score = json.loads(fontes("search", index, "vitamin skin", "--json")[1])["hits"][0]["score"]
    tree = json.loads(fontes("explain", index, "vitamin skin", "sun", "--json")[1])
    assert tree["value"] == pytest.approx(score)
    assert sum(part["value"] for part in tree["parts"]) == pytest.approx(score)
    assert "idf (lucene)" in fontes("explain", index, "vitamin", "sun")[1]


def test_explain_shows_how_a_query_is_searched(index, fontes):
    assert fontes("explain", index, "vitamin skin", "--plan")[1].splitlines()[0] == "bm25(k1=0.9, b=0.4): one compiled call"
    plan = json.loads(fontes("explain", index, "vitamin skin", "--plan", "--json")[1])
    assert [row["kind"] for row in plan["rows"]] == ["optional", "optional", "segment"]
    for arguments in ([], ["sun", "--plan"]):
        code, _, error = fontes("explain", index, "vitamin", *arguments)
        assert (code, "give either the id of a document" in error) == (2, True)


def test_info_and_check_describe_the_index(index, fontes):
    assert json.loads(fontes("info", index, "--json")[1])["documents"] == 3
    assert "documents" in fontes("info", index)[1]
    assert "sound" in fontes("check", index)[1]
    assert json.loads(fontes("check", index, "--json")[1])["sound"] is True


def test_info_without_an_index_lists_what_is_cached(monkeypatch, tmp_path, fontes):
    for name, content in (("cache/runs/ab/c", "12345"), ("cache/models.json", "{}"), ("numba/kernel.1.nbc", "code")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    sizes = json.loads(fontes("info", "--json")[1])
    expected = {"cache/models.json": 2, "cache/runs": 5, "numba": 4}
    assert {path: size for path, size in sizes.items() if path.startswith(str(tmp_path))} == {
        str(tmp_path / name): size for name, size in expected.items()
    }


def test_check_finds_a_changed_byte(index, fontes):
    file = next(index.glob("segment-*/postings.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    code, _, err = fontes("check", index)
    assert code == 1
    assert "postings.npy" in err


@pytest.mark.parametrize("kind", ["corpus", "topics", "qrels", "run"])
def test_convert_rewrites_each_kind(kind, place, index, fontes):
    sources = {"corpus": "corpus.jsonl", "topics": "topics.tsv", "qrels": "qrels.txt", "run": "r.run"}
    fontes("search", index, "--topics", place / "topics.tsv", "-o", place / "r.run")
    code, _, err = fontes("convert", kind, place / sources[kind], place / "converted.gz")
    assert (code, err) == (0, "")
    assert fontes("convert", kind, place / "converted.gz", place / "again.gz")[0] == 0
    assert (place / "again.gz").read_bytes() == (place / "converted.gz").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["search", "nowhere", "q"], "nowhere does not exist"),
        (["info", "."], "not an index"),
        (["search", "c.index", "q", "--model", "magic"], "there is no model 'magic'"),
        (["search", "c.index", "q", "--variant", "magic"], "no BM25 variant"),
        (["search", "c.index", "q", "--b", "2"], "b between 0 and 1"),
        (["explain", "c.index", "q", "nobody"], "'nobody' is not in the index"),
        (["index", "missing.jsonl", "-o", "x"], "missing.jsonl"),
        (["index", "corpus.jsonl", "-o", "c.index"], "is an index already"),
        (["index", "corpus.jsonl", "-o", "topics.tsv"], "topics.tsv exists and is not an index"),
        (["index", "corpus.jsonl", "-o", "x", "--analyzer", "klingon"], "unknown analyzer 'klingon'"),
        (["index", "corpus.jsonl", "-o", "x", "--memory", "lots"], "memory must be a size"),
        (["index", "broken.jsonl", "-o", "x"], "broken.jsonl, line 2"),
        (["index", "twice.jsonl", "-o", "x"], "'sun' occurs twice"),
        (["index", "empty.jsonl", "-o", "x"], "empty.jsonl"),
        (["eval", "qrels.txt", "missing.run"], "missing.run"),
        (["eval", "qrels.txt", "corpus.jsonl"], "corpus.jsonl, line 1"),
        (["eval", "qrels.txt", "good.run", "nDGC@10"], "nDCG"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_1(arguments, words, place, index, fontes, monkeypatch):
    first = json.dumps(CORPUS[0])
    (place / "broken.jsonl").write_text(f'{first}\n{{"_id": "2" "text": ""}}\n')
    (place / "twice.jsonl").write_text(f"{first}\n{first}\n")
    (place / "empty.jsonl").write_text("")
    (place / "good.run").write_text("q1 Q0 sun 1 2.5 mine\n")
    monkeypatch.chdir(place)
    code, out, err = fontes(*arguments)
    assert (code, out) == (1, "")
    assert words in err
    assert err.startswith("fontes: ")
    assert err.count("\n") == 1
    assert sorted(p.name for p in place.iterdir() if "building" in p.name or p.name == "x") == []


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fontes", "--debug", "info", "nowhere"])
    with pytest.raises(Exception, match="nowhere does not exist"):
        main()


@each("arguments", [["bogus"], ["search", "c.index"], ["search"], ["convert", "foo", "a", "b"]])
def test_wrong_usage_is_exit_code_2(arguments, fontes):
    assert fontes(*arguments)[0] == 2


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "fontes", *map(str, arguments)]


def test_commands_pipe(place, fontes):
    corpus = (place / "corpus.jsonl").read_bytes()
    assert fontes("index", "-", "-o", place / "p.index", stdin=corpus)[0] == 0
    searched = subprocess.run(
        command("search", place / "p.index", "--topics", "-"), input=TOPICS.encode(), capture_output=True, check=True
    )
    measured = fontes("eval", place / "qrels.txt", "-", "RR", "--json", stdin=searched.stdout)[1]
    assert json.loads(measured)["measures"]["RR"] == pytest.approx(2 / 3)


def test_a_reader_that_goes_away_is_no_error_message(index, place):
    topics = place / "many.tsv"
    topics.write_text("".join(f"{i}\tvitamin bread influenza\n" for i in range(900)))  # more than a pipe holds
    process = subprocess.Popen(command("search", index, "--topics", topics), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


@pytest.mark.parametrize(
    ("closed", "arguments", "message"),
    [
        ("<&-", ["eval", "-", "run.txt"], "fontes: standard input: cannot be read (Bad file descriptor)"),
        pytest.param(">&-", ["recipe", "list"], "fontes: output: Bad file descriptor", marks=pytest.mark.slow),
        pytest.param(">&-", ["recipe", "list", "--json"], "fontes: output: Bad file descriptor", marks=pytest.mark.slow),
        (">&-", ["convert", "qrels", "qrels.txt", "-"], "fontes: standard output: cannot be written (Bad file descriptor)"),
    ],
)
def test_a_standard_stream_that_is_closed_is_one_sentence(closed, arguments, message, place):
    (place / "run.txt").write_text("q1 Q0 sun 1 1.0 a\n")
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command(*arguments)]
    done = subprocess.run(shell, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{message}\n")


@pytest.mark.parametrize("arguments", [["rewrite", "", "--with", "raw()"], ["eval", "", "run.txt"], ["index", "", "-o", "x"]])
def test_a_name_that_is_empty_is_one_sentence(arguments, place, fontes, monkeypatch):
    monkeypatch.chdir(place)
    (place / "run.txt").write_text("q1 Q0 sun 1 1.0 a\n")
    assert fontes(*arguments) == (1, "", "fontes: the name of a file or collection is empty\n")


@pytest.mark.slow
def test_messages_go_nowhere_where_standard_error_is_closed(place):
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command("info", "missing")]
    done = subprocess.run(shell, cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("options", [[], pytest.param(["--json"], marks=pytest.mark.slow)])
def test_what_standard_output_cannot_encode_is_escaped(index, options):
    run = command("chat", index, "--with", "raw()", *options)
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    turn = "povode\u0148 \U0001f30a"
    out = subprocess.run(run, env=ascii_only, input=turn.encode(), capture_output=True, check=True).stdout.decode("ascii")
    if options:
        assert json.loads(out)["turn"] == turn
    else:
        assert out.startswith("> povode\\u0148 \\U0001f30a\n")


@pytest.mark.slow
def test_a_list_that_is_not_read_to_its_end_succeeds(place):
    shell = ["bash", "-c", '"$@" | true; exit ${PIPESTATUS[0]}', "bash", *command("recipe", "list")]
    done = subprocess.run(shell, cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_build_says_so_and_leaves_nothing(place):
    build = subprocess.Popen(command("index", "-", "-o", place / "i.index"), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert build.stdin is not None
    assert build.stderr is not None
    for _ in range(100):  # until it has begun to read
        build.stdin.write(b'{"_id": "1", "text": "a"}\n' * 2_000)
        build.stdin.flush()
        if list(place.glob(".i.index.building-*")):
            break
        time.sleep(0.1)
    build.send_signal(signal.SIGINT)
    build.stdin.close()
    message = build.stderr.read().decode().splitlines()[-1]
    build.stderr.close()
    assert (build.wait(), message) == (1, "fontes: interrupted; what was there before is unchanged")
    assert not list(place.glob("*i.index*"))


@pytest.mark.slow
def test_the_demonstration_finds_the_zip_module(tmp_path, fontes):
    code, out, _ = fontes("demo", "--json")
    result = json.loads(out)
    assert code == 0
    assert [task["task"] for task in result["tasks"]] == ["posts", "causal", "conversations", "claims"]
    python = result["steps"][-1]
    assert "python_docs()" in python["code"]
    assert "zipfile" in python["output"]
    assert python["output"].count("RR@10") == 2
    assert list(Path(tmp_path).iterdir()) == []


def test_weights_of_fields_are_written_with_commas(place, fontes):
    path = place / "separate.index"
    fontes("index", place / "corpus.jsonl", "--separate", "-o", path)

    def hits(*options: str) -> list[dict[str, object]]:
        return json.loads(fontes("search", path, "vitamin", "--json", *options)[1])["hits"]

    expression = "bm25(fields={'title': 2, 'text': 0.5})"
    assert hits("--fields", "title=2, text=.5") == hits("--pipeline", expression)
    assert hits("--fields", "title,text") == hits()
    assert hits("--fields", "text", "--model", "ql") == hits("--pipeline", "ql(fields={'text': 1})")
    for value, model, words in (
        ("title=x", "bm25", "--fields: 'title=x' in 'title=x' is no NAME=WEIGHT of its own; write --fields title=3,text=1"),
        ("title,title=2", "bm25", "--fields: 'title=2' in"),
        ("title=-1", "tfidf", "the weight of the field 'title' must be 0 or from"),
        ("titel=1", "bm25", "has no field 'titel'; did you mean 'title'?"),
        ("title=1", "dense", "--fields is no option of dense"),
    ):
        code, _, err = fontes("search", path, "vitamin", "--fields", value, "--model", model)
        assert code != 0
        assert words in err
        assert "Traceback" not in err

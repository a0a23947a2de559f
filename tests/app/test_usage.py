"""Wrong usage: one sentence on standard error, with the corrected command where it is known."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

import fontes as ft

STORIES = [
    {"id": "fire", "text": "The cannery burned to the walls", "section": "news", "year": 2016},
    {"id": "race", "text": "The oldest boat won the race", "section": "sport", "year": 2017},
]


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    return ft.Index.build(STORIES, tmp_path_factory.mktemp("usage") / "harbour.index").path


@pytest.fixture
def harbour(stories, tmp_path, monkeypatch):
    shutil.copytree(stories, tmp_path / "harbour.index")
    monkeypatch.chdir(tmp_path)
    return "harbour.index"


def in_a_process(*arguments, **environment):
    command = [sys.executable, "-c", "from fontes.app.cli import main; import sys; sys.argv[0] = 'fontes'; main()"]
    return subprocess.run(
        [*command, *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_arguments_the_commands_are_listed(fontes):
    code, out, err = fontes()
    assert code == 2
    assert "search" in out
    assert "--quiet" in out
    assert err == ""


@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ("bash", {"COMP_WORDS": "fontes sea", "COMP_CWORD": "1"}),
        pytest.param("zsh", {"_TYPER_COMPLETE_ARGS": "fontes sea"}, marks=pytest.mark.slow),
        pytest.param(
            *("fish", {"_TYPER_COMPLETE_ARGS": "fontes sea", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}), marks=pytest.mark.slow
        ),
    ],
)
def test_shells_complete_commands(shell, environment):
    done = in_a_process(_FONTES_COMPLETE=f"complete_{shell}", **environment)
    assert "search" in done.stdout
    assert "serve" not in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_options_by_the_script_that_is_installed(tmp_path):
    script = in_a_process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout
    runner = tmp_path / "fontes"
    runner.write_text(f"#!{sys.executable}\nfrom fontes.app.cli import main\nmain()\n")
    runner.chmod(0o755)
    typed = 'COMP_WORDS=(fontes search --pip); COMP_CWORD=2; _fontes_completion fontes; echo "${COMPREPLY[*]}"'
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{typed}"],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("--pipeline", "")


QUOTED = "fontes search harbour.index 'why did it burn'"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("serach x", "there is no command 'serach'; did you mean search?"),
        ("train bi-encodr", "there is no command 'train bi-encodr'; did you mean bi-encoder?"),
        ("search harbour.index x --modl ql", "search has no option --modl; did you mean --model?"),
        ("train reranker x", "there is no command 'train reranker'; did you mean cross-encoder?"),
        ("evaluate q r", "there is no command 'evaluate'; did you mean eval?"),
        ("search harbour.index x --limit 3", "search has no option --limit; did you mean -k?"),
        ("search harbour.index x --name a", "search has no option --name; did you mean --tag?"),
        ("train cross-encoder x --start m", "train cross-encoder has no option --start; did you mean --base?"),
        ("train bi-encoder x --model m", "train bi-encoder has no option --model; did you mean --encoder?"),
        ("explain harbour.index x y --sort year", "explain has no option --sort; a stage sorts: --pipeline 'bm25() >> sort("),
        ("tune harbour.index --params k1", "tune has no option --params; --pipeline says what is tuned: --pipeline 'bm25(k1"),
        ("search harbour.index x --descending", "--descending goes with --sort COLUMN"),
        ("search harbour.index x -o x.run", "--output goes with --topics, without --json; > FILE keeps what is printed"),
        ("search harbour.index x --zzzzzz", "search has no option --zzzzzz; fontes search -h lists them"),
        ("search harbour.index x -k many", "search: -k must be a valid integer, not 'many'"),
        ("search harbour.index x -k", "-k needs a value"),
        ("search", "search needs INDEX: fontes search [OPTIONS]"),
        ("search harbour.index", "give either a query or --topics FILE"),
        ("search harbour.index ' '", "the query is empty; write what to search for"),
        ("search harbour.index why did it burn -k 3", f"put the query in quotes: {QUOTED} -k 3"),
        ("search why did it burn harbour.index", f"put the query in quotes: {QUOTED}"),
        ("explain harbour.index why burn fire", "put the query in quotes: fontes explain harbour.index 'why burn' fire"),
        ("why harbour.index the fire", "put the event in quotes: fontes why harbour.index 'the fire'"),
        ("merge harbour.index x", "merge takes fewer arguments, without 'x': fontes merge [OPTIONS]"),
        ("serve harbour.index --port 80000", "serve: --port must be less than or equal to 65535, not '80000'"),
        ("judge harbour.index --port -1", "judge: --port must be greater than or equal to 0, not '-1'"),
    ],
)
def test_wrong_usage_is_one_sentence(harbour, fontes, typed, sentence):
    code, out, err = fontes(*shlex.split(typed))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"fontes: {sentence}")


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("search 'why did it burn' harbour.index -k 3", f"the index comes before the query: {QUOTED} -k 3"),
        ("why 'a fire' harbour.index", "the index comes before the query: fontes why harbour.index 'a fire'"),
        ("explain burn harbour.index fire", "the index comes before the query: fontes explain harbour.index burn fire"),
        ("search harbor.index x", "harbor.index does not exist; did you mean harbour.index? fontes search harbour.index x"),
        ("check harbor.index", "harbor.index does not exist; did you mean harbour.index? fontes check harbour.index"),
        ("merge harbuor.index", "harbuor.index does not exist; did you mean harbour.index? fontes merge harbour.index"),
        ("serve harbor.index", "harbor.index does not exist; did you mean harbour.index? fontes serve harbour.index"),
        ("info papers.index", "papers.index does not exist; fontes index CORPUS -o papers.index makes an index"),
    ],
)
def test_a_wrong_name_of_an_index_prints_the_corrected_command(harbour, fontes, typed, sentence):
    assert fontes(*shlex.split(typed)) == (1, "", f"fontes: {sentence}\n")


def test_files_of_another_kind_are_named_as_what_they_are(harbour, fontes, tmp_path):
    qrels, run, picture = (tmp_path / name for name in ("a.qrels", "a.run", "a.png"))
    qrels.write_text("q1 0 h011 1\n")
    run.write_text("q1 Q0 h011 1 2.0 t\n")
    picture.write_bytes(b"\x89PNG\r\n")
    for typed, sentence in (
        (["index", qrels, "-o", "x"], f"{qrels}: holds judgments, not documents"),
        (["index", run, "-o", "x"], f"{run}: holds a run, not documents"),
        (["index", harbour, "-o", "x"], f"{harbour} is an index; give the documents that it was made of"),
        (["search", harbour, "--topics", qrels], f"{qrels}: holds judgments, not topics"),
        (["search", harbour, "--topics", run], f"{run}: holds a run, not topics"),
        (["index", picture, "-o", "x"], f"{picture}: the format is not clear from the file; give format= (--format) one of"),
        (
            ["index", qrels, "-o", "x", "--format", "tsv", "--analyzer", "englsh"],
            "unknown analyzer 'englsh'; did you mean english?",
        ),
    ):
        code, out, err = fontes(*typed)
        assert (code, out) == (1, "")
        assert err.startswith(f"fontes: {sentence}")


def test_a_search_without_hits_says_why_and_succeeds(harbour, fontes):
    def printed(*typed):
        code, out, _ = fontes("search", harbour, *typed)
        assert code == 0
        return out

    assert printed("geysers") == "No document holds any of these words.\n"
    assert printed("cannrey") == "No document holds any of these words; did you mean 'cannery'?\n"
    assert printed("the") == "All words of the query are stop words, which are not searched.\n"
    assert json.loads(printed("the", "--json"))["no_hits"]["cause"] == "stop words"
    assert printed("?!") == "The query has no words.\n"
    assert printed("fire", "--where", "year > 2020") == "No document passes the filter 'year > 2020'.\n"
    of_sport = "No document that passes the filter \"section == 'sport'\" holds any of these words.\n"
    assert printed("cannery", "--where", "section == 'sport'") == of_sport
    assert printed("fire", "--pipeline", "bm25(where='year > 2020')") == "No document passes the filter 'year > 2020'.\n"

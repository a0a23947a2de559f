"""`fontes chat`: turns and commands from a pipe and at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import Fontes

import fontes as ft
from fontes.app import chat
from fontes.formats.decoding import remedy

DOCS = [
    {"_id": "bridge", "title": "The bridge", "text": "The Chain Bridge closed in May. A boy noticed the crack."},
    {"_id": "rain", "title": "", "text": "The bridge closed because rain had weakened the iron."},
    {"_id": "7", "title": "Ferry", "text": "Two boats cross the river."},
]
FIRST, SECOND = "When was the Chain Bridge closed?", "What had weakened it?"

Ran = tuple[int, str, str]
Chat = Callable[..., Ran]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("chat") / "index")


@pytest.fixture
def run(index: ft.Index, fontes: Fontes) -> Chat:
    """Runs `fontes chat` on lines of standard input; gives its exit code, output and errors."""
    return lambda lines, *options: fontes("chat", index.path, *options, stdin=lines)


def objects(ran: Ran) -> list[Any]:
    return [json.loads(line) for line in ran[1].splitlines()]


def test_each_line_is_a_turn_and_gets_its_sources(run: Chat) -> None:
    code, out, err = run(f"{FIRST}\n\n  \n{SECOND}\n")
    assert (code, err) == (0, "")
    assert out.startswith(f"> {FIRST}\n  1  ")
    assert "The **Chain** **Bridge** **closed** in May." in out
    assert "     The **bridge**\n" in out
    assert out.count("> ") == 2
    second = out[out.index(f"> {SECOND}") :]
    assert f"searched: {FIRST} {SECOND}\n  1  " in second
    assert second.index("rain\n") < second.index("bridge\n")


def test_a_first_turn_was_not_rewritten_and_is_not_said_to_be(run: Chat) -> None:
    assert "searched" not in run(FIRST)[1]


def test_json_is_an_object_for_each_turn(run: Chat, index: ft.Index) -> None:
    ran = run(f"{FIRST}\n{SECOND}\n", "--json", "-k", 1)
    first, second = objects(ran)
    assert (ran[0], ran[2]) == (0, "")
    assert (first["topic"], first["turn"], first["query"]) == ("1_1", FIRST, FIRST)
    assert (second["topic"], second["turn"], second["query"]) == ("1_2", SECOND, f"{FIRST} {SECOND}")
    assert (second["weights"]["weaken"], second["weights"]["bridg"]) == (1.0, 0.3)
    (hit,) = second["hits"]
    assert {name: hit[name] for name in ("rank", "id", "title", "text")} == {
        "rank": 1,
        "id": "rain",
        "title": "",
        "text": DOCS[1]["text"],
    }
    conversation = ft.Conversation(ft.rewrite.WeightedTurns(index) >> index.bm25())
    conversation.ask(FIRST)
    assert hit["score"] == conversation.ask(SECOND)[0].score


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("raw()", "why?"),
        ("last_turns()", f"{FIRST} {SECOND} why?"),
        ("last_turns(1)", f"{SECOND} why?"),
        ("last_turns(k=0)", "why?"),
        ("weighted_turns(k=0)", f"{FIRST} why?"),
        ("hqe(tagger='none')", None),
    ],
)
def test_a_rewriter_is_written_as_an_expression(run: Chat, name: str, query: str | None) -> None:
    third = objects(run(f"{FIRST}\n{SECOND}\nwhy?\n", "--json", "--with", name))[2]
    assert "error" not in third
    if query is None:
        assert third["query"].endswith("why?")
    else:
        assert third["query"] == query


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing()", "pipeline, column 1: there is no stage 'nothing'"),
        ("raw", "pipeline, column 1: 'raw' is a stage; write raw()"),
        ("manual()", "what is typed carries no manual rewrite, so manual() has nothing to use"),
        ("last_turns() >> automatic()", "what is typed carries no automatic rewrite, so automatic() has nothing to use"),
        ("last_turns(k='two')", "pipeline, column 14: last_turns: k must be int, not 'two'"),
        ("quretec()", "pipeline, column 1: quretec needs the parameter 'name_or_path'"),
        ("canard_t5('/no/such/folder')", "there is no T5 rewriter at '/no/such/folder'"),
        ("bm25()", "bm25 takes Topics and gives Run; fontes chat --with needs a stage from Topics to Topics"),
    ],
)
def test_a_rewriter_that_cannot_be_had_is_said_before_the_first_turn(run: Chat, name: str, said: str) -> None:
    code, out, err = run(FIRST, "--with", name)
    assert (code, out) == (1, "")
    assert err.startswith(f"fontes: {said}")


def test_models_and_pipelines_reach_the_retriever(run: Chat) -> None:
    def score(*options: object) -> float:
        return float(objects(run(FIRST, "--json", *options))[0]["hits"][0]["score"])

    scores = [score(), score("--pipeline", "bm25(k1=2)"), score("--model", "tfidf"), score("--model", "ql")]
    assert len(set(scores)) == len(scores)
    assert "there is no model 'none'; there are bm25, tfidf, ql, dense, hybrid" in run(FIRST, "--model", "none")[2]
    assert "--pipeline says all; leave --model out" in run(FIRST, "--pipeline", "ql()", "--model", "ql")[2]
    assert "rm3 takes Run and gives Topics; --pipeline needs a stage from Topics to Run" in run(FIRST, "--pipeline", "rm3()")[2]
    assert run(FIRST, "--model", "dense")[0] == 1


def test_a_pipeline_with_a_rewriter_of_its_own_gets_no_other(run: Chat) -> None:
    second = objects(run(f"{FIRST}\n{SECOND}\n", "--json", "--pipeline", "last_turns(1) >> bm25()"))[1]
    assert (second["query"], "weights" in second) == (f"{FIRST} {SECOND}", False)


def test_explain_adds_up_to_the_score_of_the_hit(run: Chat) -> None:
    _, first, of_first, second, of_second, of_third, by_id = objects(
        run(f"{SECOND}\n{FIRST}\n/explain\nthe river\n/explain 1\n/explain 2\n/explain bridge\n", "--json")
    )
    assert of_first["value"] == pytest.approx(first["hits"][0]["score"], rel=1e-6)
    assert [of_second["value"], of_third["value"]] == pytest.approx([hit["score"] for hit in second["hits"][:2]], rel=1e-6)
    assert by_id["value"] > 0
    assert run(f"{FIRST}\n/explain {'9' * 5000}\n")[0] == 1
    code, out, err = run(f"{FIRST}\n/explain\n/explain 9\n/explain x\n")
    assert code == 1
    assert "'chain'" in out
    assert "query part" in out
    assert err == "fontes: there is no hit 9; the last turn has hits 1 to 2\n" + err.splitlines(keepends=True)[1]
    assert "document 'x' is not in the index" in err


def test_save_writes_topics_that_resume_and_every_reader_take(run: Chat, tmp_path: Path, index: ft.Index) -> None:
    file = tmp_path / "my talk.json"
    assert run(f"{FIRST}\n/save {file}\n{SECOND}\n/save\n")[1].count("1 turn\n") == 1
    topics = ft.read_topics(file)
    assert list(topics) == ["1_1", "1_2"]
    turn = topics["1_2"].turns[1]
    assert (turn.text, turn.automatic, turn.answer_id) == (SECOND, f"{FIRST} {SECOND}", "rain")
    assert turn.answer == DOCS[1]["text"]
    (index.bm25() % 5)(topics)
    (third,) = objects(run("Who noticed?\n", "--resume", file, "--json"))
    assert (third["topic"], third["query"]) == ("1_3", f"{FIRST} {SECOND} Who noticed?")
    (other,) = objects(run("Who noticed?\n", "--resume", file, "--at", "1_1", "--json"))
    assert (other["topic"], other["query"]) == ("1_2", f"{FIRST} Who noticed?")
    assert run("/explain\n", "--resume", file)[1].startswith(f"After 2 turns of conversation 1, the last: {SECOND}\n")


def test_a_resumed_conversation_keeps_the_statements_about_its_user(run: Chat, tmp_path: Path) -> None:
    turn = {"turn_id": 1, "user_utterance": "Who noticed?", "resolved_utterance": "Who noticed?", "response": "A boy."}
    file = tmp_path / "ikat.json"
    file.write_text(json.dumps([{"number": "7-1", "ptkb": ["I paint bridges.", "I like tea."], "responses": [turn]}]))
    options = ("--resume", file, "--with", "raw() >> statements()", "--json")
    (asked,) = objects(run("What of the bridges?\n", *options))
    assert (asked["topic"], asked["query"]) == ("7-1_2", "What of the bridges? paint bridges")


def test_lines_and_the_file_to_resume_may_be_in_another_encoding(run: Chat, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    assert run(f"Bridge in K\u00f6ln\n/save {file}\n")[0] == 0
    file.write_text(file.read_text(encoding="utf-8").replace("\\u00f6", "\u00f6"), encoding="cp1250")
    options = ("--encoding", "cp1250", "--resume", file, "--json")
    code, out, err = run("a \u0161koda?\n/save\n".encode("cp1250"), *options)
    turn, failed = map(json.loads, out.splitlines())
    assert turn["query"] == "Bridge in K\u00f6ln a \u0161koda?"
    # Its own file would be written in UTF-8, and read as cp1250 again.
    assert (code, failed["error"], err) == (1, "/save needs the name of a file: /save talk.json", "")
    assert "Bridge in K\u00f6ln" in file.read_text(encoding="cp1250")
    code, out, err = run(b"bridge\nk\xf6\n")
    advice = remedy(b"k\xf6\n")
    assert (code, err) == (1, f"fontes: standard input, line 2: not UTF-8 (byte 2 of the line); {advice}\n")
    assert run(b"bridge\nk\xf6\n", "--errors", "replace", "--encoding", "utf-8")[0] == 0
    assert "there is no encoding 'cp125'" in run("", "--encoding", "cp125")[2]


def test_save_replaces_no_file_but_its_own(run: Chat, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("mine")
    code, _, err = run(f"/save\n{FIRST}\n/save {other}\n")
    assert (code, other.read_text()) == (1, "mine")
    assert "/save needs the name of a file" in err
    assert "other.json exists already and is unchanged" in err
    file = tmp_path / "talk.json"
    assert run(f"{FIRST}\n/save {file}\n")[0] == 0
    assert run(f"{SECOND}\n/save\n", "--resume", file)[0] == 0
    assert len(ft.read_topics(file)) == 2
    # A file that holds more than the conversation that goes on is not replaced by it.
    code, _, err = run("why?\n/save\n", "--resume", file, "--at", "1_1")
    assert (code, "needs the name" in err, len(ft.read_topics(file))) == (1, True, 2)
    assert "exists already" in run(f"why?\n/save {file}\n", "--resume", file, "--at", "1_1")[2]


def test_reset_forgets_the_turns(run: Chat) -> None:
    first, reset, second = objects(run(f"{FIRST}\n/reset\n{SECOND}\n", "--json"))
    assert (first["topic"], reset, second["topic"], second["query"]) == ("1_1", {"reset": True}, "1_1", SECOND)
    assert "A new conversation." in run("/reset")[1]


def test_help_names_each_command_and_quit_ends(run: Chat) -> None:
    code, out, err = run(f"/help\n/quit\n{FIRST}\n")
    assert (code, err) == (0, "")
    assert all(command in out for command in chat.HELP)
    assert FIRST not in out
    assert objects(run("/help", "--json")) == [chat.HELP]


@pytest.mark.parametrize("line", ["/explian", "/", "/ save x", "/tmp/what is this"])
def test_an_unknown_command_gets_a_sentence_and_the_conversation_goes_on(run: Chat, line: str) -> None:
    code, out, err = run(f"{line}\n{FIRST}\n")
    assert code == 1
    assert err.startswith("fontes: there is no command /" if line != "/ save x" else "fontes: nothing was asked yet")
    assert err.count("\n") == 1
    assert "bridge" in out


def test_what_is_typed_is_shown_as_it_was_typed(run: Chat) -> None:
    line = "[bold]the bridge[/bold] :car: {x}"
    code, out, err = run(f"{line}\n{line}\n")
    assert (code, err) == (0, "")
    assert out.count(f"> {line}\n") == 2
    assert f"searched: {line} {line}\n" in out


def test_a_space_before_a_slash_makes_it_a_turn(run: Chat) -> None:
    assert objects(run(" /save the bridge\n", "--json"))[0]["turn"] == "/save the bridge"


def test_a_turn_that_fails_says_so_and_the_next_one_is_asked(run: Chat) -> None:
    real = ft.Conversation.ask

    def ask(self: ft.Conversation, turn: str) -> ft.Ranking:
        if turn == "fail":
            raise RuntimeError("out of memory")
        return real(self, turn)

    with mock.patch.object(ft.Conversation, "ask", ask):
        code, out, err = run(f"{FIRST}\nfail\n{SECOND}\n")
        assert (code, err) == (1, "fontes: this failed (RuntimeError: out of memory); fontes --debug chat shows where\n")
        assert f"searched: {FIRST} {SECOND}" in out
        ran = run(f"fail\n{FIRST}\n", "--json")
        assert (ran[0], ran[2]) == (1, "")
        assert objects(ran)[0] == {
            "turn": "fail",
            "error": "this failed (RuntimeError: out of memory); fontes --debug chat shows where",
        }
        assert objects(ran)[1]["topic"] == "1_1"


def test_no_hits_and_no_lines_are_no_errors(run: Chat) -> None:
    code, out, _ = run("Xylophones?\n\U0001f600\n")
    assert (code, out.count("No document")) == (0, 2)
    assert run("") == (0, "", "")


def test_input_that_is_not_utf8_is_refused_with_its_line(run: Chat) -> None:
    code, _, err = run(f"{FIRST}\n".encode() + b"\xff\n")
    assert code == 1
    assert "standard input, line 2: not UTF-8" in err


def test_what_cannot_be_resumed_is_said(run: Chat, tmp_path: Path) -> None:
    plain = tmp_path / "topics.tsv"
    plain.write_text("q1\twhy\n")
    assert "topic 'q1' has no turns, so there is no conversation to resume" in run("", "--resume", plain)[2]
    assert "has no topic '9_9'; its last one is 'q1'" in run("", "--resume", plain, "--at", "9_9")[2]
    assert "--at goes with --resume FILE" in run("", "--at", "1_1")[2]


def test_of_a_long_document_the_piece_with_the_words_of_the_question_is_remembered(tmp_path: Path) -> None:
    text = " ".join([*["flour"] * 400, "the bridge closed because rain had weakened the iron", *["water"] * 400])
    index = ft.Index.build([("long", text), ("short", "bridge")], tmp_path / "index")
    conversation = ft.Conversation(ft.rewrite.WeightedTurns(index) >> index.bm25(), answer=chat.answer_of(index))
    conversation.ask("Why was the iron weak?")
    answer = conversation.turns[0].answer
    assert "rain had weakened the iron" in answer
    assert 500 < len(answer) <= chat.ANSWER
    plain = ft.Conversation(index.bm25(), answer=chat.answer_of(index))
    plain.ask("closed")
    assert "the bridge closed" in plain.turns[0].answer


def test_a_reader_that_goes_away_is_no_error_message(index: ft.Index) -> None:
    words = [sys.executable, "-m", "fontes", "chat", str(index.path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(f"{FIRST}\n".encode(), timeout=60)
    assert (process.returncode, err) == (0, b"")


@pytest.mark.slow
def test_ctrl_c_ends_what_is_piped_in_one_sentence(index: ft.Index) -> None:
    words = [sys.executable, "-m", "fontes", "chat", str(index.path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{FIRST}\n".encode())
    process.stdin.flush()
    assert process.stdout.readline() == f"> {FIRST}\n".encode()  # lines are answered as they come
    assert any(b"closed" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    code = process.wait(60)
    _, err = process.communicate()
    assert (code, err) == (1, b"fontes: interrupted\n")


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        words = [sys.executable, "-m", "fontes", *map(str, arguments)]
        self.main, other = pty.openpty()
        settings = {**os.environ, "TERM": "xterm", "COLUMNS": "120", **environment}
        # A session of its own, whose terminal this is, so that Ctrl-C reaches it and nobody else.
        code = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdin=other, stdout=other, stderr=other, env=settings, start_new_session=True
        )
        os.close(other)
        self.shown = ""
        self.seen = 0

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())

    def until(self, text: str, seconds: float = 120) -> str:
        """What is shown from where the last call ended until `text` ends."""
        start, deadline = self.seen, time.monotonic() + seconds
        waiting = select.poll()  # takes descriptors of any number
        waiting.register(self.main, select.POLLIN)
        while text not in self.shown[start:]:
            left = deadline - time.monotonic()
            assert left > 0, f"no {text!r} in {self.shown[start:]!r}"
            if waiting.poll(left * 1000):
                try:
                    self.shown += os.read(self.main, 65536).decode(errors="replace")
                except OSError:  # the process has closed its side
                    assert text in self.shown[start:], self.shown
        self.seen = self.shown.index(text, start) + len(text)
        return self.shown[start : self.seen]

    def interrupt(self) -> str:
        """Ctrl-C; and a key and Ctrl-C again where Python's readline did not notice it, as it was about to wait for a key."""
        for _ in range(20):
            self.type("\x03")
            with contextlib.suppress(AssertionError):
                return self.until("ends.\r\n> ", 3)
            self.type("x")
        raise AssertionError(self.shown)

    def close(self) -> int:
        code = self.process.wait(60)
        os.close(self.main)
        return code


@pytest.fixture
def terminal(index: ft.Index) -> Iterator[Terminal]:
    opened = Terminal("chat", index.path)
    yield opened
    if opened.process.poll() is None:
        opened.process.kill()
        opened.close()


@pytest.mark.slow
def test_at_a_terminal_there_is_a_prompt_and_ctrl_c_and_ctrl_d_do_what_is_expected(terminal: Terminal, tmp_path: Path) -> None:
    assert "3 documents, weighted_turns(), bm25(k1=0.9, b=0.4). /help lists the commands, Ctrl-D ends." in terminal.until("> ")
    terminal.type(f"{FIRST}\n")
    answer = terminal.until("\n> ")
    assert "\x1b[1;33mChain\x1b[0m" in answer  # marked by colour, not by stars
    assert "**" not in answer
    for line in ("half a quest", ""):
        terminal.type(line)
        terminal.until(line)
        assert "Nothing is lost. /save FILE keeps the conversation, /quit ends." in terminal.interrupt()
    terminal.type(f"{SECOND}\n")
    assert f"searched: {FIRST} {SECOND}" in terminal.until("\n> ")
    terminal.type("/nothing\n")
    assert "fontes: there is no command /nothing" in terminal.until("\n> ")
    terminal.type("\n")
    terminal.until("\n> ")
    terminal.type(f"/save {tmp_path / 'talk.json'}\n")
    assert "2 turns" in terminal.until("\n> ")
    terminal.type("\x04")
    assert terminal.close() == 0
    assert "Traceback" not in terminal.shown
    assert [topic.text for topic in ft.read_topics(tmp_path / "talk.json").values()] == [FIRST, SECOND]


@pytest.mark.slow
def test_at_a_terminal_the_last_line_comes_back_with_the_arrow(terminal: Terminal) -> None:
    pytest.importorskip("readline")
    terminal.until("> ")
    terminal.type("the bridge\n")
    terminal.until("\n> ")
    terminal.type("\x1b[A\n")
    assert "searched: the bridge the bridge" in terminal.until("\n> ")
    terminal.type("/quit\n")
    assert terminal.close() == 0

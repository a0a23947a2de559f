"""A conversation at the terminal, or from a pipe: turns and commands in, answers out, one line at a time."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from ..core import FontesError, InputError, Ranking
from ..index import Index
from ..rewrite import Conversation
from ..storage.files import reading
from ..text import snippet
from .flags import flags
from .output import console, counted, print_explanation, print_hits, print_json, say
from .results import ranking_as_json

PROMPT = "> "
ANSWER = 1000  # characters of a document that are remembered as the answer: some 150 words
HELP = {
    "/explain [N]": "how the score of hit N of the last turn comes about, or of the document with this id",
    "/reset": "forget all turns",
    "/save FILE": "write all turns to a file of topics, as TREC CAsT has them",
    "/help": "this list",
    "/quit": "end, as Ctrl-D does",
}


class Session:
    """Takes lines, turns or commands, and prints what comes of them.

    Args:
        conversation: What turns are asked in.
        index: The index whose documents are shown.
        json: Whether to print an object for each line in place of text.
        file: Where the conversation came from, and where `/save` alone puts it.
    """

    def __init__(self, conversation: Conversation, index: Index, *, json: bool, file: Path | None = None) -> None:
        self.conversation = conversation
        self.index = index
        self.json = json
        self.file = file
        self.failures = 0
        self._commands: dict[str, Callable[[str], None]] = {
            "explain": self._explain,
            "reset": self._reset,
            "save": self._save,
            "help": self._help,
        }

    def interactive(self) -> None:
        """Asks for lines at a prompt until Ctrl-D or /quit. Ctrl-C leaves the line, or the turn that is being searched."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  (gives input() its history)
        with interruptible():
            while True:
                try:
                    if not self._line(input(PROMPT)):
                        return
                except KeyboardInterrupt:
                    with contextlib.suppress(KeyboardInterrupt):  # it is often pressed twice
                        say("\nNothing is lost. /save FILE keeps the conversation, /quit ends.")
                except EOFError:
                    say("")
                    return

    def piped(self) -> None:
        """Takes the lines of standard input; each is printed before its answer.

        Raises:
            FontesError: On Ctrl-C.
        """
        try:
            with interruptible(), reading("-") as source:
                for _, line in source.texts():
                    if not self.json:
                        say(PROMPT + line)
                    going = self._line(line)
                    sys.stdout.flush()
                    if not going:
                        return
        except KeyboardInterrupt:
            raise FontesError("interrupted") from None

    def _line(self, line: str) -> bool:
        """Does what a line says; whether the conversation goes on."""
        if not line.strip():
            return True
        try:
            if not line.startswith("/"):
                self._ask(line.strip())
                return True
            name, _, argument = line[1:].strip().partition(" ")
            if name == "quit":
                return False
            if name not in self._commands:
                raise InputError(f"there is no command /{name}; /help lists those that there are")
            self._commands[name](argument.strip())
        except BrokenPipeError:
            raise
        except Exception as error:
            if flags.debug:
                raise
            self._failed(line, error)
        return True

    def _ask(self, text: str) -> None:
        hits = self.conversation.ask(text)
        if self.json:
            ranking = ranking_as_json(hits, text=True)
            weights = {"weights": dict(hits.topic.weights)} if hits.topic.weights is not None else {}
            print_json({"topic": ranking["topic"], "turn": text, "query": ranking["query"], **weights, "hits": ranking["hits"]})
            return
        if hits.topic.text != text:
            console.print(Text(f"searched: {hits.topic.text}", style="dim"))
        print_hits(hits, self.index, self.conversation.stage)

    def _explain(self, argument: str) -> None:
        explanation = self.conversation.explain(int(argument) if argument.isdecimal() else argument or 1)
        if self.json:
            print_json(explanation.to_dict())
        else:
            print_explanation(explanation)

    def _reset(self, argument: str) -> None:
        self.conversation.reset()
        self._done("A new conversation.", reset=True)

    def _save(self, argument: str) -> None:
        path = Path(argument).expanduser() if argument else self.file
        if path is None:
            raise InputError("/save needs the name of a file: /save talk.json")
        if path.exists() and (self.file is None or not self.file.exists() or not path.samefile(self.file)):
            raise InputError(f"{path} is there already and is left as it is; choose another name")
        self.conversation.save(path)
        self.file = path
        turns = len(self.conversation.turns)
        self._done(f"{path}: {counted(turns, 'turn')}", saved=str(path), turns=turns)

    def _help(self, argument: str) -> None:
        if self.json:
            print_json(HELP)
            return
        for command, what in HELP.items():
            say(f"{command:13} {what}")

    def _done(self, sentence: str, **facts: Any) -> None:
        if self.json:
            print_json(facts)
        else:
            say(sentence)

    def _failed(self, line: str, error: Exception) -> None:
        self.failures += 1
        known = isinstance(error, FontesError)
        message = str(error) if known else f"this failed ({type(error).__name__}: {error}); fontes --debug chat shows where"
        if self.json:
            print_json({"turn": line.strip(), "error": message})
        else:
            sys.stdout.flush()
            print(f"fontes: {message}", file=sys.stderr, flush=True)


def answer_of(index: Index) -> Callable[[Ranking], str]:
    """What is remembered of the best document: its text, of a long one the piece with the most words of the question."""

    def answer(hits: Ranking) -> str:
        text = index.doc(hits[0].id).text
        if len(text) <= ANSWER:
            return text
        terms = hits.topic.weights if hits.topic.weights is not None else set(index.analyzer(hits.topic.text))
        return snippet(index.analyzer, text, terms, ANSWER).text.strip("… ")

    return answer


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt inside."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

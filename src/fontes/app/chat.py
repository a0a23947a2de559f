"""Conversations at a terminal or through a pipe."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.text import Text

from ..core import FontesError, InputError, Ranking
from ..core.checks import as_number
from ..formats.decoding import as_utf8, reading_of, remedy
from ..index import Index
from ..rewrite import Conversation
from ..storage.files import reading
from ..text import snippet
from .flags import flags
from .output import console, counted, print_explanation, print_json, say, tell
from .results import print_hits, ranking_as_json, why_empty

PROMPT = "> "
ANSWER = 1000  # maximum characters of a document that are stored as the answer, about 150 words
HELP = {
    "/explain [N]": "explain the score of hit N of the last turn, or of the document with this id",
    "/reset": "begin a new conversation",
    "/save FILE": "write all turns to a file of topics in the format of TREC CAsT",
    "/help": "list the commands",
    "/quit": "quit; so does Ctrl-D",
}


class ChatPrompt:
    """Executes lines, which are turns or commands, and prints the results.

    Args:
        conversation: The conversation.
        index: The index whose documents are printed.
        json: Print a JSON object for each line.
        file: File that the conversation was resumed from; the default of `/save`.

    Attributes:
        failures: Number of lines that failed.
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
        """Read lines at a prompt until Ctrl-D or /quit. Ctrl-C abandons the line or the running search."""
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
        """Read standard input; print each line before its answer. Raises FontesError on Ctrl-C."""
        try:
            with interruptible(), reading("-") as source:
                source.file, _ = as_utf8(source.file, source.name, reading_of())
                source.remedy = remedy
                for _, line in source.texts():
                    if not self.json:
                        say(PROMPT + line)
                    continues = self._line(line)
                    sys.stdout.flush()
                    if not continues:
                        return
        except KeyboardInterrupt:
            raise FontesError("interrupted") from None

    def _line(self, line: str) -> bool:
        """Execute a line; return False for /quit."""
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
                raise InputError(f"there is no command /{name}; /help lists the commands")
            self._commands[name](argument.strip())
        except BrokenPipeError:
            raise
        except Exception as error:
            if flags.debug:
                raise
            self._report_failure(line, error)
        return True

    def _ask(self, text: str) -> None:
        """Search for a turn and print its hits."""
        hits = self.conversation.ask(text)
        if self.json:
            ranking = ranking_as_json(hits, text=True)
            weights = {"weights": dict(hits.topic.weights)} if hits.topic.weights is not None else {}
            answer = {"answer": ranking["answer"]} if "answer" in ranking else {}
            turn = {"topic": ranking["topic"], "turn": text, "query": ranking["query"]}
            reason = {} if len(hits) else {"no_hits": why_empty(hits, self.index, self.conversation.stage).to_dict()}
            print_json({**turn, **weights, **answer, "hits": ranking["hits"], **reason})
            return
        if hits.topic.text != text:
            console().print(Text(f"searched: {hits.topic.text}", style="dim"))
        print_hits(hits, self.index, self.conversation.stage)

    def _explain(self, argument: str) -> None:
        explanation = self.conversation.explain(as_number(argument or "1"))
        if self.json:
            print_json(explanation.to_dict())
        else:
            print_explanation(explanation)

    def _reset(self, argument: str) -> None:
        self.conversation.reset()
        tell(self.json, {"reset": True}, "A new conversation.")

    def _save(self, argument: str) -> None:
        """Write the conversation to a file; an existing file is overwritten only if the conversation is stored there."""
        path = Path(argument).expanduser() if argument else self.file
        if path is None:
            raise InputError("/save needs the name of a file: /save talk.json")
        if path.exists() and (self.file is None or not self.file.exists() or not path.samefile(self.file)):
            raise InputError(f"{path} exists already and is unchanged; choose another name")
        self.conversation.save(path)
        self.file = path
        turns = len(self.conversation.turns)
        tell(self.json, {"saved": str(path), "turns": turns}, f"{path}: {counted(turns, 'turn')}")

    def _help(self, argument: str) -> None:
        tell(self.json, HELP, *(f"{command:13} {description}" for command, description in HELP.items()))

    def _report_failure(self, line: str, error: Exception) -> None:
        """Count and print the error of a line."""
        self.failures += 1
        if isinstance(error, FontesError):
            message = str(error)
        else:
            message = f"this failed ({type(error).__name__}: {error}); fontes --debug chat shows where"
        if self.json:
            print_json({"turn": line.strip(), "error": message})
        else:
            sys.stdout.flush()
            print(f"fontes: {message}", file=sys.stderr, flush=True)


def answer_of(index: Index) -> Callable[[Ranking], str]:
    """Return a function that answers a turn with the text of the best document, or its best passage if it is long."""

    def answer(hits: Ranking) -> str:
        text = index.doc(hits[0].id).text
        if len(text) <= ANSWER:
            return text
        terms = hits.topic.weights if hits.topic.weights is not None else set(index.analyzer(hits.topic.text))
        return snippet(index.analyzer, text, terms, ANSWER).text.strip("… ")

    return answer


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in the block."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)

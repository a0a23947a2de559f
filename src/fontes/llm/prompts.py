"""Prompts: Markdown files, each with its source, that become the messages of a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from ..core.errors import InputError, ParameterError
from ..core.registry import nearest

FOLDER = Path(__file__).parent / "prompts"
SECTION = re.compile(r"^## (system|user|assistant)(, for each passage|, for each example|, begun)?[ \t]*$", re.MULTILINE)
ANSWERS = re.compile(r"^answers: (.+)$", re.MULTILINE)
PLACE = re.compile(r"\{([a-z_]+)\}")
OF_PASSAGES = ("passage", "number", "label")
OF_EXAMPLES = ("query", "passage")
KINDS = {"": "", ", for each passage": "passage", ", for each example": "example", ", begun": "begun"}
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Message = tuple[str, str]
"""A role, "system", "user" or "assistant", and a text. A last message of the assistant is what the answer begins with."""


@dataclass(frozen=True)
class Prompt:
    """A prompt with places for values, such as {query}.

    Args:
        name: Its name, or its file.
        sections: Role, kind ("", "passage" and "example": for each of these, "begun") and text of each section.
        choices: The answers between which the model is to choose; empty for any text.
    """

    name: str
    sections: tuple[tuple[str, str, str], ...]
    choices: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, *places: str) -> Prompt:
        """Return a prompt of Fontes by its name, or one from a file.

        Args:
            name: A name, such as "rankgpt", or the path of a file, which ends in .md.
            *places: Names of the places that the prompt may have, and the first of which it must have.

        Raises:
            ParameterError: There is no such prompt.
            InputError: The file cannot be read, has no sections, or has other places.
        """
        prompt = _read(name)
        of_examples = {place for _, kind, text in prompt.sections if kind == "example" for place in PLACE.findall(text)}
        used = {place for _, kind, text in prompt.sections if kind != "example" for place in PLACE.findall(text)}
        if unknown := sorted(used - set(places)) or sorted(of_examples - {*places, *OF_EXAMPLES}):
            raise InputError(f"prompt {name}: there is no place {{{unknown[0]}}}; there are {{{'}, {'.join(places)}}}")
        if places[0] not in used:
            raise InputError(f"prompt {name}: it has no place {{{places[0]}}}, without which all answers would be the same")
        return prompt

    @property
    def takes_examples(self) -> bool:
        """Whether there is a place or a section for examples."""
        return any(kind == "example" or "examples" in PLACE.findall(text) for _, kind, text in self.sections)

    def messages(
        self, passages: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = (), **values: object
    ) -> tuple[Message, ...]:
        """Return the messages with values in their places, which are filled once: a value's own braces stay.

        A paragraph of empty values alone is left out.

        Args:
            passages: The passages. Sections "for each passage" are repeated together for each; elsewhere the paragraph with
                {passage} is. {number} counts them from 1, {label} from A.
            pairs: Queries and passages of examples. Sections "for each example" are repeated together for each.
            **values: Texts and numbers by place.
        """
        of_each = [
            {"passage": text, "number": str(n), "label": LABELS[(n - 1) % len(LABELS)]} for n, text in enumerate(passages, 1)
        ]
        known = {name: str(value) for name, value in values.items()}
        repeats = {"passage": of_each, "example": [dict(zip(OF_EXAMPLES, pair, strict=True)) for pair in pairs]}
        messages: list[Message] = []
        for kind, sections in groupby(self.sections, lambda section: section[1]):
            if kind in repeats:
                group = [(role, text) for role, _, text in sections]
                messages += [(role, _filled(text, known | each)) for each in repeats[kind] for role, text in group]
                continue
            for role, _, text in sections:
                paragraphs = []
                for paragraph in text.split("\n\n"):
                    repeated = of_each if set(PLACE.findall(paragraph)) & set(OF_PASSAGES) else [{}]
                    filled = [_filled(paragraph, known | each) for each in repeated]
                    paragraphs += [one for one in filled if one or not paragraph]
                messages.append((role, "\n\n".join(paragraphs)))
        return tuple(messages)


def plain_passage(text: str, words: int) -> str:
    """Return the text of a document for a prompt: its first words on one line, with nothing that could pass for a label.

    Identifiers in brackets, as "[3]", become "(3)", and marks of chat templates, as "<|im_end|>", are broken by spaces.

    Args:
        text: The text.
        words: Number of words that are kept.
    """
    short = " ".join(text.split(maxsplit=words)[:words])
    return re.sub(r"<(?=[|/])|(?<=\|)>", lambda mark: "< " if mark[0] == "<" else " >", re.sub(r"\[(\w+)\]", r"(\1)", short))


def _filled(text: str, values: dict[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)


@lru_cache(64)
def _parsed(name: str, text: str) -> Prompt:
    head, *pieces = SECTION.split(text)
    sections = []
    for role, kind, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        what, section = KINDS[kind or ""], body.strip()
        sections.append((role, what, section.replace("\\n", "\n") if what == "begun" else section))
    if not sections:
        raise InputError(f"prompt {name}: it has no section; a line '## user' begins the text that a model gets")
    line = ANSWERS.search(head)
    choices = tuple(part.strip() for part in line[1].split(",")) if line else ()
    return Prompt(name, tuple(sections), choices)


def _read(name: str) -> Prompt:
    known = sorted(path.stem for path in FOLDER.glob("*.md"))
    path = FOLDER / f"{name}.md" if name in known else Path(name).expanduser()
    if name not in known and path.suffix != ".md":
        raise ParameterError(f"there is no prompt '{name}'; {nearest(name, known)}, or give the path of a file, FILE.md")
    try:
        return _parsed(name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the prompt cannot be read ({getattr(error, 'strerror', None) or error})") from None

"""Prompts: Markdown files, each with its source, that become the messages of a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from ..core.errors import InputError, ParameterError
from ..core.hints import nearest

FOLDER = Path(__file__).parent / "prompts"
SECTION = re.compile(r"^## (system|user|assistant)(, for each passage|, for each example|, begun)?[ \t]*$", re.MULTILINE)
ANSWERS = re.compile(r"^answers: (.+)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PASSAGE_PLACES = ("passage", "number", "label")
EXAMPLE_PLACEHOLDERS = ("query", "passage")
SECTION_KINDS = {"": "", ", for each passage": "passage", ", for each example": "example", ", begun": "begun"}
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Message = tuple[str, str]
"""A role, "system", "user" or "assistant", and a text. If the last message is the assistant's, the answer begins with it."""


@dataclass(frozen=True)
class Prompt:
    """A prompt with placeholders for values, such as {query}.

    Args:
        name: Name of the prompt, or path of its file.
        sections: Role, kind and text of each section. The kind is "passage" or "example" for a section that is repeated for
            each of these, "begun" for the beginning of the answer, and otherwise "".
        choices: The answers between which the model must choose; empty for a free text.
    """

    name: str
    sections: tuple[tuple[str, str, str], ...]
    choices: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, *placeholders: str) -> Prompt:
        """Return a prompt of Fontes by its name, or one from a file.

        Args:
            name: A name, such as "rankgpt", or the path of a file, which ends in .md.
            *placeholders: Names of the placeholders that the prompt may have; it must have the first.

        Raises:
            ParameterError: There is no such prompt.
            InputError: The file cannot be read, has no sections, or has other placeholders.
        """
        prompt = _read(name)
        in_examples, elsewhere = set[str](), set[str]()
        for _, kind, text in prompt.sections:
            (in_examples if kind == "example" else elsewhere).update(PLACEHOLDER.findall(text))
        if unknown := sorted(elsewhere - set(placeholders)) or sorted(in_examples - {*placeholders, *EXAMPLE_PLACEHOLDERS}):
            raise InputError(
                f"prompt {name}: there is no placeholder {{{unknown[0]}}}; there are {{{'}, {'.join(placeholders)}}}"
            )
        if placeholders[0] not in elsewhere:
            raise InputError(
                f"prompt {name}: without the placeholder {{{placeholders[0]}}} all answers would be the same; add it"
            )
        return prompt

    @property
    def takes_examples(self) -> bool:
        """Whether the prompt has a placeholder or a section for examples."""
        return any(kind == "example" or "examples" in PLACEHOLDER.findall(text) for _, kind, text in self.sections)

    def messages(
        self, passages: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = (), **values: object
    ) -> tuple[Message, ...]:
        """Return the messages with values instead of placeholders; braces inside a value stay unchanged.

        A paragraph that consists only of empty values is left out.

        Args:
            passages: The passages. Adjacent sections "for each passage" are repeated as a group for each passage; in other
                sections, the paragraph with {passage} is repeated. {number} counts passages from 1, {label} from A.
            pairs: Queries and passages of examples. Adjacent sections "for each example" are repeated as a group for each pair.
            **values: Texts and numbers by name of the placeholder.
        """
        passage_values = [
            {"passage": text, "number": str(n), "label": LABELS[(n - 1) % len(LABELS)]} for n, text in enumerate(passages, 1)
        ]
        texts = {name: str(value) for name, value in values.items()}
        repeats = {"passage": passage_values, "example": [dict(zip(EXAMPLE_PLACEHOLDERS, pair, strict=True)) for pair in pairs]}
        messages: list[Message] = []
        for kind, sections in groupby(self.sections, lambda section: section[1]):
            if kind in repeats:
                group = [(role, text) for role, _, text in sections]
                messages += [(role, _fill(text, texts | element)) for element in repeats[kind] for role, text in group]
                continue
            for role, _, text in sections:
                paragraphs = []
                for paragraph in text.split("\n\n"):
                    repeated = passage_values if set(PLACEHOLDER.findall(paragraph)) & set(PASSAGE_PLACES) else [{}]
                    filled = [_fill(paragraph, texts | element) for element in repeated]
                    paragraphs += [paragraph_text for paragraph_text in filled if paragraph_text or not paragraph]
                messages.append((role, "\n\n".join(paragraphs)))
        return tuple(messages)


def plain_passage(text: str, words: int) -> str:
    """Return the first words of a document for a prompt, on one line, without anything that could be mistaken for a label.

    Identifiers in brackets, such as "[3]", become "(3)", and marks of chat templates, such as "<|im_end|>", are broken by
    spaces.

    Args:
        text: The text.
        words: Maximum number of words.
    """
    short = " ".join(text.split(maxsplit=words)[:words])
    short = re.sub(r"\[(\w+)\]", r"(\1)", short)
    return re.sub(r"<(?=[|/])|(?<=\|)>", lambda mark: "< " if mark[0] == "<" else " >", short)


def _fill(text: str, values: dict[str, str]) -> str:
    return PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], text)


@lru_cache(64)
def _parse(name: str, text: str) -> Prompt:
    head, *pieces = SECTION.split(text)
    sections = []
    for role, kind, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        section_kind, section = SECTION_KINDS[kind or ""], body.strip()
        sections.append((role, section_kind, section.replace("\\n", "\n") if section_kind == "begun" else section))
    if not sections:
        raise InputError(f"prompt {name}: it has no section; a line '## user' begins the text that a model gets")
    line = ANSWERS.search(head)
    choices = tuple(part.strip() for part in line[1].split(",")) if line else ()
    return Prompt(name, tuple(sections), choices)


def _read(name: str) -> Prompt:
    names = sorted(path.stem for path in FOLDER.glob("*.md"))
    path = FOLDER / f"{name}.md" if name in names else Path(name).expanduser()
    if name not in names and path.suffix != ".md":
        raise ParameterError(f"there is no prompt '{name}'; {nearest(name, names)}, or give the path of a file, FILE.md")
    try:
        return _parse(name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the prompt cannot be read ({getattr(error, 'strerror', None) or error})") from None

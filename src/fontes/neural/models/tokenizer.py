"""The tokenizer of a model by itself, to count the tokens of texts and to cut texts between them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import ParameterError
from ...core.strings import encodable
from .hub import NO_CODE, library, loaded, located, quiet, read_json, readable

FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")


class Tokenizer:
    """A tokenizer that neither cuts nor adds special tokens.

    Args:
        backend: A Tokenizer of the library tokenizers.
    """

    def __init__(self, backend: Any) -> None:
        state = backend.to_str()
        self.fingerprint = hashlib.blake2b(state.encode(), digest_size=16).hexdigest()
        """32 hexadecimal digits of its content."""
        self._backend = type(backend).from_str(state)
        self._backend.no_truncation()
        self._backend.no_padding()

    @property
    def special(self) -> int:
        """The special tokens that a model puts around a text."""
        return int(self._backend.num_special_tokens_to_add(False))

    def counts(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, special ones left out."""
        return [len(one.ids) for one in self._backend.encode_batch_fast(_clean(texts), add_special_tokens=False)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Offsets at which each token of a text begins and ends, in characters."""
        spans: list[tuple[int, int]] = self._backend.encode(encodable(text), add_special_tokens=False).offsets
        return spans


def tokenizer_of(name_or_path: str | Path) -> Tokenizer:
    """The tokenizer of a model, loaded once a process.

    Args:
        name_or_path: The folder of a model or of a tokenizer, or a name on the Hugging Face hub.

    Raises:
        InputError: It is not there or cannot be read.
        ParameterError: It does not say where tokens begin and end.
        MissingExtraError: A library of the extra `neural` is missing.
    """
    transformers = library("transformers", "a tokenizer")
    folder = _folder(name_or_path)
    files = [folder / name for name in FILES if (folder / name).is_file()]
    stamps = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)

    def load() -> Tokenizer:
        with readable(f"transformers finds no tokenizer in the model {name_or_path}"), quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **NO_CODE)
        if not tokenizer.is_fast:
            raise ParameterError(
                f"the tokenizer of {name_or_path} does not say where tokens begin and end; take another model's"
            )
        return Tokenizer(tokenizer.backend_tokenizer)

    return loaded(("tokenizer", folder, stamps), load)


def _folder(name_or_path: str | Path) -> Path:
    """The folder of the tokenizer: of a model of sentence-transformers that of its first module where its own has none."""
    place = Path(name_or_path).expanduser()
    folder = place.resolve() if any((place / name).is_file() for name in FILES) else located(name_or_path, "tokenizer")
    if any((folder / name).is_file() for name in FILES):
        return folder
    modules = read_json(folder / "modules.json", [])
    return folder / str(modules[0]["path"]) if modules else folder


def _clean(texts: Sequence[str]) -> list[str]:
    return list(map(encodable, texts))

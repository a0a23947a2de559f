"""Tokenizers, read from `tokenizer.json` by the library tokenizers where possible, else by transformers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Int64s
from ...core.errors import InputError, ParameterError
from ...core.strings import encodable, offsets_of
from .compute import padded
from .hub import NO_CODE, find_model, library, load_once, model_errors, quiet, read_json, tokenizer_in

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding, Tokenizer as Backend
    from torch import Tensor

    from . import bert, modernbert


FILE = "tokenizer.json"
STATIC = "static embeddings"
FILE_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")  # classes of transformers that use the file unchanged
# Classes of transformers that build a tokenizer from the vocabulary of the file.
BERT = ("BertTokenizer", "BertTokenizerFast")
XLM_ROBERTA = ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast")
DEFAULT_CLASSES = {"bert": BERT[0], "xlm-roberta": XLM_ROBERTA[0]}  # by type of model
METASPACE = {  # pre-tokenizer of XLM-RoBERTa
    "type": "Sequence",
    "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    ],
}
SPECIAL_TOKENS = ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "bos_token", "eos_token")


@dataclass(frozen=True)
class TokenIds:
    """Token ids of a text or a pair of texts.

    Args:
        ids: The token ids.
        types: For each token 0 or 1, the text of the pair that it belongs to; None for a model without token types.
    """

    ids: list[int]
    types: list[int] | None


class Tokens:
    """A tokenizer that always truncates to one length, so that threads may share it.

    Args:
        backend: A Tokenizer of the library tokenizers; changed in place.
        length: Maximum number of tokens of a text or pair, special tokens included.
        typed: Whether the model has token types.
    """

    def __init__(self, backend: Backend, length: int, typed: bool) -> None:
        backend.no_padding()
        backend.enable_truncation(length, strategy="longest_first")
        self._backend, self._typed = backend, typed

    def lower(self) -> None:
        """Lowercase the following texts, unless the tokenizer already does."""
        normalizers, normalizer = library("tokenizers", "reading a model").normalizers, self._backend.normalizer
        if normalizer is None or "Lowercase" not in json.dumps(_state(normalizer)):
            steps = [normalizers.Lowercase(), *([] if normalizer is None else [normalizer])]
            self._backend.normalizer = normalizers.Sequence(steps)

    def encoded(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[TokenIds]:
        """Token ids of texts or pairs of texts; characters without a UTF-8 form are replaced."""
        clean = [encodable(text) if isinstance(text, str) else tuple(map(encodable, text)) for text in texts]
        encodings = self._backend.encode_batch_fast(clean)
        return [TokenIds(encoding.ids, encoding.type_ids if self._typed else None) for encoding in encodings]

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each untruncated text, special tokens included."""
        special = self._backend.num_special_tokens_to_add(False)
        encodings = self._backend.encode_batch_fast(list(map(encodable, texts)), add_special_tokens=False)
        return [special + sum(len(part.ids) for part in (encoding, *encoding.overflowing)) for encoding in encodings]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token of an untruncated text, in characters, without special tokens."""
        encoding = self._backend.encode(text, add_special_tokens=False)
        return [(start, end) for part in (encoding, *encoding.overflowing) for start, end in part.offsets if end > start]


class StaticTokenizer:
    """The tokenizer of a static model, without special tokens.

    Args:
        folder: Its folder.
        length: Maximum number of tokens of a text; None: that of the file's truncation, or for a Model2Vec no maximum.
        model2vec: Whether to leave out unknown tokens, and to truncate long texts first to the characters of `length` tokens of
            median length.
    """

    def __init__(self, folder: Path, length: int | None, model2vec: bool) -> None:
        file = folder / FILE
        if not file.is_file():
            raise InputError(f"{folder} has no {FILE}, which {STATIC} need")
        with model_errors(f"{file} cannot be read"):
            self._backend = library("tokenizers", STATIC, "static").Tokenizer.from_file(str(file))
        truncation = (None if model2vec else self._backend.truncation) or {}
        self._backend.no_truncation()
        self._backend.no_padding()
        vocabulary: dict[str, int] = self._backend.get_vocab()
        self.last = max(vocabulary.values(), default=-1)
        """The greatest token id."""
        self.length: int | None = length or truncation.get("max_length")
        """Maximum number of tokens of a text."""
        self._characters, self._unknown = None, None
        self._keeps_end = truncation.get("direction") == "left"
        if model2vec:
            self._characters = length and length * int(np.median(list(map(len, vocabulary))))
            try:
                self._unknown = vocabulary.get(self._backend.model.unk_token)
            except AttributeError:  # Unigram, which does not have it
                self._unknown = read_json(file)["model"].get("unk_id")

    def ids(self, texts: Sequence[str]) -> tuple[Int64s, Int64s]:
        """Concatenated token ids of texts, int64, and their bounds, int64 (texts + 1,)."""
        read = slice(-self.length, None) if self._keeps_end and self.length else slice(self.length)
        lists = [encoding.ids[read] for encoding in self._encodings([text[: self._characters] for text in texts])]
        bounds = offsets_of(list(map(len, lists)))
        ids = np.fromiter(chain.from_iterable(lists), np.int64, int(bounds[-1]))
        if self._unknown is None:
            return ids, bounds
        in_vocabulary = ids != self._unknown
        return ids[in_vocabulary], offsets_of(in_vocabulary)[bounds]

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text, untruncated; more than `length` for a text whose characters are truncated."""
        counts = list(map(len, self._encodings(texts)))
        if self._characters is None or self.length is None:
            return counts
        ends = (text[self._characters :].strip() for text in texts)
        return [max(count, self.length + 1) if end else count for count, end in zip(counts, ends, strict=True)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token of an untruncated text, in characters."""
        encoding = self._backend.encode(encodable(text), add_special_tokens=False)
        return [(start, end) for start, end in encoding.offsets if end > start]

    def _encodings(self, texts: Sequence[str]) -> list[Encoding]:
        encodings: list[Encoding] = self._backend.encode_batch_fast(list(map(encodable, texts)), add_special_tokens=False)
        return encodings


def load_tokens(folder: Path, shape: bert.Shape | modernbert.Shape, length: int | None = None) -> tuple[Tokens, int] | None:
    """Load the tokenizer of a folder; return it with its maximum number of tokens, or None if it is not supported here.

    Args:
        folder: Folder of a model.
        shape: Sizes of the model.
        length: Maximum number of tokens; None: the setting of the tokenizer, or the number of positions.
    """
    settings: dict[str, Any] = read_json(folder / "tokenizer_config.json", {})
    all_settings: dict[str, Any] = {**read_json(folder / "special_tokens_map.json", {}), **settings}
    if settings.get("padding_side", "right") != "right" or settings.get("truncation_side", "right") != "right":
        return None
    positions = shape.max_position_embeddings
    length = length or min(int(settings.get("model_max_length") or positions), positions)
    kind = settings.get("tokenizer_class") or DEFAULT_CLASSES.get(shape.model_type, "")
    if (folder / FILE).is_file() and not settings.get("auto_map"):
        backend = library("tokenizers", "reading a model").Tokenizer.from_file(str(folder / FILE))
        backend.no_padding()
        if _is_unchanged(backend, kind, all_settings):
            inputs = settings.get("model_input_names", ("token_type_ids",) if kind in BERT else ())
            return Tokens(backend, length, "token_type_ids" in inputs), length
    transformers = library("transformers", "reading a model")
    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **NO_CODE)
    if not tokenizer.is_fast:
        return None
    return Tokens(tokenizer.backend_tokenizer, length, "token_type_ids" in tokenizer.model_input_names), length


def batch(encoded: Sequence[TokenIds], padding: int, device: torch.device | str) -> tuple[Tensor, Tensor, Tensor | None]:
    """Inputs of a network: ids, a mask of 1 and 0, and types (None without them), int64 (texts, positions)."""
    ids, mask = padded([text.ids for text in encoded], padding, device)
    types = [text.types for text in encoded if text.types is not None]
    return ids, mask, padded(types, 0, device)[0] if len(types) == len(encoded) else None


def _is_unchanged(backend: Backend, kind: str, settings: Mapping[str, Any]) -> bool:
    """Whether the class `kind` of transformers builds exactly this tokenizer from its file and settings."""
    configured = [settings.get(name) for name in SPECIAL_TOKENS]
    configured += [token.get("content") for token in settings.get("added_tokens_decoder", {}).values()]
    contents = {token["content"] if isinstance(token, dict) else token for token in configured if token}
    added = {token.content for token in backend.get_added_tokens_decoder().values()}
    if not contents <= added or settings.get("additional_special_tokens") or settings.get("extra_special_tokens"):
        return False
    if kind in FILE_CLASSES:
        return True
    normalizer, pre_tokenizer = _state(backend.normalizer), _state(backend.pre_tokenizer)
    empty_pair = backend.encode("", "")

    def special(name: str, default: str) -> int | None:
        token_id: int | None = backend.token_to_id(settings.get(name, default))
        return token_id

    if kind in BERT:
        first, last, model = special("cls_token", "[CLS]"), special("sep_token", "[SEP]"), backend.model
        bert_normalizer = {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": settings.get("do_lower_case", True),
        }
        pieces = model.unk_token, model.continuing_subword_prefix, model.max_input_chars_per_word
        return bool(
            pieces == (settings.get("unk_token", "[UNK]"), "##", 100)
            and pre_tokenizer == {"type": "BertPreTokenizer"}
            and normalizer == bert_normalizer
            and (empty_pair.ids, empty_pair.type_ids) == ([first, last, last], [0, 0, 1])
        )
    if kind in XLM_ROBERTA:
        first, last = special("bos_token", "<s>"), special("eos_token", "</s>")
        return bool(
            pre_tokenizer == METASPACE
            and (normalizer or {"type": "Precompiled"})["type"] == "Precompiled"
            and empty_pair.ids == [first, last, last, last]
        )
    return False


def _state(part: Any) -> Any:
    """Settings of a component of a tokenizer of the library tokenizers; None without the component."""
    return None if part is None else json.loads(part.__getstate__())


TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")


class Tokenizer:
    """A copy of a tokenizer (of the library tokenizers) that neither truncates nor adds special tokens."""

    def __init__(self, backend: Backend) -> None:
        state = backend.to_str()
        self.fingerprint = hashlib.blake2b(state.encode(), digest_size=16).hexdigest()
        """32 hexadecimal digits of its content."""
        self._backend = type(backend).from_str(state)
        self._backend.no_truncation()
        self._backend.no_padding()

    @property
    def special(self) -> int:
        """Number of special tokens that a model adds to a text."""
        return int(self._backend.num_special_tokens_to_add(False))

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text, without special tokens."""
        clean = list(map(encodable, texts))
        return [len(encoding.ids) for encoding in self._backend.encode_batch_fast(clean, add_special_tokens=False)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token of a text, in characters."""
        spans: list[tuple[int, int]] = self._backend.encode(encodable(text), add_special_tokens=False).offsets
        return spans


def tokenizer_of(name_or_path: str | Path) -> Tokenizer:
    """Load the tokenizer of a model, once per process.

    Args:
        name_or_path: The folder of a model or tokenizer, or a name on the Hugging Face hub.

    Raises:
        InputError: It is missing or cannot be read.
        ParameterError: It cannot report the positions of tokens.
        MissingExtraError: A library of the extra `neural` is missing.
    """
    library("transformers", "a tokenizer")
    folder = _tokenizer_folder(name_or_path)
    files = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    stamps = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)

    def load() -> Tokenizer:
        tokenizer = tokenizer_in(folder, f"transformers finds no tokenizer in the model {name_or_path}")
        if not tokenizer.is_fast:
            raise ParameterError(
                f"the tokenizer of {name_or_path} does not report the positions of tokens; use another model's"
            )
        return Tokenizer(tokenizer.backend_tokenizer)

    return load_once(("tokenizer", folder, stamps), load)


def _tokenizer_folder(name_or_path: str | Path) -> Path:
    """Folder of a model's tokenizer, which in a model of sentence-transformers may be the folder of the first module."""
    path = Path(name_or_path).expanduser()
    folder = (
        path.resolve() if any((path / name).is_file() for name in TOKENIZER_FILES) else find_model(name_or_path, "tokenizer")
    )
    if any((folder / name).is_file() for name in TOKENIZER_FILES):
        return folder
    modules = read_json(folder / "modules.json", [])
    return folder / str(modules[0]["path"]) if modules else folder

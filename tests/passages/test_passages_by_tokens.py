"""Passages of so many tokens of a model: never more, exact pieces of the text, and nothing left out."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to

import fontes as ft
from fontes.core.expression import pipeline
from fontes.passages.split import WORD

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

PIECES = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "spring", "water", "deep", "##er", "##est", ".", "a", "##a", "b", "##b"]
PROSE = (
    "A karst spring carries rain that fell on limestone; its flow rises within hours. Příliš žluťoučký kůň! 温泉は熱い。 🙂🙂"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tokenizers of three kinds: BERT's word pieces, RoBERTa's bytes, and XLM-RoBERTa's pieces that hold the blank."""
    root = tmp_path_factory.mktemp("tokenizers")
    pieces = tokenizers.Tokenizer(tokenizers.models.WordPiece({piece: n for n, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    pieces.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    in_bytes = tokenizers.Tokenizer(tokenizers.models.BPE())
    in_bytes.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    in_bytes.train_from_iterator([PROSE], trainer)
    blanks = tokenizers.Tokenizer(tokenizers.models.Unigram())
    blanks.normalizer = tokenizers.normalizers.NFKC()
    blanks.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=90, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    blanks.train_from_iterator([PROSE], trainer)
    for name, backend in (("pieces", pieces), ("bytes", in_bytes), ("blanks", blanks)):
        marks = (
            {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"} if name == "pieces" else {}
        )
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=8, **marks)
        fast.save_pretrained(str(root / name))
    return {name: str(root / name) for name in ("pieces", "bytes", "blanks")}


def cut(text: str, **parameters: Any) -> list[str]:
    return [passage.text for passage in ft.Passages(**parameters).of(ft.Doc("d", text))]


def tokens(folder: str, texts: Iterable[str]) -> list[int]:
    """By transformers alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) for text in texts]


def test_passages_are_of_so_many_tokens_special_ones_not_counted(folders: dict[str, str]) -> None:
    text = "spring water. deeper water deepest spring. water"
    both = {"tokens": 4, "tokenizer": folders["pieces"]}
    assert cut(text, **both, stride=4) == ["spring water.", "deeper water", "deepest spring.", "water"]
    assert tokens(folders["pieces"], cut(text, **both, stride=4)) == [3, 3, 4, 1]
    # The next one starts two tokens later, or where the word begins that those end in.
    assert cut(text, **both) == [
        "spring water.",
        "water. deeper",
        "deeper water",
        "water deepest",
        "deepest spring.",
        "spring. water",
    ]
    assert cut(text, **{**both, "tokens": 100}) == [text]
    assert cut("  ", **both) == cut("", **both) == [""]


def test_the_stride_is_half_of_the_tokens_rounded_up(folders: dict[str, str]) -> None:
    text = " ".join(["spring", "water"] * 6)
    both = {"tokens": 5, "tokenizer": folders["pieces"]}
    assert cut(text, **both) == cut(text, **both, stride=3) != cut(text, **both, stride=2)


def test_a_word_of_more_tokens_than_a_passage_is_cut_between_characters(folders: dict[str, str]) -> None:
    both = {"tokens": 3, "tokenizer": folders["pieces"], "stride": 3}
    assert cut("spring abababab deep", **both) == ["spring ab", "aba", "bab", "deep"]
    faces = {"tokens": 2, "tokenizer": folders["bytes"], "stride": 2}
    assert tokens(folders["bytes"], ["\U0001f9ca"])[0] > 2
    assert cut("a \U0001f9ca\U0001f9ca b", **faces)[1:3] == ["\U0001f9ca", "\U0001f9ca"]  # a single character is never cut


def test_with_sentences_a_passage_takes_those_that_fit(folders: dict[str, str]) -> None:
    text = "Spring water. Deep water. Spring deeper. Deepest spring water deeper."
    both = {"tokenizer": folders["pieces"], "sentences": "rules"}
    assert tokens(folders["pieces"], ["Spring water.", "Deep water.", "Spring deeper.", "Deepest spring water deeper."]) == [
        3,
        3,
        4,
        6,
    ]
    assert cut(text, **both, tokens=7) == ["Spring water. Deep water.", "Spring deeper.", "Deepest spring water deeper."]
    assert cut(text, **both, tokens=5) == ["Spring water.", "Deep water.", "Spring deeper.", "Deepest spring water", "deeper."]
    long = "Spring water deep water deep water deep. Deep."
    assert cut(long, **both, tokens=5) == ["Spring water deep water deep", "water deep. Deep."]


@settings(max_examples=up_to(60))
@given(
    st.text(st.sampled_from(PROSE + " \n\u00a0\ufdfa\ud800ab"), max_size=120),
    st.integers(4, 12),
    st.integers(1, 12),
    st.sampled_from(["pieces", "bytes", "blanks"]),
    st.booleans(),
)
def test_no_passage_has_more_tokens_and_none_leaves_text_out(
    folders: dict[str, str], text: str, most: int, stride: int, kind: str, sentences: bool
) -> None:
    how: dict[str, Any] = {"sentences": "rules"} if sentences else {"stride": min(stride, most)}
    splitter = ft.Passages(tokens=most, tokenizer=folders[kind], **how)
    (spans,) = splitter.splitter()([text])
    words = [match.span() for match in WORD.finditer(text)]
    counts = tokens(folders[kind], [text[start:end].replace("\ud800", "\ufffd") for start, end in spans])
    for (start, end), count in zip(spans, counts, strict=True):
        assert count <= most or end - start == 1
    if not words:
        assert spans == [(0, 0)]
        return
    assert (spans[0][0], spans[-1][1]) == (words[0][0], words[-1][1])
    for (start, end), (following, following_end) in itertools.pairwise(spans):
        assert start < following
        assert end < following_end
        assert not text[end:following].strip()  # nothing between two of them but white space
        if sentences:
            assert following >= end


def test_the_stage_has_a_text_and_a_key_that_knows_the_tokenizer(folders: dict[str, str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["pieces"], tmp_path / "model"))
    stage = pipeline(f'passages(tokens=4, tokenizer="{folder}")')
    assert stage == ft.Passages(tokens=4, tokenizer=str(folder))
    assert pipeline(stage.text) == stage
    first = stage.key()
    file = folder / "tokenizer.json"
    state = json.loads(file.read_text())
    state["model"]["vocab"]["rain"] = len(PIECES)
    file.write_text(json.dumps(state))
    assert stage.key() != first
    run = ft.Run.of({"q": {"d": 1.0}}).with_(documents=_Documents())
    assert [doc.text for doc in stage(run)["q"].docs()] == ["deepest rain", "spring water deepest"]


def test_a_tokenizer_may_lie_in_the_folder_of_the_first_module(folders: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(folders["pieces"], tmp_path / "0_Transformer")
    (tmp_path / "modules.json").write_text(json.dumps([{"path": "0_Transformer"}]))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert cut("spring deeper", tokens=2, tokenizer=str(tmp_path), stride=2) == ["spring", "deeper"]


class _Documents:
    def docs(self, ids: Iterable[str]) -> list[ft.Doc]:
        return [ft.Doc(i, "spring water deepest rain") for i in ids]

"""How much of a text a model reads: by its positions where a length is chosen, and how many documents that cuts."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.tiny_models import CONFIGURATIONS, docs, text, tiny

import fontes as ft
from fontes import ChunkedEncoder, ColBERT, Doc, SentenceEncoder, Splade, TransformerEncoder
from fontes.core.errors import InputWarning
from fontes.neural.encoders import reading as module
from fontes.neural.encoders.architectures import configured_positions
from fontes.neural.encoders.reading import token_limit, token_limits
from fontes.neural.encoders.trainable import trainable

pytest.importorskip("torch")
pytest.importorskip("transformers")
EXACT = {"precision": "float32"}
LENGTHS = (3, 30, 31, 70, 0, 8)  # words, each a token; two special tokens come to them


@pytest.fixture
def short(tmp_path: Path) -> Any:
    """Gives a model of 512 positions whose tokenizer cuts to 32 tokens by itself."""

    def copied(kind: str) -> str:
        folder = Path(shutil.copytree(tiny(kind), tmp_path / kind))
        file = folder / "tokenizer_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "model_max_length": 32}))
        return str(folder)

    return copied


@pytest.fixture
def index(tmp_path: Path) -> ft.Index:
    return ft.Index.build(docs(*LENGTHS), tmp_path / "x.index")


@pytest.mark.parametrize("kind", ["bert", "nystromformer"])
def test_a_chosen_length_goes_by_the_positions_and_not_by_the_tokenizer(kind: str, short: Any) -> None:
    folder, given = short(kind), docs(100, 200, 3)
    whole = TransformerEncoder(tiny(kind), max_length=150, **EXACT).encode_documents(given)
    chosen = TransformerEncoder(folder, max_length=150, **EXACT)
    assert chosen.length == 150
    np.testing.assert_allclose(chosen.encode_documents(given), whole, atol=1e-6)
    np.testing.assert_allclose(SentenceEncoder(folder, max_length=150, **EXACT).encode_documents(given), whole, atol=1e-5)
    by_itself = TransformerEncoder(folder, **EXACT)
    with pytest.warns(InputWarning, match="its tokenizer cuts at 32 tokens, its positions allow 512; give max_length=512"):
        assert by_itself.length == 32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TransformerEncoder(tiny(kind), **EXACT).length == 512
        assert TransformerEncoder(folder, max_length=512, **EXACT).length == 512
    assert by_itself.fingerprint != TransformerEncoder(folder, max_length=2048, **EXACT).fingerprint


@pytest.mark.parametrize("kind", ["bert", "nystromformer"])
def test_what_is_trained_at_a_chosen_length_reads_as_much_afterwards(kind: str, short: Any, tmp_path: Path) -> None:
    model = trainable(TransformerEncoder(short(kind), max_length=150, **EXACT))
    assert model.max_seq_length == 150
    model.save_pretrained(str(tmp_path / "trained"), create_model_card=False)
    saved = SentenceEncoder(str(tmp_path / "trained"), **EXACT)
    assert saved.length == 150
    given = docs(100, 3)
    expected = TransformerEncoder(tiny(kind), **EXACT).encode_documents(given)
    np.testing.assert_allclose(saved.encode_documents(given), expected, atol=1e-5)
    assert trainable(TransformerEncoder(short("roberta"), **EXACT)).max_seq_length == 32


@each("kind", [kind for kind in CONFIGURATIONS if kind not in ("reformer", "t5")])
def test_a_folder_says_how_many_positions_its_model_has(kind: str) -> None:
    assert configured_positions(Path(tiny(kind))) == TransformerEncoder(tiny(kind), **EXACT)._model.limit


@pytest.mark.parametrize("kind", ["bert", "distilbert"])  # read from its files alone, and by sentence-transformers
def test_tokens_of_whole_documents_are_counted_with_special_tokens_and_prompt(kind: str) -> None:
    given = docs(*LENGTHS)
    expected = [length + 2 for length in LENGTHS]
    transformer = TransformerEncoder(tiny(kind), max_length=10, **EXACT)
    sentence = SentenceEncoder(tiny(kind), max_length=10, **EXACT)
    assert transformer.document_lengths(given) == sentence.document_lengths(given) == expected
    for encoder in (transformer, sentence):
        prompted = encoder.with_(document_prompt="the spring ")
        assert prompted.document_lengths(given) == [length + 2 for length in expected]


def test_documents_with_more_tokens_than_are_read_are_cut(index: ft.Index) -> None:
    encoder = TransformerEncoder(tiny("bert"), max_length=32, **EXACT)
    read = token_limit(encoder, index)
    assert read is not None
    assert (read.tokens, read.documents, read.cut, read.sampled) == (32, 6, 2, False)
    assert str(read) == "reads 32 tokens of a text and cuts 2 of 6 documents (33.3%)"
    windows = ChunkedEncoder(encoder, window=31, stride=31)
    assert windows.document_lengths([Doc("a", text(70)), Doc("b", "")]) == [33, 2]
    assert (read := token_limit(windows, index)) is not None
    assert (read.tokens, read.cut) == (32, 2)
    assert (read := token_limit(windows.with_(window=30, stride=30), index)) is not None
    assert read.cut == 0
    assert token_limit(TransformerEncoder(tiny("bert"), **EXACT), index).cut == 0  # type: ignore[union-attr]
    assert token_limits(index.bm25() % 3 >> ft.to_documents()) == []
    assert [read.cut for read in token_limits(index.dense(encoder) % 3)] == [2]


def test_late_and_sparse_models_tell_it_as_well(index: ft.Index, tmp_path: Path) -> None:
    from support.tiny_splade import masked_lm

    colbert = ColBERT(tiny("bert"), document_length=33, **EXACT)
    for doc in docs(*LENGTHS):
        assert colbert.document_lengths([doc]) == [len(colbert.with_(document_length=500)._model.document_ids(doc.text))]
    lengths = colbert.document_lengths(docs(*LENGTHS))
    assert (read := token_limit(colbert, index)) is not None
    assert (read.tokens, read.cut) == (33, sum(length > 33 for length in lengths))
    splade = Splade(str(masked_lm(tmp_path / "splade")), max_length=30, document_prompt="the ", **EXACT)
    whole = splade.with_(document_prompt="")
    assert splade.document_lengths(docs(9)) == [whole.document_lengths(docs(9))[0] + 1]
    assert (read := token_limit(splade, index)) is not None
    assert (read.tokens, read.cut) == (30, sum(length > 30 for length in splade.document_lengths(docs(*LENGTHS))))


def test_of_a_large_index_documents_are_sampled_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 4)
    monkeypatch.setattr("fontes.index.facts.SAMPLE", 4)
    monkeypatch.setattr("fontes.index.facts.BATCH", 3)
    index = ft.Index.build([Doc(f"{n}", text(40 if n % 3 == 0 else 3)) for n in range(10)], tmp_path / "x.index")
    read = token_limit(TransformerEncoder(tiny("bert"), max_length=32, **EXACT), index)
    assert read is not None
    assert (read.documents, read.cut, read.share) == (4, 4, 1.0)  # 0, 3, 6 and 9
    assert str(read) == "reads 32 tokens of a text and cuts 4 of 4 sampled documents (100.0%)"


def test_encode_says_how_many_tokens_were_read_and_how_many_documents_were_cut(index: ft.Index, fontes: Any) -> None:
    command = ["encode", index.path, f'transformer_encoder("{tiny("bert")}", max_length=32)', "--precision", "float32"]
    code, output, _ = fontes(*command)
    assert code == 0
    assert "the model reads 32 tokens of a text and cuts 2 of 6 documents (33.3%)" in output
    facts = json.loads(fontes(*command, "--json")[1])
    assert facts["reads"] == {"tokens": 32, "documents": 6, "cut": 2, "share": 0.333333}

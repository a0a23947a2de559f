"""Models of random weights and a small size, with a tokenizer of a few words, for the tests of encoders."""

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fontes import Doc

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

FOLDER = tempfile.TemporaryDirectory()
SENTENCE = "the spring of a river rises in limestone hills and runs to sea while wells need pumps for deep ground water"
WORDS = SENTENCE.split(" ")
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
WORDY = {"vocab_size": 40, **SIZES}
NYSTROM = {**WORDY, "max_position_embeddings": 512, "segment_means_seq_len": 64, "num_landmarks": 8}
REFORMER = {
    "vocab_size": 40,
    "hidden_size": 32,
    "attention_head_size": 16,
    "num_attention_heads": 2,
    "feed_forward_size": 64,
    "attn_layers": ["local", "lsh"],
    "lsh_attn_chunk_length": 16,
    "local_attn_chunk_length": 16,
    "axial_pos_shape": (16, 16),
    "axial_pos_embds_dim": (16, 16),
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "is_decoder": False,
}
CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "bert": lambda: transformers.BertConfig(**WORDY, max_position_embeddings=512),
    "roberta": lambda: transformers.RobertaConfig(**WORDY, max_position_embeddings=402, pad_token_id=0, type_vocab_size=1),
    "distilbert": lambda: transformers.DistilBertConfig(vocab_size=40, dim=32, n_layers=2, n_heads=2, hidden_dim=64),
    "longformer": lambda: transformers.LongformerConfig(
        **WORDY, max_position_embeddings=514, attention_window=[16, 16], pad_token_id=0
    ),
    "nystromformer": lambda: transformers.NystromformerConfig(**NYSTROM),
    "reformer": lambda: transformers.ReformerConfig(**REFORMER),
    "t5": lambda: transformers.T5Config(vocab_size=40, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2),
}


@cache
def tiny(kind: str) -> str:
    """A folder with a model of one of CONFIGURATIONS, its weights random, and a tokenizer of WORDS."""
    folder = Path(FOLDER.name) / kind
    torch.manual_seed(1)
    model = transformers.AutoModel.from_config(CONFIGURATIONS[kind]())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.3)  # far from the even attention of fresh weights
    model.save_pretrained(folder)
    save_tokenizer(folder, [*MARKS, *WORDS], model_max_length=100_000)
    return str(folder)


SAVED: dict[object, Path] = {}


def saved_once(key: object, save: Callable[[Path], object], folder: Path) -> Path:
    """A copy in `folder` of what `save` writes to a folder, which it does once for each key."""
    if key not in SAVED:
        kept = Path(FOLDER.name) / f"saved-{len(SAVED)}"
        save(kept)
        SAVED[key] = kept
    torch.manual_seed(1)  # what comes after is the same whether it was saved now or before
    return Path(shutil.copytree(SAVED[key], folder, dirs_exist_ok=True))


def save_tokenizer(folder: Path, vocabulary: list[str], strip_accents: bool | None = None, **settings: Any) -> Any:
    """BERT's tokenizer over a vocabulary, which has MARKS, saved in a folder; it knows each of the vocabulary's words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, ids[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    marks = {f"{mark[1:-1].lower()}_token": mark for mark in MARKS}
    saved = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks, **settings)
    saved.save_pretrained(folder)
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    words = [word for word in vocabulary if word.isalpha()]
    assert loaded(" ".join(words), add_special_tokens=False)["input_ids"] == [ids[word] for word in words]
    return loaded


def text(words: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


def docs(*lengths: int) -> list[Doc]:
    return [Doc(f"d{i}", text(length, i)) for i, length in enumerate(lengths)]


def weights(folder: Path) -> dict[str, Any]:
    """The tensors of a model in a folder."""
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))

"""A T5 of a few random weights, with a tokenizer of a few words."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = "water spring geyser rock hot cold river lake rain storm well cave mountain stream flow dye heat pipe steam glacier"
WORDS = [*TEXT.split(), "true", "false", "query", "document", "relevant", "příliš", "žluťoučký", "kůň"]


def save_t5(folder: Path, single: bool = True) -> Path:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    characters = sorted({*"".join(WORDS), *"QueryDocumentRelevant:.-▁"})
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((c, -9.0) for c in characters)]
    kept = WORDS if single else [word for word in WORDS if word != "false"]
    pieces += [(f"▁{word}", -3.0) for word in [*kept, "Query:", "Document:", "Relevant:"]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Replace(" {2,}", " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    ).save_pretrained(folder)
    torch.manual_seed(5)
    config = transformers.T5Config(
        vocab_size=len(pieces),
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder

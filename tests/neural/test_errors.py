"""What errors of models, vectors and rerankers say: the model, file, parameter or document at fault, and what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.counting_terms import CountingTerms
from support.each import each
from support.errors import check_error
from support.hashed_encoder import Hashed, made_docs
from support.saved_models import WIDTH, change, decoder, head, parts, save_modules, save_pairs, transformer
from support.static_models import model2vec, table
from support.tiny_colbert import QUERIES, colbert_checkpoint, documents, tiny_colbert
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_models import tiny
from support.tiny_splade import splade, write
from support.tiny_t5 import save_t5

import fontes as ft
from fontes import ChunkedEncoder, Doc, Index, SentenceEncoder, Topic, TransformerEncoder
from fontes.core import FontesError, InputError, MissingExtraError, ParameterError, PipelineError, expression
from fontes.core.part import Part
from fontes.neural import LateReranker, Splade
from fontes.neural.encoders.trainable import trainable
from fontes.neural.late.colbert import ColBERT
from fontes.neural.late.encode import encode_late
from fontes.neural.late.maxsim import best_tokens, maxsim
from fontes.neural.late.residual import check_nbits
from fontes.neural.models import hub as models
from fontes.neural.models.base import check_fields
from fontes.neural.models.compute import in_batches, prepare_module
from fontes.neural.stored import encoder_from

EXACT: dict[str, Any] = {"precision": "float32", "device": "cpu"}
TEXTS = {topic: text for topic, text in QUERIES.items() if text}


class Tiny:
    """Indexes and models of the tables, each created when the first row asks for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def index(self) -> Index:
        index = Index.build(made_docs(20), self.folder / "vectors.index", analyzer="whitespace")
        index.encode(Hashed())
        index.encode(CountingTerms())
        return index

    @cached_property
    def bare(self) -> Index:
        return Index.build([("a", "red fox")], self.folder / "bare.index")

    @cached_property
    def colbert(self) -> ColBERT:
        return tiny_colbert(self.folder / "colbert")

    @cached_property
    def late(self) -> Index:
        index = Index.build(documents(20), self.folder / "late.index")
        encode_late(index, self.colbert, nbits=2)
        return index

    @cached_property
    def checkpoint(self) -> str:
        colbert_checkpoint(self.folder / "checkpoint")
        return str(self.folder / "checkpoint")

    @cached_property
    def cross_encoder(self) -> Path:
        return save_cross_encoder(self.folder / "cross")

    @cached_property
    def splade(self) -> Path:
        return splade(self.folder / "splade")

    @cached_property
    def sentences(self) -> Path:
        folder = self.folder / "sentences"
        return save_modules(folder, [transformer(folder), parts.Pooling(WIDTH)], prompts={"sts": "of ", "query": "the "})

    @cached_property
    def pairs(self) -> Path:
        folder = self.folder / "pairs"
        prompts = {"web": "the ground ", "sts": "river "}
        return save_pairs(folder, [transformer(folder), parts.Pooling(WIDTH), head()], prompts=prompts)

    def dense(self, **changes: Any) -> object:
        return self.index.dense(changes.pop("encoder", Hashed())).with_(**changes).search("w1")

    def ranked(self) -> ft.Run:
        return (self.late.bm25() % 20)(TEXTS)


@pytest.fixture(scope="module")
def tiny_things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiny]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FONTES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Tiny(tmp_path_factory.mktemp("errors"))


def out_of_memory(batch: Any) -> Any:
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")


@dataclass(frozen=True)
class Undefined(Hashed):
    """An encoder whose queries are not numbers."""

    fingerprint = Hashed().fingerprint

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), self.dim), np.nan, np.float32)


@dataclass(frozen=True)
class Checked(Part):
    """A part whose fields say what they may be."""

    depth: int | None = field(default=None, metadata={"least": 2})
    kind: str = field(default="a", metadata={"choices": ("a", "b")})


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda t: models.library("no_such_library", "encoding"), MissingExtraError, "no_such_library", "'fontes[neural]'"),
        (lambda t: models.device("gpu"), ParameterError, "'gpu'", ""),
        (lambda t: models.device("cuda:99"), ParameterError, "no device 'cuda:99'", ""),
        (lambda t: prepare_module(None, lambda m: None, precision="half"), ParameterError, "'half'", "auto, float32"),
        (lambda t: in_batches([700, 2], 1000, out_of_memory), FontesError, "700 tokens", "a smaller max_length"),
        (lambda t: in_batches([1], 0, lambda batch: batch), ParameterError, "not 0", "at least one token"),
        (lambda t: check_fields(Checked(1)), ParameterError, "depth … not 1", "from 2 up"),
        (lambda t: check_fields(Checked(kind="c")), ParameterError, "kind … not 'c'", "a, b"),
        *(
            (lambda t, stored=stored: encoder_from(stored), ParameterError, name, "encode again")
            for stored, name in (
                ("old_encoder('m')", "old_encoder"),
                ('sentence_encoder("m", colour=3)', "colour"),
                ({"class": "SentenceEncoder"}, "SentenceEncoder"),
                ("(", "("),
            )
        ),
        # dense vectors
        (lambda t: t.bare.dense(Hashed()).search("fox"), ParameterError, "bare.index … Hashed(", "fontes encode … MODEL"),
        (lambda t: t.dense(encoder=Hashed(salt="other")), ParameterError, f"{Hashed(salt='other')!r} … {Hashed()!r}", ""),
        (lambda t: t.index.dense(Hashed(dim=77), dtype="float16").search("w1"), ParameterError, "no float16 vectors", ""),
        (lambda t: t.dense(encoder=Undefined()), ParameterError, "Undefined", "not finite"),
        (lambda t: t.index.dense(Hashed(), dims=33).search("w1"), ParameterError, "dims is 33", "32 dimensions only"),
        (lambda t: t.index.dense(Hashed()).explain("w1", "nowhere"), InputError, "nowhere", ""),
        (lambda t: t.index.encode(3), ParameterError, "not 3", "the name of a sentence encoder"),
        (lambda t: t.bare.encode(Hashed(), dtype="int4"), ParameterError, "dtype … 'int4'", "float32, float16, int8, rabitq4"),
        (lambda t: t.bare.encode(Hashed(dim=7), dtype="rabitq1"), ParameterError, "rabitq1 … 7", "store them as"),
        (lambda t: t.bare.encode(CountingTerms(), dtype="int8"), ParameterError, "dtype … CountingTerms", "for dense vectors"),
        *(
            (lambda t, c=changes: t.dense(**c), ParameterError, names, remedy)
            for changes, names, remedy in (
                ({"k": 0}, "k … 0", "from 1 up"),
                ({"k": 1.5}, "k … 1.5", "from 1 up"),
                ({"nprobe": 3}, "nprobe … ", "HNSW has ef_search"),
                ({"algorithm": "hnsw", "ef_search": 0}, "ef_search … 0", "from 1 up"),
                ({"algorithm": "hnsw", "search_k": 5}, "search_k", "has ef_search"),
                ({"algorithm": "nonsense"}, "'nonsense'", ""),
                ({"algorithm": "annoy"}, "'annoy'", ""),
                ({"algorithm": "annoy:0"}, "'annoy:0'", ""),
                ({"algorithm": "annoy:1000000000"}, "'annoy:1000000000'", ""),
                ({"algorithm": "IVF4096,Flat"}, "'IVF4096,Flat' of 20 vectors (", ""),
                ({"algorithm": "Flat", "ef_search": 4}, "'Flat' … ef_search", ""),
                ({"algorithm": "HNSW1"}, "'HNSW1'", "2 to 1,024 neighbors"),
                ({"algorithm": "HNSW0,Flat"}, "'HNSW0,Flat'", "2 to 1,024 neighbors"),
                ({"algorithm": "HNSW4096"}, "'HNSW4096'", "2 to 1,024 neighbors"),
                ({"algorithm": "OPQ2,IVF2,PQ2x2", "k": 5}, "20 vectors (its OPQ", "take one without OPQ"),
            )
        ),
        # parts in pipelines
        *(
            (lambda t, s=stage: expression.pipeline(s, t.index)("old well"), ParameterError, names, remedy)
            for stage, names, remedy in (
                ('dense(cross_encoder("m"))', "encoder … not cross_encoder", "the name of a sentence encoder"),
                ("dense(3)", "encoder … not 3", "the name of a sentence encoder"),
                ('late(sentence_encoder("m"))', "colbert … not sentence_encoder", "the name of a checkpoint"),
            )
        ),
        # learned sparse weights
        (
            lambda t: t.index.splade(CountingTerms(fingerprint="another")).search("w1"),
            ParameterError,
            "of CountingTerms(",
            "only those of CountingTerms() … --sparse MODEL",
        ),
        (
            lambda t: t.bare.splade(CountingTerms()).search("b"),
            ParameterError,
            "bare.index … CountingTerms() (fing",
            "index.encode",
        ),
        (lambda t: t.index.splade(Hashed()).search("w1"), ParameterError, "encoder … not Hashed", "learned sparse encoder"),
        (lambda t: t.index.splade(CountingTerms(), k=0).search("w1"), ParameterError, "k … 0", "from 1 up"),
        *(
            (
                lambda t, w=weights: t.index.splade(CountingTerms())(ft.Topics([Topic("1", "", weights=w)])),
                InputError,
                names,
                "",
            )
            for weights, names in (
                ({"t03": 1.0, "hot": 1.0}, "topic '1', term 'hot' … give the topic a text"),
                ({"t03": float("nan")}, "topic '1', term 't03' … nan"),
            )
        ),
    ],
)
def test_vectors_and_their_search(
    tiny_things: Tiny, call: Callable[[Tiny], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tiny_things), error, names, remedy)


def test_annoy_names_the_encoder_of_vectors_that_have_not_length_1(tiny_things: Tiny) -> None:
    pytest.importorskip("annoy")
    encoder = Hashed(length=None)
    tiny_things.bare.encode(encoder)
    check_error(
        lambda: tiny_things.bare.dense(encoder, algorithm="annoy:5").search("fox"),
        ParameterError,
        "Annoy … encoder",
        "length 1",
    )


def bert(**settings: Any) -> TransformerEncoder:
    return TransformerEncoder(tiny("bert"), **{**EXACT, **settings})


def encoded(encoder: Any) -> object:
    return encoder.encode_queries(["a river"])


def sentences(folder: Path | str, **settings: Any) -> object:
    return encoded(SentenceEncoder(folder, **{**EXACT, "normalize": False, **settings}))


@each(
    ("call", "error", "names", "remedy"),
    [
        (
            lambda t: encoded(TransformerEncoder(tiny("t5"), attention="favor+")),
            ParameterError,
            "favor+ … not T5",
            "BERT-shaped",
        ),
        (lambda t: encoded(bert(pooling="sum")), ParameterError, "pooling … not 'sum'", "cls, mean, max"),
        (lambda t: encoded(bert(max_length=2)), ParameterError, "max_length … not 2", "from 3 up"),
        (lambda t: encoded(bert(attention="sparse")), ParameterError, "attention … not 'sparse'", "model, favor+"),
        (lambda t: encoded(bert(features=0)), ParameterError, "features … not 0", "from 1 up"),
        (lambda t: encoded(bert(batch_size=0)), ParameterError, "batch_size … not 0", "from 1 up"),
        (lambda t: encoded(bert(precision="int4")), ParameterError, "precision … not 'int4'", "auto, float32"),
        (lambda t: encoded(bert(max_length=513)), ParameterError, "max_length is 513 … bert", "512 tokens only"),
        (lambda t: bert(max_length=513).dim, ParameterError, "max_length is 513 … bert", "512 tokens only"),
        (lambda t: trainable(bert(max_length=513)), ParameterError, "max_length is 513 … bert", "512 tokens only"),
        (
            lambda t: encoded(TransformerEncoder(tiny("distilbert"), precision="int8", device="cpu")),
            ParameterError,
            'precision "int8" … DistilBertModel',
            'precision="auto"',
        ),
        (lambda t: sentences(t.sentences, max_length=600), ParameterError, "max_length is 600 … sentences", "positions for"),
        (lambda t: sentences(t.sentences, query_prompt_name="stss"), ParameterError, "'stss'", "did you mean 'sts'"),
        (lambda t: sentences(t.sentences, dims=33), ParameterError, "dims is 33 … sentences", "32 dimensions only"),
        # windows
        (lambda t: ChunkedEncoder(Hashed()).encode_documents([Doc("1", "a b")]), ParameterError, "several vectors", "'mean'"),
        (lambda t: ChunkedEncoder(Hashed(), unit="tokens").windows("a b"), ParameterError, "Hashed", "tokens"),
        *(
            (lambda t, c=changes: ChunkedEncoder(Hashed(), **c).encode_documents_parts([]), ParameterError, names, remedy)
            for changes, names, remedy in (
                ({"window": 0}, "window", "1 or more"),
                ({"window": 5, "stride": 6}, "stride … 5, 6", "no gaps"),
                ({"unit": "lines"}, "unit … not 'lines'", "words, tokens"),
                ({"pooling": "sum"}, "pooling … not 'sum'", "max, mean"),
            )
        ),
        # what cannot be trained
        (lambda t: trainable(ChunkedEncoder(bert())), ParameterError, "windows", "train the encoder inside"),
        (lambda t: trainable(bert(normalize=False)), ParameterError, "normalize=False", "leave … out"),
        (lambda t: trainable("bert"), ParameterError, "'bert'", "use sentence_encoder"),
        # token vectors
        (
            lambda t: t.late.late(ColBERT(t.colbert.name_or_path, document_length=12))(TEXTS),
            ParameterError,
            "late.index … document_length=12",
            "2 bits … fontes encode",
        ),
        (lambda t: t.late.late(t.colbert, nbits=4)(TEXTS), ParameterError, "4 bits", ""),
        *(
            (lambda t, c=changes: t.late.late(t.colbert).with_(**c)(TEXTS), ParameterError, next(iter(changes)), "")
            for changes in ({"k": 0}, {"algorithm": "flat"}, {"nprobe": 0}, {"candidates": 3})
        ),
        (lambda t: encode_late(t.late, t.colbert, nbits=8), ParameterError, "nbits … 8", "1, 2 or 4"),
        (lambda t: encode_late(t.late, t.colbert, centroids=0), ParameterError, "centroids … 0", "1 or more"),
        (lambda t: check_nbits(3), ParameterError, "nbits … not 3", "16 or 32 for whole vectors"),
        (lambda t: t.late.encode(t.colbert), ParameterError, "colbert", "fontes.neural.encode_late(index, colbert)"),
        *(
            (lambda t, d=dim, s=score: s(np.ones((2, d), np.float32), np.ones((3, 24), np.float32)), ParameterError, names, "")
            for dim in (23, 25)
            for score in (lambda query, vectors: maxsim(query, vectors, np.array([0, 3])), best_tokens)
            for names in [f"query's vectors have {dim} dimensions, the documents' have 24"]
        ),
        (
            lambda t: ColBERT(t.checkpoint, dim=128, query_length=12, document_length=20, device="cpu").width,
            ParameterError,
            "16 dimensions, not 128",
            "",
        ),
        (lambda t: encoded(ColBERT(t.checkpoint, device="cpu")), ParameterError, "document_length is 220", "64 positions"),
        (lambda t: ColBERT(t.checkpoint, query_length=3).settings, ParameterError, "query_length", "4 or more"),
        (lambda t: encoded(ColBERT("./nowhere")), InputError, "no ColBERT model at … nowhere", ""),
        (lambda t: encoded(ColBERT("colbert.dnn")), InputError, "colbert.dnn", "save it"),
        *(
            (lambda t, p=pool: t.colbert.with_(pool=p).encode_documents([Doc("d", "x")]), ParameterError, "pool", "1 or more")
            for pool in (0, 0.5, float("nan"), "2")
        ),
        (lambda t: LateReranker(t.colbert, 4)(t.ranked()), ParameterError, "no token vectors of 4 bits", ""),
        (lambda t: LateReranker(t.colbert, 2)(t.ranked().with_(documents=None)), ParameterError, "belong to no index", ""),
        (lambda t: LateReranker(t.colbert)(t.ranked().with_(documents=None)), InputError, "LateReranker", "documents=index"),
        (lambda t: LateReranker(t.colbert, 0).explain("old well", "d001"), PipelineError, "'d001'", "pass index.doc('d001')"),
    ],
)
def test_encoders_and_their_parameters(
    tiny_things: Tiny, call: Callable[[Tiny], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tiny_things), error, names, remedy)


@dataclass(frozen=True)
class Lengths(ft.neural.Reranker):
    """Scores by the length of the document."""

    fingerprint = "lengths"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return np.array([len(document) for _, document in pairs], np.float32)


class Texts:
    """Documents in memory."""

    def docs(self, ids: Any) -> list[Doc]:
        return [Doc(doc_id, f"text of {doc_id}") for doc_id in ids]


RUN = ft.Run.of({"q1": {"a": 5.0}, "q2": {"b": 2.0}}, ft.Topics.of({"q1": "hot", "q2": "rain"})).with_(documents=Texts())
INFINITE = ft.Run.of({"q1": {"a": float("inf"), "b": 1.0}}, ft.Topics.of({"q1": "y"})).with_(documents=Texts())
PAIRS = [("water", "hot water")]


def cross(folder: Path | str, **parameters: Any) -> object:
    return ft.CrossEncoder(folder, **{**EXACT, **parameters}).scores(PAIRS)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda t: Lengths()(RUN.with_(documents=None)), InputError, "Lengths", "run.with_(documents=index)"),
        (
            lambda t: Lengths()(RUN.with_(topics=ft.Topics.of({"q1": "x", "q2": " "}))),
            InputError,
            "topic 'q2' … no text",
            "read_run(path, topics)",
        ),
        *(
            (lambda t, w=weight: Lengths().interpolate(w)(RUN), ParameterError, f"weight … {weight!r}", "between 0 and 1")
            for weight in (-0.1, 1.1, "0.5", True)
        ),
        (lambda t: Lengths().interpolate(0.5)(INFINITE), InputError, "topic 'q1', document 'a': … inf", ""),
        (lambda t: ft.MonoT5(str(t.cross_encoder)).scores(PAIRS), InputError, "cross … BertForSequenceClassification", "T5"),
        (lambda t: cross(t.cross_encoder, score="raw"), ParameterError, "score … not 'raw'", "logit, sigmoid, model"),
        (lambda t: cross(t.cross_encoder, batch_size=0), ParameterError, "batch_size … 0", "whole number"),
        (lambda t: cross(t.cross_encoder, max_length=-1), ParameterError, "max_length … -1", "whole number"),
        (lambda t: cross(t.cross_encoder, max_length=64), ParameterError, "max_length … 64", "at most 48 tokens"),
        (lambda t: cross(t.cross_encoder, precision="int3"), ParameterError, "precision … 'int3'", "one of"),
        (lambda t: cross(t.pairs, prompt_name="wep"), ParameterError, "'wep'", "there are sts, web"),
    ],
)
def test_rerankers_and_their_runs(
    tiny_things: Tiny, call: Callable[[Tiny], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tiny_things), error, names, remedy)


def shortened(name: str, size: int = 100) -> Callable[[Path], Path]:
    """The model "bert" with the beginning of a file alone."""

    def save(folder: Path) -> Path:
        shutil.copytree(tiny("bert"), folder / "model")
        (folder / "model" / name).write_bytes((Path(tiny("bert")) / name).read_bytes()[:size])
        return folder / "model"

    return save


def of_no_library(folder: Path) -> Path:
    write(folder / "config.json", {"model_type": "no-such-model"})
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def attention(content: str) -> Callable[[Path], Path]:
    """A model with FAVOR+ that describes its attention so."""

    def save(folder: Path) -> Path:
        with models.quiet():
            trainable(bert(attention="favor+", features=16)).save_pretrained(str(folder / "model"), create_model_card=False)
        (folder / "model" / "fontes.json").write_text(content)
        return folder / "model"

    return save


def static(**broken: Any) -> Callable[[Path], str]:
    return lambda folder: model2vec(folder / "model", {}, **broken)


def with_modules(*after: Callable[[], Any]) -> Callable[[Path], Path]:
    """A model whose transformer is followed by these modules."""
    return lambda folder: save_modules(folder / "m", [transformer(folder / "m"), *(module() for module in after)])


def router() -> Any:
    return parts.Router({"query": [parts.Dense(WIDTH, 10)], "doc": [parts.Dense(WIDTH, 10)]})


def of_pairs(change_it: Callable[[Path], object] | None = None) -> Callable[[Path], Path]:
    def save(folder: Path) -> Path:
        saved = save_pairs(folder / "m", [transformer(folder / "m"), parts.Pooling(WIDTH), head()])
        if change_it:
            change_it(saved)
        return saved

    return save


def module_named(number: int, kind: str) -> Callable[[Path], object]:
    """Give a module another type."""

    def rename(folder: Path) -> None:
        modules = json.loads((folder / "modules.json").read_text())
        modules[number]["type"] = kind
        write(folder / "modules.json", modules)

    return rename


SPARSE_POOLING = "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling"


@each(
    ("save", "names", "remedy"),
    [
        *(
            (attention(content), "model/fontes.json is", "")
            for content in (
                "{",
                "[]",
                '{"attention": "os.system", "features": 1}',
                '{"attention": "model"}',
                '{"attention": "model", "features": "all"}',
                '{"attention": "model", "features": 1, "code": "a.py"}',
            )
        ),
        (static(embeddings=np.zeros((3,), np.float32)), "embeddings … (3,)", "tokens times dimensions"),
        (static(embeddings=table(9)), "tokenizer has the token 13 … 9 tokens", ""),
        (static(mapping=np.arange(14) + 1), "mapping … 14 embeddings", ""),
        (static(weights=np.ones(3, np.float32)), "weights … (3,)", "one for each of its 14 tokens"),
        (with_modules(lambda: parts.Pooling(WIDTH), router), "task 'document'", "'query', 'doc'"),
        (with_modules(lambda: parts.LSTM(WIDTH, 8), lambda: parts.Pooling(16)), "Transformer + LSTM + Pooling", ""),
        (lambda folder: save_pairs(folder / "m", decoder(folder / "m")), "LogitScore", "cross_encoder(…) reads it"),
        (of_pairs(module_named(1, SPARSE_POOLING)), "SpladePooling", "splade_encoder(…)"),
    ],
)
def test_models_that_give_no_vectors(
    tmp_path: Path, tiny_things: Tiny, save: Callable[[Path], Path | str], names: str, remedy: str
) -> None:
    folder = save(tmp_path)
    check_error(lambda: sentences(folder), InputError, names, remedy)


@each("save", [*(shortened(name) for name in ("config.json", "model.safetensors", "tokenizer.json")), of_no_library])
def test_damaged_models_are_named_by_both_encoders(tmp_path: Path, save: Callable[[Path], Path]) -> None:
    folder = save(tmp_path)
    for encoder in (TransformerEncoder(str(folder)), SentenceEncoder(str(folder))):
        message = check_error(lambda encoder=encoder: encoded(encoder), InputError, f"the model {folder}: ")
        assert "cannot read" in message or "finds no tokenizer" in message


@each(
    ("save", "names"),
    [
        (of_pairs(lambda m: change(m / "2_Dense/config.json", module_output_name="sentence_embedding")), "Pooling + Dense"),
        (of_pairs(lambda m: change(m / "2_Dense/config.json", out_features=3)), "has 3 labels"),
        (of_pairs(module_named(2, "someones_package.Head")), "someones_package.Head"),
        (
            of_pairs(lambda m: change(m / "config_sentence_transformers.json", model_type="SentenceTransformer")),
            "BertModel, which has no layer for scores",
        ),
        (lambda folder: save_cross_encoder(folder, architecture="BertModel"), "its architecture is BertModel"),
        (lambda folder: save_cross_encoder(folder, labels=3), "has 3 labels"),
    ],
)
def test_models_that_give_no_scores_are_named_before_they_are_loaded(
    tmp_path: Path, save: Callable[[Path], Path], names: str
) -> None:
    folder = save(tmp_path)
    for use in (lambda: ft.CrossEncoder(folder, device="cpu").check_needs(), lambda: cross(folder)):
        check_error(use, InputError, f"{folder} … {names}")


def test_activations_and_words_of_rerankers_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    folder = of_pairs(lambda m: change(m / "config_sentence_transformers.json", activation_fn="torch.hub.get_dir"))(tmp_path)
    check_error(lambda: cross(folder, score="model"), InputError, "torch.hub.get_dir", "")
    t5 = save_t5(tmp_path / "t5", single=False)
    check_error(lambda: ft.MonoT5(str(t5), device="cpu").scores(PAIRS), InputError, "'false' is not one token", "")


TRANSFORMER, POOLING = (
    {"idx": n, "name": str(n), "path": "", "type": f"x.{k}"} for n, k in enumerate(("Transformer", "Pooling"))
)


@each(
    ("modules", "router_config", "names"),
    [
        ([TRANSFORMER, POOLING], {}, "modules are Transformer, Pooling, not a transformer and SpladePooling"),
        ([{**TRANSFORMER, "path": "../elsewhere"}, POOLING], {}, "outside of the model's folder"),
        (
            [{**TRANSFORMER, "type": "x.Router"}],
            {"types": {"q": "x.Transformer"}, "structure": {"query": ["q"], "document": []}},
            "queries through Transformer … SparseStaticEmbedding",
        ),
        *((modules, {}, "modules.json is damaged") for modules in ([{"type": "x.Transformer"}], {"a": 1}, [1], 7)),
    ],
)
def test_modules_that_make_no_splade_model_are_named(
    tmp_path: Path, tiny_things: Tiny, modules: object, router_config: dict[str, Any], names: str
) -> None:
    folder = Path(shutil.copytree(tiny_things.splade, tmp_path / "m"))
    write(folder / "modules.json", modules)
    write(folder / "router_config.json", router_config)
    check_error(lambda: encoded(Splade(folder)), InputError, names)


def test_splade_names_a_model_that_is_none_and_a_length_beyond_its_positions(tmp_path: Path, tiny_things: Tiny) -> None:
    no_head = "masked language model, whose head SPLADE needs: its"
    check_error(
        lambda: encoded(Splade(tiny("bert"), **EXACT)), InputError, f"bert is not a {no_head} weights … cls.predictions"
    )
    check_error(lambda: encoded(Splade(tiny("t5"), **EXACT)), InputError, f"t5 is not a {no_head} architecture")
    check_error(lambda: encoded(Splade(tmp_path / "nowhere")), InputError, "no SPLADE model at … nowhere")
    check_error(
        lambda: encoded(Splade(splade(tmp_path / "n", {"pooling_strategy": "mean"}))), InputError, "no pooling 'mean' of 'relu'"
    )
    check_error(
        lambda: encoded(Splade(tiny_things.splade, max_length=65, **EXACT)),
        ParameterError,
        "max_length is 65",
        "64 tokens only",
    )

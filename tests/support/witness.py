"""Pipelines of every kind over collections that are always there, and the SHA-256 of what each of them writes.

Scores of neural models differ by rounding between processors: of their runs some figures of each topic are kept instead, which
are compared with a tolerance. Run as a program, it writes all of them to a file, or to witness.json.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import fontes as ft
from fontes.core.part import indexes_of, walk

RECORD = Path(__file__).with_name("witness.json")
Stages = Mapping[str, Any]
Pipelines = dict[str, Callable[[], bytes]]

HARBOUR = ft.datasets.samples.harbour
STORIES = list(HARBOUR.corpus)
CAUSAL, CLAIMS, POSTS = HARBOUR.causal.topics(), HARBOUR.claims.topics(), HARBOUR.posts.topics()
SAID = ft.Topics(  # without the automatic rewrites of the harbour
    replace(topic, turns=tuple(replace(turn, automatic="") for turn in topic.turns))
    for topic in HARBOUR.conversations.topics().values()
)
CONVERSATIONS = ft.Topics(
    replace(topic, turns=tuple(replace(turn, automatic=f"Quenmouth: {turn.manual}") for turn in topic.turns))
    for topic in SAID.values()
)
CZECH = [
    ft.Doc("c1", "Loď připlula do přístavu za silné bouře a námořníci ji přivázali k molu.", "Bouře v přístavu"),
    ft.Doc("c2", "V přístavech se opravují lodě, které poškodila bouře.", "Opravy lodí"),
    ft.Doc("c3", "Námořník vyprávěl o moři, o lodích a o dlouhé cestě domů.", "Vyprávění"),
    ft.Doc("c4", "Most přes řeku uzavřeli, protože v něm našli trhlinu.", "Uzavřený most"),
    ft.Doc("c5", "Řeka se po dešti vylila a mosty zůstaly pod vodou.", "Povodeň"),
]
ASKED = ft.Topics([ft.Topic("1", "bouře nad přístavem"), ft.Topic("2", "lodě námořníků"), ft.Topic("3", "proč zavřeli mosty?")])
STRIKE = [
    ft.Doc("effect", "The grain rotted because of the dock strike."),
    ft.Doc("cause", "The dock strike began because wages were cut."),
    ft.Doc("neither", "The dock strike, the wages and the grain were in the news."),
    ft.Doc("later", "The grain was sold after the dock strike."),
]
WHY = ft.Topics([ft.Topic("1", "dock strike", narrative="Relevant documents tell of rotten grain and cut wages.")])
WORD = re.compile(r"\w+")
DEPTH = 20
PASTED: set[str] = set()
"""The names of the parts that were made again from their texts."""


@dataclass(frozen=True)
class Counts:
    """An encoder whose inner products are whole numbers, the same on every processor: how many words fall into each place."""

    dim: int = 64
    fingerprint: str = "0123456789abcdef0123456789abcdef"
    similarity: str = "dot"

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        made = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in WORD.findall(text.lower()):
                row[zlib.crc32(word.encode()) % self.dim] += 1
        return made

    def encode_documents(self, docs: Sequence[ft.Doc]) -> np.ndarray:
        return self.encode_queries([f"{doc.title} {doc.text}" for doc in docs])


@cache
def known_items() -> tuple[list[ft.Doc], ft.Topics]:
    docs, topics, _ = ft.datasets.known_item(ft.datasets.python_docs())
    return docs, ft.Topics(islice(topics.values(), 400))


def weights(text: str) -> dict[str, float]:
    return {word: (zlib.crc32(word.encode()) % 300 + 1) / 100 for word in sorted(set(WORD.findall(text.lower())))}


def pasted(stage: Any) -> Any:
    """The stage that its text makes, over the same indexes; the stage itself where it has none."""
    try:
        text = stage.text
    except ft.core.PipelineError:
        return stage
    PASTED.update(part.name for part in walk(stage) if part.name)
    return ft.pipeline(text, indexes=indexes_of(stage))


def written(path: Path, stage: Any, topics: ft.Topics) -> bytes:
    made = pasted(stage)(topics)
    if isinstance(made, ft.Topics):
        ft.write_topics(made, path)
    else:
        ft.write_run(made, path)
    return path.read_bytes()


def named(prefix: str, folder: Path, topics: ft.Topics, stages: Stages) -> Pipelines:
    return {f"{prefix}/{name}": partial(written, folder / "written", stage, topics) for name, stage in stages.items()}


def recipe_runs(prefix: str, folder: Path, recipe: ft.recipes.Recipe, sample: Any, topics: ft.Topics) -> Pipelines:
    recipe.run(STORIES, topics, sample.qrels(), folder)
    runs = folder / "runs"
    return {f"{prefix}/{path.relative_to(runs).with_suffix('')}": path.read_bytes for path in sorted(runs.rglob("*.run"))}


def docs_pipelines(folder: Path) -> Pipelines:
    docs, topics = known_items()
    index = ft.Index.build(docs, folder / "docs")
    words = ft.Index.build(docs, folder / "docs-words", analyzer="english+words:1-2")
    bm25, ql = index.bm25(k=DEPTH), index.ql(k=DEPTH)
    return named(
        "docs",
        folder,
        topics,
        {
            **{f"bm25 {v}": index.bm25(variant=v, k=DEPTH) for v in ("lucene", "robertson", "okapi", "atire", "plus", "l")},
            "bm25 k1 b k3": index.bm25(k1=1.2, b=0.75, k3=8.0, k=DEPTH),
            "bm25 delta": index.bm25(variant="l", delta=0.3, k=DEPTH),
            "bm25 lengths": index.bm25(lengths="lucene", k=DEPTH),
            "tfidf": index.tfidf(k=DEPTH),
            "tfidf sublinear": index.tfidf(sublinear_tf=True, k=DEPTH),
            "tfidf smooth": index.tfidf(smooth_idf=True, k=DEPTH),
            "tfidf no norm": index.tfidf(norm=None, k=DEPTH),
            "tfidf relative": index.tfidf(relative_tf=True, norm=None, k=DEPTH),
            "ql dirichlet": index.ql(mu=500.0, k=DEPTH),
            "ql jelinek-mercer": index.ql(smoothing="jelinek-mercer", lambda_=0.3, k=DEPTH),
            "ql lengths": index.ql(lengths="lucene", k=DEPTH),
            "word n-grams": words.bm25(k=DEPTH),
            "rm3": bm25 >> index.rm3() >> bm25,
            "rrf": ft.fuse(bm25, ql, method="rrf", k=20),
            "wsum": ft.fuse(bm25, ql, method="wsum", weights=(0.7, 0.3)),
            "sum": 0.4 * bm25 + ql,
        },
    )


def harbour_pipelines(folder: Path) -> Pipelines:
    index = ft.Index.build(STORIES, folder / "harbour")
    chars = ft.Index.build(STORIES, folder / "chars", analyzer="standard+chars:3-4")
    czech = ft.Index.build(CZECH, folder / "czech", analyzer="czech")
    passages = ft.Index.build(ft.Passages(words=40, stride=20).docs(STORIES), folder / "passages")
    vectors = [replace(doc, metadata={"vector": weights(f"{doc.title} {doc.text}")}) for doc in STORIES]
    sparse = ft.Index.build(vectors, folder / "sparse", vectors="vector")
    index.encode(Counts())
    weighted = ft.Topics(replace(topic, weights=weights(topic.text)) for topic in POSTS.values())
    (folder / "duplicates.txt").write_text("001:h002,h003\nh010 h011\nh020\n")
    bm25, ql, tfidf, dense = index.bm25(), index.ql(), index.tfidf(), index.dense(Counts())
    phrases = ft.causal.TopicRank(tagger="stopwords")
    searches = {
        "bm25": bm25,
        "cut": ft.fuse(bm25, ql) % 7,
        "cut stage": bm25 >> ft.core.Cut(5),
        "scaled": 2.5 * bm25,
        "sum": 0.3 * bm25 + 0.7 * ql + tfidf * 10,
        "char n-grams": chars.tfidf(),
        **{f"char n-grams {v}": chars.bm25(variant=v) for v in ("lucene", "robertson", "okapi")},
        "char n-grams epsilon": chars.bm25(variant="okapi", epsilon=0.1),
        "dense": dense,
        "dense plus bm25": index.dense(Counts(), k=10) + bm25,
        "rm3": bm25 >> index.rm3(fb_docs=5, fb_terms=20, original_weight=0.7, max_df=0.3) >> ql,
        **{f"fuse {m}": ft.fuse(bm25, ql, dense, method=m) for m in ("rrf", "isr", "borda", "combmnz", "combmax", "combmin")},
        **{f"fuse {n}": ft.fuse(bm25 % 30, dense % 30, method="combsum", normalize=n) for n in ("max", "sum", "rank", None)},
        "fuse z": ft.fuse(bm25 % 30, dense % 30, method="wsum", normalize="z", weights=(1, 2), missing="min"),
        "passages": bm25 % 10 >> ft.Passages(words=30, stride=10),
        "passages back": bm25 % 10 >> ft.Passages(words=30) >> ft.to_documents("sum"),
        **{f"passages {a}": passages.bm25() >> ft.to_documents(a) for a in ("max", "mean", "sum", "first")},
        "deduplicate": bm25 >> ft.Deduplicate(str(folder / "duplicates.txt"), prefix="h"),
        "deduplicate best": bm25 >> ft.Deduplicate(str(folder / "duplicates.txt"), "best", prefix="h"),
        "evidence": bm25 % 30 >> ft.causal.CausalEvidence(weight=0.4),
        "evidence depth": bm25 % 30 >> ft.causal.CausalEvidence(pool="noisy-or", depth=10),
        "evidence of passages": bm25 % 10
        >> ft.Passages(words=40)
        >> ft.causal.CausalEvidence(pool="top3")
        >> ft.to_documents("mean"),
    }
    why = {
        "keywords": ft.causal.CausalKeywords(phrases),
        "keywords n": ft.causal.CausalKeywords(phrases, n=3, without=("news", "document")) >> bm25,
        "narrative": ft.causal.Narrative(),
        "narrative relevant": ft.causal.Narrative(relevant=True) >> bm25,
        "title and narrative": ft.causal.TitleAndNarrative(relevant=True) >> bm25,
    }
    struck = ft.Index.build(STRIKE, folder / "strike").bm25()
    filters = {
        **{r: struck >> ft.causal.CausalFilter(roles=r, topicrank=phrases) for r in ("published", "swapped", "either")},
        "weak": struck >> ft.causal.CausalFilter(roles="either", weak=True, topicrank=phrases),
        "below": struck >> ft.causal.CausalFilter(failing="below", topicrank=phrases),
    }
    rewriters = {
        "raw": ft.rewrite.Raw(),
        "manual": ft.rewrite.Manual(),
        "automatic": ft.rewrite.Automatic(),
        "last turns": ft.rewrite.LastTurns(k=2, first=True),
        "weighted turns": ft.rewrite.WeightedTurns(index, k=2, weight=0.25),
        "hqe": ft.HQE(index, tagger="none"),
    }
    cair = ft.recipe("cair2021", encoder=Counts(), trees=None, analyzer="english", topicrank=phrases, after=ft.core.Cut(40))
    listed = f"h={folder / 'duplicates.txt'}"
    cast = ft.recipe(
        "cast2021", automatic="last_turns()", passages='passages(separator="-")', reranker=None, keep=50, duplicates=listed
    )
    return (
        named("posts", folder, POSTS, searches)
        | named("claims", folder, CLAIMS, {"bm25": bm25, "jelinek-mercer": index.ql(smoothing="jelinek-mercer")})
        | named("sparse", folder, weighted, {"impacts": sparse.learned_sparse()})
        | named("sparse", folder, POSTS, {"impacts of text": sparse.learned_sparse(k=30)})
        | named("czech", folder, ASKED, {"bm25": czech.bm25(), "tfidf": czech.tfidf(sublinear_tf=True)})
        | named("causal", folder, CAUSAL, why)
        | named("filter", folder, WHY, filters)
        | named("rewritten", folder, CONVERSATIONS, rewriters)
        | named("conversations", folder, CONVERSATIONS, {name: stage >> bm25 for name, stage in rewriters.items()})
        | named("conversations", folder, SAID, {"automatic missing": ft.rewrite.Automatic(missing="raw") >> bm25})
        | recipe_runs("cair2021", folder / "cair", cair, HARBOUR.causal, CAUSAL)
        | recipe_runs("cast2021", folder / "cast", cast, HARBOUR.conversations, CONVERSATIONS)
    )


def sentences_pipelines(folder: Path) -> Pipelines:
    index = ft.Index.build(STORIES, folder / "sentences")
    bm25 = index.bm25(k=DEPTH)
    parts = ft.Passages(sentences="nupunkt", max_words=50)
    passages = ft.Index.build(parts.docs(STORIES), folder / "sentence-passages")
    cast = ft.recipe(
        "cast2021",
        automatic="weighted_turns()",
        passages='cast_passages(sentences="nupunkt")',
        reranker=None,
        documents=DEPTH,
        depth=30,
    )
    stages = {
        "passages": bm25 >> parts,
        "documents": passages.bm25() >> ft.to_documents("mean"),
        "cast passages": bm25 >> ft.recipes.CastPassages(sentences="nupunkt", max_words=60),
        "evidence": bm25 >> ft.causal.CausalEvidence(sentences="nupunkt"),
    }
    return named("sentences", folder, POSTS, stages) | recipe_runs(
        "sentences/cast2021", folder / "cast-sentences", cast, HARBOUR.conversations, CONVERSATIONS
    )


def vocabulary() -> list[str]:
    texts = [f"{doc.title} {doc.text}" for doc in STORIES] + [topic.text for topic in POSTS.values()]
    return sorted({word for text in texts for word in re.findall(r"[a-z]+", text.lower())})


def filled(model: Any, seed: int, scale: float) -> Any:
    """The model with weights out of numpy's generator."""
    import torch

    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            if parameter.ndim > 1:
                parameter.copy_(torch.from_numpy(generator.standard_normal(tuple(parameter.shape), np.float32) * scale))
    return model.eval()


def save_bert(folder: Path, architecture: str, seed: int, labels: Mapping[int, str] | None = None) -> str:
    from support.tiny_models import SIZES, save_tokenizer, transformers

    letters = "abcdefghijklmnopqrstuvwxyz"
    special = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = list(dict.fromkeys([*special, *".,'?!:", *letters, *(f"##{c}" for c in letters), *vocabulary()]))
    save_tokenizer(folder, tokens, model_max_length=128)
    labelled = {"id2label": dict(labels), "label2id": {label: i for i, label in labels.items()}} if labels else {}
    config = transformers.BertConfig(vocab_size=len(tokens), max_position_embeddings=128, **SIZES, **labelled)
    filled(getattr(transformers, architecture)(config), seed, 0.3).save_pretrained(folder)
    return str(folder)


def save_t5(folder: Path, seed: int, scale: float) -> str:
    from support.tiny_t5 import save_t5_tokenizer, t5_config, transformers
    from tokenizers import decoders

    marks = ["true", "false", "Query:", "Document:", "Relevant:"]
    words = list(dict.fromkeys([*marks, *vocabulary()]))
    size = save_t5_tokenizer(folder, {*"".join(words), *".,'?!:-|▁"}, words, decoders.Metaspace())
    filled(transformers.T5ForConditionalGeneration(t5_config(size)), seed, scale).save_pretrained(folder)
    return str(folder)


def neural_pipelines(folder: Path) -> Pipelines:
    bert = save_bert(folder / "bert", "BertModel", 1)
    cross = save_bert(folder / "cross", "BertForSequenceClassification", 2, {0: "LABEL_0"})
    terms = save_bert(folder / "terms", "BertForTokenClassification", 3, {0: "O", 1: "REL"})
    t5, canard = save_t5(folder / "t5", 4, 0.2), save_t5(folder / "canard", 5, 0.6)
    here: dict[str, Any] = {"precision": "float32", "device": "cpu"}
    sentence = ft.SentenceEncoder(bert, document_prompt="document: ", **here)
    transformer = ft.TransformerEncoder(bert, pooling="cls", max_length=100, normalize=False, **here)
    chunked = ft.ChunkedEncoder(ft.TransformerEncoder(bert, **here), window=40, stride=20)
    means = replace(chunked, pooling="mean", unit="tokens")
    colbert = ft.ColBERT(bert, dim=16, query_length=16, document_length=100, **here)
    crossing = ft.CrossEncoder(cross, max_length=100, **here)
    monot5 = ft.MonoT5(t5, max_length=200, **here)
    index = ft.Index.build(STORIES, folder / "neural")
    for encoder in (sentence, transformer, chunked, means):
        index.encode(encoder)
    index.encode(sentence, dtype="int8")
    for nbits in (2, 32):
        ft.neural.encode_late(index, colbert, nbits=nbits)
    bm25 = index.bm25(k=DEPTH)
    passages = bm25 % 5 >> ft.Passages(words=40)
    searches = {
        "sentence": index.dense(sentence, k=50),
        "sentence int8": index.dense(sentence, dtype="int8", k=50),
        "transformer": index.dense(transformer, k=50),
        "chunked max": index.dense(chunked, k=50),
        "chunked mean": index.dense(means, k=50),
        "hybrid": ft.fuse(bm25, index.dense(sentence, k=50), method="wsum", weights=(0.6, 0.4)),
        "cross-encoder": bm25 >> crossing,
        "cross-encoder sigmoid": bm25 >> crossing.with_(score="sigmoid"),
        "cross-encoder interpolated": bm25 >> crossing.interpolate(0.3),
        "cross-encoder of passages": passages >> crossing >> ft.to_documents("mean"),
        "monot5": bm25 >> monot5,
        "monot5 of passages": passages >> monot5 >> ft.to_documents("max"),
        "late exhaustive": index.late(colbert, algorithm="exhaustive", nbits=32, k=50),
        "late centroids": index.late(colbert, nbits=2, k=10),
        "late reranker": bm25 >> ft.neural.LateReranker(colbert, 0),
        "late reranker stored": bm25 >> ft.neural.LateReranker(colbert, 2),
    }
    rewriters = {
        "hqe": ft.HQE(index),
        "quretec": ft.QuReTeC(terms, answers=1, max_length=120, **here),
        "canardt5": ft.CanardT5(canard, num_beams=2, max_new_tokens=8, **here),
    }
    cair = ft.recipe("cair2021", encoder=bert, trees=None, aggregate="min-max")
    t5s = {"automatic": rewriters["canardt5"], "reranker": monot5}
    cast = ft.recipe("cast2021", **t5s, passages='passages(separator="-")', documents=10, depth=15, keep=10)
    return (
        named("neural", folder, POSTS, searches)
        | named("rewritten", folder, CONVERSATIONS, rewriters)
        | named("conversations", folder, CONVERSATIONS, {name: stage >> bm25 for name, stage in rewriters.items()})
        | named(
            "causal",
            folder,
            CAUSAL,
            {"keywords": ft.causal.CausalKeywords(), "keywords search": ft.causal.CausalKeywords() >> bm25},
        )
        | recipe_runs("cair2021", folder / "cair-neural", cair, HARBOUR.causal, CAUSAL)
        | recipe_runs("cast2021", folder / "cast-neural", cast, HARBOUR.conversations, CONVERSATIONS)
    )


def built_files(folder: Path, name: str) -> Pipelines:
    docs = known_items()[0] if name == "docs" else STORIES
    ft.Index.build(docs, folder / f"index-{name}", overwrite=True)
    files = sorted(path for path in (folder / f"index-{name}").rglob("*") if path.is_file())
    return {f"{name}/{path.relative_to(folder / f'index-{name}')}": path.read_bytes for path in files}


GROUPS: dict[tuple[str, str], Callable[[Path], Pipelines]] = {
    ("lexical", "harbour"): harbour_pipelines,
    ("lexical", "docs"): docs_pipelines,
    ("lexical", "sentences"): sentences_pipelines,
    ("neural", "harbour"): neural_pipelines,
    ("index", "harbour"): partial(built_files, name="harbour"),
    ("index", "docs"): partial(built_files, name="docs"),
}


ROUNDED = re.compile(r"neural/|cair2021/(pipeline|.*-semantic)$|cast2021/")  # runs whose scores are of neural models
CLUSTERED = {"neural/late centroids", "neural/late reranker stored"}  # of 2 bits: rounding moves the centroids
TOLERANCE, OF_CLUSTERED = 1e-5, 1e-2  # of the highest absolute score; .007 between processors with AVX-512 and without


def figures(run: bytes) -> str:
    """The number of documents of each topic, the highest score, the lowest, and the mean of what scores are above it.

    In the mean each has a weight in [-1, 1) that its document's id decides: scores of other documents give another mean, but
    documents that change places by rounding, or take the last place, hardly change it.
    """
    topics: dict[str, list[tuple[str, float]]] = {}
    for line in run.decode().splitlines():
        topic, _, doc_id, _, score, _ = line.split()
        topics.setdefault(topic, []).append((doc_id, float(score)))
    lines = []
    for topic, ranking in topics.items():
        scores = np.array([score for _, score in ranking])
        signs = np.array([zlib.crc32(f"{topic} {doc_id}".encode()) / 2**31 - 1 for doc_id, _ in ranking])
        marked = float(np.mean((scores - scores.min()) * signs))
        lines.append(f"{topic} {len(ranking)} {scores.max():.7g} {scores.min():.7g} {marked:.5g}")
    return "; ".join(lines)


def agree(name: str, one: str, other: str) -> bool:
    """Whether a pipeline wrote what it wrote before: the same bytes, or scores of a neural model within the tolerance."""
    if one == other or not ROUNDED.match(name):
        return one == other
    rows, others = ([row.split() for row in text.split("; ")] for text in (one, other))
    if [row[:2] for row in rows] != [row[:2] for row in others]:
        return False
    values, expected = (np.array([row[2:] for row in both], dtype=float) for both in (rows, others))
    tolerance = OF_CLUSTERED if name in CLUSTERED else TOLERANCE
    return bool((np.abs(values - expected) <= tolerance * np.abs(expected[:, :2]).max()).all())


def sums(section: str, collection: str) -> dict[str, str]:
    """The SHA-256 or the figures of each pipeline of a group, by its name; what went wrong in its place where one fails."""
    if section == "neural":
        import torch

        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, made in GROUPS[section, collection](Path(folder)).items():
            try:
                rounded = section == "neural" and ROUNDED.match(name)
                found[name] = figures(made()) if rounded else hashlib.sha256(made()).hexdigest()
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
        return found


def environment() -> dict[str, str | None]:
    """What the sums may depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo.read_text() if cpuinfo.is_file() else "", re.MULTILINE)
    return {
        "python": platform.python_version(),
        "processor": model[1] if model else platform.processor(),
        "torch": version("torch") if find_spec("torch") else None,
        "numpy": version("numpy"),
    }


if __name__ == "__main__":
    made: dict[str, Any] = {**environment(), "lexical": {}, "neural": {}, "index": {}}
    for section, collection in GROUPS:
        made[section] |= sums(section, collection)
    Path(sys.argv[1] if len(sys.argv) > 1 else RECORD).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")

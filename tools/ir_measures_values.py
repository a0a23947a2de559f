"""Writes tests/measures/ir_measures.json: what ir_measures makes of a small run, and the means of a real one.

Run it where ir_measures is, with its providers and Perl, which Fontes itself never needs:

    pip install ir_measures==0.4.3 pytrec-eval-terrier==0.5.11 cwl-eval==1.0.12
    python tools/ir_measures_values.py ../shared/data/cast2021
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import ir_measures
import numpy

NAMES = """
    AP AP@10 AP(rel=2)@10 AP(judged_only=True) P@5 P(rel=2)@5 P(judged_only=True)@5 R@10 R(judged_only=True)@10
    nDCG nDCG@10 nDCG(dcg='exp-log2')@10 nDCG(judged_only=True)@10 RR RR@5 RR(judged_only=True)
    Rprec Rprec(judged_only=True) Bpref Bpref(rel=2) Success@3 Success(judged_only=True)@3 IPrec@0.1
    IPrec(judged_only=True)@0.5 infAP infAP(rel=2) Accuracy Accuracy@10 Accuracy(rel=2)@10 ERR@5 ERR@20
    SDCG(max_rel=4)@10 SDCG(min_rel=1,max_rel=4)@10 BPM(max_rel=4)@10 BPM(max_rel=4,T=2.0)@20
    INST(max_rel=4) INST(max_rel=4,T=2.0) INSQ(max_rel=4) INSQ(max_rel=4,T=3.0)
    NERR8(max_rel=4)@10 NERR9(max_rel=4)@10 NERR10(max_rel=4) NERR10(max_rel=4,p=0.5) NERR11(max_rel=4) NERR11(max_rel=4,T=2.0)
    Compat Compat(p=0.8) Compat(normalize=False) Judged Judged@5 RBP(rel=1) RBP(rel=2,p=0.9)
    NumRet NumRet(rel=1) NumRet(rel=2) NumRelRet NumRel NumQ
    SetP SetRelP SetP(relative=True) SetP(judged_only=True) SetR SetF SetF(judged_only=True) SetAP SetAP(judged_only=True)
""".split()


def small() -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """A run and qrels of ten topics with grades from -1 to 4, without ties."""
    chance = random.Random(7)
    docs = [f"d{i}" for i in range(60)]
    run, qrels = {}, {}
    for topic in map(str, range(1, 11)):
        qrels[topic] = {d: chance.choice([-1, 0, 0, 0, 1, 1, 2, 3, 4]) for d in chance.sample(docs, chance.randint(5, 20))}
        run[topic] = {d: chance.randint(1, 9_999_999) / 1e6 for d in chance.sample(docs, chance.randint(2, 25))}
    return run, qrels


def real(folder: Path) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """The run doc_org_manual_bm25 of CAsT 2021, and its qrels; topics are numbered, since gdeval takes numbers alone."""
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test_docs.tsv").read_text().splitlines()[1:]:
        topic, doc, grade = line.split("\t")
        qrels.setdefault(topic, {})[doc] = int(grade)
    numbers = {topic: str(i) for i, topic in enumerate(qrels, 1)}
    run: dict[str, dict[str, float]] = {}
    for line in (folder / "baselines" / "doc_org_manual_bm25.run").read_text().splitlines():
        topic, _, doc, _, score, _ = line.split()
        if topic in numbers:
            run.setdefault(numbers[topic], {})[doc] = float(score)
    return {topic: untied(ranking) for topic, ranking in run.items()}, {numbers[t]: grades for t, grades in qrels.items()}


def untied(ranking: dict[str, float]) -> dict[str, float]:
    """Scores without ties, in the order of trec_eval, since the providers of ir_measures have three orders."""
    ordered = sorted(ranking, key=lambda doc: (numpy.float32(ranking[doc]), doc))
    return {doc: float(place) for place, doc in enumerate(ordered, 1)}


def values(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    """By measure and topic; nothing for a measure that fails."""
    result = {}
    for name in NAMES:
        try:
            each = ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)
            result[name] = {one.query_id: round(one.value, 7) for one in each}
        except ZeroDivisionError:  # Accuracy, where the first k are all relevant
            print("left out:", name)
    return result


def main() -> None:
    """Writes the file."""
    run, qrels = small()
    on_real, judged = real(Path(sys.argv[1]))
    means = {
        name: sum(each.values()) / (1 if name.startswith("Num") else len(judged))
        for name, each in values(on_real, judged).items()
    }
    plain = {"run": run, "qrels": qrels, "values": values(run, qrels), "cast2021": means}
    lines = [json.dumps(key) + ": " + json.dumps(value) for key, value in plain.items()]
    Path("tests/measures/ir_measures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

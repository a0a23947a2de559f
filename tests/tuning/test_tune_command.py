"""`fontes tune`: what it prints and draws is what `tune` finds."""

import json

from typer.testing import CliRunner

import fontes as ft
from fontes.app.cli import app


def test_the_command_tunes_prints_and_draws(collection, tmp_path):
    index, topics, qrels = collection
    ft.write_topics(topics, tmp_path / "t.jsonl")
    ft.write_qrels(qrels, tmp_path / "q.txt")
    files = ["--topics", str(tmp_path / "t.jsonl"), "--qrels", str(tmp_path / "q.txt"), "-m", "nDCG@5"]
    space = ["--pipeline", "bm25(k1=tune(0.5, 1.5, 0.5), k3=tune([None, 2]))", "--group", "conversation"]
    done = CliRunner().invoke(app, ["tune", str(index.path), *files, *space, "--plot", str(tmp_path / "s.png"), "--json"])
    assert done.exit_code == 0, done.output
    plain = json.loads(done.output)
    own = ft.tune(index.bm25(), {"k1": (0.5, 1.5, 0.5), "k3": [None, 2]}, topics, qrels, "nDCG@5", groups="conversation")
    expected = json.loads(json.dumps(own.to_dict()))
    assert plain["score"] == expected["score"]
    assert list(plain["params"].values()) == list(expected["params"].values())
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    done = CliRunner().invoke(app, ["tune", str(index.path), *files, "--pipeline", "ql(mu=tune([10, 1000]))"])
    own = ft.tune(index.ql(), {"mu": [10, 1000]}, topics, qrels, "nDCG@5")
    assert f"final: ql__mu={own.params['mu']}" in done.output.splitlines()
    assert f"held out    {own.score:.4f}" in done.output
    for wrong, message in (
        ("bm25(k1=tune(1, 2, 3, 4))", "write tune(), tune(low, high)"),
        ("bm25()", "no parameter to be tuned"),
    ):
        done = CliRunner().invoke(app, ["tune", str(index.path), *files, "--pipeline", wrong])
        assert message in str(done.exception)

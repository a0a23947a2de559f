"""Collections and indexes on the Hugging Face Hub: real commands and huggingface_hub's client against a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.hub import hub

import fontes as ft
from fontes.storage.remote import address_of

ROOM = "hf://datasets/ann/papers"


def test_a_shortened_path_is_an_address_again():
    assert address_of(Path(f"{ROOM}/x.index")) == f"{ROOM}/x.index"


@pytest.mark.slow
def test_an_index_goes_to_the_hub_and_is_opened_from_there(tmp_path):
    pytest.importorskip("huggingface_hub")
    docs = [("a", "rain and snow"), ("b", "rain rain"), ("c", "sun")]
    index = ft.Index.build(docs, tmp_path / "x.index")
    with hub() as (endpoint, files):

        def fontes(*arguments, token="secret"):
            own = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf"), "FONTES_CACHE": str(tmp_path / "cache")}
            environment = {**os.environ, **own, "HF_TOKEN": token, "HF_HUB_DISABLE_XET": "1"}
            command = [sys.executable, "-m", "fontes", *map(str, arguments)]
            return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

        refused = fontes("copy", index.path, f"{ROOM}/x.index", token="wrong")
        assert refused.returncode == 1
        assert "no access" in refused.stderr
        assert refused.stderr.count("\n") == 1, refused.stderr
        copied = fontes("copy", index.path, f"{ROOM}/x.index")
        assert copied.returncode == 0, copied.stderr
        own = {p.relative_to(index.path).as_posix(): p.read_bytes() for p in index.path.rglob("*") if p.is_file()}
        own = {f"x.index/{name}": content for name, content in own.items() if not name.rpartition("/")[2].startswith(".")}
        assert files == own

        found = fontes("search", f"{ROOM}/x.index", "rain", "--json")
        assert [hit["id"] for hit in json.loads(found.stdout)["hits"]] == index.bm25().search("rain").ids, found.stderr
        back = fontes("copy", f"{ROOM}/x.index", tmp_path / "back.index")
        assert back.returncode == 0, back.stderr
        assert ft.Index.open(tmp_path / "back.index").fingerprint == index.fingerprint

        files["corpus.jsonl"] = b'{"_id": "d", "text": "hail"}\n'
        built = fontes("index", f"{ROOM}/corpus.jsonl", "-o", tmp_path / "y.index")
        assert built.returncode == 0, built.stderr
        assert ft.Index.open(tmp_path / "y.index").docs(["d"])[0].text == "hail"

        for missing in (f"{ROOM}/none.index", "hf://datasets/ann/others/x.index"):
            lost = fontes("search", missing, "rain")
            assert lost.returncode == 1
            assert lost.stderr.startswith("fontes: hf://"), lost.stderr
            assert lost.stderr.count("\n") == 1, lost.stderr

        name = next(name for name in files if name.endswith(".npy") and files[name])
        files[name] = bytes([files[name][0] ^ 1]) + files[name][1:]
        damaged = fontes("copy", f"{ROOM}/x.index", tmp_path / "bad.index")
        assert damaged.returncode == 1
        assert "is damaged" in damaged.stderr

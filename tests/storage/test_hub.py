"""Collections and indexes on the Hugging Face Hub: real commands and huggingface_hub's client against a stand-in."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import fontes as ft
from fontes.storage.remote import address_of

COMMIT = "0" * 40


@contextlib.contextmanager
def hub(repository: str = "ann/papers", token: str = "secret") -> Iterator[tuple[str, dict[str, bytes]]]:
    """A Hub with one dataset; gives its endpoint and the files, by path. Writing needs the token."""
    files: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            api, resolve = f"/api/datasets/{repository}", f"/datasets/{repository}/resolve/"
            if path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
                self.answer({"id": repository, "sha": COMMIT, "siblings": [], "tags": [], "private": False})
            elif path.startswith(f"{api}/tree/"):
                self.tree(path.removeprefix(f"{api}/tree/").partition("/")[2], "recursive=true" in self.path.lower())
            elif path.startswith(resolve):
                self.file(path.removeprefix(resolve).partition("/")[2])
            else:
                self.error(404, "RepoNotFound")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = unquote(urlsplit(self.path).path)
            if "/paths-info/" in path:
                names = json.loads(body)["paths"]
                self.answer([entry(name) for name in names if name in files])
            elif self.headers.get("Authorization") != f"Bearer {token}":
                self.error(401, None)
            elif "/preupload/" in path:
                rows = json.loads(body)["files"]
                self.answer({"files": [{"path": row["path"], "uploadMode": "regular", "shouldIgnore": False} for row in rows]})
            elif "/commit/" in path:
                for line in body.splitlines():
                    row = json.loads(line)
                    if row["key"] == "file":
                        files[row["value"]["path"]] = base64.b64decode(row["value"]["content"])
                    elif row["key"] == "deletedFile":
                        files.pop(row["value"]["path"])
                url = f"http://{self.headers['Host']}/datasets/{repository}/commit/{COMMIT}"
                self.answer({"commitUrl": url, "commitOid": COMMIT, "pullRequestUrl": None, "success": True})
            else:
                self.error(404, "EntryNotFound")

        def tree(self, folder: str, recursive: bool) -> None:
            start = f"{folder}/" if folder else ""
            below = [name.removeprefix(start) for name in files if name.startswith(start)]
            if folder and not below:
                return self.error(404, "EntryNotFound")
            folders = {"/".join(parts[:n]) for name in below for parts in [name.split("/")] for n in range(1, len(parts))}
            rows = [{"type": "directory", "path": start + name, "oid": COMMIT, "size": 0} for name in sorted(folders)]
            rows += [entry(start + name) for name in below]
            return self.answer([row for row in rows if recursive or "/" not in str(row["path"]).removeprefix(start)])

        def file(self, name: str) -> None:
            if name not in files:
                return self.error(404, "EntryNotFound")
            content, status = files[name], 200
            headers = {"ETag": f'"{oid(content)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if chosen := self.headers.get("Range"):
                first, _, last = chosen.removeprefix("bytes=").partition("-")
                stop = min(int(last) + 1 if last else len(content), len(content))
                headers["Content-Range"] = f"bytes {first}-{stop - 1}/{len(content)}"
                content, status = content[int(first) : stop], 206
            return self.send(status, content, headers)

        def answer(self, value: object) -> None:
            self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def error(self, status: int, code: str | None) -> None:
            self.send(status, b"{}", {"X-Error-Code": code} if code else {})

        def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    def oid(content: bytes) -> str:
        return hashlib.sha1(content).hexdigest()

    def entry(name: str) -> dict[str, object]:
        return {"type": "file", "path": name, "size": len(files[name]), "oid": oid(files[name])}

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", files
    server.shutdown()


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

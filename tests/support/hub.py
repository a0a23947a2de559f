"""A stand-in for the Hugging Face Hub on the loopback: one repository, spoken to by huggingface_hub's own client."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

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

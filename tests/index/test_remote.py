"""Corpora and indexes at addresses: read, put, opened by copying what is missing."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from cluster.test_distributed_build import collection, digests, lines
from support.one_by_one import one_by_one

from fontes.core import FontesError, IndexFormatError, InputError, MissingExtraError, ParameterError
from fontes.formats import read_corpus, read_topics
from fontes.index import Index
from fontes.index.remote import copy_index, local_copy
from fontes.storage.caches import cache_folder


@contextlib.contextmanager
def s3_store() -> Iterator[str]:
    """A store with the bucket "papers", which the environment names to drivers; gives the address of the bucket."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    driver = pytest.importorskip("s3fs").S3FileSystem
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        driver.clear_instance_cache()  # which would go on with the address of a store before
        bucket().create_bucket(Bucket="papers")
        yield "s3://papers"
    server.stop()


def bucket() -> Any:
    """A client of the store."""
    import boto3

    return boto3.client("s3")


def upload(path: Path, key: str) -> None:
    bucket().upload_file(str(path), "papers", key)


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """A server of the files in a folder; gives its address."""
    pytest.importorskip("aiohttp")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with s3_store() as address:
        yield address


@pytest.fixture
def index(tmp_path: Path) -> Index:
    docs = [(f"d{n}", f"some words {n}") for n in range(50)]
    return Index.build(docs, tmp_path / "here", separate=True, positions=True)


@pytest.fixture
def place(store: str, request: pytest.FixtureRequest) -> str:
    return f"{store}/{request.node.name}.index"


def keys(prefix: str = "") -> list[str]:
    return [one["Key"] for one in bucket().list_objects_v2(Bucket="papers", Prefix=prefix).get("Contents", [])]


def test_a_file_a_packed_one_and_a_folder_at_an_address_are_read_as_those_here(tmp_path, store):
    docs = lines(collection(60))
    (tmp_path / "a.jsonl").write_bytes(docs)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(docs))
    for name in ("a.jsonl", "b.jsonl.gz"):
        upload(tmp_path / name, f"folder/{name}")
    here = list(read_corpus(tmp_path / "a.jsonl"))
    corpus = read_corpus(f"{store}/folder/a.jsonl")
    assert list(corpus) == list(corpus) == here
    assert corpus.position == corpus.size == len(docs)
    assert list(read_corpus(Path(f"{store}/folder/b.jsonl.gz"))) == here  # of which Path makes s3:/papers/…
    assert list(read_corpus(f"{store}/folder")) == here + here
    with web_server(tmp_path) as web:
        assert list(read_corpus([f"{web}/a.jsonl", f"{web}/b.jsonl.gz?version=1"])) == here + here
    upload(tmp_path / "a.jsonl", "queries.jsonl")
    assert len(read_topics(f"{store}/queries.jsonl")) == 60


@pytest.mark.slow
def test_a_build_of_pieces_at_an_address_gives_the_bytes_of_one_machine(tmp_path, store, monkeypatch):
    (tmp_path / "c.jsonl").write_bytes(lines(collection(90)))
    upload(tmp_path / "c.jsonl", "c.jsonl")
    Index.build(tmp_path / "c.jsonl", tmp_path / "one")
    one_by_one(monkeypatch, 5000)
    Index.build(f"{store}/c.jsonl", tmp_path / "many", ray=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")


def test_what_is_missing_refused_or_does_not_answer_is_a_sentence(tmp_path, store, monkeypatch):
    for address in (f"{store}/none.jsonl", "s3://no-such-bucket-here/x.jsonl"):
        with pytest.raises(InputError, match=rf"^{address}: there is no such file or folder$"):
            read_corpus(address)
    with web_server(tmp_path) as web, pytest.raises(InputError, match=rf"^{web}/none.jsonl: there is no such file or folder$"):
        read_corpus(f"{web}/none.jsonl")
    with pytest.raises(InputError, match=r"^http://127\.0\.0\.1:9/x\.jsonl: cannot be read \(.*onnect.*\)$"):
        read_corpus("http://127.0.0.1:9/x.jsonl")
    with pytest.raises(InputError, match=r"^nosuch://x/y: cannot be read \(Protocol not known: nosuch\)"):
        read_corpus("nosuch://x/y")
    from fontes.storage import remote

    def refused(address: str) -> None:
        with remote.reaching(address):
            raise PermissionError("Access Denied")

    with pytest.raises(InputError, match=r"s3://a/b: no access \(Access Denied\); set up the credentials as s3fs reads them"):
        refused("s3://a/b")


@pytest.mark.parametrize(("module", "address", "extra"), [("s3fs", "s3://a/b", "s3"), ("gcsfs", "gs://a/b", "gcs")])
def test_a_driver_that_is_not_installed_is_named_with_its_extra(monkeypatch, module, address, extra):
    monkeypatch.setitem(sys.modules, module, None)
    import_module("fsspec")
    for scheme in ("s3", "gs"):
        monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)
    sentence = rf"reading {address} needs {module}, which is not installed: pip install 'fontes\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=sentence):
        read_corpus(address)


def test_an_index_at_an_address_is_opened_by_copying_what_is_missing(tmp_path, index, place, monkeypatch):
    copy_index(index.path, place)
    opened = Index.open(place)
    assert digests(opened.path) == digests(index.path)
    assert opened.path.is_relative_to(cache_folder().absolute())
    assert opened.bm25().search("words 7")[0].id == "d7"
    assert (opened.query() >> opened.bm25()).search('text:"words 7"').ids == ["d7"]
    assert Index.open(Path(place)).path == opened.path
    index.add([("new", "fresh words")])
    copy_index(index.path, place, overwrite=True)
    from fontes.index import remote

    fetched: list[str] = []
    real = remote.fetch
    monkeypatch.setattr(remote, "fetch", lambda address, path: (fetched.append(address), real(address, path)))
    assert "new" in Index.open(place).ids
    first, second = index.state.manifest["segments"]
    Index.open(place)
    files = [address for address in fetched if not address.endswith("/manifest.json")]
    assert {address.split("/")[-2] for address in files} == {second["name"]}
    assert len(files) == len(second["files"])
    assert first["name"] in {entry.name for entry in opened.path.iterdir()}
    with pytest.raises(FontesError, match="is a copy of an index at an address; change the original"):
        opened.delete("d7")


def test_an_index_comes_back_from_an_address_with_its_deletions(tmp_path, index, place):
    index.delete(["d3", "d4"])
    copy_index(index.path, place)
    copy_index(place, tmp_path / "back")
    assert digests(tmp_path / "back") == digests(index.path)
    with pytest.raises(InputError, match=r"is an index already; overwrite=True \(--overwrite\) replaces it"):
        copy_index(index.path, place)
    with pytest.raises(InputError, match="is an index already"):
        copy_index(place, tmp_path / "back")
    with pytest.raises(ParameterError, match="copy needs a directory as source or target"):
        copy_index(place, f"{place}-2")
    with pytest.raises(InputError, match=rf"built on a local disk; build it there, and then: fontes copy INDEX {place}"):
        Index.build([("1", "t")], place)
    index.merge()
    copy_index(index.path, place, overwrite=True)
    assert len(keys(place.removeprefix("s3://papers/"))) == len(digests(index.path))


def test_a_damaged_object_is_named_and_no_index_is_opened(index, place):
    copy_index(index.path, place)
    prefix = place.removeprefix("s3://papers/")
    (key,) = [key for key in keys(prefix) if key.endswith("doc_ids.bytes.npy")]
    body = bucket().get_object(Bucket="papers", Key=key)["Body"].read()
    bucket().put_object(Bucket="papers", Key=key, Body=body[:-1] + b"?")
    with pytest.raises(IndexFormatError, match=rf"^s3://papers/{key} is damaged: it differs from manifest.json"):
        Index.open(place)
    bucket().put_object(Bucket="papers", Key=f"{prefix}/manifest.json", Body=b"{}")
    with pytest.raises(IndexFormatError, match=rf"^{place}/manifest.json is damaged"):
        Index.open(place)
    bucket().delete_object(Bucket="papers", Key=f"{prefix}/manifest.json")
    with pytest.raises(IndexFormatError, match=rf"^{place} is not an index: it has no manifest.json"):
        Index.open(place)
    assert not list(cache_folder().joinpath("indexes").rglob(".fetched"))


@pytest.mark.slow
def test_processes_that_open_the_same_address_at_once_both_get_it(index, place):
    copy_index(index.path, place)
    script = f"from fontes.index import Index; print(len(Index.open({place!r})))"
    children = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [child.communicate()[0] for child in children] == ["50\n", "50\n"]
    assert digests(local_copy(place)) == digests(index.path)


def test_a_copy_from_an_address_goes_through_no_link(tmp_path, index, place):
    """Of a folder that somebody else may have filled."""
    copy_index(index.path, place)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (segment,) = index.path.glob("segment-*")
    for number, name in enumerate((".fetched", segment.name, f"{segment.name}/df.npy")):
        target = Path(shutil.copytree(index.path, tmp_path / f"there-{number}"))
        entry = target / name
        if entry.is_dir():
            shutil.rmtree(entry)
        entry.unlink(missing_ok=True)
        entry.symlink_to(outside / "file" if name.endswith("npy") else outside)
        with pytest.raises(FontesError, match="is a link, which may lead anywhere; remove it"):
            copy_index(place, target, overwrite=True)
    assert [(file.name, file.read_text()) for file in outside.iterdir()] == [("file", "mine")]

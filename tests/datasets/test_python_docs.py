import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from fontes.core import Doc
from fontes.datasets import known_item, python_docs


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    """The documents of some modules in Python, beside others that are left out, and of all compiled ones."""
    whole, part = Path(sysconfig.get_path("stdlib")), tmp_path_factory.mktemp("stdlib")
    for source in (whole / "zipfile.py", whole / "zipfile", whole / "json", whole / "argparse.py"):
        if source.exists():  # a module is a file in one version of Python and a folder in another
            (shutil.copytree if source.is_dir() else shutil.copy)(source, part / source.name)
    for left_out in (
        "test/one.py",
        "idlelib/one.py",
        "site-packages/numpy.py",
        "json/tests/one.py",
        "_private.py",
        "json/_own.py",
    ):
        (part / left_out).parent.mkdir(exist_ok=True)
        (part / left_out).write_text('"""Not public."""')
    (part / "broken.py").write_text("def (")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysconfig, "get_path", lambda name: str(part))
        return python_docs()


def test_modules_classes_functions_and_methods_are_documents(documents: list[Doc]) -> None:
    by_id = {doc.id: doc for doc in documents}
    assert by_id["zipfile.ZipFile.read"].title.startswith("ZipFile.read(self, name, pwd=None")
    assert by_id["zipfile.ZipFile.read"].text == "Return file bytes for name."
    assert by_id["zipfile.ZipFile"].title.startswith("ZipFile(file, mode='r'")
    assert by_id["zipfile"].title == "zipfile"
    assert by_id["math.sin"].title.startswith("sin(x")
    assert by_id["builtins.str.join"].title.startswith("str.join(self, iterable")
    assert by_id["builtins.range"].title == "range(stop) -> range object"
    assert by_id["builtins.range"].text.startswith("Return an object that produces")


def test_ids_are_unique_and_in_order_and_no_document_is_empty(documents: list[Doc]) -> None:
    ids = [doc.id for doc in documents]
    assert ids == sorted(set(ids))
    assert len(ids) > 500
    assert all(doc.text.strip() and doc.title for doc in documents)
    assert not any(" at 0x" in doc.title for doc in documents)


def test_tests_private_and_foreign_modules_are_left_out(documents: list[Doc]) -> None:
    assert not any(part.startswith("_") for doc in documents for part in doc.id.split("."))
    assert not {"test", "idlelib", "numpy", "readline", "site-packages"} & {doc.id.split(".")[0] for doc in documents}
    assert not any(".tests." in doc.id for doc in documents)


@pytest.mark.slow
def test_another_process_makes_the_same_documents_without_side_effects() -> None:
    documents = python_docs()
    assert len(documents) > 3000
    code = "import sys; from fontes.datasets import python_docs; print(python_docs()); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    made, _, modules = ran.stdout.rpartition("\n")[0].partition("\n")
    assert made == str(documents)
    assert "\n" not in modules
    assert not {"this", "antigravity", "turtle", "tkinter", "idlelib"} & set(modules.split())


def test_known_item_takes_the_first_sentence_as_the_topic() -> None:
    given = [
        Doc("a", "Return e.g. the\nfirst item.  Then more.", "a()"),
        Doc("b", "No full stop\n\nSecond paragraph."),
        Doc("c", "All of it"),
    ]
    docs, topics, qrels = known_item(given)
    assert [(d.id, d.title, d.text) for d in docs] == [
        ("a", "a()", "Then more."),
        ("b", "", "Second paragraph."),
        ("c", "", ""),
    ]
    assert {t.id: t.text for t in topics.values()} == {
        "a": "Return e.g. the first item.",
        "b": "No full stop",
        "c": "All of it",
    }
    assert qrels.to_dict() == {"a": {"a": 1}, "b": {"b": 1}, "c": {"c": 1}}


def test_the_known_item_collection_asks_for_every_document(documents: list[Doc]) -> None:
    docs, topics, qrels = known_item(documents)
    assert list(topics) == list(qrels) == [doc.id for doc in docs] == [doc.id for doc in documents]
    assert all(topic.text for topic in topics.values())

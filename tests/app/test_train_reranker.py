"""`fontes train cross-encoder`, and the commands of its guide on a small collection and a tiny model."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Fontes
from support.each import each
from support.tiny_training import base, candidates, examples, no_curves, one_thread

from fontes.formats import write_run
from fontes.index import Index
from fontes.train import Examples

pytest.importorskip("torch")
for library in ("sentence_transformers", "accelerate", "datasets"):
    pytest.importorskip(library)

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "train.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATA = examples()
SOMETIMES = {"among", "hits", "hit", "Judged"}  # said where something is missing
TINY = ("--epochs", 1, "--batch", 8, "--lr", 0.003, "--precision", "float32")


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection as the guide has one, in the working folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "checkthat20"
    (folder / "qrels").mkdir(parents=True)
    passages = {p.id: p.text for one in DATA for p in (one.positive, *one.negatives)}
    rows = [{"_id": name, "title": "", "text": text} for name, text in passages.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": one.topic, "text": one.query} for one in DATA]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    for split, those in (("train", DATA[:14]), ("dev", DATA[14:])):
        judged = "".join(f"{one.topic}\t{one.positive.id}\t1\n" for one in those)
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


def words(text: str) -> set[str]:
    """The words of an output, without numbers and marks of significance."""
    plain = re.sub(r"[ᵃᵇᶜ]|(?<=\w)(s|es)\b", "", re.sub(r"[-+<]?\d[\d,.]*", "", text))
    return set(re.findall(r"[A-Za-z]{4,}", plain))


@pytest.mark.slow
def test_the_commands_of_the_guide_print_what_it_shows(base: Path, collection: Path, fontes: Fontes) -> None:
    blocks = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
    printed, ran, before = "", 0, ""
    for mark, inside in blocks:
        if mark == "sh":
            printed = ""
            for line in inside.splitlines():
                arguments = shlex.split(line)[1:]
                if arguments[0] == "train":
                    start = {"cross-encoder": "--base", "bi-encoder": "--encoder"}[arguments[1]]
                    arguments += [*map(str, TINY), start, str(base)]
                code, out, err = fontes(*arguments, "--quiet")
                assert code == 0, f"{line}: {err}"
                printed += out if arguments[0] != "index" else ""
                ran += 1
        elif mark == "text" and before == "sh":
            shown = inside.replace("sentence-transformers/all-MiniLM-L6-v2", str(base))
            assert words(shown) - SOMETIMES == words(printed) - SOMETIMES
        before = mark
    assert ran == 13


def test_the_command_trains_resumes_nothing_and_prints_json(base: Path, tmp_path: Path, fontes: Fontes) -> None:
    DATA.write(tmp_path / "e.jsonl")
    command = ("train", "cross-encoder", tmp_path / "e.jsonl", "-o", tmp_path / "m", "--base", base, *TINY)
    code, out, err = fontes(*command, "--loss", "margin", "--max-length", 24, "--warm-up", 0.2, "--margin", 0.5)
    assert code == 0, err
    assert re.fullmatch(
        r".*/m: a cross-encoder from 18 rows in 3 steps and \d+\.\d\d s, from .*\n"
        r"the base has no layer for scores: a new one was initialized with the seed 0\n"
        r"best after step \d: validation loss \d\.\d{4}\n"
        r'use it as cross_encoder\(".*/m"\)\n',
        out,
    )
    code, _, err = fontes(*command)
    assert (code, err.count("\n")) == (1, 1)
    assert "exists already; give another folder, or overwrite it" in err
    code, out, _ = fontes(*command, "--json", "--overwrite", "--seed", 3, "--held-out", 0.3, "--evaluations", 1)
    made = json.loads(out)
    assert (made["settings"]["seed"], made["rows"], made["validated"]) == (3, 56, 24)


def test_a_pipeline_teaches_a_reranker(base: Path, tmp_path: Path, fontes: Fontes) -> None:
    docs = {p.id: p.text for one in DATA for p in (one.positive, *one.negatives)}
    Index.build(docs, tmp_path / "i", threads=1)
    Examples(replace(one, negatives=tuple(replace(p, score=None) for p in one.negatives)) for one in DATA).write(tmp_path / "e")
    command = ("train", "cross-encoder", tmp_path / "e", "-o", tmp_path / "m", "--base", base, *TINY)
    taught = ("--teacher", "bm25()", "--teacher-index", tmp_path / "i")
    code, _, err = fontes(*command, *taught)
    assert (code, "--teacher goes with --loss teacher, kl or residual" in re.sub(r"[\s│]+", " ", err)) == (2, True)
    code, _, err = fontes(*command, "--loss", "kl", *taught[2:])
    assert (code, "--teacher-index goes with --teacher" in re.sub(r"[\s│]+", " ", err)) == (2, True)
    code, out, err = fontes(*command, "--loss", "kl", "--json", *taught)
    assert code == 0, err
    assert json.loads(out)["settings"]["loss"] == "kl"
    assert "left out" not in err
    odd = replace(DATA[0], query="nowhere", negatives=DATA[1].negatives)
    Examples([odd, *Examples.read(tmp_path / "e")]).write(tmp_path / "e")
    code, again, err = fontes(*command, "--loss", "kl", "--json", "--overwrite", *taught)
    assert (code, json.loads(again)["rows"]) == (0, json.loads(out)["rows"])
    assert err.count(f"{tmp_path / 'e'}: 1 of 21 examples left out, whose relevant document the teacher does not return\n") == 1
    assert fontes("mine", tmp_path / "i", "--from", "title", "-o", "-", "--teacher", "last_turns(1)")[0] == 1


def test_a_teacher_scores_the_validation_examples_unless_the_folder_exists(
    base: Path, tmp_path: Path, fontes: Fontes, monkeypatch: pytest.MonkeyPatch
) -> None:
    Index.build({p.id: p.text for one in DATA for p in (one.positive, *one.negatives)}, tmp_path / "i", threads=1)
    Examples(DATA[:14]).write(tmp_path / "e")
    Examples(DATA[14:]).write(tmp_path / "v")
    command = ("train", "cross-encoder", tmp_path / "e", "-o", tmp_path / "m", "--base", base, *TINY, "--loss", "kl", "--json")
    taught = ("--validation", tmp_path / "v", "--teacher", "bm25()", "--teacher-index", tmp_path / "i")
    code, out, err = fontes(*command, *taught)
    assert code == 0, err
    assert json.loads(out)["validated"] == 6
    monkeypatch.setattr(Examples, "scored", lambda *_: pytest.fail("scored"))
    code, _, err = fontes(*command, *taught)
    assert (code, "exists already" in err) == (1, True)


def test_candidates_to_validate_on_need_all_that_belongs_to_them(base: Path, collection: Path, fontes: Fontes) -> None:
    DATA.write("e.jsonl")
    write_run(candidates(DATA)[0], "dev.run")
    assert fontes("index", "checkthat20/corpus.jsonl", "-o", "x.index")[0] == 0
    command = ("train", "cross-encoder", "e.jsonl", "-o", "m", "--base", base, *TINY, "--best", "RR@5", "--run", "dev.run")
    code, _, err = fontes(*command)
    assert code == 2
    assert "--run, --index, --topics and --qrels belong together" in re.sub(r"[\s│]+", " ", err)
    more = ("--index", "x.index", "--topics", "checkthat20", "--qrels", "checkthat20", "--split", "dev")
    code, out, err = fontes(*command, *more)
    assert code == 0, err
    assert re.search(r"validation loss \d\.\d{4}, RR@5 \d\.\d{4}", out)


@each(
    ("options", "message"),
    [
        (("--loss", "mse"), "loss must be 'bce', 'margin', 'lambda', 'teacher' or 'kl', not 'mse'"),
        (("--loss", "kl"), "has no score of a teacher"),
        (("--loss", "kl", "--teacher", "bm25()"), "bm25"),
        (("--loss", "kl", "--teacher", "last_turns(1)"), "--teacher is a reranker, or a pipeline from topics to a run"),
        (("--preset", "air2024"), "there is no preset 'air2024'; there are air2025"),
        (("--best", "RR@5"), "best='RR@5' is measured on a reranked run"),
        (("--base", "nowhere/at/all"), "there is no cross-encoder at 'nowhere/at/all'"),
    ],
)
def test_what_makes_no_sense_is_one_line(options: tuple[str, str], message: str, tmp_path: Path, fontes: Fontes) -> None:
    DATA.write(tmp_path / "e.jsonl")
    code, _, err = fontes("train", "cross-encoder", tmp_path / "e.jsonl", "-o", tmp_path / "m", *options)
    assert (code, err.count("\n")) == (1, 1)
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["e.jsonl"]

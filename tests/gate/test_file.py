"""The file of a gate: what is wrong with it is one sentence that names file, table and key."""

import pytest
from support.each import each

from fontes.core import InputError
from fontes.gate import GateFile

WRONG = {
    "a key that there is not": ("alpha = 0.05", "alhpa = 0.05", "there is no table or key 'alhpa'; did you mean 'alpha'?"),
    "a key of an arm": ('run = "candidate.run"', 'run = "c.run"\ntool = "x"', ", [candidate]: there is no key 'tool'"),
    "a word for a number": ("alpha = 0.05", 'alpha = "small"', "'alpha' must be a number, not 'small'"),
    "an alpha of 2": ("alpha = 0.05", "alpha = 2.0", "'alpha': Input should be less than 0.5"),
    "a misspelt arm": ("[candidate]", "[candidat]", "there is no table or key 'candidat'; did you mean 'candidate'?"),
    "no margin": ("RR = 0.01", "", "[margins]: a gate needs a measure with its margin"),
    "a cutoff above k": ("RR = 0.01", '"R@1000" = 0.01', "R@1000 reads more documents than k = 100; write k = 1000"),
    "a negative margin": ("RR = 0.01", "RR = -1.0", "[margins]: the margin of RR must be a number between 0 and 1"),
    "a margin in percent": (
        "RR = 0.01",
        "RR = 1",
        "[margins]: the margin of RR must be a number between 0 and 1, as in 0.01, not 1",
    ),
    "an unknown measure": ("RR = 0.01", "RRR = 0.01", "[margins]: there is no measure 'RRR'; did you mean"),
    "a count": ("RR = 0.01", "NumRet = 0.01", "[margins]: NumRet is a count"),
    "no baseline": ("[baseline]", "[base]", "there is no table [baseline]"),
    "no kind of arm": ('run = "candidate.run"', 'tool = "x"', "[candidate]: an arm needs one of the keys index,"),
    "two kinds of arm": ('run = "candidate.run"', 'run = "c"\nurl = "http://x"', "[candidate]: run and url exclude each other"),
    "an address of a file": ('run = "candidate.run"', 'url = "file:///etc/passwd"', "[candidate]: 'url': String should match"),
    "no topics": ('topics = "queries.tsv"', 'topics = "none.tsv"', "none.tsv: there is no such file"),
    "no key for topics": ('topics = "queries.tsv"', "", "there is no key 'topics', which is needed"),
    "no TOML": ("[margins]", "[margins", "not TOML"),
}


@pytest.mark.parametrize(("before", "after", "problem"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_sentence(gate, before, after, problem):
    path = gate(head="alpha = 0.05")
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(InputError) as error:
        GateFile.read(path)
    assert str(error.value).startswith(str(path))
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_without_a_candidate_is_for_a_function(gate, fontes):
    path = gate()
    path.write_text(path.read_text().partition("[candidate]")[0])
    assert GateFile.read(path).candidate is None
    code, _, err = fontes("gate", "run", path)
    assert code == 3
    assert "there is no table [candidate]" in err


def test_topics_without_judgments_are_not_asked(gate, tmp_path):
    path = gate()
    with (tmp_path / "queries.tsv").open("a") as file:
        file.write("more\tnot judged\n")
    read = GateFile.read(path)
    assert (len(read.topics), len(read.all_topics)) == (60, 61)


def test_init_writes_a_gate_that_runs(fontes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = fontes("gate", "init", "sample:harbour/claims")
    assert code == 0
    assert out.startswith("gate.toml, gate.baseline.run, gate.baseline.lock: 50 topics\n")
    assert fontes("gate", "run")[0] == 0
    assert fontes("gate", "init", "sample:harbour/claims")[0] == 3
    given = ("--topics", "sample:harbour/claims", "--qrels", "sample:harbour/claims", "--pipeline", "tfidf()")
    assert fontes("gate", "init", "gate.index", "sub.toml", *given)[0] == 0
    assert 'pipeline = "tfidf()"' in (tmp_path / "sub.toml").read_text()
    code, _, err = fontes("gate", "init", "gate.index", "other.toml")
    assert (code, "an index needs --topics and --qrels" in err) == (3, True)
    assert not (tmp_path / "other.toml").exists()


def test_init_leaves_no_file_if_its_pipeline_fails(fontes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fontes("gate", "init", "sample:harbour/claims", "--pipeline", "bm26()")[0] == 3
    assert not list(tmp_path.iterdir())


@each("name", ["gate.index", "gate.baseline.run", "gate.baseline.lock", "gate.results"])
def test_init_takes_no_index_and_no_baseline_of_another_collection(fontes, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    code, _, err = fontes("gate", "init", "sample:harbour/claims")
    assert (code, err) == (3, f"fontes: {name} exists; delete it, or name another file for the gate\n")
    assert [path.name for path in tmp_path.iterdir()] == [name]

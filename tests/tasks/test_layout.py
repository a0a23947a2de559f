"""Projects of tasks: what organisers give is found, laid out and checked; what is wrong with it is said."""

import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.each import each
from support.organisers import GIVEN, POSTS, lines, put, relevant

import fontes as ft
from fontes.core import FontesError
from fontes.core.errors import InputWarning
from fontes.experiments.experiment import ExperimentFile
from fontes.tasks import TaskProject, check_data, new_project
from fontes.tasks.project import toml
from fontes.tasks.release import ReleasedFiles


@each("name", GIVEN)
def test_the_organisers_own_form_becomes_a_project(name, tmp_path):
    project = new_project(name, tmp_path / "p", [GIVEN[name](tmp_path)])
    first, *_, last = project.sides.values()
    assert [topic.text for topic in first.topics.values()] == sorted_texts("dev", name)
    assert [topic.text for topic in last.topics.values()] == sorted_texts("test", name)
    relevant_docs = {doc for _, _, doc in relevant("dev")}
    assert {doc for grades in first.qrels.values() for doc in grades} == relevant_docs
    assert project.roles.choose == first.name
    assert project.roles.submit == (last.name,)
    found = check_data(project)
    assert not found.faults
    assert found.facts[0].startswith("documents: 150")
    assert TaskProject.open(tmp_path / "p").table == project.table
    assert ExperimentFile(tmp_path / "p" / "experiment.toml").baseline == "bm25"
    assert (tmp_path / "p" / "README.md").read_text().startswith(f"# {project.task.title}")


def sorted_texts(split, name):
    texts = [text for _, text, _ in relevant(split)]
    return [*texts[0::2], *texts[1::2]] if name == "checkthat2026-1" else texts


def test_snapshots_have_documents_of_their_own(tmp_path):
    project = new_project("longeval", tmp_path / "p", [GIVEN["longeval"](tmp_path)])
    assert list(project.sides) == ["train", "2025-01"]
    assert project.roles.measure == ("2025-01",)
    assert [line for line in check_data(project).facts if line.startswith("documents")][1].startswith("documents: 145")
    assert not project.sides["train"].qrels.groups("none")


def test_twins_and_empty_documents_of_a_snapshot_are_left_out_as_by_the_organisers(tmp_path):
    given = GIVEN["longeval"](tmp_path)
    documents = given / "training" / "documents" / "documents_000001.jsonl"
    first = json.loads(documents.read_text().partition("\n")[0])
    empty = {"id": "none", "title": "", "abstract": ""}
    documents.write_text(
        lines([empty | {"id": first["id"]}]) + documents.read_text() + lines([first | {"title": "twin"}, empty])
    )
    numbers = "153 documents, 150 kept; 1 with the id of an earlier one and 2 without title and text are left out"
    with pytest.warns(InputWarning, match=numbers):
        project = new_project("longeval", tmp_path / "p", [given])
    found = check_data(project)
    assert (found.facts[0].startswith("documents: 150"), found.faults) == (True, ())
    kept = {doc.id: doc.title for doc in ft.read_corpus(project.corpora["train"])}
    assert kept[first["id"]] == first["title"]
    assert Path(project.corpora["2025-01"]).resolve() == given / "testing" / "documents" / "documents_000001.jsonl"


def test_months_of_one_list_of_queries_are_snapshots(tmp_path):
    web = tmp_path / "French"
    put(web / "queries.txt", "q1\tcannery\nq2\tflood\n")
    for month, topic in (("2022-06_fr", "q1"), ("2022-07_fr", "q2")):
        put(web / "Trec" / month / "part.trec", f"<DOC>\n<DOCNO>d{topic}</DOCNO>\n<TEXT>words</TEXT>\n</DOC>\n")
        put(web / "qrels" / month / "qrels_processed.txt", f"{topic} 0 d{topic} 1\n")
    project = new_project("longeval", tmp_path / "p", [web])
    assert {name: list(side.topics) for name, side in project.sides.items()} == {"2022-06": ["q1"], "2022-07": ["q2"]}
    assert {name: Path(place).parent.name for name, place in project.corpora.items()} == {
        "2022-06": "2022-06_fr",
        "2022-07": "2022-07_fr",
    }


def test_numbered_snapshots_share_the_test_queries(tmp_path):
    """LongEval 2026: documents of three snapshots; training queries on the first, test queries on all."""
    given = tmp_path / "longeval"
    for number in (1, 2, 3):
        place = given / "processed" / "doc_collection_09032026" / f"snapshot-{number}" / "abstract" / "documents"
        put(place / "part.jsonl", lines([{"id": f"d{number}", "title": "cannery", "abstract": "fire"}]))
    put(given / "task1_longeval_adhoc-queries-snapshot-train.tsv", "t1\tcannery\n")
    put(given / "longeval_adhoc-queries-snapshot-test.tsv", "q1\tfire\nq2\tflood\n")
    qrels = given / "task1_longeval_adhoc-qrels-snapshot-train-raw.txt"
    put(qrels, "t1 0 d1 1\n")
    project = new_project("longeval", tmp_path / "p", [given])
    assert {name: list(side.topics) for name, side in project.sides.items()} == {
        "train": ["t1"],
        **{f"snapshot-{number}": ["q1", "q2"] for number in (1, 2, 3)},
    }
    assert ["snapshot-1" in str(project.corpora[name]) for name in project.sides] == [True, True, False, False]
    assert project.roles.submit == ("snapshot-1", "snapshot-2", "snapshot-3")
    put(given / qrels.name.replace("raw", "dctr"), "t1 0 d1 2\n")
    assert "judge the same queries; give one of them" in refused("longeval", tmp_path / "q", [given], tmp_path)


def test_touche_is_read_by_the_names_of_its_files(tmp_path):
    """The names on Zenodo: the year is in that of the archive, or of the judgments alone."""
    given = tmp_path / "touche"
    for archive, member, split in (
        ("topics-task-1.zip", "topics-task-1.xml", "dev"),
        ("topics-task-1-only-titles-2021.zip", "topics-task-1-only-titles.xml", "test"),
    ):
        topics = "".join(f"<topic><number>{i}</number><title>cannery</title></topic>" for i, _, _ in relevant(split))
        given.mkdir(exist_ok=True)
        with zipfile.ZipFile(tmp_path / archive, "w") as target:
            target.writestr(member, f"<topics>{topics}</topics>")
    for name, split in (
        ("touche2020-task1-relevance-args-me-corpus-version-2020-04-01-corrected", "dev"),
        ("touche-task1-51-100-relevance", "test"),
        ("touche-task1-51-100-quality", "test"),
    ):
        put(given / f"{name}.qrels", "".join(f"{i} 0 {doc} 2\n" for i, _, doc in relevant(split)))
    put(given / "args-me_2020-04-01.json", '{"arguments": []}')
    data = [given, tmp_path / "topics-task-1.zip", tmp_path / "topics-task-1-only-titles-2021.zip"]
    assert "all arguments in one JSON value" in refused("touche", tmp_path / "p", data, tmp_path)
    put(given / "passages.jsonl", lines({"id": doc.id, "contents": doc.text} for doc in POSTS.corpus))
    project = new_project("touche", tmp_path / "p", data)
    assert [(name, len(side.qrels)) for name, side in project.sides.items()] == [("2020", 20), ("2021", 20)]
    put(given / "touche2020-task1-relevance-args-me-corpus-version-1.qrels", f"{relevant('dev')[0][0]} 0 d 1\n")
    assert "several files judge its topics" in refused("touche", tmp_path / "q", data, tmp_path)


def beir(folder, **splits):
    put(folder / "corpus.jsonl", lines({"_id": doc.id, "title": doc.title, "text": doc.text} for doc in POSTS.corpus))
    rows = {i: text for half in ("dev", "test") for i, text, _ in relevant(half)}
    put(folder / "queries.jsonl", lines({"_id": i, "text": text} for i, text in rows.items()))
    for name, half in splits.items():
        rows = "".join(f"{i}\t{doc}\t1\n" for i, _, doc in relevant(half))
        put(folder / "qrels" / f"{name}.tsv", f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def test_a_beir_folder_serves_for_any_task(tmp_path):
    given = beir(tmp_path / "b", dev="dev", test="test")
    for name, data in ((f"beir:{given}", []), ("scifact", [given])):
        project = new_project(name, tmp_path / name.partition(":")[0], data)
        assert (project.roles.choose, project.roles.measure, project.roles.submit) == ("dev", ("test",), ("test",))
        assert Path(project.corpora["dev"]).samefile(given / "corpus.jsonl")


def test_a_sample_is_a_task_and_its_only_split_is_chosen_on_and_measured(tmp_path):
    project = new_project("beir:sample:harbour/posts", tmp_path / "p")
    assert project.corpora == {"posts": "sample:harbour/posts"}
    found = check_data(project)
    assert any("posts is the only judged side" in line for line in found.remarks)


def test_a_side_to_choose_on_is_said_to_be_the_only_judged_one_beside_the_training_side(tmp_path):
    project = new_project(f"beir:{beir(tmp_path / 'b', train='dev', dev='test')}", tmp_path / "p")
    assert any(line.startswith("dev is the only judged side beside train:") for line in check_data(project).remarks)


def test_shared_texts_and_lacking_documents_are_told(tmp_path):
    given = beir(tmp_path / "b", train="dev", test="test")
    texts = (given / "queries.jsonl").read_text().splitlines()
    copied = json.loads(texts[0])["text"]
    texts[-1] = json.dumps({**json.loads(texts[-1]), "text": copied.upper()})
    (given / "queries.jsonl").write_text("\n".join(texts) + "\n")
    with (given / "qrels" / "test.tsv").open("a") as file:
        file.write(f"{relevant('test')[0][0]}\tnowhere\t1\n")
    (given / "corpus.jsonl").open("a").write((given / "corpus.jsonl").read_text().splitlines()[0] + "\n")
    found = check_data(new_project("scifact", tmp_path / "p", [given]))
    remarks = "\n".join(found.remarks)
    assert "151 documents, and 5,183 were published" in remarks
    assert "test: 1 judged documents are not in the collection, such as 'nowhere'" in remarks
    assert "test shares with train the same text: 1 of 20 topics" in remarks
    assert "there is no dev side: parameters and weights are chosen on train" in remarks
    assert "1 documents have the id of another" in "\n".join(found.faults)


def refused(name, folder, data, tmp_path):
    with pytest.raises(FontesError) as error:
        new_project(name, folder, data)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bad_input_is_one_sentence_and_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "p"
    page = tmp_path / "page.zip"
    page.write_text("<html>404</html>")
    escaping = tmp_path / "escaping.zip"
    with zipfile.ZipFile(escaping, "w") as target:
        target.writestr("../outside.txt", "x")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as target:
        target.writestr("holiday.txt", "x")
    broken = tmp_path / "broken"
    put(broken / "subtask4b_query_tweets_dev.tsv", "post_id\ttweet_text\tcord_uid\n1\tone\td1\n2\ttwo\n")
    pickled = tmp_path / "pickled"
    put(pickled / "subtask4b_query_tweets_dev.tsv", "post_id\ttweet_text\tcord_uid\n1\tone\td1\n")
    (pickled / "subtask4b_collection_data.pkl").write_bytes(b"\x80\x04x")
    for name, data, message in [
        ("checkthat", [page], "there is no task 'checkthat'; there are beir:FOLDER, checkthat2025-4b"),
        ("beir", [], "beir needs its data"),
        ("scifact", [], "--data names what the organisers give"),
        ("scifact", [tmp_path / "nowhere"], "nowhere: there is no such file or folder"),
        ("scifact", [page], "page.zip: no archive, or a damaged one (File is not a zip file); fetch it again"),
        ("scifact", [escaping], "would be written outside the folder"),
        ("scifact", [other], "other.zip: no claims (claims_train.jsonl, …), which the organisers of scifact give"),
        ("checkthat2025-4b", [broken], "query_tweets_dev.tsv, line 3: 2 columns where the header has 3"),
        ("checkthat2025-4b", [pickled], "a pickle, which Fontes does not open"),
        ("beir:nowhere", [], "nowhere: there is no such file or folder"),
    ]:
        assert message in refused(name, folder, data, tmp_path)
        assert not folder.exists()
    assert not (tmp_path / "outside.txt").exists()
    (folder / "mine").mkdir(parents=True)
    assert "exists and is not empty" in refused("scifact", folder, [other], tmp_path)
    assert (folder / "mine").exists()


def packed(path, size):
    """Write an archive of one file of zeros."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            target.writestr("claims_train.jsonl", bytes(size))
    else:
        member = tarfile.TarInfo("claims_train.jsonl")
        member.size = size
        with tarfile.open(path, "w:gz") as target:
            target.addfile(member, io.BytesIO(bytes(size)))
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "A.TGZ"])
def test_an_archive_is_unpacked_up_to_a_size_and_a_ratio(name, tmp_path, monkeypatch):
    monkeypatch.setattr("fontes.storage.compression.MAX_SMALL", 50_000)
    assert (
        ReleasedFiles([packed(tmp_path / name, 30_000)], tmp_path / "small").files["claims_train.jsonl"].stat().st_size
        == 30_000
    )
    archive = packed(tmp_path / name, 3_000_000)
    size = archive.stat().st_size
    message = refused("scifact", tmp_path / "p", [archive], tmp_path)
    limit = max(100 * size, 50_000)
    assert message == (
        f"{archive}: its contents have more than {limit:,} bytes, for an archive of {size:,} bytes; if you trust it, "
        "unpack it and give the folder"
    )
    assert not (tmp_path / "p").exists()
    monkeypatch.setattr("fontes.storage.compression.MAX_UNPACKED", 40_000)
    assert "more than 40,000 bytes, the most that is unpacked; if" in refused("scifact", tmp_path / "p", [archive], tmp_path)


def test_a_name_of_an_archive_or_of_a_file_inside_leads_nowhere_else(tmp_path):
    (tmp_path / "same").mkdir()
    for name in (".zip", "..zip", "...zip", " .tar.gz"):
        archive = packed(tmp_path / name, 10)
        message = refused("scifact", tmp_path / "p", [archive], tmp_path)
        assert "which is taken; rename the archive" in message
    both = [packed(tmp_path / "a.zip", 10), packed(tmp_path / "same" / "a.tgz", 20)]
    assert f"{both[1]}: its contents would be written" in refused("scifact", tmp_path / "p", both, tmp_path)
    long_name, outside = tmp_path / "long.tar", tmp_path / "outside.tar"
    for path, name in ((long_name, "x" * 1_000_000), (outside, "../outside.txt")):
        with tarfile.open(path, "w") as target:
            target.addfile(tarfile.TarInfo(name), io.BytesIO())
    for path in (long_name, outside):
        assert str(path) in refused("scifact", tmp_path / "p", [path], tmp_path)
    assert not (tmp_path / "outside.txt").exists()


def test_toml_that_is_written_reads_back(tmp_path):
    import tomllib

    values = {
        "a": 'say "x" \\ é 🦉 \x7f',
        "numbers": [1, 2.5],
        "t": {"k": True, "u": {"v-w": "x"}},
        "systems": {"a.b": {"run": "r.run"}, "c": "bm25()"},
    }
    assert tomllib.loads(toml(values, "# said\n")) == values


def test_the_commands_lay_out_and_check(fontes, tmp_path):
    given = GIVEN["checkthat2025-4b"](tmp_path)
    code, output, _ = fontes("task", "new", "checkthat2025-4b", tmp_path / "p", "--data", given, "--quiet")
    assert code == 0
    assert "documents: 150\ndev: 20 topics, 20 judgments\ntest: 20 topics, no judgments\n" in output
    code, output, _ = fontes("task", "check", tmp_path / "p", "--json")
    assert code == 0
    assert json.loads(output)["faults"] == []
    code, output, _ = fontes("task", "list", "--json")
    assert {task["name"] for task in json.loads(output)} == {*GIVEN, "beir:FOLDER"}
    bad = tmp_path / "bad.tsv"
    bad.write_text("post_id\tpreds\n")
    code, _, error = fontes("task", "check", tmp_path / "p", "--submission", bad)
    assert code == 1
    assert "no line of topic" in error


def test_without_documents_it_says_what_can_be_done(fontes, tmp_path):
    given = beir(tmp_path / "b", dev="dev", test="test")
    (given / "corpus.jsonl").unlink()
    code, output, _ = fontes("task", "new", "checkthat2025-4b", tmp_path / "p", "--data", given)
    assert code == 0
    assert "fault: there are no documents: runs can be compared" in output
    code, _, error = fontes("task", "run", tmp_path / "p")
    assert code == 1
    assert error.count("\n") == 1
    assert "there are no documents, so nothing to search" in error
    shutil.rmtree(tmp_path / "p")
    assert ft.dataset(given).splits == ["dev", "test"]

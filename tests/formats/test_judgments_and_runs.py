"""Judgments and runs as other tools write them: comments, headers, JSON, subtopics, ranks from 0."""

import json
import re
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core.errors import InputWarning
from fontes.formats import json as json_format, read_qrels, read_run


def put(folder: Path, text: str, name: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


COMMENTS = [
    "# made by us",
    "#",
    "   # pool 10 1",
    "# one two 3 4 x",
    "\t#\t10",
    "#run of system B",
    "#qid Q0 docno rank score tag",
]


@each("comment", COMMENTS)
@each("place", [0, 1, 2])
def test_comments_are_skipped_in_qrels_and_runs_wherever_they_stand(tmp_path, comment, place):
    kinds = {
        "a.run": ["1 Q0 d1 1 2.0 x", "1 Q0 d2 2 1.0 x"],
        "m.run": ["1\td1\t1", "1\td2\t2"],
        "b.qrels": ["1\td1\t1", "1\td2\t0"],
    }
    kinds["c.qrels"] = ["1 0 d1 1", "1 0 d2 0"]
    for name, rows in kinds.items():
        path = put(tmp_path, "\n".join([*rows[:place], comment, *rows[place:]]) + "\n", name)
        read = read_run if name.endswith("run") else read_qrels
        assert list(read(path).to_dict()["1"]) == ["d1", "d2"]
    path = put(tmp_path, "\n".join([comment, "qid,docno,score", "1,d1,2.0"]), "d.csv")
    assert read_run(path).to_dict() == {"1": {"d1": 2.0}}


@each("delimiter", [",", ", ", ";", "|"])
def test_rows_of_a_table_whose_ids_begin_with_the_sign_of_comments_are_kept(tmp_path, delimiter):
    rows = [
        ("qid", "score", "docno"),
        ("#a", "2", "d1"),
        ("# made by a", "2", "x"),
        ("#qid", "score", "docno"),
        ("b", "1", "d1"),
    ]
    path = put(tmp_path, "\n".join(map(delimiter.join, rows)), "a.csv")
    with pytest.warns(InputWarning, match="line 2: read as a row of topic '#a'; trec_eval 10 takes it for a comment"):
        assert read_run(path).to_dict() == {"#a": {"d1": 2.0}, "b": {"d1": 1.0}}


def test_sampled_judgments_with_ids_that_begin_like_comments_are_kept(tmp_path):
    with pytest.warns(InputWarning, match="line 2: read as a row of topic '#2'"):
        qrels = read_qrels(put(tmp_path, "1 d1 1 0 .5\n#2 d1 0 1 1\n", "a.prels"))
    assert qrels.to_dict() == {"1": {"d1": 1}, "#2": {"d1": 0}}


def test_ids_with_a_number_sign_stay_ids(tmp_path):
    path = put(tmp_path, "1 Q0 doc#12 1 2.0 x\n#1 Q0 #7 1 2.0 x\n", "a.run")
    with pytest.warns(InputWarning, match="line 2: read as a row of topic '#1'; trec_eval 10 takes it for a comment"):
        assert read_run(path).to_dict() == {"1": {"doc#12": 2.0}, "#1": {"#7": 2.0}}


def test_comments_are_found_at_the_ends_of_blocks(tmp_path, monkeypatch):
    from fontes.formats import comments

    rows = "".join(f"1 Q0 d#{i} 1 {i} x\n# note {i}\n" for i in range(50))
    path = put(tmp_path, rows, "a.run")
    for size in (1, 7, 64):
        monkeypatch.setattr(comments, "BUFFER", size)
        assert len(read_run(path)["1"]) == 50


@each(
    "text",
    [
        "qid Q0 docno rank score tag\n1 Q0 d1 1 2.0 x\n",
        "qid\tdocno\trank\tscore\n1\td1\t0\t2.0\n",
        "q_id,doc_id,score\n1,d1,2.0\n",
        "query_id;doc_id;score\n1;d1;2.0\n",
        "queryId,docId,sim\n1,d1,2.0\n",
        '"qid","docid","score"\n"1","d1","2.0"\n',
        '[{"query_id": "1", "doc_id": "d1", "score": 2.0}]',
        '{"qid": 1, "docno": "d1", "score": 2.0}\n{"qid": 1, "docno": "d2", "score": 0.0}\n',
    ],
)
def test_runs_with_names_of_columns_are_read(tmp_path, text):
    assert read_run(put(tmp_path, text, "x"))["1"].scores[0] == 2.0


@each(
    "text",
    [
        "topic_id iter docno rel\n1 0 d1 2\n",
        "qid\tQ0\tdocid\trel\n1\t0\td1\t2\n",
        "tweet_id\t0\tvclaim_id\trelevance\n1\t0\td1\t2\n",
        "1 0 d1 +2\n",
        '{"1": {"d1": 2}}',
        '[{"qid": "1", "docid": "d1", "relevance": 2}]',
        '{"query-id": "1", "corpus-id": "d1", "score": 2}\n',
    ],
)
def test_judgments_with_names_of_columns_and_in_json_are_read(tmp_path, text):
    assert read_qrels(put(tmp_path, text, "x")).to_dict() == {"1": {"d1": 2}}


@pytest.mark.parametrize("name", ["relevance", "grade", "score"])
def test_judgments_in_json_have_their_own_grades(tmp_path, name):
    docs = [{"docno": "a", name: 0}, {"docno": "b", name: 2}]
    assert read_qrels(put(tmp_path, json.dumps({"1": docs}), "x.json")).to_dict() == {"1": {"a": 0, "b": 2}}


def test_without_scores_ranks_make_them_and_may_begin_with_0(tmp_path):
    for name, rows in {
        "a.run": "q\td1\t0\nq\td2\t1\n",
        "b.csv": "qid,docno,rank\nq,d1,0\nq,d2,1\n",
        "c.run": "q\td1\t1\nq\td2\t2\n",
    }.items():
        assert read_run(put(tmp_path, rows, name)).to_dict() == {"q": {"d1": 1.0, "d2": 0.5}}


@each("row", ["q d1 0 12.5", "q,Q0,d1,1,12.5,x", "q,d1,12.5", "q\td1\t12.5"])
def test_the_header_that_an_error_asks_for_makes_the_run_readable(tmp_path, row):
    with pytest.raises(ft.FontesError) as caught:
        read_run(put(tmp_path, f"{row}\n", "x.run"))
    header = re.search(r"need a header(?:, such as)?: (.+)$", str(caught.value))
    assert header
    columns = "\t".join(header[1].split()) if "\t" in row else header[1]
    assert read_run(put(tmp_path, f"{columns}\n{row}\n", "x.run")).to_dict() == {"q": {"d1": 12.5}}


def test_subtopics_are_no_evidence_sets_unless_they_are_asked_for(tmp_path):
    path = put(tmp_path, "51 1 dA 1\n51 2 dA 1\n51 2 dB 1\n51 3 dC 0\n", "div.qrels")
    assert [len(one) for one in read_qrels(path).groups("51")] == [1, 1]
    assert sorted(map(len, read_qrels(path, groups=True).groups("51"))) == [1, 2]
    run = {"51": {"dB": 1.0}}
    assert ft.evaluate(run, path, ["Complete@1"])["Complete@1"] == 0.0  # the measure asks for them


def test_a_document_of_several_subtopics_has_its_highest_grade(tmp_path):
    path = put(tmp_path, "201 1 dA 1\n201 2 dA 0\n201 3 dB 3\n201 4 dB -2\n", "div.qrels")
    with pytest.warns(InputWarning, match="'dA' for '201' has 1 with 1 and 0 with 2 in the second column; the highest counts"):
        assert read_qrels(path).to_dict() == {"201": {"dA": 1, "dB": 3}}


def test_samples_of_judgments_are_read_and_their_probabilities_named_as_unused(tmp_path):
    path = put(tmp_path, "1 cw-1 0 0 1\n1 cw-2 1 1 0.25\n", "p.prels")
    with pytest.warns(InputWarning, match="probabilities of sampling are not used"):
        assert read_qrels(path).to_dict() == {"1": {"cw-1": 0, "cw-2": 1}}


def test_a_group_column_of_a_table_says_what_it_is(tmp_path):
    qrels = ft.Qrels([("1", "g", "a", 1), ("1", "g", "b", 1)])
    assert ft.Qrels.of(put(tmp_path, "query_id,group,doc_id,relevance\n1,g,a,1\n1,g,b,1\n", "q.csv")).groups(
        "1"
    ) == qrels.groups("1")


def test_json_runs_of_ranx_are_read_of_any_length(tmp_path, monkeypatch):
    run = {f"q{i}": {f"d{j}": float(j) for j in range(20)} for i in range(200)} | {"empty": {}}
    path = put(tmp_path, json.dumps(run, indent=1), "ranx.json")
    monkeypatch.setattr(json_format, "BUFFER", 100)
    assert read_run(path) == ft.Run.of(run)
    assert read_run(path, {"q0": "text"}).topics["q0"].text == "text"
    assert read_run(put(tmp_path, json.dumps({"q": [["a", 2.0], ["b", 1]]}), "x.json")).to_dict() == {"q": {"a": 2.0, "b": 1.0}}
    assert read_run(put(tmp_path, json.dumps({"q": ["a", "b"]}), "x.json")).to_dict() == {"q": {"a": 1.0, "b": 0.5}}


MTEB = {
    "mteb_model_meta": {"model_name": "m", "revision": "1"},
    "eng": {"dev": {"q": {"d": 0.5}}, "test": {"q1": {"d": 0.25}}},
    "ces": {"test": {"q2": {"d": 1.0}}},
}


def test_predictions_of_mteb_are_read_by_subset_and_split(tmp_path, fontes):
    path = put(tmp_path, json.dumps(MTEB), "NFCorpus predictions.json")
    assert (
        read_run(path, split="eng/test").to_dict()
        == read_run(path, split="eng/test", format="json").to_dict()
        == {"q1": {"d": 0.25}}
    )
    assert list(read_run(path, split="dev")) == ["q"]
    only = {name: value for name, value in MTEB.items() if name != "eng"}
    assert list(read_run(put(tmp_path, json.dumps(only), "one.json"))) == ["q2"]


def test_the_command_that_writes_one_split_of_predictions_works(tmp_path, fontes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, json.dumps(MTEB), "NFCorpus predictions.json")
    _, _, error = fontes("convert", "run", "NFCorpus predictions.json", "all.run")
    run_advised(error, fontes)
    assert (tmp_path / "one.run").read_text() == "q Q0 d 1 0.5 fontes\n"


def run_advised(error: str, fontes) -> str:
    """Run the command that an error advises, and return what it prints."""
    import shlex

    command = re.search(r"fontes ((?:convert|index) .+?)(?: \(in Python|\)?; |\n|$)", error)
    assert command, error
    status, output, problem = fontes(*shlex.split(command[1]))
    assert status == 0, problem
    return output


def test_commands_read_evidence_sets_where_a_measure_needs_them(tmp_path, fontes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sets = "".join(f"{topic} {group} {doc} 1\n" for topic in "1234" for group, doc in (("g", "a"), ("g", "b"), ("h", "c")))
    put(tmp_path, sets, "sets.qrels")
    for name, order in (("x.run", "adc"), ("y.run", "dca")):
        put(tmp_path, "".join(f"{t} Q0 {doc} 1 {9 - i} x\n" for t in "1234" for i, doc in enumerate(order)), name)
    assert json.loads(fontes("eval", "sets.qrels", "x.run", "Complete@2", "Success@2", "--json")[1])["measures"] == {
        "Complete@2": 0.0,
        "Success@2": 1.0,
    }
    report = json.loads(fontes("compare", "sets.qrels", "x.run", "y.run", "-m", "Complete@2", "--json")[1])
    assert [system["means"]["Complete@2"] for system in report["systems"].values()] == [0.0, 1.0]
    learned = json.loads(
        fontes(
            "fuse",
            "x.run",
            "y.run",
            "--learn",
            "sets.qrels",
            "--measure",
            "Complete@2",
            "--folds",
            "2",
            "-o",
            "z.run",
            "--json",
        )[1]
    )
    assert learned["weights"][1] > learned["weights"][0]

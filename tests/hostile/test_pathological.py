"""Files that were made to take long, to take memory, or to meet the limits of Python: each is one sentence, and soon."""

import gzip
import json
from pathlib import Path

import pytest
from support.each import each
from support.hostile import outcome, within

import fontes as ft
from fontes.core import InputError
from fontes.core.errors import MAX_MESSAGE as LONGEST_MESSAGE, ParameterError
from fontes.core.work import memory_size
from fontes.experiments.experiment import ExperimentFile
from fontes.experiments.provenance import read_lock
from fontes.formats import read_corpus, read_qrels, read_run, read_topics, write_qrels, write_run
from fontes.measures import evaluate, parse
from fontes.storage import files

LONG = 1 << 16  # bytes of what is read in one piece while these tests run
READ = {"corpus": lambda path, form: list(read_corpus(path, form)), "topics": read_topics, "qrels": read_qrels, "run": read_run}
READ["run"] = lambda path, form: read_run(path, format=form)


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr(files, "MAX_PIECE", LONG)


LINE = b"x" * LONG + b" 1\n"
LINES = b"some words\n" * (LONG // 10)
TOO_LONG = [
    ("corpus", "jsonl", LINE, ", line 1: the line is longer"),
    ("corpus", "jsonl", b'{"_id": "1", "text": ""}\n' + LINE, ", line 2: the line is longer"),
    ("corpus", None, LINE, ", line 1: the line is longer"),
    ("corpus", "csv", b"id,text\n1,x\n2," + LINE, ", line 3: the line is longer"),
    ("corpus", "csv", b'id,text\n1,x\n2,"' + LINES, ", line 3: the row that begins here is longer"),
    ("corpus", "csv", b"id,text\n1,x\n2," + b'"\n",' * (LONG // 4), ", line 3: the row that begins here is longer"),
    ("corpus", "tsv", b"1\tx\n" + LINE, ", line 2: the line is longer"),
    ("corpus", "trec", b"\n<DOC><DOCNO>1</DOCNO>\n" + LINES, ", line 2: the <DOC> that begins here is longer"),
    ("corpus", "text", LINES, ": the file is longer"),
    ("topics", "jsonl", LINE, ", line 1: the line is longer"),
    ("topics", "tsv", b"\n\n" + LINE, ", line 3: the line is longer"),
    ("topics", "json", b"[1" + b",\n1" * LONG, ": the file is longer"),
    ("topics", "cast", b"[1" + b",\n1" * LONG, ": the file is longer"),
    ("topics", "canard", b"[1" + b",\n1" * LONG, ": the file is longer"),
    ("topics", "xml", b"<topics>" + LINES, ": the file is longer"),
    ("topics", "xml", b"<?xml version='1.0' encoding='big5'?>\n<topics>" + LINES, ": the file is longer"),
    ("topics", "trec", b"<top>\n" + LINES, ": the file is longer"),
    ("topics", None, b"{" + LINE, ", line 1: the line is longer"),
    ("qrels", "trec", b"1 0 d 1\n" + LINE, ", line 2: the line is longer"),
    ("qrels", None, LINE, ", line 1: the line is longer"),
    ("run", "trec", b"1 Q0 d 1 1 t\n" * 20_000 + LINE, ", line 20001: the line is longer"),
    ("run", "msmarco", LINE * 2, ", line 1: the line is longer"),
    ("run", None, LINE, ", line 1: the line is longer"),
]


@pytest.mark.parametrize(("kind", "form", "content", "problem"), TOO_LONG)
@pytest.mark.parametrize("ending", ["", pytest.param(".gz", marks=pytest.mark.slow)])
def test_what_is_too_long_to_be_read_in_one_piece_is_an_error(bounded, tmp_path, kind, form, content, problem, ending):
    path = tmp_path / f"file{ending}"
    path.write_bytes(gzip.compress(content, 1) if ending else content)
    with within(10), pytest.raises(InputError) as caught:
        READ[kind](path, form)
    assert str(caught.value).startswith(f"{path}{problem} than {LONG:,} bytes, ")


@pytest.mark.parametrize("size", [5, 64])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(monkeypatch, tmp_path, size):
    monkeypatch.setattr(files, "MAX_PIECE", 100)
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf" + b"ab\n" + b"x" * 99 + b"\n\n" + b"y" * 100)
    with files.reading(tmp_path / "f") as source:
        assert [len(line) for line in source.lines()] == [3, 100, 1, 100]
    with files.reading(tmp_path / "f") as source:
        blocks = list(source.blocks(size))
    assert b"".join(blocks) == (tmp_path / "f").read_bytes()[3:]
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    (tmp_path / "f").write_bytes(b"ab\n" + b"x" * 100 + b"\n\n")
    for read in (files.InputFile.lines, lambda source: source.blocks(size)):
        with files.reading(tmp_path / "f") as source, pytest.raises(InputError, match="line 2: the line is longer than 100"):
            list(read(source))


def deep(pair: str, n: int = 50_000) -> str:
    return pair[0] * n + pair[1] * n


DIGITS = "9" * 5000
TURNS = [{"number": n, "raw_utterance": "x"} for n in range(1001)]
TABLE = [
    ("topics", "json", deep("[]"), "broken JSON (nested too deeply)"),
    ("topics", "canard", deep("[]"), "broken JSON (nested too deeply)"),
    ("topics", "jsonl", '{"_id": "1", "text": ' + deep("[]") + "}", ", line 1: broken JSON (nested too deeply): "),
    ("corpus", "jsonl", '{"_id": "1"}\n{"_id": ' + DIGITS + "}", ", line 1: no text"),
    ("corpus", "jsonl", '\n{"_id": ' + DIGITS + "}", ", line 2: broken JSON (a number of thousands of digits)"),
    ("topics", "json", '{"1":\n' + DIGITS + "}", ", line 2: broken JSON (a number of thousands of digits)"),
    ("topics", "canard", "[\n\n" + DIGITS + "]", ", line 3: broken JSON (a number of thousands of digits)"),
    ("topics", "jsonl", '{"_id": "1", "text": "x", "weights": {"a": 1e999}}', "the weight inf is not a number"),
    ("topics", "jsonl", '{"_id": "1", "text": "x", "weights": {"a": "1_0"}}', "'1_0' is not a number"),
    ("topics", "jsonl", '{"_id": "1", "text": "x", "weights": {"a": 1' + "0" * 400 + "}}", "the number is too great"),
    ("topics", "jsonl", '{"_id": "\\ud800", "text": "x"}', "half of a surrogate pair"),
    ("topics", "xml", '<?xml version="1.0" encoding="nonsense"?><topics/>', ", line 1: there is no encoding 'nonsense'"),
    ("topics", "xml", '<?xml version="1.0" encoding="punycode"?>' + "x" * 99_999, ", line 1: there is no encoding 'punycode'"),
    ("topics", "xml", '<?xml version="1.0" encoding="utf-16"?><topics/>', ": holds no topics, such as <top>"),
    ("topics", "xml", '<!DOCTYPE t [<!ENTITY a "b">]><topics/>', "declares entities of its own"),
    ("topics", "xml", "<topics>" + "<topic number='1'>" * 20_000, "broken XML"),
    ("topics", "cast", '[{"number": 1, "turn": []}, 5]', ", item 2: a int where a conversation belongs"),
    ("topics", "cast", '[{"number": 1, "turn": []}, null]', ", item 2: a NoneType where a conversation belongs"),
    ("topics", "cast", '[{"number": [1], "turn": []}]', ", item 1: the conversation has no number"),
    ("topics", "cast", '[{"number": 1, "turn": [{"number": {}}]}]', "'turn' is not a list of turns with numbers"),
    (
        "topics",
        "cast",
        '[{"number": 1, "turn": [{"number": 1, "raw_utterance": ["x"]}]}]',
        "'raw_utterance' of turn 1 is a list",
    ),
    ("topics", "cast", json.dumps([{"number": 1, "turn": TURNS}]), "the conversation has more than 1,000 turns"),
    (
        "topics",
        "cast",
        "\n".join(json.dumps({"topic": 1, "turn": n, "raw": "x"}) for n in range(1001)),
        "more than 1,000 turns",
    ),
    ("topics", "cast", '{"topic": 1, "turn": [1], "raw": "x"}', ", item 1: the conversation has no number"),
    ("corpus", "trec", "<DOC>" * 50_000 + "</docx" * 50_000, ", line 1: the <DOC> that begins here has no </DOC>"),
    ("corpus", "trec", "<DOC x" * 50_000 + "</doc>", ", line 1: the <DOC> that begins here has no > after its name"),
    ("qrels", "trec", "1 0 a 1\n1 0 b 1_0\n", ", line 2: the grade '1_0' is not an integer"),
    ("qrels", "trec", "1 0 a ١\n", ", line 1: the grade '١' is not an integer"),
    ("qrels", "trec", "1 0 a 1\n1 0 b 9223372036854775808\n", ", line 2: the grade '9223372036854775808' is not an integer"),
    (
        "qrels",
        "trec",
        "1 0 b 1\n1 0 c " + "9" * 18,
        ", line 2: topic '1', document 'c': the grade 999999999999999999 lies beyond",
    ),
    ("qrels", "beir", "1\ta\t" + DIGITS, ", line 1: the grade '999"),
    ("run", "trec", "1 Q0 a 1 1 t\n1 Q0 b 2 1_0 t\n", ", line 2: the score '1_0' is not a number"),
    ("run", "trec", "1 Q0 a_b 1 1 t\n1 Q0 b 2 nan t\n", ", line 2: the score 'nan' is not a number"),
    ("run", "msmarco", "1 a 1\n1 b 1_0\n", ", line 2: the rank '1_0' is not a whole number from 0"),
    ("run", "msmarco", "1 a 1\n1 b " + DIGITS, ", line 2: the rank '999"),
]


@each(("kind", "form", "content", "problem"), TABLE)
def test_a_file_that_meets_a_limit_is_one_sentence(tmp_path, kind, form, content, problem):
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    with within(10), pytest.raises(InputError) as caught:
        READ[kind](path, form)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert problem in message
    assert len(message) <= LONGEST_MESSAGE
    assert len(message.splitlines()) == 1


QUICK = [
    ("corpus", "trec", "<DOC><DOCNO>1</DOCNO>" + "<TEXT>" * 200_000 + "x</DOC>", [("1", "x")]),
    ("corpus", "trec", "<DOC><DOCNO>1</DOCNO><TEXT>" + "<!--" * 200_000 + " x</TEXT></DOC>", [("1", "<!--" * 200_000 + " x")]),
    (
        "corpus",
        "trec",
        "<DOC><DOCNO>1</DOCNO>" + "x\n</docx\n" * 50_000 + "</DOC>",
        [("1", "x\n</docx\n" * 49_999 + "x\n</docx")],
    ),
    ("corpus", "trec", f"<DOC><DOCNO>1</DOCNO>&#{DIGITS}; &#000000000065; &#{'0' * 5000}66;</DOC>", [("1", "\ufffd A B")]),
    ("topics", "trec", f"<top><num>Number: {'0' * 5000}51<title>&#{DIGITS}; x</top>", [("51", "\ufffd x")]),
    (
        "topics",
        "xml",
        f"<t><topic number='1'><title>a</title>{deep('xy', 0)}{'<topic>' * 9000}{'</topic>' * 9001}</t>",
        [("1", "a")],
    ),
    (
        "topics",
        "xml",
        "<?xml version='1.0' encoding='big5'?><t><topic number='1'><query>東京</query></topic></t>",
        [("1", "東京")],
    ),
]


@each(("kind", "form", "content", "expected"), QUICK)
def test_what_took_the_square_of_its_length_takes_moments(tmp_path, kind, form, content, expected):
    path = tmp_path / "file"
    path.write_bytes(content.encode("big5" if "big5" in content else "utf-8"))
    with within(10):
        read = READ[kind](path, form)
    values = read.values() if kind == "topics" else read
    assert [(value.id, value.text) for value in values] == expected


def test_judgments_in_many_groups_are_written_in_moments(tmp_path):
    qrels = ft.Qrels(("q", f"g{n}", f"d{n}", 1) for n in range(20_000))
    with within(10):
        write_qrels(qrels, tmp_path / "qrels")
    assert list(read_qrels(tmp_path / "qrels", groups=True).rows()) == list(qrels.rows())


def test_a_group_with_white_space_and_half_a_surrogate_pair_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="the group id 'a b' has white space in it"):
        write_qrels(ft.Qrels([("q", "a b", "d", 1)]), tmp_path / "qrels")
    with pytest.raises(InputError, match=r"the topic id .* has half of a surrogate pair in it"):
        write_run({"\ud800": {"d": 1.0}}, tmp_path / "run")
    with pytest.raises(InputError, match=r"the document id .* has half of a surrogate pair in it"):
        write_qrels(ft.Qrels([("q", "0", "\udfff", 1)]), tmp_path / "qrels")
    with pytest.raises(ParameterError, match="the tag"):
        write_run({"q": {"d": 1.0}}, tmp_path / "run", tag="\ud800")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b", "a" * 5000])
def test_a_path_that_no_file_can_have_is_one_sentence(path):
    for kind in READ:
        outcome(lambda kind=kind: READ[kind](path, None), "a")
        outcome(lambda kind=kind: READ[kind](Path(path), None), "a")
    outcome(lambda: write_run({"q": {"d": 1.0}}, path), "a")
    outcome(lambda: ft.Index.open(path), "a")
    outcome(lambda: ft.Index.build([("1", "x")], path), "a")
    outcome(lambda: ExperimentFile(path), "a")


@each(
    "content",
    [
        "a = " + deep("[]"),
        f"a = {DIGITS}",
        "a = 0x" + "f" * 5000,
        "x" + ".y" * 5000 + " = 1",
        "a = " + deep("[]", 200),
        "[systems]\nx = 0x" + "f" * 5000,
    ],
)
def test_the_file_of_an_experiment_that_meets_a_limit_is_one_sentence(tmp_path, content):
    path = tmp_path / "e.toml"
    path.write_text(content)
    with within(10), pytest.raises(InputError) as caught:
        ExperimentFile(path)
    assert str(caught.value).startswith(str(path))


@each("content", [deep("[]"), '{"layout": ' + DIGITS + "}", '{"layout": 2, "versions": 5}', "[]", '{"layout": 3}'])
def test_a_lock_that_meets_a_limit_is_one_sentence(tmp_path, content):
    path = tmp_path / "e.lock"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_lock(path)
    assert str(caught.value).startswith(str(path))


def test_a_measure_of_no_sense_is_one_sentence():
    for name in [
        "P@{[]}",
        "P(rel={[]:1})@5",
        f"P@{DIGITS}",
        "P@0x" + "f" * 5000,
        "P@" + "9" * 30,
        "RBP(p=" + "-" * 9999 + "1)",
        "SetF(beta=1e200)",
    ]:
        with pytest.raises(ParameterError) as caught:
            parse(name)
        assert len(str(caught.value)) <= LONGEST_MESSAGE


def test_gains_beyond_every_float_are_an_error_that_names_the_topic():
    run, qrels = {"q": {"d": 1.0}, "r": {"d": 1.0}}, {"q": {"d": 3}, "r": {"d": 1024}}
    with pytest.raises(InputError, match="topic 'r': 2 to the power of its grades"):
        evaluate(run, qrels, "nDCG(dcg='exp-log2')")
    assert evaluate(run, qrels, "nDCG")["nDCG"] == 1
    with pytest.raises(InputError, match="topic 'r'"):
        evaluate(run, qrels, "ERR")


def test_a_grade_that_no_float_holds_is_an_error():
    for grade in [2**53 + 1, -(2**60), 10**400, "1_0", float("inf"), float("nan")]:
        with pytest.raises(InputError):
            ft.Qrels.of({"q": {"d": grade}})


def test_ngrams_of_no_sense_are_one_sentence():
    for spec in ["standard+words:1-999999999", "standard+chars:1-33", f"standard+chars:1-{DIGITS}", "standard+words:١-٢"]:
        with pytest.raises(ParameterError) as caught:
            ft.Analyzer.of(spec)
        assert "n-grams of sizes" in str(caught.value) or "+words:1-2" in str(caught.value)


def test_a_size_of_memory_that_nobody_has_is_one_sentence():
    for size in ["9" * 30, "9" * 5000, "9" * 30 + "T", "0", "nan", "1_0M", 10**30, -1, True]:
        with pytest.raises(ParameterError, match="memory must be a size such as 500M or 2G, 1024T at the most"):
            memory_size(size)


def test_a_message_with_pieces_of_a_file_is_one_line_of_bounded_length():
    message = str(InputError("f: 'a\nb\x1b[31m\u2028c\ud800'" + "x" * 9999 + "the end"))
    assert message.startswith("f: 'a b\\x1b[31m c\\ud800'xxx")
    assert message.endswith("x the end") is False
    assert message.endswith("xthe end")
    assert len(message) <= LONGEST_MESSAGE + 20

"""Files and texts that nobody would write, from a grammar of each format, and what may come of reading them."""

import bz2
import gzip
import io
import json
import lzma
import os
import signal
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, Phase, core, given, seed, settings, strategies as st

from fontes.core.errors import FontesError

EXAMPLES = 25  # of each grammar in `make test`
MANY = int(os.environ.get("FONTES_EXAMPLES", 6_000))  # in `make test-all`
TOGETHER = 500  # of one search: hypothesis keeps 0.2 MB of each of its examples
SECONDS = 20  # that one example may take
COUNTS: Counter[str] = Counter()
each_grammar = pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(MANY, marks=pytest.mark.slow)])
"""For tests that take a number of examples: few of them, and in `make test-all` many."""


def words(text: str) -> list[str]:
    """The words of a text; a long list is easier to read so."""
    return text.split()


def fuzz(strategy: st.SearchStrategy[Any], examples: int, check: Callable[[Any], None]) -> None:
    """Calls `check` with that many examples."""
    for first in range(0, examples, TOGETHER):

        @settings(
            max_examples=min(TOGETHER, examples - first),
            deadline=None,
            database=None,
            derandomize=settings.default.derandomize and examples <= 6 * EXAMPLES,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def run(example: Any) -> None:
            check(example)

        if first and core.global_force_seed is not None:  # --hypothesis-seed, with which each search would make the same
            run = seed(core.global_force_seed + first)(run)
        run()


def outcome(action: Callable[[], Any], named: str = "") -> Any:
    """The value of the action, or None where it ends in one sentence that has `named` in it; nothing else may come of it."""
    with within(SECONDS):
        try:
            value = action()
        except FontesError as error:
            COUNTS["errors"] += 1
            message = str(error)
            assert message
            assert len(message.splitlines()) == 1
            assert named in message
            return None
    COUNTS["values"] += 1
    return value


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """The block, which fails where it takes longer."""

    def late(number: int, frame: object) -> None:
        pytest.fail(f"takes more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def summary() -> str:
    """What came of all examples so far; empty where there were none."""
    if not COUNTS:
        return ""
    total = f"{COUNTS.total():,} hostile files and texts"
    return f"{total}: {COUNTS['values']:,} gave a value, {COUNTS['errors']:,} an error of one sentence"


# What may stand where an id, a number or a word is expected.
WORDS = st.sampled_from([*words("q1 q2 d1 d2 1 2 0 Q0 x text é 東京 %s {}"), "a b", "\u2028", "\u0085", "\x1c", "\0", "\x0b"])
NUMBERS = st.sampled_from(
    [
        *words(
            "0 1 2 -1 1.5 1_0 1e5 1e999 -1e999 nan NaN inf -Infinity 0x10 0b1 0o7 ١ ² 1e-400 +5 --1 1. .5 1000 2000 1j True -0"
        ),
        *("9" * 30, "9" * 400, "9" * 5000, "0x" + "f" * 5000),
    ]
)
REFERENCE = "&#" + "9" * 5000 + ";"
ODD = st.sampled_from(["", " ", "\t", "\ufeff", "\u200d", '"', "'", '""', "\\", REFERENCE, "<", ">", "[", "{", "#", "@"])
CELLS = st.one_of(WORDS, WORDS, NUMBERS, ODD)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "", "\n\n", "\x0c\n"])
DEEP = st.integers(0, 3).map(lambda n: [50, 900, 3000, 20_000][n])


def damaged(texts: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    """The bytes of a text, perhaps in another encoding, cut, doubled, packed, or with other bytes in between."""

    def encoded(text: str, how: int, at: float, odd: bytes) -> bytes:
        content = text.encode("utf-8", "surrogatepass")
        place = int(at * len(content))
        ways: list[Callable[[], bytes]] = [
            lambda: content[:place],
            lambda: content[:place] + odd + content[place:],
            lambda: content[:place] + content[place // 2 :],
            lambda: b"\xef\xbb\xbf" + content,
            lambda: text.encode("utf-16", "surrogatepass"),
            lambda: text.encode("latin-1", "replace"),
        ]
        return ways[how]() if how < len(ways) else content

    odd = st.sampled_from([b"\xff", b"\xed\xa0\x80", b"\0", b"\n", b"\x1a", b"\xc3", b" ", b"\t"])
    return st.builds(encoded, texts, st.integers(0, 17), st.floats(0, 1), odd)


def packed(contents: st.SearchStrategy[bytes]) -> st.SearchStrategy[tuple[bytes, str]]:
    """The content of a file and its ending, perhaps of a compressed one, which may be cut off or not compressed at all."""

    def pack(content: bytes, how: int, ending: str) -> tuple[bytes, str]:
        if how > 2:
            return content, ""
        stored = PACKERS[ending](content)
        return [stored, stored[: len(stored) // 2], content][how], ending

    return st.builds(pack, contents, st.integers(0, 9), st.sampled_from(sorted(PACKERS)))


def zipped(content: bytes) -> bytes:
    """A zip archive of one file."""
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("file", content)
    return stored.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1),
    ".bz2": lambda content: bz2.compress(content, 1),
    ".xz": lambda content: lzma.compress(content, preset=0),
    ".zst": zstandard.compress,
    ".zip": zipped,
}


def sheet(kind: str) -> st.SearchStrategy[bytes]:
    """A workbook ("xlsx") or a file of Parquet, which may be cut off or have other bytes in it."""
    names = st.lists(st.sampled_from(words("id text title qid query docno label 1 2 year")) | CELLS, min_size=1, max_size=5)
    values = CELLS | st.sampled_from(
        [None, 7, 2.5, float("nan"), True, 10**18, -1, date(2020, 5, 17), datetime(2020, 5, 17, 12)]
    )
    grids = st.tuples(names, st.lists(st.lists(values, max_size=5), max_size=4))

    def stored(grid: tuple[list[str], list[list[Any]]]) -> bytes:
        header, rows = grid
        content = io.BytesIO()
        if kind == "xlsx":
            openpyxl = pytest.importorskip("openpyxl")
            book = openpyxl.Workbook()
            for row in [header, *rows]:
                legal = [c if not isinstance(c, str) else openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", c) for c in row]
                book.active.append([c.encode("utf-8", "replace").decode()[:30_000] if isinstance(c, str) else c for c in legal])
            book.save(content)
        else:
            arrow = pytest.importorskip("pyarrow")
            columns = []
            for n in range(len(header)):
                cells = [row[n] if n < len(row) else None for row in rows]
                kinds = {type(cell) for cell in cells if cell is not None}
                safe = cells if len(kinds) == 1 and str not in kinds else [None if c is None else str(c) for c in cells]
                columns.append([c.encode("utf-8", "replace").decode() if isinstance(c, str) else c for c in safe])
            table = arrow.Table.from_arrays(
                [arrow.array(c) for c in columns], [n.encode("utf-8", "replace").decode() for n in header]
            )
            pytest.importorskip("pyarrow.parquet").write_table(table, content)
        return content.getvalue()

    def hurt(content: bytes, how: int, at: float) -> bytes:
        place = int(at * len(content))
        return (
            [content[:place], content[:place] + b"\xff" * 9 + content[place + 9 :], content[place // 2 :]][how]
            if how < 3
            else content
        )

    return st.builds(hurt, grids.map(stored), st.integers(0, 9), st.floats(0, 1))


def table(separators: str = "\t ,;") -> st.SearchStrategy[str]:
    """Lines of cells."""
    row = st.tuples(st.lists(CELLS, max_size=7), st.sampled_from(separators), ENDS).map(lambda r: r[1].join(r[0]) + r[2])
    numbers = st.one_of(st.sampled_from("012345"), st.sampled_from("012345"), NUMBERS)
    ids = st.integers(0, 40).map("d{}".format)
    right = st.tuples(WORDS, st.sampled_from(["0", "Q0", "g1"]), ids, numbers, numbers, st.just("tag"))
    kinds = [
        right.map(lambda r: " ".join(r) + "\n"),
        right.map(lambda r: " ".join(r[:4]) + "\n"),
        right.map(lambda r: "\t".join((r[0], r[2], r[3])) + "\n"),
    ]
    rows = st.one_of(row, *kinds)
    of_one_kind = st.integers(1, 3).flatmap(lambda n: st.lists([rows, *kinds][n], max_size=6))
    return st.one_of(st.lists(rows, max_size=6), of_one_kind).map("".join)


def json_text(keys: list[str]) -> st.SearchStrategy[str]:
    """A JSON value, sound or not, with objects of such keys."""
    strings = CELLS.map(json.dumps)
    odd = st.sampled_from(['"\\ud800"', '"\\u0000"', '"a\\nb"', "null", "true", "NaN", "Infinity", "[", "}", "", '"', "1 1"])
    deep = st.tuples(DEEP, st.sampled_from(["[]", '{"a":}'])).map(lambda d: d[1][:-1] * d[0] + "1" + d[1][-1] * d[0])
    atoms = st.one_of(strings, strings, strings, NUMBERS, odd, deep)
    names = st.sampled_from([json.dumps(key) for key in keys] + ['"x"', '"a\\nb"'])

    def larger(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        listed = st.lists(values, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        pairs = st.lists(st.tuples(names, values), max_size=6)
        return listed | pairs.map(lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items) + "}")

    return st.recursive(atoms, larger, max_leaves=12)


def records(fields: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """A JSON object of these fields, of which some are left out and some have any value."""
    anything = json_text(list(fields))
    values = {key: st.one_of(*[value] * 12, anything, st.just("")) for key, value in fields.items()}
    return st.fixed_dictionaries(values).map(
        lambda row: "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in row.items() if value) + "}"
    )


def listed(items: st.SearchStrategy[str], separator: str = ",\n") -> st.SearchStrategy[str]:
    """A JSON list of at most five."""
    return st.lists(items, max_size=5).map(lambda rows: f"[{separator.join(rows)}]")


def lines(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """At most five, each with an end of a line."""
    return st.lists(st.tuples(items, ENDS).map("".join), max_size=5).map("".join)


TEXT = CELLS.map(json.dumps)
LABEL = st.one_of(TEXT, st.sampled_from(["1", "2", "3", '"1-1"', '"1-2"', "null"]))
DOCUMENT = records({"_id": LABEL, "title": TEXT, "text": TEXT, "metadata": json_text(["year"])})
SAID = records({"text": TEXT, "manual": TEXT})
TOPIC = records({"_id": LABEL, "text": TEXT, "turns": listed(SAID), "weights": json_text(["a"])})
TURN = records(
    {"number": LABEL, "raw_utterance": TEXT, "parent": LABEL, "participant": st.sampled_from(['"User"', '"System"', "1"])}
    | {"passage": TEXT, "response": TEXT, "provenance": json_text(["x"]), "canonical_result_id": LABEL, "passage_id": LABEL}
)
CONVERSATION = records({"number": LABEL, "turn": listed(TURN), "description": TEXT, "title": TEXT})
CAST_LINE = records({"topic": LABEL, "turn": LABEL, "raw": TEXT, "manual": TEXT, "_id": LABEL, "description": TEXT})
QUESTION = records({"QuAC_dialog_id": TEXT, "Question_no": NUMBERS, "Question": TEXT, "Rewrite": TEXT, "History": listed(TEXT)})

PASSAGE = records({"id": LABEL, "text": TEXT, "score": NUMBERS, "rank": NUMBERS})
PAIRED = records({"first": TEXT, "second": TEXT, "label": NUMBERS})


def training_example(passages: st.SearchStrategy[str] = PASSAGE) -> st.SearchStrategy[str]:
    """A line that a reranker learns from, of whose negatives some are sound."""
    sound = st.integers(0, 40).map(lambda n: json.dumps({"id": f"d{n}", "text": f"text {n}", "score": n / 7, "rank": n + 1}))
    query = st.one_of(st.just('"a query"'), TEXT)
    return records(
        {"topic": LABEL, "query": query, "positive": sound | passages, "negatives": listed(sound) | listed(passages)}
    )


def markup(tags: list[str]) -> st.SearchStrategy[str]:
    """Tags, closed or not, with text, comments, entities and attributes in between."""
    names = st.sampled_from(tags)
    attribute = st.sampled_from(["", "", ' number="1"', ' id="q 2"', " number=1", ' number="', "\n", ' a="&#0;"'])
    opening = st.builds("<{}{}>".format, names, attribute)
    closing = names.map("</{}>".format)
    odd = st.sampled_from(
        [
            *words("<!-- --> &amp; &lol; & < </ <?xml?> &#x110000; &#xD800; Narrative: </doc <![CDATA[x]]>"),
            *(REFERENCE, "Number: 051", '<!DOCTYPE a [<!ENTITY lol "lol">]>', "</DOC   >", "<doc\n>"),
        ]
    )
    element = st.deferred(
        lambda: st.builds(lambda n, a, inner: f"<{n}{a}>{''.join(inner)}</{n}>", names, attribute, st.lists(piece, max_size=4))
    )
    deep = st.tuples(names, DEEP).map(lambda d: f"<{d[0]}>" * d[1] + "x" + f"</{d[0]}>" * d[1])
    piece: st.SearchStrategy[str] = st.one_of(element, element, CELLS, opening, closing, odd, st.just("\n"), deep)
    return st.lists(st.one_of(element, element, piece), max_size=6).map("".join)


def xml() -> st.SearchStrategy[str]:
    """A file of XML topics, which may say that it is in any encoding."""
    encodings = ["utf-8", "big5", "utf-7", "utf-16", "iso-8859-1", "nonsense", "idna", "hex", "", "unicode_escape", "a" * 300]
    head = st.sampled_from(["", *(f'<?xml version="1.0" encoding="{name}"?>\n' for name in encodings)])
    tags = ["topic", "topics", "top", "title", "query", "narrative", "number"]
    return st.builds(lambda h, body: f"{h}<topics>{body}</topics>" if len(body) % 7 else h + body, head, markup(tags))


def sgml(tags: list[str], outer: str) -> st.SearchStrategy[str]:
    """A file of SGML, of elements that are mostly closed."""
    inner = markup(tags)
    return st.lists(st.one_of(inner.map(lambda body: f"<{outer}>\n{body}\n</{outer}>\n"), inner), max_size=4).map("".join)


def toml() -> st.SearchStrategy[str]:
    """The file of an experiment."""
    strings = CELLS.map(json.dumps)
    odd = st.sampled_from(
        [*["1979-05-27", "inf", "nan", "'x'", "{}", "[[1]]", "x"], '"""\nx"""', "{ run = 'x.run' }", "", '"\\u0000"']
    )
    deep = DEEP.map(lambda n: "[" * n + "]" * n)
    right = st.sampled_from(["true", '["nDCG@10"]', '["latex"]', '"bm25() % 5"', "0.05"])
    values = st.one_of(strings, NUMBERS, odd, deep, right)
    tables = ["collection", "index", "systems", "report", "systems.x", "a.b.c", "[systems]", ""]
    keys = [
        *words("dataset corpus topics qrels analyzer path bm25 run measures forms baseline test correction alpha seed output"),
        *('"a b"', '"../x"', "a.b", "x" + ".y" * 2000),
    ]
    pair = st.builds("{} = {}\n".format, st.sampled_from(keys), values)
    part = st.builds(lambda name, pairs: f"[{name}]\n{''.join(pairs)}", st.sampled_from(tables), st.lists(pair, max_size=4))
    sound = st.just('[collection]\ndataset = "springs"\n[systems]\nbm25 = "bm25()"\n')
    return st.lists(st.one_of(part, sound, pair), max_size=5).map("".join)


def expressions() -> st.SearchStrategy[str]:
    """The texts of pipelines."""
    strings = WORDS.map(repr)
    atoms = st.one_of(
        st.sampled_from(
            ["bm25()", "bm25(k1=0.9)", "tfidf()", "rm3()", "ql()", "cut(5)", "x", "bm25", "tune()", "None", "...", "b'x'"]
        ),
        NUMBERS,
        strings,
        ODD,
        DEEP.map(lambda n: "(" * n + ")" * n),
        DEEP.map(lambda n: "-" * n + "1"),
        DEEP.map(lambda n: "bm25()" + " + bm25()" * (n // 40)),
    )
    names = st.sampled_from(
        ["bm25", "tfidf", "ql", "rm3", "fuse", "cut", "dense", "eval", "__import__", "index.bm25", "passages"]
    )
    keys = st.sampled_from(["", "", *words("k1= b= k= method= weights= index= ** * variant= mu= analyzer=")])

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        signs = st.sampled_from(words(">> % * + - ** @ // if ,"))
        joined = st.builds("{} {} {}".format, inner, signs, inner)
        arguments = st.lists(st.tuples(keys, inner).map("".join), max_size=3).map(", ".join)
        called = st.builds("{}({})".format, names, arguments)
        return st.one_of(joined, called, inner.map("({})".format), inner.map("[{}]".format), inner.map("lambda: {}".format))

    return st.recursive(atoms, larger, max_leaves=8)


def measure_names() -> st.SearchStrategy[str]:
    """The names of measures."""
    names = [
        *words("nDCG AP P R RR RBP ERR SetF IPrec Judged Success SDCG INSQ Compat infAP Bpref Rprec NumRet Accuracy x é"),
        *["ndcg_cut", "P_5", "map_cut_10", "iprec_at_recall_0.10", "P@5@5"],
        "",
    ]
    odd = st.sampled_from(
        [*["[]", "{[]}", "{[]:1}", "[1,2]", "'x'", "'exp-log2'", "None", "{}", "()", "x", "1+1", "'\ud800'"], "", "1\n2"]
    )
    deep = st.one_of(DEEP.map(lambda n: "[" * n), DEEP.map(lambda n: "-" * n + "1"), DEEP.map(lambda n: "(" * n + ")" * n))
    values = st.one_of(NUMBERS, NUMBERS, odd, deep)
    keys = st.sampled_from([*words("rel p beta dcg judged_only max_rel min_rel cutoff normalize T x"), ""])
    parameters = st.lists(st.builds("{}={}".format, keys, values), max_size=3).map(lambda p: f"({', '.join(p)})" if p else "")
    cutoffs = st.one_of(st.just(""), values.map("@{}".format))
    return st.builds("{}{}{}".format, st.sampled_from(names), parameters, cutoffs)


def analyzer_specs() -> st.SearchStrategy[str]:
    """The names of analyzers."""
    names = [*words("english czech standard simple whitespace cjk german snowball:english snowball:x x :"), ""]
    sizes = st.one_of(NUMBERS, st.sampled_from(["1", "2", "3", "999999999", "32", "33"]))
    addition = st.builds("+{}:{}-{}".format, st.sampled_from(["words", "chars", "x"]), sizes, sizes)
    odd = st.sampled_from(["+lower", "+", "+words:1-2+chars:2-3", "\0", "+chars:3"])
    return st.builds(lambda n, a: n + "".join(a), st.sampled_from(names), st.lists(st.one_of(addition, odd), max_size=2))

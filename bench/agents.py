"""Evidence that a simulated agent finds per 1,000 tokens: by `fontes mcp`, by grep, and by other engines' MCP servers.

    FONTES_DATA=DIR python bench/agents.py [--collections scifact,med] [--first N] [--tokenizer FILE]
        [--bm25s PYTHON] [--pyserini PYTHON]

No language model is asked: the agent follows a fixed policy, the same for each tool. Its words are those of the topic that
the analyzer keeps. The first query is the topic. Three more have three quarters, half and a quarter of the words, those that
fewest of the passages shown so far have, in the topic's order. With reasoning, each search states "I look for evidence on:" and
the topic. Evidence is found if a relevant document is shown with some text, or as a near-duplicate of one that is. Tokens are
those of all calls' arguments and answers, by a tokenizer file (of the library tokenizers), or else four bytes each.

grep searches a file of sentences, a line each behind its document's id; words of six letters and more lose their last two.
"grep, all words" takes the three longest words of a query, on one line; if no line has them, two, and then one. "grep, any
word" takes all. "grep, counted" searches a file per document, and prints the beginnings of the ten files with most different
matches. Each prints at most 8,000 characters, as much as the default budget of `fontes mcp`.

PYTHON are interpreters of environments with `bm25s[mcp] mcp<2`, and with Pyserini and faiss (set JAVA_HOME and JVM_PATH).
Pyserini's server has prebuilt indexes alone, and encoders of images: lines put a local index among them, and leave these out.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import amount, data_option, machine, table
from mcp import Client
from mcp.client.stdio import StdioServerParameters

import fontes as ft
from fontes.app.agents.budget import tokens_of
from fontes.comparison.statistics import bootstrap, resampled

COLLECTIONS = {"scifact": "english", "cranfield": "english", "med": "english", "ctkfacts_cs": "czech"}
SHARES = (1.0, 0.75, 0.5, 0.25)  # of the topic's words, by query
CHARACTERS = 8_000  # of an answer of grep
PLAIN = "search"
REASONED = "with_reasoning('{query} {query} {reasoning}') >> bm25()"
BM25S = """
import json, sys, bm25s
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
retriever = bm25s.BM25()
retriever.index(bm25s.tokenize([row["text"] for row in rows]))
retriever.save(sys.argv[2], corpus=rows)
"""
PYSERINI = """
import sys, types
images = types.ModuleType("pyserini.encode.optional._uniir")
images.UniIRQueryEncoder = images.UniIRDatasetConverter = images.UniIRDocumentEncoder = None
sys.modules[images.__name__] = images
from fastmcp import FastMCP
from pyserini.search.lucene import LuceneSearcher
from pyserini.server.mcp.tools import register_tools
from pyserini.server.models import IndexConfig
from pyserini.server.search_controller import get_controller
searcher = LuceneSearcher(sys.argv[1])
get_controller().indexes["local"] = IndexConfig(name="local", searcher=searcher, index_type="tf", base_index="local")
server = FastMCP("mcpyserini")
register_tools(server, get_controller())
server.run(transport="stdio", show_banner=False)
"""


class Shown(NamedTuple):
    """What a call wrote and showed: ids of documents with text, and the text."""

    written: str
    ids: set[str]
    text: str


Tool = Callable[[str, ft.Topic], Awaitable[Shown]]


@dataclass
class Found:
    """Share of a topic's evidence found, and tokens used, up to each call: a row a topic."""

    shares: list[list[float]] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)
    tokens: list[list[int]] = field(default_factory=list)

    def column(self, name: str, calls: int) -> Any:
        return np.array([row[calls - 1] for row in getattr(self, name)], dtype=float)

    def per_thousand(self, calls: int) -> Any:
        return 1000 * self.column("counts", calls) / self.column("tokens", calls)


class Agent:
    """The policy: queries of a topic, each of what the answers so far have not explained."""

    def __init__(self, index: ft.Index, topics: ft.Topics, qrels: ft.Qrels, count: Callable[[str], int]) -> None:
        self.topics, self._qrels, self._count = topics, qrels, count
        self._terms = {topic.id: self._words(index, topic.text) for topic in topics.values()}

    @staticmethod
    def _words(index: ft.Index, text: str) -> list[str]:
        words = list(dict.fromkeys(re.findall(r"\w+", text.lower())))
        return [word for word, terms in zip(words, index.analyzer.many(words), strict=True) if terms and len(word) > 1]

    async def use(self, tool: Tool) -> Found:
        found = Found()
        for topic in self.topics.values():
            relevant = {doc_id for doc_id, grade in self._qrels[topic.id].items() if grade > 0}
            seen, tokens, words = set[str](), 0, self._terms[topic.id]
            covered = dict.fromkeys(words, 0)
            shares, counts, sums = [], [], []
            for share in SHARES:
                if share == 1:
                    query = topic.text
                else:
                    number = max(1, round(share * len(words)))
                    least = sorted(words, key=lambda word: (covered[word], words.index(word)))[:number]
                    query = " ".join(word for word in words if word in least) or topic.text
                shown = await tool(query, topic)
                tokens += self._count(shown.written) + self._count(shown.text)
                seen |= shown.ids
                for passage in shown.text.lower().split("\n"):
                    for word in words:
                        covered[word] += root(word) in passage
                shares.append(len(seen & relevant) / len(relevant))
                counts.append(len(seen & relevant))
                sums.append(tokens)
            found.shares.append(shares)
            found.counts.append(counts)
            found.tokens.append(sums)
        return found


def root(word: str) -> str:
    return word[:-2] if len(word) >= 6 else word


def grep(folder: Path, policy: str) -> Tool:
    """grep over sentences.txt, or over the files of a folder, by a policy."""

    def run(command: str) -> str:
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=False)
        text = done.stdout[:CHARACTERS].decode(errors="ignore")
        return text if len(done.stdout) <= CHARACTERS else text.rpartition("\n")[0]

    async def use(query: str, topic: ft.Topic) -> Shown:
        words = list(dict.fromkeys(root(word) for word in re.findall(r"\w\w+", query.lower())))
        longest = sorted(words, key=lambda word: (-len(word), words.index(word)))
        any_word = "|".join(words)
        if policy == "counted":
            commands = [f"grep -rioE '{any_word}' docs | sort -u | cut -d: -f1 | uniq -c | sort -rn | head -n 10"]
            text = run(commands[0])
            names = [line.split()[1] for line in text.splitlines()]
            if names:
                commands.append(f"head -c 600 {' '.join(names)}")
                text += run(commands[1])
            return Shown("\n".join(commands), {Path(name).stem for name in names}, text)
        commands, text = [], ""
        for number in (3, 2, 1) if policy == "all" else (0,):
            first, *others = longest[:number] if number else [any_word]
            rest = "".join(f" | grep -i '{word}'" for word in others)
            commands.append(f"grep -iE '{first}' sentences.txt{rest} | head -c {CHARACTERS}")
            if text := run(commands[-1]):
                break
        return Shown("\n".join(commands), {line.partition(": ")[0] for line in text.splitlines()}, text)

    return use


async def client_of(stack: AsyncExitStack, command: Sequence[Any], mode: str = "auto") -> Client:
    words = [str(word) for word in command]
    server = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    return await stack.enter_async_context(Client(server, mode=mode))


async def text_of(client: Client, name: str, arguments: dict[str, Any], session: str) -> str:
    while True:
        answer = await client.call_tool(name, arguments, meta={"fontes/session": session})
        text = "\n".join(part.text for part in answer.content)
        if not answer.is_error:
            return text
        if "still loading" not in text:
            raise SystemExit(f"{name}: {text}")


def fontes(client: Client, system: str, **arguments: Any) -> Tool:
    async def use(query: str, topic: ft.Topic) -> Shown:
        asked = {"query": query, **arguments}
        if "reasoning" in system:
            asked["reasoning"] = f"I look for evidence on: {topic.text}"
        text = await text_of(client, "search", asked, f"{system} {topic.id}")
        ids = {doc_id for hit in json.loads(text)["hits"] for doc_id in (hit["id"], *hit.get("also", ()))}
        return Shown(json.dumps(asked, ensure_ascii=False), ids, text.replace('},{"rank"', '},\n{"rank"'))

    return use


def other(client: Client, tool: str, pattern: str, arguments: Callable[[str], dict[str, Any]]) -> Tool:
    """Another engine's server, in whose answers a pattern matches the ids."""

    async def use(query: str, topic: ft.Topic) -> Shown:
        asked = arguments(query)
        text = await text_of(client, tool, asked, topic.id)
        return Shown(json.dumps(asked, ensure_ascii=False), set(re.findall(pattern, text)), text)

    return use


def write(folder: Path, docs: list[ft.Doc]) -> None:
    """The collection as grep and the other engines read it."""
    (folder / "docs").mkdir()
    (folder / "json").mkdir()
    with (
        (folder / "sentences.txt").open("w", encoding="utf-8") as file,
        (folder / "texts.jsonl").open("w") as texts,
        (folder / "json/docs.jsonl").open("w") as contents,
    ):
        for doc in docs:
            text = f"{doc.title}. {doc.text}" if doc.title else doc.text
            sentences = [" ".join(sentence.split()) for sentence in re.split(r"(?<=[.!?])\s+", text)]
            file.writelines(f"{doc.id}: {sentence}\n" for sentence in sentences if sentence)
            (folder / "docs" / f"{doc.id}.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
            texts.write(json.dumps({"id": doc.id, "text": text}) + "\n")
            contents.write(json.dumps({"id": doc.id, "contents": text}) + "\n")


async def measure(data: Path, name: str, options: Any, count: Callable[[str], int]) -> dict[str, Found]:
    folder = data / name
    topics, qrels = ft.Topics.read(folder / "queries.jsonl"), ft.read_qrels(folder / "qrels" / "test.tsv")
    docs = list(ft.read_corpus(folder / "corpus.jsonl"))
    evidence = {topic: sum(grade > 0 for grade in grades.values()) for topic, grades in qrels.items()}
    least = 2 if name == "ctkfacts_cs" else 1
    chosen = [topic for topic in topics.values() if evidence.get(topic.id, 0) >= least][: options.first]
    results: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as work:
        place = Path(work)
        index = ft.Index.build(docs, place / "index", analyzer=COLLECTIONS[name])
        write(place, docs)
        agent = Agent(index, ft.Topics(chosen), qrels, count)
        async with AsyncExitStack() as stack:
            serve = [sys.executable, "-m", "fontes", "mcp", index.path, "--seconds", 300]
            plain = await client_of(stack, serve)
            reasoned = await client_of(stack, [*serve, "--pipeline", REASONED])
            tools: dict[str, Tool] = {
                PLAIN: fontes(plain, PLAIN),
                "seen=drop": fontes(plain, "seen=drop", seen="drop"),
                "seen=demote": fontes(plain, "seen=demote", seen="demote"),
                "reasoning": fontes(reasoned, "reasoning"),
                "reasoning, seen=drop": fontes(reasoned, "reasoning, drop", seen="drop"),
                "grep, all words": grep(place, "all"),
                "grep, any word": grep(place, "any"),
                "grep, counted": grep(place, "counted"),
            }
            if options.bm25s:
                subprocess.run([options.bm25s, "-c", BM25S, place / "texts.jsonl", place / "bm25s"], check=True)
                server = await client_of(
                    stack, [options.bm25s, "-m", "bm25s.mcp.server", "--index-dir", place / "bm25s"], "legacy"
                )
                tools["bm25s' server"] = other(server, "retrieve", r"'id': '([^']+)'", lambda query: {"query": query})
            if options.pyserini:
                how = ["--collection", "JsonCollection", "--generator", "DefaultLuceneDocumentGenerator", "--threads", 2]
                how += ["--input", place / "json", "--index", place / "lucene", "--storeRaw"]
                how += ["--language", "cs"] if name.endswith("_cs") else []
                subprocess.run(
                    [options.pyserini, "-m", "pyserini.index.lucene", *map(str, how)], check=True, stdout=subprocess.DEVNULL
                )
                server = await client_of(stack, [options.pyserini, "-c", PYSERINI, place / "lucene"], "legacy")
                tools["Pyserini's server"] = other(
                    server, "search", r"DocID: (\S+)", lambda query: {"query": {"query_txt": query}, "index_name": "local"}
                )
            for system, tool in tools.items():
                results[system] = await agent.use(tool)
    return results


def with_interval(values: Any, digits: int, sign: str = "") -> str:
    low, high = (float(end[0]) for end in bootstrap(values[:, None]))
    return f"{values.mean():{sign}.{digits}f} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def report(name: str, results: dict[str, Found]) -> None:
    for calls in (1, len(SHARES)):
        plain, rows = results[PLAIN], []
        for system, found in results.items():
            difference = found.per_thousand(calls) - plain.per_thousand(calls)
            rows.append(
                [
                    system,
                    with_interval(found.column("shares", calls), 3),
                    f"{found.column('tokens', calls).mean():,.0f}",
                    with_interval(found.per_thousand(calls), 2),
                    "" if system == PLAIN else with_interval(difference, 2, "+"),
                ]
            )
        title = f"{name}: {len(plain.shares)} topics, {calls} {'call' if calls == 1 else 'calls'}"
        table(title, ["", "evidence found", "tokens", "documents per 1,000 tokens", "difference"], rows)
    rows = []
    for grepping in [system for system in results if system.startswith("grep")]:
        theirs, last = results[grepping], len(SHARES)
        needed = 0.8 * theirs.column("shares", last).mean()
        their_calls = calls_for(theirs, needed)
        for system in (PLAIN, "seen=drop"):
            calls = calls_for(results[system], needed)
            row = [f"{system}, {grepping}", f"{needed:.3f}", calls or "not reached", their_calls]
            for other_calls in (their_calls, last) if calls else ():
                both = np.stack([results[system].column("tokens", calls), theirs.column("tokens", other_calls)], axis=1)
                samples = resampled(both)
                low, high = np.quantile(samples[:, 0] / samples[:, 1], [0.025, 0.975])
                row.append(f"{both[:, 0].mean() / both[:, 1].mean():.2f} ({low:.2f} to {high:.2f})")
            rows.append([*row, "", ""][:6])
    header = ["", "evidence", "calls", "grep's calls", "tokens, of grep's in these calls", "in all its calls"]
    table(f"{name}: .8 of the evidence that grep finds", header, rows)


def calls_for(found: Found, share: float) -> int:
    """The fewest calls that find a mean share of the evidence; 0 if none do."""
    numbers = range(1, len(SHARES) + 1)
    return next((calls for calls in numbers if found.column("shares", calls).mean() >= share), 0)


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--collections", default=",".join(COLLECTIONS), help="names (default: %(default)s)")
    parser.add_argument("--first", type=int, default=amount(100, 2), help="topics of each (default: %(default)s)")
    parser.add_argument("--tokenizer", help="a file of the library tokenizers (default: four bytes are a token)")
    parser.add_argument("--bm25s", help="the interpreter of an environment with bm25s[mcp]")
    parser.add_argument("--pyserini", help="the interpreter of an environment with Pyserini")
    options = parser.parse_args()
    count: Callable[[str], int] = tokens_of
    if options.tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(options.tokenizer)
        count = lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)  # noqa: E731
    print(machine())
    for name in options.collections.split(","):
        report(name, asyncio.run(measure(options.data, name, options, count)))


if __name__ == "__main__":
    main()

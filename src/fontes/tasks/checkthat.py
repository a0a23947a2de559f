"""CheckThat!: posts that refer to a paper without naming it."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from ..core import Doc, InputError, Qrels, Run, Topic, Topics
from ..formats import read_corpus, read_qrels, read_topics
from ..storage.files import plain_name, reading
from .base import DEV, Task, TaskData, TaskSide, write_documents
from .release import ReleasedFiles
from .submission import check_rows, file_name, table_rows, write_table

TABLES = r"\.(tsv|csv|jsonl|json|parquet)(\.gz)?$"
POSTS = {"plain": "plain_posts() >> bm25()"}
DEPTH = 5


class CheckThat2025(Task, name="checkthat2025-4b"):
    """CheckThat! at CLEF 2025, task 4b: tweets and papers of CORD-19."""

    title = "CheckThat! 2025, task 4b (scientific claim source retrieval)"
    organisers = "the papers (a pickle, to be converted to JSON lines) and subtask4b_query_tweets_{train,dev,test}.tsv"
    submits = "predictions.tsv: post_id and a list of five papers for each post"
    measures = ("RR@5", "RR@1", "R@5", "R@100")
    measure = "RR@5"
    counts: ClassVar[Mapping[str, int]] = {"documents": 7718, "train": 12853, "dev": 1400, "test": 1446}
    rows = POSTS
    depth = DEPTH

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        sides = []
        for split in ("train", "dev", "test"):
            files = release.matching(rf"(quer|tweet|post)[^/]*{split}[^/]*{TABLES}", "pred")
            if files:
                path = _preferred(files)
                qrels = read_qrels(path) if _has_column(path, "cord_uid") else None
                sides.append(TaskSide(split, read_topics(path), qrels))
        if not sides:
            raise release.missing_error("posts (subtask4b_query_tweets_train.tsv, …)", self.name)
        papers = release.matching(rf"(collection|papers|corpus)[^/]*{TABLES}")
        pickles = release.matching(r"\.(pkl|pickle)$")
        if not papers and pickles:
            read_corpus(next(iter(pickles.values())))  # raises, and says how to convert it
        return TaskData(tuple(sides), next(iter(papers.values()), None))

    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        paths = [folder / file_name("predictions.tsv", side, runs) for side in runs]
        for path, run in zip(paths, runs.values(), strict=True):
            write_table(run, path, "post_id", self.depth)
        return paths

    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        side = next((name for name in topics if path.name == f"predictions_{name}.tsv"), next(iter(topics)))
        return check_rows(path, table_rows(path, "post_id"), topics[side], documents, self.depth, all_topics=True)


class CheckThat2026(Task, name="checkthat2026-1"):
    """CheckThat! at CLEF 2026, task 1: posts in English, German and French, and papers."""

    title = "CheckThat! 2026, task 1 (source retrieval for scientific web claims)"
    organisers = "the files of the data set on the Hugging Face hub: collection, and en, de and fr with train, dev and test"
    submits = "predictions.zip: predictions_{en,de,fr}.tsv with index and a list of five papers for each post"
    measures = ("RR@5", "RR@1", "R@5", "R@100")
    measure = "RR@5"
    counts: ClassVar[Mapping[str, int]] = {"documents": 10000, "test": 8172}
    rows = POSTS
    depth = DEPTH
    languages = ("en", "de", "fr")

    def read_release(self, release: ReleasedFiles, folder: Path) -> TaskData:
        topics: dict[str, list[Topic]] = {}
        judgments: dict[str, list[tuple[str, str, str, int]]] = {}
        papers = release.matching(rf"collection.*{TABLES}")
        for split in ("train", *DEV, "test"):
            for language in self.languages:
                pattern = rf"(?=.*(^|[/_.-]){language}([/_.-]))(?=.*(^|[/_.-]){split}([/_.-]))(?!.*collection).*{TABLES}"
                for path in release.matching(f"^{pattern}").values():
                    for post in read_corpus(path, fields={"id": "index", "text": "text"}):
                        topic = Topic(f"{language}-{post.id}", post.text)
                        topics.setdefault(split, []).append(topic)
                        paper = post.metadata.get("pubkey")
                        if paper not in (None, ""):
                            judgments.setdefault(split, []).append((topic.id, "0", str(paper), 1))
        if not topics:
            raise release.missing_error("posts (en/train…, de/dev…, test/fr…, with the columns index and text)", self.name)
        sides = tuple(
            TaskSide(split, Topics(posts), Qrels(judgments[split]) if split in judgments else None)
            for split, posts in topics.items()
        )
        return TaskData(sides, write_documents(_papers(papers.values()), folder) if papers else None)

    def submit(self, runs: Mapping[str, Run], folder: Path, tag: str, system: str) -> list[Path]:
        paths = []
        for side, run in runs.items():
            archive = folder / file_name("predictions.zip", side, runs)
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
                for language in self.languages:
                    topic_ids = {topic: topic.removeprefix(f"{language}-") for topic in run if topic.startswith(f"{language}-")}
                    if topic_ids:
                        table = folder / f"predictions_{language}.tsv"
                        write_table(run, table, "index", self.depth, topic_ids)
                        packed.write(table, table.name)
                        table.unlink()
            paths.append(archive)
        return paths

    def check_submission(self, path: Path, topics: Mapping[str, Topics], documents: Container[str] | None) -> list[str]:
        side = next((name for name in topics if path.name == f"predictions_{name}.zip"), next(iter(topics)))
        remarks = []
        with tempfile.TemporaryDirectory(prefix="fontes-submission-") as unpacked:
            release = ReleasedFiles([path], Path(unpacked))
            for language in self.languages:
                expected = Topics(
                    Topic(topic.id.removeprefix(f"{language}-"), topic.text)
                    for topic in topics[side].values()
                    if topic.id.startswith(f"{language}-")
                )
                if not expected:
                    continue
                name = f"predictions_{language}.tsv"
                if name not in release.files:
                    raise InputError(f"{path}: no {name} at its top; there are {', '.join(release.files) or 'no files'}")
                rows = table_rows(release.files[name], "index")
                try:
                    remarks += check_rows(Path(name), rows, expected, documents, self.depth, all_topics=True)
                except InputError as error:
                    raise InputError.of_lines(str(error).replace(f"{release.files[name]}", name).split("\n")) from None
        return remarks


def _papers(files: Iterable[Path]) -> Iterator[Doc]:
    for path in files:
        yield from read_corpus(path, fields={"id": "pubkey", "title": "title", "text": "abstract"})


def _preferred(files: Mapping[str, Path]) -> Path:
    """Return the file with judgments, if the same side comes with and without judgments."""
    return next((path for inside, path in files.items() if "gold" in inside.lower()), next(iter(files.values())))


def _has_column(path: Path, name: str) -> bool:
    if plain_name(path).endswith(".parquet"):
        return any(name in doc.metadata for doc in read_corpus(path, fields={"id": "post_id", "text": "tweet_text"}))
    with reading(path) as source:
        first = next((text for _, text in source.texts()), "")
    return bool(re.search(rf"\b{name}\b", first))

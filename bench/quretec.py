"""Term classification: a model is trained on CANARD, then its terms are measured on CANARD and TREC CAsT.

    FONTES_DATA=DIR python bench/quretec.py [--output FOLDER] [--base BASE] [--minutes 30]     trains and measures
    FONTES_DATA=DIR python bench/quretec.py --model FOLDER [--only CAsT] [--first 500]         measures

Prints a table in Markdown: precision, recall and F1 of the terms that are added, over all topics with a history together, by
distinct term of a topic; beside it F1 by occurrence, as the program of Voskarides et al. 2020 counts. The rows "previous turn"
and "first turn" add all content words of those turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import data_option

from fontes import QuReTeC, Topics, read_qrels, read_topics
from fontes.core.work import Progress, ProgressCallback
from fontes.rewrite import TermScores, term_scores
from fontes.rewrite.terms import Labels, words_of
from fontes.train import TermSettings, train_terms

ALL = 1000  # answers: of all earlier turns
Found = dict[str, list[tuple[str, float]]]


@dataclass(frozen=True)
class Collection:
    """A file of topics with manual rewrites, and the answers that belong to the history."""

    name: str
    path: str
    answers: int = 0
    qrels: str = ""  # where given, the topics that are judged there alone


COLLECTIONS = (
    Collection("CAsT 2019", "cast2019/turns.jsonl"),
    Collection("CAsT 2019, judged", "cast2019/turns.jsonl", qrels="cast2019/qrels/test.tsv"),
    Collection("CAsT 2020", "cast2020/turns.jsonl"),
    Collection("CAsT 2021", "cast2021/turns.jsonl"),
    Collection("CAsT 2021, last answer", "cast2021/turns.jsonl", 1),
    Collection("CAsT 2022", "cast2022/topics_tree.json"),
    Collection("CAsT 2022, last answer", "cast2022/topics_tree.json", 1),
    Collection("CANARD dev, questions", "canard/dev.json"),
    Collection("CANARD dev, all answers", "canard/dev.json", ALL),
)


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=Path("quretec.model"))
    parser.add_argument("--base", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--first", type=int, default=None, help="so many topics of each collection")
    parser.add_argument("--only", default="", help="collections whose name has this in it")
    given = parser.parse_args()
    model = given.model or given.output
    if given.model is None:
        settings = TermSettings(epochs=given.epochs, minutes=given.minutes)
        topics = read_topics(given.data / "canard" / "train.jsonl")
        made = train_terms(topics, model, given.base, settings, overwrite=True, progress=told())
        print(f"trained on {made.rows:,} topics, {made.steps:,} steps, {made.seconds:.0f} s")
        print(f"threshold chosen on: {made.facts['chosen']}\nheld out from both: {made.facts['scores']}\n")
    stage = QuReTeC(model)
    print(f"threshold {stage.used_threshold:g}, {stage.chosen_precision}\n")
    print("| topics | | with a history | relevant | P | R | F1 | F1 by occurrence | ms a topic |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for collection in (one for one in COLLECTIONS if given.only in one.name):
        judged = read_qrels(given.data / collection.qrels) if collection.qrels else None
        topics = with_rewrites(read_topics(given.data / collection.path), judged, given.first)
        stage.probabilities(Topics(list(topics.values())[:8]))  # the model is loaded
        for name, threshold, found, seconds in systems(stage, topics, collection.answers):
            by = [term_scores(found, topics, threshold, collection.answers, each=each) for each in ("term", "occurrence")]
            print(row(collection.name, name, by[0], by[1], 1000 * seconds / len(topics)), flush=True)


def with_rewrites(topics: Topics, judged: Container[str] | None, first: int | None) -> Topics:
    """The topics whose manual rewrite is known (of a tree of 2022 some turns have none) and that are judged."""
    known = [topic for topic in topics.values() if topic.turns[-1].manual.strip() and (judged is None or topic.id in judged)]
    return Topics(known[:first])


def systems(stage: QuReTeC, topics: Topics, answers: int) -> Iterator[tuple[str, float, Found, float]]:
    """(name, threshold, the probabilities of the words of each history, seconds)."""
    reader = stage.with_(answers=answers)
    start = time.perf_counter()
    yield "QuReTeC", reader.used_threshold, reader.probabilities(topics), time.perf_counter() - start
    if not answers:
        yield "previous turn", 0.5, of_turn(topics, -2), 0.0
        yield "first turn", 0.5, of_turn(topics, 0), 0.0


def of_turn(topics: Topics, chosen: int) -> Found:
    """All content words of one turn of each history: probability 1 for them, 0 for the other words."""
    labels = Labels()
    found: Found = {}
    for topic in topics.values():
        known = {"", *labels.stems(words_of(topic.text))}
        number = chosen % len(topic.turns)
        found[topic.id] = [
            (word, float(at == number and stem not in known))
            for at, turn in enumerate(topic.turns[:-1])
            for word, stem in pairs(words_of(turn.text), labels)
        ]
    return found


def pairs(words: list[str], labels: Labels) -> Iterator[tuple[str, str]]:
    return zip(words, labels.stems(words), strict=True)


def row(collection: str, name: str, terms: TermScores, occurrences: TermScores, milliseconds: float) -> str:
    values = f"{terms.precision:.3f} | {terms.recall:.3f} | {terms.f1:.3f} | {occurrences.f1:.3f}"
    taken = f"{milliseconds:.1f}" if milliseconds else ""
    return f"| {collection} | {name} | {terms.topics:,} | {terms.relevant:,} | {values} | {taken} |"


def told() -> ProgressCallback:
    """Says on standard error where the training stands, once for each hundredth."""
    last = [-1]

    def tell(progress: Progress) -> None:
        part = progress.fraction or 0.0
        if int(100 * part) > last[0]:
            last[0] = int(100 * part)
            line = f"{part:4.0%}  step {progress.done:,} of {progress.total:,}  {progress.note}"
            print(f"{line}  {progress.seconds:.0f} s", file=sys.stderr, flush=True)

    return tell


if __name__ == "__main__":
    main()

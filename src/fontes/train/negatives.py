"""`mine_negatives`: examples for training out of a run and judgments, with hard negatives."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.progress import Progress, Report, silent
from ..core.qrels import Qrels
from ..core.run import Ranking, Run
from ..core.stage import Stage
from ..core.values import Doc, Documents, Hit, Topics
from ..neural.encoders.base import text_of
from .duplicates import Duplicate, kind_of
from .examples import Example, Passage, short
from .mined import Mined, Tally

NEAR = 0.8  # the Jaccard similarity of shingles from which on two texts are duplicates, as for `split`
SAMPLING = ("top", "random")


@dataclass(frozen=True)
class Mining:
    """Which hits become negatives.

    Args:
        per_positive: The most negatives of a group.
        ranks: The window of ranks that they come from, counted from 1 in the run, with both ends.
        margin: How far below the relevant document, in scores of the run, a negative must lie at least; None: anywhere.
        sampling: "top" takes the best of the window, "random" draws from it without replacement.
        guard_duplicates: Whether candidates are left out whose text is that of a relevant document, or nearly.
        seed: Of the draw.
        gold_last: Whether a relevant document that is not in the window takes the window's last place, so that the hit there
            is no negative.
    """

    per_positive: int = 4
    ranks: tuple[int, int] = (1, 100)
    margin: float | None = None
    sampling: str = SAMPLING[0]
    guard_duplicates: bool = True
    seed: int = 0
    gold_last: bool = False

    def check(self) -> None:
        """Raises ParameterError for what makes no sense."""
        check_whole("per_positive", self.per_positive)
        check_whole("seed", self.seed, 0)
        if not isinstance(self.ranks, (tuple, list)) or len(self.ranks) != 2:
            raise ParameterError(f"ranks must be two numbers, the first and the last rank, not {self.ranks!r}")
        first = check_whole("the first of the ranks", self.ranks[0])
        check_whole("the last of the ranks", self.ranks[1], first)
        if self.margin is not None and (isinstance(self.margin, bool) or not isinstance(self.margin, (int, float))):
            raise ParameterError(f"margin must be a number, or None, not {self.margin!r}")
        if self.margin is not None and not 0 <= self.margin < float("inf"):
            raise ParameterError(f"margin must be a number from 0 up, not {self.margin!r}")
        if self.sampling not in SAMPLING:
            raise ParameterError(f"sampling is {' or '.join(SAMPLING)}, not '{self.sampling}'")


PRESETS = {"air2025": Mining(per_positive=4, ranks=(1, 5), guard_duplicates=False, gold_last=True)}
"""`air2025`: the negatives of the report of CheckThat! 2025, task 4b, on which its cross-encoder was trained."""
PRESET_SAYS = ("per_positive", "ranks", "margin", "sampling", "guard_duplicates")


def mine_negatives(
    candidates: object,
    topics: object,
    qrels: object,
    per_positive: int = 4,
    ranks: tuple[int, int] = (1, 100),
    margin: float | None = None,
    sampling: str = "top",
    guard_duplicates: bool = True,
    *,
    seed: int = 0,
    preset: str | None = None,
    progress: Report = silent,
) -> Mined:
    """Groups of a query, a relevant document and negatives: hits of a run that are not relevant, for cross- and bi-encoders.

    Each relevant document (grade 1 or more) of a topic makes a group of its own, in which no other relevant one is a negative.
    Negatives are documents judged 0 or less and, far more of them, documents that nobody judged; some of these may be relevant.
    A group has fewer negatives, or none, where the window has no more. The query is the topic's text in the run, after any
    rewriting. A text is title, a space and text, as rerankers read it. The same run, seed and parameters give the same
    examples, and the groups of a topic do not depend on the other topics.

    Args:
        candidates: A stage from topics to a run; or a run, or its path, that knows its documents
            (`read_run(path).with_(documents=index)`). A stage is asked for no more hits than `ranks` needs.
        topics: What `Topics.of` accepts, or a path.
        qrels: What `Qrels.of` accepts, or a path.
        per_positive: The most negatives of a group.
        ranks: The window of ranks that they come from, (first, last), counted from 1 in the run's ranking, in which relevant
            documents have their ranks too.
        margin: A negative must score at least so much below the relevant document, in scores of the run. Where the run does not
            have the relevant document, none is known to lie below it, so the group has no negatives.
        sampling: "top": the best of the window; "random": drawn from the window by seed, topic and documents.
        guard_duplicates: Leaves out candidates whose text is that of a relevant document of the topic: the same, the same but
            for case, white space and punctuation, or near (see `split`) at 0.8. They would be false negatives; the next
            candidate takes the place.
        seed: Of the random sampling.
        preset: "air2025": the first five hits; a relevant document takes the last place if it is not among them, and the other
            four are negatives; no guard. It stands for all parameters from `per_positive` on.
        progress: Is called as the topics are done.

    Raises:
        InputError: No topic has a relevant document, hits and text for an example, or the run does not know its documents.
        ParameterError: A parameter is out of its range, or goes with no preset.
        PipelineError: The stage does not go from topics to a run.
    """
    settings = chosen(Mining(per_positive, ranks, margin, sampling, guard_duplicates, seed), preset)
    asked, judged = Topics.read(topics), Qrels.of(qrels)
    relevant = {t: sorted(d for d, grade in judged[t].items() if grade >= 1) for t in asked if t in judged}
    tally = Tally(len(asked))
    answerable = Topics(topic for topic in asked.values() if relevant.get(topic.id))
    tally.leave_out("no_gold", len(asked) - len(answerable))
    if not answerable:
        asked.judged(judged)
        raise InputError("none of the topics has a document of grade 1 or more, of which examples could be made")
    run = run_of(candidates, answerable, settings, progress)
    documents = run.documents_for("mining")
    miner = Miner(settings, documents, tally)
    examples: list[Example] = []
    start = time.perf_counter()
    for done, topic in enumerate(answerable.values(), 1):
        ranking = run.get(topic.id)
        if ranking is None or not len(ranking):
            tally.leave_out("no_hits")
            continue
        golds = list(_existing(documents, relevant[topic.id]))
        tally.leave_out("no_document", len(relevant[topic.id]) - len(golds))
        readable = [doc for doc in golds if text_of(doc)]
        tally.leave_out("no_text", len(golds) - len(readable))
        query = ranking.topic.text if ranking.topic.text.strip() else topic.text
        for gold in readable:
            positive = Passage(gold.id, text_of(gold))
            examples.append(miner.group(ranking, query, positive, set(relevant[topic.id]), readable))
        progress(Progress("mining", done, len(answerable), time.perf_counter() - start, "topics"))
    return tally.mined(examples, asdict(settings))


def chosen(settings: Mining, preset: str | None) -> Mining:
    """The settings, or those of the preset.

    Raises:
        ParameterError: A setting is out of its range, or was changed beside a preset; or there is no such preset.
    """
    settings.check()
    if preset is None:
        return settings
    if preset not in PRESETS:
        raise ParameterError(f"there is no preset '{preset}'; there is {', '.join(PRESETS)}")
    usual = Mining()
    changed = [name for name in PRESET_SAYS if getattr(settings, name) != getattr(usual, name)]
    if changed:
        raise ParameterError(f"the preset {preset} says all; leave {' and '.join(changed)} out, or the preset")
    return replace(PRESETS[preset], seed=settings.seed)


def run_of(candidates: object, topics: Topics, settings: Mining, progress: Report) -> Run:
    """The run to mine in: as it is, or of a stage on these topics, as deep as the settings need it."""
    if not isinstance(candidates, Stage):
        return Run.of(candidates)
    candidates.require(Topics, Run, "mining")
    # With a margin the relevant document's own score counts, however deep it lies.
    stage = candidates % settings.ranks[1] if settings.margin is None else candidates
    run: Run = stage(topics, progress=progress)
    return run


class Miner:
    """Makes groups, and counts what happens.

    Args:
        settings: Which hits become negatives.
        documents: The way to their text.
        tally: Where it is counted.
        read: What is read of a negative.
    """

    def __init__(self, settings: Mining, documents: Documents, tally: Tally, read: Callable[[Doc], str] = text_of) -> None:
        self.settings = settings
        self.documents = documents
        self.tally = tally
        self.read = read

    def group(self, ranking: Ranking, query: str, positive: Passage, relevant: set[str], guarded: Sequence[Doc]) -> Example:
        """The example of a relevant document.

        Args:
            ranking: The hits of the topic.
            query: Its text.
            positive: The relevant document.
            relevant: The ids that are no negatives.
            guarded: The documents of which no negative may be a duplicate.
        """
        topic = ranking.topic.id
        hits = list(ranking)
        own = next((hit for hit in hits if hit.id == positive.id), None)
        negatives: list[Passage] = []
        preferred, most = self._preferred(topic, positive.id, hits, own, relevant), self.settings.per_positive
        for at in range(0, len(preferred), most):
            some = preferred[at : at + most]
            for hit, doc in zip(some, self.documents.docs(hit.id for hit in some), strict=True):
                if len(negatives) < most and self._fits(doc, guarded):
                    negatives.append(Passage(hit.id, self.read(doc), short(hit.score), hit.rank))
            if len(negatives) == most:
                break
        negatives.sort(key=lambda passage: passage.rank or 0)
        self.tally.group(0 if own is None else own.rank, [passage.rank or 0 for passage in negatives])
        return Example(topic, query, positive, tuple(negatives), f"topic '{topic}'")

    def _preferred(self, topic: str, gold: str, hits: Sequence[Hit], own: Hit | None, relevant: set[str]) -> list[Hit]:
        """The candidates, those first that are to be taken first."""
        first, last = self.settings.ranks
        if self.settings.gold_last and (own is None or not first <= own.rank <= last):
            last -= 1
        window = [hit for hit in hits[first - 1 : last] if hit.id not in relevant]
        if self.settings.margin is not None:
            most = float("-inf") if own is None else own.score - self.settings.margin
            window = [hit for hit in window if own is not None and hit.score <= most]
        if self.settings.sampling == "random":
            return sorted(window, key=lambda hit: drawn(self.settings.seed, topic, gold, hit.id))
        return window

    def _fits(self, doc: Doc, guarded: Sequence[Doc]) -> bool:
        if not self.read(doc).strip():
            self.tally.leave_out("empty")
            return False
        if self.settings.guard_duplicates:
            for gold in guarded:
                kind = kind_of(text_of(doc), text_of(gold), NEAR)
                if kind:
                    self.tally.duplicates.append(Duplicate(doc.id, gold.id, kind, NEAR if kind == "near" else 1.0))
                    return False
        return True


def drawn(seed: int, *names: str) -> bytes:
    """The place of something in a random order that depends on the seed and the names alone: the same on every machine."""
    return hashlib.blake2b("\0".join((str(seed), *names)).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _existing(documents: Documents, ids: Sequence[str]) -> Iterator[Doc]:
    """Those of the documents that there are."""
    for doc_id in ids:
        try:
            yield from documents.docs([doc_id])
        except InputError:
            continue

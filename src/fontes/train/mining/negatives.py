"""`mine_negatives`: examples for training out of a run and judgments, with hard negatives."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from ...core.errors import InputError, ParameterError
from ...core.progress import Progress, Report, silent
from ...core.qrels import Qrels
from ...core.run import Run
from ...core.stage import Stage
from ...core.values import Doc, Documents, Topic, Topics
from ...neural.encoders.base import text_of
from ..examples import Example, Passage
from .mined import Mined, Tally
from .miner import Group, Miner, Mining

TOGETHER = 500  # topics whose documents are read together

PRESETS = {"air2025": Mining(per_positive=4, ranks=(1, 5), guard_duplicates=False, gold_last=True)}
"""`air2025`: the negatives of the report of CheckThat! 2025, task 4b, on which its cross-encoder was trained."""
PRESET_SAYS = ("per_positive", "ranks", "margin", "sampling", "guard_duplicates", "gold_last")


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
    gold_last: bool = False,
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
        guard_duplicates: Leaves out candidates whose text is that of a relevant document of the topic, which would be false
            negatives, or that of a negative of the group: the same, the same but for case, white space and punctuation, or near
            (see `split`) at 0.8. The next candidate takes the place.
        gold_last: Whether a relevant document that is not in the window takes the window's last place, so that the hit there is
            no negative.
        seed: Of the random sampling.
        preset: "air2025": the first five hits; a relevant document takes the last place if it is not among them, and the other
            four are negatives; no guard. It stands for all parameters from `per_positive` on.
        progress: Is called as the topics are done.

    Raises:
        InputError: No topic has a relevant document, hits and text for an example, or the run does not know its documents.
        ParameterError: A parameter is out of its range, or goes with no preset.
        PipelineError: The stage does not go from topics to a run.
    """
    settings = chosen(Mining(per_positive, ranks, margin, sampling, guard_duplicates, seed, gold_last), preset)
    known, judged = Topics.read(topics), Qrels.of(qrels)
    relevant = {t: sorted(d for d, grade in judged[t].items() if grade >= 1) for t in known if t in judged}
    tally = Tally(len(known))
    answerable = Topics(topic for topic in known.values() if relevant.get(topic.id))
    tally.leave_out("no_gold", len(known) - len(answerable))
    if not answerable:
        known.judged(judged)
        raise InputError("none of the topics has a document of grade 1 or more, of which examples could be made")
    run = run_of(candidates, answerable, settings, progress)
    documents = run.documents_for("mining")
    examples: list[Example] = []
    miner, start, waiting = Miner(settings, documents, tally), time.perf_counter(), list(answerable.values())
    for at in range(0, len(waiting), TOGETHER):
        groups = _groups(waiting[at : at + TOGETHER], run, documents, relevant, tally)
        examples += miner.examples(groups)
        done = min(at + TOGETHER, len(waiting))
        progress(Progress("mining", done, len(waiting), time.perf_counter() - start, "topics"))
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


def _groups(
    topics: Sequence[Topic], run: Run, documents: Documents, relevant: Mapping[str, list[str]], tally: Tally
) -> list[Group]:
    """A group for each relevant document that can be read, of the topics that have hits."""
    rankings = {topic.id: run[topic.id] for topic in topics if topic.id in run and len(run[topic.id])}
    tally.leave_out("no_hits", len(topics) - len(rankings))
    golds = _existing(documents, list(dict.fromkeys(doc_id for topic_id in rankings for doc_id in relevant[topic_id])))
    groups = []
    for topic in topics:
        if topic.id not in rankings:
            continue
        present = [golds[doc_id] for doc_id in relevant[topic.id] if doc_id in golds]
        readable = [doc for doc in present if text_of(doc)]
        tally.leave_out("no_document", len(relevant[topic.id]) - len(present))
        tally.leave_out("no_text", len(present) - len(readable))
        ranking, others = rankings[topic.id], frozenset(relevant[topic.id])
        query = ranking.topic.text if ranking.topic.text.strip() else topic.text
        groups += [Group(ranking, query, Passage(doc.id, text_of(doc)), others, readable) for doc in readable]
    return groups


def _existing(documents: Documents, ids: list[str]) -> dict[str, Doc]:
    """Those of the documents that there are, by their ids."""
    if not ids:
        return {}
    try:
        return dict(zip(ids, documents.docs(ids), strict=True))
    except InputError:
        if len(ids) == 1:
            return {}
        middle = len(ids) // 2
        return _existing(documents, ids[:middle]) | _existing(documents, ids[middle:])

"""Lines of an audit, one function each: from the inputs to a finding."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np

from ..core import Qrels
from ..formats.duplicates import Duplicates
from ..measures.ranks import NOT_RETRIEVED
from ..measures.ties import SAMPLES
from ..passages import Deduplicate
from ..reorder.own_documents import own_documents_first
from ..train.duplicates import CopySearch, plain_topic
from .audited import Audited, mean_of
from .report import Finding, Means

DEPTH = 10  # of unjudged documents, if no measure has a cutoff
NOTEWORTHY = 0.1  # share of topics from which on a pattern is no chance
LEAST_CUT = 10  # depth below which topics of equal depth are a chance
MAX_TAGS = 4  # named in a sentence


def ties(audited: Audited) -> Finding:
    """Equal scores: relevant documents first or last in each group, and the mean over random orders."""
    tied, measures = audited.tied, audited.measures
    if not tied.topics:
        return Finding("no topic has documents of different grades with equal scores")
    best, worst = ({measure: measure.score(ranks) for measure in measures} for ranks in (tied.best(), tied.worst()))
    expected = dict.fromkeys(measures, 0.0)
    for ranks in tied.shuffled(audited.seed):
        for measure in measures:
            expected[measure] += mean_of(measure, measure.score(ranks))
    differs = np.any([best[measure] != worst[measure] for measure in measures], axis=0)
    topics = tuple(topic_id for topic_id, different in zip(audited.qrels, differs.tolist(), strict=True) if different)
    constant = f"all scores of a topic are equal in {_topics(tied.constant)}, which ranks nothing; " if tied.constant else ""
    if not topics:
        return Finding(f"{constant}equal scores in {_topics(len(tied.topics))} change no value")
    scores: dict[str, Means] = {
        "relevant first": {measure: mean_of(measure, values) for measure, values in best.items()},
        "relevant last": {measure: mean_of(measure, values) for measure, values in worst.items()},
        "expected": {measure: total / SAMPLES for measure, total in expected.items()},
    }
    text = f"{constant}documents of different grades have equal scores in {_topics(len(topics))}"
    return Finding(f"{text}; expected over {SAMPLES} random orders of them, seed {audited.seed}", topics, scores)


def itself(audited: Audited) -> Finding:
    """Documents that are the topic itself: by equal id, as BEIR leaves them out, or by equal text."""
    collection, run, qrels = audited.collection, audited.run, audited.qrels
    pairs: set[tuple[str, str]] = set()
    chance = ""
    if collection is not None and audited.topics:
        pairs = {pair for pair in collection.itself if pair[0] in qrels}
        if collection.namesakes:
            chance = f"; {_topics(len(collection.namesakes))} with no more than the id of a document"
    else:
        listed = qrels if run is None else {topic_id: run[topic_id].ids for topic_id in qrels if topic_id in run}
        same = {(topic_id, topic_id) for topic_id, doc_ids in listed.items() if topic_id in doc_ids}
        noteworthy = same if run is None else own_documents_first(run, qrels)
        if len(noteworthy) >= NOTEWORTHY * len(qrels):
            pairs = same
        elif same:
            chance = f"; {_topics(len(same))} with the id of a document, by chance or not: --corpus and --topics can tell"
    if run is not None:
        pairs = {(topic, doc_id) for topic, doc_id in pairs if topic in run and doc_id in run[topic].ids}
    if not pairs:
        return Finding(f"no document is the topic itself{chance}")
    relevant = {(topic, doc_id) for topic, doc_id in pairs if qrels[topic].get(doc_id, 0) > 0}
    concerned = {topic for topic, _ in pairs}
    text = f"the topic itself is a document in {_topics(len(concerned))}, judged relevant in {len({t for t, _ in relevant}):,}"
    if any(topic == doc_id for topic, doc_id in pairs):
        text += "; --not-itself leaves out documents with the topic's id"
    scores = {"left out": audited.means(audited.run_without(pairs), audited.judgments_without(relevant))} if run else {}
    return Finding(f"{text}{chance}", tuple(topic_id for topic_id in qrels if topic_id in concerned), scores)


def training(audited: Audited) -> Finding:
    """Judged topics whose text, or a relevant document, stands in the training data, equal or nearly."""
    if audited.train is None:
        return Finding("no training data to compare with (--train)")
    targets = {topic.id: plain_topic(topic) for topic in audited.topics.values() if topic.id in audited.qrels}
    search = CopySearch(targets, audited.near)
    texts: dict[str, str] = {}
    equal: set[str] = set()
    for train_id, text in audited.train.topics:
        for topic_id, similarity in search(text).items():
            if text == targets[topic_id] or not audited.topics[topic_id].turns:
                equal |= {topic_id} if text == targets[topic_id] else set()
                texts.setdefault(topic_id, f"{topic_id} = {train_id} ({similarity:.2f})")
    trained = audited.train.documents
    copies = {} if audited.collection is None else audited.collection.copies
    relevant = {doc_id for grades in audited.qrels.values() for doc_id, grade in grades.items() if grade > 0}
    leaked = {doc_id for doc_id in relevant if not trained.keys().isdisjoint((doc_id, *copies.get(doc_id, ())))}
    if audited.collection is not None:
        leaked |= {doc_id for text in trained.values() for doc_id in audited.collection.search(text)}
    of_documents = {topic for topic, grades in audited.qrels.items() if any(d in leaked for d, g in grades.items() if g > 0)}
    topics = tuple(topic_id for topic_id in audited.qrels if topic_id in texts or topic_id in of_documents)
    unknown = "" if audited.topics else "; texts of topics unknown (--topics)"
    if not topics:
        return Finding(f"no topic shares a text or relevant document with the training data{unknown}")
    versions = {f"without texts ({len(texts):,})": texts.keys(), f"without texts and documents ({len(topics):,})": topics}
    scores = {
        name: audited.means_over(audited.qrels.keys() - set(ids)) for name, ids in versions.items() if ids and audited.run
    }
    text = f"the training data have the text of {_topics(len(texts))} ({len(equal):,} equal, the others nearly), "
    text += f"and a relevant document of {len(of_documents):,}, of {len(audited.qrels):,}{unknown}"
    return Finding(text, topics, scores, tuple(texts.values()))


def copies(audited: Audited) -> Finding:
    """Near copies of a relevant document that have another grade, or none."""
    if audited.collection is None:
        return Finding("no collection to look for near copies in (--corpus)")
    duplicates = Duplicates((doc_id, copy) for doc_id, similar in audited.collection.copies.items() for copy in similar)
    groups: dict[str, list[str]] = {}
    for copy, original in duplicates.items():
        groups.setdefault(original, [original]).append(copy)
    examples: dict[str, list[str]] = {}
    for topic_id, grades in audited.qrels.items():
        for original in dict.fromkeys(duplicates.get(d, d) for d, grade in grades.items() if grade > 0):
            members = groups.get(original, [])
            if len({grades.get(member) for member in members}) > 1:
                graded = " = ".join(f"{member} ({_grade(grades.get(member))})" for member in members)
                examples.setdefault(topic_id, []).append(f"{topic_id}: {graded}")
    if not examples:
        return Finding("no relevant document has a near copy with another grade or without one")
    scores = {}
    if audited.run is not None:
        merged: dict[tuple[str, str], int] = {}
        rows = [(topic, group, duplicates.get(d, d), grade) for topic, group, d, grade in audited.qrels.rows()]
        for topic, _, d, grade in rows:
            merged[topic, d] = max(grade, merged.get((topic, d), grade))
        one = Qrels((topic, group, d, merged[topic, d]) for topic, group, d, _ in rows)
        scores = {"one of each": audited.means(Deduplicate(duplicates)(audited.run), one)}
    text = f"near copies of relevant documents have another grade, or none, in {_topics(len(examples))}"
    return Finding(text, tuple(examples), scores, tuple(chain.from_iterable(examples.values())))


def unjudged(audited: Audited) -> Finding:
    """Documents without a judgment among those that a measure reads, were all of them relevant, or left out."""
    run, qrels = audited.run, audited.qrels
    assert run is not None
    depths = {m: m.cutoff if isinstance(m.cutoff, int) else NOT_RETRIEVED for m in audited.measures}
    depth = max((cutoff for cutoff in depths.values() if cutoff < NOT_RETRIEVED), default=DEPTH)
    names, numbers = list(run.topics), run.topic_numbers
    is_judged = np.zeros(run.rows, dtype=bool)
    is_judged[audited.tied.judged] = True
    is_measured = np.array([topic_id in qrels for topic_id in names], dtype=bool)[numbers]
    places = np.arange(run.rows) - run.bounds[numbers]
    first = is_measured & (places < depth)
    if not first.any():
        return Finding("the run has no documents of judged topics")
    if not (first & ~is_judged).any():
        return Finding(f"all of the first {depth} documents are judged")
    all_relevant = {}
    for measure in audited.measures:
        rows = np.flatnonzero(is_measured & ~is_judged & (places < depths[measure]))
        pairs = zip(numbers[rows].tolist(), run.ids.take(run.codes[rows]), strict=True)
        added = ((names[number], "0", doc_id, getattr(measure, "rel", None) or 1) for number, doc_id in pairs)
        all_relevant[measure] = audited.mean_by(measure, Qrels([*qrels.rows(), *added]))
    scores = {"all relevant": all_relevant, "left out": audited.means(run.keep(is_judged))}
    concerned = {names[number] for number in numbers[first & ~is_judged].tolist()}
    text = f"{np.mean(~is_judged[first]):.1%} of the first {depth} documents are not judged; as it is, none counts as relevant"
    return Finding(text, tuple(topic_id for topic_id in qrels if topic_id in concerned), scores)


def machine(audited: Audited) -> Finding:
    """Judgments by a machine, and the score by those of people alone."""
    if audited.machine is None:
        return Finding("no labels of a machine to compare with (--machine)")
    rows = {(topic, d) for topic, _, d, g in audited.qrels.rows() if audited.machine.get(topic, {}).get(d) == g}
    if not rows:
        return Finding("no judgment is the machine's")
    people = audited.judgments_without(rows)
    topics = tuple(topic_id for topic_id in audited.qrels if any((topic_id, d) in rows for d in audited.qrels[topic_id]))
    scores = {"people alone": {m: audited.mean_by(m, people) for m in audited.measures}} if people and audited.run else {}
    total, alone = sum(map(len, audited.qrels.values())), len(audited.qrels) - len(people)
    text = f"{len(rows):,} of {total:,} judgments are the machine's, all of those of {_topics(alone)}"
    return Finding(text, topics, scores)


def missing(audited: Audited) -> Finding:
    """Judged documents that the collection lacks, and that nothing can find."""
    if audited.collection is None:
        return Finding("no collection to look for the judged documents in (--corpus)")
    lacking = audited.collection.missing
    absent = {(topic, d): grade for topic, _, d, grade in audited.qrels.rows() if d in lacking}
    if not absent:
        return Finding("the collection has all judged documents")
    topics = tuple(dict.fromkeys(topic for topic, _ in absent))
    scores = {"without them": audited.means(qrels=audited.judgments_without(absent))} if audited.run else {}
    relevant = sum(grade > 0 for grade in absent.values())
    documents = f"{len(absent):,} judged document{'' if len(absent) == 1 else 's'}"
    text = f"the collection lacks {documents} ({relevant:,} relevant) of {_topics(len(topics))}"
    return Finding(text, topics, scores, tuple(f"{topic}: {d}" for topic, d in absent))


def tags(audited: Audited) -> Finding:
    """Several tags in the file of a run: pieces of several systems."""
    if len(audited.tags) < 2:
        return Finding("the run has one tag" if audited.tags else "the run has no tags")
    sizes = sorted(audited.tags, key=lambda tag: -len(audited.tags[tag]))
    others = {topic for tag in sizes[1:] for topic in audited.tags[tag]}
    topics = tuple(topic_id for topic_id in audited.qrels if topic_id in others)
    listed = ", ".join(f"{tag} ({_topics(len(audited.tags[tag]))})" for tag in sizes[:MAX_TAGS])
    scores = {f"{sizes[0]} alone": audited.means_over(set(audited.tags[sizes[0]]) - others)}
    return Finding(f"{len(sizes)} tags in one run: {listed}", topics, {name: of for name, of in scores.items() if of})


def depths(audited: Audited) -> Finding:
    """Topics that were cut at different depths: pieces of several runs."""
    run = audited.run
    assert run is not None
    sizes = {topic_id: len(run[topic_id]) for topic_id in audited.qrels if topic_id in run}
    counts = Counter(sizes.values())
    cuts = [depth for depth, count in counts.most_common() if depth >= LEAST_CUT and count >= max(2, NOTEWORTHY * len(sizes))]
    if len(cuts) < 2:
        return Finding("the topics are not cut at different depths")
    topics = tuple(topic_id for topic_id, size in sizes.items() if size in cuts[1:])
    listed = ", ".join(f"{depth:,} ({_topics(counts[depth])})" for depth in sorted(cuts))
    scores = {f"cut at {min(cuts):,}": audited.means(run.top(min(cuts)))}
    return Finding(f"topics are cut at different depths: {listed}", topics, scores)


def _topics(count: int) -> str:
    return f"{count:,} topic{'' if count == 1 else 's'}"


def _grade(grade: int | None) -> str:
    return "not judged" if grade is None else f"grade {grade}"

"""Historical query expansion: a turn with keywords of earlier turns, selected by collection statistics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.stage import Stage
from ..core.strings import encodable
from ..core.values import Topic, Topics
from ..lexical import BM25
from ..lexical.bm25 import idf_lucene
from ..text.external import spacy_pipeline, version_of
from .turns import earlier, join_texts, utterance, warn_without_turns, with_texts

if TYPE_CHECKING:
    from ..index import Index

CAST_PASSAGES = 38_622_444  # size of the collection on which the thresholds were found, CAsT 2019 (irds:trec-cast/v1)
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
SEPARATED = re.compile(r"[-‐-―%\[\]:()/]")  # surrounded by spaces before spaCy tokenizes, as in chatty-goose
UNUSED_PIPES = ("parser", "ner", "lemmatizer", "textcat", "senter")


@dataclass(frozen=True)
class HQE(Stage[Topics, Topics], name="hqe"):
    """Historical query expansion (Lin et al. 2020; TOIS 2021), as in the authors' program chatty-goose.

    The importance of a word is the best BM25 score of any document for the word as a query. Among the words of the raw
    utterances so far, those with an importance of at least `r_topic` are topic keywords, and others with at least `r_sub` are
    subtopic keywords. A turn is ambiguous if the best BM25 score for its raw utterance is at most `eta`. The new text has the
    topic keywords of all turns, then, for an ambiguous turn, the subtopic keywords of the last `m` turns, then the utterance.
    Repeated words stay repeated. A first turn is unchanged.

    The paper of 2020 is "Query reformulation using query history for passage retrieval in conversational search". The
    defaults are those of chatty-goose, "tuned on CAsT". Applying the stage raises ParameterError for parameters out of
    range and for a missing spaCy model, MissingExtraError without spaCy.

    Args:
        index: Collection in which words are looked up, ideally the one that is searched.
        r_topic: Minimum importance of a topic keyword.
        r_sub: Minimum importance of a subtopic keyword.
        eta: Maximum score of an ambiguous turn.
        m: Turns, with the current one, that give subtopic keywords.
        k1: BM25's saturation of tf.
        b: BM25's influence of length, 0 to 1.
        tagger: A spaCy model, to use only nouns and adjectives; or "none", to use all words, in any language.
        scaled: Scale the thresholds from CAsT 2019's 38,622,444 passages to this collection's greatest idf. False: as
            published.
    """

    index: Index
    r_topic: float = 4.5
    r_sub: float = 3.5
    eta: float = 10.0
    m: int = 5
    k1: float = 0.82
    b: float = 0.68
    tagger: str = "en_core_web_sm"
    scaled: bool = True

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        warn_without_turns(topics)
        conversations = {topic.id: [*(turn.text for turn in earlier(topic)), utterance(topic)] for topic in topics.values()}
        utterances = list(dict.fromkeys(text for texts in conversations.values() for text in texts))
        words = _words(utterances, self.tagger)
        best = self._best_scores({*utterances, *(word for text_words in words.values() for word in text_words)})
        scale = idf_lucene(max(len(self.index), 1), 1) / idf_lucene(CAST_PASSAGES, 1) if self.scaled else 1.0
        r_topic, r_sub, eta = (value * scale for value in (self.r_topic, self.r_sub, self.eta))

        def expanded(topic: Topic) -> str:
            *previous, current = conversations[topic.id]
            if not previous:
                return current
            turns = [words[text] for text in (*previous, current)]
            subject = [word for turn in turns for word in turn if best[word] >= r_topic]
            if best[current] > eta:
                return join_texts(*subject, current)
            details = [word for turn in turns[-self.m :] for word in turn if r_sub <= best[word] < r_topic]
            return join_texts(*subject, *details, current)

        return with_texts(topics, expanded)

    def check(self) -> None:
        for name in ("r_topic", "r_sub", "eta"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool):
                raise ParameterError(f"{name} must be a number, not {value!r}")
        if self.r_sub > self.r_topic:
            raise ParameterError(f"r_sub must be r_topic or less, not {self.r_sub} with r_topic={self.r_topic}")
        check_whole("m", self.m)

    def check_needs(self) -> None:
        if self.tagger != "none":
            _pipeline(self.tagger)
        super().check_needs()

    def shown(self) -> dict[str, Any]:
        """Parameters as shown, always with the tagger, because the keywords depend on its model."""
        shown = super().shown()
        return {name: value for name, value in self.params().items() if name in shown or name == "tagger"}

    def key(self) -> str | None:
        """Cache key: class, parameters and version of the tagger's model; see `Part.key`."""
        key = super().key()
        return None if key is None else f"{key} {version_of(self.tagger)}"

    def _best_scores(self, queries: Iterable[str]) -> dict[str, float]:
        """Return the score of the best document for each query; -1 without documents."""
        numbered = {str(number): query for number, query in enumerate(sorted(queries))}
        run = BM25(self.index, k1=self.k1, b=self.b, k=1)(numbered)
        return {query: next((hit.score for hit in run[number]), -1.0) for number, query in numbered.items()}


def _words(texts: list[str], tagger: str) -> dict[str, list[str]]:
    if tagger == "none":
        return {text: WORD.findall(text) for text in texts}
    pieces = (" ".join(SEPARATED.sub(r" \g<0> ", encodable(text)).split()) for text in texts)
    docs = _pipeline(tagger).pipe(pieces, batch_size=64)
    return {
        text: [token.text for token in doc if "NN" in token.tag_ or "JJ" in token.tag_]
        for text, doc in zip(texts, docs, strict=True)
    }


@cache
def _pipeline(model: str) -> Any:
    use = f"the tagger '{model}' of HQE (tagger='none' goes without)"
    pipeline = spacy_pipeline(model, use, UNUSED_PIPES, ", or set tagger='none', which needs no model")
    if "tagger" not in pipeline.pipe_names:
        raise ParameterError(
            f"spaCy's model '{model}' gives no tags of the Penn Treebank; take an English one, or tagger='none'"
        )
    return pipeline

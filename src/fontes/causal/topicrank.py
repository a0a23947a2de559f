"""TopicRank: keyphrases by a random walk over groups of similar noun phrases."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..core.arrays import Float64s
from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.part import Part
from ..core.strings import encodable
from ..text.external import spacy_pipeline, version_of

Token = tuple[str, str, int]  # the word, its universal part of speech, the number of its sentence
Tagger = Callable[[str], Iterable[Token]]

WORDS = re.compile(r"\w+(?:-\w+)*|['’]\w+|[^\w\s]")  # "yard's" is "yard" and "'s", as in spaCy
HYPHENATED = re.compile(r"\w+(?:-\w+)+")
SENTENCE_END = re.compile(r"[.!?]")
UNUSED_COMPONENTS = ("parser", "ner", "lemmatizer", "textcat", "entity_linker")

FUNCTION_WORDS = frozenset(
    """
    a about above across after again against ain all almost along already also although always am among an and another any
    anyone anything are aren around as at away back be became because become becomes been before behind being below between both
    but by can cannot could couldn did didn do does doesn doing don done down during each either else enough etc even ever every
    everyone everything few for former from further gave get gets give given gives go goes going got had hadn has hasn have
    haven having he hence her here hers herself him himself his how however i if in indeed instead into is isn it its itself
    just keep largely last least less let made make makes making many may me might mine more moreover most mostly much must my
    myself namely near neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once one only
    onto or other others otherwise our ours ourselves out over own part per perhaps put rather really regarding said same say
    says see seem seemed seems several shall she should shouldn show shown shows since so some someone something sometimes still
    such take taken than that the their theirs them themselves then thence there thereby therefore these they this those though
    through throughout thus to together too toward towards under unless until up upon us use used uses using various very via
    was wasn we well went were weren what whatever when whenever where whereas whether which while who whoever whole whom whose
    why will with within without won would wouldn yet you your yours yourself yourselves
    """.split()  # noqa: SIM905
)


def tagged(tagger: str | Tagger, texts: Iterable[str]) -> Iterator[list[Token]]:
    """Yield the tokens of each text, from a function, a spaCy model or, for "stopwords", all tagged "X"."""
    if callable(tagger):
        return (list(tagger(text)) for text in texts)
    if tagger == "stopwords":
        return (_word_tokens(text) for text in texts)
    pipeline = spacy_tagger(tagger)
    docs = pipeline.pipe(map(encodable, texts), batch_size=64)
    return (
        [(t.text, t.pos_, n) for n, sentence in enumerate(doc.sents) for t in sentence if not t.is_space] if len(doc) else []
        for doc in docs
    )


@cache
def spacy_tagger(model: str) -> Any:
    """Tagger and sentence splitter of a spaCy model; hyphenated words are single tokens, as in pke."""
    advice = ", or use tagger='stopwords', which needs no model"
    pipeline = spacy_pipeline(model, f"the tagger '{model}'", UNUSED_COMPONENTS, advice)
    if not {"tagger", "morphologizer"} & set(pipeline.pipe_names):
        raise ParameterError(f"spaCy's model '{model}' has no part-of-speech tagger; use one with a tagger or a morphologizer")
    if "senter" in pipeline.component_names:
        if "senter" not in pipeline.pipe_names:
            pipeline.enable_pipe("senter")
    elif "sentencizer" not in pipeline.pipe_names:
        pipeline.add_pipe("sentencizer", first=True)
    tokenizer = pipeline.tokenizer
    default_match = tokenizer.token_match
    tokenizer.token_match = lambda word: HYPHENATED.fullmatch(word) or (default_match(word) if default_match else None)
    return pipeline


def _word_tokens(text: str) -> list[Token]:
    """Tokens of a text, words with the part of speech "X" and other signs with "PUNCT"."""
    tokens: list[Token] = []
    sentence = 0
    for word in WORDS.findall(text):
        tokens.append((word, "X" if word[0].isalnum() else "PUNCT", sentence))
        sentence += SENTENCE_END.fullmatch(word) is not None
    return tokens


Phrases = list[tuple[str, float]]

LINKAGES = ("average", "complete", "single")
GAPS = ("pke", "paper")
REPRESENTATIVES = ("first", "frequent")
MAX_CANDIDATES = 10_000  # maximum number of candidates of a text; their distances take 8 bytes per pair
BLOCK_OCCURRENCES = 512  # occurrences whose distances to all occurrences are in memory at once
PUNCTUATION = frozenset(string.punctuation)


@dataclass(frozen=True, slots=True)
class CandidatePhrase:
    """A candidate keyphrase: stems of its words, words of its first occurrence, and positions of its occurrences in tokens."""

    stems: tuple[str, ...]
    words: tuple[str, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class TopicRank(Part, name="topicrank"):
    """Keyphrase extraction by topics (TopicRank; Bougouin, Boudin and Daille, IJCNLP 2013).

    1. Candidates are the longest runs of nouns and adjectives in a sentence. As in pke, those with a stop word, a sign other
    than a hyphen, a word of one letter, fewer than three letters or more than `max_words` words are dropped.
    2. Topics are clusters of candidates, by the share of common stems (Jaccard).
    3. Topics form a complete graph. The weight of an edge is the sum of 1 / gap over all pairs of occurrences.
    4. A random walk scores the topics, by power iteration from equal scores; the scores sum to 1.
    5. One candidate represents each topic.

    Args:
        tagger: Step 1. A spaCy model; a function from text to (word, part of speech, sentence); or "stopwords": runs
            without stop words, not the published method.
        pos: Step 1. Parts of speech of candidates; unused for "stopwords".
        stopwords: Step 1. None: the model's own; for a function and for "stopwords" an English list.
        max_words: Step 1. Maximum number of words of a candidate.
        stemmer: Step 2. One of Snowball's (PyStemmer): "porter", "german", …; None: words in lower case.
        similarity: Step 2. Minimum similarity of clusters to be joined; pke's threshold of 0.74 is 0.26.
        linkage: Step 2. Similarity of clusters: "average", "complete" or "single".
        gap: Step 3. Distance "pke": from the end of the first occurrence to the start of the second; "paper": between
            starts.
        damping: Step 4. Probability of following an edge.
        tolerance: Step 4. Stop when the total change is below this value times the number of topics.
        represent: Step 5. "first": the candidate that occurs first; "frequent": the most frequent one, on ties the first.
    """

    tagger: str | Tagger = "en_core_web_sm"
    pos: tuple[str, ...] = ("NOUN", "PROPN", "ADJ")
    stopwords: tuple[str, ...] | None = None
    max_words: int = 5
    stemmer: str | None = "porter"
    similarity: float = 0.25
    linkage: str = "average"
    gap: str = "pke"
    damping: float = 0.85
    tolerance: float = 1e-6
    represent: str = "first"

    def keyphrases(self, text: str, n: int | None = None) -> Phrases:
        """Return the keyphrases of a text.

        Args:
            text: The text.
            n: Number of keyphrases; None: all.

        Returns:
            (phrase in lower case, score), best first; ties in the order of the text.

        Raises:
            ParameterError: A parameter is out of its range.
            MissingExtraError: The tagger is a model of spaCy's, which is not installed.
            InputError: The text has more than 10,000 candidates.
        """
        return next(self.batch([text], n))

    def batch(self, texts: Iterable[str], n: int | None = None) -> Iterator[Phrases]:
        """Yield the `keyphrases` of each text; faster than one by one."""
        self._check(n)
        return (self.rank(tokens, n) for tokens in tagged(self.tagger, texts))

    def rank(self, tokens: Sequence[Token], n: int | None = None) -> Phrases:
        """Return the keyphrases of a tagged text: (word, part of speech, number of the sentence)."""
        self._check(n)
        candidates = self.candidates(tokens)
        if not candidates:
            return []
        topics = self.topics(candidates)
        scores = self.walk(self.graph(topics))
        best = [self._representative(topic) for topic in topics]
        order = sorted(range(len(topics)), key=lambda i: (-round(float(scores[i]), 12), best[i].offsets[0]))
        return [(" ".join(best[i].words), float(scores[i])) for i in order[:n]]

    def candidates(self, tokens: Sequence[Token]) -> list[CandidatePhrase]:
        """Step 1: candidates, in the order of their stems."""
        stop = self._stopwords()
        occurrences: dict[tuple[str, ...], list[tuple[int, tuple[str, ...]]]] = {}
        for start, words in self._runs(tokens, stop):
            occurrences.setdefault(self._stems(words), []).append((start, words))
        candidates = []
        for stems, runs in sorted(occurrences.items()):
            words = runs[0][1]
            if self._is_phrase(words, stop):
                candidates.append(CandidatePhrase(stems, words, tuple(start for start, _ in runs)))
        if (count := len(candidates)) > MAX_CANDIDATES:
            raise InputError(
                f"a text with {count:,} candidates for keyphrases is too long; split it (at most {MAX_CANDIDATES:,})"
            )
        return candidates

    def topics(self, candidates: Sequence[CandidatePhrase]) -> list[list[CandidatePhrase]]:
        """Step 2: clusters of candidates."""
        from scipy.cluster.hierarchy import fcluster, linkage
        from scipy.sparse import csr_array
        from scipy.spatial.distance import squareform

        if len(candidates) == 1:
            return [list(candidates)]
        stems = [sorted(set(candidate.stems)) for candidate in candidates]
        columns = {stem: i for i, stem in enumerate(sorted({stem for part in stems for stem in part}))}
        sizes = np.array([len(part) for part in stems], dtype=np.float64)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        indices = np.array([columns[stem] for part in stems for stem in part])
        rows = csr_array((np.ones(len(indices)), indices, bounds), shape=(len(stems), len(columns)))
        distances = (rows @ rows.T).toarray()
        for i, common in enumerate(distances):
            distances[i] = 1 - common / (sizes[i] + sizes - common)
        np.fill_diagonal(distances, 0)
        tree = linkage(squareform(distances, checks=False), method=self.linkage)
        # The addition absorbs rounding of means equal to the threshold.
        labels = fcluster(tree, t=1 - self.similarity + 1e-9, criterion="distance")
        return [[candidates[i] for i in np.flatnonzero(labels == label).tolist()] for label in range(1, labels.max() + 1)]

    def graph(self, topics: Sequence[Sequence[CandidatePhrase]]) -> Float64s:
        """Step 3: edge weights, (topics, topics), symmetric, 0 on the diagonal."""
        spans = [[(start, len(candidate.stems)) for candidate in topic for start in candidate.offsets] for topic in topics]
        starts = np.array([start for topic in spans for start, _ in topic], dtype=np.float64)
        lengths = np.array([length for topic in spans for _, length in topic], dtype=np.float64)
        bounds = np.concatenate([[0], np.cumsum([len(topic) for topic in spans])])[:-1].astype(np.int64)
        topic_numbers = np.repeat(np.arange(len(topics)), [len(topic) for topic in spans])
        weights = np.zeros((len(topics), len(topics)))
        for first in range(0, len(starts), BLOCK_OCCURRENCES):
            block = slice(first, first + BLOCK_OCCURRENCES)
            gaps = np.abs(starts[block, None] - starts)
            if self.gap == "pke":
                gaps -= np.where(starts[block, None] < starts, lengths[block, None], lengths) - 1
            np.maximum(gaps, 1, out=gaps)  # the gap of an occurrence to itself lies on the unused diagonal
            np.add.at(weights, topic_numbers[block], np.add.reduceat(1 / gaps, bounds, axis=1))
        np.fill_diagonal(weights, 0)
        return weights

    def walk(self, weights: Float64s) -> Float64s:
        """Step 4: scores of the topics (PageRank; Mihalcea and Tarau 2004 for weighted edges)."""
        n = len(weights)
        sums = weights.sum(axis=1, keepdims=True)
        moves = np.divide(weights, sums, out=np.full_like(weights, 1 / n), where=sums > 0)
        scores = np.full(n, 1 / n)
        for _ in range(1000):
            previous, scores = scores, (1 - self.damping) / n + self.damping * (scores @ moves)
            if np.abs(scores - previous).sum() < n * self.tolerance:
                break
        return scores

    def key(self) -> str | None:
        """Cache key: class, parameters and version of the tagger's model; None for a function."""
        key = super().key()
        return None if key is None else f"{key} {version_of(str(self.tagger))}"

    def check_needs(self) -> None:
        if isinstance(self.tagger, str) and self.tagger != "stopwords":
            spacy_tagger(self.tagger)
        super().check_needs()

    def _representative(self, topic: Sequence[CandidatePhrase]) -> CandidatePhrase:
        """Step 5: the candidate that represents a topic."""
        if self.represent == "frequent":
            return min(topic, key=lambda candidate: (-len(candidate.offsets), candidate.offsets[0]))
        return min(topic, key=lambda candidate: candidate.offsets[0])

    def _runs(self, tokens: Sequence[Token], stop: frozenset[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the longest runs of candidate words in a sentence: position of the first token, words in lower case."""
        run: list[str] = []
        sentence = None
        for i, (word, pos, number) in enumerate(tokens):
            word = word.lower()
            fits = (pos == "X" and word not in stop) if self.tagger == "stopwords" else pos in self.pos
            if run and not (fits and number == sentence):
                yield i - len(run), tuple(run)
                run = []
            if fits:
                run.append(word)
                sentence = number
        if run:
            yield len(tokens) - len(run), tuple(run)

    def _is_phrase(self, words: tuple[str, ...], stop: frozenset[str]) -> bool:
        """Whether the words of a run form a candidate."""
        return (
            len(words) <= self.max_words
            and len("".join(words)) >= 3
            and not any(word in stop or len(word) < 2 or PUNCTUATION.issuperset(word) for word in words)
            and all(word.replace("-", "").isalnum() for word in words)
        )

    def _stems(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Stems of words in lower case."""
        if self.stemmer is None:
            return words
        import Stemmer

        return tuple(Stemmer.Stemmer(self.stemmer).stemWords(list(words)))

    def _stopwords(self) -> frozenset[str]:
        """Stop words that candidates must not contain."""
        if self.stopwords is not None:
            return frozenset(word.lower() for word in self.stopwords)
        if callable(self.tagger) or self.tagger == "stopwords":
            return FUNCTION_WORDS
        return frozenset(spacy_tagger(self.tagger).Defaults.stop_words)

    def _check(self, n: int | None) -> None:
        self.check()
        if n is not None:
            check_whole("n", n)

    def check(self) -> None:
        import Stemmer

        check_whole("max_words", self.max_words)
        if not 0 < self.similarity <= 1:
            raise ParameterError(f"similarity must be above 0, at most 1, not {self.similarity}")
        if not 0 <= self.damping < 1:
            raise ParameterError(f"damping must be from 0 to below 1, not {self.damping}")
        for name, choices in (("linkage", LINKAGES), ("gap", GAPS), ("represent", REPRESENTATIVES)):
            if getattr(self, name) not in choices:
                raise ParameterError(f"{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if not self.tolerance > 0:
            raise ParameterError(f"tolerance must be above 0, not {self.tolerance}")
        if self.stemmer is not None and self.stemmer not in Stemmer.algorithms():
            raise ParameterError(f"unknown stemmer '{self.stemmer}'; there are {', '.join(Stemmer.algorithms())}")

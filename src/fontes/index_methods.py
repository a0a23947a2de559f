"""`fontes.Index`: an index with a method for each stage that works on one. Written by `tools/index_methods.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Never

from .core.values import Topic
from .index import index
from .index.factory import stage_method
from .suggest.suggestions import Suggesting

if TYPE_CHECKING:
    from .core.ranking import Ranking
    from .core.work import ProgressCallback
    from .lexical.bm25 import BM25
    from .lexical.dependence import SequentialDependence
    from .lexical.feedback import RM3, CausalFeedback
    from .lexical.language import QueryLanguage
    from .lexical.learned_sparse import LearnedSparse
    from .lexical.likelihood import QueryLikelihood
    from .lexical.synonyms import Synonyms
    from .lexical.tfidf import TFIDF
    from .lexical.tolerance import Tolerance
    from .ltr.features import Column, Coverage, Length, QueryLength
    from .ltr.stage import LearningToRank
    from .neural.dense.dense import Dense
    from .neural.encoders.base import Encoder
    from .neural.late.colbert import ColBERT
    from .neural.late.late import Late
    from .neural.sparse.splade import SparseEncoder, SpladeRetriever
    from .reorder.boost import Boost
    from .reorder.collapse import Collapse
    from .reorder.companions import Companions
    from .reorder.mmr import MaximalMarginalRelevance
    from .reorder.sort import Sort
    from .rerank.reranker import Reranker
    from .rewrite.hqe import HQE
    from .rewrite.statements import Statements
    from .rewrite.turns import WeightedTurns


class Index(Suggesting, index.Index):
    """Searchable collection. `Index.build` makes one on disk, `Index.open` opens it.

    It holds the documents, their statistics (ids, term frequencies, document lengths) and the analyzer, but no scores:
    models and parameters are chosen at search time.

    All attributes and methods of the open state are available on the index: `index.ids`, `index.doc(id)`; and it has a method
    for each stage of Fontes that works on an index, such as `index.bm25()`. A stage of another package is made by its class,
    `Reverse(index)`, or by name, `fontes.pipeline("bm25() >> reverse()", index)`. The index keeps reading its state until
    `refresh()`, or until it changes the index itself. A stage keeps the state that it was made with.
    """

    def search(
        self,
        query: str | Topic,
        k: int = 10,
        offset: int = 0,
        *,
        where: str | None = None,
        sort: str | None = None,
        descending: bool = False,
        facets: Sequence[str] = (),
        **unknown: Never,
    ) -> Ranking:
        """Return the best `k` documents by BM25 with default parameters: `index.bm25().search(query, k, offset, …)`.

        The arguments are those of `Stage.search`.
        """
        return self.bm25().search(query, k, offset, where=where, sort=sort, descending=descending, facets=facets, **unknown)

    @stage_method
    def bm25(
        self,
        variant: str = "lucene",
        k1: float | None = None,
        b: float | Mapping[str, float] | None = None,
        k3: float | None = None,
        delta: float | None = None,
        epsilon: float = 0.25,
        lengths: str = "exact",
        fields: Mapping[str, float] | None = None,
        combine: str = "frequencies",
        phrase_idf: str = "own",
        k: int = 1000,
        threads: int | None = None,
        where: str | None = None,
    ) -> BM25:
        """BM25: the sum over the topic's terms of idf · tf part · query part; with `fields`, BM25F.

        Args:
            variant: Formulas of idf and tf part: lucene (as Anserini), robertson, okapi (as rank_bm25), atire, plus or l.
            k1: How slowly repetitions of a term in a document saturate, from 0 up. None: the variant's.
            b: Strength of length normalization, from 0 to 1, or one for each of `fields`. None: the variant's.
            k3: Saturation of the topic's own tf, (k3 + 1) qtf / (k3 + qtf), for topics as long as a paragraph. None: qtf.
            delta: Shift of the tf part (plus) or of tf / length (l), from 0 up. None: the variant's.
            epsilon: Okapi's replacement for a negative idf, as a fraction of the mean idf.
            lengths: "exact", or "lucene": rounded to Lucene's one byte, for Lucene's scores.
            fields: Weights of separate fields, such as {"title": 3, "text": 1}; others are not searched. None: all fields as
                one text.
            combine: "frequencies", BM25F; or "sum" of scores by field, each with the field's own statistics.
            phrase_idf: Idf of phrases and windows: "own", or "sum" of that of their terms, as in Lucene.
            k: Maximum documents per topic.
            threads: Search threads, which do not change the run; None: one per processor.
            where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
                collection. None: no filter.
        """
        from .lexical.bm25 import BM25

        return BM25(self, variant, k1, b, k3, delta, epsilon, lengths, fields, combine, phrase_idf, k, threads, where)

    @stage_method
    def boost(
        self,
        column: str | None = None,
        half_life: float | str | None = None,
        origin: float | str | None = None,
        log: bool = False,
        where: str | None = None,
        by: float = 1.0,
        multiply: bool = False,
    ) -> Boost:
        """Raises scores by a date, a number or a condition: `bm25() >> boost("date", half_life="180d")`.

        Args:
            column: A column of dates or numbers. None with `where`.
            half_life: Age at which the boost is halved: "12h", "180d", "26w", "2y", or a number, in days for dates and in the
                unit of the column for numbers. None: boost by the value itself.
            origin: Date or number at which age is 0. None: the greatest value of the index, never the clock; provenance records
                it under "origins".
            log: Use ln(1 + value), for numbers that grow without bound, such as counts.
            where: A filter condition, in place of a column.
            by: Factor of the boost.
            multiply: Multiply the scores; they must not be negative.
        """
        from .reorder.boost import Boost

        return Boost(self, column, half_life, origin, log, where, by, multiply)

    @stage_method
    def causal_feedback(
        self, fb_docs: int = 10, fb_terms: int = 10, original_weight: float = 0.5, max_df: float = 0.1
    ) -> CausalFeedback:
        """Terms of possible causes of an event: `bm25() >> rm3() >> bm25() >> causal_feedback() >> bm25()`.

        Args:
            fb_docs: Feedback documents per topic.
            fb_terms: Terms of each document and of the relevance model.
            original_weight: Weight of the topic's terms before RM3, from 0 to 1.
            max_df: Greatest share of documents that may hold a term.
        """
        from .lexical.feedback import CausalFeedback

        return CausalFeedback(self, fb_docs, fb_terms, original_weight, max_df)

    @stage_method
    def collapse(self, column: str, keep: int = 1) -> Collapse:
        """Keeps the best documents of each group: `bm25() >> collapse("thread", keep=1)`.

        Args:
            column: A column of any type except lists.
            keep: Maximum documents of each group.
        """
        from .reorder.collapse import Collapse

        return Collapse(self, column, keep)

    @stage_method
    def column(self, column: str) -> Column:
        """A number, date or truth value of the document: `column("date")`.

        Args:
            column: A column of numbers, dates or truth values.
        """
        from .ltr.features import Column

        return Column(self, column)

    @stage_method
    def companions(self, weight: float = 1.0, encoder: object = None, k: int = 1000) -> Companions:
        """Chooses documents that belong together: `bm25() % 50 >> companions(weight=1)`.

        Args:
            weight: Weight of the documents chosen before: 0 keeps the order of the scores.
            encoder: Encoder whose stored vectors are compared, or their mean if a document has several; a string is the model
                of a `SentenceEncoder`. None: terms of the stored text.
            k: Maximum documents per topic; the time per topic grows with `k` times the number of its documents.
        """
        from .reorder.companions import Companions

        return Companions(self, weight, encoder, k)

    @stage_method
    def coverage(self, field: str | None = None) -> Coverage:
        """The share of the topic's different terms that the document holds, 0 to 1; missing for a topic without terms.

        Args:
            field: A field that the index keeps apart. None: all fields.
        """
        from .ltr.features import Coverage

        return Coverage(self, field)

    @stage_method
    def dense(
        self,
        encoder: Encoder | str,
        algorithm: str = "flat",
        k: int = 1000,
        ef_search: int | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        where: str | None = None,
        *,
        nprobe: int | None = None,
        search_k: int | None = None,
        dims: int | None = None,
    ) -> Dense:
        """Dense retrieval over the vectors that `index.encode` stored: the inner product of query and document.

        Args:
            encoder: Encodes topics and documents; a string is the name under which vectors are stored (`fontes encode --name`),
                or the model of a `SentenceEncoder`.
            algorithm: "flat": exact. Approximate, cached and rescored, with its recall logged: "hnsw", a factory string of
                FAISS such as "IVF256,Flat", or "annoy:1000", Annoy with its number of trees.
            k: Maximum documents per topic.
            ef_search: HNSW's efSearch; greater values are slower and raise recall.
            dtype: Stored vectors to use: "float32", "float16", "int8", "rabitq4", "rabitq2" or "rabitq1". None: the most exact
                ones.
            threads: Search threads, which do not change the run. None: one per processor.
            where: Filter on document metadata. HNSW applies it during the search; another approximate search is repeated until
                it has k documents. The run's provenance lists topics with fewer as "exhausted". None: no filter.
            nprobe: Number of IVF lists visited; greater values are slower and raise recall.
            search_k: Number of Annoy nodes inspected; greater values are slower and raise recall.
            dims: Number of leading dimensions of the vectors that are compared, scaled to length 1 again if the encoder's
                vectors are; they are cut when first used, and kept in memory as float32. None: all.
        """
        from .neural.dense.dense import Dense

        return Dense(self, encoder, algorithm, k, ef_search, dtype, threads, where, nprobe=nprobe, search_k=search_k, dims=dims)

    @stage_method
    def hqe(
        self,
        r_topic: float = 4.5,
        r_sub: float = 3.5,
        eta: float = 10.0,
        m: int = 5,
        k1: float = 0.82,
        b: float = 0.68,
        tagger: str = "en_core_web_sm",
        scaled: bool = True,
    ) -> HQE:
        """Historical query expansion (Lin et al. 2020; TOIS 2021), as in the authors' program chatty-goose.

        Args:
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
        from .rewrite.hqe import HQE

        return HQE(self, r_topic, r_sub, eta, m, k1, b, tagger, scaled)

    @stage_method
    def late(
        self,
        colbert: ColBERT | str,
        algorithm: str = "centroids",
        k: int = 1000,
        nprobe: int | None = None,
        threshold: float | None = None,
        candidates: int | None = None,
        nbits: int | None = None,
        threads: int | None = None,
        where: str | None = None,
    ) -> Late:
        """Late interaction over the token vectors that `encode_late` stored with the index.

        Args:
            colbert: The model; a string is the name under which token vectors are stored (`fontes encode --name`), or a
                checkpoint of `ColBERT`.
            algorithm: "centroids" (PLAID; Santhanam et al., CIKM 2022) is approximate, with its recall measured by
                `encode_late`; "exhaustive" scores every document.
            k: Maximum documents per topic.
            nprobe: Centroids probed for each token of a query. None: 4.
            threshold: Minimum similarity of a centroid to any token of the query, in a first round. None: no such round.
            candidates: Documents left after the first round; estimates of a quarter choose those that get exact scores. None:
                2,048 for k up to 10, else 4 k, at least 4,096. Collections of no more than a quarter are searched exhaustively.
            nbits: Bits per dimension of the stored vectors to use. None: the most.
            threads: Search threads, which do not change the run; None: one per processor.
            where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
                collection. None: no filter.
        """
        from .neural.late.late import Late

        return Late(self, colbert, algorithm, k, nprobe, threshold, candidates, nbits, threads, where)

    @stage_method
    def learned_sparse(self, k: int = 1000, threads: int | None = None, where: str | None = None) -> LearnedSparse:
        """The dot product of term weights: the documents' vectors, which the index was built with, and the topics' weights.

        Args:
            k: Maximum documents per topic.
            threads: Search threads, which do not change the run; None: one per processor.
            where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
                collection. None: no filter.
        """
        from .lexical.learned_sparse import LearnedSparse

        return LearnedSparse(self, k, threads, where)

    @stage_method
    def length(self, field: str | None = None) -> Length:
        """The number of terms of the document, or of one of its fields.

        Args:
            field: A field that the index keeps apart. None: all fields.
        """
        from .ltr.features import Length

        return Length(self, field)

    @stage_method
    def ltr(self, model: str | Path, features: object = None) -> LearningToRank:
        """Orders candidates by a trained model over their features: `bm25() % 100 >> ltr("FOLDER")`.

        Args:
            model: Model's folder.
            features: Features in the model's order, as stages or `column`, `length`, … None: those that the model names.
        """
        from .ltr.stage import LearningToRank

        return LearningToRank(self, model, features)

    @stage_method
    def mmr(self, lambda_: float = 0.5, encoder: object = None, k: int = 1000) -> MaximalMarginalRelevance:
        """Chooses relevant documents that differ from those chosen before: `bm25() % 100 >> mmr(lambda_=0.5) % 10`.

        Args:
            lambda_: Weight of relevance: 0 chooses the least similar documents, 1 keeps the order of the scores.
            encoder: Encoder whose stored vectors are compared, or their mean if a document has several; a string is the model
                of a `SentenceEncoder`. None: terms of the stored text.
            k: Maximum documents per topic; the time per topic grows with `k` times the number of its documents.
        """
        from .reorder.mmr import MaximalMarginalRelevance

        return MaximalMarginalRelevance(self, lambda_, encoder, k)

    @stage_method
    def ql(
        self,
        smoothing: str = "dirichlet",
        mu: float = 1000.0,
        lambda_: float = 0.1,
        lengths: str = "exact",
        fields: Mapping[str, float] | None = None,
        k: int = 1000,
        threads: int | None = None,
        where: str | None = None,
    ) -> QueryLikelihood:
        """Query likelihood with a smoothed language model of each document, as Lucene and Anserini score it.

        Args:
            smoothing: "dirichlet" or "jelinek-mercer".
            mu: Pseudo-count of collection terms in Dirichlet smoothing, above 0.
            lambda_: Weight of the collection in Jelinek-Mercer smoothing, between 0 and 1.
            lengths: "exact", or "lucene": rounded to Lucene's one byte, for Lucene's scores.
            fields: Weights of separate fields, such as {"title": 3, "text": 1}; others are not searched. None: all fields as
                one text.
            k: Maximum documents per topic.
            threads: Search threads, which do not change the run; None: one per processor.
            where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
                collection. None: no filter.
        """
        from .lexical.likelihood import QueryLikelihood

        return QueryLikelihood(self, smoothing, mu, lambda_, lengths, fields, k, threads, where)

    @stage_method
    def query(self, operator: str = "or", strict: bool = False, fixed: int = 0, max_expansions: int = 1024) -> QueryLanguage:
        """Reads topics in the query language: `query() >> bm25()`.

        Args:
            operator: How clauses side by side are joined: "or" or "and".
            strict: Whether a text that is not well-formed is an error; otherwise what is no operator is text.
            fixed: How many first letters of a word such as geyser~1 are never edited.
            max_expansions: Maximum terms of a prefix or of similar words, the most frequent ones.
        """
        from .lexical.language import QueryLanguage

        return QueryLanguage(self, operator, strict, fixed, max_expansions)

    @stage_method
    def query_length(self) -> QueryLength:
        """The number of terms of the topic's text, repeated ones too."""
        from .ltr.features import QueryLength

        return QueryLength(self)

    @stage_method
    def rm3(self, fb_docs: int = 10, fb_terms: int = 10, original_weight: float = 0.5, max_df: float = 0.1) -> RM3:
        """RM3 as Anserini runs it: `bm25() >> rm3() >> bm25()`.

        Args:
            fb_docs: Feedback documents per topic.
            fb_terms: Terms of each document and of the relevance model.
            original_weight: Weight of the topic's own terms, from 0 to 1.
            max_df: Greatest share of documents that may hold a term.
        """
        from .lexical.feedback import RM3

        return RM3(self, fb_docs, fb_terms, original_weight, max_df)

    @stage_method
    def sdm(self, weights: tuple[float, float, float] = (0.85, 0.1, 0.05), window: int = 8) -> SequentialDependence:
        """Sequential dependence model: `sdm() >> ql()`, or another lexical model.

        Args:
            weights: Weights of a term, a phrase and a window; one of weight 0 is left out.
            window: The width of windows, in positions.
        """
        from .lexical.dependence import SequentialDependence

        return SequentialDependence(self, weights, window)

    @stage_method
    def sort(self, column: str, descending: bool = False) -> Sort:
        """Sorts documents by a date or a number: `bm25() >> sort("date", descending=True)`.

        Args:
            column: A column of dates or numbers.
            descending: Whether the greatest value, or the newest date, is first.
        """
        from .reorder.sort import Sort

        return Sort(self, column, descending)

    @stage_method
    def splade(
        self, encoder: SparseEncoder | str, k: int = 1000, threads: int | None = None, where: str | None = None
    ) -> SpladeRetriever:
        """Learned sparse retrieval over the weights that `index.encode` stored: the inner product of query and document.

        Args:
            encoder: Encodes topics and documents; a string is the name under which weights are stored (`fontes encode --name`),
                or the model of a `Splade`.
            k: Maximum documents per topic.
            threads: Search threads, which do not change the run; None: one per processor.
            where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
                collection. None: no filter.
        """
        from .neural.sparse.splade import SpladeRetriever

        return SpladeRetriever(self, encoder, k, threads, where)

    @stage_method
    def statements(
        self,
        k: int = 3,
        reranker: Reranker | None = None,
        threshold: float | None = None,
        words: str = "content",
        weight: float = 1.0,
        append: bool = True,
    ) -> Statements:
        """Appends to each query the statements about the user that bear on it, as in the baselines of TREC iKAT 2023.

        Args:
            k: Maximum statements.
            reranker: Scores pairs of a query and a statement, such as the baseline's cross-encoder, cross-encoder/ms-marco-
                MiniLM-L-6-v2. None: BM25, which chooses only statements that share a term of the collection with the query.
            threshold: Minimum score of a chosen statement; None: any.
            words: "content" appends statements without English function words, such as "I" and "my", which have high weights in
                many collections, and BM25 ignores these words; "all" appends and scores whole statements, for `dense`.
            weight: Weight of each term of a statement, in a search by terms.
            append: Whether the statements become part of the query; otherwise they are only chosen.
        """
        from .rewrite.statements import Statements

        return Statements(self, k, reranker, threshold, words, weight, append)

    @stage_method
    def synonyms(self, file: str | Path, weight: float = 1.0) -> Synonyms:
        """Searches synonyms of the words of topics: `synonyms("synonyms.txt") >> bm25()`.

        Args:
            file: File (decompressed if need be); it is read again when its time or size has changed.
            weight: Weight of added synonyms; with 1 they count as one term with the typed words, else apart.
        """
        from .lexical.synonyms import Synonyms

        return Synonyms(self, file, weight)

    @stage_method
    def tfidf(
        self,
        sublinear_tf: bool = False,
        smooth_idf: bool = False,
        norm: str | None = "l2",
        relative_tf: bool = False,
        fields: Mapping[str, float] | None = None,
        phrase_idf: str = "own",
        k: int = 1000,
        threads: int | None = None,
        where: str | None = None,
    ) -> TFIDF:
        """TF-IDF: the dot product of the topic's bag of words with the document's row of tf · ln(N / df).

        Args:
            sublinear_tf: 1 + ln(tf) for tf.
            smooth_idf: ln((1 + N) / (1 + df)) + 1 for ln(N / df), as scikit-learn's default.
            norm: "l2" for rows of unit length, or None.
            relative_tf: tf / dl for tf; with norm=None the plain form of textbooks.
            fields: Weights of separate fields, such as {"title": 3, "text": 1}; others are not searched. None: all fields as
                one text.
            phrase_idf: Idf of phrases and windows: "own", or "sum" of that of their terms, as in Lucene.
            k: Maximum documents per topic.
            threads: Search threads, which do not change the run; None: one per processor.
            where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
                collection. None: no filter.
        """
        from .lexical.tfidf import TFIDF

        return TFIDF(self, sublinear_tf, smooth_idf, norm, relative_tf, fields, phrase_idf, k, threads, where)

    @stage_method
    def tolerance(self, mode: str = "auto", weight: float = 0.8) -> Tolerance:
        """Searches misspelt and unfinished words with their neighbours: `tolerance("auto") >> bm25()`.

        Args:
            mode: "auto", or "typing" for a query that is being typed: then the last word is always completed, too.
            weight: Factor of the score of a neighbour by one edit and of a completion; the square of it for two edits.
        """
        from .lexical.tolerance import Tolerance

        return Tolerance(self, mode, weight)

    @stage_method
    def weighted_turns(self, k: int = 1, weight: float = 0.3, first: bool = True) -> WeightedTurns:
        """Adds the terms of earlier turns to a topic's utterance, with less weight.

        Args:
            k: Turns before the last one, from 0 up.
            weight: Weight of each of their terms, regardless of repetitions.
            first: Whether to count the conversation's first turn among the earlier turns.
        """
        from .rewrite.turns import WeightedTurns

        return WeightedTurns(self, k, weight, first)

    def encode(
        self,
        encoder: Encoder | SparseEncoder | str,
        *,
        dtype: str | None = None,
        overwrite: bool = False,
        progress: ProgressCallback | None = None,
        ray: bool | str | None = None,
        name: str | None = None,
    ) -> None:
        """Store the documents' vectors by `encoder` with the index, for `index.dense(encoder)` or `index.splade(encoder)`.

        Args:
            encoder: Computes the vectors; a string is the name of stored vectors, or the model of a `SentenceEncoder`. The
                precision "auto" becomes the precision of the vectors already stored, if any.
            dtype: "float32"; "float16"; "int8", integers with a scale for each vector; or "rabitq4", "rabitq2" or "rabitq1",
                RaBitQ codes of 4, 2 or 1 bits per dimension. None: the dtype of the stored vectors, or float32. The weights of
                a learned sparse encoder are always stored to four decimals.
            overwrite: Encode documents with stored vectors again.
            progress: Called as documents are encoded.
            ray: Encode on a cluster, in the precision in which the models run here: True for Ray on this machine or at
                RAY_ADDRESS, or an address. Its nodes must see the index's folder and the model under the same paths.
            name: Name of the vectors, for `index.dense(name)`, pipelines and runs. None: the one that they have, if any.
        """
        from .neural.encode import encode

        encode(self, encoder, dtype=dtype, overwrite=overwrite, progress=progress, ray=ray, name=name)

    def encoder(self, name: str | None) -> Encoder:
        """Return the encoder of an index's vectors.

        Args:
            name: Name of the vectors, or of the encoder's model, or its last part, if the index has several encoders. The name
                of another model gives a `SentenceEncoder`; its search raises an error that lists the encoders of the index.
        """
        from .neural.stored import encoder_of

        return encoder_of(self, name)

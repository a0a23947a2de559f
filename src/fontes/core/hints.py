"""Hints for unknown names: which of the known names is meant.

A hint comes from a table of other words for the same thing, or from the spelling. A wrong hint is worse than none: a word that
the table has under another name gets no hint by spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .tabular import join_with_or

OTHER_WORDS: Mapping[str, str] = {
    # parameters of searches
    "k": "limit size n top topk topn rows count results hits numresults nresults maxresults numhits maxhits hitsperpage "
    "perpage pagesize",
    "q": "query question text search searchtext querystring keywords prompt",
    "query": "q question searchtext querystring",
    "offset": "from start skip page",
    "where": "filter filters filterby fq condition conditions",
    "sort": "sortby order orderby ordering",
    "descending": "desc reverse reversed sortorder sortdirection",
    "facets": "facet facetby aggs aggregations groupby",
    "histograms": "histogram bins datehistogram",
    "snippets": "snippet highlight highlights highlighting",
    "tolerance": "fuzzy fuzziness typo typos typotolerance numtypos maxedits",
    "explain": "explanation explanations",
    "syntax": "querytype querysyntax",
    "text": "fulltext content contents body includetext",
    "index": "collection corpus indexname",
    "indexes": "index collections",
    "pipeline": "model retriever searchtype pipelines",
    "event": "query q question",
    "id": "docid documentid",
    # options of commands
    "output": "out outfile outputfile outputdir outdir file dest destination save",
    "measures": "metric metrics measure",
    "measure": "metric metrics measures",
    "topics": "queries questions queryfile q query",
    "qrels": "judgments judgements relevance groundtruth gold labels",
    "judgments": "qrels judgements labels",
    "threads": "workers jobs cpus processes nthreads numthreads numworkers",
    "overwrite": "force replace",
    "tag": "name runname runid runtag",
    "base": "start model basemodel pretrained checkpoint",
    "encoder": "model base basemodel embedder embeddings embeddingmodel",
    "set": "param params parameters",
    "grid": "params parameters paramgrid",
    "space": "params parameters paramgrid grid",
    "batch": "batchsize bs",
    "batch_size": "batch bs",
    "lr": "learningrate",
    "warm_up": "warmupsteps warmupratio",
    "analyzer": "language lang stemmer tokenizer stopwords",
    "candidates": "depth",
    "depth": "k limit topk",
    "key_file": "key apikey",
    "token_file": "token",
    "method": "fusion algorithm",
    "normalize": "normalise norm normalization normalisation",
    "integer": "int long number",
    "float": "double decimal number",
    "boolean": "bool",
    "keyword": "string str",
    # stages, and the commands that train them
    "cross_encoder": "reranker rerank ranker crossencoderreranker",
    "bi_encoder": "retriever dense embedder encoder dualencoder sentencetransformer sentencetransformers",
    "sparse": "splade",
    "rewriter": "queryrewriter",
    "fuse": "rrf hybrid ensemble combine fusion reciprocalrankfusion",
    "dense": "vector vectors embedding embeddings semantic knn",
    "bm25": "keyword keywords lexical okapi bm25okapi bm25f",
    "ql": "lm lmdirichlet dirichlet querylikelihood",
    "rm3": "prf queryexpansion",
    "cut": "top limit head take topk topn",
    "deduplicate": "dedup unique distinct",
    "mmr": "diversify diversity",
    "companions": "evidencesets cluster multihop",
    "llm_listwise": "rankgpt",
    "sentence_encoder": "sentencetransformer",
    # commands
    "search": "query find retrieve",
    "eval": "evaluate evaluation score treceval metrics",
    "add": "update insert upsert append",
    "delete": "remove rm drop",
    "serve": "server api web start",
    "merge": "compact optimize optimise forcemerge vacuum",
    "info": "stats describe show status",
    "check": "verify validate fsck",
    "encode": "embed vectors embeddings vectorize vectorise",
    "new": "init create",
    "compare": "significance ttest diff",
    "convert": "export import transform",
    "tune": "gridsearch hyperparameters sweep optimize optimise",
    "mine": "negatives hardnegatives",
    "copy": "backup cp push pull upload download",
    "plot": "graph chart draw",
    "judge": "annotate assess label",
    # analyzers, by codes of languages
    "arabic": "ar ara",
    "cjk": "zh ja ko chinese japanese korean",
    "czech": "cs cz ces cze",
    "danish": "da dan",
    "dutch": "nl nld",
    "english": "en eng porter snowball",
    "finnish": "fi fin",
    "french": "fr fra fre",
    "german": "de deu ger",
    "greek": "el ell gre",
    "hindi": "hi hin",
    "hungarian": "hu hun",
    "italian": "it ita",
    "norwegian": "no nor nb nn",
    "polish": "pl pol",
    "portuguese": "pt por",
    "romanian": "ro ron",
    "russian": "ru rus",
    "spanish": "es spa",
    "swedish": "sv swe",
    "turkish": "tr tur",
    # measures
    "P": "prec",
    "nDCG": "dcg",
    "Success": "hit hits hitrate hitratio hr",
    "SetF": "f1 f fmeasure fscore f1score",
}
"""Other words for a name, in lower case and without "_" and "-"."""
IN_PIPELINES: Mapping[str, str] = {
    "k": "% limits a ranking: bm25() % 10",
    "sort": "a stage sorts: bm25() >> sort('year')",
    "where": "a retriever filters: bm25(where='year >= 2020')",
}
"""Stages and parameters of pipelines in place of another name, by that name in `OTHER_WORDS`."""
SHOWN = 3  # greatest number of names in a hint
BORDER, DIGIT = re.compile(r"[-_ ]+"), re.compile(r"\d")


def compact(name: str) -> str:
    """Return a name in lower case, without "_", "-" and spaces."""
    return BORDER.sub("", name).lower()


_MEANINGS: dict[str, tuple[str, ...]] = {}
for _name, _words in OTHER_WORDS.items():
    for _word in _words.split():
        _MEANINGS[_word] = (*_MEANINGS.get(_word, ()), compact(_name))


def meant(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that an unknown name probably means, at most three; empty if there is doubt.

    These are, in this order: another spelling with "_", "-" or capitals; another word for the same thing; names that begin
    with this one, or with which it begins; the name with a few other letters, fewer in a short name.
    """
    word, forms = compact(name), {candidate: compact(candidate) for candidate in candidates}
    if not word:
        return []
    meanings = _MEANINGS.get(word, ())
    for candidates_meant in (
        [candidate for candidate, form in forms.items() if form == word],
        [candidate for candidate, form in forms.items() if form in meanings],
        [candidate for candidate, form in forms.items() if f"{form}s" == word],
        [candidate for candidate in forms if _begins(candidate, name)],
        [candidate for candidate in forms if _begins(name, candidate)],
    ):
        if candidates_meant:
            return candidates_meant[:SHOWN]
    if meanings:
        return []
    edits = {candidate: _edits(word, form) for candidate, form in forms.items() if _resembles(word, form)}
    near = [c for c, number in edits.items() if number <= _most_edits(max(len(word), len(forms[c])))]
    return sorted(near, key=lambda c: (edits[c], abs(len(forms[c]) - len(word))))[:1]


def nearest(name: str, candidates: Iterable[str], instead: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return "did you mean 'x'?" for the candidates that `name` means, or else all candidates.

    Args:
        name: The unknown name.
        candidates: The known names.
        instead: What there is in place of a parameter, by its name in `OTHER_WORDS`; returned if no candidate is meant.
    """
    names = list(candidates)
    if names_meant := meant(name, names):
        return f"did you mean {join_with_or([repr(each) for each in names_meant])}?"
    if other := in_place_of(name, instead):
        return other
    return f"there are {', '.join(names)}" if names else "there is none"


def in_place_of(name: str, instead: Mapping[str, str]) -> str:
    """Return what `instead` has for a name or another word for it; "" if nothing."""
    word = compact(name)
    return next((text for key, text in instead.items() if compact(key) in (word, *_MEANINGS.get(word, ()))), "")


def _begins(longer: str, shorter: str) -> bool:
    """Whether a name begins with another: with its words, or with at least half of its letters."""
    whole, part = (BORDER.sub("_", each.strip("-")).lower() for each in (longer, shorter))
    return len(part) > 2 and whole.startswith(part) and (whole[len(part) :][:1] == "_" or 2 * len(part) >= len(whole))


def _resembles(word: str, form: str) -> bool:
    """Whether two names begin with the same letter, as people rarely mistype it, or have the same letters in another order.

    Names of at most three letters of which one is replaced are different names, except for a digit: `rm4` and `rm3`.
    """
    if sorted(word) == sorted(form):
        return len(word) > 2
    return word[0] == form[:1] and (len(word) > 3 or len(word) != len(form) or DIGIT.sub("0", word) == DIGIT.sub("0", form))


def _most_edits(length: int) -> int:
    """Greatest number of edits between two names of which the longer has this length."""
    return 0 if length < 2 else 1 if length < 6 else 2 if length < 12 else 3


def _edits(word: str, form: str) -> int:
    """Edits between two names: letters inserted, deleted, replaced or exchanged (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(form) + 1))
    for i, letter in enumerate(word, 1):
        above, before, row = before, row, [i]
        for j, other in enumerate(form, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other)))
            if i > 1 and j > 1 and (letter, word[i - 2]) == (form[j - 2], other):
                row[j] = min(row[j], above[j - 2] + 1)
    return row[-1]

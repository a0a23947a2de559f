"""Hints for unknown names."""

from collections import Counter

from support.each import each

from fontes.app.server.routes import SearchQuery
from fontes.core.hints import OTHER_WORDS, compact, meant, nearest
from fontes.core.part import stages

PARAMETERS = [*SearchQuery.model_fields]
OPTIONS = "--topics --pipeline --model --encoder --where --query --analyzer -k --offset --output --tag --json --port".split()
STAGES = [*stages]


@each(
    ("names", "typed", "expected"),
    [
        (PARAMETERS, "limit size n top_k topK rows hitsPerPage", "k"),
        (PARAMETERS, "query question search", "q"),
        (PARAMETERS, "filter filters filter_by fq", "where"),
        (PARAMETERS, "sort_by order orderBy", "sort"),
        (PARAMETERS, "desc", "descending"),
        (PARAMETERS, "from page start skip", "offset"),
        (PARAMETERS, "aggs facet facet_by", "facets"),
        (PARAMETERS, "highlight", "snippets"),
        (PARAMETERS, "fuzzy typos", "tolerance"),
        (OPTIONS, "--limit --top-k --k --size", "-k"),
        (OPTIONS, "--name --run-name", "--tag"),
        (OPTIONS, "--out --outfile", "--output"),
        (OPTIONS, "--modle --mode", "--model"),
        (["--base", "--batch"], "--start --model --pretrained", "--base"),
        (["--grid", "--folds"], "--params", "--grid"),
        (["cross-encoder", "ranker", "rewriter"], "reranker rerank", "cross-encoder"),
        (["bi-encoder", "cross-encoder"], "retriever dense embedder", "bi-encoder"),
        (STAGES, "reranker CrossEncoder crossencoder", "cross_encoder"),
        (STAGES, "rrf hybrid fusion", "fuse"),
        (STAGES, "BM25 bm52 bm25f okapi", "bm25"),
        (STAGES, "rm4 prf", "rm3"),
        (STAGES, "vector embeddings dens", "dense"),
        (["year", "kind"], "yaer yeer years YEAR", "year"),
        (["description", "title"], "descript descri", "description"),
    ],
)
def test_another_word_or_a_misspelt_one_is_answered_with_the_name_that_is_meant(names, typed, expected):
    assert {word: meant(word, names) for word in typed.split()} == {word: [expected] for word in typed.split()}


@each(
    ("names", "typed"),
    [
        (PARAMETERS, "boost lang fields timeout user x what color sum"),
        (OPTIONS, "--sort --verbose --format --color --year --start_date --file-type --mote"),
        (STAGES, "elastic faiss sum rank bo1 filter avg foo ranks"),
        (["text", "year", "price"], "next rear slice tests kind ice prize_money"),
        (["serve", "search", "merge", "add"], "reserve research emerge odd frobnicate"),
        (["k", "q", "id"], "a x is in"),
        ([], "anything"),
    ],
)
def test_a_word_that_may_mean_something_else_gets_no_hint(names, typed):
    assert {word: found for word in typed.split() if (found := meant(word, names))} == {}


def test_without_a_hint_all_names_are_listed():
    assert nearest("zzz", ["k1", "b"]) == "there are k1, b"
    assert nearest("optimise", ["merge", "tune", "index"]) == "did you mean 'merge' or 'tune'?"


def test_words_of_the_table_are_compact_and_no_name_has_one_twice():
    for name, words in OTHER_WORDS.items():
        listed = words.split()
        assert all(word == compact(word) for word in listed), name
        assert max(Counter(listed).values()) == 1, name
        assert compact(name) not in listed

"""Documents for the page of the server that are many, long, or hostile, and the pipelines that search them."""

from collections.abc import Iterator

import fontes as ft

HOSTILE = "</script><script>window.broken = true</script><img src=x onerror=\"window.broken = 1\"> ‮ 'q' \\ 🎻 Ječmen"
LONG = 1_000_000
PIPELINES = {
    "bm25": "bm25()",
    "turned": "tfidf() * -1 + bm25() * 0.01",
    "claims": "bm25() >> rationales(n=2)",
    "rm3": "bm25() % 3 >> rm3() >> bm25()",
}


def odd() -> Iterator[ft.Doc]:
    """Documents that are many, long, or hostile."""
    yield ft.Doc(HOSTILE, f"🎻🎻 hostile {HOSTILE} 🎻 hostile", HOSTILE, {HOSTILE: HOSTILE, "kind": HOSTILE, "and": "a 'b' \\"})
    yield ft.Doc("a/b?c=1#d%2F", "hostile too", "", {"kind": "plain", "and": "x"})
    for dots in (".", ".."):
        yield ft.Doc(dots, f"hostile {dots}", f"Id {dots}", {"kind": "plain"})
    yield ft.Doc("wide", "hostile", "W" * 10_000, {"kind": "plain", "free": True})
    yield ft.Doc("right", "hostile שלום עולם", "שלום עולם", {"kind": "שלום"})
    words = "an enormous document, which is shown in pieces "
    yield ft.Doc("long", words * (LONG // len(words)) + " zebra at the end", "A long one", {"kind": "plain"})
    for number in range(1050):
        yield ft.Doc(
            f"m{number:04}", f"many {'words ' * (number % 7)}", f"One of many, {number}", {"kind": f"k{number % 20:02}"}
        )


def described() -> Iterator[ft.Doc]:
    """The sample with a link, an identifier and numbers of every kind."""
    for number, doc in enumerate(ft.datasets.samples.harbour.corpus):
        more = {"url": f"https://gazette.example/{doc.id}?a=b&c='d'", "pmid": 10_000 + number, "words": len(doc.text.split())}
        yield ft.Doc(doc.id, doc.text, doc.title, {**doc.metadata, **more, "trap": f"javascript:alert({number})"})

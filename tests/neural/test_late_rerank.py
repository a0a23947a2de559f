"""Late interaction as a reranker, and its command."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from support.tiny_colbert import QUERIES, documents, plain_scores

import fontes as ft
from fontes.app import cli
from fontes.neural.late.colbert import ColBERT
from fontes.neural.late.encode import encode_late


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, model: ColBERT) -> ft.Index:
    index = ft.Index.build(documents(), tmp_path_factory.mktemp("indexes") / "index")
    for nbits in (32, 2):
        encode_late(index, model, nbits=nbits)
    return index


def plain_rerank(index: ft.Index, model: ColBERT, run: ft.Run) -> dict[str, dict[str, float]]:
    scores = {topic: plain_scores(index, model, run.topics[topic].text) for topic in run}
    return {topic: {hit.id: scores[topic][hit.id] for hit in run[topic]} for topic in run}


TEXTS = {topic: text for topic, text in QUERIES.items() if text}


@pytest.mark.parametrize("nbits", [0, 32])
def test_a_reranker_gives_each_document_of_the_run_its_maxsim(
    index: ft.Index, model: ColBERT, nbits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fontes.neural.rerank.encoders.DOCUMENTS", 7)
    first = (index.bm25() % 20)(TEXTS)
    run = ft.neural.LateReranker(model, nbits)(first)
    expected = plain_rerank(index, model, first)
    for topic in TEXTS:
        assert run.to_dict()[topic] == pytest.approx(expected[topic], abs=1e-5)
        assert run[topic].scores.tolist() == sorted(run[topic].scores.tolist(), reverse=True)


def test_a_reranker_uses_stored_vectors_where_there_are_any(
    index: ft.Index, model: ColBERT, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (index.bm25() % 20)(TEXTS)
    texts = ft.neural.LateReranker(model, 0)(first)
    monkeypatch.setattr(ColBERT, "encode_documents", None)
    whole = ft.neural.LateReranker(model)(first)
    assert whole.provenance["reranked"]["nbits"] == 32
    for topic in TEXTS:
        assert whole.to_dict()[topic] == pytest.approx(texts.to_dict()[topic], abs=1e-5)
    exhaustive = index.late(model, nbits=2, algorithm="exhaustive")(TEXTS).to_dict()
    for topic, scores in ft.neural.LateReranker(model, 2)(first).to_dict().items():
        assert scores == {doc_id: exhaustive[topic][doc_id] for doc_id in scores}, "bit for bit"


def test_a_reranker_scores_a_topic_alone_as_it_does_among_others(index: ft.Index, model: ColBERT) -> None:
    reranked = index.bm25() % 20 >> ft.neural.LateReranker(model)
    assert reranked({"q2": TEXTS["q2"]}).to_dict()["q2"] == reranked(TEXTS).to_dict()["q2"]


def test_a_reranker_explains_the_score_of_a_document_that_it_is_given(index: ft.Index, model: ColBERT) -> None:
    reranker = ft.neural.LateReranker(model, 0)
    hit = (index.bm25() % 5 >> reranker).search("old well", k=1)[0]
    explanation = reranker.explain("old well", index.doc(hit.id))
    assert explanation.value == pytest.approx(hit.score, abs=1e-5)
    assert sum(part.value for part in explanation.parts) == pytest.approx(explanation.value, abs=1e-6)


def test_a_reranker_mixes_its_scores_with_those_of_the_run(index: ft.Index, model: ColBERT) -> None:
    first = (index.bm25() % 20)(TEXTS)
    assert ft.neural.LateReranker(model).interpolate(0.0)(first)["q1"].ids == first["q1"].ids


def test_the_command_stores_token_vectors_once_and_searches_them(
    index: ft.Index, model: ColBERT, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["fontes", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
        return capsys.readouterr().out

    path = tmp_path / "fresh"
    ft.Index.build(documents(), path)
    monkeypatch.setattr("fontes.neural.models.compute.candidates", lambda device: [])
    encode = ("encode", str(path), str(model.name_or_path), "--late", "--nbits", "4")
    said = run(*encode)
    assert "60 documents, 16 dimensions, 4 bits" in said
    assert "of the best 10" in said
    assert json.loads(run(*encode, "--json"))["recall"]["queries"] == 32
    best = ft.Index.open(path).late(model, k=3).search("old well", k=3)
    pipeline = ("--pipeline", f'late("{model.name_or_path}", nbits=4, k=3)')
    hits = json.loads(run("search", str(path), "old well", *pipeline, "--json"))["hits"]
    assert [hit["id"] for hit in hits] == best.ids
    (tmp_path / "topics.tsv").write_text("q1\told well\n")
    run("search", str(path), "--topics", str(tmp_path / "topics.tsv"), *pipeline, "-o", str(tmp_path / "run"))
    assert ft.read_run(tmp_path / "run")["q1"].ids == best.ids

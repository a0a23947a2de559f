"""Cross-encoders of random weights, for recipes that train and rerank."""

import pytest


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An encoder without a head, from which a training begins."""
    from support.tiny_cross_encoder import save_cross_encoder

    return str(save_cross_encoder(tmp_path_factory.mktemp("start"), architecture="BertModel"))


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A reranker that needs no training."""
    from support.tiny_cross_encoder import save_cross_encoder

    return str(save_cross_encoder(tmp_path_factory.mktemp("ready")))

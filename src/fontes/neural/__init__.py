"""Neural retrieval and reranking: encoders, vector search, late interaction, learned sparse retrieval, rerankers.

The public names, listed in `__init__.pyi`, are loaded on first use, so that a dense search loads no late interaction.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

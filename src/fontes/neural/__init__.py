"""Neural retrieval and reranking: encoders, vector search, late interaction, learned sparse retrieval, rerankers.

Each public name, those of `__init__.pyi`, is loaded when it is first used, so that a dense search loads no late interaction.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

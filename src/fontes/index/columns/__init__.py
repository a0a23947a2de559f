"""Columns beside the inverted index: values of the documents' metadata, which filters compare and facets count."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

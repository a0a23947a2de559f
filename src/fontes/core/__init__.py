"""Core values, stages, pipeline expressions, registries, progress and errors. Needs numpy alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

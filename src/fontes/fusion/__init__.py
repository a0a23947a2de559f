"""Fusion of several runs, or of the stages that make them."""

from .fusing import Fusion, fuse

__all__ = ["Fusion", "fuse"]

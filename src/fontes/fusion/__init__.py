"""Fusion: several runs, or the stages that make them, as one."""

from .fusing import Fusion, fuse

__all__ = ["Fusion", "fuse"]

"""The index: build, open, read."""

from .build import Progress
from .index import Index

__all__ = ["Index", "Progress"]

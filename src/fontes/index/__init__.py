"""The index: build, open, read."""

from .index import Index

__all__ = ["Index"]

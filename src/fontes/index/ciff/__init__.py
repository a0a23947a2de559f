"""CIFF, the Common Index File Format (Lin et al., 2020): an inverted index as messages of Protobuf, from and to our own."""

from .header import Header
from .reading import CiffReader, Lists, Records
from .segment import ciff_segment
from .writing import ciff_messages

__all__ = ["CiffReader", "Header", "Lists", "Records", "ciff_messages", "ciff_segment"]

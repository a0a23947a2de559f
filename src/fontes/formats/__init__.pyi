from .corpus import Corpus as Corpus, IterableCorpus as IterableCorpus, read_corpus as read_corpus, with_prefix as with_prefix
from .format import File as File, Format as Format, formats_for as formats_for
from .ir_metadata import read_metadata as read_metadata
from .reading import (
    read_qrels as read_qrels,
    read_run as read_run,
    read_topics as read_topics,
    write as write,
    write_corpus as write_corpus,
    write_qrels as write_qrels,
    write_run as write_run,
    write_topics as write_topics,
)

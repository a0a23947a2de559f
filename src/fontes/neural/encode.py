"""`index.encode(encoder)`: store the documents' vectors with an index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import ParameterError
from ..core.part import fix_precision
from ..core.work import ProgressCallback, resources, work
from ..index.embeddings.encoded import EncodingJob
from ..index.embeddings.encoding import VECTORS
from ..index.embeddings.journal import remote_encoder
from ..index.embeddings.weights import WEIGHTS
from .encoders.base import Encoder, document_vectors
from .encoders.sentence import SentenceEncoder
from .late.colbert import ColBERT
from .sparse.splade import SparseEncoder, is_sparse
from .stored import check_free, check_precision, in_precision, named_encoder, precision_of, settings_of

if TYPE_CHECKING:
    from ..index import Index, State


def encode(
    index: Index | State,
    encoder: Encoder | SparseEncoder | str,
    *,
    dtype: str | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    ray: bool | str | None = None,
    name: str | None = None,
) -> None:
    """Store the documents' vectors by `encoder` with the index, for `index.dense(encoder)` or `index.splade(encoder)`.

    Only documents without vectors are encoded: all of them the first time, later the added ones. An interrupted encoding
    resumes. Vectors of another dtype are converted from the encoder's stored float32 vectors, if any. An index may have
    vectors of several encoders; an index rebuilt in its place has none.

    Args:
        index: The index.
        encoder: Computes the vectors; a string is the name of stored vectors, or the model of a `SentenceEncoder`. The
            precision "auto" becomes the precision of the vectors already stored, if any.
        dtype: "float32"; "float16"; "int8", integers with a scale for each vector; or "rabitq4", "rabitq2" or "rabitq1",
            RaBitQ codes of 4, 2 or 1 bits per dimension. None: the dtype of the stored vectors, or float32. The weights of a
            learned sparse encoder are always stored to four decimals.
        overwrite: Encode documents with stored vectors again.
        progress: Called as documents are encoded.
        ray: Encode on a cluster, in the precision in which the models run here: True for Ray on this machine or at
            RAY_ADDRESS, or an address. Its nodes must see the index's folder and the model under the same paths.
        name: Name of the vectors, for `index.dense(name)`, pipelines and runs. None: the one that they have, if any.

    Raises:
        ParameterError: The stored vectors have another precision than the one that the encoder names, or the name is that of
            another encoder's vectors, without `overwrite`.
        FontesError: The disk is full, or the cluster is lost; encoded documents are kept.
    """
    encoder = named_encoder(index, encoder)
    if isinstance(encoder, str):
        encoder = SentenceEncoder(encoder)
    with work(ray=ray, progress=progress):
        if isinstance(encoder, ColBERT):
            raise ParameterError(f"{encoder!r} has token vectors: fontes.neural.encode_late(index, colbert) stores them")
        if not callable(getattr(encoder, "encode_documents", None)):
            raise ParameterError(f"encode needs an encoder, or the name of a sentence encoder, not {encoder!r}")
        sparse = is_sparse(encoder)
        component: Any = WEIGHTS if sparse else VECTORS
        check_free(index, component, encoder.fingerprint, name, overwrite)
        if sparse and dtype is not None:
            raise ParameterError(f"dtype is for dense vectors; the weights of {encoder!r} are stored to four decimals")
        stored = None if overwrite else index.vectors.precision(component, encoder.fingerprint)
        check_precision(index.path, encoder, stored)
        model = in_precision(encoder, stored)
        if resources().ray:
            model = fix_precision(model)
        encode_documents = (
            cast("SparseEncoder", model).encode_documents if sparse else partial(document_vectors, cast("Encoder", model))
        )
        job = EncodingJob(settings_of(encoder), encode_documents, partial(precision_of, model))
        with remote_encoder(encoder) as actors:
            index.vectors.add(component, encoder, job, dtype, overwrite, actors)
        index.vectors.label(component, encoder.fingerprint, name, settings_of(encoder, absolute=True))

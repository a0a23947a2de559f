"""How an index reaches the districts: its methods that make stages, and what encoders store with it.

`index.bm25()` is the registered stage `bm25` over the index's state; a stage of another package that has a field `index` is a
method as well. What encoders store is made by the rooms of neural models, which are imported when they are needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from ..core.errors import ParameterError
from ..core.parameters import meant, parameters
from ..core.part import fields, stages
from ..core.progress import Report
from ..core.registry import nearest
from ..core.work import resources
from .embeddings.journal import remote_encoder
from .embeddings.store import EncodingJob, VectorStore
from .leaf import Leaf

if TYPE_CHECKING:
    from ..neural.encoders.base import Encoder
    from ..neural.sparse.splade import SparseEncoder

P = ParamSpec("P")
S = TypeVar("S")


class StageMethod(Generic[P, S]):
    """The type of a method that makes a stage over an index: the parameters of the stage's class, without its index."""

    def __init__(self, stage: Callable[Concatenate[Any, P], S]) -> None:
        self.stage = stage

    def __get__(self, index: object, owner: Any = None) -> Callable[P, S]:
        return partial(self.stage, index)


def stage_method(state: Any, name: str) -> Callable[..., Any]:
    """The method of an index that makes the stage of this name over it, with parameters that are checked.

    Raises:
        AttributeError: No stage that works on an index has this name.
        ParameterError: When it is called: a parameter is unknown or out of its range; the message has the nearest name.
    """
    return MethodType(_maker(name), state)


@lru_cache(None)
def _maker(name: str) -> Callable[..., Any]:
    """A function from a state and parameters to the stage of this name."""
    cls: Any = stages[name] if not name.startswith("_") and name in stages else None
    if cls is None or "index" not in {field.name for field in fields(cls)}:
        raise AttributeError(f"an index has no attribute '{name}', and there is no stage of this name that works on one")
    known = parameters(cls)

    def make(index: Any, /, *args: Any, **values: Any) -> Any:
        for key in values:
            if key not in known:
                raise ParameterError(f"{name} has no parameter '{key}'; {nearest(key, known)}")
        stage = cls(index, *args, **values)
        try:
            stage.check()
        except ParameterError as error:
            better = next(filter(None, (meant(known, key, value) for key, value in values.items())), "")
            raise ParameterError(f"{error}{better}") from None
        return stage

    signature = inspect.signature(cls)
    make.__signature__ = signature.replace(return_annotation=cls.__name__)  # type: ignore[attr-defined]
    make.__name__, make.__doc__ = name, cls.__doc__
    return make


def stage_methods() -> list[str]:
    """The names of all stages that work on an index."""
    return [name for name, cls in stages.items() if "index" in {field.name for field in fields(cls)}]


def encode(
    vectors: VectorStore,
    encoder: Encoder | SparseEncoder,
    dtype: str | None,
    overwrite: bool,
    progress: Report,
) -> None:
    """Stores what an encoder makes of the documents; see `Index.encode`."""
    from ..neural.dense.settings import in_precision, precision_of, settings_of
    from ..neural.encoders.base import document_vectors
    from ..neural.late.colbert import ColBERT
    from ..neural.models.base import settled
    from ..neural.sparse.splade import is_sparse

    settings, own = settings_of(encoder), encoder
    if not overwrite:
        own = in_precision(encoder, vectors.precision(encoder.fingerprint))
    own = settled(own) if resources().ray else own
    precision = partial(precision_of, own)
    if is_sparse(encoder):
        if dtype is not None:
            raise ParameterError(f"dtype is of dense vectors; the weights of {encoder!r} are stored to four decimals")
        weights = EncodingJob(settings, cast("SparseEncoder", own).encode_documents, precision)
        with remote_encoder(encoder) as actors:
            vectors.add_weights(encoder, weights, overwrite, progress, actors)
        return
    if isinstance(encoder, ColBERT):
        raise ParameterError(f"{encoder!r} has a vector for each token: fontes.neural.encode_late(index, colbert) stores them")
    dense = EncodingJob(settings, partial(document_vectors, cast("Encoder", own)), precision)
    with remote_encoder(encoder) as actors:
        vectors.add(cast("Encoder", encoder), dense, dtype, overwrite, progress, actors)


def merge_token_vectors(leaves: Sequence[Leaf], folders: Sequence[Path], folder: Path) -> None:
    """Carries token vectors over to a merged segment; see `neural.late.merging.merge_tokens`."""
    from ..neural.late.merging import merge_tokens

    merge_tokens(leaves, folders, folder)


def token_vectors_fit(folder: Path) -> list[str]:
    """What tells the centroids of token vectors from those of another fit; see `neural.late.merging.fit_in`."""
    from ..neural.late.merging import fit_in

    return fit_in(folder)

"""How an index reaches the districts: its methods that make stages, and what encoders store with it.

`index.bm25()` is the registered stage `bm25` over the index's state; a stage of another package that has a field `index` is a
method as well. What encoders store is made by the rooms of neural models, which are imported when they are needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from ..core.errors import ParameterError
from ..core.parameters import meant, parameters
from ..core.part import fields, stages
from ..core.progress import Report
from ..core.registry import nearest
from ..core.work import resources
from .embeddings.encoded import EncodingJob
from .embeddings.encoding import VECTORS
from .embeddings.journal import remote_encoder
from .embeddings.store import VectorStore
from .embeddings.weights import WEIGHTS

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

    if isinstance(encoder, ColBERT):
        raise ParameterError(f"{encoder!r} has a vector for each token: fontes.neural.encode_late(index, colbert) stores them")
    component: Any = WEIGHTS if is_sparse(encoder) else VECTORS
    if component is WEIGHTS and dtype is not None:
        raise ParameterError(f"dtype is of dense vectors; the weights of {encoder!r} are stored to four decimals")
    own = encoder if overwrite else in_precision(encoder, vectors.precision(component, encoder.fingerprint))
    own = settled(own) if resources().ray else own
    encoded = (
        cast("SparseEncoder", own).encode_documents if component is WEIGHTS else partial(document_vectors, cast("Encoder", own))
    )
    job = EncodingJob(settings_of(encoder), encoded, partial(precision_of, own))
    with remote_encoder(encoder) as actors:
        vectors.add(component, encoder, job, dtype, overwrite, progress, actors)

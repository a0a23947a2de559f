"""`fontes encode` and `fontes models`: vectors and term weights of documents; models on this machine."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from ....core import expression
from ....core.errors import ParameterError
from ....core.part import Part, stages
from ...flags import ray_of
from ...options import IndexPath, Json, Ray, argument, option
from ...output import counted, print_json, reporting, say, size
from ...pipelines import open_index

if TYPE_CHECKING:
    from ....index import Index


def encode(
    index: IndexPath,
    encoder: Annotated[
        str,
        argument(
            "A model: a folder, a name on the hub, the name of stored vectors, or an encoder as an expression: "
            "'chunked_encoder(\"MODEL\")'."
        ),
    ],
    name: Annotated[str | None, option("Name of the vectors, for dense(NAME) in pipelines.", "the one that they have")] = None,
    dtype: Annotated[
        str | None, option("float32, float16, int8, rabitq4, rabitq2 or rabitq1.", "as the stored ones, float32")
    ] = None,
    algorithm: Annotated[
        str | None, option("Also build an approximate index: hnsw, IVF256,Flat, annoy:1000, …", "flat")
    ] = None,
    sparse: Annotated[bool, option("Weights of terms, by a SPLADE model.", True, "--sparse")] = False,
    late: Annotated[bool, option("A vector for each token, by a ColBERT model.", True, "--late")] = False,
    nbits: Annotated[
        int | None, option("late: bits per dimension: 1, 2 or 4; 16 or 32 store whole vectors.", "as the stored ones, 4")
    ] = None,
    precision: Annotated[
        str | None,
        option(
            "auto, float32, bfloat16, float16 or int8; auto is chosen by timing. int8 may be slower, and says so.",
            "the encoder's: auto",
        ),
    ] = None,
    overwrite: Annotated[bool, option("Encode documents again that have vectors.", True, "--overwrite")] = False,
    ray: Ray = None,
    json: Json = False,
) -> None:
    """Store documents' vectors with an index, for dense, late or learned sparse retrieval. An interrupted run resumes."""
    from ....neural import encode_late
    from ....neural.dense.dense import Dense
    from ....neural.encode import encode as store
    from ....neural.encoders.reading import token_limit
    from ....neural.sparse.splade import is_sparse

    if late and sparse:
        raise ParameterError("--late and --sparse need different models; give one of them")
    opened = open_index(index)
    kind = "colbert" if late else "splade_encoder" if sparse else "sentence_encoder"
    model = _in_precision(_parse_encoder(opened, encoder, kind), precision)
    sparse = is_sparse(model)
    _check_options(late, sparse, dtype, algorithm, nbits)
    cluster = ray_of(ray)
    start = time.perf_counter()
    with reporting(json):
        if late:
            facts = encode_late(opened, model, nbits=nbits, overwrite=overwrite, ray=cluster, name=name)
        else:
            store(opened, model, dtype=dtype, overwrite=overwrite, ray=cluster, name=name)
    if sparse:
        facts = opened.weights(model).info()
    elif not late:
        algorithm = algorithm or "flat"
        recall = Dense(opened, model, algorithm=algorithm, dtype=dtype).recall() if algorithm != "flat" else {}
        facts = {**opened.embeddings(model, dtype).info(), "algorithm": algorithm, "recall": recall}
    seconds = time.perf_counter() - start
    facts["precision"] = (facts["precision"] or "").split()
    read = token_limit(model, opened)
    if json:
        print_json({**facts, "seconds": round(seconds, 3), "reads": read and read.to_dict()})
    else:
        show = _print_late if late else _print_sparse if sparse else _print_dense
        show(opened, facts, seconds)
        if read is not None:
            say(f"the model {read}")


def _check_options(late: bool, sparse: bool, dtype: str | None, algorithm: str | None, nbits: int | None) -> None:
    for name, value in (("--dtype", dtype), ("--algorithm", algorithm)):
        if value is not None and (late or sparse):
            raise ParameterError(f"{name} does not apply to {'--late' if late else 'weights of terms'}")
    if nbits is not None and not late:
        raise ParameterError("--nbits goes with --late")


def _parse_encoder(index: Index, text: str, name: str) -> Any:
    """Return the encoder of an expression or of stored vectors, or for a model the encoder with the registered `name`."""
    from ....index.component import components
    from ....neural.stored import named_model

    stored_as: Any = components[{"colbert": "late", "splade_encoder": "sparse", "sentence_encoder": "vectors"}[name]]
    if (named := named_model(index, stored_as, text)) is not text:
        return named
    if not text.rstrip().endswith(")"):
        return expression.part(f"{name}({text!r})")
    encoder = expression.part(text)
    if not isinstance(encoder, Part) or not hasattr(encoder, "encode_documents"):
        raise ParameterError(f'{text} is not an encoder; write sentence_encoder("MODEL"), or only the model')
    return encoder


def _in_precision(encoder: Any, precision: str | None) -> Any:
    from ....neural.models.base import Pretrained

    if precision is None:
        return encoder
    changed = encoder.map(lambda inner: inner.with_(precision=precision) if isinstance(inner, Pretrained) else inner)
    changed.check()
    return changed


def _print_dense(index: Index, facts: dict[str, Any], seconds: float) -> None:
    vectors = f"{counted(facts['vectors'], 'vector')} of {facts['dim']} dimensions in {facts['dtype']}"
    say(f"{index.path}: {vectors} in {seconds:.1f} s; {size(facts['bytes'])}{_precision_note(facts)}")
    if facts["recall"]:
        shares = ", ".join(f"{value:.1%} of the exact best {name[2:]}" for name, value in facts["recall"].items())
        say(f"{facts['algorithm']}: {shares}")


def _precision_note(facts: dict[str, Any]) -> str:
    return f"; the model runs in {' and '.join(dict.fromkeys(facts['precision']))} here" if facts["precision"] else ""


def _print_late(index: Index, facts: dict[str, Any], seconds: float) -> None:
    vectors = f"{counted(facts['tokens'], 'token vector')} of {counted(len(index), 'document')}"
    form = f"{facts['dim']} dimensions, {facts['nbits']} bits, {counted(facts['centroids'], 'centroid')}"
    say(f"{index.path}: {vectors}, {form} in {seconds:.1f} s; {size(facts['bytes'])}{_precision_note(facts)}")
    shares = [f"{value:.3f} of the best {depth}" for depth, value in facts["recall"].items() if depth.isdigit()]
    if shares:
        say(f"recall against the exhaustive search: {', '.join(shares)} ({facts['recall']['queries']} queries)")


def _print_sparse(index: Index, facts: dict[str, Any], seconds: float) -> None:
    weights = f"{counted(facts['postings'], 'weight')} of {counted(facts['terms'], 'term')}"
    density = f"{facts['postings'] / max(1, facts['documents']):.0f} a document"
    say(f"{index.path}: {weights}, {density}, in {seconds:.1f} s; {size(facts['bytes'])}{_precision_note(facts)}")


def models(
    names: Annotated[
        list[str] | None, argument("Folders, or names of models.", "those in the hub's cache and in packages")
    ] = None,
    json: Json = False,
) -> None:
    """List the models on this machine, and those that stages and recipes load by default. Nothing is downloaded."""
    import sys

    from ....neural.models.listing import cached_models, default_models, model_in, models_of_packages
    from ....neural.models.packaged import INSTALL
    from ....recipes import registry

    models_listed = [model_in(name) for name in names] if names else [*cached_models(), *models_of_packages()]
    users: dict[str, type] = {**dict(stages.items()), **{f"recipe {name}": cls for name, cls in registry.items()}}
    defaults = [] if names else list(default_models(users))
    if json:
        facts = {"found": [asdict(model) for model in models_listed], "defaults": [asdict(default) for default in defaults]}
        print_json(
            {part: [{**fact, "folder": fact["folder"] and str(fact["folder"])} for fact in facts[part]] for part in facts}
        )
        return
    lines = [
        f"{model.name}  {model.architecture or 'unknown architecture'}, {model.size / 1e6:.1f} MB, "
        f"{model.licence or 'no licence stated'}  {f'package {model.package}' if model.package else model.folder}"
        for model in models_listed
    ]
    lines = lines or [f"No model is in the hub's cache or in a package: {INSTALL}; a folder can be named in place of a name."]
    if defaults:
        lines += ["", "Loaded by default:"]
        lines += [
            f"  {default.user} ({default.parameter})  {default.model}{'' if default.folder else ', not on this machine'}"
            for default in defaults
        ]
    sys.stdout.write("\n".join(lines) + "\n")
